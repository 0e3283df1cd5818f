"""A compiled program of a function with a smooth derivative serves arguments near those it was recorded with.

`CubicSpline(x, y)`, `np.fromiter`, `np.roots`, `np.unique` and 40 others were compiled anew for each value, and ran as
plain Python after three calls.
"""

import warnings

import numpy as np
import pytest
import scipy.interpolate
import scipy.ndimage
import scipy.signal
import scipy.stats

from effgrad import compile, grad

AT = np.array([0.3, 1.1, 1.7, 2.4, 3.2])
X = np.array([0.4, 1.3, 0.7, 2.2, 1.9])

PROGRAMS = {
    "fromiter": lambda x: np.sum(np.fromiter(map(lambda v: float(np.sin(v)), x), dtype=float) ** 2),
    "CubicSpline": lambda x: scipy.interpolate.CubicSpline(AT, x)(1.4),
    "make_interp_spline": lambda x: scipy.interpolate.make_interp_spline(AT, x, k=3)(1.4),
    "interp1d": lambda x: scipy.interpolate.interp1d(AT * x[0], x, kind="cubic")(0.5),
    "RectBivariateSpline": lambda x: scipy.interpolate.RectBivariateSpline(AT, AT, np.outer(x, x))(1.0, 2.0)[0, 0],
    "roots": lambda x: np.sum(np.abs(np.roots(x)) ** 2),
    "polynomials": lambda x: np.sum((np.poly1d(x) * np.poly1d(x[:2])).coeffs ** 2),
    "nonzero": lambda x: np.sum(x[np.nonzero(x)] ** 2) + np.sum(x[np.argwhere(x)[:, 0]] ** 3),
    "unique": lambda x: np.sum(np.unique(x)[:2] ** 2) + np.sum(np.union1d(x, AT)[:3] ** 3),
    "intersect1d": lambda x: np.sum(np.intersect1d(np.append(x, 1.1), np.append(x**1, AT)) ** 2),
    "setdiff1d": lambda x: np.sum(np.setdiff1d(x, x[:2]) ** 2),
    "gaussian_filter": lambda x: np.sum(scipy.ndimage.gaussian_filter1d(x, 0.3 + x[0] / 10) ** 2),
    "tf2zpk": lambda x: np.sum(np.abs(scipy.signal.tf2zpk(x[:2], x[2:])[0]) ** 2),
    "ecdf": lambda x: np.sum(scipy.stats.ecdf(x).cdf.quantiles ** 2),
    "whole part": lambda x: x[0] * int(3 * x[3]) + x[1] * int(-x[3]),
}
if np.lib.NumpyVersion(scipy.__version__) < "1.18.0":  # later ones refuse the attribute by name
    PROGRAMS["coefficients"] = lambda x: scipy.interpolate.CubicSpline(AT, x).c[0, 1] ** 2


@pytest.mark.parametrize("name", PROGRAMS)
def test_near_arguments_take_one_path(name):
    f = PROGRAMS[name]
    g = compile(grad(f))
    for scale in (1.0, 1.0001, 0.9998):
        x = scale * X
        slopes = [(f(x + e) - f(x - e)) / 2e-5 for e in 1e-5 * np.eye(5)]
        np.testing.assert_allclose(g(x), slopes, rtol=1e-6, atol=1e-7)
    assert "1 programs" in repr(g)


def test_other_arguments_take_their_own_path():
    """A guard that is left out would show here: other orders, zeros, whole parts, and a spline that is not periodic."""
    for name in ("nonzero", "unique", "intersect1d", "setdiff1d", "roots", "whole part", "polynomials"):
        f = PROGRAMS[name]
        g = compile(grad(f))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for x in (X, X[::-1], X + np.array([0.0, 0.0, 0.0, 3.0, 0.0]), X * (X > 0.5), X[[0, 1, 0, 3, 4]]):
                np.testing.assert_allclose(g(x), grad(f)(x), rtol=1e-13, atol=1e-13)
    periodic = compile(lambda y: scipy.interpolate.CubicSpline(AT, y, bc_type="periodic")(1.0))
    assert np.isfinite(periodic(np.array([1.0, 2.0, 1.5, 0.5, 1.0])))
    for wrong in (X, np.full(5, np.nan)):
        with pytest.raises(ValueError):
            periodic(wrong)
