"""Integrands that are singular at an end, or not smooth at a point that `points=` names, against closed forms."""

import mpmath
import numpy as np
import pytest
from scipy import integrate

from effgrad import NoRule, compile, grad, second_order, value_and_grad

quad = integrate.quad

SINGULAR = {
    "a power": (lambda p: quad(lambda x: x**-p, 0, 1)[0], lambda p: 1 / (1 - p), 0.5),
    "a high power": (lambda p: quad(lambda x: x**-p, 0, 1)[0], lambda p: 1 / (1 - p), 0.9),
    "a logarithm": (lambda p: quad(lambda x: np.log(x * p), 0, 1)[0], lambda p: mpmath.log(p) - 1, 0.37),
    "gamma": (lambda p: quad(lambda x: x ** (p - 1) * np.exp(-x), 0, np.inf)[0], mpmath.gamma, 0.5),
    "beta": (lambda p: quad(lambda x: x ** (p - 1) * (1 - x) ** (p / 2 - 1), 0, 1)[0],
             lambda p: mpmath.beta(p, p / 2), 0.7),
    "a tail": (lambda p: quad(lambda x: x**-p, 1, np.inf)[0], lambda p: 1 / (p - 1), 1.5),
    "away from zero": (lambda p: quad(lambda x: (x - 1) ** -p, 1, 3)[0],
                       lambda p: mpmath.mpf(2) ** (1 - p) / (1 - p), 0.4),
    "a root": (lambda p: quad(lambda x: np.sqrt(p * x), 0, 1)[0], lambda p: 2 * mpmath.sqrt(p) / 3, 0.37),
    "a point inside": (lambda p: quad(lambda x: abs(x - 0.3) ** -p, 0, 1, points=[0.3])[0],
                       lambda p: (mpmath.mpf("0.3") ** (1 - p) + mpmath.mpf("0.7") ** (1 - p)) / (1 - p), 0.4),
}  # fmt: skip


@pytest.mark.thinned(4)
@pytest.mark.parametrize("name", SINGULAR)
def test_a_singular_end(name):
    f, closed, p = SINGULAR[name]
    first, second = (float(mpmath.diff(closed, p, n)) for n in (1, 2))
    assert grad(f)(p) == pytest.approx(first, rel=1e-8)
    assert second_order(f, p)[2] == pytest.approx(second, rel=1e-8)
    assert compile(grad(f))(p) == pytest.approx(first, rel=1e-8)


@pytest.mark.parametrize("f, p", [
    (lambda p: quad(lambda x: x**-p, 0, 1)[0], 1.2),  # the integral is infinite
    (lambda p: quad(lambda x: x**-p * np.log(x), 0, 1)[0], 0.5),  # no power
    (lambda p: quad(lambda x: abs(x - p) ** -0.5, 0, 1)[0], 0.0),  # the derivative is infinite
    (lambda p: quad(lambda x: (x - 0.3) ** -0.5, p, 1)[0], 0.3),
    (lambda p: quad(lambda x: 1 / np.sqrt(np.cos(x) - np.cos(p)), 0, p)[0], 1.1),  # it moves with a limit
], ids=["infinite", "power and logarithm", "at the end", "at a limit", "a pendulum"])  # fmt: skip
@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning", "ignore::RuntimeWarning")
def test_other_singular_ends_are_refused(f, p):
    with pytest.raises(NoRule, match="at an end of the interval a power of the distance; not near"):
        grad(f)(p)


def test_a_second_derivative_that_is_infinite_is_refused():
    """The first derivative by the limit is -sqrt(p - 0.3)."""

    def f(p):
        return quad(lambda x: np.sqrt(x - 0.3), p, 1)[0]

    assert grad(f)(0.3) == pytest.approx(0.0, abs=1e-5)
    with pytest.raises(NoRule, match=r"not near 0\.3"):
        grad(grad(f))(0.3)


