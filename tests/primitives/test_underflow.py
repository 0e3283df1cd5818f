"""Derivatives where squares and powers leave the range of floating point: right, or NaN, and never 0 without a word.

The truth is a norm's direction computed by mpmath, whose exponents have no end.
"""

import contextlib
import itertools
import warnings

import mpmath
import numpy as np
import pytest
import scipy.linalg
import scipy.special as sp
import scipy.stats
from scipy.spatial.distance import cdist, pdist

from effgrad import compile, grad, hessian, jacobian, jvp
from effgrad.arrays.value import UFUNCS
from effgrad.errors import EffgradError
from effgrad.primitives.primitive import Primitive

X = np.array([1.0, 2.0, -0.5])


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def p_norm(p):
    return lambda x: mpmath.fsum([abs(v) ** p for v in x]) ** (mpmath.mpf(1) / p)


def deviation(x):
    mean = mpmath.fsum(x) / len(x)
    return mpmath.sqrt(mpmath.fsum([(v - mean) ** 2 for v in x]) / len(x))


# Each program with its definition; all are of degree 1, so that their gradients are the same at every scale.
SIZES = {
    "norm": (np.linalg.norm, p_norm(2)),
    "norm of a matrix": (lambda x: np.linalg.norm(x[None], "fro"), p_norm(2)),
    "norm of complex numbers": (lambda x: np.linalg.norm(x + 1j * x) / np.sqrt(2.0), p_norm(2)),
    "vector_norm": (lambda x: np.linalg.vector_norm(x, axis=0), p_norm(2)),
    "norm, ord=3": (lambda x: np.linalg.norm(x, 3), p_norm(3)),
    "norm, ord=-2": (lambda x: np.linalg.norm(x, -2), p_norm(-2)),
    "norm, ord=0.5": (lambda x: np.linalg.norm(x, 0.5), p_norm(0.5)),
    "scipy's norm": (scipy.linalg.norm, p_norm(2)),
    "std": (np.std, deviation),
    "nanstd": (np.nanstd, deviation),
    "std with where": (lambda x: np.std(np.append(x, 9.0), where=[True, True, True, False]), deviation),
    "hypot": (lambda x: np.hypot(np.hypot(x[0], x[1]), x[2]), p_norm(2)),
    "sqrt(x @ x)": (lambda x: np.sqrt(x @ x), p_norm(2)),
    "sum of squares, power": (lambda x: np.sum(x**2) ** 0.5, p_norm(2)),
    "cbrt": (lambda x: np.cbrt(np.sum(np.abs(x) ** 3)), p_norm(3)),
    "cdist": (lambda x: cdist(x[None], np.zeros((1, 3)))[0, 0], p_norm(2)),
    "pdist": (lambda x: pdist(np.stack([x, 0 * x]))[0], p_norm(2)),
    "minkowski": (lambda x: pdist(np.stack([x, 0 * x]), "minkowski", p=3)[0], p_norm(3)),
    "mahalanobis": (lambda x: pdist(np.stack([x, 0 * x]), "mahalanobis", VI=np.eye(3))[0], p_norm(2)),
}


def truth(definition, x):
    with mpmath.workdps(60):
        points = [mpmath.mpf(float(v)) for v in x]
        step = mpmath.mpf(10) ** -20 * abs(points[0])
        moved = [[v + step * (i == j) for j, v in enumerate(points)] for i in range(len(points))]
        return np.array([float((definition(m) - definition(points)) / step) for m in moved])


@pytest.mark.thinned(4)
@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200, 3e-320])
@pytest.mark.parametrize("name", SIZES)
def test_the_derivative_of_a_size_is_right_or_nan_at_every_scale(name, scale):
    f, definition = SIZES[name]
    x = X * scale
    expected, along = truth(definition, x), np.array([0.3, -0.2, 0.7])
    digits = 1e-9 if scale > 1e-300 else 1e-3  # those of the value, which is subnormal
    found = {
        "reverse": grad(f)(x) @ along,
        "forward": jvp(f, (x,), (along,))[1],
        "compiled": compile(grad(f))(x) @ along,
    }
    for mode, value in found.items():
        assert not np.isfinite(value) or value == pytest.approx(expected @ along, rel=digits), mode
    assert scale != 1.0 or np.all(np.isfinite(list(found.values())))


