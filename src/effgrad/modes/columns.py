"""Forward mode along many directions at once, for the columns of a Jacobian.

The tangent of a value of shape `s` is one array of shape `(n, *s)`: a row for each direction. The program runs once,
partials are computed once, and what the directions share in Python is paid once. Rules follow from those of the
primitives: a partial multiplies all rows; a linear function is applied to all rows, with its axes one further on (the
table below). For any other primitive, each row is pushed by itself. This is the vector mode of Griewank and Walther
2008, section 3.2, for plain NumPy arrays.
"""

import string
from typing import Any

import numpy as np

from effgrad.arrays import memory
from effgrad.arrays.value import KINDS, Traced
from effgrad.modes.forward import Forward
from effgrad.primitives import cotangents, move, product, reduction


class Columns(Forward):
    """Forward mode along several directions; a traced value's shadow is its tangents, one after another, or None."""

    value = Traced

    def __init__(self, count: int) -> None:
        self.count = count

    def apply(self, primitive: Any, *args: Any, **params: Any) -> Traced:
        primals = [self.primal(a) for a in args]
        result = primitive(*primals, **params)  # performed in the handlers below
        tangents = [a.shadow if type(a) in KINDS and a.owner is self else None for a in args]
        if all(t is None for t in tangents):
            return Traced(self, result, None)
        return Traced(self, result, self.push(primitive, tangents, result, primals, params))

    def push(self, primitive: Any, tangents: list[Any], result: Any, primals: list[Any], params: Any) -> Any:
        """The tangents of a result, of shape `(n, *shape)`, or None."""
        shape = np.shape(result)
        if not any(type(value) in KINDS for value in (result, *primals)):
            if primitive.kind == "elementwise":
                parts = [
                    _scaled(primitive, index, _aligned(t, len(shape)), result, primals)
                    for index, t in enumerate(tangents)
                    if t is not None and primitive.partials[index] is not None
                ]
                return np.broadcast_to(sum(parts[1:], parts[0]), (self.count, *shape)) if parts else None
            if primitive in TOGETHER:
                pushed = TOGETHER[primitive]([self.rows(*of) for of in zip(tangents, primals, strict=True)], **params)
                if pushed is not None:
                    return pushed
            if primitive in PRODUCTS:
                rule = PRODUCTS[primitive]
                return sum(rule(index, t, primals, **params) for index, t in enumerate(tangents) if t is not None)
        rows = [
            primitive.push_all([None if t is None else t[row] for t in tangents], result, primals, params)
            for row in range(self.count)
        ]
        if all(row is None for row in rows):
            return None
        return np.stack([np.broadcast_to(0.0 if row is None else row, shape) for row in rows])

    def rows(self, tangents: Any, primal: Any) -> Any:
        """Tangents as an array, also where they are zero by construction."""
        return np.zeros((self.count, *np.shape(primal))) if tangents is None else tangents


def _aligned(t: Any, rank: int) -> Any:
    """Tangents of a value that is broadcast to some number of axes."""
    missing = rank - (t.ndim - 1)
    return t.reshape(t.shape[0], *(1,) * missing, *t.shape[1:]) if missing else t


def _scaled(primitive: Any, index: int, t: Any, result: Any, primals: list[Any]) -> Any:
    partial = primitive.partials[index]
    weight = partial(result, *primals) if callable(partial) else partial
    if primitive.selects:
        return cotangents.chosen(t, weight, cotangents.nonzero(weight))
    if np.ndim(result) or np.isfinite(weight):
        return t * weight
    # Of numbers, a tangent of zero wins: see `cotangents.product`.
    with np.errstate(invalid="ignore"):
        return np.where(t == 0, 0.0, t * weight)


def _along(index: Any) -> Any:
    """An index of each row, or None if NumPy would move its axes to the front."""
    parts = index if type(index) is tuple else (index,)
    chosen = [place for place, part in enumerate(parts) if not isinstance(part, slice | None | type(...))]
    if chosen and chosen[-1] - chosen[0] >= len(chosen) and not move.BASIC.issuperset(map(type, parts)):
        return None
    return slice(None), *parts


def _getitem(tangents: list[Any], index: Any) -> Any:
    along = _along(index)
    return along and tangents[0][along]


