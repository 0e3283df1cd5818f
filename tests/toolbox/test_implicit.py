"""Derivatives of solutions, against closed forms, mpmath and differences of the whole call."""

import functools
import inspect
import math

import mpmath
import numpy as np
import pytest
import scipy.optimize as so

import effgrad
from effgrad import NoRule, NotDifferentiable, grad, hessian, jacobian, jvp, program, second_order, taylor, vjp
from effgrad.fast import REVERSE
from effgrad.modes.hessian import EdgePushing
from effgrad.modes.mode import Mode
from effgrad.modes.second_order import SecondOrder
from effgrad.modes.taylor import Taylor
from effgrad.toolbox import implicit

P = np.array([0.3, 0.4])
T = np.linspace(0, 3, 12)
Y = 2 * np.exp(-0.7 * T) + 0.1 * np.sin(9 * T)
TIGHT = {"ftol": 1e-15, "xtol": 1e-15, "gtol": 1e-15}


def system(x, p):
    return [x[0] ** 3 + p[0] * x[1] - 1, x[1] ** 3 + x[0] * p[1] - 2]


def system_root(p):
    """The root of `system` with forty digits, and its Jacobian with respect to p by the implicit function theorem."""
    with mpmath.workdps(40):
        a, b = map(mpmath.mpf, p)
        x, y = mpmath.findroot(lambda x, y: (x**3 + a * y - 1, y**3 + x * b - 2), (1, 1))
        of_x = mpmath.matrix([[3 * x**2, a], [b, 3 * y**2]])
        of_p = mpmath.matrix([[y, 0], [0, x]])
        return np.array((-(of_x**-1) * of_p).tolist(), float)


ROOTS = {
    "fsolve": lambda p: so.fsolve(lambda x: system(x, p), [1.0, 1.0]),
    "fsolve of args": lambda p: so.fsolve(lambda x, a, b: system(x, (a, b)), [1.0, 1.0], args=(p[0], p[1])),
    "fsolve, full output": lambda p: so.fsolve(lambda x: system(x, p), [1.0, 1.0], full_output=True)[0],
    "newton_krylov": lambda p: so.newton_krylov(lambda x: np.array(system(x, p)), np.ones(2)),
    "broyden1": lambda p: so.broyden1(lambda x: np.array(system(x, p)), np.ones(2)),
    "root, jac=True": lambda p: so.root(
        lambda x: (np.array(system(x, p)), np.array([[3 * x[0] ** 2, p[0]], [p[1], 3 * x[1] ** 2]])), [1, 1], jac=True
    ).x,
    "filled array": lambda p: so.root(lambda x: filled(x, p), [1.0, 1.0]).x,
    **{
        f"root {method}": lambda p, method=method: so.root(lambda x: np.array(system(x, p)), [1, 1], method=method).x
        for method in ("hybr", "lm", "broyden1", "krylov", "df-sane")
    },
}


def filled(x, p):
    result = np.zeros(2)
    result[0] = x[0] ** 3 + p[0] * x[1] - 1
    result[1] = x[1] ** 3 + x[0] * p[1] - 2
    return result


@pytest.mark.parametrize("name", ROOTS)
def test_root_of_a_system(name):
    expected = system_root(P)
    np.testing.assert_allclose(jacobian(ROOTS[name])(P), expected, rtol=1e-11)
    np.testing.assert_allclose(jacobian(ROOTS[name], mode="forward")(P), expected, rtol=1e-11)


