"""Integrals of functions with kinks that move: right where a polynomial seems to fit, or refused; by closed forms."""

import contextlib

import mpmath
import numpy as np
import pytest
from scipy.integrate import dblquad, quad, quad_vec, solve_ivp

from effgrad import NoRule, grad

SQUARED = {
    "maximum": (lambda x, p: np.maximum(x - p, 0.0) ** 2, lambda p: -((1 - p) ** 2), lambda p: 2 * (1 - p)),
    "odd": (lambda x, p: (x - p) * abs(x - p), lambda p: -(p**2) - (1 - p) ** 2, lambda p: 2 - 4 * p),
    "a branch": (lambda x, p: (x - p) ** 2 if x > p else 0.0, lambda p: -((1 - p) ** 2), lambda p: 2 * (1 - p)),
}
PLACES = (0.125, 0.25, 0.3, 0.5, 0.75)


@pytest.mark.parametrize("p", PLACES)
@pytest.mark.parametrize("name", SQUARED)
def test_kinks_in_the_middle_of_an_interval_are_seen(name, p):
    """Sums by two rules agree there: the derivative was -0.2483 for -0.25."""
    f, slope, curvature = SQUARED[name]
    assert grad(lambda p: quad(f, 0, 1, args=(p,))[0])(p) == pytest.approx(slope(p), rel=1e-7)
    if p in (0.25, 0.5, 0.75):  # elsewhere it may be refused
        assert grad(lambda p: quad_vec(lambda x: f(x, p), 0, 1)[0])(p) == pytest.approx(slope(p), rel=1e-7)
    with contextlib.suppress(NoRule):
        second = grad(grad(lambda p: quad(f, 0, 1, args=(p,))[0]))(p)
        assert second == pytest.approx(curvature(p), rel=1e-5, abs=1e-5)


def test_kinks_in_inner_integrals_are_seen():
    found = grad(lambda p: dblquad(lambda x, y: np.maximum(x - p, 0.0) ** 2 * y, 0, 2, 0, 1)[0])(0.25)
    assert found == pytest.approx(-2 * 0.75**2, rel=1e-7)


@pytest.mark.parametrize("p", PLACES)
def test_derivatives_that_kinks_make_are_refused(p):
    """They were 0: the second of |x - p|, where QUADPACK has cut the interval at p, and the third of squares."""
    integral = lambda p: quad(lambda x: abs(x - p), 0, 1)[0]  # noqa: E731
    assert grad(integral)(p) == pytest.approx(2 * p - 1, abs=1e-9)
    for second in (integral, lambda p: quad_vec(lambda x: abs(x - p), 0, 1)[0]):
        with pytest.raises(NoRule, match="write it as two integrals"):
            grad(grad(second))(p)
    cube = grad(grad(grad(lambda p: quad(lambda x: np.maximum(x - p, 0.0) ** 2, 0, 1)[0])))
    with pytest.raises(NoRule, match="write it as two integrals"):
        cube(p)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("limits", [(0.0, 1.0), (0.0, np.inf), (-np.inf, np.inf)])
def test_smooth_integrands_have_every_order(limits, order):
    derivative = f = lambda p: quad(lambda x: np.exp(-p * x**2) * np.cos(x), *limits)[0]
    for _ in range(order):
        derivative = grad(derivative)
    wanted = quad(lambda x: (-(x**2)) ** order * np.exp(-1.3 * x**2) * np.cos(x), *limits, epsabs=1e-13)[0]
    assert derivative(1.3) == pytest.approx(wanted, rel=1e-9)
    assert f(1.3) > 0


def test_third_derivatives_of_solutions_with_moving_kinks_are_refused():
    """The third derivative was 0, where it is -2."""

    def end(p):
        found = solve_ivp(lambda t, y: np.maximum(t - p, 0.0) ** 2 * np.ones(1), (0, 1), [0.0], rtol=1e-9, atol=1e-12)
        return found.y[0, -1]

    assert grad(end)(0.4) == pytest.approx(-0.36, rel=1e-5)
    with pytest.raises(NoRule, match="has third derivatives"):
        grad(grad(grad(end)))(0.4)


def test_third_derivatives_of_smooth_solutions():
    def end(p):
        return solve_ivp(
            lambda t, y: -p * y + (1.0 if t < 0.5 else 0.0), (0, 1), [1.0], rtol=1e-9, atol=1e-12
        ).y[0, -1]  # a jump at a fixed time

    exact = mpmath.diff(
        lambda p: mpmath.exp(-p) + (1 - mpmath.exp(-p / 2)) / p * mpmath.exp(-p / 2), mpmath.mpf("0.7"), 3
    )
    assert grad(grad(grad(end)))(0.7) == pytest.approx(float(exact), rel=1e-6)
