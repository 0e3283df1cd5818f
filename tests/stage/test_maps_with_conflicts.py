"""Maps whose stores meet other stores' elements, or what other points read, in machine code and in plain Python."""

import numpy as np
import pytest
from region_execution import execute

from effgrad.primitives.elementwise import add, multiply
from effgrad.stage.loop.affine import Affine, variable
from effgrad.stage.loop.buffers import FLOAT, Buffer, constant, load
from effgrad.stage.loop.element import element
from effgrad.stage.loop.ir import Map, Pop, Push, Region, Stack, Store
from effgrad.stage.native import lowering
from effgrad.stage.native.executable import Executable

ROW, COLUMN, N = variable("i"), variable("j"), 5
ZERO, LAST = Affine(0), Affine(N - 1)
PLACES = {
    "own": (ROW, COLUMN), "turned": (COLUMN, ROW), "a row": (Affine(2), COLUMN), "a column": (ROW, Affine(3)),
    "a corner": (ZERO, ZERO),
}  # fmt: skip


def drawn(seed):
    """A Map over all elements of two matrices, whose stores set or add to elements of one of them, and a vector."""
    rng = np.random.default_rng(seed)
    g, p, s = Buffer("g", (N, N), FLOAT), Buffer("p", (N, N), FLOAT), Buffer("s", (N,), FLOAT)

    def value():
        read = [load(rng.choice([g, p]), PLACES[rng.choice(list(PLACES))]) for _ in range(2)]
        return element(add, element(multiply, *read), constant(float(rng.integers(3)), FLOAT))

    own = [Store(g, PLACES["own"], value())] if rng.random() < 0.7 else []
    adding = [(g, PLACES[name]) for name in PLACES] + [(s, (ROW,)), (s, (COLUMN,)), (s, (LAST,))]
    chosen = rng.choice(len(adding), rng.integers(1, 4), replace=False)
    stores = own + [Store(*adding[k], value(), adds=True) for k in chosen]
    rng.shuffle(stores)
    dims = ("i", Affine(N)), ("j", Affine(N))
    return Region([g, p, s], [g, s], [Map(dims, stores)])


def with_saves(seed):
    """Two drawn Maps: what the first overwrites is saved before it, and restored before the second, which reads it."""
    rng, stack = np.random.default_rng(seed), Stack()
    first = drawn(seed)
    (m,), (g, p, s) = first.block, first.inputs
    rows, columns = rng.integers(2, size=2)
    saved = [x for x in (g, p) if rng.random() < 0.7] or [g]
    dims = ("i", Affine(N - rows)), ("j", Affine(N - columns))
    own = (ROW + int(rows), COLUMN + int(columns))
    places = [own, (ROW + int(rows), COLUMN), (ROW, COLUMN), (COLUMN, ROW), (Affine(N - 1) - ROW, COLUMN), (ROW, ZERO)]

    def value():
        read = [load(rng.choice([g, p]), places[rng.integers(len(places))]) for _ in range(2)]
        return element(add, element(multiply, *read), constant(float(rng.integers(3)), FLOAT))

    h = Buffer("h", (N, N), FLOAT, cleared=True)
    stores = [Store(h, own, value()), Store(s, (ROW,), value(), adds=True), Store(g, (ROW, COLUMN), value(), adds=True)]
    kept = [stores[k] for k in sorted(rng.choice(3, rng.integers(1, 4), replace=False))]
    saves = [Push(stack, x, dims, own) for x in saved]
    back = [Pop(stack, x, dims, own) for x in reversed(saved)]
    block = [*saves, Map(dims, [t for t in m.stores if t.buffer is g] or m.stores), *back, Map(dims, kept)]
    return Region([g, p, s], [g, p, s, h], block)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("seed", range(300))
@pytest.mark.parametrize("make", [drawn, with_saves])
def test_random_maps(make, seed, monkeypatch):
    monkeypatch.setattr(lowering, "POINTS", 1)  # a Map is a loop nest
    monkeypatch.setattr(lowering, "POINTS_IN_MEMORY", 1)
    region = make(seed)
    arguments = [np.random.default_rng(seed).normal(size=b.shape) for b in region.inputs]
    for a, b in zip(Executable(region)(*arguments), execute(region, arguments), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13)
