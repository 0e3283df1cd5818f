"""Initial value problems: derivatives of `solve_ivp` and `odeint` by parameters, initial values and times.

SciPy solves the problem on plain numbers, and the result has SciPy's values. There are two definitions of the
derivative:

* "solution": the derivative of the exact solution. The problem is solved again to a tolerance of 1e-10 together with
  the variational equation along a random direction. So the error of the derivative is controlled, whatever method and
  tolerances the program uses. The steps taken there run again on traced values; their pullback solves the adjoint
  equation.
* "steps": the derivative of the numbers that the program's method computes, with its steps held fixed. It is not
  available for LSODA.

Hairer, Norsett and Wanner, Solving Ordinary Differential Equations I (1993), section I.14; Cao, Li, Petzold and Serban,
Adjoint sensitivity analysis for differential-algebraic equations (2003); Kidger, On neural differential equations
(2022), chapter 5, for the names optimise-then-discretise and discretise-then-optimise.
"""

from collections.abc import Callable
from typing import NamedTuple

import scipy.integrate
from scipy.integrate import DOP853, Radau

from effgrad.arrays.layout import dtype_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import depends
from effgrad.effects import Effect, Handler, handled, operation
from effgrad.errors import NoRule, NotDifferentiable
from effgrad.functions.scipy.tables import reals, traced_inside
from effgrad.toolbox.calls import Arguments, Call, rule_of
from effgrad.toolbox.events import crossing
from effgrad.toolbox.frozen import Observed, as_number_or_array, as_vector, joined, number, plain_tree
from effgrad.toolbox.integrators import METHODS, Grid, Times, Trajectory, chosen_steps, complex_of, real_components
from effgrad.toolbox.slopes import Slope, uses_derivatives
from effgrad.toolbox.solutions import Solution, constants, with_value
from effgrad.toolbox.switches import refuse_moving_switches
from effgrad.vocabulary import Function, Value

# The relative tolerance of the solution that is differentiated. Radau's method has only order 5.
TOLERANCE = {DOP853: 1e-10, Radau: 1e-9}
# A problem counts as stiff if it needs more than MOST_STEPS explicit steps. After every CHECKED steps the eigenvalues
# of the Jacobian are computed, for systems of at most LARGEST equations.
MOST_STEPS, CHECKED, LARGEST = 5000, 20, 300
NAME = "scipy.integrate.solve_ivp"
# The exact solution is computed beyond an event by this part of the time to it, since it may reach the event later.
LATER = 0.02


class Definition(Effect):
    """The effect of asking for the definition of the derivative of a differential equation's solution."""

    @operation
    def choose(self) -> Value:
        """One of "solution" and "steps"."""


class definition(Handler[Definition]):  # noqa: N801 (a context, as `kinks`)
    """A context that chooses the definition of the derivatives of `solve_ivp` and `odeint`.

    Arguments:
        choice: "solution" or "steps". "solution" is the default outside any context: the derivative of the exact
            solution, with an error of about 1e-9 whatever tolerances the program has. "steps" is the derivative of the
            numbers that the program's method computes with its steps held fixed. It needs the method RK23, RK45,
            DOP853, Radau or BDF, and agrees with the values to rounding, also if these are inaccurate.

    Contexts nest, and the innermost one decides.

    Raises:
        ValueError: the choice is unknown.
        NoRule: inside the context, with "steps", the program uses a method that is not listed above.

    Eberhard and Bischof, Automatic differentiation of numerical integration algorithms (1999).

    >>> from effgrad import differential, grad
    >>> from scipy import integrate
    >>> def decayed(k):
    ...     return integrate.solve_ivp(lambda t, y: -k * y, (0.0, 1.0), [1.0], rtol=1e-2).y[0, -1]
    >>> round(grad(decayed)(1.0), 8), round(-np.exp(-1.0), 8)
    (-0.36787944, np.float64(-0.36787944))
    >>> with differential.definition("steps"):
    ...     round(grad(decayed)(1.0), 4)
    -0.3671
    """

    def __init__(self, choice: str) -> None:
        if not isinstance(choice, str) or choice not in ("solution", "steps"):
            raise ValueError(f"an equation's derivative is that of its 'solution' or of its 'steps', not {choice!r}")
        self.choice = choice

    def choose(self) -> str:
        return self.choice


