"""Evaluation infinitely near a point, which gives the limit of a derivative whose formula gives NaN at the point.

The program, with the derivatives that it takes, runs at x + w t**2 for an infinitesimal t and a direction w in general
position. The functions that are singular at x are smooth on this path, so every rule holds unchanged, and the result is
a series in t. Its standard part is the limit of the derivative along the path. If the derivative exists, it is this
limit, so paths on several sides have to agree. The path is quadratic, so that `sqrt` of a coordinate has a series.
Shamseddine and Berz 1996, Exception handling in derivative computation with nonarchimedean calculus.
"""

import numpy as np

from effgrad.arrays.laurent import TERMS, Laurent, bilinear, constant, linear
from effgrad.arrays.traced import Traced
from effgrad.arrays.value import Smooth, Tracer, plain
from effgrad.effects import Handler
from effgrad.modes.taylor import Taylor
from effgrad.primitives.primitive import Primitive
from effgrad.vocabulary import Option, Params, Value

FEW = 6  # the number of terms that Taylor mode computes for a primitive of kind "general" without a series rule
LARGEST, LONGEST = 100_000, 20_000  # elements of an array, operations on a path: series of more take too much


class NearbyValue(Traced):
    """A value at a point; its shadow is the series of the value infinitely near the point."""

    __slots__ = ()


class Nearby(Handler[Smooth]):
    """A handler that evaluates at a point, and along the path as a Laurent series in t."""

    def enter(self) -> None:
        # `outside`: the path has left the domain of an operation; `order`: that of the derivatives taken; `merged`:
        # nearly equal numbers are merged; `done`: the number of operations.
        self.outside, self.order, self.merged, self.done = False, 0, False, 0

    def apply(self, primitive: Primitive, *args: Value, **params: Option) -> Traced:
        primals, self.done = [self.primal(a) for a in args], self.done + 1
        series = [a.shadow if type(a) is NearbyValue else None for a in args]
        with np.errstate(all="ignore"):
            result = primitive.function(*primals, **params)
            if np.size(result) > LARGEST or self.done > LONGEST:
                raise OverflowError("an array is too large for series, or the program too long")
            found = _result(primitive, series, primals, params)
            self.merged |= found.merged
            known = [result, *[s.coefficients for s in series if s]]
            overflow = np.isinf(result) & np.isinf(found.leading()) & (found.start + found.order() >= 0)
            if overflow.any() or np.isnan(found.leading()).any() and np.all([np.isfinite(v).all() for v in known]):
                self.outside = True
            return NearbyValue(self, result, found)

    def primal(self, value: Value) -> Value:
        """Return a value at the point itself."""
        return plain(value)

    def variable(self, primal: Value, direction: Value) -> Traced:
        """Return an input of the program that moves along a direction."""
        coefficients = np.zeros((TERMS, *np.shape(primal)), np.result_type(primal))
        coefficients[0], coefficients[2] = primal, direction
        return NearbyValue(self, primal, Laurent(0, coefficients))

    def limits(self, value: Value) -> tuple[Value, Value]:
        """Return the limit of a value along the path, NaN where there is none, and a coarse value, or NaN."""
        return value.shadow.limits(self.merged) if type(value) is NearbyValue else (plain(value), plain(value))


def _result(primitive: Primitive, series: list[Value], primals: list[Value], params: Params) -> Laurent:
    """Return the series of a result, by the primitive's series rule, by linearity, or by its derivative."""
    if primitive.series is not None:
        given = [constant(p) if s is None else s for s, p in zip(series, primals, strict=True)]
        if primitive.kind == "general":
            given = list(map(Laurent.through, given, primals))
        result: Laurent | None = primitive.series(*given, **params)
        if result is not None:
            return result
    moving = [place for place, s in enumerate(series) if s is not None]
    sums = primitive.kind == "elementwise" and not any(callable(p) for p in primitive.partials)
    jointly = primitive.moves or primitive.push_jointly is not None or sums
    if jointly or (primitive.kind == "linear" and len(moving) == 1):
        return _linear(primitive, series, primals, params, jointly)
    if primitive.kind == "linear" and len(moving) == 2:
        first, second = moving

        def product(x: Value, y: Value) -> Value:
            args = list(primals)
            args[first], args[second] = x, y
            return primitive.function(*args, **params)

        return bilinear(product, series[first], series[second])
    return _by_derivative(primitive, series, primals, params)


def _linear(primitive: Primitive, series: list[Value], primals: list[Value], params: Params, jointly: bool) -> Laurent:
    given = [s or (constant(p) if jointly else None) for s, p in zip(series, primals, strict=True)]

    def each(*rows: Value) -> Value:
        row = iter(rows)
        args = [p if s is None else next(row) for s, p in zip(given, primals, strict=True)]
        return primitive.function(*args, **params)

    return linear(each, *[s for s in given if s is not None])


def _by_derivative(primitive: Primitive, series: list[Value], primals: list[Value], params: Params) -> Laurent:
    """Return the series of a function that is smooth at the point, by Taylor mode; NaN if an argument is infinite."""
    end = min(s.end for s in series if s is not None)
    end = min(end, FEW) if primitive.kind == "general" else end  # each further term costs twice as much
    if end <= 0 or any(s is not None and s.start < 0 for s in series):
        value = np.asarray(primitive.function(*primals, **params))
        return Laurent(0, np.full((1, *value.shape), np.nan))
    inputs: list[Value] = []
    with Taylor(end - 1) as taylor:
        for s, p in zip(series, primals, strict=True):
            first, *others = [p] if s is None else s.from_zero()[:end]
            inputs.append(p if s is None else taylor.variable(first, others))
        if not isinstance(result := primitive(*inputs, **params), Tracer):
            return constant(result)
        rows = [np.asarray(plain(result.shadow[k])) for k in range(end)]
    return Laurent(0, np.stack(np.broadcast_arrays(*rows)))
