"""What is done to cotangents on the way back: slices stay slices, large arrays are added to in place."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effgrad import grad, jacobian, vjp
from effgrad.primitives import cotangents, totals

LARGE = np.linspace(0.5, 1.5, 10_000)

SLICES = st.sampled_from([
    slice(None), slice(1, None), slice(None, -1), slice(None, None, -1), slice(None, None, 2), slice(2, 5), slice(0),
    -1, 3, ..., None, (..., slice(1, 4)), [1, 1, 0], np.array([5, 2]),
])  # fmt: skip


@given(st.lists(SLICES, min_size=1, max_size=4), st.sampled_from([6, 5000]))
def test_slices_of_one_array_in_products_and_sums(indices, size):
    x = np.linspace(0.5, 1.5, size)
    weights = np.linspace(1.0, 2.0, size)

    def f(x):
        y = 0.5 * (x + x * weights)
        return sum(np.sum(np.sin(y[index]) * 2.0) for index in indices) + np.sum(x) * 0.25

    expected = np.full(size, 0.25)
    for index in indices:
        slope = 0.5 * (1 + weights)
        np.add.at(expected, np.arange(size)[index], (2 * np.cos(x * slope) * slope)[index])
    np.testing.assert_allclose(grad(f)(x), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("f", [lambda x: np.sum(np.sqrt(x)[1:]), lambda x: np.sqrt(x)[-1] + np.sum(np.sqrt(x)[1:-1])])
def test_what_is_not_in_a_slice_is_zero_by_construction(f):
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(grad(f)(np.array([0.0, 1.0, 1.0])), [0.0, 0.5, 0.5])


def test_the_callers_cotangent_is_not_added_to():
    seed = np.ones_like(LARGE)
    _, pullback = vjp(lambda x: x + x + x[::-1], LARGE)
    for _ in range(2):
        np.testing.assert_array_equal(pullback(seed)[0], np.full_like(LARGE, 3.0))
        np.testing.assert_array_equal(pullback(np.ones_like(LARGE))[0], np.full_like(LARGE, 3.0))
    np.testing.assert_array_equal(seed, np.ones_like(LARGE))


def test_a_cotangent_that_two_values_share_is_not_added_to():
    def f(x):
        y = np.sin(x)
        z = y + x  # y and x receive the same array
        return np.sum(z * z + y * LARGE + x[1:].sum())

    h = 1e-6
    middle = np.zeros_like(LARGE)
    middle[5000] = h
    difference = (f(LARGE + middle) - f(LARGE - middle)) / (2 * h)
    np.testing.assert_allclose(grad(f)(LARGE)[5000], difference, rtol=1e-6)


@pytest.mark.parametrize(
    "f",
    [lambda x, c: np.sum(c * x), lambda x, c: c @ x, lambda x, c: np.sum(x), lambda x, c: np.max(x) + np.sum(x * c)],
)
def test_a_gradient_has_memory_of_its_own(f):
    c = LARGE.copy()
    first = grad(f)(LARGE, c)
    kept = first.copy()
    first += 1.0
    np.testing.assert_array_equal(c, LARGE)
    np.testing.assert_array_equal(grad(f)(LARGE, c), kept)


@pytest.mark.parametrize("hold", [lambda a: a, lambda a: a[1:], memoryview, lambda a: [a]])
def test_an_array_that_something_refers_to_is_not_ours(hold):
    cells = [np.ones_like(LARGE)]
    assert cotangents.own_array(cells, 0)
    held = hold(cells[0])
    assert not cotangents.own_array(cells, 0)
    del held
    assert cotangents.own_array(cells, 0)


@pytest.mark.parametrize("shape", [(500, 7), (7, 500), (30, 40, 5), (5, 6, 7, 8), (2000,), (3, 1, 700)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sums_over_any_axes(shape, dtype):
    x = np.random.default_rng(0).normal(size=shape).astype(dtype)
    ranges = [tuple(range(i, j)) for i in range(len(shape)) for j in range(i + 1, len(shape) + 1)]
    for axes in [None, *range(-len(shape), len(shape)), *ranges, (0, len(shape) - 1)][: None if len(shape) > 1 else -1]:
        total = totals.total_over(x, axes)
        expected = np.sum(x, axis=axes)
        assert total.shape == expected.shape and total.dtype == expected.dtype
        rounding = 4 * np.finfo(dtype).eps * np.sum(np.abs(x), axis=axes)
        assert np.all(np.abs(total - expected) <= rounding)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("length", range(1, 18))
def test_sums_of_short_rows_have_the_bits_of_numpys(length, dtype):
    """NumPy adds the elements of a row in an order of its own, which the rounding of far numbers shows."""
    rng = np.random.default_rng(length)
    for shape in [(1200, length), (3, 400, length), (2, 1, 600, length)]:
        x = (rng.normal(size=shape) * 10.0 ** rng.uniform(-5, 5, shape)).astype(dtype)
        x[..., 0, :] = -0.0
        x.reshape(-1)[5 * length] = np.inf
        for axis in (-1, len(shape) - 1, (len(shape) - 1,), -2, None):
            total, expected = totals.sum_as_numpy(x, axis), np.sum(x, axis=axis)
            assert total.dtype == expected.dtype and np.shape(total) == np.shape(expected)
            assert total.tobytes() == expected.tobytes()


def test_a_maximum_of_few_places():
    x = np.array([[1.0, 3.0, 2.0], [3.0, 0.0, 3.0]])
    np.testing.assert_array_equal(grad(lambda x: np.sum(np.max(x, axis=1) * [1.0, 2.0]))(x), [[0, 1, 0], [1, 0, 1]])
    np.testing.assert_array_equal(jacobian(lambda x: np.max(x, axis=0))(x)[0], [[0, 0, 0], [1, 0, 0]])
    np.testing.assert_array_equal(grad(np.max)(x[:1]), [[0, 1, 0]])
    np.testing.assert_array_equal(grad(lambda x: np.max(x) ** 2)(x[:1]), [[0, 6, 0]])
