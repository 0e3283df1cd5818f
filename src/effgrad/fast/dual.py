"""Forward mode with operators on Python floats and plain arrays written out from the rules."""

from effgrad.arrays.traced import Traced
from effgrad.fast.operators import write_operators
from effgrad.modes.forward import Forward
from effgrad.modes.second_order import SecondOrder


class Dual(Traced):
    """A dual number; its shadow is its tangent."""

    __slots__ = ()


class FastForward(Forward):
    """Forward mode with the fast operators of `Dual`."""

    value = Dual


class FastSecondOrder(SecondOrder):
    """Second-order forward mode that derives each operation by `FastForward`."""

    forward = FastForward


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
