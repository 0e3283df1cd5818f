"""The laws of differentiation, on programs from R^n to R^n made at random, for every mode."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import eagerly, examples

import effgrad
from effgrad import checkpoint, function, grad, hessian, jacobian, jvp, second_order, taylor, vjp
from effgrad.fast import REVERSE

BACKEND = "numpy"  # of the compiled runs

N = 3
TURN = np.array([[0.6, -0.8, 0.1], [0.8, 0.6, 0.0], [-0.2, 0.3, 1.0]])


def overwritten(x):
    y = x * 1.0
    y[0] = y[1] * y[2]
    y[1:] += x[:-1]
    return y


STEPS = {
    "sin": np.sin,
    "tanh": np.tanh,
    "gauss": lambda x: np.exp(-x * x),
    "cube": lambda x: x**3 / (1 + x * x),
    "turn": lambda x: TURN @ x,
    "roll": lambda x: np.roll(x, 1),
    "cumsum": lambda x: np.cumsum(x) * 0.5,
    "scale": lambda x: x / np.sqrt(1 + x @ x),
    "softmax": lambda x: np.exp(x) / np.sum(np.exp(x)),
    "reverse": lambda x: x[::-1] * x,
    "outer": lambda x: np.outer(x, np.cos(x)) @ x,
    "gather": lambda x: np.array([x[0] * x[1], x[2], x[0]]),
    "written": overwritten,
    "solve": lambda x: np.linalg.solve(np.eye(N) + np.outer(x, x), x),
    "branch": lambda x: x * 2.0 if np.sum(x) > 0 else x - 0.5,
}
programs = st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=5)
numbers = st.integers(-8, 8).map(lambda i: i / 8 + 0.01)
vectors = st.lists(numbers, min_size=N, max_size=N).map(np.array)
drawn = settings(max_examples=examples(18), deadline=None)


def program(names, marked=False):
    def f(x):
        for name in names:
            x = checkpoint(STEPS[name], x) if marked else STEPS[name](x)
        return x

    return f


def pushed(run, f, x, v, mode):
    """The derivative of f along v, by a mode."""
    if mode == "forward":
        return run(jvp)(f, (x,), (v,))[1]
    if mode == "second_order":
        return run(second_order)(f, x, v)[1]
    if mode == "taylor":
        return run(taylor)(f, [x, v])[1]
    return np.array([run(grad)(lambda x, i=i: f(x)[i], mode=mode)(x) @ v for i in range(N)])


def pulled(run, f, x, w, mode):
    """The transposed derivative of f along w, by a mode."""
    if mode in REVERSE:
        return run(grad)(lambda x: f(x) @ w, mode=mode)(x)
    return np.array([w @ pushed(run, f, x, e, mode) for e in np.eye(N)])


MODES = ["forward", "second_order", "taylor", *REVERSE]
every_mode = pytest.mark.parametrize("mode", MODES)


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * (1 + np.max(np.abs(b))))


@drawn
@given(programs, programs, vectors, vectors)
@every_mode
def test_chain_rule(run, mode, first, second, x, v):
    f, g = program(first), program(second)
    close(pushed(run, lambda x: g(f(x)), x, v, mode), pushed(run, g, f(x), pushed(run, f, x, v, mode), mode))
    close(pulled(run, lambda x: g(f(x)), x, v, mode), pulled(run, f, x, pulled(run, g, f(x), v, mode), mode))


@drawn
@given(programs, vectors, vectors, vectors, numbers)
@every_mode
def test_derivatives_are_linear_in_the_direction(run, mode, names, x, v, w, c):
    f = program(names)
    close(pushed(run, f, x, v + c * w, mode), pushed(run, f, x, v, mode) + c * pushed(run, f, x, w, mode))
    close(pulled(run, f, x, v + c * w, mode), pulled(run, f, x, v, mode) + c * pulled(run, f, x, w, mode))


@drawn
@given(programs, vectors, vectors, vectors)
@pytest.mark.parametrize("mode", REVERSE)
def test_the_reverse_derivative_is_the_transpose_of_the_forward_one(run, mode, names, x, v, w):
    f = program(names)
    close(w @ pushed(run, f, x, v, "forward"), pulled(run, f, x, w, mode) @ v)
    close(w @ run(jacobian)(f)(x) @ v, pulled(run, f, x, w, mode) @ v)


@drawn
@given(programs, vectors, vectors)
def test_vjp_may_be_pulled_many_times_and_is_linear(names, x, w):
    pull = vjp(program(names), x)[1]
    close(pull(w)[0], sum(c * pull(e)[0] for c, e in zip(w, np.eye(N), strict=True)))


@pytest.mark.thinned(2)
@settings(max_examples=8, deadline=None)
@given(programs, vectors, vectors)
@every_mode
def test_second_derivatives_are_symmetric(run, mode, names, x, w):
    f = program(names)
    by_mode = run(jacobian)(lambda x: pulled(run, f, x, w, mode))(x)
    close(by_mode, by_mode.T)
    close(by_mode, run(hessian)(lambda x: f(x) @ w)(x))


@drawn
@given(programs, vectors, vectors)
@every_mode
def test_checkpoints_change_nothing(run, mode, names, x, v):
    f, marked = program(names), program(names, marked=True)
    nested = lambda x: checkpoint(lambda y: checkpoint(marked, y), x)  # noqa: E731
    for g in (marked, nested):
        close(pulled(run, g, x, v, mode), pulled(run, f, x, v, mode))


@settings(max_examples=3, deadline=None)
@given(programs, vectors, vectors)
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("mode", ["forward", "taped", "continuation", "delta", "checkpointed"])
def test_staging_changes_nothing(mode, backend, names, x, v):
    f = program(names, marked=mode == "checkpointed")
    compiled = effgrad.compile(lambda x, v: pulled(eagerly, f, x, v, mode), backend=backend)
    for point in (x, x + 0.25, -x):
        close(compiled(point, v), pulled(eagerly, f, point, v, mode))


def derivative(run, f):
    return lambda x: run(jvp)(f, (x,), (1.0,))[1]


def shifted(u):
    return function(lambda f: function(lambda x: f(x + u)))


SCALAR = [np.sin, np.exp, lambda x: x * x * x, lambda x: x / (1 + x * x), lambda x: np.tanh(x) * x, lambda x: x + 0.5]


@drawn
@given(st.lists(st.sampled_from(SCALAR), min_size=1, max_size=4), numbers)
def test_the_derivative_of_the_shift_is_the_derivative(parts, x):
    """D(s)(0) = D, where s(u)(f)(x) = f(x + u); applied twice, it is the second derivative."""

    def f(x):
        for part in parts:
            x = part(x)
        return x

    d = derivative(eagerly, shifted)(0.0)
    close(d(f)(x), derivative(eagerly, f)(x))
    close(d(d(f))(x), derivative(eagerly, derivative(eagerly, f))(x))
