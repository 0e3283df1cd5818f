"""Functions of a matrix through its eigenvectors, where eigenvalues are equal: the composite is smooth there.

The oracle is SciPy's Frechet derivative of the exponential, and differences for other functions.
"""

import numpy as np
import pytest
import scipy.linalg

from effgrad import grad, jacobian, jvp
from effgrad.arrays.laurent import Laurent
from effgrad.primitives import eigenseries

RNG = np.random.default_rng(7)
TURN = np.linalg.qr(RNG.normal(size=(5, 5)))[0]
MATRICES = {
    "the identity": np.eye(3),
    "two equal": np.diag([1.0, 1.0, 2.0]),
    "three and two": TURN @ np.diag([1.0, 1.0, 1.0, 2.0, 2.0]) @ TURN.T,
    "zero": np.zeros((2, 2)),
    "all apart": np.diag([0.3, 1.0, 2.0]) + 0.1,
}


def by_eigenvectors(g):
    def f(a):
        w, v = np.linalg.eigh((a + a.T) / 2)
        return (v * g(w)) @ v.T

    return f


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", MATRICES)
def test_the_exponential_by_eigenvectors(name):
    a = MATRICES[name]
    u, weights = RNG.normal(size=(2, *a.shape))
    f = by_eigenvectors(np.exp)
    wanted = scipy.linalg.expm_frechet(a, (u + u.T) / 2, compute_expm=False)
    np.testing.assert_allclose(jvp(f, (a,), (u,))[1], wanted, rtol=1e-9, atol=1e-9)
    pulled = grad(lambda a: np.sum(weights * f(a)))(a)
    np.testing.assert_allclose(np.sum(pulled * u), np.sum(weights * wanted), rtol=1e-9, atol=1e-9)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_function_of_the_distance_between_eigenvalues():
    """The product of the differences of eigenvalues, squared, is a polynomial in the elements."""
    a = np.diag([1.0, 1.0, 2.0])

    def discriminant(a):
        w = np.linalg.eigh((a + a.T) / 2)[0]
        return (w[0] - w[1]) ** 2 * (w[1] - w[2]) ** 2

    np.testing.assert_allclose(grad(discriminant)(a), 0.0, atol=1e-12)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_depends_on_the_choice_of_eigenvectors_is_nan():
    def turned(a):
        v = np.linalg.eigh((a + a.T) / 2)[1]
        return (v * np.array([1.0, 2.0])) @ v.T

    assert np.isnan(jacobian(turned)(np.eye(2))[0, 1]).any()


def test_series_of_eigenvectors():
    """The series satisfy their equations to the order that they have."""
    c = np.zeros((12, 5, 5))
    c[0] = MATRICES["three and two"]
    c[2] = RNG.normal(size=(5, 5))
    c[2] += c[2].T
    y = eigenseries.packed(Laurent(0, c))
    terms = len(y.coefficients)
    assert terms >= 8
    for t in (0.01, 0.02):
        powers = t ** np.arange(12.0)
        a = np.tensordot(powers, c, 1)
        whole = np.tensordot(powers[:terms], y.coefficients, 1)
        w, v = whole[0], whole[1:]
        np.testing.assert_allclose(a @ v, v * w, atol=20 * (10 * t) ** terms + 1e-13)
        np.testing.assert_allclose(v.T @ v, np.eye(5), atol=20 * (10 * t) ** terms + 1e-13)
        np.testing.assert_allclose(w, np.linalg.eigvalsh(a), atol=20 * (10 * t) ** terms + 1e-13)
