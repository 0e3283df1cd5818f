"""Second-order and Taylor mode agree with nested first-order modes, for every kind of primitive."""

import math

import mpmath
import numpy as np
import pytest
import scipy.special as sp

from effgrad import NotDifferentiable, grad, hessian, jvp, second_order, taylor

BACKEND = "native"  # of the compiled runs

A = np.array([[2.0, 0.3], [0.1, 1.5]])
X = np.array([0.7, 1.3])
U = np.array([1.0, -0.5])
PROGRAMS = {
    "polynomial": lambda x: np.sum(x**3 * x[0]),
    "quotient": lambda x: np.sum(x / (1 + x[::-1] ** 2)),
    "trigonometric": lambda x: np.sum(np.sin(x) * np.tan(x / 2)),
    "exponential": lambda x: np.exp(-np.sum(x * x)) + np.log(x[0] + x[1]),
    "powers": lambda x: x[0] ** x[1] + np.sqrt(x[0]) + np.cbrt(x[1]),
    "special": lambda x: np.sum(sp.gammaln(x) + sp.erf(x) * sp.expit(x)),
    "matrix": lambda x: np.sum(A @ x * x) + np.linalg.norm(x),
    "solve": lambda x: np.sum(np.linalg.solve(A * x[0], x)),
    "decompositions": lambda x: (
        np.linalg.slogdet(A + np.diag(x))[1] + np.sum(np.linalg.cholesky(np.diag(x) + np.eye(2)))
    ),
    "branches": lambda x: np.sum(np.where(x > 1, x**2, np.sin(x))) + np.max(x) * np.prod(x),
    "filled": lambda x: _filled(x),
    "constant": lambda x: 3.0,
    "hyperbolic": lambda x: np.sum(np.tanh(x) * np.arctan(x) + np.arcsinh(x)),
}


def _filled(x):
    a = np.zeros(4)
    a[0] = x[0]
    for i in range(1, 4):
        a[i] = a[i - 1] * x[1] + np.sin(a[i - 1])
    return np.sum(a * a)


@pytest.mark.parametrize("name", PROGRAMS)
def test_second_order(run, name):
    f = PROGRAMS[name]
    value, first, second = run(second_order)(f, X, U)
    np.testing.assert_allclose(value, f(X))
    if name == "constant":
        assert (first, second) == (0.0, 0.0)
        return
    np.testing.assert_allclose(first, run(grad)(f)(X) @ U)
    np.testing.assert_allclose(second, U @ run(hessian)(f)(X) @ U, rtol=1e-9, atol=1e-12)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_taylor_against_nested_forward_mode(run, name):
    f = PROGRAMS[name]

    def derivative(g):
        return lambda t: run(jvp)(g, (t,), (1.0,))[1]

    g = lambda t: f(X + t * U)  # noqa: E731
    series = run(taylor)(f, [X, U], order=4)
    for k in range(5):
        np.testing.assert_allclose(series[k] * math.factorial(k), g(0.0), rtol=1e-8, atol=1e-9)
        g = derivative(g) if name != "constant" else lambda t: 0.0


@pytest.mark.parametrize("order", [1.5, np.array([0.5, 2.0])])
def test_taylor_of_a_bessel_function_to_high_order(order):
    """Each derivative is a sum of two of neighbouring orders, and all 2**16 of them were computed."""
    series = taylor(lambda t: np.sum(sp.jv(order, t)), [2.0, 1.0], order=16)
    derivatives = [sum(mpmath.besselj(v, 2, derivative=k) for v in np.atleast_1d(order)) for k in range(17)]
    np.testing.assert_allclose(series, [float(d / mpmath.factorial(k)) for k, d in enumerate(derivatives)], rtol=1e-9)