CUBES = {
    **{
        name: lambda a, name=name: getattr(so, name)(lambda x, a: x**3 - a, 0, 3, args=(a,))
        for name in ("brentq", "brenth", "ridder", "bisect", "toms748")
    },
    "brentq, full output": lambda a: so.brentq(lambda x: x**3 - a, 0, 3, full_output=True)[1].root,
    "root_scalar": lambda a: so.root_scalar(lambda x: x**3 - a, bracket=(0, 3)).root,
    "root_scalar, a pair": lambda a: so.root_scalar(
        lambda x: (x**3 - a, 3 * x**2), x0=1.0, fprime=True, method="newton"
    ).root,
    "newton": lambda a: so.newton(lambda x: x**3 - a, 1.0),
    "newton with fprime": lambda a: so.newton(lambda x, a: x**3 - a, 1.0, fprime=lambda x, a: 3 * x**2, args=(a,)),
    "newton of an array": lambda a: so.newton(lambda x: x**3 - a, np.ones(2))[1],
    "fixed_point": lambda a: so.fixed_point(lambda x: (2 * x + a / x**2) / 3, 1.0),
    "least_squares": lambda a: so.least_squares(lambda x: x**3 - a, [1.0]).x[0],
    "minimize": lambda a: so.minimize(lambda x: x[0] ** 4 / 4 - a * x[0], [1.0]).x[0],
    "minimize_scalar": lambda a: so.minimize_scalar(lambda x: x**4 / 4 - a * x, bracket=(0.5, 2)).x,
    "fminbound": lambda a: so.minimize_scalar(lambda x: x**4 / 4 - a * x, bounds=(0, 3), method="bounded").x,
    "fmin_bfgs": lambda a: so.fmin_bfgs(lambda x: x[0] ** 4 / 4 - a * x[0], [1.0], disp=False)[0],
    "leastsq": lambda a: so.leastsq(lambda x: x**3 - a, [1.0])[0][0],
    "leastsq, full output": lambda a: so.leastsq(lambda x, a: x**3 - a, [1.0], args=(a,), full_output=True)[0][0],
    "fminbound, alone": lambda a: so.fminbound(lambda x: x**4 / 4 - a * x, 0.0, 3.0),
    "fmin_cobyla": lambda a: so.fmin_cobyla(
        lambda x: x[0], [3.0], [lambda x, a: x[0] ** 3 - a], consargs=(a,), rhoend=1e-8)[0],
    "fmin_slsqp": lambda a: so.fmin_slsqp(
        lambda x: x[0] ** 2 + x[1] ** 2, [1.0, 1.0], f_eqcons=lambda x: np.stack([x[1] ** 3 - a]), iprint=0, acc=1e-12,
        full_output=True)[0][1],
    "fmin_tnc": lambda a: so.fmin_tnc(lambda x: (x[0] ** 4 / 4 - a * x[0], [x[0] ** 3 - a]), [1.0], disp=0)[0][0],
    "fmin_l_bfgs_b": lambda a: so.fmin_l_bfgs_b(
        lambda x: (x[0] ** 4 / 4 - a * x[0], np.array([x[0] ** 3 - a])), [1.0], bounds=[(0.0, None)]
    )[0][0],
    "implicit.root": implicit.root(lambda x, a: x**3 - a, lambda a: a ** (1 / 3)),
}


@pytest.mark.parametrize("name", CUBES)
def test_cube_root_has_derivatives_of_every_order(name):
    """The solution of x^3 = a has the derivatives of a^(1/3), by nesting and by the modes of higher order."""
    f, a = CUBES[name], 2.0
    first, second, third = a ** (-2 / 3) / 3, -2 / 9 * a ** (-5 / 3), 10 / 27 * a ** (-8 / 3)
    assert grad(f)(a) == pytest.approx(first, rel=1e-9)
    assert grad(grad(f))(a) == pytest.approx(second, rel=1e-8)
    assert jvp(grad(f), (a,), (1.0,))[1] == pytest.approx(second, rel=1e-8)
    assert hessian(f, mode="hessian")(a) == pytest.approx(second, rel=1e-8)
    assert grad(grad(grad(f)))(a) == pytest.approx(third, rel=1e-7)
    np.testing.assert_allclose(second_order(f, a)[1:], [first, second], rtol=1e-8)
    np.testing.assert_allclose(taylor(f, [a, 1.0], order=3)[1:], [first, second / 2, third / 6], rtol=1e-7)


@pytest.mark.parametrize("mode", REVERSE)
def test_every_reverse_mode(mode):
    assert grad(CUBES["brentq"], mode=mode)(2.0) == pytest.approx(2 ** (-2 / 3) / 3, rel=1e-12)
    _, pull = vjp(CUBES["brentq"], 2.0)
    assert pull(1.0) == pull(1.0)


def test_value_is_the_solvers_to_the_bit():
    seen = []

    def f(a):
        result = so.minimize(lambda x: (x[0] - a) ** 4 + a * x[0] ** 2, [0.0])
        seen.extend(effgrad.stop_gradient([result.x, result.fun]))
        return result.x[0]

    grad(f)(2.0)
    plain = so.minimize(lambda x: (x[0] - 2.0) ** 4 + 2.0 * x[0] ** 2, [0.0])
    assert seen[0] == plain.x and seen[1] == plain.fun


