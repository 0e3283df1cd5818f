"""Derivatives of solutions of differential equations, against closed forms and differences of exact solutions."""

import math

import mpmath
import numpy as np
import pytest
import scipy.integrate as si
import scipy.linalg

from effgrad import (
    NoRule,
    NotDifferentiable,
    checkpoint,
    compile,
    differential,
    grad,
    hessian,
    jacobian,
    jvp,
    second_order,
    taylor,
    vjp,
)
from effgrad.modes import READABLE, Forward
from effgrad.toolbox import slopes

nsum = getattr(si, "nsum", None)

TIGHT = {"rtol": 1e-12, "atol": 1e-13, "method": "DOP853"}
METHODS = ["RK23", "RK45", "DOP853", "Radau", "BDF", "LSODA"]


def differences(f, x, step=1e-4):
    """The Jacobian by central differences of fourth order."""
    columns = []
    for e in step * np.eye(len(x)):
        columns.append((8 * (f(x + e) - f(x - e)) - (f(x + 2 * e) - f(x - 2 * e))) / (12 * step))
    return np.stack(columns, axis=-1)


def predators(t, y, a, b):
    return [a * y[0] - y[0] * y[1], -b * y[1] + y[0] * y[1]]


def last(p, **options):
    """The state at the end, by initial values, parameters and both ends of the time."""
    return si.solve_ivp(predators, (p[4], p[5]), [p[0], p[1]], args=(p[2], p[3]), **options).y[:, -1]


P = np.array([1.0, 2.0, 1.1, 0.7, 0.1, 1.5])
EXACT = differences(lambda p: last(p, **TIGHT), P)


@pytest.mark.parametrize("method", METHODS)
def test_solution_by_initial_values_parameters_and_times(method):
    np.testing.assert_allclose(jacobian(lambda p: last(p, method=method))(P), EXACT, rtol=1e-7, atol=1e-8)


def test_forward_mode_and_backward_time():
    np.testing.assert_allclose(jacobian(last, mode="forward")(P), EXACT, rtol=1e-7, atol=1e-8)
    back = P[[0, 1, 2, 3, 5, 4]]
    np.testing.assert_allclose(
        jacobian(last)(back), differences(lambda p: last(p, **TIGHT), back), rtol=1e-7, atol=1e-8
    )


@pytest.mark.parametrize("mode", READABLE)
def test_every_reverse_mode(mode):
    def f(k):
        return si.solve_ivp(lambda t, y: -k * y, (0.0, 1.0), [2.0]).y[0, -1]

    assert grad(f, mode=mode)(0.5) == pytest.approx(-2 * np.exp(-0.5), rel=1e-8)


def test_higher_orders_of_a_decay():
    def f(k):
        return si.solve_ivp(lambda t, y: -k * y, (0.0, 1.0), [1.0]).y[0, -1]

    exact = np.exp(-1.3)
    assert grad(grad(f))(1.3) == pytest.approx(exact, rel=1e-8)
    np.testing.assert_allclose(second_order(f, 1.3)[1:], [-exact, exact], rtol=1e-8)
    np.testing.assert_allclose(taylor(f, [1.3, 1.0], order=3)[1:], [-exact, exact / 2, -exact / 6], rtol=1e-7)
    assert grad(lambda k: checkpoint(f, k))(1.3) == pytest.approx(-exact, rel=1e-8)


def test_value_is_scipys_to_the_bit():
    np.testing.assert_array_equal(vjp(last, P)[0], last(P))


@pytest.mark.parametrize("method", ["RK23", "RK45", "DOP853", "Radau"])
def test_steps_of_the_methods_own(method):
    """The derivative of the coarse numbers: differences with the steps fixed, here all of one length."""
    options = {"method": method, "rtol": 1e6, "atol": 1e6, "max_step": 0.05, "first_step": 0.05}
    with differential.definition("steps"):
        found = jacobian(lambda p: last(p, **options))(P_FIXED)
    np.testing.assert_allclose(found[:, :4], differences(lambda p: last(p, **options), P_FIXED)[:, :4], rtol=1e-5)


