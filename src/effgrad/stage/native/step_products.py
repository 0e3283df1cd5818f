"""Compute the products of a loop's steps together, as matrix products for blocks of steps.

`for i: t = x[:, i] @ x[:, i:]; ...` multiplies a vector by a matrix in each step, and reads the whole matrix for it.
If the loop does not change the operands, the products of all steps of a block are computed before its first step, into
the rows of a matrix: `rows = x[:, block].T @ x[:, first:]`. Products that the steps add to an array which none of them
reads are computed after the last step of a block; the adjoint of such a loop has these. Rows of different lengths are
computed as a rectangle.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from effgrad.stage.loop.affine import Affine, Ranges, affine, fresh, variable
from effgrad.stage.loop.buffers import Buffer, Element, buffers_in, constant, load, loads
from effgrad.stage.loop.element import EQUAL, MULTIPLY, cast, element, replaced
from effgrad.stage.loop.ir import Block, Branch, Dims, Map, Region, Repeat, Store, accesses, reads, reads_in, writes_in
from effgrad.stage.native.map_products import as_product

# The number of steps in a block. The more there are, the more is computed needlessly beside a triangle of rows: so only
# many steps have twice as many (NPBench's covariance takes 1.1 times as long with 64 at M, and with 128 at S).
STEPS, MANY = 64, 1024


def blocked(region: Region) -> Region:
    """Return the region with the products in its outermost loops computed in blocks of steps."""
    used = {s: reads_in([s]) | writes_in([s]) for s in region.block}
    block: Block = []
    for s in region.block:
        others = {*region.inputs, *region.outputs}.union(*(b for x, b in used.items() if x is not s))
        block += _Loop(s, others).blocks() if isinstance(s, Repeat) and _is_counted(s) else [s]
    return Region(region.inputs, region.outputs, block)


def _is_counted(s: Repeat) -> bool:
    """Whether a loop has a known number of steps, and its body consists of Maps."""
    return s.step == 1 and s.steps is not None and all(isinstance(m, Map) for m in s.body)


@dataclass(eq=False)
class _Vector:
    """A vector that each step overwrites at its beginning; or, if `summed`, finds zero and leaves zero.

    In the rows of a block, its elements are `shift` places further to the right with each step.
    """

    buffer: Buffer
    extent: Affine
    summed: bool
    shift: int | None = None


@dataclass(eq=False)
class _Rows:
    """The vectors of a block's steps, as the rows of a matrix, and the length of the rows in this block."""

    buffer: Buffer
    length: Affine
    # The most elements of a row that its vector does not fill, at the left and at the right: the sides of triangles.
    left: int
    right: int


