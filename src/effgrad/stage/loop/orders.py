"""The arrays of a captured loop that may not lie, in the user's program, as in a region's buffers: in C order, dense.

NumPy lays a result as its operands lie, and a view where its array lies. What the program does after the loop depends
on that: whether a `ravel` is a view, in which order a sum adds. The statements that fill the buffers tell it, and what
they leave open counts as another order.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from effgrad.stage.loop.affine import Affine, affine, variable
from effgrad.stage.loop.buffers import Buffer, Element, loads, topological
from effgrad.stage.loop.element import WHERE, is_seen, is_turned, widened
from effgrad.stage.loop.ir import Apply, Block, Map, walk


class Filling(NamedTuple):
    """A statement that fills a buffer, with the variables of its index box and what the elements become."""

    buffer: Buffer
    dims: Sequence[tuple[str, Affine]]
    indices: Sequence[Affine]
    value: Element
    adds: bool = False


def out_of_order(block: Block) -> set[Buffer]:
    """The buffers whose arrays may not lie in C order, or may have gaps, in the user's program."""
    applied = [s for s in walk(block) if isinstance(s, Apply)]
    filled = [f for f in _fillings(block) if f.buffer.order in ("K", "A")]
    read = [e.args[0] for f in filled for e in loads([f.value])]
    turned = {b for b in [*read, *[b for s in applied for b in (s.output, *s.inputs)]] if b.order == "F"}
    apart, known = set(turned), -1
    while known < len(turned) + len(apart):
        known = len(turned) + len(apart)
        turned |= {f.buffer for f in filled if _turns(f, turned)}
        turned |= {s.output for s in applied if len(s.output.shape) > 1 and not turned.isdisjoint(s.inputs)}
        apart |= {f.buffer for f in filled if _leaves_gaps(f, apart)} | turned
        apart |= {s.output for s in applied if s.output.order == "A" and not apart.isdisjoint(s.inputs)}
    return apart


def _fillings(block: Block) -> Iterable[Filling]:
    for s in [s for s in walk(block) if isinstance(s, Map)]:
        for t in s.stores:
            yield Filling(t.buffer, s.dims, t.indices, t.value, t.adds)
            if (like := t.buffer.like) is not None:
                dims = [(name, affine(n)) for name, n in zip(like.names, like.shape, strict=True)]
                yield Filling(t.buffer, dims, [variable(name) for name, _ in dims], like.value)


def _turns(filling: Filling, turned: set[Buffer]) -> bool:
    """Whether the axes of the result may not lie in memory in their order, given the arrays of which this holds.

    NumPy exchanges two axes of a result only if no operand has both in order (its `nditer`, with order "K").
    """
    own = [i.variables() for i in filling.indices]
    rank = {name: k for name, _ in filling.dims for k, names in enumerate(own) if name in names}
    # For each expression: whether its axes may be turned; None if it has too few axes to decide that.
    found: dict[Element, bool | None] = {}
    for e in topological([filling.value]):
        if e.op == "load":
            found[e] = _load_turns(e, rank, turned)
        elif is_turned(e):
            found[e] = True if len(rank.keys() & e.variables()) > 1 else None
        else:
            states = [] if isinstance(e.op, str) else [found[a] for a in e.args]
            in_order = False in states and not (e.op is WHERE and True in states)  # it may be a choice of one of them
            found[e] = False if in_order else True if True in states else None
    return found[filling.value] is True


def _load_turns(e: Element, rank: Mapping[str, int], turned: set[Buffer]) -> bool | None:
    """Whether the axes of a loaded array may be turned; None if it does not have all axes of the result, in order."""
    axes = [k for i in e.args[1] for k in sorted(rank[name] for name in i.variables() if name in rank)]
    if len(set(axes)) > 1 and (axes != sorted(axes) or e.args[0] in turned):
        return True
    return False if len(axes) == len(rank) > 1 else None


def _leaves_gaps(filling: Filling, apart: set[Buffer]) -> bool:
    """Whether an array may be a view whose elements do not lie one after the other."""
    names = {name for name, _ in filling.dims}
    views = [e for e in alternatives(filling.value) if may_be_view(e) and not filling.adds]
    for e in views if filling.buffer.order == "A" else ():
        if e.op != "load":
            return True
        if not any(_is_listed(i, names) for i in e.args[1]):
            distance = _place(filling.buffer, filling.indices) - _place(*e.args)
            if e.args[0] in apart or not names.isdisjoint(distance.variables()):
                return True
    return False


def may_be_view(e: Element) -> bool:
    """Whether the array that has this element may be a view of another one."""
    return e.op == "load" or is_seen(e)


def alternatives(e: Element) -> list[Element]:
    """An element, or those that a choice has as alternatives."""
    e = widened(e)
    return [x for a in e.args[1:] for x in alternatives(a)] if e.op is WHERE else [e]


def _is_listed(i: Affine, names: Container[str]) -> bool:
    """Whether an index is an element of an array of integers, another one for each value of some names."""
    return any(type(atom) is not str and any(name in names for name in atom.variables()) for atom, _ in i.terms)


def _place(buffer: Buffer, indices: Sequence[Affine]) -> Affine:
    """The number of an element of a buffer in C order."""
    place = Affine()
    for n, i in zip(buffer.shape, indices, strict=True):
        place = place * n + i
    return place
