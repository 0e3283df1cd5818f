"""Constants of array operations as memory that kernels read: kernels that differ in them alone are compiled once.

A loop that is unrolled computes with another number in each step, as `sin(k * h)` does, and with the same operations.
Simple numbers, with which a compiler may do something else, stay in the text.
"""

import math

import numpy as np

from effgrad.arrays.value import UFUNCS
from effgrad.stage.graph import Graph
from effgrad.stage.nodes import Node

_ARITHMETIC = {UFUNCS[f] for f in (np.add, np.subtract, np.multiply, np.divide)}
_FLOAT = np.dtype(float)
# In programs with fewer constants than this there is little to share.
FEWEST = 32


def parametrised(graph: Graph) -> Graph:
    """The graph with the numbers that its array operations compute with in arrays of one element."""
    found = [n for n in graph if _has_constant(n)]
    if len(found) < FEWEST:
        return graph
    memory: dict[float, np.ndarray] = {}

    def moved(a: object) -> object:
        if type(a) is not float or _is_simple(a):
            return a
        if a not in memory:
            memory[a] = np.array([a])
        return memory[a]

    return graph.replaced({node: node.changed(args=tuple(map(moved, node.args))) for node in found})


def _has_constant(node: Node) -> bool:
    if not node.shape or node.dtype is not _FLOAT or node.primitive not in _ARITHMETIC:
        return False
    return any(type(a) is float and not _is_simple(a) for a in node.args)


def _is_simple(a: float) -> bool:
    """Whether a number is whole, a half or a quarter, or no number."""
    return not math.isfinite(a) or (4 * a) % 1 == 0
