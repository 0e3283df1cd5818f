"""`scipy.interpolate`: piecewise polynomials, in the point and in the coefficients, and so in the values they take.

Which piece a point is in is a constant; the rest is a polynomial. A spline's coefficients are linear (with boundary
values: affine) in the values, so a spline through traced values has the matrix of that map times them.
"""

import math
from typing import Any

import numpy as np
import scipy.interpolate
from scipy.interpolate import BSpline, CubicSpline, PPoly, RegularGridInterpolator, interp1d
from scipy.interpolate._interpolate import _PPolyBase

from effgrad.arrays.value import KINDS, evaluated, getitem, plain
from effgrad.functions.scipy.tables import Method, reals, require, traced_inside
from effgrad.primitives.joining import shape_of


def _piece(knots: Any) -> Any:
    return lambda x: np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 2)


def _piecewise(knots: Any, c: Any, x: Any, nu: int, extrapolate: Any) -> Any:
    """The `nu`th derivative of the piecewise polynomial with coefficients c[power, piece, ...], highest power first."""
    reals("interpolate", x)
    if extrapolate == "periodic":
        x = knots[0] + np.mod(x - knots[0], knots[-1] - knots[0])
    outside = (plain(x) < knots[0]) | (plain(x) > knots[-1])
    piece = evaluated(_piece(knots), x)
    # As in SciPy, a point that is not a number is in no piece.
    along = np.reshape(x - getitem(knots, piece), shape_of(x) + (1,) * (np.ndim(plain(c)) - 2))
    result: Any = 0.0
    degree = shape_of(c)[0] - 1
    for power in range(degree, nu - 1, -1):
        factor = math.factorial(power) / math.factorial(power - nu)
        result = result * along + factor * getitem(c[degree - power], piece)
    if degree < nu:
        result = 0.0 * along * getitem(c[0], piece)
    if extrapolate in (False, None):
        result = np.where(np.reshape(outside, shape_of(along)), np.nan, result)
    return result


def _in_place(result: Any, axis: int, ndim: int) -> Any:
    """The axes of the point in the place of the axis of interpolation."""
    order = list(range(np.ndim(plain(result))))
    return np.transpose(result, order[ndim : ndim + axis] + order[:ndim] + order[ndim + axis :])


