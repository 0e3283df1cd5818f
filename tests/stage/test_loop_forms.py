"""Forms of Python and NumPy in captured loops: each program beside its run by eager modes, and without a warning."""

import itertools
import math
import warnings

import numpy as np
import pytest

import effgrad
from effgrad import grad, rule

STEPS = 40


def rows_by_tables(A):
    A, T = A.copy(), np.array([0, 2, 5])
    for t in range(STEPS):
        i = t % 4
        A[i, T] = np.sin(A[i, T]) + 0.1 * A[(i + 1) % 4, T]
        A[T % 4, t % 6] *= 1.01
        A[i, T] += 0.1 * A[i, T - 6]
    return np.sum(A**2)


def pairs_of_tables(A):
    A, R, C = A.copy(), np.array([0, 2, 3]), np.array([1, 1, 5])
    for _ in range(STEPS):
        A[R, C] = np.sin(A[R, C]) + 0.1 * A[C // 2, R]
        A[np.ix_(R, C[1:])] = np.cos(A[np.ix_(R, C[1:])]) * A[0, 0]
        A[..., C] = 0.9 * A[..., [0, 3, 1]]
    return np.sum(A**2)


def elements_twice(A):
    x, y, k = A[0], np.zeros(4), np.array([0, 1, -3, 3, 0])
    for _ in range(STEPS):
        y[k] = np.sin(x[:5]) * 0.5 + y[1]
        x = 0.9 * x + 0.1 * y[k[0]]
    return np.sum(y**2) + np.sum(x)


def indices_of_values(A):
    y = A[0] * 1.0
    for _ in range(STEPS):
        k = np.argsort(y)[:3]
        y[k] = y[k] * 0.5 + 0.1 * A[1, k]
    return np.sum(y**2)


def apart(A):
    B, T = np.zeros((4, 2, 6)), np.array([0, 2, 1])
    for t in range(STEPS):
        B[T, :, T + 1] = np.sin(A[:3, 1:3]) * (1 + B[0, 0, 1])
        B[t % 4, :, T] = np.cos(B[T, 1, T + 1])[:, None] * A[0, :2]
    return np.sum(B**2)


def accumulated(A):
    x, y, k = A[0], np.zeros(4), np.arange(6) % 4
    for t in range(STEPS):
        np.add.at(y, k, x * 0.1)
        np.subtract.at(y, 2, x[t % 6])
        np.add.at(y, slice(1, 3), y[:2] * 0.1)
        y = np.tanh(y)
    return np.sum(y**2)


def hessian_steps(A):
    def f(z, w):
        return np.sum(np.cos(z) * z**2) + w * z[0] * z[1]

    x = A[0, :3]
    for _ in range(STEPS):
        x = x - 0.01 * np.linalg.solve(effgrad.hessian(f)(x, A[1, 1]) + 30 * np.eye(3), x)
        x = x - 0.001 * effgrad.hvp(f, x, A[2, :3], x[0])
    return np.sum(x**2)


def pullbacks(A):
    w, y = A[0, 0], A[1, :3] * 1.0
    for _ in range(STEPS):

        def f(u, k):
            return np.sin(u) * k * w, np.sum(u) * k  # noqa: B023

        (p, _), back = effgrad.vjp(f, y, w)
        gu, gk = back((p * 0.1, 0.3))
        hu, hk = back((y, w))
        y = y - 0.01 * gu + 0.01 * np.tanh(hu * gk)
        w = w * 0.99 + 0.001 * np.tanh(hk)
    return np.sum(y) * w


def pullbacks_of_numbers(A):
    y = A[0, 0]
    for _ in range(STEPS):
        v, back = effgrad.vjp(lambda z: np.exp(-z * A[0, 1]) * z, y)
        y = y - 0.1 * back(v)[0]
    return y


@rule(partials=lambda y, x: 0.9 + 0.0 * x)
def straight_through(x):
    return np.round(x, 1)


@rule(vjp=lambda g, y, x, w: (g * 3.0 * w, np.sum(g) * math.pi))
def black_box(x, w):
    return np.sin(x) * float(w)


def rules_of_the_users(A):
    x, w = A[0], A[1, 0]
    for _ in range(STEPS):
        x = 0.3 * black_box(straight_through(x) + 0.1 * x, w)
    return np.sum(x)


def wrapped(f):
    def wrapper(*args, **kwargs):
        return f(*args, **kwargs)

    wrapper.__wrapped__ = f
    return wrapper


@wrapped
def damped(x, rate=0.9):
    return rate * np.sin(x)


def decorated(A):
    x = A[0]
    for _ in range(STEPS):
        x = damped(x, rate=0.8) + 0.1
    return np.sum(x)


def written_then_bound(A):
    u = np.zeros(6)
    for t in range(STEPS):
        u[0] = A[0, t % 6]
        u = u + 0.1 * np.sin(A[1] + np.roll(u, 1))
    return np.sum(u**2)


def results_into(A):
    out, y = np.empty((STEPS, 4)), np.zeros(6)
    for t in range(STEPS):
        np.dot(A, A[t % 4], out=out[t])
        np.multiply(A[0], 0.9, out=y)
        np.add(y, out[t, 0], out=y)
        A = A * 0.95 + 0.01 * y
    return np.sum(out**2)


def guarded(A):
    x = A[0]
    for _ in range(STEPS):
        with np.errstate(all="ignore"):
            x = np.sin(x) / 1.1
        assert np.all(np.isfinite(x)), "not finite"
        if np.any(x > 1e6):
            raise ValueError(f"too large: {x}")
        if x[0] > 100.0:
            raise ValueError("too large")
        else:
            scale = 1.0 + x[1]
        x = x * scale
    return np.sum(x)


def starred(A):
    s, total = (A[0, 0], A[0, 1], A[0, 2]), 0.0
    for t in range(STEPS):
        first, *rest = s
        s = (*rest, np.sin(first))
        if (y := np.sin(A[1, t % 6])) > 0:
            total += y * s[1]
    return s[0] + s[1] * total


def combinations(A):
    total = 0.0
    for i, j in itertools.product(range(4), range(6)):
        if (i + j) % 5 == 0:
            continue
        total = total + np.sin(A[i, j] * total + 1)
    for pair in np.ndindex(A.shape):
        total = np.cos(total * A[pair])
    return total


def long_lists(A):
    total, numbers = 0.0, [0.01 * k for k in range(80)]
    data = [(0.1 * k, k % 6, np.full(3, 0.2 * k)) for k in range(80)]
    for w, (a, k, v) in zip(numbers, data, strict=True):
        total = np.sin(total + w * A[0, k] + a * np.sum(v * A[1, :3]))
    return total


def rows_below_each_other(A):
    rows, x = np.empty((0, 3)), A[0, :3]
    for t in range(STEPS):
        x = np.sin(x) + 0.1 * A[t % 4, 3:]
        rows = np.vstack((rows, x))
        x = x + 0.1 * rows[-1] * np.mean(rows[: t + 1])
    return np.sum(rows**2 * np.arange(STEPS)[:, None])


def numbers_after_each_other(A):
    xs, s = np.array([A[0, 0], A[0, 1]]), A[1, 0]
    for t in range(STEPS - 1, -1, -1):
        s = np.sin(s) + xs[0] * 0.1 + np.sum(xs) * 0.01
        xs = np.concatenate([xs, [s, s * A[2, t % 6]]])
    return np.sum(xs**2) + len(xs)


def arrays_anew_that_grow(A):
    total = 0.0
    for i in range(4):
        xs = np.empty(0, np.float32)
        for t in range(STEPS):
            xs = np.append(xs, np.sin(A[i, t % 6] * t))
        total = total + np.sum(xs**2) * A[i, 0]
    return total


def an_array_that_grew_and_is_written_to(A):
    xs = A[0].copy()
    for t in range(STEPS):
        old = xs
        xs = np.append(xs, A[1, t % 6])
        xs[0] = xs[0] * 0.9
        old[0] = old[0] + 0.1
        xs[1] = xs[1] + old[0]
    return np.sum(xs**2)


def single_writes(z):
    w = np.zeros(z.shape, np.complex64)
    for t in range(STEPS):
        w[t % 4] = np.exp(1j * z[t % 4]) + w[(t + 1) % 4] / (2 + z[0])
        z = z * 0.9 + 0.1 * w
    return np.sum(w.real**2 + 0.5 * w.imag**2)


def single_transforms(z):
    for _ in range(STEPS):
        z = np.fft.ifft(np.fft.fft(z) * np.complex64(0.99)) + 0.01
    return np.sum(np.abs(z) ** 2)


def single_and_double(z):
    s, out = np.complex128(0.5 + 0.2j), []
    for t in range(STEPS):
        z = np.sqrt(z) * s + 0.1j * z[t % 4]
        out.append(z)
    return np.sum(np.array(out).real ** 2)


PROGRAMS = [
    rows_by_tables, pairs_of_tables, elements_twice, indices_of_values, apart, accumulated, hessian_steps, pullbacks,
    pullbacks_of_numbers, rules_of_the_users, decorated, written_then_bound, results_into, guarded, starred,
    combinations, long_lists, rows_below_each_other, numbers_after_each_other, arrays_anew_that_grow,
    an_array_that_grew_and_is_written_to,
]  # fmt: skip


def argument():
    return np.random.default_rng(3).standard_normal((4, 6)) * 0.7


@pytest.mark.thinned(3)
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_is_captured_and_right(f):
    """Eager modes run the loop itself."""
    A = argument()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value, slope = effgrad.compile(effgrad.value_and_grad(f))(A.copy())
    np.testing.assert_allclose(value, f(A.copy()), rtol=1e-12)
    np.testing.assert_allclose(slope, grad(f)(A.copy()), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("f", [elements_twice, accumulated, pullbacks])
def test_second_order_is_right(f):
    A, V = argument(), np.random.default_rng(4).standard_normal((4, 6))
    product = effgrad.compile(lambda A, V: effgrad.hvp(f, A, V))(A.copy(), V)
    np.testing.assert_allclose(product, effgrad.hvp(f, A.copy(), V), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("f", [rows_by_tables, pairs_of_tables, apart, accumulated, written_then_bound])
def test_gradient_agrees_with_differences(f):
    A, V = argument(), np.random.default_rng(4).standard_normal((4, 6))
    step = 1e-6
    quotient = (f(A + step * V) - f(A - step * V)) / (2 * step)
    np.testing.assert_allclose(np.sum(effgrad.compile(grad(f))(A.copy()) * V), quotient, rtol=1e-6)


@pytest.mark.parametrize(("start", "error", "text"), [
    (2.0, ValueError, "too large: {s}"), (-2.0, AssertionError, "negative"),
])  # fmt: skip
def test_errors_of_the_program_are_raised(start, error, text):
    def f(x):
        s = x
        for _ in range(STEPS):
            s = s * 1.5
            assert s > -100.0, "negative"
            if s > 100.0:
                raise ValueError(f"too large: {s}")
        return s

    run = effgrad.compile(grad(f))
    assert run(1e-9) == pytest.approx(1.5**STEPS)
    with pytest.raises(error, match=text):
        run(start)


def test_pullback_after_a_write_is_not_captured():
    """The reverse of the block would read the array as it is now."""

    def f(x):
        y, b = x[0], x * 1.0
        for _ in range(STEPS):
            v, back = effgrad.vjp(lambda z: np.exp(-z * b[1]) * z, y)
            b[1] = b[1] * 0.9 + 0.1
            y = y - 0.1 * back(v)[0]
        return y

    x = np.array([0.7, 0.4])
    with pytest.warns(effgrad.errors.StagingWarning, match="between `vjp` and a call"):
        slope = effgrad.compile(grad(f))(x)
    np.testing.assert_allclose(slope, grad(f)(x), rtol=1e-12)


def test_index_outside_is_an_error():
    def f(x, k):
        y = x * 1.0
        for _ in range(STEPS):
            y[k] = y[k] * 0.5
        return np.sum(y)

    run = effgrad.compile(grad(f))
    run(np.ones(4), np.array([0, 3, 3]))
    with pytest.raises(IndexError):
        effgrad.compile(grad(f))(np.ones(4), np.array([0, 4]))


@pytest.mark.parametrize("f", [single_writes, single_transforms, single_and_double])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_numbers_of_both_sizes(f, dtype):
    """Planes have the type that NumPy computes in: single precision stays single."""
    r = np.random.default_rng(0)
    z = ((r.standard_normal(4) + 1j * r.standard_normal(4)) * 0.5).astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value, slope = effgrad.compile(effgrad.value_and_grad(f))(z.copy())
    plain, near = f(z.copy()), 2e-5 if dtype is np.complex64 or f is single_writes else 1e-10
    assert np.result_type(value) == np.result_type(plain)
    assert slope.dtype == dtype
    np.testing.assert_allclose(value, plain, rtol=near)
    np.testing.assert_allclose(slope, grad(f)(z.copy()), rtol=near, atol=near)


def test_what_a_program_catches_is_raised_where_it_does():
    """A loop that raises inside a `try` is Python's: the program goes on with what it has for that."""

    def f(x):
        s = x
        try:
            for _ in range(STEPS):
                s = s * 1.2
                if s > 100.0:
                    raise ValueError("too large")
        except ValueError:
            return 5.0 * x
        return s

    run = effgrad.compile(grad(f))
    with pytest.warns(effgrad.errors.StagingWarning, match="ValueError, which it may raise inside a `try`"):
        assert run(0.001) == pytest.approx(1.2**STEPS)
    assert run(3.0) == 5.0


def test_what_is_defined_in_a_step_is_callable():
    def f(x):
        for _ in range(40):
            def step(y):
                return np.sin(y)

            x = step(x) * 1.1 if callable(step) and not callable(x) else x
        return x

    assert effgrad.compile(f)(0.7) == pytest.approx(f(0.7), rel=1e-14)
    assert effgrad.compile(grad(f))(0.7) == pytest.approx(grad(f)(0.7), rel=1e-13)
