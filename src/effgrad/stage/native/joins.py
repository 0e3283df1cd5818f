"""Joins, such as concatenate and stack: the kernel that computes a piece writes it to its part of the join's memory.

The memory of a join is called its room. It may be a part of another join's room, or overlap a vector that it shifts.
"""

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from effgrad.arrays.layout import shape_of
from effgrad.primitives.indices import as_tuple, basic, with_ellipsis
from effgrad.stage.graph import Graph
from effgrad.stage.moves import affine, contiguous, keeps_order, offset_of
from effgrad.stage.native.fusion import LARGE_ARRAY, STREAMS, Fusion
from effgrad.stage.native.scalars import supported, typed
from effgrad.stage.native.storage import Buffer, Storage, viewable
from effgrad.stage.native.strided import gaps
from effgrad.stage.nodes import Node, uses_of
from effgrad.vocabulary import Value


class Joins:
    """The rooms of the joins of a program, the memory into which their pieces are written."""

    def __init__(self, plan: Fusion) -> None:
        self.plan = plan
        self.enclosing = enclosing_joins(plan.graph)
        self.rooms: dict[Node, Storage] = {}
        # The step from which the pieces of a join may be written. Its room is cleared before that, and before anything
        # is written to a room inside it.
        self.cleared: dict[Node, int] = {}
        self.zeros: dict[Node, list[Node]] = {}
        # The joins whose whole rooms are filled with zeros before their pieces are written.
        self.zeroed: set[Node] = set()
        # For a join whose room overlaps the vector that it shifts: the step that computes that vector.
        self.begun: dict[Node, int] = {}
        self.joined: dict[Node, list[tuple[tuple[int, ...], Any]] | None] = {}
        self.moved = self.neighbourhoods()

    def join(self, node: Node) -> bool:
        """Plan a join whose pieces are written by the kernels that compute them; False if that is not possible."""
        if not node.primitive.places or not node.size or node.slots or not typed(node, *node.args):
            return False
        if self.parts(node) is None:
            return False
        room = self.room(node)
        last = self.cleared[node]
        ends = [last, *(self.plan.available[zero] for zero in self.zeros.get(node, ()))]
        for piece, view in self.placed(node, room.buffer, room.view):
            if not view.size:
                continue
            if type(piece) is Node and self.lies(piece, room.buffer, view):
                ends.append(self.plan.available[piece])
                continue
            ends.append(self.plan.collect(piece, Storage(room.buffer, view), after=last))
        self.plan.set_storage(node, room, max(ends))
        return True

    def parts(self, node: Node) -> list[tuple[tuple[int, ...], Any]] | None:
        if node not in self.joined:
            self.joined[node] = pieces(node)
        return self.joined[node]

    def placed(self, node: Node, buffer: Buffer, view: np.ndarray) -> Iterator[tuple[Value, np.ndarray]]:
        """Go through the values that a join writes, and their parts of its room.

        A piece that is itself a `spread` join is replaced by its own pieces, unless it is stored there already.
        """
        for piece, (_, index) in zip(node.args, self.parts(node) or (), strict=True):
            part = view[index]
            if spread(piece) and not self.lies(piece, buffer, part):
                yield from self.placed(piece, buffer, part)
            else:
                yield piece, part

    def room(self, node: Node) -> Storage:
        """Return the room of a join: new memory, or a part of the room of the join of which it is itself a piece."""
        if node not in self.rooms:
            self.rooms[node] = self.around(node) or self.plan.memory(node)
            outer, number = self.enclosing.get(node, (node, 0))
            parts = self.parts(outer) if outer is not node else None
            if parts is not None:
                around = self.room(outer)
                part = around.view[parts[number][1]]
                if viewable(part, node.shape):
                    self.rooms[node] = Storage(around.buffer, part.reshape(node.shape, copy=False))
                    self.begun[node] = self.cleared[outer]
                    if outer in self.zeroed:
                        self.zeroed.add(node)
                        self.cleared[node] = self.cleared[outer]
            if node not in self.cleared:
                self.cleared[node] = self.clear(node)
        return self.rooms[node]

    def clear(self, node: Node) -> int:
        """Fill the gaps of a room, or all of it, with zeros; return the step from which pieces may be written."""
        parts = self.parts(node)
        if parts is None or sum(math.prod(shape) for shape, _ in parts) == node.size:
            return self.begun.get(node, 0)
        room, begun = self.rooms[node], self.begun.get(node, 0)
        places = open_places(node.shape, parts)
        stretches = [Storage(room.buffer, room.view[gap]) for gap in places]
        self.zeros[node] = [self.plan.copy_to(stretch, 0.0, node, begun) for stretch in stretches]
        if places != [...]:
            return begun
        self.zeroed.add(node)
        return self.plan.available[self.zeros[node][0]] + 1

    def neighbourhoods(self) -> dict[Node, tuple[Node, int]]:
        """Return, for each join that shifts a vector, the vector and the number of elements.

        An example is `concatenate([[0], x[:-1]])`. The room of such a join overlaps the vector's memory, so that the
        elements in common are not copied; `margins` leaves the elements free that it needs before and after the vector.
        """
        margins = self.plan.margins
        moved: dict[Node, tuple[Node, int]] = {}
        taken: dict[Node, list[tuple[int, int]]] = {}
        for node in self.plan.graph:
            if not node.primitive.places or len(node.shape) != 1 or node.slots or node in self.enclosing:
                continue
            placed = zip(node.args, starts(self.parts(node), node.size), strict=False)
            for piece, start in sorted(placed, key=lambda pair: -math.prod(shape_of(pair[0]))):
                found = slice_of(piece)
                if found is None or found[0].dtype != node.dtype or not supported(found[0]):
                    continue
                vector, first = found
                by, size, last = start - first, vector.size, first + piece.size
                # This piece must be everything that the join and the vector have in common.
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
        return moved

    def around(self, node: Node) -> Storage | None:
        """Return the room of a join that overlaps the vector that it shifts, or None."""
        vector, by = self.moved.get(node, (None, 0))
        storage = self.plan.storage.get(id(vector))
        if vector is None or storage is None or vector not in self.plan.member:
            return None
        before, after = self.plan.margins[vector]
        self.begun[node] = self.plan.available[vector]
        around = contiguous((before + vector.size + after,), vector.dtype)
        return Storage(storage.buffer, around[before - by :][: node.size])

    def lies(self, node: Node, buffer: Buffer, view: np.ndarray) -> bool:
        """Whether a value is already stored in this part of a buffer."""
        storage = self.plan.storage.get(id(node))
        if storage is None or storage.buffer is not buffer or storage.offset != Storage(buffer, view).offset:
            return False
        own = storage.view.strides
        return all(n == 1 or s == t for n, s, t in zip(view.shape, own, view.strides, strict=True))


