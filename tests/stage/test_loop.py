"""Loops as operations: Python's loops, in every mode and order, eager and compiled, in the memory they are given."""

import concurrent.futures
import functools
import itertools
import signal
import sys
import tracemalloc

import numpy as np
import pytest

from effgrad import compile, grad, hessian, jvp, loop, second_order, stage, taylor
from effgrad.fast import REVERSE
from effgrad.stage.binomial import split
from effgrad.stage.compiled import BACKENDS

pytestmark = pytest.mark.filterwarnings("error")

XS = np.linspace(-1, 1, 24).reshape(8, 3)
X = np.array([0.7, -0.4, 1.1])


def recurrence(w, scan):
    """Two carries, results, and a closed-over value."""

    def step(carry, x):
        h, total = carry
        h = np.tanh(w * h + x)
        return (h, total + np.sum(h)), {"out": h * x[0], "none": None}

    (h, total), ys = scan(step, (np.zeros(3), 0.0), XS)
    return np.sum(h) + total**2 + np.sum(ys["out"] ** 2)


def driven_by_the_inputs(w, scan):
    return np.sum(scan(lambda c, x: (c * np.cos(x), c), 1.0, np.sin(np.outer(np.arange(1.0, 6), w)).ravel())[1])


def chosen(w, scan):
    """A maximum, a selection, an index and a counter of integers in the carry."""

    def step(carry, x):
        c, n = carry
        return (np.where(c > x, np.maximum(c, 0.2) * w, x + c[[2, 0, 1]]), n + 1), n * c[0]

    (c, n), ys = scan(step, (w, 0), XS)
    return np.sum(c * n) + np.sum(ys)


def a_path_in_the_body(w, scan):
    return np.sum(scan(lambda c, x: (c * 2 if c[0] < 1 else c - x, None), w, XS)[0] ** 2)


def nested(w, scan):
    def outer(c, x):
        inner, _ = scan(lambda d, y: (np.sin(d * y) + c, None), x, np.stack([w, w * 0.5]))
        return c + inner, None

    return np.sum(scan(outer, w, XS[:4])[0])


def scan_as_python(f, init, xs, reverse=False):
    carry, ys = init, []
    for x in xs[::-1] if reverse else xs:
        carry, y = f(carry, x)
        ys.append(y)
    ys = ys[::-1] if reverse else ys
    if isinstance(ys[0], dict):
        return carry, {"out": np.stack([y["out"] for y in ys])}
    return carry, None if ys[0] is None else np.stack(ys)


def power(w, n=7, fori=None):
    def body(i, c):
        return c * (w + 0.1 * i)

    if fori is None:
        c = np.ones(3)
        for i in range(n):
            c = body(i, c)
        return np.sum(c)
    return np.sum(fori(0, n, body, np.ones(3)))


def newton(w, while_=None):
    def body(carry):
        y, n = carry
        return y - (y**3 + y - np.sum(w)) / (3 * y**2 + 1), n + 1

    def cond(carry):
        y, n = carry
        return np.abs(y**3 + y - np.sum(w)) > 1e-9

    if while_ is None:
        y, n = w[0], 0
        while cond((y, n)):
            y, n = body((y, n))
    else:
        y, n = while_(cond, body, (w[0], 0))
    return y * w[1] * n


PROGRAMS = {
    **{
        f.__name__: (lambda w, f=f: f(w, scan_as_python), lambda w, f=f, **o: f(w, functools.partial(loop.scan, **o)))
        for f in (recurrence, driven_by_the_inputs, chosen, a_path_in_the_body, nested)
    },
    "reversed": (
        lambda w: recurrence(w, functools.partial(scan_as_python, reverse=True)),
        lambda w, **o: recurrence(w, functools.partial(loop.scan, reverse=True, **o)),
    ),
    "fori": (power, lambda w, **o: power(w, fori=functools.partial(loop.fori, **o))),
    "while": (newton, lambda w, **o: newton(w, while_=functools.partial(loop.while_, **o))),
}
U = np.array([1.0, -0.5, 0.3])
DERIVATIVES = {
    "value": lambda f: f,
    **{mode: lambda f, mode=mode: grad(f, mode=mode) for mode in REVERSE},
    "forward": lambda f: lambda x: jvp(f, (x,), (U,))[1],
    "second order": lambda f: lambda x: second_order(f, x, U)[2],
    "taylor": lambda f: lambda x: taylor(f, [x, U], 3)[3],
    "hessian": hessian,
    "edge pushing": lambda f: hessian(f, mode="hessian"),
    "reverse over reverse": lambda f: grad(lambda x: np.sum(np.sin(grad(f)(x)) * U)),
    "reverse over forward": lambda f: grad(lambda x: jvp(f, (x,), (U,))[1]),
}
# A loop as an operation: alone, or the way forward and the way back of one.
RUNS = "run_region", "run_forward", "run_backward"
POINTS = [X, X, 0.9 * X, X + 0.3]


