"""Functions that leave out coefficients that are 0: their derivative in such a coefficient is NaN or right, never 0.

The result has another shape beside the point, so where one comes out of it the derivative was silently that of a
constant. A zero that is a constant itself may be left out without harm.
"""

import numpy as np
import pytest
from differences import slope
from numpy.polynomial import Polynomial, chebyshev
from scipy import signal, stats

from effgrad import compile, grad, hessian, jvp

W, TIMES = np.array([0.3, 1.1]), np.array([0.0, 0.5, 1.0])
DROPPING = {
    "a written array": lambda t: np.poly1d(written([0.0, t, 1.0, 2.0]))(3.0),
    "bilinear": lambda t: np.polyval(signal.bilinear([t, 1.0, 2.0], [1.0, 2.0, 3.0])[0], 0.3),
    "residuez": lambda t: np.sum(np.abs(signal.residuez([2.0, 1.0, t], [1.0, 2.5, 1.0])[0]) ** 2),
    "poly1d": lambda t: np.poly1d([t, 1.0, 2.0])(3.0),
    "poly1d of zeros": lambda t: np.poly1d([t, t])(3.0),
    "product of poly1d": lambda t: (np.poly1d([t, 1.0, 2.0]) * np.poly1d([1.0, 2.0]))(3.0),
    "polyadd": lambda t: np.sum(np.polyadd(np.poly1d([1.0, 2.0]), np.poly1d([t, 1.0, 2.0])).coeffs),
    "polymul": lambda t: np.polyval(np.polymul([t, 1.0, 2.0], [t, 3.0]), 2.0),
    "a first coefficient": lambda t: np.sum(np.abs(np.roots([t, 1.0, 2.0]))),
    "before roots at 0": lambda t: np.sum(np.roots([t, 2.0, 0.0, 0.0])),
    "two last coefficients": lambda t: np.sum(np.abs(np.roots([1.0, 3.0, t, t]))),
    "product": lambda t: (Polynomial([1.0, 2.0, t]) * Polynomial([1.0, 2.0]))(3.0),
    "sum": lambda t: (Polynomial([1.0, 2.0, t]) + Polynomial([1.0, 2.0]))(3.0),
    "quotient": lambda t: (Polynomial([1.0, 2.0, 3.0, t]) // Polynomial([1.0, 2.0]))(3.0),
    "chebadd": lambda t: chebyshev.chebval(0.3, chebyshev.chebadd([1.0, 2.0, t], [1.0, 0.0])),
    "chebmul": lambda t: chebyshev.chebval(0.3, chebyshev.chebmul([1.0, 2.0, t], [1.0, 3.0])),
    "normalize": lambda t: np.sum(signal.normalize([t, 1.0, 2.0], [1.0, 2.0, 3.0])[0]),
    "rows of a numerator": lambda t: np.sum(signal.normalize([[t, 1.0, 2.0], [0.0, 3.0, 4.0]], [1.0, 2.0, 3.0])[0]),
    "frequency response": lambda t: response(signal.TransferFunction([t, 1.0, 2.0], [1.0, 2.0, 3.0])),
    "a first denominator": lambda t: response(signal.TransferFunction([1.0, 2.0], [t, 2.0, 3.0])),
    "step": lambda t: np.sum(signal.TransferFunction([t, 1.0, 2.0], [1.0, 2.0, 3.0]).step(T=TIMES)[1]),
    "impulse": lambda t: np.sum(signal.impulse(([t, 1.0, 2.0], [1.0, 2.0, 3.0, 1.0]), T=TIMES)[1]),
    "tf2ss": lambda t: np.sum(signal.tf2ss([t, 1.0, 2.0], [1.0, 2.0, 3.0])[2]),
    "lp2bp": lambda t: np.sum(signal.lp2bp([t, 1.0, 2.0], [1.0, 2.0, 3.0], 2.0)[0]),
    "residue": lambda t: np.sum(np.abs(signal.residue([t, 1.0, 2.0], [1.0, 2.5, 3.0])[0]) ** 2),
    **{f"pearson3 {name}": lambda t, name=name: getattr(stats.pearson3, name)(0.3, t)
       for name in ("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf")},
}  # fmt: skip


def written(items):
    array = np.zeros(len(items))
    for i, item in enumerate(items):
        array[i] = item
    return array


def response(system):
    return np.sum(np.abs(system.freqresp(W)[1]) ** 2)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", DROPPING)
def test_a_coefficient_that_is_left_out_has_no_derivative(name):
    f = DROPPING[name]
    found = [
        grad(f)(0.0), grad(f, mode="reverse")(0.0), jvp(f, (0.0,), (1.0,))[1], compile(grad(f))(0.0),
        jvp(lambda t: f(0.0 * t + t), (0.0,), (1.0,))[1],
    ]  # fmt: skip
    assert np.all(np.isnan(found)), found
    beside = grad(f)(0.01)
    np.testing.assert_allclose(beside, slope(f, 0.01, 1.0, 1e-4), rtol=1e-5)


CONSTANT = {
    "trim_zeros": lambda t: np.sum(np.trim_zeros(np.concatenate([np.zeros(2), [t, 1.0], np.zeros(1)]))),
    "poly1d": lambda t: np.poly1d([0.0, 0.0, t, 1.0])(3.0),
    "Polynomial": lambda t: (Polynomial([1.0, t, 0.0, 0.0]) * Polynomial([t, 1.0, 0.0]))(3.0),
    "roots": lambda t: np.sum(np.abs(np.roots([0.0, 1.0, 3.0, t, 0.0, 0.0])) ** 3),
    "normalize": lambda t: np.sum(signal.normalize([0.0, t, 2.0], [t, 2.0, 3.0])[0]),
    "written": lambda t: np.sum(np.trim_zeros(written([0.0, t, 1.0, 0.0])) ** 2),
    "a filter": lambda t: np.sum(np.abs(signal.tf2zpk(*signal.butter(3, t, output="ba"))[1]) ** 2),
    "pearson3": lambda t: stats.pearson3.cdf(t, 0.0),
    "zero times": lambda t: np.poly1d(t * np.array([0.0, 1.0]))(3.0),
    "a difference": lambda t: (np.poly1d([t, 1.0]) - np.poly1d([t, 2.0 * t]))(3.0),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CONSTANT)
def test_zeros_that_are_constants_do_no_harm(name):
    f = CONSTANT[name]
    expected = slope(f, 0.4, 1.0, 1e-3)
    for derivative in (grad(f), grad(f, mode="reverse"), compile(grad(f)), lambda t: jvp(f, (t,), (1.0,))[1]):
        np.testing.assert_allclose(derivative(0.4), expected, rtol=1e-6)


def test_a_simple_root_at_zero_moves_with_the_last_coefficient():
    """It was a constant. Its derivatives are -1 / b and -2 a / b**3 by the implicit function theorem."""

    def f(p):
        return np.sum(np.where(np.roots(p) == 0, np.roots(p), 0.0))

    p = np.array([2.0, 3.0, 0.0])
    a, b = p[:2]
    expected = [[0, 0, 0], [0, 0, 1 / b**2], [0, 1 / b**2, -2 * a / b**3]]
    np.testing.assert_allclose(grad(f)(p), [0, 0, -1 / b], atol=1e-14)
    np.testing.assert_allclose(hessian(f)(p), expected, atol=1e-13)
    weights = np.array([1.0, 2.0, 3.0])
    q = np.array([1.0, -2.0, 5.0, 0.0])
    np.testing.assert_array_equal(grad(lambda q: np.abs(np.roots(q)) @ weights)(q).shape, q.shape)
