"""Solvers in compiled programs and in batches: one program for every input, and the derivatives of closed forms."""

import math

import numpy as np
import pytest
import scipy.integrate as si
import scipy.optimize as so

from effgrad import (
    NoRule,
    NotBatched,
    NotDifferentiable,
    StagingWarning,
    compile,
    differential,
    grad,
    hessian,
    hvp,
    implicit,
    jacobian,
    jvp,
    vjp,
    vmap,
)
from effgrad.stage import paths

A = np.array([2.0, 1.3, 0.7, 3.1])


def decay(k, **options):
    return si.solve_ivp(lambda t, y: -k * y, (0.0, 1.0), [1.0], **options)


def stone(speed):
    def ground(t, y):
        return y[0]

    ground.terminal, ground.direction = True, -1
    return si.solve_ivp(lambda t, y: [y[1], -9.81], (0.0, 100.0), [0.0, speed], events=ground).t[-1]


def rod(heat):
    x = np.linspace(0.0, 1.0, 7)
    equations = lambda x, y: np.stack([y[1], heat + 0.0 * x])  # noqa: E731
    return si.solve_bvp(equations, lambda a, b: np.stack([a[0], b[0]]), x, np.zeros((2, 7))).sol(0.5)[0]


T = np.linspace(0.0, 2.0, 9)
LEVEL = {"type": "eq", "fun": lambda x: x[0] + x[1] - 2.0}
# Programs of a positive number, and what they compute in closed form.
PROGRAMS = {
    "brentq": (lambda a: so.brentq(lambda x, a: x**3 - a, 0, 3, args=(a,)), lambda a: a ** (1 / 3)),
    "newton": (lambda a: so.newton(lambda x: x**3 - a, 1.0), lambda a: a ** (1 / 3)),
    "root_scalar": (lambda a: so.root_scalar(lambda x: x**3 - a, bracket=(0, 3)).root, lambda a: a ** (1 / 3)),
    "fsolve": (lambda a: np.sum(so.fsolve(lambda x: [x[0] ** 2 - a, x[1] - a * x[0]], [1.0, 1.0])),
               lambda a: np.sqrt(a) * (1 + a)),
    "root": (lambda a: so.root(lambda x: x - np.array([a, 1.0]) / x, [1.0, 1.0]).x[0], np.sqrt),
    "fixed_point": (lambda a: so.fixed_point(lambda x: (x + a / x) / 2, 1.0), np.sqrt),
    "a branch on the unknown": (
        lambda a: so.brentq(lambda x: x**3 - a if x > 0 else x * a - a, -1.0, 3.0), lambda a: a ** (1 / 3)),
    "minimize": (lambda a: so.minimize(lambda x: x[0] ** 4 / 4 - a * x[0], [1.0]).x[0], lambda a: a ** (1 / 3)),
    "minimize, a value": (
        lambda a: so.minimize(lambda x: (x[0] - a) ** 2 + a**2, [1.0]).fun, lambda a: a**2),
    "minimize with bounds": (
        lambda a: so.minimize(lambda x: (x[0] + 5) ** 2, [4.0], bounds=so.Bounds(a**2, np.inf)).x[0], lambda a: a**2),
    "minimize with a constraint": (
        lambda a: so.minimize(lambda x: x[0] ** 2 + a * x[1] ** 2, [1.0, 1.0], constraints=LEVEL, method="SLSQP").x[0],
        lambda a: 2 * a / (1 + a)),
    "minimize_scalar": (
        lambda a: so.minimize_scalar(lambda x: x**4 / 4 - a * x, bracket=(0.5, 2)).x, lambda a: a ** (1 / 3)),
    "least_squares": (lambda a: so.least_squares(lambda x: [x[0] - a, x[0] - 2.0 * a**2], [1.0]).x[0],
                      lambda a: a / 2 + a**2),
    "curve_fit": (lambda a: so.curve_fit(lambda t, b: b * t, T, a**2 * T)[0][0], lambda a: a**2),
    "nnls": (lambda a: so.nnls(np.eye(2), np.array([a**2, -a]))[0][0], lambda a: a**2),
    "linprog": (lambda a: so.linprog([-1.0], A_ub=np.array([[a]]), b_ub=[1.0]).x[0], lambda a: 1 / a),
    "linprog of columns": (
        lambda a: so.linprog([[-1.0], [-1.0]], A_ub=np.array([[a, 0.0], [0.0, 1.0]]), b_ub=[[1.0], [2.0]]).x[0],
        lambda a: 1 / a,
    ),
    "solve_ivp": (lambda k: decay(k).y[0, -1], lambda k: np.exp(-k)),
    "solve_ivp at times": (lambda k: np.sum(decay(k, t_eval=np.array([0.5, 1.0])).y),
                           lambda k: np.exp(-k) + np.exp(-k / 2)),
    "solve_ivp, dense": (lambda k: decay(k, dense_output=True).sol(0.5)[0], lambda k: np.exp(-k / 2)),
    "an event": (stone, lambda v: 2 * v / 9.81),
    "odeint": (lambda k: si.odeint(lambda y, t: -k * y, [1.0], np.array([0.0, 1.0]))[-1, 0], lambda k: np.exp(-k)),
    "solve_bvp": (rod, lambda q: -q / 8),
    "quad": (lambda a: si.quad(lambda t: np.exp(-a * t), 0.0, 1.0)[0], lambda a: (1 - np.exp(-a)) / a),
    "quad_vec": (lambda a: si.quad_vec(lambda t: np.stack([np.exp(-a * t)]), 0.0, 1.0)[0][0],
                 lambda a: (1 - np.exp(-a)) / a),
    "dblquad": (
        lambda a: si.dblquad(lambda y, x: a * x * y, 0.0, a, 0.0, lambda x: a + x)[0], lambda a: 17 * a**5 / 24),
    "nquad": (
        lambda a: si.nquad(lambda y, x, k: k * np.exp(-k * x) * y, [lambda x, k: (0.0, x), (0.0, np.inf)], (a,))[0],
        lambda a: 1 / a**2),
    "implicit.root": (implicit.root(lambda x, a: x**2 - a, lambda a: math.sqrt(a)), np.sqrt),
}  # fmt: skip
if hasattr(si, "nsum"):  # from SciPy 1.15 on
    PROGRAMS |= {
        "nsum": (lambda a: si.nsum(lambda k: np.exp(-a * k), 1, np.inf).sum, lambda a: 1 / (np.exp(a) - 1)),
        "nsum of few": (lambda a: si.nsum(lambda k, b: b / k, 1, 4, args=(a**2,)).sum, lambda a: a**2 * 25 / 12),
    }


