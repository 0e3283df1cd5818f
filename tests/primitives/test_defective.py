"""Matrices without a basis of eigenvectors: a derivative that needs one is NaN in every mode; the others are right."""

import numpy as np
import pytest
import scipy.linalg

from effgrad import compile, grad, hvp, jacobian, jvp, second_order, value_and_grad

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
RNG = np.random.default_rng(5)
BLOCKS = {
    "two": np.eye(2) * 2 + np.eye(2, k=1),
    "nilpotent": np.eye(3, k=1),
    "three": np.eye(3) * 2 + np.eye(3, k=1),
    "two and one": scipy.linalg.block_diag(np.eye(2) * 2 + np.eye(2, k=1), [[2.0]]),
    "complex": scipy.linalg.block_diag([[0.0, 1.0], [-1.0, 0.0]], [[0.0, 1.0], [-1.0, 0.0]]) + np.eye(4, k=2),
    "weak": np.eye(2) * 2 + 1e-3 * np.eye(2, k=1),
}
MODES = {
    "reverse": lambda f, a, u: np.sum(grad(f)(a) * u),
    "continuation": lambda f, a, u: np.sum(grad(f, mode="reverse")(a) * u),
    "forward": lambda f, a, u: jvp(f, (a,), (u,))[1],
    "jacobian": lambda f, a, u: np.sum(jacobian(f, mode="forward")(a) * u),
    "compiled": lambda f, a, u: np.sum(compile(grad(f))(a) * u),
    "second order": lambda f, a, u: second_order(f, a, u)[1],
}
SECOND = {
    "forward over reverse": lambda f, a, u: np.sum(hvp(f, a, u) * u),
    "forward over forward": lambda f, a, u: jvp(lambda x: jvp(f, (x,), (u,))[1], (a,), (u,))[1],
    "reverse over reverse": lambda f, a, u: np.sum(jacobian(grad(f), mode="reverse")(a) * np.multiply.outer(u, u)),
    "second order": lambda f, a, u: second_order(f, a, u)[2],
}


def cubes(a):
    return np.sum(np.real(np.linalg.eigvals(a) ** 3))


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", BLOCKS)
def test_the_sum_of_cubes_is_nan_in_all_modes(name):
    """It is the trace of the third power; forward mode gave 0 for it, and reverse 4 times the right number."""
    a = BLOCKS[name]
    u = RNG.normal(size=a.shape)
    assert np.isnan([mode(cubes, a, u) for mode in [*MODES.values(), *SECOND.values()]]).all()


def test_beside_them_the_derivative_loses_the_digits_of_the_vectors():
    """Rounding tells the three eigenvalues apart by 1e-5, so the vectors have the condition 1e10 to 1e12."""
    for seed in range(10):
        other = np.random.default_rng(seed).normal(size=(3, 3))
        a = other @ BLOCKS["three"] @ np.linalg.inv(other)
        found = grad(cubes)(a)
        np.testing.assert_allclose(found, 3 * (a @ a).T, atol=1e-4 * np.abs(a @ a).max())


def turned(block, kind):
    """A matrix with the block and the simple eigenvalues 5 and 7, in other coordinates."""
    a = scipy.linalg.block_diag(block, [[5.0, 1.0], [0.0, 7.0]])
    a[0, -1] = 0.5
    turn = np.eye(len(a)) if kind == "triangular" else np.linalg.qr(RNG.normal(size=a.shape))[0]
    return turn @ a @ turn.T


