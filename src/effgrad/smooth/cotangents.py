"""Cotangents, and the arithmetic that keeps structural zeros zero.

A cotangent is a number, an array, or one of two forms that know where they are zero *by construction*: `Masked`, zero
outside a mask (from `where`, `maximum`, `clip`), and `Scattered`, a sum of pieces at places of an otherwise zero array
(from indexing; in a loop over elements the pieces are collected in linear time). A structural zero stays zero through
an infinite or undefined partial, so a branch that was not taken never contributes a NaN.
"""

from typing import Any

import numpy as np

from effgrad.smooth.traced import KINDS, LAYERS, decided, evaluated, plain, staging


class Masked:
    """A cotangent that is structurally zero where `mask` is False."""

    __slots__ = ("value", "mask")

    def __init__(self, value: Any, mask: Any) -> None:
        self.value, self.mask = value, mask


def masked(value: Any, mask: Any) -> Any:
    """A cotangent with a mask; that of a number is zero as a whole (None), or not at all."""
    if np.ndim(mask) == 0:
        return value if mask else None
    return Masked(value, mask)


class Scattered:
    """The sum of `pieces`, pairs of an index and the cotangent there, in zeros of `shape`."""

    __slots__ = ("shape", "pieces")

    def __init__(self, shape: tuple[int, ...], pieces: list[tuple[Any, Any]]) -> None:
        self.shape, self.pieces = shape, pieces

    def settle(self) -> Masked:
        from effgrad.smooth.structure import scatter_add, setitem

        mask = np.zeros(self.shape, bool)
        pieces = [dense(piece) for _, piece in self.pieces]
        for index, _ in self.pieces:
            if staging(index) is None and type(mask) not in KINDS:
                mask[index] = True
            else:  # the place itself depends on the program's inputs
                mask = setitem(mask, True, index=index)
        indices = tuple(index for index, _ in self.pieces)
        return Masked(scatter_add(*pieces, shape=self.shape, indices=indices), mask)


def dense(g: Any) -> Any:
    """The cotangent as a plain or traced value."""
    if type(g) is Scattered:
        g = g.settle()
    return g.value if type(g) is Masked else g


def add(a: Any, b: Any) -> Any:
    """The sum of two contributions to one cotangent (the first may be None; `a` is owned by its cell)."""
    if a is None:
        return b
    if type(a) is Scattered and type(b) is Scattered:
        a.pieces.extend(b.pieces)
        return a
    if type(a) in FORMS or type(b) in FORMS:
        a, b = settled(a), settled(b)
        if type(a) is Masked and type(b) is Masked:
            return Masked(a.value + b.value, a.mask | b.mask)
        return dense(a) + dense(b)
    return a + b


FORMS = frozenset((Masked, Scattered))


def settled(g: Any) -> Any:
    return g.settle() if type(g) is Scattered else g


def product(g: Any, partial: Any) -> Any:
    """`g * partial`, where a scalar `partial` (going forward: tangent) that is exactly zero wins over an infinite `g`.

    The function inside is flat there: the derivative of sqrt(x**2) at 0 is taken as 0.
    """
    if (type(g) in KINDS or type(partial) in KINDS) and isinstance(g, float) and isinstance(partial, float):
        if type(g) not in LAYERS and type(partial) not in LAYERS:
            return evaluated(flat_product, g, partial)
    result = g * partial
    if type(result) in KINDS and isinstance(result, float) and not decided(value := plain(result)):
        # What an outer derivative sees of the product is only dropped where the product is undefined.
        return np.where((plain(partial) == 0) & (value != value), 0.0, result)
    if isinstance(result, float) and result != result and isinstance(partial, float) and partial == 0:
        return 0.0
    return result


def flat_product(g: Any, partial: Any) -> Any:
    """`product` of numbers, as one operation of a staged program."""
    return 0.0 if partial == 0 else g * partial


def strong(g: Any, weight: Any) -> Any:
    """`g * weight`, zero wherever the weight is."""
    if decided(weight) and np.ndim(g) == 0:
        return g * weight if weight else None
    return chosen(g, weight, nonzero(weight))


def nonzero(weight: Any) -> Any:
    return weight if getattr(weight, "dtype", None) == np.dtype(bool) else weight != 0


def chosen(g: Any, weight: Any, mask: Any) -> Any:
    """`g * weight` where the mask is, and zero elsewhere; a truth value as a weight chooses, and no more."""
    return np.where(mask, g if nonzero(weight) is weight else g * weight, 0.0)


def scale(g: Any, partial: Any) -> Any:
    """`g * partial`, keeping structural zeros."""
    if type(g) not in FORMS:
        return product(g, partial)
    g = settled(g)
    mask = np.broadcast_to(g.mask, np.broadcast_shapes(np.shape(g.mask), np.shape(partial)))
    with np.errstate(invalid="ignore"):
        return Masked(np.where(mask, g.value * partial, 0.0), mask)


def select(g: Any, weight: Any) -> Any:
    """The part of `g` that goes to an argument chosen with `weight`, structurally zero where the weight is zero."""
    value = dense(g)
    if decided(weight) and np.ndim(value) == 0:
        return value * weight if weight else None
    mask = np.broadcast_to(nonzero(weight), np.broadcast_shapes(np.shape(weight), np.shape(value)))
    if type(g) in FORMS:
        mask = mask & settled(g).mask
    return Masked(chosen(value, weight, mask), mask)


def transposed(transpose: Any, moves: bool, g: Any, *args: Any, **params: Any) -> Any:
    """`transpose` of a cotangent; a mask goes along where the function only moves elements."""
    if type(g) not in FORMS:
        return transpose(g, *args, **params)
    g = settled(g)
    value = transpose(g.value, *args, **params)
    if not moves or type(value) in FORMS:
        return value
    return masked(value, dense(transpose(g.mask * 1.0, *args, **params)) != 0)


def unbroadcast(g: Any, target: Any) -> Any:
    """Sum a cotangent over the axes along which its argument was broadcast."""
    if type(g) is float or g is None:
        return g
    shape = getattr(target, "shape", ())
    if type(g) in FORMS:
        g = settled(g)
        if np.shape(g.value) == shape:
            return g
        return masked(_sum_to(g.value, shape), _sum_to(g.mask * 1.0, shape) != 0)
    return g if getattr(g, "shape", ()) == shape else _sum_to(g, shape)


def _sum_to(g: Any, shape: tuple[int, ...]) -> Any:
    extra = np.ndim(g) - len(shape)
    if extra > 0:
        g = np.sum(g, axis=tuple(range(extra)))
    axes = tuple(i for i, n in enumerate(shape) if n == 1 and np.shape(g)[i] != 1)
    return np.sum(g, axis=axes, keepdims=True) if axes else g


def broadcast_like(t: Any, result: Any) -> Any:
    """A tangent with the shape of the result it belongs to."""
    if type(t) is float or t is None:
        return t if t is None or not getattr(result, "shape", ()) else np.broadcast_to(t, result.shape)
    shape = getattr(result, "shape", ())
    return t if getattr(t, "shape", ()) == shape else np.broadcast_to(t, shape)
