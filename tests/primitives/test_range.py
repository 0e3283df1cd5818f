"""First and second derivatives of programs whose values are in range while products of their partials are not.

The truth is the derivative of the program in closed form: the scale c cancels.
"""

import warnings

import numpy as np
import pytest

from effgrad import compile, grad, jvp


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


# Each program with its first and second derivative at 1.
PROGRAMS = {
    "one over": (lambda x, c: 1 / (c * x) * c, -1, 2),
    "quotient": (lambda x, c: c / (c * x), -1, 2),
    "quotient of products": (lambda x, c: (c * x) / (c * x * x), -1, 2),
    "power": (lambda x, c: (c * x) ** -1.0 * c, -1, 2),
    "power, whole": (lambda x, c: (c * x) ** -1 * c, -1, 2),
    "power of an array": (lambda x, c: np.sum((c * x) ** np.array([-1.0, 1.0]) * [c, 1 / c]), 0, 2),
    "reciprocal": (lambda x, c: np.reciprocal(c * x) * c, -1, 2),
    "log": (lambda x, c: np.log(c * x), 1, -1),
    "log2": (lambda x, c: np.log2(c * x) * np.log(2.0), 1, -1),
    "root": (lambda x, c: np.sqrt(c * x) / np.sqrt(c), 0.5, -0.25),
    "root, power": (lambda x, c: (c * x) ** 0.5 / c**0.5, 0.5, -0.25),
    "angle": (lambda x, c: np.arctan2(c * x, c), 0.5, -0.5),
    "hypot": (lambda x, c: np.hypot(c * x, c) / c, 2**-0.5, 2**-1.5),
    "product": (lambda x, c: np.prod(np.stack([c * x, x / c])), 2, 2),
}


def numbers(f, c):
    return lambda x: f(x, c)


def arrays(f, c):
    return lambda x: np.sum(f(x, c))


def loops(f, c):
    def program(x):
        total = 0.0
        for i in range(x.shape[0]):
            total = total + f(x[i], c)
        return total

    return program


FORMS = {"number": (numbers, 1.0), "array": (arrays, np.ones(1)), "loop": (loops, np.ones(1))}
IN_LOOPS = ["one over", "quotient", "quotient of products", "power", "power, whole", "log", "root", "hypot"]
CASES = [(name, form) for form in FORMS for name in (IN_LOOPS if form == "loop" else PROGRAMS)]


def along(f):
    return lambda x: jvp(f, (x,), (np.ones_like(x),))[1]


def total(f):
    return lambda x: np.sum(f(x))


ROUTES = {
    "reverse": (grad, 1),
    "forward": (along, 1),
    "reverse over reverse": (lambda f: grad(total(grad(f))), 2),
    "forward over reverse": (lambda f: along(grad(f)), 2),
    "forward over forward": (lambda f: along(along(f)), 2),
    "reverse over forward": (lambda f: grad(along(f)), 2),
}


@pytest.mark.thinned(5)
@pytest.mark.parametrize("c", [1e-200, 1e-160, 1e160, 1e200])
@pytest.mark.parametrize("mode", ["eagerly", "compiled"])
@pytest.mark.parametrize("name, form", CASES)
def test_a_scale_that_cancels_leaves_derivatives_as_they_are(name, form, mode, c):
    f, *truth = PROGRAMS[name]
    make, x = FORMS[form]
    for route, (derivative, order) in ROUTES.items():
        found = (compile if mode == "compiled" else lambda g: g)(derivative(make(f, c)))(x)
        np.testing.assert_allclose(np.squeeze(found), truth[order - 1], rtol=1e-13, atol=1e-13, err_msg=route)


def test_the_logarithm_of_a_density_far_in_its_tail_has_its_second_derivative():
    # The density at 30 is 4e-196, and one over its square is no floating-point number.
    def f(x):
        return np.log(np.exp(-(x**2) / 2))

    np.testing.assert_allclose([grad(f)(30.0), grad(grad(f))(30.0), along(grad(f))(30.0)], [-30, -1, -1], rtol=1e-12)
