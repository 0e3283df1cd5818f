"""Rules for `scipy.interpolate`: splines of two arguments (FITPACK), in the point, and through values on a grid.

A surface is a spline along x whose coefficients are splines along y. Through values on a grid it is two
interpolations, one along each axis, so that values and grid have derivatives. A smoothing surface, and one through
scattered points, has knots that FITPACK chooses by the values.

Dierckx, Curve and surface fitting with splines (1993), chapters 2 and 10.
"""

import scipy.interpolate
from scipy.interpolate import BivariateSpline, RectBivariateSpline
from scipy.interpolate._fitpack2 import _BivariateSplineBase

from effgrad.arrays.layout import shape_of
from effgrad.arrays.reach import np
from effgrad.functions.scipy import splines
from effgrad.functions.scipy.interpolants import plain_points, require_increasing
from effgrad.functions.scipy.tables import Method, reals, require, traced_inside
from effgrad.primitives.given import as_computed, run_outside, with_value
from effgrad.vocabulary import Option, Reached, Value

plain_call = _BivariateSplineBase.__call__


def _table(t: Value, k: int, c: Value) -> Value:
    """The coefficients as a matrix with a row for each B-spline of the first axis, whose knots are `t`."""
    return np.reshape(c, (shape_of(t)[0] - k - 1, -1))


def _within(t: Value, k: int, x: Value) -> Value:
    """The points that FITPACK evaluates: beyond an end of the interval, the end."""
    reals("interpolate (FITPACK)", x)
    return np.clip(x, t[k], t[shape_of(t)[0] - k - 1])


def _values(
    tx: Value, ty: Value, c: Value, x: Value, y: Value, degrees: tuple[int, int], orders: tuple[int, int], grid: bool
) -> Value:
    """The derivative of given orders of a surface: on the grid of x and y, or at pairs of them."""
    (kx, ky), (dx, dy) = degrees, orders
    x, y = np.asarray(x), np.asarray(y)
    if not grid:
        x, y = np.broadcast_arrays(x, y)
    along_x = splines.de_boor(tx, _table(tx, kx, c), kx, _within(tx, kx, np.reshape(x, (-1,))), dx)
    inside = _within(ty, ky, np.reshape(y, (-1,)))
    if grid:
        return np.transpose(splines.de_boor(ty, np.transpose(along_x), ky, inside, dy))
    each = splines.de_boor(ty, np.eye(shape_of(along_x)[1]), ky, inside, dy)
    return np.reshape(np.sum(along_x * each, axis=1), shape_of(x))


def _by_fitpack(
    tx: Value, ty: Value, c: Value, x: Value, y: Value, degrees: tuple[int, int], orders: tuple[int, int], grid: bool
) -> Value:
    return plain_call(_BivariateSplineBase._from_tck((tx, ty, c, *degrees)), x, y, *orders, grid)


values = as_computed(_by_fitpack, _values)


def _call(self: Value, x: Value, y: Value, dx: int = 0, dy: int = 0, grid: bool = True) -> Value:
    return values(*self.tck[:3], x, y, self.degrees, (dx, dy), grid)


def _ev(self: Value, xi: Value, yi: Value, dx: int = 0, dy: int = 0) -> Value:
    return _call(self, xi, yi, dx, dy, grid=False)


def _integral(self: Value, xa: Value, xb: Value, ya: Value, yb: Value) -> Value:
    (tx, ty, c), (kx, ky) = self.tck[:3], self.degrees

    def between(t: Value, c: Value, k: int, low: Value, high: Value) -> Value:
        first, last = (splines.integral_of_spline(t, c, k, np.asarray(_within(t, k, end))) for end in (low, high))
        return last - first

    return between(ty, between(tx, _table(tx, kx, c), kx, xa, xb), ky, ya, yb)


def _partial_derivative(self: Value, dx: int, dy: int) -> Value:
    (tx, ty, c), (kx, ky) = self.tck[:3], self.degrees
    plainly = _BivariateSplineBase._from_tck((*plain_points((tx, ty, c)), kx, ky))
    result = run_outside(lambda: plainly.partial_derivative(dx, dy))
    tx, along_x = splines.derivative_of_spline(tx, _table(tx, kx, c), kx, dx)
    ty, along_y = splines.derivative_of_spline(ty, np.transpose(along_x), ky, dy)
    arrays = tx, ty, np.reshape(np.transpose(along_y), (-1,))
    result.tck = tuple(with_value(ours, theirs) for ours, theirs in zip(arrays, result.tck, strict=True))
    return result


def _through_grid(
    self: Value, x: Value, y: Value, z: Value, bbox: Option = (None,) * 4, kx: int = 3, ky: int = 3, s: Value = 0,
    maxit: int = 20,
) -> None:  # fmt: skip
    name = "interpolate.RectBivariateSpline"
    require(not traced_inside((bbox, s)) and s == 0, name, "the values and the grid of a surface through them, s=0")
    for points in (x, y):
        require_increasing(points)
    given = plain_points((x, y, z))
    run_outside(lambda: _plain_init(self, *given, list(bbox), kx, ky, s, **({} if maxit == 20 else {"maxit": maxit})))
    x, y, z = np.ravel(x), np.ravel(y), np.asarray(z)
    reals(name, x, y, z)
    *knots, coefficients = self.tck
    if traced_inside((x, y)):
        require(all(end is None for end in bbox), name, "the grid where bbox is left out")
        ours = splines.interpolation_knots(x, kx, None), splines.interpolation_knots(y, ky, None)
        knots = [with_value(one, theirs) for one, theirs in zip(ours, knots, strict=True)]
    along_x = splines.interpolation_coefficients(x, z, knots[0], kx, None)
    along_y = splines.interpolation_coefficients(y, np.transpose(along_x), knots[1], ky, None)
    self.tck = *knots, with_value(np.reshape(np.transpose(along_y), (-1,)), coefficients)


_plain_init = RectBivariateSpline.__init__


def _bisplev(x: Value, y: Value, tck: Value, dx: int = 0, dy: int = 0) -> Value:
    tx, ty, c = map(np.asarray, tck[:3])
    x, y = np.atleast_1d(x), np.atleast_1d(y)
    table = _values(tx, ty, c, x, y, tuple(tck[3:]), (dx, dy), True)
    if shape_of(x)[0] > 1:
        return table
    return table[0] if shape_of(y)[0] > 1 else table[0, 0]


def _is_traced(self: Value) -> bool:
    return bool(traced_inside(self.tck))


RULES: list[Reached] = [
    (_BivariateSplineBase, "__call__", Method(_call, _is_traced)),
    (_BivariateSplineBase, "partial_derivative", Method(_partial_derivative, _is_traced)),
    (BivariateSpline, "ev", Method(_ev, _is_traced)),
    (BivariateSpline, "integral", Method(_integral, _is_traced)),
    (RectBivariateSpline, "__init__", _through_grid),
    (scipy.interpolate, "bisplev", as_computed(scipy.interpolate.bisplev, _bisplev)),
]
