"""Lower a region to one native function, with native loops, a loop nest for each Map, products by BLAS, and stacks.

The function takes a table: the address of every buffer, then the bases and the ends of the stacks, then the addresses
that it calls. It returns 0, or a code that says why it has stopped: a stack is full, a call of NumPy has raised, ...
"""

import itertools
import math
from collections.abc import Sequence

from effgrad.stage.loop.affine import LARGEST, Affine
from effgrad.stage.loop.buffers import INT, Buffer, Element, topological
from effgrad.stage.loop.ir import (
    Apply,
    Block,
    Branch,
    Check,
    Map,
    Pop,
    Push,
    Region,
    Repeat,
    Stack,
    Statement,
    Store,
    While,
    loads_of,
    walk,
    written,
)
from effgrad.stage.loop.program import ranges_of
from effgrad.stage.native import products
from effgrad.stage.native.element_text import has_code
from effgrad.stage.native.interrupts import steps_between, stretches
from effgrad.stage.native.map_products import as_product
from effgrad.stage.native.nests import Nest, without_conflicts
from effgrad.stage.native.outline import outlined
from effgrad.stage.native.saves import Stacks
from effgrad.stage.native.scalars import TYPES, Body, literal, memory_type
from effgrad.stage.native.stencil_adjoints import gathered
from effgrad.stage.native.step_products import blocked

# A Map is unrolled if it has at most this many points, and operations in all. It must have fewer points if its buffers
# are in memory.
POINTS, WRITTEN_OUT, POINTS_IN_MEMORY = 64, 600, 8
# Buffers of at most this many elements are in registers if all indices into them are constants.
LOCAL = 64
# Codes that the function returns: a call has raised, an integer exceeds 64 bits, and the first one for failed checks.
RAISED, BEYOND, CHECKED = 2, 3, 16


