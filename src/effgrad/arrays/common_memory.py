"""Results that share memory with each other, as NumPy's do: `return a, a.T` gives an array and a view of it.

A derivative computes each result by itself. Where the results lie in the program's memory, its own arrays and the
addresses of traced ones tell; the results' values are then put into memory of the same form.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from effgrad.arrays import written
from effgrad.arrays.handle import Handle
from effgrad.arrays.layout import address_of, is_read_only, owner_of
from effgrad.arrays.library_array import LibraryArray
from effgrad.arrays.traced import handle_of, write
from effgrad.arrays.value import Tracer, plain
from effgrad.vocabulary import Array, DType, Shape, Value


class Place(NamedTuple):
    """The place of an array in a memory: its first byte, and strides in bytes. Memories are told apart by numbers."""

    memory: int
    start: int
    shape: Shape
    strides: Shape
    dtype: DType
    read_only: bool

    @property
    def bounds(self) -> tuple[int, int]:
        """The first byte of the array's elements, and the one after the last."""
        steps = [step * (n - 1) for step, n in zip(self.strides, self.shape, strict=True)]
        low = self.start + sum(step for step in steps if step < 0)
        return low, self.start + sum(step for step in steps if step > 0) + self.dtype.itemsize

    def view(self, memory: Array, start: int) -> Array:
        """Return the array in a memory that begins at byte `start`."""
        return np.ndarray(self.shape, self.dtype, memory, self.start - start, self.strides)


def common_places(leaves: Sequence[Value]) -> list[Place | None]:
    """Return the places of the leaves that share a memory with another one, and None for other leaves."""
    in_memory = [x for x in leaves if type(x) is np.ndarray or (isinstance(x, Tracer) and getattr(x, "handle", None))]
    objects = Counter(map(id, leaves))
    if len(in_memory) < 2 and len(objects) == len(leaves):
        return [None] * len(leaves)
    places = _told_apart([_place(x, objects[id(x)] > 1) for x in leaves])
    members = Counter(place.memory for place in places if place)
    return [place if place and members[place.memory] > 1 else None for place in places]


def _told_apart(places: Sequence[Place | None]) -> list[Place | None]:
    """Return the places with memories numbered anew, so that places whose bytes lie apart are in different ones.

    No write to one of them changes another. The results of a compiled loop, for one, are stretches of one vector.
    """
    numbers: dict[Place, int] = {}
    memory = end = -1
    for place in sorted(filter(None, places), key=lambda place: (place.memory, place.bounds)):
        if place.memory != memory or place.bounds[0] >= end:
            end, number = -1, len(numbers)
        memory, end = place.memory, max(end, place.bounds[1])
        numbers[place] = number
    return [place and place._replace(memory=numbers[place]) for place in places]


def _place(leaf: Value, repeated: bool) -> Place | None:
    """Return where a leaf lies; None for numbers, empty arrays, and values of which there is no view."""
    if type(leaf) is np.ndarray and leaf.size:
        owner = owner_of(leaf)
        start = address_of(leaf) - address_of(owner)
        return Place(id(owner), start, leaf.shape, leaf.strides, leaf.dtype, is_read_only(leaf))
    if not isinstance(leaf, Tracer) or type(plain(leaf)) is LibraryArray:
        return None
    named = repeated and isinstance(plain(leaf), np.ndarray)
    handle: Handle | None = handle_of(leaf) if named else getattr(leaf, "handle", None)
    if handle is None or not isinstance(at := handle.located(), np.ndarray) or not at.size:
        return None
    width = handle.storage.dtype.itemsize
    imaginary = handle.half is not None and handle.half.take(1j) == 1
    start = (address_of(at) - address_of(handle.storage.addresses)) // at.itemsize * width + imaginary * width // 2
    steps = tuple([step // at.itemsize * width for step in at.strides])
    return Place(id(handle.storage), start, at.shape, steps, handle.dtype, is_read_only(at))


def together(values: Sequence[Value], places: Sequence[Place | None]) -> list[Value]:
    """Return results as arrays that share memory where they have places in the same one."""
    results = list(values)
    if not any(places):
        return results
    for memory in dict.fromkeys(place.memory for place in places if place):
        members = {k: place for k, place in enumerate(places) if place and place.memory == memory}
        bounds = [place.bounds for place in members.values()]
        low, high = min(low for low, _ in bounds), max(high for _, high in bounds)
        widest = max([place.dtype for place in members.values()], key=lambda dtype: dtype.itemsize)
        block = np.empty(-(-(high - low) // widest.itemsize), widest)
        views: dict[Place, Array] = {}
        for k, place in members.items():
            if place not in views:
                _fill(place.view(block, low), values[k])
                views[place] = place.view(block, low)
                views[place].flags.writeable = not place.read_only
            results[k] = views[place]
    return results


def _fill(view: Array, value: Value) -> None:
    """Write a value, which may be traced, to an array."""
    if isinstance(value, Tracer):
        write(written.handle(view), ..., value)
    else:
        view[...] = value
