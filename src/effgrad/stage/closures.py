"""Functions that are staged once and replayed on other values: each value that they close over becomes an input."""

from collections.abc import Callable, Sequence

import numpy as np

from effgrad.arrays.traced import as_pythons
from effgrad.arrays.value import CONSTANT, example
from effgrad.stage.graph import Graph
from effgrad.stage.nodes import GUARD, INPUT, UNRULED, Node
from effgrad.stage.stage import Stage
from effgrad.stage.staged_value import Staged, guarded_value, record
from effgrad.vocabulary import Params, Value


class ClosedStage(Stage):
    """A stage for closures: a traced value from outside the function becomes an input of the graph."""

    def enter(self) -> None:
        super().enter()
        self.lifted: dict[int, tuple[Value, Staged]] = {}

    def outer(self, value: Value) -> Staged:
        if id(value) not in self.lifted:
            inside = self.outer_example(value)
            self.lifted[id(value)] = value, Staged(self, inside, Node(INPUT, (), {}, (), inside))
        return self.lifted[id(value)][1]

    def outer_example(self, value: Value) -> Value:
        """Return the example that stands for a value from outside the function."""
        return example(value)


def body(step: Callable[..., Sequence[Value]], *groups: Sequence[Value]) -> tuple[list[Value], Graph]:
    """Return the values that `step` closes over, and the graph of `step(*groups)`, whose first inputs they are."""
    with ClosedStage() as stage:
        inputs = [[stage.variable(example(leaf)) for leaf in group] for group in groups]
        outputs = [stage.argument(leaf) for leaf in step(*inputs)]
    values = [value for value, _ in stage.lifted.values()]
    lifted = [inside.shadow for _, inside in stage.lifted.values()]
    return values, Graph([*lifted, *stage.inputs], stage.nodes, outputs)


def replay(graph: Graph, leaves: Sequence[Value]) -> list[Value]:
    """Perform the operations of a graph on other values, which derivatives and staged programs may be tracing.

    The guards of the graph become guards of a staged program.
    """
    return graph.evaluated(_perform, leaves)


def _perform(node: Node, args: list[Value], params: Params) -> Value:
    primitive, function = node.primitive, node.primitive.function
    if primitive is GUARD:
        return guarded_value(*args)
    if function in (float, complex):
        return as_pythons(*args)
    if primitive.kind == UNRULED or isinstance(function, np.ufunc) or function in CONSTANT:
        return (primitive if primitive.kind == "elementwise" else function)(*args, **params)
    return record(primitive, *args, **params) if primitive.kind == "constant" else primitive(*args, **params)
