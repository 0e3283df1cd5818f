"""Indices and slices in captured loops whose place only the values say: captured, and checked as NumPy checks them."""

import warnings

import numpy as np
import pytest
from loop_programs import copies

import effgrad

RNG = np.random.default_rng(0)
X = RNG.normal(size=50)
COLUMNS, STARTS = RNG.integers(-50, 50, size=60), np.array([0, 5, 5, 20, 50])


def carried(x):
    k, s = 0, 0.0
    for _ in range(40):
        s = s + x[k] * x[k]
        k = (k * 7 + 3) % 50
        x[k] = x[k] * 0.9
    return s


def of_either_sign(x):
    s = 0.0
    for i in range(40):
        for j in range(10):
            s = s + x[i - j] * x[j - i]
            x[j - i] = x[j - i] * 0.95
    return s


def from_an_array(x, columns):
    s = 0.0
    for i in range(60):
        s = s + x[columns[i]] ** 2 + np.sum(x[columns[: i % 7]])
        x[columns[i]] *= 0.9
    return s


def sparse_product(x, values, columns, starts):
    s = 0.0
    for k in range(40):
        row = k % 4
        t = values[starts[row] : starts[row + 1]] @ x[columns[starts[row] : starts[row + 1]]]
        for j in range(starts[row], starts[row + 1]):
            t = t + values[j] * x[columns[j]]
        s = s + t * t
    return s


def windows(x):
    s = 0.0
    for i in range(50):
        s = s + np.sum(x[i - 3 : i + 4] ** 2) * i
        x[max(i - 2, 0) : i + 2] *= 0.9
    return s


def searched(x, b):
    s = 0.0
    for k in range(40):
        i = 0
        while i < 50 and x[i] < b:
            i = i + 1
        s = s + x[i - 1] * k
    return s


PROGRAMS = {
    "carried": (carried, (X,)), "of either sign": (of_either_sign, (X,)),
    "from an array": (from_an_array, (X, COLUMNS)), "windows": (windows, (X,)),
    "a sparse product": (sparse_product, (X, RNG.normal(size=60), COLUMNS, STARTS)),
    "searched": (searched, (np.sort(X), 0.5)), "searched in vain": (searched, (np.sort(X), 1e9)),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_indices_that_values_decide(name):
    f, args = PROGRAMS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value, gradient = effgrad.compile(f)(*copies(args)), effgrad.compile(effgrad.grad(f))(*copies(args))
    assert np.isclose(value, f(*copies(args)))
    assert np.allclose(gradient, effgrad.grad(f)(*copies(args)), rtol=1e-10)


def test_an_index_outside_is_an_error_with_the_line():
    def f(x, n):
        s, k = 0.0, 0
        while k < n:
            s = s + x[k]  # here
            k = k + 1
        return s

    line = f.__code__.co_firstlineno + 3
    for run in (effgrad.compile(f), effgrad.compile(effgrad.grad(f))):
        run(X, 50.0)
        with pytest.raises(IndexError, match=rf"test_loop_indices.py:{line}: .*out of bounds for axis with size 50"):
            run(X, 51.0)


def test_arrays_of_indices_are_checked():
    def f(x, places):
        s = 0.0
        for _ in range(40):
            s = s + np.sum(x[places])
        return s

    run = effgrad.compile(effgrad.grad(f))
    found = run(X, np.array([0, -1, -50]))
    assert found[0] == 80 and found[-1] == 40 and not found[1:-1].any()
    with pytest.raises(IndexError, match="out of bounds"):
        run(X, np.array([0, 1, -51]))


@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_integers_that_a_program_computes_bound_its_slices(backend):
    """With NumPy as the backend the slice was of a name that the program does not have."""

    def f(x, y):
        k = np.argmax(x)
        return np.sum(x[k - 1 :] * y[k - 1 :]) + np.sum(x[:k])

    run = effgrad.compile(effgrad.grad(f), backend=backend)
    for x in (np.array([1.0, 2.0, 4.0]), np.array([1.0, 3.0, 2.0])):
        assert np.allclose(run(x, X[:3]), effgrad.grad(f)(x, X[:3]))


def test_an_integer_that_a_loop_counts_bounds_a_slice_after_it():
    def f(x):
        k = 0
        for i in range(40):
            if x[i] > 0:
                k = k + 1
        return np.sum(x[:k] ** 2)

    run = effgrad.compile(effgrad.grad(f))
    for x in (X, -X):
        assert np.allclose(run(x), effgrad.grad(f)(x))


@pytest.mark.parametrize("n", [4, 18, 150])
def test_what_a_table_selects_is_passed_back_before_its_adjoint_is_cleared(n):
    """Both are one statement of the derivative, in loops of their own where there are more than a few elements."""
    table = np.random.default_rng(n).permutation(2 * n)[:n]

    def f(x):
        record, now = np.zeros((40, n)), np.zeros((3, 2 * n))
        for i in range(40):
            after = now * 0.9
            after[1] += x * 0.1 * i
            record[i] = after[1, table]
            now = after
        return np.sum(record**2)

    x = np.linspace(0.1, 1.0, 2 * n)
    np.testing.assert_allclose(effgrad.compile(effgrad.grad(f))(x), effgrad.grad(f)(x), rtol=1e-12)
    assert (effgrad.grad(f)(x)[table] != 0).all()


@pytest.mark.parametrize("start", [0, 1, -3])
def test_integers_are_compared_where_bounds_depend_on_outer_steps(start):
    """The bounds of j, which are quotients, and k itself are largest in different steps."""

    def f(x):
        a, s = x * 1.0, 0.0
        for k in range(start, 8):
            for j in range((k + 1) // 2):
                if j != k - j - 1:
                    a[j] = a[j] * 0.9 + a[7 - j]
                if 2 * j < k - 1:
                    s = s + a[j] * k
                if j > k % 3 - k // 3:
                    s = s - a[k]
        return s + np.sum(a)

    x = np.linspace(0.3, 1.7, 8)
    assert effgrad.compile(f)(x) == pytest.approx(f(x), rel=1e-12)
    np.testing.assert_allclose(effgrad.compile(effgrad.grad(f))(x), effgrad.grad(f)(x), rtol=1e-12)
