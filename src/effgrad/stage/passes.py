"""Optimisation: graphs that mean the same and cost less; results stay within rounding of the program as written.

A rule looks at one node whose arguments are done, and gives what stands for it: the node itself, or another, to which
the rules apply again, or a constant. It may `add` other nodes before it. `simplified` runs rules over a graph in one
walk; `common` and `dead` look at the graph as a whole.
"""

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from effgrad.smooth.elementwise import add as plus
from effgrad.smooth.elementwise import multiply, negative, subtract
from effgrad.smooth.linalg import einsum, matmul
from effgrad.smooth.structure import broadcast_to, getitem, reshape, transpose
from effgrad.stage.graph import GUARD, Graph, Node, Slot, fill, same

Add = Callable[[Node], Any]
Rule = Callable[[Node, Add], Any]

# A folded constant larger than its ingredients is kept as the operation that makes it.
LARGEST_CONSTANT = 4096


def constants(node: Node, add: Add) -> Any:
    """Operations on constants alone are carried out; guards on constants hold already."""
    for a in node.args:
        if type(a) is Node:
            return node
    if node.slots or node.size > max(LARGEST_CONSTANT, *(np.size(a) for a in node.args), 0):
        return node
    if node.primitive is GUARD:
        return None if same(node.args[0], node.expected) else node
    with np.errstate(all="ignore"):
        return node.primitive.function(*node.args, **node.params)


def repeated() -> Rule:
    """The rule that an operation that was done before, on the same arguments, is not done again."""
    seen: dict[Any, Node] = {}

    def rule(node: Node, add: Add) -> Any:
        args = tuple([a if type(a) is Node else _key(a) for a in node.args])
        key: Any = (node.primitive, node.kind, node.run, args)
        if node.params or node.primitive is GUARD:
            key = (*key, _key(node.params), node.slots, _key(node.expected))
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
            needed.update(node.inputs)
            kept.append(node)
    return graph.with_nodes(kept[::-1], graph.outputs)


def algebra(node: Node, add: Add) -> Any:
    """Ones, zeros, signs, small powers and decided selections."""
    simpler = _ALGEBRA.get(node.primitive.name)
    return node if simpler is None else _fitting(node, simpler(node, add))


def shapes(node: Node, add: Add) -> Any:
    """Reshapes, transposes, broadcasts and sums that do nothing, or that can be one."""
    simpler = _SHAPES.get(node.primitive.name)
    if simpler is not None:
        return _fitting(node, simpler(node, add))
    if node.primitive.kind == "elementwise":
        for a in node.args:
            if type(a) is Node and a.primitive is broadcast_to:
                return _unbroadcast_arguments(node)
    return node


def products(node: Node, add: Add) -> Any:
    """An einsum of two operands becomes one matrix product, batched over the subscripts that all three share."""
    if node.primitive is not einsum or len(node.args) != 2 or node.dtype.kind != "f":
        return node
    if any(np.result_type(_dtype(a)) != node.dtype for a in node.args):
        return node
    return _as_product(node, add)


RULES: tuple[Rule, ...] = (constants, algebra, shapes, products)


def simplified(graph: Graph, *rules: Rule) -> Graph:
    """The graph with each node, its arguments already new, replaced by what the rules make of it."""
    new: dict[Node, Any] = {node: node for node in graph.inputs}
    nodes: list[Node] = []
    present: set[Node] = set(graph.inputs)

    def add(node: Any) -> Any:
        """What stands for a node, which is now among the nodes of the graph, or a constant."""
        while type(node) is Node and node not in present:
            for rule in rules:
                result = rule(node, add)
                if result is not node:
                    break
            else:
                present.add(node)
                nodes.append(node)
                return node
            node = result
        return node

    for node in graph.nodes:
        result = new[node] = add(_replaced(node, new))
        if type(result) is np.ndarray:
            result.flags.writeable = False
    return graph.with_nodes(nodes, [new[o] if type(o) is Node else o for o in graph.outputs])


