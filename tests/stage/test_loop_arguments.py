"""Arguments of library functions in loops, sums of truth values, ranks, and integers beyond 64 bits.

Each program gave a wrong result when compiled. Its loop is captured now, or runs as Python does if it cannot be.
"""

import warnings

import numpy as np
import pytest

import effgrad


def stacked_last(v):
    """Stores went past the end of the buffer: a negative axis was not counted from the first."""
    s = 0.0
    for i in range(40):
        m = np.stack([v[i : i + 2], v[i + 2 : i + 4] * 2], axis=-1)
        s = s + m[0, 1] * m[1, 0] ** 2 + np.sum(m**2)
    return s


def stacked_before_last(v):
    s = 0.0
    for i in range(40):
        m = np.stack([v[i : i + 6].reshape(2, 3), v[i + 1 : i + 7].reshape(2, 3) * 2], axis=-2)
        s = s + m[0, 1, 2] * m[1, 0, 1] + np.concatenate([m, m], axis=-2).shape[1] * v[i]
    return s


def squeezed(v):
    """Axes were taken modulo the rank."""
    s = 0.0
    for i in range(40):
        row = np.expand_dims(v[i : i + 3], -2)
        s = s + np.squeeze(row, axis=(-2,))[1] * np.mean(np.flip(row, axis=(-1, 0)), axis=(-1,))[0]
    return s


def columns(v):
    """The argument `order` was ignored."""
    s = 0.0
    for i in range(40):
        m = np.reshape(v[i : i + 6], (2, 3), order="F")
        k = v[i : i + 6].reshape((2, 3), order="F")
        f = v[i : i + 6].reshape((2, 3)).flatten("F")
        s = s + m[0, 1] * m[1, 0] + k[0, 1] * k[1, 2] * 2 + f[1] * f[2] * f[2]
    return s


def of_rank_two(v):
    """The argument `ndmin` was ignored."""
    s = 0.0
    for i in range(40):
        s = s + np.array(v[i : i + 6], ndmin=2).shape[0] * v[i]
    return s


def ones_of_shape(v):
    """The argument `shape` was ignored."""
    s = 0.0
    for i in range(40):
        s = s + np.ones_like(v[i : i + 6], shape=(2, 2)).sum() * v[i] ** 2
    return s


def into_arrays(v):
    """Results for an array `out` that is passed by position were not written to it."""
    a, m, s = v[:9].reshape(3, 3) * 1.0, np.zeros(3), 0.0
    for i in range(40):
        np.max(a * v[i], 0, m)
        s = s + m[0] + m[2]
        np.sum(a * v[i], 0, None, m)
        s = s + m[0] * m[2]
        np.cumsum(v[i : i + 3], 0, None, m)
        s = s + m[0] * 3 + m[2] * m[1]
        np.multiply(m, v[i], m)
        s = s + m[1] * 0.5
        (a * v[i]).sum(1, None, m)
        s = s + m[1] * m[2]
    return s


def by_position(v):
    """Arguments by position are those of NumPy's signature."""
    a, s = v[:12].reshape(3, 4), 0.0
    for i in range(40):
        b = a * v[i]
        s = s + np.sum(b, 1, None, None, True)[1, 0] * np.max(b, -1, None, True)[0, 0] + np.var(b, 0, None, None, 1)[1]
        s = s + np.eye(3, 4)[1, 1] * b.mean(0)[1] + np.clip(b, -0.5, 0.5)[1, 2] + np.squeeze(b[:1], 0)[1]
    return s


PROGRAMS = [
    stacked_last, stacked_before_last, squeezed, columns, of_rank_two, ones_of_shape, into_arrays, by_position,
]  # fmt: skip
CAPTURED = [stacked_last, stacked_before_last, squeezed, into_arrays, by_position]
VECTORS = [np.random.default_rng(seed).normal(size=60) for seed in (0, 1)]


def close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_results_are_those_of_python(f):
    value, gradient = effgrad.compile(f), effgrad.compile(effgrad.grad(f))
    with warnings.catch_warnings():
        warnings.simplefilter("error" if f in CAPTURED else "ignore")
        for v in VECTORS:
            close(value(v.copy()), f(v.copy()))
            close(gradient(v.copy()), effgrad.grad(f)(v.copy()))
