"""Moves in programs: the views that affine moves make, and constructors of moves for the passes.

An affine move is an offset and a stride for each axis of its result. NumPy works them out: the move is applied to an
array over memory that is never read.
"""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from effgrad.arrays.layout import address_of, shape_of
from effgrad.primitives import move
from effgrad.stage.nodes import Node
from effgrad.vocabulary import Index, Option, Value

Shape = tuple[int, ...]

# Stands for any memory, and is never read. It is as large as the largest text that a program may have an array of.
_ORIGIN = np.zeros(1 << 17)


_ORIGIN_ADDRESS = address_of(_ORIGIN)


@functools.cache
def contiguous(shape: Shape, dtype: Option) -> np.ndarray:
    """Return an array of this shape with the strides of C order, over memory that is never read."""
    strides, step = [], np.dtype(dtype).itemsize
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return np.lib.stride_tricks.as_strided(np.ndarray(1, dtype, _ORIGIN.data), shape, strides[::-1])


def offset_of(view: np.ndarray) -> int:
    """The offset, in bytes, of the first element of a view of an array that `contiguous` made."""
    return address_of(view) - _ORIGIN_ADDRESS


def view_of(node: Node, memory: np.ndarray) -> Value:
    """Return the result of a move as a view of its argument's memory; None if the move needs a copy."""
    try:
        return node.primitive.view(memory, **node.params)
    except ValueError:
        return None


def affine(node: Node) -> Value:
    """Return a move's view of an argument in C order; None if the operation is not an affine move of one node."""
    if not node.primitive.view or node.slots or type(node.args[0]) is not Node:
        return None
    return view_of(node, contiguous(node.args[0].shape, node.dtype))


def keeps_order(node: Node) -> bool:
    """Whether a node has all elements of its argument, in the same order."""
    view = affine(node)
    if view is None or view.size != node.args[0].size:
        return False
    return bool(view.flags.c_contiguous and not (view.size and offset_of(view)))


def is_broadcast(value: Value) -> bool:
    """Whether a value is the broadcast of another."""
    return type(value) is Node and value.primitive is move.broadcast_to


def made(like: Node, primitive: Any, args: Sequence[Value], shape: Shape, params: Any, slots: Value = ()) -> Node:
    """Return a new node with the dtype of `like`, and also its class if it has its shape."""
    kind = like.kind if shape == like.shape else np.ndarray
    return like.changed(primitive=primitive, args=tuple(args), params=params, slots=slots, shape=shape, kind=kind)


# Constructors of new nodes.


def reshaped(like: Node, x: Value, shape: Shape) -> Node:
    return made(like, move.reshape, [x], shape, {"shape": shape})


def transposed(like: Node, x: Value, axes: Shape) -> Node:
    return made(like, move.transpose, [x], tuple(shape_of(x)[i] for i in axes), {"axes": axes})


def broadcast(like: Node, x: Value, shape: Shape) -> Node:
    return made(like, move.broadcast_to, [x], shape, {"shape": shape})


def part(like: Node, x: Value, index: Index, shape: Shape, slots: tuple[Node, ...] = ()) -> Node:
    return made(like, move.getitem, [x], shape, {"index": index}, slots)


def concatenated(like: Node, pieces: Sequence[Value], axis: int) -> Node:
    shape, _ = move.concatenate.places([*map(shape_of, pieces)], axis)
    return made(like, move.concatenate, pieces, shape, {"axis": axis})


def stacked(like: Node, pieces: Sequence[Value], axis: int) -> Node:
    shape, _ = move.stack.places([*map(shape_of, pieces)], axis)
    return made(like, move.stack, pieces, shape, {"axis": axis})


def converted(like: Node, x: Value) -> Node:
    """Return a conversion to the dtype of `like`."""
    return made(like, move.astype, [x], shape_of(x), {"dtype": like.dtype})


def repeated_constant(value: Value, like: np.ndarray) -> Node:
    """Return the node that broadcasts a part of a constant array to the whole array, `like`."""
    return Node(move.broadcast_to, (value,), {"shape": like.shape}, (), like)
