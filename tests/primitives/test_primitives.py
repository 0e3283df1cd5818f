"""Every primitive of the table: each mode against differences, transposition, and second order.

The cases are generated from the tables that the primitives fill, so a new primitive is tested by being added.
"""

import math

import numpy as np
import pytest

from effgrad import check_grad, compile, grad, value_and_grad
from effgrad.functions import python
from effgrad.primitives.elementwise import BINARY, UNARY

BACKEND = "numpy"  # of the compiled runs

# Where a function is not defined on all of (0.2, 0.8), a map into its domain.
SHIFTS = {np.arccosh: 1.5}


def draw(shape, seed=0, dtype=float):
    return np.random.default_rng(seed).uniform(0.2, 0.8, shape).astype(dtype)


SHAPES = [(), (3,), (2, 3), (0,)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("function", UNARY, ids=lambda f: f.__name__)
def test_unary_rule_is_the_derivative(run, function, shape):
    def f(x):
        return np.sum(np.cos(function(x + SHIFTS.get(function, 0.0))))

    x = draw(shape)
    check_grad(f, x, tolerance=1e-6)
    check_grad(lambda x: np.sum(run(grad)(f)(x) * x), x, tolerance=1e-5)


@pytest.mark.parametrize("shapes", [((), ()), ((3,), ()), ((2, 3), (3,)), ((2, 1), (1, 3))], ids=str)
@pytest.mark.parametrize(
    "function", [*BINARY, np.add, np.subtract, np.multiply, np.divide, np.power, np.maximum, np.minimum, np.mod],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_binary_rule_is_the_derivative_with_broadcasting(run, function, shapes):
    a, b = draw(shapes[0], 1), draw(shapes[1], 2)
    check_grad(lambda a: np.sum(np.cos(function(a, b))), a)
    if function is not np.copysign:
        check_grad(lambda b: np.sum(np.cos(function(a, b))), b)
        check_grad(lambda b: np.sum(run(grad)(lambda b: np.sum(np.cos(function(a, b))))(b) * b), b, tolerance=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("function", UNARY, ids=lambda f: f.__name__)
def test_derivatives_keep_the_dtype_of_their_input(run, function, dtype):
    x = draw((3,), dtype=dtype) + np.asarray(SHIFTS.get(function, 0.0), dtype)
    assert run(grad)(lambda x: np.sum(function(x)))(x).dtype == dtype
    assert run(grad)(lambda x: np.sum(function(x * np.ones(3))))(x).dtype == dtype


def test_sums_of_products_of_the_math_module(run):
    """`math.sumprod` came with Python 3.12 and `math.fma` with 3.13; their definitions are those of any Python."""
    definitions = python.DEFINITIONS[math]
    assert run(grad)(lambda x: definitions["sumprod"]([x, 2.0], [x, 3.0]))(1.5) == 3.0
    assert run(grad)(lambda x: definitions["fma"](x, x, 1.0))(1.5) == 3.0


@pytest.mark.parametrize("f", [
    lambda x: math.ldexp(x, 3) ** 2, lambda x: math.ldexp(x * 1e-300, 1000), lambda x: math.modf(x)[0] ** 2,
    lambda x: math.frexp(x)[0] ** 3 * math.frexp(x)[1], lambda x: math.remainder(x, 0.4) ** 2,
    lambda x: math.remainder(7.0, x) ** 2, lambda x: math.nextafter(x, 9.0) ** 2,
])  # fmt: skip
@pytest.mark.parametrize("x", [1.37, -2.61, 5.13])
def test_parts_of_numbers_in_the_math_module(run, f, x):
    value, derivative = run(value_and_grad)(f)(x)
    assert value == pytest.approx(f(x), rel=1e-12)
    assert derivative == pytest.approx((f(x + 1e-6) - f(x - 1e-6)) / 2e-6, rel=1e-6)
    assert compile(run(grad)(f))(x) == pytest.approx(derivative, rel=1e-12)
