"""The methods ("means") that compute the derivative of a program, and bounds for their differences by rounding.

`outcomes` runs one program at one point by all methods: `lam` and its translations, EFF under the handlers of chapter
8, and every mode of effgrad on the program as Python. Their results are compared with the symbolic derivative,
`expected`. Over fractions all must be equal. Over floats Wilkinson's running error analysis bounds the rounding error
of the symbolic derivative: every number carries a bound of its error. The result of a method may differ by a multiple
of that.
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

STEPS = 20_000  # the limit for the methods that lose sharing, whose cost may be exponential
SLACK = 1000.0  # the tolerance, as a multiple of the error bound
SMALL = 1e-12


class Skip(Exception):
    """A program cannot be compared: its numbers overflow, or rounding decides a branch."""


@dataclass(frozen=True)
class Case:
    """A program R^n -> R, a point and a direction. It runs over fractions if `exact`, otherwise over floats."""

    program: Term
    point: list[Value]
    direction: list[Value]
    exact: bool

    @property
    def reals(self) -> Callable[[Value], Value]:
        return Fraction if self.exact else float

    @cached_property
    def python(self) -> Callable[[Value], Value]:
        """The program as a Python function."""
        return compiled(self.program, exact if self.exact else floating)


def nested(items: list[Value]) -> Value:
    """Return n items as a value of R^n: pairs nested to the right."""
    return items[0] if len(items) == 1 else (items[0], nested(items[1:]))


def flat(pairs: Value, n: int) -> list[Value]:
    return [pairs] if n == 1 else [pairs[0], *flat(pairs[1], n - 1)]


def arity(program: Term) -> int:
    """The number n of inputs of a program R^n -> R."""
    type_ = typeof(program)
    assert isinstance(type_, Arrow)
    n = dimension(type_.argument)
    assert n is not None
    return n


# What to compare with


@dataclass(frozen=True)
class Expected:
    """The expected results, by quantity, and the bounds of their errors.

    The quantities are the value, the gradient, and the first and second derivatives along the direction: "slope" and
    "curvature".
    """

    results: dict[str, list[Value]]
    bounds: dict[str, list[float]]

    def wrong(self, quantity: str, found: list[Value]) -> bool:
        """Whether a result differs from the expected one by more than its bound."""
        bounds = self.bounds[quantity]
        return not all(abs(x - y) <= b for x, y, b in zip(self.results[quantity], found, bounds, strict=True))

    def distance(self, quantity: str, found: list[Value]) -> float:
        """The difference between a result over floats and the expected one, as a multiple of the tolerance."""
        bounds = self.bounds[quantity]
        return max(float(abs(x - y)) / b for x, y, b in zip(self.results[quantity], found, bounds, strict=True))


def expected(case: Case) -> Expected:
    """Compute the expected results by symbolic derivatives, and their bounds by running error analysis."""
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
    """Run the program with error bounds; raise `Skip` if rounding may decide a comparison."""
    point = nested([Rounded(x, 0.0) for x in case.point])
    Interpreter(lambda x: Rounded(float(x), 0.0)).run(case.program, point)


_UNIT, _LEAST = 2.0**-53, 5e-324


@dataclass(frozen=True, slots=True)
class Rounded(expressions.Operators):
    """A float and a bound of its accumulated rounding error, to first order."""

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
            # Inputs and literals have no error, and every mean compares them alike. The order of two computed numbers
            # this close may depend on the mean.
            if self.error + _error(other) > 0:
                raise Skip
        return self.value < _value(other)


def _value(x: Value) -> float:
    return x.value if isinstance(x, Rounded) else float(x)


def _error(x: Value) -> float:
    return x.error if isinstance(x, Rounded) else 0.0


# Each function on floats, and its partials up to their signs.
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


# The methods: each is the name of a quantity, and a function that computes it


Method = tuple[str, Callable[[Case], list[Value]]]


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
    """The gradient by a reverse mode, which is used as `grad` uses it, but on any type of numbers."""

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
    """A derivative along the direction by a forward mode.

    `inputs` makes a variable, and `result` extracts the derivative from an output's shadow.
    """

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
    """The result of a function of the public interface, at the point and along the direction."""

    def run(case: Case) -> list[Value]:
        found = derivative(case.python, nested(case.point), nested(case.direction))
        return flat(found, len(case.point)) if isinstance(found, tuple) else [found]

    return run


def _vectors(case: Case) -> list[Value]:
    return _counted(Vectors(), case)


def _trees(case: Case) -> list[Value]:
    # `Trees` has no limit of steps. Figure 8 is the same method with a limit, so it runs first and may raise.
    METHODS["lam reverse, figure 8"][1](case)
    return _counted(Trees(), case)


def _counted(mode: Value, case: Case) -> list[Value]:
    gradient: list[Value] = mode.gradient(lambda *inputs: case.python(nested(list(inputs))), case.point)[0]
    return gradient


def _fused(case: Case) -> list[Value]:
    """The gradient of the program with each marked part fused."""
    f = compiled(case.program, floating, lambda part, argument: effgrad.fuse(part)(argument))
    return flat(effgrad.grad(f)(nested(case.point)), len(case.point))


def _line(f: Callable[[Value], Value], x: Value, v: Value) -> Callable[[Value], Value]:
    def moved(x: Value, v: Value, t: Value) -> Value:
        return (x[0] + t * v[0], moved(x[1], v[1], t)) if isinstance(x, tuple) else x + t * v

    return lambda t: f(moved(x, v, t))


METHODS: dict[str, Method] = {
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
# These methods make arrays or floats, so they do not run over fractions.
PUBLIC: dict[str, Method] = {
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


def outcomes(case: Case, methods: dict[str, Method]) -> Iterator[tuple[str, str, list[Value] | Exception | None]]:
    """Yield for each mean its name, the quantity, and the result.

    The result is None if the mean took too many steps, or the exception that it raised.
    """
    for name, (quantity, find) in methods.items():
        try:
            yield name, quantity, find(case)
        except TooManySteps:
            yield name, quantity, None
        except Exception as error:
            yield name, quantity, error
