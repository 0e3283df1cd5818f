"""`make_smoothing_spline` against the dense equations of smoothing splines, with SciPy's search for lam replaced."""

import inspect

import numpy as np
import pytest
import scipy.interpolate as si
from differences import directional
from scipy.optimize import brentq

from effgrad import NoRule, NotDifferentiable, compile, grad, jvp, vmap

RNG = np.random.default_rng(1)
COUNT = 30
X = 0.3 * np.cumsum(RNG.uniform(0.5, 1.5, COUNT))
Y = np.sin(X) + 0.2 * RNG.normal(size=COUNT)
W = RNG.uniform(0.5, 2, COUNT)
Q = np.linspace(X[0] + 0.1, X[-1] - 0.1, 7)
WEIGHTS = np.cos(np.arange(7.0))


def penalty(x):
    """The matrix of the integral of the squared second derivative of the natural spline through values at x."""
    middles = (x[1:] + x[:-1]) / 2
    curves = np.diff([si.CubicSpline(x, e, bc_type="natural")(x, 2) for e in np.eye(len(x))], axis=1)
    at = np.array([si.CubicSpline(x, e, bc_type="natural")(middles, 2) for e in np.eye(len(x))])
    # A squared linear function has the integral of its middle, plus a twelfth of its squared rise, times the length.
    return (at * np.diff(x)) @ at.T + (curves * np.diff(x)) @ curves.T / 12


def smooth(x, y, w, lam=None):
    """The values at Q; without lam, for the root of the differentiated score of cross-validation near SciPy's lam."""
    k = penalty(x)
    hat = lambda lam: np.linalg.solve(np.diag(w) + lam * k, np.diag(w))  # noqa: E731

    def slope(log):
        lam = np.exp(log)
        a = hat(lam)
        moved = -np.linalg.solve(np.diag(w) + lam * k, k @ a)
        left = y - a @ y
        return -(left @ (moved @ y)) / (left @ left) + np.trace(moved) / (len(x) - np.trace(a))

    lam = np.exp(brentq(slope, -6.0, 2.0, xtol=1e-15, rtol=1e-14)) if lam is None else lam
    return WEIGHTS @ si.CubicSpline(x, hat(lam) @ y, bc_type="natural")(Q)


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("lam", [None, 0.3])
def test_a_smoothing_spline_has_the_derivatives_of_its_definition(place, lam):
    def given(z):
        return [*(X, Y, W)[:place], z, *(X, Y, W)[place + 1 :], lam]

    f = lambda z: np.sum(WEIGHTS * si.make_smoothing_spline(*given(z))(Q))  # noqa: E731
    at, u = (X, Y, W)[place], 0.3 * np.cos(3 * np.arange(COUNT))
    np.testing.assert_allclose(f(at), smooth(*given(at)), rtol=1e-6)
    expected, _ = directional(lambda z: smooth(*given(z)), at, u, step=0.01)
    close = dict(rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(grad(f)(at) @ u, expected, **close)
    np.testing.assert_allclose(jvp(f, (at,), (u,))[1], expected, **close)
    np.testing.assert_allclose(compile(grad(f))(at) @ u, expected, **close)
    np.testing.assert_allclose(vmap(grad(f))(np.stack([at, at])) @ u, [expected, expected], **close)
    step = 1e-3
    second = (smooth(*given(at + step * u)) - 2 * smooth(*given(at)) + smooth(*given(at - step * u))) / step**2
    np.testing.assert_allclose(jvp(grad(f), (at,), (u,))[1] @ u, second, rtol=1e-3, atol=1e-5)


def test_lam_may_be_traced():
    f = lambda lam: np.sum(WEIGHTS * si.make_smoothing_spline(X, Y, W, lam)(Q))  # noqa: E731
    expected, _ = directional(lambda lam: smooth(X, Y, W, lam), np.float64(0.3), 1.0, step=0.01)
    np.testing.assert_allclose([grad(f)(0.3), jvp(f, (0.3,), (1.0,))[1]], expected, rtol=1e-8)


@pytest.mark.skipif(
    "axis" not in inspect.signature(si.make_smoothing_spline).parameters, reason="an older SciPy takes vectors only"
)
@pytest.mark.parametrize("lam", [None, 0.3])
def test_each_column_of_values_is_smoothed_by_itself(lam):
    several = np.stack([Y, np.cos(X) + 0.3 * RNG.normal(size=COUNT)], axis=1)
    apart = [grad(lambda y: np.sum(si.make_smoothing_spline(X, y, lam=lam)(Q) ** 2))(y) for y in several.T]
    found = grad(lambda y: np.sum(si.make_smoothing_spline(X, y, lam=lam)(Q) ** 2))(several)
    np.testing.assert_allclose(found, np.transpose(apart), rtol=1e-9, atol=1e-12)
    f = lambda y: np.sum(si.make_smoothing_spline(X, y, lam=lam, axis=1)(Q) ** 2)  # noqa: E731
    np.testing.assert_allclose(grad(f)(several.T), apart, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("y", [0.01 * np.sin(X), (-1.0) ** np.arange(COUNT)], ids=["exact", "rough"])
def test_lam_is_constant_at_an_end_of_the_search(y):
    """There SciPy's differences are smooth, as its search ends at the same place."""
    f = lambda y: np.sum(WEIGHTS * si.make_smoothing_spline(X, y)(Q))  # noqa: E731
    u = np.cos(3 * np.arange(COUNT))
    expected = (f(y + 1e-6 * u) - f(y - 1e-6 * u)) / 2e-6
    np.testing.assert_allclose(grad(f)(y) @ u, expected, rtol=1e-6)


def test_a_straight_line_determines_no_lam():
    with pytest.raises(NotDifferentiable, match="on a straight line"):
        grad(lambda y: np.sum(WEIGHTS * si.make_smoothing_spline(X, y)(Q)))(2 * X - 1)


def test_complex_values_are_refused_by_name():
    with pytest.raises((NoRule, TypeError), match="make_smoothing_spline|complex"):
        grad(lambda y: np.sum(np.real(si.make_smoothing_spline(X, y * 1j, lam=0.3)(Q))))(Y)
