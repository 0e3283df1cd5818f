"""`scipy.optimize`: least squares and linear programs, as minima of known functions.

A sum of squares is minimised under bounds, so its derivative is that of any minimum (`effgrad.toolbox.minima`). The
covariance of `curve_fit` is computed from the Jacobian at the traced parameters, and has SciPy's values.
"""

import functools

import scipy.optimize
from scipy.optimize import Bounds
from scipy.sparse import issparse

from effgrad.api import grad, jacobian, jvp
from effgrad.arrays.reach import np
from effgrad.arrays.value import depends, evaluated
from effgrad.errors import NoRule, NotDifferentiable
from effgrad.functions.scipy.sparse_elements import total
from effgrad.functions.scipy.tables import traced_inside
from effgrad.toolbox.calls import Call, rule_of, solution_of
from effgrad.toolbox.constraints import Row, bounds_as_rows, plain_bounds
from effgrad.toolbox.frozen import Observed, as_number_or_array, as_vector, number, plain_tree
from effgrad.toolbox.minima import minimum, optimum
from effgrad.toolbox.solutions import Deferred, Solution, differentiated, with_value
from effgrad.vocabulary import Function, Value

RHO: dict[str, Function] = {
    "linear": lambda z: z,
    "soft_l1": lambda z: 2 * (np.sqrt(1 + z) - 1),
    "huber": lambda z: np.where(z <= 1, z, 2 * np.sqrt(np.where(z <= 1, 1.0, z)) - 1),
    "cauchy": lambda z: np.log1p(z),
    "arctan": lambda z: np.arctan(z),
}


class Loss:
    """The loss of `least_squares`, a function of squared residuals in units of `scale`.

    It is a name, or the user's function, which returns the loss with its first two derivatives.
    """

    def __init__(self, given: Value, scale: Value) -> None:
        self.rho: Function = (lambda z: as_number_or_array(given(z))[0]) if callable(given) else RHO[given]
        self.scale = scale

    def cost(self, residuals: Value) -> Value:
        return 0.5 * np.sum(self.scale**2 * self.rho((residuals / self.scale) ** 2))

    def weights(self, residuals: Value) -> Value:
        """Return the factors by which SciPy multiplies the squares of the Jacobian's rows, as Gauss and Newton do."""
        if self.rho is RHO["linear"]:
            return 1.0
        squares = (residuals / self.scale) ** 2
        first = grad(lambda squares: np.sum(self.rho(squares)))
        rates, changes = jvp(first, (squares,), (2 * squares,))
        return np.maximum(rates + changes, np.finfo(float).eps)


def _plain_loss(loss: Function) -> Function:
    """Return a user's loss on plain numbers, as the array that SciPy wants, also where it returns a list."""
    observed = Observed(loss)
    return lambda z: np.asarray(observed(z))


def _pairs(bounds: Value) -> list[Row]:
    if isinstance(bounds, Bounds):
        return bounds_as_rows(bounds, 0)
    lower, upper = bounds
    return [Row(lambda x: x, as_number_or_array(lower), as_number_or_array(upper))]


@rule_of(scipy.optimize.least_squares, "fun", "jac")
def _least_squares(call: Call) -> Value:
    keywords = call.get("kwargs") or {}
    fun = functools.partial(call.arguments["fun"], **keywords)
    jac = call.get("jac")
    call.observed["fun"] = Observed(fun, call.args)
    changed = {"kwargs": {}, "bounds": plain_bounds(call.get("bounds"))}
    if callable(jac):
        changed["jac"] = Observed(functools.partial(jac, **keywords), call.args)
    if callable(call.get("loss")):
        changed["loss"] = _plain_loss(call.get("loss"))
    result = call.run(**changed)
    loss = Loss(call.get("loss"), call.get("f_scale"))

    def residuals(x: Value) -> Value:
        return as_vector(fun(x, *call.args))

    def cost(x: Value) -> Value:
        return loss.cost(residuals(x))

    def last_at_solution(field: Value) -> Value:
        """Return a field after a call at SciPy's solution, for functions that store the unknowns of their last call."""
        residuals(fields["x"])
        return field

    x = minimum(cost, result.x, _pairs(call.get("bounds")), "scipy.optimize.least_squares")
    at = residuals(x)
    if not depends(x) and not depends(at):
        return result
    fields = {"x": with_value(x, result.x)}
    fields |= {"cost": with_value(cost(x), result.cost), "fun": with_value(at, result.fun)}
    # `optimality` is 0 for every exact solution, and `active_mask` is discrete: a number for each active bound.
    fields |= {"optimality": result.optimality, "active_mask": result.active_mask}
    fields["grad"] = Deferred(lambda: last_at_solution(with_value(grad(cost)(x), result.grad)))
    if call.get("loss") == "linear":
        fields["jac"] = Deferred(lambda: last_at_solution(jacobian(residuals)(x)))
    return differentiated(result, call.name, **fields)


