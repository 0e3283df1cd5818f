"""Moves, which are primitives whose result consists of elements of the arguments and zeros.

A move is determined by its index map, which the function itself gives: applied to the numbers of the elements
(`element_numbers`), it says which element goes where. Batches, Jacobians, sparsity patterns and machine code are
derived from that. Two kinds of rows state more, because the numbers would take time or memory:

* the index map of a `view` is affine (an offset, and a stride for each axis of the result), so no element moves in
  memory;
* a join states the `places` of its arguments in the result, and its transpose reads the cotangent there.
"""

import functools
import itertools
import math
from collections.abc import Iterable, Iterator
from typing import Unpack

import numpy as np

from effgrad.arrays.layout import shape_of
from effgrad.arrays.library_array import LibraryArray
from effgrad.arrays.value import is_lazy, plain
from effgrad.primitives import cotangents, totals
from effgrad.primitives.indices import last_writes
from effgrad.primitives.primitive import Facts, Primitive, linear, zeros_like
from effgrad.vocabulary import Cotangent, Function, Option, Params, Shape, Tangent, Value


def move(
    function: Function, *, name: str = "", view: Function | None = None, source: Function | None = None,
    clears: bool = False, **facts: Unpack[Facts],
) -> Primitive:  # fmt: skip
    """Return a primitive that only moves elements: each element of its result is an element of its argument, or zero.

    The transpose is not derived from the numbers of the elements, but from one of these facts:

    * with `view(x, **params)`, the index map is affine whenever this returns a view of the memory of `x`. It raises
      ValueError where NumPy would copy. It never returns a scalar, so it reads no elements;
    * with `source(**params)`, the result is the argument indexed by that index;
    * otherwise each element keeps its position, and with `clears` may become zero.
    """
    if source is not None:
        transpose = _added_to(source)
    elif view is not None:
        transpose = _walked_back(view)
    else:
        transpose = _cleared(function) if clears else lambda g, x, **params: g
    primitive = linear(function, transpose, name=name, moves=True, **facts)
    primitive.view = view
    return primitive


def _cleared(function: Function) -> Function:
    """Return the transpose of a function that sets some elements to zero.

    It is the function itself, and the cleared elements of the cotangent are structural zeros.
    """

    def transpose(g: Cotangent, x: Value, **params: Option) -> Cotangent:
        return cotangents.Masked(function(g, **params), function(np.ones(shape_of(g), bool), **params))

    return transpose


def _added_to(source: Function) -> Function:
    """Return the transpose of a function that reads an index, which adds the cotangent to zeros at this index."""

    return lambda g, x, **params: cotangents.scatter_into_zeros(g, shape_of(x), source(**params))


def _walked_back(view: Function) -> Function:
    """Return the transpose of an affine map that reads every element: it sums repeats, reorders axes and reshapes."""
    way_back = functools.lru_cache(1024)(functools.partial(_way_back, view))

    def transpose(g: Cotangent, x: Value, **params: Option) -> Cotangent:
        shape = shape_of(x)
        try:
            repeats, order = way_back(shape, **params)
        except TypeError:  # a shape given as a list is not hashable, so it cannot be a cache key
            repeats, order = _way_back(view, shape, **params)
        if repeats:
            g = totals.sum_over(g, repeats)
        if order:
            g = g.T if order == tuple(range(len(order)))[::-1] else g.transpose(order)
        if shape_of(g) == shape:
            return g
        return g.reshape(shape) if type(g) is np.ndarray else np.reshape(g, shape)

    return transpose


def _way_back(view: Function, shape: Shape, /, **params: Option) -> tuple[Shape, Shape]:
    """Return the axes of a view along which elements repeat, and the order of its other axes in memory.

    The order is empty if it is already that of memory. Both are read off the strides of the view of an array of the
    given shape whose elements are never read.
    """
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    seen = view(np.lib.stride_tricks.as_strided(np.zeros(1, np.int8), shape, strides), **params)
    long = [axis for axis, length in enumerate(seen.shape) if length != 1 and math.prod(shape)]
    repeats = tuple(axis for axis in long if seen.strides[axis] == 0)
    rest = [axis for axis in range(seen.ndim) if axis not in repeats]
    steps = [seen.strides[axis] for axis in rest if axis in long]
    if steps == sorted(steps, reverse=True):
        return repeats, ()
    order = sorted(range(len(rest)), key=lambda place: -seen.strides[rest[place]])
    return repeats, tuple(order)


