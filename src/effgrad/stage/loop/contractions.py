"""Contractions of symbolic arrays in Einstein notation, and matrices built from parts."""

from collections.abc import Mapping, Sequence

import numpy as np

from effgrad.stage.loop import concatenation, fancy
from effgrad.stage.loop.affine import Affine, NotCaptured, fresh, variable
from effgrad.stage.loop.buffers import Element, constant, index
from effgrad.stage.loop.element import EQUAL, MULTIPLY, SQRT, WHERE, element
from effgrad.stage.loop.operands import Extent, Lazy, Value, View, flat, same_extent
from effgrad.stage.loop.registry import rule
from effgrad.stage.loop.symbols import Symbols

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@rule(np.einsum)
def _einsum(c: Symbols, subscripts: Value, *operands: Value, optimize: Value = False) -> Value:
    if not isinstance(subscripts, str) or "." in subscripts:
        raise NotCaptured("np.einsum with an ellipsis, or without letters")
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    terms = inputs.split(",")
    letters = "".join(terms)
    output = output if arrow else "".join(sorted(x for x in set(letters) if letters.count(x) == 1))
    return _contracted(c, terms, output, [c.lazy(x) for x in operands])


def _contracted(c: Symbols, terms: Sequence[str], output: str, operands: Sequence[Lazy]) -> Value:
    """The sum of products over all letters that the output lacks; products of many arrays are taken pair by pair."""
    if len(operands) > 2:
        kept = "".join(dict.fromkeys(x for x in terms[0] + terms[1] if x in output or any(x in t for t in terms[2:])))
        first = c.lazy(_contracted(c, terms[:2], kept, operands[:2]))
        return _contracted(c, [kept, *terms[2:]], output, [first, *operands[2:]])
    stored = [x if len(operands) == 1 else c.in_memory_once(x) for x in operands]
    extents = _extents(terms, stored)
    summed = [x for x in extents if x not in output]
    names = {letter: fresh("e") for letter in (*output, *summed)}
    values = [_at(term, x, names) for term, x in zip(terms, stored, strict=True)]
    value = c.typed(MULTIPLY, values, [False, False]) if len(values) == 2 else values[0]
    order = [*output, *summed]
    lazy = c.new_lazy([names[x] for x in order], [extents[x] for x in order], value)
    total = c.reduce(lazy, tuple(range(len(output), len(order)))) if summed else lazy
    if isinstance(total, View):
        total.buffer.order = _order(output, extents)
    return total


def _order(output: str, letters: Mapping[str, Extent]) -> str:
    """How NumPy lays a sum of products: it may lay the axes in the order in which the operands have them."""
    return "K" if [x for x in letters if x in output] == list(output) else "F"


def _extents(terms: Sequence[str], operands: Sequence[Lazy]) -> dict[str, Extent]:
    """The extent of the axes that each letter stands for."""
    extents: dict[str, Extent] = {}
    for term, x in zip(terms, operands, strict=True):
        if len(term) != len(x.shape):
            raise NotCaptured(f"np.einsum of an array of {len(x.shape)} axes as {term!r}")
        for letter, n in zip(term, x.shape, strict=True):
            if letter not in extents or same_extent(extents[letter], 1):
                extents[letter] = n
            elif not same_extent(n, 1) and not same_extent(n, extents[letter]):
                raise NotCaptured(f"np.einsum of axes of different lengths as {letter!r}")
    return extents


def _at(term: str, x: Lazy, names: Mapping[str, str]) -> Element:
    """The element of an operand at the point that the letters name."""
    pairs = zip(term, x.shape, strict=True)
    return x.element([0 if same_extent(n, 1) else variable(names[letter]) for letter, n in pairs])


@rule(np.tensordot)
def _tensordot(c: Symbols, a: Value, b: Value, axes: Value = 2) -> Value:
    x, y = c.lazy(a), c.lazy(b)
    na, nb = len(x.shape), len(y.shape)
    pairs = (range(na - axes, na), range(axes)) if isinstance(axes, int) else axes
    left, right = ([k] if isinstance(k, int) else list(k) for k in pairs)
    first, second = list(_LETTERS[:na]), list(_LETTERS[na : na + nb])
    for k, j in zip(left, right, strict=True):
        second[j] = first[k]
    gone = {first[k] for k in left}
    output = "".join(s for s in (*first, *second) if s not in gone)
    return _contracted(c, ["".join(first), "".join(second)], output, [x, y])


@rule(np.kron)
def _kron(c: Symbols, a: Value, b: Value) -> View | Lazy:
    x, y = c.lazy(a), c.lazy(b)
    if len(x.shape) != 2 or len(y.shape) != 2 or not all(isinstance(n, int) for n in (*x.shape, *y.shape)):
        raise NotCaptured("np.kron of arrays that are no matrices")
    product = _contracted(c, ["ik", "jl"], "ijkl", [x, y])
    return c.reshape(c.lazy(product), [x.shape[0] * y.shape[0], x.shape[1] * y.shape[1]])  # type: ignore[list-item]


@rule(np.linalg.norm)
def _norm(c: Symbols, x: Value, ord: Value = None, axis: Value = None, keepdims: bool = False) -> Value:
    value = c.lazy(x)
    if ord is not None or value.dtype.kind != "f" or isinstance(axis, tuple):
        return fancy.applied(c, np.linalg.norm, [x], {"ord": ord, "axis": axis, "keepdims": keepdims})
    return c.elementwise(SQRT, c.reduce(c.elementwise(MULTIPLY, value, value), axis, keepdims))


@rule(np.trace)
def _trace(c: Symbols, a: Value) -> Value:
    value = c.lazy(a)
    if len(value.shape) != 2 or not same_extent(*value.shape):
        raise NotCaptured("np.trace of an array that is no square matrix")
    return _contracted(c, ["ii"], "", [value])


@rule(np.diag)
def _diag(c: Symbols, v: Value) -> Value:
    value = c.lazy(v)
    if len(value.shape) == 2 and same_extent(*value.shape):
        return _contracted(c, ["ii"], "i", [value])
    if len(value.shape) != 1:
        raise NotCaptured("np.diag of a matrix that is not square")

    def at(point: list[Affine]) -> Element:
        test = element(EQUAL, *map(index, point))
        return element(WHERE, test, value.element(point[:1]), constant(0, value.dtype))

    return c.lazy_at([value.shape[0]] * 2, at)


@rule(np.block)
def _block(c: Symbols, arrays: Value) -> Value:
    depth, inner = 0, arrays
    while isinstance(inner, list) and inner:
        depth, inner = depth + 1, inner[0]
    rank = max(depth, *(len(c.lazy(x).shape) for x in flat([arrays])))
    joined = _joined(c, arrays, depth, rank)
    return joined if depth else c.copy(joined)


def _joined(c: Symbols, part: Value, depth: int, rank: int) -> Value:
    """Join a part of a matrix from lists nested in each other, the innermost along the last axis."""
    if isinstance(part, list) is (depth == 0):
        raise NotCaptured("np.block of lists that are not equally deep")
    if depth:
        return concatenation.concatenate(c, [_joined(c, p, depth - 1, rank) for p in part], -depth)
    return concatenation.at_least(c, part, rank)
