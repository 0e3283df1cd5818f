"""The nodes of a recorded program, in single assignment form, each with its shape and dtype.

A node is one operation; its arguments are earlier nodes or constants. A guard is a node too: it says that the recorded
program is valid only while its argument has the recorded value.
"""

import math
import operator
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Protocol

import numpy as np

from effgrad.nested import map_leaves
from effgrad.primitives.primitive import Primitive
from effgrad.vocabulary import DType, Function, Option, Params, Tree, Value

INPUT = Primitive("input", lambda: None, "input", (), ())
GUARD = Primitive("guard", lambda value: value, "guard", (), ())


_FLOAT = np.dtype(float)

# Python's integers that are nearer to zero than this may be inputs, or be made of NumPy's. This bounds the numbers of
# bits of what is computed from them, so that results which fit into 64 bits are recognised (see `integers`).
SMALL = 1 << 31

# The parameters of operations without parameters.
NONE: dict[str, Value] = {}

# The kind of primitives whose results must be checked at run time to have the recorded shape and dtype.
UNRULED = "unruled"


class ResultOf:
    """A function that returns one of the several results of another function."""

    def __init__(self, function: Function, number: int) -> None:
        self.function, self.number = function, number

    def __call__(self, *args: Value, **params: Option) -> Value:
        return self.function(*args, **params)[self.number]


class ByName:
    """A function that passes its last arguments to another function by their names."""

    def __init__(self, function: Function, names: tuple[str, ...]) -> None:
        self.function, self.names, self.__name__ = function, names, function.__name__

    def __call__(self, *args: Value, **params: Option) -> Value:
        first = len(args) - len(self.names)
        return self.function(*args[:first], **dict(zip(self.names, args[first:], strict=True)), **params)


class Slot:
    """A placeholder in a parameter of an operation, such as an index, for the value of a node."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __repr__(self) -> str:
        return f"Slot({self.number})"


class Node:
    """One operation of a graph: `primitive(*args, **params)`.

    `slots` are the nodes whose values replace the `Slot` objects in the parameters. `kind` is the class of the value:
    float, numpy.float64, numpy.ndarray, ... For a guard, `expected` is the value that its argument must have. `run` is
    0, or the number of the checkpoint rerun that the operation belongs to. An operation of a rerun is computed anew,
    so that the value from the first run need not be kept. `place` is the line of the user's program, for operations
    that may stay calls of NumPy.
    """

    __slots__ = ("primitive", "args", "params", "slots", "shape", "dtype", "kind", "expected", "run", "place")

    def __init__(
        self, primitive: Primitive, args: tuple[Value, ...], params: Params, slots: tuple["Node", ...], like: Value
    ) -> None:
        self.primitive, self.args, self.params, self.slots = primitive, args, params, slots
        self.kind: type = like.__class__
        self.shape: tuple[int, ...]
        self.dtype: DType
        # The usual values are read directly: NumPy's functions give the same answers more slowly.
        if type(like) is float:
            self.shape, self.dtype = (), _FLOAT
        elif type(like) is np.ndarray or type(like) is np.float64:
            self.shape, self.dtype = like.shape, like.dtype
        else:
            self.shape, self.dtype = np.shape(like), np.result_type(like)
        self.expected: Value = None
        self.run, self.place = 0, ""

    @property
    def inputs(self) -> tuple["Node", ...]:
        """The nodes whose values this node reads."""
        return (*[a for a in self.args if type(a) is Node], *self.slots)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def reading(self, new: Mapping["Node", Value]) -> "Node":
        """Return the node with its inputs replaced as `new` says; itself if it has no slots and no argument changes.

        If the node of a slot became a constant, the constant goes into the parameter.
        """
        args = tuple([new.get(a, a) if type(a) is Node else a for a in self.args])
        if not self.slots:
            return self if all(map(operator.is_, args, self.args)) else self.changed(args=args)
        values = [new.get(s, s) for s in self.slots]
        slots = tuple(v for v in values if type(v) is Node)
        if len(slots) == len(values):
            return self.changed(args=args, slots=slots)
        numbered = iter(range(len(slots)))
        params = fill(self.params, [Slot(next(numbered)) if type(v) is Node else v for v in values])
        return self.changed(args=args, slots=slots, params=params)

    def changed(self, **fields: Option) -> "Node":
        """Return a copy with some fields changed."""
        node = Node.__new__(Node)
        node.primitive, node.args, node.params, node.slots = self.primitive, self.args, self.params, self.slots
        node.shape, node.dtype, node.kind, node.expected = self.shape, self.dtype, self.kind, self.expected
        node.run, node.place = self.run, self.place
        for name, value in fields.items():
            setattr(node, name, value)
        return node

    def __repr__(self) -> str:
        return f"<{self.primitive.name} {self.dtype}{list(self.shape)}>"


class Recorded(Protocol):
    """The part of a graph that printers read: `inputs` and `nodes` in order, `outputs` (nodes or constants), `tree`."""

    inputs: list[Node]
    nodes: list[Node]
    outputs: list[Value]
    tree: Tree

    def __iter__(self) -> Iterator[Node]: ...


def uses_of(graph: Recorded) -> Counter[Node]:
    """Return how often each node is used, by other nodes and as an output."""
    uses = Counter(i for node in graph for i in node.inputs)
    uses.update(o for o in graph.outputs if type(o) is Node)
    return uses


def ancestors(node: Node) -> set[Node]:
    """Return all nodes that a node depends on, including itself."""
    found, waiting = {node}, [node]
    while waiting:
        new = set(waiting.pop().inputs) - found
        found |= new
        waiting += new
    return found


class GuardFailed(Exception):
    """The program takes another path than the recorded one, from guard number `position`, which found `value`.

    The position is -1 where no guard failed, but a result has another shape or dtype than the recorded one.
    """

    def __init__(self, position: int, value: Value) -> None:
        self.position, self.value = position, value


def check_shape(node: Node, value: Value) -> None:
    """Raise `GuardFailed` if the result of a function does not have the recorded shape and dtype."""
    found = np.shape(value), np.result_type(value)
    if found != (node.shape, node.dtype):
        raise GuardFailed(-1, str(found))


def answer(value: Value) -> Value:
    """Return a key of a guarded value: the shape and bytes of an array, or a number.

    All NaN have one key, and 0.0 and -0.0 have two. So do complex numbers whose parts differ in the sign of a zero.
    """
    if isinstance(value, np.ndarray) and value.shape:
        return value.shape, value.tobytes()
    if isinstance(value, np.ndarray):
        value = value[()]
    if isinstance(value, complex | np.complexfloating):
        return answer(value.real), answer(value.imag)
    return "nan" if value != value else value if value != 0 else str(value)


def is_expected(value: Value, expected: Value) -> bool:
    """Whether a guarded value is the recorded one."""
    return bool(answer(value) == answer(expected))


def fill(tree: Tree, values: list[Value]) -> Value:
    """Return parameters with their slots replaced by values."""
    if not values:
        return tree
    return map_leaves(lambda leaf: values[leaf.number] if type(leaf) is Slot else leaf, tree)
