"""The steps of SciPy's methods run again: their values are SciPy's, their derivatives those of the method in mpmath."""

import itertools

import mpmath
import numpy as np
import pytest
import scipy.integrate as si
from mpmath import mp

from effgrad import compile, differential, grad, jacobian, jvp, second_order, vmap
from effgrad.toolbox.integrators import METHODS, Trajectory, chosen_steps
from effgrad.toolbox.slopes import Slope

NAMES = {method.__name__: method for method in METHODS}


def robertson(t, y):
    return np.stack([-0.04 * y[0] + 1e4 * y[1] * y[2], 0.04 * y[0] - 1e4 * y[1] * y[2] - 3e7 * y[1] ** 2,
                     3e7 * y[1] ** 2])  # fmt: skip


def van_der_pol(t, y):
    return np.stack([y[1], 100 * (1 - y[0] ** 2) * y[1] - y[0]])


def predators(t, y):
    return np.stack([1.1 * y[0] - y[0] * y[1], -0.7 * y[1] + y[0] * y[1]])


PROBLEMS = {
    "predators": (predators, [1.0, 2.0], (0.0, 10.0)),
    "predators, backward": (predators, [1.0, 2.0], (10.0, 2.0)),
    "Robertson": (robertson, [1.0, 0.0, 0.0], (0.0, 1e3)),
    "van der Pol": (van_der_pol, [2.0, 0.0], (0.0, 100.0)),
}


# An explicit method takes too many steps in a stiff problem.
RUNS = [
    (method, name) for method in NAMES for name in PROBLEMS
    if method in ("Radau", "BDF") or name not in ("Robertson", "van der Pol")
]  # fmt: skip


@pytest.mark.parametrize("method, name", RUNS)
def test_steps_run_again_have_the_numbers_of_scipy(method, name):
    """Radau's drifted, for each began at the exact end of the one before: at a jump of van der Pol's none converged."""
    f, y, span = PROBLEMS[name]
    slope, options = Slope(f), {"rtol": 1e-3, "atol": 1e-8}
    if method in ("Radau", "BDF"):
        options["jac"] = slope.jacobian
    expected = si.solve_ivp(slope, span, y, method=method, dense_output=True, **options)
    grid = chosen_steps(NAMES[method], slope, span[0], np.array(y), span[1], lambda t: False, **options)
    path, times = Trajectory(slope, list(grid.times), np.array(y), grid), np.linspace(*span, 301)[1:-1]
    np.testing.assert_array_equal(grid.times, expected.t)
    np.testing.assert_allclose(path.at(times, times), expected.sol(times), rtol=1e-9, atol=1e-12)


# The method of Shampine and Reichelt by values at equal distances, not by their differences, in thirty digits.

KAPPA = ["0", "-0.1850", mpmath.mpf(-1) / 9, "-0.0823", "-0.0415", "0"]


def through(values, t, length, at):
    """The polynomial through some values at t, t - length, t - 2 length and so on, by Lagrange's formula."""
    total = mpmath.zeros(len(values[0]), 1)
    for i, value in enumerate(values):
        others = [j for j in range(len(values)) if j != i]
        total += mpmath.fprod((at - t + j * length) / ((j - i) * length) for j in others) * value
    return total


class Formulas:
    """Steps at given times and of given orders, each with the polynomial that SciPy interpolates by."""

    def __init__(self, f, y, times, orders):
        times, y, values, before = [mp.mpf(t) for t in times], mp.matrix(y), None, None
        self.pieces = []
        pairs, following = itertools.pairwise(times), [*orders[1:], orders[-1]]
        for (t, end), order, next_order in zip(pairs, orders, following, strict=True):
            h = end - t
            if values is None:
                values = [y, y - h * f(t, y)]
            else:
                values = [through(values, t, before, t - m * h) for m in range(order + 1)]
            y, before = self.end_of(f, values, t, h, order), h
            values = [y, *values][: next_order + 1]
            self.pieces.append((t, end, values, h))

    def end_of(self, f, values, t, h, order):
        predicted, gamma = through(values, t, h, t + h), mp.fsum(mp.mpf(1) / j for j in range(1, order + 1))

        def defect(*y):
            y = mp.matrix(y)
            total = -h * f(t + h, y) - mp.mpf(KAPPA[order]) * gamma * (y - predicted)
            differences = [y, *values]
            for j in range(1, order + 1):
                differences = [a - b for a, b in itertools.pairwise(differences)]
                total += differences[0] / j
            return list(total)

        return mp.findroot(defect, list(predicted), tol=1e-40, maxsteps=30)

    def __call__(self, t):
        end = self.pieces[-1][1]
        sign = 1 if end > self.pieces[0][0] else -1
        _, end, values, h = next(piece for piece in self.pieces if sign * (piece[1] - t) >= 0 or piece[1] == end)
        return through(values, end, h, t)


