"""`np.arange` of traced numbers: the elements are steps from the start, and their number is constant."""

import numpy as np
import pytest

import effgrad

RANGES = {
    "start": lambda x: np.arange(x, 3.0),
    "stop": lambda x: np.arange(4 * x) * x,
    "stop by name": lambda x: np.arange(stop=4 * x) * x,
    "start, stop and step": lambda x: np.arange(x, 3 + x, 0.7 * x),
    "by name": lambda x: np.arange(start=x, stop=3.0, step=x),
    "downwards": lambda x: np.arange(3.0, x, -x),
    "empty": lambda x: np.arange(x, -3.0) + x,
    "of integers": lambda x: np.arange(7 * x, dtype=int) * x,
    "in single precision": lambda x: np.arange(x, 3.0, dtype=np.float32).astype(float),
    "steps alone": lambda x: np.arange(0.0, 2.0, x),
}


@pytest.mark.parametrize("name", RANGES)
def test_derivatives(name):
    """`np.arange` of a traced start or step was refused, with the advice to write a rule."""

    def f(x):
        return np.sum(RANGES[name](x) ** 2)

    x, step = 0.53, 1e-5 if "single" not in name else 1e-2
    assert effgrad.value_and_grad(f)(x)[0] == pytest.approx(f(x), rel=1e-15)
    np.testing.assert_array_equal(effgrad.jvp(RANGES[name], (x,), (1.0,))[0], RANGES[name](x))
    slope = (f(x + step) - f(x - step)) / (2 * step)
    for found in (effgrad.grad(f)(x), effgrad.jvp(f, (x,), (1.0,))[1], effgrad.compile(effgrad.grad(f))(x)):
        np.testing.assert_allclose(found, slope, rtol=1e-5 if "single" in name else 1e-8)


def test_a_compiled_range_has_the_number_of_elements_of_each_call():
    def f(x):
        return np.sum(np.arange(x, 3.0) ** 2)

    compiled = effgrad.compile(effgrad.grad(f))
    for x in (0.5, 1.5, 2.5, 3.5):
        np.testing.assert_allclose(compiled(x), 2 * np.sum(np.arange(x, 3.0)), rtol=1e-14)
