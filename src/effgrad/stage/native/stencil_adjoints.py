"""Adjoints of stencils as gathers: what a stencil adds to one element of a cotangent is added up, and written once.

The adjoint of `b[1:-1] = a[:-2] + a[2:]` adds the cotangent of `b` to that of `a` in two places, and clears it. In a
loop these cotangents are then read and written twice as often as the arrays. So elements that are cleared keep their
old values where the next statement adds to them: for these it stores its sum instead of adding it. In a loop, the first
step is taken apart, for it finds what came from after the loop.
"""

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from effgrad.stage.loop.affine import Affine, affine, fresh, variable
from effgrad.stage.loop.buffers import Buffer, Element, constant, topological
from effgrad.stage.loop.element import ADD, MULTIPLY, NEGATIVE, SUBTRACT, element, is_zero
from effgrad.stage.loop.ir import (
    Block,
    Dims,
    Map,
    Region,
    Repeat,
    Statement,
    Store,
    duplicate,
    parts,
    reads_in,
    rebuilt,
    writes_in,
)

# A box of elements: where it starts and stops along each axis.
Box = tuple[tuple[int, int], ...]
# The elements of a buffer that count as zero, though something else is in memory.
Owed = dict[Buffer, Box]

# What a point adds to a place is computed again for each place, if it has at most this many operations.
OPERATIONS, CHEAP = 16, (ADD, SUBTRACT, MULTIPLY, NEGATIVE)
# A box is worth it if it has at least this many elements, and the edges are at most a half of it.
LEAST = 256


def gathered(region: Region) -> Region:
    """Return the region with its cotangents assigned instead of cleared and added to."""
    return Region(region.inputs, region.outputs, _rewritten(region.block, {}, {})[0])


def _rewritten(block: Block, owed: Owed, carried: Owed) -> tuple[Block, Owed]:
    """Return the statements after which the `carried` boxes are owed, if the given ones are before; and what is."""
    done, owed = Block(), dict(owed)
    for k, s in enumerate(block):
        if isinstance(s, Repeat):
            done += _repeated(s)
        elif isinstance(s, Map):
            done += _of_map(s, block[k + 1 :], owed, carried)
        elif parts(s):
            done.append(rebuilt(s, [_rewritten(part, {}, {})[0] for part in parts(s)]))
        else:
            done.append(s)
    return done, owed


def _of_map(s: Map, later: Block, owed: Owed, carried: Owed) -> Block:
    """The Maps in place of one, which assign what was owed; note what is owed after it."""
    done: Block = []
    for b in [b for b in owed if _touches(s, b)]:
        done += _Sum(s, b, owed.pop(b)).maps()
        s = replace(s, stores=[t for t in s.stores if t.buffer is not b])
    for t, box in _cleared(s):
        last = not any(_touches(x, t.buffer) for x in later)
        if _is_assigned(later, t.buffer, box) or (last and carried.get(t.buffer) == box):
            owed[t.buffer] = box
            s = replace(s, stores=[x for x in s.stores if x is not t])
    return [*done, s] if s.stores else done


def _repeated(s: Repeat) -> Block:
    """A loop, with its first step taken apart if the steps leave what the next one assigns."""
    carried = {t.buffer: box for t, box in _left(s.body)} if s.steps is not None and len(s.steps) > 1 else {}
    if not carried:
        return [replace(s, body=_rewritten(s.body, {}, {})[0])]
    first, rest = _taken_apart(s)
    once = replace(first, body=_rewritten(duplicate(s.body), {}, carried)[0])
    often = replace(rest, body=_rewritten(s.body, carried, carried)[0])
    return [once, often, *[_zero(b, box) for b, box in carried.items()]]


def _taken_apart(s: Repeat) -> tuple[Repeat, Repeat]:
    """The first step of a loop, and the other ones."""
    steps = s.steps
    assert steps is not None
    if not s.backwards:
        return replace(s, stop=affine(steps[1])), replace(s, start=affine(steps[1]))
    return replace(s, start=affine(steps[-1])), replace(s, stop=affine(steps[-1]))