def grid_of(f, y, span, **options):
    """The times and orders of SciPy's steps."""
    solver = si.BDF(f, span[0], np.array(y), span[1], **options)
    times, orders = [span[0]], []
    while solver.status == "running":
        orders.append(int(solver.order))
        solver.step()
        times.append(float(solver.t))
    return times, orders


def pulled(t, y, a, b, c, library):
    """A stiff linear system with a force: its equation for a step is linear, so SciPy solves it to rounding."""
    return [-a * y[0] + b * y[1] + library.sin(t), b * y[0] - 50 * c * y[1] + library.cos(2 * t)]


def force(t, y, a, b, c):
    """The Jacobian of it. With less the last digits of a step would be those of Newton's method."""
    return np.array([[-a, b], [b, -50 * c]])


def hunted(t, y, a, b, c, library):
    return [a * y[0] - c * y[0] * y[1], -b * y[1] + c * y[0] * y[1] + 0.1 * library.sin(t)]


P = np.array([1.0, 2.0, 1.1, 0.7, 0.9, 0.1, 1.5])
COARSE, FINE = {"rtol": 1e-3, "atol": 1e-4, "jac": force}, {"rtol": 1e-6, "atol": 1e-7}
CASES = {"linear": (pulled, COARSE, 1e-9), "nonlinear": (hunted, FINE, 5e-8)}
BACKWARD = np.array([1.0, 2.0, -1.1, 0.1, -0.02, 1.5, 0.1])  # stable in the other direction


def solved(f, p, options, **more):
    """SciPy's solution by initial values, parameters and both ends of the time."""
    return si.solve_ivp(
        lambda t, y, *args: np.stack(f(t, y, *args, np)), (p[5], p[6]), p[:2], args=(p[2], p[3], p[4]), method="BDF",
        **options, **more,
    )  # fmt: skip


def repeated(f, options, p):
    """A function of p that repeats in mpmath the steps that SciPy takes at one p."""
    given = options | ({"jac": lambda t, y: options["jac"](t, y, *p[2:5])} if "jac" in options else {})
    times, orders = grid_of(lambda t, y: f(t, y, *p[2:5], np), p[:2], (p[5], p[6]), **given)
    assert max(orders) >= 3

    def steps(*q):
        ends = [q[5], *times[1:-1], q[6]]
        return Formulas(lambda t, y: mp.matrix(f(t, y, *q[2:5], mp)), q[:2], ends, orders)

    return steps


def differences(f, p):
    """The Jacobian of a function of several numbers in mpmath, by differences of thirty digits."""
    with mp.workdps(40):
        p, step, columns = [mp.mpf(x) for x in p], mp.mpf(10) ** -12, []
        for i in range(len(p)):
            up, down = ([x + s * step * (i == j) for j, x in enumerate(p)] for s in (1, -1))
            columns.append([float((a - b) / (2 * step)) for a, b in zip(f(*up), f(*down), strict=True)])
    return np.array(columns).T


# The oracle computes with mpmath, which takes time: of the linear system, all but the second order is run in sweeps.
NONLINEAR_FIRST = [pytest.param(name, marks=() if name == "nonlinear" else (pytest.mark.sweep,)) for name in CASES]


@pytest.mark.parametrize("name", NONLINEAR_FIRST)
@pytest.mark.parametrize(
    "p", [pytest.param(P, id="forward"), pytest.param(BACKWARD, id="backward", marks=pytest.mark.sweep)]
)
def test_bdf_by_initial_values_parameters_and_times(name, p):
    f, options, close = CASES[name]
    steps = repeated(f, options, p)
    expected = differences(lambda *q: list(steps(*q)(q[6])), p)

    def last(p):
        return solved(f, p, options).y[:, -1]

    with differential.definition("steps"):
        np.testing.assert_array_equal(jvp(last, (p,), (p,))[0], last(p))
        for found in (jacobian(last)(p), jacobian(last, mode="forward")(p), compile(jacobian(last))(p)):
            np.testing.assert_allclose(found, expected, rtol=close, atol=close * np.max(np.abs(expected)))


