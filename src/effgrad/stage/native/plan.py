"""From a graph to steps: what is fused into which kernel, what stays a call of NumPy, and where every value lies.

An operation joins the kernel of its arguments where the loops are the same and nothing that it needs comes later.
Transposes, slices and broadcasts are other ways of looking at memory and cost nothing. All memory is laid out
beforehand, and reused where its value is no longer needed.
"""

import functools
import heapq
import math
import operator
import zlib
from typing import Any, cast

import numpy as np

from effgrad.smooth.elementwise import add, multiply
from effgrad.smooth.linalg import matmul
from effgrad.smooth.primitive import Primitive
from effgrad.smooth.reductions import sum_
from effgrad.smooth.structure import astype, broadcast_to, concatenate, getitem, reshape, scatter_add, stack, transpose
from effgrad.stage.graph import GUARD, Graph, Node, Slot, shape_of
from effgrad.stage.native import products
from effgrad.stage.native.kernels import MOVES, Kernel, Operand, operand
from effgrad.stage.native.scalars import TYPES, dtype_of, supported


def _wrapped(index: Any, size: int) -> Any:
    """An index along an axis of this size, counted from its beginning; 0 where there is no such place."""
    place = np.where(index < 0, index + size, index)
    return np.where((place >= 0) & (place < size), place, 0)


def _check(outside: Any, index: Any, size: int) -> Any:
    """Raises as NumPy does if an index was outside."""
    if outside:
        np.empty(size, bool)[index]
    return outside


COPY = Primitive("copy", np.copy, "constant", (), ())
WRAPPED = Primitive("wrapped", _wrapped, "constant", (), ())
OUTSIDE = Primitive("outside", lambda i, n: ((i < -n) | (i >= n)).astype(np.int64), "constant", (), ())
CHECK = Primitive("check", _check, "constant", (), ())
VIEWS = {reshape, transpose, broadcast_to, getitem}
JOINS = {stack, concatenate, scatter_add}

# A kernel of loops holds between so many operations, straight-line code between so many. In between, what an
# operation is decides whether a kernel ends with it: so the kernels of an unrolled loop become equal after a few turns.
FUSED, STRAIGHT = (16, 64), (100, 400)
# Of longer arrays it is memory that takes the time, and a kernel holds more, as long as it walks few arrays at once:
# the gradient of 300 steps took four times as long where the values kept for it were read by hundreds together.
LARGE_ARRAY, LARGE_FUSED, STREAMS = 512, (768, 1024), 32
ALIGNMENT = 64
_PLACE = np.dtype(np.int64)
# Arguments and results smaller than this are copied into and out of the program's memory.
LARGE = 1 << 16
# So many of the largest values are fitted together in memory with care, which takes time quadratic in their number.
MOST_FITTED = 256


class Buffer:
    """Memory for one value: `size` bytes, needed from step `first` to step `last`."""

    __slots__ = ("size", "first", "last", "place", "array", "source")

    def __init__(self, size: int, array: np.ndarray | None = None, source: int | None = None) -> None:
        self.size, self.array, self.source = size, array, source
        self.first = self.last = -1
        self.place = 0  # in the arena; of arguments and constants, in their own memory

    def used(self, step: int) -> None:
        self.first = step if self.first < 0 else self.first
        self.last = max(self.last, step)


