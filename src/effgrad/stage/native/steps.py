"""The steps of a native program: a kernel, a product by BLAS, or a call of NumPy."""

import numpy as np

from effgrad.stage.native.kernels import Kernel, Operand
from effgrad.stage.native.storage import Storage
from effgrad.stage.nodes import Node
from effgrad.vocabulary import Value


class Fused:
    """A step in machine code: a kernel, to which operations are added while the program is planned."""

    def __init__(self, shape: tuple[int, ...], number: int) -> None:
        self.kernel, self.number = Kernel(shape), number
        self.members: set[Node] = set()
        self.full = False
        # For kernels over long arrays: the values that it reads from, or writes for, kernels far away.
        self.streams: set[Node] = set()
        # The values that are written to memory. `stored` has values of the kernel, in full. `collected` has values that
        # are reduced, scattered or put into a part of an array, each with its destination, operand and positions.
        self.stored: dict[Node, Storage] = {}
        self.collected: list[tuple[Value, Storage, Operand, np.ndarray | Node | None]] = []


class Product:
    """A step of BLAS: the product of two matrices, or of batches of them."""

    def __init__(self, node: Node, operands: list[Storage], kernel: str, numbers: list[int], number: int) -> None:
        self.node, self.operands, self.kernel, self.numbers, self.number = node, operands, kernel, numbers, number


class Call:
    """A step that calls NumPy: `function(*values)` into `result`."""

    def __init__(self, node: Node, inputs: list[Value], result: Storage | None, number: int) -> None:
        self.node, self.inputs, self.result, self.number = node, inputs, result, number


Step = Fused | Product | Call
