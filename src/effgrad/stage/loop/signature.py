"""Signatures of regions: equal for regions that differ only in the names of their buffers and loop variables."""

from dataclasses import fields

from effgrad.stage.loop.affine import Affine, affine
from effgrad.stage.loop.buffers import Buffer, Element, topological
from effgrad.stage.loop.ir import Region, Stack, Statement, Store
from effgrad.stage.loop.operands import Value

# The fields of statements that only reports read.
_FOR_REPORTS = frozenset(("name", "place", "reason"))


class Signature:
    """Numbers for the buffers, loop variables, stacks and expressions of a region, in order of first mention."""

    def __init__(self, region: Region) -> None:
        self.numbers: dict[Value, int] = {}
        self.rows: list[Value] = []
        self.key = *map(self.value, (region.inputs, region.block, region.outputs)), tuple(self.rows)

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

    def statement(self, s: Statement | Store) -> Value:
        """The signature of a statement and of those inside it, from its fields."""
        told = [f.name for f in fields(s) if f.name not in _FOR_REPORTS]
        return type(s), *[getattr(s, name) if name == "message" else self.value(getattr(s, name)) for name in told]

    def value(self, value: Value) -> Value:
        """The signature of a field of a statement, or of an item of it; a text is the name of a loop variable."""
        if isinstance(value, tuple | list):
            return tuple(map(self.value, value))
        if isinstance(value, str | Stack):
            return self.number(value)
        if isinstance(value, Buffer):
            return self.buffer(value)
        if isinstance(value, Affine):
            return self.affine(value)
        if isinstance(value, Element):
            return self.element(value)
        return self.statement(value) if isinstance(value, Statement | Store) else value


def signature(region: Region) -> Value:
    """A key that is the same for equal regions."""
    return Signature(region).key
