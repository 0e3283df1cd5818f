"""The common part of all modes: a handler of `Smooth` whose values carry a shadow.

The shadow is the object that a mode keeps beside a value, such as a tangent, a cell or a name on a tape. Each mode
defines the shadow of an operation's result. A value that another activation owns is a constant for the mode.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from effgrad.arrays.traced import Traced, as_plain
from effgrad.arrays.value import Smooth, Tracer, owned_by
from effgrad.effects import Handler
from effgrad.errors import EscapedValue
from effgrad.primitives.primitive import Primitive
from effgrad.vocabulary import Cotangent, Option, Params, Shadow, Tangent, Value


class Operation(NamedTuple):
    """One application of a primitive, with the shadows of its arguments (None for a constant)."""

    primitive: Primitive
    params: Params
    primals: list[Value]
    shadows: list[Shadow]
    result: Value

    def push(self, tangents: list[Value]) -> Tangent:
        """Return the tangent of the result from the tangents of the arguments."""
        return self.primitive.push_all(tangents, self.result, self.primals, self.params)

    def pull(self, cotangent: Cotangent) -> list[tuple[Value, Value]]:
        """Return pairs of an argument's shadow and its share of the cotangent; structural zeros are left out."""
        shadows = self.shadows
        wanted = [index for index, shadow in enumerate(shadows) if shadow is not None]
        parts = self.shares(wanted, cotangent)
        return [(shadows[i], part) for i, part in zip(wanted, parts, strict=True) if part is not None]

    def shares(self, wanted: list[int], cotangent: Cotangent) -> list[Cotangent]:
        """Return the shares of a cotangent for the arguments at the places `wanted` (None for a structural zero)."""
        primitive, params, primals, _, result = self
        parts: list[Value] = primitive.pull_all(wanted, cotangent, result, primals, params)
        return parts


def owned(value: Value, activation: object) -> Value:
    """Return a value after checking that the activation owns it."""
    if not owned_by(value, activation):
        raise EscapedValue(f"{type(activation).__name__} was given {value!r}, which is not a value of this activation")
    return value


class Mode(Handler[Smooth]):
    """The base class of the modes, handlers of `Smooth`; `value` is the class of the traced values."""

    value: type[Traced] = Traced
    constant: Callable[[Value], Value] = staticmethod(as_plain)

    def owns(self, value: Value) -> bool:
        """Return whether this activation owns a value."""
        return owned_by(value, self)

    def primal(self, value: Value) -> Value:
        """Return the primal of a value of this activation; any other value is a constant."""
        return value.primal if self.owns(value) else self.constant(value)

    def variable(self, primal: Value, shadow: Shadow = None) -> Tracer:
        """Return an input of the program."""
        return self.value(self, primal, shadow)

    def perform(self, primitive: Primitive, args: Sequence[Value], params: Params) -> Operation:
        """Perform an operation in the handlers below."""
        primals, shadows = [], []
        for a in args:
            mine = owned_by(a, self)
            primals.append(a.primal if mine else self.constant(a))
            # The current shadow is read here, because a later write into an array gives it a new value and shadow.
            shadows.append(a.shadow if mine else None)
        return Operation(primitive, params, primals, shadows, primitive(*primals, **params))

    def apply(self, primitive: Primitive, *args: Value, **params: Option) -> Traced:
        operation = self.perform(primitive, args, params)
        return self.value(self, operation.result, self.shadow(operation))

    def shadow(self, operation: Operation) -> Value:
        """Return the shadow of an operation's result."""
