"""Linear systems of a few unknowns inside a loop: written out, right in both nestings, errors as NumPy's."""

import warnings

import numpy as np
import pytest

import effgrad

STEPS = 40


def solved(A, b):
    for _ in range(STEPS):
        b = b + 0.01 * np.cos(np.linalg.solve(A + 0.01 * np.outer(b, b), b))
    return np.sum(b * b)


def solved_for_columns(A, b):
    B = np.outer(b, b) + A
    for _ in range(STEPS):
        B = B + 0.01 * np.tanh(np.linalg.solve(A, B))
    return np.sum(B * B)


def inverted(A, b):
    s = 0.0
    for k in range(STEPS):
        s = s + b @ np.linalg.inv(A + 0.01 * k * np.outer(b, b)) @ b * np.linalg.det(A - 0.02 * s * np.outer(b, b))
    return s


def matrix(n):
    """A matrix whose first pivots are zero, so that rows have to be exchanged."""
    rng = np.random.default_rng(n)
    A = rng.normal(size=(n, n)) + 0.1 * np.eye(n)
    A[: n - 1, : n - 1] = A[: n - 1, : n - 1] * (1 - np.eye(n - 1))
    return A


@pytest.mark.parametrize(
    "n", [1, pytest.param(2, marks=pytest.mark.sweep), 3, pytest.param(4, marks=pytest.mark.sweep), 6]
)
@pytest.mark.parametrize("f", [solved, solved_for_columns, inverted], ids=lambda f: f.__name__)
def test_systems_in_a_loop(f, n):
    A, b = matrix(n), np.linspace(0.5, 1.0, n)
    gradient = effgrad.grad(f, argnums=(0, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isclose(effgrad.compile(f)(A, b), f(A, b), rtol=1e-9)
        for found, wanted in zip(effgrad.compile(gradient)(A, b), gradient(A, b), strict=True):
            assert np.allclose(found, wanted, rtol=1e-7, atol=1e-8 * np.max(np.abs(wanted)))


@pytest.mark.thinned(4)
@pytest.mark.parametrize("f", [solved, inverted], ids=lambda f: f.__name__)
def test_both_nestings_of_second_order(f):
    A, b = matrix(3), np.linspace(0.5, 1.0, 3)
    V = np.cos(np.arange(9.0)).reshape(3, 3)
    g = lambda A: f(A, b)  # noqa: E731
    wanted = effgrad.hvp(g, A, V)
    forward = effgrad.compile(lambda A: effgrad.hvp(g, A, V))(A)
    reverse = effgrad.compile(effgrad.grad(lambda A: np.sum(effgrad.grad(g)(A) * V)))(A)
    for found in (forward, reverse):
        assert np.allclose(found, wanted, rtol=1e-6, atol=1e-7 * np.max(np.abs(wanted)))


def test_norms_in_a_loop():
    def f(x):
        s = 0.0
        for k in range(STEPS):
            x = x - 0.01 * x / np.linalg.norm(x) ** 3 + 0.001 * k * np.linalg.norm(np.outer(x, x), axis=1)
            s = s + np.linalg.norm(x) + np.linalg.norm(x, 1)
        return s

    x = np.array([1.0, -0.5, 2.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = effgrad.compile(effgrad.value_and_grad(f))(x)
    wanted = effgrad.value_and_grad(f)(x)
    assert np.isclose(found[0], wanted[0]) and np.allclose(found[1], wanted[1], rtol=1e-10)


def test_a_singular_matrix_is_the_error_that_numpy_raises():
    singular = np.array([[1.0, 2.0], [2.0, 4.0]])
    run = effgrad.compile(solved)
    run(matrix(2), np.zeros(2))
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        run(singular, np.zeros(2))
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        effgrad.compile(effgrad.grad(solved))(singular, np.zeros(2))


def test_newtons_method_inside_a_loop():
    """A loop that stops inside a loop that writes: it was unrolled, for the name might have kept the array's row."""

    def f(p, y):
        for i in range(1, y.shape[0]):
            new = y[i - 1]
            for _ in range(20):
                off = new - y[i - 1] + 0.1 * p * new**3
                change = np.linalg.solve(np.eye(3) + np.diag(0.3 * p * new**2), off)
                new = new - change
                if np.max(np.abs(change)) < 1e-12:
                    break
            y[i] = new
        return np.sum(y * y)

    p, y = np.array([0.5, 1.0, 2.0]), np.ones((50, 3))
    gradient = effgrad.grad(f)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = effgrad.compile(gradient)(p, y.copy())
    assert np.allclose(found, gradient(p, y.copy()), rtol=1e-8)
