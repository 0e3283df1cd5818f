"""Checkpoints change nothing but memory and the number of evaluations."""

import random
import tracemalloc

import numpy as np
import pytest
from runs import eagerly

from effgrad import EscapedValue, Irreproducible, checkpoint, grad, hessian, hvp, jvp

BACKEND = "native"  # of the compiled runs

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
def test_the_gradient_is_the_same(run, mode):
    np.testing.assert_allclose(run(grad)(marked_program, mode=mode)(X), run(grad)(plain_program)(X), rtol=1e-14)


@pytest.mark.parametrize("mode", MODES)
def test_results_of_every_shape(run, mode):
    def f(x):
        parts = checkpoint(lambda: {"a": x * x, "same": x, "n": 3, "pair": (x[0], 2.0)})
        return np.sum(parts["a"] * parts["same"]) * parts["n"] + parts["pair"][0] * parts["pair"][1]

    np.testing.assert_allclose(run(grad)(f, mode=mode)(X), 9 * X**2 + [2, 0, 0])


@pytest.mark.parametrize("mode", MODES)
def test_floats(run, mode):
    def f(x):
        y = checkpoint(lambda: x * x * x)
        return y * y + checkpoint(lambda: y)

    assert run(grad)(f, mode=mode)(2.0) == 6 * 32 + 12


