"""Rules for NumPy's functions that fold an array to fewer elements: sums, means, extremes, counts."""

import functools
import math
from typing import Any

import numpy as np
import scipy.special

from effgrad.stage.loop import masks
from effgrad.stage.loop.affine import NotCaptured, affine, as_constant
from effgrad.stage.loop.buffers import FLOAT
from effgrad.stage.loop.concatenation import as_array
from effgrad.stage.loop.element import DIVIDE, EQUAL, MULTIPLY, NOT_EQUAL, SQRT, SUBTRACT, cast
from effgrad.stage.loop.operands import Lazy, Masked, Value, View, axes_of, same_extent
from effgrad.stage.loop.registry import rule
from effgrad.stage.loop.symbols import Symbols


@rule(np.sum)
def _sum(c: Symbols, a: Value, axis: Value = None, keepdims: bool = False) -> Value:
    if isinstance(a, Masked):
        return masks.method(c, a, "sum", [], {} if axis is None else {"axis": axis})
    return c.reduce(a, axis, keepdims)


@rule(np.mean)
def _mean(c: Symbols, a: Value, axis: Value = None, keepdims: bool = False) -> Value:
    if isinstance(a, Masked):
        return masks.method(c, a, "mean", [], {} if axis is None else {"axis": axis})
    value = c.lazy(a)
    if value.dtype.kind != "f":
        value = c.new_lazy(value.names, value.shape, cast(value.value, FLOAT))
    count: Any = 1
    for k in axes_of(axis, len(value.shape)):
        count = as_constant(affine(count) * value.shape[k])
    return c.elementwise(DIVIDE, c.reduce(value, axis, keepdims), count)


@rule(np.var)
def _var(c: Symbols, a: Value, axis: Value = None, ddof: int = 0, keepdims: bool = False) -> Value:
    off = c.elementwise(SUBTRACT, a, _mean(c, a, axis, keepdims=True))
    square = c.elementwise(MULTIPLY, off, off)
    if not ddof:
        return _mean(c, square, axis, keepdims=keepdims)
    total = c.reduce(square, axis, keepdims)
    size = math.prod(c.lazy(a).shape) if axis is None else c.lazy(a).shape[axis]
    return c.elementwise(DIVIDE, total, size - ddof)


@rule(np.std)
def _std(c: Symbols, a: Value, axis: Value = None, ddof: int = 0, keepdims: bool = False) -> Lazy:
    return c.elementwise(SQRT, _var(c, a, axis, ddof, keepdims))


@rule(scipy.special.logsumexp)
def _logsumexp(
    c: Symbols, a: Value, axis: Value = None, b: Value = None, keepdims: bool = False, return_sign: bool = False
) -> View | Lazy:  # fmt: skip
    if b is not None or return_sign:
        raise NotCaptured("weights or signs in logsumexp")
    return c.log_sum_exp(a, axis, keepdims)


def _extreme(ufunc: np.ufunc, c: Symbols, a: Value, axis: Value = None, keepdims: bool = False) -> View | Lazy:
    return c.extreme(a, ufunc, axis, keepdims)


_amax = rule(np.max, np.amax)(functools.partial(_extreme, np.maximum))
_amin = rule(np.min, np.amin)(functools.partial(_extreme, np.minimum))


def _place_of(ufunc: np.ufunc, c: Symbols, a: Value, axis: Value = None, keepdims: bool = False) -> View | Lazy:
    return c.place_of_extreme(a, ufunc, axis, keepdims)


_argmax = rule(np.argmax)(functools.partial(_place_of, np.maximum))
_argmin = rule(np.argmin)(functools.partial(_place_of, np.minimum))


def _count(every: bool, c: Symbols, a: Value, axis: Value = None, keepdims: bool = False) -> View | Lazy:
    """The number of elements that are true, or that are not if `every`."""
    return c.reduce(c.elementwise(EQUAL if every else NOT_EQUAL, a, 0), axis, keepdims)


def _quantified(every: bool, c: Symbols, a: Value, axis: Value = None, keepdims: bool = False) -> Lazy:
    return c.elementwise(EQUAL if every else NOT_EQUAL, _count(every, c, a, axis, keepdims), 0)


_count_nonzero = rule(np.count_nonzero)(functools.partial(_count, False))
_any = rule(np.any)(functools.partial(_quantified, False))
_all = rule(np.all)(functools.partial(_quantified, True))


def _close(a: Value, b: Value, rtol: float, atol: float, equal_nan: bool) -> Value:
    b = b * 1.0
    close = (np.abs(a - b) <= atol + rtol * np.abs(b)) & np.isfinite(b) | (a == b)
    return close | (np.isnan(a) & np.isnan(b)) if equal_nan else close


@rule(np.isclose)
def _isclose(
    c: Symbols, a: Value, b: Value, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Value:  # fmt: skip
    return c.inline(_close, [as_array(c, a), as_array(c, b), rtol, atol, equal_nan], {})


@rule(np.allclose)
def _allclose(
    c: Symbols, a: Value, b: Value, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Lazy:  # fmt: skip
    return c.weakened(_quantified(True, c, _isclose(c, a, b, rtol, atol, equal_nan)))


@rule(np.array_equal)
def _array_equal(c: Symbols, a1: Value, a2: Value, equal_nan: bool = False) -> bool | Lazy:
    a, b = c.lazy(a1), c.lazy(a2)
    if equal_nan:
        raise NotCaptured("np.array_equal with equal_nan")
    if len(a.shape) != len(b.shape) or any(is_longer(n, m) for n, m in zip(a.shape, b.shape, strict=True)):
        return False
    return c.weakened(_quantified(True, c, c.elementwise(EQUAL, a, b)))


def is_longer(n: Value, m: Value) -> bool:
    """Whether two extents differ; that has to be known."""
    if not same_extent(n, m) and not (isinstance(n, int) and isinstance(m, int)):
        raise NotCaptured("arrays whose shapes may differ are compared")
    return not same_extent(n, m)


def _extreme_of(ufunc: np.ufunc, c: Symbols, a: Value, axis: Value = 0) -> View | Lazy:
    return c.extreme(a, ufunc, axis, False)


def _reduced_sum(c: Symbols, a: Value, axis: Value = 0) -> View | Lazy:
    return c.reduce(a, axis)


_add_reduce = rule((np.add, "reduce"))(_reduced_sum)
_maximum_reduce = rule((np.maximum, "reduce"))(functools.partial(_extreme_of, np.maximum))
_minimum_reduce = rule((np.minimum, "reduce"))(functools.partial(_extreme_of, np.minimum))