def objective(x, p):
    return np.sum((x - p) ** 4) + x[0] ** 2 + 0.5 * x[0] * x[1] + 0.5 * x[1] ** 2 + np.sum(np.exp(x * p[0]))


def stationary_point(p, equations, start):
    """The root of the equations of Kuhn and Tucker and its Jacobian by differences, with forty digits."""
    with mpmath.workdps(40):
        step = mpmath.mpf(10) ** -12

        def at(*p):
            return mpmath.findroot(lambda *z: equations(z, p), start)

        columns = []
        for i in range(len(p)):
            up, down = (
                [mpmath.mpf(v) + (step * sign if i == j else 0) for j, v in enumerate(p)] for sign in (1, -1)
            )
            columns.append((at(*up) - at(*down)) / (2 * step))
        return np.array([[float(c[i]) for c in columns] for i in range(2)])


def gradient(x, p):
    one = 4 * (x[0] - p[0]) ** 3 + 2 * x[0] + x[1] / 2 + p[0] * mpmath.exp(x[0] * p[0])
    two = 4 * (x[1] - p[1]) ** 3 + x[0] / 2 + x[1] + p[0] * mpmath.exp(x[1] * p[0])
    return one, two


METHODS = ["BFGS", "Nelder-Mead", "Powell", "CG", "L-BFGS-B", "TNC", "SLSQP", "COBYLA"]


@pytest.mark.parametrize("method", METHODS)
def test_minimum_without_constraints(method):
    expected = stationary_point(P, gradient, (0, 0))
    found = jacobian(lambda p: so.minimize(objective, np.zeros(2), args=(p,), method=method, tol=1e-7).x)(P)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_value_of_a_minimum_has_the_partial_derivative_alone():
    """The envelope theorem."""
    x = so.minimize(objective, np.zeros(2), args=(P,), tol=1e-12).x
    expected = -4 * (x - P) ** 3 + np.array([np.sum(x * np.exp(x * P[0])), 0])
    found = grad(lambda p: so.minimize(objective, np.zeros(2), args=(p,)).fun)(P)
    np.testing.assert_allclose(found, expected, atol=1e-7)


CONSTRAINED = {
    method: lambda p, method=method, **options: so.minimize(objective, np.ones(2), (p,), method, **options).x
    for method in ("SLSQP", "trust-constr")
}


@pytest.mark.parametrize("method", CONSTRAINED)
@pytest.mark.filterwarnings("ignore")
def test_minimum_under_an_equality(method):
    def equations(z, p):
        x, y, multiplier = z
        one, two = gradient((x, y), p)
        return one - multiplier * 2 * x, two - multiplier, x**2 + y - 1 - p[1]

    def f(p):
        return CONSTRAINED[method](p, constraints={"type": "eq", "fun": lambda x: x[0] ** 2 + x[1] - 1 - p[1]})

    np.testing.assert_allclose(jacobian(f)(P), stationary_point(P, equations, (f(P)[0], f(P)[1], 1)), rtol=1e-8)


@pytest.mark.parametrize("method", CONSTRAINED)
@pytest.mark.filterwarnings("ignore")
def test_minimum_under_inequalities(method):
    """The first constraint holds the minimum and the second does not."""

    def equations(z, p):
        x, y, multiplier = z
        one, two = gradient((x, y), p)
        return one - multiplier * (y + p[0]), two - multiplier * x, x * y + p[0] * x - 0.5 - p[1]

    def f(p):
        holding = so.NonlinearConstraint(lambda x: x[0] * x[1] + p[0] * x[0], 0.5 + p[1], np.inf)
        return CONSTRAINED[method](p, constraints=[holding, so.LinearConstraint([[1.0, 1.0]], -5, 5)])

    np.testing.assert_allclose(jacobian(f)(P), stationary_point(P, equations, (*f(P), 2)), rtol=1e-8)


