"""The stacks of a region's function, on which elements are saved, 8 bytes each, and from which they are restored."""

import contextlib
import itertools
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

import numpy as np

from effgrad.stage.loop.activity import never_overlap
from effgrad.stage.loop.affine import Affine, Ranges, variable
from effgrad.stage.loop.buffers import Buffer, Element, index_loads, load, loads
from effgrad.stage.loop.element import cast, replaced
from effgrad.stage.loop.ir import Map, Pop, Push, Stack, Statement, Store, loads_of
from effgrad.stage.loop.operands import place_in
from effgrad.stage.native.element_text import Elements
from effgrad.stage.native.map_products import as_product
from effgrad.stage.native.nests import Nest
from effgrad.stage.native.scalars import TYPES, Body

# The code that the function returns when the first stack is full; that of each next stack is one less.
FULL = -2


class Stacks(Elements):
    """Writes the statements that save elements on stacks, and restore them; `Function` writes the others."""

    is_short: Callable[[Map | Push | Pop], bool]
    leave: Callable[[str, int], None]
    call: Callable[[Nest], None]

    def __init__(self, body: Body) -> None:
        super().__init__(body)
        self.ranges = Ranges()
        self.places: dict[Buffer, str] = {}
        self.stacks: dict[Stack, int] = {}

    def stack(self, stack: Stack) -> str:
        """The LLVM name of the variable that holds a stack's pointer."""
        return f"%stack{self.stacks.setdefault(stack, len(self.stacks))}"

    @contextlib.contextmanager
    def moves(self, saves: Sequence[Push | Pop], s: Statement) -> Iterator[Statement]:
        """Write the saves before a statement, and yield the statement: a Map with those that join it."""
        slots: dict[Push | Pop, Buffer] = {}
        for move in saves:
            pointer = self.moved_pointer(move)
            if isinstance(s, Map) and self.joins(move, s, saves):
                slots[move] = self.slots(move, pointer)
            else:
                self.moved(move, pointer)
        yield with_saves(s, slots) if isinstance(s, Map) and slots else s
        for buffer in slots.values():
            del self.places[buffer]

    def joins(self, s: Push | Pop, m: Map, saves: Sequence[Push | Pop]) -> bool:
        """Whether a Map can save or restore elements at its own points."""
        if s.dims != m.dims or self.is_short(s) or self.is_short(m) or [x.buffer for x in saves].count(s.buffer) > 1:
            return False
        if any(as_product(m, t, self.ranges) for t in m.stores) or any(type(a) is not str for a in _atoms(s.indices)):
            return False
        return isinstance(s, Push) or _reads_restored(m, s)

    def slots(self, s: Push | Pop, pointer: str) -> Buffer:
        """A buffer for the elements on the stack, from its pointer on."""
        size = math.prod(self.ranges.most(n) for _, n in s.dims)
        slots = Buffer("slots", (max(size, 1),), np.dtype(np.int64 if s.buffer.dtype.kind in "bi" else float))
        self.places[slots] = pointer
        return slots

    def moved_pointer(self, s: Push | Pop) -> str:
        """Write the move of a stack's pointer, and return where the elements of the statement begin."""
        top = self.stack(s.stack)
        number = self.stacks[s.stack]
        size = "1"
        for _, n in s.dims:
            extent = self.integer(n)
            size = extent if size == "1" else self.body.do(f"mul nsw i64 {size}, {extent}")
        pointer = self.body.do(f"load ptr, ptr {top}")
        if isinstance(s, Pop):
            back = self.body.do(f"sub nsw i64 0, {size}")
            pointer = self.body.do(f"getelementptr inbounds double, ptr {pointer}, i64 {back}")
            self.body.lines.append(f"  store ptr {pointer}, ptr {top}")
        else:
            after = self.body.do(f"getelementptr inbounds double, ptr {pointer}, i64 {size}")
            self.leave(self.body.do(f"icmp ugt ptr {after}, %limit{number}"), FULL - number)
            self.body.lines.append(f"  store ptr {after}, ptr {top}")
        return pointer

    def moved(self, s: Push | Pop, pointer: str) -> None:
        """Write the copy of the elements between the buffer and the stack."""
        if self.is_short(s):
            for number, point in enumerate(itertools.product(*[range(n.constant) for _, n in s.dims])):
                at = dict(zip([name for name, _ in s.dims], point, strict=True))
                self.move_one(s, [i.substitute(at) for i in s.indices], pointer, number)
            return
        slots = self.slots(s, pointer)
        self.call(Nest(Map(s.dims, [_stored(s, slots)]), self.ranges))
        del self.places[slots]

    def move_one(self, s: Push | Pop, indices: Sequence[Affine], pointer: str, number: int) -> None:
        slot = self.body.do(f"getelementptr inbounds double, ptr {pointer}, i64 {number}")
        own, kind = TYPES[s.buffer.dtype], "i64" if s.buffer.dtype.kind in "bi" else "double"
        if isinstance(s, Push):
            value = self.body.convert(self.load(s.buffer, indices), own, kind)
            self.body.lines.append(f"  store {kind} {value}, ptr {slot}")
        else:
            value = self.body.convert(self.body.do(f"load {kind}, ptr {slot}"), kind, own)
            self.body.store(value, s.buffer.dtype, self.place(s.buffer, indices))


def with_saves(m: Map, slots: Mapping[Push | Pop, Buffer]) -> Map:
    """Return a Map that also saves or restores elements at its points, and reads what it restores on the stack."""
    restored: dict[Element, Element] = {}
    for s, buffer in slots.items():
        for e in loads([t.value for t in m.stores]) if isinstance(s, Pop) else ():
            where = _slot(e, s) if e.args[0] is s.buffer else None
            if where is not None and where != ():
                restored[e] = cast(load(buffer, where), e.dtype)
    stores = [Store(t.buffer, t.indices, replaced(t.value, restored), t.adds) for t in m.stores]
    return Map(m.dims, [*stores, *[_stored(s, buffer) for s, buffer in slots.items()]], m.place)


def _reads_restored(m: Map, s: Pop) -> bool:
    """Whether it is known of each element of a buffer that a Map reads where it is on the stack, or that it is not."""
    read = [e for e in loads_of(m.stores) if e.args[0] is s.buffer]
    used = {t.buffer for t in m.stores} | {e.args[0] for t in m.stores for i in t.indices for e in index_loads(i)}
    return s.buffer not in used and all(_slot(e, s) is not None for e in read)


def _stored(s: Push | Pop, slots: Buffer) -> Store:
    """The store of one element that a statement saves or restores."""
    place = (place_in(s.dims),)
    if isinstance(s, Push):
        return Store(slots, place, cast(load(s.buffer, s.indices), slots.dtype))
    return Store(s.buffer, s.indices, cast(load(slots, place), s.buffer.dtype))


def _slot(e: Element, s: Push | Pop) -> tuple[Affine, ...] | None:
    """The place on the stack of the element that a load reads; `()` if it is not saved, None if that is not known."""
    indices, names = e.args[1], [name for name, _ in s.dims]
    if indices == s.indices:
        return (place_in(s.dims),)
    if s.indices == tuple(map(variable, names)) and tuple(n for _, n in s.dims) == s.buffer.shape:
        return (place_in(s.dims).substitute(dict(zip(names, indices, strict=True))),)
    return () if never_overlap(indices, s.indices, s.dims) else None


def _atoms(indices: Sequence[Affine]) -> list[Hashable]:
    return [a for i in indices for a, _ in i.terms]
