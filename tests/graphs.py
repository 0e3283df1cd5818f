"""Graphs as a compiled program has them."""

from effgrad.stage.graph import Graph
from effgrad.stage.passes import contracted, dead, simplified, simplifier


def optimised(graph: Graph) -> Graph:
    """A graph after the passes of a compiled program, whose nodes are simplified as they are recorded."""
    return contracted(dead(simplified(graph, *simplifier().rules)))