class Problem(NamedTuple):
    """An initial value problem, y' = f(t, y) from `start` to `end` with the initial value `y`. All may be traced.

    Its state is real. `of_components` makes it the program's state, which may be complex.
    """

    f: Function
    start: Value
    end: Value
    y: Value
    name: str
    of_components: Function = np.asarray

    @property
    def slope(self) -> Slope:
        """The right-hand side on plain numbers."""
        return Slope(self.f)


def trajectory(problem: Problem, until: float, scale: Value) -> Trajectory:
    """Compute the exact solution by sufficiently small steps; `scale` is the size of each component."""
    slope, y = problem.slope, np.asarray(number(problem.y), float)
    start, end = float(number(problem.start)), float(number(problem.end))
    sign = 1.0 if end >= start else -1.0
    n = len(y)
    direction = np.random.default_rng(0).normal(size=n) * scale

    def done(t: float) -> bool:
        return sign * (t - until) >= 0

    atol = TOLERANCE[DOP853] * scale
    with np.errstate(all="ignore"):  # an explicit method may overflow, since it may try steps that are far too long
        explicit = DOP853(slope, start, y, end, rtol=TOLERANCE[DOP853], atol=atol)
        kind = Radau if _is_stiff(slope, explicit, done) else DOP853
    both, atol = np.concatenate([y, direction]), TOLERANCE[kind] * np.tile(scale, 2)
    jac = {"jac": slope.variation_jacobian()} if kind is Radau else {}
    grid = chosen_steps(kind, slope.variation, start, both, end, done, rtol=TOLERANCE[kind], atol=atol, **jac)
    if grid is None:
        raise NotDifferentiable(f"{problem.name}: the solution for the derivative fails: its steps become too small")
    halved = [None if z is None else z.reshape(3, -1)[:, :n].reshape(-1) for z in grid.chosen]
    return _followed(problem, slope, Grid(grid.kind, grid.times, halved))


def _is_stiff(slope: Slope, solver: Value, done: Callable[[float], bool]) -> bool:
    """Whether stability, and not accuracy, limits the steps of an explicit method on plain numbers.

    Stability limits them if the step times the largest eigenvalue of the Jacobian stays at the boundary of the
    stability region.
    """
    limited = 0
    for count in range(MOST_STEPS):
        if solver.status != "running" or done(solver.t):
            return bool(solver.status == "failed")
        solver.step()
        if count % CHECKED == 0 and count and solver.n <= LARGEST:
            matrix = slope.jacobian(solver.t, solver.y)
            limited += bool(solver.step_size * np.max(np.abs(np.linalg.eigvals(matrix)), initial=0.0) > 3.5)
            if limited == 3:
                return True
    return True


def _followed(problem: Problem, slope: Slope, grid: Grid) -> Trajectory:
    """Run the steps of a grid on traced values. The ends of the interval may be traced; the times between are not."""
    times: Times = list(grid.times)
    times[0] = problem.start
    if times[-1] == number(problem.end):
        times[-1] = problem.end
    return Trajectory(slope, times, problem.y, grid)


def own_steps(problem: Problem, method: Value, until: float, options: dict[str, Value]) -> Trajectory:
    """Run the steps that the program's method takes on traced values."""
    names = {kind.__name__: kind for kind in METHODS}
    kind = method if isinstance(method, type) else names.get(method)
    if kind not in METHODS:
        raise NoRule(
            f"{problem.name}: the steps of the method {method} have no derivative rule (those of LSODA are taken by "
            f"compiled code); use {', '.join(names)}, or the derivative of the solution: "
            "effgrad.differential.definition('solution')"
        )
    start, end = float(number(problem.start)), float(number(problem.end))
    sign = 1.0 if end >= start else -1.0
    slope, state = problem.slope, problem.of_components
    y = state(np.asarray(number(problem.y), float))

    def right_side(t: float, y: Value) -> Value:
        return state(slope(t, real_components(y)))

    grid = chosen_steps(kind, right_side, start, y, end, lambda t: sign * (t - until) >= 0, **options)
    if grid is None:
        raise NotDifferentiable(f"{problem.name} has failed: the required step is smaller than the spacing of numbers")
    return _followed(problem, slope, grid)


def real_vector(value: Value, name: str) -> Value:
    """Return a real slope or state as a vector."""
    value = as_vector(value)
    if dtype_of(value).kind == "c":
        raise NotDifferentiable(
            f"{name}: the initial value is real and the right-hand side complex, and SciPy drops its imaginary part: "
            "give a complex initial value to solve_ivp, as y0 + 0j"
        )
    return value


