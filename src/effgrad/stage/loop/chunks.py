"""Loops that add up large arrays in each step: all steps visit one chunk of the arrays, then all visit the next one.

`for i: r[i] = np.mean(x[(low(i) <= x) & (x < high(i))])` reads all of `x` from memory in each step. In chunks that stay
in the cache, it reads `x` once. The sums of all steps are an array; the loops before and after begin and use them.
"""

import collections
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from effgrad.stage.loop.activity import overwritten_first
from effgrad.stage.loop.affine import Affine, affine, fresh, variable
from effgrad.stage.loop.buffers import Buffer, Element, load, loads
from effgrad.stage.loop.element import replaced
from effgrad.stage.loop.ir import Block, Map, Repeat, Store, accesses, read_buffers, reads_in, walk, writes_in, written
from effgrad.stage.loop.program import ranges_of

# The elements of a chunk: 32 kB of each array. Arrays of less than `LARGE` bytes in all stay in the cache anyway, and
# few steps are not worth it. The sums of all steps may have `MOST_BYTES`.
CHUNK, LARGE, STEPS, MOST_BYTES = 4096, 1 << 20, 8, 1 << 20


def in_chunks(block: Block, outputs: Iterable[Buffer]) -> Block:
    """Return the statements, in which loops over Maps that add up large arrays visit these in chunks."""
    uses = collections.Counter([*outputs, *(b for s in walk(block) for b in (*read_buffers(s), *written(s)))])
    done: Block = []
    for s in block:
        done += _Loop(s, uses).loops() if isinstance(s, Repeat) and all(isinstance(m, Map) for m in s.body) else [s]
    return done


class _Loop:
    """A loop over Maps: those over large arrays, and the ones before and after these."""

    def __init__(self, s: Repeat, uses: Mapping[Buffer, int]) -> None:
        self.s = s
        self.body = [m for m in s.body if isinstance(m, Map)]
        own = collections.Counter(b for m in self.body for b in (*read_buffers(m), *written(m)))
        self.private = {b for b in overwritten_first(s.body) if own[b] == uses.get(b)}
        self.extent = max((_length(m) for m in self.body), default=0)
        self.large = [m for m in self.body if self.is_sum(m)]
        self.after: list[Map] = []
        summed = writes_in(self.large)
        for m in self.body:
            if m not in self.large and reads_in([m]) & (summed | writes_in(self.after)):
                self.after.append(m)
        self.before = [m for m in self.body if m not in self.large and m not in self.after]

    def is_sum(self, m: Map) -> bool:
        """Whether a Map adds up arrays of the largest extent."""
        if not 0 < _length(m) == self.extent:
            return False
        name = m.dims[0][0]
        return all(t.adds and all(name not in i.variables() for i in t.indices) for t in m.stores)

    def loops(self) -> Block:
        """The loops over the statements before, the chunks, and the statements after; or the loop as it was."""
        steps = self.s.most_steps(ranges_of([self.s]))
        if not self.large or self.s.step != 1 or self.s.backwards or steps is None or steps < STEPS:
            return [self.s]
        if not self.is_apart() or _bytes(self.visited()) <= LARGE or steps * _bytes(self.private) > MOST_BYTES:
            return [self.s]
        arrays = {b: Buffer(fresh(b.name), (steps, *b.shape), b.dtype) for b in self.private}
        loops = [self.over([self.with_steps(m, arrays) for m in maps]) for maps in (self.before, self.after)]
        whole = self.extent - self.extent % CHUNK
        at, name = fresh("chunk"), fresh("e")
        inside: Block = [self.over([self.chunk(variable(at), name, CHUNK, arrays)])]
        rest = self.over([self.chunk(affine(whole), fresh("e"), self.extent - whole, arrays)])
        chunks = [Repeat(at, affine(0), affine(whole), CHUNK, inside), *([rest] if whole < self.extent else [])]
        return [loops[0], *chunks, loops[1]]

    def visited(self) -> set[Buffer]:
        """The arrays that the sums visit."""
        found = [(m.dims[0][0], e) for m in self.large for e in loads([t.value for t in m.stores])]
        return {e.args[0] for name, e in found if name in e.variables()}

    def is_apart(self) -> bool:
        """Whether the groups of Maps touch each other in the order of the groups, and in their own step only."""
        pairs = itertools.chain(
            itertools.product(self.before, [*self.large, *self.after]), itertools.product(self.large, self.after)
        )
        if not writes_in(self.large) <= self.private or reads_in(self.large) & writes_in(self.large):
            return False
        integers = [n for m in self.body for _, n in m.dims]
        integers += [i for m in self.body for _, place in accesses(m.stores) for i in place]
        if any(type(atom) is not str for i in integers for atom, _ in i.terms):
            return False
        return all(self.are_apart(m, x) for m, x in pairs)

    def are_apart(self, m: Map, later: Map) -> bool:
        """Whether a Map can run in all steps before a later one does in any: they share only what a step has itself."""
        common = set(read_buffers(m) + written(m)) & set(read_buffers(later) + written(later)) & writes_in(self.body)
        return not common or (common <= self.private and self.body.index(m) < self.body.index(later))

    def over(self, body: Sequence[Map]) -> Repeat:
        """A loop over the same steps."""
        name = fresh("i")
        again = [m.substitute({self.s.variable: variable(name)}) for m in body]
        return Repeat(name, self.s.start, self.s.stop, 1, list(again))

    def chunk(self, start: Affine, name: str, width: int, arrays: dict[Buffer, Buffer]) -> Map:
        """The Map that adds a chunk to the sums of a step."""
        stores: list[Store] = []
        for m in self.large:
            at = self.with_steps(m, arrays).substitute({m.dims[0][0]: variable(name) + start})
            stores += at.stores
        return Map(((name, affine(width)),), stores, self.large[0].place)

    def with_steps(self, m: Map, arrays: dict[Buffer, Buffer]) -> Map:
        """A Map in which each step has its own part of the arrays."""
        at = variable(self.s.variable) - self.s.start

        def own(e: Element) -> Element:
            known = {x: load(arrays[x.args[0]], (at, *x.args[1])) for x in loads([e]) if x.args[0] in arrays}
            return replaced(e, known)

        def indices(t: Store) -> Sequence[Affine]:
            return (at, *t.indices) if t.buffer in arrays else t.indices

        stores = [replace(t, buffer=arrays.get(t.buffer, t.buffer), indices=tuple(indices(t)), value=own(t.value))
                  for t in m.stores]  # fmt: skip
        return replace(m, stores=stores)


def _bytes(buffers: Iterable[Buffer]) -> int:
    return sum(b.size * b.dtype.itemsize for b in buffers)


def _length(m: Map) -> int:
    """The extent of a Map over one axis; 0 if it has more, or if that is not known."""
    return m.dims[0][1].constant if len(m.dims) == 1 and not m.dims[0][1].terms else 0
