"""Move operations without machine code out of a region's Maps, into calls of NumPy on whole arrays.

`y[i] = 2 * gammaln(x[i])` becomes `a[i] = x[i]`, `b = gammaln(a)`, `y[i] = 2 * b[i]`. This is done after the region
was differentiated, so partials such as `psi` become calls too.
"""

from collections.abc import Callable
from dataclasses import replace

from effgrad.stage.loop.affine import NotCaptured, fresh, variable
from effgrad.stage.loop.buffers import Buffer, Element, load, topological
from effgrad.stage.loop.element import replaced
from effgrad.stage.loop.ir import UNWRITTEN, Apply, Block, Map, Region, Store, rewritten

Supported = Callable[[Element], bool]


def outlined(region: Region, supported: Supported) -> Region:
    """Return the region with a call of NumPy for each operation without machine code."""
    block = rewritten(region.block, lambda s: _map(s, supported) if isinstance(s, Map) else [s])
    return Region(region.inputs, region.outputs, block)


def _map(m: Map, supported: Supported) -> Block:
    calls = [e for e in topological([t.value for t in m.stores]) if not isinstance(e.op, str) and not supported(e)]
    if not calls:
        return [m]
    if any(n.terms for _, n in m.dims):
        raise NotCaptured(f"{calls[0].op.name}, which has no machine code, of an array whose length changes")
    before: Block = []
    known: dict[Element, Element] = {}
    for e in calls:
        arguments = [replaced(a, known) for a in e.args]
        inputs = tuple([_stored(a, m, before) for a in arguments])
        shape = tuple([n.constant for _, n in m.dims])
        result = Buffer(fresh(f"{e.op.name}_"), shape, e.dtype)
        before.append(Apply(e.op.function, inputs, result, e.op.name, m.place, UNWRITTEN))
        known[e] = load(result, [variable(name) for name, _ in m.dims])
    return [*before, replace(m, stores=[replace(t, value=replaced(t.value, known)) for t in m.stores])]


def _stored(e: Element, m: Map, before: Block) -> Buffer:
    """Append a Map that stores an expression's values at the points of a Map, and return the buffer."""
    buffer = Buffer(fresh("of_"), tuple([n.constant for _, n in m.dims]), e.dtype)
    before.append(Map(m.dims, [Store(buffer, tuple([variable(name) for name, _ in m.dims]), e)]))
    return buffer

