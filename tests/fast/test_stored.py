"""Memory that taped mode writes to in place, against differences of plain NumPy."""

import mutating
import numpy as np
import pytest
from differences import directional

from effgrad import checkpoint, grad, hessian, jacobian, jvp, vjp
from effgrad.arrays import memory
from effgrad.fast.stored import Adjoint, Stored
from effgrad.primitives.cotangents import Masked

N = 6
X = np.random.default_rng(3).uniform(0.5, 1.5, N)
U = np.random.default_rng(4).normal(size=N)


@pytest.fixture
def opened(monkeypatch):
    """Let each read from several writes open the memory; return the list of the memories opened."""
    monkeypatch.setattr(memory, "MANY", -1)
    begin, made = Stored.__init__, []

    def init(self, owner, base):
        begin(self, owner, base)
        made.append(self)

    monkeypatch.setattr(Stored, "__init__", init)
    return made


def filled(x, dtype=float):
    """An array of N x N elements written one by one, which a read from several of them opens."""
    a = np.zeros((N, N), dtype)
    for i in range(N):
        for j in range(N):
            a[i, j] = x[i] * x[j] + i
    a[0, 1] += a[0, :3].sum() + a[1:3, 2].sum()
    return a


def elements(x):
    a = filled(x)
    for i in range(1, N):
        a[i, 0] -= a[i - 1, 0] * a[i, 1]
        a[i, i] = np.sin(a[i, 0])
    return (a * x).sum()


def rows_and_columns(x):
    a = filled(x)
    for i in range(N - 1):
        a[i] = a[i, ::-1] * np.sin(a[:, i])
        a[:, i + 1] -= a[i, 1:3].sum()
        a[i, ::-2] *= 0.5
    return np.sum(np.cos(a * 0.1))


def blocks(x):
    a = filled(x)
    a[1:4, 2:] = a[2:5, :4] * x[0]
    a[::-1, ::2][1:3] += a[:2, 3:]
    a[4:, 1:3] = x[1]
    return np.sum(a[:, ::2] ** 2) + a.T[1:3, 2:].sum()


def seen_twice(x):
    a = filled(x)
    a[2, 2] = x[3]
    windows = np.lib.stride_tricks.sliding_window_view(a[2], 3)
    spread = np.broadcast_to(a[2, 2:3], (4,))
    deep = np.broadcast_to(a[2, None, 1:4], (2, 3))
    return np.sum(windows**2) + np.sum(spread**3) + np.sum(deep**2 * x[:3])


def listed(x):
    a = filled(x)
    b = a[[1, 3, 1], [2, 2, 2]] * x[:3]
    a[[2, 4], [1, 1]] = b[1:]
    a[a > 3.0] = x[2]
    a[[0, 0], [3, 3]] = b[:2]  # the later write counts
    return np.sum(a**2) + a[[0, 0, 5]].sum()


def views_of_views(x):
    a = filled(x)
    row, corner = a[2], a[1:4, 1:4]
    flat = a.reshape(-1)
    flat[14] = x[0] ** 2
    corner[1] *= row[:3]
    row[3] = corner[0, 0] * flat[8]
    return np.sum(a * np.arange(36.0).reshape(6, 6)) + row[2] ** 2


def own_argument(x):
    x = x.copy()
    x[1] = x[0] * x[2]
    x[3] = x[1] ** 2
    for k in range(2, N):
        x[k] -= x[:k] @ x[k - 1 :: -1]
    return x[:4].sum() * x[5]


