"""Fusion: decide which kernel an operation joins, and where the values of kernels are stored.

An operation joins the last kernel over its shape, unless an argument is computed later or the kernel is full.
"""

import functools
import math
import zlib
from collections.abc import Iterator

import numpy as np

from effgrad.primitives.machine_code import SAME
from effgrad.primitives.primitive import constant
from effgrad.primitives.product import matmul
from effgrad.stage.graph import Graph
from effgrad.stage.moves import affine, contiguous, made
from effgrad.stage.native.kernels import operand
from effgrad.stage.native.steps import Fused, Step
from effgrad.stage.native.storage import Buffer, Storage
from effgrad.stage.nodes import Node
from effgrad.vocabulary import Value

COPY = constant(np.copy, code=SAME)

# The fewest and the most operations of a full kernel: for loops, and for straight-line code. In between, a hash of an
# operation decides whether the kernel ends with it. So the kernels of an unrolled loop become equal after a few turns.
FUSED, STRAIGHT = (16, 64), (100, 400)
# For arrays of at least `LARGE_ARRAY` elements memory takes the time, so a kernel holds more operations, as long as it
# walks few arrays (`STREAMS`) at once. The gradient of 300 steps took four times as long when a kernel read hundreds
# of its kept values together.
LARGE_ARRAY, LARGE_FUSED, STREAMS = 512, (768, 1024), 32


