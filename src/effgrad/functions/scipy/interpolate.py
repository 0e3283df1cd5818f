"""Rules for `scipy.interpolate`: interpolants, differentiable in the point, in the values and in the knots.

The coefficients that an interpolant holds have SciPy's values and the derivatives of their definition
(`effgrad.functions.scipy.splines`). So has the result of calling the interpolant.
"""

import copy
import functools
import math

import scipy
import scipy.interpolate
from numpy.lib import NumpyVersion
from scipy.interpolate import (
    Akima1DInterpolator,
    BSpline,
    CubicHermiteSpline,
    CubicSpline,
    PchipInterpolator,
    PPoly,
    _bsplines,
    _interpolate,
    interp1d,
)
from scipy.interpolate._interpolate import _PPolyBase

from effgrad.arrays.layout import ndim_of, shape_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import Tracer, example, plain, plain_tree
from effgrad.functions.scipy import grids, scattered, splines, surfaces
from effgrad.functions.scipy.interpolants import (
    array_of,
    evaluator_of,
    holds,
    holds_arrays,
    is_somewhere,
    keep,
    plain_points,
    reached_calls,
    require_increasing,
    vars_of,
)
from effgrad.functions.scipy.tables import Method, arguments_by_name, reals, require, rules_of, traced_inside
from effgrad.primitives.given import run_outside
from effgrad.vocabulary import Function, Option, Reached, Value

# From SciPy 1.18 on, the public classes delegate their calls to these.
EVALUATED_SPLINE = getattr(_bsplines, "_BSpline", BSpline)
EVALUATED_POLYNOMIAL = getattr(_interpolate, "_PPoly", PPoly)


def _move_point_axes(result: Value, axis: int, ndim: int) -> Value:
    """Move the point's axes, which are the first `ndim`, to the place of the axis of interpolation."""
    order = list(range(ndim_of(result)))
    return np.transpose(result, order[ndim : ndim + axis] + order[:ndim] + order[ndim + axis :])


def _polynomial(self: Value, x: Value, nu: int = 0, extrapolate: Option = None) -> Value:
    require(isinstance(self, EVALUATED_POLYNOMIAL), "interpolate.BPoly", "PPoly.from_bernstein_basis of it")
    extrapolate = self.extrapolate if extrapolate is None else extrapolate
    x = np.asarray(x)
    reals("interpolate", x)
    result = splines.polynomial(array_of(self, "x"), array_of(self, "c"), x, nu, extrapolate)
    return _move_point_axes(result, self.axis, ndim_of(x))


def _bspline(self: Value, x: Value, nu: int = 0, extrapolate: Option = None) -> Value:
    extrapolate = self.extrapolate if extrapolate is None else extrapolate
    x = np.asarray(x)
    reals("interpolate", x)
    result = splines.de_boor(array_of(self, "t"), array_of(self, "c"), self.k, x, nu, extrapolate)
    return _move_point_axes(result, self.axis, ndim_of(x))


def _polynomial_integral(self: Value, a: Value, b: Value, extrapolate: Option = None) -> Value:
    extrapolate = self.extrapolate if extrapolate is None else extrapolate
    require(extrapolate != "periodic", "interpolate.PPoly.integrate", "a spline that is not periodic")
    x, c = array_of(self, "x"), array_of(self, "c")
    low, high = (splines.integral_of_pieces(x, c, np.asarray(end), extrapolate) for end in (a, b))
    return high - low


def _spline_integral(self: Value, a: Value, b: Value, extrapolate: Option = None) -> Value:
    extrapolate = self.extrapolate if extrapolate is None else extrapolate
    require(extrapolate != "periodic", "interpolate.BSpline.integrate", "a spline that is not periodic")
    return _integral_between(array_of(self, "t"), array_of(self, "c"), self.k, (a, b), bool(extrapolate))


def _integral_between(t: Value, c: Value, k: int, ends: Value, extrapolate: bool) -> Value:
    """The integral of a spline between two ends; beyond its knots, a spline that does not extrapolate is 0."""
    inner = ends if extrapolate else [np.clip(end, t[k], t[shape_of(t)[0] - k - 1]) for end in ends]
    low, high = (splines.integral_of_spline(t, c, k, np.asarray(end)) for end in inner)
    return high - low