PROGRAMS = [elements, rows_and_columns, blocks, seen_twice, listed, views_of_views, own_argument]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_the_derivative_is_that_of_differences(f, opened):
    value, pull = vjp(f, X)
    assert value == f(X.copy())
    assert opened
    expected, error = directional(lambda x: f(x.copy()), X, U)
    for _ in range(2):  # a tape may be walked over again
        np.testing.assert_allclose(pull(1.0)[0] @ U, expected, rtol=1e-8, atol=10 * error)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_traced_cotangents(f, opened):
    """A reverse pass under a derivative: a memory's cotangents are written to, and the outer derivative sees it."""

    def scaled(c):
        return vjp(f, X)[1](c)[0] @ U

    np.testing.assert_allclose(jvp(scaled, (2.0,), (1.0,))[1], scaled(1.0), rtol=1e-12)
    np.testing.assert_allclose(grad(scaled)(2.0), scaled(1.0), rtol=1e-12)
    assert opened


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_many_rows_and_second_derivatives(f, opened):
    rows = jacobian(lambda x: np.stack([f(x), f(x * 1.5)]), mode="reverse")(X) if f is not listed else None
    if rows is not None:
        np.testing.assert_allclose(rows[0], grad(f)(X), rtol=1e-10)
    expected, error = directional(lambda x: grad(f)(x), X, U, step=0.005)
    np.testing.assert_allclose(hessian(f)(X) @ U, expected, rtol=1e-6, atol=100 * error)


def test_elements_that_nothing_read_are_structural_zeros(opened):
    def f(x):
        a = filled(x)
        a[2, 3] = x[0] * np.inf  # overwritten before a read
        a[3, :3] = x[:3] * np.inf
        a[2, 3] = x[1]
        a[3, :2] = 1.0
        b = a[3]
        b[4] = x[2]
        return a[2].sum() + np.where(np.isinf(b), 0.0, b)[1:4].sum() + a[0, 0]

    with np.errstate(invalid="ignore"):
        slopes = grad(f)(X)
        expected, error = directional(f, X, U)
    assert opened
    np.testing.assert_allclose(slopes @ U, expected, rtol=1e-8, atol=10 * error)


def test_what_is_taken_is_a_structural_zero_afterwards():
    cells = Adjoint(np.zeros(5), np.zeros(5, bool))
    cells.add(1, 2.0)
    cells.add(slice(0, 3), Masked(np.array([1.0, 3.0, 9.0]), np.array([True, True, False])))
    assert cells.take(1) == 5.0
    assert cells.take(1) is None
    row = cells.take(slice(0, 4))
    assert row.value.tolist()[0] == 1.0
    assert row.mask.tolist() == [True, False, False, False]
    assert cells.whole((5,)) is None
    cells.add(((2, 2), 0, (2, 1)), np.ones((2, 2)))
    assert cells.take(np.array([3, 4])).mask.tolist() == [True, False]


def test_single_precision_stays(opened):
    def f(x):
        a = filled(x, np.float32)
        a[1, 2:4] = x[0] * a[2, :2]
        return a[1].sum() * a[2, 2]

    found = grad(f)(X.astype(np.float32))
    assert found.dtype == np.float32
    assert opened
    expected, _ = directional(lambda x: f(x), X, U, step=0.5)
    np.testing.assert_allclose(found @ U.astype(np.float32), expected, rtol=1e-3)


def test_checkpoints_see_the_memory_as_it_was(opened):
    def f(x, part):
        a = filled(x)
        b = part(lambda: a[1] * a[2, ::-1] + x)
        a[1, :3] = b[:3] * a[1, 3:]
        c = part(lambda: np.sin(a[1]) * b)
        a[1] = 0.0
        return np.sum(c * a[2]) + a[1:3].sum()

    marked = grad(lambda x: f(x, checkpoint))(X)
    assert opened
    np.testing.assert_allclose(marked, grad(lambda x: f(x, lambda g: g()))(X), rtol=1e-13)
    expected, error = directional(lambda x: f(x, lambda g: g()), X, U)
    np.testing.assert_allclose(marked @ U, expected, rtol=1e-8, atol=10 * error)


def test_random_programs(opened):
    found = [(seed, message) for seed in range(400) for message in mutating.disagreements(seed, ["reverse"])]
    assert found == []
    assert len(opened) > 20


def test_a_read_and_a_write_take_an_entry_each():
    """However many writes a read sees: the tape of a triangular recurrence grows with the number of statements."""
    counts = []

    def f(x, n):
        a = np.zeros(n)
        a[0] = x[0]
        for k in range(1, n):
            a[k] = x[1] * (a[:k] @ a[:k])
        counts.append(len(x.owner.entries))
        return a[-1]

    for n in (20, 40, 80):
        grad(lambda x, n=n: f(x, n))(np.array([0.3, 0.2]))
    first, second = counts[1] - counts[0], counts[2] - counts[1]
    assert second == 2 * first
