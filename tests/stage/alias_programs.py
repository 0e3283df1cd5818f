"""Random loop programs with aliases: arrays with two names, swaps, rows, writes by functions, carried integers.

`program(seed)` is a function of one vector. Its value depends on every array and number that it changes.
"""

import linecache
import random

import numpy as np

ARRAYS, NUMBERS, INTEGERS = ["a", "b", "c", "d"], ["s", "t"], ["k", "m"]
HELPERS = """\
import numpy as np
def change(x, k, y):
    x[k] = y * 0.7
def same(x):
    return x
def first_above(x, y, k):
    for q in range(6):
        if x[q] > y:
            return x[q] * 0.5
        x[k] = x[k] * 0.9
    return y * 0.3
"""


class Writer:
    """Writes one program; `loops` are the variables of the loops around the place that is written."""

    def __init__(self, seed):
        self.random, self.loops, self.depth, self.count = random.Random(seed), ["i"], 0, 0

    def of(self, *texts):
        """One of some texts, with @a, @x, @n, @v and @c replaced by an array, an index, a number and so on."""
        text = self.random.choice(texts)
        parts = {
            "@a": lambda: self.random.choice(ARRAYS), "@s": lambda: self.random.choice(NUMBERS), "@x": self.index,
            "@n": self.number, "@v": self.vector, "@c": self.condition,
        }  # fmt: skip
        for mark, write in parts.items():
            while mark in text:
                text = text.replace(mark, write(), 1)
        return text

    def deeper(self, shallow, deep):
        """One of the texts, without those that hold others where it is nested too deep."""
        self.depth += 1
        text = self.of(*(shallow if self.depth > 3 else shallow + deep))
        self.depth -= 1
        return text

    def index(self):
        inner = [f"{sign}{name} % 6" for name in self.loops for sign in ("", "-1 - ")]
        return self.random.choice(["k", "m", "0", "-1", "3", "k - 1", "(k + m) % 6", "-k", "5 - m", *inner])

    def number(self):
        return self.deeper(
            ["@s", "@a[@x]", "A[@x, @x]", "0.3", "v[i % 50]", "k * 0.1"],
            ["(@n * 0.5 + @n * 0.4)", "np.sin(@n)", "np.tanh(@n * @n)", "np.sum(@v) * 0.1", "max(@n, @n)",
             "(@n if @c else @n)", "np.max(@v)"],
        )  # fmt: skip

    def vector(self):
        return self.deeper(
            ["@a", "A[@x]", "A[:, @x]"],
            ["(@v * 0.5 + @v * 0.4)", "np.sin(@v)", "(@v * @n)", "np.where(@v > @n, @v, @v)", "@a[::-1]", "A.T[@x]",
             "np.roll(@a, 1)", "np.concatenate([@a[:k], @a[k:]])", "np.tanh(A @ @a)", "@a[[k, 0, 5, m, 2, 1]]",
             "same(@a)"],
        )  # fmt: skip

    def condition(self):
        inner = [f"{name} > 1" for name in self.loops]
        return self.deeper(
            ["s > t", "k == 2", "k < m", "i % 3 == 0", "not t > 0.2", "-0.5 < s < 0.5", "k in (1, 4)", *inner],
            ["@a[@x] > 0.1", "i % 2 and s > 0", "s > 0 or @a[k] > 0"],
        )

    def block(self, count, indent):
        return [line for _ in range(count) for line in self.statement(indent)]

    def statement(self, indent):
        if self.depth < 3 and self.random.random() < 0.25:
            self.depth += 1
            lines = self.compound(indent)
            self.depth -= 1
            return lines
        x, y = self.random.sample(ARRAYS, 2)
        return [" " * indent + self.of(
            "@a = @v", "@a = @v", "@a = @a", "@a[@x] = @n", "@a[@x] = @n", "@a[1:4] = 1.0 * @v[2:5]", "@a += @n * 0.3",
            "@a *= @n * 0.3", "@a[@x] += @n * 0.3", "A[@x] = 1.0 * @v", "A[@x, @x] = @n", "@s = @n", "@s += @n * 0.2",
            "k = (m + i + 1) % 6", "m = (k * 2 + 3) % 6", f"{x}, {y} = {y}, {x}", "change(@a, @x, @n)",
            "change(A[@x], @x, @n)", "np.add.at(@a, [k, m, k], @n * 0.1)", "@a[@a > @n] = @n", "A[:, @x] *= @n * 0.5",
            "k, m = m % 6, (k + m) % 6", "k, m = max(k, m) % 6, (7 - k) % 6", "@s = first_above(@a, @n, k)",
        )]  # fmt: skip

    def compound(self, indent):
        start, body = " " * indent, self.random.randrange(1, 4)
        if self.random.random() < 0.5:
            lines = [f"{start}if {self.condition()}:", *self.block(body, indent + 4)]
            return [*lines, f"{start}else:", *self.block(1, indent + 4)] if self.random.random() < 0.5 else lines
        name, self.count = f"j{self.count}", self.count + 1
        if self.random.random() < 0.3:
            head = [f"{start}{name} = 0", f"{start}while {name} < {self.of('3', 'm', 'k + 2')}:"]
            return [*head, f"{start}    {name} += 1", *self.block(body, indent + 4)]
        head = self.of("range(k)", "range(3)", "range(2, 7)", "range(m, -1, -1)", "range(i % 4)", "range(5, 0, -2)")
        self.loops.append(name)
        lines = [f"{start}for {name} in {head}:", *self.block(body, indent + 4)]
        if self.random.random() < 0.25:
            lines.append(f"{start}    if {self.condition()}: {self.of('break', 'continue')}")
        self.loops.pop()
        return lines


def source(seed):
    """The text of a random program."""
    writer = Writer(seed)
    steps = writer.random.choice([7, 20, 33, 41])
    lines = ["def f(v):", "    A, d = v[:36].reshape(6, 6) * 1.0, np.zeros(6)"]
    lines += ["    a, b, c = v[:18].reshape(3, 6) * 1.0", "    s, t, k, m = v[20], v[21] * 0.5, 1, 4"]
    lines += [f"    {writer.of('@a = @a', '@a = A[2]', 'pass')}", f"    for i in range({steps}):"]
    lines += writer.block(writer.random.randrange(3, 8), 8)
    total = "np.sum(A * A) * 0.1 + np.sum(a) + 2 * np.sum(b * b) + 3 * np.sum(np.sin(c)) + 5 * np.sum(d) + s * t"
    return "\n".join([*lines, f"    return {total} + s + k + 0.1 * m"]) + "\n"


def program(seed):
    """A random program as a function with a source."""
    return defined(HELPERS + source(seed), f"<alias program {seed}>")


def defined(text, name):
    """The function `f` of a text, with a source."""
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    names = {}
    exec(compile(text, name, "exec"), names)
    return names["f"]


POINT = np.random.default_rng(1).normal(size=100) * 0.5