def _splint(a: Value, b: Value, tck: Value, full_output: int = 0) -> Value:
    t, c, k = (tck.t, tck.c, tck.k) if isinstance(tck, BSpline) else tck
    require(not full_output and not isinstance(c, list | tuple), "interpolate.splint", "one curve, and full_output=0")
    return _integral_between(np.asarray(t), np.asarray(c), k, (a, b), False)


def _splev(x: Value, tck: Value, der: int = 0, ext: int = 0) -> Value:
    t, c, k = (tck.t, tck.c, tck.k) if isinstance(tck, BSpline) else tck
    x, t, columns = np.asarray(x), np.asarray(t), isinstance(c, list | tuple)
    reals("interpolate.splev", x, t, *(c if columns else [c]))
    low, high = t[k], t[shape_of(t)[0] - k - 1]
    x = np.clip(x, low, high) if ext == 3 else x
    parts = [splines.de_boor(t, np.asarray(part), k, x, der) for part in (c if columns else [c])]
    if ext == 1:
        beyond = (plain(x) < plain(low)) | (plain(x) > plain(high))
        parts = [np.where(beyond, 0.0, part) for part in parts]
    return parts if columns else parts[0]


splev, splint = (rule for *_, rule in rules_of(scipy.interpolate, {"splev": _splev, "splint": _splint}))


# Derivatives and antiderivatives of interpolants, which are interpolants themselves.


def _derivative(self: Value, nu: int = 1) -> Value:
    return _other_order(self, "derivative", nu)


def _antiderivative(self: Value, nu: int = 1) -> Value:
    return _other_order(self, "antiderivative", nu)


def _other_order(self: Value, name: str, nu: int) -> Value:
    """Return SciPy's derivative or antiderivative of an interpolant, with traced knots and coefficients."""
    result = copy.copy(run_outside(lambda: getattr(_example_of(self), name)(nu)))
    order, c = nu if name == "derivative" else -nu, array_of(self, "c")
    if not isinstance(evaluator_of(self), EVALUATED_SPLINE):
        x = array_of(self, "x")
        for _ in range(-order):
            c = splines.antiderivative_of_pieces(x, c)
        keep(result, c=splines.derivative_of_pieces(c, order) if order > 0 else c, x=x)
        return result
    t, k = array_of(self, "t"), self.k
    c = c[: shape_of(t)[0] - k - 1]
    for more in range(-order):
        t, c = splines.antiderivative_of_spline(t, c, k + more)
    t, c = splines.derivative_of_spline(t, c, k, order) if order > 0 else (t, c)
    unread = shape_of(t)[0] - shape_of(c)[0]  # rows of coefficients that SciPy adds
    keep(result, t=t, c=np.concatenate([c] + [0.0 * c[-1:] if order > 0 else c[-1:]] * unread))
    return result


def _example_of(self: Value) -> Value:
    """A copy of the interpolant with plain arrays, which in a staged program are those of the example."""
    twin, inner = copy.copy(self), getattr(self, "_delegate_to", None)
    if inner is not None:
        twin._delegate_to = _example_of(inner)
    for name, value in vars_of(self).items():
        if isinstance(value, Tracer):
            setattr(twin, name, example(value))
    return twin


# Splines through values, which hold traced knots and coefficients.


def _fitted(kind: Option, coefficients: Value) -> Function:
    """Return the rule of `__init__`: call SciPy's own with plain values, and set the traced coefficients."""
    original = kind.__init__

    def rule(self: Value, x: Value, y: Value, *args: Value, **options: Option) -> None:
        arguments = arguments_by_name(original, (self, x, y, *args), options)
        given = {name: value for name, value in arguments.items() if name not in ("self", "x", "y")}
        require_increasing(x)
        run_outside(lambda: original(self, *plain_points((x, y)), **plain_tree(given)))
        x, y = np.asarray(x), np.asarray(y)
        c = coefficients(x, np.moveaxis(y, given.pop("axis"), 0), **given)
        keep(self, c=c, x=x)

    return rule


