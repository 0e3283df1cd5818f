"""Values that captured loops read and decide by: as Python has them, also where integers are carried."""

import numpy as np
import pytest

import effgrad

V = np.random.default_rng(5).normal(size=60)


def euclid(v):
    s = 0.0
    for i in range(40):
        a, b = 48 + i, 18
        while b > 0:
            a, b = b, a % b
        s = s + a * v[i] ** 2
    return s


def fibonacci(v):
    k, m, s = 1, 2, 0.0
    for _ in range(40):
        k, m = m, (k + m) % 7
        s = s + v[k] ** 2 * (m + 1)
    return s


def previous(v):
    current, s = 3, 0.0
    for i in range(40):
        last = current
        current = (i * 7) % 11
        s = s + v[last] * v[current]
    return s


def counted_in_a_tuple(v):
    state, s = (0, 5), 0.0
    for _ in range(40):
        state = state[1], (state[0] + state[1] + 1) % 13
        s = s + v[state[0]] * v[state[1]]
    return s


def while_integers(v):
    k, j, s = 5, 1, 0.0
    while k < 60:
        j, k = k // 2, k + j % 3 + 1
        s = s + v[j] * v[min(k, 59)]
    return s


def edges(v):
    n, s = 40, 0.0
    for i in range(n):
        s = s * 0.9 + (v[i] ** 2 if i in (0, n - 1) else v[i])
        if i % 7 not in [1, 2]:
            s = s + v[i] * 0.5
    return s


def keyed(v):
    weights, s = {0: 2.0, 5: 3.0}, 0.0
    for i in range(40):
        if i in weights or i in range(10, 14):
            s = s + v[i] ** 2
    return s


def defaults(v):
    s = 0.0
    for i in range(40):
        s = s * 0.9 + v[(i % 5) or 3] ** 2
        s = s + (max(v[i], 0.0) or 2.0) * v[1]
        s = s + (v[i] > 0 and v[i] * v[2])
    return s


def joined_conditions(v):
    s = 0.0
    for i in range(40):
        if not (v[i] > 0 or (i and i % 3)) or (v[i] and i > 30):
            s = s + v[i] ** 2
        s = s + (2.0 if i % 2 and v[i] < 1.0 else v[3])
    return s


def truth_values(v):
    s = 0.0
    for i in range(40):
        far = v[i] > 0.5 or v[i] < -0.5
        s = s + v[i] ** 2 * far
    return s


PROGRAMS = [euclid, fibonacci, previous, counted_in_a_tuple, while_integers, edges, keyed, defaults, joined_conditions,
            truth_values]  # fmt: skip


@pytest.mark.filterwarnings("ignore::effgrad.StagingWarning")
@pytest.mark.parametrize("f", PROGRAMS)
def test_values_are_pythons(f):
    """Carried integers were read after a step had overwritten them: Euclid's `a, b = b, a % b` was wrong.

    `in` was always false for values of the loop, and `or` gave a truth value for an operand.
    """
    compiled, gradient = effgrad.compile(f), effgrad.compile(effgrad.grad(f))
    for v in (V, V[::-1].copy()):
        np.testing.assert_allclose(compiled(v), f(v), rtol=1e-12)
        np.testing.assert_allclose(gradient(v), effgrad.grad(f)(v), rtol=1e-10, atol=1e-12)


@pytest.mark.filterwarnings("error::effgrad.StagingWarning")
@pytest.mark.parametrize("f", [euclid, fibonacci, previous, edges, keyed, truth_values])
def test_they_are_captured(f):
    effgrad.compile(f)(V)
