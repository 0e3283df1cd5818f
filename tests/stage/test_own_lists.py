"""Loops that replace the items of lists: captured where the source shows that no other name refers to the list."""

import warnings

import numpy as np
import pytest
from differences import slope

import effgrad
from effgrad import grad, jvp

STEPS = 40
POINT = np.array([0.31, 0.47, 0.62, 0.23, 0.15, 0.55])
DIRECTION = np.array([0.4, -1.1, 0.7, 0.2, 0.9, -0.5])


def layers_of_a_network(x):
    h, c, w, total = [np.zeros(3), np.zeros(3)], [np.zeros(3)] * 2, x.reshape(2, 3), 0.0
    for t in range(STEPS):
        given = np.full(3, np.sin(0.1 * t))
        for k in range(2):
            c[k] = 0.9 * c[k] + 0.1 * np.tanh(w[k] * given + 0.5 * h[k])
            h[k] = np.tanh(c[k])
            given = h[k]
        total += given.sum()
    return total + sum(v.sum() for v in h)


def numbers_in_lists(x):
    total, n = [0.0] * 3, [0, 0]
    for k in range(STEPS):
        total[0] += np.sin(k * x[0])
        total[1] += x[1] * k
        total[-1] -= x[2]
        if np.sin(k * x[0]) > 0.3:
            n[0] += 1
            total[1] = total[1] * 0.9
        else:
            n[1] -= 2
    return total[0] + total[1] * total[2] + n[0] - n[1] * x[3]


def arrays_changed_in_place(x):
    h = [np.zeros(3), x[:3] * 1.0]
    for _ in range(STEPS):
        h[0] += np.sin(h[1])
        h[1] *= 0.9
    return h[0] @ h[1]


def one_array_twice(x):
    z = x[:3] * 1.0
    h = [z, z]
    for k in range(STEPS):
        h[0] = np.sin(h[1] + k)
        h[1] = h[1] * 0.9 + h[0] * 0.1
    return h[0] @ h[1] + z.sum()


def changed_between_two_loops(x):
    h = [x[0], x[1]]
    for _ in range(STEPS):
        h[0], h[1] = np.sin(h[1]) + 0.3 * x[2], np.cos(h[0])
    h.append(h[0] * h[1])
    h[0] = 0.3
    for _ in range(STEPS):
        h[2] = 0.9 * np.sin(h[2] + h[0]) + 0.1 * x[3]
    return sum(h)


def loops_inside(x):
    a = [0.0 for _ in range(3)]
    for i in range(STEPS):
        for j in range(3):
            a[j] = a[j] + 0.1 * x[j] * i
            for k in range(4):
                a[j] = np.sin(a[j] + x[k])
    return np.array(a) @ x[:3]


def lists_of_a_function(x):
    def step(v):
        s = [v, 2.0 * v, x[3]]
        for j in range(3):
            s[j] = np.sin(s[j])
        s[-1] = s[0] * s[1]
        return s[0] + s[2]

    t = x[0]
    for _ in range(STEPS):
        t = 0.9 * step(t) + 0.2 * x[4]
    return t


def counted_items(x):
    h = [x[0], x[1], x[2]]
    for _ in range(STEPS):
        for j, v in enumerate(h):
            h[j] = np.sin(v) + 0.1 * h[j - 1]
    return sum(h)


def the_best_so_far(x):
    best = [0.0, 0.0]
    for k in range(STEPS):
        s = np.sin(k * x[0]) * x[1]
        if s > best[0]:
            best[0] = s
            best[1] = k
    return 2 * best[0] + best[1] * x[2]


def bodies(x):
    place, speed = [x[0:2] * 1.0, x[2:4] * 2.0, x[4:6] * 3.0], [np.zeros(2) for _ in range(3)]
    for _ in range(STEPS):
        for i in range(3):
            pull = np.zeros(2)
            for j in range(3):
                if i != j:
                    d = place[j] - place[i]
                    pull += d / (d @ d + 0.1) ** 1.5
            speed[i] = speed[i] + 0.01 * pull
        for i in range(3):
            place[i] = place[i] + 0.01 * speed[i]
    return sum(p @ p for p in place)


PROGRAMS = [
    layers_of_a_network, numbers_in_lists, arrays_changed_in_place, one_array_twice, changed_between_two_loops,
    loops_inside, lists_of_a_function, counted_items, the_best_so_far, bodies,
]  # fmt: skip


