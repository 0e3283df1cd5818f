"""Derivatives at singular points: kinks, infinite partials, zero times infinity.

The right numbers are those of the formula of the function, written beside it, or NaN where there is none; central
differences in extended precision check the formulas. Every mode and order has to give them.
"""

import numpy as np
import pytest
import scipy.special as sp

from effgrad import compile, grad, hessian, hvp, jacobian, jvp, second_order, taylor, vjp
from effgrad.modes import READABLE

ZERO, EYE, NAN = np.zeros(2), np.eye(2), np.nan
DIRECTION = np.array([1.0, 0.5])
norm = np.linalg.norm

# Smooth at 0, by way of a function that is not: the program, and its Hessian. The gradients are 0.
SMOOTH = {
    "norm squared": (lambda x: norm(x) ** 2, 2 * EYE),
    "product of norms": (lambda x: norm(x) * norm(x), 2 * EYE),
    "abs squared": (lambda x: np.sum(np.abs(x) ** 2), 2 * EYE),
    "hypot squared": (lambda x: np.hypot(x[0], x[1]) ** 2, 2 * EYE),
    "std squared": (lambda x: np.std(x) ** 2, np.array([[0.5, -0.5], [-0.5, 0.5]])),
    "cos of a norm": (lambda x: np.cos(norm(x)), -EYE),
    "cosh of a norm": (lambda x: np.exp(norm(x)) + np.exp(-norm(x)), 2 * EYE),
    "Gaussian of a norm": (lambda x: np.exp(-(norm(x) ** 2)), -2 * EYE),
    "drop wave": (lambda x: -(1 + np.cos(12 * norm(x))) / (0.5 * norm(x) ** 2 + 2), 72.5 * EYE),
    "fourth power of a norm": (lambda x: norm(x) ** 4, 0 * EYE),
    "root of a fourth power": (lambda x: np.sqrt((x @ x) ** 2), 2 * EYE),
    "1.5th power of a sum of squares": (lambda x: np.sum(x**2) ** 1.5, 0 * EYE),
    "1.77th power of a sum of squares": (lambda x: np.sum(x**2) ** 1.77, 0 * EYE),
    "square of a root of a square": (lambda x: np.sum(np.sqrt(x**2) ** 2), 2 * EYE),
    "abs cubed": (lambda x: np.sum(np.abs(x) ** 3), 0 * EYE),
    "square of a maximum of x and -x": (lambda x: np.sum(np.maximum(x, -x) ** 2), 2 * EYE),
    "cube of a positive part": (lambda x: np.sum(np.maximum(x, 0.0) ** 3), 0 * EYE),
    "Frobenius norm of an outer product": (lambda x: norm(np.outer(x, x)), 2 * EYE),
    "fourth power of a 4-norm": (lambda x: norm(x, 4) ** 4, 0 * EYE),
    "complex abs squared": (lambda x: np.sum(np.abs(x + 0j) ** 2), 2 * EYE),
    "powers of several orders": (lambda x: np.sum(np.abs(x) ** np.array([2, 3])), np.array([[2.0, 0], [0, 0]])),
    "one size with several powers": (lambda x: np.sum(np.abs(x[0]) ** np.array([3, 3])), 0 * EYE),
    "sum times product of sizes": (lambda x: np.sum(np.abs(x)) * np.prod(np.abs(x)), 0 * EYE),
    "norm of a convolution, squared": (lambda x: norm(np.convolve(x, [1.0, 2.0])) ** 2, np.array([[10.0, 4], [4, 10]])),
    "norm of a covariance": (lambda x: norm(np.cov(np.stack([x, 2 * x]))), np.array([[5.0, -5], [-5, 5]])),
    "cosine of an inner product's root": (lambda x: np.cos(np.sqrt(np.vdot(x, x))), -EYE),
    "log of the cosine of a norm": (lambda x: np.log(np.cos(norm(x))), -EYE),
}
# Not twice differentiable at 0: the second derivatives are NaN, and other numbers where they exist. Gradients are 0.
KINKED = {
    "norm": (norm, NAN * EYE + NAN),
    "root of x @ x": (lambda x: np.sqrt(x @ x), NAN * EYE + NAN),
    "root of a sum of squares": (lambda x: np.sqrt(x[0] ** 2 + x[1] ** 2), NAN * EYE + NAN),
    "abs": (lambda x: np.sum(np.abs(x)), np.diag([NAN, NAN])),
    "roots of squares": (lambda x: np.sum(np.sqrt(x**2)), np.diag([NAN, NAN])),
    "abs of one": (lambda x: np.abs(x[0]) + x[1] ** 2, np.diag([NAN, 2])),
    "x abs(x)": (lambda x: np.sum(x * np.abs(x)), np.diag([NAN, NAN])),
    "product of abs": (lambda x: np.abs(x[0]) * np.abs(x[1]), np.array([[0, NAN], [NAN, 0]])),
    "square of a sum of abs": (lambda x: np.sum(np.abs(x)) ** 2, np.array([[2, NAN], [NAN, 2]])),
    "homogeneous of order 2": (lambda x: x[0] ** 4 / (x @ x), NAN * EYE + NAN),
    "square of a positive part": (lambda x: np.sum(np.maximum(x, 0.0) ** 2), np.diag([NAN, NAN])),
    "largest abs": (lambda x: np.max(np.abs(x)), NAN * EYE + NAN),
    "3-norm squared": (lambda x: norm(x, 3) ** 2, NAN * EYE + NAN),
}
TABLE = {**SMOOTH, **KINKED}