def _left(body: Block) -> Iterator[tuple[Store, Box]]:
    """The stores that clear what no later statement of a step touches, and the next step assigns."""
    for k, s in enumerate(body):
        for t, box in _cleared(s) if isinstance(s, Map) else ():
            if not any(_touches(x, t.buffer) for x in body[k + 1 :]) and _is_assigned(body[:k], t.buffer, box):
                yield t, box


def _touches(s: Statement, b: Buffer) -> bool:
    return b in reads_in([s]) or b in writes_in([s])


def _is_assigned(block: Block, b: Buffer, box: Box) -> bool:
    """Whether the first of the statements that touches a buffer adds to it, most of it in this box."""
    first = next((s for s in block if _touches(s, b)), None)
    return isinstance(first, Map) and _Sum(first, b, box).is_worth_it()


def _cleared(m: Map) -> Iterator[tuple[Store, Box]]:
    """The stores of a Map that set a box to zero, to which it adds nothing then."""
    for t in m.stores:
        alone = all(x is t or x.buffer is not t.buffer for x in m.stores)
        place = _place(t, m.dims) if alone and not t.adds and is_zero(t.value) else None
        if place is not None and _size(place.box) >= LEAST:
            yield t, place.box


def _zero(b: Buffer, box: Box) -> Map:
    names = [fresh("z") for _ in box]
    dims = tuple((name, affine(stop - start)) for name, (start, stop) in zip(names, box, strict=True))
    places = tuple(variable(name) + start for name, (start, _) in zip(names, box, strict=True))
    return Map(dims, [Store(b, places, constant(0, b.dtype))])


def _size(box: Box) -> int:
    return math.prod(max(stop - start, 0) for start, stop in box)


@dataclass
class _Place:
    """The place of a store: for each axis the variable of the box that moves it, and the elements from start to stop.

    The variable is None along an axis where the store stays at one element.
    """

    names: tuple[str | None, ...]
    box: Box


def _place(t: Store, dims: Dims) -> _Place | None:
    """The place of a store whose indices are variables of a box of known size, each once, plus constants."""
    extents = {name: n.constant for name, n in dims if not n.terms}
    names: list[str | None] = []
    box: list[tuple[int, int]] = []
    for i in t.indices:
        name = next((x for x in extents if i == variable(x) + i.constant), None)
        if name in names if name else i.terms:
            return None
        names.append(name)
        box.append((i.constant, i.constant + (extents[name] if name else 1)))
    return _Place(tuple(names), tuple(box)) if len(extents) == len(dims) == len(set(names) - {None}) else None


