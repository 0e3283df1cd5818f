"""The nodes of a recorded program, typed, shaped and in single assignment.

A node is one operation; its arguments are earlier nodes or constants. A guard is a node too: it says that the program
is this one only while its argument has the recorded value.
"""

import math
import operator
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Protocol

import numpy as np

from effgrad.primitives.primitive import Primitive
from effgrad.vocabulary import DType, Function, Option, Params, Tree, Value

INPUT = Primitive("input", lambda: None, "input", (), ())
GUARD = Primitive("guard", lambda value: value, "guard", (), ())


_FLOAT = np.dtype(float)

# The parameters of an operation that has none.
NONE: dict[str, Value] = {}

# The kind of primitives whose results must be checked to have the recorded shape and type.
UNRULED = "unruled"


class Part:
    """One of the results of a function that has several."""

    def __init__(self, function: Function, number: int) -> None:
        self.function, self.number = function, number

    def __call__(self, *args: Value, **params: Option) -> Value:
        return self.function(*args, **params)[self.number]


class Slot:
    """The place in a parameter of an operation (an index) where the value of a node goes."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __repr__(self) -> str:
        return f"Slot({self.number})"


class Node:
    """One operation of a graph: `primitive(*args, **params)`.

    `slots` are the nodes whose values go into the parameters. `kind` is the class of the value: float, numpy.float64,
    numpy.ndarray, ... For a guard, `expected` is the value that its argument must have. `run` is 0, or the number of
    the checkpoint whose second run the operation belongs to: what it computes is not to be kept from the first. Of what
    may stay a call of NumPy, `place` is the line of the program.
    """

    __slots__ = ("primitive", "args", "params", "slots", "shape", "dtype", "kind", "expected", "run", "place")

    def __init__(
        self, primitive: Primitive, args: tuple[Value, ...], params: Params, slots: tuple["Node", ...], like: Value
    ) -> None:
        self.primitive, self.args, self.params, self.slots = primitive, args, params, slots
        self.kind: type = like.__class__
        self.shape: tuple[int, ...]
        self.dtype: DType
        # Of usual values, what NumPy's functions would say more slowly.
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
        """The nodes that this one needs."""
        return (*[a for a in self.args if type(a) is Node], *self.slots)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def reading(self, new: Mapping["Node", Value]) -> "Node":
        """The node with others in the place of some that it needs; itself where it needs none of them.

        Where a slot's node became a constant, the constant goes into the parameter.
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
        """A copy with some fields changed."""
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
    """A graph as its printers read it: `inputs` and `nodes` in order, and `outputs`, each a node or a constant."""

    inputs: list[Node]
    nodes: list[Node]
    outputs: list[Value]
    tree: Tree

    def __iter__(self) -> Iterator[Node]: ...


def uses_of(graph: Recorded) -> Counter[Node]:
    """How often each node is needed, by other nodes and as an output."""
    uses = Counter(i for node in graph for i in node.inputs)
    uses.update(o for o in graph.outputs if type(o) is Node)
    return uses


def ancestors(node: Node) -> set[Node]:
    """The nodes that a node needs, it among them."""
    found, waiting = {node}, [node]
    while waiting:
        new = set(waiting.pop().inputs) - found
        found |= new
        waiting += new
    return found


class GuardFailed(Exception):
    """The program takes another path than the recorded one, at guard number `position`."""

    def __init__(self, position: int, value: Value) -> None:
        self.position, self.value = position, value


def check_shape(node: Node, value: Value) -> None:
    """Raises `GuardFailed` if the result of a function has not the recorded shape and type."""
    found = np.shape(value), np.result_type(value)
    if found != (node.shape, node.dtype):
        raise GuardFailed(-1, str(found))


def same(value: Value, expected: Value) -> bool:
    """Whether a guarded value is the recorded one: equal, NaN to NaN, in class and shape."""
    if isinstance(expected, np.ndarray):
        return bool(value.shape == expected.shape and value.tobytes() == expected.tobytes())
    return bool(value == expected or (value != value and expected != expected))


def fill(tree: Tree, values: list[Value]) -> Value:
    """Parameters with the slots replaced by values."""
    if not values:
        return tree
    if type(tree) is Slot:
        return values[tree.number]
    if type(tree) in (tuple, list):
        return type(tree)(fill(item, values) for item in tree)
    if type(tree) is dict:
        return {key: fill(item, values) for key, item in tree.items()}
    return tree
