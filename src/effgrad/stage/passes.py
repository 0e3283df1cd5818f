"""Optimisation passes: each returns a graph that costs less and computes the same, up to rounding.

`simplified` runs rules over a graph in one walk; `common` and `dead` look at the graph as a whole.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from effgrad.primitives.primitive import Primitive
from effgrad.primitives.product import einsum
from effgrad.stage.algebra import algebra, has_rule
from effgrad.stage.contraction import inner, joined, paired, products
from effgrad.stage.graph import Graph
from effgrad.stage.nodes import GUARD, INPUT, UNRULED, Node, is_expected
from effgrad.stage.rules import Add, Rule, key_of
from effgrad.stage.shapes import SHAPES, shapes
from effgrad.vocabulary import Value

# An operation on constants stays an operation if its result has more elements than this, and than each constant.
LARGEST_CONSTANT = 4096


def constants(node: Node, add: Add) -> Value:
    """Carry out an operation on constants alone, and drop a guard on a constant, which holds already."""
    if any(type(a) is Node for a in node.args):
        return node
    if node.slots or node.size > max(LARGEST_CONSTANT, *(np.size(a) for a in node.args), 0):
        return node
    if node.primitive is GUARD:
        return None if is_expected(node.args[0], node.expected) else node
    with np.errstate(all="ignore"):
        return node.primitive.function(*node.args, **node.params)


def repeated() -> Rule:
    """Return the rule that replaces an operation by an earlier one on the same arguments; the rule remembers them."""
    seen: dict[Value, Node] = {}

    def rule(node: Node, add: Add) -> Value:
        args = node.args
        for a in args:
            if type(a) is not Node:
                args = tuple([a if type(a) is Node else key_of(a) for a in args])
                break
        key: Value = (node.primitive, node.kind, node.run, args)
        if node.params or node.primitive is GUARD:
            key = (*key, key_of(node.params), node.slots, key_of(node.expected))
        return seen.setdefault(key, node)

    return rule


def common(graph: Graph) -> Graph:
    """Return the graph with every repeated operation done only once."""
    return simplified(graph, repeated())


def dead(graph: Graph) -> Graph:
    """Return the graph without the operations on which neither an output nor a guard depends.

    Operations without a rule stay: Python may have asked for the shape of the result, which is checked when they run.
    """
    needed = {o for o in graph.outputs if type(o) is Node}
    kept = []
    for node in reversed(graph.nodes):
        if node in needed or node.primitive is GUARD or node.primitive.kind == UNRULED:
            for a in node.args:
                if type(a) is Node:
                    needed.add(a)
            needed.update(node.slots)
            kept.append(node)
    return graph.with_nodes(kept[::-1], graph.outputs)


RULES: tuple[Rule, ...] = (constants, algebra, shapes, products)

# For the rules that do not apply to every node: whether a rule may apply to a node that has a node as an argument. The
# answer depends only on the node's primitive and on whether it is an array, so that it can be memoised by them.
_CONCERNS: dict[Rule, Callable[[Node], bool]] = {
    constants: lambda node: False,
    algebra: has_rule,
    shapes: lambda node: node.primitive in SHAPES or bool(node.shape) and node.primitive.kind == "elementwise",
    products: lambda node: node.primitive is einsum,
}


class Simplifier:
    """Collects the nodes of a program that is being built, each simplified by the rules."""

    def __init__(self, *rules: Rule) -> None:
        self.rules, self.nodes = rules, list[Node]()
        self.present: set[Node] = set()
        self.concerning: dict[bool, dict[Primitive, list[Rule]]] = {False: {}, True: {}}

    def add(self, node: Any) -> Value:
        """Add a node, simplified, to the program, and return the node or constant that stands for it."""
        present, add = self.present, self.add
        while type(node) is Node and node.primitive is not INPUT and node not in present:
            rules: Sequence[Rule] = self.rules
            for a in node.args:
                if type(a) is Node:
                    chosen = self.concerning[node.shape != ()].get(node.primitive)
                    rules = self.choose(node) if chosen is None else chosen
                    break
            for rule in rules:
                result = rule(node, add)
                if result is not node:
                    node = result
                    break
            else:
                present.add(node)
                self.nodes.append(node)
                return node
        if type(node) is np.ndarray:
            node.flags.writeable = False
        return node

    def choose(self, node: Node) -> list[Rule]:
        chosen = [rule for rule in self.rules if rule not in _CONCERNS or _CONCERNS[rule](node)]
        self.concerning[node.shape != ()][node.primitive] = chosen
        return chosen


def simplifier() -> Simplifier:
    """Return a simplifier of nodes as they are recorded, with the rules that need only the nodes before."""
    return Simplifier(constants, algebra, shapes, repeated())


def simplified(graph: Graph, *rules: Rule) -> Graph:
    """Return the graph with each node simplified by the rules, after its arguments."""
    new: dict[Node, Value] = {node: node for node in graph.inputs}
    made = Simplifier(*rules)
    for node in graph.nodes:
        new[node] = made.add(node.reading(new))
    return graph.rewritten(made.nodes, new)


PASSES: dict[str, Callable[[Graph], Graph]] = {
    **{rule.__name__: functools.partial(lambda rule, graph: simplified(graph, rule), rule) for rule in RULES},
    "inner": inner,
    "paired": paired,
    "joined": joined,
    "common": common,
    "dead": dead,
}


def contracted(graph: Graph) -> Graph:
    """Return the graph after the passes over products, which need the whole program."""
    if any(node.primitive is einsum for node in graph):
        graph = dead(simplified(paired(inner(graph)), *RULES, repeated()))
    together = joined(graph)
    return graph if together is graph else dead(simplified(together, *RULES, repeated()))


def structure(graph: Graph) -> Value:
    """Return a key that is equal for two graphs of the same operations on the same arguments."""
    numbers = {node: number for number, node in enumerate([*graph.inputs, *graph.nodes])}

    def named(value: Value) -> Value:
        return (Node, numbers[value]) if type(value) is Node else key_of(value)

    def described(node: Node) -> Value:
        return node.primitive, node.dtype, node.shape, node.kind

    return (
        tuple(map(described, graph.inputs)), tuple(map(named, graph.outputs)),
        tuple((described(n), key_of(n.params), *map(named, (*n.args, *n.slots))) for n in graph.nodes),
    )  # fmt: skip