class Fusion:
    """The steps of a program that is being planned, and the storage of their values."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.steps: list[Step] = []
        # The step after which a value is available; the kernel that computes it; and where it is stored, by the `id` of
        # a node or a constant.
        self.available: dict[Node, int] = {}
        self.member: dict[Node, Fused] = {}
        self.storage: dict[int, Storage] = {}
        self.groups: dict[tuple[int, ...], list[Fused]] = {}  # the kernels over each shape
        self.buffers: list[Buffer] = []
        self.wanted = _wanted(graph)
        # The numbers of elements to leave free before and after some vectors.
        self.margins: dict[Node, tuple[int, int]] = {}
        # Values made during planning, kept alive so that no `id` is reused.
        self.kept: list[Value] = []

    def buffer(self, view: np.ndarray, array: np.ndarray | None = None, source: int | None = None) -> Storage:
        """Make new memory for a value with the layout of this view."""
        made = Buffer(max(view.size, 1) * view.itemsize, array, source)
        self.buffers.append(made)
        return Storage(made, view, 0)

    def memory(self, value: Value, array: np.ndarray | None = None, source: int | None = None) -> Storage:
        """Make new memory for a value in C order."""
        return self.buffer(contiguous(value.shape, value.dtype), array, source)

    def set_storage(self, node: Node, storage: Storage, step: int) -> None:
        """Record where the value of a node is stored, and after which step it is available."""
        self.storage[id(node)], self.available[node] = storage, step

    def stored(self, arg: Value) -> Storage:
        """Return the storage of a value; a value without storage gets it, and its kernel writes it there.

        The layout of a value may follow that of an earlier one, whose layout follows another, through a whole program.
        So the earlier ones are stored first, by a loop instead of a deep recursion.
        """
        waiting = [arg]
        while waiting:
            value = waiting[-1]
            before = self.laid_out_before(value) if id(value) not in self.storage else None
            if before is not None:
                waiting.append(before)
                continue
            if id(value) not in self.storage:
                self.store(value)
            waiting.pop()
        return self.storage[id(arg)]

    def laid_out_before(self, value: Value) -> Node | None:
        """Return a value without storage whose layout `layout` would ask for, or None."""
        if type(value) is not Node or len(value.shape) < 2 or self.margins.get(value, (0, 0)) != (0, 0):
            return None
        group = self.member[value]
        for arg in self.alike(value, group):
            if id(arg) not in self.storage:
                return arg
            strides = self.storage[id(arg)].view.strides
            if all(strides[i] for i, n in enumerate(value.shape) if n > 1):
                return None
        return None

    def alike(self, node: Node, group: Fused) -> Iterator[Node]:
        """Go through the values that a node's kernel reads and that have the node's shape."""
        for n in group.kernel.nodes:
            for a in n.args:
                if type(a) is Node and a.shape == node.shape and a not in group.members:
                    yield a

    def store(self, arg: Value) -> None:
        """Give a value new memory."""
        if type(arg) is Node:
            group = self.member[arg]
            before, after = self.margins.get(arg, (0, 0))
            if before or after:
                around = self.buffer(contiguous((before + arg.size + after,), arg.dtype))
                storage = Storage(around.buffer, around.view[before : before + arg.size])
            else:
                storage = self.buffer(self.layout(arg, group))
            self.storage[id(arg)] = group.stored[arg] = storage
        else:
            # `Stage` has copied the program's arrays, and made the copies read-only; these are not copied again.
            fixed = isinstance(arg, np.ndarray) and not arg.flags.writeable
            array = np.array(arg, order="C", copy=None if fixed else True)
            self.storage[id(arg)] = self.memory(array, array=array)
            self.kept.append(arg)

    def layout(self, node: Node, group: Fused) -> np.ndarray:
        """Return the layout of a kernel's value, in the order of axes of a product, or of an array the kernel reads."""
        order = self.wanted.get(node)
        for arg in self.alike(node, group) if len(node.shape) > 1 else ():
            strides = self.stored(arg).view.strides
            if all(strides[i] for i, n in enumerate(node.shape) if n > 1):
                found = tuple(sorted(range(len(strides)), key=lambda i: -strides[i]))
                if order is None or found[:-2] == order[:-2]:
                    order = found
                break
        if order is None:
            return contiguous(node.shape, node.dtype)
        return np.transpose(contiguous(tuple(node.shape[i] for i in order), node.dtype), np.argsort(order))

    def earliest(self, args: tuple[Value, ...], shape: tuple[int, ...]) -> int:
        """Return the first step in which a kernel over `shape` could use the arguments."""
        first = 0
        for arg in args:
            if type(arg) is Node:
                step = self.available[arg]
                if step >= first:
                    group = self.member.get(arg)
                    inside = group is not None and group.kernel.shape == shape == arg.shape
                    first = step if inside else step + 1
        return first

    def group(self, args: tuple[Value, ...], shape: tuple[int, ...], after: int = 0) -> Fused:
        """Return the latest kernel over `shape`, of the last 16, that is not full nor too early; else a new one."""
        first = max(self.earliest(args, shape), after)
        for group in self.groups.get(shape, ())[:-17:-1]:
            if group.number < first:
                break
            if not group.full:
                return group
        return self.kernel(shape)

    def kernel(self, shape: tuple[int, ...]) -> Fused:
        """Add a new kernel over `shape` as the last step."""
        made = Fused(shape, len(self.steps))
        self.steps.append(made)
        self.groups.setdefault(shape, []).append(made)
        return made

    def fuse(self, node: Node) -> None:
        """Add an operation to the kernel over its shape."""
        self.add(node, self.group(node.args, node.shape))

    def add(self, node: Node, group: Fused) -> None:
        """Add an operation to a kernel, and note whether the kernel is full now."""
        group.kernel.nodes.append(node)
        group.members.add(node)
        least, most = _bounds(group.kernel.shape)
        count = len(group.kernel.nodes)
        group.full = count >= most or (count >= least and _ends(node, count // least))
        if most == LARGE_FUSED[1]:
            far = [a for a in (node, *node.args) if type(a) is Node and self.distances.get(a, 0) > most // 2]
            group.streams.update(far)
            group.full |= count >= FUSED[1] and len(group.streams) >= STREAMS
        self.member[node], self.available[node] = group, group.number

    @functools.cached_property
    def distances(self) -> dict[Node, int]:
        """For each node, the number of operations from it to the last one that computes with it."""
        numbers: dict[Node, int] = {}
        distances: dict[Node, int] = {}
        for number, node in enumerate(self.graph):
            numbers[node] = number
            if not (node.primitive.view or node.primitive.places):
                for arg in node.inputs:
                    distances[arg] = number - numbers.get(arg, number)
        return distances

    def copied(self, source: Value) -> Node:
        """Add a contiguous copy of a value, made by a kernel, and return its node."""
        like = source if type(source) is Node else Node(COPY, (), {}, (), source)
        return self.copy_to(self.memory(like), source, like)

    def copy_to(self, storage: Storage, source: Value, like: Node, after: int = 0) -> Node:
        """Add a copy of a value, or of one number for all elements, which a kernel writes there; return its node."""
        copy = made(like, COPY, [source], storage.view.shape, {}).changed(kind=np.ndarray)
        self.kept.append(copy)
        self.add(copy, self.group(copy.args, copy.shape, after))
        self.storage[id(copy)] = self.member[copy].stored[copy] = storage
        return copy

    def collect(
        self, value: Value, storage: Storage, reduction: str = "", places: np.ndarray | Node | None = None,
        after: int = 0,
    ) -> int:  # fmt: skip
        """Let a kernel write a value to memory, or to `places` in it; return its step.

        Memory that it is written to whole has the value's shape. The `reduction` is that of the operand.
        """
        shape = storage.view.shape if places is None else places.shape
        strides = storage.strides(shape) if places is None else (0,) * len(shape)
        group = self.group((value, places), shape, after)
        group.collected.append((value, storage, operand(storage.view.dtype, strides, reduction), places))
        self.kept += [value, places]
        return group.number


def _wanted(graph: Graph) -> dict[Node, tuple[int, ...]]:
    """Return the order of axes in memory that suits batched products, with the axes of the batch outermost."""
    wanted: dict[Node, tuple[int, ...]] = {}
    for node in graph:
        if node.primitive is matmul and len(node.shape) > 2:
            for arg in node.args:
                view = affine(arg) if type(arg) is Node else None
                if view is not None and sorted(arg.shape) == sorted(arg.args[0].shape):
                    # The axes in the order in which a transpose walks the memory.
                    axes = np.argsort(np.argsort(-np.abs(view.strides), kind="stable")).tolist()
                    wanted[arg.args[0]] = (*axes[:-2], *sorted(axes[-2:]))
    return wanted


@functools.cache
def _bounds(shape: tuple[int, ...]) -> tuple[int, int]:
    """The fewest and the most operations of a full kernel over a shape."""
    return STRAIGHT if not shape else FUSED if math.prod(shape) < LARGE_ARRAY else LARGE_FUSED


def _ends(node: Node, length: int) -> bool:
    """Whether a kernel ends with an operation, decided by a hash of the operation and of those that it comes from.

    One kind of operation in eight ends a kernel of the least length, one in four a kernel twice as long, and so on,
    because an unrolled loop may have only few kinds.
    """
    return _number(_described(node, 2)) % (16 >> length) == 0


def _described(node: Node, depth: int) -> str:
    """The text of an operation and its arguments, to a depth."""
    if not depth:
        return f"{node.primitive.name}()"
    return f"{node.primitive.name}({','.join([_described(a, depth - 1) for a in node.args if type(a) is Node])})"


@functools.cache
def _number(text: str) -> int:
    return zlib.crc32(text.encode())
