"""Optimisation: graphs that mean the same and cost less; results stay within rounding of the program as written.

A rule looks at one node whose arguments are done, and gives what stands for it: the node itself, or another, to which
the rules apply again, or a constant. It may `add` other nodes before it. `simplified` runs rules over a graph in one
walk; `common` and `dead` look at the graph as a whole.
"""

import functools
import hashlib
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from effgrad.smooth.elementwise import add as plus
from effgrad.smooth.elementwise import multiply, negative, subtract, where
from effgrad.smooth.linalg import einsum, matmul
from effgrad.smooth.primitive import Primitive
from effgrad.smooth.reductions import sum_
from effgrad.smooth.structure import broadcast_to, getitem, reshape, transpose
from effgrad.stage.contraction import inner, joined, paired
from effgrad.stage.graph import GUARD, INPUT, Graph, Node, Slot, fill, same, shape_of

Add = Callable[[Node], Any]
Rule = Callable[[Node, Add], Any]

# A folded constant larger than its ingredients is kept as the operation that makes it.
LARGEST_CONSTANT = 4096
# In bytes: arrays that are compared by a digest.
LARGE = 1 << 16


def constants(node: Node, add: Add) -> Any:
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
    seen: dict[Any, Node] = {}

    def rule(node: Node, add: Add) -> Any:
        args = node.args
        for a in args:
            if type(a) is not Node:
                args = tuple([a if type(a) is Node else _key(a) for a in args])
                break
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
            for a in node.args:
                if type(a) is Node:
                    needed.add(a)
            needed.update(node.slots)
            kept.append(node)
    return graph.with_nodes(kept[::-1], graph.outputs)


def algebra(node: Node, add: Add) -> Any:
    """Ones, zeros, signs, small powers and decided selections."""
    simpler = _ALGEBRA.get(node.primitive.name)
    value = None if simpler is None else simpler(node, add)
    return node if value is None else _fitting(node, value)


def shapes(node: Node, add: Add) -> Any:
    """Reshapes, transposes, broadcasts and sums that do nothing, or that can be one."""
    simpler = _SHAPES.get(node.primitive.name)
    if simpler is not None:
        return _fitting(node, simpler(node, add))
    if node.shape and node.primitive.kind == "elementwise":
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

# Whether a rule may concern a node with a node as an argument, of the rules that do not concern all: as far as its
# primitive tells, and whether it is an array.
_CONCERNS: dict[Rule, Callable[[Node], bool]] = {
    constants: lambda node: False,
    algebra: lambda node: node.primitive.name in _ALGEBRA,
    shapes: lambda node: node.primitive.name in _SHAPES or bool(node.shape) and node.primitive.kind == "elementwise",
    products: lambda node: node.primitive is einsum,
}


class Simplifier:
    """Nodes of a program in the making, each replaced by what the rules make of it."""

    def __init__(self, *rules: Rule) -> None:
        self.rules, self.nodes = rules, list[Node]()
        self.present: set[Node] = set()
        self.concerning: dict[bool, dict[Primitive, list[Rule]]] = {False: {}, True: {}}

    def add(self, node: Any) -> Any:
        """What stands for a node, which is now among the nodes of the program, or a constant."""
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
    new: dict[Node, Any] = {node: node for node in graph.inputs}
    made = Simplifier(*rules)
    for node in graph.nodes:
        new[node] = made.add(_replaced(node, new))
    return graph.with_nodes(made.nodes, [new[o] if type(o) is Node else o for o in graph.outputs])


PASSES: dict[str, Callable[[Graph], Graph]] = {
    **{rule.__name__: functools.partial(lambda rule, graph: simplified(graph, rule), rule) for rule in RULES},
    "inner": inner,
    "paired": paired,
    "joined": joined,
    "common": common,
    "dead": dead,
}


def optimised(graph: Graph) -> Graph:
    """The graph after all of it."""
    return contracted(dead(simplified(graph, *simplifier().rules)))


