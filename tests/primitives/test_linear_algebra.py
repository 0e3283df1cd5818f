"""Decompositions, linear systems and functions of matrices, against NumPy's own values and their differences."""

import numpy as np
import pytest
import scipy.linalg as sl
from differences import directional, parts
from numpy.linalg import _umath_linalg as compiled

import effgrad
from effgrad import NoRule, grad, jvp, symmetric

RNG = np.random.default_rng(5)
A = RNG.normal(size=(3, 3)) + 2 * np.eye(3)
BATCH = RNG.normal(size=(2, 3, 3)) + 2 * np.eye(3)
TALL, WIDE = RNG.normal(size=(2, 4, 3)), RNG.normal(size=(2, 3, 4))
COMPLEX = BATCH + 1j * RNG.normal(size=(2, 3, 3))
TALL_COMPLEX = TALL + 1j * RNG.normal(size=(2, 4, 3))
POSITIVE = BATCH @ np.swapaxes(BATCH, -1, -2) + np.eye(3)
POSITIVE_COMPLEX = COMPLEX @ np.conj(np.swapaxes(COMPLEX, -1, -2)) + np.eye(3)
SINGULAR = np.array([[2.0, 1.0, 1.0], [1.0, 3.0, 2.0], [0.5, 1.5, 1.0]])  # its last pivot is 0
NEGATIVE = np.array([[-2.0, 0.4, 0.1], [0.3, -0.7, 0.2], [0.5, 0.1, 1.5]])  # two eigenvalues on the cut
VECTOR, MATRIX = RNG.normal(size=3), RNG.normal(size=(3, 2))
ONE_BY_ONE = np.array([[[3.0 + 0j]], [[2.0 + 0j]]])
TALLER = np.random.default_rng(6).normal(size=(2, 5, 3))


def without_phases(v):
    """A function of vectors that depends on neither sign nor phase of the columns."""
    return np.abs(v) ** 2


def with_null_space(result):
    """What the matrix determines of its square factors: the bases of null spaces by their projections only."""
    u, s, vt = result
    k = s.shape[-1]
    left, right = u[..., :, k:], vt[..., k:, :]
    projected = left @ np.conj(np.swapaxes(left, -1, -2)), np.conj(np.swapaxes(right, -1, -2)) @ right
    return s, without_phases(u[..., :, :k]), without_phases(vt[..., :k, :]), *projected


def spectral(result):
    w, v = result
    return w, without_phases(v)


def projections(result):
    u, s, vt = result
    return s, u[..., :, :1] @ vt[..., :1, :], without_phases(u), without_phases(vt)


