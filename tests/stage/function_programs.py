"""Random functions around loops, as source text: what loops do to the names and arrays around them.

Names are bound to other names' arrays, to views and to new arrays, in branches too; arrays are written to through
views; tuples are carried; loops go over ranges, arrays, `enumerate` and `zip`, stop early, return, or have an `else`.
"""

import random

import numpy as np


class Functions:
    """A generator of functions of two vectors, a matrix and a number; `r` decides."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)

    def number(self, indices: list[str], depth: int = 2) -> str:
        r, at = self.r, self.r.choice(indices or ["0", "1", "2", "3"])
        plain = ["s", "t", f"x[{at}]", f"y[{at}]", f"A[{at}, {r.choice(indices or ['1'])}]", "0.7", "k * 0.2",
                 f"x[-1 - {at}]", f"z[{at}]", "p[0]", "p[1]", "x[k % 4]", f"y[q[{at}]]", f"x[{at} - 2]"]  # fmt: skip
        if depth <= 0:
            return r.choice(plain)
        a, b = self.number(indices, depth - 1), self.number(indices, depth - 1)
        u, v, c = self.vector(indices, depth - 1), self.vector(indices, depth - 1), self.number(indices, 0)
        return r.choice([
            *plain, f"np.sin({a})", f"({a} {r.choice('+-*')} {b})", f"({a} / (1.5 + {c} ** 2))", f"np.sum({u})",
            f"({u} @ {v})", f"np.max({u})", f"min({a}, 0.3)", f"max({a}, {b}, 0.1)", f"abs({a})", f"h({a}, s)",
            f"({a} if {c} > 0.1 else {b})", f"np.mean({u})", f"np.sum({u}[{at}:k])", "(y[k - 1:] @ x[k - 1:])",
            f"(k < 4 and x[k] > 0.2) * {a}",
        ])  # fmt: skip

    def vector(self, indices: list[str], depth: int = 2) -> str:
        r, at = self.r, self.r.choice(indices or ["0", "1", "2", "3"])
        plain = ["x", "y", "z", f"A[{at}]", f"A[:, {at}]", "x[::-1]", "v"]
        if depth <= 0:
            return r.choice(plain)
        u, v = self.vector(indices, depth - 1), self.vector(indices, depth - 1)
        a, c = self.number(indices, depth - 1), self.number(indices, 0)
        return r.choice([
            *plain, f"np.tanh({u})", f"({u} {r.choice('+-*')} {v})", f"({a} * {u})", f"np.where({u} > 0.1, {v}, {c})",
            f"A @ {u}", f"np.concatenate([{u}[:2], {v}[2:]])", f"{u}[q]", "np.zeros(4)", f"np.cumsum({u})",
            f"np.sort({u})", f"h({u}, {c})", f"np.roll({u}, 1)", f"np.array([{c}, {a}, s, 0.5])", f"({u}).copy()",
            f"np.minimum({u}, 0.4)",
        ])  # fmt: skip

    def statement(self, depth: int, indices: list[str]) -> list[str]:
        r, pad = self.r, "    " * depth
        at, op = r.choice(indices or ["0", "1", "2", "3"]), r.choice(["=", "+=", "*=", "-="])
        number, vector = (lambda d=2: self.number(indices, d)), (lambda d=2: self.vector(indices, d))
        kind = r.randrange(22)
        if kind < 3 and depth < 4:
            return self.loop(depth, indices)
        if kind == 4 and depth < 4:
            other = [pad + "else:", *self.body(depth + 1, indices, 1)] if r.random() < 0.6 else []
            head = pad + f"if {number(1)} {r.choice(['<', '>=', '>'])} 0.2:"
            return [head, *self.body(depth + 1, indices, 2), *other]
        if kind == 5 and depth < 4:
            return [pad + "if k % 3 == 1:", *self.body(depth + 1, indices, 1)]
        lines = r.choice([
            lambda: [f"x[{at}] {op} 0.5 * np.sin({number()})"], lambda: [f"A[{at}] {op} 0.5 * np.sin({vector()})"],
            lambda: [f"A[:, {at}] {op} 0.5 * np.sin({vector()})"], lambda: [f"v = {vector()}"],
            lambda: [f"y = 0.5 * np.sin({vector()}) + 0.2 * y"], lambda: [f"t = 0.5 * np.sin({number()}) + 0.1 * t"],
            lambda: [f"v = np.sin({vector()})", f"v[{at}] = {number(1)}"], lambda: ["k += 1"],
            lambda: [f"s, t = 0.5 * t, np.cos({number()})"], lambda: ["y, v = v * 0.5, y"], lambda: ["v = y"],
            lambda: ["x, y = y, x"],
            lambda: [f"z {r.choice(['+=', '*=', '-='])} 0.5 * np.sin({vector()})"],
            lambda: [f"p = (p[1] * 0.5, np.sin({number(1)}))"],
            lambda: [f"row = A[{at}]", f"row[{r.choice('012')}] = {number(1)} * 0.5"],
            lambda: [f"x[{r.choice(['1:', '::2', ':2', ':-1'])}] *= 0.5"],
            lambda: ["w = np.zeros(4)", f"w[{at}] = {number(1)}", f"t = t * 0.2 + w @ {vector(1)}"],
            lambda: [f"x[q[1:3]] = 0.5 * np.sin({vector(1)})[:2]"],
            lambda: [f"t = t * 0.3 + np.sum(np.sin({vector()}))"],
        ])()  # fmt: skip
        return [pad + line for line in lines]

    def body(self, depth: int, indices: list[str], most: int) -> list[str]:
        return [line for _ in range(self.r.randint(1, most)) for line in self.statement(depth, indices)]

    def loop(self, depth: int, indices: list[str]) -> list[str]:
        r, pad, name = self.r, "    " * depth, "ijlm"[depth - 1]
        if r.random() < 0.12:
            lines = [f"for {name}, e in enumerate(x):", "    t = t * 0.5 + e"]
            return [*[pad + line for line in lines], *self.body(depth + 1, [*indices, name], 2)]
        if r.random() < 0.12:
            lines = [f"for e, {name} in zip(y, range(4)):", f"    t = t * 0.5 + e * {name}"]
            return [*[pad + line for line in lines], *self.body(depth + 1, [*indices, name], 2)]
        if r.random() < 0.1:
            head = [pad + f"{name} = 0", pad + f"while {name} < 3 and t < 5.0:"]
            return [*head, *self.body(depth + 1, indices, 2), pad + f"    {name} = {name} + 1"]
        last = [f"range({indices[-1]})", f"range({indices[-1]}, 4)"] if indices else []
        head = r.choice(["range(4)", "range(1, 4)", "range(3, -1, -1)", "range(0, 4, 2)", *last])
        jump = []
        if r.random() < 0.25:
            word = r.choice(["break", "continue", f"return s + {self.number([*indices, name], 1)}"])
            jump = [pad + f"    if {self.number([*indices, name], 1)} > 0.7:", pad + f"        {word}"]
        body = self.body(depth + 1, [*indices, name], 3)
        other = [pad + "else:", pad + "    t = t * 0.9"] if r.random() < 0.1 else []
        first = r.random() < 0.5
        return [pad + f"for {name} in {head}:", *(jump if first else []), *body, *([] if first else jump), *other]

    def source(self) -> str:
        head = ["q = np.array([2, 0, 3, 1])", "def h(a, b):", "    return a * b + np.sin(a)", "def f(x, y, A, s):",
                "    t = 0.3", "    k = 1", "    z = np.zeros(4)", "    v = x * 0.5", "    p = (s, 0.2)"]  # fmt: skip
        body = [*self.body(1, [], 2), *self.loop(1, []), *self.body(1, [], 2), *self.loop(1, []), *self.body(1, [], 1)]
        result = "np.sum(np.sin(x)) + np.sum(y * y) + np.sum(A * A) + t * t + s + k * t + np.sum(z * v) + p[0] * p[1]"
        return "\n".join([*head, *body, f"    return {result}"]) + "\n"


def arguments(seed: int) -> list[np.ndarray | float]:
    """Arguments for a random function."""
    rng = np.random.default_rng(seed)
    return [rng.normal(size=4), rng.normal(size=4), 0.5 * rng.normal(size=(4, 4)), 0.3]
