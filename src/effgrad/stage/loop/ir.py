"""The intermediate representation of a captured loop: a region is a program over buffers, in eight kinds of statement.

* `Map(dims, stores)` visits all points of an index box, whose extents may be affine in the variables of outer loops:
  first every load, then every `=` store, then every `+=` store. Several points may add to one element, as in a sum or
  a matrix product. The derivatives of a Map are Maps again.
* `Apply(function, inputs, output)` is one call of NumPy on whole buffers, for whatever is no Map.
* `Repeat`, `While`, `Branch` are control flow; `Check` raises. `Push` saves elements of a buffer, `Pop` restores them.

A buffer is state: statements write it in place, and nothing is copied from step to step. Expressions apply elementwise
primitives, whose rows hold their partials and machine code. `tests/stage/region_execution.py` runs a region in plain
Python, and so defines what each statement means.
"""

import functools
import math
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from effgrad import forks
from effgrad.primitives.primitive import Primitive
from effgrad.stage.loop.affine import Affine, NotCaptured, affine
from effgrad.vocabulary import DType, DTypeLike, Function, Value

FLOAT, INT, BOOL = np.dtype(float), np.dtype(np.int64), np.dtype(bool)

# The reasons, for reports, why a function is called rather than written as machine code.
OF_WHOLE = "it is no map, sum, product or move of elements"
OF_RULE = "it has a rule of yours"
UNWRITTEN = "it has no machine code"