# Integrals over two axes take seconds.
QUICK_FIRST = [name if name != "nquad" else pytest.param(name, marks=pytest.mark.sweep) for name in PROGRAMS]


@pytest.mark.thinned(4)
@pytest.mark.parametrize("backend", ["native", "numpy"])
@pytest.mark.parametrize("name", QUICK_FIRST)
def test_a_compiled_gradient_is_staged_once(name, backend):
    f, exact = PROGRAMS[name]
    compiled = compile(grad(f), backend)
    for a in A:
        assert compiled(a) == pytest.approx(grad(exact)(a), rel=1e-7)
    assert "1 programs" in repr(compiled)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", QUICK_FIRST)
def test_batches_and_their_derivatives(name):
    f, exact = PROGRAMS[name]
    np.testing.assert_allclose(vmap(f)(A), [f(a) for a in A], rtol=1e-13)
    np.testing.assert_allclose(vmap(grad(f))(A), vmap(grad(exact))(A), rtol=1e-7)
    np.testing.assert_allclose(grad(lambda a: np.sum(vmap(f)(a)))(A), vmap(grad(exact))(A), rtol=1e-7)


ORDERS = ["brentq", "root", "minimize", "a branch on the unknown", "solve_ivp", "quad", "implicit.root"]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", ORDERS)
def test_second_derivatives_in_every_nesting(name):
    f, exact = PROGRAMS[name]
    expected = [grad(grad(exact))(a) for a in A]
    compiled = [
        compile(grad(grad(f))), compile(lambda a: jvp(grad(f), (a,), (1.0,))[1]), grad(compile(grad(f))),
        compile(hessian(f, mode="hessian")), compile(lambda a: vmap(grad(grad(f)))(np.stack([a, 2 * a]))[0]),
    ]  # fmt: skip
    for second in compiled:
        np.testing.assert_allclose([second(a) for a in A], expected, rtol=1e-6)
    np.testing.assert_allclose(np.diag(hessian(lambda a: np.sum(vmap(f)(a)))(A)), expected, rtol=1e-6)


