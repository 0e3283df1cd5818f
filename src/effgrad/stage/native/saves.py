"""The stacks of a region's function, on which elements are saved, 8 bytes each, and from which they are restored."""

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np

from effgrad.stage.loop.affine import Affine, Ranges
from effgrad.stage.loop.buffers import Buffer, load
from effgrad.stage.loop.element import cast
from effgrad.stage.loop.ir import Map, Pop, Push, Stack, Store
from effgrad.stage.loop.operands import place_in
from effgrad.stage.native.element_text import Elements
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

    def move(self, s: Push | Pop) -> None:
        """Write a statement that saves elements on a stack, or restores them."""
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
        self.moved(s, pointer)

    def moved(self, s: Push | Pop, pointer: str) -> None:
        """Write the copy of the elements between the buffer and the stack."""
        if self.is_short(s):
            for number, point in enumerate(itertools.product(*[range(n.constant) for _, n in s.dims])):
                at = dict(zip([name for name, _ in s.dims], point, strict=True))
                self.move_one(s, [i.substitute(at) for i in s.indices], pointer, number)
            return
        size = math.prod(self.ranges.most(n) for _, n in s.dims)
        slots = Buffer("slots", (max(size, 1),), np.dtype(np.int64 if s.buffer.dtype.kind in "bi" else float))
        place = place_in(s.dims)
        there = Store(slots, (place,), cast(load(s.buffer, s.indices), slots.dtype))
        back = Store(s.buffer, s.indices, cast(load(slots, [place]), s.buffer.dtype))
        self.places[slots] = pointer
        self.call(Nest(Map(s.dims, [there if isinstance(s, Push) else back]), self.ranges))
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
