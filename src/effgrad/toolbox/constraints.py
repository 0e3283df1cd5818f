"""Bounds and constraints of `scipy.optimize`, as users write them, as rows of one form, and without derivatives."""

from typing import NamedTuple

from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint

from effgrad.arrays.reach import np
from effgrad.toolbox.frozen import Observed, as_number_or_array, number, plain_tree
from effgrad.vocabulary import Function, Value


class Row(NamedTuple):
    """One or more constraints `lower <= function(x) <= upper`; the bounds broadcast to the function's shape."""

    function: Function
    lower: Value
    upper: Value

    def at(self, x: Value) -> tuple[Value, Value, Value]:
        """Return the values of the constraints at x, and their lower and upper bounds."""
        return as_number_or_array(self.function(x)), self.lower, self.upper


def bounds_as_rows(bounds: Value, n: int) -> list[Row]:
    if isinstance(bounds, Bounds):
        return [constraint_as_row(bounds)]
    if bounds is None or not len(bounds):
        return []
    pairs = [(-np.inf if low is None else low, np.inf if high is None else high) for low, high in bounds]
    pairs = pairs * n if len(pairs) == 1 else pairs
    lower, upper = (as_number_or_array([pair[side] for pair in pairs]) for side in (0, 1))
    return [Row(lambda x: x, lower, upper)]


def constraint_as_row(given: Value) -> Row:
    if isinstance(given, Bounds):
        return Row(lambda x: x, given.lb, given.ub)
    if isinstance(given, LinearConstraint):
        matrix = given.A
        return Row(lambda x: matrix @ x, given.lb, given.ub)
    if isinstance(given, NonlinearConstraint):
        return Row(given.fun, as_number_or_array(given.lb), as_number_or_array(given.ub))
    args = given.get("args", ())
    return Row(lambda x: given["fun"](x, *args), 0.0, 0.0 if given["type"] == "eq" else np.inf)


def plain_constraint(given: Value) -> Value:
    if isinstance(given, Bounds):
        return plain_bounds(given)
    if isinstance(given, LinearConstraint):
        return LinearConstraint(plain_tree(given.A), number(given.lb), number(given.ub), given.keep_feasible)
    if isinstance(given, NonlinearConstraint):
        fun, jac, hess = (Observed(f) if callable(f) else f for f in (given.fun, given.jac, given.hess))
        constraint: Function = NonlinearConstraint
        return constraint(
            fun, plain_tree(given.lb), plain_tree(given.ub), jac, hess, given.keep_feasible,
            given.finite_diff_rel_step, given.finite_diff_jac_sparsity,
        )  # fmt: skip
    args = given.get("args", ())
    return {key: Observed(f, args) if callable(f) else f for key, f in given.items() if key != "args"}


def plain_bounds(bounds: Value) -> Value:
    if isinstance(bounds, Bounds):
        return Bounds(number(bounds.lb), number(bounds.ub), bounds.keep_feasible)
    return plain_tree(bounds)


def listed_constraints(constraints: Value) -> list[Value]:
    single = isinstance(constraints, dict | Bounds | LinearConstraint | NonlinearConstraint)
    return [constraints] if single else [*(constraints or ())]
