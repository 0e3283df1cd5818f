"""Writes: an array with new values in some places, made in place where nothing reads the old array again.

A value is written by the kernel that computes it, if possible. Places at regular distances are walked by strides.
"""

import functools
from collections.abc import Iterable
from typing import Any

import numpy as np

from effgrad.arrays.layout import shape_of
from effgrad.primitives import move
from effgrad.primitives.overwrite import overwrite
from effgrad.stage.graph import Graph
from effgrad.stage.moves import contiguous, keeps_order, reshaped
from effgrad.stage.native.fusion import Fusion
from effgrad.stage.native.gathers import Gathers
from effgrad.stage.native.scalars import typed
from effgrad.stage.native.storage import Storage, numbered, viewable
from effgrad.stage.native.strided import disjoint, gaps, strided
from effgrad.stage.nodes import Node
from effgrad.vocabulary import Value

# If writes leave at most this many stretches of a base, only these are copied; else the whole base is copied first.
FEW = 8


class Writes:
    """The writes of a program; `computed` finds the places of an index with computed integers."""

    def __init__(self, plan: Fusion, gathers: Gathers) -> None:
        self.plan, self.place, self.computed = plan, gathers.place, gathers.computed

    def write(self, node: Node) -> bool:
        """Plan a write of values over a base array, each to its places; False if that is not possible."""
        if node.primitive not in (overwrite, move.setitem) or not node.size or not typed(node, *node.args):
            return False
        places = self.places(node)
        if places is None:
            return False
        found, values = self.in_place(node), node.args[1:]
        if found is None:
            total = self.plan.memory(node)
            after, end = self.fill(node, total, places)
        else:
            total, after = found
            values = tuple([self.copied_if_stored(value, total) for value in values])
            copies = [new for new, value in zip(values, node.args[1:], strict=True) if new is not value]
            after = max([after, *(self.plan.available[copy] + 1 for copy in copies)])
            end = after - 1  # if there is no place
        written = zip(values, places, strict=True)
        ends = [end, *[self.put(value, at, total, after) for value, at in written if at.size]]
        self.plan.set_storage(node, total, max(ends))
        return True

    @functools.cached_property
    def reads(self) -> "Reads":
        """The reads of each value, made only for programs with writes."""
        return Reads(self.plan.graph)

    def places(self, node: Node) -> list[Any] | None:
        """Return the places of each value, numbered in C order: different constants, or one computed array; or None."""
        if node.primitive is overwrite:
            places = [np.atleast_1d(at) for at in node.params["places"]]
        elif node.slots:
            computed = self.computed(node.params["index"], node.slots, contiguous(node.shape, node.dtype))
            return None if computed is None else [computed]
        else:
            places = [np.arange(node.size).reshape(node.shape)[node.params["index"]]]
        return places if disjoint(places, node.size) else None

    def in_place(self, node: Node) -> tuple[Storage, int] | None:
        """Return the memory of the base and the step from which it may be written; None if it is needed later."""
        plan, root = self.plan, node.args[0]
        while type(root) is Node and root.primitive.view:
            root = root.args[0]
        if type(root) is not Node or root.dtype != node.dtype or not self.reads.is_last(root, node):
            return None
        storage = plan.stored(node.args[0])
        buffer, view = storage.buffer, storage.view
        own = buffer.array is None and buffer.source is None
        if not own or not view.flags.c_contiguous or view.nbytes != buffer.size:
            return None
        before = [reader for reader in self.reads.through(root) if reader is not node]
        steps = [plan.available.get(value, len(plan.steps) - 1) for value in (root, node.args[0], *before)]
        return storage, max(steps) + 1

    def copied_if_stored(self, value: Value, total: Storage) -> Value:
        """Return a value, or a copy made before the write if the value is itself stored in the memory written to."""
        lies = type(value) is Node and (value.primitive.view or id(value) in self.plan.storage)
        return self.plan.copied(value) if lies and self.plan.stored(value).buffer is total.buffer else value

    def fill(self, node: Node, total: Storage, places: list[Value]) -> tuple[int, int]:
        """Copy the base to new memory, except where values go; return the first step for values and the last copy's."""
        plan, base = self.plan, node.args[0]
        constant = all(type(at) is not Node for at in places)
        if constant and sum(at.size for at in places) == node.size:
            return 0, 0
        number = _one_number(base)
        stretches = gaps(places, node.size) if constant and number is not None else []
        whole = not 0 < len(stretches) <= FEW
        flat = total.view.reshape(-1)
        source = base if number is None else number
        views = [total.view] if whole else [flat[stretch] for stretch in stretches]
        copies = [plan.copy_to(Storage(total.buffer, view), source, node) for view in views]
        last = max([plan.available[copy] for copy in copies])
        return (last + 1 if whole else 0), last

    def put(self, value: Value, at: Value, total: Storage, after: int) -> int:
        """Write a value to its places, in a step from `after` on, and return the number of that step."""
        plan = self.plan
        if type(value) is not Node:
            value = np.asarray(value).astype(total.view.dtype)
        target = strided(total, at) if type(at) is not Node else None
        fitted = None if target is None else self.fitted(value, at.shape, target)
        if fitted is None:
            where = at if type(at) is Node else np.ascontiguousarray(at, np.int64)
            return plan.collect(value, total, "put", where, after)
        return plan.collect(*fitted, after=after)

    def fitted(self, value: Value, shape: tuple[int, ...], target: Storage) -> tuple[Value, Storage] | None:
        """Return a value and its strided destination in one shape, if possible that in which the value is computed.

        Return None for an array that must be broadcast.
        """
        source, view = value, target.view
        if shape_of(value) not in ((), shape):
            return None
        if shape_of(value) == ():
            return value, target
        while type(source) is Node and keeps_order(source):
            source = source.args[0]
        for one in (source, value):
            if viewable(view, shape_of(one)):
                return one, Storage(target.buffer, view.reshape(shape_of(one), copy=False), target.offset)
        if type(value) is not Node:
            return value.reshape(view.shape), target
        like = reshaped(value, value, view.shape)
        self.place(like)
        return like, target


