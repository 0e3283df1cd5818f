"""Functions of a matrix through its eigenvectors, where eigenvalues are equal: the composite is smooth there.

The oracle is SciPy's Frechet derivative of the exponential, and differences for other functions.
"""

import mpmath
import numpy as np
import pytest
import scipy.linalg
import scipy.spatial

from effgrad import compile, grad, hessian, hvp, jacobian, jvp, second_order, taylor
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


SECOND = {
    "hessian": lambda f, a: hessian(f)(a),
    "edge pushing": lambda f, a: hessian(f, mode="hessian")(a),
    "reverse over reverse": lambda f, a: jacobian(grad(f), mode="reverse")(a),
    "forward over reverse": lambda f, a: jacobian(grad(f), mode="forward")(a),
    "compiled": lambda f, a: compile(hessian(f))(a),
}
ALONG = {
    "forward over forward": lambda f, a, u: jvp(lambda x: jvp(f, (x,), (u,))[1], (a,), (u,))[1],
    "hvp": lambda f, a, u: np.sum(hvp(f, a, u) * u),
    "second order": lambda f, a, u: second_order(f, a, u)[2],
    "taylor": lambda f, a, u: 2 * taylor(f, [a, u], order=2)[2],
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("name", "routes"),
    [("two equal", ["hessian"]), *(pytest.param(name, SECOND, marks=pytest.mark.sweep) for name in MATRICES)],
)
def test_second_derivatives_of_the_exponential_by_eigenvectors(name, routes):
    """The oracle is the second derivative of mpmath's exponential, by differences at 50 digits."""
    a = MATRICES[name]
    u, weights = RNG.normal(size=(2, *a.shape))
    u = u + u.T

    def f(a):
        return np.sum(weights * by_eigenvectors(np.exp)(a))

    wanted = second_difference_of_exponential(a, u, weights)
    for along in ALONG.values():
        np.testing.assert_allclose(along(f, a, u), wanted, rtol=1e-9)
    for route in routes:
        found = np.sum(SECOND[route](f, a) * np.multiply.outer(u, u))
        np.testing.assert_allclose(found, wanted, rtol=1e-9, err_msg=route)


SINGULAR = {
    "the identity": np.eye(3),
    "two equal": np.diag([1.0, 1.0, 2.0]),
    "tall": np.vstack([np.eye(2), np.zeros((2, 2))]),
    "wide": TURN[:2] * 1.5,
}


@pytest.mark.thinned(2)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", SINGULAR)
def test_cubes_by_singular_vectors(name):
    """The cube of the singular values is a polynomial in the elements."""
    a = SINGULAR[name]
    u, weights = RNG.normal(size=(2, *a.shape))

    def by_vectors(a):
        left, s, right = np.linalg.svd(a, full_matrices=False)
        return np.sum(weights * ((left * s**3) @ right))

    def polynomial(a):
        return np.sum(weights * (a @ a.T @ a))

    np.testing.assert_allclose(grad(by_vectors)(a), grad(polynomial)(a), atol=1e-12)
    np.testing.assert_allclose(jvp(by_vectors, (a,), (u,))[1], jvp(polynomial, (a,), (u,))[1], atol=1e-12)
    np.testing.assert_allclose(hvp(by_vectors, a, u), hvp(polynomial, a, u), atol=1e-11)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_nuclear_norm_where_singular_values_are_equal():
    """The trace of the root of the sum of squares: its second derivative at 1 is that of the part that turns."""
    turned = np.array([[0.0, 1.0], [-1.0, 0.0]])
    found = hessian(lambda a: np.linalg.norm(a, "nuc"))(np.eye(2))
    np.testing.assert_allclose(found, np.multiply.outer(turned, turned) / 2, atol=1e-12)


def second_difference_of_exponential(a, u, weights):
    with mpmath.workdps(50):
        h = mpmath.mpf(10) ** -15

        def value(t):
            e = mpmath.expm(mpmath.matrix(a.tolist()) + t * mpmath.matrix(u.tolist()))
            return sum(weights[i, j] * e[i, j] for i in range(len(a)) for j in range(len(a)))

        return float((value(h) - 2 * value(mpmath.mpf(0)) + value(-h)) / h**2)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_second_derivatives_beside_an_inner_derivative_have_its_value():
    """A value that is itself a derivative is that of a run outside, where it has its limit."""
    f = lambda a: np.sum(by_eigenvectors(np.exp)(a))  # noqa: E731
    value, _ = jvp(lambda a: jvp(f, (a,), (np.eye(2),))[1], (np.eye(2),), (np.eye(2),))
    np.testing.assert_allclose(value, 2 * np.e, rtol=1e-12)


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


