"""Indices and axes, which programs write in many ways, in one form."""

import math
from typing import Any

import numpy as np

from effgrad.arrays.layout import BASIC, index_parts, shape_of
from effgrad.arrays.value import Tracer, operations, staging
from effgrad.vocabulary import Axes, Axis, Index, Shape, Value


def as_tuple(index: object) -> tuple[Value, ...]:
    """An index as a tuple, in which an integer array without axes is the integer that it means."""
    items = index_parts(index)
    return tuple(int(i) if isinstance(i, np.ndarray) and i.shape == () and i.dtype.kind in "iu" else i for i in items)


def opened(index: object) -> tuple[Value, ...]:
    """A basic index that gives an array, never a number."""
    items = as_tuple(index)
    return items if any(i is Ellipsis for i in items) else (*items, ...)


def basic(index: object) -> bool:
    """Whether an index chooses by integers, slices and new axes only, so that NumPy gives a view."""
    items = index_parts(index)
    if BASIC.issuperset(map(type, items)):
        return True
    return all(i is None or i is Ellipsis or isinstance(i, int | np.integer | slice) and not isinstance(i, bool)
               for i in as_tuple(items))  # fmt: skip


def part(x: Value, index: Index) -> Value:
    """The view of an array at a basic index, also of a single element an array."""
    if not basic(index):
        raise ValueError("an index of arrays gives no view")
    return x[opened(index)]


def everything(item: object) -> bool:
    """Whether a part of an index chooses all of an axis."""
    return item is Ellipsis or (isinstance(item, slice) and item == slice(None))


def expanded(index: object, rank: int) -> list[Any] | None:
    """A basic index with an entry for every axis."""
    items = as_tuple(index)
    if not basic(items):
        return None
    missing = rank - sum(i is not None and i is not Ellipsis for i in items)
    at = next((n for n, i in enumerate(items) if i is Ellipsis), len(items))
    return [*items[:at], *[slice(None)] * missing, *items[at + 1 :]]


def reduced_axes(axis: Axis, rank: int) -> list[int]:
    """The axes that a reduction goes over, counted from the first."""
    return list(range(rank)) if axis is None else [int(i) % rank for i in np.atleast_1d(axis)]


def permutation(axes: Axes, rank: int) -> tuple[int, ...]:
    """The axes that a transpose puts in order, counted from the first."""
    return tuple(range(rank))[::-1] if axes is None else tuple(int(i) % rank for i in axes)


def distinct(index: object) -> bool:
    """Whether the places of an index are all different, as far as that is quick to say."""
    advanced = [i for i in index_parts(index) if type(i) not in BASIC]
    if len(advanced) != 1:
        return not advanced
    places = np.asarray(advanced[0])
    if places.dtype.kind == "b" or places.size > 1000:
        return places.dtype.kind == "b"
    return places.size == 0 or bool(places.min() >= 0) and len(set(places.ravel().tolist())) == places.size


def winners(index: Index, shape: Shape) -> Value:
    """For an assignment to `index`: which of the written elements are still there (the last one at a place wins).

    None stands for all of them, where no part of the index lists places.
    """
    if not any(map(lists_places, index_parts(index))):
        return None
    computed = staging((index,)) is not None
    empty = np.zeros(shape)
    given = shape_of(operations.getitem(empty, index=index) if computed else empty[index])
    order = np.arange(math.prod(given)).reshape(given)
    last = np.full(shape, -1)
    if not computed:
        last[index] = order
        return last[index] == order
    return operations.getitem(operations.setitem(last, order, index=index), index=index) == order


def lists_places(part: object) -> bool:
    """Whether a part of an index lists places, of which some may be the same."""
    return isinstance(part, np.ndarray | list) or isinstance(part, Tracer) and part.ndim > 0


def places_of(moved: Value, a: Value, axis: int) -> Value:
    """The places in an array of the elements of its rearranged lines."""
    places = np.empty(a.shape, int)
    np.put_along_axis(places, np.argsort(moved, axis, "stable"), np.argsort(a, axis, "stable"), axis)
    return places
