"""NumPy's functions whose results share memory with an argument: a view of an array with traced values is NumPy's."""

from typing import Any

import numpy as np

from effgrad.arrays.layout import address_of, copied_as, without_axes
from effgrad.arrays.value import Tracer, example
from effgrad.arrays.written import read
from effgrad.program.subclasses import is_held
from effgrad.vocabulary import Object

# Functions of NumPy that may return their first argument itself, depending on its elements or on options.
ITSELF = frozenset((
    np.diff, np.real_if_close, np.linalg.matrix_power, np.polyint, np.nan_to_num, np.asarray_chkfinite,
))


def viewing(f: Any, target: Object, writing: Object) -> Object:
    """Return the target of a function that may return views; a view of an array with traced values is NumPy's own.

    `writing` is its target for calls with `out`.
    """

    def given(*args: Object, **kwargs: Object) -> Object:
        if "out" in kwargs:
            return writing(*args, **kwargs)
        held = list(filter(is_held, args))
        if not held or f is np.einsum and sum(isinstance(a, np.ndarray | Tracer) for a in args) > 1:
            return target(*args, **kwargs)
        result = f(*map(example, args), **kwargs)
        parts = result if type(result) in (list, tuple) else [result]
        seen = [not part.size or any(np.may_share_memory(part, a) for a in held) for part in parts]
        if all(seen):
            return result
        values = target(*args, **kwargs)
        if type(result) in (list, tuple):
            return type(result)(part if view else value for part, view, value in zip(parts, seen, values, strict=True))
        return laid_as(result, values) if type(result) is np.ndarray else values

    return given


def trimmed(f: Any, target: Object) -> Object:
    """Return the target of `np.trim_zeros`, which for an array with traced values selects by the plain numbers."""

    def given(filt: Object, *args: Object, **kwargs: Object) -> Object:
        if not is_held(filt):
            return target(filt, *args, **kwargs)
        numbers = np.array(example(read(filt)), order="C")
        part = f(numbers, *args, **kwargs)
        place = (address_of(part) - address_of(numbers)) // numbers.itemsize if part.size else 0
        first = np.unravel_index(place, numbers.shape) if part.size else (0,) * part.ndim
        return filt[tuple(slice(k, k + n) for k, n in zip(first, part.shape, strict=True))]

    return given


def laid_as(outline: Object, value: Object) -> Object:
    """Return a copy of a value in the form of NumPy's own result `outline`: an array, in its memory order."""
    copy = without_axes(copied_as(value, outline))
    if type(copy) is np.ndarray:
        copy.flags.writeable = outline.flags.writeable
    return copy
