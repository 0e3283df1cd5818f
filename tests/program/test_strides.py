"""Functions of NumPy that go by memory, or through an iterator: `as_strided`, `fromiter`."""

import numpy as np
import pytest

import effgrad
from effgrad import Detached, grad

STRIDED = np.lib.stride_tricks.as_strided


def of_an_iterator(x):
    return np.fromiter((x * i for i in range(4)), float, 3).sum() * np.fromiter([2, 1.0], float).sum()


def of_a_traced_array_by_strides(x):
    return np.sum(STRIDED(np.array([x, x * x, x**3, 1.0]), (3, 2), (8, 8)) ** 2)


def of_a_written_array_by_strides(x):
    a = np.zeros(4)
    rows = STRIDED(a, (3, 2), (8, 8))
    a[1] = x * x
    rows[2, 1] = np.sin(x)
    return np.sum(rows**2) * a[3]


def of_a_transposed_array_by_strides(x):
    return np.sum(STRIDED(np.outer(np.array([x, 2.0, 1.0]), np.array([x * x, 1.0, x])).T, (2, 2), (8, 8)) ** 2)


@pytest.mark.parametrize("f", [
    of_an_iterator, of_a_traced_array_by_strides, of_a_written_array_by_strides, of_a_transposed_array_by_strides,
])  # fmt: skip
def test_arrays_made_by_iterators_and_by_strides(f):
    x, step = 1.3, 1e-6
    slope = (f(x + step) - f(x - step)) / (2 * step)
    for derivative in (grad(f), effgrad.compile(grad(f))):
        assert abs(derivative(x) - slope) < 1e-6 * abs(slope)


def test_strides_of_memory_that_is_not_numpys_are_refused():
    with pytest.raises(Detached, match="ascontiguousarray"):
        grad(lambda x: np.sum(STRIDED(np.asfortranarray(np.outer([1.0, 2.0], [x, x])), (2,), (8,))))(1.3)
