"""Writes to plain arrays: which of them go to the table of memories, and how arrays of integers are written to."""

import numpy as np

from effgrad.arrays.layout import PYTHON_NUMBERS, dtype_of
from effgrad.arrays.marks import no_mark
from effgrad.arrays.record import preserve
from effgrad.arrays.value import Tracer, example, plain, staging, traced_inside
from effgrad.arrays.written import logs_all, memories, memory_of
from effgrad.program.listed import objects
from effgrad.vocabulary import Function, Object

# The classes of the commonest indices.
PLACES = frozenset((int, slice, type(...)))


def takes(array: Object, value: Object) -> bool:
    """Whether a write to a plain array goes to the table of memories.

    It does if the value is traced, if the array has a memory already, or if a part of the program may run again.
    """
    if isinstance(value, Tracer) or (type(value) in (list, tuple) and traced_inside(value)):
        return bool(array.dtype.kind != "O")
    if memories and memory_of(array) is not None:
        return True
    return logs_all() and bool(array.dtype.kind in "fc" and array.flags.writeable)


def has_computed_place(array: Object, key: Object) -> bool:
    """Whether the index of a write is staged, so that the array's elements depend on the staged program."""
    return type(key) not in PLACES and array.dtype.kind in "fc" and staging((key,)) is not None


def is_same(array: Object, key: Object, value: Object, memory: Object) -> bool:
    """Whether a write stores the value that the elements already have, as the last step of `a[i] += v` does."""
    place = array[key] if isinstance(value, Tracer) else None
    if type(place) is not np.ndarray or not np.may_share_memory(place, array):
        return False
    known = memory.values.get(id(place))
    return known is not None and known[2] is value


def write_plainly(f: Function, array: Object, *args: Object, **kwargs: Object) -> Object:
    """Call a function that writes to an array of integers or truth values with the plain values of its arguments.

    Such an array has no derivative. In a staged program the values are those of the example run, and the program is
    valid only for arguments that give the same values.
    """
    preserve(array)
    return f(array, *(_counted(arg, array) for arg in args), **{k: _counted(arg, array) for k, arg in kwargs.items()})


def _counted(value: object, array: object) -> Object:
    if not isinstance(value, Tracer):
        return value
    if dtype_of(example(value)).kind in "fc":
        raise no_mark(array)
    given = np.asarray(plain(value))
    if isinstance(value, np.ndarray):
        return given
    # NumPy casts an array, but raises an error for a number that does not fit.
    return given.item() if type(example(value)) in PYTHON_NUMBERS else given[()]


def as_objects(array: Object, key: Object, value: Object) -> Object:
    """Return what to write to items of an array of objects: if there are several items, an array of traced values."""
    several = traced_inside(value) and np.ndim(np.broadcast_to(True, array.shape)[key])
    return objects(value) if several else value
