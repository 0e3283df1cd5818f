"""Forward mode: every value carries its tangent (a dual number).

The tangent of a result is the sum of what comes through each argument. A missing tangent (None) is a zero by
construction. Sigal 2021, section 3.2; Sigal 2024, section 4.1; Krawiec et al. 2022, figure 3.
"""

from typing import Any

from effgrad.arrays.memory import as_plain
from effgrad.arrays.value import KINDS, Smooth, Traced
from effgrad.effects import Handler
from effgrad.modes.operators import write_operators


class Dual(Traced):
    """A dual number; its shadow is its tangent."""

    __slots__ = ()


class Forward(Handler[Smooth]):
    """Forward mode; a traced value's shadow is its tangent."""

    value: type[Traced] = Dual

    def apply(self, primitive: Any, *args: Any, **params: Any) -> Traced:
        primals = [self.primal(a) for a in args]
        result = primitive(*primals, **params)  # performed in the handlers below
        tangents = [a.shadow if type(a) in KINDS and a.owner is self else None for a in args]
        return self.value(self, result, primitive.push_all(tangents, result, primals, params))

    def primal(self, value: Any) -> Any:
        """A value as it is below this activation: what is not owned here is a constant."""
        if type(value) not in KINDS:
            return value
        return value.primal if value.owner is self else as_plain(value)

    def variable(self, primal: Any, tangent: Any) -> Traced:
        """An input of the program and its tangent."""
        return self.value(self, primal, tangent)


write_operators(
    Dual,
    unary="z.shadow = None if x.shadow is None else x.shadow * {0}",
    binary=(
        "s = x.shadow; t = y.shadow; z.shadow = s * {0} + t * {1} if s is not None and t is not None "
        "else s * {0} if s is not None else t * {1} if t is not None else None"
    ),
    arrays="z.shadow = primitive.push_all({shadows}, r, {primals}, {params})",
    names={},
)