@pytest.mark.sweep
@pytest.mark.parametrize("name", NONLINEAR_FIRST)
def test_bdf_at_times_that_are_asked_for_and_in_dense_output(name):
    f, options, close = CASES[name]
    times = np.array([0.3, 0.8, 1.3])
    steps = repeated(f, options, P)

    def exact(*q):
        path = steps(*q[:7])
        return [y for t in times for y in path(t + q[7])]

    expected = differences(exact, [*P, 0.0])
    for read in (
        lambda p: solved(f, p, options, t_eval=times + p[7]).y.T,
        lambda p: solved(f, p, options, dense_output=True).sol(times + p[7]).T,
        lambda p: np.stack([solved(f, p, options, dense_output=True).sol(t + p[7]) for t in times]),
    ):
        with differential.definition("steps"):
            found = jacobian(read)(np.append(P, 0.0)).reshape(6, 8)
        np.testing.assert_allclose(found, expected, rtol=close, atol=close * np.max(np.abs(expected)))


@pytest.mark.parametrize("terminal", [False, pytest.param(True, marks=pytest.mark.sweep)])
@pytest.mark.parametrize("name", NONLINEAR_FIRST)
def test_bdf_at_events(name, terminal):
    f, options, close = CASES[name]

    def event(t, y, a, b, c):
        return y[0] - 0.5 * b - 0.4

    event.terminal = terminal

    def crossed(p):
        result = solved(f, p, options, events=event)
        at_end = [result.t[-1:], result.y[:, -1]] if terminal else []
        return np.concatenate([result.t_events[0][-1:], result.y_events[0][-1], *at_end])

    steps, near = repeated(f, options, P), crossed(P)[0]

    def exact(*q):
        path = steps(*q)
        t = mp.findroot(lambda t: path(t)[0] - 0.5 * q[3] - mp.mpf(0.4), near, tol=1e-40)
        return [t, *path(t)] * (2 if terminal else 1)

    with differential.definition("steps"):
        found = jacobian(crossed)(P)
    expected = differences(exact, P)
    np.testing.assert_allclose(found, expected, rtol=close, atol=close * np.max(np.abs(expected)))


@pytest.mark.sweep
@pytest.mark.parametrize("name", CASES)
def test_bdf_to_second_order(name):
    f, options, close = CASES[name]
    steps = repeated(f, options, P)
    along = np.array([0.3, -0.2, 0.5, 0.4, 0.1, 0.05, -0.3])

    def last(s):
        return solved(f, P + s * along, options).y[0, -1]

    with mp.workdps(40):
        step, start = mp.mpf(10) ** -8, [mp.mpf(x) for x in P]
        points = [[x + s * step * a for x, a in zip(start, along, strict=True)] for s in (-1, 0, 1)]
        low, middle, high = (steps(*q)(q[6])[0] for q in points)
        first, second = float((high - low) / (2 * step)), float((high - 2 * middle + low) / step**2)
    with differential.definition("steps"):
        for found in (
            grad(grad(last))(0.0), second_order(last, 0.0)[2], jvp(grad(last), (0.0,), (1.0,))[1],
            compile(grad(grad(last)))(0.0),
        ):  # fmt: skip
            assert found == pytest.approx(second, rel=10 * close)
        np.testing.assert_allclose(vmap(grad(last))(np.zeros(2)), first, rtol=close)


@pytest.mark.sweep
def test_bdf_of_stiff_problems_tends_to_the_solution():
    """Robertson's reaction."""

    def last(p):
        def slope(t, y):
            lost, made = -p[0] * y[0] + p[2] * y[1] * y[2], p[1] * y[1] ** 2
            return np.stack([lost, -lost - made, made])

        return si.solve_ivp(slope, (0.0, 1e3), [1.0, 0.0, 0.0], method="BDF", rtol=1e-9, atol=1e-13).y[:, -1]

    p = np.array([0.04, 3e7, 1e4])
    exact = jacobian(last)(p)
    with differential.definition("steps"):
        np.testing.assert_allclose(jacobian(last)(p), exact, rtol=1e-5)
