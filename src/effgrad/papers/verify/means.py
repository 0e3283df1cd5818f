"""The ways to the derivative of a program, and how far rounding may take them apart.

`outcomes` runs one program at one point by all of them: `lam` and its translations, EFF under the handlers of chapter
8, every mode of effgrad on the program as Python, and the symbolic derivative, which is what they are compared with.
Over fractions all must be equal. Over floats a running error analysis of the last translation bounds what rounding
does to each result (Wilkinson's: every number carries a bound of its error), and any mean may be off by a multiple of
that.
"""

import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import effgrad
from effgrad.arrays.value import owned_by
from effgrad.fast import REVERSE
from effgrad.modes.forward import Forward
from effgrad.modes.second_order import SecondOrder
from effgrad.modes.taylor import Taylor
from effgrad.papers import expressions
from effgrad.papers.eff import from_lam
from effgrad.papers.inefficient import Trees, Vectors
from effgrad.papers.lam import Interpreter, typeof
from effgrad.papers.lam.terms import Arrow, Term, dimension
from effgrad.papers.lam.translations import (
    forward,
    forward_derivative,
    reverse,
    reverse1,
    reverse2,
    reverse_derivative,
)
from effgrad.papers.syntax import TooManySteps, Value
from effgrad.papers.verify.python import compiled, exact, floating
from effgrad.primitives import cotangents

STEPS = 20_000  # for the means that lose sharing, whose cost may be exponential
SLACK = 1000.0  # multiples of the error bound
SMALL = 1e-12


class Skip(Exception):
    """A program that says nothing: its numbers overflow, or rounding decides a branch."""


@dataclass(frozen=True)
class Case:
    """A program R^n -> R, where, and in which direction; exact if over fractions."""

    program: Term
    point: list[Value]
    direction: list[Value]
    exact: bool

    @property
    def reals(self) -> Callable[[Value], Value]:
        return Fraction if self.exact else float

    @cached_property
    def python(self) -> Callable[[Value], Value]:
        """The program as Python."""
        return compiled(self.program, exact if self.exact else floating)


def nested(items: list[Value]) -> Value:
    """R^n as pairs nested to the right."""
    return items[0] if len(items) == 1 else (items[0], nested(items[1:]))


def flat(pairs: Value, n: int) -> list[Value]:
    return [pairs] if n == 1 else [pairs[0], *flat(pairs[1], n - 1)]


def arity(program: Term) -> int:
    """The n of a program R^n -> R."""
    type_ = typeof(program)
    assert isinstance(type_, Arrow)
    n = dimension(type_.argument)
    assert n is not None
    return n


# What to compare with


@dataclass(frozen=True)
class Expected:
    """The value, the gradient, the first and second derivative along the direction, and the bounds of their errors."""

    results: dict[str, list[Value]]
    bounds: dict[str, list[float]]

    def wrong(self, quantity: str, found: list[Value]) -> bool:
        """Whether a result is not the expected one."""
        bounds = self.bounds[quantity]
        return not all(abs(x - y) <= b for x, y, b in zip(self.results[quantity], found, bounds, strict=True))

    def distance(self, quantity: str, found: list[Value]) -> float:
        """How far a result over floats is from the expected one, in multiples of what is tolerated."""
        bounds = self.bounds[quantity]
        return max(float(abs(x - y)) / b for x, y, b in zip(self.results[quantity], found, bounds, strict=True))


def expected(case: Case) -> Expected:
    """By the symbolic derivative; the bounds by running error analysis."""
    n = len(case.point)
    arguments = [expressions.Argument(i, x) for i, x in enumerate(case.point, 1)]

    def literal(number: Value) -> Value:
        return expressions.Number(case.reals(number))

    value = Interpreter(literal).run(case.program, nested(arguments))
    if not isinstance(value, expressions.Expression):
        value = expressions.Number(value)
    partials = [expressions.partial(value, i) for i in range(1, n + 1)]
    slope = sum((p * v for p, v in zip(partials, case.direction, strict=True)), expressions.Number(0))
    curvature = sum((expressions.partial(slope, i) * v for i, v in enumerate(case.direction, 1)), expressions.Number(0))
    quantities = {"value": [value], "gradient": partials, "slope": [slope], "curvature": [curvature]}

    def at(point: list[Value], number: Callable[[Value], Value]) -> dict[str, list[Value]]:
        return {name: [expressions.value(e, point, number) for e in row] for name, row in quantities.items()}

    results = at(case.point, case.reals)
    if case.exact:
        return Expected(results, {name: [0.0] * len(row) for name, row in results.items()})
    _check_branches(case)
    rounded = at([Rounded(x, 0.0) for x in case.point], lambda x: Rounded(float(x), 0.0))
    bounds = {name: [SLACK * _error(x) + SMALL * (1 + abs(_value(x))) for x in row] for name, row in rounded.items()}
    if not all(math.isfinite(bound) and bound < 1e100 for row in bounds.values() for bound in row):
        raise Skip
    return Expected(results, bounds)


