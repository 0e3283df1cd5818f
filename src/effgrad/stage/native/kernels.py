"""A kernel: elementwise operations, and the reductions, gathers and scatters next to them, in one loop nest.

A kernel's text depends on everything but the addresses of its operands, which it gets at run time, so that equal
kernels are compiled once. Adjacent axes that all operands walk with one stride become one loop. Sums go in blocks of
1,024, each in several partial sums. The kernel fixes their order, so the result is the same from run to run.
"""

import contextlib
import functools
import itertools
import math

import numpy as np

from effgrad.stage.native.flow import Flow, Turn
from effgrad.stage.native.interrupts import PATIENCE, turns_between
from effgrad.stage.native.scalars import TYPES, WIDE, Body, dtype_of, emit, literal, memory_type
from effgrad.stage.nodes import Node
from effgrad.vocabulary import DType, Value

BLOCK = 1024

# The first values of reductions; reductions that are not listed combine with what is in memory.
_IDENTITY = {"sum": 0.0, "max": -np.inf, "min": np.inf}
_ADDING = ("sum", "accumulate", "scatter")


class Operand:
    """Memory that a kernel reads or writes: its dtype, and the stride along each loop, in elements."""

    __slots__ = ("dtype", "strides", "reduction", "size")

    def __init__(self, dtype: DType, strides: tuple[int, ...], reduction: str, size: int) -> None:
        self.dtype, self.strides, self.reduction, self.size = dtype, strides, reduction, size


@functools.cache
def operand(dtype: DType, strides: tuple[int, ...], reduction: str = "", size: int = 0) -> Operand:
    """Return the operand with these properties; equal operands are one object."""
    return Operand(dtype, strides, reduction, size)


