"""Scatters: add pieces to their places in an array of zeros, one piece after the other."""

from typing import Any, cast

import numpy as np

from effgrad.primitives.indices import as_tuple, basic, with_ellipsis
from effgrad.stage.native.fusion import Fusion
from effgrad.stage.native.gathers import Gathers
from effgrad.stage.native.scalars import typed
from effgrad.stage.native.storage import Storage
from effgrad.stage.native.strided import disjoint, strided
from effgrad.stage.nodes import Node, Slot
from effgrad.vocabulary import Index


def scatter(plan: Fusion, gathers: Gathers, node: Node) -> bool:
    """Plan a sum of pieces at their places in an array of zeros; False if that is not possible."""
    if not node.primitive.places or not node.size or not typed(node, *node.args):
        return False
    if any(type(p) is not Node or p.dtype != node.dtype or not p.size for p in node.args):
        return False
    total = plan.memory(node)
    _, indices = node.primitive.places([p.shape for p in node.args], **node.params)
    targets = [_target(p, i, total, node, gathers) for p, i in zip(node.args, indices, strict=True)]
    if None in targets:
        return False
    after = plan.available[plan.copy_to(total, 0.0, node)]
    for piece, (storage, places) in zip(node.args, cast(list[Any], targets), strict=True):
        # Each piece is added in a separate step, because two pieces may go to one place.
        after = plan.collect(piece, storage, "accumulate" if places is None else "scatter", places, after + 1)
    plan.set_storage(node, total, after)
    return True


def _target(
    piece: Node, index: Index, total: Storage, node: Node, gathers: Gathers
) -> tuple[Storage, np.ndarray | Node | None] | None:
    """Return the destination of a piece: a part of the memory, or the place of each element; None if it has neither."""
    part: Storage | None = None
    places: Any = None
    if any(type(i) is Slot for i in as_tuple(index)):
        places = gathers.computed(index, node.slots, total.view)
    elif basic(index):
        part = Storage(total.buffer, total.view[with_ellipsis(index)])
    else:
        places = np.ascontiguousarray(np.arange(total.view.size).reshape(total.view.shape)[index])
        part = strided(total, places) if disjoint([places], total.view.size) else None
    if part is not None and part.view.shape == piece.shape:
        return part, None
    return (total, places) if places is not None and places.shape == piece.shape else None