@pytest.mark.parametrize("kind", ["triangular", "turned"])
@pytest.mark.parametrize("name", BLOCKS)
def test_a_simple_eigenvalue_beside_them_has_its_derivative(name, kind):
    """The oracle is the product of SciPy's left and right vectors. `solve` refused singular matrices of vectors."""
    a = turned(BLOCKS[name], kind)
    w, left, right = scipy.linalg.eig(a, left=True)
    i = np.argmax(np.abs(w))
    wanted = np.real(np.outer(left[:, i].conj(), right[:, i]) / (left[:, i].conj() @ right[:, i]))

    def radius(a):
        return np.max(np.abs(np.linalg.eigvals(a)))

    u = RNG.normal(size=a.shape)
    for mode in list(MODES.values())[:-1]:
        # Eigenvalues that differ by a root of the rounding error leave the digits that their vectors have.
        np.testing.assert_allclose(mode(radius, a, u), np.sum(wanted * u), rtol=1e-4 if kind == "turned" else 1e-12)


def test_the_growth_of_a_population_with_age_classes_that_have_no_young():
    """A Leslie matrix with three such classes has the eigenvalue 0 three times, with one vector."""
    young, survival = np.array([0.0, 1.5, 1.0, 0.0, 0.0, 0.0]), np.array([0.5, 0.6, 0.4, 0.3, 0.2])

    def growth(young, survival):
        return np.max(np.abs(np.linalg.eigvals(np.diag(survival, -1) + np.outer(np.eye(6)[0], young))))

    rate, (by_young, by_survival) = value_and_grad(growth, (0, 1))(young, survival)
    # Euler's equation: the sum of young times survivorship over the powers of the rate is 1.
    alive, ages = np.concatenate([[1.0], np.cumprod(survival)]), np.arange(1, 7)
    slope = np.sum(young * alive * ages * rate ** (-ages - 1.0))
    np.testing.assert_allclose(by_young, alive * rate**-ages / slope, rtol=1e-12)
    later = [np.sum((young * alive * rate**-ages)[k + 1 :]) / survival[k] for k in range(5)]
    np.testing.assert_allclose(by_survival, np.array(later) / slope, rtol=1e-12)


def test_in_a_batch_only_the_defective_matrix_is_nan():
    a = np.stack([np.array([[1.0, 2.0], [0.0, 3.0]]), BLOCKS["two"]])
    found = grad(cubes)(a)
    np.testing.assert_allclose(found[0], 3 * (a[0] @ a[0]).T, rtol=1e-12)
    assert np.isnan(found[1]).all()


def test_eigenvalues_of_a_badly_scaled_matrix_keep_their_derivatives():
    """Its vectors have the condition 1e15, but its eigenvalues are apart."""
    a = np.array([[1.0, 1e15], [0.0, 2.0]])
    np.testing.assert_allclose(grad(cubes)(a), 3 * (a @ a).T, rtol=1e-12)


def test_structural_zeros_pass_real_parts_and_nested_indices():
    x = np.array([[0.0, 4.0], [0.0, 9.0]])
    np.testing.assert_array_equal(grad(lambda x: np.real(np.sqrt(x + 0j))[0][1])(x), [[0, 0.25], [0, 0]])
    np.testing.assert_array_equal(grad(lambda x: np.max(np.abs(np.sqrt(x + 0j))))(x), [[0, 0], [0, 1 / 6]])
    np.testing.assert_array_equal(grad(lambda x: np.conj(np.sqrt(x * 1j)).imag[0][1:][0])(x).ravel()[[0, 2, 3]], 0)


@pytest.mark.parametrize("axis", [0, 1, None])
def test_structural_zeros_pass_maxima(axis):
    """Infinite partials of elements that are not the maximum gave NaN in a batch of directions, or along an axis."""
    x = np.array([[0.0, 4.0, 0.0], [1.0, 9.0, 4.0]])
    chosen = x == x.max(axis, keepdims=True)
    wanted = np.divide(chosen, 2 * np.sqrt(x), where=chosen, out=np.zeros(x.shape))
    wanted[0, 0 if axis == 1 else 2] = wanted[0, 0]
    f = lambda x: np.sum(np.max(np.sqrt(x), axis))  # noqa: E731
    for run in (grad(f), jacobian(f, mode="forward"), jacobian(f, mode="reverse"), compile(grad(f))):
        np.testing.assert_array_equal(run(x), wanted)
