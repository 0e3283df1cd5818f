"""The loop nest of a region's Map as a separate LLVM function.

The text depends on what is computed, and on the axes along which elements are adjacent. Extents, strides and offsets
are arguments, so that maps which differ only in these are compiled once. Every buffer is an argument that aliases no
other, and the innermost loop is declared to have independent steps, which `without_conflicts` ensures. Sums are added
up in registers, in an order that the compiler chooses. Nothing else is reassociated, and no product and sum are fused.
Stores that add to neighbouring elements, as the adjoint of a stencil does, go through a row. What they add is computed
once into the row, and gathered from it. Stores that add to distant rows have an innermost loop each.
"""

import contextlib
from collections.abc import Hashable, Iterator, Mapping, Sequence

from effgrad.stage.loop.activity import never_overlap
from effgrad.stage.loop.affine import Affine, NotCaptured, Ranges, fresh, row_major, variable
from effgrad.stage.loop.buffers import Buffer, Element, buffers_in, constant, index_loads, load, loads, topological
from effgrad.stage.loop.element import replaced
from effgrad.stage.loop.ir import Dims, Map, Store, accesses, loads_of
from effgrad.stage.native.element_text import Elements
from effgrad.stage.native.flow import Turn
from effgrad.stage.native.scalars import TYPES, WIDE, Body, literal
from effgrad.vocabulary import DType, Value

# The number of elements of a row.
ROW = 1024
# Innermost loops of at most this many steps have their length in the text. As an argument it cost vectors: of 14 steps,
# none ran in the compiled loop over two vectors of 8.
SHORT = 64
# Strides of at most this many elements are in the text too. LLVM has vectors only for constant strides, and for an
# argument in case that it is 1: a power of distances of points in space, three numbers each, took twice as long.
NEAR = 4
# Stores that add to elements of one buffer, far apart, have loops of their own if their values have at most this many
# operations each.
CHEAP = 4
# Metadata of the module, which says that the steps of a loop do not access each other's memory.
GROUP, PARALLEL = "!llvm.access.group !90", "!llvm.loop !91"


def without_conflicts(m: Map, ranges: Ranges) -> list[Map]:
    """Return equivalent Maps, in none of which a store changes what another point reads or stores.

    A Map with conflicts first copies the rows that many of its points read. Then it adds up its sums in buffers of
    their own or, if there still are conflicts, computes the values in conflict into temporary buffers.
    """
    dims = tuple(d for d in m.dims if d[1] != 1)
    one = {name: 0 for name, n in m.dims if n == 1}
    stores = [t.substitute(one) for t in m.stores] if one else m.stores
    if not dims or not _conflicts(stores, dims):
        return [Map(dims, stores)]
    copies, stores = _with_rows_apart(dims, stores, ranges)
    if not _conflicts(stores, dims):
        return [*copies, Map(dims, stores)]
    return [*copies, *(_with_sums_apart(dims, stores, ranges) or _with_values_apart(dims, stores, ranges))]


def _with_rows_apart(dims: Dims, stores: Sequence[Store], ranges: Ranges) -> tuple[list[Map], list[Store]]:
    """Return Maps that copy what is written elsewhere and read along fewer axes, and the stores that read the copies.

    `a[i, j] = min(a[i, j], a[i, k] + a[k, j])` reads copies of a row and of a column, and needs no other matrix.
    """
    copies, copied = list[Map](), dict[Element, Element]()
    for e in loads([t.value for t in stores]):
        own = tuple(d for d in dims if d[0] in set[str]().union(*(i.variables() for i in e.args[1])))
        if e not in copied and own != dims and any(_read_elsewhere(t, e, dims) for t in stores):
            place = tuple(variable(name) for name, _ in own)
            row = Buffer(fresh("row"), tuple(ranges.most(n) for _, n in own), e.dtype)
            copies.append(Map(own, [Store(row, place, e)]))
            copied[e] = load(row, place)
    return copies, [Store(t.buffer, t.indices, replaced(t.value, copied), t.adds) for t in stores]