def _setitem(tangents: list[Any], index: Any) -> Any:
    along = _along(index)
    if along is None:
        return None
    result = _copy(tangents)
    place = result[along]
    result[along] = np.broadcast_to(_aligned(tangents[1], place.ndim - 1), place.shape)
    return result


def _overwrite(tangents: list[Any], places: Any) -> Any:
    result = _copy(tangents)
    flat = result.reshape(len(result), -1)
    for t, place in zip(tangents[1:], places, strict=True):
        flat[:, place] = t.reshape(len(t), -1) if np.ndim(place) else t.reshape(len(t))
    return result


def _copy(tangents: list[Any]) -> Any:
    """The first tangents in memory that can be written to with the others."""
    return np.array(tangents[0], np.result_type(*tangents), order="C")


def _reshape(tangents: list[Any], shape: Any) -> Any:
    (t,) = tangents
    return t.reshape(len(t), *np.empty(t.shape[1:], bool).reshape(shape).shape)


def _transpose(tangents: list[Any], axes: Any) -> Any:
    (t,) = tangents
    rank = t.ndim - 1
    order = range(rank)[::-1] if axes is None else [axis % rank for axis in axes]
    return np.transpose(t, (0, *[axis + 1 for axis in order]))


def _broadcast_to(tangents: list[Any], shape: Any) -> Any:
    (t,) = tangents
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    return np.broadcast_to(_aligned(t, len(shape)), (len(t), *shape))


def _sum(tangents: list[Any], axis: Any) -> Any:
    (t,) = tangents
    rank = t.ndim - 1
    if not rank:
        return t
    axes = range(rank) if axis is None else axis if isinstance(axis, tuple | list) else (axis,)
    return cotangents.total_over(t, tuple(sorted(a % rank + 1 for a in axes)))


def _concatenate(tangents: list[Any], axis: int) -> Any:
    return np.concatenate(tangents, axis % (tangents[0].ndim - 1) + 1)


def _stack(tangents: list[Any], axis: int) -> Any:
    return np.stack(tangents, axis % tangents[0].ndim + 1)


def _matmul(index: int, t: Any, primals: list[Any]) -> Any:
    a, b = (t, primals[1]) if index == 0 else (primals[0], t)
    ranks = [np.ndim(p) for p in primals]
    # A vector is a matrix of one row, or of one column, whose axis is taken away at the end.
    a = a[..., None, :] if ranks[0] == 1 else a
    b = b[..., None] if ranks[1] == 1 else b
    rank = max(*ranks, 2)
    result = np.matmul(_aligned(a, rank), b) if index == 0 else np.matmul(a, _aligned(b, rank))
    result = result[..., 0] if ranks[1] == 1 else result
    return result if ranks[0] > 1 else result[..., 0] if ranks[1] == 1 else result[..., 0, :]


def _einsum(index: int, t: Any, primals: list[Any], subscripts: str) -> Any:
    inputs, output = subscripts.split("->")
    terms = inputs.split(",")
    letter = min(set(string.ascii_letters) - set(subscripts))
    target, others = terms.pop(index), [*primals[:index], *primals[index + 1 :]]
    if len(others) > 1:
        # First what is the same for all rows, so that one product with the tangents is left.
        kept = "".join(sorted(set("".join(terms)) & set(target + output)))
        others = [np.einsum(f"{','.join(terms)}->{kept}", *others, optimize=True)]
        terms = [kept]
    return np.einsum(f"{','.join([*terms, letter + target])}->{letter}{output}", *others, t, optimize=True)


# Linear in all their arguments together: the rule is given the tangents of all.
TOGETHER: dict[Any, Any] = {
    move.getitem: _getitem, move.setitem: _setitem, memory.overwrite: _overwrite,
    move.reshape: _reshape, move.transpose: _transpose, move.broadcast_to: _broadcast_to,
    move.concatenate: _concatenate, move.stack: _stack, reduction.sum_: _sum,
    move.astype: lambda tangents, dtype: tangents[0].astype(dtype),
    move.tril: lambda tangents, k: np.tril(tangents[0], k),
    move.triu: lambda tangents, k: np.triu(tangents[0], k),
}  # fmt: skip
# Linear in each argument: the rule is given the number of one, its tangents, and all values.
PRODUCTS: dict[Any, Any] = {product.matmul: _matmul, product.einsum: _einsum}
