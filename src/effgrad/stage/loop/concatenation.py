"""Rules for NumPy's functions that join arrays. An array that grows in a loop is extended in place."""

import ast
import functools

import numpy as np

from effgrad.stage.loop.affine import Affine, NotCaptured, affine, as_constant
from effgrad.stage.loop.operands import Lazy, Value, View, axis_of, same_extent, symbolic, whole_view
from effgrad.stage.loop.registry import rule
from effgrad.stage.loop.symbols import Symbols


def as_array(c: Symbols, value: Value) -> View | Lazy:
    """Return a value as an array, a view where it is one."""
    return value if isinstance(value, View | Lazy) else c.lazy(value)


@rule(np.concatenate)
def concatenate(c: Symbols, arrays: Value, axis: int = 0) -> Value:
    parts = [c.lazy(a) for a in arrays]
    axis = axis_of(axis, len(parts[0].shape))
    shapes = [[*p.shape[:axis], *p.shape[axis + 1 :]] for p in parts]
    if not all(len(s) == len(shapes[0]) and all(map(same_extent, s, shapes[0])) for s in shapes):
        raise NotCaptured("arrays of different shapes are joined")
    if c.extending is not None and arrays[0] is c.extending and len(parts) == 2:
        grown = _extended(c, c.extending, parts[1], axis)
        if grown is not None:
            return grown
    total = functools.reduce(lambda n, p: n + p.shape[axis], parts, affine(0))
    shape = [as_constant(total) if k == axis else n for k, n in enumerate(parts[0].shape)]
    view = whole_view(c.buffer("joined", shape, np.result_type(*[p.dtype for p in parts])), shape)
    at: Affine = affine(0)
    for p in parts:
        end = at + p.shape[axis]
        c.assign(c.index(view, (*(slice(None),) * axis, slice(as_constant(at), as_constant(end)))), p)  # type: ignore[arg-type]
        at = end
    view.own, view.buffer.order = True, "K"
    return view


def _extended(c: Symbols, array: View, added: Lazy, axis: int) -> View | None:
    """Write more elements into the spare memory after an array that grows; None if their shape or type does not fit."""
    grown = c.growing[array.buffer][1]
    start, stop = array.shape[axis], grown.shape[axis]
    shape = [as_constant(affine(stop) - start) if k == axis else n for k, n in enumerate(array.shape)]
    same = len(shape) == len(added.shape) and all(map(same_extent, shape, added.shape))
    if not same or np.result_type(array.dtype, added.dtype) != array.dtype:
        return None
    c.assign(c.index(grown, (*(slice(None),) * axis, slice(start, stop))), added)  # type: ignore[arg-type]
    return grown


@rule(np.append)
def _append(c: Symbols, arr: Value, values: Value, axis: Value = None) -> Value:
    if axis is not None:
        return concatenate(c, [arr, values], axis)
    return concatenate(c, [at_least(c, c.call(np.ravel, [x], {}), 1) for x in (arr, values)])


@rule(np.hstack)
def _hstack(c: Symbols, arrays: Value) -> Value:
    parts = [at_least(c, a, 1) for a in arrays]
    return concatenate(c, parts, 0 if len(parts[0].shape) == 1 else 1)


@rule(np.vstack)
def _vstack(c: Symbols, arrays: Value) -> Value:
    return concatenate(c, [at_least(c, a, 2) for a in arrays], 0)


@rule(np.column_stack)
def _column_stack(c: Symbols, arrays: Value) -> Value:
    parts = [as_array(c, a) for a in arrays]
    return concatenate(c, [c.index(c.lazy(a), (..., None)) if len(a.shape) == 1 else a for a in parts], 1)


def at_least(c: Symbols, a: Value, rank: int) -> View | Lazy:
    """Return a value as an array of at least so many axes; new ones come first."""
    value = as_array(c, a)
    while len(value.shape) < rank:
        value = c.index(c.lazy(value), (None, ...))
    return value


@rule(np.stack)
def _stack(c: Symbols, arrays: Value, axis: int = 0) -> View:
    items = list(arrays)
    return c.stacked(items, axis_of(axis, len(c.lazy(items[0]).shape) + 1))


@rule(np.roll)
def _roll(c: Symbols, a: Value, shift: Value, axis: Value = None) -> Value:
    if not symbolic([a, shift]):
        return np.roll(a, shift, axis)
    value = as_array(c, a)
    if axis is None:
        return c.call(np.reshape, [_roll(c, c.call(np.ravel, [value], {}), shift, 0), value.shape], {})
    axes = axis if isinstance(axis, tuple) else (axis,)
    for k, by in zip(axes, shift if isinstance(shift, tuple) else (shift,) * len(axes), strict=True):
        value = _turned(c, value, by, axis_of(k, len(value.shape)))
    return value


def _turned(c: Symbols, value: View | Lazy, shift: Value, axis: int) -> View:
    """An array rolled along an axis: its last elements, and then the first ones."""
    n = as_constant(affine(value.shape[axis]))
    first = c.binary(ast.Sub(), n, c.binary(ast.Mod(), c.as_index(shift), n))
    before = (slice(None),) * axis
    rolled: View = concatenate(c, [c.index(value, (*before, x)) for x in (slice(first, n), slice(0, first))], axis)
    return rolled
