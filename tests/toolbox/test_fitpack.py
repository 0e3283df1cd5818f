"""Splines that FITPACK fits, against differences of exact smoothing splines and of SciPy's with a finer tolerance."""

import importlib

import numpy as np
import pytest
import scipy.interpolate as si
from differences import directional
from scipy.optimize import brentq

from effgrad import NotDifferentiable, grad, jvp

BACKEND = "numpy"
RNG = np.random.default_rng(0)
X = np.cumsum(RNG.uniform(0.5, 1.5, 25)) * 0.25
Y = np.sin(X) + 0.1 * RNG.normal(size=25)
W = RNG.uniform(0.5, 2, 25)
Q = np.linspace(X[0] + 0.1, X[-1] - 0.1, 7)


def exact(t, k, w, distance):
    """The smoothing spline with given knots, by its normal equations, as a function of the values."""

    def coefficients(y):
        rows = w[:, None] * si.BSpline.design_matrix(X, t, k).toarray()
        middles = (t[k:-k][1:] + t[k:-k][:-1]) / 2
        jumps = np.diff([si.BSpline(t, b, k)(middles, k) for b in np.eye(len(t) - k - 1)]).T

        def fitted(weight):
            return np.linalg.solve(rows.T @ rows + weight * jumps.T @ jumps, rows.T @ (w * y))

        def missing(logarithm):
            return np.sum((w * y - rows @ fitted(np.exp(logarithm))) ** 2) - distance

        return fitted(np.exp(brentq(missing, -40, 20, xtol=1e-14, rtol=1e-14)))

    return coefficients


FITS = {
    "splrep": lambda y: si.splrep(X, y, W, s=0.4),
    "UnivariateSpline": lambda y: si.UnivariateSpline(X, y, W, s=0.4)._eval_args,
    "splprep": lambda y: (lambda t, c, k: (t, c[0], k))(*si.splprep([y], W, X, s=0.4)[0]),
    "of degree 1": lambda y: si.splrep(X, y, W, k=1, s=0.6),
}


@pytest.mark.parametrize("name", FITS)
def test_a_smoothing_spline_has_the_derivatives_of_its_definition(name, run):
    fit = FITS[name]
    t, c, k = fit(Y)
    c = c[: len(t) - k - 1]
    assert len(t) > 2 * k + 2
    oracle = exact(t, k, W, np.sum((W * (Y - si.BSpline(t, c, k)(X))) ** 2))
    np.testing.assert_allclose(oracle(Y), c, rtol=1e-6)
    u, weights = np.cos(3 * np.arange(25.0)), np.cos(np.arange(len(c)))
    f = lambda y: np.sum(weights * fit(y)[1][: len(c)] ** 2)  # noqa: E731
    expected, _ = directional(lambda y: np.sum(weights * oracle(y) ** 2), Y, u, step=0.002)
    np.testing.assert_allclose(np.sum(run(grad)(f)(Y) * u), expected, rtol=1e-6)
    np.testing.assert_allclose(jvp(f, (Y,), (u,))[1], expected, rtol=1e-6)


def finer(function):
    """Run SciPy's Python form of FITPACK with a finer tolerance, so that its differences are smooth."""

    @pytest.mark.skipif(not hasattr(si, "make_splrep"), reason="from SciPy 1.15 on")
    def test(name, monkeypatch):
        monkeypatch.setattr(importlib.import_module("scipy.interpolate._fitpack_repro"), "TOL", 1e-12)
        function(name)

    return test


CASES = {
    "values": (lambda y: si.make_splrep(X, y, s=0.15)(Q), Y),
    "points": (lambda x: si.make_splrep(x, Y, s=0.15)(Q), X),
    "weights": (lambda w: si.make_splrep(X, Y, w=w, s=0.15)(Q), W),
    "smoothness": (lambda s: si.make_splrep(X, Y, w=W, s=s)(Q), np.float64(0.15)),
    "degree": (lambda y: si.make_splrep(X, y, s=0.25, k=5).derivative()(Q), Y),
    "a polynomial": (lambda y: si.make_splrep(X, y, s=15.0, xb=X[0] - 1)(Q), Y),
    "interpolation": (lambda x: si.InterpolatedUnivariateSpline(x, Y, bbox=[0, 9], k=4)(Q), X),
    "given knots": (lambda t: si.LSQUnivariateSpline(X, Y, t, W, ext=3)(Q + 1), np.array([1.5, 3.0, 4.0])),
    "distance": (lambda y: si.UnivariateSpline(X, y, s=15).get_residual() + np.zeros(7), Y),
    "integral": (lambda y: si.InterpolatedUnivariateSpline(X, y).integral(1.0, 3.0) + np.zeros(7), Y),
    "lengths": (lambda y: si.make_splprep([np.cos(X), y], s=3.0)[0](Q / 9)[1], Y),
    "slope": (lambda x: si.CubicSpline(x, Y).derivative()(Q), X),
    "slope of columns": (lambda y: si.make_interp_spline(X, np.stack([y, y**2]), 4, axis=1).derivative(2)(Q)[1], Y),
    "area of a spline": (lambda x: si.make_interp_spline(x, Y).antiderivative(2)(Q), X),
    "area": (lambda y: si.PchipInterpolator(X, y).antiderivative(2)(Q), Y),
}


@pytest.mark.parametrize("name", CASES)
@finer
def test_fits_agree_with_differences(name):
    f, at = CASES[name]
    u = np.float64(1.0) if at.ndim == 0 else 0.1 * np.cos(3 * np.arange(float(len(at))))
    np.testing.assert_array_equal(jvp(f, (at,), (u,))[0], f(at))
    g = lambda z: np.sum(np.cos(np.arange(7.0)) * f(z) ** 2)  # noqa: E731
    along = lambda z: np.sum(grad(g)(z) * u)  # noqa: E731
    expected, _ = directional(g, at, u, step=0.002)
    np.testing.assert_allclose([along(at), jvp(g, (at,), (u,))[1]], expected, rtol=1e-7, atol=1e-9)
    second, _ = directional(along, at, u, step=0.002)
    np.testing.assert_allclose(jvp(along, (at,), (u,))[1], second, rtol=1e-6, atol=1e-7)


@pytest.mark.filterwarnings("ignore")
def test_a_fit_that_has_not_converged_has_no_derivative():
    knots = np.array([*[X[0]] * 4, *X[[4, 9, 13, 15, 20]], *[X[-1]] * 4])
    s = 2 * np.sum((Y - np.polyval(np.polyfit(X, Y, 3), X)) ** 2)
    if hasattr(si, "make_splrep"):
        with pytest.raises(NotDifferentiable, match="has not converged"):
            grad(lambda y: si.make_splrep(X, y, s=s, t=knots)(1.0))(Y)