@dataclass(eq=False)
class Buffer:
    """Memory of a constant shape. A `cleared` buffer is zero when the region starts; one with `data` is a constant.

    `reach` holds the bounds of its integers, if they are known. An integer type without machine code is stored in 64
    bits, and `narrow` is then its type in the user's program.
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType = FLOAT
    cleared: bool = False
    data: np.ndarray | None = None
    reach: tuple[int, int] | None = None
    narrow: DType | None = None

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def smooth(self) -> bool:
        """Whether its elements can have derivatives."""
        return self.dtype.kind == "f"

    def __repr__(self) -> str:
        return self.name


class Stack:
    """A stack of saved values, about `bytes` bytes in all. `into` maps a pushed buffer to the one it is popped into."""

    def __init__(self) -> None:
        self.into, self.bytes = dict[Buffer, Buffer](), 0


class Element:
    """An expression of one element. Equal expressions are one object.

    `op` is "constant" (args: the number), "load" (args: the buffer and a tuple of indices), "index" (args: an integer
    that is affine in loop variables), or an elementwise primitive.
    """

    __slots__ = ("op", "args", "dtype", "__weakref__")

    op: Any
    args: tuple[Value, ...]
    dtype: DType

    def substitute(self, values: "Mapping[str, Affine | int]") -> "Element":
        """Return the expression with loop variables replaced by the given integers."""
        memo: dict[Element, Element] = {}
        for e in topological([self]):
            if e.op == "load":
                memo[e] = load(e.args[0], [i.substitute(values) for i in e.args[1]])
            elif e.op == "index":
                memo[e] = index(e.args[0].substitute(values))
            elif e.op == "constant":
                memo[e] = e
            else:
                memo[e] = _interned(e.op, tuple([memo[a] for a in e.args]), e.dtype)
        return memo[self]

    def variables(self) -> set[str]:
        """The loop variables that its loads and indices depend on."""
        found: set[str] = set()
        for e in topological([self]):
            if e.op == "load":
                found = found.union(*(i.variables() for i in e.args[1]))
            elif e.op == "index":
                found |= e.args[0].variables()
        return found

    def __repr__(self) -> str:
        if self.op == "load":
            return f"{self.args[0]}{list(self.args[1])}"
        if self.op in ("constant", "index"):
            return str(self.args[0])
        return f"{self.op.name}({', '.join(map(repr, self.args))})"


_elements: "dict[Value, weakref.ref[Element]]" = {}
_lock = forks.lock()


def _interned(op: Value, args: tuple[Value, ...], dtype: DType) -> Element:
    key = op, _comparable(op, args), dtype
    with _lock:
        known = _elements.get(key)
        found = None if known is None else known()
        if found is None:
            found = object.__new__(Element)
            found.op, found.args, found.dtype = op, args, dtype
            _elements[key] = weakref.ref(found, functools.partial(_elements.pop, key))
    return found


def _comparable(op: Value, args: tuple[Value, ...]) -> Value:
    """The arguments as a key that C code compares: no Python may run when an element dies (see `effgrad.living`)."""
    if op == "constant":
        return repr(args[0])
    if op == "load":
        return args[0], *[(i.constant, i.terms) for i in args[1]]
    return (args[0].constant, args[0].terms) if op == "index" else args


def constant(value: Value, dtype: DTypeLike = None) -> Element:
    """A constant expression."""
    dtype = np.result_type(value) if dtype is None else np.dtype(dtype)
    return _interned("constant", (dtype.type(value).item(),), dtype)


def load(buffer: Buffer, indices: Sequence[Affine | int]) -> Element:
    """A load of one element of a buffer."""
    return _interned("load", (buffer, tuple(map(affine, indices))), buffer.dtype)


def index(value: Affine | int) -> Element:
    """An integer expression that is affine in loop variables."""
    value = affine(value)
    if not value.terms:
        return constant(value.constant, INT)
    if len(value.terms) == 1 and value.constant == 0 and value.terms[0][1] == 1 and type(value.terms[0][0]) is not str:
        return value.terms[0][0]  # type: ignore[no-any-return]
    return _interned("index", (value,), INT)


def application(primitive: Primitive, args: Sequence[Element], dtype: DType) -> Element:
    """A primitive applied to elements, without any simplification."""
    return _interned(primitive, tuple(args), dtype)


def integer(e: Element) -> Affine:
    """Return an integer expression as an affine index."""
    if e.dtype.kind not in "iu":
        raise NotCaptured("an index is not an integer")
    if e.op == "constant":
        return Affine(int(e.args[0]))
    return e.args[0] if e.op == "index" else Affine(0, ((e, 1),))


def topological(roots: Sequence[Element]) -> list[Element]:
    """All subexpressions of the roots, arguments first. Expressions inside indices are not included."""
    order: list[Element] = []
    seen: set[Element] = set()
    for root in roots:
        stack = [(root, False)]
        while stack:
            e, done = stack.pop()
            if done:
                order.append(e)
            elif e not in seen:
                seen.add(e)
                stack.append((e, True))
                if not isinstance(e.op, str):
                    stack.extend([(a, False) for a in reversed(e.args)])
    return order


def loads(roots: Sequence[Element]) -> list[Element]:
    """The loads in expressions, including those inside indices."""
    found: dict[Element, None] = {}
    for e in topological(roots):
        if e.op == "load":
            found[e] = None
            for i in e.args[1]:
                found.update(dict.fromkeys(index_loads(i)))
        elif e.op == "index":
            found.update(dict.fromkeys(index_loads(e.args[0])))
    return list(found)


def index_loads(i: Affine | int) -> list[Element]:
    """The loads that an index depends on."""
    return loads([atom for atom, _ in i.terms if type(atom) is not str]) if isinstance(i, Affine) and i.terms else []


Dims = tuple[tuple[str, Affine], ...]


@dataclass(eq=False)
class Store:
    """Write `value` to one element of a buffer, or add it to the element if `adds`."""

    buffer: Buffer
    indices: tuple[Affine, ...]
    value: Element
    adds: bool = False


@dataclass(eq=False)
class Map:
    """At all points of an index box: every load, every `=` store, every `+=` store; `place` is the program's line."""

    dims: Dims
    stores: list[Store]
    place: str = ""


@dataclass(eq=False)
class Apply:
    """`output[...] = function(*inputs)` on whole buffers; the function is written in differentiable NumPy.

    A function may have a method `reverse(statement, cotangents)`, which returns the statements of its adjoint. These
    may read only the primal buffers that its method `read_by_reverse(statement)` returns. For reports, `place` is the
    line of the call in the program, and `reason` says why it is not a Map.
    """

    function: Function
    inputs: tuple[Buffer, ...]
    output: Buffer
    name: str = ""
    place: str = ""
    reason: str = ""


@dataclass(eq=False)
class Repeat:
    """`for variable in range(start, stop, step)`, reversed if `backwards`; bounds are read before the first step."""

    variable: str
    start: Affine
    stop: Affine
    step: int
    body: "Block"
    backwards: bool = False


@dataclass(eq=False)
class While:
    """Run `test`; while `flag` is then true, run `body` and `test` again. `count` receives the number of steps."""

    count: Buffer
    test: "Block"
    flag: Element
    body: "Block"