CASES = {
    "cholesky batch": (np.linalg.cholesky, POSITIVE),
    "cholesky upper": (lambda a: np.linalg.cholesky(a, upper=True), POSITIVE),
    "cholesky complex": (np.linalg.cholesky, POSITIVE_COMPLEX),
    "cholesky complex upper": (lambda a: np.linalg.cholesky(a, upper=True), POSITIVE_COMPLEX),
    "scipy cholesky": (lambda a: sl.cholesky(a), POSITIVE_COMPLEX),
    "scipy cholesky lower": (lambda a: sl.cholesky(a, lower=True), POSITIVE_COMPLEX),
    "cho_factor": (lambda a: sl.cho_solve(sl.cho_factor(a), VECTOR), POSITIVE[0]),
    "eigh": (lambda a: spectral(np.linalg.eigh(a)), POSITIVE),
    "eigh U": (lambda a: spectral(np.linalg.eigh(a, "U")), POSITIVE_COMPLEX),
    "eigh reads one triangle": (lambda a: spectral(np.linalg.eigh(a)), BATCH),
    "eigvalsh": (np.linalg.eigvalsh, COMPLEX),
    "eigvalsh U": (lambda a: np.linalg.eigvalsh(a, UPLO="U"), BATCH),
    "scipy eigh": (lambda a: spectral(sl.eigh(a)), POSITIVE_COMPLEX),
    "scipy eigh generalised": (lambda a: spectral(sl.eigh(a, POSITIVE_COMPLEX[0])), COMPLEX[0]),
    "scipy eigvalsh upper": (lambda a: sl.eigvalsh(a, lower=False), COMPLEX),
    "eig": (lambda a: tuple(np.linalg.eig(a)), COMPLEX),
    "eigvals": (np.linalg.eigvals, COMPLEX),
    "svd": (lambda a: projections(np.linalg.svd(a, full_matrices=False)), TALL),
    "svd complex": (lambda a: projections(np.linalg.svd(a, full_matrices=False)), TALL_COMPLEX),
    "svd complex wide": (
        lambda a: projections(np.linalg.svd(a, full_matrices=False)), np.swapaxes(TALL_COMPLEX, 1, 2)),
    "svd complex vectors": (lambda a: tuple(np.linalg.svd(a, full_matrices=False)), TALL_COMPLEX),
    "svd complex vectors wide": (
        lambda a: tuple(np.linalg.svd(a, full_matrices=False)), np.swapaxes(TALL_COMPLEX, 1, 2)),
    "svd complex vectors square": (lambda a: tuple(np.linalg.svd(a)), COMPLEX),
    "svd square factors": (lambda a: with_null_space(np.linalg.svd(a)), TALLER),
    "svd square factors wide": (lambda a: with_null_space(sl.svd(a)), TALLER[0].T),
    "svd square factors complex": (lambda a: with_null_space(np.linalg.svd(a)), TALLER[0] + 1j * TALLER[1]),
    "svd with one more vector": (lambda a: tuple(np.linalg.svd(a)), TALL),
    "svd with one more vector, wide": (lambda a: tuple(np.linalg.svd(a)), WIDE),
    "svd hermitian vectors": (lambda a: tuple(np.linalg.svd(a, hermitian=True)), POSITIVE_COMPLEX[0]),
    "eigh complex vectors": (lambda a: tuple(np.linalg.eigh(a)), POSITIVE_COMPLEX[0]),
    "eigh complex vectors U": (lambda a: tuple(np.linalg.eigh(a, "U")), POSITIVE_COMPLEX),
    "scipy eigh generalised vectors": (
        lambda a: tuple(sl.eigh(a, POSITIVE_COMPLEX[0], driver="gvd")), POSITIVE_COMPLEX[1]),
    "svd hermitian": (lambda a: projections(np.linalg.svd(a, hermitian=True)), COMPLEX),
    "svd hermitian values": (lambda a: np.linalg.svd(a, hermitian=True, compute_uv=False), BATCH),
    "svdvals": (np.linalg.svdvals, TALL_COMPLEX),
    "nuclear norm": (lambda a: np.linalg.norm(a, "nuc", axis=(1, 2)), TALL_COMPLEX),
    "2-norm": (lambda a: np.linalg.norm(a, 2, axis=(1, 2)), TALL_COMPLEX),
    "pinv": (np.linalg.pinv, TALL_COMPLEX),
    "pinv hermitian": (lambda a: np.linalg.pinv(a, hermitian=True), COMPLEX),
    "pinvh upper": (lambda a: sl.pinvh(a, lower=False), POSITIVE[0]),
    "qr": (lambda a: tuple(np.linalg.qr(a)), TALL),
    "qr complex": (lambda a: tuple(np.linalg.qr(a)), TALL_COMPLEX),
    "qr wide complex": (lambda a: tuple(np.linalg.qr(a)), np.swapaxes(TALL_COMPLEX, 1, 2)),
    "qr r": (lambda a: np.linalg.qr(a, "r"), TALL_COMPLEX),
    "qr complete": (lambda a: tuple(np.linalg.qr(a, "complete")), TALL),
    "qr complete complex": (lambda a: tuple(np.linalg.qr(a, "complete")), TALL_COMPLEX),
    "qr raw": (lambda a: tuple(np.linalg.qr(a, "raw")), TALL),
    "qr raw complex": (lambda a: tuple(np.linalg.qr(a, "raw")), TALL_COMPLEX),
    "qr raw wide": (lambda a: tuple(np.linalg.qr(a, "raw")), WIDE),
    "scipy qr": (lambda a: sl.qr(a), TALL_COMPLEX[0]),
    "scipy qr economic": (lambda a: sl.qr(a, mode="economic"), TALL_COMPLEX),
    "scipy qr r": (lambda a: sl.qr(a, mode="r"), TALL),
    "scipy qr raw": (lambda a: sl.qr(a, mode="raw"), TALL[0]),
    "scipy qr pivoting": (lambda a: sl.qr(a, pivoting=True, mode="economic")[:2], TALL_COMPLEX[0]),
    "lu": (lambda a: sl.lu(a)[1:], COMPLEX + 4 * np.eye(3)),
    "lu of a tall matrix": (lambda a: sl.lu(a)[1:], TALL),
    "lu of a wide matrix": (lambda a: sl.lu(a)[1:], WIDE),
    "lu of a singular matrix": (lambda a: sl.lu(a)[1:], SINGULAR),
    "packed lu of a singular matrix": (lambda a: sl.lu_factor(a)[0], SINGULAR),
    "lu_solve": (lambda a: sl.lu_solve(sl.lu_factor(a), VECTOR, trans=2), COMPLEX[0]),
    "lu_solve batch": (lambda a: sl.lu_solve(sl.lu_factor(a), MATRIX, trans=1), COMPLEX),
    "lu_solve for a batch": (lambda b: sl.lu_solve(sl.lu_factor(COMPLEX[0]), b), COMPLEX),
    "cho_solve batch": (lambda a: sl.cho_solve(sl.cho_factor(a, lower=True), MATRIX), POSITIVE_COMPLEX),
    "cho_solve_banded batch": (lambda a: sl.cho_solve_banded((a[:, :2] + [[2], [0]], True), MATRIX), COMPLEX),
    "solve_banded batch": (lambda a: sl.solve_banded((1, 1), a + [[0], [4], [0]], MATRIX), COMPLEX),
    "discrete lyapunov batch": (lambda a: sl.solve_discrete_lyapunov(0.2 * a, A), COMPLEX),
    "scipy qr pivoting batch": (lambda a: sl.qr(a, pivoting=True, mode="economic")[:2], TALL_COMPLEX),
    "block_diag batch": (lambda a: sl.block_diag(a, MATRIX, a[0]), COMPLEX),
    "schur complex": (lambda a: (np.diagonal(sl.schur(a, "complex")[0], axis1=-2, axis2=-1),
                                 without_phases(sl.schur(a, "complex")[1])), COMPLEX),
    "schur real": (lambda a: sl.schur(a), POSITIVE[0] + np.triu(A)),
    "schur of a real matrix": (lambda a: np.abs(sl.schur(a, "complex")[0]), A + np.diag([3, 0], 1)),
    "qz complex, schur form of a pair": (lambda a: (
        *[np.diagonal(part) for part in sl.qz(a, COMPLEX[1], "complex")[:2]],
        *map(without_phases, sl.qz(a, COMPLEX[1], "complex")[2:])), COMPLEX[0]),
    "qz complex by the second, schur": (lambda b: (
        np.abs(sl.qz(COMPLEX[1], b, "complex")[0]), np.abs(sl.qz(COMPLEX[1], b, "complex")[1])), COMPLEX[0]),
    "qz real, schur": (lambda a: sl.qz(a, A @ A.T), POSITIVE[0]),
    "polar": (lambda a: sl.polar(a), COMPLEX),
    "polar left": (lambda a: sl.polar(a, side="left"), TALL_COMPLEX[0]),
    "lstsq": (lambda a: np.linalg.lstsq(a, np.ones(4))[:2], TALL_COMPLEX[0]),
    "scipy lstsq": (lambda a: sl.lstsq(a, np.ones(4))[:2], TALL[0]),
    "lstsq under": (lambda a: np.linalg.lstsq(a, np.ones((3, 2)))[0], WIDE[0]),
    "solve a vector": (lambda a: np.linalg.solve(a, VECTOR), A),
    "solve a vector by a batch": (lambda a: np.linalg.solve(a, VECTOR), BATCH),
    "solve a vector by a batch of 3": (lambda a: np.linalg.solve(np.concatenate([a, a[:1] ** 2]), VECTOR), BATCH),
    "solve for a vector": (lambda b: np.linalg.solve(BATCH, b), VECTOR),
    "solve for complex": (lambda b: np.linalg.solve(COMPLEX, b), MATRIX),
    "the ufunc of solve": (lambda a: compiled.solve(a, MATRIX), COMPLEX),
    "the ufunc of solve for vectors": (lambda b: compiled.solve1(A, b), VECTOR),
    "the ufuncs of inv and det": (lambda a: (compiled.inv(a), compiled.det(a), *compiled.slogdet(a)), COMPLEX),
    "the ufuncs of a triangle, as eigh": (
        lambda a: (compiled.cholesky_lo(a), compiled.eigvalsh_lo(a), compiled.eigh_lo(a)[0]), POSITIVE),
    "solve matrices": (lambda a: np.linalg.solve(a, MATRIX), COMPLEX),
    "scipy solve": (lambda a: sl.solve(a, VECTOR), COMPLEX),
    "scipy solve her": (lambda a: sl.solve(a, VECTOR, assume_a="her", lower=True), COMPLEX[0]),
    "scipy solve pos of one element": (lambda a: sl.solve(a, [[1 + 1j, 2.0]], assume_a="pos"), ONE_BY_ONE[0]),
    "scipy solve pos of a stack of elements": (lambda a: sl.solve(a, [[1 + 1j, 2.0]], assume_a="pos"), ONE_BY_ONE),
    "scipy inv her of one element": (lambda a: sl.inv(a, assume_a="her"), ONE_BY_ONE[0]),
    "solve_triangular": (lambda a: sl.solve_triangular(a, VECTOR, trans="C"), COMPLEX),
    "slogdet sign": (lambda a: np.linalg.slogdet(a), COMPLEX),
    "det": (np.linalg.det, COMPLEX),
    "sqrtm": (lambda a: sl.sqrtm(a), COMPLEX),
    "sqrtm across the cut": (lambda a: sl.sqrtm(a), NEGATIVE),
    "logm": (lambda a: sl.logm(a), COMPLEX),
    "logm across the cut": (lambda a: sl.logm(a), NEGATIVE),
    "fractional power across the cut": (lambda a: sl.fractional_matrix_power(a, -0.4), NEGATIVE),
    "fractional power": (lambda a: sl.fractional_matrix_power(a, 2.5), POSITIVE),
    "fractional power of a rotation": (lambda a: sl.fractional_matrix_power(a, 0.5), A + np.diag([3, 0], 1)),
    "sylvester": (lambda q: sl.solve_sylvester(A + np.diag([3, 0], 1) + 0j, A + 0j, q), COMPLEX[0]),
    "whole power": (lambda a: sl.fractional_matrix_power(a, 3.0), NEGATIVE),
    "exponent of a power": (lambda t: sl.fractional_matrix_power(NEGATIVE, t), np.float64(0.3)),
    "signm": (lambda a: sl.signm(a), NEGATIVE),
    "funm": (lambda a: sl.funm(a, lambda z: np.cos(z) + z), A),
    "expm": (lambda a: sl.expm(a), COMPLEX),
    "cosm": (lambda a: sl.cosm(a), BATCH),
    "orthogonal_procrustes": (lambda a: sl.orthogonal_procrustes(a, BATCH + 1), BATCH),
    "khatri_rao": (lambda a: sl.khatri_rao(a, BATCH), BATCH),
    "eigh_tridiagonal": (lambda d: spectral(sl.eigh_tridiagonal(d, VECTOR[:2])), VECTOR),
}  # fmt: skip
# The conditioning of the result leaves differences fewer digits.
ROUGH = {"fractional power": 1e-6}