COMPLEX = {
    "newton": lambda a: so.newton(lambda z: z**3 - a[0] - 1j * a[1], 1 + 0.3j, fprime=lambda z: 3 * z**2),
    "implicit.root": implicit.root(
        lambda z, a: z**3 - a[0] - 1j * a[1], lambda a: (a[0] + 1j * a[1]) ** (1 / 3)
    ),
    "of a complex number": lambda a: so.newton(lambda z, c: z**3 - c, 1 + 0.3j, args=(a[0] + 1j * a[1],)),
}  # fmt: skip


@pytest.mark.parametrize("part", [np.real, np.imag, np.abs])
@pytest.mark.parametrize("name", COMPLEX)
def test_complex_roots(name, part):
    """A call back gave a conjugated gradient."""
    f, exact = (lambda a: part(COMPLEX[name](a))), (lambda a: part((a[0] + 1j * a[1]) ** (1 / 3)))
    points = np.array([[2.1, 1.7], [1.8, 2.0]])
    expected, curved = [grad(exact)(a) for a in points], [hessian(exact)(a) for a in points]
    compiled = compile(grad(f))
    np.testing.assert_allclose([compiled(a) for a in points], expected, rtol=1e-9)
    np.testing.assert_allclose(vmap(grad(f))(points), expected, rtol=1e-9)
    np.testing.assert_allclose(vmap(jacobian(f, mode="forward"))(points), expected, rtol=1e-9)
    np.testing.assert_allclose(compile(hessian(f))(points[0]), curved[0], rtol=1e-7)
    np.testing.assert_allclose(vmap(hessian(f))(points), curved, rtol=1e-7)


def test_nested_integrals_have_second_derivatives():
    f, exact = PROGRAMS["dblquad"]
    expected = grad(grad(exact))(1.3)
    assert grad(grad(f))(1.3) == pytest.approx(expected, rel=1e-9)
    assert compile(grad(grad(f)))(1.3) == pytest.approx(expected, rel=1e-9)


def test_pytrees_of_solutions_inside_a_larger_program():
    pair = implicit.root(
        lambda x, p: {"u": x["u"] ** 2 - p["a"], "v": x["v"] - x["u"] * p["b"]},
        lambda p: {"u": np.sqrt(p["a"]), "v": np.sqrt(p["a"]) * p["b"]},
    )

    def f(p):
        found = pair({"a": p["a"] ** 2, "b": np.sin(p["b"])})
        return np.sum(found["v"]) + so.brentq(lambda x: x - found["u"][0], -9.0, 9.0)

    def exact(p):
        return np.sum(p["a"]) * np.sin(p["b"]) + p["a"][0]

    compiled = compile(grad(f))
    for scale in (1.0, 1.1, 0.8):
        p = {"a": scale * np.array([2.0, 3.0]), "b": 0.4 * scale}
        found, expected = compiled(p), grad(exact)(p)
        np.testing.assert_allclose(found["a"], expected["a"], rtol=1e-12)
        assert found["b"] == pytest.approx(expected["b"], rel=1e-12)
    assert "1 programs" in repr(compiled)


def test_a_solver_within_a_solver():
    def inner(x, a):
        return so.brentq(lambda y: y**3 - a * x, 0.0, 9.0)

    f = lambda a: so.brentq(lambda x: inner(x, a) - 2.0, 0.1, 30.0)  # noqa: E731
    compiled = compile(grad(f))
    for a in A:
        assert compiled(a) == pytest.approx(-8 / a**2, rel=1e-9)
    np.testing.assert_allclose(vmap(grad(f))(A), -8 / A**2, rtol=1e-9)


def test_what_a_result_says_decides_as_in_python():
    """Whether a solver has succeeded, how often it ran and its message are asked again for each input."""

    def f(a):
        result = so.root(lambda x: x**2 - a, [1.0])
        return (result.x[0], 1.0) if result.success else (0.0 * a, float(len(result.message)))

    compiled = compile(f)
    for a in (2.0, -1.0, 3.0, -2.0):
        assert compiled(a) == f(a)
    assert "2 programs" in repr(compiled)


def test_a_definition_is_kept_by_the_program():
    def f(k):
        return decay(k, rtol=1e-2).y[0, -1]

    with differential.definition("steps"):
        compiled, expected = compile(grad(f)), grad(f)(1.0)
        compiled(2.0)
    assert compiled(1.0) == expected and abs(expected + math.exp(-1)) > 1e-4


