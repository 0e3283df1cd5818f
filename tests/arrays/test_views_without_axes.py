"""Writes through views without axes: an element read afterwards is a number, and changing it changes nothing else."""

import numpy as np
import pytest

from effgrad import compile, jvp, value_and_grad


def squeezed(x):
    a = x * 2.0
    b = np.squeeze(a)
    b[...] = a
    r = a[0]
    r *= 0.5
    return np.sum(a)


def rows(x):
    a = x * 2.0
    np.squeeze(a)[...] = a
    for row in a:
        row *= 0.5
    return np.sum(a)


def reshaped(x):
    a = x * 2.0
    b = a.reshape(())
    b[...] = a * 3
    r = a[0]
    r += 1.0
    b *= r
    return np.sum(a) * r


def of_a_plain_array(x):
    a = np.zeros(1)
    b = a.reshape(())
    b[...] = x * 3
    r = a[0]
    r += 1.0
    b *= r
    c = b[()]
    c *= 2.0
    return np.sum(a) * r


def of_a_matrix(x):
    a = np.zeros((1, 2))
    b = a[0, 0, ...]
    b[...] = x * 3
    r = a[0]
    r[0] += 1.0
    s = a[0, 0]
    s *= 2.0
    return np.sum(a) * s


def itself(x):
    a = (x * 2.0).reshape(())
    a[...] = x
    c = a[()]
    c *= 3.0
    d = a[...]
    d *= 2.0
    return a * c


@pytest.mark.parametrize("f", [squeezed, rows, reshaped, of_a_plain_array, of_a_matrix, itself])
def test_an_element_is_a_number(f):
    x, h = np.array([0.1]), 1e-6
    plain, slope = f(x), (f(x + h) - f(x - h)) / (2 * h)
    for derivative in (value_and_grad(f), compile(value_and_grad(f))):
        value, found = derivative(x)
        assert value == plain
        assert np.allclose(found, slope)
    assert np.allclose(jvp(f, (x,), (np.ones(1),)), (plain, slope))