def test_nested_derivatives(run):
    direction = np.array([1.0, 2.0, -1.0])
    np.testing.assert_allclose(run(hessian)(marked_program)(X), run(hessian)(plain_program)(X), rtol=1e-12)
    products = run(hvp)(marked_program, X, direction), run(hvp)(plain_program, X, direction)
    np.testing.assert_allclose(*products, rtol=1e-12)

    def directional(f):
        return lambda x: run(jvp)(f, (x,), (direction,))[1]

    expected = run(hessian)(plain_program)(X) @ direction
    np.testing.assert_allclose(run(grad)(directional(marked_program))(X), expected, rtol=1e-12)
    np.testing.assert_allclose(run(grad)(lambda x: run(grad)(marked_program)(x) @ direction)(X), expected, rtol=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_number_of_evaluations(run, mode):
    runs = []

    def step(x):
        runs.append(1)
        return np.sin(x)

    def nested(x, depth):
        return step(x) if depth == 0 else checkpoint(nested, x, depth - 1)

    run(grad)(lambda x: checkpoint(step, checkpoint(step, x)), mode=mode)(1.0)
    assert len(runs) == 4
    runs.clear()
    run(grad)(nested, mode=mode)(1.0, 3)
    assert len(runs) == 4  # once for each checkpoint around it, and once recorded


@pytest.mark.parametrize("mode", MODES)
def test_an_unused_region_is_not_run_again(run, mode):
    runs = []

    def f(x):
        checkpoint(lambda: runs.append(1) or x * x)
        return x * 3

    assert run(grad)(f, mode=mode)(2.0) == 3.0 and len(runs) == 1


def chain(x, steps, evaluations):
    for _ in range(steps):
        evaluations.append(1)
        x = np.sin(x)
    return x


def peak_and_evaluations(run, n, parts, mode):
    """Of the gradient of a chain of n steps on arrays of 10 kB, in equal parts with a mark each."""
    evaluations = []

    def f(x):
        for _ in range(parts):
            x = checkpoint(chain, x, n // parts, evaluations) if parts > 1 else chain(x, n, evaluations)
        return np.sum(x)

    x = np.ones(1250)
    tracemalloc.start()
    run(grad)(f, mode=mode)(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak, len(evaluations)


@pytest.mark.parametrize("mode", MODES)
def test_memory_of_a_chain_grows_as_the_square_root_with_square_root_marks(mode):
    peak_and_evaluations(eagerly, 64, 8, mode)  # what is made once and kept is no part of what is measured
    plain = [peak_and_evaluations(eagerly, n, 1, mode) for n in (64, 256)]
    marked = [peak_and_evaluations(eagerly, n, parts, mode) for n, parts in ((64, 8), (256, 16))]
    assert plain[1][0] / plain[0][0] > 3.5 and [runs for _, runs in plain] == [64, 256]
    assert marked[1][0] / marked[0][0] < 2.5 and marked[1][0] < plain[1][0] / 2
    assert [runs for _, runs in marked] == [2 * 64, 2 * 256]


@pytest.mark.parametrize("mode", MODES)
def test_what_cannot_be_repeated_is_an_error(run, mode):
    numbers = random.Random(0)  # Python's generator; NumPy's draws again what it drew
    with pytest.raises(Irreproducible, match="random"):
        run(grad)(lambda x: checkpoint(lambda: x * numbers.random()), mode=mode)(1.0)
    kept = []
    with pytest.raises(EscapedValue, match="checkpoint"):
        run(grad)(lambda x: checkpoint(lambda: kept.append(x * x) or x) * kept[0], mode=mode)(1.0)


def test_without_a_derivative_it_is_a_call():
    assert checkpoint(inside, 1.0, y=2.0) == inside(1.0, 2.0)


@pytest.mark.parametrize("mode", MODES)
def test_arrays_that_are_written_to_go_into_and_out_of_checkpoints(run, mode):
    def built(x):
        return np.array([x[0] * x[1], x[2], x[0]])

    def written(x):
        y = x * 1.0
        y[0] = y[1] * y[2]
        y[1:] += x[:-1]
        return y

    def filled(x):
        y = np.zeros(3)
        for i in range(3):
            y[i] = x[i] * x[i]
        return y, y[:2]

    def program(part):
        def f(x):
            y, view = part(filled, part(written, part(built, filled(x)[0])))
            y[0] = y[2] * 3
            return np.sum(view * view) + np.sum(np.sin(y))

        return f

    x = np.array([0.3, 0.5, 0.2])
    expected = run(grad)(program(lambda f, *args: f(*args)))(x)
    np.testing.assert_allclose(run(grad)(program(checkpoint), mode=mode)(x), expected, rtol=1e-12)


def reads_an_array_written_before(x):
    a = np.zeros(4)
    a[0] = x[0]
    a[1:] = np.sin(x)
    view = a[2:]
    y = checkpoint(lambda: np.sum(np.cos(a) * a[1]) + view[0])
    return y * np.sum(a * a) * view[1]


def returns_arrays_that_were_written(x):
    def filled():
        a = np.zeros(3)
        a[:2] = x[1:]
        a[2] = np.sin(a[0])
        return a, a[1:]

    a, view = checkpoint(filled)
    a[0] *= 2.0
    view[1] = a[0] * view[0]
    return np.sum(a * x) * a[2]


def returns_an_array_and_its_view(x):
    y, view = checkpoint(lambda: ((y := np.sin(x)), y[1:]))
    y[1] = x[0] * y[2]
    return np.sum(view * view) + y[0] * view[0]


def works_in_a_scratch_array_of_the_outside(x):
    scratch = np.zeros(3)

    def part(k):
        scratch[:] = np.sin(x) * k
        scratch[0] = scratch[1] * scratch[2]
        return np.sum(scratch * scratch)

    return checkpoint(part, 2.0) * checkpoint(part, 3.0)


def fills_a_trajectory(x):
    states = np.zeros((5, 3))
    states[0] = x
    for i in range(1, 5):
        states[i] = checkpoint(lambda i=i: np.sin(states[i - 1]) * states[i - 1, ::-1] + x[0])
    return np.sum(states[1:] * states[:-1])


def reads_rows_while_others_are_written_and_all_is_read(x):
    states = np.zeros((4, 3))
    states[0] = x
    total = 0.0
    for i in range(1, 4):
        row = checkpoint(lambda i=i: np.sin(states[i - 1]) * states[i - 1, 0])
        states[i] = row
        total = total + np.sum(states**2)  # the log of writes becomes a new whole value here
        total = total * checkpoint(lambda i=i: np.sum(states[i]) + checkpoint(lambda: states[i, 1] * x[1]))
    return total


@pytest.mark.parametrize("mode", MODES)
def test_an_element_written_to_later_is_what_it_was(mode):
    def f(x):
        a = np.zeros(2)
        a[0] = x
        y = checkpoint(lambda: a[0] * 2.0)
        a[0] = x * x
        return y + a[0]

    assert grad(f, mode=mode)(1.5) == 5.0


@pytest.mark.thinned(4)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "f",
    [
        reads_an_array_written_before, returns_arrays_that_were_written, returns_an_array_and_its_view,
        works_in_a_scratch_array_of_the_outside, fills_a_trajectory,
        reads_rows_while_others_are_written_and_all_is_read,
    ],
)  # fmt: skip
def test_arrays_that_are_written_to(run, f, mode):
    differences = [(f(X + e) - f(X - e)) / 2e-6 for e in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(run(grad)(f, mode=mode)(X), differences, rtol=1e-7)
    u = np.array([1.0, -0.5, 2.0])
    second = [(run(grad)(f)(X + e) - run(grad)(f)(X - e)) @ u / 2e-6 for e in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(run(grad)(lambda x: np.dot(run(grad)(f, mode=mode)(x), u))(X), second, rtol=1e-6)
    np.testing.assert_allclose(run(jvp)(run(grad)(f, mode=mode), (X,), (u,))[1], second, rtol=1e-6)
    np.testing.assert_allclose(run(hvp)(f, X, X), run(hessian)(f, mode="hessian")(X) @ X, rtol=1e-10)


@pytest.mark.parametrize("mode", MODES)
def test_an_array_written_inside_is_a_result(run, mode):
    def f(x):
        kept = np.zeros(2)
        checkpoint(lambda: kept.__setitem__(0, x * x))
        return np.sum(kept)

    assert run(grad)(f, mode=mode)(2.0) == 4.0


@pytest.mark.parametrize("mode", MODES)
def test_a_value_that_leaves_a_checkpoint_by_another_way_and_is_the_result_is_an_error(run, mode):
    def f(x):
        kept = []
        checkpoint(lambda: kept.append(x * x))
        return kept[0]

    with pytest.raises(EscapedValue):
        run(grad)(f, mode=mode)(2.0)


def test_views_of_one_array_and_an_array_written_to_may_go_into_checkpoints(run):
    x = np.linspace(0.0, 1.0, 20_000)

    def f(a):
        scale = np.zeros(2)
        scale[0], scale[1] = a, a * a
        return sum(checkpoint(lambda s, block: np.sum(s[0] * np.sin(s[1] * block)), scale, block)
                   for block in np.split(x, 4))  # fmt: skip

    expected = run(grad)(lambda a: np.sum(a * np.sin(a * a * x)))(0.7)
    np.testing.assert_allclose(run(grad)(f)(0.7), expected, rtol=1e-12)
    assert x.flags.writeable
