"""Turn triangles of matrices into elementwise choices, which kernels fuse with the operations around them."""

import numpy as np

from effgrad.primitives.elementwise import where
from effgrad.primitives.move import tril, triu
from effgrad.stage.graph import Graph
from effgrad.stage.nodes import Node
from effgrad.stage.passes import simplified
from effgrad.stage.rules import Add
from effgrad.stage.staged_value import constant_primitive

_COMPARISONS = {tril: constant_primitive(np.greater_equal), triu: constant_primitive(np.less_equal)}


def triangles_to_where(graph: Graph) -> Graph:
    """Return the graph with each lower triangle as `where(row >= column, x, 0)`, and each upper one likewise.

    NumPy makes a new mask for each triangle, and selects by it. A triangle of 200 x 200 numbers took it 40 us, and the
    reverse of a decomposition has six.
    """
    if not any(node.primitive in _COMPARISONS for node in graph):
        return graph
    return simplified(graph, _chosen)


def _chosen(node: Node, add: Add) -> Node:
    if node.primitive not in _COMPARISONS or type(node.args[0]) is not Node or node.dtype.kind != "f" or not node.size:
        return node
    height, width = node.shape[-2:]
    rows, columns = np.arange(height)[:, None] + node.params["k"], np.arange(width)[None]
    inside = node.changed(
        primitive=_COMPARISONS[node.primitive], args=(rows, columns), params={}, slots=(), shape=(height, width),
        dtype=np.dtype(bool), kind=np.ndarray,
    )  # fmt: skip
    return node.changed(primitive=where, args=(add(inside), node.args[0], 0.0), params={})
