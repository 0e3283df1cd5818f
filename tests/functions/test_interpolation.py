"""Interpolants, in points, values and knots, against SciPy's values and their differences."""

import numpy as np
import pytest
import scipy.interpolate as si
from differences import directional

from effgrad import grad, jvp, value_and_grad

RNG = np.random.default_rng(3)
XS = np.cumsum(RNG.uniform(0.5, 1.5, 7))
YS = np.sin(XS) + 0.3 * XS
SLOPES = np.cos(XS)
TABLE = RNG.normal(size=(7, 2))
Q = np.array([XS[0] + 0.1, 2.3, 3.9, 5.05, XS[-1] - 0.2])
KNOTS = np.concatenate([[XS[0]] * 4, [2.0, 3.1, 4.4], [XS[-1]] * 4])
FEWER = np.concatenate([[XS[0] - 1] * 4, [3.1], [XS[-1] + 1] * 4])
GRID = (np.array([0.0, 1.1, 2.0, 3.3, 4.1, 5.2, 6.0]), np.array([0.0, 0.8, 2.1, 2.9, 4.2, 5.0]))
VALUES = RNG.normal(size=(7, 6))
AT = RNG.uniform(0.5, 4.5, (5, 2))

# SciPy solves for splines over a grid by an iteration; with its own tolerance, differences are rough.
EXACT = {"rtol": 1e-13, "atol": 1e-13}
GRIDS = {
    **{method: (method, {}) for method in ("linear", "nearest", "pchip")},
    **{method: (method, {"solver_args": EXACT}) for method in ("slinear", "cubic", "quintic")},
}
# Functions of the knots (or grid), the values and the points.
CASES = {
    **{f"CubicSpline {bc}": (lambda x, y, q, bc=bc: si.CubicSpline(x, y, bc_type=bc)(q), XS, YS, Q)
       for bc in ("not-a-knot", "natural", "clamped")},
    "CubicSpline ends": (lambda x, y, q: si.CubicSpline(x, y, bc_type=((1, 0.3), (2, -0.4)))(q), XS, YS, Q),
    "CubicSpline periodic": (
        lambda x, y, q: si.CubicSpline(x, np.concatenate([y[:-1], y[:1]]), bc_type="periodic")(q + 9), XS, YS, Q),
    "CubicSpline columns": (lambda x, y, q: si.CubicSpline(x, y)(q, 1), XS, TABLE, Q),
    "CubicSpline axis": (lambda x, y, q: si.CubicSpline(x, y.T, axis=1)(q), XS, TABLE, Q),
    "CubicSpline of 2 points": (lambda x, y, q: si.CubicSpline(x[:2], y[:2])(q), XS, YS, Q),
    "CubicSpline of 3 points": (lambda x, y, q: si.CubicSpline(x[:3], y[:3])(q), XS, YS, Q),
    "CubicSpline of 3 points around": (
        lambda x, y, q: si.CubicSpline(x[:3], y[np.array([0, 1, 0])], bc_type="periodic")(q), XS, YS, Q),
    "PchipInterpolator": (lambda x, y, q: si.PchipInterpolator(x, y)(q), XS, YS, Q),
    "Pchip columns": (lambda x, y, q: si.PchipInterpolator(x, y)(q), XS, TABLE, Q),
    "CubicHermiteSpline": (lambda x, y, q: si.CubicHermiteSpline(x, y, SLOPES * y)(q), XS, YS, Q),
    "Akima1DInterpolator": (lambda x, y, q: si.Akima1DInterpolator(x, y)(q), XS, YS, Q),
    "Akima modified": (lambda x, y, q: si.Akima1DInterpolator(x, y, method="makima")(q), XS, TABLE, Q),
    "PPoly": (lambda x, y, q: si.PPoly(np.stack([y[1:], y[:-1] ** 2]), x)(q), XS, YS, Q),
    "PPoly derivative": (lambda x, y, q: si.PPoly(np.stack([y[1:], y[:-1] ** 2, y[1:]]), x)(q, 1), XS, YS, Q),
    "BSpline": (lambda t, c, q: si.BSpline(t, c, 3)(q), KNOTS, YS, Q),
    "BSpline derivative": (lambda t, c, q: si.BSpline(t, c, 3)(q, nu=2), KNOTS, TABLE, Q),
    "BSpline periodic": (lambda t, c, q: si.BSpline(t, c, 3, extrapolate="periodic")(q + 11), KNOTS, YS, Q),
    "PPoly integral": (lambda x, y, q: si.CubicSpline(x, y).integrate(q[0], q[3]), XS, YS, Q),
    "integral of columns": (lambda x, y, q: si.PchipInterpolator(x, y).integrate(q[3], q[0] - 9), XS, TABLE, Q),
    "BSpline integral": (lambda t, c, q: si.BSpline(t, c, 3).integrate(q[0], q[3]), KNOTS, YS, Q),
    "BSpline integral to its ends": (
        lambda t, c, q: si.BSpline(t, c, 3, extrapolate=False).integrate(q[0] - 9, q[2]), KNOTS, TABLE, Q),
    "splint": (lambda t, c, q: si.splint(q[0], q[3] + 9, (t, np.concatenate([c, np.zeros(4)]), 3)), KNOTS, YS, Q),
    **{f"splrep {k}": (lambda x, y, q, k=k: si.splev(q, si.splrep(x, y, k=k)), XS, YS, Q) for k in (1, 3, 5)},
    "splrep with knots": (
        lambda x, y, q: si.splev(q, si.splrep(x, y, w=y**2 + 1, t=[2.5, 4.0], task=-1)), XS, YS, Q),
    "make_lsq_spline": (
        lambda x, y, q: si.make_lsq_spline(x, y, FEWER, w=[2.0, 1, 1, 3, 1, 1, 2])(q), XS, TABLE, Q),
    "splev": (lambda t, c, q: si.splev(q, (t, np.concatenate([c, np.zeros(4)]), 3)), KNOTS, YS, Q),
    **{f"make_interp_spline {k}": (lambda x, y, q, k=k: si.make_interp_spline(x, y, k)(q), XS, YS, Q)
       for k in (1, 2, 3, 4, 5)},
    "make_interp_spline natural": (lambda x, y, q: si.make_interp_spline(x, y, bc_type="natural")(q), XS, TABLE, Q),
    "make_interp_spline clamped": (lambda x, y, q: si.make_interp_spline(x, y, bc_type="clamped")(q), XS, YS, Q),
    **{f"grid {method}": (
        lambda g, v, q, options=options: si.RegularGridInterpolator((g, GRID[1]), v, *options[:1], **options[1])(q),
        GRID[0], VALUES, AT) for method, options in GRIDS.items()},
    "grid downward": (
        lambda g, v, q: si.RegularGridInterpolator((g[::-1], GRID[1]), v, "cubic", solver_args=EXACT)(q),
        GRID[0], VALUES, AT),
    **{f"interp1d {kind}": (
        lambda x, y, q, kind=kind: si.interp1d(x, y, kind, axis=0)(q) * x[1], XS[[2, 0, 1, 3, 5, 4, 6]], TABLE, Q)
       for kind in ("linear", "nearest", "nearest-up", "previous", "next", "zero", "slinear", "quadratic", "cubic")},
    **{f"interp1d {kind} beyond": (
        lambda x, y, q, kind=kind, far=far: si.interp1d(x, y, kind, fill_value="extrapolate")(q + far) * x[1],
        XS, YS, Q)
       for kind, far in (("linear", -2.0), ("nearest", 2.0), ("previous", 0.5), ("next", -0.5), ("cubic", 1.0))},
    "interp1d filled": (
        lambda x, y, q: si.interp1d(x, y.T, bounds_error=False, fill_value=(y[0] * y[1], q[:2]))(2 * q - 3),
        XS, TABLE, Q),
    "interp1d filled with one value": (
        lambda x, y, q: si.interp1d(x, y, bounds_error=False, fill_value=y[2])(2 * q - 3), XS, YS, Q),
    "grid of columns": (
        lambda g, v, q: si.RegularGridInterpolator((g,), v, "cubic", False, None, solver_args=EXACT)(q[:, :1]),
        GRID[0], VALUES, AT),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_value_is_scipys_to_the_bit(name):
    f, *args = CASES[name]
    for place in range(2 if name == "CubicSpline of 3 points" else 3):
        moved = lambda z, place=place: f(*args[:place], z, *args[place + 1 :])  # noqa: E731
        np.testing.assert_array_equal(jvp(moved, (args[place],), (np.ones_like(args[place]),))[0], f(*args))


@pytest.mark.thinned(4)
@pytest.mark.parametrize("name, place", [(name, place) for name in CASES for place in range(3)
    if name != "CubicSpline of 3 points" or place < 2])
def test_derivatives_agree_with_differences(name, place):
    f, *args = CASES[name]
    weights = np.cos(np.arange(np.size(f(*args)))).reshape(np.shape(f(*args)))
    u = np.random.default_rng(place).normal(size=args[place].shape)
    if len(args[place]) == len(KNOTS):  # knots that coincide stay together
        u[:4], u[-4:] = u[0], u[-1]

    def g(z):
        y = f(*args[:place], z, *args[place + 1 :])
        return np.sum(weights * (y + 0.3 * y * y))

    expected, error = directional(g, args[place], u, step=0.002)
    close = dict(rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(np.sum(grad(g)(args[place]) * u), expected, **close)
    np.testing.assert_allclose(jvp(g, (args[place],), (u,))[1], expected, **close)
    along = lambda z: np.sum(grad(g)(z) * u)  # noqa: E731
    second, error = directional(along, args[place], u, step=0.002)
    np.testing.assert_allclose(jvp(along, (args[place],), (u,))[1], second, rtol=1e-5, atol=1e-5)


def test_a_smoothing_spline_is_linear_in_the_values():
    f = lambda y: np.sum(np.sin(si.make_smoothing_spline(XS, y, lam=0.3)(Q)))  # noqa: E731
    value, derivative = value_and_grad(f)(YS)
    assert value == f(YS)
    u = np.cos(np.arange(7.0))
    np.testing.assert_allclose(np.sum(derivative * u), directional(f, YS, u)[0], rtol=1e-8)
