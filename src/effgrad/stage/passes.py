"""Optimisation: graphs that mean the same and cost less; results stay within rounding of the program as written.

`simplified` runs rules over a graph in one walk; `common` and `dead` look at the graph as a whole.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from effgrad.primitives.primitive import Primitive
from effgrad.primitives.product import einsum
from effgrad.stage.algebra import algebra, concerns
from effgrad.stage.contraction import inner, joined, paired, products
from effgrad.stage.graph import Graph
from effgrad.stage.nodes import GUARD, INPUT, Node, same
from effgrad.stage.rules import Add, Rule, key_of
from effgrad.stage.shapes import SHAPES, shapes
from effgrad.vocabulary import Value

# A folded constant larger than its ingredients is kept as the operation that makes it.
LARGEST_CONSTANT = 4096


def constants(node: Node, add: Add) -> Value:
    """Operations on constants alone are carried out; guards on constants hold already."""
    if any(type(a) is Node for a in node.args):
        return node
    if node.slots or node.size > max(LARGEST_CONSTANT, *(np.size(a) for a in node.args), 0):
        return node
    if node.primitive is GUARD:
        return None if same(node.args[0], node.expected) else node
    with np.errstate(all="ignore"):
        return node.primitive.function(*node.args, **node.params)


def repeated() -> Rule:
    """The rule that an operation that was done before, on the same arguments, is not done again."""
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
    """The graph with every operation done once."""
    return simplified(graph, repeated())


def dead(graph: Graph) -> Graph:
    """Operations on which neither a result nor a guard depends are dropped."""
    needed = {o for o in graph.outputs if type(o) is Node}
    kept = []
    for node in reversed(graph.nodes):
        if node in needed or node.primitive is GUARD:
            for a in node.args:
                if type(a) is Node:
                    needed.add(a)
            needed.update(node.slots)
            kept.append(node)
    return graph.with_nodes(kept[::-1], graph.outputs)


RULES: tuple[Rule, ...] = (constants, algebra, shapes, products)

# Whether a rule may concern a node with a node as an argument, of the rules that do not concern all: as far as its
# primitive tells, and whether it is an array.
_CONCERNS: dict[Rule, Callable[[Node], bool]] = {
    constants: lambda node: False,
    algebra: concerns,
    shapes: lambda node: node.primitive in SHAPES or bool(node.shape) and node.primitive.kind == "elementwise",
    products: lambda node: node.primitive is einsum,
}


class Simplifier:
    """Nodes of a program in the making, each replaced by what the rules make of it."""

    def __init__(self, *rules: Rule) -> None:
        self.rules, self.nodes = rules, list[Node]()
        self.present: set[Node] = set()
        self.concerning: dict[bool, dict[Primitive, list[Rule]]] = {False: {}, True: {}}

    def add(self, node: Any) -> Value:
        """Return the node or constant that stands for a node in the program."""
        present, add = self.present, self.add
        while type(node) is Node and node.primitive is not INPUT and node not in present:
            rules: Sequence[Rule] = self.rules
            for a in node.args:
                if type(a) is Node:
                    rules = self.concerning[node.shape != ()].get(node.primitive) or self.choose(node)
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
    """All that can be done to a node when those before it are done, and those that follow are not known."""
    return Simplifier(constants, algebra, shapes, repeated())


def simplified(graph: Graph, *rules: Rule) -> Graph:
    """The graph with each node, its arguments already new, replaced by what the rules make of it."""
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
    """The passes over products once the whole program is known."""
    if any(node.primitive is einsum for node in graph):
        graph = dead(simplified(paired(inner(graph)), *RULES, repeated()))
    together = joined(graph)
    return graph if together is graph else dead(simplified(together, *RULES, repeated()))


def structure(graph: Graph) -> Value:
    """Return a key that two graphs share if they compute the same."""
    numbers = {node: number for number, node in enumerate([*graph.inputs, *graph.nodes])}

    def named(value: Value) -> Value:
        return (Node, numbers[value]) if type(value) is Node else key_of(value)

    def told(node: Node) -> Value:
        return node.primitive, node.dtype, node.shape, node.kind

    return (
        tuple(map(told, graph.inputs)), tuple(map(named, graph.outputs)),
        tuple((told(n), key_of(n.params), *map(named, (*n.args, *n.slots))) for n in graph.nodes),
    )  # fmt: skip
