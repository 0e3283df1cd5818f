"""Maps whose stores meet other stores' elements, or what other points read, in machine code and in plain Python."""

import numpy as np
import pytest
from region_execution import execute

from effgrad.primitives.elementwise import add, multiply
from effgrad.stage.loop.affine import Affine, variable
from effgrad.stage.loop.buffers import FLOAT, Buffer, constant, load
from effgrad.stage.loop.element import element
from effgrad.stage.loop.ir import Map, Region, Store
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


@pytest.mark.thinned(4)
@pytest.mark.parametrize("seed", range(300))
def test_random_maps(seed, monkeypatch):
    monkeypatch.setattr(lowering, "POINTS", 1)  # a Map is a loop nest
    monkeypatch.setattr(lowering, "POINTS_IN_MEMORY", 1)
    region = drawn(seed)
    arguments = [np.random.default_rng(seed).normal(size=b.shape) for b in region.inputs]
    for a, b in zip(Executable(region)(*arguments), execute(region, arguments), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13)
