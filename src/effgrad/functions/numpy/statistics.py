"""Sums, differences and order statistics, defined by the reductions.

Which elements an order statistic selects is a constant for the derivative.
"""

import math
from typing import Any

from effgrad.arrays.layout import dtype_of, ndim_of, shape_of, size_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import FUNCTIONS, Tracer, any_traced, composed, is_lazy, plain
from effgrad.primitives import cotangents
from effgrad.primitives.batching import broadcast
from effgrad.primitives.given import all_as_computed
from effgrad.primitives.primitive import linear
from effgrad.primitives.reduction import choice
from effgrad.vocabulary import Axes, Axis, DTypeLike, Function, Option, Params, Value

# Sums, products and differences.


def _ediff1d(ary: Value, to_end: Value = None, to_begin: Value = None) -> Value:
    middle = np.diff(np.ravel(ary))
    return np.concatenate(
        [np.ravel(p) for p in (to_begin, middle, to_end) if p is not None], dtype=dtype_of(middle)
    )


def _ptp(a: Value, axis: Axis = None, out: Option = None, keepdims: bool = False) -> Value:
    return np.max(a, axis=axis, keepdims=keepdims) - np.min(a, axis=axis, keepdims=keepdims)


def _cumprod(a: Value, axis: Axis = None, dtype: DTypeLike = None) -> Value:
    """Running products, by multiplication alone, so that derivatives of every order are right at zeros."""
    if dtype is not None:
        a = a.astype(dtype)
    if axis is None or ndim_of(a) == 0:
        a, axis = np.ravel(a), 0
    a = np.moveaxis(a, axis, 0)
    products, total = [], None
    for x in a:
        total = x if total is None else total * x
        products.append(total)
    return np.moveaxis(np.stack(products), 0, axis) if products else np.moveaxis(a, 0, axis)


def _average(
    a: Value, axis: Axis = None, weights: Value = None, returned: bool = False, *, keepdims: Option = False
) -> Value:
    if weights is None:
        result = np.mean(a, axis=axis, keepdims=keepdims)
        count = np.full_like(plain(result), size_of(a) / max(size_of(result), 1))
        return (result, count) if returned else result
    weights = _spread(weights, a, axis)
    total = np.sum(weights, axis=axis, keepdims=keepdims)
    result = np.sum(a * weights, axis=axis, keepdims=keepdims) / total
    return (result, total) if returned else result


def _corrcoef(x: Value, y: Value = None, rowvar: bool = True, *, dtype: DTypeLike = None) -> Value:
    c = np.cov(x, y, rowvar, dtype=dtype)
    if ndim_of(c) == 0:
        return c / c
    scale = np.sqrt(np.diagonal(c))
    return c / scale[:, None] / scale


def _gradient(f: Value, *varargs: Value, axis: Axes = None, edge_order: int = 1) -> Value:
    ndim = ndim_of(f)
    axes = range(ndim) if axis is None else [i % ndim for i in np.atleast_1d(axis)]
    spacings = list(varargs) or [1.0]
    spacings = spacings * len(list(axes)) if len(spacings) == 1 else spacings
    dtype = np.result_type(plain(f), np.float16)
    results = []
    for i, h in zip(axes, spacings, strict=True):
        g = np.moveaxis(f, i, -1)
        if ndim_of(h) == 0:
            first, last = (g[..., 1:2] - g[..., :1]) / h, (g[..., -1:] - g[..., -2:-1]) / h
            middle = (g[..., 2:] - g[..., :-2]) / (2.0 * h)
            near, far = 2.0 * middle[..., :1] - first, 2.0 * middle[..., -1:] - last
            bend, back = 0.5, 0.5
        else:
            h = np.diff(h)
            left, right = h[:-1], h[1:]
            slope = (g[..., 1:] - g[..., :-1]) / h
            middle = (left * slope[..., 1:] + right * slope[..., :-1]) / (left + right)
            first, near, far, last = slope[..., :1], slope[..., 1:2], slope[..., -2:-1], slope[..., -1:]
            bend, back = h[:1] / (h[:1] + h[1:2]), h[-1:] / (h[-1:] + h[-2:-1])
        if edge_order == 2:
            first, last = first - bend * (near - first), last + back * (last - far)
        result = np.concatenate([first, middle, last], axis=-1).astype(dtype, copy=False)
        results.append(np.moveaxis(result, -1, i))
    return results[0] if len(results) == 1 else tuple(results)


