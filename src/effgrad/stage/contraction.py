"""Passes that make einsums and matrix products cheaper.

An einsum of two operands becomes a matrix product, which BLAS computes. If an axis of one operand is only summed, it is
summed before the product. An einsum of several operands becomes a chain of products of two, in the order that costs
least. Products that several einsums have in common, such as the tangents of one einsum, which differ in one operand
each, are computed once; in the choice of the order, each einsum counts its part of their cost. Narrow products that
share a factor become one wide product, which reads the factor once.
"""

import collections
import functools
import itertools
import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from effgrad.arrays.layout import dtype_of, shape_of
from effgrad.primitives.elementwise import multiply, negative
from effgrad.primitives.indices import reduced_axes
from effgrad.primitives.product import einsum, matmul
from effgrad.primitives.reduction import sum_
from effgrad.stage.graph import Graph
from effgrad.stage.moves import affine, broadcast, concatenated, is_broadcast, keeps_order, part, reshaped, transposed
from effgrad.stage.nodes import GUARD, Node, uses_of
from effgrad.stage.rules import Add
from effgrad.vocabulary import Option, Value

# Longer einsums are left to NumPy: the orders to try grow with the factorial.
MOST_OPERANDS = 5
# Products with more columns gain nothing by being joined. Products whose right factor has fewer elements are too small
# for BLAS.
WIDEST, SMALLEST = 64, 32


def products(node: Node, add: Add) -> Value:
    """Turn an einsum of two operands into a matrix product, batched over the subscripts in both and in the output."""
    if node.primitive is not einsum or len(node.args) != 2 or node.dtype.kind != "f":
        return node
    if any(map(is_broadcast, node.args)):
        narrow = _unbroadcast(node, add)
        if narrow is not node:
            return narrow
    (left, right), output = _terms(node)
    if any(dtype_of(a) != node.dtype for a in node.args) or any(len(set(x)) < len(x) for x in (left, right, output)):
        return node
    return _as_product(node, left, right, output, add)


def _unbroadcast(node: Node, add: Add) -> Value:
    """Replace broadcast operands of an einsum by what they repeat; broadcast the result along axes that none has."""
    terms, output = _terms(node)
    args = list(node.args)
    for i, (a, term) in enumerate(zip(node.args, terms, strict=True)):
        if not is_broadcast(a) or len(set(term)) < len(term):
            continue
        source = a.args[0]
        lengths = (1,) * (len(term) - len(shape_of(source))) + shape_of(source)
        others = "".join([output, *terms[:i], *terms[i + 1 :]])
        kept = [s for s, n in zip(term, lengths, strict=True) if n > 1 or s not in others]
        shape = tuple(n for s, n in zip(term, lengths, strict=True) if s in kept)
        if shape != tuple(n for s, n in zip(term, a.shape, strict=True) if s in kept) or len(kept) == len(term):
            continue  # an axis that only this operand has is summed: each repetition counts
        terms[i] = "".join(kept)
        args[i] = add(reshaped(a, source, shape))
    if all(map(operator.is_, args, node.args)) or len(set(output)) < len(output):
        return node
    return _of_shorter(node, terms, output, args, add)


def _of_shorter(node: Node, terms: list[str], output: str, args: list[Value], add: Add) -> Value:
    """Return an einsum whose operands may lack axes of the output; it is broadcast along axes that all of them lack."""
    left = "".join(s for s in output if any(s in term for term in terms))
    if not left:
        return node
    sizes = dict(zip(output, node.shape, strict=True))
    subscripts = f"{','.join(terms)}->{left}"
    product = node.changed(
        args=tuple(args), params={"subscripts": subscripts}, shape=tuple(sizes[s] for s in left), kind=np.ndarray
    )
    if left == output:
        return product
    shape = tuple(sizes[s] if s in left else 1 for s in output)
    return broadcast(node, add(reshaped(node, add(product), shape)), node.shape)