def _check_branches(case: Case) -> None:
    """Run the program with error bounds, which refuse to compare what rounding may have swapped."""
    point = nested([Rounded(x, 0.0) for x in case.point])
    Interpreter(lambda x: Rounded(float(x), 0.0)).run(case.program, point)


_UNIT, _LEAST = 2.0**-53, 5e-324


@dataclass(frozen=True, slots=True)
class Rounded(expressions.Operators):
    """A float and a bound of the error that rounding has made in it so far, to first order."""

    value: float
    error: float

    def call(self, name: str, *arguments: Value) -> "Rounded":
        function, slopes_at = _ROUNDED[name]
        values = list(map(_value, arguments))
        value, slopes = function(*values), slopes_at(*values)
        propagated = sum(abs(slope) * _error(x) for slope, x in zip(slopes, arguments, strict=True))
        return Rounded(value, propagated + 2 * _UNIT * abs(value) + _LEAST)

    def __neg__(self) -> "Rounded":
        return Rounded(-self.value, self.error)

    def __lt__(self, other: Value) -> bool:
        if abs(self.value - _value(other)) <= SLACK * (self.error + _error(other)):
            # Two results of the same operations are equal by every mean; others may be by chance.
            if self.error + _error(other) > 0:
                raise Skip
        return self.value < _value(other)


def _value(x: Value) -> float:
    return x.value if isinstance(x, Rounded) else float(x)


def _error(x: Value) -> float:
    return x.error if isinstance(x, Rounded) else 0.0


# Functions of floats, and how much they change with each argument.
_ROUNDED: dict[str, tuple[Callable[..., float], Callable[..., tuple[float, ...]]]] = {
    "+": (operator.add, lambda x, y: (1, 1)),
    "-": (operator.sub, lambda x, y: (1, 1)),
    "*": (operator.mul, lambda x, y: (y, x)),
    "/": (operator.truediv, lambda x, y: (1 / y, x / y / y)),
    "sin": (math.sin, lambda x: (math.cos(x),)),
    "cos": (math.cos, lambda x: (math.sin(x),)),
    "exp": (math.exp, lambda x: (math.exp(x),)),
    "tanh": (math.tanh, lambda x: (1 - math.tanh(x) ** 2,)),
    "log": (math.log, lambda x: (1 / x,)),
    "sqrt": (math.sqrt, lambda x: (0.5 / math.sqrt(x),)),
    "atan2": (math.atan2, lambda y, x: (x / (x * x + y * y), y / (x * x + y * y))),
}


# The means, each the name of a quantity and how it is found


Mean = tuple[str, Callable[[Case], list[Value]]]


def _lam(case: Case, program: Term, *arguments: Value, steps: int = 10**6) -> Value:
    return Interpreter(case.reals, steps).run(program, *arguments)


def _translated(wrapper: Callable[[Term], Term], steps: int = 10**6) -> Callable[[Case], list[Value]]:
    def run(case: Case) -> list[Value]:
        found = _lam(case, wrapper(case.program), (nested(case.point), case.reals(1)), steps=steps)
        return flat(found, len(case.point))

    return run


def _tangent(wrapper: Callable[[Term], Term]) -> Callable[[Case], list[Value]]:
    return lambda case: [_lam(case, wrapper(case.program), (nested(case.point), nested(case.direction)))]


def _eff(mode: str) -> Callable[[Case], list[Value]]:
    def run(case: Case) -> list[Value]:
        found = from_lam.run(case.program, mode, case.point, case.direction, case.reals, STEPS)
        return [found] if mode == "eval" else [found[1]]

    return run


def _reverse(mode: str) -> Callable[[Case], list[Value]]:
    """A reverse mode, used as `grad` uses it, but on any numbers."""

    def run(case: Case) -> list[Value]:
        with REVERSE[mode]() as activation:
            inputs = [activation.variable(x) for x in case.point]
            shadows = [x.shadow for x in inputs]
            output = case.python(nested(inputs))
            if owned_by(output, activation):
                activation.seed(output, case.reals(1))
        found = [cotangents.dense(c) for c in activation.cotangents(shadows)]
        return [case.reals(0) if c is None else c for c in found]

    return run


def _along(handler: Callable[[], Value], inputs: Callable[[Value, Value, Value], Value],
           result: Callable[[Value], Value]) -> Callable[[Case], list[Value]]:  # fmt: skip
    """A forward mode: `inputs` makes a variable, `result` takes the derivative out of an output's shadow."""

    def run(case: Case) -> list[Value]:
        with handler() as activation:
            pairs = zip(case.point, case.direction, strict=True)
            output = case.python(nested([inputs(activation, x, dx) for x, dx in pairs]))
            owned = owned_by(output, activation)
            found = result(output.shadow) if owned and output.shadow is not None else None
        return [case.reals(0) if found is None else found]

    return run