PASSES: dict[str, Callable[[Graph], Graph]] = {
    **{rule.__name__: functools.partial(lambda rule, graph: simplified(graph, rule), rule) for rule in RULES},
    "common": common,
    "dead": dead,
}


def optimised(graph: Graph) -> Graph:
    """The graph after all of it."""
    return dead(simplified(graph, *RULES, repeated()))


def _replaced(node: Node, new: dict[Node, Any]) -> Node:
    """A node with new arguments; where a slot's node became a constant, the constant goes into the parameter."""
    args = tuple([new[a] if type(a) is Node else a for a in node.args])
    if not node.slots:
        for a, b in zip(args, node.args, strict=True):
            if a is not b:
                return node.changed(args=args)
        return node
    values = [new[s] for s in node.slots]
    slots = tuple(v for v in values if type(v) is Node)
    if len(slots) < len(values):
        numbered = iter(range(len(slots)))
        params = fill(node.params, [Slot(next(numbered)) if type(v) is Node else v for v in values])
        return node.changed(args=args, slots=slots, params=params)
    return node.changed(args=args, slots=slots)


def _key(value: Any) -> Any:
    """A hashable stand-in for an argument or a parameter."""
    if type(value) is Node or type(value) is float and value == value and value != 0:
        return value
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.tobytes()
    if type(value) in (tuple, list):
        return type(value), *map(_key, value)
    if type(value) is dict:
        return tuple((k, _key(v)) for k, v in value.items())
    told = value is None or value is Ellipsis or isinstance(value, _TOLD_BY_REPR)
    return type(value), repr(value) if told else id(value)


_TOLD_BY_REPR = (bool, int, float, complex, str, bytes, slice, type, np.generic, np.dtype, Slot)


def _shape(value: Any) -> tuple[int, ...]:
    return value.shape if type(value) is Node else np.shape(value)


def _dtype(value: Any) -> Any:
    return value.dtype if type(value) is Node else np.result_type(value)


def _weak(kind: type) -> Any:
    """What matters of a value's class to the type of what is computed from it."""
    return kind if kind in (float, int, complex, bool) else "strong"


def _fitting(node: Node, value: Any) -> Any:
    """`value` in place of `node`, if it is of the same type."""
    if value is None:
        return node
    if type(value) is Node:
        same_type = value.dtype == node.dtype and value.shape == node.shape and _weak(value.kind) == _weak(node.kind)
        return value if same_type else node
    return value if np.result_type(value) == node.dtype and np.shape(value) == node.shape else node


def _is(value: Any, number: float) -> bool:
    """Whether an argument is a constant, all of it one number."""
    if type(value) is Node:
        return False
    if not isinstance(value, np.ndarray):
        return bool(value == number)
    return bool(np.size(value) and np.all(np.asarray(value) == number))


def _add(node: Node, add: Add) -> Any:
    a, b = node.args
    if _is(a, 0) or _is(b, 0):
        return b if _is(a, 0) else a
    for one, other in ((a, b), (b, a)):
        if type(other) is Node and other.primitive is negative:
            return node.changed(primitive=subtract, args=(one, other.args[0]))
    return None


def _subtract(node: Node, add: Add) -> Any:
    a, b = node.args
    if type(b) is Node and b.primitive is negative:
        return node.changed(primitive=plus, args=(a, b.args[0]))
    return a if _is(b, 0) else None


def _multiply(node: Node, add: Add) -> Any:
    a, b = node.args
    for one, other in ((a, b), (b, a)):
        if _is(one, 1):
            return other
        if _is(one, -1) and type(other) is Node and other.shape == node.shape:
            return node.changed(primitive=negative, args=(other,))
    return None


def _flat_product(node: Node, add: Add) -> Any:
    g, partial = node.args
    if type(partial) is Node:
        return partial if _is(g, 1) else None
    return g if partial == 1 else node.changed(primitive=multiply) if partial else 0.0