CHOSEN = {
    "eigh": lambda a: np.linalg.eigh(a)[1][0, 0],
    "scipy's eigh": lambda a: scipy.linalg.eigh(a)[1][1, 1] ** 2,
    "eig": lambda a: np.real(np.linalg.eig(a)[1][0, 0]),
    "left of svd": lambda a: np.linalg.svd(a)[0][0, 0],
    "right of svd": lambda a: np.linalg.svd(a)[2][1, 0],
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", CHOSEN)
def test_an_element_of_a_vector_that_is_chosen_has_no_derivative(name):
    """The cosine of the angle of a choice has the slope 0 at the choice of LAPACK, in reverse, where forward is NaN."""
    f = CHOSEN[name]
    assert np.isnan(grad(f)(np.eye(2))[1, 0])
    assert np.isnan(jvp(f, (np.eye(2),), (np.array([[1.0, 2.0], [3.0, 5.0]]),))[1])


UNCHANGED = {
    "lengths": lambda a: np.sum(np.linalg.eigh(a)[1] ** 2),
    "all of a space": lambda a: np.sum(np.linalg.eigh(a)[1] @ np.linalg.eigh(a)[1].T),
    "all left vectors": lambda a: np.sum(np.linalg.svd(a)[0] @ np.linalg.svd(a)[0].T),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", UNCHANGED)
@pytest.mark.parametrize("matrix", ["two equal", "three and two"])
def test_what_no_choice_changes_has_its_derivative(name, matrix):
    a = MATRICES[matrix]
    np.testing.assert_allclose(grad(UNCHANGED[name])(a), np.zeros_like(a), atol=1e-10)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("matrix", ["two equal", "three and two"])
def test_the_exponential_by_the_inverse_of_the_vectors(matrix):
    """Reverse mode left out what the vectors of an eigenspace have to do with each other."""
    a = MATRICES[matrix]
    wanted = scipy.linalg.expm_frechet(a, np.ones_like(a), compute_expm=False)
    for product in (lambda v, w: (v * w) @ np.linalg.inv(v), lambda v, w: np.linalg.solve(v.T, (v * w).T).T):
        f = lambda a: (lambda w, v: np.sum(product(v, np.exp(w))))(*np.linalg.eigh((a + a.T) / 2))  # noqa: B023, E731
        np.testing.assert_allclose(grad(f)(a), wanted, rtol=1e-9, atol=1e-9)


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


def cube(a, u):
    """The derivatives of a @ a @ a along u."""
    return [u @ a @ a + a @ u @ a + a @ a @ u, 2 * (u @ u @ a + u @ a @ u + a @ u @ u), 6 * u @ u @ u]


def odd_cube(a, u):
    """The derivatives of a @ a.T @ a along u."""
    first = u @ a.T @ a + a @ u.T @ a + a @ a.T @ u
    return [first, 2 * (u @ u.T @ a + u @ a.T @ u + a @ u.T @ u), 6 * u @ u.T @ u]


def by(decomposition, product):
    return lambda a: product(*decomposition(a))


def symmetric_cube(a, u):
    return cube((a + a.T) / 2, (u + u.T) / 2)


# Programs in which LAPACK's choice cancels, with the derivatives of what they compute.
COMPOSITES = {
    "eig": (by(np.linalg.eig, lambda w, v: np.real((v * w**3) @ np.linalg.inv(v))), cube),
    "eig, solved": (by(np.linalg.eig, lambda w, v: np.real(np.linalg.solve(v.T, (v * w**3).T).T)), cube),
    "eigh": (lambda a: by(np.linalg.eigh, lambda w, v: (v * w**3) @ v.T)((a + a.T) / 2), symmetric_cube),
    "eigh, inverse": (
        lambda a: by(np.linalg.eigh, lambda w, v: (v * w**3) @ np.linalg.inv(v))((a + a.T) / 2), symmetric_cube,
    ),
    "svd": (by(np.linalg.svd, lambda u, s, vt: (u * s**3) @ vt), odd_cube),
    "svd, put together": (by(np.linalg.svd, lambda u, s, vt: (u * s) @ vt), lambda a, u: [u, 0 * u, 0 * u]),
    "schur": (
        by(scipy.linalg.schur, lambda t, z: z @ t @ t @ z.T), lambda a, u: [u @ a + a @ u, 2 * u @ u, 0 * u],
    ),
}  # fmt: skip
POINTS = {
    "a multiple of 1": 0.3 * np.eye(2),
    "zero": np.zeros((2, 2)),
    "two equal": np.diag([1.0, 1.0, 2.0]),
    "rank 1": np.outer([1.0, 2.0, 3.0], [1.0, -1.0, 2.0]),
    "rank 1, symmetric": np.diag([0.0, 0.0, 2.0]),
    "apart": np.diag([0.3, 1.0, 2.0]) + 0.1,
    "a relative distance of 1e-12": TURN[:3, :3] @ np.diag([1.0, 1.0, 2.0]) @ TURN[:3, :3].T * (1 + 1e-12 * np.eye(3)),
    "a distance of 1e-12": np.diag([1.0, 1.0 + 1e-12, 2.0]),
    "a distance of 5e-6": np.diag([1.0, 1.0 + 5e-6, 2.0]),
    "three of 1e-7": np.diag([1.0, 1.0 + 1e-7, 1.0 - 2e-7]),
}


def second_along(g, a, u):
    return np.sum(np.tensordot(hessian(g)(a), u, 2) * u)


ROUTES = {
    "reverse": (1, lambda g, a, u: np.sum(grad(g)(a) * u)),
    "forward": (1, lambda g, a, u: jvp(g, (a,), (u,))[1]),
    "hessian": (2, second_along),
    "reverse over reverse": (2, lambda g, a, u: np.sum(grad(lambda a: np.sum(grad(g)(a) * u))(a) * u)),
    "forward over forward": (2, lambda g, a, u: jvp(lambda a: jvp(g, (a,), (u,))[1], (a,), (u,))[1]),
    "third order": (
        3, lambda g, a, u: jvp(lambda a: jvp(lambda a: jvp(g, (a,), (u,))[1], (a,), (u,))[1], (a,), (u,))[1],
    ),
    "compiled": (1, lambda g, a, u: np.sum(compile(grad(g))(a) * u)),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("name", "point", "routes"),
    [
        *[(name, "a multiple of 1", ["reverse", "forward"]) for name in ("eig", "eigh, inverse", "schur")],
        *[(name, "a distance of 1e-12", ["reverse over reverse"]) for name in ("eig", "eigh", "svd", "schur")],
        ("svd, put together", "rank 1", ["reverse"]),
        *[pytest.param(name, point, ROUTES, marks=pytest.mark.sweep) for name in COMPOSITES for point in POINTS],
    ],
)
def test_a_program_in_which_the_choice_of_vectors_cancels_is_right_or_nan(name, point, routes):
    """A cotangent that happened to be 0 was taken for one that is 0 by construction, and the derivative was 0."""
    f, derivatives = COMPOSITES[name]
    a = POINTS[point]
    u, weights = np.random.default_rng(5).normal(size=(2, *a.shape))
    for route in routes:
        order, along = ROUTES[route]
        found, wanted = along(lambda a: np.sum(weights * f(a)), a, u), np.sum(weights * derivatives(a, u)[order - 1])
        # Schur's vectors have no series, and sums of large terms that cancel leave no second derivative of 0.
        undefined = (name == "schur" and point != "apart") or order == 3 or (name == "svd, put together" and order == 2)
        if not (undefined and np.isnan(found)):
            np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-10, err_msg=route)


def by_sizes(a, size):
    """A matrix with a function of its singular values in their place, by the eigenvectors of `a.T @ a`, for mpmath."""
    values, vectors = mpmath.eigsy(a.T * a)
    return a * vectors * mpmath.diag([size(mpmath.sqrt(w)) / mpmath.sqrt(w) for w in values]) * vectors.T


OF_MATRIX = {
    "exp": (lambda a: (lambda w, v: (v * np.exp(w)) @ v.T)(*np.linalg.eigh(a @ a.T)), lambda a: mpmath.expm(a * a.T)),
    "tanh": (
        lambda a: (lambda u, s, vt: (u * np.tanh(s)) @ vt)(*np.linalg.svd(a)), lambda a: by_sizes(a, mpmath.tanh),
    ),
    "polar": (lambda a: (lambda u, s, vt: u @ vt)(*np.linalg.svd(a)), lambda a: by_sizes(a, lambda s: s / s)),
    "inverse": (
        lambda a: (lambda w, v: np.real((v * (1 / w)) @ np.linalg.inv(v)))(*np.linalg.eig(a)), lambda a: a**-1,
    ),
}  # fmt: skip


@pytest.mark.thinned(5)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("distance", [0.0, 1e-7, 3e-5, 1e-4, 1e-3, 0.3])
@pytest.mark.parametrize("name", OF_MATRIX)
def test_a_third_derivative_at_nearly_equal_eigenvalues_is_right_or_nan(name, distance):
    """At a distance of 3e-5 it had one digit, and none for a matrix that is not symmetric."""
    f, exact = OF_MATRIX[name]
    rng = np.random.default_rng(7)
    left, right = (np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(2))
    u, weights = rng.normal(size=(2, 3, 3))
    basis, values = left + 0.3 * right, np.array([1.0, 1.0 + distance, 2.5])
    a = (basis * values) @ np.linalg.inv(basis) if name == "inverse" else (left * values) @ right
    with mpmath.workdps(60):
        h, line = mpmath.mpf(10) ** -12, symmetric_along(a, u)
        results = [exact(line(k * h)) for k in (-2, -1, 1, 2)]
        sums = [sum(weights[i, j] * result[i, j] for i, j in np.ndindex(3, 3)) for result in results]
        wanted = float((sums[3] - 2 * sums[2] + 2 * sums[1] - sums[0]) / (2 * h**3))

    def along(f):
        return lambda a: jvp(f, (a,), (u,))[1]

    def back(f):
        return lambda a: np.sum(grad(f)(a) * u)

    def weighted(a):
        return np.sum(weights * f(a))

    for third in (along(along(along(weighted))), back(along(along(weighted)))):
        found = third(a)
        if distance == 0.3 or not np.isnan(found):
            np.testing.assert_allclose(found, wanted, rtol=1e-5)


def symmetric_along(point, u):
    """The function of t and a symmetric matrix along a line, for mpmath."""
    return lambda t: mpmath.matrix(point.tolist()) + t * mpmath.matrix(u.tolist())


BESIDE = {
    "the least eigenvalue": (lambda a: np.linalg.eigh(a)[0][0], lambda w, v: w[0]),
    "the square of a distance": (
        lambda a: np.prod(np.diff(np.linalg.eigvalsh(a))[:1]) ** 2, lambda w, v: (w[0] - w[1]) ** 2,
    ),
    "an element of a vector": (lambda a: np.linalg.eigh(a)[1][0, 0] ** 2, lambda w, v: v[0, 0] ** 2),
    "a sum of logarithms": (lambda a: np.sum(np.log(np.linalg.eigvalsh(a))), lambda w, v: sum(map(mpmath.log, w))),
    "a logarithm": (
        lambda a: (lambda w, v: np.sum(((v * np.log(w)) @ v.T) * SLOPES))(*np.linalg.eigh(a)),
        lambda w, v: sum(mpmath.log(w[k]) * SLOPES[i, j] * v[i, k] * v[j, k] for i, j, k in np.ndindex(3, 3, 3)),
    ),
}  # fmt: skip
SLOPES = np.array([[1.0, 0.5, -0.3], [0.5, 2.0, 0.7], [-0.3, 0.7, 3.0]])


@pytest.mark.thinned(3)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("distance", [1e-8, 3e-6])
@pytest.mark.parametrize("values", [(0.0, 1.0, 2e5), (1e5, 1e5 + 1, 2e5), (1.0, 2.0, 1e6)])
@pytest.mark.parametrize("name", BESIDE)
def test_functions_of_nearly_equal_eigenvalues(name, values, distance):
    """The second derivative of an exponential was -61 for 13.7. What is not smooth keeps its large derivatives."""
    f, exact = BESIDE[name]
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]
    a = (turn * (np.array(values) * distance + (1.0 if "logarithm" in name and values[0] == 0 else 0.0))) @ turn.T
    a, u = (a + a.T) / 2, np.random.default_rng(5).normal(size=(3, 3))
    u = u + u.T
    with mpmath.workdps(80):
        h, line = mpmath.mpf(10) ** -25, symmetric_along(a, u)
        before, here, after = [exact(*mpmath.eigsy(line(t))) for t in (-h, mpmath.mpf(0), h)]
        first, second = float((after - before) / (2 * h)), float((after - 2 * here + before) / h**2)
    symmetric = lambda a: f((a + a.T) / 2)  # noqa: E731
    assert np.isclose(jvp(symmetric, (a,), (u,))[1], first, rtol=1e-6)
    for found in (
        jvp(lambda a: np.sum(grad(symmetric)(a) * u), (a,), (u,))[1],
        np.sum(compile(grad(lambda a: np.sum(grad(symmetric)(a) * u)))(a) * u),
    ):
        assert np.isclose(found, second, rtol=1e-6)


