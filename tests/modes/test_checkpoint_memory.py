"""Checkpoints that read and write arrays of the program around them."""

import gc
import linecache

import numpy as np
import pytest
from checkpoint_programs import Programs

from effgrad import checkpoint, grad, hessian, jvp

MODES = ["taped", "checkpointed", "continuation", "delta"]
X = np.array([0.3, 0.7, -0.4])


def at_once(f, *args):
    return f(*args)


def program(seed, part):
    """A random program whose checkpoints are performed by `part`."""
    source, name = Programs(seed).source(), f"<checkpoints {seed}>"
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    names = {"np": np, "CK": part}
    exec(compile(source, name, "exec"), names)
    return names["f"]


@pytest.mark.parametrize(
    "seed", [seed if seed < 20 else pytest.param(seed, marks=pytest.mark.sweep) for seed in range(500)]
)
def test_random_programs(seed):
    f, plainly = program(seed, checkpoint), program(seed, at_once)
    x = np.random.default_rng(seed).normal(size=3)
    wanted = grad(plainly, argnums=(0, 1))(x.copy(), 0.713)
    for mode in MODES:
        found = grad(f, argnums=(0, 1), mode=mode)(x.copy(), 0.713)
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)
    if seed % 5 == 0:
        second = hessian(lambda x: plainly(x, 0.713))(x.copy())
        np.testing.assert_allclose(hessian(lambda x: f(x, 0.713))(x.copy()), second, rtol=1e-8, atol=1e-9)
        along = jvp(grad(lambda x: f(x, 0.713)), (x.copy(),), (x,))[1]
        np.testing.assert_allclose(along, second @ x, rtol=1e-8, atol=1e-9)


def state_changed_in_place(x, part):
    """A step reads the state, which the program then changes where it is."""
    u, total = x * 1.0, 0.0
    for _ in range(5):
        total = total + part(lambda: np.sum(np.sin(u) * u[::-1]))
        u[1:] = u[1:] + 0.1 * (u[:-1] - u[1:])
    return total + np.sum(u)


def step_in_place(x, part):
    """A step writes the next state, and returns nothing."""
    states = np.zeros((6, 3))
    states[0] = x

    def step(i):
        states[i + 1] = np.sin(states[i]) * 0.9 + 0.1 * states[i, ::-1]

    for i in range(5):
        part(step, i)
    return np.sum(states[-1]) + states[2] @ x


def argument_written(x, part):
    """An argument is the program's own array, with all its names."""
    w = np.zeros(3)
    w[1:] = x[:2]

    def step(z):
        w[1:] = 0.5 * x[1:] * z[1]
        return z[1] * z[2]

    total = part(step, w)
    w[2] = 0.5
    return total + np.sum(w)


def argument_written_later(x, part):
    v = x * 2.0
    total = part(lambda v: np.sum(np.sin(v)), v)
    v[0] = 5.0
    return total + np.sum(v)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("f", [state_changed_in_place, step_in_place, argument_written, argument_written_later])
def test_memory_is_as_it_was(f, mode):
    near, far = ([(f(X + e, at_once) - f(X - e, at_once)) / (2 * h) for e in h * np.eye(3)] for h in (1e-4, 2e-4))
    differences = (4 * np.array(near) - far) / 3
    np.testing.assert_allclose(grad(lambda x: f(x, checkpoint), mode=mode)(X), differences, rtol=1e-9)


def test_arrays_that_are_collected_while_a_part_runs_again():
    """A collection at the start of the rerun changed the table that was read, or freed the memory that was written."""

    def part(x):
        a = np.zeros(3)
        a[0], a[1] = x[0], x[0] * x[1]
        return np.sum(a * a)

    def program(later):
        def f(x):
            gc.disable()
            for _ in range(40):
                a = np.zeros(2)
                a[0] = x[0]
                cycle = [a]
                cycle.append(cycle)
            del a, cycle
            y = checkpoint(part, x) * x[2]
            gc.set_threshold(gc.get_count()[0] + later)
            gc.enable()
            return y

        return f

    x, before = np.array([0.3, 0.7, 1.1]), gc.get_threshold()
    square = x[0] ** 2 * (1 + x[1] ** 2)
    try:
        for later in range(1, 80):
            found = grad(program(later))(x)
            np.testing.assert_allclose(found, [2 * square / x[0] * x[2], 2 * x[0] ** 2 * x[1] * x[2], square])
    finally:
        gc.enable()
        gc.set_threshold(*before)
