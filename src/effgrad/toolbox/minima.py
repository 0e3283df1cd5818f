"""`scipy.optimize`: the optimisers, with the derivative of `effgrad.toolbox.implicit`.

SciPy finds the minimum on plain numbers. There the gradient of the Lagrangian f(x) - l (c(x) - b) vanishes, with one
multiplier l for each active constraint. These are the equations of Karush, Kuhn and Tucker. Their root is a function of
the values that the functions, bounds and constraints depend on. Bounds are constraints on x itself, so one list of rows
describes all constraints.
Fiacco, Introduction to sensitivity and stability analysis in nonlinear programming (1983); Nocedal and Wright,
Numerical Optimization (2006), chapters 12 and 18.
"""

from collections.abc import Iterator
from typing import NamedTuple

import scipy.optimize
from scipy.optimize import _cobyla_py, _slsqp_py

from effgrad.api import grad, value_and_grad
from effgrad.arrays.reach import np
from effgrad.arrays.value import depends, traced_inside
from effgrad.errors import NotDifferentiable
from effgrad.functions.scipy.tables import require
from effgrad.toolbox.calls import Call, rule_of
from effgrad.toolbox.constraints import (
    Row,
    bounds_as_rows,
    constraint_as_row,
    listed_constraints,
    plain_bounds,
    plain_constraint,
)  # fmt: skip
from effgrad.toolbox.frozen import Observed, as_number_or_array, as_vector, frozen, jacobian_at, number, plain_tree
from effgrad.toolbox.implicit import polish, stationary
from effgrad.toolbox.solutions import Deferred, differentiated, with_value
from effgrad.vocabulary import Function, Value

# A constraint this near to its bound, relative to the bound's size, may be active. The distances are tried in order,
# until one yields a minimum.
NEARLY = (1e-4, 1e-3, 1e-2)
# If a multiplier is this small, relative to the gradient's size, the constraint does not hold the minimum.
WEAK = 1e-6


class Active(NamedTuple):
    """The constraints of a row that hold the minimum: their indices, and the bounds that they attain."""

    function: Function
    places: Value
    bound: Value


def minimum(f: Function, x: Value, rows: list[Row], name: str) -> Value:
    """Return the exact minimum near `x` as a function of the traced values that `f` and the rows depend on.

    It is `x` itself if they depend on no traced value. Other parts of a result, such as the minimal value, are to be
    differentiated at the exact minimum: their derivatives at `x` have errors of the size of the distance.
    """
    if not any(map(depends, (as_number_or_array(f(x)), *(part for row in rows for part in row.at(x))))):
        return x
    return optimum(f, x, rows, name)[0]


def optimum(f: Function, x: Value, rows: list[Row], name: str) -> tuple[Value, list[Value]]:
    """Return the minimum, and a vector of multipliers for each row.

    A multiplier is the derivative of the minimal value by the constraint's bound, and 0 if the constraint is inactive.
    """
    value, gradient = value_and_grad(frozen(lambda x: _number(f(x))))(x)
    if not np.isfinite(value):
        raise NotDifferentiable(f"{name}: the function is not finite at the minimum, {x[:4]}")
    for row in rows:
        _check_met(row, x, name)
    failed = None
    for nearly in NEARLY:
        active, multipliers = _active(gradient, x, rows, nearly, name)
        try:
            moved = _followed(f, x, active, multipliers, name)
        except NotDifferentiable as error:  # an interior-point method may have kept away from an active constraint
            failed = failed or error
        else:
            return moved[: len(x)], [_multipliers(row, x, active, moved[len(x) :]) for row in rows]
    assert failed is not None
    raise failed


def _check_met(row: Row, x: Value, name: str) -> None:
    """Refuse a point at which a constraint is clearly violated."""
    value, *bounds = (np.asarray(plain_tree(part), float) for part in row.at(x))
    lower, upper = (np.where(np.isfinite(bound), bound, value) for bound in bounds)
    excess = np.maximum(lower - value, value - upper)
    if np.any(excess > NEARLY[-1] * (1 + np.maximum(np.abs(lower), np.abs(upper)))):
        raise NotDifferentiable(
            f"{name} ends at a point, {x[:4]}, that violates a constraint by {np.max(excess):.2g}: the constraints may "
            "contradict each other, or the solver needs another start"
        )


