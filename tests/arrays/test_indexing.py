"""Indices and axes in one form mean what NumPy means by them."""

import numpy as np
import pytest

from effgrad import compile, grad
from effgrad.primitives.indices import basic, one_entry_per_axis, permutation, reduced_axes, with_ellipsis

X = np.arange(24.0).reshape(2, 3, 4)
BASIC = [
    1, -1, slice(None), slice(None, None, -2), ..., None, (), (0, 1), (..., 1), (1, ...), (slice(1, 3), None, 2),
    (None, ..., -2), (np.int64(1), ..., slice(2)), np.array(1), (np.array(-1), 2),
]  # fmt: skip
ADVANCED = [True, np.array([0, 1]), [1, 0], (slice(None), [2]), (0, np.array([True, False, True])), np.array(True)]


@pytest.mark.parametrize("index", BASIC, ids=repr)
def test_a_basic_index_is_the_same_with_an_entry_for_every_axis(index):
    assert basic(index)
    entries = tuple(one_entry_per_axis(index, X.ndim))
    assert Ellipsis not in entries
    np.testing.assert_array_equal(X[entries], X[index])
    np.testing.assert_array_equal(X[with_ellipsis(index)], X[index])
    assert type(X[with_ellipsis(index)]) is np.ndarray


@pytest.mark.parametrize("index", ADVANCED, ids=repr)
def test_other_indices_are_told(index):
    assert not basic(index)
    assert one_entry_per_axis(index, X.ndim) is None


@pytest.mark.parametrize("axes", [None, (0, 1, 2), (2, 0, 1), (-1, 0, 1), (0, -1, -2)])
def test_axes_of_a_transpose(axes):
    np.testing.assert_array_equal(X.transpose(permutation(axes, 3)), X.transpose(axes))
    assert min(permutation(axes, 3)) == 0


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (-1, -3), np.int64(1), ()])
def test_axes_of_a_reduction(axis):
    np.testing.assert_array_equal(X.sum(tuple(reduced_axes(axis, 3))), X.sum(axis))


class Place:
    """An index by `__index__`, as a class of the user's has it."""

    def __init__(self, place):
        self.place = place

    def __index__(self):
        return self.place


def test_an_object_with_an_index_is_an_index():
    """`x[place]` of a traced array was a TypeError in the reverse pass."""

    def f(x):
        y, z = np.zeros(3), x.copy()
        y[Place(1)] = x[0]
        y[Place(1)] += x[Place(2)]
        z[Place(0)] = x[2] ** 2
        table = np.outer(x, y)
        return np.sum(y * z) + table[Place(1), Place(1)] + table[Place(2)][1] + x[Place(0) : Place(2)].prod()

    x, h = np.array([0.7, 1.3, 2.1]), 1e-5
    expected = [(f(x + d) - f(x - d)) / (2 * h) for d in h * np.eye(3)]
    np.testing.assert_allclose(grad(f)(x), expected, rtol=1e-8)
    np.testing.assert_allclose(compile(grad(f))(x), expected, rtol=1e-8)