COMPLEX = {
    "eigh": (lambda a: by(np.linalg.eigh, lambda w, v: (v * w**3) @ v.conj().T)((a + a.conj().T) / 2), True),
    "eig": (by(np.linalg.eig, lambda w, v: (v * w**3) @ np.linalg.inv(v)), False),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("distance", [0.0, 1e-9])
@pytest.mark.parametrize("name", COMPLEX)
def test_complex_matrices_with_nearly_equal_eigenvalues(name, distance):
    """They were NaN for equal eigenvalues."""
    f, hermitian = COMPLEX[name]
    rng = np.random.default_rng(2)
    turn, u, weights = rng.normal(size=(3, 3, 3)) + 1j * rng.normal(size=(3, 3, 3))
    turn = np.linalg.qr(turn)[0]
    a = (turn * [1.0, 1.0 + distance, 2.0]) @ turn.conj().T
    wanted = [np.real(np.sum(weights * d)) for d in cube(a, (u + u.conj().T) / 2 if hermitian else u)]

    def along(a):
        return np.real(np.sum(np.conj(grad(lambda a: np.real(np.sum(weights * f(a))))(a)) * u))

    np.testing.assert_allclose(along(a), wanted[0], rtol=1e-7)
    np.testing.assert_allclose(jvp(along, (a,), (u,))[1], wanted[1], rtol=1e-7)


USED = {
    "eigh": lambda a: np.linalg.eigh(a)[1][:, 2],
    "eig": lambda a: np.real(np.linalg.eig(a)[1][:, 2]),
    "svd": lambda a: np.linalg.svd(a)[0][:, 0],
}


@pytest.mark.parametrize("name", USED)
def test_vectors_of_single_values_have_derivatives_beside_those_that_are_not_used(name):
    """The derivative of a vector of a single eigenvalue, of a symmetric matrix, by the resolvent."""
    first = name == "svd"
    a = np.diag([2.0, 1.0, 1.0] if first else [1.0, 1.0, 2.0])
    u = RNG.normal(size=(3, 3))
    u = u + u.T
    vector = np.eye(3)[0 if first else 2]
    moved = np.linalg.pinv(2 * np.eye(3) - a) @ u @ vector
    found = np.sum(grad(lambda a: np.sum(USED[name](a)))(a) * u)
    np.testing.assert_allclose(found, np.sum(moved) * np.sum(USED[name](a)), atol=1e-12)


DEPENDENT = {
    "square": np.outer([1.0, 2.0, 3.0], [1.0, 1.5, 2.0]) + np.outer([1.0, 0.0, 1.0], [0.0, 1.0, 1.0]),
    "wide": np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 7.0]]),
    "tall": np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]),
    "square, the first": np.array([[0.0, 2.0, 1.0], [0.0, 3.0, 4.0], [0.0, 1.0, 5.0]]),
}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("mode", ["reduced", "complete"])
@pytest.mark.parametrize("name", DEPENDENT)
def test_qr_of_dependent_columns_is_right_or_nan(name, mode):
    """Only the last column of a square matrix may depend on the others: its place in q is left by theirs."""
    a, step = DEPENDENT[name], 1e-6
    u = np.cos(1 + np.arange(a.size)).reshape(a.shape)

    def f(a):
        q, r = np.linalg.qr(a, mode)
        return np.sum(np.sin(q)) + np.sum(np.cos(r) * np.arange(r.shape[-1]))

    found = [jvp(f, (a,), (u,))[1], np.sum(grad(f)(a) * u), np.sum(compile(grad(f))(a) * u)]
    difference = (f(a + step * u) - f(a - step * u)) / (2 * step)
    expected = difference if name in ("square", "wide") else np.nan
    np.testing.assert_allclose(found, 3 * [expected], rtol=1e-7)


