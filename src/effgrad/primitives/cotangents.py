"""Cotangents, and the arithmetic that keeps structural zeros zero.

A cotangent is a number, an array, or one of three forms that store where they are structurally zero. `Masked` is zero
outside a mask (from `where`, `maximum`, `clip`). `Block` is a plain value at a basic index of an otherwise zero array
(from slicing). `Scattered` is a sum of pieces at any indices of an otherwise zero array; a loop over elements collects
its pieces in linear time. A structural zero stays zero when it is multiplied by an infinite or undefined partial, so a
branch that was not taken never contributes a NaN.
"""

import math
from sys import getrefcount

import numpy

from effgrad.arrays.layout import DOUBLES, LARGE_BYTES, index_parts, is_basic
from effgrad.arrays.reach import np
from effgrad.arrays.value import Tracer, decided, operations, plain, staging
from effgrad.primitives.indices import basic
from effgrad.primitives.totals import sum_to
from effgrad.vocabulary import Cotangent, Function, Index, Option, Shape, Value


class Masked:
    """A cotangent that is structurally zero where `mask` is False."""

    __slots__ = ("value", "mask")

    def __init__(self, value: Value, mask: Value) -> None:
        self.value, self.mask = value, mask


def masked(value: Value, mask: Value) -> Value:
    """Return a cotangent with a mask; a mask that is one truth value gives the whole value, or None for zero."""
    if np.ndim(mask) == 0 and not (isinstance(mask, Tracer) and mask.by_outline):
        return value if mask else None
    return Masked(value, mask)  # this includes a number whose mask differs among the members of a batch


class Block:
    """A plain value at a basic index of an array of `shape` that is zero elsewhere; it is immutable."""

    __slots__ = ("shape", "index", "value")

    def __init__(self, shape: Shape, index: Index, value: Value) -> None:
        self.shape, self.index, self.value = shape, index, value

    def total(self) -> Value:
        total = _zeros(self.shape, np.result_type(self.value))
        total[self.index] = self.value
        return total

    def known(self) -> Value:
        """Return the mask of the elements that are not structurally zero."""
        mask = _zeros(self.shape, bool)
        mask[self.index] = True
        return mask

    def times(self, partial: Value) -> "Block":
        """Return the product with a finite number, or with a plain array of the shape."""
        factor = partial[self.index] if type(partial) is np.ndarray else partial
        return Block(self.shape, self.index, self.value * factor)

    def onto(self, array: Value, own: bool = False) -> Value:
        """Return the sum with a plain array of the shape; with `own` the sum is computed in place."""
        dtype = np.result_type(array, self.value)
        total = array.astype(dtype, copy=not own)
        total[self.index] += self.value
        return total

    def onto_masked(self, other: Masked) -> Masked:
        mask = other.mask
        if not np.logical_and.reduce(mask[self.index], axis=None):
            mask = mask.copy()
            mask[self.index] = True
        return Masked(self.onto(other.value), mask)

    @property
    def pieces(self) -> list[tuple[Value, Value]]:
        """The block as the only piece of a `Scattered`."""
        return [(self.index, self.value)]


def block(shape: Shape, index: Index, value: Value) -> Value:
    """Return a plain value at a basic index of zeros, as an array if the value fills all of it."""
    if type(value) is np.ndarray and value.size == math.prod(shape):
        steps = [part.step for part in index_parts(index) if type(part) is slice]
        if all(step is None or step > 0 for step in steps):
            return value.reshape(shape)
    return Block(shape, index, value)


def scatter_into_zeros(g: Cotangent, shape: Shape, index: Index) -> Value:
    """Return a cotangent added to zeros of a shape at an index, which may name an element twice."""
    if not shape:
        return np.sum(g)
    if type(g) in PLAIN and is_basic(index):
        return block(shape, index, g)
    return Scattered(shape, [(index, g)])


class Scattered:
    """The sum of `pieces`, pairs of an index and the cotangent there, in zeros of `shape`."""

    __slots__ = ("shape", "pieces")

    def __init__(self, shape: Shape, pieces: list[tuple[Value, Value]]) -> None:
        self.shape, self.pieces = shape, pieces

    def total(self) -> Value:
        pieces = [dense(piece) for _, piece in self.pieces]
        indices = tuple([index for index, _ in self.pieces])
        return operations.scatter_add(*pieces, shape=self.shape, indices=indices)

    def known(self) -> Value:
        mask: Value = _zeros(self.shape, bool)
        for index, piece in self.pieces:
            inside = known_of(piece)
            placed = type(mask) is np.ndarray and staging((index,)) is None
            if placed and inside is True:
                mask[index] = True
            elif placed and type(inside) is np.ndarray:
                if basic(index):
                    mask[index] |= inside  # `at` takes 600 times as long for 100,000 elements
                else:
                    np.logical_or.at(mask, index, inside)
            elif inside is True:  # the index itself depends on the program's inputs
                mask = operations.setitem(mask, True, index=index)
            else:
                mask = mask | (operations.scatter_add(inside * 1.0, shape=self.shape, indices=(index,)) != 0)
        return mask


