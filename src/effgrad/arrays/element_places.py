"""Places of elements in a flat array: the number of one element, a slice, the shape, start and steps of a view, or an
array of numbers of elements.
"""

from typing import Any, TypeAlias

import numpy as np

from effgrad.vocabulary import Array, Shape, Value

View: TypeAlias = tuple[Shape, int, Shape]
Place: TypeAlias = int | slice | View | Array


def place_of(addresses: Value, memory: Array) -> Place:
    """Return the place of the elements with some addresses, which NumPy has selected in the contiguous `memory`."""
    if not isinstance(addresses, np.ndarray) or addresses.ndim == 0:
        return int(addresses)
    if not addresses.size or not np.may_share_memory(addresses, memory):
        return addresses
    start, unit = addresses.item(0), addresses.itemsize
    if addresses.ndim == 1:
        (n,), step = addresses.shape, addresses.strides[0] // unit or 1
        if addresses.strides[0] == 0 and n > 1:
            return addresses
        stop = start + (n - 1) * step + (1 if step > 0 else -1)
        return slice(start, None if stop < 0 else stop, step)
    reach = 0
    for stride, n in sorted([(abs(s), n) for s, n in zip(addresses.strides, addresses.shape, strict=True) if n > 1]):
        if stride <= reach:  # some elements may be seen twice
            return addresses
        reach += stride * (n - 1)
    return addresses.shape, start, tuple([stride // unit for stride in addresses.strides])


def within(numbers: Array, place: Place) -> tuple[Array, Any]:
    """Return an array, and an index into it, for a place in a flat array."""
    if type(place) is not tuple:
        return numbers, place
    shape, start, steps = place
    size = numbers.itemsize
    return np.ndarray(shape, numbers.dtype, numbers.data, start * size, [step * size for step in steps]), ...


def are_distinct(place: Place) -> bool:
    """Whether no element is there twice."""
    return type(place) is not np.ndarray or len(np.unique(place)) == place.size
