"""Parts of a problem in `minimizer_kwargs`, lists and functions, and the parts of results beside the solution."""

import inspect

import numpy as np
import pytest
import scipy.optimize as so
import scipy.sparse as sp
from differences import directional

from effgrad import compile, grad, jacobian, vmap
from effgrad.errors import NoRule

SEED = "rng" if "rng" in inspect.signature(so.differential_evolution).parameters else "seed"
P = np.array([1.5, 1.2, 0.8])
# The point of a disc of radius p[2] that is nearest to p[:2], by its closed form.
LENGTH = np.hypot(1.5, 1.2)
NEAREST = np.column_stack([0.8 * (np.eye(2) / LENGTH - np.outer(P[:2], P[:2]) / LENGTH**3), P[:2] / LENGTH])
BOX = [(-2.0, 2.0), (-2.0, 2.0)]


def distance(x, p):
    return (x[0] - p[0]) ** 2 + (x[1] - p[1]) ** 2


def distance_and_slope(x, p):
    return distance(x, p), np.array([2 * (x[0] - p[0]), 2 * (x[1] - p[1])])


def disc(p):
    return {"type": "ineq", "fun": lambda x: p[2] ** 2 - x @ x}


def of_disc(p):
    return so.NonlinearConstraint(lambda x: [x @ x, x[0]], [-np.inf, -5.0], [p[2] ** 2, 5.0])


DISCS = {
    "basinhopping": lambda p: so.basinhopping(
        distance, [0.1, 0.1], niter=2, **{SEED: 1},
        minimizer_kwargs={"args": (p,), "method": "SLSQP", "constraints": disc(p)},
    ),
    "shgo": lambda p: so.shgo(distance, BOX, args=(p,), constraints=disc(p)),
    "differential_evolution": lambda p: so.differential_evolution(
        distance, BOX, args=(p,), constraints=(of_disc(p),), **{SEED: 1}
    ),
    "lists": lambda p: so.minimize(distance, [0.1, 0.1], args=(p,), constraints=of_disc(p), method="SLSQP"),
}  # fmt: skip


@pytest.mark.parametrize("name", DISCS)
def test_constraints_hold_wherever_they_are_given(name):
    solve = DISCS[name]
    np.testing.assert_allclose(jacobian(lambda p: solve(p).x)(P), NEAREST, rtol=1e-8, atol=1e-8)
    slope = 2 * (LENGTH - 0.8) * np.array([1.5 / LENGTH, 1.2 / LENGTH, -1])  # of the squared distance
    np.testing.assert_allclose(compile(grad(lambda p: solve(p).fun))(P), slope, rtol=1e-8)
    np.testing.assert_allclose(vmap(grad(lambda p: solve(p).fun))(np.stack([P, P]))[1], slope, rtol=1e-8)


@pytest.mark.parametrize("jac", [True, False])
def test_bounds_of_the_local_optimiser(jac):
    def solve(p):
        local = {"args": (p,), "method": "L-BFGS-B", "bounds": [(0, p[2]), (0, None)], "jac": jac or None}
        return so.basinhopping(
            distance_and_slope if jac else distance, [0.1, 0.1], niter=2, **{SEED: 1}, minimizer_kwargs=local
        ).x

    np.testing.assert_allclose(jacobian(solve)(P), [[0, 0, 1], [0, 1, 0]], atol=1e-9)


def test_bounds_as_a_constraint():
    def solve(p):
        box = so.Bounds([-1, -1], [p[2], 2])
        options = {"polish": False, "tol": 1e-8, SEED: 1}
        return so.differential_evolution(distance, BOX, args=(p,), constraints=(box,), **options)

    np.testing.assert_allclose(jacobian(lambda p: solve(p).x)(P), [[0, 0, 1], [0, 1, 0]], atol=1e-8)


def test_the_jac_of_trust_constr_is_that_of_the_constraints():
    """There `grad` is the gradient of the function. `jac` was that too, in place of a list of matrices."""

    def solve(p):
        return so.minimize(distance, [0.1, 0.1], args=(p,), constraints=of_disc(p), method="trust-constr")

    np.testing.assert_allclose(jacobian(lambda p: solve(p).grad)(P), 2 * (NEAREST - np.eye(2, 3)), atol=1e-8)
    with pytest.raises(NoRule, match="the field 'jac'"):
        grad(lambda p: solve(p).jac[0][0, 0])(P)


def test_integer_unknowns_are_refused():
    with pytest.raises(NoRule, match="integers change in steps"):
        grad(lambda a: so.differential_evolution(
            lambda x: (x[0] - a) ** 2, [(-3, 3)], integrality=[True], **{SEED: 1}).fun)(1.3)  # fmt: skip


T = np.linspace(0.0, 4.0, 9)
NOISE = np.array([0.02, -0.05, 0.3, 0.01, 0.0, -0.02, 0.04, 0.03, -0.01])


def decay(a, b):
    return a * np.exp(-b * T)


def own_cauchy(z):
    return [np.log1p(z), 1 / (1 + z), -1 / (1 + z) ** 2]


def fitted(p, loss):
    tight = dict.fromkeys(("xtol", "ftol", "gtol"), 1e-15)
    return so.least_squares(
        lambda q: decay(q[0], q[1]) - decay(p[0], p[1]) - NOISE, [1.0, 1.0], loss=loss, f_scale=0.1, **tight
    ).x


def test_a_loss_of_the_users_own():
    point, direction = np.array([2.0, 0.8]), np.array([0.6, -1.0])
    expected, error = directional(lambda p: fitted(p, "cauchy"), point, direction)
    assert error < 1e-5
    found = jacobian(lambda p: fitted(p, own_cauchy))
    np.testing.assert_allclose(found(point) @ direction, expected, rtol=1e-4)
    np.testing.assert_allclose(compile(found)(point) @ direction, expected, rtol=1e-4)


