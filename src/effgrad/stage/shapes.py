"""The shapes rule: drop reshapes, transposes, broadcasts and sums that do nothing, and merge those in a row."""

import operator

import numpy as np

from effgrad.arrays.layout import dtype_of, shape_of
from effgrad.primitives import move, reduction
from effgrad.primitives.elementwise import add as plus
from effgrad.primitives.indices import as_tuple, permutation, reduced_axes, selects_all
from effgrad.primitives.primitive import Primitive
from effgrad.stage.moves import is_broadcast, part, reshaped
from effgrad.stage.nodes import Node
from effgrad.stage.rules import Add, Rule, fitting, key_of, weak
from effgrad.vocabulary import Index, Value


def shapes(node: Node, add: Add) -> Value:
    """Drop a reshape, transpose, broadcast or sum that does nothing, or merge it with the one before."""
    simpler = SHAPES.get(node.primitive)
    if simpler is not None:
        return fitting(node, simpler(node, add))
    if node.shape and node.primitive.kind == "elementwise":
        for a in node.args:
            if is_broadcast(a):
                return _unbroadcast_arguments(node)
    return node


def _shaped(node: Node, add: Add) -> Value:
    """Merge a chain of reshapes, or of broadcasts, into the last one; drop it if the shape does not change."""
    (a,) = node.args
    while type(a) is Node and a.primitive is node.primitive:
        (a,) = a.args
    if shape_of(a) == node.shape:
        return a
    done = a is node.args[0] and type(node.params["shape"]) is tuple and node.params["shape"] == node.shape
    return None if done else node.changed(args=(a,), params={"shape": node.shape})


def _transpose(node: Node, add: Add) -> Node | None:
    (a,) = node.args
    if type(a) is not Node:
        return None
    axes = permutation(node.params["axes"], len(node.shape))
    if a.primitive is node.primitive and type(a.args[0]) is Node:
        axes, a = tuple(permutation(a.params["axes"], len(a.shape))[i] for i in axes), a.args[0]
    if axes == tuple(range(len(axes))):
        return a
    done = a is node.args[0] and node.params["axes"] == axes
    return None if done else node.changed(args=(a,), params={"axes": axes})


def _sum(node: Node, add: Add) -> Node | None:
    (a,) = node.args
    shape = shape_of(a)
    axes = reduced_axes(node.params["axis"], len(shape))
    if type(a) is not Node or any(shape[i] != 1 for i in axes) or node.kind is not np.ndarray:
        return None
    if a.dtype != node.dtype:  # a sum of truth values or of small integers is of 64 bits
        return None
    return reshaped(node, a, node.shape) if axes else a


def _scatter_add(node: Node, add: Add) -> Value:
    """Add up pieces that go to one index first; a single piece that fills the array becomes a reshape or a gather."""
    if len(node.args) > 1:
        return _gathered(node, add)
    if len(node.args) != 1 or node.slots or type(node.args[0]) is not Node:
        return None
    (index,) = node.params["indices"]
    if all(i is None or selects_all(i) for i in as_tuple(index)):
        return reshaped(node, node.args[0], node.shape)
    return _rearranged(node, index, add)


def _rearranged(node: Node, index: Index, add: Add) -> Node | None:
    """Rewrite one piece that puts exactly one element into each place as an index that reads it from the piece."""
    (piece,) = node.args
    if piece.size != node.size or piece.dtype != node.dtype:
        return None
    places = np.arange(node.size).reshape(node.shape)[index]
    order = np.argsort(places, axis=None)
    if places.shape != piece.shape or (places.ravel()[order] != np.arange(node.size)).any():
        return None
    return part(node, add(reshaped(piece, piece, (piece.size,))), order.reshape(node.shape), node.shape)


def _gathered(node: Node, add: Add) -> Node | None:
    """Add up the pieces of a sum that go to the same index, before they are scattered; None if there are none."""
    indices = node.params["indices"]
    places: dict[Value, Value] = {}
    for piece, index in zip(node.args, indices, strict=True):
        key = key_of(index), shape_of(piece), dtype_of(piece)
        before = places.get(key, (None, index))[0]
        if before is not None:
            shape = shape_of(piece)
            piece = add(node.changed(primitive=plus, args=(before, piece), params={}, slots=(), shape=shape))
        places[key] = piece, index
    if len(places) == len(indices) or node.slots:
        return None
    pieces, kept = zip(*places.values(), strict=True)
    return node.changed(args=pieces, params={**node.params, "indices": kept})


SHAPES: dict[Primitive, Rule] = {
    move.reshape: _shaped, move.transpose: _transpose, move.broadcast_to: _shaped, reduction.sum_: _sum,
    move.scatter_add: _scatter_add,
}  # fmt: skip


def _unbroadcast_arguments(node: Node) -> Node:
    """Pass arguments unbroadcast to an elementwise operation, which broadcasts them, if its shape stays the same."""
    args = list(node.args)
    for i, a in enumerate(args):
        if is_broadcast(a) and _strong_array(a.args[0]):
            shorter = [*args[:i], a.args[0], *args[i + 1 :]]
            if np.broadcast_shapes(*map(shape_of, shorter)) == node.shape:
                args = shorter
    return node if all(map(operator.is_, args, node.args)) else node.changed(args=tuple(args))


def _strong_array(value: Value) -> bool:
    return bool(weak(value.kind if type(value) is Node else type(value)) == "strong")
