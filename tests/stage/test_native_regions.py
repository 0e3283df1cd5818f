"""Regions in machine code: they compute what the executor, their specification, says."""

import signal
import threading
import warnings
import weakref

import numpy as np
import pytest
from captured_regions import captured
from loop_programs import arguments, compiled, copies, program, seeds
from region_execution import execute
from scipy import special

import effgrad
from effgrad.stage.loop.affine import NotCaptured
from effgrad.stage.loop.derive import Reversal
from effgrad.stage.native import lowering, map_products
from effgrad.stage.native.arena import LENT_BYTES
from effgrad.stage.native.executable import Executable


def agree(region, args, tolerance=1e-10):
    for a, b in zip(Executable(region)(*args), execute(region, args), strict=True):
        assert a.dtype == b.dtype and np.max(np.abs(a - b)) <= tolerance * (1 + np.max(np.abs(b)))


def both(f, *args):
    """The function and its reverse in machine code, beside the executor's."""
    region = captured(f, *copies(args))
    agree(region, args)
    back = Reversal(region, region.inputs).whole_region(region.inputs)
    agree(back, [*args, 1.0])


@pytest.mark.parametrize("seed", seeds(200, 4, 60))
@pytest.mark.parametrize("written_out", [True, False])
def test_random_loops(seed, written_out, monkeypatch):
    if not written_out:  # every Map is a loop nest, and every product goes to BLAS
        monkeypatch.setattr(lowering, "POINTS", 1)
        monkeypatch.setattr(lowering, "POINTS_IN_MEMORY", 1)
        monkeypatch.setattr(lowering, "LOCAL", 0)
        monkeypatch.setattr(map_products, "LARGE_PRODUCT", 1)
    f, _ = program(seed)
    try:
        both(f, *arguments(seed))
    except NotCaptured:
        pytest.skip("an alias that a region refuses")


def test_a_stencil_longer_than_a_row_is_gathered():
    def f(a, b):
        for _ in range(2):
            b[1:-1] = 0.33 * (a[:-2] + a[1:-1] * a[1:-1] + a[2:])
            a[2:-2] = 0.33 * (b[:-4] + b[4:])
        return np.sum(a * b)

    rng = np.random.default_rng(0)
    both(f, rng.normal(size=2500), rng.normal(size=2500))


def test_two_axes_products_and_triangles():
    def f(A, x):
        s = 0.0
        for i in range(1, 9):
            A[i, :i] = A[i, :i] - x[:i] * 0.1
            A[1:, 1:] = 0.5 * A[1:, 1:] + 0.1 * A[:-1, 1:] + 0.1 * A[1:, :-1]
            x[:i] = A[:i, :i].T @ x[:i] * 0.1
            s = s + np.sum(A @ A * 0.01)
        return s + np.sum(x)

    rng = np.random.default_rng(1)
    both(f, rng.normal(size=(9, 9)), rng.normal(size=9))


def test_large_products_in_single_precision_go_to_blas():
    def f(A, B):
        for _ in range(2):
            A = np.tanh(A @ B * np.float32(0.1))
        return np.sum(A.T @ B)

    rng = np.random.default_rng(2)
    A, B = (rng.normal(size=(21, 21)).astype(np.float32) for _ in range(2))
    region = captured(f, A, B)
    agree(region, [A, B], 1e-4)
    back = Reversal(region, region.inputs).whole_region(region.inputs)
    agree(back, [A, B, np.float32(1)], 1e-4)


def test_a_stack_that_is_full_grows():
    def f(x):
        for _ in range(120):
            x = np.sin(x) * x + 0.5
        return np.sum(x)

    both(f, np.linspace(0, 1, 50))


def test_equal_nests_are_compiled_once():
    source = "def f(x):\n    s = 0.0\n    for i in range(1, {n}):\n        s = s + x[:i] @ x[1:i + 1]\n    return s\n"
    kernels = []
    for n in (700, 800, 900):
        f, _ = compiled(source.format(n=n), f"<nest {n}>")
        region = captured(f, np.linspace(0.0, 1.0, 1000))
        kernels.append(set(lowering.Function(region).kernels))
    assert kernels[0] == kernels[1] == kernels[2]


def test_errors_of_functions_inside_a_loop_are_the_programs():
    def f(A):
        s = 0.0
        for _ in range(2):
            s = s + np.sum(np.linalg.cholesky(A))
        return s

    region = captured(f, np.eye(2))
    run = Executable(region)
    assert run(np.eye(2))[0] == 4
    with pytest.raises(np.linalg.LinAlgError):
        run(-np.eye(2))


