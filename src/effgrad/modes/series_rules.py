"""The Laurent series of a result from those of its arguments, for every primitive."""

import numpy as np

from effgrad.arrays.laurent import TERMS, Laurent, bilinear, constant, linear
from effgrad.arrays.value import Tracer, plain
from effgrad.modes.taylor import Taylor
from effgrad.primitives.primitive import Primitive
from effgrad.vocabulary import Params, Value

# The operations of a primitive's rule after which no further term is computed, of those asked for and of others. The
# others are computed for their NaN, which tells that the function is not smooth at the point.
OPERATIONS, MORE = 1000, 100
FEW = 6  # the number of terms that Taylor mode computes for a primitive of kind "general" without a series rule


def series_of(
    primitive: Primitive, series: list[Value], primals: list[Value], params: Params, terms: int = TERMS
) -> Laurent:
    """Return the series of a result, by the primitive's series rule, by linearity, or by its derivative.

    By its derivative, few more than `terms` are computed, since each further one costs more than that before it.
    """
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
    return _by_derivative(primitive, series, primals, params, terms)


def leaves_domain(found: Laurent, result: Value, series: list[Laurent | None], total: bool) -> bool:
    """Return whether the path leaves the domain of a function, or its result the range of floating point.

    `total` says that the function is defined everywhere, so that a NaN of its series only has lost its digits.
    """
    overflow = np.isinf(result) & np.isinf(found.leading()) & (found.start + found.order() >= 0)
    known = [result, *[s.coefficients for s in series if s]]
    lost = (found.order() > 0) & (found.order() == len(found.coefficients) - 1)  # its last coefficient alone is NaN
    undefined = np.isnan(found.leading()) & ~lost
    return bool(overflow.any() or not total and undefined.any() and np.all([np.isfinite(v).all() for v in known]))


def _linear(primitive: Primitive, series: list[Value], primals: list[Value], params: Params, jointly: bool) -> Laurent:
    given = [s or (constant(p) if jointly else None) for s, p in zip(series, primals, strict=True)]

    def each(*rows: Value) -> Value:
        row = iter(rows)
        args = [p if s is None else next(row) for s, p in zip(given, primals, strict=True)]
        return primitive.function(*args, **params)

    return linear(each, *[s for s in given if s is not None])


def _by_derivative(
    primitive: Primitive, series: list[Value], primals: list[Value], params: Params, terms: int
) -> Laurent:
    """Return the series of a function that is smooth at the point, by Taylor mode; NaN if an argument is infinite."""
    end = min(s.end for s in series if s is not None)
    end = min(end, FEW) if primitive.kind == "general" else end  # each further term costs twice as much
    if end <= 0 or any(s is not None and s.start < 0 for s in series):
        value = np.asarray(primitive.function(*primals, **params))
        return Laurent(0, np.full((1, *value.shape), np.nan))
    inputs: list[Value] = []
    with Taylor(0) as taylor:
        for s, p in zip(series, primals, strict=True):
            first, *others = [p] if s is None else s.from_zero()[:end]
            inputs.append(p if s is None else taylor.variable(first, others))
        if not isinstance(result := primitive(*inputs, **params), Tracer):
            return constant(result)
        rows = [np.asarray(plain(result.shadow[0]))]
        while len(rows) < end and taylor.operations <= (OPERATIONS if len(rows) < terms else MORE):
            rows.append(np.asarray(plain(result.shadow[len(rows)])))
    return Laurent(0, np.stack(np.broadcast_arrays(*rows)))