def _polynomial(self: Any, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
    require(isinstance(self, PPoly), "interpolate.BPoly", "PPoly.from_bernstein_basis of it")
    extrapolate = self.extrapolate if extrapolate is None else extrapolate
    x = np.asarray(x)
    return _in_place(_piecewise(plain(self._x), self._c, x, nu, extrapolate), self.axis, np.ndim(plain(x)))


def _bspline(self: Any, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
    """As a piecewise polynomial: the coefficients are the derivatives at the left ends of the pieces."""
    extrapolate = self.extrapolate if extrapolate is None else extrapolate
    x, t, k, c = np.asarray(x), plain(self.t), self.k, self._c
    n = len(t) - k - 1
    basis = BSpline(t, np.eye(n), k)
    rows = [np.tensordot(basis(t[k:n], nu=m) / math.factorial(m), c[:n], axes=(1, 0)) for m in range(k, -1, -1)]
    return _in_place(_piecewise(t[k : n + 1], np.stack(rows), x, nu, extrapolate), self.axis, np.ndim(plain(x)))


def _splev(x: Any, tck: Any, der: int = 0, ext: int = 0) -> Any:
    require(ext == 0, "interpolate.splev", "ext=0")
    spline = tck if isinstance(tck, BSpline) else BSpline(*tck)
    return _bspline(spline, x, der, True)


def _cubic(self: Any, x: Any, y: Any, axis: int = 0, bc_type: Any = "not-a-knot", extrapolate: Any = None) -> None:
    """A cubic spline through traced values."""
    require(not traced_inside((x, bc_type)), "interpolate.CubicSpline", "the values y, not the points x")
    y = np.asarray(y)
    CubicSpline.__init__(self, x, np.zeros(shape_of(y)), axis, bc_type, extrapolate)
    y = np.moveaxis(y, axis, 0)
    n = shape_of(y)[0]
    free = np.eye(n)
    if isinstance(bc_type, str) and bc_type == "periodic":
        free, y = np.concatenate([np.eye(n - 1), np.eye(n - 1)[:1]]), y[:-1]
    if not isinstance(bc_type, str):
        bc_type = [kind if isinstance(kind, str) else (kind[0], np.full(n, float(kind[1]))) for kind in bc_type]
    at_zero = CubicSpline(x, np.zeros(free.shape), 0, bc_type).c
    matrix = CubicSpline(x, free, 0, bc_type).c - at_zero
    constant = np.reshape(at_zero[..., 0], (*at_zero.shape[:2], *(1,) * (np.ndim(plain(y)) - 1)))
    self._c = np.tensordot(matrix, y, axes=(2, 0)) + constant


def _make_interp_spline(
    x: Any, y: Any, k: int = 3, t: Any = None, bc_type: Any = None, axis: int = 0, check_finite: bool = True
) -> Any:
    require(not traced_inside((x, t)), "interpolate.make_interp_spline", "the values y, not the points x")
    require(bc_type in (None, "not-a-knot", "natural", "clamped"), "interpolate.make_interp_spline", "bc_type by name")
    y = np.moveaxis(np.asarray(y), axis, 0)
    basis = scipy.interpolate.make_interp_spline(x, np.eye(shape_of(y)[0]), k, t, bc_type)
    return BSpline.construct_fast(basis.t, np.tensordot(basis.c, y, axes=(1, 0)), k, axis=axis)


# Interpolation of tables.


def _interp1d(self: Any, x: Any, y: Any, kind: Any = "linear", axis: int = -1, *args: Any, **options: Any) -> None:
    require(not traced_inside(x), "interpolate.interp1d", "the values y, not the points x")
    y = np.asarray(y)
    interp1d.__init__(self, x, np.zeros(shape_of(y)), kind, axis, *args, **options)
    order = np.argsort(plain(x), kind="stable") if not options.get("assume_sorted", False) else slice(None)
    y = np.moveaxis(y, axis, -1)[..., order]
    self.y = np.moveaxis(y, -1, axis)
    self._y = np.reshape(np.moveaxis(y, -1, 0), (shape_of(y)[-1], -1))
    if hasattr(self, "_spline"):
        self._spline = _make_interp_spline(self.x, self._y, self._spline.k)


def _table(self: Any, x: Any) -> Any:
    result = self._call(self, x)
    if self._extrapolate:
        return result
    below, above = self._check_bounds(plain(x))
    wide = (..., *(None,) * (np.ndim(plain(result)) - np.ndim(plain(x))))
    return np.where(above[wide], self._fill_value_above, np.where(below[wide], self._fill_value_below, result))


def _linear_table(self: Any, x: Any) -> Any:
    reals("interpolate.interp1d", x)
    piece = evaluated(_piece(self.x), x)
    low, high = getitem(self.x, piece), getitem(self.x, piece + 1)
    below, above = getitem(self._y, piece), getitem(self._y, piece + 1)
    return below + (above - below) * ((x - low) / (high - low))[:, None]


def _grid(self: Any, xi: Any, method: Any = None, *, nu: Any = None) -> Any:
    """Linear between the corners of the cell that a point is in, along every axis."""
    method = self.method if method is None else method
    require(method in ("linear", "nearest"), "interpolate.RegularGridInterpolator", "method 'linear' or 'nearest'")
    grid, values = self.grid, self.values
    xi = np.stack(np.broadcast_arrays(*xi), axis=-1) if isinstance(xi, tuple) else np.asarray(xi)
    reals("interpolate.RegularGridInterpolator", xi)
    xi = xi[..., None] if np.ndim(plain(xi)) == 1 and len(grid) == 1 else xi
    cells = [evaluated(_piece(knots), xi[..., d]) for d, knots in enumerate(grid)]
    parts = [
        (xi[..., d] - getitem(knots, i)) / (getitem(knots, i + 1) - getitem(knots, i))
        for d, (knots, i) in enumerate(zip(grid, cells, strict=True))
    ]
    if method == "nearest":
        parts = [np.where(plain(part) <= 0.5, 0.0, 1.0) for part in parts]
    outside = np.any(
        [(plain(xi[..., d]) < knots[0]) | (plain(xi[..., d]) > knots[-1]) for d, knots in enumerate(grid)], axis=0
    )
    if self.bounds_error and bool(np.any(outside)):
        raise ValueError("One of the requested xi is out of bounds")
    trailing = (...,) + (None,) * (np.ndim(plain(values)) - len(grid))
    total: Any = 0.0
    for corner in np.ndindex((2,) * len(grid)):
        weight: Any = 1.0
        for part, end in zip(parts, corner, strict=True):
            weight = weight * (part if end else 1 - part)
        place = tuple(i + end for i, end in zip(cells, corner, strict=True))
        total = total + weight[trailing] * getitem(values, place)
    if self.bounds_error or self.fill_value is None:
        return total
    return np.where(outside[trailing], self.fill_value, total)


def _holds(*names: str) -> Any:
    return lambda self: any(type(getattr(self, name, None)) in KINDS for name in names)


RULES: list[tuple[Any, str, Any]] = [
    (_PPolyBase, "__call__", Method(_polynomial, _holds("_c"))),
    (BSpline, "__call__", Method(_bspline, _holds("_c"))),
    (CubicSpline, "__init__", _cubic),
    (interp1d, "__init__", _interp1d),
    (interp1d, "_evaluate", Method(_table, _holds("_y"))),
    (interp1d, "_call_linear", Method(_linear_table, _holds("_y"))),
    (RegularGridInterpolator, "__call__", Method(_grid, _holds("_values", "values"))),
    (scipy.interpolate, "splev", _splev),
    (scipy.interpolate, "make_interp_spline", _make_interp_spline),
]
