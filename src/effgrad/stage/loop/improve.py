"""Passes that optimise a captured block before it is differentiated: dead statements, common values, loop order."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from effgrad.stage.loop.activity import without_dead
from effgrad.stage.loop.affine import Affine, affine, fresh, variable
from effgrad.stage.loop.buffers import Buffer, Element, buffers_in, load, topological
from effgrad.stage.loop.element import replaced
from effgrad.stage.loop.ir import Block, Map, Repeat, Statement, Store, accesses, parts, rebuilt, writes_in

# If a loop over the innermost axis visits arrays of more bytes than this in all, it is moved inside the loops over
# other axes. What a step leaves in a cache of this size is evicted before the next step needs it.
IN_CACHE = 1 << 20


def improved(block: Block, outputs: Iterable[Buffer]) -> Block:
    """Optimise a block; it computes the same outputs."""
    return interchanged(sharing(without_dead(block, outputs)))


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


# The order of loops


def interchanged(block: Block, cache: int = IN_CACHE) -> Block:
    """Interchange loops: a loop along the memory of large arrays moves inside the loops over their other axes.

    `for k: map i, j: c[i, j, k] = f(c[i, j, k - 1])` visits all of `c` in each step, one element of each cache line. As
    `for i, j: for k` it finds what it needs in the cache. No statement may read what another `i` or `j` has written.
    """
    return [_inside_out(s) if isinstance(s, Repeat) and _is_along_memory(s, cache) else s for s in block]


def _inside_out(s: Repeat) -> Statement:
    maps = [m for m in s.body if isinstance(m, Map)]
    for extent in [n for _, n in maps[0].dims] if all(m.dims for m in maps) else []:
        chosen = [[name for name, n in m.dims if n == extent][:1] for m in maps]
        if extent.variables() or not all(chosen) or not _is_apart(maps, [name for (name,) in chosen]):
            continue
        name = fresh("i")
        body: Block = [_at(m, own, variable(name)) for m, (own,) in zip(maps, chosen, strict=True)]
        inner = _inside_out(Repeat(s.variable, s.start, s.stop, s.step, body, s.backwards))
        return Repeat(name, affine(0), extent, 1, [inner])
    return s


def _at(m: Map, name: str, value: Affine) -> Map:
    """A Map restricted to one value of an axis."""
    stores = [t.substitute({name: value}) for t in m.stores]
    return replace(m, dims=tuple(d for d in m.dims if d[0] != name), stores=stores)


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