def element_numbers(shapes: Iterable[Shape], known: Iterable[bool] | None = None) -> list[Value]:
    """Return arrays of the given shapes that hold the numbers of their elements.

    The elements of all arrays are counted consecutively from 1. An array that is not `known` holds zeros.
    """
    arrays, start = [], 1
    for shape, counted in zip(shapes, itertools.repeat(True) if known is None else known, strict=False):
        size = math.prod(shape) if counted else 0
        arrays.append(np.arange(start, start + size).reshape(shape) if counted else np.zeros(shape, int))
        start += size
    return arrays


def broadcast_numbers(shape: Shape, into: Shape) -> Value:
    """Return, for each element of an array broadcast to a shape, the number (from 0) of the element that it repeats."""
    return np.broadcast_to(np.arange(math.prod(shape)).reshape(shape), into).ravel()


def join(places: Function, function: Function, name: str, *, adds: bool = False, **facts: Unpack[Facts]) -> Primitive:
    """Return a move that puts each of its arguments at a place in its result.

    `places(shapes, **params)` gives the shape of the result and, for each argument, the index of its place. The rest of
    the result is zero. Only with `adds` may places overlap, and then the elements are added. The transpose reads the
    cotangent at the places.
    """

    def transpose(wanted: list[int], g: Cotangent, *args: Value, **params: Option) -> list[Value]:
        indices = places([shape_of(a) for a in args], **params)[1]
        return [g[indices[i]] for i in wanted]

    primitive = moving(function, transpose, name, **facts)
    primitive.places, primitive.moves = places, not adds
    return primitive


def writing(
    function: Function, place: Function, name: str, *, distinct: bool = False, clear: Function | None = None,
    **facts: Unpack[Facts],
) -> Primitive:  # fmt: skip
    """Return a move that writes values over its first argument, one after another.

    `place(number, shape, **params)` is the index at which a value is written. The cotangent of a value is that of the
    elements at its index that no later write has overwritten; `distinct` says that no element is overwritten. The
    cotangent of the first argument is zero at all places, which the move itself or `clear(g, **params)` achieves.
    """

    def transpose(wanted: list[int], g: Cotangent, base: Value, *values: Value, **params: Option) -> Iterator[Value]:
        shape = shape_of(base)
        for i in wanted:
            if i == 0:
                yield clear(g, **params) if clear else primitive(g, *[0.0] * len(values), **params)
            else:
                index = place(i - 1, shape, **params)
                last = None if distinct else last_writes(index, shape)
                yield cotangents.unbroadcast(g[index] if last is None else g[index] * last, values[i - 1])

    primitive = moving(function, transpose, name, overwrites=True, **facts)
    return primitive


def is_finite(value: Value) -> bool:
    """Whether an array has finite numbers only.

    A staged program does not know them, and takes the array for finite. A library that has not computed them yet, as
    Dask or JAX in `jit`, takes it for not finite.
    """
    if type(value) not in (np.ndarray, LibraryArray) or value.dtype.kind not in "fc":
        return True
    if is_lazy(value):
        return False
    try:
        return bool(np.all(np.isfinite(value)))
    except TypeError:
        return False


def moving(
    function: Function, transpose: Function, name: str, *, overwrites: bool = False, **facts: Unpack[Facts]
) -> Primitive:
    """Return a move of any number of arguments.

    `transpose(wanted, g, *args, **params)` gives the cotangents of the arguments numbered `wanted` all at once. So the
    derivative of an array made of n numbers takes time proportional to n. With `overwrites` the result lacks elements
    of the first argument. If this has elements that are not finite, those that are overwritten have cotangents that are
    structurally zero, since a partial may be infinite or undefined there.
    """
    primitive = Primitive(name, function, "linear", **facts)

    def push(tangents: list[Value], args: list[Value], params: Params) -> Tangent:
        return primitive(*[zeros_like(a) if t is None else t for t, a in zip(tangents, args, strict=True)], **params)

    def pull(wanted: list[int], g: Cotangent, args: list[Value], params: Params) -> list[Cotangent]:
        if type(g) not in cotangents.FORMS:
            if not overwrites or 0 not in wanted or is_finite(plain(args[0])):
                return list(transpose(wanted, g, *args, **params))
            g = cotangents.Masked(g, np.ones(shape_of(g), bool))
        g = cotangents.to_masked(g)
        masks = transpose(wanted, cotangents.movable(g.mask), *args, **params)
        values = transpose(wanted, g.value, *args, **params)
        return [
            value if value is None else cotangents.masked(value, cotangents.as_mask(mask))
            for value, mask in zip(values, masks, strict=True)
        ]

    primitive.push_jointly, primitive.pull_jointly, primitive.moves = push, pull, True
    return primitive