def pieces(node: Node) -> list[tuple[tuple[int, ...], Any]] | None:
    """Return the shape of each piece of a join, and the index of its place; None if pieces overlap.

    It is also None if an index is not basic.
    """
    shapes = [shape_of(a) for a in node.args]
    indices = node.primitive.places(shapes, **node.params)[1]
    if not all(map(basic, indices)):
        return None
    places = [with_ellipsis(index) for index in indices]
    if not node.primitive.moves:
        taken = np.zeros(node.shape, np.int8)
        for place in places:
            taken[place] += 1
        if taken.max() > 1 or [taken[place].shape for place in places] != shapes:
            return None
    return list(zip(shapes, places, strict=True))


def starts(parts: list[tuple[tuple[int, ...], Any]] | None, size: int) -> list[int]:
    """Return where each piece of a vector of this size begins; an empty list if a piece is not contiguous."""
    indices = [as_tuple(index)[0] for _, index in parts or ()]
    if any(not isinstance(i, int | slice) or isinstance(i, slice) and i.step not in (None, 1) for i in indices):
        return []
    return [i % size if isinstance(i, int) else i.indices(size)[0] for i in indices]


def slice_of(value: Value) -> tuple[Node, int] | None:
    """Return the vector of which a value is a contiguous slice, and the number of the first element; or None."""
    view = affine(value) if type(value) is Node and len(value.shape) == 1 else None
    if view is None or not view.size or view.strides != (view.itemsize,) or len(value.args[0].shape) != 1:
        return None
    return value.args[0], offset_of(view) // view.itemsize


def open_places(shape: tuple[int, ...], parts: list[tuple[tuple[int, ...], Value]]) -> list[Value]:
    """Return the stretches of a vector that its parts do not fill.

    It is the whole array if it has more axes, or if the stretches are many: each hole of `x[::2]` would be one.
    """
    if len(shape) > 1:
        return [...]
    stretches = gaps([index for _, index in parts], shape[0])
    return stretches if len(stretches) <= len(parts) + 1 else [...]


def enclosing_joins(graph: Graph) -> dict[Node, tuple[Node, int]]:
    """Return, for each join that is read only as a piece of other joins, one of these and the number of the piece.

    The piece may be reshaped. A `spread` join that is a piece of several joins is stored in the first of them.
    """
    joins = [node for node in graph if node.primitive.places and not node.slots]
    put = Counter(piece for node in joins for piece in node.args if spread(piece))
    uses = uses_of(graph) if joins else Counter[Node]()
    enclosing: dict[Node, tuple[Node, int]] = {}
    for node in joins:
        for number, piece in enumerate(node.args):
            while type(piece) is Node and uses[piece] == 1 and keeps_order(piece):
                piece = piece.args[0]
            if type(piece) is Node and piece.primitive.places and piece.dtype == node.dtype:
                if uses[piece] == 1 or uses[piece] == put[piece]:
                    enclosing.setdefault(piece, (node, number))
    return enclosing


def spread(value: Value) -> bool:
    """Whether a value is a join of a few long pieces, which are written to each place of the join instead of copied."""
    if type(value) is not Node or not (value.primitive.places and value.primitive.moves):
        return False
    whole = len(value.args) <= STREAMS and typed(value, *value.args)
    return whole and all(math.prod(shape_of(a)) >= LARGE_ARRAY for a in value.args)
