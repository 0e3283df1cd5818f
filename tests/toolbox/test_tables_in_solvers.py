"""Models and residuals that are tables of pandas or xarray, given to optimisers and differentiated through them."""

import numpy as np
import pandas as pd
import pytest
import scipy.integrate
import scipy.optimize
import xarray as xr

from effgrad import compile, grad, optimize, vmap

TIMES = np.arange(6.0)
VALUES = 2 * np.exp(-0.5 * TIMES) + 0.01 * np.cos(TIMES)
TABLES = {"Series": pd.Series, "DataArray": lambda x: xr.DataArray(x, dims="t")}
TIGHT = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15}


def model(t, a, b):
    return a * np.exp(-b * t)


FITS = {
    "curve_fit": lambda solvers, t, y: solvers.curve_fit(model, t, y)[0],
    "weights": lambda solvers, t, y: solvers.curve_fit(model, t, y, p0=[1, 1], sigma=1 + TIMES)[1],
    "residuals": lambda solvers, t, y: solvers.least_squares(lambda p: model(t, *p) - y, np.array([1.0, 1.0])).x,
    "a sum": lambda solvers, t, y: solvers.minimize(
        lambda p: ((model(t, p[0], p[1]) - y) ** 2).sum(), np.array([1.0, 1.0]), tol=1e-10).x,
}  # fmt: skip


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("name", FITS)
def test_optimisers_take_tables(kind, name):
    """The results were refused: "the function returns a Series, and an optimiser takes real numbers"."""
    t, y = map(TABLES[kind], (TIMES, VALUES))
    expected = FITS[name](scipy.optimize, TIMES, VALUES)
    np.testing.assert_allclose(FITS[name](optimize, t, y), expected, rtol=1e-4)


SOLUTIONS = {
    "curve_fit": lambda c, t, y: scipy.optimize.curve_fit(model, t, y * c + c**2 * 0.1 * t, p0=[1, 1], **TIGHT)[0],
    "least_squares": lambda c, t, y: scipy.optimize.least_squares(
        lambda p: model(t, *p) - y * c - 0.1 * c**2 * t, [1.0, 1.0], **TIGHT).x,
    "minimize": lambda c, t, y: scipy.optimize.minimize(
        lambda p: ((model(t, p[0], p[1]) - y * c - 0.1 * c**2 * t) ** 2).sum(), [1.0, 1.0], tol=1e-9).x,
    "root": lambda c, t, y: scipy.optimize.root(lambda p: p**3 - (c * y)[:2] - t[:2] - 1, [1.0, 1.0], tol=1e-13).x,
}  # fmt: skip


@pytest.mark.thinned(4)
@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("name", SOLUTIONS)
def test_solutions_of_equations_of_tables_have_derivatives(kind, name):
    t, y = map(TABLES[kind], (TIMES, VALUES))
    plain = SOLUTIONS[name]
    if name == "root":
        t, y = t[:2], y[:2]
    differences = [(plain(1.1 + h, TIMES, VALUES) - plain(1.1 - h, TIMES, VALUES)) / (2 * h) for h in (1e-3, 5e-4)]
    expected = np.sum((4 * differences[1] - differences[0]) / 3 * [1, 2])

    def f(c):
        return np.sum(plain(c, t, y) * np.array([1.0, 2.0]))

    np.testing.assert_allclose(grad(f)(1.1), expected, rtol=1e-5)
    np.testing.assert_allclose(compile(grad(f))(1.1), expected, rtol=1e-5)
    np.testing.assert_allclose(vmap(grad(f))(np.array([1.1, 1.2]))[0], expected, rtol=1e-5)


class Rates:
    """The parameters of a problem; they are compared by their numbers, so they have no hash."""

    def __init__(self, **rates):
        self.__dict__.update(rates)

    def __eq__(self, other):
        return vars(self) == vars(other)


def test_an_object_without_a_hash_among_the_arguments_of_an_equation():
    """A compiled program looked it up in a table, and failed with Python's error."""

    def decayed(x):
        rates = Rates(decay=x[0], source=x[1])
        slope = lambda t, y, r: r.source - r.decay * y  # noqa: E731
        found = scipy.integrate.solve_ivp(slope, (0.0, 1.0), [1.0], args=(rates,), rtol=1e-10, atol=1e-12)
        return found.y[0, -1]

    a, b = x = np.array([0.7, 0.4])
    by_decay = -np.exp(-a) * (1 - b / a) + (np.exp(-a) - 1) * b / a**2
    for slopes in (grad(decayed)(x), compile(grad(decayed))(x)):
        np.testing.assert_allclose(slopes, [by_decay, (1 - np.exp(-a)) / a], rtol=1e-7)