SECOND = {
    "hessian": lambda f: hessian(f)(ZERO),
    "jacobian of grad": lambda f: jacobian(grad(f))(ZERO),
    "jacobian of grad, by rows": lambda f: jacobian(grad(f), mode="reverse")(ZERO),
    "jacobian of jacobian": lambda f: jacobian(jacobian(f, mode="forward"), mode="forward")(ZERO),
    "edge pushing": lambda f: hessian(f, mode="hessian")(ZERO),
    "edge pushing, sparse": lambda f: hessian(f, sparse=True)(ZERO).toarray(),
    "compiled": lambda f: compile(hessian(f))(ZERO),
}
# Products with a direction, which are NaN as a whole where an element is.
ALONG = {
    "hvp": lambda f: hvp(f, ZERO, DIRECTION),
    "reverse over reverse": lambda f: grad(lambda x: grad(f)(x) @ DIRECTION)(ZERO),
    "reverse over forward": lambda f: grad(lambda x: jvp(f, (x,), (DIRECTION,))[1])(ZERO),
}
TWICE = {
    "forward over forward": lambda f: jvp(lambda x: jvp(f, (x,), (DIRECTION,))[1], (ZERO,), (DIRECTION,))[1],
    "second order": lambda f: second_order(f, ZERO, DIRECTION)[2],
    "taylor": lambda f: 2 * taylor(f, [ZERO, DIRECTION], order=2)[2],
}