def _with_sums_apart(dims: Dims, stores: Sequence[Store], ranges: Ranges) -> list[Map]:
    """Return a Map that adds up each sum in a new buffer, between those that begin and store the sums.

    Return no Maps if this one has conflicts too.
    """
    begun, stored, others = list[Map](), list[Map](), list[Store]()
    for t in stores:
        own = tuple(d for d in dims if d[0] in _variables(t))
        if not t.adds or own == dims:
            others.append(t)
            continue
        place = tuple(variable(name) for name, _ in own)
        total = Buffer(fresh("sum"), tuple(ranges.most(n) for _, n in own), t.value.dtype)
        begun.append(Map(own, [Store(total, place, constant(0, total.dtype))]))
        others.append(Store(total, place, t.value, adds=True))
        stored.append(Map(own, [Store(t.buffer, t.indices, load(total, place), adds=True)]))
    return [] if not begun or _conflicts(others, dims) else [*begun, Map(dims, others), *stored]


def _with_values_apart(dims: Dims, stores: Sequence[Store], ranges: Ranges) -> list[Map]:
    """Return a Map that computes the values in conflict into temporary buffers, and the Maps that store these."""
    temporaries: dict[Element, Element] = {}
    place = tuple(variable(name) for name, _ in dims)
    shape = tuple(ranges.most(n) for _, n in dims)
    apart = _in_conflict(stores, dims)
    for t in apart:
        if t.value.op != "constant" and t.value not in temporaries:
            temporaries[t.value] = load(Buffer(fresh("held"), shape, t.value.dtype), place)
    held = [Store(e.args[0], place, value) for value, e in temporaries.items()]
    first = [*held, *[t for t in stores if t not in apart]]
    after = [Store(t.buffer, t.indices, temporaries.get(t.value, t.value), t.adds) for t in apart]
    maps = [Map(dims, [t]) for t in sorted(after, key=lambda t: t.adds)]
    return [Map(dims, first), *maps] if first else maps


def _in_conflict(stores: Sequence[Store], dims: Dims) -> list[Store]:
    """Return the stores that change what another point reads, or what another store writes, or where one writes."""
    read = loads_of(stores)
    tables = {e.args[0] for t in stores for i in t.indices for e in index_loads(i)}
    twice = {id(t) for a in stores for b in stores if a is not b and _written_twice(a, b, dims) for t in (a, b)}
    return [
        t for t in stores
        if t.buffer in tables or id(t) in twice or any(_read_elsewhere(t, e, dims) for e in read)
    ]  # fmt: skip


def _conflicts(stores: Sequence[Store], dims: Dims) -> bool:
    """Whether a store may change what another point reads, or what another store writes."""
    return any(_read_elsewhere(t, e, dims) for t in stores for e in loads_of(stores)) or any(
        a is not b and _written_twice(a, b, dims) for a in stores for b in stores
    )


def _read_elsewhere(t: Store, e: Element, dims: Dims) -> bool:
    if e.args[0] is not t.buffer:
        return False
    if e.args[1] == t.indices:
        return not _variables(t) >= {name for name, _ in dims}
    return not never_overlap(e.args[1], t.indices, dims)


def _written_twice(a: Store, b: Store, dims: Dims) -> bool:
    if a.buffer is not b.buffer or (a.adds and b.adds):
        return False
    return a.indices == b.indices or not never_overlap(a.indices, b.indices, dims)