# solve_ivp


class TracedSolution:
    """The dense output of `solve_ivp` in a differentiated program: a function of a time, or of a vector of times."""

    def __init__(self, path: Trajectory, state: Function, sol: Value) -> None:
        self.path, self.state, self.sol = path, state, sol
        self.ts, self.t_min, self.t_max = sol.ts, sol.t_min, sol.t_max

    def __call__(self, t: Value) -> Value:
        t = as_number_or_array(t)
        return with_value(self.state(self.path.at(t, number(t))), self.sol(number(t)))


def chosen_definition() -> str:
    """The definition of the derivative that the innermost context around the call chooses."""
    choice: str = Definition.choose() if handled(Definition) else "solution"
    return choice


def _of_any_length(arguments: Arguments) -> tuple[str, ...]:
    """The fields of the result whose length depends on the solver's steps, or on an event."""
    return ("t", "y") if arguments.get("t_eval") is None or arguments.get("events") is not None else ()


@rule_of(scipy.integrate.solve_ivp, "fun", chosen=chosen_definition, ragged=_of_any_length)
def _solve_ivp(call: Call) -> Value:
    args, options = call.get("args") or (), call.arguments.get("options", {})
    fun, events = call.arguments["fun"], call.get("events")
    span, t_eval = [*map(as_floating, call.arguments["t_span"])], call.get("t_eval")
    y0 = as_floating(call.arguments["y0"])
    reals("integrate.solve_ivp", *span)
    is_complex = dtype_of(y0).kind == "c"
    observed = Observed(fun, tuple(args))
    listed = [] if events is None else [events] if callable(events) else list(events)
    given = [_event(event, tuple(args)) for event in listed]
    jac = options.get("jac")
    if callable(jac):
        options = options | {"jac": Observed(jac, tuple(args))}
    result = call.run(
        fun=observed, args=None, options=plain_tree(options), events=given if events is not None else None
    )

    def f(t: Value, y: Value) -> Value:
        y = problem.of_components(y)
        slope = fun(t, y[:, None] if call.get("vectorized") else y, *args)
        return real_components(as_vector(slope)) if is_complex else real_vector(slope, NAME)

    problem = Problem(f, span[0], span[1], real_components(y0), NAME, complex_of if is_complex else np.asarray)
    if not observed.traced and not traced_inside((*span, y0, t_eval)) and not any(e.traced for e in given):
        refuse_switches(problem, call.choice, call.get("method"), result.y, options)
        return result
    if not result.success:
        raise NotDifferentiable(f"scipy.integrate.solve_ivp has failed and has no derivative: {result.message}")
    stopped = result.status == 1
    until = _last_time(call, result, *(float(number(t)) for t in span))
    path = path_of(problem, call.choice, call.get("method"), until, result.y, options)
    return _solved(call, result, path, listed, stopped, problem.of_components)


def _last_time(call: Call, result: Value, start: float, end: float) -> float:
    """The time up to which the solution is computed for the derivative."""
    if result.status != 1:
        return end
    sign = 1.0 if end >= start else -1.0
    last = sign * max(sign * float(t[-1]) for t in result.t_events if len(t))
    # The exact solution may reach the event later.
    return last if call.choice == "steps" else sign * min(sign * (last + LATER * (last - start)), sign * end)


def as_floating(value: Value) -> Value:
    """Convert integers to floats, as SciPy does."""
    value = as_number_or_array(value)
    return value * 1.0 if dtype_of(value).kind in "biu" else value


def _event(event: Function, args: tuple[Value, ...]) -> Observed:
    observed = Observed(event, args)
    for name in ("terminal", "direction"):
        if hasattr(event, name):
            setattr(observed, name, getattr(event, name))
    return observed


