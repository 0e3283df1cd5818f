"""Buffers, and expressions of one element that load from them. Equal expressions are one object."""

import functools
import math
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from effgrad import forks
from effgrad.primitives.primitive import Primitive
from effgrad.stage.loop.affine import Affine, NotCaptured, affine, variable
from effgrad.stage.nodes import NONE
from effgrad.vocabulary import DType, DTypeLike, Value

FLOAT, INT, BOOL = np.dtype(float), np.dtype(np.int64), np.dtype(bool)


@dataclass(eq=False)
class Buffer:
    """Memory of a constant shape. A `cleared` buffer is zero when the region starts; one with `data` is a constant.

    `reach` holds the bounds of its integers, if they are known. An integer type without machine code is stored in 64
    bits, and `narrow` is then its type in the user's program. A `viewing` buffer is the copy of an array that has
    another name, or of a view, which a loop leaves behind. `order` says how the array lies in the program: "C", in C
    order; "K", without gaps, in the order of what it is computed from or `like`; "A", as that, or as a view of it; "F",
    otherwise. Arrays that are `flattened`, without a copy, have to lie in C order.
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType = FLOAT
    cleared: bool = False
    data: np.ndarray | None = None
    reach: tuple[int, int] | None = None
    narrow: DType | None = None
    viewing: bool = False
    order: str = "A"
    like: Value = None
    flattened: bool = False

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def smooth(self) -> bool:
        """Whether its elements can have derivatives."""
        return self.dtype.kind == "f"

    def __repr__(self) -> str:
        return self.name


class Element:
    """An expression of one element. Equal expressions are one object.

    `op` is "constant" (args: the number), "load" (args: the buffer and a tuple of indices), "index" (args: an integer
    that is affine in loop variables), or an elementwise primitive.
    """

    __slots__ = ("op", "args", "dtype", "__weakref__")

    op: Any
    args: tuple[Value, ...]
    dtype: DType

    # The fields of a node of a graph.
    primitive = property(lambda self: self.op)
    params = property(lambda self: NONE)

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
    return e.args[0] if e.op == "index" else variable(e)


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


def buffers_in(roots: Sequence[Element]) -> set[Buffer]:
    """The buffers that expressions load from."""
    return {e.args[0] for e in loads(roots)}


def index_loads(i: Affine | int) -> list[Element]:
    """The loads that an index depends on."""
    return loads([atom for atom, _ in i.terms if type(atom) is not str]) if isinstance(i, Affine) and i.terms else []