P_FIXED = np.array([1.0, 2.0, 1.1, 0.7, 0.0, 0.4])


def test_steps_of_other_methods_are_refused():
    with differential.definition("steps"), pytest.raises(NoRule, match="LSODA.*RK45.*BDF.*definition"):
        grad(lambda p: last(p, method="LSODA")[0])(P)
    with pytest.raises(ValueError, match="'solution' or of its 'steps'"):
        differential.definition("both")


T = np.linspace(0.2, 1.4, 5)


def test_times_that_are_asked_for():
    def f(p, **options):
        return si.solve_ivp(predators, (0.0, 2.0), p[:2], args=(p[2], p[3]), t_eval=T + p[4], **options).y.ravel()

    np.testing.assert_allclose(jacobian(f)(P[:5]), differences(lambda p: f(p, **TIGHT), P[:5]), rtol=1e-6, atol=1e-7)


def test_dense_output_in_any_order():
    def f(p, **options):
        solution = si.solve_ivp(predators, (0.0, 2.0), p[:2], args=(p[2], p[3]), dense_output=True, **options).sol
        return np.concatenate([solution(T[::-1] + p[4]).ravel(), solution(1.0)])

    np.testing.assert_allclose(jacobian(f)(P[:5]), differences(lambda p: f(p, **TIGHT), P[:5]), rtol=1e-6, atol=1e-7)


def test_linear_system_has_the_derivative_of_its_exponential():
    a = np.array([[-0.3, 1.0], [-1.2, 0.1]])

    def f(a):
        return si.solve_ivp(lambda t, y: a @ y, (0.0, 2.0), [1.0, 0.5]).y[:, -1]

    exact = jacobian(lambda a: scipy.linalg.expm(2.0 * a) @ np.array([1.0, 0.5]))(a)
    np.testing.assert_allclose(jacobian(f)(a), exact, atol=1e-8)


def thrown(q, **options):
    """Where and when a stone lands, thrown from a height with a speed, with drag."""

    def ground(t, y):
        return y[0]

    ground.terminal, ground.direction = True, -1
    result = si.solve_ivp(lambda t, y: [y[1], -q[2] - q[3] * y[1]], (0, 100.0), [q[0], q[1]], events=ground, **options)
    return np.concatenate([result.t[-1:], result.y[:, -1], result.t_events[0], result.y_events[0].ravel()])


def test_events_have_derivatives_in_time_and_state():
    """Without drag the stone lands at (v + sqrt(v^2 + 2 g h)) / g."""
    q = np.array([1.0, 2.0, 9.8, 0.0])
    found = jacobian(thrown)(q)
    exact = grad(lambda q: (q[1] + np.sqrt(q[1] ** 2 + 2 * q[2] * q[0])) / q[2])(q)
    np.testing.assert_allclose(found[0, :3], exact[:3], rtol=1e-9)
    np.testing.assert_allclose(found[0], found[3], rtol=1e-12)
    np.testing.assert_allclose(found[1], 0, atol=1e-8)  # it lands at height zero
    np.testing.assert_allclose(found, differences(lambda q: thrown(q, **TIGHT), q), atol=1e-6)


def test_times_of_events_are_as_exact_as_steps():
    """With drag c a stone that is dropped lands where h = (g / c) t - (g / c^2) (1 - exp(-c t))."""
    q = [10.0, 0.0, 9.81, 0.1]

    def landing(h, v, g, c):
        return mpmath.findroot(lambda t: h - g / c * t + g / c**2 * (1 - mpmath.exp(-c * t)), 1.5)

    with mpmath.workdps(30):
        orders = [tuple(int(i == j) for j in range(4)) for i in (0, 2, 3)]
        exact = [float(mpmath.diff(landing, tuple(map(mpmath.mpf, ("10", "0", "9.81", "0.1"))), n)) for n in orders]
    found = jacobian(lambda q: thrown(q, method="DOP853"))(np.array(q))
    np.testing.assert_allclose(found[0, [0, 2, 3]], exact, rtol=1e-10)
    np.testing.assert_allclose(found[4], 0.0, atol=1e-10)


