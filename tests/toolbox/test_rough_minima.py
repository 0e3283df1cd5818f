"""Minimisers that stop early: the derivative is that of the exact minimum, which differences of their results miss."""

import inspect

import mpmath
import pytest
import scipy.optimize as so

from effgrad import grad


def cost(x, a):
    return (x[0] - a) ** 2 + (x[1] - x[0] ** 2) ** 2 + 0.1 * x[0] ** 4 + 0.05 * a * x[1] ** 2


def minimum_by_mpmath(a):
    """The minimum of `cost`, to thirty digits."""

    def equations(x, y):
        return [
            2 * (x - a) - 4 * x * (y - x**2) + mpmath.mpf("0.4") * x**3,
            2 * (y - x**2) + mpmath.mpf("0.1") * a * y,
        ]

    return mpmath.findroot(equations, (mpmath.mpf("1.1"), mpmath.mpf("1.1")))[0]


METHODS = {
    **{name: lambda a, name=name: so.minimize(cost, [1.0, 1.0], (a,), method=name).x[0] for name in (
        "Nelder-Mead", "Powell", "CG", "BFGS", "L-BFGS-B", "TNC", "COBYLA", "SLSQP", "trust-constr")},
    "fmin": lambda a: so.fmin(cost, [1.0, 1.0], (a,), disp=0)[0],
    "fmin_powell": lambda a: so.fmin_powell(cost, [1.0, 1.0], (a,), disp=0)[0],
    "direct": lambda a: so.direct(lambda x: cost(x, a), [(0, 2), (0, 2)]).x[0],
    "differential_evolution": lambda a: so.differential_evolution(cost, [(0, 2), (0, 2)], (a,), rng=0).x[0],
    "dual_annealing": lambda a: so.dual_annealing(cost, [(0, 2), (0, 2)], (a,), maxiter=30, rng=0).x[0],
    "basinhopping": lambda a: so.basinhopping(lambda x: cost(x, a), [1.0, 1.0], niter=2, rng=0).x[0],
    "brute": lambda a: so.brute(cost, [(0, 2), (0, 2)], (a,), Ns=9)[0],
}  # fmt: skip


ROLLED = ("differential_evolution", "dual_annealing", "basinhopping")


@pytest.mark.parametrize("name", METHODS)
def test_a_rough_minimum_has_the_exact_derivative(name):
    """The solution is polished before it is differentiated: differences of what these methods find are worse."""
    if "rng" not in inspect.signature(so.differential_evolution).parameters and name in ROLLED:
        pytest.skip("this version of SciPy calls the generator seed")
    with mpmath.workdps(30):
        expected = float(mpmath.diff(minimum_by_mpmath, mpmath.mpf("1.3")))
    assert grad(METHODS[name])(1.3) == pytest.approx(expected, rel=1e-7)