def direction(x, seed):
    rng = np.random.default_rng(seed)
    u = rng.normal(size=np.shape(x))
    return u + 1j * rng.normal(size=np.shape(x)) if np.iscomplexobj(x) else u


@pytest.mark.parametrize("name", CASES)
def test_the_value_is_numpys_to_the_bit(name):
    f, x = CASES[name]
    expected, value = parts(f(x)), parts(jvp(f, (x,), (np.ones_like(x),))[0])
    if "phases" in name or any(word in name for word in ("eigh", "svd", "schur")):
        np.testing.assert_allclose(value, expected, rtol=1e-13, atol=1e-14)  # computed further, in another order
    else:
        np.testing.assert_array_equal(value, expected)


def flat(result):
    if isinstance(result, tuple | list):
        for item in result:
            yield from flat(item)
    else:
        y = np.ravel(result)
        yield from [np.real(y), np.imag(y)] if np.iscomplexobj(y) else [y]


def weighted(f, x):
    """A real function with second derivatives, of everything that `f` returns."""
    weights = np.cos(np.arange(np.size(parts(f(x)))))

    def g(x):
        y = np.concatenate(list(flat(f(x))))
        return np.sum(weights * (y + 0.3 * y * y))

    return g


@pytest.mark.thinned(6)
@pytest.mark.parametrize("name", CASES)
def test_first_and_second_derivatives_agree_with_differences(name):
    f, x = CASES[name]
    g, u, v = weighted(f, x), direction(x, 0), direction(x, 1)
    tolerance = ROUGH.get(name, 1e-7)

    def along(x):
        """The derivative along `u`, by reverse mode."""
        return np.real(np.sum(np.conj(grad(g)(x)) * u))

    expected, error = directional(g, x, u)
    assert error < 1e-6 * max(1, abs(expected))
    np.testing.assert_allclose(along(x), expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(jvp(g, (x,), (u,))[1], expected, rtol=tolerance, atol=tolerance)
    expected, error = directional(along, x, v)
    assert error < 1e-5 * max(1, abs(expected))
    for second in (jvp(along, (x,), (v,))[1], np.real(np.sum(np.conj(grad(along)(x)) * v))):
        np.testing.assert_allclose(second, expected, rtol=10 * tolerance, atol=10 * tolerance)


def test_an_argument_of_which_one_triangle_is_read_has_its_derivative_there():
    for f in (np.linalg.cholesky, np.linalg.eigvalsh, lambda a: np.linalg.svd(a, hermitian=True)[1]):
        derivative = grad(lambda a, f=f: np.sum(f(a) ** 3))(POSITIVE[0])
        assert not np.triu(derivative, 1).any() and np.tril(derivative, -1).any()
        whole = grad(lambda a, f=f: np.sum(f(symmetric(a)) ** 3))(POSITIVE[0])
        np.testing.assert_allclose(whole, (derivative + derivative.T) / 2, rtol=1e-12)


@pytest.mark.thinned(2)
@pytest.mark.filterwarnings("ignore:Diagonal number")
@pytest.mark.parametrize("made", [lambda f: f, effgrad.compile])
def test_rows_below_a_pivot_of_0_have_no_derivative(made):
    """A LinAlgError came from inside the reverse pass."""
    early = np.array([[2.0, 1.0, 1.0], [1.0, 0.5, 2.0], [0.5, 0.25, 1.0]])
    for f in (lambda a: np.sum(sl.lu(a)[1] ** 2), lambda a: np.sum(sl.lu_factor(a)[0] ** 2)):
        assert np.isnan(made(grad(f))(early)[:, :2]).any() and np.isnan(made(grad(f))(np.ones((3, 2)))).any()
        assert np.isnan(made(lambda a, f=f: jvp(f, (a,), (np.eye(3),))[1])(early))


def test_what_is_not_read_may_be_anything():
    a = np.where(np.triu(np.ones((3, 3)), 1) == 1, np.nan, POSITIVE[0])
    for f in (np.linalg.cholesky, np.linalg.eigvalsh, lambda a: np.linalg.eigh(a)[1] ** 2):
        assert np.isfinite(grad(lambda a, f=f: np.sum(f(a)))(a)).all()


def test_a_compiled_power_of_a_single_matrix_has_the_precision_of_its_double_result():
    """SciPy gives a double result; its digits after those of a single number were lost in a logarithm in single."""
    a = np.array([[1.75, 0.5], [0.25, 2.5]], np.float32)
    found = effgrad.compile(lambda a: sl.fractional_matrix_power(a, -1.5), "numpy")(a)
    w, v = np.linalg.eig(a.astype(float))
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, v * w**-1.5 @ np.linalg.inv(v), rtol=1e-13)