@pytest.mark.thinned(8)
@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_the_hessian_of_a_size_is_right_or_not_finite(name, scale):
    f, _ = SIZES[name]
    expected = hessian(f)(X)  # which the tests of rules compare with differences; a Hessian of degree -1
    for found in (hessian(f)(X * scale), jacobian(grad(f))(X * scale), compile(hessian(f))(X * scale)):
        known = np.isfinite(found)
        np.testing.assert_allclose(found[known] * scale, expected[known], rtol=1e-8, atol=1e-12)


def test_single_precision_underflows_sooner():
    x = (X * 1e-25).astype(np.float32)
    for f in (np.linalg.norm, np.std):
        gradient = grad(f)(x)
        assert gradient.dtype == np.float32 and np.isnan(gradient).all()


def test_zeros_keep_their_convention():
    zero = np.zeros(3)
    for f in (np.linalg.norm, np.std, lambda x: np.linalg.norm(x, 3), lambda x: np.sum(pdist(x[:, None]))):
        assert not grad(f)(zero).any() and not compile(grad(f))(zero).any()
        assert jvp(f, (zero,), (X,))[1] == 0
    # Beside a pair of points that are the same, another is 1e-200 away from both.
    points = np.array([[0.0], [0.0], [1.0]])
    np.testing.assert_array_equal(grad(lambda x: np.sum(pdist(x)))(points), [[-1.0], [-1.0], [2.0]])


@pytest.mark.thinned(4)
@pytest.mark.parametrize(
    "f", [np.log, np.log2, np.log10, np.log1p, np.sqrt, np.cbrt, np.arcsinh, np.arccosh, lambda y: y**0.3]
)
def test_a_function_of_a_sum_that_has_overflowed_has_no_derivative(f):
    """The sum of squares is infinite, and its derivative by x, at 1e200, is not 0."""
    g = lambda x: f(np.sum(x * x))  # noqa: E731
    x = X * 1e200
    for found in (grad(g)(x), compile(grad(g))(x), hessian(g)(x), jacobian(jacobian(g))(x)):
        assert np.isnan(found).any() and not np.isfinite(found[found != found]).any()
    assert np.isnan(jvp(g, (x,), (X,))[1])


def test_the_correlation_of_tiny_numbers_is_not_constant():
    """NumPy's own value is 1 where the variances underflow and 0 where they overflow."""
    y = np.array([1.0, 5.0, 2.0])
    for scale in (1e-200, 1e200):
        assert np.isnan(grad(lambda x: np.corrcoef(x, y)[0, 1])(X * scale)).all()
        assert np.isnan(grad(lambda x: scipy.stats.zscore(x)[0])(X * 1e200)).all()


@pytest.mark.parametrize("divide", [
    lambda x: np.sin(x) / 0, lambda x: np.sin(x) / 0.0, lambda x: np.divide(x, 0), lambda x: np.ones(2) * np.cos(x) / 0,
    lambda x: np.sin(x) / -0.0, lambda x: np.true_divide(np.exp(x), 0),
])  # fmt: skip
def test_numpy_divides_by_pythons_zero_and_so_does_its_derivative(divide):
    """`1 / 0` raised ZeroDivisionError in the reverse pass of a program that gives an infinity and a warning."""
    x = np.float64(0.7)
    value = np.sum(divide(x))
    assert np.isinf(value)
    for found in (grad(lambda x: np.sum(divide(x)))(x), jvp(lambda x: np.sum(divide(x)), (x,), (1.0,))[1]):
        assert not np.isfinite(found)


@pytest.mark.parametrize("exponent", [-1, -1.0])
def test_a_power_of_pythons_float_overflows_in_its_derivative_alone(exponent):
    """Python raises OverflowError where NumPy has an infinity."""
    assert grad(lambda x: x**exponent)(1e-200) == grad(lambda x: x**exponent)(np.float64(1e-200)) == -np.inf


@pytest.mark.parametrize("x", [-1e200, -800.0, -2.5, -2.0, -1.0, 1e-200, 1.5, 2.0, 3.0, 700.0])
def test_exprel_of_large_numbers_returns(x):
    with mpmath.workdps(60):
        exact = (
            float(mpmath.diff(lambda t: mpmath.expm1(t) / t, mpmath.mpf(x))) if abs(x) < 1e3 and x != 1e-200 else None
        )
    expected = exact if exact is not None else (0.5 if x > 0 else 0.0)
    assert grad(sp.exprel)(x) == pytest.approx(expected, rel=1e-13)


