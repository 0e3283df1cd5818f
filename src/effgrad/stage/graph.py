"""The graph of a recorded program. Its nodes are kept in the order in which they ran."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from effgrad.stage.drawing import svg
from effgrad.stage.layouts import Arrangement
from effgrad.stage.nodes import GUARD, UNRULED, GuardFailed, Node, check_shape, fill, is_expected
from effgrad.stage.python import source
from effgrad.vocabulary import Params, Tree, Value


class Graph:
    """A program as data: `inputs` and `nodes` in order, and `outputs`, each a node or a constant."""

    def __init__(self, inputs: list[Node], nodes: list[Node], outputs: list[Value], tree: Tree = None) -> None:
        self.inputs, self.nodes, self.outputs, self.tree = inputs, nodes, outputs, tree
        # Whether a derivative is taken in the staged program.
        self.differentiated = False
        # The memory limit of a run in bytes, if a derivative in the program has one.
        self.limit: int | None = None
        # How the arrays of the result lie in memory. The outputs lie in C order.
        self.arrangement = Arrangement()

    def with_nodes(self, nodes: list[Node], outputs: list[Value]) -> "Graph":
        """Return a graph with the same inputs and settings, but other nodes and outputs."""
        graph = Graph(self.inputs, nodes, outputs, self.tree)
        graph.differentiated, graph.limit, graph.arrangement = self.differentiated, self.limit, self.arrangement
        return graph

    def replaced(self, new: dict[Node, Node]) -> "Graph":
        """Return the same program with some nodes replaced, also in the nodes and outputs that read them."""
        known: dict[Node, Value] = {}
        nodes = []
        for node in self:
            known[node] = new.get(node, node).reading(known)
            nodes.append(known[node])
        return self.rewritten(nodes, known)

    def rewritten(self, nodes: list[Node], new: dict[Node, Value]) -> "Graph":
        """Return the graph of new nodes; `new` maps each old node to the node or constant that replaces it."""
        return self.with_nodes(nodes, [new.get(o, o) if type(o) is Node else o for o in self.outputs])

    @property
    def guards(self) -> list[Node]:
        """The guards, in order."""
        return [node for node in self.nodes if node.primitive is GUARD]

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def __call__(self, *leaves: Value) -> list[Value]:
        """Evaluate the graph node by node on the leaves of the arguments; tests take this as the meaning of a graph.

        Raises `GuardFailed` where the program would take another path.
        """
        positions = itertools.count()

        def run(node: Node, args: list[Value], params: Params) -> Value:
            if node.primitive is GUARD:
                position = next(positions)
                if not is_expected(args[0], node.expected):
                    raise GuardFailed(position, args[0])
            value = node.primitive.function(*args, **params)
            if node.primitive.kind == UNRULED:
                check_shape(node, value)
            return value

        with np.errstate(all="ignore"):
            return self.evaluated(run, leaves)

    def evaluated(self, perform: Callable[[Node, list[Any], Params], Any], leaves: Sequence[Value]) -> list[Any]:
        """Return the outputs, where `perform` does each operation, given its arguments and parameters."""
        values: dict[Node, Value] = dict(zip(self.inputs, leaves, strict=True))
        for node in self.nodes:
            args = [values[a] if type(a) is Node else a for a in node.args]
            values[node] = perform(node, args, fill(node.params, [values[s] for s in node.slots]))
        return [values[o] if type(o) is Node else o for o in self.outputs]

    def to_python(self, name: str = "program") -> str:
        """Return readable NumPy source of the program, which runs on its own."""
        return source(self, name)

    def draw(self) -> str:
        """Return the graph as an SVG drawing."""
        return svg(self)

    _repr_svg_ = draw  # in a notebook

    def __repr__(self) -> str:
        return f"<graph of {len(self.nodes)} operations, {len(self.inputs)} inputs, {len(self.outputs)} outputs>"
