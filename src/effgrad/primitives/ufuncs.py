"""Ufuncs that are defined by other ufuncs, and the methods of ufuncs: reduce, accumulate, reduceat, outer and at."""

from effgrad.arrays.indexing import as_index
from effgrad.arrays.layout import in_form_of, ndim_of, shape_of, size_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import CONSTANT, REDUCTIONS, UFUNCS, Tracer, evaluated, operations, plain
from effgrad.primitives.complexes import conj
from effgrad.primitives.constants import BITS, CONSTANTS
from effgrad.primitives.given import as_computed
from effgrad.primitives.logsumexp import logsumexp
from effgrad.vocabulary import Axis, DTypeLike, Function, Index, Option, Value


def _logaddexp2(a: Value, b: Value) -> Value:
    return np.logaddexp(a * np.log(2.0), b * np.log(2.0)) / np.log(2.0)


def _float_power(a: Value, b: Value) -> Value:
    return UFUNCS[np.power](_in_double(a), _in_double(b))


def called_power(a: Value, b: Value, /, **options: Option) -> Value:
    """Return `np.power(a, b)`, which rounds numbers and complex arrays otherwise than `a ** b`."""
    alike = _ALIKE and any(isinstance(x, np.ndarray) and x.dtype.kind != "c" for x in map(plain, (a, b)))
    return np.power(a, b, **options) if alike or options else _POWER_AS_CALLED(a, b)


# Whether `np.power` of arrays takes roots and squares as `**` does; that of older versions does not.
_SAMPLE = np.linspace(0.1, 9, 99, dtype=np.float32)
_ALIKE = np.array_equal(np.power(_SAMPLE, 0.5), _SAMPLE**0.5)
_POWER_AS_CALLED = as_computed(np.power, lambda a, b: np.power(a, b))


def _in_double(x: Value) -> Value:
    """Return a value in double precision, in which `np.float_power` computes."""
    if not isinstance(plain(x), Tracer | np.ndarray | np.generic) or x.dtype in (np.float64, np.complex128):
        return x
    return x.astype(np.result_type(x.dtype, np.float64))


def _divmod(a: Value, b: Value) -> Value:
    return np.floor_divide(a, b), np.mod(a, b)


def _modf(x: Value) -> Value:
    whole = np.trunc(plain(x))
    part = np.where(np.isinf(whole), np.copysign(0.0, whole), x - np.where(np.isinf(whole), 0.0, whole))
    return in_form_of(whole, part), whole


def _frexp(x: Value) -> Value:
    exponent = evaluated(_exponent, x)
    return scaled(x, -exponent), exponent


def scaled(x: Value, exponent: Value) -> Value:
    """Return `x * 2**exponent`, in two steps, as the power alone leaves the range where `x` is subnormal or huge."""
    half = exponent // 2
    return x * 2.0**half * 2.0 ** (exponent - half)


def _exponent(x: Value) -> Value:
    return np.frexp(x)[1]


def _outer_of(ufunc: np.ufunc) -> Function:
    def rule(a: Value, b: Value) -> Value:
        return ufunc(np.reshape(a, shape_of(a) + (1,) * ndim_of(b)), b)

    return rule


def _fold(ufunc: np.ufunc, rows: list[Value]) -> list[Value]:
    """Return the running results of a ufunc of two arguments, one after each row, beginning with the first row."""
    results = list(rows[:1])
    for row in rows[1:]:
        results.append(ufunc(results[-1], row))
    return results


def _along(combine: Function) -> Function:
    """Return a method of a ufunc along one axis; `combine` gets the rows of the array along this axis."""

    def rule(a: Value, axis: int = 0, dtype: DTypeLike = None) -> Value:
        a = np.asarray(a) if dtype is None else np.asarray(a).astype(dtype)
        return combine(list(np.moveaxis(a, axis, 0)), axis)

    return rule


def _accumulate(ufunc: np.ufunc) -> Value:
    def combine(rows: list[Value], axis: int) -> Value:
        return np.moveaxis(np.stack(_fold(ufunc, rows)), 0, axis)

    return as_computed(ufunc.accumulate, _along(combine))


def _reduce(ufunc: np.ufunc) -> Value:
    def rule(a: Value, axis: Axis = 0, dtype: DTypeLike = None, keepdims: bool = False) -> Value:
        axes = range(ndim_of(a)) if axis is None else [int(i) % ndim_of(a) for i in np.atleast_1d(axis)]
        for one in sorted(axes, reverse=True):
            a = _along(lambda rows, axis: _fold(ufunc, rows)[-1])(a, one, dtype)
            a = np.expand_dims(a, one) if keepdims else a
        return a

    return as_computed(ufunc.reduce, rule)


