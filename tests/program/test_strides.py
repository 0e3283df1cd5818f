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


OF_FLAT = {
    "sum": lambda x: np.sum(x.flat), "mean": lambda x: np.mean((x * x).flat), "max": lambda x: np.max(x.T.flat),
    "array": lambda x: np.array(x.flat)[2] ** 2, "sin": lambda x: np.sin(x.flat).sum(),
    "times": lambda x: (x.flat * np.arange(6.0)).sum(), "reflected": lambda x: (np.arange(6.0) * x.T.flat).sum(),
    "concatenate": lambda x: np.concatenate([x.flat, x[0]]).prod(), "stack": lambda x: np.array([x.flat, x.flat]).std(),
    "norm": lambda x: np.linalg.norm(x.flat), "dot": lambda x: np.dot(x.flat, x.T.flat),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_FLAT)
def test_the_elements_of_flat_are_an_argument(name):
    """NumPy takes the iterator for an array of its elements; a traced one was refused."""
    f, x, step = OF_FLAT[name], np.array([[0.4, 1.3, 0.9], [2.1, 0.2, 1.7]]), 1e-6
    steps = step * np.eye(6).reshape(6, 2, 3)
    slopes = np.reshape([(f(x + e) - f(x - e)) / (2 * step) for e in steps], (2, 3))
    for derivative in (grad(f), effgrad.compile(grad(f))):
        np.testing.assert_allclose(derivative(x), slopes, rtol=1e-7, atol=1e-9)


def test_a_compiled_product_of_a_list_and_a_vector():
    """The list was indexed as an array."""
    for f in (lambda x: np.cross([0, 0, 1], x)[0], lambda x: np.cross(x, [0, 0, 1])[0]):
        np.testing.assert_array_equal(effgrad.compile(grad(f))(np.ones(3)), grad(f)(np.ones(3)))


def integers_by_flat(x):
    places = np.zeros((2, 2), int)
    for i in range(4):
        places.flat[i] = np.argmax(x) + i
    return np.sum(x[:2] * places)


def all_integers_by_flat(x):
    places = np.zeros(3, int)
    places.flat = np.argsort(x)
    return np.sum(places * x**2)


def numbers_by_flat(x):
    a = np.zeros((2, 3))
    a.flat, a.flat[[1, 2]] = x, x[:2]
    return np.sum(a * a * np.arange(6.0).reshape(2, 3))


@pytest.mark.parametrize("f", [integers_by_flat, all_integers_by_flat, numbers_by_flat])
def test_writes_by_flat(f):
    """The integers that a compiled program computes were refused there."""
    x = np.array([0.3, 0.9, -0.2])
    expected = [(f(x + step) - f(x - step)) / 2e-6 for step in 1e-6 * np.eye(3)]
    compiled = effgrad.compile(f)
    for derivative in (grad(f), effgrad.compile(grad(f))):
        np.testing.assert_allclose(derivative(x), expected, atol=1e-7)
    assert compiled(x) == f(x) and compiled(x[::-1].copy()) == f(x[::-1].copy())
