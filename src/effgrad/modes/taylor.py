"""Taylor mode: truncated power series of any order, in one forward pass.

The input x(t) is given by the coefficients of its series, and a value carries the coefficients of its series y(t).
Products and quotients have closed formulas. For every other primitive, the derivative of y(t) is the expression that
forward mode pushes, in series of one order less, and k y_k is its coefficient k - 1. The coefficients are computed on
demand and memoised, so an expression may refer to the series that it defines (y = exp(x) has y' = y x'). So the forward
rule of a primitive is enough. Griewank and Walther, Evaluating Derivatives (2008), chapter 13.
"""

from collections.abc import Callable

from effgrad.arrays.traced import Traced
from effgrad.arrays.value import constant
from effgrad.modes.mode import Mode
from effgrad.modes.power_series import (
    Series,
    coefficients,
    is_linear,
    key_of,
    product,
    quotient,
    zeros_after,
    zeros_of,
)
from effgrad.primitives.elementwise import divide, multiply, where
from effgrad.primitives.primitive import Primitive
from effgrad.vocabulary import Option, Params, Value


class Taylor(Mode):
    """Taylor mode up to a given order; a value's shadow is its series."""

    constant = staticmethod(constant)  # makes a copy, since a coefficient is computed only on demand
    records = True  # a series refers to the series that it is computed from

    def __init__(self, order: int) -> None:
        self.order = order
        self.in_rule = False
        self.operations = 0
        self.made: dict[object, tuple[Series, object]] = {}  # the series that a rule made, with what their keys name

    def apply(self, primitive: Primitive, *args: Value, **params: Option) -> Traced:
        key = self._key(primitive, args, params) if self.in_rule else None
        if key is not None and key in self.made:
            return self._traced(self.made[key][0])
        result = self._series(primitive, args, params)
        if key is not None:
            self.made[key] = result, args
        if not self.in_rule:
            # All coefficients are computed now, in program order. On demand from the end, a long program would recurse.
            result[self.order]  # noqa: B018 (it computes)
        return self._traced(result)

    def _key(self, primitive: Primitive, args: Value, params: Params) -> object:
        """Return a key of an operation of a rule, or None; a rule may lead to one operation on many ways.

        The derivatives of order n of a Bessel function are of n + 1 orders, but on 2**n ways.
        """
        parts = [id(a.shadow) if self.owns(a) else key_of(a) for a in args]
        return None if params or None in parts else (primitive, *parts)

    def _series(self, primitive: Primitive, args: Value, params: Params) -> Series:
        self.operations += 1
        moving: list[Value] = [a.shadow if self.owns(a) else None for a in args]
        primals = [self.primal(a) for a in args]
        value = primitive(*primals, **params)
        if primitive is multiply and None not in moving:
            result = Series(value, product(moving[0], moving[1]))
        elif primitive is divide and None not in moving:
            result = quotient(moving[0], moving[1], value)
        elif is_linear(primitive, moving):
            # It is applied to each coefficient. By its derivative, each coefficient would recurse to all before it.
            result = Series(value, lambda k: primitive(*coefficients(primitive, moving, primals, k)))
        elif primitive is where:
            # `where` is applied to each coefficient. By its derivative, choices would nest with every order.
            choices = [zeros_after(p) if s is None else s for p, s in zip(primals[1:], moving[1:], strict=True)]
            result = Series(value, lambda k: where(primals[0], *[choice[k] for choice in choices]))
        else:
            result = Series(value, lambda k: None)
            result.rule = self._by_derivative(primitive, moving, primals, result, params)
        return result

    def _by_derivative(
        self, primitive: Primitive, moving: list[Value], primals: list[Value], result: Series, params: Params
    ) -> Callable[[int], Value]:
        """Return the rule that takes coefficients from the pushed expression, which its first call makes."""
        made: list[Value] = []

        def rule(k: int) -> Value:
            outer, self.in_rule = self.in_rule, True
            if not made:
                xs = [p if s is None else self._traced(s) for p, s in zip(primals, moving, strict=True)]
                tangents = [None if s is None else self._derivative(s) for s in moving]
                made.append(primitive.push_all(tangents, self._traced(result), xs, params))
            derivative = made[0]
            if self.owns(derivative):
                coefficient = derivative.shadow[k - 1] / k
            else:
                coefficient = zeros_of(result[0]) if derivative is None or k > 1 else derivative
            self.in_rule = outer
            if not outer:
                self.made.clear()
            return coefficient

        return rule

    def _traced(self, series: Series) -> Traced:
        return Traced(self, series[0], series)

    def _derivative(self, series: Series) -> Traced:
        return self._traced(Series(series[1], lambda k: (k + 1) * series[k + 1]))

    def variable(self, primal: Value, others: Value = ()) -> Traced:
        """Return an input of the program with the given first coefficients of its series."""
        given = [primal, *others]
        return self._traced(Series(given[0], lambda k: given[k] if k < len(given) else zeros_of(given[0])))
