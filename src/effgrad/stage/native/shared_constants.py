"""Move constants of array operations to memory, so that kernels which differ only in constants are compiled once.

Each step of an unrolled loop does the same operations with another number, as in `sin(k * h)`. Simple numbers stay in
the text, because the compiler may simplify operations with them.
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


def constants_to_memory(graph: Graph) -> Graph:
    """Return the graph with the constants of its array operations in arrays of one element."""
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
    """Whether a number is a multiple of a quarter, or not finite."""
    return not math.isfinite(a) or (4 * a) % 1 == 0
