"""Inner loops with independent steps, as axes of Maps: drawn programs beside NumPy's runs and eager gradients."""

import linecache

import numpy as np
import pytest
from captured_regions import captured
from drawn_loops import check_compiled

from effgrad.stage.loop.ir import Repeat, walk

N = 12
STATEMENTS = [
    "{x}[{p}, {c}] {op} 0.1 * {y}[{p}, {d}]",
    "{x}[i, {c}] {op} 0.1 * ({y}[i, :i] @ {z}[:i, {d}])",
    "{x}[{c}, {p}] {op} 0.1 * {y}[{d}, {p}]",
    "t = {y}[:, {c}] @ {z}[:, {d}]\n            {x}[i, {c}] = 0.1 * t + v[j] / (2.0 + t * t)",
    "{x}[:, {c}] -= 0.1 * {y}[:, i] * {z}[i, {d}]",
    "v[{c}] {op} 0.1 * np.sum({y}[{p}, {d}])",
    "r[:] = {y}[:, {d}]\n            {x}[:, {c}] {op} 0.1 * r * r",
    "s = s + 0.1 * np.sum({y}[{p}, {d}])",
    "{x}[i, {p}] += 0.1 * {y}[i, {c}] * {z}[{p}, {d}]",
    "u[{p}] = u[{p}] - 0.1 * {y}[{p}, {d}] * v[j] + v[{p}]",
    "u[{p}] = 0.1 * {y}[{p}, {c}] + (u[{p}] - {z}[{p}, {d}] * v[i])",
]
RANGES = ["1, 11", "i, 11", "1, i", "i + 1, 11"]


def source(seed):
    """A program of two nested loops, whose steps depend on each other or not."""
    rng = np.random.default_rng(seed)

    def statement():
        names = dict(zip("xyz", rng.choice(["a", "b"], 3), strict=True))
        column = "j" if rng.random() < 0.85 else rng.choice(["j - 1", "j + 1", "i"])
        other = "j" if rng.random() < 0.75 else rng.choice(["j - 1", "j + 1", "i"])
        part, sign = rng.choice([":", "1:", ":i", "i:"]), rng.choice(["=", "+=", "*="], p=[0.3, 0.6, 0.1])
        return rng.choice(STATEMENTS).format(**names, c=column, d=other, p=part, op=sign)

    body = [statement() for _ in range(rng.integers(1, 4))]
    lines = [f"        for j in range({rng.choice(RANGES)}):", *["            " + line for line in body]]
    after = ["        v[1:] += 0.01 * r[1:]"] if rng.random() < 0.3 else []
    head = ["def f(a, b, v):", "    a, b, v, u, r, s = a.copy(), b.copy(), v.copy(), v.copy(), np.zeros(len(v)), 0.0"]
    return "\n".join([*head, f"    for i in range({N - 1}):", *lines, *after, "    return a, b, v, u, r, s"])


def program(seed):
    return function(source(seed))


def function(*lines):
    text = "\n".join(lines)
    name = f"<distributed {text}>"
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    scope = {"np": np}
    exec(compile(text, name, "exec"), scope)
    return scope["f"]


def arguments():
    rng = np.random.default_rng(3)
    return rng.uniform(-1, 1, (N, N)), rng.uniform(-1, 1, (N, N)), rng.uniform(-1, 1, N)


@pytest.mark.thinned(6)
@pytest.mark.parametrize("seed", range(240))
def test_drawn_loops(seed):
    check_compiled(program(seed), *arguments())


def test_many_of_the_drawn_loops_are_distributed_and_many_are_not():
    blocks = [captured(program(seed), *arguments()).block for seed in range(60)]
    counts = [sum(isinstance(s, Repeat) for s in walk(block)) for block in blocks]
    assert counts.count(1) > 5
    assert counts.count(2) > 10


def test_what_all_steps_add_is_a_sum_over_the_steps():
    def syrk(a, c, v):
        c = c.copy()
        for i in range(len(c)):
            c[i, : i + 1] *= 1.2
            for k in range(a.shape[1]):
                c[i, : i + 1] += 1.5 * a[i, k] * a[: i + 1, k]
        return c, np.sum(c * v)

    check_compiled(syrk, *arguments())
    assert sum(isinstance(s, Repeat) for s in walk(captured(syrk, *arguments()).block)) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "u[:i] += a[:i, j] * u[j]",  # a step reads what another one has added to
        "u[:i] = u[:i] + a[:i, j] * u[:i]",
        "u[:i] = a[:i, j] - u[:i]",
        "u[:i] += a[:i, j]\n            v[:i] += u[:i] * b[:i, j]",
        "u[:i] += a[:i, j]\n            u[0] = 0.5 * u[1]",
    ],
)
def test_sums_that_steps_use_are_no_sums_over_the_steps(statement):
    body = f"    for i in range({N}):\n        for j in range({N}):\n            {statement}"
    f = function("def f(a, b, v):", "    v, u = v.copy(), v.copy()", body, "    return a, b, v, u")
    check_compiled(f, *arguments())
    assert sum(isinstance(s, Repeat) for s in walk(captured(f, *arguments()).block)) == 2
