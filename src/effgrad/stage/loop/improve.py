"""Passes that optimise a captured block before it is differentiated: dead statements, common values, loop order, ..."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from effgrad.stage.loop.activity import without_dead
from effgrad.stage.loop.affine import Affine, affine, fresh, variable
from effgrad.stage.loop.buffers import Buffer, Element, buffers_in, load, topological
from effgrad.stage.loop.chunks import in_chunks
from effgrad.stage.loop.distribution import distributed
from effgrad.stage.loop.element import ADD, MULTIPLY, NEGATIVE, SUBTRACT, replaced
from effgrad.stage.loop.ir import Block, Map, Repeat, Statement, Store, accesses, parts, rebuilt, rewritten, writes_in

# If a loop over the innermost axis visits arrays of more bytes than this in all, it is moved inside the loops over
# other axes. What a step leaves in a cache of this size is evicted before the next step needs it.
IN_CACHE = 1 << 20
# So many values of the last axis are computed side by side, as a step waits for the one before it, if the values of a
# Map have at most this many operations: it is written out, and so is its adjoint, which may have four times as many.
TOGETHER, SIMPLE = 8, 18
# A Map of at most this many points is written out, and its equal operations are done once.
SMALL = 64
_CHEAP = (ADD, SUBTRACT, MULTIPLY, NEGATIVE)


def improved(block: Block, outputs: Iterable[Buffer]) -> Block:
    """Optimise a block; it computes the same outputs."""
    outputs = list(outputs)
    return interchanged(numbers_apart(in_chunks(distributed(sharing(without_dead(block, outputs)), outputs), outputs)))


# Equal values


def sharing(block: Block) -> Block:
    """Eliminate common subexpressions: a value that an earlier statement has stored is loaded, not computed again.

    Values inside a choice are not shared. What a choice excludes must contribute nothing to derivatives, however
    singular, and this works only within one expression.
    """
    stored: dict[tuple[tuple[Affine, ...], Element], Store] = {}
    done: Block = []
    for s in block:
        if isinstance(s, Map) and stored:
            s = replace(s, stores=[_shared(t, s, stored) for t in s.stores])
        elif parts(s):
            s = rebuilt(s, [sharing(part) for part in parts(s)])
        changed = writes_in([s])
        stored = {k: t for k, t in stored.items() if t.buffer not in changed and buffers_in([k[1]]).isdisjoint(changed)}
        if isinstance(s, Map) and len(s.stores) == 1 and _is_plain(s):
            (t,) = s.stores
            extents, value = _numbered(s.dims, t.value)
            if t.buffer not in buffers_in([t.value]):
                stored[extents, value] = Store(t.buffer, (), value)
        done.append(s)
    return done


def _is_plain(s: Map) -> bool:
    """Whether a Map stores the value of an operation in each element of a buffer at its own point."""
    (t,) = s.stores
    places = tuple(variable(name) for name, _ in s.dims)
    return bool(s.dims) and not t.adds and t.indices == places and t.value.dtype == t.buffer.dtype and (
        not isinstance(t.value.op, str) and not _chooses(t.value))  # fmt: skip


def _chooses(e: Element) -> bool:
    return any(not isinstance(x.op, str) and x.op.selects for x in topological([e]))


def _numbered(dims: Sequence[tuple[str, Affine]], e: Element) -> tuple[tuple[Affine, ...], Element]:
    """The extents of a box, and an expression whose variables are renamed by the position of their axis."""
    values: dict[str, Affine | int] = {name: variable(f"$e{k}") for k, (name, _) in enumerate(dims)}
    return tuple(n for _, n in dims), e.substitute(values)


def _shared(t: Store, s: Map, stored: dict[tuple[tuple[Affine, ...], Element], Store]) -> Store:
    """Return a store whose value loads what is already stored."""
    extents, value = _numbered(s.dims, t.value)
    found = [(e, x) for (n, e), x in stored.items() if n == extents]
    if not found or isinstance(value.op, str) or _chooses(value):
        return t
    inside = set(topological([value]))
    point = [variable(f"$e{k}") for k in range(len(s.dims))]
    values = {e: load(x.buffer, point) for e, x in found if e in inside}
    if not values:
        return t
    back: dict[str, Affine | int] = {f"$e{k}": variable(name) for k, (name, _) in enumerate(s.dims)}
    return Store(t.buffer, t.indices, replaced(value, values).substitute(back), t.adds)


# Numbers


def numbers_apart(block: Block) -> Block:
    """Compute a number that is the same at all points of a large Map before it, if it takes a division or a function.

    `y += a / b * x` has the partial `sum(g * x)` in `a / b`, and then the divisions of its adjoint are of numbers. In
    the Map each point would have its own.
    """
    return rewritten(block, lambda s: _with_numbers(s) if isinstance(s, Map) and _is_large(s) else [s])


def _is_large(m: Map) -> bool:
    return bool(m.dims) and (any(n.terms for _, n in m.dims) or math.prod(n.constant for _, n in m.dims) > SMALL)


def _with_numbers(m: Map) -> Block:
    names = {name for name, _ in m.dims}
    found = {e: None for t in m.stores if not _chooses(t.value) for e in _numbers(t.value, names)}
    known = {e: load(Buffer(fresh("number"), (), e.dtype), ()) for e in found}
    before: Block = [Map((), [Store(x.args[0], (), e)], m.place) for e, x in known.items()]
    return [*before, replace(m, stores=[replace(t, value=replaced(t.value, known)) for t in m.stores])]


def _numbers(e: Element, names: set[str]) -> list[Element]:
    """The largest subexpressions that do not vary, and are not of sums and products alone."""
    if isinstance(e.op, str):
        return []
    if e.variables().isdisjoint(names):
        costly = [x for x in topological([e]) if not isinstance(x.op, str) and x.op not in _CHEAP]
        return [e] if costly and e.dtype.kind == "f" else []
    return [x for a in e.args for x in _numbers(a, names)]


# The order of loops


def interchanged(block: Block, cache: int = IN_CACHE) -> Block:
    """Interchange loops: a loop along the memory of large arrays moves inside the loops over their other axes.

    `for k: map i, j: c[i, j, k] = f(c[i, j, k - 1])` visits all of `c` in each step, one element of each cache line. As
    `for i, j: for k` it finds what it needs in the cache. No statement may read what another `i` or `j` has written.
    """
    moved = [_inside_out(s) if isinstance(s, Repeat) and _is_along_memory(s, cache) else [s] for s in block]
    return [s for part in moved for s in part]


def _inside_out(s: Repeat) -> Block:
    maps = [m for m in s.body if isinstance(m, Map)]
    for extent in [n for _, n in maps[0].dims] if all(m.dims for m in maps) else []:
        chosen = [[name for name, n in m.dims if n == extent][:1] for m in maps]
        if not extent.variables() and all(chosen) and _is_apart(maps, [name for (name,) in chosen]):
            return _around(s, [(m, name) for m, (name,) in zip(maps, chosen, strict=True)], extent)
    return [s]


def _around(s: Repeat, maps: Sequence[tuple[Map, str]], extent: Affine) -> Block:
    """Loops over an axis of a loop's Maps, around the loop: over strips of the last axis, if the Maps are simple."""
    if extent.terms or any(len(m.dims) > 1 or _operations(m) > SIMPLE for m, _ in maps):
        return [_over(s, maps, affine(0), extent, 1)]
    whole = extent - extent.constant % TOGETHER
    strips = (affine(0), whole, TOGETHER), (whole, extent, 1)
    return [_over(s, maps, start, stop, width) for start, stop, width in strips if start != stop]


