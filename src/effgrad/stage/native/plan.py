"""From a graph to steps: what is fused into which kernel, what stays a call of NumPy, and where every value lies.

An operation joins the kernel of its arguments where the loops are the same and nothing that it needs comes later.
Transposes, slices and broadcasts are other ways of looking at memory and cost nothing. All memory is laid out
beforehand, and reused where its value is no longer needed.
"""

from typing import Any

import numpy as np

from effgrad.smooth.linalg import matmul
from effgrad.smooth.structure import broadcast_to, getitem, reshape, scatter_add, transpose
from effgrad.stage.graph import GUARD, Graph, Node
from effgrad.stage.native import products
from effgrad.stage.native.arena import LARGE, laid_out
from effgrad.stage.native.fusion import COPY, JOINS, VIEWS, Fusion
from effgrad.stage.native.gathers import Gathers
from effgrad.stage.native.indexing import basic, opened
from effgrad.stage.native.joins import Joins
from effgrad.stage.native.kernels import MOVES, operand
from effgrad.stage.native.scalars import TYPES, dtype_of, supported, typed
from effgrad.stage.native.scatters import scatter
from effgrad.stage.native.steps import Call, Fused, Product
from effgrad.stage.native.storage import Buffer, Storage, viewable, whole


class Plan(Fusion):
    """The steps of a graph in order, and the storage of its values.

    A `repeated` program is the body of a loop: all its inputs and outputs are in the arena, and none lies on another.
    """

    def __init__(self, graph: Graph, repeated: bool = False) -> None:
        super().__init__(graph)
        self.repeated = repeated
        self.checked: list[Storage] = []
        self.offsets: dict[int, list[tuple[Buffer, int]]] = {}
        self.joins, self.gathers = Joins(self), Gathers(self, self.place)
        for number, node in enumerate(graph.inputs):
            buffer = self.buffer(whole(node.shape, node.dtype), source=number)
            self.storage[id(node)], self.available[node] = buffer, -1
        for node in graph:
            self.place(node)
        if repeated:
            self.outputs = [self.stored(self.copied(o)) for o in graph.outputs]
        else:
            self.outputs = [self.stored(o) if type(o) is Node else o for o in graph.outputs]
        self.finish()

    def place(self, node: Node) -> None:
        """Decide how a node is computed."""
        name = node.primitive.name
        if node.primitive is GUARD:
            self.guard(node)
        elif node.primitive in VIEWS and not node.slots and self.as_view(node):
            return
        elif 0 not in node.shape and (supported(node) or (name in MOVES and typed(node, *node.args))):
            self.fuse(node, node.shape)
        elif name in ("sum", "max", "min") and self.reducible(node):
            self.reduce(node)
        elif node.primitive is getitem and self.gathers.gather(node):
            return
        elif node.primitive in JOINS and self.joins.join(node):
            return
        elif node.primitive is scatter_add and scatter(self, node):
            return
        elif node.primitive is matmul and self.product(node):
            return
        else:
            self.call(node)

    # Views

    def as_view(self, node: Node) -> bool:
        """Look at the argument's memory in another way, if there is one."""
        source = node.args[0]
        if node.primitive is getitem and not basic(node.params["index"]):
            return False
        if type(source) is not Node or not node.size:
            return False
        if node.primitive is reshape and not viewable(self.stored(source).view, node.shape):
            if not typed(source):
                return False
            source = self.copied(source)
        base = self.stored(source)
        view = base.view
        if node.primitive is reshape:
            view = view.view()
            view.shape = node.shape
        elif node.primitive is transpose:
            view = np.transpose(view, node.params["axes"])
        elif node.primitive is broadcast_to:
            view = np.broadcast_to(view, node.shape)
        else:
            view = view[opened(node.params["index"])]
        self.storage[id(node)], self.available[node] = Storage(base.buffer, view), self.available[source]
        return True

    # Kernels

    def reducible(self, node: Node) -> bool:
        (source,) = node.args
        if type(source) is not Node or not source.size or not typed(source, node):
            return False
        return node.dtype.kind == "f" if node.primitive.name != "sum" else node.dtype.kind in "fi"

    def reduce(self, node: Node) -> None:
        (source,) = node.args
        axis, rank = node.params["axis"], len(source.shape)
        axes = set(range(rank)) if axis is None else {int(a) % rank for a in np.atleast_1d(axis)}
        group = self.group(node.args, source.shape)
        # The result lies in the order in which its argument is walked.
        walked = self.layout(source, group).strides
        order = sorted((i for i in range(rank) if i not in axes), key=lambda i: -walked[i])
        shape = tuple(source.shape[i] for i in order)
        view = np.transpose(whole(shape, node.dtype), np.argsort(order).astype(int))
        storage = self.buffer(view)
        kept = iter(storage.view.strides)
        strides = tuple(0 if i in axes else next(kept) // node.dtype.itemsize for i in range(rank))
        strides = tuple(0 if n == 1 else s for n, s in zip(source.shape, strides, strict=True))
        group.reductions.append((source, storage, operand(node.dtype, strides, node.primitive.name, node.size), None))
        self.storage[id(node)], self.available[node] = storage, group.number

    def guard(self, node: Node) -> None:
        (value,) = node.args
        position = len(self.checked)
        if value.shape == () and value.dtype in TYPES:
            # In a copy of its own, after everything before it.
            copied = value.changed(primitive=COPY, args=(value,), params={}, slots=())
            self.kept.append(copied)
            group = self.last_scalar_group(self.earliest((value,), ()))
            self.join(copied, group)
            group.kernel.expected[copied] = position, node.expected
            self.checked.append(self.stored(copied))
        else:
            self.checked.append(self.stored(value))
            self.steps.append(Call(node, [self.stored(value)], None, len(self.steps)))

    def last_scalar_group(self, first: int) -> Fused:
        """A scalar kernel that is the last step, so that a guard holds before anything after it runs."""
        if self.steps and first < len(self.steps):
            last = self.steps[-1]
            if isinstance(last, Fused) and last.kernel.shape == () and not last.full:
                return last
        made = Fused((), len(self.steps))
        self.steps.append(made)
        self.groups.setdefault((), []).append(made)
        return made

    # Calls

    def product(self, node: Node) -> bool:
        """A product that BLAS has a form for."""
        if len(node.args) != 2 or any(type(a) is not Node and not isinstance(a, np.ndarray) for a in node.args):
            return False
        left, right = map(self.stored, node.args)
        view = whole(node.shape, node.dtype)
        numbers = products.numbers(left.view, right.view, view)
        if numbers is None:
            return False
        result = self.buffer(view)
        number = len(self.steps)
        self.steps.append(Product(node, [left, right, result], numbers, number))
        self.storage[id(node)], self.available[node] = result, number
        return True

    def call(self, node: Node) -> None:
        inputs = [self.stored(a) if type(a) is Node or isinstance(a, np.ndarray) else a for a in node.args]
        slots = [self.stored(s) for s in node.slots]
        storage = self.buffer(whole(node.shape, node.dtype))
        number = len(self.steps)
        self.steps.append(Call(node, [*inputs, *slots], storage, number))
        self.storage[id(node)], self.available[node] = storage, number

    # The end

    def finish(self) -> None:
        """Complete the kernels' operands, and lay out the memory."""
        called: set[Buffer] = set()
        kernels = [step for step in self.steps if isinstance(step, Fused)]
        for kernel in kernels:
            self.complete_reads(kernel)
        for kernel in kernels:  # only now is it known what of each has to be stored
            self.complete_writes(kernel)
        for step in self.steps:
            if isinstance(step, Product):
                self.offsets[step.number] = [(s.buffer, s.offset) for s in step.operands]
            if not isinstance(step, Call):
                buffers = [buffer for buffer, _ in self.offsets[step.number]]
            else:
                buffers = [s.buffer for s in (*step.inputs, step.result) if isinstance(s, Storage)]
                called.update(buffers)
            for buffer in buffers:
                buffer.used(step.number)
        returned = [o.buffer for o in self.outputs if isinstance(o, Storage)]
        for buffer in returned:
            buffer.used(len(self.steps))
        for checked in self.checked:
            checked.buffer.used(len(self.steps))
        for buffer in self.buffers:
            if buffer.source is not None:
                buffer.first = 0
                if self.repeated:
                    buffer.used(len(self.steps))
        small = {b for b in self.buffers if b.size < LARGE or b in called or self.repeated}
        # Large arguments and results that only machine code touches are used where they are.
        self.direct = [
            b for b in self.buffers if b not in small and b.array is None
            and (returned.count(b) == 1 and self.whole_output(b) if b.source is None else b not in returned)
        ]  # fmt: skip
        arena = set(self.buffers) - set(self.direct)
        self.arena = laid_out([b for b in self.buffers if b in arena and b.array is None and b.first >= 0])

    def whole_output(self, buffer: Buffer) -> bool:
        """Whether a result is all of a buffer, in order."""
        (storage,) = [o for o in self.outputs if isinstance(o, Storage) and o.buffer is buffer]
        view = storage.view
        return bool(view.flags.c_contiguous and view.nbytes == buffer.size)

    def complete_reads(self, step: Fused) -> None:
        kernel, offsets = step.kernel, self.offsets.setdefault(step.number, [])
        seen: set[int] = set()

        def read(arg: Any, indirect: bool = False) -> None:
            key = ~id(arg) if indirect else id(arg)
            if key in seen or (arg in members if type(arg) is Node else not np.ndim(arg)):
                return
            seen.add(key)
            storage = self.stored(arg)
            strides = (0,) * len(kernel.shape) if indirect else storage.strides(kernel.shape)
            kernel.reads.append((arg, operand(dtype_of(arg), strides, size=storage.view.size if indirect else 0)))
            offsets.append((storage.buffer, storage.offset))

        members = step.members
        for node in kernel.nodes:
            if kernel.gathers and node in kernel.gathers:
                source, places = kernel.gathers[node]
                read(source, indirect=True)
                read(places)
            else:
                for arg in node.args:
                    if id(arg) not in seen and type(arg) is not float and not (type(arg) is Node and arg in members):
                        read(arg)
        for value, _, _, place in step.reductions:
            read(value)
            read(place)

    def complete_writes(self, step: Fused) -> None:
        kernel, offsets = step.kernel, self.offsets[step.number]
        for node, storage in step.stored.items():
            kernel.writes.append((node, operand(node.dtype, storage.strides(kernel.shape))))
            offsets.append((storage.buffer, storage.offset))
        for value, storage, target, place in step.reductions:
            if place is not None:
                kernel.places[len(kernel.writes)] = place
            kernel.writes.append((value, target))
            offsets.append((storage.buffer, storage.offset))