def test_a_factor_of_a_matrix_of_lower_rank_has_no_second_derivative():
    """Three centred points in three dimensions: rounding chose one solution of an equation that has many.

    The first derivative of the rotated points is right, and stays.
    """
    rng = np.random.default_rng(0)
    points, direction, others = rng.normal(size=(3, 3, 3))

    def f(x):
        return np.sum(others * scipy.spatial.procrustes(x, others)[1])

    def along(x):
        return np.sum(grad(f)(x) * direction)

    slope = (f(points + 1e-5 * direction) - f(points - 1e-5 * direction)) / 2e-5
    np.testing.assert_allclose(along(points), slope, rtol=1e-6)
    assert np.isnan(jvp(along, (points,), (direction,))[1])


def test_a_pseudoinverse_of_full_rank_has_a_limit_behind_a_square_root_at_zero():
    """A column without variance is not scaled, as by scikit-learn's `StandardScaler`: the reverse pass meets 0 * inf,
    and its limit was unknown, since that of a pseudoinverse was."""
    y = np.array([1.0, 0.0, 2.0, 1.5, -1.0])

    def f(x):
        columns = np.column_stack([x * 0 + 1, x, y])
        scale = np.sqrt(np.var(columns, axis=0))
        scale[0] = 1.0
        return np.sum(np.linalg.pinv(columns / scale) @ y**2)

    x = np.array([0.3, 1.2, -0.5, 2.0, 0.7])
    with np.errstate(all="ignore"):
        by_forward = [jvp(f, (x,), (unit,))[1] for unit in np.eye(5)]
        np.testing.assert_allclose(grad(f)(x), by_forward, rtol=1e-12)