def _followed(f: Function, x: Value, active: list[Active], multipliers: Value, name: str) -> Value:
    """Return the minimum under the active constraints, as a function of the values that these and `f` depend on."""
    n = len(x)

    def lagrangian(z: Value) -> Value:
        x = z[:n]
        total, start = _number(f(x)), n
        for row in active:
            stop = start + len(row.places)
            total = total - np.sum(z[start:stop] * (_at(row.function(x), row.places) - row.bound))
            start = stop
        return total

    z = np.concatenate([x, multipliers])
    moved = stationary(lagrangian, z, name)
    if moved is z:  # no traced value is in these equations, so it is still unchecked whether x solves them
        polish(grad(frozen(lagrangian)), z, name)
    return moved


def _multipliers(row: Row, x: Value, active: list[Active], multipliers: Value) -> Value:
    """Return the multiplier of each constraint of a row."""
    positions, start = np.full(np.size(number(row.at(x)[0])), -1), 0
    for one in active:
        stop = start + len(one.places)
        if one.function is row.function:
            positions[one.places] = np.arange(start, stop)
        start = stop
    return np.append(multipliers, 0.0)[positions]


def _number(value: Value) -> Value:
    """Return a function's value as a number; SciPy accepts an array of one number too."""
    listed, value = type(value) in (list, tuple), as_number_or_array(value)
    return np.reshape(value, ()) if listed or np.ndim(number(value)) else value


def _at(value: Value, places: Value) -> Value:
    return as_vector(value)[places]


def _active(gradient: Value, x: Value, rows: list[Row], nearly: float, name: str) -> tuple[list[Active], Value]:
    """Return the active constraints and their multipliers, by which their gradients sum to the gradient of f."""
    near = [candidate for row in rows for candidate in _near(row, x, nearly)]
    if not near:
        return [], np.zeros(0)
    matrix = np.concatenate([jacobian_at(frozen(_raveled(one.function)), x)[one.places] for one in near])
    signs, slack = (np.concatenate(parts) for parts in zip(*((one.signs, one.slack) for one in near), strict=True))
    kept, multipliers = _holding(gradient, matrix, signs, slack, name)
    active, start = [], 0
    for one in near:
        mine = kept[start : start + len(one.places)]
        start += len(one.places)
        bound = one.bound[mine] if np.ndim(number(one.bound)) else one.bound
        active.append(Active(one.function, one.places[mine], bound))
    return active, multipliers


def _raveled(f: Function) -> Function:
    return lambda x: as_vector(f(x))


def _holding(gradient: Value, matrix: Value, signs: Value, slack: Value, name: str) -> tuple[Value, Value]:
    """Return which constraints hold the minimum, as truth values, and their multipliers.

    A multiplier is positive at a lower bound, negative at an upper bound, and of either sign for an equality.
    """
    kept = np.ones(len(signs), bool)
    weak = WEAK * (1 + float(np.linalg.norm(gradient)))
    while True:
        multipliers = np.zeros(len(signs))
        multipliers[kept] = np.linalg.lstsq(matrix[kept].T, gradient, rcond=None)[0]
        idle = np.flatnonzero(kept & (signs != 0) & (signs * multipliers <= weak))
        if not len(idle):
            return kept, multipliers[kept]
        worst = idle[np.argmax(slack[idle])]
        if slack[worst] <= 1e-9:
            raise NotDifferentiable(
                f"{name}: a constraint or bound is met exactly and does not hold the minimum (its multiplier is "
                f"{multipliers[worst]:.1e}), so the solution is not unique, or its derivatives to both sides differ"
            )
        kept[worst] = False


class Near(NamedTuple):
    """The constraints of a row that are near a bound: their indices, and the signs that their multipliers must have.

    A sign is 0 for an equality. `slack` are the distances to the bound.
    """

    function: Function
    places: Value
    bound: Value
    signs: Value
    slack: Value