def contracted(graph: Graph) -> Graph:
    """What is done to products when the whole program is known."""
    if any(node.primitive is einsum for node in graph):
        graph = dead(simplified(paired(inner(graph)), *RULES, repeated()))
    together = joined(graph)
    return graph if together is graph else dead(simplified(together, *RULES, repeated()))


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
    kind = type(value)
    if kind is Node or kind is str or kind is float and value == value and value != 0:
        return value
    if kind is int:
        return int, value
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, _contents(value)
    if type(value) in (tuple, list):
        return type(value), *map(_key, value)
    if type(value) is dict:
        return tuple((k, _key(v)) for k, v in value.items())
    told = value is None or value is Ellipsis or isinstance(value, _TOLD_BY_REPR)
    return type(value), repr(value) if told else id(value)


def _contents(value: np.ndarray) -> bytes:
    """The bytes of an array, or of a large one a digest of them."""
    if value.nbytes < LARGE or value.dtype.kind not in "fciub":
        return value.tobytes()
    return hashlib.sha256(np.ascontiguousarray(value).data).digest()


_TOLD_BY_REPR = (bool, int, float, complex, str, bytes, slice, type, np.generic, np.dtype, Slot)


def structure(graph: Graph) -> Any:
    """What two graphs have in common that compute the same."""
    numbers = {node: number for number, node in enumerate([*graph.inputs, *graph.nodes])}

    def named(value: Any) -> Any:
        return (Node, numbers[value]) if type(value) is Node else _key(value)

    def told(node: Node) -> Any:
        return node.primitive, node.dtype, node.shape, node.kind

    return (
        tuple(map(told, graph.inputs)), tuple(map(named, graph.outputs)),
        tuple((told(n), _key(n.params), *map(named, (*n.args, *n.slots))) for n in graph.nodes),
    )  # fmt: skip


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
    # No memory as large as the array is needed to say so.
    return bool(value.size and value.flat[0] == number and np.min(value) == number == np.max(value))


def _add(node: Node, add: Add) -> Any:
    for one, other in (node.args, node.args[::-1]):
        if type(other) is not Node:
            if _is(other, 0):
                return one
        elif other.primitive is negative:
            return node.changed(primitive=subtract, args=(one, other.args[0]))
    return _doubled(node, add) if node.args[0] is node.args[1] else None


def _doubled(node: Node, add: Add) -> Any:
    """Twice `w * c * x`, as the derivative of `c * x * x` adds it, where c is a number: `w * (2 * c) * x`."""
    (product, _) = node.args
    if product.primitive.name not in ("multiply", "flat_product"):
        return None
    scaled, x = product.args
    if type(scaled) is not Node or scaled.primitive is not multiply:
        return None
    w, c = scaled.args
    if type(c) is not float or math.isinf(2 * c):
        return None
    return product.changed(args=(add(scaled.changed(args=(w, 2 * c))), x))


def _subtract(node: Node, add: Add) -> Any:
    a, b = node.args
    if type(b) is Node and b.primitive is negative:
        return node.changed(primitive=plus, args=(a, b.args[0]))
    return a if _is(b, 0) else None


def _multiply(node: Node, add: Add) -> Any:
    for one, other in (node.args, node.args[::-1]):
        if type(one) is Node:
            continue
        if _is(one, 1):
            return other
        if _is(one, -1) and type(other) is Node and other.shape == node.shape:
            return node.changed(primitive=negative, args=(other,))
        if type(one) is float and other.primitive is negative:
            return node.changed(args=(other.args[0], -one))
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
    if type(condition) is Node:
        return _chosen_again(node, add)
    if not np.size(condition):
        return None
    return yes if np.all(condition) else no if not np.any(condition) else None


def _chosen_again(node: Node, add: Add) -> Any:
    """What is computed from `where(condition, x, ...)`, and chosen by the same condition, is computed from x."""
    condition, yes, no = node.args
    if type(yes) is not Node or yes.primitive.kind != "elementwise":
        return None

    def chosen(arg: Any) -> Any:
        if type(arg) is not Node or arg.primitive is not where or arg.args[0] is not condition:
            return arg
        x = arg.args[1]
        return x if type(x) is Node and (x.shape, x.dtype, _weak(x.kind)) == (arg.shape, arg.dtype, "strong") else arg

    if yes.primitive is where:
        return None if chosen(yes) is yes else node.changed(args=(condition, chosen(yes), no))
    args = tuple(map(chosen, yes.args))
    if all(map(operator.is_, args, yes.args)):
        return None
    return node.changed(args=(condition, add(yes.changed(args=args)), no))


