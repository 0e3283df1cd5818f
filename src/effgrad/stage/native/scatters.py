"""Scatters: pieces added at constant places, one after the other."""

from typing import Any, cast

import numpy as np

from effgrad.primitives.indices import basic, opened
from effgrad.stage.native.fusion import COPY, Fusion
from effgrad.stage.native.kernels import Operand, operand
from effgrad.stage.native.scalars import typed
from effgrad.stage.native.storage import Storage
from effgrad.stage.nodes import Node


def scatter(plan: Fusion, node: Node) -> bool:
    """Pieces added at constant places, one after the other."""
    if not node.primitive.places or node.slots or not node.size or not typed(node, *node.args):
        return False
    if any(type(p) is not Node or p.dtype != node.dtype or not p.size for p in node.args):
        return False
    total = plan.memory(node)
    _, indices = node.primitive.places([p.shape for p in node.args], **node.params)
    targets = [_target(p, i, total) for p, i in zip(node.args, indices, strict=True)]
    if None in targets:
        return False
    zero = node.changed(primitive=COPY, args=(0.0,), params={}, slots=())
    plan.kept.append(zero)
    group = plan.group((), node.shape)
    plan.add(zero, group)
    plan.storage[id(zero)] = group.stored[zero] = total
    for piece, (place, target, places) in zip(node.args, cast(list[Any], targets), strict=True):
        # Two pieces may meet in one place: each has a step of its own.
        group = plan.group((piece,), piece.shape, after=group.number + 1)
        group.collected.append((piece, place, target, places))
        plan.kept.append(places)
    plan.settle(node, total, group.number)
    return True


def _target(piece: Node, index: Any, total: Storage) -> tuple[Storage, Operand, np.ndarray | None] | None:
    """The destination of a piece: a part of the memory, or the place of each of its elements."""
    if basic(index):
        part = Storage(total.buffer, total.view[opened(index)])
        if part.view.shape != piece.shape:
            return None
        return part, operand(piece.dtype, part.strides(piece.shape), "accumulate"), None
    places = np.arange(total.view.size).reshape(total.view.shape)[index]
    if places.shape != piece.shape:
        return None
    return total, operand(piece.dtype, (0,) * len(piece.shape), "scatter"), np.ascontiguousarray(places)