def _near(row: Row, x: Value, nearly: float) -> Iterator[Near]:
    """Yield the constraints of a row near their lower bounds, with all equalities, and those near the upper ones."""
    values = plain_tree(as_vector(row.function(x)))
    lower, upper = np.broadcast_to(number(row.lower), values.shape), np.broadcast_to(number(row.upper), values.shape)
    equal = lower == upper
    for bound, limits, sign in ((row.lower, lower, 1.0), (row.upper, upper, -1.0)):
        distance = np.where(np.isfinite(limits), np.abs(values - np.where(np.isfinite(limits), limits, 0.0)), np.inf)
        chosen = distance <= nearly * (1 + np.abs(np.where(np.isfinite(limits), limits, 0.0)))
        places = np.flatnonzero((chosen | equal) if sign > 0 else (chosen & ~equal))
        if len(places):
            spread = bound if np.ndim(number(bound)) == 0 else np.broadcast_to(bound, values.shape)[places]
            yield Near(row.function, places, spread, np.where(equal[places], 0.0, sign), distance[places])


# The optimisers.


def _result(call: Call, result: Value, f: Function, rows: list[Row]) -> Value:
    """Return a result with the traced fields of a minimum: `x`, `fun` and `jac`."""
    single = np.ndim(result.x) == 0
    x0 = np.atleast_1d(np.asarray(result.x, float))

    def of_vector(x: Value) -> Value:
        return f(x[0]) if single else f(x)

    x = minimum(of_vector, x0, rows, f"scipy.optimize.{call.name}")
    value = _number(of_vector(x))
    if not depends(x) and not depends(value):
        return result
    fields = {"x": with_value(x[0] if single else x, result.x), "fun": with_value(value, result.fun)}
    name = "grad" if "grad" in result else "jac"  # `jac` of trust-constr are the Jacobians of the constraints
    fields[name] = Deferred(lambda: with_value(grad(lambda x: _number(f(x)))(x), result[name]))
    return differentiated(result, call.name, **fields)


def _minimizer(original: Function, *functions: str) -> Value:
    """Return the rule of an optimiser, or of a function of SciPy's behind it, which the old forms call.

    A global optimiser may have parts of the problem in `minimizer_kwargs`, the arguments of its local `minimize`. Its
    derivative is that of the minimum that it found.
    """

    def rule(call: Call) -> Value:
        call.name = call.name.replace("_minimize_", "fmin_")
        local = dict(call.get("minimizer_kwargs") or {})
        require(not np.any(call.get("integrality")), f"optimize.{call.name}", "real unknowns: integers change in steps")
        if "args" in local:
            call.apply(local.pop("args"))
        changed = {"bounds": plain_bounds(call.get("bounds"))}
        if constraints := listed_constraints(call.get("constraints")):
            changed["constraints"] = [*map(plain_constraint, constraints)]
        if local:
            changed["minimizer_kwargs"] = {name: _plain_option(call, name, value) for name, value in local.items()}
        result = call.run(**changed)
        f, jac = call.function(functions[0]), call.get("jac", local.get("jac"))
        bounds = local.get("bounds") if call.get("bounds") is None else call.get("bounds")
        rows = bounds_as_rows(bounds, np.size(result.x))
        rows += map(constraint_as_row, constraints or listed_constraints(local.get("constraints")))
        return _result(call, result, (lambda x: f(x)[0]) if jac is True else f, rows)

    return rule_of(original, *functions)(rule)


def _plain_option(call: Call, name: str, value: Value) -> Value:
    """Return an argument of the local `minimize` of a global optimiser with plain numbers."""
    if name == "constraints":
        return [*map(plain_constraint, listed_constraints(value))]
    return plain_bounds(value) if name == "bounds" else Observed(value, call.args) if callable(value) else value


@rule_of(scipy.optimize.minimize_scalar, "fun")
def _minimize_scalar(call: Call) -> Value:
    bounds = call.get("bounds")
    return _result(call, call.run(), call.function("fun"), bounds_as_rows(None if bounds is None else [bounds], 1))