cross: Any = linear(
    np.cross,
    lambda g, a, b: cotangents.unbroadcast(cross(b, g), a),
    lambda g, a, b: cotangents.unbroadcast(cross(g, a), b),
    batch=broadcast,
)


def _cross(a: Value, b: Value, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Value:
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = (np.moveaxis(np.asarray(x), axis, -1) for x, axis in ((a, axisa), (b, axisb)))
    if {shape_of(a)[-1], shape_of(b)[-1]} not in ({3}, {2, 3}):
        np.cross(np.zeros(shape_of(a)[-1]), np.zeros(shape_of(b)[-1]))  # NumPy 2.5 rejects two 2-vectors
    if shape_of(a)[-1] == shape_of(b)[-1] == 3 and not any_traced((plain(a), plain(b))):
        # A staged program computes the components below instead, and fuses them into one kernel.
        result = cross(a, b)
        return result if axisc == -1 else np.moveaxis(result, -1, axisc)
    if shape_of(a)[-1] == 2 and shape_of(b)[-1] == 2:
        return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]

    def three(x: Value) -> list[Value]:
        return [x[..., i] for i in range(shape_of(x)[-1])] + [0.0] * (3 - shape_of(x)[-1])

    (a0, a1, a2), (b0, b1, b2) = three(a), three(b)
    parts = np.broadcast_arrays(a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0)
    return np.moveaxis(np.stack(parts, axis=-1), -1, axisc)


# Order statistics. Which elements they select is a constant.


def _lines(a: Value, axis: Axis) -> tuple[Value, list[int]]:
    """Return the elements along one, several or all axes as a last axis, and the shape of a result with `keepdims`."""
    ndim = ndim_of(a)
    axes = range(ndim) if axis is None else [int(i) % ndim for i in np.atleast_1d(axis)]
    rest = [i for i in range(ndim) if i not in axes]
    shape = shape_of(a)
    lines = np.reshape(np.transpose(a, [*rest, *axes]), (*(shape[i] for i in rest), math.prod(shape[i] for i in axes)))
    return lines, [1 if i in axes else n for i, n in enumerate(shape_of(a))]


def _quantile(
    a: Value, q: Value, axis: Axis = None, out: Option = None, overwrite_input: bool = False, method: Option = "linear",
    keepdims: bool = False, *, weights: Value = None,
) -> Value:  # fmt: skip
    """Interpolate between two order statistics. The derivative in `q` is the slope of that interpolation."""
    lines, kept = _lines(a, axis)
    count = shape_of(lines)[-1]
    if weights is not None:
        return _weighted_quantile(a, lines, kept, plain(q), axis, method, keepdims, plain(weights))
    values = plain(q)
    if count == 0:
        return np.full(np.shape(values) + (tuple(kept) if keepdims else shape_of(lines)[:-1]), np.nan)
    numbers = np.arange(count, dtype=float)
    if np.any(np.asarray(values) < 0) or np.any(np.asarray(values) > 1):
        raise ValueError("Quantiles must be in the range [0, 1]")
    # The quantile of 0, 1, 2, ... is the fractional place among the sorted elements by NumPy's convention for `method`.
    place = np.quantile(numbers, values, method=method)
    low = np.floor(place).astype(int)
    high = np.minimum(low + 1, count - 1)
    ordered = np.sort(lines, axis=-1)
    below, above = ordered[..., low], ordered[..., high]
    part = (place - low).astype(np.quantile(np.ones(1, lines.dtype), values, method=method).dtype)
    if type(q) is not type(values):
        # NumPy clamps the place to the first and the last element, where it does not move with `q`. Only "linear" needs
        # no clamping, so only its slope holds at both ends, too.
        moves = True if method == "linear" else (place > 0) & (place < count - 1)
        slope = {"linear": count - 1, "weibull": count + 1, "hazen": count, "median_unbiased": count + 1 / 3,
                 "normal_unbiased": count + 1 / 4, "interpolated_inverted_cdf": count}.get(method, 0)  # fmt: skip
        part = part + (q - values) * (slope * moves)
    result, inner = below + (above - below) * part, np.ndim(place)
    if inner:
        result = np.moveaxis(result, tuple(range(-inner, 0)), tuple(range(inner)))
    nan = np.isnan(plain(lines)).any(axis=-1)
    if np.any(nan):
        result = np.where(nan, np.nan, result)
    if keepdims:
        result = np.reshape(result, (*np.shape(place), *kept))
    return result[()] if ndim_of(result) == 0 else result


