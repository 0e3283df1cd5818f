"""Write expressions of one element as LLVM text, with the addresses of the elements that they read."""

from collections.abc import Callable, Mapping, Sequence

from effgrad.primitives.machine_code import Code, is_integer
from effgrad.stage.loop.affine import Affine, NotCaptured, row_major, variable
from effgrad.stage.loop.buffers import Buffer, Element, index, topological
from effgrad.stage.loop.element import ADD, MULTIPLY, SUBTRACT
from effgrad.stage.native.flow import Flow
from effgrad.stage.native.scalars import TYPES, Body, emit, literal, memory_type, supported


class Elements(Flow):
    """Writes expressions of one element into a function."""

    # Subclasses have these methods. They give the LLVM names of a buffer's address, and of an integer that does not
    # depend on variables of this function; and whether an expression depends on them.
    pointer: Callable[[Buffer], str]
    outer: Callable[[Affine], str]
    varies: Callable[[Element], bool]

    def __init__(self, body: Body) -> None:
        super().__init__(body)
        self.variables: dict[str, str] = {}
        self.suffix = ""

    def integer(self, value: Affine) -> str:
        """Write an integer, and return its name: the part that depends on variables of this function, plus the rest."""
        inner = [(a, k) for a, k in value.terms if a in self.variables or (type(a) is not str and self.varies(a))]
        total = self.outer(Affine(value.constant, [term for term in value.terms if term not in inner]))
        for atom, k in inner:
            name = self.variables[atom] if type(atom) is str else self.values([atom])[atom]
            if type(atom) is not str and TYPES[atom.dtype] != "i64":
                name = self.body.convert(name, TYPES[atom.dtype], "i64")
            term = name if k == 1 else self.body.do(f"mul nsw i64 {name}, {self.step(k)}")
            total = term if total == "0" else self.body.do(f"add nsw i64 {total}, {term}")
        return total

    def step(self, k: int) -> str:
        """The text of a stride."""
        return str(k)

    def place(self, buffer: Buffer, indices: Sequence[Affine]) -> str:
        where = self.integer(row_major(indices, buffer.shape))
        if where == "0":
            return self.pointer(buffer)
        kind = memory_type(buffer.dtype)
        return self.body.do(f"getelementptr inbounds {kind}, ptr {self.pointer(buffer)}, i64 {where}")

    def load(self, buffer: Buffer, indices: Sequence[Affine]) -> str:
        return self.body.load(self.place(buffer, indices), buffer.dtype, self.suffix)

    def values(self, roots: Sequence[Element]) -> dict[Element, str]:
        """Write expressions, and return the names of their values and of those of their subexpressions."""
        names: dict[Element, str] = {}
        for e in topological(roots):
            kind = TYPES[e.dtype]
            if e.op == "constant":
                names[e] = literal(e.args[0], kind)
            elif e.op == "load":
                names[e] = self.load(*e.args)
            elif e.op == "index":
                names[e] = self.integer(e.args[0])
            elif e.op.kind == "cast":
                names[e] = self.body.convert(names[e.args[0]], TYPES[e.args[0].dtype], kind)
            else:
                names[e] = self.computed(e, names)
        return names

    def computed(self, e: Element, names: Mapping[Element, str]) -> str:
        """Write a primitive whose arguments have been written, and return the name of the result."""
        kind = TYPES[e.dtype]
        code: Code | None = e.op.code
        if is_integer(kind) and code is not None and code.integers:
            return code.integers(self.body, kind, *[self.body.convert(names[a], TYPES[a.dtype], kind) for a in e.args])
        if not supported(e):
            raise NotCaptured(f"{e.op.name} of {e.args[0].dtype} has no machine code")
        return emit(self.body, e, lambda a, target: self.body.convert(names[a], TYPES[a.dtype], target))

    def roughly(self, e: Element) -> str:
        """Write an integer expression in floating point, where it cannot overflow, and return its name."""
        if e.op == "index":
            total = literal(float(e.args[0].constant), "double")
            for atom, k in e.args[0].terms:
                own = index(variable(atom))
                name = self.values([own])[own]
                rough = self.body.convert(name, TYPES[own.dtype], "double")
                rough = self.body.do(f"fmul double {rough}, {literal(float(k), 'double')}")
                total = self.body.do(f"fadd double {total}, {rough}")
            return total
        if e.op in (ADD, SUBTRACT, MULTIPLY):
            a, b = map(self.roughly, e.args)
            return self.body.do(f"f{ {ADD: 'add', SUBTRACT: 'sub', MULTIPLY: 'mul'}[e.op]} double {a}, {b}")
        return self.body.convert(self.values([e])[e], TYPES[e.dtype], "double")


def has_code(e: Element) -> bool:
    """Whether there is machine code for the operation of an expression."""
    if e.op.kind == "cast" or (e.dtype.kind == "i" and e.op.code and e.op.code.integers):
        return True
    return supported(e)
