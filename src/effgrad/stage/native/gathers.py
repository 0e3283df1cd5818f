"""Gathers: indexing by arrays in kernels, which read one position of an array for each element.

A position is the distance in memory of an element from the first element of its array, counted in elements.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from effgrad.primitives.elementwise import add, multiply
from effgrad.primitives.indices import as_tuple
from effgrad.primitives.machine_code import Code, Types, Writer
from effgrad.primitives.primitive import constant
from effgrad.primitives.reduction import sum_
from effgrad.stage.moves import converted, reshaped
from effgrad.stage.native.fusion import Fusion
from effgrad.stage.native.scalars import typed
from effgrad.stage.native.storage import numbered
from effgrad.stage.nodes import Node, Slot
from effgrad.vocabulary import Index, Value


def _wrapped(index: Index, size: int) -> Value:
    """Return an index along an axis of this size, counted from its beginning, or 0 if it is out of range."""
    place = np.where(index < 0, index + size, index)
    return np.where((place >= 0) & (place < size), place, 0)


def _check(outside: Value, index: Index, size: int) -> Value:
    """Raise NumPy's error if an index was out of range; `outside` counts these."""
    if outside:
        np.empty(size, bool)[index]
    return outside


def _counted(body: Writer, kind: str, index: str, size: str) -> tuple[str, str]:
    """Write an index counted from the beginning of an axis, and whether it is in range; return the two names."""
    last = body.do(f"add {kind} {index}, {size}")
    place = body.select(body.compare("lt", kind, index, "0"), kind, last, index)
    return place, body.do(f"icmp ult {kind} {place}, {size}")


def _write_wrapped(body: Writer, kind: str, index: str, size: str) -> str:
    place, there = _counted(body, kind, index, size)
    return body.select(there, kind, place, "0")


def _write_outside(body: Writer, kind: str, index: str, size: str) -> str:
    return body.select(_counted(body, kind, index, size)[1], kind, "0", "1")


WRAPPED = constant(_wrapped, "wrapped", code=Code(Types.COUNTING, 2, _write_wrapped))
OUTSIDE = constant(
    lambda i, n: ((i < -n) | (i >= n)).astype(np.int64), "outside", code=Code(Types.COUNTING, 2, _write_outside)
)
CHECK = constant(_check, "check")

_PLACE = np.dtype(np.int64)


class Gathers:
    """The gathers of a program; `place` plans the operations that compute their positions."""

    def __init__(self, plan: Fusion, place: Callable[[Node], None]) -> None:
        self.plan, self.place = plan, place
        self.rows_in_range: dict[tuple[Node, int], Node] = {}

    def gather(self, node: Node) -> bool:
        """Plan an indexing by arrays in a kernel, which reads one position for each element, if that is possible."""
        if not node.primitive.view:
            return False
        source = node.args[0]
        if type(source) is not Node or not node.size or not typed(node, source):
            return False
        places = self.rows(node) if node.slots else self.places(node)
        if places is None:
            return False
        group = self.plan.group((places,), node.shape, after=self.plan.available[source] + 1)
        group.kernel.gathers[node] = source, places
        self.plan.kept.append(places)
        self.plan.add(node, group)
        return True

    def places(self, node: Node) -> Value:
        """Return the positions that a move reads in the argument's memory."""
        numbers = numbered(self.plan.stored(node.args[0]).view)
        return np.ascontiguousarray(node.primitive.function(numbers, **node.params))

    def rows(self, node: Node) -> Value:
        """Return the positions that an index with computed integers selects in the argument's memory, or None."""
        return self.computed(node.params["index"], node.slots, self.plan.stored(node.args[0]).view)

    def computed(self, index: Index, slots: Sequence[Node], view: np.ndarray) -> Node | None:
        """Return the positions in a view that an index with computed integers selects.

        The computed integers may be one list along the first axis, or single integers; for other indices return None.
        """
        parts = list(as_tuple(index))
        own = [slots[part.number] for part in parts if type(part) is Slot]
        if not own or not all(type(part) in (Slot, int, slice) for part in parts) or len(parts) > view.ndim:
            return None
        if any(slot.shape for slot in own) and (len(own) > 1 or type(parts[0]) is not Slot):
            return None
        places: Any = np.asarray(numbered(view)[tuple(0 if type(part) is Slot else part for part in parts)])
        for axis, part in enumerate(parts):
            if type(part) is Slot:
                rows = self.checked_rows(slots[part.number], view.shape[axis])
                places = self.moved(places, rows, view.strides[axis] // view.itemsize)
        return places if places.size else None

    def moved(self, places: Value, rows: Node, step: int) -> Node:
        """Return the positions of elements in given rows, from their positions in the first row and the row stride."""
        shape = (*rows.shape, *(1,) * len(places.shape)) if rows.shape else ()
        parts = [rows, reshaped(rows, rows, shape)] if shape != rows.shape else [rows]
        if step != 1:
            parts.append(rows.changed(primitive=multiply, args=(parts[-1], step), shape=shape))
        if places.shape or type(places) is Node or places:
            whole = np.broadcast_shapes(shape, places.shape)
            parts.append(rows.changed(primitive=add, args=(parts[-1], places), shape=whole))
        self.plan.kept.append(rows)
        return self.placed(parts[1:]) or rows

    def placed(self, parts: Sequence[Node]) -> Node | None:
        """Plan new operations, each of which may read those before it; return the last one."""
        self.plan.kept += parts
        for part in parts:
            self.place(part)
        return parts[-1] if parts else None

    def checked_rows(self, index: Node, size: int) -> Node:
        """Return the rows that an index selects, counted from the beginning; a step raises if one is out of range."""
        if (index, size) not in self.rows_in_range:
            whole = converted(index.changed(dtype=_PLACE), index)
            rows, outside = (
                whole.changed(primitive=primitive, args=(whole, size), params={}) for primitive in (WRAPPED, OUTSIDE)
            )
            count = outside.changed(primitive=sum_, args=(outside,), params={"axis": None}, shape=())
            check = count.changed(primitive=CHECK, args=(count, index, size), params={})
            self.placed([whole, rows, outside, count, check])
            self.rows_in_range[index, size] = rows
        return self.rows_in_range[index, size]