def known_of(g: Cotangent) -> Value:
    """Return the mask of the elements that are not structurally zero, or True for all."""
    return g.mask if type(g) is Masked else g.known() if type(g) in FORMS else True


def dense(g: Cotangent) -> Value:
    """Return the cotangent as a plain or traced value, without structural zeros."""
    if type(g) is Masked:
        return g.value
    return g.total() if type(g) in FORMS else g


def typed(part: Cotangent, value: Value) -> Cotangent:
    """Return a tangent or cotangent in the precision of the value that it belongs to, and real if the value is real.

    Otherwise double-precision constants, and functions that compute in double precision, would turn all derivatives
    propagated from them to double. Every mode gets its parts through this function, so no rule has to check it.
    """
    kind, of = type(part), type(value)
    if kind is of is np.ndarray and part.dtype is value.dtype:
        return part
    if part is None or (kind in DOUBLES and of in DOUBLES):
        return part
    if kind in FORMS:
        return _typed_form(part, value)
    value = plain(value)
    dtype = _DOUBLE if type(value) is float else getattr(value, "dtype", None)
    return _in_dtype(part, dtype) if getattr(dtype, "kind", "") in ("f", "c") else part


def _in_dtype(part: Cotangent, wanted: Value) -> Cotangent:
    given = getattr(plain(part), "dtype", None)
    if given is None:  # a Python number, which takes the precision of the other operand
        return part.real if wanted.kind == "f" and isinstance(part, complex) else part
    if given == wanted or given.kind not in "biufc":
        return part
    if given.kind == "c" and wanted.kind == "f":
        part, given = np.real(part), np.finfo(given).dtype
    elif given.kind != "c" and wanted.kind == "c":
        wanted = np.finfo(wanted).dtype
    return part if given == wanted else part.astype(wanted)


def _typed_form(g: Cotangent, value: Value) -> Cotangent:
    if type(g) is Scattered:
        pieces = [(index, typed(piece, value)) for index, piece in g.pieces]
        same = all(new is old for (_, new), (_, old) in zip(pieces, g.pieces, strict=True))
        return g if same else Scattered(g.shape, pieces)
    inner = typed(g.value, value)
    if inner is g.value:
        return g
    return Masked(inner, g.mask) if type(g) is Masked else Block(g.shape, g.index, inner)


def add(a: Value, b: Value) -> Value:
    """Return the sum of two contributions to one cotangent; `a` may be None, and is owned by its cell."""
    if a is None:
        return b
    return a + b if type(a) not in FORMS and type(b) not in FORMS else _add_forms(a, b)


def _add_forms(a: Cotangent, b: Cotangent) -> Cotangent:
    """Return the sum of two cotangents, of which at least one is in `FORMS`."""
    if type(a) is Scattered and type(b) in (Scattered, Block):
        a.pieces.extend(b.pieces)
        return a
    if type(a) is Block:
        if type(b) in (Scattered, Block):
            return Scattered(a.shape, [*a.pieces, *b.pieces])
        a, b = b, a
    if type(b) is Block and type(a) is np.ndarray:
        return b.onto(a)
    if type(b) is Block and _is_plain_masked(a, b.shape):
        return b.onto_masked(a)
    if type(a) in FORMS and type(b) in FORMS:
        a, b = to_masked(a), to_masked(b)
        return Masked(a.value + b.value, a.mask if a.mask is b.mask else a.mask | b.mask)
    return dense(a) + dense(b)


def _is_plain_masked(g: Cotangent, shape: Shape) -> bool:
    """Return whether a cotangent is `Masked`, and its value and mask are plain arrays of the given shape."""
    return type(g) is Masked and type(g.value) is type(g.mask) is np.ndarray and g.mask.shape == shape


FORMS = frozenset((Masked, Block, Scattered))
# The dtype of double precision, and the classes of plain cotangents.
_DOUBLE = np.dtype(float)
PLAIN = DOUBLES | {np.ndarray}


def accumulate(cells: list[Cotangent], name: int, part: Cotangent) -> None:
    """Add a contribution to a cell that has one; do it in place if nothing else refers to the array."""
    before = cells[name]
    if type(before) is type(part) is np.ndarray and before.nbytes < LARGE_BYTES:
        cells[name] = before + part
        return
    del before  # `own_array` counts the references to the array
    own = own_array(cells, name)
    before = cells[name]
    if type(before) is np.ndarray:
        if type(part) is np.ndarray:
            if own and before.shape == part.shape and before.dtype == part.dtype:
                np.add(before, part, before)
            else:
                cells[name] = before + part
            return
        if type(part) is Block:
            cells[name] = part.onto(before, own)
            return
    cells[name] = add(before, part)


def own_array(cells: list[Cotangent], name: int) -> bool:
    """Return whether the list entry is a large array that owns its memory and to which nothing else refers."""
    array = cells[name]
    large = type(array) is np.ndarray and array.nbytes >= LARGE_BYTES
    return large and getrefcount(array) == ALONE and array.base is None and array.flags.writeable


def _references(cells: list[Cotangent], name: int) -> int:
    array = cells[name]
    return getrefcount(array)