def turned_up(vector):
    """A vector with the sign that makes its first element positive, as programs choose it."""
    return -vector if vector[0] < 0 else vector


OF_UNIT_VECTORS = {
    "lower": lambda n: np.linalg.eigh((4 * np.outer(n, n) - np.eye(4)) / 3)[1][:, -1],
    "upper": lambda n: np.linalg.eigh((4 * np.outer(n, n) - np.eye(4)) / 3, "U")[1][:, -1],
    "general": lambda n: np.linalg.eig((4 * np.outer(n, n) - np.eye(4)) / 3)[1].T[
        np.argmax(np.linalg.eigvals((4 * np.outer(n, n) - np.eye(4)) / 3).real)].real,
    "singular": lambda n: np.linalg.svd(np.eye(4) + 3 * np.outer(n, n))[0][:, 0],
}  # fmt: skip


@pytest.mark.parametrize("way", OF_UNIT_VECTORS)
@pytest.mark.parametrize("seed", range(2, 5))
def test_the_sign_that_a_program_chooses_for_an_eigenvector(way, seed):
    """The vector n from 4nn' - 1, as rotations become quaternions: three eigenvalues are equal, and the sign was lost.

    The limit's matrix differed in its last bit, and so its vectors in their signs: the gradient had the other sign.
    """
    x = np.random.default_rng(seed).normal(size=4)
    weights, u = np.array([0.3, -0.5, 0.8, 0.4]), np.array([0.3, -0.7, 0.5, 0.2])

    def f(x):
        return weights @ turned_up(OF_UNIT_VECTORS[way](x / np.sqrt(x @ x)))

    r = np.sqrt(x @ x)
    wanted = pytest.approx(np.sign(x[0]) * (weights @ (u - x * (x @ u) / r**2)) / r, rel=1e-8)
    for slope in (grad(f)(x) @ u, jvp(f, (x,), (u,))[1]):
        assert slope == wanted or (way == "general" and np.isnan(slope))  # rounding may leave no basis of eigenvectors


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("noise", [1e-11, 1e-9, 1e-7])
def test_all_singular_vectors_of_a_noisy_matrix_of_low_rank(noise):
    """Twenty singular values are nearly 0 at once, and the limit has fewer digits than the formula."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 3)) @ rng.normal(size=(3, 20)) + noise * rng.normal(size=(30, 20))

    def by_vectors(x):
        u, s, vt = np.linalg.svd(x, full_matrices=False)
        return np.sum((u * s**3) @ vt)

    wanted = grad(lambda x: np.sum(x @ x.T @ x))(x)
    np.testing.assert_allclose(grad(by_vectors)(x), wanted, atol=1e-10 * np.abs(wanted).max())


MIXING = np.eye(4) + 0.3 * np.random.default_rng(4).normal(size=(4, 4))


def entropies(a, steps):
    """The entropies of the two large singular values of a matrix that is put together from its vectors and mixed."""
    total = 0.0
    for _ in range(steps):
        u, s, vt = scipy.linalg.svd(a)
        p = s[:2] ** 2 / np.sum(s[:2] ** 2)
        total, a = total - np.sum(p * np.log(p)), ((MIXING @ u) * s) @ vt
    return total


def exact_entropies(line, t, steps):
    mixing, a, total = mpmath.matrix(MIXING.tolist()), line(t), mpmath.mpf(0)
    for _ in range(steps):
        s = sorted(mpmath.svd_r(a, compute_uv=False))[-2:]
        p = [x**2 / (s[0] ** 2 + s[1] ** 2) for x in s]
        total, a = total - sum(x * mpmath.log(x) for x in p), mixing * a
    return total


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_chain_of_decompositions_with_small_values_that_are_near_to_each_other():
    """The series of a limit lost their terms in it, and the second derivative was NaN, though no digit is lost."""
    rng, steps = np.random.default_rng(0), 4
    first, last = (np.linalg.qr(rng.normal(size=(4, 4)))[0] for _ in range(2))
    a, u = (first * [1.0, 0.05, 4e-6, 4e-7]) @ last, rng.normal(size=(4, 4))
    with mpmath.workdps(80):
        h, line = mpmath.mpf(10) ** -25, symmetric_along(a, u)
        before, here, after = [exact_entropies(line, t, steps) for t in (-h, mpmath.mpf(0), h)]
        second = float((after - 2 * here + before) / h**2)
    assert np.isclose(np.sum(hvp(lambda a: entropies(a, steps), a, u) * u), second, rtol=1e-7)


ENTIRE = {
    "expm": mpmath.expm,
    "cosm": lambda a: (mpmath.expm(1j * a) + mpmath.expm(-1j * a)) / 2,
    "coshm": lambda a: (mpmath.expm(a) + mpmath.expm(-a)) / 2,
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ENTIRE)
def test_an_entire_function_of_a_matrix_of_low_rank_by_singular_values(name):
    """Its derivative takes the infinite derivatives of vectors that no result depends on. It was NaN."""
    rng, f = np.random.default_rng(8), getattr(scipy.linalg, name)
    a, u = np.outer(rng.normal(size=3), rng.normal(size=3)), rng.normal(size=(3, 3))

    def composite(a):
        w, s, vt = np.linalg.svd(a)
        return np.sum(SLOPES * f((w * s) @ vt))

    def exact(a):
        return mpmath.re(sum(x * y for x, y in zip(ENTIRE[name](a), mpmath.matrix(SLOPES.tolist()), strict=True)))

    with mpmath.workdps(80):
        h, line = mpmath.mpf(10) ** -25, symmetric_along(a, u)
        before, here, after = [exact(line(t)) for t in (-h, mpmath.mpf(0), h)]
        second = float((after - 2 * here + before) / h**2)
    np.testing.assert_allclose(np.sum(hvp(composite, a, u) * u), second, rtol=1e-7)


CLOSE = np.diag([1.0, 1 + 1e-11, 2.0])


def smooth_program(raised):
    """A smooth function of a matrix with nearly equal eigenvalues, whose program raises an error beside the point."""
    weights = np.random.default_rng(0).normal(size=(3, 3))

    def f(a):
        if raised and a[0, 0] != 1.0:
            raise raised("beside the point")
        w, v = np.linalg.eigh(a)
        return np.sum(weights * ((v * np.exp(w)) @ v.T))

    return f


def test_a_program_may_reject_what_is_beside_a_singular_point():
    np.testing.assert_array_equal(grad(smooth_program(ValueError))(CLOSE), grad(smooth_program(None))(CLOSE))


def test_a_mistake_beside_a_singular_point_is_raised():
    """Every error of these runs was caught, also one of a rule."""
    with pytest.raises(TypeError, match="beside the point"):
        grad(smooth_program(TypeError))(CLOSE)
