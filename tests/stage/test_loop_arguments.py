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


def in_place(v):
    """The argument that `np.nan_to_num` writes to, for a `copy` that is passed by position, stayed as it was."""
    m, s = v[:3] * 1.0, 0.0
    m[0] = np.nan
    for i in range(40):
        np.nan_to_num(m, False)
        s = s + m[0] + m[1] * v[i]
    return s


def by_position(v):
    """Arguments by position are those of NumPy's signature."""
    a, s = v[:12].reshape(3, 4), 0.0
    for i in range(40):
        b = a * v[i]
        s = s + np.sum(b, 1, None, None, True)[1, 0] * np.max(b, -1, None, True)[0, 0] + np.var(b, 0, None, None, 1)[1]
        s = s + np.eye(3, 4)[1, 1] * b.mean(0)[1] + np.clip(b, -0.5, 0.5)[1, 2] + np.squeeze(b[:1], 0)[1]
    return s


def truth_values(v):
    """The sum of two comparisons of Python numbers was their logical or."""
    x, s, n = float(abs(v[0])) + 0.5, 0.0, 0
    for i in range(40):
        x = x * 0.9
        a, b = i > 3, i % 2 == 0
        s = s + v[i] * (a + b) + (a + a + b) * v[0] - (a * b - b) * v[1] + -a * v[2]
        s = s + ((x > 0.1) + (x > 0.05)) * v[i] ** 2
        n += x > 0.1
    return s + n * v[3]


def counts(v):
    """The builtin `sum` of comparisons was their logical or, and that of an array lacked the start."""
    s = 0.0
    for i in range(40):
        s = s + v[i] * sum([v[i] > 0, v[i + 1] > 0, v[i + 2] > 0])
        s = s + v[i] ** 2 * sum(x > 0 for x in v[i : i + 4])
        s = s + sum(v[i : i + 4], 10.0) * sum([v[i], v[i + 1]], v[0]) + sum(np.cos(v[i : i + 3]))
    return s


def numpys_truth_values(v):
    """The sum of two truth values of NumPy's is their logical or, also in Python."""
    s = 0.0
    for i in range(40):
        s = s + v[i] * ((v[i] > 0) + (v[i + 1] > 0))
    return s


def inner_of_stack(v):
    """The last two axes of the second array were exchanged as if it were a matrix."""
    s = 0.0
    for i in range(30):
        c = np.inner(v[:3] * v[i], v[:27].reshape(3, 3, 3))
        s = s + c[0, 1] * 2 + c[1, 0]
    return s


def outer_of_matrix(v):
    """The second array was broadcast against the rows of the first."""
    a, s = v[:9].reshape(3, 3), 0.0
    for i in range(40):
        c = np.subtract.outer(a * v[i], v[3:6])
        s = s + np.sum(c[0] ** 2) + np.add.outer(v[i], v[:3])[1] * np.multiply.outer(v[:2], a)[1, 2, 0]
    return s


def block_of_vectors(v):
    """Vectors in different lists were joined to one."""
    s = 0.0
    for i in range(40):
        c = np.block([[v[i : i + 3]], [v[i + 3 : i + 6]]])
        s = s + len(c) * v[i] + c[1, 2] * np.block([v[i], v[:2]])[0] + np.block([[v[i], v[i + 1 : i + 3]]])[0, 2]
    return s


def shrinking(v):
    """The length of an empty range was negative."""
    s = 0.0
    for i in range(40):
        s = s + v[i] * len(np.arange(20 - i)) + np.sum(v[i] ** np.arange(i - 30, i - 37))
        s = s + np.sum(np.arange(i - 20) * v[i])
    return s


def powers(v):
    """Powers of integers beyond 64 bits were infinite or NaN, and those with a negative exponent an error."""
    s = 0.0
    for i in range(100):
        s = s + v[i % 40] / 2**i + v[3] / (1 << i) + v[5] * 2**-i
    return s


def small_powers(v):
    s, n = 0.0, 0
    for i in range(40):
        k = 2**i
        n += isinstance(k, int) and isinstance(i > 3, int)
        s = s + v[i] * (k % 1000) + v[0] * ((1 << i) % 7 + (i << 2) + (1000 >> i) + 3 ** (i % 5) + i ** (i % 3) + i**3)
        s = s + v[1] * float(i * i * i) + v[2] * (-1) ** i + v[3] * (~i)
    return s * n