def _spread(weights: Value, a: Value, axis: Axes) -> Value:
    """Return the weights of all elements of `a`, by broadcasting weights along one or several axes."""
    if shape_of(weights) == shape_of(a):
        return weights
    shape = [1] * ndim_of(a)
    for i, n in zip(np.atleast_1d(axis), shape_of(weights), strict=True):
        shape[i] = n
    return np.broadcast_to(np.reshape(weights, shape), shape_of(a))


def _weighted_quantile(
    a: Value, lines: Value, kept: Value, q: Value, axis: Axis, method: Option, keepdims: bool, weights: Value
) -> Value:
    """Return one of the elements for each `q`.

    NumPy's quantile of the elements' ranks says which one. It is piecewise constant in `q` and in the weights.
    """
    ordered = np.sort(lines, axis=-1)
    ranks = np.argsort(np.argsort(plain(lines), axis=-1, kind="stable"), axis=-1).astype(float)
    heavy = _lines(_spread(weights, a, axis), axis)[0]
    rank = np.quantile(ranks, q, axis=-1, weights=heavy, method=method).astype(int)
    result = ordered[(*np.ogrid[tuple(map(slice, shape_of(lines)[:-1]))], rank)]
    nan = np.isnan(plain(lines)).any(axis=-1)
    result = np.where(nan, np.nan, result) if np.any(nan) else result
    return np.reshape(result, (*np.shape(q), *kept)) if keepdims else result


def _percentile(a: Value, q: Value, axis: Axis = None, *args: Value, **kwargs: Option) -> Value:
    return np.quantile(a, q / 100 if ndim_of(q) == 0 else np.asarray(q) / 100, axis, *args, **kwargs)


# Functions that leave out NaNs, defined by those that do not: NaNs become neutral elements, or are masked or removed.


def _without_nans(function: Function, neutral: Value) -> Function:
    def rule(a: Value, axis: Axis = None, *args: Value, **kwargs: Option) -> Value:
        nan = np.isnan(plain(a))
        # The rule is called directly: NumPy does not dispatch on a traced `initial`.
        result = FUNCTIONS[function](np.where(nan, np.asarray(neutral, a.dtype), a), axis, *args, **kwargs)
        if neutral in (np.inf, -np.inf) and "initial" not in kwargs:
            empty = np.all(nan, axis=axis, keepdims=kwargs.get("keepdims", False))
            result = np.where(empty, np.nan, result) if is_lazy(empty) or np.any(empty) else result
        return result

    return rule


def _numbers(a: Value, where: Value) -> tuple[Value, Value]:
    """Return an array with zeros in place of its NaNs, and which of its chosen elements are numbers."""
    nan = np.isnan(plain(a))
    return np.where(nan, np.zeros((), a.dtype), a), ~nan & choice(where)


def _mean_of_numbers(a: Value, *args: Value, where: Value = True, **kwargs: Option) -> Value:
    numbers, chosen = _numbers(a, where)
    return np.mean(numbers, *args, where=chosen, **kwargs)


def _spread_of_numbers(function: Function) -> Function:
    """Return the rule of `nanvar` or `nanstd`: NaN, and not infinity, where no degree of freedom is left."""

    def rule(
        a: Value, axis: Axis = None, dtype: DTypeLike = None, out: None = None, ddof: Value = 0,
        keepdims: Option = False, *, where: Value = True, correction: Option = np._NoValue, **kwargs: Option,
    ) -> Value:  # fmt: skip
        ddof = ddof if correction is np._NoValue else correction
        shape: Params = {"axis": axis, "keepdims": False if keepdims is np._NoValue else keepdims}
        numbers, chosen = _numbers(a, where)
        result = function(numbers, dtype=dtype, ddof=ddof, where=chosen, **shape, **kwargs)
        return np.where(np.sum(chosen, **shape) > ddof, result, np.full((), np.nan, dtype_of(result)))[()]

    return rule


