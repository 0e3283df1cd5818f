"""A loop and its reverse in one program: the forward sweep runs once, and leaves what the reverse sweep reads."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from effgrad.primitives.primitive import Primitive
from effgrad.stage.graph import Graph
from effgrad.stage.loop.operands import Value
from effgrad.stage.loop.program import NONE_APART, Apart, Program, packed, run_region
from effgrad.stage.nodes import Node
from effgrad.vocabulary import Function


class Halved(Protocol):
    """An executable pair of a region and its reverse."""

    def forward(self, vector: np.ndarray | None, apart: Apart, *arguments: Value) -> list[np.ndarray]:
        """The outputs of the forward sweep."""

    def backward(self, vector: np.ndarray | None, apart: Apart, *arguments: Value) -> list[np.ndarray]:
        """The cotangents, of which some may go to vectors of their own; `forward` must have run."""


class Pair:
    """A loop and its reverse; between the two sweeps it holds the buffers that the second begins with."""

    def __init__(self, halves: Halved, outputs: int, program: Program) -> None:
        self.halves, self.outputs, self.program = halves, outputs, program
        self.kept: list[np.ndarray] = []


def _forward(
    *arguments: Value, pair: Pair, vector: np.ndarray | None = None, apart: Apart = NONE_APART
) -> np.ndarray:
    """All outputs of the loop as one vector, the given one if it is not None."""
    outputs = pair.halves.forward(vector, apart, *arguments)
    pair.kept = outputs[pair.outputs :]
    return packed(outputs[: pair.outputs], vector)


def _backward(
    _: Value, *arguments: Value, pair: Pair, vector: np.ndarray | None = None, apart: Apart = NONE_APART
) -> np.ndarray:
    """All cotangents as one vector. The first argument is the result of `_forward`, and makes sure that it has run."""
    return packed(pair.halves.backward(vector, apart, *arguments, *pair.kept), vector, apart)


run_forward = Primitive("run_forward", _forward, "constant", (), ())
run_backward = Primitive("run_backward", _backward, "constant", (), ())
# The functions that can write their result into a given vector.
INTO = frozenset((_forward, _backward, run_region.function))


def with_parts(node: Node) -> Program | None:
    """The program of a node whose outputs may go to vectors of their own, or None."""
    if node.primitive is run_region:
        found: Program = node.params["program"]
        return found
    return node.params["pair"].program if node.primitive is run_backward else None


def with_pairs(graph: Graph, make: Value) -> Graph:
    """Pair each loop of a graph that has exactly one reverse in it with that reverse, so that the loop runs once."""
    loops = {_key(n.args, n.params["program"]): n for n in graph if n.primitive is run_region}
    found: dict[Node, list[Node]] = {}
    for node in graph:
        if node.primitive is run_region:
            for program in {n.params["program"] for n in loops.values()}:
                count = len(program.region.inputs)
                if node.params["program"] in program.derived.values() and len(node.args) > count:
                    loop = loops.get(_key(node.args[:count], program))
                    if loop is not None and node.params["program"].halves() is not None:
                        found.setdefault(loop, []).append(node)
    new: dict[Node, Node] = {}
    for loop, (reverse, *others) in found.items():
        halves = reverse.params["program"].halves()
        if others or halves is None:
            continue
        program = reverse.params["program"]
        pair = Pair(make(*halves, limit=graph.limit), len(loop.params["program"].region.outputs), program)
        new[loop] = loop.changed(primitive=run_forward, params={"pair": pair})
        new[reverse] = reverse.changed(primitive=run_backward, params={"pair": pair}, args=(loop, *reverse.args))
    return graph.replaced(new) if new else graph


def reverses(graph: Graph) -> list[Program]:
    """The programs of a graph that may be reverses of loops."""
    pairs = [node.params["pair"].program for node in graph if node.primitive is run_backward]
    return [*pairs, *(node.params["program"] for node in graph if node.primitive is run_region)]


def compile_loops(graph: Graph) -> None:
    """Compile the loops of a graph now; raises `NotCaptured` if one has no machine code."""
    for node in graph:
        if node.primitive is run_region:
            assert node.params["program"].run


def _key(args: Sequence[Value], program: Function) -> Value:
    return program, tuple([id(a) for a in args])
