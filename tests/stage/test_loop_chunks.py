"""Loops that add up large arrays, in chunks: drawn programs beside NumPy's runs and eager gradients."""

import linecache

import numpy as np
import pytest
from captured_regions import captured
from drawn_loops import check_compiled

import effgrad
from effgrad.stage.loop import chunks
from effgrad.stage.loop.ir import Repeat, walk

N, STEPS = 23, 9
STATEMENTS = [
    "r[{p}] = np.sum(x[(x > 0.1 * i - 0.5) & (y < 0.4)])",
    "r[{p}] = np.mean(np.where(x < 0.1 * i, x * y, 0.5 * y))",
    "t = np.sum(np.sin(x) * q[{p}])\n        r[{p}] += t * np.cos(t)",
    "t = x @ y\n        q[{p}] = 0.3 * t + 0.1 * q[i]",
    "s = s + np.sum(x * q[{p}])",
    "t = np.sum(y * y) + {p}\n        u = 0.01 * np.sum(x * t)\n        r[i] = u * t",
    "x *= 0.9 + 0.01 * q[{p}]",
    "q[{p}] = 0.5 * np.sum(x[:20]) + r[{p}]",
    "m = np.max(x * q[{p}])\n        r[{p}] = r[{p}] * m",
    "v = v + 0.1 * np.sum(x * s)",
]


def program(seed):
    rng = np.random.default_rng(seed)
    body = [rng.choice(STATEMENTS).format(p=rng.choice(["i", "i", "i + 1"])) for _ in range(rng.integers(1, 4))]
    head = ["def f(x, y, q):", "    x, y, q, r = x.copy(), y.copy(), q.copy(), 0.0 * q", "    s, v, t = 0.1, 0.2, 0.0"]
    steps = rng.choice([f"range({STEPS})", f"range(1, {STEPS})", f"range({STEPS - 1}, -1, -1)"], p=[0.6, 0.3, 0.1])
    text = [*head, f"    for i in {steps}:", *[f"        {line}" for line in body], "    return x, q, r, s, v, t"]
    name = f"<chunks {seed}>"
    linecache.cache[name] = 1, None, "\n".join(text).splitlines(keepends=True), name
    scope = {"np": np}
    exec(compile("\n".join(text), name, "exec"), scope)
    return scope["f"]


def arguments():
    rng = np.random.default_rng(5)
    return rng.uniform(-1, 1, N), rng.uniform(-1, 1, N), rng.uniform(-1, 1, STEPS + 1)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(chunks, "CHUNK", 5)
    monkeypatch.setattr(chunks, "LARGE", 0)


@pytest.mark.thinned(6)
@pytest.mark.parametrize("seed", range(240))
def test_drawn_loops(seed, small):
    check_compiled(program(seed), *arguments())


def test_some_of_the_drawn_loops_are_in_chunks_and_many_are_not(small):
    blocks = [captured(program(seed), *arguments()).block for seed in range(60)]
    counts = [sum(isinstance(s, Repeat) and s.step == 5 for s in walk(block)) for block in blocks]
    assert 5 < sum(counts) < 40


def test_sums_over_parts_that_values_decide(small):
    """The sums of a sparse product have lengths that an array holds."""
    rows = np.concatenate([[0], np.cumsum(np.arange(60) % 4)])
    columns = np.arange(rows[-1]) * 7 % 11

    def f(values, x):
        y = np.empty(60)
        for i in range(60):
            y[i] = values[rows[i] : rows[i + 1]] @ x[columns[rows[i] : rows[i + 1]]]
        return np.sum(y * y)

    args = np.linspace(-1.0, 1.0, rows[-1]), np.linspace(0.5, 1.5, 11)
    value, slopes = effgrad.compile(effgrad.value_and_grad(f, (0, 1)))(*args)
    np.testing.assert_allclose(value, f(*args))
    for got, want in zip(slopes, effgrad.grad(f, (0, 1))(*args), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10)