def _as_product(node: Node, left: str, right: str, output: str, add: Add) -> Value:
    a, b = node.args
    sizes = dict(zip(left + right, shape_of(a) + shape_of(b), strict=True))

    def shape(letters: Iterable[str]) -> tuple[int, ...]:
        return tuple(sizes[s] for s in letters)

    def make(primitive: Any, args: tuple[Value, ...], size: tuple[int, ...], **params: Option) -> Value:
        return add(node.changed(primitive=primitive, args=args, params=params, shape=size, kind=np.ndarray))

    def ordered(x: Value, letters: str, order: Sequence[str]) -> Value:
        return add(transposed(node, x, tuple(map(letters.index, order))))

    def summed_alone(x: Value, letters: str, other: str) -> tuple[Value, str]:
        """Sum an operand over the axes that neither the other nor the output has; return also the subscripts left."""
        kept = "".join(s for s in letters if s in other + output)
        axes = tuple(i for i, s in enumerate(letters) if s not in kept)
        return (make(sum_, (x,), shape(kept), axis=axes) if axes else x), kept

    def spread(x: Value, letters: str) -> Value:
        """Reorder the axes as in the output, with axes of length one for those that are missing."""
        axes = ordered(x, letters, sorted(letters, key=output.index))
        return add(reshaped(node, axes, tuple(sizes[s] if s in letters else 1 for s in output)))

    summed = [s for s in left if s in right and s not in output]
    (a, left), (b, right) = summed_alone(a, left, right), summed_alone(b, right, left)
    if not summed:
        return node.changed(primitive=multiply, args=(spread(a, left), spread(b, right)), params={})
    batch = [s for s in output if s in left and s in right]
    rows, columns = ([s for s in output if s in x and s not in batch] for x in (left, right))
    height, depth, width = (math.prod(shape(group)) for group in (rows, summed, columns))
    x = add(reshaped(node, ordered(a, left, [*batch, *rows, *summed]), (*shape(batch), height, depth)))
    y = add(reshaped(node, ordered(b, right, [*batch, *summed, *columns]), (*shape(batch), depth, width)))
    z = make(matmul, (x, y), (*shape(batch), height, width))
    order = [*batch, *rows, *columns]
    if not order:  # the result is a number, not an array without axes
        return reshaped(node, z, ())
    return transposed(node, add(reshaped(node, z, shape(order))), tuple(map(order.index, output)))


def inner(graph: Graph) -> Graph:
    """Return the graph with each sum of an einsum that nothing else reads as one einsum, times scalar factors."""
    if not any(node.primitive is einsum for node in graph):
        return graph
    uses = uses_of(graph)
    nodes: list[Node] = []
    new: dict[Node, Node] = {}
    for node in graph:
        found = _summed(node, uses) if node.primitive is sum_ else None
        new[node] = node.reading(new) if found is None else _contracted(node, *found, new, nodes)
        nodes.append(new[node])
    return graph.rewritten(nodes, new)


def _summed(node: Node, uses: dict[Node, int]) -> tuple[Node, list[Any]] | None:
    """Return the einsum whose elements a sum adds up, and the scalars that multiply them in between; or None."""
    factors: list[Value] = []
    (x,) = node.args
    while type(x) is Node and uses[x] == 1 and x.dtype == node.dtype and x.dtype.kind == "f":
        if x.primitive is einsum:
            return (x, factors) if len(x.args) > 1 else None
        if x.primitive is negative:
            factors.append(-1.0)
        elif x.primitive is multiply and () in map(shape_of, x.args):
            number = shape_of(x.args[1]) == ()
            factors.append(x.args[number])
            x = x.args[not number]
            continue
        elif not keeps_order(x) or shape_of(x.args[0]) != x.shape:
            return None
        x = x.args[0]
    return None


def _contracted(node: Node, product: Node, factors: list[Value], new: dict[Node, Node], nodes: list[Node]) -> Node:
    """Return the sum of an einsum as an einsum with fewer output axes, times the factors."""
    terms, output = _terms(product)
    axes = reduced_axes(node.params["axis"], len(output))
    kept = "".join(s for i, s in enumerate(output) if i not in axes)
    value = product.reading(new).changed(params={"subscripts": f"{','.join(terms)}->{kept}"}, shape=node.shape)
    value.kind = node.kind
    for factor in factors:
        nodes.append(value)
        factor = new.get(factor, factor) if type(factor) is Node else factor
        value = value.changed(primitive=multiply, args=(value, factor), params={})
    return value


def paired(graph: Graph) -> Graph:
    """Return the graph with every einsum of three operands or more as einsums of two."""
    long = [node for node in graph if _long(node)]
    if not long:
        return graph
    shared = collections.Counter(
        _pair(node.args, _terms(node)[0], i, j) for node in long for i, j in _pairs(len(node.args))
    )
    nodes: list[Node] = []
    new: dict[Node, Node] = {}
    for node in graph:
        changed = node.reading(new)
        new[node] = _in_pairs(changed, node.args, shared, nodes) if _long(node) else changed
        nodes.append(new[node])
    return graph.rewritten(nodes, new)


def _long(node: Node) -> bool:
    if node.primitive is not einsum or not 2 < len(node.args) <= MOST_OPERANDS or node.dtype.kind != "f":
        return False
    return all(len(set(term)) == len(term) for term in _terms(node)[0])


def _terms(node: Node) -> tuple[list[str], str]:
    inputs, output = node.params["subscripts"].split("->")
    return inputs.split(","), output


def _pairs(count: int) -> list[tuple[int, int]]:
    return list(itertools.combinations(range(count), 2))


def _pair(args: tuple[Value, ...], terms: list[str], i: int, j: int) -> Value:
    """Return a key that two products of two operands share exactly if they are the same."""
    return id(args[i]), terms[i], id(args[j]), terms[j]


