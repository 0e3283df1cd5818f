"""NumPy's functions whose results share memory with an argument: a view of an array with traced values is NumPy's."""

from typing import Any

import numpy as np

from effgrad.arrays.layout import copied_as, without_axes
from effgrad.arrays.value import Tracer, example
from effgrad.program.subclasses import is_held
from effgrad.vocabulary import Object

# Functions of NumPy that may return their first argument itself, depending on its elements or on options.
ITSELF = frozenset((
    np.diff, np.real_if_close, np.linalg.matrix_power, np.polyint, np.nan_to_num, np.asarray_chkfinite,
))
# Functions of NumPy whose Python source takes a view by the elements.
BY_ELEMENTS = frozenset((np.trim_zeros,))


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


def in_place(source: Object, target: Object) -> Object:
    """Return a function that runs NumPy's source for an array with traced values, of which the result is a view."""
    return lambda *args, **kwargs: (
        source if any(map(is_held, (*args, *kwargs.values()))) else target)(*args, **kwargs)  # fmt: skip


def laid_as(outline: Object, value: Object) -> Object:
    """Return a copy of a value in the form of NumPy's own result `outline`: an array, in its memory order."""
    return without_axes(copied_as(value, outline))
