"""Splines that SciPy fits: SciPy gives the knots and coefficients, and the problem gives them their derivatives."""

from effgrad.arrays.value import example, traced_inside
from effgrad.nested import map_leaves
from effgrad.primitives.given import run_outside, with_value
from effgrad.toolbox.callbacks import called_back
from effgrad.toolbox.frozen import number, underived
from effgrad.vocabulary import Function, Value


def fit(arguments: dict[str, Value], problem: Function, plain_fit: Function, name: str) -> Value:
    """Return the knots, the coefficients and the squared distance of a fit, whose `arguments` may be traced.

    `problem` makes the `Problem`. `plain_fit` runs SciPy, and returns knots, rows of coefficients, and the distance.
    """

    def run(converted: Function, kept: Function) -> Value:
        given = converted(arguments)
        t, c, distance = kept(lambda: run_outside(lambda: plain_fit(map_leaves(_number, given))))[0]
        if not traced_inside(given):
            return t, c, distance
        this = problem(given)
        knots, coefficients = this.spline(t, c)
        # SciPy's sum of squares is wrong in its last digits, or in all digits if it consists of rounding errors.
        at = None if distance is None else with_value(this.distance(knots, coefficients), distance)
        return knots, coefficients, at

    return called_back(run, name)


def _number(value: Value) -> Value:
    return number(value) if hasattr(value, "shape") else underived(value)


def examples(arguments: dict[str, Value]) -> dict[str, Value]:
    found: dict[str, Value] = map_leaves(example, arguments)
    return found
