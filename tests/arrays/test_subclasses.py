"""Arrays of a class of the user's, as constants beside traced values."""

import numpy as np
import pytest

from effgrad import compile, grad, hvp, jvp


class Field(np.ndarray):
    """An array with a name, as scikit-fem's fields have gradients."""

    def __new__(cls, value, name=None):
        field = np.asarray(value).view(cls)
        field.name = name
        return field

    def __array_finalize__(self, other):
        self.name = getattr(other, "name", None)


FIELD = Field([1.0, 2.0, 3.0], "u")
PROGRAMS = {
    "times": lambda p: np.sum(p * FIELD),
    "reflected": lambda p: np.sum(FIELD * p),
    "ufunc": lambda p: np.sum(np.hypot(FIELD, p)),
    "power": lambda p: np.sum(FIELD**p),
    "number": lambda p: np.sum(p[0] * FIELD * FIELD),
    "product": lambda p: p @ FIELD,
    "where": lambda p: np.sum(np.where(FIELD > 1.5, p * p, FIELD)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives(name):
    """Forward mode never ended: the array was asked again and again for a plain one."""
    f, x, step = PROGRAMS[name], np.array([0.5, 1.5, 2.5]), 1e-6
    slopes = [(float(f(x + e)) - float(f(x - e))) / (2 * step) for e in step * np.eye(3)]
    np.testing.assert_allclose(grad(f)(x), slopes, rtol=1e-7)
    np.testing.assert_allclose(jvp(f, (x,), (np.ones(3),))[1], np.sum(slopes), rtol=1e-7)
    np.testing.assert_allclose(compile(grad(f))(x), slopes, rtol=1e-7)
    second = (grad(f)(x + step) - grad(f)(x - step)) / (2 * step)
    np.testing.assert_allclose(hvp(f, x, np.ones(3)), second, rtol=1e-6, atol=1e-8)
