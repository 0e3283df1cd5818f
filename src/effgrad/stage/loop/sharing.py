"""Arrays that a loop leaves behind, and that may share memory in the program but are several in the region's results.

That matters once the program writes to one of them and still has another. So they are watched: after such a write the
program is staged again, and Python runs the loop.
"""

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from effgrad.arrays.memory import Storage
from effgrad.arrays.traced import handle_of
from effgrad.arrays.value import Tracer, plain
from effgrad.arrays.written import memory_for
from effgrad.stage.loop.affine import NotCaptured
from effgrad.stage.loop.operands import Plane, Value, flat


class Shared(NamedTuple):
    """The arrays of some names and some arrays from before the loop, and with how many of them a write is wrong."""

    names: set[str]
    before: Sequence[Value]
    fewest: int = 2


class Watch:
    """Calls `report` at a write to one of some memories, if so many of them are still in use."""

    def __init__(self, memories: Sequence[Storage], fewest: int, report: Callable[[], None]) -> None:
        self.memories, self.fewest, self.report = list(map(weakref.ref, memories)), fewest, report
        for memory in memories:
            memory.watch(self)

    def become_mutable(self) -> None:
        """Hear of the first write to one of the memories."""
        if sum(ref() is not None for ref in self.memories) >= self.fewest:
            self.report()


def watched(groups: Sequence[Shared], found: Mapping[str, Value], report: Callable[[], None]) -> list[Watch]:
    """Watch the memories of groups of arrays, given the values of the names after the loop."""
    watches = []
    for names, before, fewest in groups:
        arrays = [x for value in (*before, *[found[n] for n in names]) for x in flat(value)]
        memories = list({id(m): m for m in map(memory, arrays) if m is not None}.values())
        if len(memories) >= fewest:
            watches.append(Watch(memories, fewest, report))
    return watches


def memory(value: Value) -> Storage | None:
    """The memory of an array; None for any other value."""
    if isinstance(value, Tracer):
        return handle_of(value).storage if isinstance(plain(value), np.ndarray) else None
    return memory_for(value).storage if isinstance(value, np.ndarray) and value.flags.writeable else None


def before_loop(value: Value) -> Value:
    """An array from before a loop; raises if no write to it could be heard of."""
    array = value.value if isinstance(value, Plane) else value
    if not isinstance(array, Tracer) and array.dtype.kind not in "fc" and array.flags.writeable:
        raise NotCaptured("an array of integers that may have another name after the loop")
    return array
