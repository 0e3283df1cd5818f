"""Placement: decide how each operation is computed, and where its value is stored.

Each operation is computed in the first of these strategies that is possible for it: as a view, which costs nothing; in
a kernel; as a product by BLAS; and, as a last resort, by a call of NumPy.
"""

import functools
from collections.abc import Callable

import numpy as np

from effgrad.primitives.indices import reduced_axes
from effgrad.primitives.machine_code import ADD
from effgrad.primitives.product import matmul
from effgrad.stage.graph import Graph
from effgrad.stage.moves import affine, contiguous, view_of
from effgrad.stage.native import products
from effgrad.stage.native.fusion import COPY, Fusion
from effgrad.stage.native.gathers import Gathers
from effgrad.stage.native.joins import Joins
from effgrad.stage.native.kernels import operand
from effgrad.stage.native.scalars import TYPES, supported, typed
from effgrad.stage.native.scatters import scatter
from effgrad.stage.native.steps import Call, Fused, Product
from effgrad.stage.native.storage import Storage
from effgrad.stage.native.writes import Writes, strided_gather
from effgrad.stage.nodes import GUARD, Node


class Placement(Fusion):
    """The steps of a graph, decided for one node after the other; `checked` has the storage of guarded values."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.checked: list[Storage] = []
        joins, gathers = Joins(self), Gathers(self, self.place)
        writes = Writes(self, gathers)
        self.strategies: tuple[Callable[[Node], bool], ...] = (
            self.view, self.compute, self.reduce, functools.partial(strided_gather, self), gathers.gather, joins.join,
            functools.partial(scatter, self, gathers), writes.write, self.product,
        )  # fmt: skip
        self.inputs = [self.memory(node, source=i) for i, node in enumerate(graph.inputs)]
        for node, storage in zip(graph.inputs, self.inputs, strict=True):
            self.set_storage(node, storage, -1)
        for node in graph:
            self.place(node)

    def place(self, node: Node) -> None:
        """Decide how a node is computed."""
        if node.primitive is GUARD:
            self.guard(node)
            return
        for strategy in self.strategies:
            if strategy(node):
                return
        self.call(node)

    def view(self, node: Node) -> bool:
        """Make the node a view of its argument's memory, if possible, or of a contiguous copy of it."""
        if not node.primitive.view or node.slots or not node.size:
            return False
        source = node.args[0]
        if type(source) is not Node or not source.dtype.isnative:  # NumPy's numbers have the native order of bytes
            return False
        view = view_of(node, self.stored(source).view)
        if view is None:
            if not typed(source) or affine(node) is None:
                return False
            source = self.copied(source)
            view = view_of(node, self.stored(source).view)
        self.set_storage(node, Storage(self.stored(source).buffer, view), self.available[source])
        return True

    def compute(self, node: Node) -> bool:
        """Compute an elementwise operation in a kernel, if it has machine code."""
        fits = 0 not in node.shape and supported(node)
        if fits:
            self.fuse(node)
        return fits

    def reduce(self, node: Node) -> bool:
        """Compute a sum, a maximum or a minimum in the kernel of its argument, if possible."""
        folds = node.primitive.folds
        if folds is None:
            return False
        (source,) = node.args
        if type(source) is not Node or not source.size or not typed(source, node):
            return False
        if node.dtype.kind not in ("fi" if folds.code is ADD else "f"):
            return False
        rank = len(source.shape)
        axes = reduced_axes(node.params["axis"], rank)
        group = self.group(node.args, source.shape)
        # The axes of the result are stored in the order in which the kernel walks its argument.
        walked = self.layout(source, group).strides
        order = sorted((i for i in range(rank) if i not in axes), key=lambda i: -walked[i])
        shape = tuple(source.shape[i] for i in order)
        view = np.transpose(contiguous(shape, node.dtype), np.argsort(order).astype(int))
        storage = self.buffer(view)
        kept = iter(storage.view.strides)
        strides = tuple(0 if i in axes else next(kept) // node.dtype.itemsize for i in range(rank))
        strides = tuple(0 if n == 1 else s for n, s in zip(source.shape, strides, strict=True))
        target = operand(node.dtype, strides, node.primitive.name, node.size)
        group.collected.append((source, storage, target, None))
        self.set_storage(node, storage, group.number)
        return True

    def guard(self, node: Node) -> None:
        """Compare a value with the recorded one before anything after it runs."""
        (value,) = node.args
        position = len(self.checked)
        if value.shape == () and value.dtype in TYPES:
            # The guard is on a copy, computed in the last step, so that everything before it has run.
            copied = value.changed(primitive=COPY, args=(value,), params={}, slots=())
            self.kept.append(copied)
            group = self.last_scalar_group(self.earliest((value,), ()))
            self.add(copied, group)
            group.kernel.expected[copied] = position, node.expected
            self.checked.append(self.stored(copied))
        else:
            self.checked.append(self.stored(value))
            self.steps.append(Call(node, [self.stored(value)], None, len(self.steps)))

    def last_scalar_group(self, first: int) -> Fused:
        """Return a scalar kernel that is the last step, so that a guard in it is checked before anything after it."""
        if self.steps and first < len(self.steps):
            last = self.steps[-1]
            if isinstance(last, Fused) and last.kernel.shape == () and not last.full:
                return last
        return self.kernel(())

    def product(self, node: Node) -> bool:
        """Add a step for a matrix product, if BLAS has a form for it."""
        if node.primitive is not matmul or not all(isinstance(a, Node | np.ndarray) for a in node.args):
            return False
        left, right = map(self.stored, node.args)
        view = contiguous(node.shape, node.dtype)
        found = products.arguments(left.view, right.view, view)
        if found is None:
            return False
        result = self.buffer(view)
        self.set_storage(node, result, len(self.steps))
        operands = (right, left) if found.swapped else (left, right)
        self.steps.append(Product(node, [*operands, result], found.kernel, found.numbers, len(self.steps)))
        return True

    def call(self, node: Node) -> None:
        """Add a step that calls NumPy."""
        inputs = [self.stored(a) if type(a) is Node or isinstance(a, np.ndarray) else a for a in node.args]
        slots = [self.stored(s) for s in node.slots]
        result = self.memory(node)
        self.set_storage(node, result, len(self.steps))
        self.steps.append(Call(node, [*inputs, *slots], result, len(self.steps)))