@pytest.mark.thinned(3)
@pytest.mark.parametrize("f", PROGRAMS)
def test_a_loop_that_replaces_items_is_captured(f):
    with warnings.catch_warnings():
        warnings.simplefilter("error", effgrad.StagingWarning)
        value, gradient = effgrad.compile(f)(POINT), effgrad.compile(grad(f))(POINT)
        tangent = effgrad.compile(lambda x: jvp(f, (x,), (DIRECTION,))[1])(POINT)
        twice = effgrad.compile(lambda x: jvp(grad(f), (x,), (DIRECTION,))[1])(POINT)
    assert type(value) is type(f(POINT))
    np.testing.assert_allclose(value, f(POINT), rtol=1e-12)
    np.testing.assert_allclose(gradient, grad(f)(POINT), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(tangent, slope(f, POINT, DIRECTION, 1e-4), rtol=1e-7)
    wanted = slope(grad(f), POINT, DIRECTION, 1e-4)
    np.testing.assert_allclose(twice, wanted, rtol=1e-5, atol=1e-6 * np.max(np.abs(twice)))


def with_another_name(x):
    h = [x[0], x[1]]
    g = h
    for _ in range(STEPS):
        h[0] = np.sin(h[1] + g[0]) + 0.3 * x[2]
        h[1] = 0.5 * g[0]
    return g[0] + h[1]


def two_names_at_once(x):
    h = g = [x[0], x[1]]
    for _ in range(STEPS):
        h[0] = np.sin(h[1] + g[0]) + 0.3 * x[2]
    h[1] = 0.3
    return g[0] * g[1]


def inside_another_list(x):
    h = [x[0], x[1]]
    both = [h, h]
    for _ in range(STEPS):
        h[0] = np.sin(h[1] + both[1][0])
    return both[0][0] + h[1]


def kept_by_a_function(x):
    h = [x[0], x[1]]

    def first():
        return h[0]

    for _ in range(STEPS):
        h[0] = np.sin(h[1] + first())
    return first()


def given(h, x):
    for _ in range(STEPS):
        h[0] = np.sin(h[0]) + x
    return h[0]


def of_the_caller(x):
    h = [x[0], 1.0]
    return given(h, x[1]) + h[0]


def read_ahead(x):
    h = [x[0], x[1], x[2]]
    for _ in range(STEPS):
        for j, v in enumerate(h):
            h[(j + 1) % 3] = np.sin(v) + 0.1 * h[j] + 0.1 * x[3]
    return sum(h)


def read_backwards(x):
    h = [x[0], x[1], x[2]]
    for _ in range(STEPS):
        for j, v in enumerate(reversed(h)):
            h[j] = np.sin(v) + 0.1 * h[j]
    return sum(h)


def read_later(x):
    t = 0.0
    h = [x[0], x[1], x[2]]
    for _ in range(STEPS):
        pairs, squares = zip(h, x[3:], strict=True), (v * v for v in h)
        h[1] = np.sin(h[1]) + 0.1 * x[3]
        t = t + sum(a * b for a, b in pairs) + sum(squares)
    return t


def mixed_in_place(x):
    z = x[:3] * 1.0
    h = [z, np.cos(z)]
    for k in range(STEPS):
        h[k % 2 * 0] += 0.1 * np.sin(h[1]) + 0.01 * x[3:]
        h[1] = np.cos(h[0]) + x[3:]
    return z.sum() + h[1].sum()


@pytest.mark.parametrize(
    "f",
    [with_another_name, two_names_at_once, inside_another_list, kept_by_a_function, of_the_caller, read_ahead,
     read_backwards, read_later, mixed_in_place],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::effgrad.StagingWarning")
def test_a_list_that_may_have_another_name_is_pythons(f):
    """Captured or not, value and derivative are those of the plain program."""
    value, gradient = effgrad.compile(f)(POINT), effgrad.compile(grad(f))(POINT)
    np.testing.assert_allclose(value, f(POINT), rtol=1e-12)
    np.testing.assert_allclose(gradient, grad(f)(POINT), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(np.sum(gradient * DIRECTION), slope(f, POINT, DIRECTION, 1e-4), rtol=1e-7)
