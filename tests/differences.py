"""Derivatives by differences of plain values: an oracle that shares no code with any rule.

`directional` extrapolates central differences to step 0 (Ridders, Accurate computation of F'(x) and F'(x) F''(x),
1982), and returns an estimate of its own error with the derivative.
"""

import numpy as np


def directional(f, x, u, step=0.02, shrink=1.6, levels=10):
    """The derivative of `f` at `x` along `u`, and the estimated error. `f` returns a real number or array."""

    def central(h):
        return (np.asarray(f(x + h * u), np.longdouble) - f(x - h * u)) / (2 * h)

    best, error, row, h = None, np.inf, [], step
    for _ in range(levels):
        new, factor = [central(h)], shrink**2
        for old in row:
            new.append((new[-1] * factor - old) / (factor - 1))
            factor *= shrink**2
            size = max(np.max(np.abs(new[-1] - new[-2])), np.max(np.abs(new[-1] - old)))
            if size <= error:
                best, error = new[-1], size
        if row and np.max(np.abs(new[-1] - row[-1])) > 3 * error:
            break
        row, h = new, h / shrink
    return np.asarray(best if best is not None else row[0], float), float(error)


def check_pair(pair, f, x):
    """Assert that a value and a derivative are the plain value of `f` at a number, and the slope by differences."""
    value, derivative = pair
    expected, error = directional(f, x, 1.0)
    np.testing.assert_allclose(value, f(x), rtol=1e-14)
    np.testing.assert_allclose(derivative, expected, rtol=1e-9, atol=10 * error)


def parts(y):
    """The real and imaginary parts of arrays in nested tuples as one vector."""
    if isinstance(y, tuple | list):
        return np.concatenate([parts(item) for item in y]) if len(y) else np.zeros(0)
    y = np.ravel(np.asarray(y))
    return np.concatenate([np.real(y), np.imag(y)]) if np.iscomplexobj(y) else np.asarray(y, float)


def slope(f, x, u, step):
    """The derivative along a direction by differences of sixth order, whose points are at most three steps away."""
    weights = {1: 45.0, 2: -9.0, 3: 1.0}
    return sum(w * (f(x + k * step * u) - f(x - k * step * u)) for k, w in weights.items()) / (60 * step)


def partials(f, x, step):
    """The derivatives by each number of a vector, which the last axis of the result counts."""
    return np.stack([slope(f, x, e, step) for e in np.eye(len(x))], -1)
