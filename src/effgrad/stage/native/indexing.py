"""Indices as they are written in programs, told apart."""

from typing import Any

import numpy as np


def as_tuple(index: Any) -> tuple[Any, ...]:
    """An index as a tuple, in which an integer array without axes is the integer that it means."""
    items = index if type(index) is tuple else (index,)
    return tuple(int(i) if isinstance(i, np.ndarray) and i.shape == () and i.dtype.kind in "iu" else i for i in items)


def opened(index: Any) -> tuple[Any, ...]:
    """A basic index that gives an array, never a number."""
    items = as_tuple(index)
    return items if any(i is Ellipsis for i in items) else (*items, ...)


def basic(index: Any) -> bool:
    return all(i is None or i is Ellipsis or isinstance(i, int | np.integer | slice) and not isinstance(i, bool)
               for i in as_tuple(index))  # fmt: skip


def everything(item: Any) -> bool:
    """Whether a part of an index chooses all of an axis."""
    return item is Ellipsis or (isinstance(item, slice) and item == slice(None))