def _series(activation: Value, x: Value, dx: Value) -> Value:
    return activation.variable(x, [dx, 0 * x])


def _dual(activation: Value, x: Value, dx: Value) -> Value:
    return activation.variable(x, dx)


def _public(derivative: Callable[..., Value]) -> Callable[[Case], list[Value]]:
    """A function of the public interface, at a point and along a direction."""

    def run(case: Case) -> list[Value]:
        found = derivative(case.python, nested(case.point), nested(case.direction))
        return flat(found, len(case.point)) if isinstance(found, tuple) else [found]

    return run


def _vectors(case: Case) -> list[Value]:
    return _counted(Vectors(), case)


def _trees(case: Case) -> list[Value]:
    # It has no limit of its own; figure 8, which it is, has one.
    MEANS["lam reverse, figure 8"][1](case)
    return _counted(Trees(), case)


def _counted(mode: Value, case: Case) -> list[Value]:
    gradient: list[Value] = mode.gradient(lambda *inputs: case.python(nested(list(inputs))), case.point)[0]
    return gradient


def _fused(case: Case) -> list[Value]:
    """The gradient where each marked part is fused: differentiated where it is called."""
    f = compiled(case.program, floating, lambda part, argument: effgrad.fuse(part)(argument))
    return flat(effgrad.grad(f)(nested(case.point)), len(case.point))


def _line(f: Callable[[Value], Value], x: Value, v: Value) -> Callable[[Value], Value]:
    def moved(x: Value, v: Value, t: Value) -> Value:
        return (x[0] + t * v[0], moved(x[1], v[1], t)) if isinstance(x, tuple) else x + t * v

    return lambda t: f(moved(x, v, t))


MEANS: dict[str, Mean] = {
    "lam": ("value", lambda case: [_lam(case, case.program, nested(case.point))]),
    "lam forward, figure 4": ("slope", _tangent(forward)),
    "lam forward, figure 16": ("slope", _tangent(forward_derivative)),
    "lam reverse, figure 6": ("gradient", _translated(reverse1)),
    "lam reverse, figure 8": ("gradient", _translated(reverse2, STEPS)),
    "lam reverse, figure 10": ("gradient", _translated(reverse)),
    "lam reverse, figure 16": ("gradient", _translated(reverse_derivative)),
    "EFF evaluation": ("value", _eff("eval")),
    "EFF forward": ("slope", _eff("forward")),
    "EFF continuation reverse": ("slope", _eff("reverse")),
    "Python": ("value", lambda case: [case.python(nested(case.point))]),
    "Python forward": ("slope", _along(Forward, _dual, lambda shadow: shadow)),
    **{f"Python {mode}": ("gradient", _reverse(mode)) for mode in REVERSE},
    "Python second_order": ("slope", _along(SecondOrder, _dual, lambda shadow: shadow[0])),
    "Python second_order, twice": ("curvature", _along(SecondOrder, _dual, lambda shadow: shadow[1])),
    "Python taylor": ("slope", _along(lambda: Taylor(2), _series, lambda shadow: shadow[1])),
    "Python taylor, twice": ("curvature", _along(lambda: Taylor(2), _series, lambda shadow: 2 * shadow[2])),
}
# These make arrays or floats, and are not for fractions.
PUBLIC: dict[str, Mean] = {
    "Python vectors": ("gradient", _vectors),
    "Python trees": ("gradient", _trees),
    "grad with fused parts": ("gradient", _fused),
    "grad": ("gradient", _public(lambda f, x, v: effgrad.grad(f)(x))),
    "jvp": ("slope", _public(lambda f, x, v: effgrad.jvp(f, (x,), (v,))[1])),
    "edge pushing": ("curvature", _public(lambda f, x, v: effgrad.hessian(_line(f, x, v), mode="hessian")(0.0))),
    "reverse over forward": ("curvature", _public(lambda f, x, v: effgrad.grad(
        lambda t: effgrad.jvp(_line(f, x, v), (t,), (1.0,))[1])(0.0))),
    "forward over reverse": ("curvature", _public(lambda f, x, v: effgrad.jvp(
        effgrad.grad(_line(f, x, v)), (0.0,), (1.0,))[1])),
}  # fmt: skip


def outcomes(case: Case, means: dict[str, Mean]) -> Iterator[tuple[str, str, list[Value] | Exception | None]]:
    """For each mean its name, the quantity, and what it found: None where it took too many steps."""
    for name, (quantity, find) in means.items():
        try:
            yield name, quantity, find(case)
        except TooManySteps:
            yield name, quantity, None
        except Exception as error:
            yield name, quantity, error