def _without_nans_in_lines(function: Function, a: Value, axis: Axis, keepdims: bool, weights: Value = None) -> Value:
    """Apply a function to each line of an array without its NaNs; a line of nothing but NaNs gives NaN.

    With weights, the function's second argument is the weights of the line.
    """
    if not size_of(a):
        return np.nanmean(a, axis, keepdims=keepdims)
    lines, kept = _lines(a, axis)
    rest, number = shape_of(lines)[:-1], ~np.isnan(plain(lines)).reshape(-1, shape_of(lines)[-1])
    arrays = [np.reshape(lines, number.shape)]
    if weights is not None:
        arrays.append(np.reshape(_lines(_spread(weights, a, axis), axis)[0], number.shape))
    some = function(*(np.ones(1) for _ in arrays))
    results = np.stack([
        function(*(rows[i][number[i]] for rows in arrays)) if number[i].any() else np.nan * some
        for i in range(len(number))
    ], axis=-1)  # fmt: skip
    return np.reshape(results, (*np.shape(some), *(kept if keepdims else rest)))[()]


def _nanmedian(
    a: Value, axis: Axis = None, out: Option = None, overwrite_input: bool = False, keepdims: bool = False
) -> Value:
    return _without_nans_in_lines(np.median, a, axis, keepdims)


def _nan_quantile(function: Function) -> Function:
    def rule(
        a: Value, q: Value, axis: Axis = None, out: Option = None, overwrite_input: bool = False,
        method: Option = "linear",
        keepdims: bool = False, *, weights: Value = None,
    ) -> Value:  # fmt: skip
        def of_line(line: object, heavy: object = None) -> Value:
            return function(line, q, method=method, weights=heavy)

        return _without_nans_in_lines(of_line, a, axis, keepdims, plain(weights))

    return rule


def _nan_to_num(x: Value, copy: bool = True, nan: Value = 0.0, posinf: Value = None, neginf: Value = None) -> Value:
    value, numbers = plain(x), {"nan": nan, "posinf": posinf, "neginf": neginf}
    if isinstance(copy, str):
        np.nan_to_num(0.0, copy)  # raises NumPy's error
    if not copy and not isinstance(value, np.ndarray | Tracer):
        np.array(value, copy=False)  # NumPy's error
    with np.errstate(all="ignore"):
        constants = {name: number for name, number in numbers.items() if not any_traced((number,))}
        result = np.where(np.isfinite(value), x, np.nan_to_num(value, **constants))
    if len(constants) < len(numbers):
        result = _replaced(x, result, numbers)
    if not copy and isinstance(value, np.ndarray):
        x[...] = result
        result = x
    return result if ndim_of(result) else result[()]


def _replaced(x: Value, result: Value, numbers: dict[str, Value]) -> Value:
    """Return `result` with traced numbers in the places of NaN and of both infinities."""
    if dtype_of(x).kind == "c":
        return _replaced(np.real(x), np.real(result), numbers) + 1j * _replaced(np.imag(x), np.imag(result), numbers)
    places = np.isnan(x), np.equal(x, np.inf), np.equal(x, -np.inf)
    for place, number in zip(places, numbers.values(), strict=True):
        result = np.where(place, number, result) if any_traced((number,)) else result
    return result


def _unwrap(p: Value, discont: object = None, axis: int = -1, *, period: float = 2 * np.pi) -> Value:
    turned = np.unwrap(plain(p), plain(discont), axis, period=plain(period)) - plain(p)
    return p + turned + np.rint(turned / plain(period)) * (period - plain(period))


composed({
    np.ptp: _ptp, np.cross: _cross, np.nan_to_num: _nan_to_num,
})  # fmt: skip
composed(all_as_computed({
    np.cumprod: _cumprod, np.ediff1d: _ediff1d, np.average: _average,
    np.corrcoef: _corrcoef, np.gradient: _gradient, np.quantile: _quantile, np.percentile: _percentile,
    np.nansum: _without_nans(np.sum, 0.0), np.nanprod: _without_nans(np.prod, 1.0),
    np.nanmax: _without_nans(np.max, -np.inf), np.nanmin: _without_nans(np.min, np.inf),
    np.nancumsum: _without_nans(np.cumsum, 0.0), np.nancumprod: _without_nans(np.cumprod, 1.0),
    np.nanmean: _mean_of_numbers, np.nanvar: _spread_of_numbers(np.var), np.nanstd: _spread_of_numbers(np.std),
    np.nanmedian: _nanmedian, np.nanquantile: _nan_quantile(np.quantile),
    np.nanpercentile: _nan_quantile(np.percentile), np.unwrap: _unwrap,
}))  # fmt: skip
