"""Where a special function has no value, it has no derivative: NaN or an error, never a number of the formula."""

import itertools
import warnings

import numpy as np
import pytest
import scipy.special as sp

from effgrad import grad, jvp, stage
from effgrad.errors import NoRule
from effgrad.primitives.special.table import SPECIAL

GRID = {1: np.linspace(-3.1, 3.1, 32), 2: [-2.5, -1.0, -0.3, 0.0, 0.4, 1.0, 1.7], 3: [-1.0, 0.4, 1.7], 4: [-1.0, 1.7]}
# SciPy's own searches do not end for some of these arguments, or its loops over them.
SLOW = {"ncfdtr", "ncfdtri", "ncfdtridfd", "ncfdtridfn", "ncfdtrinc"}
FUNCTIONS = {f.__name__: f for f in SPECIAL if f.__name__ not in SLOW and not f.__name__.startswith(("pro_", "obl_"))}

# Functions linear in an argument, whose second derivative in it is 0 whatever the others are.
LINEAR = {("xlogy", 0), ("xlog1py", 0), ("nrdtrimn", 1), ("nrdtrimn", 2), ("nrdtrisd", 0), ("nrdtrisd", 2)}


def undefined(function):
    """The points of the grid at which a function has no value, a column for each argument."""
    kinds = [types.split("->")[0] for types in function.types if "->" in types][-1]
    points = np.array(list(itertools.product(GRID.get(function.nin, [-1.0]), repeat=function.nin))).T
    args = [np.trunc(x).astype(int) if kind in "lip" else x for x, kind in zip(points, kinds, strict=True)]
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        return [x[np.isnan(function(*args))] for x in args]


@pytest.mark.thinned(6)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_there_is_no_derivative_where_there_is_no_value(name):
    function, args = FUNCTIONS[name], undefined(FUNCTIONS[name])
    for index, x in enumerate(args):
        if x.dtype != float or not x.size:
            continue

        def f(t):
            return np.sum(np.real(function(*args[:index], t, *args[index + 1 :])))  # noqa: B023 - called before the next

        try:
            first = grad(f)(x)
        except NoRule:
            continue
        assert np.all(np.isnan(first))
        assert np.all(np.isnan(grad(f, mode="reverse")(x)))
        assert np.all(np.isnan(stage(grad(f))(x)(x)[0]))
        try:
            second = jvp(grad(f), (x,), (np.ones_like(x),))[1]
        except NoRule:
            continue
        assert np.all(np.isnan(second)) or (name, index) in LINEAR


def test_most_functions_have_an_end():
    """The test above is one of 60 functions and more."""
    assert sum(undefined(f)[0].size > 0 for f in FUNCTIONS.values()) > 60


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "function",
    [lambda x: sp.gammainc(1.5, x), lambda x: sp.xlogy(2.0, x), sp.exp1, lambda x: sp.betainc(1.5, 2.0, x), sp.logit],
)
def test_elements_that_are_not_used_do_not_count(function):
    x = np.array([-0.6, 0.3, 0.7, -2.0])

    def f(x):
        return np.sum(np.where(x > 0, function(x), x))

    gradient = grad(f)(x)
    steps = [(function(t + 1e-6) - function(t - 1e-6)) / 2e-6 for t in x[1:3]]
    np.testing.assert_allclose(gradient, [1.0, *steps, 1.0], rtol=1e-7)
    np.testing.assert_allclose(grad(f, mode="reverse")(x), gradient, rtol=1e-14)
    np.testing.assert_allclose(stage(grad(f))(x)(x)[0], gradient, rtol=1e-14)