def test_a_loss_that_depends_on_a_parameter():
    """The mean under the loss z + s z^2, of two measurements 0 and 1 with weights; the root of a cubic."""

    def location(s):
        def loss(z):
            return np.array([z + s * z**2, 1 + 2 * s * z, 2 * s + 0 * z])

        return so.least_squares(lambda m: np.array([3.0, 1.0]) * (m[0] - np.array([0.0, 1.0])), [0.3], loss=loss).x[0]

    def slope(m, s):  # of the cost, up to a factor
        return 9 * m * (1 + 18 * s * m**2) + (m - 1) * (1 + 2 * s * (m - 1) ** 2)

    def root(s):
        return so.brentq(slope, 0, 1, args=(s,), xtol=1e-15)

    expected, error = directional(root, np.array(0.7), np.array(1.0))
    assert error < 1e-8 and grad(location)(0.7) == pytest.approx(expected, rel=1e-7)


def test_residuals_in_the_dictionaries_of_results():
    def line(x, a):
        return a * x

    def by_curve_fit(y):
        return so.curve_fit(line, T, y, p0=[1.0], full_output=True)[2]["fvec"]

    def by_leastsq(y):
        return so.leastsq(lambda p: line(T, p[0]) - y, [1.0], full_output=True)[2]["fvec"]

    expected = np.outer(T, T) / (T @ T) - np.eye(9)  # of the residuals of a projection
    for solve in (by_curve_fit, by_leastsq):
        np.testing.assert_allclose(jacobian(solve)(decay(2.0, 0.8)), expected, atol=1e-9)

    def at_the_root(a):
        return so.fsolve(lambda x: x**2 - a, [1.0], full_output=True)[1]["fvec"][0]

    assert grad(at_the_root)(2.0) == 0.0


def test_marginals_of_a_linear_program():
    """Two inequalities hold the vertex, so their marginals solve A^T m = c; a bound and an equation give one each."""
    p = np.array([1.1, 0.7])

    def solve(p):
        return so.linprog(
            [-p[0], -2 * p[1], 0.1], A_ub=[[1, 1, 1], [p[0], 3, 0]], b_ub=[4 * p[1], 6],
            A_eq=[[0, 0, 1.0]], b_eq=[0.3 * p[0]], bounds=[(0, None), (0, 1.8 * p[0]), (0, None)],
        )  # fmt: skip

    def marginals(p):
        first, second = np.linalg.solve(np.array([[1, p[0]], [1, 3]]), [-p[0], -2 * p[1]])
        return np.array([first, second, 0.1 - first])

    def found(p):
        result = solve(p)
        return np.concatenate([result.ineqlin.marginals, result.eqlin.marginals])

    np.testing.assert_allclose(found(p), marginals(p))
    for direction in np.eye(2):
        expected, _ = directional(marginals, p, direction)
        np.testing.assert_allclose(jacobian(found)(p) @ direction, expected, atol=1e-8)
        np.testing.assert_allclose(compile(jacobian(found))(p) @ direction, expected, atol=1e-8)
    np.testing.assert_allclose(jacobian(lambda p: solve(p).con)(p), np.zeros((1, 2)), atol=1e-12)

    def of_a_bound(c):
        result = so.linprog([c[0], -c[1]], bounds=[(0, None), (0, 2.0)])
        return np.concatenate([result.lower.marginals, result.upper.marginals])

    np.testing.assert_allclose(of_a_bound(p), [1.1, 0, 0, -0.7])
    np.testing.assert_allclose(jacobian(of_a_bound)(p), [[1, 0], [0, 0], [0, 0], [0, -1]])


def sparse_design(p):
    return sp.csr_array(np.array([[1.0, 0.0], [2.0, 1.0], [0.0, 3.0]])) * p


def dense_design(p):
    return sparse_design(p).toarray()


SIDE = np.array([1.0, 2.0, 0.5])
SPARSE = {
    "lsq_linear": (
        lambda p: so.lsq_linear(sparse_design(p), SIDE * p**2).x,
        lambda p: np.linalg.lstsq(dense_design(p), SIDE * p**2)[0],
    ),
    "linprog": (
        lambda p: so.linprog([-1.0, -2.0], A_ub=sparse_design(p)[:2], b_ub=[4.0, 10.0 - p]).x,
        lambda p: np.array([0.0, 10.0 / p - 1.0]),
    ),
    "a Jacobian of least_squares": (
        lambda p: so.least_squares(
            lambda x: sparse_design(p) @ x - SIDE * p**2, [0.0, 0.0], jac=lambda x: sparse_design(p)
        ).x,
        lambda p: np.linalg.lstsq(dense_design(p), SIDE * p**2)[0],
    ),
    "LinearConstraint": (
        lambda p: so.minimize(
            lambda x: np.sum((x - 2) ** 2), [0.0, 0.0], method="trust-constr",
            constraints=so.LinearConstraint(sp.csr_array(np.array([[1.0, 1.0]])) * p, -np.inf, 1.0),
        ).x,
        lambda p: np.full(2, 0.5 / p),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SPARSE)
def test_sparse_matrices_in_compiled_programs_and_batches(name):
    solve, closed_form = SPARSE[name]
    points = np.array([1.1, 1.3])
    expected = np.stack([directional(closed_form, p, np.array(1.0))[0] for p in points])
    slope = compile(jacobian(solve))
    np.testing.assert_allclose([slope(p) for p in points], expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(vmap(jacobian(solve))(points), expected, rtol=1e-6, atol=1e-9)
