"""`del` of names, arrays made by `np.array` with its options and by `np.r_`, `np.ndenumerate`: in captured loops."""

import warnings

import numpy as np
import pytest

import effgrad
from effgrad import grad

STEPS = 40


def deleted(x):
    s, old = 0.0, x.copy()
    for i in range(STEPS):
        t, u = np.sin(x * i), x + s
        s = s + 0.1 * np.sum(t * u)
        del t, u
        if i % 3 == 0:
            v = np.cos(old)
            s = s * 0.9 + v[1]
            del v
        for j in range(3):
            w = x[j] * s
            s = 0.5 * s + 0.1 * w
            del w
    return s


def bound_again(x):
    y = x.copy()
    for i in range(STEPS):
        t = y * 0.5
        del y
        y = t + 0.01 * i * x
        del t
    return np.sum(y * y)


def joined(x):
    y, s = x.copy(), 0.0
    for i in range(STEPS):
        y = np.r_[y[1:], 0.5 * y[0]] * 0.99
        a = np.c_[y, x * i]
        s = s + 0.001 * np.sum(a * a) + np.sum(np.r_[y, 0.5, x[::-1]][2:5])
    return s + np.sum(y * y)


def with_options(x):
    y, s = x.copy(), 0.0
    for i in range(STEPS):
        rows = np.array(y, ndmin=2)
        rows[0, i % 4] *= 0.5
        same = np.array(y, copy=None)
        same[0] += 0.1 * np.sum(rows)
        more = np.array(y, copy=None, ndmin=3, subok=True)
        more[0, 0, 1] += 0.01 * i
        s = s + np.sum(np.array([y[0], y[1] * s], dtype=float, copy=True)) * 0.01
    return s + np.sum(y * y)


def elements_with_places(x):
    a, s = np.outer(x, x), 0.0
    for t in range(STEPS):
        for (i, j), v in np.ndenumerate(a):
            s = s + v * (i + 2 * j) * 0.01
            a[j, i] *= 0.99
        for k, v in np.ndenumerate(x):
            s = s * 0.9 + v * k[0] * t * 0.01
    return s


PROGRAMS = [deleted, bound_again, joined, with_options, elements_with_places]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_is_captured_and_right(f):
    x = np.array([0.3, -0.5, 0.9, 1.1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value, slope = effgrad.compile(effgrad.value_and_grad(f))(x.copy())
    np.testing.assert_allclose(value, f(x.copy()), rtol=1e-12)
    np.testing.assert_allclose(slope, grad(f)(x.copy()), rtol=1e-9, atol=1e-12)
    step = 1e-6 * np.cos(np.arange(4.0))
    np.testing.assert_allclose((f(x + step) - f(x - step)) / 2e-6, slope @ step * 1e6, rtol=1e-5)


def test_a_name_that_a_loop_has_deleted_is_unbound_after_it():
    def f(x):
        t = 1.0
        for i in range(STEPS):
            t = np.sum(x) * i
            del t
        return t  # noqa: F821

    x = np.ones(3)
    with pytest.warns(effgrad.StagingWarning), pytest.raises(NameError):
        effgrad.compile(f)(x)


def test_an_item_is_deleted_by_python():
    def f(x):
        s = 0.0
        for i in range(STEPS):
            parts = [x[0], x[1] * i, x[2]]
            del parts[1]
            s = s + parts[1]
        return s

    x = np.array([0.5, 0.2, 0.1])
    with pytest.warns(effgrad.StagingWarning, match="del parts"):
        slope = effgrad.compile(grad(f))(x)
    np.testing.assert_allclose(slope, grad(f)(x))
