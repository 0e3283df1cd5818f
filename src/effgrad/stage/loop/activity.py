"""Dependency analyses of a region: varied and useful buffers, dead statements, accesses that never overlap."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from effgrad.stage.loop.affine import Affine
from effgrad.stage.loop.buffers import Buffer
from effgrad.stage.loop.element import smooth_loads
from effgrad.stage.loop.ir import (
    Apply,
    Block,
    Branch,
    Check,
    Dims,
    Map,
    Pop,
    Push,
    Store,
    While,
    parts,
    read_buffers,
    reads_in,
    rebuilt,
    walk,
    writes_in,
    written,
)


def _flows(block: Block) -> list[tuple[Buffer, set[Buffer]]]:
    """For each write, the buffer that is written and the buffers that it depends on smoothly."""
    flows = []
    for s in walk(block):
        if isinstance(s, Map):
            flows += [(t.buffer, {e.args[0] for e in smooth_loads(t.value)}) for t in s.stores if t.buffer.smooth]
        elif isinstance(s, Apply) and s.output.smooth:
            flows.append((s.output, {b for b in s.inputs if b.smooth}))
        elif isinstance(s, Push) and s.buffer in s.stack.into:
            flows.append((s.stack.into[s.buffer], {s.buffer}))
    return flows


def varied(block: Block, seeds: Iterable[Buffer]) -> set[Buffer]:
    """The buffers whose values depend smoothly on the seeds."""
    return _reached(seeds, [(sources, {target}) for target, sources in _flows(block)])


def useful(block: Block, results: Iterable[Buffer]) -> set[Buffer]:
    """The buffers on whose values the results depend smoothly."""
    return _reached(results, [({target}, sources) for target, sources in _flows(block)])


def _reached(start: Iterable[Buffer], edges: list[tuple[set[Buffer], set[Buffer]]]) -> set[Buffer]:
    """The buffers that can be reached; an edge leads from each of some buffers to each of others."""
    found, before = set(start), -1
    while len(found) != before:
        before = len(found)
        found.update(*(others for some, others in edges if not some.isdisjoint(found)))
    return found


def without_dead(block: Block, roots: Iterable[Buffer]) -> Block:
    """Remove the statements that write only buffers that nobody reads; the `roots` are read after the block."""
    live, before = set(roots), -1
    while len(live) != before:
        before = len(live)
        _mark(block, live)
    return _swept(block, live)


def _mark(block: Block, live: set[Buffer]) -> bool:
    """Add to `live` the buffers that live statements read. Return whether any statement is live."""
    some = False
    for s in block:
        kept = Map(s.dims, [t for t in s.stores if t.buffer in live]) if isinstance(s, Map) else s
        inner = [_mark(part, live) for part in parts(s)]
        saved = isinstance(s, Push) and _saves(s, live)
        if any(inner) or isinstance(s, Check) or saved or any(b in live for b in written(kept)):
            some = True
            live.update(read_buffers(kept), written(s) if isinstance(s, While) else ())
    return some


def _saves(s: Push, live: set[Buffer]) -> bool:
    """Whether a `Push` saves a live buffer, or its `Pop` restores one. If so, both buffers become live."""
    both = {s.buffer, s.stack.into.get(s.buffer, s.buffer)}
    if live.isdisjoint(both):
        return False
    live |= both
    return True


def _swept(block: Block, live: set[Buffer]) -> Block:
    kept: Block = []
    for s in block:
        if isinstance(s, Map):
            stores = [t for t in s.stores if t.buffer in live]
            if stores:
                kept.append(replace(s, stores=stores) if len(stores) < len(s.stores) else s)
        elif isinstance(s, Apply):
            kept += [s] if s.output in live else []
        elif isinstance(s, Push | Pop):
            kept += [s] if s.buffer in live else []
        elif isinstance(s, Check):
            kept.append(s)
        else:
            blocks = [_swept(part, live) for part in parts(s)]
            if any(blocks) if not isinstance(s, While) else s.count in live:
                kept.append(rebuilt(s, blocks))
    return kept


def never_overlap(a: Sequence[Affine], b: Sequence[Affine], dims: Dims) -> bool:
    """Whether accesses at two index tuples of a buffer never meet at two different points of the box."""
    return tuple(a) == tuple(b) or lie_apart(a, b, dict(dims))


def lie_apart(a: Sequence[Affine], b: Sequence[Affine], extents: dict[str, Affine]) -> bool:
    """Whether accesses at two index tuples of a buffer never meet, at any two points of a box."""
    for i, j in zip(a, b, strict=True):
        low, high = _difference(i, j, extents)
        if low is not None and low > 0 or high is not None and high < 0:
            return True
    return False


def _difference(i: Affine, j: Affine, extents: dict[str, Affine]) -> tuple[int | None, int | None]:
    """The bounds of `i - j` where the box's variables vary independently in the two; None for an unknown bound."""
    inner = [[(v, k) for v, k in x.terms if v in extents] for x in (i, j)]
    outer = [Affine(x.constant, [(v, k) for v, k in x.terms if v not in extents]) for x in (i, j)]
    if any(type(v) is not str and v.variables() & extents.keys() for x in (i, j) for v, _ in x.terms):
        return None, None
    low = high = outer[0] - outer[1]
    for sign, terms in zip((1, -1), inner, strict=True):
        for v, k in terms:
            span = (extents[v] - 1) * (k * sign)
            if k * sign > 0:
                high = high + span
            else:
                low = low + span
    return low.constant if not low.terms else None, high.constant if not high.terms else None