def _reduceat(ufunc: np.ufunc) -> Value:
    def rule(a: Value, indices: Index, axis: int = 0, dtype: DTypeLike = None) -> Value:
        def combine(rows: list[Value], axis: int) -> Value:
            ends = [*indices[1:], len(rows)]
            parts = [rows[i:j] if i < j else rows[i : i + 1] for i, j in zip(indices, ends, strict=True)]
            whole = [np.sum(np.stack(part), axis=0) if ufunc is np.add else _fold(ufunc, part)[-1] for part in parts]
            return np.moveaxis(np.stack(whole), 0, axis)

        return _along(combine)(a, axis, dtype)

    return as_computed(ufunc.reduceat, rule)


def _at(ufunc: np.ufunc) -> Function:
    def rule(a: Value, indices: Index, b: Value = None) -> None:
        numbers = np.arange(size_of(a)).reshape(shape_of(a))
        places = np.ravel(numbers[indices])
        values = None if b is None else np.ravel(np.broadcast_to(b, np.shape(numbers[indices])))
        # An element that is named several times is operated on several times, once in each round.
        order = np.argsort(places, kind="stable")
        starts = np.searchsorted(places[order], places[order], side="left")
        round_of = np.empty(len(places), int)
        round_of[order] = np.arange(len(places)) - starts
        for k in range(round_of.max(initial=-1) + 1):
            chosen = np.flatnonzero(round_of == k)
            where = np.unravel_index(places[chosen], shape_of(a))
            a[where] = ufunc(a[where]) if values is None else ufunc(a[where], values[chosen])

    return rule


def _of_constant(ufunc: np.ufunc, method: str) -> Function:
    """Return the rule of a method of a ufunc through which no derivative flows."""

    def rule(*args: Value, **options: Option) -> Value:
        return evaluated(lambda *plain_args: getattr(ufunc, method)(*plain_args, **options), *args)

    return rule


def _add_at(a: Value, indices: Index, b: Value) -> None:
    shape = np.shape(np.zeros(shape_of(a))[indices])
    a[...] = operations.scatter_add(a, np.broadcast_to(b, shape), shape=shape_of(a), indices=(..., as_index(indices)))


def _logsumexp(a: Value, axis: Axis = 0, keepdims: bool = False) -> Value:
    return logsumexp(a, axis=axis, keepdims=keepdims)


UFUNCS.enter({
    np.logaddexp2: as_computed(np.logaddexp2, _logaddexp2), np.float_power: as_computed(np.float_power, _float_power),
    np.divmod: _divmod, np.modf: _modf,
    np.frexp: as_computed(np.frexp, _frexp),
    np.ldexp: as_computed(np.ldexp, lambda x, i: x * np.float64(2.0) ** plain(i)),
    np.vecdot: as_computed(np.vecdot, lambda a, b: np.sum(conj(a) * b, axis=-1)),
})  # fmt: skip
CONSTANT.enter([np.spacing])
FOLDS = [u for u in UFUNCS if u.nin == 2 and u.nout == 1 and u.signature is None and u is vars(np).get(u.__name__, ())]
# The rules of ufunc methods; a method that has a NumPy function, such as `np.sum`, takes the rule of that function.
REDUCTIONS.enter({
    **{(u, name): _of_constant(u, name) for u in (*CONSTANTS, *BITS) if isinstance(u, np.ufunc) and u.nin == 2
       for name in ("reduce", "accumulate", "reduceat", "outer")},
    (np.logical_and, "reduce"): np.all, (np.logical_or, "reduce"): np.any,
    **{(u, name): make(u) for u in FOLDS for name, make in (
        ("reduce", _reduce), ("accumulate", _accumulate), ("reduceat", _reduceat))},
    **{(u, "outer"): _outer_of(u) for u in UFUNCS if u.nin == 2},
    **{(u, "at"): _at(u) for u in UFUNCS},
    (np.add, "reduce"): np.sum, (np.multiply, "reduce"): np.prod,
    (np.maximum, "reduce"): np.max, (np.minimum, "reduce"): np.min,
    (np.fmax, "reduce"): np.nanmax, (np.fmin, "reduce"): np.nanmin,
    (np.logaddexp, "reduce"): as_computed(np.logaddexp.reduce, _logsumexp),
    (np.add, "accumulate"): np.cumsum, (np.multiply, "accumulate"): np.cumprod, (np.add, "at"): _add_at,
})  # fmt: skip
if hasattr(np, "matvec"):  # from NumPy 2.2 on
    UFUNCS.enter({
        np.matvec: as_computed(np.matvec, lambda a, b: np.matmul(a, b[..., None])[..., 0]),
        np.vecmat: as_computed(np.vecmat, lambda a, b: np.matmul(conj(a)[..., None, :], b)[..., 0, :]),
    })  # fmt: skip