ROWS = {p.name: p for p in UFUNCS.values() if isinstance(p, Primitive) and p.kind == "elementwise"}
NUMBERS = [0, 0.0, 1, -1.0, 2, 1e-200]


def arguments(count):
    """Python's numbers, of which one at a time is NumPy's, or all are Python's."""
    for numbers in itertools.product(NUMBERS[: 6 if count < 3 else 3], repeat=count):
        yield [float(x) for x in numbers]
        for traced in range(count):
            yield [np.float64(x) if place == traced else x for place, x in enumerate(numbers)]


@pytest.mark.thinned(4)
@pytest.mark.parametrize("name", ROWS)
def test_a_partial_of_pythons_numbers_raises_only_where_the_function_does(name):
    """Python's numbers raise ZeroDivisionError and OverflowError where NumPy has an infinity and a warning."""
    row = ROWS[name]
    for args in arguments(len(row.partials)):
        try:
            value = row.function(*args)
        except (ZeroDivisionError, OverflowError, TypeError, ValueError):
            continue
        for partial in filter(callable, row.partials):
            with contextlib.suppress(EffgradError):  # an order, which has no derivative
                partial(value, *args)


def twice(f, x):
    """The second derivative of a function of one number, by each order of the modes."""
    forward = lambda g: lambda x: jvp(g, (x,), (1.0,))[1]  # noqa: E731
    orders = (forward(forward(f)), forward(grad(f)), grad(forward(f)), grad(grad(f)), compile(grad(grad(f))))
    return [order(x) for order in orders]


@pytest.mark.parametrize("x", [0.5, 1e3, 1e8, 1e30, 1e50, 1e-50])
def test_the_second_derivative_of_hypot_has_its_digits_along_the_longer_side(x):
    with mpmath.workdps(60):
        expected = float(1 / mpmath.sqrt(1 + mpmath.mpf(x) ** 2) ** 3)
    for f in (lambda x: np.hypot(x, 1.0), lambda x: np.hypot(-1.0, x)):
        np.testing.assert_allclose(twice(f, x), expected, rtol=1e-14)
        np.testing.assert_allclose(twice(f, -x), expected, rtol=1e-14)


@pytest.mark.parametrize("x", [1e3, 1e40, 1e60])
def test_the_second_derivative_of_a_quotient_divides_by_no_cube(x):
    np.testing.assert_allclose(twice(lambda x: 1 / (1 + x * x), x), 6 / x / x / x / x, rtol=1e-5)


@pytest.mark.parametrize("scale", [1e-200, 1e-160, 1e-80, 1.0, 1e150, 1e200])
def test_a_correlation_is_right_at_every_scale(scale):
    y, v = np.array([2.0, 1.0, 4.0, 3.0]), np.array([1.0, 3.0, 2.0, 5.0])
    correlation = lambda x: scipy.stats.pearsonr(x, y)[0]  # noqa: E731
    expected = grad(lambda v: np.corrcoef(v, y)[0, 1])(v) / scale
    np.testing.assert_allclose(grad(correlation)(v * scale), expected, rtol=1e-9)
    np.testing.assert_allclose(jvp(correlation, (v * scale,), (X[[0, 1, 2, 0]],))[1], expected @ X[[0, 1, 2, 0]])


@pytest.mark.parametrize("x, k", [(3e-312, 1e-315), (2e-310, 1e-320), (3e-305, 1e-315), (-4e-309, 0.0)])
@pytest.mark.parametrize("f", [lambda k, x: k / x, lambda k, x: np.divide(-k, -x)])
def test_a_tangent_is_divided_by_a_subnormal_number(f, k, x):
    """The relative change overflows where the derivative does not: an infinity for arrays and in compiled programs."""
    expected = float(-mpmath.mpf(k) / mpmath.mpf(x) ** 2)
    slope = lambda x: jvp(lambda x: f(k, x), (x,), (np.ones_like(x),))[1]  # noqa: E731
    several = np.array([x, 1.0, x])
    found = [slope(x), compile(slope)(x), slope(several)[2], compile(slope)(several)[0], grad(lambda x: f(k, x))(x)]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