def strided_gather(plan: Fusion, node: Node) -> bool:
    """Plan a move that reads places at regular distances, as a view or as a copy of one; False if it does not."""
    if not node.primitive.view or node.slots or not node.size:
        return False
    (source,) = node.args
    if type(source) is not Node or not typed(source):
        return False
    storage = plan.stored(source)
    if not storage.view.flags.c_contiguous:
        return False
    found = strided(storage, node.primitive.function(numbered(storage.view), **node.params))
    if found is None:
        return False
    if found.view.shape == node.shape:
        plan.set_storage(node, found, plan.available[source])
        return True
    seen = node.changed(shape=found.view.shape)
    plan.set_storage(seen, found, plan.available[source])
    copied = plan.copied(seen)
    whole = plan.stored(copied)
    plan.set_storage(node, Storage(whole.buffer, whole.view.reshape(node.shape)), plan.available[copied])
    plan.kept.append(seen)
    return True


class Reads:
    """The operations that read the memory of each value of a graph, and the number of the last one."""

    def __init__(self, graph: Graph) -> None:
        self.numbers = {node: number for number, node in enumerate(graph)}
        self.last: dict[Node, int] = {node: len(self.numbers) for node in graph.outputs if type(node) is Node}
        # The operations that take a value as an argument.
        self.readers: dict[Node, list[Node]] = {}
        for node in reversed(graph.nodes):
            # Views share memory, and the pieces of a join may be read when the join is.
            shares = bool(node.primitive.view or node.primitive.places)
            for arg in node.inputs:
                later = self.last.get(node, -1) if shares else -1
                self.last[arg] = max(self.last.get(arg, -1), self.numbers[node], later)
                self.readers.setdefault(arg, []).append(node)

    def through(self, value: Node) -> Iterable[Node]:
        """Return the operations that read a value, also through its views and the joins of which it is a piece."""
        found: dict[Node, None] = {}
        left = [value]
        while left:
            for reader in self.readers.get(left.pop(), ()):
                if reader not in found:
                    found[reader] = None
                    if reader.primitive.view or reader.primitive.places:
                        left.append(reader)
        return found

    def is_last(self, value: Node, reader: Node) -> bool:
        """Whether no operation after this reader reads a value."""
        return self.last.get(value, -1) <= self.numbers[reader]


def _one_number(value: Value) -> Value:
    """Return the number that all elements of a constant are equal to, or None."""
    if type(value) is Node or not np.size(value):
        return None
    first = np.ravel(value)[0]
    bits = np.ravel(value).view(f"u{first.itemsize}")
    return first.item() if (bits == bits[0]).all() else None