class Nest(Elements):
    """One Map as a function: its text, and the buffers and numbers that it must be called with."""

    def __init__(self, m: Map, ranges: Ranges) -> None:
        super().__init__(Body(vector=True))
        self.ranges = ranges
        self.buffers: dict[Buffer, str] = {}
        self.numbers: dict[Affine, str] = {}
        self.rows: list[str] = []
        self.names = {name for name, _ in m.dims}
        self.nest(m.dims, m.stores)
        self.body.lines.append("  ret void")
        pointers = [f"ptr noalias {name}" for name in self.buffers.values()]
        numbers = [f"i64 {name}" for name in self.numbers.values()]
        head = f"define void @KERNEL({', '.join([*pointers, *numbers])}) nounwind {WIDE} {{"
        self.body.lines[:0] = [head, "entry:", *self.rows]
        self.body.lines.append("}")

    @property
    def signature(self) -> str:
        """The LLVM types of the arguments."""
        return ", ".join(["ptr"] * len(self.buffers) + ["i64"] * len(self.numbers))

    def pointer(self, buffer: Buffer) -> str:
        return self.buffers.setdefault(buffer, f"%b{len(self.buffers)}")

    def outer(self, value: Affine) -> str:
        return "0" if value == 0 else self.numbers.setdefault(value, f"%n{len(self.numbers)}")

    def varies(self, atom: Element) -> bool:
        return not atom.variables().isdisjoint(self.names)

    def extent(self, n: Affine) -> str:
        """The length of an innermost loop; a short constant length is in the text, another one is an argument."""
        return str(n.constant) if not n.terms and 0 < n.constant <= SHORT else self.outer(n)

    def step(self, k: int) -> str:
        return str(k) if abs(k) <= NEAR else self.outer(Affine(k))

    # Loops

    @contextlib.contextmanager
    def over(
        self, name: str, start: str, stop: str, carried: Sequence[tuple[str, str]] = (), parallel: bool = False
    ) -> Iterator[Turn]:
        """Write a loop over a variable, whose step is written within this context."""
        with self.loop(start, stop, carried, metadata=f", {PARALLEL}" if parallel else "") as turn:
            self.variables[name] = turn.number
            yield turn
            del self.variables[name]

    def nest(self, dims: Dims, stores: Sequence[Store]) -> None:
        """Write the loops of a Map; if several stores add to one buffer, along the innermost axis, they use rows."""
        strides = {v: [abs(row_major(i, b.shape).coefficient(v)) for b, i in accesses(stores)] for v, _ in dims}
        inner = max(range(len(dims)), key=lambda k: (_score(strides[dims[k][0]], dims[k][1]), k))
        v, n = dims[inner]
        around = sorted((d for d in dims if d[0] != v), key=lambda d: -sum(strides[d[0]]))
        sums, simple, split, scattered = _classify_stores(stores, dims, v)
        early = _before_others(scattered, [*sums, *simple, *split])
        with contextlib.ExitStack() as loops:
            for name, extent in around:
                loops.enter_context(self.over(name, "0", self.outer(extent)))
            for t in early:
                self.scattered(v, n, t)
            if split and not sums and not simple and _are_cheap(split, v):
                for t in split:
                    self.innermost(v, "0", self.extent(n), [], [t], {})
            elif split:
                self.through_rows(v, n, sums, simple, split)
            elif sums or simple:
                self.innermost(v, "0", self.extent(n), sums, simple, {})
            for t in scattered:
                if t not in early:
                    self.scattered(v, n, t)

    def scattered(self, v: str, n: Affine, t: Store) -> None:
        """Write a store whose indices are read from a table, as a loop whose steps run in order."""
        with self.over(v, "0", self.outer(n)):
            self.write(t, self.values([t.value])[t.value], self.place(t.buffer, t.indices))

    def write(self, t: Store, value: str, place: str) -> None:
        """Write the store of a value, or its addition to what is in memory."""
        if t.adds:
            kind = TYPES[t.buffer.dtype]
            old = self.body.do(f"load {kind}, ptr {place}{self.suffix}")
            value = self.body.sum(kind, old, value)
        self.body.store(value, t.buffer.dtype, place, self.suffix)

    def innermost(
        self,
        v: str,
        start: str,
        stop: str,
        sums: Sequence[Store],
        simple: Sequence[Store],
        rows: Mapping[Element, Value],
    ) -> None:
        """Write the innermost loop, with sums in registers, stores, and the values that go into rows."""
        kinds = [TYPES[t.buffer.dtype] for t in sums]
        with self.over(v, start, stop, [(kind, literal(0, kind)) for kind in kinds], parallel=True) as turn:
            self.suffix = f", {GROUP}"
            names = self.values([*[t.value for t in (*sums, *simple)], *rows])
            for t, total, kind in zip(sums, turn.values, kinds, strict=True):
                turn.next.append(self.body.sum(kind, total, names[t.value], " reassoc nsz"))
            for e, place in rows.items():
                row = place(self.variables[v])
                self.body.lines.append(f"  store {TYPES[e.dtype]} {names[e]}, ptr {row}{self.suffix}")
            places = [self.place(t.buffer, t.indices) for t in simple]
            for t, to in zip(simple, places, strict=True):
                self.write(t, names[t.value], to)
            self.suffix = ""
        for t, total in zip(sums, turn.values, strict=True):
            self.write(Store(t.buffer, t.indices, t.value, True), total, self.place(t.buffer, t.indices))

    # Rows

    def through_rows(
        self, v: str, n: Affine, sums: Sequence[Store], simple: Sequence[Store], split: Sequence[Store]
    ) -> None:  # fmt: skip
        """Write the innermost loop in stretches, in which the values to add are computed into rows, then gathered."""
        groups = _groups(split, v)
        pad = max(max(shifts) - min(shifts) for shifts in ([c for c, _ in g] for g in groups.values()))
        values = list(dict.fromkeys(t.value for t in split))
        rows = {e: self.row(e.dtype, ROW + 2 * pad) for e in values}
        size = self.outer(n)
        count = self.body.do(f"add nsw i64 {size}, {ROW - 1}")
        with self.loop("0", self.body.do(f"sdiv i64 {count}, {ROW}")) as turn:
            first = self.body.do(f"mul nsw i64 {turn.number}, {ROW}")
            last = self.body.intrinsic("smin", "i64", self.body.do(f"add nsw i64 {first}, {ROW}"), size)
            offset = self.body.do(f"sub nsw i64 {pad}, {first}")

            def at(row: str, kind: str) -> Value:
                def place(i: str) -> str:
                    where = self.body.do(f"add nsw i64 {i}, {offset}")
                    return self.body.do(f"getelementptr inbounds {kind}, ptr {row}, i64 {where}")

                return place

            places = {e: at(rows[e], TYPES[e.dtype]) for e in values}
            self.innermost(v, first, last, sums, simple, places)
            self.cleared(rows, pad, last, offset)
            for (buffer, indices, axis), group in groups.items():
                self.gathered(v, first, last, buffer, indices, axis, group, places)

    def row(self, dtype: DType, size: int) -> str:
        name = f"%row{len(self.rows)}"
        self.rows.append(f"  {name} = alloca [{size} x {TYPES[dtype]}], align 64")
        return name

    def cleared(self, rows: Mapping[Element, str], pad: int, last: str, offset: str) -> None:
        """Write zeros before and after the computed part of the rows."""
        end = self.body.do(f"add nsw i64 {last}, {offset}")
        for e, row in rows.items():
            kind = TYPES[e.dtype]
            for k in range(pad):
                before = self.body.do(f"getelementptr inbounds {kind}, ptr {row}, i64 {k}")
                self.body.lines.append(f"  store {kind} {literal(0, kind)}, ptr {before}")
                where = self.body.do(f"add nsw i64 {end}, {k}")
                after = self.body.do(f"getelementptr inbounds {kind}, ptr {row}, i64 {where}")
                self.body.lines.append(f"  store {kind} {literal(0, kind)}, ptr {after}")

    def gathered(
        self, v: str, first: str, last: str, buffer: Buffer, indices: tuple[Affine, ...], axis: int | None,
        group: Sequence[tuple[int, Store]], rows: Mapping[Element, Value],
    ) -> None:  # fmt: skip
        """Write a loop that adds to each element what all stores of a group add: `p - shift` of each row to `p`."""
        sign = 1 if axis is None else indices[axis].coefficient(v)
        shifts = [sign * c for c, _ in group]
        start = first if min(shifts) == 0 else self.body.do(f"add nsw i64 {first}, {min(shifts)}")
        stop = last if max(shifts) == 0 else self.body.do(f"add nsw i64 {last}, {max(shifts)}")
        with self.over(v, start, stop, parallel=True) as turn:
            self.suffix = f", {GROUP}"
            kind, total = TYPES[buffer.dtype], ""
            for shift, (_, t) in zip(shifts, group, strict=True):
                i = turn.number
                source = i if shift == 0 else self.body.do(f"sub nsw i64 {i}, {shift}")
                part = self.body.do(f"load {kind}, ptr {rows[t.value](source)}{self.suffix}")
                total = part if not total else self.body.sum(kind, total, part)
            self.write(Store(buffer, indices, group[0][1].value, True), total, self.place(buffer, indices))
            self.suffix = ""


