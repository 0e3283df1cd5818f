"""Reductions: sum, prod, max, min and cumsum are primitives, and mean, var and std are written with them."""

import operator
from collections.abc import Callable

from effgrad.arrays import counterparts, laurent
from effgrad.arrays.layout import dtype_of, ndim_of, shape_of, size_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import FUNCTIONS, Tracer, decided, depends, is_lazy, plain
from effgrad.errors import NoRule
from effgrad.primitives import cotangents, machine_code, totals
from effgrad.primitives.elementwise import add, maximum, minimum
from effgrad.primitives.given import as_computed, value_with_derivative
from effgrad.primitives.kinks import differentiated, first_of_ties, inverse, kink, nested, quotient_or_zero, step_weight
from effgrad.primitives.move import reshape
from effgrad.primitives.primitive import Primitive, elementwise, everywhere, general, linear, not_at_zero
from effgrad.vocabulary import Axis, Cotangent, DType, DTypeLike, Function, Option, Tangent, Value


def _expand(g: Cotangent, x: Value, axis: Axis) -> Value:
    """Return a reduced value with the reduced axes restored at length one."""
    shape = shape_of(x)
    if axis is None or not shape:  # NumPy allows a number to be reduced along axis 0
        return reshape(g, shape=(1,) * len(shape))
    axes = [a % len(shape) for a in (axis if isinstance(axis, tuple | list) else (axis,))]
    return reshape(g, shape=tuple([1 if i in axes else n for i, n in enumerate(shape)]))


def _against(g: Cotangent, x: Value, axis: Axis) -> Value:
    """Return a reduced value in a shape that broadcasts against the shape of `x`."""
    return g if axis is None or ndim_of(x) == 0 else _expand(g, x, axis)


def _share(name: str, x: Value, y: Value, axis: Axis) -> Value:
    """Return the weight of each element in a maximum or minimum; tied elements get equal weights."""
    top, y = y, plain(y)
    chosen = plain(x) == _against(y, x, axis)
    if type(chosen) is np.ndarray and np.count_nonzero(chosen) == size_of(y) and (axis is None or np.all(y == y)):
        return chosen  # each group has exactly one chosen element
    count = np.sum(chosen, axis=axis, keepdims=True)
    tied = chosen & (count > 1)
    if nested(x, tied):
        ahead = -1.0 if name == "min" else 1.0
        weight = step_weight(chosen * 1.0, tied, lambda: ahead * (x - _against(top, x, axis)), 1.0)
        return weight / np.sum(weight, axis=axis, keepdims=True)
    return kink(
        name,
        at=lambda: chosen & (count > 1),
        left=lambda: first_of_ties(chosen, axis, last=True),
        right=lambda: first_of_ties(chosen, axis, last=False),
        default=chosen * (1 / count),  # cheaper than `chosen / count`, with one division for all elements of a group
    )


def _others(x: Value, axis: Value) -> Value:
    """Return for each element the product of the others along `axis`.

    It uses no division, so its derivatives of every order are right at zeros.
    """
    n = shape_of(x)[axis]
    rest = [np.take(x, np.delete(np.arange(n), i), axis=axis) for i in range(n)]
    return np.stack([np.prod(r, axis=axis) for r in rest], axis=axis)


def _prod_partial(y: Value, x: Value, axis: Axis) -> Value:
    if not size_of(x):
        return x
    size = np.abs(plain(y))
    # The quotient loses its digits where the product underflows, and is undefined where it overflows or is zero.
    if np.all((size >= np.finfo(size.dtype).tiny) & (size < np.inf)):
        return _against(y, x, axis) / x
    if axis is None:
        return np.reshape(_others(np.ravel(x), 0), x.shape)
    return _others(x, axis)


sum_ = linear(
    totals.sum_as_numpy,
    lambda g, x, axis: totals.spread(_against(g, x, axis), shape_of(x)), name="sum",
    text="np.sum({0}, axis={axis})", folds=add, counterpart=counterparts.sum_,
)  # fmt: skip
cumsum = linear(
    lambda x, axis: np.cumsum(x, axis=axis), lambda g, x, axis: np.flip(np.cumsum(np.flip(g, axis), axis), axis),
    name="cumsum", text="np.cumsum({0}, axis={axis})", counterpart=counterparts.along("cumulative_sum"),
)  # fmt: skip
prod = general(
    lambda x, axis: np.prod(x, axis=axis),
    jvp=lambda t, y, x, axis: np.sum(t * _prod_partial(y, x, axis), axis=axis),
    vjp=lambda g, y, x, axis: _against(g, x, axis) * _prod_partial(y, x, axis), name="prod",
    series=lambda x, axis: _prod_series(x, axis), analytic=everywhere, text="np.prod({0}, axis={axis})",
    counterpart=counterparts.prod,
)  # fmt: skip


