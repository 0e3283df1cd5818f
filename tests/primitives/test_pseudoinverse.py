"""The pseudoinverse of ill-conditioned matrices: its derivative has the digits that the inverse's has."""

import mpmath
import numpy as np
import pytest

from effgrad import compile, grad, hessian, jacobian, jvp

RNG = np.random.default_rng(6)
TURNS = [np.linalg.qr(RNG.normal(size=(3, 3)))[0] for _ in range(2)]


def matrix(kind, small):
    square = TURNS[0] @ np.diag([1.0, 0.5, small]) @ TURNS[1]
    return {"square": square, "tall": np.vstack([square, 2 * square]), "wide": np.hstack([square, square])}[kind]


def exact(a, u):
    """The derivative of the pseudoinverse along u, from normal equations at 60 digits."""
    with mpmath.workdps(60):
        h = mpmath.mpf(10) ** -25
        at = [pseudoinverse(mpmath.matrix(a.tolist()) + sign * h * mpmath.matrix(u.tolist())) for sign in (1, -1)]
        return np.array(((at[0] - at[1]) / (2 * h)).tolist(), float)


def pseudoinverse(a):
    return (a.T * a) ** -1 * a.T if a.rows >= a.cols else a.T * (a * a.T) ** -1


@pytest.mark.parametrize("kind", ["square", "tall", "wide"])
@pytest.mark.parametrize("small", [1e-2, 1e-5, 1e-8])
def test_the_derivative_has_the_digits_that_the_condition_leaves(kind, small):
    """With a singular value of 1e-8, numbers that should be 1e16 or less were wrong by 1e7 of that."""
    a = matrix(kind, small)
    u, weights = RNG.normal(size=a.shape), RNG.normal(size=a.T.shape)
    wanted = exact(a, u)
    near = 1e-14 / small * np.abs(wanted).max() * 10
    np.testing.assert_allclose(jvp(np.linalg.pinv, (a,), (u,))[1], wanted, atol=near)
    f = lambda a: np.sum(weights * np.linalg.pinv(a))  # noqa: E731
    for run in (grad(f), grad(f, mode="reverse"), compile(grad(f)), jacobian(f, mode="forward")):
        np.testing.assert_allclose(np.sum(run(a) * u), np.sum(weights * wanted), atol=4 * near)


@pytest.mark.parametrize("kind", ["square", "tall", "wide"])
def test_a_projector_of_full_rank_does_not_change(kind):
    """The product of a matrix with its pseudoinverse is 1, whose derivative was 1e7 for a singular value of 1e-8."""
    a, weights = matrix(kind, 1e-6), RNG.normal(size=(3, 3))
    first, last = ("a", "b") if kind == "wide" else ("b", "a")

    def f(x):
        both = {"a": x, "b": np.linalg.pinv(x)}
        return np.sum(weights * (both[first] @ both[last]))

    assert np.abs(grad(f)(a)).max() < 1e-2  # rounding leaves 1e-16 of the terms, which are 1e12
    b = matrix(kind, 0.25)
    assert np.abs(hessian(f)(b)).max() < 1e-10


@pytest.mark.parametrize("shape", [(3, 3), (4, 3), (3, 4)])
def test_directions_that_keep_a_low_rank(shape):
    """The oracle is a difference of pseudoinverses of matrices of the same rank."""
    left, right, more, again = (RNG.normal(size=size) for size in ((shape[0], 2), (2, shape[1])) * 2)
    a, u = left @ right, more @ right + left @ again
    h = 1e-5
    plain = [np.linalg.pinv((left + t * more) @ (right + t * again), 1e-10) for t in (h, -h)]
    wanted = (plain[0] - plain[1]) / (2 * h)
    found = jvp(lambda a: np.linalg.pinv(a, 1e-10), (a,), (u,))[1]
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6 * np.abs(wanted).max())
    weights = RNG.normal(size=wanted.shape)
    pulled = grad(lambda a: np.sum(weights * np.linalg.pinv(a, 1e-10)))(a)
    np.testing.assert_allclose(np.sum(pulled * u), np.sum(weights * wanted), rtol=1e-5)
