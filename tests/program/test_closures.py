"""Closures are rewritten once for a derivative, share their cells with the program, and are freed with it."""

import gc
import weakref

import numpy as np
import pytest

from effgrad import grad
from effgrad.program import known


def counted(x):
    steps = 0

    def step(y):
        nonlocal steps
        steps += 1
        return np.sin(y) * steps

    for _ in range(4):
        x = step(x)
    return x * steps


def rebound(x):
    factor = x
    times = lambda y: y * factor  # noqa: E731
    first = times(2.0)
    factor = x * x
    return first + times(3.0)


def recursive(x):
    def power(n):
        return x * power(n - 1) if n else 1.0

    return power(5)


@pytest.mark.parametrize("f", [counted, rebound, recursive])
def test_cells_are_the_programs(f):
    h = 1e-6
    assert np.isclose(grad(f)(0.7), (f(0.7 + h) - f(0.7 - h)) / (2 * h), rtol=1e-8)


def adding(i):
    def add(y):
        return y + i + (add is None)

    return add


def test_closures_of_the_program_die_with_the_derivative():
    steps = [adding(i) for i in range(3 * known.CLOSURES)]
    alive, during = [weakref.ref(step) for step in steps], []

    def f(x):
        while steps:
            x = steps.pop()(x)
        gc.collect()
        during.append(sum(ref() is not None for ref in alive))
        return x

    assert grad(f)(0.5) == 1.0
    gc.collect()
    assert during == [known.CLOSURES - 1]  # beside f, the first ones, whose cells hold themselves
    assert not any(ref() is not None for ref in alive)
