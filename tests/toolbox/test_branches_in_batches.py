"""Functions that branch on what differs among the members of a batch, and are given to SciPy's solvers."""

import numpy as np
import pytest
import scipy.integrate as si
import scipy.optimize as so

import effgrad
from effgrad import grad, vmap

POINTS = np.array([0.3, 0.6, 0.45])


def ivp(p):
    def slope(t, y):
        if y[0] > p:
            return -p * y
        return -y

    return si.solve_ivp(slope, (0, 1), [1.0 + p], rtol=1e-10, atol=1e-12).y[0, -1]


def nested(p):
    def slope(t, y):
        if p > 0.4:
            return -p * y if p < 0.5 else -2 * p * y
        return -y * p**2

    return si.solve_ivp(slope, (0, 1), [1.0 + p], rtol=1e-10, atol=1e-12).y[0, -1]


def odeint(p):
    def slope(y, t):
        while p > 0.4:
            return p * y
        return -y * p**2

    return si.odeint(slope, 1.0, [0, 1.0], rtol=1e-11, atol=1e-11)[-1, 0]


def of_a_power(p):
    q = p**2
    return si.quad(lambda t: q * t if q * 2 > p else t * t * p, 0, 1)[0]


def minimum(p):
    def cost(x):
        if x[0] > p:
            return (x[0] - p**2) ** 2
        return (x[0] - p**2) ** 2 * 2

    return so.minimize(cost, [0.5], tol=1e-12).x[0]


def equations(p):
    return so.fsolve(lambda x: [x[0] - p if p > 0.4 else x[0] - 2 * p, x[1] * 2 - x[0]], [1.0, 1.0])[1]


def residuals(p):
    return so.least_squares(lambda x: [x[0] - p if p > 0.4 else x[0] - 2 * p, x[1] * 2 - x[0]], [1.0, 1.0]).x[1]


def boundary(p):
    return si.solve_bvp(
        lambda x, y: np.vstack([y[1], -y[0] * p if p > 0.4 else -y[0]]), lambda a, b: np.array([a[0], b[0] - p]),
        np.linspace(0, 1, 5), np.zeros((2, 5)), tol=1e-10,
    ).sol(0.5)[0]  # fmt: skip


PROGRAMS = {
    "solve_ivp": ivp, "two branches": nested, "odeint": odeint, "a value of one's own": of_a_power,
    "quad": lambda p: si.quad(lambda t: p * t if p > 0.4 else t * t * p, 0, 1)[0],
    "dblquad": lambda p: si.dblquad(lambda t, s: p * t if p > 0.4 else t * t * p * s, 0, 1, 0, 1)[0],
    "quad_vec": lambda p: si.quad_vec(lambda t: p * t if p > 0.4 else t * t * p, 0, 1)[0],
    "brentq": lambda p: so.brentq(lambda x: x - p**2 if p > 0.5 else 2 * (x - p), -1, 2),
    "minimize": minimum, "fsolve": equations, "least_squares": residuals, "solve_bvp": boundary,
    "minimize_scalar": lambda p: so.minimize_scalar(
        lambda x: (x - p**2) ** 2 if p > 0.4 else (x - p**2) ** 2 * 2 + x**4).x,
    "brute": lambda p: so.brute(lambda x: (x[0] - p) ** 2 + (x[0] ** 4 if p > 0.4 else 0.0), ((-1, 1),), Ns=11)[0],
}  # fmt: skip
ROUGH = ("minimize", "minimize_scalar", "brute")  # their values are, and not their derivatives


@pytest.mark.thinned(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_each_member_takes_its_own_branch(name):
    """The branch was an error of the batch, although the solver runs for one member after another."""
    f = PROGRAMS[name]
    slopes = np.array([grad(f)(p) for p in POINTS])
    if name not in ROUGH:
        np.testing.assert_allclose(slopes, [(f(p + 1e-5) - f(p - 1e-5)) / 2e-5 for p in POINTS], rtol=1e-5)
    np.testing.assert_allclose(vmap(f)(POINTS), [f(p) for p in POINTS], rtol=1e-13)
    np.testing.assert_allclose(vmap(grad(f))(POINTS), slopes, rtol=1e-10)
    np.testing.assert_allclose(grad(lambda p: np.sum(vmap(f)(p)))(POINTS), slopes, rtol=1e-10)
    np.testing.assert_allclose(vmap(grad(grad(f)))(POINTS), [grad(grad(f))(p) for p in POINTS], rtol=1e-8, atol=1e-10)


def test_members_of_two_batches():
    f = PROGRAMS["quad"]
    points = np.stack([POINTS, POINTS[::-1] + 0.01])
    np.testing.assert_allclose(vmap(vmap(f))(points), [[f(p) for p in row] for row in points], rtol=1e-13)


def test_a_branch_outside_of_the_solver_is_an_error():
    with pytest.raises(effgrad.NotBatched, match="members 0 and 1 differ"):
        vmap(lambda p: si.quad(lambda t: t * p, 0, 1)[0] if p > 0.4 else p)(POINTS)


def cost(x, p):
    return (x[0] - p) ** 2 + (x[1] - p**2) ** 2 + x[0] ** 2 * x[1] ** 2


def all_of_brute(p, finish):
    x, value, _, values = so.brute(cost, ((-1, 1), (-1, 2)), args=(p,), Ns=7, full_output=True, finish=finish)
    return x[0] + 2 * x[1] + 3 * value + np.sum(values)


def test_brute_with_all_its_results(run):
    """The best point of the grid stays where it is; the minimum near it does not."""

    def exact(p):
        x = so.fsolve(lambda x: grad(cost)(x, p), [0.3, 0.1], xtol=1e-14)
        grid = np.stack(np.meshgrid(np.linspace(-1, 1, 7), np.linspace(-1, 2, 7), indexing="ij"))
        return x[0] + 2 * x[1] + 3 * cost(x, p) + np.sum(cost(grid, p))

    expected = (exact(0.3 + 1e-4) - exact(0.3 - 1e-4)) / 2e-4
    np.testing.assert_allclose(run(grad)(lambda p: all_of_brute(p, so.fmin))(0.3), expected, rtol=1e-6)
    differences = (all_of_brute(0.3 + 1e-4, None) - all_of_brute(0.3 - 1e-4, None)) / 2e-4
    np.testing.assert_allclose(run(grad)(lambda p: all_of_brute(p, None))(0.3), differences, rtol=1e-6)


def test_a_grid_that_moves_is_refused():
    with pytest.raises(effgrad.NoRule, match="constant ranges"):
        grad(lambda p: so.brute(cost, ((p - 1, 1), (-1, 1)), args=(p,), Ns=5, finish=None)[0])(0.3)