def test_a_real_schur_form_with_blocks_says_what_to_write():
    rotation = np.array([[0.0, 1.0], [-1.0, 0.0]])
    with pytest.raises(NoRule, match="output='complex'"):
        grad(lambda a: np.sum(sl.schur(a)[0]))(rotation)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_functions_through_vectors_of_equal_values_have_the_limit():
    weights = np.array([[1.0, 2.0], [2.0, 3.0]])

    def f(a):
        w, v = np.linalg.eigh(a)
        return np.sum(weights * ((v * np.exp(w)) @ v.T))

    def g(a):
        u, s, vh = np.linalg.svd(a)
        return np.sum(weights * ((u * np.exp(s)) @ vh))

    np.testing.assert_allclose(grad(f)(np.eye(2)), np.e * np.array([[1.0, 0.0], [4.0, 3.0]]), rtol=1e-12)
    # The polar factor turns by the part of a step that is not symmetric, and the other one grows by the rest.
    np.testing.assert_allclose(grad(g)(np.eye(2)), np.e * weights, rtol=1e-12)
    np.testing.assert_allclose(jvp(g, (np.eye(2),), (np.ones((2, 2)),))[1], np.e * np.sum(weights), rtol=1e-12)
    exact = grad(lambda a: np.sum(weights * sl.expm(a)))(np.eye(2))
    np.testing.assert_allclose(exact, np.e * weights, rtol=1e-13)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("part", ["real", "complex"])