class Storage:
    """Where a value lies: a buffer, and a strided way through it (an array that is never read)."""

    __slots__ = ("buffer", "view", "offset")

    def __init__(self, buffer: Buffer, view: np.ndarray, offset: int | None = None) -> None:
        self.buffer, self.view = buffer, view
        # In bytes from the beginning of the buffer.
        self.offset = int(view.__array_interface__["data"][0]) - _ORIGIN_ADDRESS if offset is None else offset

    def strides(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """In elements, along the axes of a shape that the value is broadcast to."""
        return _steps(shape, self.view.shape, self.view.strides, self.view.itemsize)


@functools.cache
def _steps(shape: tuple[int, ...], own: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    added = len(shape) - len(own)
    return (0,) * added + tuple(
        0 if n == 1 or m == 1 else s // itemsize for n, m, s in zip(shape[added:], own, strides, strict=True)
    )


# Stands for any buffer in views, whose strides and offsets NumPy then works out; never read.
_ORIGIN = np.zeros(16)
_ORIGIN_ADDRESS: int = _ORIGIN.__array_interface__["data"][0]


@functools.cache
def whole(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """A contiguous array of this shape over no memory."""
    strides, step = [], np.dtype(dtype).itemsize
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return _strided(shape, dtype, tuple(reversed(strides)))


def _strided(shape: tuple[int, ...], dtype: Any, strides: tuple[int, ...]) -> np.ndarray:
    return np.lib.stride_tricks.as_strided(_ORIGIN.view(np.dtype(dtype))[:1], shape, strides)


class Fused:
    """A step in machine code: a kernel in the making."""

    def __init__(self, shape: tuple[int, ...], number: int) -> None:
        self.kernel, self.number = Kernel(shape), number
        self.members: set[Node] = set()
        self.full = False
        # Between so many operations it ends.
        self.bounds = STRAIGHT if not shape else FUSED if math.prod(shape) < LARGE_ARRAY else LARGE_FUSED
        # What it reads or writes that other kernels must write or read: of kernels over long arrays.
        self.streams: set[Node] = set()
        self.stored: dict[Node, Storage] = {}
        self.reductions: list[tuple[Any, Storage, Operand, Any]] = []


class Product:
    """A step of BLAS: the product of two matrices, or of batches of them."""

    def __init__(self, node: Node, operands: list[Storage], numbers: list[int], number: int) -> None:
        self.node, self.operands, self.numbers, self.number = node, operands, numbers, number


class Call:
    """A step that calls NumPy: `function(*values)` into `result`."""

    def __init__(self, node: Node, inputs: list[Any], result: Storage | None, number: int) -> None:
        self.node, self.inputs, self.result, self.number = node, inputs, result, number


class Plan:
    """The steps of a graph in order, and the storage of its values.

    A `repeated` program is the body of a loop: all its inputs and outputs are in the arena, and none lies on another.
    """

    def __init__(self, graph: Graph, repeated: bool = False) -> None:
        self.graph, self.repeated = graph, repeated
        self.steps: list[Fused | Product | Call] = []
        self.storage: dict[int, Storage] = {}
        self.available: dict[Node, int] = {}
        self.member: dict[Node, Fused] = {}
        self.groups: dict[tuple[int, ...], list[Fused]] = {}
        self.buffers: list[Buffer] = []
        self.checked: list[Storage] = []
        self.wanted = _wanted(graph)
        self.inside = _inside(graph)
        self.rooms: dict[Node, Storage] = {}
        # When the pieces of a room may be written: after it was cleared, before anything was written to a room inside.
        self.cleared: dict[Node, int] = {}
        self.zeros: dict[Node, list[Node]] = {}
        # Of the room of a join beside the vector that it moves along, the step that computes the vector.
        self.begun: dict[Node, int] = {}
        self.rows_in_range: dict[tuple[Node, int], Node] = {}
        self.joined: dict[Node, list[tuple[tuple[int, ...], Any]] | None] = {}
        self.margins, self.moved = self.neighbourhoods()
        self.offsets: dict[int, list[tuple[Buffer, int]]] = {}
        self.kept: list[Any] = []
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

    def buffer(self, view: np.ndarray, array: np.ndarray | None = None, source: int | None = None) -> Storage:
        """New memory for a whole array."""
        made = Buffer(max(view.size, 1) * view.itemsize, array, source)
        self.buffers.append(made)
        return Storage(made, view, 0)

    def place(self, node: Node) -> None:
        """Decide how a node is computed."""
        name = node.primitive.name
        if node.primitive is GUARD:
            self.guard(node)
        elif node.primitive in VIEWS and not node.slots and self.as_view(node):
            return
        elif 0 not in node.shape and (supported(node) or (name in MOVES and _typed(node, *node.args))):
            self.fuse(node, node.shape)
        elif name in ("sum", "max", "min") and self.reducible(node):
            self.reduce(node)
        elif node.primitive is getitem and self.gathers(node):
            return
        elif node.primitive in JOINS and self.joins(node):
            return
        elif node.primitive is scatter_add and self.scatters(node):
            return
        elif node.primitive is matmul and self.product(node):
            return
        else:
            self.call(node)

    # Views

    def as_view(self, node: Node) -> bool:
        """Look at the argument's memory in another way, if there is one."""
        source = node.args[0]
        if node.primitive is getitem and not _basic(node.params["index"]):
            return False
        if type(source) is not Node or not node.size:
            return False
        if node.primitive is reshape and not _viewable(self.stored(source).view, node.shape):
            if not _typed(source):
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
            view = view[_open(node.params["index"])]
        self.storage[id(node)], self.available[node] = Storage(base.buffer, view), self.available[source]
        return True

    # Kernels

    def stored(self, arg: Any) -> Storage:
        """The memory of a value; one that lives in a kernel is written from there."""
        if id(arg) not in self.storage:
            if type(arg) is Node:
                group = self.member[arg]
                before, after = self.margins.get(arg, (0, 0))
                if before or after:
                    around = self.buffer(whole((before + arg.size + after,), arg.dtype))
                    storage = Storage(around.buffer, around.view[before : before + arg.size])
                else:
                    storage = self.buffer(self.layout(arg, group))
                self.storage[id(arg)] = group.stored[arg] = storage
            else:
                array = np.array(arg, order="C")
                self.storage[id(arg)] = self.buffer(whole(array.shape, array.dtype), array=array)
                self.kept.append(arg)
        return self.storage[id(arg)]

    def layout(self, node: Node, group: Fused) -> np.ndarray:
        """How the value of a kernel lies in memory: as a product wants it, or in the order of what the kernel reads."""
        order = self.wanted.get(node)
        read = (a for n in group.kernel.nodes for a in n.args if type(a) is Node and a.shape == node.shape)
        for arg in read if len(node.shape) > 1 else ():
            if arg not in group.members:
                strides = self.stored(arg).view.strides
                if all(strides[i] for i, n in enumerate(node.shape) if n > 1):
                    found = tuple(sorted(range(len(strides)), key=lambda i: -strides[i]))
                    if order is None or found[:-2] == order[:-2]:
                        order = found
                    break
        if order is None:
            return whole(node.shape, node.dtype)
        return np.transpose(whole(tuple(node.shape[i] for i in order), node.dtype), np.argsort(order))

    def earliest(self, args: tuple[Any, ...], shape: tuple[int, ...]) -> int:
        """The first step in which a kernel over `shape` could use the arguments."""
        first = 0
        for arg in args:
            if type(arg) is Node:
                step = self.available[arg]
                if step >= first:
                    group = self.member.get(arg)
                    inside = group is not None and group.kernel.shape == shape == arg.shape
                    first = step if inside else step + 1
        return first

    def group(self, args: tuple[Any, ...], shape: tuple[int, ...], after: int = 0) -> Fused:
        """The kernel over `shape` to join: the last that there is, if it is not too early; else a new one."""
        first = max(self.earliest(args, shape), after)
        groups = self.groups.setdefault(shape, [])
        for group in groups[:-17:-1]:
            if group.number < first:
                break
            if not group.full:
                return group
        made = Fused(shape, len(self.steps))
        self.steps.append(made)
        groups.append(made)
        return made

    def fuse(self, node: Node, shape: tuple[int, ...]) -> None:
        self.join(node, self.group(node.args, shape))

    def join(self, node: Node, group: Fused) -> None:
        group.kernel.nodes.append(node)
        group.members.add(node)
        least, most = group.bounds
        count = len(group.kernel.nodes)
        group.full = count >= most or (count >= least and _ends(node, count // least))
        if most == LARGE_FUSED[1]:
            far = [a for a in (node, *node.args) if type(a) is Node and self.distances.get(a, 0) > most // 2]
            group.streams.update(far)
            group.full |= count >= FUSED[1] and len(group.streams) >= STREAMS
        self.member[node], self.available[node] = group, group.number

    @functools.cached_property
    def distances(self) -> dict[Node, int]:
        """How many operations after each node the last one is that computes with it."""
        numbers: dict[Node, int] = {}
        distances: dict[Node, int] = {}
        for number, node in enumerate(self.graph):
            numbers[node] = number
            if node.primitive not in VIEWS | JOINS:
                for arg in node.inputs:
                    distances[arg] = number - numbers.get(arg, number)
        return distances

    def copied(self, source: Any) -> Node:
        """A copy of a value, in one piece of memory."""
        like = source if type(source) is Node else Node(COPY, (), {}, (), source)
        copy = like.changed(primitive=COPY, args=(source,), params={}, slots=(), kind=np.ndarray)
        self.kept.append(copy)
        self.fuse(copy, copy.shape)
        self.storage[id(copy)] = self.member[copy].stored[copy] = self.buffer(whole(copy.shape, copy.dtype))
        return copy

    def reducible(self, node: Node) -> bool:
        (source,) = node.args
        if type(source) is not Node or not source.size or not _typed(source, node):
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

    def gathers(self, node: Node) -> bool:
        """Indexing by arrays: read one place for each element."""
        source = node.args[0]
        if type(source) is not Node or not node.size or not _typed(node, source):
            return False
        places = self.rows(node) if node.slots else self.places(node)
        if places is None:
            return False
        group = self.group((places,), node.shape, after=self.available[source] + 1)
        group.kernel.gathers[node] = source, places
        self.kept.append(places)
        self.join(node, group)
        return True

    def places(self, node: Node) -> Any:
        """The places that a constant index means, in elements of the argument's memory."""
        return np.ascontiguousarray(_numbered(self.stored(node.args[0]).view)[node.params["index"]])

    def rows(self, node: Node) -> Any:
        """The places that an index computed by the program means, if it chooses along the first axis."""
        (first, *others), source = _tuple(node.params["index"]), node.args[0]
        if type(first) is not Slot or not all(map(_everything, others)):
            return None
        (index,), (size, *inner) = node.slots, source.shape
        rows = self.checked_rows(index, size)
        view = self.stored(source).view
        step = view.strides[0] // view.itemsize
        parts = [rows]
        if inner:
            shape = (*index.shape, *(1,) * len(inner))
            parts.append(rows.changed(primitive=reshape, args=(rows,), params={"shape": shape}, shape=shape))
        if step != 1:
            parts.append(rows.changed(primitive=multiply, args=(parts[-1], step), shape=parts[-1].shape))
        if inner:
            parts.append(rows.changed(primitive=add, args=(parts[-1], _numbered(view[0])), shape=node.shape))
        self.kept += parts
        for part in parts[1:]:
            self.place(part)
        return parts[-1]

    def checked_rows(self, index: Node, size: int) -> Node:
        """The rows that an index means, all of which are there: others are an error that is raised after the step."""
        if (index, size) not in self.rows_in_range:
            whole = index.changed(primitive=astype, args=(index,), params={"dtype": _PLACE}, slots=(), dtype=_PLACE)
            rows, outside = (
                whole.changed(primitive=primitive, args=(whole, size), params={}) for primitive in (WRAPPED, OUTSIDE)
            )
            count = outside.changed(primitive=sum_, args=(outside,), params={"axis": None}, shape=())
            check = count.changed(primitive=CHECK, args=(count, index, size), params={})
            self.kept += [whole, rows, outside, count, check]
            for part in (whole, rows, outside, count, check):
                self.place(part)
            self.rows_in_range[index, size] = rows
        return self.rows_in_range[index, size]

    def joins(self, node: Node) -> bool:
        """Pieces put next to each other: each is written to its place by the kernel that computes it."""
        if not node.size or node.slots or not _typed(node, *node.args):
            return False
        parts = self.parts(node)
        if parts is None:
            return False
        room = self.room(node)
        last = self.cleared[node]
        ends = [last, *(self.available[zero] for zero in self.zeros.get(node, ()))]
        for piece, (shape, index) in zip(node.args, parts, strict=True):
            view = room.view[index]
            if not view.size:
                continue
            if type(piece) is Node and self.lies(piece, room.buffer, view):
                ends.append(self.available[piece])
                continue
            group = self.group((piece,), shape, after=last)
            strides = tuple(0 if n == 1 else s // view.itemsize for n, s in zip(shape, view.strides, strict=True))
            group.reductions.append((piece, Storage(room.buffer, view), operand(node.dtype, strides), None))
            ends.append(group.number)
        self.storage[id(node)], self.available[node] = room, max(ends)
        return True

    def parts(self, node: Node) -> list[tuple[tuple[int, ...], Any]] | None:
        if node not in self.joined:
            self.joined[node] = _parts(node)
        return self.joined[node]

    def room(self, node: Node) -> Storage:
        """Memory for joined pieces: new, or a part of the room of what this is itself a piece of."""
        if node not in self.rooms:
            self.rooms[node] = self.around(node) or self.buffer(whole(node.shape, node.dtype))
            outer, number = self.inside.get(node, (node, 0))
            parts = self.parts(outer) if outer is not node else None
            if parts is not None:
                around = self.room(outer)
                part = around.view[parts[number][1]]
                if _viewable(part, node.shape):
                    part = part.view()
                    part.shape = node.shape
                    self.rooms[node] = Storage(around.buffer, part)
                    self.cleared[node] = self.cleared[outer]
            if not self.cleared.get(node):
                self.cleared[node] = self.clear(node)
        return self.rooms[node]

    def clear(self, node: Node) -> int:
        """Zeros in the room of joined pieces that do not fill it; when the pieces may be written."""
        parts = self.parts(node)
        if parts is None or sum(math.prod(shape) for shape, _ in parts) == node.size:
            return self.begun.get(node, 0)
        room = self.rooms[node]
        gaps = _gaps(node.shape, parts)
        self.zeros[node] = [node.changed(primitive=COPY, args=(0.0,), params={}, slots=(), shape=room.view[gap].shape)
                            for gap in gaps]  # fmt: skip
        for zero, gap in zip(self.zeros[node], gaps, strict=True):
            self.join(zero, self.group((), zero.shape, after=self.begun.get(node, 0)))
            self.member[zero].stored[zero] = self.storage[id(zero)] = Storage(room.buffer, room.view[gap])
        return self.begun.get(node, 0) if len(node.shape) == 1 else self.available[zero] + 1

    def neighbourhoods(self) -> tuple[dict[Node, tuple[int, int]], dict[Node, tuple[Node, int]]]:
        """Vectors that joins move along: the elements that they need before and after them, so that the join lies
        where the vector does; and the vector of each such join, with the elements by which it is moved."""
        margins: dict[Node, tuple[int, int]] = {}
        moved: dict[Node, tuple[Node, int]] = {}
        taken: dict[Node, list[tuple[int, int]]] = {}
        for node in self.graph:
            if node.primitive not in JOINS or len(node.shape) != 1 or node.slots or node in self.inside:
                continue
            pieces = zip(node.args, _starts(self.parts(node), node.size), strict=False)
            for piece, start in sorted(pieces, key=lambda pair: -math.prod(shape_of(pair[0]))):
                found = _slice(piece)
                if found is None or found[0].dtype != node.dtype or not supported(found[0]):
                    continue
                vector, first = found
                by, size, last = start - first, vector.size, first + piece.size
                # All that the join and the vector have in common must be this piece.
                if first != max(0, -by) or last != min(size, node.size - by):
                    continue
                outside = [(a, b) for a, b in ((-by, 0), (size, node.size - by)) if a < b]
                if any(a < d and c < b for a, b in outside for c, d in taken.get(vector, ())):
                    continue
                taken[vector] = taken.get(vector, []) + outside
                before, after = margins.get(vector, (0, 0))
                margins[vector] = max(before, by), max(after, node.size - by - size)
                moved[node] = vector, by
                break
        return margins, moved

    def around(self, node: Node) -> Storage | None:
        """The room of a join beside the vector that it moves along."""
        vector, by = self.moved.get(node, (None, 0))
        storage = self.storage.get(id(vector))
        if vector is None or storage is None or vector not in self.member:
            return None
        before, after = self.margins[vector]
        if storage.buffer.size != (before + vector.size + after) * vector.dtype.itemsize:
            return None
        self.begun[node] = self.available[vector]
        return Storage(storage.buffer, whole((before + vector.size + after,), vector.dtype)[before - by :][: node.size])

    def lies(self, node: Node, buffer: Buffer, view: np.ndarray) -> bool:
        """Whether a value lies in this part of a buffer already."""
        storage = self.storage.get(id(node))
        if storage is None or storage.buffer is not buffer or storage.offset != Storage(buffer, view).offset:
            return False
        own = storage.view.strides
        return all(n == 1 or s == t for n, s, t in zip(view.shape, own, view.strides, strict=True))

    def scatters(self, node: Node) -> bool:
        """Pieces added at constant places, one after the other."""
        if node.slots or not node.size or not _typed(node, *node.args):
            return False
        if any(type(p) is not Node or p.dtype != node.dtype or not p.size for p in node.args):
            return False
        total = self.buffer(whole(node.shape, node.dtype))
        steps = [self.piece(p, i, total.view) for p, i in zip(node.args, node.params["indices"], strict=True)]
        if any(step is None for step in steps):
            return False
        zero = node.changed(primitive=COPY, args=(0.0,), params={}, slots=())
        self.kept.append(zero)
        group = self.group((), node.shape)
        self.join(zero, group)
        self.storage[id(zero)] = group.stored[zero] = total
        for piece, (view, target, places) in zip(node.args, cast(list[Any], steps), strict=True):
            # Two pieces may meet in one place: each has a step of its own.
            group = self.group((piece,), piece.shape, after=group.number + 1)
            group.reductions.append((piece, Storage(total.buffer, view), target, places))
            self.kept.append(places)
        self.storage[id(node)], self.available[node] = total, group.number
        return True

    def piece(self, piece: Node, index: Any, total: np.ndarray) -> tuple[np.ndarray, Operand, Any] | None:
        """Where a piece goes: a part of the memory, or the place of each of its elements."""
        if _basic(index):
            view = total[_open(index)]
            if view.shape != piece.shape:
                return None
            strides = tuple(0 if n == 1 else s // view.itemsize for n, s in zip(view.shape, view.strides, strict=True))
            return view, operand(piece.dtype, strides, "accumulate"), None
        places = np.arange(total.size).reshape(total.shape)[index]
        if places.shape != piece.shape:
            return None
        return total, operand(piece.dtype, (0,) * len(piece.shape), "scatter"), np.ascontiguousarray(places)

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
        self.arena = _laid_out([b for b in self.buffers if b in arena and b.array is None and b.first >= 0])

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


def _numbered(view: np.ndarray) -> np.ndarray:
    """Where each element of a view lies, counted in elements from its first one."""
    places = np.zeros(view.shape, np.int64)
    for axis, stride in enumerate(view.strides):
        steps = np.arange(view.shape[axis]) * (stride // view.itemsize)
        places += steps.reshape(-1, *(1,) * (view.ndim - axis - 1))
    return places


def _wanted(graph: Graph) -> dict[Node, tuple[int, ...]]:
    """The order of axes in memory that suits batched products: the axes of the batch outside."""
    wanted: dict[Node, tuple[int, ...]] = {}
    for node in graph:
        if node.primitive is matmul and len(node.shape) > 2:
            for arg in node.args:
                if type(arg) is Node and arg.primitive is transpose and type(arg.args[0]) is Node:
                    axes = arg.params["axes"] or tuple(range(len(arg.shape)))[::-1]
                    wanted[arg.args[0]] = (*axes[:-2], *sorted(axes[-2:]))
    return wanted


def _parts(node: Node) -> list[tuple[tuple[int, ...], Any]] | None:
    """The shape of each piece of a join, and the index of its place, if no place is taken twice."""
    if node.primitive is scatter_add:
        indices = [index if _basic(index) else None for index in node.params["indices"]]
        if None in indices:
            return None
        places = [(*_tuple(index), ...) if Ellipsis not in _tuple(index) else index for index in indices]
        taken = np.zeros(node.shape, np.int8)
        for place in places:
            taken[place] += 1
        shapes = [taken[place].shape for place in places]
        given = [a.shape if type(a) is Node else np.shape(a) for a in node.args]
        return list(zip(shapes, places, strict=True)) if taken.max() <= 1 and shapes == given else None
    axis = node.params["axis"]
    if axis is None:
        return None
    before = (slice(None),) * (axis % len(node.shape))
    shapes = [a.shape if type(a) is Node else np.shape(a) for a in node.args]
    if node.primitive is stack:
        return [(shape, (*before, i, ...)) for i, shape in enumerate(shapes)]
    ends = np.cumsum([0, *(shape[axis] for shape in shapes)]).tolist()
    return [(shape, (*before, slice(*ends[i : i + 2]))) for i, shape in enumerate(shapes)]


def _starts(parts: list[tuple[tuple[int, ...], Any]] | None, size: int) -> list[int]:
    """Where each piece of a vector of this size begins, if all are without holes."""
    indices = [_tuple(index)[0] for _, index in parts or ()]
    if any(not isinstance(i, int | slice) or isinstance(i, slice) and i.step not in (None, 1) for i in indices):
        return []
    return [i % size if isinstance(i, int) else i.indices(size)[0] for i in indices]


def _slice(value: Any) -> tuple[Node, int] | None:
    """The vector of which a value is a slice, and the first element."""
    if type(value) is not Node or value.primitive is not getitem or value.slots or len(value.shape) != 1:
        return None
    (source,), index = value.args, _tuple(value.params["index"])
    if type(source) is not Node or len(source.shape) != 1 or len(index) != 1 or not isinstance(index[0], slice):
        return None
    start, _, step = index[0].indices(source.size)
    return (source, start) if step == 1 and value.size else None


def _gaps(shape: tuple[int, ...], parts: list[tuple[tuple[int, ...], Any]]) -> list[Any]:
    """What parts leave open: of a vector the stretches between them, of other arrays all."""
    if len(shape) > 1:
        return [...]
    taken = np.zeros(shape[0] + 2, np.int8)
    for _, index in parts:
        taken[1:-1][index] = 1
    edges = np.flatnonzero(np.diff(1 - taken[1:-1], prepend=0, append=0)).tolist()
    return [slice(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _inside(graph: Graph) -> dict[Node, tuple[Node, int]]:
    """Joins that are needed only as a piece, reshaped perhaps, of another: that one, and the number of the piece."""
    uses: dict[Node, int] = {}
    joins = [node for node in graph if node.primitive in JOINS and not node.slots]
    for node in graph if joins else ():
        for used in node.args:
            if type(used) is Node:
                uses[used] = uses.get(used, 0) + 1
        for used in node.slots:
            uses[used] = uses.get(used, 0) + 1
    for output in graph.outputs:
        if type(output) is Node:
            uses[output] = uses.get(output, 0) + 1
    inside: dict[Node, tuple[Node, int]] = {}
    for node in joins:
        for number, piece in enumerate(node.args):
            while type(piece) is Node and uses[piece] == 1 and piece.primitive is reshape:
                piece = piece.args[0]
            if type(piece) is Node and uses[piece] == 1 and piece.primitive in JOINS and piece.dtype == node.dtype:
                inside[piece] = node, number
    return inside


def _ends(node: Node, length: int) -> bool:
    """Whether a kernel may end with an operation, told by it and what it comes from.

    That is about one kind in eight, of a kernel twice as long one in four, and so on: an unrolled loop has few kinds.
    """
    return _number(_told(node, 2)) % (16 >> length) == 0


def _told(node: Node, depth: int) -> str:
    """The operation and those before it in words."""
    if not depth:
        return f"{node.primitive.name}()"
    return f"{node.primitive.name}({','.join([_told(a, depth - 1) for a in node.args if type(a) is Node])})"


@functools.cache
def _number(told: str) -> int:
    return zlib.crc32(told.encode())


def _typed(*values: Any) -> bool:
    return all(dtype_of(v) in TYPES for v in values)


def _tuple(index: Any) -> tuple[Any, ...]:
    """An index as a tuple, in which an integer array without axes is the integer that it means."""
    items = index if type(index) is tuple else (index,)
    return tuple(int(i) if isinstance(i, np.ndarray) and i.shape == () and i.dtype.kind in "iu" else i for i in items)


def _open(index: Any) -> tuple[Any, ...]:
    """A basic index that gives an array, never a number."""
    items = _tuple(index)
    return items if any(i is Ellipsis for i in items) else (*items, ...)


def _basic(index: Any) -> bool:
    return all(i is None or i is Ellipsis or isinstance(i, int | np.integer | slice) and not isinstance(i, bool)
               for i in _tuple(index))  # fmt: skip


def _everything(item: Any) -> bool:
    """Whether a part of an index chooses all of an axis."""
    return item is Ellipsis or (isinstance(item, slice) and item == slice(None))


def _viewable(view: np.ndarray, shape: tuple[int, ...]) -> bool:
    try:
        view.view().shape = shape
    except AttributeError:
        return False
    return True


def _laid_out(buffers: list[Buffer]) -> int:
    """Give each buffer its place; the size of the arena."""
    largest = heapq.nsmallest(MOST_FITTED, [b for b in buffers if b.size >= LARGE], key=lambda b: (-b.size, b.first))
    fitted = set(largest)
    end = _laid_out_quickly([buffer for buffer in buffers if buffer not in fitted])
    placed: list[Buffer] = []
    # The largest first, each at the lowest place that is free as long as it is needed.
    for buffer in largest:
        place = -(-end // ALIGNMENT) * ALIGNMENT
        for other in sorted(placed, key=operator.attrgetter("place")):
            if other.first <= buffer.last and buffer.first <= other.last and other.place < place + buffer.size:
                place = max(place, other.place + _aligned(other.size))
        buffer.place = place
        placed.append(buffer)
    return max([end, *(buffer.place + buffer.size for buffer in placed)])


def _laid_out_quickly(buffers: list[Buffer]) -> int:
    """The same, in linear time: reusing what is free by then."""
    free: dict[int, list[int]] = {}  # places of memory that is free again, by its size
    live: list[tuple[int, int, Buffer]] = []
    end = 0
    for number, buffer in enumerate(sorted(buffers, key=operator.attrgetter("first"))):
        while live and live[0][0] < buffer.first:
            _, _, ended = heapq.heappop(live)
            free.setdefault(_aligned(ended.size), []).append(ended.place)
        size = _aligned(buffer.size)
        if max(free, default=0) < size:
            free = _merged(free)
        fitting = size if size in free else min((s for s in free if s > size), default=0)
        if fitting:
            buffer.place = free[fitting].pop()
            if not free[fitting]:
                del free[fitting]
            if fitting > size:
                free.setdefault(fitting - size, []).append(buffer.place + size)
        else:
            buffer.place, end = end, end + size
        heapq.heappush(live, (buffer.last, number, buffer))
    return end


def _merged(free: dict[int, list[int]]) -> dict[int, list[int]]:
    """The same free memory with neighbours joined."""
    merged: list[tuple[int, int]] = []
    for place, size in sorted((place, size) for size, places in free.items() for place in places):
        if merged and sum(merged[-1]) == place:
            merged[-1] = merged[-1][0], merged[-1][1] + size
        else:
            merged.append((place, size))
    sizes: dict[int, list[int]] = {}
    for place, size in merged:
        sizes.setdefault(size, []).append(place)
    return sizes


def _aligned(size: int) -> int:
    unit = 8 if size <= 8 else ALIGNMENT
    return -(-size // unit) * unit
