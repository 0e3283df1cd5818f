"""The storage of values: buffers of memory, and strided views of them."""

import functools

import numpy as np

from effgrad.stage.moves import offset_of


class Buffer:
    """Memory for one value: `size` bytes, with a lifetime from step `first` to step `last`."""

    __slots__ = ("size", "first", "last", "place", "array", "source")

    def __init__(self, size: int, array: np.ndarray | None = None, source: int | None = None) -> None:
        self.size, self.array, self.source = size, array, source
        self.first = self.last = -1
        self.place = 0  # in the arena; arguments and constants have their own memory

    def extend_lifetime(self, step: int) -> None:
        """Extend the lifetime to a step."""
        self.first = step if self.first < 0 else self.first
        self.last = max(self.last, step)


class Storage:
    """The storage of a value: a buffer, and a strided view of it, given as an array that is never read."""

    __slots__ = ("buffer", "view", "offset")

    def __init__(self, buffer: Buffer, view: np.ndarray, offset: int | None = None) -> None:
        self.buffer, self.view = buffer, view
        # The distance of the view's first element from the beginning of the buffer, in bytes.
        self.offset = offset_of(view) if offset is None else offset

    def strides(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the strides, in elements, along the axes of a shape that the value is broadcast to."""
        return _element_strides(shape, self.view.shape, self.view.strides, self.view.itemsize)


@functools.cache
def _element_strides(
    shape: tuple[int, ...], own: tuple[int, ...], strides: tuple[int, ...], itemsize: int
) -> tuple[int, ...]:
    added = len(shape) - len(own)
    return (0,) * added + tuple(
        0 if n == 1 or m == 1 else s // itemsize for n, m, s in zip(shape[added:], own, strides, strict=True)
    )


def viewable(view: np.ndarray, shape: tuple[int, ...]) -> bool:
    """Whether an array can be reshaped without a copy."""
    try:
        view.reshape(shape, copy=False)
    except ValueError:
        return False
    return True


def numbered(view: np.ndarray) -> np.ndarray:
    """Return the position of each element of a view in memory, counted in elements from its first one."""
    places = np.zeros(view.shape, np.int64)
    for axis, stride in enumerate(view.strides):
        steps = np.arange(view.shape[axis]) * (stride // view.itemsize)
        places += steps.reshape(-1, *(1,) * (view.ndim - axis - 1))
    return places
