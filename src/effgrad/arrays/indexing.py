"""Indices of arrays, in the form in which they are kept."""

import numpy as np

from effgrad.arrays.value import LISTS, Tracer, plain_tree, traced_inside
from effgrad.vocabulary import Index, Value


def as_index(index: Index) -> Value:
    """An index as it is now: a derivative reads it again, when the program may have changed its arrays."""
    index = plain_tree(index)
    return tuple(map(_part, index)) if type(index) is tuple else _part(index)


def _part(part: Value) -> Value:
    """A part of an index; a list with an integer that a staged program computes is an array of integers."""
    if type(part) in LISTS and traced_inside(part):
        return np.stack([*map(_part, part)])
    return part.copy("K") if type(part) is np.ndarray or isinstance(part, Tracer) else part