def _groups(
    split: Sequence[Store], v: str
) -> dict[tuple[Buffer, tuple[Affine, ...], int | None], list[tuple[int, Store]]]:
    """Group stores whose indices differ only by a shift along the innermost axis; return each with its shift."""
    groups: dict[Value, list[tuple[int, Store]]] = {}
    for t in split:
        axes = [k for k, i in enumerate(t.indices) if v in i.variables()]
        key: Hashable = (t.buffer, t.indices, None)
        shift = 0
        if len(axes) == 1 and abs(t.indices[axes[0]].coefficient(v)) == 1:
            i = t.indices[axes[0]]
            shift = i.constant
            moved = tuple(j if k != axes[0] else Affine(0, i.terms) for k, j in enumerate(t.indices))
            key = (t.buffer, moved, axes[0])
        groups.setdefault(key, []).append((shift, t))
    return groups


def _are_cheap(split: Sequence[Store], v: str) -> bool:
    """Whether stores are written in loops of their own: none reads what another writes, or is a shift of it."""
    values = [t.value for t in split]
    if not {t.buffer for t in split}.isdisjoint(buffers_in(values)) or len(_groups(split, v)) < len(split):
        return False
    return all(sum(not isinstance(e.op, str) for e in topological([value])) <= CHEAP for value in values)