def test_taylor_of_a_curve_to_high_order(run):
    # sin(t + t^2 / 2) against the composition of the polynomials.
    order = 12
    series = run(taylor)(np.sin, [0.0, 1.0, 0.5], order=order)
    inner = np.polynomial.Polynomial([0.0, 1.0, 0.5])
    expected = sum((inner**k * ((-1) ** ((k - 1) // 2) / math.factorial(k)) for k in range(1, order + 1, 2)), 0.0)
    np.testing.assert_allclose(series, expected.coef[: order + 1], atol=1e-14)


def test_both_are_differentiable():
    def curvature(x):
        return second_order(lambda y: y**3 * x, x)[2]

    assert grad(curvature)(2.0) == pytest.approx(24.0)  # d/dx 6 x^2
    assert grad(lambda x: taylor(lambda t: np.exp(x * t), [0.0, 1.0], order=3)[3])(2.0) == pytest.approx(2.0)


def test_unary_clause_against_the_listing_without_the_square(run):
    # At a slope of the argument other than 1 the listing's formula, f'' x' + f' x'', is wrong.
    assert run(second_order)(lambda x: np.exp(2 * x), 0.0)[2] == 4.0


def test_bad_input(run):
    with pytest.raises(NotDifferentiable, match="direction"):
        run(second_order)(np.sum, X)
    with pytest.raises(NotDifferentiable, match="shape"):
        run(second_order)(np.sum, X, np.ones(3))
    with pytest.raises(NotDifferentiable, match="structure"):
        run(second_order)(lambda t: t["x"], {"x": 1.0}, {"y": 1.0})


@pytest.mark.parametrize("name", PROGRAMS)
def test_edge_pushing_agrees_with_forward_over_reverse(run, name):
    f = PROGRAMS[name]
    np.testing.assert_allclose(run(hessian)(f, mode="hessian")(X), run(hessian)(f)(X), rtol=1e-9, atol=1e-11)


def test_edge_pushing_of_floats_and_matrices(run):
    assert run(hessian)(lambda x: x * x * x + 1 / x, mode="hessian")(2.0) == 12.25
    f = lambda m: np.sum((m @ m.T) ** 2) + m[0, 1] ** 3  # noqa: E731
    m = np.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(run(hessian)(f, mode="hessian")(m), run(hessian)(f)(m), rtol=1e-12)


# Where a branch is not taken, its derivatives are infinite or undefined.
EXCLUDED = {
    "where": lambda x: np.sum(np.where(x > 0, np.sqrt(x), x**3)),
    "where of logarithms": lambda x: np.sum(np.where(x > 0, np.log(x) ** 2, 0.0)),
    "mask": lambda x: np.sum(np.sqrt(x)[x > 0] ** 3),
    "place": lambda x: np.sqrt(x)[0] * x[1],
    "nansum": lambda x: np.nansum(np.log(x) * x),
    "minimum": lambda x: np.sum(np.minimum(1 / x, 3.0) ** 2),
    "numbers": lambda x: sum(np.where(v > 0, np.sqrt(v) * v, v * v) for v in x),
    "weighted": lambda x: np.sum(np.where(x > 0, np.sqrt(x), 1.0) * x[::-1]),
}


@pytest.mark.parametrize("name", EXCLUDED)
def test_edge_pushing_leaves_out_what_is_not_chosen(run, name):
    x = np.array([0.25, -0.2, 0.0, 1.3])
    with np.errstate(all="ignore"):
        expected = run(hessian)(EXCLUDED[name])(x)
        assert np.isfinite(expected).all()
        np.testing.assert_allclose(run(hessian)(EXCLUDED[name], mode="hessian")(x), expected, rtol=1e-12)


def test_edge_pushing_refuses_complex_numbers(run):
    # Their derivatives were multiplied as if every operation were holomorphic.
    for f in (lambda x: np.sum(np.abs(np.fft.fft(x)) ** 2), lambda x: np.sum(np.exp(1j * x).real * x)):
        with pytest.raises(NotDifferentiable, match="real numbers"):
            run(hessian)(f, mode="hessian")(X)


def test_a_sparse_hessian_has_only_the_pairs_that_interact():
    def rosenbrock(x):
        return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    def loop(x):
        total = 0.0
        for i in range(len(x) - 1):
            total = total + 100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2
        return total

    x = np.linspace(-1.0, 1.0, 12)
    for f in (rosenbrock, loop):
        h = hessian(f, sparse=True)(x)
        np.testing.assert_allclose(h.toarray(), hessian(f)(x), rtol=1e-10, atol=1e-9)
    large = hessian(rosenbrock, sparse=True)(np.zeros(2000))
    assert large.shape == (2000, 2000) and large.nnz <= 3 * 2000


def test_a_function_without_curvature():
    assert hessian(lambda x: np.sum(3 * x), sparse=True)(X).nnz == 0
    with pytest.raises(ValueError, match="hessian"):
        hessian(np.sum, mode="edges")
