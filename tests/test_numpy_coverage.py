"""Every function of the table in every mode and order, with its dtype, staged and compiled."""

import numpy as np
import pytest
from numpy_cases import CASES, X

from effgrad import check_grad, compile, grad, hessian, jvp, value_and_grad, vjp

U = np.cos(np.arange(12.0).reshape(3, 4))
# Steep functions: differences of gradients have larger errors there.
STEEP = {"gradient2": 1e-4, "matrix_power": 1e-4}


def scalar(f):
    return lambda x: np.sum(np.sin(f(x)))


@pytest.mark.parametrize("name", CASES)
def test_forward_and_reverse_are_transposes_and_keep_the_value(name):
    f = CASES[name]
    value, tangent = jvp(f, (X,), (U,))
    np.testing.assert_allclose(value, f(X), rtol=1e-12, atol=1e-14)
    value, pullback = vjp(f, X)
    np.testing.assert_allclose(value, f(X), rtol=1e-12, atol=1e-14)
    cotangent = np.sin(np.arange(np.size(value))).reshape(np.shape(value))
    np.testing.assert_allclose(np.sum(cotangent * tangent), np.sum(pullback(cotangent)[0] * U), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", CASES)
def test_first_and_second_derivative_agree_with_differences(name):
    f, tolerance = scalar(CASES[name]), STEEP.get(name, 2e-5)
    check_grad(f, X, tolerance=tolerance)
    check_grad(lambda x: np.sum(grad(f)(x) * U), X, tolerance=tolerance)


@pytest.mark.parametrize("name", CASES)
def test_orders_of_nesting_agree(name):
    f = scalar(CASES[name])
    matrix = hessian(f)(X).reshape(12, 12)
    np.testing.assert_allclose(matrix, matrix.T, rtol=1e-6, atol=1e-7)
    twice_forward = jvp(lambda x: jvp(f, (x,), (U,))[1], (X,), (U,))[1]
    np.testing.assert_allclose(twice_forward, U.ravel() @ matrix @ U.ravel(), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("mode", ["reverse", "continuation", "delta", "checkpointed"])
@pytest.mark.parametrize("name", CASES)
def test_reverse_modes_agree(name, mode):
    f = scalar(CASES[name])
    np.testing.assert_allclose(grad(f, mode=mode)(X), grad(f)(X), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_single_precision_stays(name):
    f = scalar(CASES[name])
    assert grad(f)(X.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("name", CASES)
def test_compiled_programs_agree(name, backend):
    f = value_and_grad(scalar(CASES[name]))
    compiled = compile(f, backend)
    for x in (X, X, X[::-1] ** 1.1):  # the last may take another path
        for value, expected in zip(compiled(x), f(x), strict=True):
            np.testing.assert_allclose(value, expected, rtol=1e-7, atol=1e-9)