def test_minimum_at_a_bound_moves_with_the_bound():
    def f(p):
        bounds = [(p[1], None), (None, 9)]
        return so.minimize(lambda x: (x[0] - p[0]) ** 2 + (x[1] - x[0]) ** 2, np.ones(2), bounds=bounds).x

    np.testing.assert_allclose(jacobian(f)(np.array([-1.0, 0.5])), [[0, 1], [0, 1]], atol=1e-9)
    np.testing.assert_allclose(jacobian(f)(np.array([2.0, 0.5])), [[1, 0], [1, 0]], atol=1e-9)


def test_hessian_of_a_minimum():
    def f(a):
        return so.minimize(lambda x: (x[0] - a) ** 2 + np.exp(a * x[0]), [0.0]).x[0]

    with mpmath.workdps(30):
        exact = mpmath.diff(lambda a: mpmath.findroot(lambda x: 2 * (x - a) + a * mpmath.exp(a * x), 0), 0.5, 2)
    assert grad(grad(f))(0.5) == pytest.approx(float(exact), rel=1e-9)


# Least squares, whose answer for a linear model is a formula.


def linear_fit(p):
    """The parameters of a line through Y + p0 T with weights, in closed form."""
    matrix = np.stack([np.ones(12), T], axis=1) / (1 + p[1] * T)[:, None]
    return np.linalg.solve(matrix.T @ matrix, matrix.T @ ((Y + p[0] * np.sin(T)) / (1 + p[1] * T)))


def covariance(p):
    matrix = np.stack([np.ones(12), T], axis=1) / (1 + p[1] * T)[:, None]
    rest = (Y + p[0] * np.sin(T)) / (1 + p[1] * T) - matrix @ linear_fit(p)
    return np.linalg.inv(matrix.T @ matrix) * (np.sum(rest**2) / 10)


def fitted(p, **options):
    return so.curve_fit(lambda t, a, b: a + b * t, T, Y + p[0] * np.sin(T), sigma=1 + p[1] * T, **options)


def test_curve_fit_and_its_covariance():
    np.testing.assert_allclose(jacobian(lambda p: fitted(p)[0])(P), jacobian(linear_fit)(P), rtol=1e-8)
    np.testing.assert_allclose(jacobian(lambda p: fitted(p)[1])(P), jacobian(covariance)(P), rtol=1e-6)
    assert np.array_equal(effgrad.vjp(lambda p: fitted(p)[1], P)[0], fitted(P)[1])


def test_curve_fit_of_a_model_that_closes_over_a_traced_value():
    def f(a):
        return so.curve_fit(lambda t, b: b * np.exp(-a * t), T, Y)[0][0]

    def closed(a):
        return np.sum(Y * np.exp(-a * T)) / np.sum(np.exp(-2 * a * T))

    assert grad(f)(0.7) == pytest.approx(grad(closed)(0.7), rel=1e-8)
    assert grad(grad(f))(0.7) == pytest.approx(grad(grad(closed))(0.7), rel=1e-7)


def test_leastsq_has_the_covariance_of_its_model():
    def f(p):
        found = so.leastsq(lambda q: (q[0] + q[1] * T - Y - p[0]) / (1 + p[1] * T), [0.0, 0.0], full_output=True)
        return found[1]

    def closed(p):
        matrix = np.stack([np.ones(12), T], axis=1) / (1 + p[1] * T)[:, None]
        return np.linalg.inv(matrix.T @ matrix)

    np.testing.assert_allclose(jacobian(f)(P), jacobian(closed)(P), rtol=1e-6, atol=1e-9)


def test_functions_to_test_optimisers_with_are_differentiated_as_they_are_written():
    x = np.array([0.3, -1.0, 2.0])
    np.testing.assert_allclose(grad(so.rosen)(x), so.rosen_der(x), rtol=1e-14)
    np.testing.assert_allclose(jacobian(so.rosen_der)(x), so.rosen_hess(x), rtol=1e-14)
    np.testing.assert_allclose(jvp(so.rosen_der, (x,), (x,))[1], so.rosen_hess_prod(x, x), rtol=1e-14)