def assert_near(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("row", SMOOTH)
def test_the_formulas_are_those_of_differences(row):
    f, wanted = SMOOTH[row]
    h = np.longdouble(1e-4)
    steps = np.eye(2, dtype=np.longdouble) * h
    found = [[(f(a + b) - f(a - b) - f(b - a) + f(-a - b)) / (4 * h * h) for a in steps] for b in steps]
    np.testing.assert_allclose(np.array(found, float), wanted, atol=2e-3)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("row", ["norm squared", "norm", "hypot squared", "abs of one", "square of a positive part"])
def test_hessians_at_a_singular_point(row):
    f, wanted = TABLE[row]
    assert_near(hessian(f)(ZERO), wanted)
    assert_near(hessian(f, mode="hessian")(ZERO), wanted)
    assert_near(2 * taylor(f, [ZERO, DIRECTION], order=2)[2], DIRECTION @ wanted @ DIRECTION)


@pytest.mark.sweep
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("row", TABLE)
def test_second_derivatives_at_a_singular_point(row):
    f, wanted = TABLE[row]
    for name, second in SECOND.items():
        if "complex" not in row or "edge" not in name:
            assert_near(second(f), wanted)
    for along in ALONG.values():
        assert_near(along(f), wanted @ DIRECTION)
    for twice in TWICE.values():
        assert_near(twice(f), DIRECTION @ wanted @ DIRECTION)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("row", ["norm squared", "root of x @ x", "abs"])
def test_gradients_at_a_singular_point(row):
    f, _ = TABLE[row]
    for mode in READABLE:
        assert_near(grad(f, mode=mode)(ZERO), 0.0)
    assert_near(jacobian(f, mode="forward")(ZERO), 0.0)
    assert_near(vjp(f, ZERO)[1](1.0)[0], 0.0)
    assert_near(jvp(f, (ZERO,), (DIRECTION,))[1], 0.0)
    assert_near(second_order(f, ZERO, DIRECTION)[1], 0.0)
    assert_near(taylor(f, [ZERO, DIRECTION])[1], 0.0)
    assert_near(compile(grad(f))(ZERO), 0.0)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_sides_that_cancel_but_for_rounding():
    """SciPy's test function Ursem04 at its optimum, a cone: the cosine of pi / 2 is 6e-17."""
    f = lambda x: np.sin(0.5 * np.pi * x[0] + 0.5 * np.pi) * (2 - np.sqrt(x[0] ** 2 + x[1] ** 2))  # noqa: E731
    assert_near(grad(f)(ZERO), 0.0)


def distances(x):
    return np.sqrt((x[:, None] - x[None]) ** 2)


def without(mask_of):
    def f(x):
        d = distances(x)
        mask_of(d)
        return np.sum(d)

    return f


def overwrite(d):
    d[np.diag_indices(3)] = 0.0


def overwrite_each(d):
    for i in range(3):
        d[i, i] = 7.0


def add_nothing(d):
    d *= 1 - np.eye(3)


PAIRS = {
    "tril": lambda x: 2 * np.sum(np.tril(distances(x), -1)),
    "triu": lambda x: 2 * np.sum(np.triu(distances(x), 1)),
    "a masked write": without(overwrite),
    "element by element": without(overwrite_each),
    "fill_diagonal": without(lambda d: np.fill_diagonal(d, 0.0)),
    "a product with zeros": lambda x: np.sum((1 - np.eye(3)) * distances(x)),
    "a product in place": without(add_nothing),
    "all": lambda x: np.sum(distances(x)),
    "einsum": lambda x: np.einsum("ij,ij->", 1 - np.eye(3), distances(x)),
    "where": lambda x: np.sum(np.where(np.eye(3) > 0, 0.0, distances(x))),
    "indices": lambda x: 2 * np.sum(distances(x)[np.triu_indices(3, 1)]),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("row", PAIRS)
def test_distances_of_pairs(row):
    f, x, wanted = PAIRS[row], np.array([0.0, 1.0, 3.0]), [-4.0, 0.0, 4.0]
    for mode in ("taped", "reverse", "delta"):
        assert_near(grad(f, mode=mode)(x), wanted)
    assert_near(jacobian(f, mode="forward")(x), wanted)
    assert_near(compile(grad(f))(x), wanted)


@pytest.mark.sweep
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("row", PAIRS)
def test_second_derivatives_of_distances_of_pairs(row):
    f, x = PAIRS[row], np.array([0.0, 1.0, 3.0])
    assert_near(hessian(f)(x), np.zeros((3, 3)))
    assert_near(hessian(f, mode="hessian")(x), np.zeros((3, 3)))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_side_outside_of_the_domain_is_left_out():
    assert_near(grad(lambda x: np.sqrt(x) ** 2)(0.0), 1.0)
    assert_near(hessian(lambda x: np.sum(np.sqrt(x) ** 2))(ZERO), 0 * EYE)
    assert grad(np.sqrt)(0.0) == np.inf and grad(grad(np.sqrt))(0.0) == -np.inf


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_an_exponential_that_overflows():
    softplus = lambda x: np.log1p(np.exp(x))  # noqa: E731
    assert_near(grad(softplus)(1000.0), 1.0)
    assert_near(hessian(lambda x: np.sum(softplus(x)))(np.array([1000.0, 0.0])), np.diag([0.0, 0.25]))
    assert_near(grad(lambda x: np.log(1 + np.exp(x)))(1000.0), 1.0)


OUTSIDE = {"log": -1.0, "log2": -1.0, "log10": -3.0, "log1p": -2.0, "arctanh": 2.0, "sqrt": -1.0, "arcsin": 2.0,
           "arccos": -2.0, "arccosh": 0.5}  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", OUTSIDE)
def test_derivatives_outside_a_domain_are_nan(name):
    """The formulas of some have a value there, which was given beside a value of NaN."""
    f, x = getattr(np, name), OUTSIDE[name]
    inside = {"arccosh": 1.5}.get(name, 0.4)
    both = np.array([x, inside])
    second = lambda x: jvp(grad(f), (x,), (1.0,))[1]  # noqa: E731
    for derivative in (grad(f), lambda x: jvp(f, (x,), (1.0,))[1], second, compile(grad(f)), compile(second)):
        assert np.isnan(derivative(x)) and np.isfinite(derivative(inside))
    found = grad(lambda x: np.sum(f(x)))(both)
    assert np.isnan(found[0]) and found[1] == grad(f)(inside)
    assert grad(lambda x: np.sum(np.where(x == x[1], f(x), 0.0)))(both)[0] == 0


@pytest.mark.sweep
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_third_derivatives_are_nan():
    third = jacobian(hessian(lambda x: norm(x[:2]) ** 2 + x[2] ** 3))(np.zeros(3))
    assert np.isnan(third[:2, :2, :2]).all() and third[2, 2, 2] == 6.0


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_numbers_that_follow_from_the_formula_stay_as_they_are():
    """Only NaN gives way to a limit, and a NaN that has none stays."""
    x = np.array([0.0, 0.3])
    found = grad(lambda x: np.sum(np.sqrt(x) ** 2) + np.sum(np.sin(x)))(x)
    plain = grad(lambda x: np.sqrt(x[1]) ** 2 + np.sum(np.sin(x)))(x)
    assert_near(found[0], 2.0)
    assert found[1] == plain[1]
    assert np.isnan(grad(lambda x: np.arctan2(x[0], x[1]))(ZERO)).all()
    assert np.isnan(grad(np.log)(-1.0)) or grad(np.log)(-1.0) == -1.0


@pytest.mark.parametrize("n", [0.0, 1.0, -2.0])
@pytest.mark.parametrize("shape", [(), (2,)])
def test_a_power_has_its_mixed_derivative_where_the_exponent_is_zero(n, shape):
    """d/da a**n was taken for the constant 0 at n = 0, and so was its derivative in n, which is 1 / a."""
    a, n = np.full(shape, 0.3)[()], np.full(shape, n)[()]
    exact = np.sum(a ** (n - 1) * (1 + n * np.log(a)))

    def by_base(n):
        return np.sum(grad(lambda a: np.sum(a**n))(a))

    def by_exponent(a):
        return np.sum(grad(lambda n: np.sum(a**n))(n))

    np.testing.assert_allclose(np.sum(grad(by_base)(n)), exact, rtol=1e-13)
    np.testing.assert_allclose(np.sum(grad(by_exponent)(a)), exact, rtol=1e-13)
    np.testing.assert_allclose(jvp(by_base, (n,), (np.ones(shape)[()],))[1], exact, rtol=1e-13)


UNKNOWN = np.array([np.nan, 1.0, 2.0])


def assigned(a):
    y = UNKNOWN * a
    y[0] = 0.0
    return np.sum(y)


def assigned_by_a_mask(a):
    y = np.zeros(3)
    y[:] = UNKNOWN * a
    y[np.isnan(UNKNOWN)] = a
    return np.sum(y)


def copied_by_a_mask(a):
    y = np.zeros(3)
    y[:] = UNKNOWN * a
    np.copyto(y, 0.0, where=np.isnan(UNKNOWN))
    return np.sum(y)


OVERWRITTEN = {
    "an element": (assigned, 3.0), "by a mask": (assigned_by_a_mask, 4.0), "copied": (copied_by_a_mask, 3.0),
    "left out by a slice": (lambda a: np.sum((UNKNOWN * a)[1:]), 3.0),
    "left out by an array": (lambda a: np.sum((UNKNOWN * a)[[1, 2]]), 3.0),
    "where": (lambda a: np.sum(np.where(np.isnan(UNKNOWN), 0.0, UNKNOWN * a)), 3.0),
    "where of elements": (lambda a: np.sum(np.where([True, False], 0.0, (UNKNOWN * a)[[0, 2]])), 2.0),
    "nansum": (lambda a: np.nansum(UNKNOWN * a), 3.0),
}  # fmt: skip


@pytest.mark.parametrize("mode", [None, *READABLE])
@pytest.mark.parametrize("name", OVERWRITTEN)
def test_elements_that_are_not_numbers_and_are_overwritten_do_not_count(name, mode):
    """Reverse modes gave NaN, which is 0 times the constant, and forward mode the number."""
    f, slope = OVERWRITTEN[name]
    assert grad(f, **({} if mode is None else {"mode": mode}))(1.3) == pytest.approx(slope, rel=1e-15)
    assert jvp(f, (1.3,), (1.0,))[1] == pytest.approx(slope, rel=1e-15)
    assert compile(grad(f))(1.3) == pytest.approx(slope, rel=1e-15)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("order", ["forward over reverse", "forward over forward", "reverse over reverse", "compiled"])
@pytest.mark.parametrize("name", ["sizes of complex numbers", "lengths on a grid"])
def test_a_square_of_a_size_where_some_are_0_and_some_are_not(order, name):
    """The limit was unknown: NaN that stood for no element took the terms of the series of all elements."""
    f = {
        "sizes of complex numbers": lambda x: np.sum(np.abs(x + 0j) ** 2),
        "lengths on a grid": lambda x: np.sum(np.hypot(*np.meshgrid(x, x)) ** 2) / (2 * len(x)),
    }[name]
    x, u = np.array([0.0, 1.0, 0.0, -2.0]), np.array([0.3, -0.2, 0.5, 0.7])
    found = {
        "forward over reverse": lambda: u @ hvp(f, x, u),
        "forward over forward": lambda: jvp(lambda x: jvp(f, (x,), (u,))[1], (x,), (u,))[1],
        "reverse over reverse": lambda: u @ jacobian(grad(f), mode="reverse")(x) @ u,
        "compiled": lambda: u @ compile(lambda x: hvp(f, x, u))(x),
    }[order]()
    np.testing.assert_allclose(found, 2 * u @ u, rtol=1e-9)


COMPLEX_POWERS = {
    "power of nothing": (lambda z: (0 * z) ** 0.5, 0, 0),
    "deviation of one number": (lambda z: np.exp(np.mean((z - z) * np.conj(z - z)) ** 0.5), 0, 0),
    "powers whose product is smooth": (lambda z: z**0.5 * z**1.5 + 3 * z, 3, 2),
    "power of a sum of powers": (lambda z: (z**2 + z**3) ** 2.0 / (1 + z) ** 2 + z**0.5 * z**0.5, 1, 0),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", COMPLEX_POWERS)
def test_powers_of_a_complex_zero_have_the_limit(name):
    """Complex powers had no series, so that `gstd` of one complex number had NaN for its derivative, which is 0."""
    f, first, second = COMPLEX_POWERS[name]
    z, u = 0j, 0.6 - 0.8j
    np.testing.assert_allclose(jvp(f, (z,), (u,))[1], first * u, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(grad(lambda z: np.real(f(z)))(z), np.conj(first), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        jvp(lambda z: jvp(f, (z,), (u,))[1], (z,), (u,))[1], second * u * u, rtol=1e-12, atol=1e-12
    )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("n", [3, 7, 9, 21, 91])
def test_a_power_of_high_order_is_not_taken_for_zero(n):
    """The root of x**9 is x. Beside an element of lower order, its series lost all terms, and the slope was 0."""
    root = lambda x: (x**n) ** (1 / n)  # noqa: E731
    found = [grad(root)(0.0), jvp(root, (0.0,), (1.0,))[1], *grad(lambda x: np.sum(root(x)))(np.array([0.0, 1.0]))]
    known = [slope for slope in found if not np.isnan(slope)]
    np.testing.assert_allclose(known, 1.0, rtol=1e-13)
    assert len(known) == (4 if n == 3 else 3 if n < 50 else 1)
    # What is lost is small beside other terms.
    x = np.array([0.0, 1.0])
    exact = 2 * np.array([[1.0, -1], [-1, 1]]) + np.diag([0, n * (n - 1.0)])
    np.testing.assert_allclose(hessian(lambda x: norm(x - x[1]) ** 2 + np.sum(x**n))(x), exact, rtol=1e-13)


def test_an_error_of_the_program_in_a_run_beside_the_point_is_shown():
    """It was hidden, and the derivative was left NaN."""
    runs = []

    def f(x, failing=None):
        runs.append(x)
        if len(runs) == failing:
            raise KeyError(failing)
        return np.sqrt(x @ x)

    np.testing.assert_array_equal(grad(f)(np.zeros(2)), 0.0)
    for failing in range(1, len(runs) + 1):
        runs.clear()
        with pytest.raises(KeyError):
            grad(lambda x, failing=failing: f(x, failing))(np.zeros(2))


# Hessians by the first terms of the power series (the NIST Digital Library of Mathematical Functions, 10.2.2).
OF_BESSEL = {
    "Bessel function of a norm": (lambda x: sp.j0(norm(x)), -EYE / 2),
    "Bessel function of an order, of a norm": (lambda x: sp.jv(2, norm(x)), EYE / 4),
    "modified Bessel function of a root": (lambda x: sp.i0(np.sqrt(x @ x)), EYE / 2),
    "norm times a Bessel function": (lambda x: sp.iv(1.0, norm(x)) * norm(x), EYE),
    "spherical Bessel function of a norm": (lambda x: sp.spherical_jn(0, norm(x)), -EYE / 3),
}


@pytest.mark.parametrize("row", OF_BESSEL)
def test_bessel_functions_of_a_norm(row):
    """Their Hessians were NaN: the series of neighbouring orders doubled the work with each term."""
    f, exact = OF_BESSEL[row]
    for found in (hessian(f)(ZERO), compile(hessian(f), "numpy")(ZERO), hessian(f, mode="hessian")(ZERO)):
        np.testing.assert_allclose(found, exact, atol=1e-12)
    np.testing.assert_allclose(hvp(f, ZERO, DIRECTION), exact @ DIRECTION, atol=1e-12)
    np.testing.assert_allclose(grad(f)(ZERO), ZERO, atol=1e-12)