def _divide(node: Node, add: Add) -> Any:
    return node.args[0] if _is(node.args[1], 1) else None


def _power(node: Node, add: Add) -> Any:
    base, exponent = node.args
    if type(exponent) is Node or np.ndim(exponent) or type(base) is not Node:
        return None
    if exponent == 1:
        return base
    if exponent in (2, 3, 4) and base.dtype == node.dtype and base.dtype.kind == "f":
        square = node.changed(primitive=multiply, args=(base, base))
        if exponent == 2:
            return square
        square = add(square)  # which may have been there before
        return node.changed(primitive=multiply, args=(square, base if exponent == 3 else square))
    return None


def _negative(node: Node, add: Add) -> Any:
    (a,) = node.args
    return a.args[0] if type(a) is Node and a.primitive is negative else None


def _where(node: Node, add: Add) -> Any:
    condition, yes, no = node.args
    if type(condition) is Node or not np.size(condition):
        return None
    return yes if np.all(condition) else no if not np.any(condition) else None


_ALGEBRA: dict[str, Rule] = {
    "add": _add, "subtract": _subtract, "multiply": _multiply, "divide": _divide, "power": _power,
    "negative": _negative, "flat_product": _flat_product, "where": _where,
}  # fmt: skip


def _reshape(node: Node, add: Add) -> Any:
    (a,) = node.args
    if type(a) is not Node:
        return None
    while a.primitive is reshape and type(a.args[0]) is Node:
        a = a.args[0]
    if a.shape == node.shape:
        return a
    done = a is node.args[0] and node.params["shape"] == node.shape
    return None if done else node.changed(args=(a,), params={"shape": node.shape})


def _transpose(node: Node, add: Add) -> Any:
    (a,) = node.args
    if type(a) is not Node:
        return None
    axes = _axes(node)
    if a.primitive is transpose and type(a.args[0]) is Node:
        axes, a = tuple(_axes(a)[i] for i in axes), a.args[0]
    if axes == tuple(range(len(axes))):
        return a
    done = a is node.args[0] and node.params["axes"] == axes
    return None if done else node.changed(args=(a,), params={"axes": axes})


def _axes(node: Node) -> tuple[int, ...]:
    axes = node.params["axes"]
    return tuple(range(len(node.shape)))[::-1] if axes is None else tuple(int(i) % len(node.shape) for i in axes)


def _broadcast_to(node: Node, add: Add) -> Any:
    (a,) = node.args
    if _broadcast(a):
        return node.changed(args=a.args)
    return a


def _sum(node: Node, add: Add) -> Any:
    (a,) = node.args
    shape, axis = _shape(a), node.params["axis"]
    axes = range(len(shape)) if axis is None else [i % len(shape) for i in np.atleast_1d(axis)]
    if type(a) is not Node or any(shape[i] != 1 for i in axes) or node.kind is not np.ndarray:
        return None
    return a if not len(axes) else node.changed(primitive=reshape, params={"shape": node.shape})


def _scatter_add(node: Node, add: Add) -> Any:
    """Pieces at one place are added first; one piece put over the whole array is that piece, or rearranges it."""
    if len(node.args) > 1:
        return _gathered(node, add)
    if len(node.args) != 1 or node.slots or type(node.args[0]) is not Node:
        return None
    (index,) = node.params["indices"]
    parts = index if type(index) is tuple else (index,)
    if all(i is None or i is Ellipsis or i == slice(None) for i in parts if not isinstance(i, np.ndarray | list)):
        if not any(isinstance(i, np.ndarray | list) for i in parts):
            return node.changed(primitive=reshape, params={"shape": node.shape})
    return _rearranged(node, index, add)