class Function(Stacks):
    """The text of a region's function, and the kernels that it calls."""

    def __init__(self, region: Region) -> None:
        super().__init__(Body())
        region = gathered(blocked(outlined(region, has_code)))
        self.region, self.ranges = region, ranges_of(region.block)
        self.kernels: dict[str, Body] = {}
        self.order: list[Buffer] = []
        self.places: dict[Buffer, str] = {}
        self.stacks: dict[Stack, int] = {}
        self.applied: list[Apply] = []
        self.checks: list[Check] = []
        self.named = 0
        self.entry: list[str] = []
        self.fixed = _fixed(region)
        self.legal = {m: without_conflicts(m, self.ranges) for m in walk(region.block) if isinstance(m, Map)}
        self.local = self.registers()
        for b in [*region.inputs, *region.outputs]:
            self.pointer(b)
        self.block(region.block)
        self.text = self.finished()

    def registers(self) -> set[Buffer]:
        """Return the small buffers that only unrolled statements access, at constant indices."""
        small = {b for b in self.region.buffers() if b.size <= LOCAL and b not in self.fixed}
        for s in walk(self.region.block):
            if isinstance(s, Map):
                for m in self.legal[s]:
                    if not self.is_short(m):
                        small -= {t.buffer for t in m.stores} | {e.args[0] for e in loads_of(m.stores)}
                    small -= {e.args[0] for e in loads_of(m.stores) if not _known_place(e.args[1], m)}
                    small -= {t.buffer for t in m.stores if not _known_place(t.indices, m)}
            elif isinstance(s, Push | Pop) and not self.is_short(s):
                small.discard(s.buffer)
        return small

    def is_short(self, s: Map | Push | Pop) -> bool:
        """Whether a statement is unrolled, point by point."""
        if any(n.terms for _, n in s.dims):
            return False
        points = math.prod(max(n.constant, 0) for _, n in s.dims)
        if points > (POINTS if _is_small(s) else POINTS_IN_MEMORY):
            return False
        size = len(topological([t.value for t in s.stores])) if isinstance(s, Map) else 1
        return points == 1 or points * size <= WRITTEN_OUT

    # Memory

    def pointer(self, buffer: Buffer) -> str:
        if buffer not in self.places:
            self.named += 1
            name = f"%m{self.named}"
            self.places[buffer] = name
            kind = memory_type(buffer.dtype)
            cleared = buffer.cleared and buffer not in self.region.inputs
            if buffer in self.local:
                self.entry.append(f"  {name} = alloca [{max(buffer.size, 1)} x {kind}], align 32")
                if cleared:
                    self.entry.append(f"  store [{max(buffer.size, 1)} x {kind}] zeroinitializer, ptr {name}")
            else:
                self.entry += [
                    f"  {name}.at = getelementptr ptr, ptr %arguments, i64 {len(self.order)}",
                    f"  {name} = load ptr, ptr {name}.at",
                ]
                self.order.append(buffer)
                if cleared:
                    self.body.declared.add("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
                    size = buffer.size * buffer.dtype.itemsize
                    self.entry.append(f"  call void @llvm.memset.p0.i64(ptr {name}, i8 0, i64 {size}, i1 false)")
        return self.places[buffer]

    def outer(self, value: Affine) -> str:
        assert not value.terms, value
        return str(value.constant)

    def varies(self, atom: Element) -> bool:
        return True

    # Statements

    def block(self, block: Block) -> None:
        saves: list[Push | Pop] = []
        for s in block:
            if isinstance(s, Push | Pop):
                saves.append(s)
                continue
            with self.moves(saves, s) as joined:
                if isinstance(joined, Map) and joined is not s:
                    self.legal[joined] = without_conflicts(joined, self.ranges)
                self.statement(joined)
            saves = []
        for move in saves:
            self.moved(move, self.moved_pointer(move))

    def statement(self, s: Statement) -> None:
        if isinstance(s, Map):
            for m in self.legal[s]:
                self.map(m)
        elif isinstance(s, Repeat):
            self.repeat(s)
        elif isinstance(s, While):
            self.while_(s)
        elif isinstance(s, Branch):
            self.branch(s)
        elif isinstance(s, Apply):
            self.apply(s)
        elif isinstance(s, Check):
            self.checks.append(s)
            inside = self.values([s.flag])[s.flag]
            self.leave(self.body.do(f"xor i1 {inside}, true"), CHECKED + len(self.checks) - 1)

    def fork(self, condition: str) -> tuple[str, str, str]:
        """Write a conditional jump, and begin the first branch; return the labels of both and of where they meet."""
        yes, no, end = (self.label() for _ in range(3))
        self.body.lines.append(f"  br i1 {condition}, label %{yes}, label %{no}")
        self.start(yes)
        return yes, no, end

    def branch(self, s: Branch) -> None:
        _, no, end = self.fork(self.values([s.flag])[s.flag])
        self.block(s.then)
        self.body.lines.append(f"  br label %{end}")
        self.start(no)
        self.block(s.other)
        self.body.lines.append(f"  br label %{end}")
        self.start(end)

    def check_signals(self, s: Repeat | While, number: str) -> None:
        """Let a long loop check for signals now and then."""
        steps = steps_between(s, self.ranges)
        if steps is not None:
            self.ask(self.body.do(f"add i64 {number}, 1"), steps)

    def repeat(self, s: Repeat) -> None:
        start, stop = self.integer(s.start), self.integer(s.stop)
        span = self.body.do(f"sub nsw i64 {stop}, {start}" if s.step > 0 else f"sub nsw i64 {start}, {stop}")
        count = self.body.do(f"sdiv i64 {self.body.do(f'add nsw i64 {span}, {abs(s.step) - 1}')}, {abs(s.step)}")
        with self.loop("0", count) as turn:
            at = turn.number
            if s.backwards:
                at = self.body.do(f"sub nsw i64 {self.body.do(f'sub nsw i64 {count}, 1')}, {at}")
            if s.step != 1:
                at = self.body.do(f"mul nsw i64 {at}, {s.step}")
            self.variables[s.variable] = at if start == "0" else self.body.do(f"add nsw i64 {at}, {start}")
            self.check_signals(s, turn.number)
            self.block(s.body)
            del self.variables[s.variable]

    def while_(self, s: While) -> None:
        count = self.pointer(s.count)
        with self.repeated("0") as (turn, enter):
            self.body.lines.append(f"  store i64 {turn.number}, ptr {count}")
            self.block(s.test)
            enter(self.values([s.flag])[s.flag])
            self.check_signals(s, turn.number)
            self.block(s.body)

    def apply(self, s: Apply) -> None:
        """Write a call of NumPy."""
        for b in (*s.inputs, s.output):
            self.pointer(b)
        self.applied.append(s)
        code = self.body.do(f"call i32 %apply(i64 {len(self.applied) - 1})")
        self.leave(self.body.do(f"icmp ne i32 {code}, 0"), RAISED)

    def leave(self, condition: str, code: int) -> None:
        """Write the return of a code if a condition holds."""
        _, no, _ = self.fork(condition)
        self.body.lines.append(f"  ret i32 {code}")
        self.start(no)

    def map(self, m: Map) -> None:
        if self.is_short(m):
            self.written_out(m)
            return
        left = [t for t in m.stores if not self.product(m, t)]
        if not left:
            return
        rest = Map(m.dims, left)
        loop = stretches(rest, self.ranges)
        if loop is None:
            self.call(Nest(rest, self.ranges))
            return
        self.ranges.bounds[loop.variable] = loop.bounds
        self.legal.update((part, [part]) for part in walk([loop]) if isinstance(part, Map))
        self.repeat(loop)

    def call(self, nest: Nest) -> None:
        """Write a call of a nest's function."""
        name = f"effgrad_nest_{nest.body.digest()}"
        self.kernels[name] = nest.body
        self.body.declared.add(f"declare void @{name}({nest.signature}) nounwind")
        arguments = [f"ptr {self.pointer(b)}" for b in nest.buffers]
        arguments += [f"i64 {self.integer(i)}" for i in nest.numbers]
        self.body.lines.append(f"  call void @{name}({', '.join(arguments)})")

    def written_out(self, m: Map) -> None:
        """Unroll a Map, point by point; all values are computed before the first store."""
        names = [name for name, _ in m.dims]
        writes = []
        for point in itertools.product(*[range(n.constant) for _, n in m.dims]):
            at = dict(zip(names, point, strict=True))
            stores = [t.substitute(at) for t in m.stores]
            known = self.values([t.value for t in stores])
            writes += [(t, known[t.value]) for t in stores]
        for t in m.stores:
            if t.buffer.dtype == INT and not m.dims and t.value.op != "load":
                self.check_range(t.value)
        for adds in (False, True):
            for t, value in writes:
                if t.adds is adds:
                    self.write(t.buffer, t.indices, value, adds)

    def check_range(self, e: Element) -> None:
        """Write a check that an integer of Python's fits into 64 bits, by its approximate value in floating point."""
        size = self.body.intrinsic("fabs", "double", self.roughly(e))
        self.leave(self.body.do(f"fcmp ogt double {size}, {literal(float(LARGEST), 'double')}"), BEYOND)

    def write(self, buffer: Buffer, indices: Sequence[Affine], value: str, adds: bool) -> None:
        place = self.place(buffer, indices)
        if adds:
            kind = TYPES[buffer.dtype]
            value = self.body.sum(kind, self.body.do(f"load {kind}, ptr {place}"), value)
        self.body.store(value, buffer.dtype, place)

    # Products

    def product(self, m: Map, t: Store) -> bool:
        """Write `C[i, j] += A[i, k] * B[k, j]` as a call of BLAS, if the store is such a product, and large."""
        found = as_product(m, t, self.ranges)
        if found is None:
            return False
        zero = {name: 0 for name, _ in m.dims}
        places = [self.place(e.args[0], [i.substitute(zero) for i in e.args[1]]) for e in found.operands]
        rows, columns, inner = map(self.integer, found.extents)
        factors = products.bits(found.alpha, t.buffer.dtype), products.bits(1.0, t.buffer.dtype)
        given = products.product_numbers(found.flags, (rows, columns, inner), factors, found.leading, [1, 0, 0, 0])
        numbers = [f"i64 {n}" for n in given]
        self.body.declared.add(f"declare i32 @{products.KERNEL}(ptr)")
        blas = "%blas" if t.buffer.dtype.itemsize == 8 else "%blas.single"
        for number, value in enumerate([*[f"ptr {place}" for place in places], f"ptr {blas}", *numbers]):
            slot = self.body.do(f"getelementptr i64, ptr %product, i64 {number}")
            self.body.lines.append(f"  store {value}, ptr {slot}")
        self.body.do(f"call i32 @{products.KERNEL}(ptr %product)")
        return True

    def finished(self) -> Body:
        """Return the complete text of the function."""
        body, count = Body(), len(self.order)
        body.declared, body.vectorised = self.body.declared, self.body.vectorised
        stacks: list[str] = []
        for number in range(len(self.stacks)):
            for word, at in (("base", count + 2 * number), ("limit", count + 2 * number + 1)):
                stacks += [f"  %{word}{number}.at = getelementptr ptr, ptr %arguments, i64 {at}",
                           f"  %{word}{number} = load ptr, ptr %{word}{number}.at"]  # fmt: skip
            stacks += [f"  %stack{number} = alloca ptr", f"  store ptr %base{number}, ptr %stack{number}"]
        last = count + 2 * len(self.stacks)
        left = []
        for k in range(len(self.stacks)):  # the table returns the tops of the stacks, for a second half
            left += [f"  %top{k} = load ptr, ptr %stack{k}", f"  store ptr %top{k}, ptr %base{k}.at"]
        for number, word in enumerate(("apply", "blas", "blas.single")):
            stacks += [f"  %{word}.at = getelementptr ptr, ptr %arguments, i64 {last + number}",
                       f"  %{word} = load ptr, ptr %{word}.at"]  # fmt: skip
        stacks.append("  %product = alloca [18 x i64]")
        head = ["define i32 @KERNEL(ptr %arguments) {", "entry:"]
        steps = [line.replace("%entry ]", "%start ]") for line in self.body.lines]
        body.lines = [*head, *self.entry, *stacks, "  br label %start", "start:", *steps, *left, "  ret i32 0", "}"]
        return body


def _is_small(s: Map | Push | Pop) -> bool:
    """Whether all buffers of a statement are small enough to be in registers."""
    read = [e.args[0] for e in loads_of(s.stores)] if isinstance(s, Map) else [s.buffer]
    return all(b.size <= LOCAL for b in (*written(s), *read))


def _known_place(indices: Sequence[Affine], m: Map) -> bool:
    names = {name for name, _ in m.dims}
    return all(type(a) is str and a in names for i in indices for a, _ in i.terms)


def _fixed(region: Region) -> set[Buffer]:
    """Return the buffers that have to be in memory: inputs, outputs, constants, and those that NumPy accesses."""
    seen = {b for s in walk(region.block) if isinstance(s, Apply) for b in (*s.inputs, s.output)}
    return {*region.inputs, *region.outputs, *seen, *(b for b in region.buffers() if b.data is not None)}
