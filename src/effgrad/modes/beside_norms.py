"""First derivatives where the root of a sum of squares is 0: those of a norm, whose derivative is 0 there.

`sqrt(x @ x)` is a norm. Its derivative at 0 is the element of least norm of the subdifferential, but the formula of the
chain rule divides by the root. The distances of pairs have zeros among them in most programs of particles. The limit
infinitely near the point (`effgrad.modes.nearby`) is the same number, and takes hundreds of runs.
"""

import numpy as np

from effgrad.arrays.traced import Traced
from effgrad.arrays.value import Smooth, owned_by, plain
from effgrad.effects import Handler
from effgrad.primitives.kinks import reciprocal_root
from effgrad.primitives.primitive import Primitive
from effgrad.primitives.squares import Kind, kind_of
from effgrad.vocabulary import Option, Value


class NormValue(Traced):
    """A value of the program; its shadow is what is known of it (`effgrad.primitives.squares`)."""

    __slots__ = ()


class BesideNorms(Handler[Smooth]):
    """A handler that evaluates, and takes the reciprocal of the root of a sum of squares as 0 where the root is 0."""

    def __init__(self) -> None:
        # `order` is that of the derivatives; `kinked` says that something else than a root was not analytic.
        self.order, self.kinked = 0, False

    def apply(self, primitive: Primitive, *args: Value, **params: Option) -> Traced:
        kinds = [a.shadow if owned_by(a, self) else None for a in args]
        values = list(map(self.primal, args))
        with np.errstate(all="ignore"):
            result = primitive.function(*values, **params)
            if primitive is reciprocal_root and kinds[0] is Kind.ROOT:
                return NormValue(self, np.where(np.equal(values[0], 0), 0.0, result)[()], Kind.OTHER)
            kind = kind_of(primitive, args, kinds, values, result, params)
            self.kinked |= kind is Kind.KINK
            return NormValue(self, result, kind)

    def primal(self, value: Value) -> Value:
        """Return the number or the array that a value stands for."""
        return plain(value)

    def variable(self, primal: Value) -> Traced:
        """Return an input of the program."""
        return NormValue(self, primal, Kind.SMOOTH)
