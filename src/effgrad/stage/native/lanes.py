"""Split short last axes into lanes: an array of n rows of three becomes three arrays of n, its lanes.

A kernel loops over one shape. Rows of three, their norms and their components have three shapes, so that whatever is
computed between them would go through memory. Lanes all have one shape, and meet in one loop, in registers. Where an
operation needs the whole value, its lanes are stacked again. Views, gathers, joins and sums along the axis choose or
add lanes and cost nothing. Programs that only compute with each element of such arrays are not changed, because the
array is one loop already.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from effgrad.arrays.layout import shape_of
from effgrad.primitives.elementwise import add
from effgrad.primitives.indices import as_tuple, one_entry_per_axis, reduced_axes, selects_all
from effgrad.stage.graph import Graph
from effgrad.stage.moves import (
    broadcast,
    converted,
    is_broadcast,
    keeps_order,
    made,
    part,
    repeated_constant,
    reshaped,
    stacked,
)
from effgrad.stage.native.scalars import TYPES, dtype_of, supported
from effgrad.stage.nodes import Node, Slot
from effgrad.stage.passes import RULES, dead, repeated, simplified
from effgrad.vocabulary import Option, Value

# The longest axis that is split, and the fewest rows for which the longer program pays.
LONGEST, FEWEST_ROWS = 16, 256


def split_lanes(graph: Graph) -> Graph:
    """Return the graph with short last axes split into lanes where that joins loops, until there are none left."""
    while True:
        chosen = _chosen(graph)
        if not chosen:
            return graph
        split = _Splitter(graph, chosen).graph()
        graph = dead(simplified(split, *RULES, repeated()))


def _short(value: Value) -> bool:
    """Whether a value has two axes, and many rows of a few elements.

    A value of more axes would be split axis after axis, which made twenty times the code for determinants by minors.
    """
    if type(value) is not Node or len(value.shape) != 2 or not 1 <= value.shape[-1] <= LONGEST:
        return False
    return value.size >= FEWEST_ROWS * value.shape[-1] and value.dtype in TYPES


def _chosen(graph: Graph) -> set[Node]:
    """Return the short values to split: those connected, by operations on lanes, to one that mixes the lanes of a row.

    They must also be connected to an elementwise operation or a reduction.
    """
    if not any(map(_short, graph)):
        return set()
    parent: dict[Node, Node] = {}
    mixed: list[Node] = []
    computed: list[Node] = []

    def root(node: Node) -> Node:
        while parent.setdefault(node, node) is not node:
            parent[node] = node = parent[parent[node]]
        return node

    for node in graph:
        values = [value for value in (node, *node.args) if _short(value)]
        rule = _rule(node) if values else None
        if rule is None:
            continue
        for value in values:
            parent[root(value)] = root(values[0])
        if _mixes(node):
            mixed.append(values[0])
        if rule in (_elementwise, _reduction):
            computed.append(values[0])
    roots = {root(node) for node in mixed} & {root(node) for node in computed}
    return {node for node in list(parent) if root(node) in roots}


def _mixes(node: Node) -> bool:
    """Whether an operation combines or selects elements of a row, or computes with one number for each row."""
    if keeps_order(node) or (node.primitive.view and node.slots):
        return False
    lengths = {a.shape[-1] for a in (node, *node.args) if type(a) is Node and a.shape}
    if node.primitive.folds:
        rank = len(node.args[0].shape)
        return rank - 1 in reduced_axes(node.params["axis"], rank)
    return len(lengths) > 1


class _Splitter:
    """One walk over a graph: `parts` has the lanes of each split value, `new` each value in one piece."""

    def __init__(self, graph: Graph, chosen: set[Node]) -> None:
        self.old, self.chosen = graph, chosen
        self.nodes: list[Node] = []
        self.new: dict[Node, Value] = {node: node for node in graph.inputs}
        self.parts: dict[Node, list[Value]] = {}
        self.taken: dict[tuple[int, int], Value] = {}

    def graph(self) -> Graph:
        for node in self.old:
            self.visit(node)
        return self.old.with_nodes(self.nodes, [self.whole(o) for o in self.old.outputs])

    def visit(self, node: Node) -> None:
        rule = _rule(node)
        values = [value for value in (node, *node.args) if type(value) is Node]
        if rule is not None and any(value in self.chosen or value in self.parts for value in values):
            result = rule(self, node)
            if type(result) is list:
                self.parts[node] = result
                return
            if result is not None:
                self.new[node] = result
                return
        args, slots = (tuple(map(self.whole, values)) for values in (node.args, node.slots))
        self.new[node] = node.changed(args=args, slots=slots)
        self.nodes.append(self.new[node])

    def whole(self, value: Value) -> Value:
        """Return a value in one piece."""
        if type(value) is not Node:
            return value
        if value not in self.new:
            self.new[value] = self.put(stacked(value, self.parts[value], len(value.shape) - 1))
        return self.new[value]

    def put(self, node: Node) -> Node:
        self.nodes.append(node)
        return node

    def make(self, like: Node, primitive: Any, args: list[Value], size: tuple[int, ...], **params: Option) -> Node:
        """Add a new operation, whose result has the dtype of `like`."""
        return self.put(made(like, primitive, args, size, params))

    def lane(self, value: Value, number: int) -> Value:
        """Return one lane of a value. Every lane of a number is the number; an axis of one element is broadcast."""
        shape = shape_of(value)
        if not shape:
            return self.whole(value)
        number = number if shape[-1] > 1 else 0
        if type(value) is Node and value in self.parts:
            return self.parts[value][number]
        key = id(value), number
        if key not in self.taken:
            self.taken[key] = self.lane_of_whole(value, number)
        return self.taken[key]

    def lane_of_whole(self, value: Value, number: int) -> Value:
        if type(value) is Node:
            return self.put(part(value, self.whole(value), (..., number), value.shape[:-1]))
        lane = np.ascontiguousarray(value[..., number])
        if not lane.size or (lane != lane.flat[0]).any():
            return lane
        return self.put(repeated_constant(lane.flat[0], lane))

    def each(self, node: Node, make: Callable[[int], Value]) -> list[Value]:
        return [make(number) for number in range(node.shape[-1])]


Rule = Callable[[_Splitter, Node], Any]


def _rule(node: Node) -> Rule | None:
    """Return the rule that does an operation on lanes, or None; `_chosen` asks for it before anything is split.

    A rule returns the list of the result's lanes, or the result in one piece, or None if it does not apply after all.
    """
    rule = _of_kind(node)
    if rule is None and node.shape and supported(node):
        return _elementwise if _short(node) else None
    if rule is _reduction and (node.dtype.kind != "f" and node.primitive.folds is not add or not _short(node.args[0])):
        return None
    return rule if node.dtype in TYPES else None


def _of_kind(node: Node) -> Rule | None:
    if node.primitive.places:
        return _join
    if is_broadcast(node):
        return _broadcast_to
    if node.primitive.view:
        return _getitem if "index" in node.params else _reshape if keeps_order(node) else None
    return _reduction if node.primitive.folds else None


def _elementwise(split: _Splitter, node: Node) -> Value:
    def lane(number: int) -> Value:
        return split.put(node.changed(args=tuple(split.lane(a, number) for a in node.args), shape=node.shape[:-1]))

    return split.each(node, lane)


def _getitem(split: _Splitter, node: Node) -> Value:
    (source,) = node.args
    if type(source) is not Node or not source.shape:
        return None
    index = node.params["index"]
    items = one_entry_per_axis(index, len(source.shape))
    if node.slots or items is None:
        return _gather(split, node, source, as_tuple(index))
    *front, last = items
    whole = all(map(selects_all, front))

    def rest(lane: Value, shape: tuple[int, ...]) -> Value:
        return lane if whole else split.put(part(node, lane, tuple(front), shape))

    if last is None:
        return [rest(split.whole(source), node.shape[:-1])]
    if not isinstance(last, slice):
        return rest(split.lane(source, int(last) % source.shape[-1]), node.shape)
    numbers = range(source.shape[-1])[last]
    return [rest(split.lane(source, number), node.shape[:-1]) for number in numbers]


def _gather(split: _Splitter, node: Node, source: Node, items: tuple[Value, ...]) -> Value:
    """Index the first axis by an array: each lane of the result is the same indexing of a lane of the source."""
    first, *others = items
    along = type(first) is Slot or isinstance(first, np.ndarray) and first.dtype.kind == "i"
    if len(source.shape) < 2 or not along or not _short(node):
        return None
    if not all(map(selects_all, others)):
        return None
    slots = tuple(map(split.whole, node.slots))

    def lane(number: int) -> Value:
        return split.put(part(node, split.lane(source, number), first, node.shape[:-1], slots))

    return split.each(node, lane)


def _reshape(split: _Splitter, node: Node) -> Value:
    (source,) = node.args
    if not node.shape or not shape_of(source):
        return None
    if _short(node) and node.shape[-1] == source.shape[-1]:
        return split.each(node, lambda i: _reshaped(split, node, split.lane(source, i), node.shape[:-1]))
    if _short(node) and node.shape[-1] == 1:
        return [_reshaped(split, node, split.whole(source), node.shape[:-1])]
    if source in split.parts and source.shape[-1] == 1:
        return _reshaped(split, node, split.lane(source, 0), node.shape)
    return None


def _reshaped(split: _Splitter, node: Node, value: Value, shape: tuple[int, ...]) -> Value:
    return value if shape_of(value) == shape else split.put(reshaped(node, value, shape))


def _broadcast_to(split: _Splitter, node: Node) -> Value:
    shape = node.shape[:-1]

    def lane(number: int) -> Value:
        return split.put(broadcast(node, split.lane(node.args[0], number), shape))

    return split.each(node, lane) if _short(node) else None


def _join(split: _Splitter, node: Node) -> Value:
    """Join pieces each of which goes to some lanes of all rows, or each of which goes to some rows of all lanes."""
    if node.slots or not _short(node) or any(dtype_of(a) != node.dtype for a in node.args):
        return None
    rank = len(node.shape)
    indices = node.primitive.places([*map(shape_of, node.args)], **node.params)[1]
    items = [one_entry_per_axis(index, rank) or [None] for index in indices]
    if any(None in item for item in items):
        return None
    if all(selects_all(i) for *front, _ in items for i in front):
        return _join_lanes(split, node, [item[-1] for item in items])
    return _join_rows(split, node) if all(selects_all(item[-1]) for item in items) else None


def _join_lanes(split: _Splitter, node: Node, places: list[Value]) -> Value:
    """Join pieces that go to all rows, each to its lane or slice of lanes; pieces in one lane are added."""
    shape, length, zero = node.shape[:-1], node.shape[-1], node.dtype.type(0)
    lanes: list[Value] = [None] * length
    for piece, last in zip(node.args, places, strict=True):
        for number, lane in _lanes_of(split, piece, last, length):
            before = lanes[number]
            lanes[number] = lane if before is None else split.make(node, add, [before, lane], shape)
    return [split.put(broadcast(node, zero, shape)) if lane is None else lane for lane in lanes]


def _lanes_of(split: _Splitter, piece: Value, last: Value, length: int) -> list[tuple[int, Value]]:
    """Return the lanes of a piece of a join, each with the number of the lane of the join where it goes."""
    if not isinstance(last, slice):
        return [(int(last) % length, split.whole(piece))]
    return [(number, split.lane(piece, i)) for i, number in enumerate(range(length)[last])]


def _join_rows(split: _Splitter, node: Node) -> Value:
    """Join along another axis than the last, lane by lane."""
    if "axis" not in node.params:
        return None
    axis, shape = node.params["axis"] % len(node.shape), node.shape[:-1]
    pieces = [[split.lane(a, i) for a in node.args] for i in range(node.shape[-1])]
    return [split.make(node, node.primitive, lanes, shape, axis=axis) for lanes in pieces]


def _reduction(split: _Splitter, node: Node) -> Value:
    (source,) = node.args
    axes, last = reduced_axes(node.params["axis"], len(source.shape)), len(source.shape) - 1
    lanes = [_as_type(split, split.lane(source, i), node) for i in range(source.shape[-1])]
    others = tuple(i for i in axes if i != last)
    if last not in axes:
        return [split.make(node, node.primitive, [lane], node.shape[:-1], axis=others) for lane in lanes]
    combine = functools.partial(split.make, node, node.primitive.folds)
    total = functools.reduce(lambda a, b: combine([a, b], source.shape[:-1]), lanes)
    return split.make(node, node.primitive, [total], node.shape, axis=others) if others else total


def _as_type(split: _Splitter, lane: Value, like: Node) -> Value:
    """Return a lane in the dtype of the sum: truth values and small integers are added up in 64 bits."""
    if dtype_of(lane) == like.dtype:
        return lane
    return split.put(converted(like, lane))
