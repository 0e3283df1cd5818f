"""A fused function has the same derivatives of every order, and leaves one operation."""

import numpy as np
import programs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import Numpy
from runs import eagerly
from test_modes import OPERATORS, OTHERS, close, exact, nested_program, points

from effgrad import Detached, checkpoint, compile, fuse, grad, hessian, jacobian, jvp, second_order, taylor
from effgrad.fast import REVERSE
from effgrad.modes import Taped

X = np.array([0.3, 0.7, -0.4])
U = np.array([1.0, -0.5, 2.0])


@settings(deadline=None, max_examples=40)
@given(programs.programs(), points, st.sampled_from(sorted(REVERSE)))
def test_generated_programs(steps, x, mode):
    run = lambda x: programs.run(Numpy, steps, [x[0], x[1], x[2]])  # noqa: E731
    fused = fuse(run)
    f, g = (lambda x, h=h: h(x) * np.sin(h(x * x)) for h in (run, fused))
    close(grad(g, mode=mode)(x), grad(f)(x))
    close(jvp(g, (x,), (U,))[1], grad(f)(x) @ U)
    second = hessian(f)(x)
    close(jvp(grad(g, mode=mode), (x,), (U,))[1], second @ U)
    close(hessian(g, mode="hessian")(x), second)
    close(second_order(g, x, U)[2], U @ second @ U)
    close(2 * taylor(g, [x, U], order=2)[2], U @ second @ U)


@pytest.mark.parametrize("outer", OPERATORS | OTHERS)
def test_two_modes_of_any_order(outer):
    """The third derivative, too, where it is taken by modes of second order."""
    order, operator = (OPERATORS | OTHERS)[outer]
    for inner in ("forward", "taped", "second_order", "taylor", "hessian"):
        k, below = OPERATORS[inner]
        derivative = operator(eagerly, below(eagerly, fuse(nested_program)))
        np.testing.assert_allclose(derivative(0.7), exact(order + k), rtol=1e-8)


def test_arrays_pytrees_and_other_arguments():
    @fuse
    def layer(parameters, x, power=2, name=None):
        """A layer."""
        h = np.tanh(parameters["w"] @ x) ** power
        return {"h": h, "norm": np.sum(h * h), "label": "layer", "none": name}

    def loss(f):
        def total(w, x):
            out = f({"w": w}, x, power=3)
            assert out["label"] == "layer" and out["none"] is None
            return np.sum(out["h"] * x[:2]) * out["norm"]

        return total

    w = np.arange(6.0).reshape(2, 3) / 7
    for argnums in (0, 1, (0, 1)):
        fused, plain = (grad(loss(f), argnums)(w, X) for f in (layer, layer.__wrapped__))
        for a, b in zip(np.atleast_1d(fused) if argnums != (0, 1) else fused, plain, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
    np.testing.assert_allclose(
        jacobian(lambda x: layer({"w": w}, x)["h"])(X), jacobian(lambda x: layer.__wrapped__({"w": w}, x)["h"])(X)
    )
    assert layer.__doc__ == "A layer." and layer({"w": w}, X)["h"].shape == (2,)


def test_one_operation_is_left_on_the_tape():
    def chain(x):
        for _ in range(100):
            x = np.sin(x) * 1.01
        return x

    lengths = {}
    for f in (chain, fuse(chain)):
        with Taped() as taped:
            f(f(taped.variable(0.5)))
            lengths[f] = len(taped.entries)
    assert list(lengths.values()) == [401, 3]


def test_in_a_checkpoint_and_with_a_checkpoint_inside():
    f = lambda x: np.sum(np.sin(x) * checkpoint(lambda: x * x))  # noqa: E731
    g = lambda x: checkpoint(lambda: fuse(f)(x) ** 2) * x[0]  # noqa: E731
    np.testing.assert_allclose(grad(g)(X), grad(lambda x: f(x) ** 2 * x[0])(X), rtol=1e-12)


def test_a_value_of_an_outer_derivative_may_be_closed_over_and_one_of_the_same_may_not():
    inner = lambda x: grad(lambda y: fuse(lambda z: z * x * z)(y))(x)  # noqa: E731
    assert grad(inner)(3.0) == 12.0  # d/dx 2 x^2
    with pytest.raises(Detached, match="closes over"):
        grad(lambda x: fuse(lambda y: y * x)(x))(3.0)


def test_writing_into_an_argument_is_an_error():
    def f(x):
        x[0] = 1.0
        return np.sum(x)

    with pytest.raises(Detached, match="writes into its argument"):
        grad(lambda x: fuse(f)(x * 1.0))(X)

    def g(x, buffer):
        buffer[0] = 2.0
        return np.sum(x) * buffer[0]

    with pytest.raises(ValueError, match="read-only"):
        grad(lambda x: fuse(g)(x, np.ones(1)))(X)
    buffer = np.ones(1)
    with pytest.raises(ValueError, match="read-only"):
        grad(lambda x: fuse(g)(x, buffer))(X)
    assert buffer[0] == 1.0 and buffer.flags.writeable


def test_an_array_that_was_filled_is_an_argument():
    f = fuse(lambda a, b: np.sum(np.sin(a) * b))

    def loss(x):
        a = np.zeros(3)
        a[:2] = x[1:] * x[0]
        return f(a, x) * f(x, a[1:2])

    differences = [(loss(X + e) - loss(X - e)) / 2e-6 for e in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(grad(loss)(X), differences, rtol=1e-6)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_compiled(backend):
    f = fuse(lambda x: np.sum(np.sin(x) ** 2) * x[0])
    for derivative in (grad, hessian):
        exact = derivative(lambda x: f(x) * f(2 * x))
        compiled = compile(exact, backend)
        for x in (X, X + 1.0):
            np.testing.assert_allclose(compiled(x), exact(x), rtol=1e-12)


def test_a_checkpoint_inside_a_checkpoint_sees_the_array_that_a_loop_writes():
    """The end of the inner run forgot the memory of the outer one, and the gradient was wrong without an error."""
    f = lambda x: programs.trajectory(np, x[0], x[1], x[2]) * np.sin(programs.trajectory(np, *(x * x)))  # noqa: E731
    x = np.array([1.0, 0.3, 0.2])
    expected = [(f(x + 1e-6 * e) - f(x - 1e-6 * e)) / 2e-6 for e in np.eye(3)]
    for mode in ("taped", "continuation", "delta"):
        np.testing.assert_allclose(grad(f, mode=mode)(x), expected, rtol=1e-6)