class Kernel:
    """The work of one loop nest.

    `reads` and `writes` are pairs of a node and its operand; `nodes` run in order at each point. A write with a
    reduction combines all values that go to one place; "accumulate" and "scatter" add to what is in memory. A node in
    `gathers` reads an element of a whole array, at the position that another node gives; "scatter" and "put" write to
    the position that `places` gives. A node in `expected` is a guard, with its number and the value that it must have.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.nodes: list[Node] = []
        self.reads: list[tuple[Value, Operand]] = []
        self.writes: list[tuple[Value, Operand]] = []
        self.gathers: dict[Node, tuple[Value, np.ndarray]] = {}
        self.places: dict[int, Value] = {}
        self.expected: dict[Node, tuple[int, Value]] = {}


def signature(kernel: Kernel) -> tuple[Value, ...]:
    """Return a key that two kernels share if they differ only in where their operands lie."""
    numbers: dict[Value, int] = {}

    def named(value: Value) -> Value:
        if type(value) is Node:
            return numbers.setdefault(value, len(numbers))
        if type(value) is np.ndarray and value.ndim:
            return numbers.setdefault(id(value), len(numbers))
        return type(value), repr(value)

    described: list[Value] = []
    for value, operand in (*kernel.reads, *kernel.writes):
        described += [named(value), operand]
    for node in kernel.nodes:
        args = node.args
        if kernel.gathers:
            args = kernel.gathers.get(node, args)
            described.append(node in kernel.gathers)
        described += [node.primitive, node.dtype, numbers.setdefault(node, len(numbers))]
        for a in args:
            if type(a) is Node:
                described.append(numbers[a])
            else:  # a float is its own key, but zeros have a sign
                described.append((a,) if type(a) is float and a == a != 0 else named(a))
    guards = [(named(node), position, repr(value)) for node, (position, value) in kernel.expected.items()]
    places = [(number, named(place)) for number, place in kernel.places.items()]
    return kernel.shape, len(kernel.reads), len(kernel.writes), tuple(described), tuple(guards), tuple(places)


def _collapsed(shape: tuple[int, ...], operands: list[Operand]) -> tuple[list[int], list[list[int]]]:
    """Return the sizes of the loops, merged where every operand allows it, and each operand's strides along them.

    The order follows the memory of the operands that are broadcast along no axis, with the longest strides outermost.
    """
    sizes: list[int] = []
    strides: list[list[int]] = [[] for _ in operands]
    full = [o.strides for o in operands if all(o.strides[i] for i, n in enumerate(shape) if n > 1)]
    order = sorted(range(len(shape)), key=lambda axis: [-s[axis] for s in full])
    for axis in order:
        size = shape[axis]
        if size == 1:
            continue
        if sizes and all(s[-1] == o.strides[axis] * size for s, o in zip(strides, operands, strict=True)):
            sizes[-1] *= size
            for s, o in zip(strides, operands, strict=True):
                s[-1] = o.strides[axis]
        else:
            sizes.append(size)
            for s, o in zip(strides, operands, strict=True):
                s.append(o.strides[axis])
    return sizes, strides


def text(kernel: Kernel, body: Body) -> None:
    """Write the kernel as the LLVM function `@KERNEL(ptr arguments)`, which takes the addresses of its operands.

    It returns 0, or the number of a guard that fails plus one, or `STOPPED`. Loops are in a separate function, whose
    parameters are declared not to alias.
    """
    operands = [o for _, o in kernel.reads] + [o for _, o in kernel.writes]
    sizes, strides = _collapsed(kernel.shape, operands)
    names = [f"%p{i}" for i in range(len(operands))]
    entry = body
    if sizes:
        kinds = ["readonly "] * len(kernel.reads) + [""] * len(kernel.writes)
        parameters = ", ".join(f"ptr noalias {kind}nocapture {name}" for kind, name in zip(kinds, names, strict=True))
        body.lines += [f"define i32 @KERNEL.body({parameters}) {WIDE} {{", "entry:"]
        _Writer(kernel, body, sizes, strides, names).write()
        entry = body.entry = Body(f"declare i32 @KERNEL.body({', '.join(['ptr'] * len(names))})")
    entry.lines += ["define i32 @KERNEL(ptr %arguments) {", "entry:"]
    for i, name in enumerate(names):
        entry.lines += [f"  %a{i} = getelementptr ptr, ptr %arguments, i64 {i}", f"  {name} = load ptr, ptr %a{i}"]
    if sizes:
        called = f"@KERNEL.body({', '.join(f'ptr {name}' for name in names)})"
        entry.lines += [f"  %result = call i32 {called}", "  ret i32 %result", "}"]
    else:
        _Writer(kernel, body, sizes, strides, names).write()


# Metadata of the module for loops, by its number: to write out each turn, or to compute 2 or 4 vectors at a time.
HINTS = {
    number: f"!{number} = distinct !{{!{number}, !{{{hint}}}}}"
    for number, hint in {
        1: '!"llvm.loop.unroll.full"',
        2: '!"llvm.loop.interleave.count", i32 2',
        4: '!"llvm.loop.interleave.count", i32 4',
    }.items()
}
# The turns of a nest that are written out: so the loop around it is vectorised. When a sum over the loop around has one
# element a turn, more are written out: the sums stay in registers.
_TURNS, _SUMS = 4, 8
# The vector registers for values that are live at once; the rest are left for intermediate results.
_REGISTERS = 24


def _hint(number: int) -> str:
    return f", !llvm.loop !{number}" if number else ""


def _interleaved(kernel: Kernel, size: int, accumulates: bool) -> int:
    """Return how many vectors a loop computes at a time to hide latency, or 0 if one is enough."""
    if size < 32 if accumulates else len(kernel.nodes) < 8 or size < BLOCK // 4:
        return 0
    return next((count for count in (4, 2) if count * _alive(kernel) <= _REGISTERS), 0)


def _alive(kernel: Kernel) -> int:
    """Return the largest number of values that are live at once."""
    begin: dict[int, int] = {}
    end: dict[int, int] = {}
    for number, node in enumerate(kernel.nodes):
        for arg in (*node.args, node):
            if type(arg) is Node or type(arg) is np.ndarray:
                begin.setdefault(id(arg), number)
                end[id(arg)] = number
    for written, _ in kernel.writes:
        end[id(written)] = len(kernel.nodes)
    changes = [0] * (len(kernel.nodes) + 2)
    for key, first in begin.items():
        changes[first] += 1
        changes[end[key] + 1] -= 1
    return max(itertools.accumulate(changes))


class _Writer(Flow):
    """Writes the loops of a kernel, from the outermost one to the operations at a point."""

    def __init__(
        self, kernel: Kernel, body: Body, sizes: list[int], strides: list[list[int]], names: list[str]
    ) -> None:
        super().__init__(body)
        self.kernel, self.sizes, self.strides, self.names = kernel, sizes, strides, names
        self.first_write = len(kernel.reads)
        # NumPy adds fewer than eight numbers one after the other.
        self.flags = "" if sizes and sizes[-1] < 8 else " reassoc"

    def write(self) -> None:
        """Write everything after the entry of the function."""
        self.initialise()
        self.nest(0, {})
        self.body.lines += ["  ret i32 0", "}"]

    def initialise(self) -> None:
        """Store the identity where a reduction collects its result."""
        for number, (_, operand) in enumerate(self.kernel.writes):
            if operand.reduction in _IDENTITY:
                name, kind = self.names[self.first_write + number], memory_type(operand.dtype)
                identity = self.identity(operand)
                many = operand.size != 1  # code without loops stays so
                with self.loop("0", str(operand.size)) if many else contextlib.nullcontext(Turn("0", [])) as turn:
                    place = self.body.do(f"getelementptr {kind}, ptr {name}, i64 {turn.number}")
                    self.body.lines.append(f"  store {kind} {identity}, ptr {place}")

    def identity(self, operand: Operand) -> str:
        return literal(0 if operand.reduction == "sum" and operand.dtype.kind == "i" else
                       _IDENTITY[operand.reduction], TYPES[operand.dtype])  # fmt: skip

    def nest(self, depth: int, offsets: dict[int, str]) -> None:
        """Write the loops from `depth` on; `offsets` are the operands' offsets so far, in elements."""
        if depth == len(self.sizes):
            self.point(offsets, {})
            return
        size, nodes = self.sizes[depth], len(self.kernel.nodes)
        long = depth == 0 and math.prod(self.sizes) * nodes > PATIENCE
        if depth < len(self.sizes) - 1:
            every = turns_between(math.prod(self.sizes[1:]) * nodes) if long else 0
            with self.loop("0", str(size), metadata=_hint(self.written_out(depth))) as turn:
                self.check_signals(turn.number, every)
                self.nest(depth + 1, self.advance(offsets, depth, turn.number))
            return
        accumulated = [
            number for number, (_, operand) in enumerate(self.kernel.writes)
            if operand.reduction in _IDENTITY and self.strides[self.first_write + number][depth] == 0
        ]  # fmt: skip
        if long or (accumulated and size > BLOCK):
            every = BLOCK * turns_between(BLOCK * nodes) if long else 0
            with self.loop("0", str(size), step=BLOCK) as turn:
                self.check_signals(turn.number, every)
                limit = self.body.do(f"add nuw nsw i64 {turn.number}, {BLOCK}")
                end = self.body.intrinsic("smin", "i64", limit, str(size))
                self.innermost(depth, offsets, turn.number, end, accumulated)
        else:
            self.innermost(depth, offsets, "0", str(size), accumulated)

    def written_out(self, depth: int) -> int:
        """Return the number of the hint to write out each turn of the loops from `depth` on, or 0."""
        writes = zip(self.kernel.writes, self.strides[self.first_write :], strict=True)
        sums = depth and any(o.reduction and s[depth] and not s[depth - 1] for (_, o), s in writes)
        return int(math.prod(self.sizes[depth:]) <= (_SUMS if sums else _TURNS))

    def check_signals(self, place: str, every: int) -> None:
        """Write a check for signals at each multiple of `every`, unless that is 0."""
        if every:
            self.ask(place, every)

    def innermost(self, depth: int, offsets: dict[int, str], start: str, end: str, accumulated: list[int]) -> None:
        """Write the last loop, or a block of it, and combine what it accumulates with what is in memory."""
        kinds = {n: TYPES[self.kernel.writes[n][1].dtype] for n in accumulated}
        carried = [(kinds[n], self.identity(self.kernel.writes[n][1])) for n in accumulated]
        hint = self.written_out(depth) or _interleaved(self.kernel, self.sizes[depth], bool(accumulated))
        with self.loop(start, end, carried, metadata=_hint(hint)) as turn:
            running = dict(zip(accumulated, turn.values, strict=True))
            self.point(self.advance(offsets, depth, turn.number), running)
            turn.next = [running[n] for n in accumulated]
        for number, value in zip(accumulated, turn.values, strict=True):
            self.combine(number, value, offsets.get(self.first_write + number))

    def advance(self, offsets: dict[int, str], depth: int, index: str) -> dict[int, str]:
        """Return the operands' offsets at a turn of a loop."""
        moved = dict(offsets)
        cache: dict[int, str] = {}
        for number, strides in enumerate(self.strides):
            stride = strides[depth]
            if stride == 0:
                continue
            if stride not in cache:
                cache[stride] = index if stride == 1 else self.body.do(f"mul nsw i64 {index}, {stride}")
            part = cache[stride]
            moved[number] = self.body.do(f"add nsw i64 {offsets[number]}, {part}") if number in offsets else part
        return moved

    def address(self, number: int, offset: str | None, dtype: DType) -> str:
        if offset is None:
            return self.names[number]
        return self.body.do(f"getelementptr {memory_type(dtype)}, ptr {self.names[number]}, i64 {offset}")

    def combined(self, reduction: str, dtype: DType, a: str, b: str) -> str:
        kind = TYPES[dtype]
        if reduction in _ADDING:
            return self.body.sum(kind, a, b, self.flags)
        return self.body.intrinsic("maximum" if reduction == "max" else "minimum", kind, a, b)

    def combine(self, number: int, value: str, offset: str | None) -> None:
        """Write the combination of a value with the element of an operand at an offset."""
        operand = self.kernel.writes[number][1]
        place = self.address(self.first_write + number, offset, operand.dtype)
        total = self.combined(operand.reduction, operand.dtype, self.body.load(place, operand.dtype), value)
        self.body.store(total, operand.dtype, place)

    def point(self, offsets: dict[int, str], running: dict[int, str]) -> None:
        """Write the operations at one point of the loops."""
        kernel, body = self.kernel, self.body
        values: dict[int, str] = {}  # by the identity of a node or a constant array
        whole: dict[int, int] = {}
        for number, (arg, operand) in enumerate(kernel.reads):
            if operand.size:
                whole[id(arg)] = number
            else:
                values[id(arg)] = body.load(self.address(number, offsets.get(number), operand.dtype), operand.dtype)

        def operand_in(arg: Value, kind: str) -> str:
            if id(arg) in values:
                return body.convert(values[id(arg)], TYPES[dtype_of(arg)], kind)
            return literal(arg, kind)

        for node in kernel.nodes:
            if node in kernel.gathers:
                source, places = kernel.gathers[node]
                place = self.address(whole[id(source)], values[id(places)], node.dtype)
                values[id(node)] = body.load(place, node.dtype)
            else:
                values[id(node)] = emit(body, node, operand_in)
            if node in kernel.expected:
                self.guard(node, values[id(node)])
        for number, (node, operand) in enumerate(kernel.writes):
            self.write_out(number, operand_in(node, TYPES[operand.dtype]), values, offsets, running)

    def write_out(
        self, number: int, value: str, values: dict[int, str], offsets: dict[int, str], running: dict[int, str]
    ) -> None:
        """Write the store of a value, or its combination with what is in memory or with what a loop carries."""
        operand, at = self.kernel.writes[number][1], self.first_write + number
        if number in running:
            running[number] = self.combined(operand.reduction, operand.dtype, running[number], value)
            return
        place = self.kernel.places.get(number)
        offset = offsets.get(at) if place is None else values[id(place)]
        if operand.reduction in ("", "put"):
            self.body.store(value, operand.dtype, self.address(at, offset, operand.dtype))
        else:
            self.combine(number, value, offset)

    def guard(self, node: Node, value: str) -> None:
        """Write a guard: unless the value is the expected one, store it and leave the function."""
        position, expected = self.kernel.expected[node]
        kind = TYPES[node.dtype]
        holds = self.body.is_same(kind, value, expected)
        go_on, leave = self.label(), self.label()
        self.body.lines.append(f"  br i1 {holds}, label %{go_on}, label %{leave}")
        self.start(leave)
        number = next(n for n, (written, _) in enumerate(self.kernel.writes) if written is node)
        self.body.store(value, node.dtype, self.address(self.first_write + number, None, node.dtype))
        self.body.lines.append(f"  ret i32 {position + 1}")
        self.start(go_on)
