"""Indices of arrays in the form in which recordings keep them."""

import operator

import numpy as np

from effgrad.arrays.layout import BASIC, duplicate, index_parts, is_basic
from effgrad.arrays.value import LISTS, Tracer, plain_tree, traced_inside
from effgrad.vocabulary import Index, Value


def as_index(index: Index) -> Value:
    """Return a copy of an index: a derivative reads it later, when the program may have changed its arrays."""
    if is_basic(index):
        return index
    index = plain_tree(index)
    return tuple(map(_part, index)) if type(index) is tuple else _part(index)


def tells_places(index: Index) -> bool:
    """Whether an index has tracers of integers, or one array of row numbers, beside plain slices and integers."""
    parts = index_parts(index)
    places = [part for part in parts if isinstance(part, Tracer)]
    if not BASIC.issuperset(type(part) for part in parts if not isinstance(part, Tracer)):
        return False
    one_list = len(places) == 1 and parts[0] is places[0]
    return all(part.dtype.kind in "iu" and (one_list or not part.ndim) for part in places)


def _part(part: Value) -> Value:
    """Return a copy of a part of an index, with a list that has staged integers as an array."""
    if type(part) in LISTS and traced_inside(part):
        return np.stack([*map(_part, part)])
    if type(part) is np.ndarray:
        return duplicate(part)  # results lie as an index lies: order "K" would transpose one that is broadcast
    if isinstance(part, Tracer):
        return part.copy("K")
    return operator.index(part) if hasattr(type(part), "__index__") and not isinstance(part, _INTEGERS) else part


_INTEGERS = (int, np.integer, np.bool, np.ndarray)  # older versions take a truth value of NumPy for an integer