def test_arguments_are_not_written_to():
    def f(x):
        for i in range(3):
            x[i] = x[i] * 2
        return np.sum(x)

    x = np.arange(3.0)
    run = Executable(captured(f, x.copy()))
    assert run(x)[0] == 6 and run(x)[0] == 6 and np.array_equal(x, np.arange(3.0))


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer's signal")
@pytest.mark.parametrize("nested", [True, False])
def test_a_long_loop_hears_signals(nested):
    """The loop would run for minutes."""

    def in_loops(x):
        for _ in range(1_000_000):
            for _j in range(1_000_000):
                x = x + 1e-9 * np.sin(x)
        return x

    def until(x):
        while x > -1.0:
            x = x + 1e-9 * np.sin(x)
        return x

    def raise_timeout(*_):
        raise TimeoutError("enough")

    run = Executable(captured(in_loops if nested else until, 1.0))
    before = signal.signal(signal.SIGALRM, raise_timeout)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(TimeoutError, match="enough"):
            run(1.0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    taken = []
    other = threading.Thread(target=lambda: taken.append(run.lock.acquire(blocking=False)))
    other.start()
    other.join()
    assert taken == [True]


def test_operations_without_machine_code_are_calls_of_numpy():
    def f(x):
        s = 0.0
        for i in range(3):
            x = x * 0.9 + 0.1 * np.where(x > 0.5, special.gammaln(x + i), np.logaddexp(x, s))
            s = s + special.ndtr(s) + np.sum(x)
        return s

    both(f, np.linspace(0.2, 3.0, 70))


def test_special_functions_do_not_unroll_loops():
    def f(x):
        s = x
        for i in range(40):
            s = 0.5 * s + 0.01 * special.gammaln(1.5 + np.sin(s) ** 2 + i)
        return s

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gradient = effgrad.compile(effgrad.grad(f))(0.7)
    assert np.isclose(gradient, effgrad.grad(f)(0.7), rtol=1e-12)


def added_to_two_rows(a, b):
    c = np.zeros((len(a), len(a)))
    for i in range(len(a)):
        for k in range(a.shape[1]):
            c[i, : i + 1] += 1.5 * a[i, k] * a[: i + 1, k] + b[i]
    return np.sum(c * c)


def added_to_a_row_and_a_column(a, b):
    a = a.copy()
    for i in range(len(a)):
        for j in range(i):
            a[i, j] = (a[i, j] - a[i, :j] @ a[:j, j]) / (2.0 + a[j, j])
        b[i] = 0.5 * b[i] + a[i, i]
    return np.sum(a * a) + np.sum(b)


def added_to_neighbours_and_to_a_row(a, b):
    for i in range(1, len(a) - 1):
        a[i, 1:] = a[i, 1:] + b[i] * a[i - 1, 1:] + 0.5 * a[i, :-1] * a[0, :-1]
    return np.sum(a * a)


@pytest.mark.parametrize(
    "f", [added_to_two_rows, added_to_a_row_and_a_column, added_to_neighbours_and_to_a_row]
)
def test_adjoints_that_add_to_distant_elements_of_one_array(f):
    rng = np.random.default_rng(2)
    both(f, rng.uniform(-1.0, 1.0, (40, 40)), rng.uniform(-1.0, 1.0, 40))


def test_large_results_of_loops_are_written_to_arrays_of_their_own():
    def f(a, b, c):
        y = np.zeros_like(b)
        for i in range(len(b)):
            y[i] = (b[i] - a[i, :i] @ y[:i]) / a[i, i]
        return np.sum(np.sin(y)) + np.sum(c * c)

    n = 150
    a = np.random.default_rng(1).normal(size=(n, n)) / n + np.eye(n)
    b = c = np.linspace(0.5, 1.0, n)
    run = effgrad.compile(effgrad.grad(f, argnums=(0, 1, 2)))
    kept = []
    for scale in (1.0, 1.1, 1.2, 1.3):
        kept.append((scale, run(scale * a, b, c)))
        run(a, 2 * b, c)  # its memory may be used again
        for number, found in kept:
            expected = effgrad.grad(f, argnums=(0, 1, 2))(number * a, b, c)
            for x, y in zip(found, expected, strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)
    results = [x for _, found in kept for x in found]
    assert not any(np.shares_memory(x, y) for i, x in enumerate(results) for y in results[:i])
    assert not any(x.base is not None and x.base.nbytes > x.nbytes for x in results)


def test_large_results_of_loops_that_are_read_again_or_returned_twice():
    def f(x, n):
        y = np.zeros((n, 120))
        for i in range(n):
            y[i] = np.sin(x) * i
        return y, y[1:] + y[:-1], y.T

    x = np.linspace(0.5, 1.0, 120)
    for found, expected in zip(effgrad.compile(f)(x, 130), f(x, 130), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-14)


def frozen(a):
    """The same array, which nobody may write to."""
    a.flags.writeable = False
    return a


def relaxed(a, b):
    """A function of two arrays that loops read, of which they write to one."""
    b = b.copy()
    for i in range(1, len(b)):
        b[i] = 0.5 * (a[i] + b[i - 1] * a[i, ::-1])
    for i in range(len(a)):
        b[i] += a[i, i] * a[i]
    return np.sum(b * b)


ROWS = 12, 6000


@pytest.mark.parametrize(
    "layout", [np.asarray, np.asfortranarray, lambda a: a[::-1, ::-1], lambda a: np.repeat(a, 2, 1)[:, ::2], frozen]
)
def test_large_arguments_of_loops_are_read_where_the_caller_has_them(layout):
    run = effgrad.compile(effgrad.value_and_grad(relaxed, argnums=(0, 1)))
    a, b = (layout(x) for x in np.random.default_rng(1).uniform(-1.0, 1.0, size=(2, *ROWS)))
    assert a.nbytes >= LENT_BYTES
    for first, second in ((a, b), (b, a), (a, a)):
        before = first.copy(), second.copy()
        value, slopes = run(first, second)
        expected, expected_slopes = effgrad.value_and_grad(relaxed, argnums=(0, 1))(first, second)
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        for x, y in zip(slopes, expected_slopes, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-12)
        np.testing.assert_array_equal((first, second), before)
        run(slopes[0], first)  # a result as an argument, whose memory must not be used for the results
        np.testing.assert_allclose(slopes[0], expected_slopes[0], rtol=1e-10, atol=1e-12)


def test_a_compiled_loop_forgets_its_large_arguments():
    run = effgrad.compile(effgrad.grad(relaxed, argnums=(0, 1)))
    x = np.random.default_rng(1).uniform(-1.0, 1.0, size=ROWS)
    run(x, x)
    a, b = x.copy(), x.copy()
    held = weakref.ref(a), weakref.ref(b)
    run(a, b)
    del a, b
    assert [reference() for reference in held] == [None, None]