@solution_of(scipy.optimize.leastsq, "func", "Dfun")
def _leastsq(call: Call, f: Function, result: Value) -> Value:
    def residuals(x: Value) -> Value:
        return as_vector(f(x))

    x = minimum(lambda x: 0.5 * np.sum(residuals(x) ** 2), result[0], [], "scipy.optimize.leastsq")
    if len(result) == 2 or result[1] is None:
        return with_value(x, result[0]), *result[1:]
    matrix = jacobian(residuals)(x)
    covariance = with_value(np.linalg.inv(matrix.T @ matrix), result[1])
    fields = {"fvec": with_value(residuals(x), result[2]["fvec"])}
    return with_value(x, result[0]), covariance, differentiated(result[2], call.name, **fields), *result[3:]


@rule_of(scipy.optimize.curve_fit)
def _curve_fit(call: Call) -> Value:
    f, x, y, sigma = call.arguments["f"], call.arguments["xdata"], call.arguments["ydata"], call.get("sigma")
    x = as_number_or_array(x)

    @functools.wraps(f)
    def observed(x: Value, *p: Value) -> Value:
        return plain_tree(f(x, *p))

    options = call.get("kwargs") or {}
    plain_options = {
        name: _plain_loss(value) if callable(value) else plain_tree(value) for name, value in options.items()
    }
    result = call.run(f=observed, bounds=plain_bounds(call.get("bounds")), kwargs=plain_options)
    popt, pcov = result[0], result[1]
    loss = Loss(options.get("loss", "linear"), options.get("f_scale", 1.0))
    x, y, sigma = _without_gaps(call, x, as_number_or_array(y), None if sigma is None else as_number_or_array(sigma))

    def residuals(p: Value) -> Value:
        difference = np.reshape(as_number_or_array(f(x, *[p[i] for i in range(len(popt))])) - y, (-1,))
        if sigma is None:
            return difference
        if np.ndim(number(sigma)) == 2:
            return np.linalg.solve(np.linalg.cholesky(sigma), difference)
        return difference / sigma

    def cost(p: Value) -> Value:
        return loss.cost(residuals(p))

    if not traced_inside((x, y, sigma, call.get("bounds"))) and not depends(residuals(popt)):
        return result
    p = minimum(cost, popt, _pairs(call.get("bounds")), "scipy.optimize.curve_fit")
    at, rest = residuals(p), result[2:]
    covariance = _covariance(call, jacobian(residuals)(p), loss.weights(at), cost(p), pcov)
    if rest:
        rest = (differentiated(result[2], call.name, fvec=with_value(at, result[2]["fvec"])), *result[3:])
    return (with_value(p, popt), covariance, *rest)


def _covariance(call: Call, matrix: Value, weights: Value, cost: Value, found: Value) -> Value:
    """Return the covariance of a fit, which SciPy has `found`, from the Jacobian of the residuals."""
    if not np.isfinite(found).all():
        raise NotDifferentiable(
            "scipy.optimize.curve_fit: the covariance is infinite, as the data do not determine some parameters"
        )
    covariance = np.linalg.inv((matrix.T * weights) @ matrix)
    if not call.get("absolute_sigma"):
        covariance = covariance * (2 * cost / (len(number(matrix)) - len(found)))
    return with_value(covariance, found)


