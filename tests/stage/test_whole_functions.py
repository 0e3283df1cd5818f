"""Functions of many paths, captured as one program with both sides of their branches."""

import numpy as np
import pytest

import effgrad


def pieces(x):
    """Of 256 paths."""
    total = 0.0
    for k in range(8):
        if x[k] > 0.1 * k:
            total = total + np.sqrt(x[k])
        elif k > 5:
            total = total - x[k] ** 2
    return total


def early(x):
    if x[0] < -1.0:
        return x[1] * 2.0
    y = x * x
    if y.sum() > 8.0:
        return np.log(y).sum()
    y[y > 1.0] = 0.5
    if x[2] > 0.0:
        y[1] = x[2]
    if x[3] > 0.0 or x[4] > 1.0:
        y = y * 2.0
    return y.sum() if x[5] > 0.0 else y[0] - x[5]


def pair(x):
    if x[0] < x[1]:
        low, high = x[0], x[1]
    else:
        low, high = x[1], x[0]
    for k in range(2, 8):
        if x[k] > 0.0:
            low = low + (k - 4.5) * x[k]
    return low, [high * x]


def points():
    return np.random.default_rng(0).normal(size=(60, 8))


@pytest.mark.parametrize("f", [pieces, early])
def test_many_paths_become_one_program(f):
    compiled = effgrad.compile(effgrad.value_and_grad(f))
    u, step = np.random.default_rng(1).normal(size=8), 1e-7
    for x in points():
        value, gradient = compiled(x)
        assert value == pytest.approx(f(x), rel=1e-12)
        slope = (f(x + step * u) - f(x - step * u)) / (2 * step)
        assert gradient @ u == pytest.approx(slope, rel=1e-4, abs=1e-5)
    assert [len(paths.all) for paths in compiled.types.values()] == [1]


def test_the_result_keeps_its_structure():
    compiled = effgrad.compile(pair)
    for x in points():
        (low, (high,)), (expected, (array,)) = compiled(x), pair(x)
        assert low == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(high, array, rtol=1e-14)
    assert [len(paths.all) for paths in compiled.types.values()] == [1]


def test_second_derivatives_of_many_paths():
    compiled = effgrad.compile(effgrad.hessian(pieces))
    for x in points()[:16]:
        expected = [(-0.25 * v**-1.5 if v > 0.1 * k else -2.0 * (k > 5)) for k, v in enumerate(x)]
        np.testing.assert_allclose(compiled(x), np.diag(expected), rtol=1e-10, atol=1e-12)


def test_what_cannot_be_captured_takes_paths_as_before():
    seen = []

    def f(x):
        seen.append(1)
        return sum(np.sqrt(v) for v in x if v > 0.0)

    compiled = effgrad.compile(f)
    for x in points()[:12]:
        assert compiled(x) == pytest.approx(f(x), rel=1e-12)
    assert [len(paths.all) for paths in compiled.types.values()] == [12]