def _cubic_coefficients(x: Value, y: Value, bc_type: Option, extrapolate: Option) -> Value:
    if isinstance(bc_type, str) and bc_type == "periodic" and is_somewhere(~np.isclose(y[0], y[-1], 1e-15, 1e-15)):
        raise ValueError("the first and the last value of a periodic spline have to be equal")
    return splines.hermite(x, y, splines.cubic_slopes(x, y, bc_type))


def _pchip_coefficients(x: Value, y: Value, extrapolate: Option) -> Value:
    return splines.hermite(x, y, splines.pchip_slopes(x, y))


def _akima_coefficients(x: Value, y: Value, method: str, extrapolate: Option) -> Value:
    return splines.hermite(x, y, splines.akima_slopes(x, y, method))


def _hermite(self: Value, x: Value, y: Value, dydx: Value, axis: int = 0, extrapolate: Option = None) -> None:
    require_increasing(x)
    run_outside(lambda: _plain_hermite(self, *plain_points((x, y, dydx)), axis, extrapolate))
    x, values, slopes = np.asarray(x), np.asarray(y), np.asarray(dydx)
    c = splines.hermite(x, np.moveaxis(values, axis, 0), np.moveaxis(slopes, axis, 0))
    keep(self, c=c, x=x)


_plain_hermite = CubicHermiteSpline.__init__


def _make_interp_spline(
    x: Value, y: Value, k: int = 3, t: Value = None, bc_type: Option = None, axis: int = 0, check_finite: bool = True
) -> Value:
    names = (None, "not-a-knot", "natural", "clamped")
    require(bc_type in names, "interpolate.make_interp_spline", "bc_type by name, and not periodic")
    plain_spline = run_outside(functools.partial(_plain_interp_spline, *plain_points((x, y, k, t, bc_type)), axis))
    x, y = np.asarray(x), np.moveaxis(np.asarray(y), axis, 0)
    t = splines.interpolation_knots(x, k, bc_type) if t is None else np.asarray(t)
    c = splines.interpolation_coefficients(x, y, t, k, bc_type)
    return spline_of(plain_spline, t, c)


def spline_of(plain_spline: object, t: Value, c: Value) -> Value:
    """Return a copy of a plain spline with traced knots and coefficients."""
    result = copy.copy(plain_spline)
    keep(result, t=t, c=c)
    return result


_plain_interp_spline = scipy.interpolate.make_interp_spline


def _make_lsq_spline(
    x: Value, y: Value, t: Value, k: int = 3, w: Value = None, axis: int = 0, check_finite: bool = True,
    **options: Option,
) -> Value:  # fmt: skip
    plain_spline = run_outside(lambda: _plain_lsq_spline(*plain_points((x, y, t, k, w)), axis, check_finite, **options))
    values, knots = np.moveaxis(np.asarray(y), axis, 0), np.asarray(t)
    return spline_of(plain_spline, knots, splines.least_squares_coefficients(np.asarray(x), values, knots, k, w))


_plain_lsq_spline = scipy.interpolate.make_lsq_spline


# Interpolation of tables.


def _interp1d(
    self: Value, x: Value, y: Value, kind: Option = "linear", axis: int = -1, copy: Option = True,
    bounds_error: Option = None, fill_value: Value = math.nan, assume_sorted: bool = False,
) -> None:  # fmt: skip
    x, y = np.asarray(x), np.asarray(y)
    points, fill = plain_points((x, fill_value), finite=False)
    interp1d.__init__(self, points, np.zeros(shape_of(y)), kind, axis, copy, bounds_error, fill, assume_sorted)
    y = np.moveaxis(y, axis, 0)
    if not assume_sorted:
        order = np.argsort(x, kind="stable")
        x, y = splines.elements(x, order), splines.elements(y, order)
    self.y, self._y = np.moveaxis(y, 0, axis), np.reshape(y, (shape_of(y)[0], -1))
    if isinstance(x, Tracer):
        _keep_points(self, x)
    if hasattr(self, "_spline"):
        self._spline = _make_interp_spline(self.x, self._y, self._spline.k)
    if isinstance(fill_value, str):  # "extrapolate" continues steps by the value at the end
        ends = {"previous": ("_fill_value_above", -1), "next": ("_fill_value_below", 0)}
        if kind in ends:
            setattr(self, ends[kind][0], self._y[ends[kind][1]])
    elif traced_inside(fill_value):
        below, above = fill_value if isinstance(fill_value, tuple) and len(fill_value) == 2 else (fill_value,) * 2
        row = shape_of(y)[1:] or (1,)
        self._fill_value_below, self._fill_value_above = (
            np.reshape(np.broadcast_to(np.asarray(value), row), (-1,)) for value in (below, above)
        )