@dataclass(eq=False)
class Branch:
    """Run `then` if the flag is true, else `other`."""

    flag: Element
    then: "Block"
    other: "Block"


@dataclass(eq=False)
class Push:
    """Save on a stack the elements of a buffer that `indices` name at all points of an index box."""

    stack: Stack
    buffer: Buffer
    dims: Dims
    indices: tuple[Affine, ...]


@dataclass(eq=False)
class Pop:
    """Restore the elements that the matching `Push` saved."""

    stack: Stack
    buffer: Buffer
    dims: Dims
    indices: tuple[Affine, ...]


@dataclass(eq=False)
class Check:
    """Raise an error with this message if the flag is false."""

    flag: Element
    message: str
    error: type[Exception] = IndexError


Statement = Map | Apply | Repeat | While | Branch | Push | Pop | Check
Block = list[Statement]


@dataclass(eq=False)
class Region:
    """A program over buffers: `inputs` are filled before it starts, `outputs` are its results."""

    inputs: list[Buffer]
    outputs: list[Buffer]
    block: Block

    def buffers(self) -> list[Buffer]:
        """All buffers, the inputs first."""
        found = dict.fromkeys([*self.inputs, *self.outputs])
        for s in walk(self.block):
            found.update(dict.fromkeys([*written(s), *[e.args[0] for e in reads(s)]]))
            if isinstance(s, Apply):
                found.update(dict.fromkeys(s.inputs))
            if isinstance(s, Push):
                found[s.buffer] = None
        return list(found)

    def __repr__(self) -> str:
        return f"<region {self.inputs} -> {self.outputs}, {len(list(walk(self.block)))} statements>"


def parts(s: Statement) -> list[Block]:
    """The blocks inside a statement."""
    if isinstance(s, Repeat):
        return [s.body]
    if isinstance(s, While):
        return [s.test, s.body]
    return [s.then, s.other] if isinstance(s, Branch) else []


def rebuilt(s: Statement, blocks: Sequence[Block]) -> Statement:
    """Return a copy of the statement with these blocks inside it."""
    if isinstance(s, Repeat):
        return replace(s, body=blocks[0])
    if isinstance(s, While):
        return replace(s, test=blocks[0], body=blocks[1])
    return replace(s, then=blocks[0], other=blocks[1]) if isinstance(s, Branch) else s


def duplicate(block: Block) -> Block:
    """Copy the statements. A statement is identified by its object, so each may occur only once in a region."""
    return [rebuilt(replace(s), [duplicate(part) for part in parts(s)]) for s in block]


def walk(block: Block) -> Iterator[Statement]:
    """Yield all statements, also nested ones, in textual order."""
    for s in block:
        yield s
        for part in parts(s):
            yield from walk(part)


def reads(s: Statement) -> list[Element]:
    """The loads in the values, indices and bounds of a statement, but not its blocks, nor the inputs of an `Apply`."""
    if isinstance(s, Map):
        indices = [i for t in s.stores for i in t.indices] + [n for _, n in s.dims]
        return [*loads([t.value for t in s.stores]), *[e for i in indices for e in index_loads(i)]]
    if isinstance(s, Repeat):
        return index_loads(s.start) + index_loads(s.stop)
    if isinstance(s, While | Branch | Check):
        return loads([s.flag])
    if isinstance(s, Push | Pop):
        return [e for i in (*s.indices, *[n for _, n in s.dims]) for e in index_loads(i)]
    return []


def written(s: Statement) -> list[Buffer]:
    """The buffers that a statement itself writes, without those that its blocks write."""
    if isinstance(s, Map):
        return [t.buffer for t in s.stores]
    if isinstance(s, Apply):
        return [s.output]
    if isinstance(s, While):
        return [s.count]
    return [s.buffer] if isinstance(s, Pop) else []


def all_points(buffer: Buffer) -> tuple[Dims, tuple[Affine, ...]]:
    """The index box of a whole buffer, and the indices of its points."""
    from_names = [f"w{axis}_{id(buffer)}" for axis in range(len(buffer.shape))]
    dims = tuple((name, affine(n)) for name, n in zip(from_names, buffer.shape, strict=True))
    return dims, tuple(Affine(0, ((name, 1),)) for name in from_names)
