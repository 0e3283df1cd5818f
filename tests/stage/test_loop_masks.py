"""Elements that a mask selects in a loop, and integers of all types in tables."""

import warnings

import numpy as np
import pytest

import effgrad


def clipped(a, b):
    """A selection taken before its elements are overwritten keeps what they were."""
    s = 0.0
    for _ in range(40):
        m = a > 0.2
        t = a[m]
        a[m] = 0.5
        a[m] = t * 0.9 + b[m] * 0.01
        s = s + a[0]
    return np.sum(a * a) + s


def rings(a, b):
    total = np.zeros(40)
    for i in range(40):
        inside = np.logical_and(0.02 * i <= b, b < 0.02 * i + 0.4)
        ring = a[inside]
        total[i] = ring.mean() + np.sum(ring * ring) + np.mean(np.sin(ring))
    return total @ total


def rows(a, b):
    A = np.outer(a, b) + 1.0
    for i in range(40):
        A[a > 0.3] = A[a > 0.3] * 0.9 + b[0]
        A[b < 0.5] += 0.01 * i * a[1]
        A[A > 3.0] = -np.sqrt(A[A > 3.0])
    return np.sum(A * A)


def selected(a, b):
    """The first condition that holds decides, and numbers stand beside arrays."""
    s = 0.0
    for i in range(40):
        a = np.select([a > 0.5, a > 0.2], [np.sin(a), a * 1.1], a + 0.1)
        b = np.select((b > 0.9, np.abs(b) < 0.2, a > 0.3), (1.0 - b, 0.5, np.cos(b))) + 0.01 * i
        s = s + np.select([b[0] > a[1]], [a[1] * b[0]], s * 0.9)
    return a @ b + s


def in_pieces(a, b):
    """The last condition that holds decides; a piece may be a number, or have further arguments."""
    for _ in range(40):
        a = np.piecewise(a, [a > 0.5, a < 0.2, a > 0.8], [np.sin, lambda t: t * t - 0.1, 0.4, lambda t: t * 1.1 + 0.01])
        b = np.piecewise(b, [b > 0.5, b > 0.1], [lambda t, k: t * k, lambda t, k: t - np.mean(t) + k], 0.6) + 0.1 * a
    A = np.piecewise(np.outer(a, b), [np.outer(a, a) > 0.1], [lambda t: t - t * t])
    for _ in range(40):
        A = np.piecewise(A, [A > 0.1], [lambda t: t - 0.3 * t * t, 0.2]) + 0.05 * A.T
    return np.sum(A * A)


PROGRAMS = [clipped, rings, rows, selected, in_pieces]
A, B = np.array([0.1, 0.6, 0.7, 0.21]), np.array([0.5, 0.1, 0.32, 0.9])


def close(found, wanted, tolerance=1e-10):
    for a, b in zip(found, wanted, strict=True):
        assert np.max(np.abs(np.asarray(a) - b)) <= tolerance * (1 + np.max(np.abs(b)))


@pytest.mark.thinned(3)
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_selections_are_captured(f):
    gradient = effgrad.grad(f, argnums=(0, 1))
    wanted, value = gradient(A.copy(), B.copy()), f(A.copy(), B.copy())
    along = lambda a: effgrad.grad(f)(a, B.copy()) @ np.cos(a)  # noqa: E731
    second = effgrad.grad(along)
    wanted_second = second(A.copy())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        close([effgrad.compile(f)(A.copy(), B.copy())], [value])
        close(effgrad.compile(gradient)(A.copy(), B.copy()), wanted)
        close([effgrad.compile(second)(A.copy())], [wanted_second])


def two_masks(a, b):
    for _ in range(40):
        a[a > 0.5] = b[b > 0.4] * 0.5
    return np.sum(a * a)


def changed_mask(a, b):
    for _ in range(40):
        t = a[a > 0.65]
        a[0] = a[0] + 0.001 * b[0]
        a[1] = 0.1
        a[a > 0.65] = t * 0.9
    return np.sum(a * a)


def as_many(a, b):
    for _ in range(40):
        a[b > 0.0] = b * 0.5
    return np.sum(a * a)


@pytest.mark.parametrize("f", [two_masks, changed_mask, as_many], ids=lambda f: f.__name__)
def test_selections_whose_lengths_need_not_fit_are_pythons(f):
    """A mask beside another was taken as the same: where NumPy raises, a number came out."""
    points = A.copy(), B.copy()
    with pytest.warns(UserWarning, match="is unrolled"):
        try:
            value = f(A.copy(), B.copy())
        except ValueError:
            with pytest.raises(ValueError, match="shape|assign|broadcast"):
                effgrad.compile(f)(*points)
        else:
            close([effgrad.compile(f)(*points)], [value])


KINDS = [np.uint8, np.int16, np.uint32, np.int32, np.uint64]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("given", [True, False])
def test_tables_of_integers_of_all_types(kind, given):
    starts, columns = np.array([0, 2, 2, 5, 6], kind), np.array([1, 3, 0, 2, 3, 1], kind)

    def product(values, x, starts, columns):
        y = np.zeros(4)
        for k in range(80):
            i = k % 4
            which = columns[starts[i] : starts[i + 1]]
            y[i] = values[starts[i] : starts[i + 1]] @ x[which] + 0.1 * y[i] * columns[i]
        return y @ y

    args = np.linspace(0.1, 1.0, 6), np.linspace(1.0, -1.0, 4)
    gradient = effgrad.grad(product, argnums=(0, 1))
    wanted = gradient(*args, starts, columns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if kind is np.uint64 else "error")
        if given:
            found = effgrad.compile(gradient)(*args, starts, columns)
        else:
            found = effgrad.compile(lambda v, x: gradient(v, x, starts, columns))(*args)
    close(found, wanted)


def test_integers_that_wrap_around_are_pythons():
    table = np.array([200, 100, 250, 3], np.uint8)

    def f(x):
        s = x * 0.0
        for i in range(40):
            s = s + x * (table[i % 4] + table[(i + 1) % 4])
        return s

    with pytest.warns(UserWarning, match="is unrolled"), np.errstate(over="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        close([effgrad.compile(f)(1.5)], [f(1.5)])


def precisions(a, b):
    for _ in range(60):
        a = np.select([a > 0.5, a > 0.2], [np.sin(a), b], 0.5).astype(np.float32)
    return np.sum(a)


def conditions_of_numbers(a, b):
    for _ in range(60):
        a = np.piecewise(a, a > 0.5, [np.sin, lambda t: t * 1.1])
    return np.sum(a * b)


@pytest.mark.parametrize("f", [precisions, conditions_of_numbers])
def test_other_forms_are_left_to_python(f):
    a = A.astype(np.float32)
    with pytest.warns(effgrad.StagingWarning, match="unrolled"):
        found = effgrad.compile(f)(a, B)
    assert found == pytest.approx(f(a, B), rel=1e-6)
    assert found.dtype == f(a, B).dtype
