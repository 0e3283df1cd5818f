"""Functions that bring indices and axes, which programs write in many ways, into one form."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from effgrad.arrays.layout import BASIC, index_parts, is_basic, shape_of
from effgrad.arrays.value import Tracer, operations, staging
from effgrad.vocabulary import Axes, Axis, Index, Shape, Value


def as_tuple(index: object) -> tuple[Value, ...]:
    """Return an index as a tuple, in which an integer array without axes is replaced by its integer."""
    items = index_parts(index)
    return tuple(int(i) if isinstance(i, np.ndarray) and i.shape == () and i.dtype.kind in "iu" else i for i in items)


def with_ellipsis(index: object) -> tuple[Value, ...]:
    """Return a basic index as a tuple with an ellipsis, so that it gives an array and never a scalar."""
    items = as_tuple(index)
    return items if any(i is Ellipsis for i in items) else (*items, ...)


def basic(index: object) -> bool:
    """Return whether an index consists of integers, slices and new axes only, so that NumPy gives a view."""
    if is_basic(index):
        return True
    return all(i is None or i is Ellipsis or isinstance(i, int | np.integer | slice) and not isinstance(i, bool)
               for i in as_tuple(index_parts(index)))  # fmt: skip


def basic_view(x: Value, index: Index) -> Value:
    """Return the view of an array at a basic index; it is an array even for a single element."""
    if not basic(index):
        raise ValueError("an index of arrays gives no view")
    return x[with_ellipsis(index)]


def selects_all(item: object) -> bool:
    """Return whether a part of an index selects all of an axis, or all remaining axes."""
    return item is Ellipsis or (isinstance(item, slice) and item == slice(None))


def one_entry_per_axis(index: object, rank: int) -> list[Any] | None:
    """Return a basic index with an entry for every axis, or None if the index is not basic."""
    items = as_tuple(index)
    return without_ellipsis(items, rank) if basic(items) else None


def without_ellipsis(items: Sequence[Any], rank: int) -> list[Any]:
    """Return the parts of an index with one for each of its axes, and those for new axes."""
    missing = rank - sum(i is not None and i is not Ellipsis for i in items)
    at = next((n for n, i in enumerate(items) if i is Ellipsis), len(items))
    return [*items[:at], *[slice(None)] * missing, *items[at + 1 :]]


def reduced_axes(axis: Axis, rank: int) -> list[int]:
    """Return the axes that a reduction goes over as non-negative numbers."""
    return list(range(rank)) if axis is None else [int(i) % rank for i in np.atleast_1d(axis)]


def permutation(axes: Axes, rank: int) -> tuple[int, ...]:
    """Return the order of axes that a transpose makes, as non-negative numbers."""
    return tuple(range(rank))[::-1] if axes is None else tuple(int(i) % rank for i in axes)


def distinct(index: object) -> bool:
    """Return whether an index names no element twice; False may mean that this would take long to find out."""
    advanced = [i for i in index_parts(index) if type(i) not in BASIC]
    if len(advanced) != 1:
        return not advanced
    places = np.asarray(advanced[0])
    if places.dtype.kind == "b" or places.size > 1000:
        return places.dtype.kind == "b"
    return places.size == 0 or bool(places.min() >= 0) and len(set(places.ravel().tolist())) == places.size


def last_writes(index: Index, shape: Shape) -> Value:
    """Return a mask of the written elements that remain after an assignment to `index`.

    The last element written to a place remains. The result is None, which stands for all elements, if no part of the
    index lists places.
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
    """Return whether a part of an index lists places, of which some may be the same."""
    return isinstance(part, np.ndarray | list) or isinstance(part, Tracer) and part.ndim > 0


def places_of(moved: Value, a: Value, axis: int) -> Value:
    """Return the positions in `a` of the elements of `moved`, which is `a` rearranged within its lines along `axis`."""
    places = np.empty(a.shape, int)
    np.put_along_axis(places, np.argsort(moved, axis, "stable"), np.argsort(a, axis, "stable"), axis)
    return places
