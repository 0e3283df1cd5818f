"""`x[mask]` during capture: the number of its elements is not known, so the whole array is kept with its mask.

It may be an operand of elementwise functions, with numbers and elements of the same mask. It may be summed, and it may
be written where the mask selected it: `x[mask] = f(x[mask])`.
"""

from collections.abc import Hashable
from typing import Any

import numpy as np

from effgrad.stage.loop.affine import NotCaptured, new_point
from effgrad.stage.loop.buffers import BOOL
from effgrad.stage.loop.element import DIVIDE, WHERE, primitive_of
from effgrad.stage.loop.operands import Lazy, Masked, Value, View, broadcast
from effgrad.stage.loop.symbols import Symbols
from effgrad.vocabulary import Params


def is_mask(key: Hashable) -> bool:
    """Whether an index is one boolean array."""
    return isinstance(key, View | Lazy | np.ndarray) and len(key.shape) > 0 and key.dtype == BOOL


def select(c: Symbols, value: View | Lazy, key: Hashable) -> Masked:
    """`value[key]`: a copy of the elements that the mask selects now."""
    mask = c.lazy(key)
    return Masked(c.lazy(value), aligned(c, mask, len(value.shape)), len(mask.shape))


def aligned(c: Symbols, mask: Lazy, rank: int) -> Lazy:
    """A mask of the leading axes of an array, with an axis of length 1 for each remaining axis."""
    if len(mask.shape) > rank:
        raise NotCaptured("a mask of more axes than the array has")
    if len(mask.shape) == rank:
        return mask
    return c.lazy(c.index(mask, (*[slice(None)] * len(mask.shape), *[None] * (rank - len(mask.shape)))))


def is_same(a: Lazy, b: Lazy) -> bool:
    """Whether two masks are the same expression."""
    if a is b:
        return True
    if len(a.shape) != len(b.shape):
        return False
    _, point = new_point(a.shape)
    return a.shape == b.shape and a.element(point) is b.element(point)


def mapped(c: Symbols, ufunc: Any, args: list[Value]) -> Masked:
    """Apply an elementwise function to elements that one mask selects, and to numbers."""
    primitive = primitive_of(ufunc)
    if primitive is None:
        raise NotCaptured("a product of elements that a mask selects")
    first, *others = [a for a in args if isinstance(a, Masked)]
    if not all(is_same(a.mask, first.mask) and a.rank == first.rank for a in others):
        raise NotCaptured("elements that two different masks select")
    if any(c.lazy(a).shape for a in args if not isinstance(a, Masked)):
        raise NotCaptured("elements that a mask selects beside an array")
    value = c.elementwise(primitive, *[a.value if isinstance(a, Masked) else a for a in args])
    return Masked(value, first.mask, first.rank)


def assigned_under_mask(c: Symbols, array: View | Lazy, key: Value, value: Value) -> Lazy:
    """The array after `array[key] = value`."""
    mask = aligned(c, c.lazy(key), len(array.shape))
    if isinstance(value, Masked):
        if not is_same(value.mask, mask):
            raise NotCaptured("elements that one mask selects are written where another does")
        return c.elementwise(WHERE, mask, value.value, array)
    new, others = c.lazy(value), len(array.shape) - len(key.shape)
    if any(n != 1 for n in new.shape[: max(len(new.shape) - others, 0)]):
        raise NotCaptured("an array is written where a mask selects, as many elements as it has")
    return c.elementwise(WHERE, mask, new, array)


def total(c: Symbols, x: Masked, axis: int | None = None) -> Value:
    """The sum of the elements that a mask selects, or over the first axis, which is the selection's."""
    if axis not in (None, 0):
        raise NotCaptured(f"a sum over the axis {axis} of elements that a mask selects")
    return c.reduce(c.elementwise(WHERE, x.mask, x.value, 0), None if axis is None else tuple(range(x.rank)))


def mean(c: Symbols, x: Masked, axis: int | None = None) -> Value:
    """The mean of the elements that a mask selects, or over the first axis."""
    ones = Masked(broadcast(c.lazy(1.0), x.value.shape), x.mask, x.rank)
    return c.elementwise(DIVIDE, total(c, x, axis), total(c, ones, axis))


def method(c: Symbols, x: Masked, name: str, args: list[Value], kwargs: Params) -> Value:
    """Call a method of `x[mask]`."""
    if name in ("sum", "mean") and len(args) + len(kwargs) <= 1 and kwargs.keys() <= {"axis"}:
        return (total if name == "sum" else mean)(c, x, *args, **kwargs)
    if name == "copy":
        return x
    raise NotCaptured(f"the method {name!r} of elements that a mask selects")
