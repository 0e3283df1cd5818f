"""Places at regular distances: find the strided view that has the same elements as an array of places.

The places of a write are an array of numbers, one for each element. Most come from slices, and are multiples of a few
strides from a first place. A kernel then walks memory by these strides, instead of reading the place of each element.
"""

from collections.abc import Sequence

import numpy as np

from effgrad.stage.native.storage import Storage, viewable
from effgrad.vocabulary import Index


def strided(storage: Storage, places: np.ndarray) -> Storage | None:
    """Return places of a value in C order as a view of it, if they are at regular distances; its shape may differ."""
    nest, view = steps_of(places), storage.view
    if nest is None or not view.flags.c_contiguous:
        return None
    (first, counts, steps), size = nest, view.itemsize
    seen = np.lib.stride_tricks.as_strided(view.reshape(-1)[first:], counts, [size * step for step in steps])
    if viewable(seen, np.shape(places)):
        seen = seen.reshape(np.shape(places), copy=False)
    return Storage(storage.buffer, seen)


def steps_of(places: np.ndarray) -> tuple[int, tuple[int, ...], tuple[int, ...]] | None:
    """Return the first place, and the counts and strides of the nest of loops that walks the places in order.

    The outermost loop comes first. Return None if no such nest exists.
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
    """Whether all places, in an array of this size, are different."""
    taken = np.zeros(size, bool)
    for at in places:
        taken[at] = True
    return bool(np.count_nonzero(taken) == sum(map(np.size, places)))


def gaps(places: Sequence[Index], size: int) -> list[slice]:
    """Return the stretches of an array of this size that have none of the places."""
    taken = np.ones(size + 2, np.int8)
    taken[1:-1] = 0
    for at in places:
        taken[1:-1][at] = 1
    edges = np.flatnonzero(np.diff(taken)).tolist()
    return [slice(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True)]
