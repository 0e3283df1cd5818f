"""The check of programs whose loops change state: captured, with derivatives of both orders by differences."""

import warnings

import numpy as np
import pytest
from differences import slope

import effgrad
from effgrad import grad, jvp

POINT = np.array([0.7, 0.3, 0.5, 0.2])
DIRECTION = np.array([0.4, -1.1, 0.7, 0.2])
STEP = 1e-4


def program(body):
    """A program with a loop around a body, which changes y, a part of x or the total s in place."""

    def f(x):
        y, s = 1.0 * x, x[0] * x[1]
        for _ in range(40):
            s = body(x, y, s)
            y *= 0.95
        return s + np.sum(y)

    return f


def assert_captured(f):
    """Assert that no loop of a compiled function is unrolled, and that its value and derivatives are right."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", effgrad.StagingWarning)
        value, gradient = effgrad.compile(effgrad.value_and_grad(f))(POINT)
        curvature = effgrad.compile(lambda x, v: jvp(grad(f), (x,), (v,))[1])(POINT, DIRECTION)
    assert value == pytest.approx(f(POINT), rel=1e-12)
    assert gradient @ DIRECTION == pytest.approx(slope(f, POINT, DIRECTION, STEP), rel=1e-7)
    expected = slope(lambda x: grad(f)(x) @ DIRECTION, POINT, DIRECTION, STEP)
    assert curvature @ DIRECTION == pytest.approx(expected, rel=1e-6, abs=1e-9)


def assert_right(f):
    """Assert that the value and the gradient of a compiled function are right, however it is compiled."""
    value, gradient = effgrad.compile(effgrad.value_and_grad(f))(POINT)
    assert value == pytest.approx(f(POINT), rel=1e-12)
    assert gradient @ DIRECTION == pytest.approx(slope(f, POINT, DIRECTION, STEP), rel=1e-7)