@pytest.mark.parametrize("loss", ["linear", "soft_l1", "huber", "cauchy", "arctan"])
def test_losses_of_least_squares(loss):
    def f(p):
        residuals = lambda q: q[0] * np.exp(-q[1] * T) - Y - p[0] * np.cos(T) * p[1]  # noqa: E731
        return so.least_squares(residuals, [2.0, 0.7], loss=loss, f_scale=0.1, **TIGHT).x

    found = jacobian(f)(P)
    for i, step in enumerate(1e-4 * np.eye(2)):
        slope = (8 * (f(P + step) - f(P - step)) - f(P + 2 * step) + f(P - 2 * step)) / 12e-4
        np.testing.assert_allclose(found[:, i], slope, rtol=1e-3, atol=1e-4)


A = np.array([[1.0, 2, 3], [3, 1, 0.5], [2, 2, 1], [0, 1, 4]])
B = np.array([1.0, -2, 2, 1])


def test_linear_least_squares_follow_their_free_unknowns():
    """With the unknowns that are at a bound fixed, the rest is a plain least-squares solution."""

    def nnls(p):
        return so.nnls(A * p[0] + np.eye(4, 3) * p[1], B + p[0])[0]

    free = nnls(P) > 0
    assert 0 < free.sum() < 3

    def closed(p):
        a = (A * p[0] + np.eye(4, 3) * p[1])[:, free]
        return np.linalg.solve(a.T @ a, a.T @ (B + p[0]))

    np.testing.assert_allclose(jacobian(nnls)(P)[free], jacobian(closed)(P), rtol=1e-9)
    np.testing.assert_allclose(jacobian(nnls)(P)[~free], 0.0, atol=1e-15)
    bounded = jacobian(lambda p: so.lsq_linear(A * p[0] + np.eye(4, 3) * p[1], B + p[0], bounds=(0, np.inf)).x)(P)
    np.testing.assert_allclose(bounded, jacobian(nnls)(P), atol=1e-8)


def test_linear_program_follows_its_vertex():
    def f(p):
        result = so.linprog(-p, A_ub=[[1.0, 1.0], [1.0, 3.0]], b_ub=np.array([4 + p[0], 6 * p[1]]))
        return np.stack([*result.x, result.fun])

    # The vertex is where both constraints meet: x + y = 4 + p0, x + 3 y = 6 p1.
    p = np.array([1.0, 2.0])
    np.testing.assert_allclose(f(p), [1.5, 3.5, -8.5])
    np.testing.assert_allclose(jacobian(f)(p), [[1.5, -3], [-0.5, 3], [-1.5 - 1.5 + 1, -3.5 + 3 - 6]], atol=1e-12)


def test_many_unknowns_are_solved_without_a_matrix():
    size = implicit.MATRIX_FREE_SIZE + 100
    grid = np.linspace(0, 1, size)

    def f(a):
        x = so.newton_krylov(lambda x: 3 * x + a * np.sin(x) - grid + 0.1 * np.roll(x, 1), np.zeros(size))
        return np.sum(x**2)

    slope = (f(1 + 1e-4) - f(1 - 1e-4)) / 2e-4
    assert grad(f)(1.0) == pytest.approx(slope, rel=1e-4)
    assert jvp(f, (1.0,), (1.0,))[1] == pytest.approx(grad(f)(1.0), rel=1e-9)


@pytest.mark.parametrize("result", ["text", np.array(["text"]), len])
def test_a_residual_of_no_numbers_is_refused(result):
    """The derivative was 0, as of a residual that does not depend on the parameter."""
    with pytest.raises(NotDifferentiable, match="an output is"):
        grad(implicit.root(lambda x, a: result, lambda a: 1.0))(2.0)


def test_solutions_in_pytrees():
    pair = implicit.root(
        lambda x, p: {"u": x["u"] ** 2 - p["a"], "v": x["v"] - x["u"] * p["b"]},
        lambda p: {"u": np.sqrt(p["a"]), "v": np.sqrt(p["a"]) * p["b"]},
    )
    p = {"a": np.array([4.0, 9.0]), "b": 2.0}
    found = grad(lambda p: np.sum(pair(p)["v"]))(p)
    np.testing.assert_allclose(found["a"], 1 / np.sqrt(p["a"]))
    assert found["b"] == pytest.approx(5.0)


def test_plain_functions_run_as_they_are():
    """A solver that no derivative looks at may use functions of the math module."""
    assert grad(lambda a: a * so.brentq(lambda t: math.exp(-t) - 0.5, 0, 1))(1.0) == pytest.approx(math.log(2))
    assert grad(lambda a: a * so.minimize(lambda t: math.cosh(t[0]), [1.0], bounds=[(0, 2)]).x[0])(1.0) == 0


