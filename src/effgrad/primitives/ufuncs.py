"""Ufuncs that are written with others, and the methods of ufuncs: reduce, accumulate, reduceat, outer and at."""

from typing import Any

import numpy as np

from effgrad.arrays.value import CONSTANT, REDUCTIONS, UFUNCS, as_index, evaluated, plain
from effgrad.primitives.complexes import conj
from effgrad.primitives.joining import shape_of
from effgrad.primitives.move import scatter_add
from effgrad.primitives.reduction import logsumexp

# Ufuncs by their definition, and the methods of ufuncs.


def _logaddexp2(a: Any, b: Any) -> Any:
    return np.logaddexp(a * np.log(2.0), b * np.log(2.0)) / np.log(2.0)


def _divmod(a: Any, b: Any) -> Any:
    return np.floor_divide(a, b), np.mod(a, b)


def _modf(x: Any) -> Any:
    whole = np.trunc(plain(x))
    return x - whole, whole


def _frexp(x: Any) -> Any:
    exponent = evaluated(_exponent, x)
    return x * 2.0**-exponent, exponent


def _exponent(x: Any) -> Any:
    return np.frexp(x)[1]


def _outer_of(ufunc: Any) -> Any:
    def rule(a: Any, b: Any) -> Any:
        return ufunc(np.reshape(a, shape_of(a) + (1,) * np.ndim(plain(b))), b)

    return rule


def _running(ufunc: Any) -> Any:
    """`maximum.accumulate` and `minimum.accumulate`."""

    def rule(a: Any, axis: int = 0) -> Any:
        a = np.moveaxis(a, axis, 0)
        result = [a[0]]
        for x in a[1:]:
            result.append(ufunc(result[-1], x))
        return np.moveaxis(np.stack(result), 0, axis)

    return rule


def _reduceat(a: Any, indices: Any, axis: int = 0) -> Any:
    a, n = np.moveaxis(a, axis, 0), shape_of(a)[axis]
    ends = [*indices[1:], n]
    rows = [np.sum(a[i:j], axis=0) if i < j else a[i] for i, j in zip(indices, ends, strict=True)]
    return np.moveaxis(np.stack(rows), 0, axis)


def _at(ufunc: Any) -> Any:
    def rule(a: Any, indices: Any, b: Any = None) -> None:
        numbers = np.arange(np.size(plain(a))).reshape(shape_of(a))
        places = np.ravel(numbers[indices])
        values = None if b is None else np.ravel(np.broadcast_to(b, np.shape(numbers[indices])))
        # An element that is named several times is operated on several times: once in each round.
        order = np.argsort(places, kind="stable")
        starts = np.searchsorted(places[order], places[order], side="left")
        round_of = np.empty(len(places), int)
        round_of[order] = np.arange(len(places)) - starts
        for k in range(round_of.max(initial=-1) + 1):
            chosen = np.flatnonzero(round_of == k)
            where = np.unravel_index(places[chosen], shape_of(a))
            a[where] = ufunc(a[where]) if values is None else ufunc(a[where], values[chosen])

    return rule


def _add_at(a: Any, indices: Any, b: Any) -> None:
    shape = np.shape(np.zeros(shape_of(a))[indices])
    a[...] = a + scatter_add(np.broadcast_to(b, shape), shape=shape_of(a), indices=(as_index(indices),))


def _logsumexp(a: Any, axis: Any = 0, keepdims: bool = False) -> Any:
    return logsumexp(a, axis=axis, keepdims=keepdims)


UFUNCS.update({
    np.logaddexp2: _logaddexp2, np.divmod: _divmod, np.modf: _modf, np.frexp: _frexp,
    np.ldexp: lambda x, i: x * 2.0 ** plain(i),
    np.vecdot: lambda a, b: np.sum(conj(a) * b, axis=-1),
})  # fmt: skip
CONSTANT.add(np.spacing)
REDUCTIONS.update({
    (np.multiply, "accumulate"): np.cumprod,
    (np.maximum, "accumulate"): _running(np.maximum), (np.minimum, "accumulate"): _running(np.minimum),
    (np.fmax, "reduce"): np.nanmax, (np.fmin, "reduce"): np.nanmin,
    (np.add, "reduceat"): _reduceat,
    (np.logaddexp, "reduce"): _logsumexp,
})  # fmt: skip
REDUCTIONS.update({(u, "outer"): _outer_of(u) for u in UFUNCS if u.nin == 2})
REDUCTIONS.update({(u, "at"): _at(u) for u in UFUNCS})
REDUCTIONS[np.add, "at"] = _add_at
if hasattr(np, "matvec"):  # from NumPy 2.2 on
    UFUNCS.update({
        np.matvec: lambda a, b: np.matmul(a, b[..., None])[..., 0],
        np.vecmat: lambda a, b: np.matmul(conj(a)[..., None, :], b)[..., 0, :],
    })  # fmt: skip
