"""The reference semantics of regions: an executor in plain Python, one element at a time. It tests the native code."""

import itertools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from effgrad.stage.loop.affine import Affine
from effgrad.stage.loop.buffers import Buffer, Element, topological
from effgrad.stage.loop.ir import (
    Apply,
    Block,
    Branch,
    Check,
    Dims,
    Map,
    Pop,
    Push,
    Region,
    Repeat,
    Stack,
    Statement,
    While,
)
from effgrad.stage.loop.operands import Value


def execute(region: Region, arguments: Sequence[Value]) -> list[np.ndarray]:
    """Run a region on copies of the arguments, and return its outputs."""
    with np.errstate(all="ignore"):
        return Execution(region, arguments).run()


class Execution:
    """One run of a region: the memory of every buffer, and the stacks."""

    def __init__(self, region: Region, arguments: Sequence[Value]) -> None:
        self.region = region
        # Unwritten memory holds NaN, or a large integer, so that a test notices when it is read.
        self.memory: dict[Buffer, np.ndarray] = {b: _unwritten(b) for b in region.buffers()}
        for buffer, argument in zip(region.inputs, arguments, strict=True):
            self.memory[buffer] = np.array(argument, buffer.dtype).reshape(buffer.shape)
        self.stacks: dict[Stack, list[Value]] = {}
        self.deepest = self.depth = 0

    def run(self) -> list[np.ndarray]:
        self.block(self.region.block, {})
        return [self.memory[b].copy() for b in self.region.outputs]

    def block(self, block: Block, variables: dict[str, int]) -> None:
        for s in block:
            self.statement(s, variables)

    def statement(self, s: Statement, v: dict[str, int]) -> None:
        if isinstance(s, Map):
            self.map(s, v)
        elif isinstance(s, Apply):
            self.memory[s.output][...] = s.function(*[self.memory[b].copy()[()] for b in s.inputs])
        elif isinstance(s, Push | Pop):
            self.move(s, v)
        elif isinstance(s, Repeat):
            steps = range(self.integer(s.start, v), self.integer(s.stop, v), s.step)
            for i in reversed(steps) if s.backwards else steps:
                self.block(s.body, {**v, s.variable: i})
        elif isinstance(s, While):
            self.memory[s.count][...] = 0
            self.block(s.test, v)
            while self.values([s.flag], v)[s.flag]:
                self.block(s.body, v)
                self.memory[s.count] += 1
                self.block(s.test, v)
        elif isinstance(s, Check):
            if not self.values([s.flag], v)[s.flag]:
                raise s.error(s.message)
        elif isinstance(s, Branch):
            self.block(s.then if self.values([s.flag], v)[s.flag] else s.other, v)

    def move(self, s: Push | Pop, v: dict[str, int]) -> None:
        if isinstance(s, Push):
            stack = self.stacks.setdefault(s.stack, [])
            stack.append([self.memory[s.buffer][self.place(s.indices, p)] for p in self.points(s.dims, v)])
            self.depth += len(stack[-1])
            self.deepest = max(self.deepest, self.depth)
            return
        saved = self.stacks[s.stack].pop()
        self.depth -= len(saved)
        for point, value in zip(self.points(s.dims, v), saved, strict=True):
            self.memory[s.buffer][self.place(s.indices, point)] = value

    def map(self, s: Map, v: dict[str, int]) -> None:
        writes = []
        for point in self.points(s.dims, v):
            values = self.values([t.value for t in s.stores], point)
            writes.append([(self.place(t.indices, point), values[t.value]) for t in s.stores])
        for adds in (False, True):
            for number, t in enumerate(s.stores):
                if t.adds is adds:
                    memory = self.memory[t.buffer]
                    for row in writes:
                        place, value = row[number]
                        memory[place] = memory[place] + value if adds else value

    def points(self, dims: Dims, v: dict[str, int]) -> Iterator[dict[str, int]]:
        names = [name for name, _ in dims]
        for point in itertools.product(*[range(self.integer(n, v)) for _, n in dims]):
            yield {**v, **dict(zip(names, point, strict=True))}

    def integer(self, i: Affine, v: Mapping[str, int]) -> int:
        total = i.constant
        for atom, k in i.terms:
            total += k * (v[atom] if type(atom) is str else int(self.values([atom], v)[atom]))
        return total

    def place(self, indices: Sequence[Affine], v: Mapping[str, int]) -> tuple[int, ...]:
        place = tuple([self.integer(i, v) for i in indices])
        assert min(place, default=0) >= 0, (place, indices)
        return place

    def values(self, roots: Sequence[Element], v: Mapping[str, int]) -> dict[Element, Value]:
        values: dict[Element, Value] = {}
        for e in topological(roots):
            if e.op == "constant":
                values[e] = e.dtype.type(e.args[0])
            elif e.op == "load":
                values[e] = self.memory[e.args[0]][self.place(e.args[1], v)]
            elif e.op == "index":
                values[e] = np.int64(self.integer(e.args[0], v))
            else:
                values[e] = e.dtype.type(e.op.function(*[values[a] for a in e.args]))
        return values


def _unwritten(b: Buffer) -> np.ndarray:
    if b.data is not None:
        return b.data
    if b.cleared:
        return np.zeros(b.shape, b.dtype)
    return np.full(b.shape, np.nan if b.dtype.kind == "f" else 1 if b.dtype.kind == "b" else 1 << 20, b.dtype)
