"""Moves: primitives each element of whose result is an element of an argument, or zero.

What a move does is its index map, which is the function itself: applied to the numbers of the elements (`numbered`), it
says which element goes where. Batches, Jacobians, patterns of sparsity and machine code follow from that. Two kinds of
rows say more, where numbers would take time or memory:

* a `view` is affine, an offset and a stride for each axis of the result, so that nothing moves at all;
* a join says the `places` of its arguments in the result, and its transpose is to read there.
"""

import itertools
import math
from collections.abc import Iterable
from typing import Unpack

import numpy as np

from effgrad.arrays.layout import shape_of
from effgrad.primitives import cotangents
from effgrad.primitives.primitive import Facts, Primitive, linear, zeros_like
from effgrad.vocabulary import Cotangent, Function, Option, Params, Shape, Tangent, Value


def move(
    function: Function, *transposes: Function, name: str = "", view: Function | None = None, **facts: Unpack[Facts]
) -> Primitive:
    """A primitive that only moves elements: each element of its result is an element of an argument, or zero.

    The index map is `function` itself: applied to the numbers of the elements (`numbered`), it says which element goes
    where. Batches, Jacobians, patterns and machine code are derived from that.

    With `view(x, **params)`, the map is affine wherever that is an array in the memory of `x`: an offset, and a stride
    for each axis. It raises ValueError where NumPy would copy; it never is a number, so it reads nothing.
    """
    primitive = linear(function, *transposes, name=name, moves=True, **facts)
    primitive.view = view
    return primitive


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
