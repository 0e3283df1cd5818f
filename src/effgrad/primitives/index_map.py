"""Moves: primitives each element of whose result is an element of an argument, or zero.

What a move does is its index map, which is the function itself: applied to the numbers of the elements (`numbered`), it
says which element goes where. Batches, Jacobians, patterns of sparsity and machine code follow from that. Two kinds of
rows say more, where numbers would take time or memory:

* a `view` is affine, an offset and a stride for each axis of the result, so that nothing moves at all;
* a join says the `places` of its arguments in the result, and its transpose is to read there.
"""

import functools
import itertools
import math
from collections.abc import Iterable, Iterator
from typing import Unpack

import numpy as np

from effgrad.arrays.layout import shape_of
from effgrad.primitives import cotangents
from effgrad.primitives.indices import winners
from effgrad.primitives.primitive import Facts, Primitive, linear, zeros_like
from effgrad.vocabulary import Cotangent, Function, Option, Params, Shape, Tangent, Value


def move(
    function: Function, *, name: str = "", view: Function | None = None, source: Function | None = None,
    clears: bool = False, **facts: Unpack[Facts],
) -> Primitive:  # fmt: skip
    """A primitive that only moves elements: each element of its result is an element of its argument, or zero.

    The index map is `function` itself: applied to the numbers of the elements (`numbered`), it says which element goes
    where. Batches, Jacobians, patterns and machine code are derived from that. The transpose follows from a fact that
    needs no numbers:

    * with `view(x, **params)`, the map is affine wherever that is an array in the memory of `x`: an offset, and a
      stride for each axis. It raises ValueError where NumPy would copy; it never is a number, so it reads nothing;
    * with `source(**params)`, the result is what the argument has at that index;
    * otherwise each element stays at its place, or with `clears` may be zero there.
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
    """The transpose of a function that makes some elements zero is the function; what it clears is zero for certain."""

    def transpose(g: Cotangent, x: Value, **params: Option) -> Cotangent:
        return cotangents.Masked(function(g, **params), function(np.ones(shape_of(g), bool), **params))

    return transpose


def _added_to(source: Function) -> Function:
    """The transpose of a function that reads an index: the cotangent is added to zeros there."""

    return lambda g, x, **params: cotangents.placed(g, shape_of(x), source(**params))


def _walked_back(view: Function) -> Function:
    """The transpose of an affine map that reads every element: sums of repeats, another order of axes, a shape."""
    way_back = functools.lru_cache(1024)(functools.partial(_way_back, view))

    def transpose(g: Cotangent, x: Value, **params: Option) -> Cotangent:
        shape = shape_of(x)
        try:
            repeats, order = way_back(shape, **params)
        except TypeError:  # a list of lengths is no key
            repeats, order = _way_back(view, shape, **params)
        if repeats:
            g = cotangents.sum_over(g, repeats)
        if order:
            g = g.T if order == tuple(range(len(order)))[::-1] else g.transpose(order)
        if shape_of(g) == shape:
            return g
        return g.reshape(shape) if type(g) is np.ndarray else np.reshape(g, shape)

    return transpose


def _way_back(view: Function, shape: Shape, /, **params: Option) -> tuple[Shape, Shape]:
    """The axes of a view along which elements repeat, and the order of the others as they lie in memory, if it differs.

    They are read off the strides of the view of an array of a shape whose elements nobody reads.
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


def numbered(shapes: Iterable[Shape], known: Iterable[bool] | None = None) -> list[Value]:
    """The numbers of the elements of arrays of some shapes, counted from 1 on; those that are not `known` are 0."""
    arrays, start = [], 1
    for shape, counted in zip(shapes, itertools.repeat(True) if known is None else known, strict=False):
        size = math.prod(shape) if counted else 0
        arrays.append(np.arange(start, start + size).reshape(shape) if counted else np.zeros(shape, int))
        start += size
    return arrays


def broadcast_numbers(shape: Shape, into: Shape) -> Value:
    """For each element of an array broadcast to a shape, the number of the element that it repeats, from 0 on."""
    return np.broadcast_to(np.arange(math.prod(shape)).reshape(shape), into).ravel()


def join(places: Function, function: Function, name: str, *, adds: bool = False, **facts: Unpack[Facts]) -> Primitive:
    """A move that puts each of its arguments to a place in its result, which only with `adds` may meet: they add up.

    `places(shapes, **params)` gives the shape of the result, and for each argument the index of its place; the rest is
    zero. The transpose is to read there.
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
    """A move that writes values over its first argument, one after another.

    `place(number, shape, **params)` is the index where a value is written. The transpose reads there what has not been
    written over, of which `distinct` says that it is everything; and it makes the cotangent of the first argument zero
    at all places, by the move itself or by `clear(g, **params)`.
    """

    def transpose(wanted: list[int], g: Cotangent, base: Value, *values: Value, **params: Option) -> Iterator[Value]:
        shape = shape_of(base)
        for i in wanted:
            if i == 0:
                yield clear(g, **params) if clear else primitive(g, *[0.0] * len(values), **params)
            else:
                index = place(i - 1, shape, **params)
                last = None if distinct else winners(index, shape)
                yield cotangents.unbroadcast(g[index] if last is None else g[index] * last, values[i - 1])

    primitive = moving(function, transpose, name, **facts)
    return primitive


def moving(function: Function, transpose: Function, name: str, **facts: Unpack[Facts]) -> Primitive:
    """A move of any number of arguments.

    `transpose(wanted, g, *args, **params)` gives the cotangents of the arguments whose numbers are `wanted`, all at
    once: an array made of n numbers has its derivative in time proportional to n.
    """
    primitive = Primitive(name, function, "linear", **facts)

    def push(tangents: list[Value], args: list[Value], params: Params) -> Tangent:
        return primitive(*[zeros_like(a) if t is None else t for t, a in zip(tangents, args, strict=True)], **params)

    def pull(wanted: list[int], g: Cotangent, args: list[Value], params: Params) -> list[Cotangent]:
        if type(g) not in cotangents.FORMS:
            return list(transpose(wanted, g, *args, **params))
        g = cotangents.settled(g)
        masks = transpose(wanted, cotangents.movable(g.mask), *args, **params)
        values = transpose(wanted, g.value, *args, **params)
        return [
            value if value is None else cotangents.masked(value, cotangents.as_mask(mask))
            for value, mask in zip(values, masks, strict=True)
        ]

    primitive.push_jointly, primitive.pull_jointly, primitive.moves = push, pull, True
    return primitive