def _legacy(original: Function, *functions: str) -> Value:
    """Return the rule of an old function, which returns the minimum alone, or a tuple of the minimum, its value, ..."""

    def rule(call: Call) -> Value:
        bounds = [(call.get("x1"), call.get("x2"))] if call.get("x2") is not None else call.get("bounds")
        result = call.run()
        if not call.traced and not traced_inside(bounds):
            return result
        tupled = isinstance(result, tuple)
        found = np.asarray(result[0] if tupled else result, float)
        f = _valued(call, functions[0])
        x = minimum(
            (lambda x: f(x[0])) if found.ndim == 0 else f, np.atleast_1d(found), bounds_as_rows(bounds, found.size),
            f"scipy.optimize.{call.name}",
        )  # fmt: skip
        x = x[0] if found.ndim == 0 else x
        if not tupled:
            return with_value(x, found)
        fields = _constants(call, result[1:])
        if not isinstance(fields[0], int):  # the value; fmin_tnc returns the number of evaluations instead
            fields[0] = with_value(_number(f(x)), fields[0])
        return with_value(x, found), *fields

    return rule_of(original, *functions)(rule)


@rule_of(scipy.optimize.brute, "func")
def _brute(call: Call) -> Value:
    """The rule of `brute`: the best point of its grid is a constant, and the minimum that `finish` finds is not."""
    result = plain_tree(call.run())
    if not call.traced and not traced_inside(call.get("ranges")):
        return result
    f, (found, *fields) = call.function("func"), result if call.get("full_output") else (result,)
    x = found
    if call.get("finish") is not None:
        x = minimum(f, np.atleast_1d(found), [], "scipy.optimize.brute")
    else:
        require(not traced_inside(call.get("ranges")), "optimize.brute", "constant ranges, if finish is None")
    if not fields:
        return with_value(x, found)
    _, grid, values = fields
    points = np.reshape(np.asarray(grid), (-1, values.size)).T
    each = np.reshape(np.stack([_number(f(point)) for point in points]), values.shape)
    value = with_value(_number(f(np.atleast_1d(x))), fields[0])
    return with_value(x, found), value, grid, with_value(each, values)


def _valued(call: Call, name: str) -> Function:
    """Return the function that is minimised, without the gradient that the user's function may also return."""
    f = call.function(name)
    pair = "approx_grad" in call.signature.parameters and call.get("fprime") is None and not call.get("approx_grad")
    return (lambda x: f(x)[0]) if pair else f


def _constants(call: Call, parts: Value) -> list[Value]:
    """Return the remaining parts of a result; the numbers in a dictionary are refused when they are read."""
    return [differentiated(part, call.name) if isinstance(part, dict) else part for part in parts]


RULES: list[tuple[Value, str, Value]] = [
    (scipy.optimize, "minimize", _minimizer(scipy.optimize.minimize, "fun", "jac", "hess", "hessp")),
    *(
        (module, name, _minimizer(getattr(module, name), *functions))
        for module, name, *functions in (
            (_slsqp_py, "_minimize_slsqp", "func", "jac"), (_cobyla_py, "_minimize_cobyla", "fun"),
        )
    ),
    (scipy.optimize, "minimize_scalar", _minimize_scalar),
    (scipy.optimize, "brute", _brute),
    *(
        (scipy.optimize, name, _minimizer(getattr(scipy.optimize, name), "func"))
        for name in ("basinhopping", "differential_evolution", "dual_annealing", "shgo", "direct")
    ),
    *(
        (scipy.optimize, name, _legacy(getattr(scipy.optimize, name), *functions))
        for name, *functions in (
            ("fminbound", "func"), ("fmin_l_bfgs_b", "func", "fprime"), ("fmin_tnc", "func", "fprime"),
            ("fmin", "func"), ("fmin_powell", "func"), ("brent", "func"), ("golden", "func"),
            ("fmin_bfgs", "f", "fprime"), ("fmin_cg", "f", "fprime"), ("fmin_ncg", "f", "fprime", "fhess_p", "fhess"),
        )
    ),
]  # fmt: skip