@pytest.mark.parametrize("derivative", DERIVATIVES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_loops_are_pythons_loops(name, derivative):
    expected, f = PROGRAMS[name]
    d = DERIVATIVES[derivative]
    np.testing.assert_allclose(d(f)(X), d(expected)(X), rtol=1e-9, atol=1e-11)


@pytest.mark.thinned(5)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("derivative", DERIVATIVES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_loops_are_pythons_loops(name, derivative, backend):
    expected, f = PROGRAMS[name]
    d = DERIVATIVES[derivative]
    c = compile(d(f), backend)
    for x in POINTS:
        np.testing.assert_allclose(c(x), d(expected)(x), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("derivative", ["value", "taped", "forward"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_loops_run_without_machine_code(name, derivative, monkeypatch):
    monkeypatch.setitem(sys.modules, "effgrad.stage.native", None)  # as where llvmlite is missing
    expected, f = PROGRAMS[name]
    d = DERIVATIVES[derivative]
    c = compile(d(f), "numpy")
    for x in POINTS:
        np.testing.assert_allclose(c(x), d(expected)(x), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("memory", [2, 3, 5, 100])
@pytest.mark.parametrize("name", PROGRAMS)
def test_any_memory_gives_the_same_gradient(name, memory):
    expected, f = PROGRAMS[name]
    g = grad(lambda w: f(w, memory=memory))
    np.testing.assert_allclose(g(X), grad(expected)(X), rtol=1e-9)
    c = compile(g)
    for x in (X, 0.9 * X):
        np.testing.assert_allclose(c(x), grad(expected)(x), rtol=1e-9)


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n != "a_path_in_the_body"])
@pytest.mark.parametrize("derivative", ["value", "taped", "forward"])
def test_a_compiled_loop_is_one_operation(name, derivative):
    graph = compile(DERIVATIVES[derivative](PROGRAMS[name][1])).path(X).graph
    found = sum(node.primitive.name in RUNS for node in graph)
    assert 1 <= found <= 3 and len(graph) < 60


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("derivative", ["value", "taped", "forward", "reverse over reverse"])
def test_the_source_runs_by_itself(name, derivative):
    expected, f = PROGRAMS[name]
    d = DERIVATIVES[derivative]
    graph = stage(d(f))(X)
    scope = {}
    exec(graph.to_python(), scope)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(scope["program"](X), d(expected)(X), rtol=1e-9, atol=1e-11)
    assert graph.draw().count("<rect") == len(graph) + 1


@functools.cache
def fewest_steps(length, snapshots):
    """How many steps have to be advanced to reverse `length` of them, by trying all ways."""
    if length == 1:
        return 0
    if snapshots == 1:
        return length * (length - 1) // 2
    return min(
        k + fewest_steps(k, snapshots) + fewest_steps(length - k, snapshots - 1) for k in range(1, length)
    )  # fmt: skip


@pytest.mark.parametrize("length, memory", [*itertools.product((1, 2, 5, 10, 17, 36), (2, 3, 4, 8))])
def test_the_steps_run_are_the_fewest_for_the_memory(length, memory):
    calls = []

    def body(i, c):
        calls.append(i)
        return np.sin(c)

    grad(lambda x: loop.fori(0, length, body, x, memory=memory))(0.5)
    assert len(calls) == length + (fewest_steps(length, memory) if memory < length else 0)


def peak(f, x):
    tracemalloc.start()
    f(x)
    size = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return size


@pytest.mark.thinned(2)
@pytest.mark.parametrize("compiled", [False, True])
def test_memory_is_what_is_asked_for(compiled):
    def gradient(memory):
        g = grad(lambda x: np.sum(loop.fori(0, 500, lambda i, c: np.sin(c) * 1.01, x, memory=memory)))
        g = compile(g) if compiled else g
        g(X)
        return g

    x = np.linspace(0.1, 1, 20_000)
    for g in (gradient(500), gradient(None), gradient(4)):
        g(x)
    kept, usual, least = (peak(gradient(m), x) for m in (500, None, 4))
    assert least < usual < kept / 2.5


def test_a_long_compiled_loop_takes_no_long_graph():
    def f(x):
        return loop.fori(0, 200_000, lambda i, c: c + 1e-6 * (np.cos(c) - c), x)

    c = compile(grad(f))
    c(0.3)
    assert len(c.path(0.3).graph) < 30
    step = 1e-6
    np.testing.assert_allclose(c(0.3), (compile(f)(0.3 + step) - compile(f)(0.3 - step)) / (2 * step), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, float])
def test_types_are_kept(dtype):
    x = X.astype(dtype)
    f = grad(lambda w: np.sum(loop.scan(lambda c, x: (np.tanh(c * w + x), c), w, XS.astype(dtype))[1]))
    c = compile(f)
    for _ in range(2):
        assert c(x).dtype == f(x).dtype == dtype
        np.testing.assert_allclose(c(x), f(x), rtol=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "f",
    [
        lambda x: loop.fori(0, 5, lambda i, c: c + x[0] * i, 0),  # begins with an integer
        lambda x: loop.fori(0, 3, lambda i, c: np.concatenate([c, x]), x),  # changes its shape
        lambda x: loop.fori(2, 2, lambda i, c: c * 2, x),  # no steps
        lambda x: loop.fori(0, 4, lambda i, c: c if i % 2 else c * x, x),  # asks for its number
        lambda x: loop.fori(0, 3, lambda i, c: c + x[i], 0.0),  # an index
        lambda x: loop.scan(lambda c, i: (c * x[i], (c, i)), 1.0, np.array([0, 2, 1])),
        lambda x: loop.scan(lambda c, _: (c * x, None), x, length=4),
        lambda x: loop.while_(lambda c: c[0] < 0, lambda c: c * 2, x),  # never begins
        lambda x: loop.while_(lambda c: np.sum(c) < 100, lambda c: c * 2 if c[0] > 1 else c + 1, x),
        lambda x: loop.scan(lambda c, r: ((c[1], c[0] + r, "name"), c[1]), (x, x * 2, "name"), XS)[1],
        lambda x: loop.fori(0, 3, lambda i, c: c * 1j, x)[0].real,
    ],
)
def test_shapes_of_loops(f, backend):
    c = compile(f, backend)
    for x in (X, X, X + 1):
        found, expected = c(x), f(x)
        for a, b in zip(*(found, expected) if isinstance(expected, tuple) else ([found], [expected]), strict=True):
            if b is not None:
                np.testing.assert_allclose(a, b, rtol=1e-12)


def test_lengths_that_do_not_agree_are_an_error():
    with pytest.raises(ValueError, match="one length"):
        loop.scan(lambda c, x: (c, x), 0.0, (np.ones(3), np.ones(4)))
    with pytest.raises(ValueError, match="one length"):
        loop.scan(lambda c, x: (c, x), 0.0)
    with pytest.raises(ValueError, match="memory"):
        loop.fori(0, 3, lambda i, c: c, 0.0, memory=1)


def test_an_integer_that_a_double_cannot_hold_is_exact():
    c = compile(lambda x: loop.fori(0, 60, lambda i, n: n * 2 + 1, 1) % 1000 * x)
    assert c(1.0) == ((2**61) - 1) % 1000
    with pytest.raises(OverflowError, match="64 bits"):
        compile(lambda x: loop.fori(0, 70, lambda i, n: n * 2 + 1, 1) * x)(1.0)


def test_snapshots_split_any_length():
    for length, snapshots in itertools.product(range(2, 60), range(1, 8)):
        assert 1 <= split(length, snapshots) < length


# Loops of a few numbers, which are one function.


DERIVATIVES_OF_A_NUMBER = {
    "value": lambda f: f, "reverse": grad, "forward": lambda f: lambda x: jvp(f, (x,), (1.0,))[1],
    "reverse of reverse": lambda f: grad(grad(f)), "forward of reverse": lambda f: lambda x: jvp(grad(f), (x,), (1.0,)),
}  # fmt: skip


def collatz(w):
    """How long a sequence is, and what it does to a product: integers, truth values and a loop inside."""

    def odd_part(n):
        return loop.while_(lambda n: n % 2.0 == 0.0, lambda n: n / 2, n)

    def step(state):
        n, product, steps, up = state
        return odd_part(3 * n + 1), product * np.sin(w + n) + n / 100, steps + 1, ~up

    n, product, steps, up = loop.while_(lambda state: state[0] != 1.0, step, (27.0, w, 0, np.bool_(False)))
    return product + steps * np.where(up, w, -w)


def root_of_a_loop(w):
    """A root found by steps that are derivatives, of a function that is a loop."""

    def f(x):
        return loop.while_(lambda s: s[1] < 3, lambda s: (s[0] * x - w, s[1] + 1), (x, 0))[0]

    def going(state):
        return np.abs(f(state)) > 1e-13

    return loop.while_(going, lambda x: x - f(x) / grad(f)(x), 2.0 + w)


def small_vectors(w):
    """Arrays of a few elements: moved, summed, multiplied."""

    def step(state):
        m, v, t = state
        m = np.stack([m[1], m[0] * w + 0.1]) @ np.array([[0.5, 0.1], [0.2, 0.4]])
        v = np.concatenate([v[1:], [np.sum(m) * t]])
        return m + np.max(v), v.reshape(3, 1).T.ravel(), t - 1.0

    m, v, _ = loop.while_(lambda state: state[2] > 0, step, (np.eye(2) * w, np.array([1.0, w, w * w]), 6.0))
    return np.sum(m**2) + v @ v


NUMBERS = [collatz, root_of_a_loop, small_vectors]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("f", NUMBERS)
@pytest.mark.parametrize("derivative", [*DERIVATIVES_OF_A_NUMBER])
def test_loops_of_numbers_are_pythons_loops(f, derivative):
    of = DERIVATIVES_OF_A_NUMBER[derivative]
    np.testing.assert_allclose(compile(of(f))(0.7), of(f)(0.7), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("f", [collatz, root_of_a_loop, small_vectors, grad(collatz), grad(small_vectors)])
def test_loops_of_numbers_are_one_function(f):
    c = compile(f)
    c(0.7)
    report = str(c.report(0.7))
    assert "(loop)" in report and "in it calls of NumPy" not in report


def test_a_reverse_pass_without_room_recomputes():
    def f(x, memory=None):
        def step(i, y):
            return y + 0.001 * np.sin(y)

        return loop.fori(0, 1000, step, x, memory=memory)

    for memory in (2, 30):
        assert compile(grad(lambda x, m=memory: f(x, m)))(0.5) == compile(grad(f))(0.5)


def test_equal_loops_run_once():
    def f(x):
        return loop.while_(lambda s: s < 100, lambda s: s * x, x)

    program = compile(lambda x: f(x) + f(x) * 2 + grad(f)(x)).path(2.0).graph
    assert sum(node.primitive.name in ("run_region", "run_forward") for node in program) == 1


@pytest.mark.parametrize("inside", [False, True])
def test_a_loop_without_end_can_be_interrupted(inside):
    def endless(x):
        return loop.while_(lambda s: s > -1, lambda s: s * 0.5, x)

    def once(x):
        return loop.while_(lambda s: s < 3, endless, x)

    def interrupt(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        with pytest.raises(KeyboardInterrupt):
            compile(once if inside else endless)(2.0)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_an_integer_beyond_a_double_in_an_inner_loop_is_exact():
    def f(x):
        inner = lambda n: loop.while_(lambda s: s[1] < 60, lambda s: (s[0] * 2 + 1, s[1] + 1), (n, 0))[0]  # noqa: E731
        step = lambda s: (s[0] + 1, s[1] + inner(s[2]) % 1000, s[2])  # noqa: E731
        return loop.while_(lambda s: s[0] < 1, step, (0, x, 1))[1]

    assert compile(f)(1.0) == 1.0 + ((2**61) - 1) % 1000


def test_a_loop_in_two_threads():
    """Long enough that one thread goes on while the other is in the middle of its run."""

    def total(step):
        return loop.while_(lambda s: s[1] < 3e6, lambda s: (s[0] + step, s[1] + 1), (0.0, 0.0))[0]

    steps = [1.0, 0.5, 2.0, 0.25]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert list(pool.map(total, steps)) == [3e6 * step for step in steps]