REFUSED = {
    "a double root": (lambda a: so.fsolve(lambda x: (x - 1) ** 2 - a, [1.1])[0], 0.0, "Jacobian of the equations"),
    "a double root, newton": (lambda a: so.newton(lambda x: (x - 1) ** 2 - a, 1.1), 0.0, "double root"),
    "no root": (lambda a: so.fsolve(lambda x: x**2 + a, [1.0])[0], 1.0, "no derivative|not converged"),
    "an early stop": (
        lambda a: so.minimize(lambda x: (x[0] - a) ** 4 + (x[0] * x[1] - 1) ** 2, [3, 4], options={"maxiter": 1}).x[0],
        1.0, "has not converged.*iterations",
    ),
    "a constraint without force": (
        lambda a: so.minimize(lambda x: (x[0] - a) ** 2, [3.0], bounds=[(1.0, None)]).x[0], 1.0, "both sides differ",
    ),
    "a free parameter": (lambda a: so.least_squares(lambda x: x[0] * np.ones(3) - a, [3.0, 1.0]).x[0], 1.0, "singular"),
    "many optima": (lambda a: so.linprog([-1.0, -1.0], A_ub=[[1.0, 1.0]], b_ub=np.array([a])).x[0], 1.0, "not unique"),
    "no solution": (lambda a: so.linprog([-1.0], A_ub=[[1.0]], b_ub=np.array([-a])).x[0], 1.0, "infeasible"),
    "constraints that contradict": (
        lambda a: so.minimize(lambda x: x[0] ** 2, [5.0], constraints=[
            {"type": "ineq", "fun": lambda x: x[0] - 1 - a}, {"type": "ineq", "fun": lambda x: -x[0]}]).x[0],
        0.5, "violates a constraint",
    ),
    "a conjugate in an equation": (
        lambda a: np.real(so.newton(lambda z: np.conj(z) * z * z - a - 1j, 1 + 0.3j, maxiter=200)), 2.0, "holomorphic",
    ),
    "more equations": (
        implicit.root(lambda x, a: np.array([x - a, x + a]), lambda a: a), 1.0, "as many equations as unknowns",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.filterwarnings("ignore")
def test_bad_problems_are_refused_with_a_reason(name):
    f, a, reason = REFUSED[name]
    with pytest.raises(NotDifferentiable, match=reason):
        grad(f)(a)


def test_fields_without_a_derivative_are_refused():
    with pytest.raises(NoRule, match="hess_inv"):
        grad(lambda a: so.minimize(lambda x: (x[0] - a) ** 2, [0.0]).hess_inv[0, 0])(1.0)
    assert grad(lambda a: a * so.minimize(lambda x: (x[0] - a) ** 2, [0.0]).success)(1.0) == 1.0


class Series(Taylor):
    """A series by a handler whose attribute has another name."""

    def __init__(self, order):
        super().__init__(order)
        del self.order
        self.last = order

    def __getattr__(self, name):
        # The code of `Taylor` reads `order`; the code that follows a solution finds none.
        if name == "order" and inspect.currentframe().f_back.f_code in {Taylor.apply.__code__}:
            return self.last
        raise AttributeError(name)


def cube(a):
    """x with x**3 + a x = 2: 1 at a = 1, where the derivatives are -1/4 and 1/32."""
    return so.brentq(lambda x: x**3 + a * x - 2, 0.0, 3.0)


AS_SEEN = {
    "alone": cube,
    "around a gradient": grad(cube),
    "around a gradient forward": lambda a: jvp(cube, (a,), (1.0,))[1],
    "inside a gradient": lambda a: grad(lambda b: b * cube(a))(2.0),
}


@pytest.mark.parametrize("name", AS_SEEN)
@pytest.mark.parametrize("last", (2, 3))
def test_a_handler_that_does_not_say_its_order_is_found(name, last, monkeypatch):
    """Its second derivative was computed of a solution that had been followed to the first order only."""
    f = program.read(AS_SEEN[name])
    if last == 2:
        monkeypatch.delattr(SecondOrder, "order")
    mode, given = (SecondOrder(), 1.0) if last == 2 else (Series(last), [1.0])
    with pytest.raises(NotDifferentiable, match=f"set the attribute `order` of {type(mode).__name__}"), mode as m:
        f(m.variable(1.0, given))


def test_a_reverse_handler_that_does_not_say_its_order_is_found(monkeypatch):
    def f(a):
        return cube(a[0])

    assert hessian(f, sparse=True)(np.ones(1))[0, 0] == pytest.approx(1 / 32)
    monkeypatch.delattr(EdgePushing, "order")
    with pytest.raises(NotDifferentiable, match="attribute `order` of EdgePushing"):
        hessian(f, sparse=True)(np.ones(1))


class OwnForward(Mode):
    """A handler of first order, which need not say so."""

    def shadow(self, operation):
        return operation.push(operation.shadows)


def test_handlers_of_first_order_need_not_say_it():
    f = program.read(cube)
    with OwnForward() as outer:
        first = f(outer.variable(1.0, 1.0)).shadow
        with OwnForward() as inner:
            second = f(inner.variable(outer.variable(1.0, 1.0), 1.0)).shadow.shadow
    assert (first, second) == (pytest.approx(-1 / 4), pytest.approx(1 / 32))


# Arguments whose derivative was silently zero, or that were refused.


def in_a_box(a, method, slack=0.0):
    """The minimum at the upper bound `a` of the first unknown, where the second is 1 - a."""
    bounds = so.Bounds(np.stack([slack * a, -9.0]), np.stack([a, 9.0]))
    return so.minimize(lambda x: (x[0] - 3) ** 2 + (x[1] + x[0] - 1) ** 2, [0.5, 0.5], method=method, bounds=bounds).x


def decay(t, height, rate):
    return height * np.exp(-rate * t)


AT_BOUNDS = {
    # A method of interior points stays 2e-4 away from the bound.
    "trust-constr": (lambda a: in_a_box(a, "trust-constr")[1], 1.07, -1.0),
    "SLSQP": (lambda a: in_a_box(a, "SLSQP")[1], 1.07, -1.0),
    "curve_fit": (lambda a: so.curve_fit(decay, T, Y, bounds=([0, 0], [9, a]))[0][1], 0.5, 1.0),
    "linprog": (
        lambda a: so.linprog([-1.0, -2.0], [[1.0, 1], [1, 3]], [4.0, 6.0], bounds=[(0, a), (0, None)]).x[1], 1.1, -1 / 3
    ),
    "linprog, an array": (
        lambda a: so.linprog([-1.0, -2.0], [[1.0, 1], [1, 3]], [4.0, 6.0], bounds=np.array([[0, a], [0, 9]])).x[1],
        1.1, -1 / 3,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", AT_BOUNDS)
def test_bounds_that_move(name):
    f, a, expected = AT_BOUNDS[name]
    assert grad(f)(a) == pytest.approx(expected, abs=1e-9)
    assert jvp(f, (a,), (1.0,))[1] == pytest.approx(expected, abs=1e-9)


def test_a_fit_at_a_bound_that_moves():
    """The height that is left free has a derivative too: by differences of exact fits."""

    def height(a):
        return np.sum(Y * np.exp(-a * T)) / np.sum(np.exp(-2 * a * T))

    slope = (height(0.501) - height(0.499)) / 0.002
    found = grad(lambda a: so.curve_fit(decay, T, Y, bounds=([0, 0], [9, a]))[0][0])(0.5)
    assert found == pytest.approx(slope, rel=1e-4)


def test_a_minimum_that_is_none_is_refused():
    """Stopped early, far from the bound that would hold it: its derivative by the bound was zero."""
    with pytest.raises(NotDifferentiable, match="has not converged"):
        grad(lambda a: so.minimize(
            lambda x: (x[0] - 3) ** 2, [0.5], method="trust-constr", bounds=so.Bounds(0.0, a), options={"maxiter": 2}
        ).x[0])(2.0)  # fmt: skip


def test_newton_takes_a_list_of_arguments():
    """SciPy calls `f(x, *args)` with them, so a list is as good as a tuple."""
    found = grad(lambda a: so.newton(lambda x, a, b: x**2 - a * b, 1.0, args=[a, 2.0]))(2.0)
    assert found == pytest.approx(0.5)


def outliers(a, which, **options):
    y = 2 * np.exp(-1.1 * T) + np.where(np.arange(12) % 5 == 3, 1.0, 0.02 * np.cos(9 * T)) + a * np.sin(T)
    steps = {"ftol": 1e-15, "xtol": 1e-15, "gtol": 1e-15, "jac": lambda t, p, q: np.stack(
        [np.exp(-q * t), -p * t * np.exp(-q * t)], axis=1)}  # fmt: skip
    return so.curve_fit(lambda t, p, q: p * np.exp(-q * t), T, y, p0=(1.5, 1.0), **steps, **options)[which].ravel()[1]


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("absolute_sigma", [False, True])
@pytest.mark.parametrize("loss", ["linear", "soft_l1", "huber", "cauchy", "arctan"])
def test_curve_fit_with_a_robust_loss(loss, absolute_sigma, which):
    """The derivative was that of plain least squares: 2.638 for 2.624."""
    options = {"loss": loss, "f_scale": 0.3, "absolute_sigma": absolute_sigma, "method": "trf"}
    fit = functools.partial(outliers, which=which, **options)
    near, far = ((fit(0.1 + h) - fit(0.1 - h)) / 2 / h for h in (1e-3, 2e-3))
    assert grad(fit)(0.1) == pytest.approx((4 * near - far) / 3, rel=1e-4)


def test_functions_that_return_their_derivatives_have_roots():
    """A function with two derivatives was refused for its shape, and `fprime2=False` raised an IndexError."""

    def f(x, a):
        return x**3 - a, 3 * x**2, 6 * x

    for options in ({"fprime": True}, {"fprime": True, "fprime2": True, "method": "halley"}, {"fprime2": True}):
        count = 3 if "fprime2" in options else 2
        root = lambda a: so.root_scalar(lambda x: f(x, a)[:count], x0=1.5, **options).root  # noqa: B023, E731
        assert grad(root)(2.0) == pytest.approx(2 ** (-2 / 3) / 3, rel=1e-10)
    plainly = lambda a: so.root_scalar(  # noqa: E731
        lambda x: x**3 - a, x0=1.5, fprime=lambda x: 3 * x**2, fprime2=False, method="newton"
    ).root
    assert grad(plainly)(2.0) == pytest.approx(2 ** (-2 / 3) / 3, rel=1e-10)


def test_a_linear_program_of_real_unknowns_by_an_array():
    def f(c):
        return so.linprog([-1.0, -c], A_ub=[[1.0, 2.0]], b_ub=[c], integrality=np.zeros(2)).fun

    assert grad(f)(3.0) == pytest.approx(-3.0)


@pytest.mark.parametrize("sigma", ["none", "deviations", "covariance"])
def test_a_fit_leaves_out_what_is_nan(sigma):
    """The function to be minimised still had the points that `nan_policy="omit"` leaves out, and was not finite."""
    t = np.linspace(0.0, 1.0, 9)
    data, times = np.exp(-t) + 0.1 * np.sin(9 * t), t.copy()
    data[3], times[6] = np.nan, np.nan
    kept = np.isfinite(data + times)
    weights = {"none": np.eye(9), "deviations": np.diag((0.5 + t) ** 2), "covariance": 0.1 * np.eye(9) + 0.05}[sigma]
    given = {"none": None, "deviations": 0.5 + t, "covariance": weights}[sigma]

    def fitted(a):
        options = {"sigma": given, "absolute_sigma": True, "nan_policy": "omit"}
        return so.curve_fit(lambda t, k, c: k * t + c, times, a * data, **options)[0]

    try:
        fitted(1.3)
    except ValueError:  # SciPy 1.14 wants sigma without these points
        given = given[kept] if given.ndim == 1 else given[np.ix_(kept, kept)]
    columns, inverse = np.stack([times, np.ones(9)], axis=1)[kept], np.linalg.inv(weights[np.ix_(kept, kept)])
    slope = np.linalg.solve(columns.T @ inverse @ columns, columns.T @ inverse @ data[kept])  # the fit is linear in a
    np.testing.assert_allclose(jacobian(fitted)(1.3), slope, rtol=1e-7)
    np.testing.assert_allclose(effgrad.compile(jacobian(fitted))(1.3), slope, rtol=1e-7)
