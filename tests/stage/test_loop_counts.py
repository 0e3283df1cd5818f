"""Arrays of integers and truth values that are made before a captured loop, which writes to them.

Once such an array was a constant of the region, and a loop that wrote to it was unrolled. Values are compared with
plain NumPy, gradients with Python's own run of the loop (`effgrad.grad`).
"""

import warnings

import numpy as np
import pytest

import effgrad

POINT = np.array([0.7, -0.3, 0.45, 1.1, -0.8, 0.2])
ORDER = np.array([2, 0, 1, 5, 4, 3])


def counts_of_signs(x):
    count, s = np.zeros(2, int), x[0]
    for i in range(40):
        s = np.sin(0.9 * s + x[i % 6])
        count[1 if s > 0 else 0] += 1
    return s + 0.1 * count[0] * x[1] + 0.01 * count[1]


def back_pointers(x):
    """The best path through six states by dynamic programming, read back by the pointers that the loop has written."""
    best, last = x * 1.0, np.zeros((40, 6), np.int64)
    for i in range(40):
        for j in range(6):
            k = np.argmax(best - 0.1 * np.abs(x - x[j]))
            last[i, j] = k
        best = best[last[i]] * 0.9 + x
    state, total = 0, 0.0
    for i in range(39, -1, -1):
        total = total + x[state] * 0.1
        state = last[i, state]
    return total + np.sum(best)


def visited(x):
    seen, k, s = np.zeros(6, dtype=bool), 0, 0.0
    for i in range(40):
        seen[k] = True
        s = s + np.sum(x[seen] ** 2) * 0.1
        k = (k + i) % 6 if x[k] > 0 else (k + 1) % 6
    return s + np.sum(seen)


def truths_of_values(x):
    above, s = np.zeros(6, bool), 0.0
    for i in range(40):
        above[:] = x > 0.02 * i
        s = s + np.sum(np.where(above, x, 0.5 * x * x))
    return s


def sieve(x):
    prime = np.ones(50, bool)
    for i in range(2, 50):
        if prime[i]:
            for j in range(i, 50):
                if j > i and j % i == 0:
                    prime[j] = False
    return np.sum(np.sin(x[0] * np.arange(50))[prime])


def small_integers_wrap(x):
    a, s = np.array([100, 3], dtype=np.int32), x[0]
    for i in range(40):
        a[0] = a[0] * 3 + i
        s = np.sin(s + 1e-9 * a[0])
    return s


def permuted_in_place(x):
    order, s = ORDER.copy(), x[0]
    for i in range(40):
        order[i % 6], order[(i * i) % 6] = order[(i * i) % 6], order[i % 6]
        s = np.tanh(s + x[order[0]] * x[order[i % 6]])
    return s + x[order] @ np.arange(6)


def written_by_a_function(x):
    def swap(a, i, j):
        a[i], a[j] = a[j], a[i]

    order, s = np.arange(6), x[0]
    for i in range(40):
        swap(order, i % 6, (3 * i + 1) % 6)
        s = np.tanh(s + x[order[2]])
    return s


def two_loops(x):
    a, s = np.zeros(6, int), x[0]
    for i in range(40):
        a[i % 6] += i
    for i in range(40):
        s = np.sin(s + 0.01 * a[i % 6])
        a[i % 6] //= 2
    return s + np.sum(a) * x[1]


CAPTURED = [
    counts_of_signs, back_pointers, visited, truths_of_values, sieve, small_integers_wrap, permuted_in_place,
    written_by_a_function, two_loops,
]  # fmt: skip


def a_view_is_read(x):
    a, s = np.arange(6), x[0]
    b = a[1:]
    for i in range(40):
        a[i % 6] = (a[i % 6] * 2 + i) % 7
        s = np.sin(s + 0.1 * b[i % 5])
    return s


def a_view_is_written(x):
    a, s = np.arange(6), x[0]
    b = a[::-1]
    for i in range(40):
        b[i % 6] = (b[i % 6] * 2 + i) % 7
        s = np.sin(s + 0.1 * a[2] + 0.01 * np.sum(a))
    return s + np.sum(a)


def another_name(x):
    a, s = np.arange(6), x[0]
    b = a
    for i in range(40):
        a[i % 6] = (b[(i + 1) % 6] * 2 + i) % 7
        s = np.sin(s + 0.1 * b[i % 6])
    return s + np.sum(b) * x[1]


def a_table_shares_memory(x):
    pairs, s = np.arange(12).reshape(6, 2), x[0]
    first = pairs[:, 0]
    for i in range(40):
        pairs[i % 6, 0] = (pairs[i % 6, 1] + i) % 6
        s = np.sin(s + x[first[i % 6]] + x[first % 6][0])
    return s


def in_a_list(x):
    held, s = [np.zeros(3, int)], x[0]
    for i in range(40):
        held[0][i % 3] += i
        s = np.sin(s + 0.01 * held[0][0])
    return s


@pytest.mark.parametrize("f", CAPTURED, ids=lambda f: f.__name__)
def test_a_loop_that_writes_to_integers_is_captured(f):
    with warnings.catch_warnings():
        warnings.simplefilter("error", effgrad.errors.StagingWarning)
        check(f)


@pytest.mark.filterwarnings("ignore::effgrad.errors.StagingWarning")
@pytest.mark.parametrize(
    "f", [a_view_is_read, a_view_is_written, another_name, a_table_shares_memory, in_a_list], ids=lambda f: f.__name__
)
def test_integers_with_two_names_are_read_as_they_are_written(f):
    check(f)


def check(f):
    run, slope = effgrad.compile(f), effgrad.compile(effgrad.grad(f))
    for x in (POINT, POINT[::-1].copy()):
        np.testing.assert_allclose(run(x), f(x.copy()), rtol=1e-13)
        np.testing.assert_allclose(slope(x), effgrad.grad(f)(x.copy()), rtol=1e-12, atol=1e-13)
    assert np.array_equal(ORDER, [2, 0, 1, 5, 4, 3])


def bits(x):
    k, s = 5, x[0]
    for i in range(40):
        k = (k ^ i) & 31 | (i & 4)
        s = np.sin(s + x[k % 6] * (~k & 3))
    return s + 0.1 * k


def test_bits_of_integers_have_derivatives_around_them():
    with warnings.catch_warnings():
        warnings.simplefilter("error", effgrad.errors.StagingWarning)
        check(bits)


@pytest.mark.filterwarnings("ignore::effgrad.errors.StagingWarning")
def test_powers_with_a_modulus_are_computed_for_an_integer_that_values_decide():
    """`pow(k, 3, 7)` was a TypeError in a compiled function, and `pow(k, 3)` not."""

    def f(x):
        k = int(np.argmax(x)) + 2
        return x[0] * pow(k, 3, 7) + x[1] * pow(k, 2)

    check(f)
