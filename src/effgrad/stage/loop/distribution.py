"""Inner loops along the memory whose steps are independent: each becomes an axis of the Maps in it.

`for j: t = 0; map k: t += q[k] * a[k, j]; r[j] = t; map k: a[k, j] -= q[k] * r[j]` walks down the columns of `a`. As
Maps over `j` too it walks along the rows. What a step computes for itself, as `t`, becomes an array with the axis. What
all steps add to one array, as in `for j: map i: c[i] += a[i, j] * b[j]`, becomes a sum over the axis.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from effgrad.stage.loop.activity import injective, lie_apart, overwritten_first
from effgrad.stage.loop.affine import Affine, Ranges, fresh, row_major, variable
from effgrad.stage.loop.buffers import Buffer, Element, load, loads, topological
from effgrad.stage.loop.element import ADD, NEGATIVE, SUBTRACT, element, replaced
from effgrad.stage.loop.ir import Block, Dims, Map, Repeat, Store, accesses, parts, read_buffers, rebuilt, walk, written
from effgrad.stage.loop.program import ranges_of

# At most so many bytes become arrays with the axis.
MOST_BYTES = 1 << 16


def distributed(block: Block, outputs: Iterable[Buffer]) -> Block:
    """Return the statements with the loops that are inside of others, and move along the memory, distributed."""
    ranges = ranges_of(block)
    uses: dict[Buffer, int] = dict.fromkeys(outputs, 1)
    for s in walk(block):
        for b in (*read_buffers(s), *written(s)):
            uses[b] = uses.get(b, 0) + 1
    return [rebuilt(s, [_inner(part, uses, ranges) for part in parts(s)]) if parts(s) else s for s in block]


def _inner(block: Block, uses: dict[Buffer, int], ranges: Ranges) -> Block:
    found: Block = []
    for s in block:
        if parts(s):
            s = rebuilt(s, [_inner(part, uses, ranges) for part in parts(s)])
        found += _Loop(s, uses, ranges).maps() if isinstance(s, Repeat) and _is_simple(s) else [s]
    return found


def _is_simple(s: Repeat) -> bool:
    """Whether a loop has only Maps, over boxes that do not depend on it, and goes along where they go across."""
    maps = [m for m in s.body if isinstance(m, Map)]
    extents = [n for m in maps for _, n in m.dims]
    if len(maps) < len(s.body) or s.step != 1 or s.backwards or any(s.variable in n.variables() for n in extents):
        return False
    places = [(m.dims, b, place) for m in maps for b, place in accesses(m.stores)]
    integers = [s.start, s.stop, *extents, *[i for _, _, place in places for i in place]]
    if any(type(a) is not str for i in integers for a, _ in i.terms):
        return False
    return any(_is_across(row_major(place, b.shape), s.variable, dims) for dims, b, place in places)


def _is_across(place: Affine, name: str, dims: Dims) -> bool:
    """Whether a place moves by one element with a loop, and by more with the axes of a box."""
    steps = [abs(place.coefficient(v)) for v, _ in dims]
    return abs(place.coefficient(name)) == 1 and max(steps, default=0) > 1 and 1 not in steps


class _Loop:
    """A loop over Maps, and whether its steps are independent."""

    def __init__(self, s: Repeat, uses: dict[Buffer, int], ranges: Ranges) -> None:
        self.s, self.length, self.ranges = s, s.stop - s.start, ranges
        self.body = [m for m in s.body if isinstance(m, Map)]
        own: dict[Buffer, int] = {}
        for m in self.body:
            for b in (*read_buffers(m), *written(m)):
                own[b] = own.get(b, 0) + 1
        self.private = [b for b in overwritten_first(s.body) if own[b] == uses.get(b)]
        # What the stores add in each step to arrays that the loop uses for nothing else.
        self.added = {
            t: value for m in self.body for t in m.stores
            if own[t.buffer] == 1 + (not t.adds) and (value := self.addend(m, t)) is not None
        }  # fmt: skip

    def addend(self, m: Map, t: Store) -> Element | None:
        """Return the term that a store adds to an element that is the same one in each step, or None."""
        if any(self.s.variable in i.variables() for i in t.indices):
            return None
        if t.adds:
            return t.value
        is_sum = t.buffer.smooth and injective(t.indices, m.dims)
        return _addend(t.value, load(t.buffer, t.indices)) if is_sum else None

    def maps(self) -> Block:
        """The Maps over the steps, or the loop where they are not independent."""
        least, most = self.ranges.lower(self.length), self.ranges.upper(self.length)
        if least is None or least < 0 or not most or not self.is_independent():
            return [self.s]
        if most * sum(b.size * b.dtype.itemsize for b in self.private) > MOST_BYTES:
            return [self.s]
        arrays = {b: Buffer(fresh(b.name), (*b.shape, most), b.dtype) for b in self.private}
        return [self.with_axis(m, arrays) for m in self.body]

    def is_independent(self) -> bool:
        """Whether no step uses what another one has written, but for what each step computes for itself."""
        dims = {name: n for m in self.body for name, n in m.dims} | {self.s.variable: self.length}
        changed = {t.buffer for m in self.body for t in m.stores if t not in self.added}.difference(self.private)
        used = [x for m in self.body for x in accesses(m.stores)]
        return all(
            self.are_apart(t.indices, place, dims)
            for m in self.body for t in m.stores if t.buffer in changed for b, place in used if b is t.buffer
        )  # fmt: skip

    def are_apart(self, a: Sequence[Affine], b: Sequence[Affine], extents: dict[str, Affine]) -> bool:
        """Whether two places in a buffer never meet in two different steps."""
        v = self.s.variable
        for i, j in zip(a, b, strict=True):
            if i == j and i.coefficient(v) and i.variables() & extents.keys() == {v}:
                return True
        first, second = ([i.substitute({v: variable(v) + self.s.start}) for i in place] for place in (a, b))
        return lie_apart(first, second, extents)

    def with_axis(self, m: Map, arrays: dict[Buffer, Buffer]) -> Map:
        """A Map over the steps too."""
        name = fresh("step")
        at: dict[str, Affine | int] = {self.s.variable: variable(name) + self.s.start}
        stores = []
        sums = [replace(t, value=self.added[t], adds=True) if t in self.added else t for t in m.stores]
        for t in (t.substitute(at) for t in sums):
            own = [e for e in loads([t.value]) if e.args[0] in arrays]
            known = {e: load(arrays[e.args[0]], (*e.args[1], variable(name))) for e in own}
            array = arrays.get(t.buffer)
            indices = t.indices if array is None else (*t.indices, variable(name))
            stores.append(Store(array or t.buffer, indices, replaced(t.value, known), t.adds))
        return replace(m, dims=(*m.dims, (name, self.length)), stores=stores)


def _addend(value: Element, old: Element) -> Element | None:
    """The rest of a sum that has a load among its terms, which is in no other term; None if a value is no such sum."""
    if value.op not in (ADD, SUBTRACT):
        return None
    first, second = value.args
    if old in topological([second]):
        first, second = second, first
        if value.op is SUBTRACT:
            return None
    if old in topological([second]) or first.dtype != value.dtype or second.dtype != value.dtype:
        return None
    term = element(NEGATIVE, second) if value.op is SUBTRACT else second
    if first is old:
        return term
    rest = _addend(first, old)
    return None if rest is None else element(ADD, rest, term)