def test_lengths_that_the_solver_chooses():
    """An array with one element for each step has another length for other inputs: another program."""
    f = lambda k: np.sum(decay(k).t ** 2) + len(decay(k).t) + decay(k).y[0][-1]  # noqa: E731
    compiled = compile(f)
    for k in (1.0, 30.0, 2.0):
        assert compiled(k) == pytest.approx(f(k), rel=1e-13)
    with pytest.raises(NotBatched, match="t_eval"):
        vmap(f)(np.array([1.0, 30.0]))


def test_errors_come_when_a_program_runs():
    compiled = compile(grad(lambda a: so.fsolve(lambda x: (x - 1) ** 2 - a, [1.1])[0]))
    assert compiled(0.01) == pytest.approx(5.0)
    with pytest.raises(NotDifferentiable, match="double root"):
        compiled(0.0)
    assert compiled(0.04) == pytest.approx(2.5)


def test_functions_that_only_take_plain_numbers_run_in_the_solver():
    """A residual of the math module does not close over anything, so it is called as it is."""
    calls = []

    def residual(x):
        calls.append(type(x))
        return math.exp(-x) - 0.5

    compiled = compile(grad(lambda a: a * so.brentq(residual, 0.0, 1.0)))
    assert compiled(1.0) == compiled(2.0) == pytest.approx(math.log(2))
    assert set(calls) == {float}


def test_modes_inside_a_batch():
    f = lambda p: so.minimize(lambda x: np.sum((x - p) ** 4) + x[0] * x[1] * p[0] + x[0] ** 2, np.ones(2), tol=1e-9).x  # noqa: E731
    points = np.array([[1.0, 2.0], [0.5, 1.0]])
    expected = np.stack([jacobian(f)(p) for p in points])
    np.testing.assert_allclose(vmap(jacobian(f))(points), expected, rtol=1e-7)
    np.testing.assert_allclose(vmap(jacobian(f, mode="forward"))(points), expected, rtol=1e-7)
    np.testing.assert_allclose(vmap(lambda p: vjp(f, p)[1](np.ones(2))[0])(points), expected.sum(1), rtol=1e-7)
    assert vmap(f)(np.zeros((0, 2))).shape == (0, 2)


def steps(k):
    """All states of the solution, as many as the solver likes."""
    return np.sum(si.solve_ivp(lambda t, y: -k * y, (0.0, 5.0), [1.0]).y)


def stairs(a):
    """A root of a function that is another one in each of many intervals."""

    def f(x):
        for i in range(60):
            if x < 0.1 * i:
                return x**3 * (1 + 0.01 * i) - a
        return x - a

    return so.brentq(f, -1.0, 90.0)


@pytest.mark.parametrize("f", [steps, stairs])
def test_programs_are_found_again(f):
    """Inputs in turn, each with a program of its own, were staged again at every call."""
    compiled, inputs = compile(grad(f)), (0.1, 2.0, 5.0)
    for a in inputs:
        assert compiled(a) == pytest.approx(grad(f)(a), rel=1e-9)
    number = repr(compiled)
    for a in inputs * 3:
        assert compiled(a) == pytest.approx(grad(f)(a), rel=1e-9)
    assert repr(compiled) == number


def test_a_function_of_too_many_paths_warns(monkeypatch):
    """It is counted as the paths of programs are, and its program is that of the path that the solver takes."""
    monkeypatch.setattr(paths, "MOST_PATHS", 3)
    compiled = compile(grad(stairs))
    with pytest.warns(StagingWarning, match="f, which a solver calls, takes more than 3 paths.*np.where"):
        assert compiled(2.0) == pytest.approx(grad(stairs)(2.0), rel=1e-9)


def test_states_at_given_times_are_an_array():
    """A library copies them with np.array, in code of its own."""

    def copied(k):
        result = decay(k, t_eval=np.array([0.5, 1.0]), rtol=1e-10, atol=1e-12)
        return np.sum(np.array(result.y) * np.asarray(result.t))

    compiled = compile(grad(copied))
    for k in (1.0, 2.0):
        assert compiled(k) == pytest.approx(-0.25 * np.exp(-0.5 * k) - np.exp(-k), rel=1e-7)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("span, start", [((0, 1), [1]), ((0.0, 1.0), [1]), ((0, 1.0), np.array([1]))])