def test_a_basis_of_a_null_space_has_no_derivative(part):
    """The matrix does not determine it. What its vectors and a rotation of them share has one, as the space has."""
    a = TALLER[0] + (1j * TALLER[1] if part == "complex" else 0.0)
    u = direction(a, 3)

    def of_basis(a):
        return np.sum(np.abs(np.linalg.svd(a)[0][:, 3:]) ** 3)

    assert np.isnan(grad(of_basis)(a)).all() and np.isnan(jvp(of_basis, (a,), (u,))[1])

    def of_space(a):
        return np.sum(np.abs(np.arange(1.0, 6.0) @ np.linalg.svd(a)[0][:, 3:]) ** 2)

    expected, _ = directional(of_space, a, u)
    np.testing.assert_allclose(np.real(np.sum(np.conj(grad(of_space)(a)) * u)), expected, rtol=1e-8)
    np.testing.assert_allclose(jvp(of_space, (a,), (u,))[1], expected, rtol=1e-8)
    np.testing.assert_allclose(effgrad.compile(grad(of_space))(a), grad(of_space)(a), rtol=1e-12)


def test_a_value_that_is_not_the_definitions_is_refused():
    """SciPy 1.14 to 1.18 solve a real Sylvester equation with a complex right-hand side wrongly."""
    a = A + np.diag([3, 0], 1) - np.diag([3, 0], -1)
    x = sl.solve_sylvester(a, A, COMPLEX[0])
    if np.allclose(a @ x + x @ A, COMPLEX[0]):
        return
    with pytest.raises(NoRule, match="solve_sylvester called like this"):
        grad(lambda q: np.sum(np.abs(sl.solve_sylvester(a, A, q))))(COMPLEX[0])


@pytest.mark.parametrize("ord", [2, -2, "nuc"])
def test_a_norm_of_a_row_or_a_column_is_numpys_to_the_bit(ord):
    """It was the vector's length, which NumPy's singular value is only up to rounding."""
    for draw in range(20):
        x = np.random.default_rng(draw).normal(size=(4, 1) if draw % 2 else (1, 3))
        value, slope = jvp(lambda x: np.linalg.norm(x, ord), (x,), (x,))
        assert value == np.linalg.norm(x, ord)
        assert slope == pytest.approx(value, rel=1e-14)
