"""Operations whose results are told and not computed while a program is staged."""

import sys

import numpy as np
import pytest
from numpy_cases import CASES, X
from random_programs import random_program

import effgrad

deferred = sys.modules["effgrad.stage.deferred"]


def staged(monkeypatch, least, f, *args):
    """What each operation of a program gives, with operations on `least` elements and more left for deferred."""
    monkeypatch.setattr(deferred, "DEFERRED_SIZE", least)
    return [(node.primitive.name, node.kind, node.shape, node.dtype) for node in effgrad.stage(f)(*args)]


def steps(shape, strides):
    """The strides along the axes of two elements and more; others are never used."""
    return [step for n, step in zip(shape, strides, strict=True) if n > 1] if 0 not in shape else []


@pytest.fixture
def layouts(monkeypatch):
    """Compare the memory layout of each deferred result, as told, with that which NumPy gives it; count them."""
    compared, told = [], deferred.result

    def result(primitive, args, params):
        value = told(primitive, args, params)
        if type(value) is deferred.Deferred and value.kind is np.ndarray and value.strides is not None:
            found = primitive.function(*[deferred.force(a) for a in args], **params)
            found = [step // found.itemsize for step in found.strides]
            assert steps(value.shape, value.strides) == steps(value.shape, found), primitive.name
            compared.append(primitive.name)
        return value

    monkeypatch.setattr(deferred, "DEFERRED_SIZE", 1)
    monkeypatch.setattr(deferred, "result", result)
    return compared


TURNED = {
    "as it is": lambda x: x, "in column order": np.asfortranarray, "reversed": lambda x: x[:, ::-1],
    "a transposed view": lambda x: np.repeat(x, 2, 1).T[::2].T, "computed": lambda x: np.sin(x.T).T,
}  # fmt: skip


@pytest.mark.thinned(16)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("turn", TURNED)
def test_the_memory_layout_is_told_as_numpy_gives_it(name, turn, layouts):
    def f(x):
        return sum(np.sum(leaf) for leaf in CASES[name](TURNED[turn](x)))

    for run in (f, effgrad.value_and_grad(f)):
        try:
            run(X)
        except (TypeError, effgrad.NoRule):  # the result is no list, or has no derivative
            continue
        effgrad.stage(run)(X)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("turned", [False, True])
def test_the_memory_layout_is_told_in_random_programs(seed, turned, layouts):
    x = np.random.default_rng(seed).uniform(-1, 1, (4, 3))
    f = random_program(seed)
    effgrad.stage(effgrad.value_and_grad((lambda x: f(np.exp(x).T)) if turned else f))(x.T.copy() if turned else x)
    assert layouts


def same_in_both(monkeypatch, f, *args):
    assert staged(monkeypatch, 1, f, *args) == staged(monkeypatch, 1 << 60, f, *args)


@pytest.mark.parametrize("name", CASES)
def test_what_is_told_is_what_numpy_gives(name, monkeypatch):
    try:
        same_in_both(monkeypatch, lambda x: CASES[name](x), X)
    except effgrad.NoRule as error:  # of some functions only the derivatives can be staged
        assert "cannot be staged" in str(error)
        same_in_both(monkeypatch, effgrad.grad(lambda x: sum(np.sum(leaf) for leaf in CASES[name](x))), X)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("dtype", [float, np.float32])
def test_in_random_programs_and_their_gradients(seed, dtype, monkeypatch):
    x = np.random.default_rng(seed).uniform(-1, 1, (4, 3)).astype(dtype)
    same_in_both(monkeypatch, effgrad.value_and_grad(random_program(seed)), x)


WRITES = {
    "reshaped": lambda y: np.reshape(y, (-1,)),
    "reshaped in another order": lambda y: np.reshape(y.T, (-1,)),
    "with another axis": lambda y: y.T[:, None].reshape(y.shape[::-1]),
    "transposed": lambda y: y.T,
    "sliced": lambda y: y[1:, ::2],
    "gathered": lambda y: y[[0, 1]],
    "joined": lambda y: np.concatenate([y, y]),
    "broadcast and copied": lambda y: np.broadcast_to(y, (2, *y.shape)).copy(),
}


@pytest.mark.parametrize("compute", [lambda x: x * x, lambda x: x.T * 2, lambda x: x[None, 0] + x.T[:, :1]])
@pytest.mark.parametrize("name", WRITES)
def test_writes_are_seen_through_the_views_that_numpy_makes(name, compute, monkeypatch):
    def f(x):
        y = compute(x)
        view = WRITES[name](y)
        y[0] = 5.0
        return view * 1.0

    monkeypatch.setattr(deferred, "DEFERRED_SIZE", 1)
    x = np.arange(12.0).reshape(3, 4)
    expected = f(x.copy())
    np.testing.assert_array_equal(effgrad.stage(f)(x)(x)[0], expected)
    np.testing.assert_array_equal(effgrad.compile(f)(x), expected)


def test_a_branch_asks_for_the_value(monkeypatch):
    monkeypatch.setattr(deferred, "DEFERRED_SIZE", 1)
    asked = []

    def f(x):
        y = np.exp(x - np.max(x)) * 2
        asked.append(bool(np.sum(y) > 2.5))
        return np.sum(y * y) if asked[-1] else np.sum(y)

    compiled = effgrad.compile(effgrad.grad(f))
    for x in (np.arange(3.0), np.arange(3.0) * 100):
        np.testing.assert_allclose(compiled(x), effgrad.grad(f)(x), rtol=1e-12, atol=1e-15)
    assert {True, False} == set(asked)


def test_long_chains_are_computed_without_recursion(monkeypatch):
    monkeypatch.setattr(deferred, "DEFERRED_SIZE", 1)

    def f(x):
        for _ in range(5000):
            x = x * 0.999 + 0.001
        return x if np.sum(x) > 1 else -x

    x = np.linspace(0, 2, 5)
    np.testing.assert_allclose(effgrad.compile(f)(x), f(x), rtol=1e-12)


def test_errors_are_those_of_numpy(monkeypatch):
    monkeypatch.setattr(deferred, "DEFERRED_SIZE", 1)
    for f in (lambda x: x + np.ones(5), lambda x: x @ np.ones((5, 5)), lambda x: np.sum(x, axis=7), lambda x: x[9]):
        with pytest.raises(Exception) as expected:
            f(np.ones((3, 4)))
        with pytest.raises(type(expected.value)) as found:
            effgrad.stage(f)(np.ones((3, 4)))
        assert str(found.value) == str(expected.value)


def test_the_first_call_gives_what_the_second_gives():
    f = effgrad.compile(effgrad.value_and_grad(lambda x: np.sum(np.tanh(x) / (1 + np.exp(x * x)))))
    x = np.random.default_rng(0).uniform(-1, 1, 5000)
    (first, gradient), (second, again) = f(x), f(x)
    assert first == second
    np.testing.assert_array_equal(gradient, again)


@pytest.fixture
def calls(monkeypatch):
    """How many regions are compiled, and how often they run."""
    effgrad.compile(np.sin)(1.0)
    kind, counts = sys.modules["effgrad.stage.native.executable"].Executable, {"__init__": 0, "once": 0}

    def counting(name, method):
        def counted(*args, **kwargs):
            counts[name] += 1
            return method(*args, **kwargs)

        monkeypatch.setattr(kind, name, counted)

    for name in counts:
        counting(name, getattr(kind, name))
    return counts


def test_a_loop_of_numbers_is_compiled_and_run_once_in_a_first_call(calls):
    def f(x, y):
        for _ in range(5000):
            x, y = x + 1e-3 * x * (1.0 - y), y + 1e-3 * y * (x - 1.0)
        return x * y

    effgrad.compile(effgrad.grad(f, argnums=(0, 1)))(0.8, 1.2)
    assert calls == {"__init__": 2, "once": 2}


@pytest.mark.parametrize("dtype", [float, np.float32])
def test_a_loop_is_compiled_and_run_once_in_a_first_call(dtype, calls):
    """The way forward and the way back, and nothing that nobody asks for; nor is a stack too small, which would make
    the loop run again."""

    def f(x):
        rows = np.zeros((5000, x.size), x.dtype)
        for i in range(1, 5000):
            rows[i] = np.sin(rows[i - 1]) * np.cos(x)
        return np.sum(rows[-1] ** 2)

    x = np.linspace(0.1, 1.0, 5).astype(dtype)
    np.testing.assert_allclose(effgrad.compile(effgrad.grad(f))(x), effgrad.grad(f)(x), rtol=1e-4)
    assert calls == {"__init__": 2, "once": 2}


@pytest.mark.parametrize("steps", [0, 40])
@pytest.mark.parametrize("size", [3, 20_000])
@pytest.mark.parametrize("order", [1, -1])
def test_a_deferred_value_is_of_arrays_as_they_were(steps, size, order):
    """The program writes to an array after it has computed with it, and then asks for the value."""

    def f(x):
        scale = np.full(size, 2.0)[::order]
        for _ in range(steps):
            x = np.sin(x)
        y = x * scale
        scale[:] = 1000.0
        return np.sum(y) if y[0] < 50.0 else 0.0

    x = np.linspace(0.3, 0.5, size)
    assert effgrad.compile(f)(x) == pytest.approx(f(x), rel=1e-12)
    np.testing.assert_allclose(effgrad.compile(effgrad.grad(f))(x), effgrad.grad(f)(x), rtol=1e-10)


@pytest.mark.parametrize("program", [
    lambda x: float(np.sum(x * x)) ** 2, lambda x: np.sum(x * x).item() * x[3], lambda x: abs(complex(np.sum(x * 1j))),
    lambda x: sum(float(row) * k for k, row in enumerate(filled_in_a_loop(x))),
])  # fmt: skip
def test_a_deferred_number_becomes_one_of_pythons(program):
    """`float(np.sum(x))` of a large array, and of an array that a loop fills, ended in an AttributeError."""
    x = np.linspace(0.3, 0.5, 20_000)
    expected = effgrad.grad(program)(x)
    np.testing.assert_allclose(effgrad.compile(effgrad.grad(program))(x), expected, rtol=1e-12, atol=1e-14)


def filled_in_a_loop(x):
    rows = np.zeros(18)
    for i in range(18):
        rows[i] = np.exp(-x[i]) / (1 + x[0] * i)
    return rows
