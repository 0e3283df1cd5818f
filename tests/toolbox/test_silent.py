"""A traced value in a solver's closure, arguments, options or bounds: the derivative of differences, or a refusal.

Never a silent zero: each row puts the number `a` into one place of a call.
"""

import numpy as np
import pytest
import scipy.integrate as si
import scipy.optimize as so
import scipy.sparse as sp
import scipy.sparse.linalg as sl

from effgrad import EffgradError, grad, optimize

N = 6
MATRIX = sp.diags_array([4 + np.arange(N), np.ones(N - 1), np.ones(N - 1)], offsets=[0, 1, -1], format="csc")
B = np.arange(1.0, N + 1)
T, DATA, TALL = np.arange(1, 5.0), np.array([1.0, 2.5, 2.9, 4.2]), np.array([[1.0, 2], [3, 1], [1, 1]])


def two(x):
    return (x[0] - 2) ** 2 + x[1] ** 2


def one(x):
    return (x[0] - 2) ** 2


def both(x):
    return x[0] + x[1]


def falling(t, y):
    return -y


def risen(a):
    def event(t, y):
        return y[0] - a

    return si.solve_ivp(lambda t, y: np.array([1.0]), (0, 9.0), [0.0], events=event).t_events[0][0]


def slsqp(**given):
    return so.minimize(two, [0.0, 0.0], constraints=given.pop("constraint", given), method="SLSQP").x[0]


def bvp(a, end):
    return si.solve_bvp(
        lambda x, y: np.stack([y[1], -a * y[0]]), lambda u, v: np.stack([u[0], v[0] - 1]), np.linspace(0, 1, 9) * end,
        np.ones((2, 9)),
    ).sol(0.5)[0]  # fmt: skip


def line(t, p):
    return p * t