def _keep_points(self: Value, x: Value) -> None:
    """Replace plain points by traced ones, and so the ends of the steps that SciPy has computed from the points."""
    self.x = x
    if hasattr(self, "x_bds"):
        self.x_bds = x[1:] / 2.0 + x[:-1] / 2.0
    if hasattr(self, "_x_shift"):
        self._x_shift = np.nextafter(x, -math.inf if self._ind == 0 else math.inf)


def _table(self: Value, x: Value) -> Value:
    result = self._call(self, x)
    if self._extrapolate:
        return result
    below, above = self._check_bounds(plain(x))
    wide = (..., *(None,) * (ndim_of(result) - ndim_of(x)))
    return np.where(above[wide], self._fill_value_above, np.where(below[wide], self._fill_value_below, result))


_table.runs_python = True  # type: ignore[attr-defined]


# Whether SciPy's linear interpolation is a weighted sum of the values at both ends of a piece.
_OF_WEIGHTS = NumpyVersion(scipy.__version__) >= "1.18.0"


def _linear_table(self: Value, x: Value) -> Value:
    reals("interpolate.interp1d", x)
    piece = splines.piece_of(x, self.x)
    low, high = splines.elements(self.x, piece), splines.elements(self.x, piece + 1)
    below, above = splines.elements(self._y, piece), splines.elements(self._y, piece + 1)
    if _OF_WEIGHTS:  # in SciPy's order of operations, to the last digit
        return ((x - low) / (high - low))[:, None] * above + ((high - x) / (high - low))[:, None] * below
    return (above - below) / (high - low)[:, None] * (x - low)[:, None] + below


_IN_TABLE = holds("x", "_y", "_fill_value_below", "_fill_value_above")

RULES: list[Reached] = [
    *reached_calls(_PPolyBase, _polynomial, PPoly),
    *reached_calls(EVALUATED_SPLINE, _bspline, BSpline),
    *reached_calls(EVALUATED_POLYNOMIAL, _polynomial_integral, PPoly, "integrate"),
    *reached_calls(EVALUATED_SPLINE, _spline_integral, BSpline, "integrate"),
    *((kind, "derivative", Method(_derivative, holds_arrays)) for kind in (PPoly, BSpline)),
    *((kind, "antiderivative", Method(_antiderivative, holds_arrays)) for kind in (PPoly, BSpline)),
    (CubicSpline, "__init__", _fitted(CubicSpline, _cubic_coefficients)),
    (PchipInterpolator, "__init__", _fitted(PchipInterpolator, _pchip_coefficients)),
    (Akima1DInterpolator, "__init__", _fitted(Akima1DInterpolator, _akima_coefficients)),
    (CubicHermiteSpline, "__init__", _hermite),
    (interp1d, "__init__", _interp1d),
    (interp1d, "_evaluate", Method(_table, _IN_TABLE)),
    (interp1d, "_call_linear", Method(_linear_table, _IN_TABLE)),
    (scipy.interpolate, "splev", splev),
    (scipy.interpolate, "splint", splint),
    (scipy.interpolate, "make_interp_spline", _make_interp_spline),
    (scipy.interpolate, "make_lsq_spline", _make_lsq_spline),
    *grids.RULES,
    *scattered.RULES,
    *surfaces.RULES,
]
