"""Random programs of loops over a vector, a matrix and a number, as source text.

They have what analyses of loops get wrong: statements that read what they overwrite, lazy values that are read after
their operands have changed, state that is only written in a loop, numbers and vectors that are carried, triangular
bounds, loops backwards, branches on values and on indices, `while`, `break` and `continue`.
"""

import linecache
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from effgrad.stage.loop.ir import While
from effgrad.stage.loop.schedule import Schedule

SIZE = 5


class Programs:
    """A generator of statements; `r` decides."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.lines = ["def f(x, A, s):", "    t = 0.1 * s", "    k = 0", "    u = np.zeros(5)", "    v = x[1:-1] * s"]
        self.temporaries = 0

    def number(self, indices: list[str]) -> str:
        r = self.r
        at = r.choice(indices) if indices else "0"
        return r.choice([
            lambda: r.choice(["s", "t", "w", "k * 0.1"]),
            lambda: f"x[{at}]",
            lambda: f"A[{at}, {r.choice(indices or ['1'])}]",
            lambda: f"u[{at}]",
            lambda: f"np.sin({self.number(indices)})",
            lambda: f"(0.5 + 0.1 * {at})",
            lambda: f"({self.number(indices)} {r.choice('+-*')} {self.number(indices)})",
            lambda: f"({self.number(indices)} / (2.0 + np.cos({self.number(indices)})))",
            lambda: f"np.sum({self.vector(indices)})",
            lambda: f"(x @ A[{at}])",
            lambda: f"max({self.number(indices)}, 0.2)",
        ])()  # fmt: skip

    def vector(self, indices: list[str]) -> str:
        """A vector of three elements."""
        r = self.r
        at = r.choice(indices) if indices else "0"
        part = r.choice(["1:-1", ":-2", "2:"])
        return r.choice([
            lambda: f"x[{part}]",
            lambda: f"u[{part}]",
            lambda: f"A[{at}, {part}]",
            lambda: f"A[{part}, {at}]",
            lambda: "v",
            lambda: f"np.tanh({self.vector(indices)})",
            lambda: f"({self.vector(indices)} {r.choice('+-*')} {self.vector(indices)})",
            lambda: f"({self.vector(indices)} * {self.number(indices)})",
            lambda: f"np.where({self.vector(indices)} > 0.1, {self.vector(indices)}, 0.3)",
            lambda: f"(A[1:-1, 1:-1] @ {self.vector(indices)})",
        ])()  # fmt: skip

    def statement(self, depth: int, indices: list[str]) -> list[str]:
        r, pad = self.r, "    " * depth
        at = r.choice(indices) if indices else "2"
        assigned = r.choice(["=", "+=", "-=", "*="])
        kind = r.randrange(17)
        if kind < 3 and depth < 4:
            return self.loop(depth, indices)
        if kind == 3:
            return [pad + f"x[1:-1] {assigned} 0.3 * np.sin({self.vector(indices)})"]
        if kind == 4:
            return [pad + f"A[{at}, 1:-1] {assigned} 0.3 * np.sin({self.vector(indices)})"]
        if kind == 5:
            return [pad + f"A[{at}, {r.choice(indices or ['1'])}] {assigned} 0.5 * np.cos({self.number(indices)})"]
        if kind == 6:
            return [pad + f"u[{at}] {assigned} np.sin({self.number(indices)})"]
        if kind == 7 and indices:
            return [pad + f"x[{at}] {r.choice(['=', '-='])} np.tanh(A[{at}, :{at}] @ x[:{at}]) * 0.5"]
        if kind == 8:
            return [pad + f"t = 0.5 * np.sin({self.number(indices)}) + 0.3 * t"]
        if kind == 9:  # read after what it was computed from has changed
            name = r.choice(["w", "v"])
            value = self.number(indices) if name == "w" else self.vector(indices)
            written = r.choice(["x[2:] = 0.5 * x[2:] * x[1:-1]", "t = t * t", "A[1:-1, 2] *= 0.5", "u[1] = t * x[0]"])
            used = f"x[0] = x[0] * 0.5 + {'w' if name == 'w' else 'np.sum(v)'} * 0.1"
            return [pad + f"{name} = 0.5 * np.sin({value})", pad + written, pad + used]
        if kind == 10:
            return self.branch(depth, indices)
        if kind == 11:
            return [pad + f"v = 0.5 * v + 0.2 * np.cos({self.vector(indices)})"]
        if kind == 12:
            return [pad + f"k = k + {r.choice(['1', '2'])}"]
        if kind == 13 and indices:
            return [pad + f"if {at} % 2 == 0:", pad + f"    t = t + 0.1 * {self.number(indices)}"]
        if kind == 14 and depth < 4:
            self.temporaries += 1
            n = f"n{self.temporaries}"
            return [pad + f"{n} = 0", pad + f"while {n} < 3 and t < 2.0:", *self.body(depth + 1, indices, 1),
                    pad + "    t = t + 0.4", pad + f"    {n} = {n} + 1"]  # fmt: skip
        if kind == 15:
            return [pad + "w, t = t, 0.5 * w"]
        return [pad + f"t = t + 0.1 * np.sum(np.sin({self.vector(indices)} + x[1:-1]))"]

    def branch(self, depth: int, indices: list[str]) -> list[str]:
        pad = "    " * depth
        test = f"{self.number(indices)} {self.r.choice(['>', '<=', '<'])} 0.1"
        then = self.body(depth + 1, indices, 1) if depth < 4 else [pad + "    t = 0.5 * t"]
        other = [pad + "else:", pad + f"    x[0] = 0.2 * np.cos({self.number(indices)})"]
        return [pad + f"if {test}:", *then, *(other if self.r.random() < 0.6 else [])]

    def loop(self, depth: int, indices: list[str]) -> list[str]:
        r, pad = self.r, "    " * depth
        name = "ijlm"[depth - 1]
        low, high = r.choice([("0", "5"), ("1", "4"), ("0", indices[-1]), (indices[-1], "5")] if indices else [
            ("0", "5"), ("1", "4")])  # fmt: skip
        head = f"range({high} - 1, {low} - 1, -1)" if r.random() < 0.3 else f"range({low}, {high})"
        jump = []
        if r.random() < 0.25:
            plain = not indices or low in "01" and high in "45"
            word = r.choice(["continue", "break"] if plain else ["continue"])
            jump = [pad + f"    if {self.number([*indices, name])} > 0.6:", pad + f"        {word}"]
        body = self.body(depth + 1, [*indices, name], 2)
        simple = all(b[len(pad) + 4] != " " for b in body)
        cut = r.randrange(len(body) + 1) if simple else 0
        return [pad + f"for {name} in {head}:", *body[:cut], *jump, *body[cut:]]

    def body(self, depth: int, indices: list[str], most: int) -> list[str]:
        return [line for _ in range(self.r.randint(1, most)) for line in self.statement(depth, indices)]

    def source(self) -> str:
        result = "    return np.sum(np.sin(x)) + np.sum(A * A) + t * t + 0.1 * w + np.sum(u * x) + k * s + np.sum(v)"
        self.lines.append("    w = 0.2 * s")
        return "\n".join([*self.lines, *self.loop(1, []), *self.body(1, [], 2), result]) + "\n"


def program(seed: int) -> tuple[Callable[..., Any], str]:
    """A random function of `x` (5), `A` (5, 5) and `s`, and its source."""
    return compiled(Programs(seed).source(), f"<loops {seed}>")


def compiled(source: str, name: str) -> tuple[Callable[..., Any], str]:
    """A function of that source, which is found as if it stood in a file."""
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    names: dict[str, Any] = {"np": np}
    exec(compile(source, name, "exec"), names)
    return names["f"], source


def arguments(seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Arguments for a random program."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=SIZE), 0.5 * rng.normal(size=(SIZE, SIZE)), 0.3


def copies(args: Any) -> Any:
    """The arguments in memory of their own."""
    return tuple(a.copy() if isinstance(a, np.ndarray) else a for a in args)


def seeds(first: int, few: int, many: int) -> list[Any]:
    """The seeds of random programs: a few, and many for exhaustive sweeps."""
    return [s if s < first + few else pytest.param(s, marks=pytest.mark.sweep) for s in range(first, first + many)]


def in_pairs(loop):
    """A schedule with a state for every two steps; of a `while`, how many steps are between two states."""
    if isinstance(loop, While):
        return 2
    if loop.start.terms or loop.stop.terms:
        return None
    return Schedule(1, len(range(loop.start.constant, loop.stop.constant, loop.step)) // 2, 2)
