"""Random programs whose loops make objects of a class in each step, give them several names, and change them."""

import random

import alias_programs

HELPERS = """\
__name__ = "object_programs"
import numpy as np
class Plain:
    def __init__(self, a, b):
        self.a, self.b = a, b
    def __add__(self, other):
        return type(self)(np.tanh(self.a + other.a), self.b + 0.5 * other.a)
    def __mul__(self, k):
        return type(self)(self.a * k, np.sin(self.b) * k)
    def moved(self, k):
        made = type(self)(self.a, self.b)
        made.a += k
        made.b = made.b * 0.9 + np.cos(made.a)
        return made
    def advance(self):
        self.a = np.sin(self.a + self.b)
    @property
    def size(self):
        return np.sqrt(self.a**2 + self.b**2 + 1.0)
class Child(Plain):
    def __init__(self, a, b):
        super().__init__(a, b)
        self.c = a * 0.5
    def advance(self):
        super().advance()
        self.b = self.b * 0.5 + self.c
class Pair:
    def __init__(self, first, second):
        self.first, self.second = first, second
"""
NAMES = ("p", "q", "r")


class Writer:
    """Writes statements at random."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.kind = self.random.choice(("Plain", "Child"))
        self.changes = self.random.random() < 0.4

    def name(self):
        return self.random.choice(NAMES)

    def number(self):
        n = self.name()
        return self.random.choice((f"{n}.a", f"{n}.b", f"{n}.size * 0.1", "s * 0.3", "0.25", "0.1 * k", "x[0]"))

    def made(self):
        """An expression of a new object, or of one that has a name."""
        n, m = self.name(), self.name()
        return self.random.choice((
            f"{self.kind}({self.number()}, {self.number()})", f"{n} + {m}", f"{n} * 0.7", f"{n}.moved({self.number()})",
            f"({n} + {m}).moved(0.1)", n, f"pair.first + {n}", "pair.second",
        ))  # fmt: skip

    def statement(self, depth):
        kinds = ["name"] * 5 + ["sum", "swap", "pair"] + ["if", "loop"] * (depth < 2) + ["change"] * 2 * self.changes
        match self.random.choice(kinds):
            case "name":
                return [f"{self.name()} = {self.made()}"]
            case "sum":
                return [f"s = np.sin(s + {self.number()})"]
            case "swap":
                return [f"p, q = q, {self.name()} * 0.9"]
            case "pair":
                return [f"pair = Pair({self.made()}, {self.made()})"]
            case "change":
                return [self.random.choice((f"{self.name()}.a = {self.number()}", f"{self.name()}.advance()"))]
            case "if":
                test = self.random.choice((f"{self.number()} > 0.2", "k % 2", "k > 3"))
                other = ["else:", *self.block(depth + 1)] if self.random.random() < 0.5 else []
                return [f"if {test}:", *self.block(depth + 1), *other]
            case "loop":
                return [f"for k in range({self.random.randrange(1, 4)}):", *self.block(depth + 1)]

    def block(self, depth):
        lines = [line for _ in range(self.random.randrange(1, 4)) for line in self.statement(depth)]
        return ["    " + line for line in lines]


def source(seed):
    """The text of a random program."""
    w = Writer(seed)
    body = [line for _ in range(w.random.randrange(2, 6)) for line in w.statement(0)]
    after = w.statement(2) if w.random.random() < 0.5 else []
    start = w.random.choice((f"{w.kind}(0.4, x[0])", "p"))
    lines = [
        f"p, s, k = {w.kind}(x[0], x[1]), x[2], 0", f"q = {start}", f"r = {w.kind}(x[3], 0.5)",
        f"pair = Pair({w.name()}, {w.kind}(0.1, 0.2))", "for k in range(45):",
        *["    " + line for line in body], *after,
        "return s + p.a * 2 + q.b * 3 + r.a * r.b + pair.first.a + pair.second.size",
    ]  # fmt: skip
    return "\n".join(["def f(x):", *["    " + line for line in lines]]) + "\n"


def program(seed):
    """A random program as a function with a source."""
    return alias_programs.defined(HELPERS + source(seed), f"<object program {seed}>")
