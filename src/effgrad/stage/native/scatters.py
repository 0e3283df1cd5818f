"""Scatters: pieces added at constant places, one after the other."""

from typing import Any, cast

import numpy as np

from effgrad.stage.graph import Node
from effgrad.stage.native.fusion import COPY, Fusion
from effgrad.stage.native.indexing import basic, opened
from effgrad.stage.native.kernels import Operand, operand
from effgrad.stage.native.scalars import typed
from effgrad.stage.native.storage import Storage, whole


def scatter(plan: Fusion, node: Node) -> bool:
    """Pieces added at constant places, one after the other."""
    if node.slots or not node.size or not typed(node, *node.args):
        return False
    if any(type(p) is not Node or p.dtype != node.dtype or not p.size for p in node.args):
        return False
    total = plan.buffer(whole(node.shape, node.dtype))
    steps = [_piece(p, i, total.view) for p, i in zip(node.args, node.params["indices"], strict=True)]
    if any(step is None for step in steps):
        return False
    zero = node.changed(primitive=COPY, args=(0.0,), params={}, slots=())
    plan.kept.append(zero)
    group = plan.group((), node.shape)
    plan.join(zero, group)
    plan.storage[id(zero)] = group.stored[zero] = total
    for piece, (view, target, places) in zip(node.args, cast(list[Any], steps), strict=True):
        # Two pieces may meet in one place: each has a step of its own.
        group = plan.group((piece,), piece.shape, after=group.number + 1)
        group.reductions.append((piece, Storage(total.buffer, view), target, places))
        plan.kept.append(places)
    plan.storage[id(node)], plan.available[node] = total, group.number
    return True


def _piece(piece: Node, index: Any, total: np.ndarray) -> tuple[np.ndarray, Operand, Any] | None:
    """Where a piece goes: a part of the memory, or the place of each of its elements."""
    if basic(index):
        view = total[opened(index)]
        if view.shape != piece.shape:
            return None
        strides = tuple(0 if n == 1 else s // view.itemsize for n, s in zip(view.shape, view.strides, strict=True))
        return view, operand(piece.dtype, strides, "accumulate"), None
    places = np.arange(total.size).reshape(total.shape)[index]
    if places.shape != piece.shape:
        return None
    return total, operand(piece.dtype, (0,) * len(piece.shape), "scatter"), np.ascontiguousarray(places)