def _extremum(function: Function, name: str, folds: Primitive) -> Value:
    return general(
        lambda x, axis: function(x, axis=axis),
        jvp=lambda t, y, x, axis: _gathered(t, _share(name, x, y, axis), axis, y),
        vjp=lambda g, y, x, axis: _placed(_against(g, x, axis), _share(name, x, y, axis)),
        name=name,
        text=f"np.{name}({{0}}, axis={{axis}})", folds=folds,
        series=lambda x, axis: _extremum_series(x, axis, -1 if name == "min" else 1),
        analytic=lambda x, axis: np.all(np.sum(x == function(x, axis=axis, keepdims=True), axis=axis) == 1),
        counterpart=counterparts.reduction(name),
    )


def _lines(coefficients: Value, axis: Axis) -> Value:
    """Return the coefficients of series with the reduced axes merged into one, the last."""
    count = coefficients.ndim - 1
    axes = [a % count for a in (range(count) if axis is None else axis if isinstance(axis, tuple) else (axis,))]
    kept = [a for a in range(count) if a not in axes]
    groups = np.transpose(coefficients, [0, *[a + 1 for a in (*kept, *axes)]])
    return groups.reshape(*groups.shape[: 1 + len(kept)], -1)


def _extremum_series(x: laurent.Laurent, axis: Axis, ahead: int) -> laurent.Laurent:
    """Return the series that is largest (smallest) infinitely near the point, in lexicographic order."""
    groups = _lines(x.coefficients, axis)
    rank = np.empty(groups[0].size, int)
    rank[np.lexsort(ahead * groups.reshape(len(groups), -1)[::-1])] = np.arange(rank.size)
    place = np.argmax(rank.reshape(groups.shape[1:]), axis=-1)
    return laurent.Laurent(x.start, np.take_along_axis(groups, place[None, ..., None], -1)[..., 0])


def _prod_series(x: laurent.Laurent, axis: Axis) -> laurent.Laurent:
    groups = _lines(x.coefficients, axis)
    result = laurent.constant(np.ones(groups.shape[1:-1]))
    for factor in np.moveaxis(groups, -1, 0):
        result = laurent.multiply(result, laurent.Laurent(x.start, factor))
    return result


def _gathered(t: Tangent, share: Value, axis: Axis, y: Value) -> Value:
    """Return the tangent of a maximum or minimum from the weights of its elements."""
    last = axis is None or axis in (-1, np.ndim(share) - 1)
    if last and type(t) is type(share) is np.ndarray and share.dtype == bool and t.shape == share.shape:
        return t[share].reshape(shape_of(y))[()]
    return np.sum(cotangents.chosen(t, share, cotangents.nonzero(share)), axis=axis)


def _placed(g: Cotangent, share: object) -> Value:
    """Return the cotangents of elements from their weights in a maximum or minimum and its cotangent."""
    if type(share) is np.ndarray and share.dtype == bool and type(g) in cotangents.PLAIN:
        if np.size(g) == 1 and share.ndim:
            place = np.unravel_index(int(np.argmax(share)), share.shape)
            return cotangents.block(share.shape, tuple(map(int, place)), np.reshape(g, ())[()])
        result = np.zeros(share.shape, np.result_type(g))
        np.copyto(result, g, where=share)
        return cotangents.masked(result, share)
    return cotangents.select(g, share)


maximum_of, minimum_of = _extremum(np.max, "max", maximum), _extremum(np.min, "min", minimum)


def _only_where(a: Value, where: Value, neutral: Value) -> Value:
    mask = choice(where)
    if np.broadcast_shapes(shape_of(mask), shape_of(a)) != shape_of(a):
        np.sum(np.zeros(shape_of(a)), where=np.ones(shape_of(mask), bool))  # NumPy's error
    return np.where(mask, a, np.asarray(neutral, a.dtype))


def _of_kind(initial: Value, kind: DType) -> Value:
    """Return the number that a reduction begins with in a dtype; for an array raise NumPy's error."""
    if ndim_of(initial):
        np.add.reduce([0.0], initial=np.zeros(shape_of(initial)))
    return initial.astype(kind) if isinstance(initial, Tracer) else kind.type(initial)