# The reference count of an object held only by a list; it is measured because it depends on the Python version.
ALONE = _references([object()], 0)


def to_masked(g: Cotangent) -> Value:
    return g if type(g) is Masked or type(g) not in FORMS else Masked(g.total(), g.known())


def times_weight(g: Cotangent, weight: Value) -> Value:
    """Return `g * weight`, which is zero wherever the weight is zero."""
    if decided(weight) and np.ndim(g) == 0:
        return g * weight if weight else None
    return chosen(g, weight, nonzero(weight))


def nonzero(weight: Value) -> Value:
    return weight if getattr(weight, "dtype", None) == np.dtype(bool) else weight != 0


def chosen(g: Cotangent, weight: Value, mask: Value) -> Value:
    """Return `g * weight` where the mask is true, and zero elsewhere; a boolean weight only selects."""
    return np.where(mask, g if nonzero(weight) is weight else g * weight, 0.0)


def scale(g: Cotangent, partial: Value) -> Value:
    """Return `g * partial`, keeping structural zeros."""
    if type(g) not in FORMS:
        return g * partial
    if type(g) is Block and (
        partial.shape == g.shape if type(partial) is np.ndarray else type(partial) is float and math.isfinite(partial)
    ):
        return g.times(partial)
    g = to_masked(g)
    if type(partial) is float and math.isfinite(partial):
        return Masked(g.value * partial, g.mask)
    if type(g.value) is type(partial) is np.ndarray and g.value.shape == partial.shape:
        if np.logical_and.reduce(np.isfinite(partial), axis=None):
            return Masked(g.value * partial, g.mask)  # zeros stay zero, in a fifth of the time of `_product_where`
        return Masked(_product_where(g.mask, g.value, partial), g.mask)
    with np.errstate(invalid="ignore"):
        value = np.where(g.mask, g.value * partial, 0.0)
    return Masked(value, g.mask if np.shape(value) == np.shape(g.mask) else np.broadcast_to(g.mask, np.shape(value)))


def _product_where(mask: Value, a: Value, b: Value) -> Value:
    """Return the product of plain arrays, which is zero and is not computed outside the mask."""
    return np.multiply(a, b, where=mask, out=_zeros(a.shape, np.result_type(a, b)))


# Functions of NumPy itself, without rules.
_zeros = numpy.zeros


def select(g: Cotangent, weight: Value) -> Value:
    """Return the part of `g` for an argument chosen with `weight`, structurally zero where the weight is zero."""
    value = dense(g := to_masked(g))
    if decided(weight) and np.ndim(value) == 0:
        return value * weight if weight else None
    mask = nonzero(weight)
    alike = type(mask) is type(value) is type(weight) is np.ndarray and mask.shape == value.shape
    if not alike:
        mask = np.broadcast_to(mask, np.broadcast_shapes(np.shape(weight), np.shape(value)))
    if type(g) is Masked:
        mask = mask & g.mask
    return Masked(_product_where(mask, value, weight) if alike else chosen(value, weight, mask), mask)


def transposed(transpose: Value, moves: bool, g: Cotangent, *args: Value, **params: Option) -> Value:
    """Return `transpose` of a cotangent; if the function only moves elements, the mask is transposed with it."""
    if type(g) not in FORMS:
        return transpose(g, *args, **params)
    whole = dense(g)
    value = transpose(whole, *args, **params)
    if type(value) in (Block, Scattered) and moves:
        placed = [(index, g if piece is whole else masked(piece, known_of(g))) for index, piece in value.pieces]
        kept = [(index, piece) for index, piece in placed if piece is not None]
        return Scattered(value.shape, kept) if kept else None
    if not moves or type(value) is Masked:
        return value
    return masked(value, as_mask(transpose(movable(known_of(g)), *args, **params)))


def mapped(function: Function, g: Cotangent) -> Cotangent:
    """Return a linear function of each element of a cotangent, keeping structural zeros."""
    if type(g) is Scattered:
        return Scattered(g.shape, [(index, mapped(function, piece)) for index, piece in g.pieces])
    if type(g) is Block:
        return Block(g.shape, g.index, function(g.value))
    return Masked(function(g.value), g.mask) if type(g) is Masked else function(g)


def movable(mask: Value) -> Value:
    """Return a mask in the form in which the transpose of a move takes it: plain truth values, or traced numbers."""
    return mask if type(mask) is np.ndarray else mask * 1.0


def as_mask(moved: Value) -> Value:
    """Return the mask that a transpose has made from the result of `movable`."""
    moved = dense(moved)
    return moved if type(moved) is np.ndarray and moved.dtype == bool else moved != 0


def unbroadcast(g: Cotangent, target: Value) -> Value:
    """Sum a cotangent over the axes along which its argument was broadcast."""
    if type(g) is float or g is None:
        return g
    shape = getattr(target, "shape", ())
    if type(g) is Block and g.shape == shape:
        return g
    if type(g) in FORMS:
        g = to_masked(g)
        if np.shape(g.value) == shape:
            return g
        return masked(sum_to(g.value, shape), sum_to(g.mask * 1.0, shape) != 0)
    return g if getattr(g, "shape", ()) == shape else sum_to(g, shape)
