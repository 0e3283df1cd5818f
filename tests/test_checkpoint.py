"""Checkpoints change nothing but memory and the number of evaluations."""

import numpy as np
import pytest

from effgrad import EscapedValue, Irreproducible, checkpoint, grad, hessian, hvp, jvp

MODES = ["taped", "checkpointed", "continuation", "delta"]
X = np.array([0.3, 0.7, -0.4])


def inside(x, y):
    return np.sin(x) * y + x


def plain_program(x):
    y = np.sum(x) * x
    z = inside(x, y)
    return np.sum(inside(z, inside(y, x)) * z)


def marked_program(x):
    y = np.sum(x) * x
    z = checkpoint(lambda: inside(x, y))
    return np.sum(checkpoint(lambda: inside(z, checkpoint(inside, y, x))) * z)


@pytest.mark.parametrize("mode", MODES)
def test_the_gradient_is_the_same(mode):
    np.testing.assert_allclose(grad(marked_program, mode=mode)(X), grad(plain_program)(X), rtol=1e-14)


@pytest.mark.parametrize("mode", MODES)
def test_results_of_every_shape(mode):
    def f(x):
        parts = checkpoint(lambda: {"a": x * x, "same": x, "n": 3, "pair": (x[0], 2.0)})
        return np.sum(parts["a"] * parts["same"]) * parts["n"] + parts["pair"][0] * parts["pair"][1]

    np.testing.assert_allclose(grad(f, mode=mode)(X), 9 * X**2 + [2, 0, 0])


@pytest.mark.parametrize("mode", MODES)
def test_floats(mode):
    def f(x):
        y = checkpoint(lambda: x * x * x)
        return y * y + checkpoint(lambda: y)

    assert grad(f, mode=mode)(2.0) == 6 * 32 + 12


def test_nested_derivatives():
    direction = np.array([1.0, 2.0, -1.0])
    np.testing.assert_allclose(hessian(marked_program)(X), hessian(plain_program)(X), rtol=1e-12)
    np.testing.assert_allclose(hvp(marked_program, X, direction), hvp(plain_program, X, direction), rtol=1e-12)

    def directional(f):
        return lambda x: jvp(f, (x,), (direction,))[1]

    expected = hessian(plain_program)(X) @ direction
    np.testing.assert_allclose(grad(directional(marked_program))(X), expected, rtol=1e-12)
    np.testing.assert_allclose(grad(lambda x: grad(marked_program)(x) @ direction)(X), expected, rtol=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_number_of_evaluations(mode):
    runs = []

    def step(x):
        runs.append(1)
        return np.sin(x)

    def nested(x, depth):
        return step(x) if depth == 0 else checkpoint(nested, x, depth - 1)

    grad(lambda x: checkpoint(step, checkpoint(step, x)), mode=mode)(1.0)
    assert len(runs) == 4
    runs.clear()
    grad(nested, mode=mode)(1.0, 3)
    assert len(runs) == 4  # once for each checkpoint around it, and once recorded


@pytest.mark.parametrize("mode", MODES)
def test_an_unused_region_is_not_run_again(mode):
    runs = []

    def f(x):
        checkpoint(lambda: runs.append(1) or x * x)
        return x * 3

    assert grad(f, mode=mode)(2.0) == 3.0 and len(runs) == 1


def test_peak_record_of_a_chain_with_square_root_marks():
    from effgrad.modes import Taped

    n, peak = 400, []

    class Measured(Taped):
        def _walk(self, collected, first):
            peak.append(len(self.tape))
            super()._walk(collected, first)

    def chain(x, steps):
        for _ in range(steps):
            x = np.sin(x) * 1.1
        return x

    def f(x):
        for _ in range(20):
            x = checkpoint(chain, x, n // 20)
        return x

    with Measured() as taped:
        y = f(taped.variable(1.0))
    taped.pull([(y.shadow, 1.0)])
    assert max(peak) <= 41 + 2 * 20  # the marks, and one region of 20 steps of two operations


@pytest.mark.parametrize("mode", MODES)
def test_what_cannot_be_repeated_is_an_error(mode):
    rng = np.random.default_rng(0)
    with pytest.raises(Irreproducible, match="random"):
        grad(lambda x: checkpoint(lambda: x * rng.normal()), mode=mode)(1.0)
    kept = []
    with pytest.raises(EscapedValue, match="checkpoint"):
        grad(lambda x: checkpoint(lambda: kept.append(x * x) or x) * kept[0], mode=mode)(1.0)


def test_without_a_derivative_it_is_a_call():
    assert checkpoint(inside, 1.0, y=2.0) == inside(1.0, 2.0)


def test_views_of_one_array_and_an_array_written_to_may_go_into_checkpoints():
    x = np.linspace(0.0, 1.0, 20_000)

    def f(a):
        scale = np.zeros(2)
        scale[0], scale[1] = a, a * a
        return sum(checkpoint(lambda s, block: np.sum(s[0] * np.sin(s[1] * block)), scale, block)
                   for block in np.split(x, 4))  # fmt: skip

    expected = grad(lambda a: np.sum(a * np.sin(a * a * x)))(0.7)
    np.testing.assert_allclose(grad(f)(0.7), expected, rtol=1e-12)
    assert x.flags.writeable