def test_integers_as_times_and_states(span, start):
    """A compiled gradient took the program for another one where the derivative's own solution begins at 0 or 0.0."""

    def last(k):
        return si.solve_ivp(lambda t, y: -k * y, span, start, rtol=1e-10, atol=1e-12).y[0, -1]

    def listed(k):
        return si.odeint(lambda y, t: -k * y, start, [0, 1], rtol=1e-10, atol=1e-12)[-1, 0]

    for f in (last, listed):
        assert compile(grad(f))(2.0) == pytest.approx(-np.exp(-2.0), rel=1e-7)
        assert compile(grad(grad(f)))(2.0) == pytest.approx(np.exp(-2.0), rel=1e-5)


def test_a_nested_integral_is_compiled_to_the_second_order():
    """The estimate of the error is not differentiated, and a program that is staged keeps what it has computed."""

    def f(a):
        return si.quad(lambda x: si.quad(lambda y: np.exp(-a * x * y), 0.0, x)[0], 0.0, 1.0)[0]

    step = 1e-4
    expected = (grad(f)(1.0 + step) - grad(f)(1.0 - step)) / (2 * step)
    assert compile(grad(grad(f)))(1.0) == pytest.approx(expected, rel=1e-6)


@pytest.mark.sweep
def test_steep_integrands_do_not_jump():
    """A thin layer at a limit was taken for a jump where the integral further out reaches far."""

    def f(a):
        inner = lambda x: si.quad(lambda y: np.exp(-a * x * y), 0, np.inf)[0]  # noqa: E731
        return si.quad(lambda x: np.exp(-a * x) * inner(x) ** 2, 0.1, np.inf)[0]

    assert grad(f)(1.0) == pytest.approx((f(1 + 1e-5) - f(1 - 1e-5)) / 2e-5, rel=1e-8)
    with pytest.raises(NoRule, match="jump"):
        grad(lambda a: si.quad(lambda t: 1.0 if t < a else 2.0, 0.0, 1.0)[0])(0.5)


def test_a_right_hand_side_that_branches_on_time_keeps_its_branches():
    """After a hundred evaluations one branch was compiled for all times, so a gradient was 3 times too large."""

    def left(rates):
        """The drug that is left: exp(-(rates[0] + rates[1]) / 2)."""

        def slope(t, y):
            rate = rates[0] if t < 0.5 else rates[1]
            return -rate * y

        return si.solve_ivp(slope, (0.0, 1.0), [1.0], max_step=0.02).y[0, -1]

    rates = np.array([1.0, 2.0])
    value = np.exp(-1.5)
    np.testing.assert_allclose(compile(grad(left))(rates), [-value / 2] * 2, rtol=1e-7)
    np.testing.assert_allclose(vmap(grad(left))(np.stack([rates, rates[::-1]])), np.full((2, 2), -value / 2), rtol=1e-7)
    np.testing.assert_allclose(compile(lambda p: hvp(left, p, np.ones(2)))(rates), [value / 2] * 2, rtol=1e-7)


@pytest.mark.parametrize("around", [compile, lambda f: lambda a: vmap(f)(np.array([a, a]))], ids=["compile", "vmap"])
def test_a_branch_that_moves_is_refused_in_programs_too(around):
    """The comparison was lost, so the jump seemed to stay where it is, and the derivative was a silent zero."""

    def risen(a):
        return si.solve_ivp(lambda t, y: [1.0 if t > a else -y[0]], (0, 1), [1.0], max_step=0.02).y[0, -1]

    with pytest.raises(NoRule, match=r"jumps near t = 0\.5"):
        around(grad(risen))(0.5)


def test_a_residual_that_stores_its_unknowns_ends_with_the_found_ones():
    """It kept the exact minimum, at which derivatives are taken, instead of the one that SciPy had found."""
    t = np.linspace(0, 2, 15)
    stored = []

    def fitted(data):
        def residual(p):
            stored[:] = [p]
            return p[0] * np.exp(-p[1] * t) - data

        result = so.least_squares(residual, [2.0, 1.0])
        fields = [result[name] for name in ("x", "fun", "jac", "grad", "cost")]
        assert len(fields) == 5
        return stored[0]

    data = 2.5 * np.exp(-1.3 * t) + 0.01 * np.sin(9 * t)
    found, expected = vjp(fitted, data)[0], so.least_squares(
        lambda p: p[0] * np.exp(-p[1] * t) - data, [2.0, 1.0]
    ).x  # fmt: skip
    np.testing.assert_array_equal(found, expected)