class _Loop:
    """A loop over Maps, and the products that can be moved out of its steps."""

    def __init__(self, s: Repeat, others: set[Buffer]) -> None:
        self.s, self.i = s, s.variable
        self.maps = [m for m in s.body if isinstance(m, Map)]
        self.changed = {t.buffer for m in self.maps for t in m.stores}
        self.vectors = {b: v for b in self.changed - others if (v := self.vector(b)) is not None}
        # The products to compute before a block, each with the Map that begins its vector; and the stores to make after
        # a block.
        pairs = zip(self.maps, self.maps[1:], strict=False)
        self.first = [(begin, m) for begin, m in pairs if self.can_precede(begin, m)]
        before = {m.stores[0].buffer for _, m in self.first}
        self.last = [(m, t) for m in self.maps for t in m.stores if self.can_follow(m, t, before)]
        chosen = before.union(*(buffers_in([t.value]) for _, t in self.last))
        self.vectors = {b: v for b, v in self.vectors.items() if b in chosen}

    def accesses(self, b: Buffer) -> Iterator[tuple[Map, tuple[Affine, ...], Store | None]]:
        """Go through the indices at which a buffer is read or written, in the order of the body."""
        for m in self.maps:
            yield from ((m, e.args[1], None) for e in reads(m) if e.args[0] is b)
            yield from ((m, t.indices, t) for t in m.stores if t.buffer is b)

    def vector(self, b: Buffer) -> _Vector | None:
        """Return a buffer as a vector of each step, or None if it is not one."""
        found = list(self.accesses(b))
        extents = {_extent(m, places) for m, places, _ in found}
        extent = extents.pop()
        if extents or extent is None or extent.variables() - {self.i} or not b.smooth or b.data is not None:
            return None
        (first, _, begin), (last, _, end) = found[0], found[-1]
        if begin is not None and not begin.adds:
            return _Vector(b, extent, summed=False) if len(first.dims) == 1 else None
        zeroed = end is not None and _is_zero(end) and len(last.stores) == len(last.dims) == 1
        return _Vector(b, extent, summed=True) if b.cleared and zeroed else None

    def can_precede(self, begin: Map, m: Map) -> bool:
        """Whether a Map adds a product of buffers that do not change to a vector that the Map before it set to zero."""
        if len(m.stores) != 1 or len(m.dims) != 2 or len(begin.stores) != 1:
            return False
        (t,), (zero,) = m.stores, begin.stores
        v = self.vectors.get(t.buffer)
        if v is None or v.summed or not t.adds or zero.buffer is not t.buffer or not _is_zero(zero):
            return False
        if next(self.accesses(t.buffer))[0] is not begin or not buffers_in([t.value]).isdisjoint(self.changed):
            return False
        return self.shifted(v, m, t.indices, [e.args[1] for e in loads([t.value])])

    def can_follow(self, m: Map, t: Store, before: set[Buffer]) -> bool:
        """Whether a store adds a product with a vector's final value in the step to an array that no step reads."""
        read = loads([t.value])
        moving = [e for e in read if e.args[0] in self.changed]
        if not t.adds or len(m.dims) != 2 or len(moving) != 1 or t.buffer in self.vectors:
            return False
        b, place = moving[0].args
        v = self.vectors.get(b)
        if v is None or b in before or any(x is None or not x.adds for _, _, x in self.accesses(t.buffer)):
            return False
        after = self.maps[self.maps.index(m) :]
        if sum(x is not None and n in after for n, _, x in self.accesses(b)) > v.summed:
            return False
        return self.shifted(v, m, place, [t.indices, *[e.args[1] for e in read if e.args[0] is not b]])

    def shifted(self, v: _Vector, m: Map, place: tuple[Affine, ...], others: Sequence[tuple[Affine, ...]]) -> bool:
        """Whether a shift of the vector's rows makes a Map's other indices the same in all rows; note the shift."""
        ((name, _),) = place[0].terms
        indices = [i for other in others for i in other]
        if any(self.i in n.variables() for x, n in m.dims if x != name) or not all(map(_is_plain, indices)):
            return False
        along = [i for i in indices if i.coefficient(name)]
        shifts = {divmod(i.coefficient(self.i), i.coefficient(name)) for i in along}
        if v.shift is not None:
            shifts.add((v.shift, 0))
        if len(shifts) != 1 or any(shift < 0 or left for shift, left in shifts):
            return False
        v.shift = shifts.pop()[0]
        return True

    # Blocks

    def blocks(self) -> Block:
        """Return the loop as a loop over blocks of steps, and the steps that are left over."""
        start, count, name = self.s.start.constant, self.s.stop.constant - self.s.start.constant, fresh("block")
        size = STEPS if count < MANY else 2 * STEPS
        for whole in range(count // size if self.vectors else 0, 0, -1):  # the last vectors may be too short
            ranges = Ranges()
            ranges.bounds[name] = affine(0), affine(whole - 1)
            done = self.block(variable(name) * size + start, size, ranges)
            if done is not None:
                middle = affine(start + whole * size)
                left = self.block(middle, count - whole * size, Ranges()) or [self.again(middle, self.s.stop)]
                repeat = Repeat(name, affine(0), affine(whole), 1, done, self.s.backwards)
                return [*left, repeat] if self.s.backwards else [repeat, *left]
        return [self.s]

    def block(self, start: Affine, count: int, ranges: Ranges) -> Block | None:
        """Return the statements of a block of steps, or None if its products are no rectangles for BLAS."""
        rows = {b: self.rows(v, start, count, ranges) for b, v in self.vectors.items()}

        first = [(m, m.stores[0]) for _, m in self.first]
        before, after = ([self.product(m, t, start, count, rows) for m, t in some] for some in (first, self.last))
        products = [*before, *after]
        fit = all(_is_rectangle(m, ranges, count) for m in products)
        if not fit or not all(_has_room(r, ranges) for r in rows.values()):
            return None
        cleared: Block = [_cleared(r) for r in rows.values()]
        done = [*cleared, *before, *self.steps(start, count, rows), *after]
        followers = zip(self.last, after, strict=True)
        checked = dict.fromkeys(x for (_, t), m in followers for x in _factors_of_zeros(m, rows[self.moved(t)]))
        return _if_finite(list(checked), done, [self.again(start, start + count)]) if checked else done

    def moved(self, t: Store) -> Buffer:
        """Return the vector that takes part in a product, as its result or as one of its operands."""
        return next(b for b in (t.buffer, *buffers_in([t.value])) if b in self.vectors)

    def rows(self, v: _Vector, start: Affine, count: int, ranges: Ranges) -> _Rows:
        """Return the rows of a block for a vector."""
        assert v.shift is not None
        growth = v.shift + v.extent.coefficient(self.i)
        length = v.extent.substitute({self.i: start}) + max(growth, 0) * (count - 1)
        buffer = Buffer(fresh(f"rows_{v.buffer.name}_"), (count, ranges.most(length)), v.buffer.dtype)
        return _Rows(buffer, length, v.shift * (count - 1), abs(growth) * (count - 1))

    def product(self, m: Map, t: Store, start: Affine, count: int, rows: Mapping[Buffer, _Rows]) -> Map:
        """Return the product of all steps of a block; its axes are the steps, the elements of a row, and the third."""
        b = self.moved(t)
        v, r, step, along = self.vectors[b], rows[b], fresh("step"), fresh("along")
        place = t.indices if t.buffer is b else next(e.args[1] for e in loads([t.value]) if e.args[0] is b)
        ((name, _),) = place[0].terms
        at = {self.i: variable(step) + start, name: variable(along) - variable(step) * (v.shift or 0)}
        row = load(r.buffer, [variable(step), variable(along)])
        value = replaced(t.value, {load(b, place): row}).substitute(at)
        into: tuple[Affine, ...] = row.args[1] if t.buffer is b else tuple(i.substitute(at) for i in t.indices)
        ((other, n),) = [d for d in m.dims if d[0] != name]
        dims = (step, affine(count)), (along, r.length), (other, n.substitute(at))
        return Map(dims, [Store(r.buffer if t.buffer is b else t.buffer, into, value, True)], m.place)

    def steps(self, start: Affine, count: int, rows: Mapping[Buffer, _Rows]) -> Block:
        """Return a loop over the rest of the steps of a block, without the products."""
        gone = {m for pair in self.first for m in pair}
        gone |= {[m for m, _, _ in self.accesses(b)][-1] for b, v in self.vectors.items() if v.summed}
        later = {t for _, t in self.last}
        maps = [replace(m, stores=[t for t in m.stores if t not in later]) for m in self.maps if m not in gone]
        body: Block = [self.in_rows(m, start, rows) for m in maps if m.stores]
        return [self.again(start, start + count, body)] if body else []

    def in_rows(self, m: Map, start: Affine, rows: Mapping[Buffer, _Rows]) -> Map:
        """Return a Map that reads and writes rows instead of vectors."""

        def place(b: Buffer, at: Affine) -> tuple[Affine, ...]:
            step = variable(self.i) - start
            return step, at + step * (self.vectors[b].shift or 0)

        found = [e for e in loads([t.value for t in m.stores]) if e.args[0] in rows]
        values = {e: load(rows[e.args[0]].buffer, place(e.args[0], e.args[1][0])) for e in found}
        stores = [
            Store(rows[t.buffer].buffer, place(t.buffer, t.indices[0]), replaced(t.value, values), t.adds)
            if t.buffer in rows else replace(t, value=replaced(t.value, values)) for t in m.stores
        ]  # fmt: skip
        return replace(m, stores=stores)

    def again(self, start: Affine, stop: Affine, body: Block | None = None) -> Repeat:
        """Return a loop over some of the steps, with a new variable."""
        name = fresh("i")
        maps = [m for m in (self.maps if body is None else body) if isinstance(m, Map)]
        return Repeat(name, start, stop, 1, [m.substitute({self.i: variable(name)}) for m in maps], self.s.backwards)


def _is_zero(t: Store) -> bool:
    return not t.adds and t.value is constant(0, t.buffer.dtype)


def _is_plain(i: Affine) -> bool:
    return all(type(atom) is str for atom, _ in i.terms)


def _extent(m: Map, place: tuple[Affine, ...]) -> Affine | None:
    """Return the extent of the axis of a Map that indexes a vector; None if the index is not just an axis."""
    return next((n for name, n in m.dims if place == (variable(name),)), None)


def _cleared(r: _Rows) -> Map:
    step, along = fresh("step"), fresh("along")
    dims = (step, affine(r.buffer.shape[0])), (along, r.length)
    return Map(dims, [Store(r.buffer, (variable(step), variable(along)), constant(0, r.buffer.dtype))])


def _has_room(r: _Rows, ranges: Ranges) -> bool:
    """Whether the triangles at the left and at the right of rows do not overlap."""
    shortest = ranges.lower(r.length - r.left - r.right)
    return shortest is not None and shortest >= 0


def _is_rectangle(m: Map, ranges: Ranges, count: int) -> bool:
    """Whether a product of `count` steps stays inside its buffers, and BLAS has a form for it if the block is full."""
    return _fits(m, ranges) and (count < STEPS or as_product(m, m.stores[0], ranges) is not None)


def _fits(m: Map, around: Ranges) -> bool:
    """Whether a Map stays inside its buffers."""
    ranges = Ranges()
    ranges.bounds = {**around.bounds, **{name: (affine(0), n - 1) for name, n in m.dims}}
    for b, indices in accesses(m.stores):
        for i, n in zip(indices, b.shape, strict=True):
            low, high = ranges.lower(i), ranges.upper(i)
            if low is None or high is None or low < 0 or high >= n:
                return False
    return True


def _if_finite(elements: Sequence[tuple[Dims, Element]], block: Block, other: Block) -> Block:
    """Return statements that run a block if all elements are finite, and another block if not."""
    spoilt = Buffer(fresh("spoilt"), ())
    begin = Map((), [Store(spoilt, (), constant(0.0))])
    zeros = [(dims, element(MULTIPLY, e, constant(0, e.dtype))) for dims, e in elements]
    sums = [Map(dims, [Store(spoilt, (), cast(zero, spoilt.dtype), True)]) for dims, zero in zeros]
    return [begin, *sums, Branch(element(EQUAL, load(spoilt, ()), constant(0.0)), block, other)]


def _factors_of_zeros(m: Map, r: _Rows) -> list[tuple[Dims, Element]]:
    """Return the elements by which zeros beside a triangle are multiplied; infinite ones would make the product NaN."""
    steps, (along, _), other = m.dims
    found: list[tuple[Dims, Element]] = []
    for e in [e for e in loads([t.value for t in m.stores]) if e.args[0] is not r.buffer and r.left + r.right]:
        if along not in e.variables():
            found.append(((steps, other), e))
            continue
        name = fresh("beside")
        for width, first in (r.left, affine(0)), (r.right, r.length - r.right):
            if width:
                found.append((((name, affine(width)), other), e.substitute({along: variable(name) + first})))
    return found