RIGHT = {
    "bounds": lambda a: so.minimize(one, [0.0], bounds=[(0, a)]).x[0],
    "Bounds": lambda a: so.minimize(one, [0.0], bounds=so.Bounds([0.0], [a])).x[0],
    "args of a constraint": lambda a: slsqp(type="eq", fun=lambda x, c: both(x) - c, args=(a,)),
    "LinearConstraint": lambda a: slsqp(constraint=so.LinearConstraint(np.stack([[a, 1.0]]), 1.0, 1.0)),
    "NonlinearConstraint": lambda a: slsqp(constraint=so.NonlinearConstraint(both, -np.inf, a)),
    "minimum": lambda a: so.minimize(lambda x: (x[0] - a) ** 2 + a, [0.0]).fun,
    "start": lambda a: so.minimize(one, np.stack([a])).x[0] + a,
    "tolerance": lambda a: so.minimize(one, [0.0], tol=a * 1e-6).x[0] + a,
    "bound of minimize_scalar": lambda a: so.minimize_scalar(lambda x: (x - 9) ** 2, bounds=(0, a), method="bounded").x,
    "bound of fminbound": lambda a: so.fminbound(lambda x: (x - 9) ** 2, 0, a),
    "bound of fmin_l_bfgs_b": lambda a: so.fmin_l_bfgs_b(
        lambda x: ((x[0] - 9) ** 2, np.stack([2 * (x[0] - 9)])), [0.0], bounds=[(0, a)])[0][0],
    "global bounds": lambda a: so.shgo(one, [(0, a)]).x[0],
    "options of root": lambda a: so.root(lambda x: x - a, [0.0], options={"eps": a * 1e-8}).x[0],
    "args of fsolve": lambda a: so.fsolve(lambda x, c: x - c, [0.0], args=(a,))[0],
    "args of newton": lambda a: so.newton(lambda x, c: x**2 - c, 1.0, args=(a,)),
    "bracket": lambda a: so.brentq(lambda x: x - 2, 0, 3 * a) + a,
    "f_scale": lambda a: so.least_squares(
        lambda x: np.stack([x[0] - 1, x[0] - 3.0, x[0]]), [0.5], f_scale=a, loss="soft_l1").x[0],
    "a loss of one's own": lambda a: so.least_squares(
        lambda x: np.stack([x[0] - 1, x[0] - a]), [0.5], loss=lambda z: np.stack([z, np.ones_like(z), 0 * z])).x[0],
    "kwargs": lambda a: so.least_squares(lambda x, c=0: x - c, [0.0], kwargs={"c": a}).x[0],
    "sigma": lambda a: so.curve_fit(line, T, DATA, sigma=np.stack([a, 1, 1, 1]))[0][0],
    "bounds of curve_fit": lambda a: so.curve_fit(line, T, DATA, p0=[0.5], bounds=(0, [0.6 * a]))[0][0],
    "xdata": lambda a: so.curve_fit(line, T * a, DATA)[0][0],
    "covariance": lambda a: so.curve_fit(line, T, a * DATA)[1][0, 0],
    "norm of nnls": lambda a: so.nnls(TALL, np.stack([a, 2.0, 3.0]))[1],
    "bounds of lsq_linear": lambda a: so.lsq_linear(np.eye(2), [2.0, 3.0], bounds=([0.0] * 2, np.stack([a, 9.0]))).x[0],
    "sparse lsq_linear": lambda a: so.lsq_linear(sp.csr_array(TALL), np.stack([a, 2.0, 3.0])).x[0],
    "bounds of linprog": lambda a: so.linprog([-1.0, -1.0], bounds=[(0, a), (0, 2)]).x[0],
    "sparse linprog": lambda a: so.linprog(
        [-1.0, -2.0], A_ub=sp.csr_array(np.array([[1.0, 1.0], [1.0, 3.0]])), b_ub=np.stack([4.0 * a, 6.0])).x[0],
    "args of solve_ivp": lambda a: si.solve_ivp(lambda t, y, k: -k * y, (0, 1.0), [1.0], args=(a,), rtol=1e-9).y[0, -1],
    "t_eval": lambda a: si.solve_ivp(falling, (0, 2.0), [1.0], t_eval=np.stack([a / 2, a]), rtol=1e-9).y[0, -1],
    "end": lambda a: si.solve_ivp(falling, (0, a), [1.0], rtol=1e-9).y[0, -1],
    "begin": lambda a: si.solve_ivp(lambda t, y: -y * t, (a, 3.0), [1.0], rtol=1e-9).y[0, -1],
    "event": risen,
    "times of odeint": lambda a: si.odeint(lambda y, t: -y, 1.0, np.stack([0.0, a]))[-1, 0],
    "the frequency of a weight": lambda a: si.quad(lambda t: np.exp(-t), 0, 1, weight="cos", wvar=a)[0],
    "coefficients of solve_bvp": lambda a: bvp(a, 1.0),
    "mesh of solve_bvp": lambda a: bvp(1.0, a),
    "cubature": lambda a: si.cubature(lambda x: np.exp(-a * x[:, 0]), [0.0], [1.0]).estimate,
    "M of eigsh": lambda a: sl.eigsh(MATRIX, 2, M=(sp.eye_array(N) * a).tocsc(), sigma=0.0)[0][0],
    "lsqr": lambda a: sl.lsqr(MATRIX * a, B, atol=1e-13, btol=1e-13)[0][0],
    "onenormest": lambda a: sl.onenormest(MATRIX * a),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_a_traced_value_is_followed(name):
    f, a, step = RIGHT[name], 1.3, 1e-4
    expected = (f(a + step) - f(a - step)) / (2 * step)
    assert abs(expected) > 1e-6
    assert grad(lambda a: np.sum(f(a)))(a) == pytest.approx(expected, rel=2e-3, abs=1e-6)


REFUSED = {
    "residuals of a linear program": lambda a: so.linprog([-a, -2.0], bounds=[(0, 1), (0, 2)]).upper.residual[0],
    "a weight to infinity": lambda a: si.quad(lambda t: np.exp(-t), 0, np.inf, weight="cos", wvar=a)[0],
    "a jump": lambda a: si.quad(lambda t: 1.0 if t < a / 3 else 2.0, 0, 1)[0],
    "a preconditioner": lambda a: sl.cg(MATRIX, B * a, M=sp.eye_array(N) * a)[0][0],
    "a tolerance": lambda a: sl.cg(MATRIX, B * a, rtol=1e-12 * a)[0][0],
    "sigma of eigsh": lambda a: sl.eigsh(MATRIX, 2, sigma=a * 0.1)[0][0] + a,
    "whole unknowns": lambda a: so.milp(np.stack([-a, -1.0]), bounds=so.Bounds(0, 2)).x[0],
    "an optimiser of ours": lambda a: optimize.minimize(lambda x: (x[0] - a) ** 2, np.zeros(1)).x[0],
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_traced_value_is_refused(name):
    with pytest.raises(EffgradError):
        grad(REFUSED[name])(1.3)