def _both(node: Node, add: Add) -> Any:
    return _decided(node, neutral=True)


def _either(node: Node, add: Add) -> Any:
    return _decided(node, neutral=False)


def _decided(node: Node, neutral: bool) -> Any:
    """Of two truth values the one that decides, if it is constant or they are one."""
    a, b = node.args
    for one, other in ((a, b), (b, a)):
        if node.dtype.kind == "b" and (one is other or _is(one, neutral)):
            return other
        if node.dtype.kind == "b" and _is(one, not neutral):
            return one
    return None


def _unequal(node: Node, add: Add) -> Any:
    """A truth value that is not zero is itself."""
    a, b = node.args
    return a if type(a) is Node and a.dtype.kind == "b" and _is(b, 0) else None


_ALGEBRA: dict[str, Rule] = {
    "add": _add, "subtract": _subtract, "multiply": _multiply, "divide": _divide, "power": _power,
    "negative": _negative, "flat_product": _flat_product, "where": _where, "ne": _unequal,
    "and_": _both, "bitwise_and": _both, "logical_and": _both,
    "or_": _either, "bitwise_or": _either, "logical_or": _either,
}  # fmt: skip


def _reshape(node: Node, add: Add) -> Any:
    (a,) = node.args
    if type(a) is not Node:
        return None
    while a.primitive is reshape and type(a.args[0]) is Node:
        a = a.args[0]
    if a.shape == node.shape:
        return a
    shape = node.params["shape"]
    done = a is node.args[0] and type(shape) is tuple and shape == node.shape
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
    shape, axis = shape_of(a), node.params["axis"]
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
        key = _key(index), shape_of(piece), _dtype(piece)
        before = places.get(key, (None, index))[0]
        if before is not None:
            shape = shape_of(piece)
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
            if np.broadcast_shapes(*map(shape_of, shorter)) == node.shape:
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
    sizes = dict(zip(left + right, shape_of(a) + shape_of(b), strict=True))
    batch = [s for s in output if s in left and s in right]
    rows, columns = ([s for s in output if s in x and s not in batch] for x in (left, right))
    summed = [s for s in left if s in right and s not in output]
    alone = [[s for s in x if s not in y and s not in output] for x, y in ((left, right), (right, left))]
    if len(set(output)) < len(output):
        return node

    def make(primitive: Any, args: tuple[Any, ...], size: tuple[int, ...], **params: Any) -> Any:
        return add(node.changed(primitive=primitive, args=args, params=params, shape=size, kind=np.ndarray))

    def arranged(x: Any, names: str, *groups: list[str]) -> Any:
        order = [s for group in groups for s in group]
        axes = tuple(names.index(s) for s in order)
        x = make(transpose, (x,), tuple(sizes[s] for s in order), axes=axes)
        shape = (*(sizes[s] for s in batch), *(int(np.prod([sizes[s] for s in g])) for g in groups[1:]))
        return make(reshape, (x,), shape, shape=shape)

    def summed_alone(x: Any, names: str, alone: list[str]) -> tuple[Any, str]:
        kept = "".join(s for s in names if s not in alone)
        axes = tuple(names.index(s) for s in alone)
        return make(sum_, (x,), tuple(sizes[s] for s in kept), axis=axes) if alone else x, kept

    (a, left), (b, right) = summed_alone(a, left, alone[0]), summed_alone(b, right, alone[1])

    def spread(x: Any, names: str) -> Any:
        order = sorted(names, key=output.index)
        x = make(transpose, (x,), tuple(sizes[s] for s in order), axes=tuple(names.index(s) for s in order))
        shape = tuple(sizes[s] if s in names else 1 for s in output)
        return make(reshape, (x,), shape, shape=shape)

    if not summed:
        return node.changed(primitive=multiply, args=(spread(a, left), spread(b, right)), params={})
    x, y = arranged(a, left, batch, rows, summed), arranged(b, right, batch, summed, columns)
    z = make(matmul, (x, y), x.shape[:-1] + y.shape[-1:])
    order = [*batch, *rows, *columns]
    shape = tuple(sizes[s] for s in order)
    z = make(reshape, (z,), shape, shape=shape)
    return node.changed(primitive=transpose, args=(z,), params={"axes": tuple(order.index(s) for s in output)})