def _reduction(primitive: Primitive, neutral: Value, combine: Function) -> Function:
    def rule(
        a: Value,
        axis: Axis = None,
        dtype: DTypeLike = None,
        *,
        keepdims: Option = False,
        initial: Value = None,
        where: Value = True,
    ) -> Value:
        if axis is not None and not ndim_of(a):
            np.sum(0.0, axis=axis)  # an error unless the axis is 0, the only one along which NumPy reduces a number
            axis = None
        if dtype is not None:
            a = a.astype(dtype)
        if where is not True:
            a = _only_where(a, where, neutral)
        if isinstance(axis, tuple) and primitive is prod:
            result = _product_over(a, axis)
        elif initial is not None and not a.size:  # the maximum of no elements is `initial`
            result = np.full(np.shape(np.sum(plain(a), axis=axis)), neutral, a.dtype)
        else:
            result = primitive(a, axis=axis)
        if dtype is not None and dtype_of(result) != dtype:  # NumPy adds small integers in 64 bits
            result = result.astype(dtype)
        if initial is not None:
            result = combine(result, _of_kind(initial, dtype_of(result)))
        return _expand(result, a, axis) if keepdims is True else result

    return rule


def choice(where: Value) -> Value:
    """Return the argument `where` as booleans; an array of numbers is an error, as in NumPy."""
    if depends(where) and dtype_of(where).kind != "b":
        raise NoRule("an argument `where` has no derivative rule: it has to be an array of booleans")
    where = plain(where)
    if is_lazy(where):
        return where
    return where.astype(bool, casting="safe") if isinstance(where, np.ndarray) else np.asarray(where, bool)


def _product_over(a: Value, axes: tuple[int, ...]) -> Value:
    """Return the product over several axes, taken one axis after the other."""
    result = a
    for axis in sorted((i % a.ndim for i in axes), reverse=True):
        result = prod(result, axis=axis)
    # Products over one axis after the other round differently from a single product, so NumPy's value is taken.
    if type(plain(a)) is not np.ndarray:
        return result
    return value_with_derivative(result, np.multiply.reduce(plain(a), axis=axes))


def _count(a: Value, total: Value, axis: Axis, where: Value) -> Value:
    """Return how many elements went into each total; unlike the sum, the mean of a number over axis 0 is an error."""
    if where is True:
        if axis is not None and not ndim_of(a):
            np.lib.array_utils.normalize_axis_tuple(axis, 0)
        return a.size // max(size_of(total), 1)
    return np.reshape(np.sum(np.broadcast_to(choice(where), shape_of(a)), axis=axis), shape_of(total))


def _of(total: Value, mean: Value, dtype: DTypeLike) -> Value:
    """Return a mean in the dtype of its total, as NumPy does; for an integer total only if `dtype` was given."""
    kind = dtype_of(total)
    return mean.astype(kind, copy=False) if kind.kind in "fc" or dtype is not None else mean


def _mean(
    a: Value, axis: Axis = None, dtype: DTypeLike = None, *, keepdims: Option = False, where: Value = True
) -> Value:
    if dtype is None and dtype_of(a) == np.float16:  # NumPy adds half-precision numbers in single precision
        return _mean(a, axis, np.float32, keepdims=keepdims, where=where).astype(np.float16)
    floats = np.float64 if dtype is None and dtype_of(a).kind in "iub" else dtype  # the sum of integers may overflow
    total = np.sum(a, axis=axis, dtype=floats, keepdims=keepdims, where=where)
    return _of(total, divided(total, _count(a, total, axis, where)), dtype)


def divided(total: Value, count: Value) -> Value:
    """Return `total / count`; a count of zero, or below zero because of `ddof`, gives infinity or NaN as in NumPy."""
    if np.ndim(count) == 0 and not is_lazy(count):
        return total / count if count > 0 else total * np.inf
    return total / np.maximum(count, 0)


def _var(
    a: Value, axis: Axis = None, dtype: DTypeLike = None, *, ddof: float = 0, keepdims: Option = False,
    where: Value = True, mean: Value = None, correction: float | None = None, rooted: bool = False,
) -> Value:  # fmt: skip
    """Return the variance; if a root of it is taken (`rooted`), its derivative is NaN where the squares underflowed."""
    if correction is not None and ddof:
        np.var(np.ones(1), ddof=1, correction=1)  # NumPy's error
    deviation = a - (np.mean(a, axis=axis, dtype=dtype, keepdims=True, where=where) if mean is None else mean)
    square = deviation * deviation if deviation.dtype.kind != "c" else deviation.real**2 + deviation.imag**2
    total = np.sum(square, axis=axis, dtype=dtype, keepdims=keepdims, where=where)
    if rooted:
        used = deviation if where is True else np.where(choice(where), plain(deviation), 0.0)
        total = mark_underflow(total, used, axis=axis, keepdims=keepdims)
    return _of(total, divided(total, _count(a, total, axis, where) - (correction or ddof)), dtype)


