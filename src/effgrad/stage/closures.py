"""Functions that are staged once and replayed on other values: each value that they close over becomes an input."""

from collections.abc import Callable, Sequence

import numpy as np

from effgrad.arrays.traced import as_pythons
from effgrad.arrays.value import CONSTANT, example
from effgrad.stage.graph import Graph
from effgrad.stage.nodes import GUARD, INPUT, UNRULED, Node, fill
from effgrad.stage.stage import Stage
from effgrad.stage.staged_value import Staged, guarded_value, record
from effgrad.vocabulary import Value


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
    values: dict[Node, Value] = dict(zip(graph.inputs, leaves, strict=True))
    for node in graph:
        args = [values[a] if type(a) is Node else a for a in node.args]
        params = fill(node.params, [values[s] for s in node.slots])
        function = node.primitive.function
        if node.primitive is GUARD:
            guarded_value(*args)
        elif function in (float, complex):
            values[node] = as_pythons(*args)
        elif node.primitive.kind == UNRULED or isinstance(function, np.ufunc) or function in CONSTANT:
            values[node] = (node.primitive if node.primitive.kind == "elementwise" else function)(*args, **params)
        elif node.primitive.kind == "constant":
            values[node] = record(node.primitive, *args, **params)
        else:
            values[node] = node.primitive(*args, **params)
    return [values[o] if type(o) is Node else o for o in graph.outputs]