def _in_pairs(node: Node, originals: tuple[Value, ...], shared: Value, nodes: list[Node]) -> Node:
    """Append the einsums of two operands that compute a long einsum to `nodes`, all but the last, and return that."""
    terms, output = _terms(node)
    sizes = {s: n for term, a in zip(terms, node.args, strict=True) for s, n in zip(term, shape_of(a), strict=True)}

    def cost(letters: str) -> int:
        return math.prod(sizes[s] for s in set(letters))

    @functools.cache
    def best(terms: tuple[str, ...], first: bool = False) -> tuple[float, tuple[int, int]]:
        """Return the least cost of contracting these operands, and the pair to contract first."""
        if len(terms) == 2:
            return cost("".join(terms)), (0, 1)
        costs = []
        for i, j in _pairs(len(terms)):
            uses = shared[_pair(originals, list(terms), i, j)] if first else 1
            costs.append((cost(terms[i] + terms[j]) / uses + best(_after(terms, output, i, j))[0], (i, j)))
        return min(costs)

    args = list(node.args)
    first = True
    while len(args) > 2:
        _, (i, j) = best(tuple(terms), first)
        first = False
        rest = _after(tuple(terms), output, i, j)
        product = node.changed(
            args=(args[i], args[j]), params={"subscripts": f"{terms[i]},{terms[j]}->{rest[0]}"}, kind=np.ndarray,
            shape=tuple(sizes[s] for s in rest[0]),
        )  # fmt: skip
        nodes.append(product)
        args, terms = [product, *(a for k, a in enumerate(args) if k not in (i, j))], list(rest)
    return node.changed(args=tuple(args), params={"subscripts": f"{','.join(terms)}->{output}"})


def _after(terms: tuple[str, ...], output: str, i: int, j: int) -> tuple[str, ...]:
    """Return the subscripts of the operands after two are multiplied; those of the product come first."""
    others = [term for k, term in enumerate(terms) if k not in (i, j)]
    kept = dict.fromkeys(s for s in terms[i] + terms[j] if s in output or any(s in term for term in others))
    return "".join(kept), *others


def joined(graph: Graph) -> Graph:
    """Return the graph with narrow products that share their left factor as one product with all the right factors.

    The nodes are sorted by depth, so that the operations on the parts of the product stand side by side, and one loop
    can compute them for all parts.
    """
    factors = collections.Counter(node.args[0] for node in graph if _narrow(node))
    if max(factors.values(), default=0) < 2:
        return graph
    depth = _depths(graph)
    groups: dict[Value, list[Node]] = {}
    for node in graph:
        if _narrow(node):
            groups.setdefault((node.args[0], depth[node]), []).append(node)
    group = {member: members for members in groups.values() if len(members) > 1 for member in members}
    if not group:
        return graph
    nodes: list[Node] = []
    new: dict[Node, Node] = {}
    for node in sorted(graph, key=depth.__getitem__):
        if node not in group:
            new[node] = node.reading(new)
            nodes.append(new[node])
        elif node is group[node][-1]:
            _product(group[node], new, nodes)
    return graph.rewritten(nodes, new)


def _depths(graph: Graph) -> dict[Node, int]:
    """Return the depth of each node: the largest number of operations that end a loop on a path to it.

    A node is at least as deep as the last guard before it, so that it stays behind the guard when nodes are sorted by
    depth. Nodes of the same depth keep their order, in which each follows those that it reads.
    """
    depth: dict[Node, int] = {}
    least = 0
    for node in graph:
        before = max([depth[x] + _ends_loop(x) for x in node.inputs if x in depth], default=0)
        depth[node] = max(least, before)
        if node.primitive is GUARD:
            least = depth[node]
    return depth


def _ends_loop(node: Node) -> bool:
    """Whether operations that read the result of this one cannot be in the loop that computes it."""
    if node.primitive.kind == "elementwise" or is_broadcast(node):
        return False
    return affine(node) is None or node.size < node.args[0].size


def _narrow(node: Node) -> bool:
    if node.primitive is not matmul or not all(type(a) is Node for a in node.args):
        return False
    (left, right), dtype = node.args, node.dtype
    if len(left.shape) != 2 or len(right.shape) != 2 or dtype.kind != "f" or {left.dtype, right.dtype} != {dtype}:
        return False
    rows, (summed, columns) = left.shape[0], right.shape
    return bool(columns <= WIDEST <= rows and summed * columns >= SMALLEST)


def _product(members: list[Node], new: dict[Node, Node], nodes: list[Node]) -> None:
    """Compute all members by one product, transposed, so that the columns of each member are contiguous rows of it."""

    def add(node: Node) -> Node:
        nodes.append(node)
        return node

    def turned(node: Value) -> Node:
        return add(transposed(members[0], node, (1, 0)))

    left, rights = members[0].args[0], [member.args[1] for member in members]
    columns = [turned(new.get(right, right)) for right in rights]
    factor = add(concatenated(members[0], columns, 0))
    args = factor, turned(new.get(left, left))
    product = add(members[0].changed(args=args, shape=(factor.shape[0], left.shape[0]), kind=np.ndarray))
    start = 0
    for member in members:
        end = start + member.shape[1]
        rows = add(part(product, product, (slice(start, end),), (end - start, left.shape[0])))
        new[member] = turned(rows)
        start = end