class _Sum:
    """The sums that a Map adds to a buffer of which a box counts as zero."""

    def __init__(self, m: Map, b: Buffer, zeros: Box) -> None:
        self.m, self.buffer, self.zeros = m, b, zeros
        self.stores = [t for t in m.stores if t.buffer is b]
        places = [_place(t, m.dims) for t in self.stores]
        self.places = [x for x in places if x is not None]
        self.is_regular = len(self.places) == len(self.stores) > 0 and len({x.names for x in self.places}) == 1
        if self.is_regular:
            # The elements to which all stores add, and the ones among these that count as zero.
            boxes = [x.box for x in self.places]
            every = [(max(s for s, _ in ends), min(e for _, e in ends)) for ends in zip(*boxes, strict=True)]
            self.inner = tuple((max(a, c), min(b, d)) for (a, b), (c, d) in zip(every, zeros, strict=True))
            self.whole = tuple((min(s for s, _ in ends), max(e for _, e in ends)) for ends in zip(*boxes, strict=True))

    def is_worth_it(self) -> bool:
        """Whether the sums of most of the elements can be stored, and are simple."""
        m, b = self.m, self.buffer
        if not self.is_regular or not all(t.adds for t in self.stores) or b in reads_in([m]):
            return False
        edges = all(0 < e - s and (e - s) * 2 > stop - start for (s, e), (start, stop)
                    in zip(self.inner, self.whole, strict=True))  # fmt: skip
        large = _size(self.inner) >= LEAST and 2 * _size(self.inner) > _size(self.zeros)
        return edges and large and all(_is_simple(t.value) for t in self.stores)

    def maps(self) -> list[Map]:
        """The Maps that clear what none of the stores assigns, add at the edges, and store the sums inside."""
        found, last = [_zero(self.buffer, box) for box in self.edges(self.zeros)], len(self.inner) - 1
        for axis, (start, stop) in enumerate(self.inner):
            outside = (*range(self.whole[axis][0], start), *range(stop, self.whole[axis][1]))
            for p in outside:
                found += [self.along(p)] if axis == last else self.beside(axis, p)
        inside = dict(enumerate(self.inner))
        return [*found, self.gather(list(range(len(self.stores))), inside, False)]

    def edges(self, box: Box) -> Iterator[Box]:
        """The parts of a box around the inner one."""
        for axis, (start, stop) in enumerate(self.inner):
            before, after = self.inner[:axis], box[axis + 1 :]
            for side in ((box[axis][0], start), (stop, box[axis][1])):
                if side[0] < side[1]:
                    yield (*before, side, *after)

    def along(self, p: int) -> Map:
        """The Map that adds to the elements at one place of the last axis, all at once."""
        axis = len(self.inner) - 1
        chosen = [k for k, x in enumerate(self.places) if x.box[axis][0] <= p < x.box[axis][1]]
        return self.gather(chosen, {**dict(enumerate(self.inner)), axis: (p, p + 1)}, True)

    def beside(self, axis: int, p: int) -> list[Map]:
        """The Maps that add to the elements at one place of another axis, as the stores do."""
        groups: dict[Box, list[int]] = {}
        for k, x in enumerate(self.places):
            if x.box[axis][0] <= p < x.box[axis][1]:
                groups.setdefault(x.box[:axis], []).append(k)
        within = {**dict(enumerate(self.inner[:axis])), axis: (p, p + 1)}
        return [self.gather(chosen, within, True) for chosen in groups.values()]

    def gather(self, chosen: Sequence[int], within: Mapping[int, tuple[int, int]], adds: bool) -> Map:
        """The Map of the chosen stores to the elements within bounds along some axes, the stores' own along others.

        If all axes have bounds, it stores one sum.
        """
        dims, points = list[tuple[str, Affine]](), list[Affine]()
        for axis, (first, end) in enumerate(self.places[chosen[0]].box):
            start, stop = within.get(axis, (0, end - first))
            name = fresh("e")
            dims += [(name, affine(stop - start))] if stop - start > 1 else []
            points.append(variable(name) + start if stop - start > 1 else affine(start))
        stores = [self.moved(k, points, within) for k in chosen]
        if len(within) == len(points):
            total = functools.reduce(lambda a, b: element(ADD, a, b), [t.value for t in stores])
            stores = [replace(stores[0], value=total, adds=adds)]
        return Map(tuple(dims), stores, self.m.place)

    def moved(self, k: int, points: Sequence[Affine], within: Mapping[int, tuple[int, int]]) -> Store:
        """A store at a point, given by its place in the buffer along axes with bounds, and by its step along others."""
        at: dict[str, Affine | int] = {}
        indices = []
        for axis, (name, point) in enumerate(zip(self.places[k].names, points, strict=True)):
            offset = self.places[k].box[axis][0]
            indices.append(point if axis in within else point + offset)
            if name is not None:
                at[name] = point - offset if axis in within else point
        return Store(self.buffer, tuple(indices), self.stores[k].value.substitute(at), True)


def _is_simple(e: Element) -> bool:
    """Whether an expression is cheap enough to be computed for each place that it is added to."""
    nodes = [x for x in topological([e]) if not isinstance(x.op, str)]
    return len(nodes) <= OPERATIONS and all(x.op in CHEAP for x in nodes)
