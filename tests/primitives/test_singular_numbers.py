"""Singular points of programs with Python numbers of arrays (`float`, `complex`, `item`, `tolist`), or with `math`.

The oracle is the polynomial that each program is, whose Hessian is written out by hand.
"""

import math

import numpy as np
import pytest

from effgrad import grad, hessian, hvp, jvp

POINTS = [np.zeros(2), np.array([0.5, 0.0])]
V = np.array([1.0, 2.0])


def of_sum(x):
    """The Hessian of (1 + x0) * ((x0 + x1)**2 + x1**2)."""
    a, b = x
    mixed = 2 + 4 * a + 2 * b
    return [[2 + 6 * a + 4 * b, mixed + 2 * b], [mixed + 2 * b, 4 * (1 + a)]]


def of_product(x, factor):
    """The Hessian of factor * x0**2 * x1**2."""
    a, b = x
    return [[2 * factor * b * b, 4 * factor * a * b], [4 * factor * a * b, 2 * factor * a * a]]


def of_complex(x):
    """The Hessian of 5 * (x0 + x1)**2 * x1**2."""
    s, b = x[0] + x[1], x[1]
    mixed = 20 * s * b + 10 * b * b
    return [[10 * b * b, mixed], [mixed, 10 * s * s + 40 * s * b + 10 * b * b]]


def twice(x):
    """The Hessian of x0**2 + x1**2."""
    return 2 * np.eye(2)


PROGRAMS = {
    "float": (lambda x: np.sqrt(float(x[0]) ** 2 + x[1] ** 2) ** 2, twice),
    "float in an array": (lambda x: np.linalg.norm(np.array([float(x[0]), x[1]])) ** 2, twice),
    "float of a sum": (lambda x: np.sqrt(float(np.sum(x)) ** 2 + x[1] ** 2) ** 2 * (1 + x[0]), of_sum),
    "float of a factor": (lambda x: np.abs(float(x[0]) * 2.0 * (1 + 2j) * x)[1] ** 2, lambda x: of_product(x, 20)),
    "complex": (lambda x: np.abs(complex(np.sum(x)) * (1 + 2j) * x)[1] ** 2, of_complex),
    "item": (lambda x: np.sqrt(x[0].item() ** 2 + x[1] ** 2) ** 2, twice),
    "math": (lambda x: math.sqrt(x[0].item() ** 2 + float(x[1]) ** 2) ** 2, twice),
    "tolist": (lambda x: math.hypot(*x.tolist()) ** 2, twice),
}


@pytest.mark.parametrize("point", range(len(POINTS)))
@pytest.mark.parametrize("name", PROGRAMS)
def test_limits_of_programs_with_numbers(name, point):
    """They were NaN: the search for a limit took a number out of an array for a constant."""
    (f, oracle), x = PROGRAMS[name], POINTS[point]
    expected = np.array(oracle(x), float)
    np.testing.assert_allclose(hessian(f)(x), expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(hvp(f, x, V), expected @ V, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(grad(lambda x: grad(f)(x) @ V)(x), expected @ V, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("root", [math.sqrt, np.sqrt])
def test_a_root_of_a_number_that_is_0(root):
    """Python's numbers are not divided by 0, which ended the program's derivative with that error."""
    assert grad(root)(0.0) == jvp(root, (0.0,), (1.0,))[1] == np.inf
    assert not np.isfinite(hvp(root, 0.0, 1.0))
    np.testing.assert_allclose([hvp(lambda x: root(x * x) ** 2, 0.0, 1.0), grad(lambda x: root(x**4))(0.0)], [2.0, 0.0])


def test_first_derivatives_of_roots_of_numbers():
    """The root of a sum of squares, one of them of a number: a norm, whose derivative at 0 is 0."""

    def f(x):
        return np.sqrt(2.0 * (2.0 * (x * x)[0].item()) ** 2 + x[1] ** 4)

    np.testing.assert_array_equal(grad(f)(np.zeros(2)), 0.0)
