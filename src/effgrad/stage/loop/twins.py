"""Arrays that share memory in the user's program, but are two buffers in the region: a reshaped array, say, is a copy.

A write to one of the twins makes the other stale. If a program reads a stale array, its loop is not captured, and
Python runs it.
"""

from collections.abc import Container, Iterable

from effgrad.living import LivingSet, LivingTable
from effgrad.stage.loop.affine import NotCaptured
from effgrad.stage.loop.buffers import Buffer
from effgrad.stage.loop.ir import Block, reads_in, writes_in
from effgrad.stage.loop.operands import Lazy, Method, Value, View, flat, may_be_in_place

Twin = Buffer | Lazy
# The arrays that exist when a loop begins, and those of them that have twins.
Before = tuple[LivingSet[Twin], list[Twin]]


class Twins:
    """The twins of each array, and the arrays that are stale."""

    def __init__(self) -> None:
        self.others: LivingTable[Twin, LivingSet[Twin]] = LivingTable()
        self.stale: LivingSet[Twin] = LivingSet()
        # Of two twins, the one that existed first; the other is a copy of it in the region.
        self.bases: LivingSet[Twin] = LivingSet()

    def link(self, a: View | Lazy, b: View | Lazy) -> None:
        """Note that two arrays share memory in the program. Each is linked to all twins of the other directly.

        A link that goes through a third array would be lost when that array dies.
        """
        one, other = _key(a), _key(b)
        self.bases.discard(one)
        if other not in self.others:
            self.bases.add(other)
        for x in self.connected(other) if one is not other else ():
            self._twins(one).add(x)
            self._twins(x).add(one)

    def _twins(self, array: Twin) -> LivingSet[Twin]:
        found = self.others.get(array)
        if found is None:
            found = self.others[array] = LivingSet()
        return found

    def replace(self, old: Value, new: Value) -> None:
        """Note that an array is written to, and that `new` is its value from now on."""
        if isinstance(old, Lazy) and old in self.others:
            self.write(old)
            self.link(new, old)
        elif isinstance(old, tuple):
            for a, b in zip(old, new, strict=True):
                self.replace(a, b)

    def write(self, array: Twin) -> None:
        """Mark the twins of an array as stale, also indirect ones."""
        for twin in self.connected(array) - {array}:
            self.stale.add(twin)

    def connected(self, array: Twin) -> set[Twin]:
        """An array with its twins, also indirect ones."""
        found, waiting = {array}, [array]
        while waiting:
            new = set(self.others.get(waiting.pop()) or ()) - found
            found |= new
            waiting += new
        return found

    def of(self, value: View | Lazy) -> set[Twin]:
        """The array of a value, with its twins."""
        return self.connected(_key(value))

    def current(self, value: Value) -> Value:
        """Return a value that is read now; raises `NotCaptured` if it is stale."""
        for x in flat(value) if self.stale else ():
            x = x.value if isinstance(x, Method) else x
            if isinstance(x, View | Lazy) and _key(x) in self.stale:
                raise NotCaptured("an array that is written to under one name, and read under that of a reshaped view")
        return value

    def begin(self, arrays: Iterable[Twin]) -> Before:
        """Note which arrays exist when a loop begins, and which of them have twins."""
        return LivingSet(arrays), list(self.others)

    def check_bases(self, arrays: Container[Twin]) -> None:
        """Raise if one of the arrays, which are read later, was written to only under another name."""
        bases = [a for a in self.stale if a in self.bases]
        if any(a in arrays or isinstance(a, Lazy) and not a.shape for a in bases):
            raise NotCaptured("an array that is written to under the name of a reshaped view")

    def check_loop(self, before: Before, block: Block) -> None:
        """Raise if a loop writes to a twin of an array from before it that the next step or later code may read."""
        existing, twins = before
        self.check_bases(existing)
        if twins:
            changed, read = writes_in(block), reads_in(block)
            for a in twins:
                if not (self.connected(a) - {a}).isdisjoint(changed) and not _memory(a).isdisjoint(read):
                    raise NotCaptured("an array that is written to in it, and has a reshaped view from before it")


def arrays_in(value: Value) -> list[View | Lazy]:
    """All arrays among the leaves of a value."""
    return [x for x in flat(value) if isinstance(x, View | Lazy) and (x.shape or may_be_in_place(x))]


def _key(value: View | Lazy) -> Twin:
    return value.buffer if isinstance(value, View) else value


def _memory(array: Twin) -> set[Buffer]:
    return array.reads() if isinstance(array, Lazy) else {array}