def _without_gaps(call: Call, x: Value, y: Value, sigma: Value) -> tuple[Value, Value, Value]:
    """Return the data and their deviations without the points that `nan_policy="omit"` leaves out."""
    plain_x, plain_y = number(x), number(y)
    if call.get("nan_policy") != "omit" or call.get("check_finite"):
        return x, y, sigma
    kept = ~(np.isnan(plain_x).any(axis=tuple(range(np.ndim(plain_x) - 1))) | np.isnan(plain_y))
    if sigma is not None and np.shape(number(sigma))[:1] == kept.shape:  # before SciPy 1.15 it is given without them
        sigma = sigma[kept] if np.ndim(number(sigma)) == 1 else sigma[kept][:, kept]
    return x[..., kept], y[kept], sigma


@rule_of(scipy.optimize.nnls)
def _nnls(call: Call) -> Value:
    x0, norm0 = call.run()
    a, b = as_number_or_array(call.arguments["A"]), as_number_or_array(call.arguments["b"])
    if not traced_inside((a, b)):
        return x0, norm0
    x = minimum(lambda x: 0.5 * np.sum((a @ x - b) ** 2), x0, [Row(lambda x: x, 0.0, np.inf)], "scipy.optimize.nnls")
    return with_value(x, x0), with_value(np.linalg.norm(a @ x - b), norm0)


@rule_of(scipy.optimize.lsq_linear)
def _lsq_linear(call: Call) -> Value:
    result = call.run(bounds=plain_bounds(call.get("bounds")))
    a, b = _dense(call.arguments["A"]), as_number_or_array(call.arguments["b"])
    if not traced_inside((a, b)) and not traced_inside(call.get("bounds")):
        return result

    def cost(x: Value) -> Value:
        return 0.5 * np.sum((a @ x - b) ** 2)

    x = minimum(cost, result.x, _pairs(call.get("bounds")), "scipy.optimize.lsq_linear")
    fields = {"x": with_value(x, result.x)}
    fields |= {"cost": with_value(cost(x), result.cost), "fun": with_value(a @ x - b, result.fun)}
    return differentiated(result, call.name, **fields)


def _dense(matrix: Value) -> Value:
    """Return a matrix of a problem, which may be sparse, as a dense array with a column for each unknown."""
    return matrix.toarray() if issparse(matrix) else as_number_or_array(matrix)


def _listed(bounds: Value) -> list[Value]:
    """Return the bounds of `linprog` as a list; they may be one pair for all unknowns, by default (0, None)."""
    if bounds is None:
        return [(0, None)]
    pair = len(bounds) == 2 and not isinstance(bounds[0], tuple | list) and np.ndim(number(bounds[0])) == 0
    return [bounds] if pair else [*bounds]


def _part(name: str, value: Value) -> Value:
    """Return a part of a linear program as an array, or None if it is not given; `c` and `b` may be columns."""
    if value is None:
        return None
    return _dense(value) if name[0] == "A" else np.ravel(_dense(value))


@rule_of(scipy.optimize.linprog)
def _linprog(call: Call) -> Value:
    result = call.run(bounds=plain_bounds(call.get("bounds")))
    given = {name: call.get(name) for name in ("c", "A_ub", "b_ub", "A_eq", "b_eq", "bounds")}
    if not traced_inside(given):
        return result
    if result.x is None:
        raise NotDifferentiable(f"scipy.optimize.linprog has found no solution to differentiate: {result.message}")
    if call.get("integrality") is not None and np.any(call.get("integrality")):
        raise NoRule("scipy.optimize.linprog has a derivative rule for real unknowns: integers change in steps")
    c, a_ub, b_ub, a_eq, b_eq = (_part(name, given[name]) for name in ("c", "A_ub", "b_ub", "A_eq", "b_eq"))
    rows = bounds_as_rows(_listed(call.get("bounds")), len(result.x))
    rows += [Row(lambda x: a_ub @ x, -np.inf, b_ub)] if a_ub is not None else []
    rows += [Row(lambda x: a_eq @ x, b_eq, b_eq)] if a_eq is not None else []
    x, multipliers = optimum(lambda x: np.sum(c * x), np.asarray(result.x), rows, "scipy.optimize.linprog")
    fields = {"x": with_value(x, result.x), "fun": with_value(np.sum(c * x), result.fun)}
    if a_eq is not None:
        fields["con"] = with_value(b_eq - a_eq @ x, result.con)
        fields["eqlin"] = _marginals(result, "eqlin", multipliers.pop())
    if a_ub is not None:
        fields["slack"] = with_value(b_ub - a_ub @ x, result.slack)
        fields["ineqlin"] = _marginals(result, "ineqlin", multipliers.pop())
    # The multiplier of a bound is positive where the lower one holds the minimum, and negative where the upper does.
    for name, sign in (("lower", 1), ("upper", -1)):
        fields[name] = _marginals(result, name, np.where(sign * number(multipliers[0]) > 0, multipliers[0], 0.0))
    return differentiated(result, call.name, **fields)