def _rearranged(node: Node, index: Any, add: Add) -> Any:
    """One piece whose elements go to all places, one to each: every place reads its element."""
    (piece,) = node.args
    if piece.size != node.size or piece.dtype != node.dtype:
        return None
    places = np.arange(node.size).reshape(node.shape)[index]
    order = np.argsort(places, axis=None)
    if places.shape != piece.shape or (places.ravel()[order] != np.arange(node.size)).any():
        return None
    flat = add(piece.changed(primitive=reshape, args=(piece,), params={"shape": (piece.size,)}, slots=(),
                             shape=(piece.size,), kind=np.ndarray))  # fmt: skip
    return node.changed(primitive=getitem, args=(flat,), params={"index": order.reshape(node.shape)})


def _gathered(node: Node, add: Add) -> Any:
    """The pieces of a sum that go to one place, added up before they go there."""
    indices = node.params["indices"]
    places: dict[Any, Any] = {}
    for piece, index in zip(node.args, indices, strict=True):
        key = _key(index), _shape(piece), _dtype(piece)
        before = places.get(key, (None, index))[0]
        if before is not None:
            shape = _shape(piece)
            piece = add(node.changed(primitive=plus, args=(before, piece), params={}, slots=(), shape=shape))
        places[key] = piece, index
    if len(places) == len(indices) or node.slots:
        return None
    pieces, kept = zip(*places.values(), strict=True)
    return node.changed(args=pieces, params={**node.params, "indices": kept})


_SHAPES: dict[str, Rule] = {
    "reshape": _reshape, "transpose": _transpose, "broadcast_to": _broadcast_to, "sum": _sum,
    "scatter_add": _scatter_add,
}  # fmt: skip


def _broadcast(value: Any) -> bool:
    return type(value) is Node and value.primitive is broadcast_to


def _unbroadcast_arguments(node: Node) -> Node:
    """An elementwise operation broadcasts by itself, as long as the shape of its result stays."""
    args = list(node.args)
    for i, a in enumerate(args):
        if _broadcast(a) and _strong_array(a.args[0]):
            shorter = [*args[:i], a.args[0], *args[i + 1 :]]
            if np.broadcast_shapes(*map(_shape, shorter)) == node.shape:
                args = shorter
    return node if all(map(operator.is_, args, node.args)) else node.changed(args=tuple(args))


def _strong_array(value: Any) -> bool:
    return bool(_weak(value.kind if type(value) is Node else type(value)) == "strong")


def _as_product(node: Node, add: Add) -> Any:
    inputs, output = node.params["subscripts"].split("->")
    left, right = inputs.split(",")
    a, b = node.args
    if len(set(left)) < len(left) or len(set(right)) < len(right):
        return node
    sizes = dict(zip(left + right, _shape(a) + _shape(b), strict=True))
    batch = [s for s in output if s in left and s in right]
    rows, columns = ([s for s in output if s in x and s not in batch] for x in (left, right))
    summed = [s for s in left if s in right and s not in output]
    alone = [[s for s in x if s not in y and s not in output] for x, y in ((left, right), (right, left))]
    if not summed or alone[0] or alone[1]:
        return node

    def make(primitive: Any, args: tuple[Any, ...], size: tuple[int, ...], **params: Any) -> Any:
        return add(node.changed(primitive=primitive, args=args, params=params, shape=size, kind=np.ndarray))

    def arranged(x: Any, names: str, *groups: list[str]) -> Any:
        order = [s for group in groups for s in group]
        axes = tuple(names.index(s) for s in order)
        x = make(transpose, (x,), tuple(sizes[s] for s in order), axes=axes)
        shape = (*(sizes[s] for s in batch), *(int(np.prod([sizes[s] for s in g])) for g in groups[1:]))
        return make(reshape, (x,), shape, shape=shape)

    x, y = arranged(a, left, batch, rows, summed), arranged(b, right, batch, summed, columns)
    z = make(matmul, (x, y), x.shape[:-1] + y.shape[-1:])
    order = [*batch, *rows, *columns]
    shape = tuple(sizes[s] for s in order)
    z = make(reshape, (z,), shape, shape=shape)
    return node.changed(primitive=transpose, args=(z,), params={"axes": tuple(order.index(s) for s in output)})
