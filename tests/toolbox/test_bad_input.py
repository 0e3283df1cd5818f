"""Bad problems inside derivatives: SciPy's errors stay as they are; a solution without a derivative is refused."""

import numpy as np
import pytest
import scipy.integrate as si
import scipy.optimize as so
import scipy.sparse as sp
import scipy.sparse.linalg as sla

import effgrad
from effgrad import compile, grad, jacobian, jvp

# What SciPy refuses, for the values that a program gives it.
SCIPYS = {
    "a bracket without a sign change": lambda a: so.brentq(lambda x: x * x + a, -1, 1),
    "a bracket beside the root": lambda a: so.brenth(lambda x: x * x - a, 5, 6),
    "too few iterations": lambda a: so.bisect(lambda x: x * x - a, 0, 6, maxiter=3),
    "Newton without a root": lambda a: so.newton(lambda x: x * x + a, 1.0, maxiter=20),
    "neither bracket nor start": lambda a: so.root_scalar(lambda x: x * x - a).root,
    "an unknown solver": lambda a: so.root_scalar(lambda x: x * x - a, method="best", bracket=(0, 5)).root,
    "fewer equations": lambda a: so.fsolve(lambda x: x[:1] - a, np.ones(2))[0],
    "a bracket out of order": lambda a: so.minimize_scalar(lambda x: (x - a) ** 2, bracket=(1, 0.5, 3)).x,
    "bounds out of order": lambda a: so.minimize_scalar(lambda x: (x - a) ** 2, bounds=(3, 1), method="bounded").x,
    "an unknown minimiser": lambda a: so.minimize(lambda x: (x[0] - a) ** 2, [0.0], method="best").x[0],
    "shapes of a program": lambda a: so.linprog([a], A_ub=[[1.0, 2.0]], b_ub=[1.0]).fun,
    "shapes of least squares": lambda a: so.lsq_linear(np.eye(3) * a, np.ones(2)).x.sum(),
    "shapes of non-negative ones": lambda a: so.nnls(np.eye(3) * a, np.ones(2))[0].sum(),
    "a start outside of the bounds": lambda a: so.least_squares(lambda x: x - a, [5.0], bounds=(0, 1)).x[0],
    "shapes of a fit": lambda a: so.curve_fit(lambda t, b: b * t, np.ones(5), a * np.ones(4))[0][0],
    "an unknown method": lambda a: si.solve_ivp(lambda t, y: -a * y, (0, 1), [1.0], method="best").y[0, -1],
    "shapes of an equation": lambda a: si.solve_ivp(lambda t, y: np.array([a, a]), (0, 1), [1.0]).y[0, -1],
    "times outside of the interval": lambda a: si.solve_ivp(lambda t, y: -a * y, (0, 1), [1.0], t_eval=[2.0]).y[0, -1],
    "shapes of odeint": lambda a: si.odeint(lambda y, t: [a, a], [1.0], [0, 1.0])[-1, 0],
}


def raised(call):
    with pytest.raises(Exception) as caught:  # noqa: PT011
        call()
    return caught.value


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SCIPYS)
def test_an_error_of_scipys_stays_as_it_is(name):
    f = SCIPYS[name]
    expected = raised(lambda: f(2.0))
    assert not isinstance(expected, effgrad.EffgradError)
    for call in (lambda: grad(f)(2.0), lambda: jvp(f, (2.0,), (1.0,)), lambda: compile(grad(f))(2.0)):
        error = raised(call)
        assert type(error) is type(expected)
        assert str(error).split("'")[0].split("\n")[0] == str(expected).split("'")[0].split("\n")[0]


def branching(x):
    return x * x[::-1] if x[0] > 0 else x * 2.0


# What SciPy returns, and has no derivative.
OURS = {
    "fsolve, no root": (lambda a: so.fsolve(lambda x: x**2 + a, np.ones(1))[0], "has not converged.*another start"),
    "root, no root": (lambda a: so.root(lambda x: x**2 + a, np.ones(1)).x[0], "has not converged"),
    "no minimum": (lambda a: so.minimize(lambda x: a * x[0], np.ones(1)).x[0], "Jacobian of the equations is singular"),
    "too few steps": (
        lambda a: so.minimize(lambda x: (x[0] - a) ** 4, [9.0], options={"maxiter": 1}).x[0], "has not converged"),
    "infeasible": (lambda a: so.linprog([a], A_ub=[[1.0], [-1.0]], b_ub=[-1.0, -1.0]).fun, "problem is infeasible"),
    "unbounded": (lambda a: so.linprog([-a]).fun, "problem is unbounded"),
    "a solution that explodes": (
        lambda a: si.solve_ivp(lambda t, y: a * y * y, (0, 5), [1.0]).y[0, -1], "step size is less than spacing"),
    "too few nodes": (
        lambda a: si.solve_bvp(
            lambda x, y: np.vstack([y[1], -a * np.exp(y[0]) * 100]), lambda u, v: np.array([u[0], v[0]]),
            np.linspace(0, 1, 5), np.zeros((2, 5)), max_nodes=50).y[0, 2], "maximum number of mesh nodes"),
    "an integral that diverges": (lambda a: si.quad(lambda x: a / x, 0, 1)[0], "write it as two integrals"),
    "a double root": (lambda a: so.fsolve(lambda x: (x - a) ** 2, [2.0])[0], "singular|has not converged"),
    "a singular matrix": (
        lambda a: sla.spsolve(sp.csc_array((np.stack([a, a, a, a]), ([0, 0, 1, 1], [0, 1, 0, 1]))), np.ones(2))[0],
        "singular"),
    "a fit without information": (
        lambda a: so.curve_fit(lambda t, b, c: a * t * (b + c), np.arange(5.0), np.arange(5.0))[0][0], "singular"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OURS)
def test_a_solution_without_a_derivative_says_what_to_do(name):
    f, said = OURS[name]
    for call in (lambda: grad(f)(2.0), lambda: jvp(f, (2.0,), (1.0,))):
        with pytest.raises(effgrad.EffgradError, match=said):
            call()


def test_a_pattern_that_changes_is_found_anew():
    slope = jacobian(branching, sparse=True)
    x = np.array([1.0, 2.0, 3.0])
    for point in (x, -x, x):
        np.testing.assert_allclose(slope(point).toarray(), jacobian(branching)(point))
