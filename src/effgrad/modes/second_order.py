"""Second-order forward mode: value, first and second derivative along a direction, in one pass.

With x(t) = x + t u, a value carries y, y' and y''. For a unary operation, y = f(x) has y' = f'(x) x' and

    y'' = f''(x) x'^2 + f'(x) x'',

where the listing of the thesis leaves out the square. For any primitive, y' is what forward mode pushes, and y'' is the
derivative of that expression along the direction, with x'' pushed beside it: so the one rule of a primitive is enough.
Sigal 2024, section 5.1.
"""

from typing import Any

from effgrad.arrays.value import KINDS, Smooth, Traced
from effgrad.effects import Handler
from effgrad.modes.forward import Forward


class SecondOrder(Handler[Smooth]):
    """Second-order forward mode; a traced value's shadow is the pair of its derivatives (None: zero)."""

    order = 2  # of the derivatives that it takes

    def apply(self, primitive: Any, *args: Any, **params: Any) -> Traced:
        primals = [self.primal(a) for a in args]
        shadows = [a.shadow if type(a) in KINDS and a.owner is self else (None, None) for a in args]
        firsts, seconds = [list(part) for part in zip(*shadows, strict=True)]
        with Forward() as forward:
            duals = [p if t is None else forward.variable(p, t) for p, t in zip(primals, firsts, strict=True)]
            result = primitive(*duals, **params)
            pushed = primitive.push_all(firsts, result, duals, params)
            value, first = forward.primal(result), forward.primal(pushed)
            curved = pushed.shadow if type(pushed) in KINDS and pushed.owner is forward else None
        bent = primitive.push_all(seconds, value, primals, params)
        second = curved if bent is None else bent if curved is None else curved + bent
        return Traced(self, value, (first, second))

    def primal(self, value: Any) -> Any:
        """A value as it is below this activation: what is not owned here is a constant."""
        return value.primal if type(value) in KINDS and value.owner is self else value

    def variable(self, primal: Any, direction: Any) -> Traced:
        """An input of the program, moving along a direction."""
        return Traced(self, primal, (direction, None))