STAYING = {
    "a jump": (lambda p: quad(lambda x: np.where(x > 0.3, p, p**2), 0, 1)[0], lambda p: 0.7 * p + 0.3 * p**2),
    "a branch": (lambda p: quad(lambda x: p if x > 0.5 else p**2, 0, 1)[0], lambda p: 0.5 * p + 0.5 * p**2),
    "a kink": (lambda p: quad(lambda x: np.abs(x - 0.3) * p**2, 0, 1)[0], lambda p: p**2 * 0.29),
    "a density": (lambda p: quad(lambda x: np.exp(-np.abs(x - 0.3) * p), -np.inf, np.inf)[0], lambda p: 2 / p),
    "a payoff": (lambda p: quad(lambda x: np.maximum(x - 0.5, 0) * np.exp(-p * x), 0, 2)[0],
                 lambda p: (mpmath.exp(-0.5 * p) - mpmath.exp(-2 * p)) / p**2 - 1.5 * mpmath.exp(-2 * p) / p),
}  # fmt: skip


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", STAYING)
def test_a_jump_or_kink_that_stays_where_it_is(name):
    f, closed = STAYING[name]
    p = 0.75
    assert grad(f)(p) == pytest.approx(float(mpmath.diff(closed, p)), rel=1e-10)
    assert second_order(f, p)[2] == pytest.approx(float(mpmath.diff(closed, p, 2)), rel=1e-9)


@pytest.mark.parametrize("f", [
    lambda p: quad(lambda x: np.where(x > 0.3, 1.0, 2.0) * p, 0, p)[0],  # it moves in the interval
    lambda p: quad(lambda x: np.where(x > 0.3, 1.0, 2.0) * np.where(x > p - 0.45, 1.0, 3.0), 0, 1)[0],
], ids=["a limit", "with one that moves"])  # fmt: skip
def test_a_jump_that_moves_is_refused(f):
    with pytest.raises(NoRule, match=r"not near 0\.3"):
        grad(f)(0.75)


def step(x, at):
    return 1.0 if x > at else 2.0


# For each, the integral in closed form where the jump or kink is at p, p**2 and so on.
MOVING = {
    "a jump": (lambda p: quad(lambda x: step(x, p) * p + x, 0, 1, points=[p])[0], lambda p: p + p**2),
    "a kink": (lambda p: quad(lambda x: abs(x - p), 0, 1, points=[p])[0], lambda p: p**2 / 2 + (1 - p) ** 2 / 2),
    "a number": (lambda p: quad(lambda x: step(x, p) * p, 0, 1, points=p)[0], lambda p: p + p**2),
    "backwards": (lambda p: quad(lambda x: step(x, p) * p, 1, 0, points=[p])[0], lambda p: -p - p**2),
    "two": (lambda p: quad(lambda x: step(x, p) * step(x, p * p) * step(x, 0.5), 0, 1, points=[0.5, p, p**2])[0],
            lambda p: 8 * p**2 + 4 * (p - p**2) + 2 * (0.5 - p) + 0.5),
    "smooth": (lambda p: quad(lambda x: np.exp(p * x), 0, 1, points=[p])[0], lambda p: (mpmath.exp(p) - 1) / p),
    "of a number": (lambda p: quad(lambda x: step(x, 0.3) * p, 0, 1, points=[0.3])[0], lambda p: mpmath.mpf("1.3") * p),
    "two integrals": (lambda p: integrate.nquad(lambda x, y: step(x, y * p) + y, [(0, 1), (0, 1)],
                                                opts=[lambda y: {"points": [y * p]}, {}])[0], lambda p: 1.5 + p / 2),
}  # fmt: skip


@pytest.mark.parametrize("name", MOVING)
def test_a_point_that_moves(name):
    """There was an error, and the kinks at a number that moved had second derivatives of 0."""
    f, closed = MOVING[name]
    p = 0.37
    value, slope = value_and_grad(f)(p)
    assert value == f(p)
    assert slope == pytest.approx(float(mpmath.diff(closed, p)), rel=1e-9)
    assert second_order(f, p)[2] == pytest.approx(float(mpmath.diff(closed, p, 2)), abs=1e-9)


@pytest.mark.parametrize("f", [
    lambda p: quad(lambda x: step(x, p) * p, 0, 1, points=[0.3])[0],  # 1.3 for 1.6
    lambda p: quad(lambda x: step(x, 0.3) * p, 0, 1, points=[p])[0],
], ids=["the jump", "the point"])  # fmt: skip
def test_a_jump_that_does_not_move_as_its_point_is_refused(f):
    with pytest.raises(NoRule, match=r"does not change near 0\.3 as the point does"):
        grad(f)(0.3)


def test_a_kink_that_does_not_move_as_its_point_has_a_first_derivative():
    def f(p):
        return quad(lambda x: abs(x - p), 0, 1, points=[0.3])[0]

    assert grad(f)(0.3) == pytest.approx(2 * 0.3 - 1, rel=1e-9)
    with pytest.raises(NoRule, match=r"does not change near 0\.3 as the point does"):
        grad(grad(f))(0.3)
