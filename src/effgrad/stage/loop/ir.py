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

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from effgrad.stage.loop.affine import Affine, Ranges, affine, known_range, variable
from effgrad.stage.loop.buffers import Buffer, Element, constant, index_loads, load, loads
from effgrad.vocabulary import Function

# The reasons, for reports, why a function is called rather than written as machine code.
OF_WHOLE = "it is no map, sum, product or move of elements"
OF_RULE = "it has a rule of yours"
UNWRITTEN = "it has no machine code"


class Stack:
    """A stack of saved values, about `bytes` bytes in all. `into` maps a pushed buffer to the one it is popped into."""

    def __init__(self) -> None:
        self.into, self.bytes = dict[Buffer, Buffer](), 0


Dims = tuple[tuple[str, Affine], ...]


@dataclass(eq=False)
class Store:
    """Write `value` to one element of a buffer, or add it to the element if `adds`."""

    buffer: Buffer
    indices: tuple[Affine, ...]
    value: Element
    adds: bool = False

    def substitute(self, values: "Mapping[str, Affine | int]") -> "Store":
        """Return the store with loop variables replaced by the given integers."""
        indices = tuple(i.substitute(values) for i in self.indices)
        return replace(self, indices=indices, value=self.value.substitute(values))


@dataclass(eq=False)
class Map:
    """At all points of an index box: every load, every `=` store, every `+=` store; `place` is the program's line."""

    dims: Dims
    stores: list[Store]
    place: str = ""

    def substitute(self, values: "Mapping[str, Affine | int]") -> "Map":
        """Return the Map with loop variables replaced by the given integers."""
        dims = tuple((name, n.substitute(values)) for name, n in self.dims)
        return replace(self, dims=dims, stores=[t.substitute(values) for t in self.stores])


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

    @property
    def bounds(self) -> tuple[Affine, Affine]:
        """The bounds of the variable."""
        return (self.start, self.stop - 1) if self.step > 0 else (self.stop + 1, self.start)

    @property
    def steps(self) -> range | None:
        """The values of the variable in ascending or descending order, or None if they are not known."""
        return known_range(self.start, self.stop, self.step)

    def most_steps(self, ranges: Ranges) -> int | None:
        """The largest number of steps, or None if it is not known."""
        span = ranges.upper(self.stop - self.start if self.step > 0 else self.start - self.stop)
        return None if span is None else max(-(-span // abs(self.step)), 0)


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
class _Saved:
    """A stack, and the elements of a buffer that `indices` name at all points of an index box."""

    stack: Stack
    buffer: Buffer
    dims: Dims
    indices: tuple[Affine, ...]


class Push(_Saved):
    """Save the elements on the stack."""


class Pop(_Saved):
    """Restore the elements that the matching `Push` saved."""


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
        used = [b for s in walk(self.block) for b in (*written(s), *read_buffers(s))]
        return list(dict.fromkeys([*self.inputs, *self.outputs, *used]))

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


def rewritten(block: Block, change: Callable[[Statement], Block]) -> Block:
    """Return a copy of the statements, in which `change` replaces each that contains no blocks."""
    new: Block = []
    for s in block:
        new += [rebuilt(s, [rewritten(part, change) for part in parts(s)])] if parts(s) else change(s)
    return new


def duplicate(block: Block) -> Block:
    """Copy the statements. A statement is identified by its object, so each may occur only once in a region."""
    return rewritten(block, lambda s: [replace(s)])


def walk(block: Iterable[Statement]) -> Iterator[Statement]:
    """Yield all statements, also nested ones, in textual order."""
    for s in block:
        yield s
        for part in parts(s):
            yield from walk(part)


def reads(s: Statement) -> list[Element]:
    """The loads in the values, indices and bounds of a statement, but not its blocks, nor the inputs of an `Apply`."""
    if isinstance(s, Map):
        return [*loads_of(s.stores), *[e for _, n in s.dims for e in index_loads(n)]]
    if isinstance(s, Repeat):
        return index_loads(s.start) + index_loads(s.stop)
    if isinstance(s, While | Branch | Check):
        return loads([s.flag])
    if isinstance(s, Push | Pop):
        return [e for i in (*s.indices, *[n for _, n in s.dims]) for e in index_loads(i)]
    return []


def loads_of(stores: Sequence[Store]) -> list[Element]:
    """The loads in the values and indices of stores."""
    return [*loads([t.value for t in stores]), *[e for t in stores for i in t.indices for e in index_loads(i)]]


def accesses(stores: Sequence[Store]) -> list[tuple[Buffer, tuple[Affine, ...]]]:
    """The elements that stores write, and those that their values load: the buffer and the indices of each."""
    found = [(t.buffer, t.indices) for t in stores]
    return [*found, *[(e.args[0], e.args[1]) for e in loads([t.value for t in stores])]]


def read_buffers(s: Statement) -> list[Buffer]:
    """The buffers that a statement itself reads, without those that its blocks read."""
    own = s.inputs if isinstance(s, Apply) else (s.buffer,) if isinstance(s, Push) else ()
    return [*own, *[e.args[0] for e in reads(s)]]


def written(s: Statement) -> list[Buffer]:
    """The buffers that a statement itself writes, without those that its blocks write."""
    if isinstance(s, Map):
        return [t.buffer for t in s.stores]
    if isinstance(s, Apply):
        return [s.output]
    if isinstance(s, While):
        return [s.count]
    return [s.buffer] if isinstance(s, Pop) else []


def reads_in(block: Iterable[Statement]) -> set[Buffer]:
    """The buffers that statements read, including those that their nested statements read."""
    return {b for s in walk(block) for b in read_buffers(s)}


def writes_in(block: Iterable[Statement]) -> set[Buffer]:
    """The buffers that statements write, including those that their nested statements write."""
    return {b for s in walk(block) for b in written(s)}


def all_points(buffer: Buffer) -> tuple[Dims, tuple[Affine, ...]]:
    """The index box of a whole buffer, and the indices of its points."""
    from_names = [f"w{axis}_{id(buffer)}" for axis in range(len(buffer.shape))]
    dims = tuple((name, affine(n)) for name, n in zip(from_names, buffer.shape, strict=True))
    return dims, tuple(map(variable, from_names))


def zeroed(buffer: Buffer) -> Map:
    """The statement that sets a whole buffer to zero."""
    dims, indices = all_points(buffer)
    return Map(dims, [Store(buffer, indices, constant(0, buffer.dtype))])


def added(buffer: Buffer, other: Buffer) -> Map:
    """The statement that adds to each element of a buffer that of another one of the same shape."""
    dims, indices = all_points(buffer)
    return Map(dims, [Store(buffer, indices, load(other, indices), adds=True)])
