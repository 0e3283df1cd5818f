"""The order of a value's elements in memory."""

from typing import Any

import numpy as np

from effgrad.arrays.layout import copied_as, in_form_of
from effgrad.arrays.value import contiguous, operations, outline
from effgrad.vocabulary import Value


def laid_as(value: Value, memory: Value) -> Value:
    """Return a value with its elements in the memory order of the array `memory`, on which NumPy's sums depend."""
    if not memory.ndim:
        return in_form_of(memory, value)
    laid: Any = outline(value)
    if memory.flags.c_contiguous and laid.flags.c_contiguous:
        return value
    if 0 in _steps(memory):  # a broadcast axis
        first = tuple([slice(0, 1) if step == 0 else slice(None) for step in memory.strides])
        return np.broadcast_to(laid_as(operations.getitem(value, index=first), memory[first]), memory.shape)
    back = tuple([slice(None, None, -1) if step < 0 else slice(None) for step in memory.strides])
    wanted, found = (np.empty_like(array[back], bool) for array in (memory, laid))
    alike = wanted.strides == found.strides and min(_steps(laid[back]), default=1) > 0
    if alike:
        return value
    if min(memory.strides) >= 0:
        return copied_as(value, wanted)
    return operations.getitem(copied_as(operations.getitem(value, index=back), wanted), index=back)


def seen_as(value: Value, memory: Value) -> Value:
    """Return a value in the memory order of an array, and with gaps if that has some: a `ravel` then copies it."""
    value = laid_as(value, memory)
    if memory.flags.c_contiguous or not contiguous(value):
        return value
    return operations.getitem(np.stack([value, value], axis=-1), index=(..., 0))


def _steps(array: Value) -> list[int]:
    """The strides of an array along axes that have more than one element."""
    return [step for step, n in zip(array.strides, array.shape, strict=True) if n > 1]
