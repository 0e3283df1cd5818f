"""Signatures of regions: equal for regions that differ only in the names of their buffers and loop variables."""

from effgrad.stage.loop.affine import Affine, affine
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
    Statement,
    Store,
    While,
)
from effgrad.stage.loop.operands import Value


class Signature:
    """Numbers for the buffers, loop variables, stacks and expressions of a region, in order of first mention."""

    def __init__(self, region: Region) -> None:
        self.numbers: dict[Value, int] = {}
        self.rows: list[Value] = []
        inputs, block = tuple(map(self.buffer, region.inputs)), self.block(region.block)
        self.key = inputs, block, tuple(map(self.buffer, region.outputs)), tuple(self.rows)

    def number(self, thing: Value, *facts: Value) -> int:
        """The number of an object; its facts are recorded when it is first mentioned."""
        if thing not in self.numbers:
            self.numbers[thing] = len(self.numbers)
            self.rows.append(facts)
        return self.numbers[thing]

    def buffer(self, b: Buffer) -> int:
        data = None if b.data is None else b.data.tobytes()
        return self.number(b, b.shape, b.dtype, b.narrow, b.cleared, b.reach, data)

    def affine(self, a: Affine | int) -> tuple[int, tuple[tuple[int, int], ...]]:
        a = affine(a)
        terms = [(self.number(x) if isinstance(x, str) else self.element(x), k) for x, k in a.terms]
        return a.constant, tuple(sorted(terms))

    def element(self, root: Element) -> int:
        for e in topological([root]):
            if e in self.numbers:
                continue
            if e.op == "load":
                args: Value = self.buffer(e.args[0]), *map(self.affine, e.args[1])
            elif e.op == "index":
                args = self.affine(e.args[0])
            else:
                args = repr(e.args[0]) if e.op == "constant" else tuple(self.numbers[x] for x in e.args)
            self.number(e, e.op, args, e.dtype)
        return self.numbers[root]

    def dims(self, dims: Dims) -> Value:
        return tuple((self.number(name), self.affine(n)) for name, n in dims)

    def block(self, block: Block) -> Value:
        return tuple(map(self.statement, block))

    def store(self, t: Store) -> Value:
        return self.buffer(t.buffer), tuple(map(self.affine, t.indices)), self.element(t.value), t.adds

    def statement(self, s: Statement) -> Value:
        """The signature of a statement and of those inside it."""
        if isinstance(s, Map):
            return "map", self.dims(s.dims), tuple(map(self.store, s.stores))
        if isinstance(s, Apply):
            return "apply", s.function, tuple(map(self.buffer, s.inputs)), self.buffer(s.output)
        if isinstance(s, Repeat):
            head = self.number(s.variable), self.affine(s.start), self.affine(s.stop), s.step, s.backwards
            return "repeat", head, self.block(s.body)
        if isinstance(s, While):
            return "while", self.buffer(s.count), self.block(s.test), self.element(s.flag), self.block(s.body)
        if isinstance(s, Branch):
            return "branch", self.element(s.flag), self.block(s.then), self.block(s.other)
        if isinstance(s, Push | Pop):
            dims = self.dims(s.dims)
            return type(s), self.number(s.stack), self.buffer(s.buffer), dims, tuple(map(self.affine, s.indices))
        assert isinstance(s, Check)
        return "check", self.element(s.flag), s.message, s.error


def signature(region: Region) -> Value:
    """A key that is the same for equal regions."""
    return Signature(region).key