def random_numbers(v):
    """Generators of random numbers whose products fit into 64 bits, or of which only the last bits are read."""
    k, h, x, n, s = 1, 0, 2463534242, 5, 0.0
    for i in range(40):
        k = 16807 * k % 2147483647
        h = (h * 31 + i) & 0xFFFFFFFF
        x ^= (x << 13) & 0xFFFFFFFF
        x ^= x >> 17
        x ^= (x << 5) & 0xFFFFFFFF
        n = (25214903917 * n + 11) % 2**48
        s = s + v[i] * (k % 100 + h % 100 + x % 100 + (n >> 16) % 100)
    return s


def in_branches(v):
    """Products on one side of a branch are checked there."""
    s, k = 0.0, 1
    for i in range(40):
        k = k + 1
        if v[i] > 0 and k * k * k > 100:
            s = s + v[i] * (k * k if v[i] > 1 else k * k * 2)
        n = k * k if v[i] > 0 else k
        while n * n < 5000:
            s = s + v[i] / (n * (n + 1))
            n = n * 2
    return s


PROGRAMS = [
    stacked_last, stacked_before_last, squeezed, columns, of_rank_two, ones_of_shape, into_arrays, by_position,
    in_place, truth_values, counts, numpys_truth_values, inner_of_stack, outer_of_matrix, block_of_vectors, shrinking,
    powers, small_powers, random_numbers, in_branches,
]  # fmt: skip
CAPTURED = [
    stacked_last, stacked_before_last, squeezed, into_arrays, by_position, truth_values, counts, numpys_truth_values,
    outer_of_matrix, block_of_vectors, small_powers, random_numbers, in_branches,
]  # fmt: skip
VECTORS = [np.random.default_rng(seed).normal(size=60) for seed in (0, 1)]


def close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-11)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_results_are_those_of_python(f):
    value, gradient = effgrad.compile(f), effgrad.compile(effgrad.grad(f))
    with warnings.catch_warnings():
        warnings.simplefilter("error" if f in CAPTURED else "ignore")
        for v in VECTORS:
            close(value(v.copy()), f(v.copy()))
            close(gradient(v.copy()), effgrad.grad(f)(v.copy()))


def from_table(v):
    """An index beyond the end of a slice whose length changes was read."""
    table, s = np.array([0, 3, 5]), 0.0
    for i in range(40):
        s = s + np.sum(v[: i + 6 - len(v) % 10][table])
    return s


def test_tables_of_indices_are_checked():
    v = VECTORS[0]
    close(effgrad.compile(from_table)(v), from_table(v))
    close(effgrad.compile(effgrad.grad(from_table))(v), effgrad.grad(from_table)(v))
    for f in (from_table, effgrad.compile(from_table), effgrad.compile(effgrad.grad(from_table))):
        with pytest.raises(IndexError, match="out of bounds"):
            f(v[:53])


def generator(v):
    k, s = 12345, 0.0
    for i in range(40):
        k = (k * k + 1) % (2**40 + 15)
        s = s + v[i] * (k % 1000)
    return s


def binomials(v):
    c, s = 1, 0.0
    for i in range(50):
        s = s + v[i] * c
        c = c * (66 - i) // (i + 1)
    return s


def cubes(v):
    s = 0.0
    for i in range(3000000, 3000040):
        s = s + v[i % 40] * float(i * i * i)
    return s


def compared(v):
    s, n = 0.0, 1
    for i in range(36):
        n = n * 3
        if n * n > 10:
            s = s + v[i]
    return s


@pytest.mark.parametrize("f", [generator, binomials, cubes, compared], ids=lambda f: f.__name__)
def test_integers_beyond_64_bits_raise(f):
    """Intermediate results wrapped silently: only what was kept in a variable was checked."""
    for v in VECTORS:
        for g in (f, effgrad.grad(f)):
            with pytest.raises(OverflowError, match="64 bits"):
                effgrad.compile(g)(v)
