"""Every function of the table in every mode and order, with its dtype, staged and compiled."""

import laws
import numpy as np
import pytest
from numpy_cases import CASES, X

from effgrad import grad, hessian

BACKEND = "numpy"  # of the compiled runs


@pytest.mark.thinned(4)
class TestFunctionsOfNumPy(laws.Laws):
    cases, x = CASES, X
    steep = {"gradient2": 1e-4, "matrix_power": 1e-4}
    # Complex eigenvectors have any phase.
    without = {"test_complex_arguments_are_differentiated_or_refused": (
        "eigh v", "eigh U", "svd u", "svd v", "svd u tall", "svd v tall")}  # fmt: skip


def test_derivatives_that_depend_on_the_choice_of_eigenvectors_are_nan():
    weights = np.array([[1.0, 2.0], [3.0, 4.0]])

    def spectral(a):
        w, v = np.linalg.eigh(a)
        return np.sum((v / w) @ v.T * weights)

    # This is the inverse, whatever vectors are chosen: its gradient is -weights', in the triangle that is read.
    np.testing.assert_allclose(grad(spectral)(np.eye(2)), [[-1.0, 0.0], [-5.0, -4.0]], rtol=1e-14)
    vectors = grad(lambda a: np.sum(np.linalg.eigh(a)[1] * weights))
    assert np.isnan(vectors(np.eye(2))[1, 0])
    # The vectors of another eigenvalue, and the eigenvalues themselves, do not depend on it.
    assert np.isfinite(grad(lambda a: np.sum(np.linalg.eigh(a)[1][:, 0]))(np.diag([1.0, 2.0, 2.0]))).all()
    np.testing.assert_array_equal(grad(lambda a: np.sum(np.linalg.eigvalsh(a)))(np.eye(2)), np.eye(2))
    # log(a b - c^2), of the lower triangle (a; c, b), is smooth where the eigenvalues are equal.
    logarithm = hessian(lambda a: np.sum(np.log(np.linalg.eigvalsh(a))))(np.eye(2))
    np.testing.assert_allclose(logarithm.reshape(4, 4), np.diag([-1.0, 0.0, -2.0, -1.0]), atol=1e-15)