def _marginals(result: Value, name: str, multipliers: Value) -> Solution:
    """Return the part of a result of `linprog` about some constraints, whose multipliers are the `marginals`."""
    return differentiated(result[name], f"linprog.{name}", marginals=with_value(multipliers, result[name].marginals))


def misfit(
    values: Value, xdata: Value, ydata: Value, sigma: Value = None, nan_policy: str | None = None,
    loss: Value = "linear", f_scale: float = 1.0, **_: Value,
) -> float:  # fmt: skip
    """Return the cost of a fit, by which an interrupted run chooses its best parameters."""
    y = np.asarray(ydata, float)
    deviations = np.ones_like(y) if sigma is None else np.sqrt(np.diag(sigma)) if np.ndim(sigma) == 2 else sigma
    if nan_policy == "omit":
        kept = ~(np.isnan(y) | np.isnan(np.atleast_2d(np.asarray(xdata, float))).any(axis=0))
        y, deviations = y[kept], np.broadcast_to(deviations, y.shape)[kept]
    rho = RHO.get(loss, RHO["linear"]) if isinstance(loss, str) else RHO["linear"]
    return float(np.sum(rho(np.square((values - y) / deviations / f_scale))))


def _linear_sum_assignment(cost_matrix: Value, maximize: bool = False) -> Value:
    """The rule of `linear_sum_assignment`: rows and columns change in steps, and each member of a batch has its own."""

    def assigned(cost: Value) -> Value:
        return np.stack(scipy.optimize.linear_sum_assignment(cost, maximize))

    return tuple(evaluated(assigned, as_number_or_array(cost_matrix)))


_linear_sum_assignment.constant = True  # type: ignore[attr-defined]


@rule_of(scipy.optimize.isotonic_regression, ragged=lambda _: ("weights", "blocks"))
def _isotonic_regression(call: Call) -> Value:
    """The rule of `isotonic_regression`: each block has the weighted mean of its values. Blocks change in steps."""
    y, weights, result = as_number_or_array(call.arguments["y"]), call.get("weights"), call.run()
    if not traced_inside((y, weights)):
        return result
    weights = np.ones(np.shape(y)) if weights is None else as_number_or_array(weights)
    blocks = np.repeat(np.arange(len(result.weights)), np.diff(result.blocks))
    sizes = total(weights, blocks, len(result.weights))
    means = total(weights * y, blocks, len(result.weights)) / sizes
    return Solution({**result, "x": with_value(means[blocks], result.x), "weights": with_value(sizes, result.weights)})


RULES: list[tuple[Value, str, Value]] = [
    (scipy.optimize, "isotonic_regression", _isotonic_regression),
    (scipy.optimize, "linear_sum_assignment", _linear_sum_assignment),
    (scipy.optimize, "least_squares", _least_squares),
    (scipy.optimize, "leastsq", _leastsq),
    (scipy.optimize, "curve_fit", _curve_fit),
    (scipy.optimize, "nnls", _nnls),
    (scipy.optimize, "lsq_linear", _lsq_linear),
    (scipy.optimize, "linprog", _linprog),
]