def _operations(m: Map) -> int:
    return len(topological([t.value for t in m.stores]))


def _over(s: Repeat, maps: Sequence[tuple[Map, str]], start: Affine, stop: Affine, width: int) -> Statement:
    """A loop over an axis of a loop's Maps, around the loop: each step has the Maps at so many values of the axis."""
    name = fresh("i")
    body: Block = [_at(m, own, variable(name), width) for m, own in maps]
    inner = replace(s, body=body)
    return Repeat(name, start, stop, width, _inside_out(inner) if width == 1 else [inner])


def _at(m: Map, name: str, value: Affine, width: int) -> Map:
    """A Map restricted to one value of an axis, or to so many from one on."""
    stores = [t.substitute({name: value if width == 1 else value + variable(name)}) for t in m.stores]
    dims = tuple((x, n if x != name else affine(width)) for x, n in m.dims if x != name or width > 1)
    return replace(m, dims=dims, stores=stores)


def _is_along_memory(s: Repeat, cache: int) -> bool:
    """Whether a loop moves along the last axis of arrays that are large in all, and contains only Maps."""
    maps = [m for m in s.body if isinstance(m, Map)]
    buffers = {
        b for m in maps for b, place in accesses(m.stores)
        if place and abs(place[-1].coefficient(s.variable)) == 1 and len(b.shape) > len(m.dims)
    }  # fmt: skip
    large = sum(b.size * b.dtype.itemsize for b in buffers) > cache
    return large and len(maps) == len(s.body)


def _is_apart(maps: Sequence[Map], names: Sequence[str]) -> bool:
    """Whether steps along an axis are independent: what is written at one value of it is used at no other value.

    The axis is named by each Map's variable.
    """
    changed = {t.buffer for m in maps for t in m.stores}
    axes: dict[Buffer, set[int]] = {}
    for m, name in zip(maps, names, strict=True):
        for b, place in accesses(m.stores):
            if b in changed:
                here = {k for k, i in enumerate(place) if i == variable(name)}
                axes[b] = axes.get(b, here) & here
        if any(type(a) is not str for _, place in accesses(m.stores) for i in place for a, _ in i.terms):
            return False
    return all(axes[b] for b in changed)
