"""Cotangents that are assigned instead of cleared and added to: drawn stencils beside the executor and eager runs."""

import linecache

import numpy as np
import pytest
from captured_regions import captured
from region_execution import execute

import effgrad
from effgrad.stage.loop.derive import Reversal
from effgrad.stage.loop.ir import Map, walk
from effgrad.stage.native import stencil_adjoints
from effgrad.stage.native.executable import Executable

N = 9


def part(rng, axes):
    """The slices of an inner box, for each axis its offset from the middle; most offsets are zero."""
    moved = [int(rng.choice([0, 0, 0, -1, 1])) for _ in range(axes)]
    return "[" + ", ".join({0: "1:-1", -1: ":-2", 1: "2:"}[m] for m in moved) + "]"


def edge(rng, axes):
    """A place at the edge, and its neighbour."""
    axis, side = rng.integers(axes), rng.choice(["0 1", "-1 -2", "1 2"])
    return ["[" + ", ".join(k if a == axis else ":" for a in range(axes)) + "]" for k in side.split()]


def statement(rng, axes):
    x, y, z = rng.choice(["a", "b", "c"], 3)
    inner = "[" + ", ".join(["1:-1"] * axes) + "]"
    terms = " + ".join(f"{w} * {y}{part(rng, axes)}" for w in rng.choice([0.3, -0.2, 0.15], rng.integers(2, 5)))
    first, second = edge(rng, axes)
    return str(rng.choice([
        f"{x}{inner} = {terms}", f"{x}{inner} = {terms}", f"{x}{inner} += {terms}",
        f"{x}{inner} = {terms} + 0.1 * np.sin({z}{part(rng, axes)})",
        f"{x}{inner} = 0.2 * {z}{inner} * {y}{part(rng, axes)}",
        f"{x} = {y}.copy()", f"{x}[...] = 0.5 * {y}", f"{x}{first} = {x}{second}", f"{x}{first} = 0.0",
        f"{x}{first} += {y}{second}", f"s = s + np.sum({x} * {y})",
    ]))  # fmt: skip


def program(seed):
    """A function of three arrays: stencils, copies and edges, in a loop that may have another one inside."""
    rng = np.random.default_rng(seed)
    axes = int(rng.integers(1, 4))
    lines = [statement(rng, axes) for _ in range(rng.integers(1, 5))]
    inside = [statement(rng, axes) for _ in range(rng.integers(1, 4))] if rng.random() < 0.4 else []
    steps = rng.choice(["range(5)", "range(6, 0, -2)", "range(2)", "range(1)"], p=[0.5, 0.3, 0.1, 0.1])
    text = ["def f(a, b, c):", "    a, b, c, s = a.copy(), b.copy(), c.copy(), 0.0", f"    for i in {steps}:"]
    text += [f"        {line}" for line in lines]
    text += ["        for j in range(3):", *[f"            {line}" for line in inside]] if inside else []
    text += ["    return s + np.sum(a * a + b * a + c * c * c)"]
    name = f"<stencils {seed}>"
    linecache.cache[name] = 1, None, [line + "\n" for line in text], name
    scope = {"np": np}
    exec(compile("\n".join(text), name, "exec"), scope)
    return scope["f"], [rng.uniform(-1, 1, (N, *[N + 1] * (axes - 1))) for _ in range(3)]


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(stencil_adjoints, "LEAST", 4)


def reverse(seed):
    f, arrays = program(seed)
    region = captured(f, *arrays)
    return f, arrays, Reversal(region, region.inputs).whole_region(region.inputs)


@pytest.mark.thinned(8)
@pytest.mark.parametrize("seed", range(400))
def test_drawn_stencils(seed, small):
    f, arrays, back = reverse(seed)
    expected = execute(back, [*arrays, 1.0])
    eager = effgrad.grad(f, (0, 1, 2))(*arrays)
    for found in execute(stencil_adjoints.gathered(back), [*arrays, 1.0]), Executable(back)(*arrays, 1.0):
        for got, want, slope in zip(found, expected, eager, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-11)
            np.testing.assert_allclose(got, slope, rtol=1e-9, atol=1e-9)


def test_many_of_the_drawn_stencils_are_assigned_and_many_are_not(small):
    regions = [reverse(seed)[2] for seed in range(60)]
    counts = [sum(isinstance(s, Map) for s in walk(r.block)) for r in regions]
    after = [sum(isinstance(s, Map) for s in walk(stencil_adjoints.gathered(r).block)) for r in regions]
    changed = sum(a != b for a, b in zip(counts, after, strict=True))
    assert 15 < changed < 55