def path_of(
    problem: Problem, choice: str, method: Value, until: float, values: Value, options: dict[str, Value]
) -> Trajectory:
    """Return the solution that is differentiated, by the chosen definition; `values` are SciPy's states, as columns."""
    if choice == "steps":
        return own_steps(problem, method, until, plain_tree(options))
    # If `t_eval` is empty, SciPy's states are an empty list.
    sizes = np.max(np.abs(values), axis=1, initial=0.0) if np.size(values) else np.abs(number(problem.y))
    sizes = np.tile(sizes, len(problem.y) // len(sizes))
    path = trajectory(problem, until, sizes + 1e-3 * np.max(sizes, initial=1e-3))
    refuse_moving_switches(path.slope, path, problem.name)
    return path


def refuse_switches(problem: Problem, choice: str, method: Value, values: Value, options: dict[str, Value]) -> None:
    """Refuse a solution on which no derivative depends, if traced values decide where its right-hand side jumps."""
    if uses_derivatives(problem.f, float(problem.start), np.asarray(problem.y, float)):
        path_of(problem, choice, method, float(problem.end), values, options)


def _solved(
    call: Call, result: Value, path: Trajectory, events: list[Function], stopped: bool, state: Function
) -> Solution:
    """Return the result of `solve_ivp` with traced fields. `state` makes the program's states of those of the path."""
    fields, exact = _of_events(call, result, path, events, state) if events else ({}, [])
    t_eval = call.get("t_eval")
    t = as_number_or_array(t_eval) if t_eval is not None else result.t
    if t_eval is None:
        last = path.times[-1]
        if stopped:
            last = next(times[-1] for times, found in zip(exact, result.t_events, strict=True)
                        if len(found) and found[-1] == result.t[-1])  # fmt: skip
        t = joined([path.times[0], result.t[1:-1], last]) if len(result.t) > 1 else result.t
    t = t[: len(result.t)]  # a terminal event may have ended the solution before the later times
    if len(result.t):
        fields["y"] = with_value(state(_columns(path, t, number(t))), result.y)
    fields["t"] = with_value(t, result.t) if depends(t) else result.t
    if result.sol is not None:
        fields["sol"] = TracedSolution(path, state, result.sol)
    return Solution({**result, **fields})


def _of_events(
    call: Call, result: Value, path: Trajectory, events: list[Function], state: Function
) -> tuple[dict[str, Value], list[Value]]:
    """Return the fields for events (their times and states), and the traced times themselves.

    The times in the fields have SciPy's values. Those returned separately have the values of the exact solution.
    """
    args, steps = tuple(call.get("args") or ()), call.choice == "steps"

    def found_by(event: Function, t: float) -> Value:
        return crossing(path, lambda t, y: event(t, state(y), *args), t, steps)

    at = path.at if steps else path.by_a_step
    exact = [
        joined([found_by(event, t) for t in found]) if len(found) else found
        for event, found in zip(events, result.t_events, strict=True)
    ]
    states = [
        with_value(np.stack([state(at(t[i], number(t)[i])) for i in range(len(y))]), y) if len(y) else y
        for t, y in zip(exact, result.y_events, strict=True)
    ]
    times = [with_value(t, found) for t, found in zip(exact, result.t_events, strict=True)]
    return {"t_events": times, "y_events": states}, exact


def _columns(path: Trajectory, t: Value, plain_t: Value) -> Value:
    """Return the states at the times of the result, as columns; the state at the start is the initial value."""
    if plain_t[0] != path.grid.times[0] or depends(t):
        return path.at(t, plain_t)
    first = np.reshape(path.start, (-1, 1))
    return np.concatenate([first, path.at(t[1:], plain_t[1:])], axis=1) if len(plain_t) > 1 else first


# odeint


@rule_of(scipy.integrate.odeint, "func", "Dfun", chosen=chosen_definition)
def _odeint(call: Call) -> Value:
    name = "scipy.integrate.odeint"
    func, (y0, t) = call.arguments["func"], [as_floating(call.arguments[name]) for name in ("y0", "t")]
    y0 = real_vector(y0, name)
    if call.get("tfirst") and "func" in call.observed:
        call.observed["func"] = Observed(func, call.args)
    result = call.run()
    values, *info = result if call.get("full_output") else (result,)

    def f(t: Value, y: Value) -> Value:
        return real_vector(func(t, y, *call.args) if call.get("tfirst") else func(y, t, *call.args), name)

    problem = Problem(f, t[0], t[-1], y0, name)
    if not call.traced and not traced_inside((y0, t)):
        refuse_switches(problem, call.choice, "LSODA", values.T, {})
        return result
    path = path_of(problem, call.choice, "LSODA", float(number(t)[-1]), values.T, {})
    traced = with_value(np.transpose(_columns(path, t, number(t))), values)
    return (traced, *(constants(one, name) for one in info)) if info else traced


RULES: list[tuple[Value, str, Value]] = [
    (scipy.integrate, "solve_ivp", _solve_ivp),
    (scipy.integrate, "odeint", _odeint),
]
__all__ = ["definition"]
