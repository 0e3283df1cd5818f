"""Arrays that a loop leaves behind, and that may share memory in the program but are several in the region's results.

That matters once the program writes to one of them and still has another. So they are watched: after such a write the
program is staged again, and Python runs the loop.
"""

import weakref
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from effgrad.arrays.memory import Storage
from effgrad.arrays.record import listen
from effgrad.arrays.traced import handle_of
from effgrad.arrays.value import Tracer, plain
from effgrad.arrays.written import memory_of
from effgrad.stage.loop.operands import Value, flat
from effgrad.vocabulary import Array


class Shared(NamedTuple):
    """The arrays of some names, and some arrays from before the loop."""

    names: set[str]
    before: Sequence[Value]


class Watch:
    """Arrays that may share memory: whether one of them is written to while another one is in use."""

    def __init__(self, arrays: Sequence[Value]) -> None:
        found = [(x, memory(x)) for x in arrays]
        memories = {id(m): m for _, m in found if m is not None}
        self.memories, self.is_broken = list(map(weakref.ref, memories.values())), False
        # Of writes to arrays without traced values, those of compiled code are not heard of, so bytes are compared.
        self.known = [(x, x.tobytes()) for x, m in found if m is None and isinstance(x, np.ndarray)]
        for m in memories.values():
            m.watch(self)
        if self.known:
            listen(self)

    def in_use(self) -> int:
        """How many of the arrays the program can still read."""
        return len(self.known) + sum(ref() is not None for ref in self.memories)

    def become_mutable(self) -> None:
        """Hear of the first write to one of the memories."""
        self.is_broken |= self.in_use() > 1

    def preserve(self, written: Array) -> None:
        """Hear of a write to a plain array."""
        self.is_broken |= self.in_use() > 1 and any(np.may_share_memory(x, written) for x, _ in self.known)

    def finds_writes(self) -> bool:
        """Whether one of the arrays has been written to."""
        return self.is_broken or any(x.tobytes() != before for x, before in self.known)


def watched(groups: Sequence[Shared], found: Mapping[str, Value]) -> list[Watch]:
    """Watch groups of arrays, given the values of the names after the loop."""
    return [Watch([x for v in (*g.before, *[found[n] for n in g.names]) for x in flat(v)]) for g in groups]


def memory(value: Value) -> Storage | None:
    """The memory of an array that holds traced values; None for any other value."""
    if isinstance(value, Tracer):
        return handle_of(value).storage if isinstance(plain(value), np.ndarray) else None
    known = memory_of(value) if isinstance(value, np.ndarray) else None
    return None if known is None else known.storage
