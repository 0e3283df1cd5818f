"""Second-order forward mode: value, first and second derivative along a direction, in one pass.

With x(t) = x + t u, a value carries y, y' and y''. For a unary operation, y = f(x) has y' = f'(x) x' and

    y'' = f''(x) x'^2 + f'(x) x'',

where the listing of the thesis leaves out the square. For any primitive, y' is the push of x', as in forward mode, and
y'' is the derivative of that expression along the direction plus the push of x''. So a primitive needs no second rule.
Sigal 2024, section 5.1.
"""


from effgrad.arrays.traced import Traced
from effgrad.modes.forward import Forward
from effgrad.modes.mode import Mode
from effgrad.primitives.primitive import Primitive
from effgrad.vocabulary import Option, Value


class SecondOrder(Mode):
    """Second-order forward mode; a value's shadow is the pair of its derivatives, in which None stands for zero."""

    forward: type[Forward] = Forward
    order = 2  # the order of the derivatives that the mode computes

    def variable(self, primal: Value, direction: Value = None) -> Traced:
        return self.value(self, primal, (direction, None))

    def apply(self, primitive: Primitive, *args: Value, **params: Option) -> Traced:
        primals = [self.primal(a) for a in args]
        shadows = [a.shadow if self.owns(a) else (None, None) for a in args]
        firsts, seconds = [list(part) for part in zip(*shadows, strict=True)]
        with self.forward() as forward:
            duals = [p if t is None else forward.variable(p, t) for p, t in zip(primals, firsts, strict=True)]
            result = primitive(*duals, **params)
            pushed = primitive.push_all(firsts, result, duals, params)
            value, first = forward.primal(result), forward.primal(pushed)
            curved = pushed.shadow if forward.owns(pushed) else None
        bent = primitive.push_all(seconds, value, primals, params)
        second = curved if bent is None else bent if curved is None else curved + bent
        return self.value(self, value, (first, second))