def _classify_stores(
    stores: Sequence[Store], dims: Dims, v: str
) -> tuple[list[Store], list[Store], list[Store], list[Store]]:
    """Sort the stores of a nest with the innermost variable `v` into four kinds.

    These are sums along it; stores to elements of their own; stores of which several add to one buffer; and stores
    whose indices are read from a table.
    """
    if any(not t.adds and {name for name, _ in dims} - _variables(t) for t in stores):
        raise NotCaptured("an element is written more than once by one statement")
    scattered = [t for t in stores if _through_table(t, v)]
    sums = [t for t in stores if t not in scattered and v not in _variables(t)]
    rest = [t for t in stores if t not in scattered and t not in sums]
    count: dict[Buffer, int] = {}
    for t in rest:
        count[t.buffer] = count.get(t.buffer, 0) + t.adds
    split = [t for t in rest if t.adds and count[t.buffer] > 1]
    return sums, [t for t in rest if t not in split], split, scattered


def _before_others(scattered: Sequence[Store], others: Sequence[Store]) -> list[Store]:
    """Return the scattered stores that must come first, as they read what other stores overwrite.

    An example is an adjoint that is added elsewhere and then set to zero.
    """
    overwritten, read = {t.buffer for t in others}, buffers_in([t.value for t in others])
    early = [t for t in scattered if not overwritten.isdisjoint(buffers_in([t.value]))]
    if any(t.buffer in read for t in early):
        raise NotCaptured("elements at places from a table, and others, are written from each other")
    return early


def _variables(t: Store) -> set[str]:
    return set[str]().union(*(i.variables() for i in t.indices))


def _through_table(t: Store, v: str) -> bool:
    return any(type(a) is not str and v in a.variables() for i in t.indices for a, _ in i.terms)


def _score(strides: Sequence[int], extent: Affine) -> float:
    """Score an axis as the innermost loop: best is one with many elements that are adjacent in memory."""
    if not extent.terms and extent.constant < 4:
        return -100 + sum(s == 1 for s in strides)
    return sum(1 if s == 1 else 0.5 if s == 0 else -2 for s in strides)
