"""Places in steps: numbers of elements that a strided view means as well.

The places of a write are kept as an array of numbers, one for each element. Most come from slices, and are a few steps
from a first place: a kernel then walks memory by strides instead of reading where each element lies.
"""

import numpy as np

from effgrad.stage.native.storage import Storage, viewable

# A base that is open in so many stretches is written there only; else it is written as a whole before.
FEW = 8


def strided(storage: Storage, places: np.ndarray) -> Storage | None:
    """Return some places of a value in C order as a view, in a shape of as many elements, if they lie in steps."""
    nest, view = steps_of(places), storage.view
    if nest is None or not view.flags.c_contiguous:
        return None
    (first, counts, steps), size = nest, view.itemsize
    seen = np.lib.stride_tricks.as_strided(view.reshape(-1)[first:], counts, [size * step for step in steps])
    if viewable(seen, np.shape(places)):
        seen = seen.reshape(np.shape(places), copy=False)
    return Storage(storage.buffer, seen)


def steps_of(places: np.ndarray) -> tuple[int, tuple[int, ...], tuple[int, ...]] | None:
    """Return the first of some places, and the counts and steps of the nest of loops that walks them in order.

    The outermost loop comes first. None stands for places of no such nest.
    """
    flat = np.ravel(places)
    if not flat.size:
        return None
    first, counts, steps = int(flat[0]), list[int](), list[int]()
    while flat.size > 1:
        step = int(flat[1] - flat[0])
        ends = np.flatnonzero(np.diff(flat) != step)
        count = int(ends[0]) + 1 if ends.size else flat.size
        if flat.size % count or count == 1:
            return None
        rows = flat.reshape(-1, count)
        if (rows != rows[:, :1] + step * np.arange(count)).any():
            return None
        flat = rows[:, 0]
        counts.append(count)
        steps.append(step)
    return first, tuple(counts[::-1]), tuple(steps[::-1])


def disjoint(places: list[np.ndarray], size: int) -> bool:
    """Whether no element of an array of a size is among the places twice."""
    taken = np.zeros(size, bool)
    for at in places:
        taken[at] = True
    return bool(np.count_nonzero(taken) == sum(map(np.size, places)))


def gaps(places: list[np.ndarray], size: int) -> list[slice] | None:
    """Return the stretches that places leave open in an array of a size, if they are few."""
    taken = np.ones(size + 2, np.int8)
    taken[1:-1] = 0
    for at in places:
        taken[1:-1][at] = 1
    edges = np.flatnonzero(np.diff(taken)).tolist()
    return [slice(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True)] if len(edges) <= 2 * FEW else None
