"""Functions that no NumPy protocol reaches are replaced while a derivative runs, and only then."""

import numpy as np
import pytest
import scipy.special

from effgrad import check_grad, grad

ORIGINALS = np.array, scipy.special.logsumexp


def rotation_energy(x):
    c, s = np.cos(x[0]), np.sin(x[0])
    return np.sum((np.array([[c, -s], [s, c]]) @ np.array([x[1], 2.0])) ** 3)


def test_an_array_of_nested_lists_of_traced_numbers():
    check_grad(rotation_energy, np.array([0.3, 0.7]))
    check_grad(lambda x: np.sum(grad(rotation_energy)(x) * x), np.array([0.3, 0.7]), tolerance=1e-5)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_logsumexp_of_scipy(axis):
    check_grad(lambda x: np.sum(scipy.special.logsumexp(x, axis=axis) ** 2), np.arange(6.0).reshape(2, 3))


@pytest.mark.parametrize("x, answer", [([-np.inf, 0.0], [0, 1]), ([-np.inf, -np.inf], [0, 0])])
def test_logsumexp_gives_no_weight_to_minus_infinity(x, answer):
    np.testing.assert_array_equal(grad(lambda x: scipy.special.logsumexp(x))(np.asarray(x)), answer)


def test_the_originals_are_back_after_a_derivative_and_after_an_exception():
    def fails(x):
        assert np.array is not ORIGINALS[0]
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        grad(fails)(1.0)
    assert (np.array, scipy.special.logsumexp) == ORIGINALS