def _std(a: Value, *args: Value, **options: Option) -> Value:
    variance = _var(a, *args, **options, rooted=True)
    dtype = dtype_of(variance)
    if dtype.kind in "iu" and ndim_of(variance):
        np.sqrt(np.ones(1, dtype), out=np.ones(1, dtype))  # NumPy's error
    return root(variance).astype(dtype, copy=False)


def _of_some(original: Callable[..., object], definition: Function) -> Function:
    """Return a definition as a rule, with NumPy's value if `where` or `initial` is given: it adds otherwise then."""
    computed = as_computed(original, definition)

    def rule(a: Value, *args: Value, **options: Option) -> Value:
        usual = options.get("where", True) is True and options.get("initial") is None
        return (definition if usual else computed)(a, *args, **options)

    return rule


def _half_over(y: Value) -> Value:
    value = plain(y)
    zero = value == 0
    kink("norm or std", lambda: zero, 0.0, 0.0, 0.0)
    if differentiated(y):
        return 0.5 * inverse(y)
    if decided(zero):
        return 0.0 if zero else 0.5 / value if value < np.inf else np.nan  # the root has overflowed
    return np.where(value < np.inf, 0.5 * ~zero, np.nan) / np.where(zero, 1.0, value)


def mark_underflow(total: Value, *terms: Value, axis: Axis = None, keepdims: bool = False) -> Value:
    """Return a total of powers of `terms` along `axis` with a derivative of NaN where it is 0 but a term is not.

    The powers have underflowed there, and the total does not distinguish the terms from zeros.
    """
    zero = plain(total) == 0
    if not (zero if decided(zero) else isinstance(zero, Tracer) or np.any(zero)):
        return total
    for x in terms:
        # The test is a sum, because compiled code can compute it in the same loop as the total.
        total = nan_slope_where(total, zero & (np.sum(np.abs(plain(x)), axis=axis, keepdims=keepdims) != 0))
    return total


nan_slope_where = elementwise(
    lambda total, hidden: total, lambda y, total, hidden: np.where(hidden, np.nan, 1.0), None, name="unseen",
    series=lambda total, hidden: total, analytic=everywhere, counterpart=lambda lib, total, hidden: total,
)  # fmt: skip

# The root of a sum of squares. Where it is 0, its derivative is 0, which is the minimum-norm choice.
root = elementwise(
    np.sqrt, lambda y, x: _half_over(y), series=lambda x: laurent.power(x, 0.5), analytic=not_at_zero,
    code=machine_code.intrinsic("sqrt"), counterpart=counterparts.floating("sqrt"),
)  # fmt: skip


def root_of(total: Value, power: float) -> Value:
    """Return a norm from the sum of powers that it is a root of, with derivative 0 where the sum is 0."""
    return root(total) if power == 0.5 else power_root(total, power)


power_root = elementwise(
    operator.pow,
    lambda y, x, n: n * quotient_or_zero(y, x),
    None, name="power",
    series=lambda x, n: laurent.power(x, float(n.plain())), analytic=not_at_zero,
    code=machine_code.library("pow", 2),
    counterpart=counterparts.operator(operator.pow),
)


def _cumsum(a: Value, axis: Axis = None, dtype: DTypeLike = None) -> Value:
    if dtype is not None:
        a = a.astype(dtype)
    return cumsum(np.ravel(a), axis=0) if axis is None else cumsum(a if ndim_of(a) else np.ravel(a), axis=axis)


_max = _reduction(maximum_of, -np.inf, np.maximum)
_min = _reduction(minimum_of, np.inf, np.minimum)
FUNCTIONS.enter({
    np.sum: _of_some(np.sum, _reduction(sum_, 0.0, np.add)), np.amax: _max, np.amin: _min, np.cumsum: _cumsum,
    np.prod: _of_some(np.prod, _reduction(prod, 1.0, np.multiply)), np.max: _max, np.min: _min,
    np.mean: _of_some(np.mean, _mean), np.var: _of_some(np.var, _var), np.std: _of_some(np.std, _std),
})  # fmt: skip