def injective(indices: Sequence[Affine], dims: Dims) -> bool:
    """Whether different points of a box have different indices: each variable has an axis to itself, or is a digit.

    An index that is loaded from a table passes this test: a table indexes a store only if its integers are all
    different.
    """
    extents = dict(dims)
    known = set[str]()
    for i in indices:
        inside = i.variables() & extents.keys()
        if len(inside) == 1 or _digits(i, extents, len(inside)):
            known |= inside
    return known == extents.keys()


def _digits(i: Affine, extents: dict[str, Affine], count: int) -> bool:
    """Whether an index is a mixed-radix number whose digits are the box's variables, as `5 * i + j` with `j < 5`."""
    terms = sorted([(abs(k), extents[v]) for v, k in i.terms if type(v) is str and v in extents], key=lambda t: t[0])
    span = 0
    for k, extent in terms:
        if extent.terms or k <= span:
            return False
        span += k * max(extent.constant - 1, 0)
    return len(terms) == count


def depends(indices: Sequence[Affine], dims: Dims) -> Dims:
    """The dims of a box that the indices depend on."""
    names = set[str]().union(*(i.variables() for i in indices))
    return tuple(d for d in dims if d[0] in names)


def overwritten_first(body: Block) -> set[Buffer]:
    """The buffers that a body overwrites in full before it reads them, so that no earlier value of theirs is used."""
    found: set[Buffer] = set()
    seen: set[Buffer] = set()
    planes: dict[Buffer, set[int]] = {}
    for s in body:
        if isinstance(s, Branch):
            found |= _in_branches(s, [x for x in body if x is not s]) - seen
        seen |= reads_in([s]) - found
        if isinstance(s, Apply):
            found |= {s.output} - seen
        for t, dims in [(t, s.dims) for t in s.stores] if isinstance(s, Map) else ():
            plane = _plane(t)
            if t.adds or t.buffer in seen or not _covers(t, dims, plane is not None):
                continue
            planes.setdefault(t.buffer, set()).add(plane or 0)
            if plane is None or len(planes[t.buffer]) == t.buffer.shape[0]:
                found.add(t.buffer)
        seen |= writes_in([s]) - found - planes.keys()
    return found


def _in_branches(s: Branch, others: Block) -> set[Buffer]:
    """The buffers that a branch first overwrites in full, on both sides, or on one if they are used nowhere else."""
    then, other = overwritten_first(s.then), overwritten_first(s.other)
    used, *sides = (writes_in(part) | reads_in(part) for part in (others, s.then, s.other))
    return (then & other) | (then - sides[1] - used) | (other - sides[0] - used)


def _plane(t: Store) -> int | None:
    """The constant index of a store along the first axis, if it writes one plane of its buffer; else None."""
    fixed = len(t.indices) > 1 and not t.indices[0].terms and t.buffer.shape[0] > 1
    return t.indices[0].constant if fixed else None


def _covers(t: Store, dims: Dims, plane: bool) -> bool:
    """Whether a store writes all of its buffer, or, if `plane`, all of the plane that it writes."""
    extents = dict(dims)
    names = []
    for i, n in list(zip(t.indices, t.buffer.shape, strict=True))[plane:]:
        if n == 1 and i == 0:
            continue
        if i.constant or len(i.terms) != 1 or i.terms[0][1] != 1 or extents.get(i.terms[0][0]) != n:
            return False
        names.append(i.terms[0][0])
    return len(set(names)) == len(names)