def bounced(p, number=3, **options):
    """When a ball that falls from a height, and keeps a part of its speed, meets the ground for the last time."""

    def ground(t, y):
        return y[0]

    ground.terminal, ground.direction = True, -1
    height, gravity, kept = p
    t, y = 0.0, [height, 0.0]
    for _ in range(number):
        result = si.solve_ivp(lambda t, y: [y[1], -gravity], (t, t + 100.0), y, events=ground, **options)
        t, y = result.t[-1], [0.0, -kept * result.y[1, -1]]
    return t


@pytest.mark.parametrize("choice", ["solution", "steps"])
def test_a_ball_bounces(choice):
    """It lands after sqrt(2 h / g), and then flies twice as long, times the part of its speed that it has kept."""

    def exact(p):
        return np.sqrt(2 * p[0] / p[1]) * (1 + 2 * p[2] + 2 * p[2] ** 2)

    p = np.array([10.0, 9.81, 0.8])
    with differential.definition(choice):
        np.testing.assert_allclose(grad(bounced)(p), grad(exact)(p), rtol=1e-12)
        np.testing.assert_allclose(jacobian(grad(bounced))(p), jacobian(grad(exact))(p), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(compile(grad(bounced))(p), grad(exact)(p), rtol=1e-12)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("times", [None, np.linspace(0.0, 3.0, 31)])
def test_a_terminal_event_at_coarse_tolerances(method, times):
    """The last state was taken from the step that the program's own time is in, which the exact solution has left."""

    def few(t, y, a):
        return y[0] - 0.5 * a[1]

    few.terminal = True

    def last_of(a, **options):
        result = si.solve_ivp(
            lambda t, y, a: predators(t, y, *a), (0.0, 10.0), [1.0, 2.0], args=(a,), events=few, t_eval=times,
            **({"method": method} | options),
        )  # fmt: skip
        at_event = np.concatenate([result.t_events[0], result.y_events[0].ravel()])
        return np.concatenate([at_event, result.t[-1:], result.y[:, -1]])

    a = np.array([1.1, 0.7])
    np.testing.assert_allclose(
        jacobian(last_of)(a), differences(lambda a: last_of(a, **TIGHT), a), rtol=1e-6, atol=1e-7
    )


def test_an_event_that_the_exact_solution_does_not_reach():
    def low(t, y):
        return y[0] - 0.35

    def when(k):
        coarse = {"method": "RK23", "rtol": 0.9, "atol": 1.0, "first_step": 1.0}
        return si.solve_ivp(lambda t, y: -k * y, (0.0, 1.0), [1.0], events=low, **coarse).t_events[0][0]

    with pytest.raises(NotDifferentiable, match="does not come to the event.*smaller tolerances"):
        grad(when)(1.0)


def test_stiff_problem():
    """The solution of y' = a - k (y - a t) tends to a t."""

    def f(a):
        return si.solve_ivp(lambda t, y: a - 1e4 * (y - a * t), (0.0, 1.0), [1.0], method="Radau").y[0, -1]

    assert grad(f)(2.0) == pytest.approx(1.0, rel=1e-8)


@pytest.mark.parametrize("first", [False, True])
def test_odeint(first):
    def f(p, **options):
        slope = (lambda t, y, a, b: predators(t, y, a, b)) if first else (lambda y, t, a, b: predators(t, y, a, b))
        times = np.concatenate([np.zeros(1), T + p[4]])
        return si.odeint(slope, p[:2], times, args=(p[2], p[3]), tfirst=first, **options).ravel()

    exact = differences(lambda p: f(p, rtol=1e-12, atol=1e-12), P[:5])
    np.testing.assert_allclose(jacobian(f)(P[:5]), exact, rtol=1e-6, atol=1e-7)


def bratu(p, **options):
    x = np.linspace(0, 1, 6)
    result = si.solve_bvp(
        lambda x, y: np.vstack([y[1], -p[0] * np.exp(y[0])]), lambda a, b: np.array([a[0] - p[1], b[0]]),
        x, np.zeros((2, 6)), **options,
    )  # fmt: skip
    return np.concatenate([result.y[:, 0], result.y[:, -1], result.sol(np.array([0.3, 0.55]))[0]])


def test_boundary_value_problem():
    p = np.array([1.0, 0.2])
    exact = differences(lambda p: bratu(p, tol=1e-9, max_nodes=100000), p)
    np.testing.assert_allclose(jacobian(bratu)(p), exact, atol=1e-8)
    np.testing.assert_array_equal(vjp(bratu, p)[0], bratu(p))
    twice = jvp(lambda a: jacobian(bratu)(np.stack([a, 0.2])), (1.0,), (1.0,))[1]
    slope = differences(lambda a: jacobian(bratu)(np.stack([a[0], 0.2])), p[:1])[..., 0]
    np.testing.assert_allclose(twice, slope, atol=1e-6)


def test_eigenvalue_of_a_boundary_value_problem():
    """y'' = -k^2 y with y(0) = y(L) = 0 has k = 2 pi / L."""

    def f(length):
        x = np.linspace(0, 1, 5)
        start = np.zeros((2, 5))
        start[0, 1], start[0, 3] = 1, -1
        return si.solve_bvp(
            lambda x, y, k: np.vstack([y[1], -((k[0] * length) ** 2) * y[0]]),
            lambda a, b, k: np.array([a[0], b[0], a[1] - k[0] * length]), x, start, p=[3.0],
        ).p[0]  # fmt: skip

    assert grad(f)(2.0) == pytest.approx(-2 * np.pi / 4, rel=1e-8)
    assert grad(grad(f))(2.0) == pytest.approx(4 * np.pi / 8, rel=1e-7)


def test_quad_vec():
    def f(p):
        return si.quad_vec(lambda x: np.array([np.exp(-p[0] * x), x ** p[1]]), 0.0, p[2])[0]

    def exact(p):
        return np.stack([(1 - np.exp(-p[0] * p[2])) / p[0], p[2] ** (p[1] + 1) / (p[1] + 1)])

    p = np.array([0.7, 2.0, 1.5])
    np.testing.assert_allclose(jacobian(f)(p), jacobian(exact)(p), rtol=1e-10)  # x^2 log(x) is less smooth than x^2
    infinite = lambda a: si.quad_vec(lambda x: np.array([np.exp(-a * x)]), 0.0, np.inf)[0][0]  # noqa: E731
    assert grad(infinite)(2.0) == pytest.approx(-0.25, rel=1e-10)
    with pytest.raises(NoRule, match="smooth"):
        grad(lambda a: si.quad_vec(lambda x: np.array([np.abs(x - a)]), 0.0, 1.0)[0][0])(0.3)


SQUARE = np.array([1.0, 2.0])
INDICATORS = {
    "quad": lambda a: si.quad(lambda t: 1.0 if t > a else 0.0, 0.0, 1.0)[0],
    "quad of np.where": lambda a: si.quad(lambda t, b: np.where(t > b, 1.0, 0.0), 0.0, 1.0, args=(a,))[0],
    "quad, scaled": lambda a: si.quad(lambda t: a if t > a else 0.0, 0.0, 1.0)[0],
    "dblquad": lambda a: si.dblquad(lambda y, x: 1.0 if y < a else 0.0, 0.0, 1.0, 0.0, 1.0)[0],
    "quad_vec": lambda a: si.quad_vec(lambda t: SQUARE if t > a else 0.0 * SQUARE, 0.0, 1.0)[0][0],
}  # fmt: skip


@pytest.mark.thinned(4)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", INDICATORS)
def test_an_integrand_that_jumps_where_a_parameter_says_is_refused(name):
    """Nothing that it returns is traced, so its derivative was silently zero. At 0.5 an interval of QUADPACK ends."""
    f = INDICATORS[name]
    for run in (grad(f), compile(grad(f)), lambda a: jvp(f, (a,), (1.0,))):
        for a in (0.5, 0.3):
            with pytest.raises(NoRule, match="jump|smooth.*write it as two integrals"):
                run(a)


def test_integrands_that_jump_elsewhere_or_not_at_all():
    assert grad(lambda a: a * si.quad(lambda t: 1.0 if t > 0.3 else 0.0, 0.0, 1.0)[0])(2.0) == pytest.approx(0.7)
    pointed = grad(lambda a: si.quad(lambda t: a if t > 0.3 else 0.0, 0.0, 1.0, points=[0.3])[0])
    assert pointed(2.0) == pytest.approx(0.7)
    assert grad(lambda a: si.quad(lambda t: t if a > 0 else 0.0, 0.0, 1.0)[0])(2.0) == 0.0
    odd = lambda t: (t - 0.5) * abs(t - 0.5) ** 0.5  # noqa: E731
    assert grad(lambda a: si.quad(lambda t: a * odd(t), 0.0, 1.0)[0])(2.0) == pytest.approx(0.0, abs=1e-12)


def test_functions_of_the_time_may_come_from_the_math_module():
    """The solution of y' = -k sin(t) y is exp(k (cos(t) - 1))."""

    def f(k):
        return si.solve_ivp(lambda t, y: -k * math.sin(t) * y, (0.0, 1.0), [1.0]).y[0, -1]

    c = math.cos(1.0) - 1
    assert grad(f)(0.7) == pytest.approx(c * math.exp(0.7 * c), rel=1e-8)
    integral = grad(lambda k: si.quad_vec(lambda t: np.array([k**2 * math.sin(t)]), 0.0, 1.0)[0][0])(2.0)
    assert integral == pytest.approx(-4 * c, rel=1e-12)


def test_failed_solver_is_refused():
    with pytest.raises(NotDifferentiable, match="solve_ivp has failed"):
        grad(lambda a: si.solve_ivp(lambda t, y: a * y**2, (0.0, 2.0), [1.0]).y[0, -1])(1.0)
    with pytest.raises(NotDifferentiable, match="solve_bvp has failed"):
        grad(lambda a: bratu(np.stack([100.0 * a, 0.0]))[0])(1.0)


def test_plain_equations_run_as_they_are():
    assert grad(lambda a: a * si.solve_ivp(lambda t, y: -y, (0.0, 1.0), [1.0]).y[0, -1])(1.0) == pytest.approx(
        np.exp(-1), rel=1e-3
    )


# The right-hand side on plain numbers.


def stiff(p, calls):
    """Robertson's reaction, which counts its evaluations."""

    def slope(t, y):
        calls.append(t)
        a, b, c = p[0] * y[0], p[1] * y[1] ** 2, p[2] * y[1] * y[2]
        return [-a + c, a - b - c, b]

    return si.solve_ivp(slope, (0.0, 1.0), [1.0, 0.0, 0.0], method="Radau", rtol=1e-8, atol=1e-10).y[0, -1]


def test_a_right_hand_side_is_compiled_once():
    """Each of its evaluations was one of Python, of which a derivative needs thousands."""
    p, calls = np.array([0.04, 3e7, 1e4]), []
    slopes._compiled.cache_clear()
    first = grad(lambda p: stiff(p, calls))(p)
    number = len(calls)
    again = grad(lambda p: stiff(p, calls))(2 * p)
    assert slopes._compiled.cache_info().misses == 1 and slopes._compiled.cache_info().hits == 1
    plain = []
    stiff(p, plain)
    assert number < 3 * len(plain) + 2000
    for i, scale in enumerate(p):
        step = np.zeros(3)
        step[i] = 1e-4 * scale
        for found, at in ((first, p), (again, 2 * p)):
            difference = stiff(at + step, plain) - stiff(at - step, plain)
            assert found[i] == pytest.approx(difference / (2 * step[i]), rel=1e-3)


def decaying(t, y):
    return -2.0 * y * np.sin(t)


def branching(t, y):
    return -y if t < 0.5 else -2.0 * y


@pytest.mark.parametrize("f", [decaying, branching])
def test_the_compiled_right_hand_side_is_the_plain_one(f):
    with Forward() as forward:
        rate = forward.variable(1.5, 1.0)
        slope, y = slopes.Slope(lambda t, y: rate * f(t, y)), np.array([1.0, 2.0])
        for t in np.linspace(0, 1, 2 * slopes.OFTEN):
            np.testing.assert_allclose(slope(t, y), 1.5 * f(t, y), rtol=1e-14)
            np.testing.assert_allclose(slope.jacobian(t, y), 1.5 * np.diag(f(t, np.ones(2))), rtol=1e-13)
            both = slope.variation(t, np.array([1.0, 2.0, 1.0, 0.5]))
            np.testing.assert_allclose(both, 1.5 * f(t, np.array([1.0, 2.0, 1.0, 0.5])), rtol=1e-13)
        assert (slope.programs is None) == (f is branching)


def test_boundary_values_at_nodes_that_move():
    """The states are those at the nodes, each of which moves as the one that was given."""

    def states(a):
        return si.solve_bvp(
            lambda x, y: np.stack([y[1], -y[0]]), lambda u, v: np.stack([u[0], v[0] - 1]),
            np.linspace(0.0, 1.0, 21) ** a, np.ones((2, 21)), tol=1e-3,
        ).y[0]  # fmt: skip

    part = np.linspace(0.0, 1.0, 21)[1:]
    exact = np.cos(part) / np.sin(1.0) * part * np.log(part)
    np.testing.assert_allclose(jacobian(states)(1.0)[1:], exact, atol=1e-7)


def test_boundary_values_by_the_ends_of_the_interval():
    """y'' = -y with y(a) = 0 and y(b) = 1 has y'(a) = 1 / sin(b - a); the ends were taken as constants."""
    part = np.linspace(0.0, 1.0, 11)

    def solved(ends):
        return si.solve_bvp(
            lambda x, y: np.stack([y[1], -y[0]]), lambda u, v: np.stack([u[0], v[0] - 1]),
            ends[0] + (ends[1] - ends[0]) * part, np.ones((2, 11)), tol=1e-8,
        )  # fmt: skip

    ends = np.array([0.2, 1.3])
    slope = np.cos(1.1) / np.sin(1.1) ** 2
    np.testing.assert_allclose(grad(lambda e: solved(e).y[1, 0])(ends), [slope, -slope], rtol=1e-7)
    np.testing.assert_allclose(jacobian(lambda e: solved(e).x[[0, -1]])(ends), np.eye(2), atol=1e-12)

    def inside(e):
        return np.sin(0.7 - e[0]) / np.sin(e[1] - e[0])

    np.testing.assert_allclose(grad(lambda e: solved(e).sol(0.7)[0])(ends), grad(inside)(ends), rtol=1e-6)


def test_a_singular_term_that_is_traced_is_refused():
    """Its derivative was silently zero."""

    def solved(a):
        mesh = np.linspace(0.0, 1.0, 11)
        singular = np.array([[0.0, 0.0], [0.0, -2.0 * a]])
        return si.solve_bvp(
            lambda x, y: np.stack([y[1], -y[0]]), lambda u, v: np.stack([u[1], v[0] - 1]), mesh, np.ones((2, 11)),
            S=singular,  # fmt: skip
        ).y[0, 3]

    with pytest.raises(NoRule, match="singular term S"):
        grad(solved)(1.0)


# Right-hand sides that switch at a time or a state that moves with a: what is integrated has a jump, or a kink.
JUMPS = {
    "np.where of the time": lambda a: si.odeint(lambda y, t: np.where(t > a, 1.0, 0.0 * y), 0.0, [0.0, 1.0])[-1, 0],
    "an if of the time": lambda a: si.solve_ivp(lambda t, y: [a + (1.0 if t > a else 0.0)], (0, 1), [0.0]).y[0, -1],
    "an if of the state": lambda a: si.solve_ivp(lambda t, y: [1.5 if y[0] < a else 0.5], (0, 1), [0.0]).y[0, -1],
    "a sign": lambda a: si.odeint(lambda y, t: 1.0 - 0.5 * np.sign(y - a), 0.0, [0.0, 1.0])[-1, 0],
}
KINKS = {  # with the derivative, from the solutions (1 - a)^2 / 2 and a - 1 + e / (1 + a)
    "np.maximum": (
        lambda a: si.odeint(lambda y, t: np.maximum(0.0, t - a) + 0 * y, 0.0, [0.0, 1.0])[-1, 0], lambda a: a - 1,
    ),
    "an if": (
        lambda a: si.solve_ivp(lambda t, y: [t - a if t > a else 0.0 * a], (0, 1), [0.0]).y[0, -1], lambda a: a - 1,
    ),
    "np.abs of the state": (
        lambda a: si.solve_ivp(lambda t, y: [1.0 + np.abs(y[0] - a)], (0, 1), [0.0]).y[0, -1],
        lambda a: 1 - np.e / (1 + a) ** 2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", JUMPS)
def test_a_jump_that_moves_is_refused(name):
    """The derivative was that of the pieces, 0 where the parameter stands in comparisons alone."""
    for derivative in (grad(JUMPS[name]), lambda a: jvp(JUMPS[name], (a,), (1.0,))):
        with pytest.raises(NoRule, match=r"jumps near t = 0\.[0-9]+: stop there by an event"):
            derivative(0.3)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", KINKS)
def test_a_kink_that_moves_has_a_first_derivative_alone(name):
    f, expected = KINKS[name]
    assert grad(f)(0.3) == pytest.approx(expected(0.3), rel=5e-5)
    for derivative in (grad(grad(f)), lambda a: jvp(grad(f), (a,), (1.0,)), lambda a: second_order(f, a)):
        with pytest.raises(NoRule, match="has a kink near t = 0"):
            derivative(0.3)


def test_switches_at_fixed_times_stay_differentiable():
    def dose(k):  # y' = -k y + 1 from 0.25 to 0.5
        def slope(t, y):
            return [-k * y[0] + (1.0 if 0.25 < t < 0.5 else 0.0)]

        return si.solve_ivp(slope, (0, 1), [0.0], max_step=0.01, rtol=1e-10, atol=1e-12).y[0, -1]

    def ramp(k):
        return si.odeint(lambda y, t: k * k * np.maximum(0.0, t - 0.3) + 0 * y, 0.0, [0.0, 1.0])[-1, 0]

    exact = lambda k: (mpmath.exp(-k / 2) - mpmath.exp(-3 * k / 4)) / k  # noqa: E731
    assert grad(dose)(2.0) == pytest.approx(float(mpmath.diff(exact, 2.0)), rel=1e-5)
    assert grad(grad(dose))(2.0) == pytest.approx(float(mpmath.diff(exact, 2.0, 2)), rel=1e-5)
    assert grad(grad(ramp))(1.5) == pytest.approx(2 * 0.7**2 / 2, rel=1e-5)


SERIES = {
    "of powers": (lambda a: nsum(lambda k: 1 / k**a, 1, np.inf).sum, 2.5, lambda a, n: mpmath.zeta(a, derivative=n)),
    "slowly": (lambda a: nsum(lambda k: 1 / k**a, 1, np.inf).sum, 1.3, lambda a, n: mpmath.zeta(a, derivative=n)),
    "geometric": (
        lambda a: nsum(lambda k, a: a**k / k, 1, np.inf, args=(a,)).sum, 0.7,
        lambda a, n: mpmath.diff(lambda a: -mpmath.log(1 - a), a, n)),
    "in steps": (
        lambda a: nsum(lambda k: np.exp(-a * k), 0, np.inf, step=0.5).sum, 0.5,
        lambda a, n: mpmath.diff(lambda a: 1 / (1 - mpmath.exp(-a / 2)), a, n)),
    "of fifty": (
        lambda a: nsum(lambda k: 1 / k**a, 1, 50).sum, 2.5,
        lambda a, n: mpmath.fsum((-mpmath.log(k)) ** n * mpmath.mpf(k) ** -a for k in range(1, 51))),
}  # fmt: skip


@pytest.mark.skipif(nsum is None, reason="SciPy has it from 1.15 on")
@pytest.mark.parametrize("name", SERIES)
def test_series(name):
    """SciPy's transformed integral gave NaN for the derivative of a sum to infinity."""
    f, at, exact = SERIES[name]
    for found in (grad(f)(at), jvp(f, (at,), (1.0,))[1]):
        np.testing.assert_allclose(found, float(exact(at, 1)), rtol=1e-9)
    np.testing.assert_allclose(grad(grad(f))(at), float(exact(at, 2)), rtol=1e-8)
    assert jvp(f, (at,), (1.0,))[0] == f(at)


@pytest.mark.skipif(nsum is None, reason="SciPy has it from 1.15 on")
@pytest.mark.parametrize("bad", [
    lambda a: nsum(lambda k: a / k**2, 1, [np.inf, 5]).sum[0], lambda a: nsum(lambda k: k**-2.0, a, np.inf).sum,
    lambda a: nsum(lambda k: a / (1 + k**2.0), -np.inf, np.inf).sum,
])  # fmt: skip
def test_other_series_are_refused(bad):
    with pytest.raises(NoRule, match="nsum has a derivative rule for one sum from a finite number"):
        grad(bad)(2.0)


@pytest.mark.parametrize("choice", ["solution", "steps"])
@pytest.mark.parametrize("method", ["RK45", "Radau", "BDF"])
def test_an_interval_of_no_length(choice, method):
    """Its ends still move the state; there was an IndexError."""

    def last(p, **options):
        result = si.solve_ivp(
            lambda t, y: -p[0] * y * np.cos(t) + t * p[0], (p[2], p[3]), p[1:2], dense_output=True, **options
        )
        return np.concatenate([result.y[:, -1], result.sol(p[3])])

    p, along = np.array([0.7, 1.3, 0.4, 0.4]), np.array([0.3, -0.2, 0.5, -0.7])
    with differential.definition(choice):
        first = jacobian(lambda p: last(p, method=method))
        np.testing.assert_allclose(first(p), differences(lambda p: last(p, **TIGHT), p), atol=1e-9)
        second = jvp(lambda p: first(p) @ along, (p,), (along,))[1]
    slope = (last(p + 1e-3 * along, **TIGHT) - 2 * last(p, **TIGHT) + last(p - 1e-3 * along, **TIGHT)) / 1e-6
    np.testing.assert_allclose(second, slope, atol=1e-5)


@pytest.mark.parametrize("choice", ["solution", "steps"])
def test_events_without_times(choice):
    """SciPy's states are an empty list then: "'list' object has no attribute 'size'"."""

    def when(k):
        half = lambda t, y: y[0] - 0.5  # noqa: E731
        return si.solve_ivp(
            lambda t, y: -k * y, (0.0, 3.0), [1.0], t_eval=[], events=half, rtol=1e-10, atol=1e-12
        ).t_events[0][0]

    with differential.definition(choice):
        assert grad(when)(0.9) == pytest.approx(-np.log(2) / 0.81, rel=1e-7)


@pytest.mark.parametrize(
    "second",
    [
        lambda f, a: second_order(f, a)[2], lambda f, a: taylor(f, [a, 1.0], 2)[2], lambda f, a: grad(grad(f))(a),
        lambda f, a: hessian(lambda x: f(x[0]), sparse=True)(np.array([a])).toarray(),
    ],
    ids=["second_order", "taylor", "grad of grad", "edges"],
)  # fmt: skip
def test_an_integrand_with_a_kink_has_a_first_derivative_alone(second):
    """Modes that take two derivatives at once returned 0 for the second, which is 2 by the closed form."""

    def distance(a):
        """(a**2 + (1 - a)**2) / 2."""
        return si.quad(lambda x: abs(x - a), 0.0, 1.0)[0]

    assert grad(distance)(0.4) == pytest.approx(2 * 0.4 - 1, rel=1e-9)
    assert taylor(distance, [0.4, 1.0], 1)[1] == pytest.approx(2 * 0.4 - 1, rel=1e-9)
    with pytest.raises(NoRule, match="a second one for smooth ones; not near 0.4"):
        second(distance, 0.4)
