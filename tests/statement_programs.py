"""Programs made at random over the forms of Python's statements and expressions, as texts.

`text(seed)` is a module with a function `f` of one number. Its numbers stay near one, it ends, and what it computes is
smooth between the switches of its conditions. Some of them raise, caught or not.
"""

import random

PRELUDE = """\
import contextlib
import functools
import math
import numpy as np


class Failure(Exception):
    def __init__(self, value):
        super().__init__("failure")
        self.value = value


class Point:
    scale = 0.5
    __array_ufunc__ = None
    __match_args__ = ("a", "b")

    def __init__(self, a, b=1.0):
        self.a, self.b = a, b
        self.kept = [a, b]

    @property
    def size(self):
        return math.sin(self.a * self.b)

    @size.setter
    def size(self, value):
        self.a = value * 0.5

    @classmethod
    def made(cls, value):
        return cls(value, math.cos(value))

    @staticmethod
    def half(value):
        return value * 0.5

    def __add__(self, other):
        return type(self)(math.tanh(self.a + (other.a if isinstance(other, Point) else other)), self.b)

    def __radd__(self, other):
        return self + other

    def __iadd__(self, other):
        self.a = math.sin(self.a + other)
        return self

    def __neg__(self):
        return type(self)(-self.a, self.b)

    def __lt__(self, other):
        return math.sin(self.a) < math.sin(other.a)

    def __getitem__(self, key):
        return math.tanh(self.kept[key])

    def __setitem__(self, key, value):
        self.kept[key] = math.sin(value)

    def __iter__(self):
        yield self.a
        yield math.cos(self.b)

    def __len__(self):
        return 2

    def __contains__(self, value):
        return self.a > value

    def __call__(self, value, *rest, by=1.0):
        return math.sin(self.a * value * by) + sum(rest)

    def __enter__(self):
        self.a = math.tanh(self.a)
        return self

    def __exit__(self, kind, error, traceback):
        self.b = math.sin(self.b)
        return kind is ZeroDivisionError

    def __await__(self):
        yield
        return math.cos(self.a)


class Deeper(Point):
    def __init__(self, a, b=0.3):
        super().__init__(a * 0.7, b)

    @property
    def size(self):
        return super().size + self.scale

    def __getattr__(self, name):
        if name.startswith("extra"):
            return math.sin(self.__dict__["a"])
        raise AttributeError(name)


def decorated(f):
    @functools.wraps(f)
    def inner(*args, **kwargs):
        return math.tanh(f(*args, **kwargs))
    return inner


@contextlib.contextmanager
def doubled(value):
    try:
        yield value * 2.0
    except Failure:
        pass


def steps(value, count=3):
    got = 0.0
    for i in range(count):
        got = (yield math.sin(value + i)) or 0.1
        value = value * 0.5 + got
    return value


def through(value):
    last = yield from steps(value, 2)
    yield last


def run(awaitable):
    iterator = awaitable.__await__() if hasattr(awaitable, "__await__") else awaitable
    while True:
        try:
            iterator.send(None)
        except StopIteration as stop:
            return stop.value


async def later(value):
    await Point(value)
    return math.sin(value)


class Gate:
    def __init__(self, value):
        self.value = value

    async def __aenter__(self):
        return math.tanh(self.value)

    async def __aexit__(self, *error):
        self.value = 0.0

    async def __aiter__(self):
        for i in range(2):
            yield self.value + i
"""


class Writer:
    """Writes a program; `names` hold numbers, `lists` lists of two numbers, `points` objects, `arrays` arrays of 3."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines, self.depth, self.count = [], 1, 0
        self.names, self.lists, self.points, self.arrays, self.functions = ["x"], [], [], [], []
        self.loops = 0
        self.budget = 24

    def pick(self, *options):
        return self.random.choice(options)

    def new(self, kind="v"):
        self.count += 1
        return f"{kind}{self.count}"

    def line(self, text):
        self.lines.append("    " * self.depth + text)

    # Expressions

    def number(self, depth=2):
        if depth <= 0:
            return self.pick(*self.names[-4:], *self.names, f"{self.random.uniform(0.2, 1.5):.2f}")
        e = lambda: self.number(depth - 1)  # noqa: E731
        forms = [
            lambda: f"({e()} + {e()})", lambda: f"({e()} - {e()})", lambda: f"({e()} * {e()})",
            lambda: f"({e()} / (2.0 + {e()} ** 2))", lambda: f"(-{e()})", lambda: f"math.sin({e()})",
            lambda: f"np.tanh({e()})", lambda: f"math.exp(-{e()} ** 2)", lambda: f"math.cos({e()})",
            lambda: f"({e()} if {self.condition(depth - 1)} else {e()})",
            lambda: f"(lambda t, k={e()}: t * k)({e()})", lambda: f"[{e()}, {e()}][{self.pick(0, 1, -1)}]",
            lambda: f"{{'a': {e()}, 'b': {e()}}}[{self.pick(repr('a'), repr('b'))}]",
            lambda: f"sum(t * {self.pick(*self.names)} for t in ({e()}, {e()}))",
            lambda: f"sum([t - s for t in ({e()}, 0.4) for s in (0.1, {self.pick(*self.names)}) if t < 5.0])",
            lambda: f"max({e()}, {e()})", lambda: f"min([{e()}, {e()}, 0.7])",
            lambda: f"sum({{k: v * 0.5 for k, v in zip('ab', ({e()}, {e()}))}}.values())",
            lambda: f"float(np.float64(0.5)) * {e()}", lambda: f"len(f'{{1.25:.1f}}') * 0.2 * {e()}",
            lambda: f"next(steps({e()}))", lambda: f"sum(through({e()})) * 0.3",
            lambda: f"Point({e()}, {e()}).size", lambda: f"Deeper({e()}).size", lambda: f"Deeper({e()}).extra",
            lambda: f"Point.made({e()}).a", lambda: f"Point.half({e()})", lambda: f"(Point({e()}) + {e()}).a",
            lambda: f"({e()} + Deeper({e()})).a", lambda: f"(-Point({e()})).a", lambda: f"Point({e()})[0]",
            lambda: f"Point({e()})({e()}, *[{e()}], by={e()})", lambda: f"sum(Point({e()}))",
            lambda: f"run(later({e()}))", lambda: f"functools.reduce(lambda p, q: p * 0.5 + q, [{e()}, {e()}, 0.2])",
            lambda: f"sum(map(math.sin, [{e()}, {e()}]))", lambda: f"sorted([{e()}, {e()}], key=lambda t: -t)[0]",
            lambda: f"np.sum(np.array([{e()}, {e()}]) * np.arange(2.0))", lambda: f"({e()} and {e()})",
            lambda: f"({e()} or {e()})", lambda: f"np.dot([{e()}, {e()}], np.ones(2)) * 0.5",
            lambda: f"abs({e()})", lambda: f"sum((*({e()}, {e()}), 0.1)) * 0.4",
            lambda: f"{e()} * ({self.condition(0)})", lambda: f"getattr(Point({e()}), 'size')",
        ]  # fmt: skip
        if self.lists:
            forms += [lambda: f"{self.pick(*self.lists)}[{self.pick(0, 1, -1)}]",
                      lambda: f"sum({self.pick(*self.lists)}[:2])"] * 2  # fmt: skip
        if self.points:
            p = self.pick(*self.points)
            forms += [lambda: f"{p}.{self.pick('a', 'b', 'size', 'kept[0]')}", lambda: f"{p}[{self.pick(0, 1)}]",
                      lambda: f"{p}({e()})", lambda: f"(0.1 if 0.2 in {p} else 0.6)"] * 2  # fmt: skip
        if self.arrays:
            a = self.pick(*self.arrays)
            forms += [lambda: f"{a}[{self.pick(0, 1, 2, -1)}]", lambda: f"np.sum({a} * {e()})", lambda: f"{a}[::-1][0]",
                      lambda: f"np.sum(({a} + {e()})[1:])", lambda: f"sum({a}) * 0.3",
                      lambda: f"{a}.mean()"] * 2  # fmt: skip
        if self.functions:
            forms += [lambda: self.called(e)] * 4
        return self.random.choice(forms)()

    def called(self, e):
        name, kind = self.random.choice(self.functions)
        if kind == "generator":
            return f"sum({name}({e()}))"
        return self.pick(
            f"{name}({e()})", f"{name}({e()}, {e()})", f"{name}(*[{e()}, {e()}])", f"{name}({e()}, k={e()})",
            f"{name}(**{{'a': {e()}, 'k': {e()}}})",
        )  # fmt: skip

    def condition(self, depth=1):
        e = lambda: self.number(depth)  # noqa: E731
        c = lambda: self.condition(depth - 1)  # noqa: E731
        simple = [lambda: f"{e()} < {e()}", lambda: f"{e()} >= {e()}", lambda: f"-2.0 < {e()} <= {e()} + 1.0",
                  lambda: f"Point({e()}) < Point({e()})", lambda: f"{e()} != 0.25",
                  lambda: f"{e()} is not None"]  # fmt: skip
        deep = [lambda: f"({c()} and {c()})", lambda: f"({c()} or {c()})", lambda: f"(not {c()})"]
        return self.random.choice(simple + (deep if depth > 0 else []))()

    # Statements

    def block(self, size=None):
        """A block of its own: names that it binds are not known after it."""
        kept = [list(part) for part in (self.names, self.lists, self.points, self.arrays, self.functions)]
        self.depth += 1
        before = len(self.lines)
        for _ in range(size or self.random.randint(1, 3)):
            self.statement()
        if len(self.lines) == before:
            self.line("pass")
        self.depth -= 1
        self.names, self.lists, self.points, self.arrays, self.functions = kept

    def statement(self):
        self.budget -= 1
        simple = [self.assign, self.assign, self.unpack, self.chain, self.augment, self.make_list, self.make_point,
                  self.make_array, self.write, self.item, self.walrus, self.delete, self.annotate,
                  self.check]  # fmt: skip
        compound = [self.if_, self.for_, self.while_, self.try_, self.with_, self.def_, self.class_, self.match_,
                    self.generator, self.async_, self.leave, self.nonlocal_]  # fmt: skip
        self.random.choice(simple if self.budget < 0 or self.depth > 3 else simple + compound)()

    def assign(self, value=None):
        name = self.pick(self.new(), *self.names[1:])
        self.line(f"{name} = {value or self.number(self.random.randint(1, 3))}")
        if name not in self.names:
            self.names.append(name)

    def unpack(self):
        a, b, c = self.new(), self.new(), self.new()
        self.line(self.pick(
            f"{a}, {b}, {c} = {self.number()}, {self.number()}, {self.number(1)}",
            f"{a}, ({b}, {c}) = {self.number()}, Point({self.number()}, {self.number(1)})",
            f"({a}, *{b}), {c} = [{self.number()}, {self.number()}, 0.1], {self.number()}; {b} = {b}[0]",
            f"[{a}, {b}], {c} = np.array([{self.number()}, {self.number()}]), {self.number()}",
        ))  # fmt: skip
        self.names += [a, b, c]

    def chain(self):
        a, b = self.new(), self.new()
        self.line(f"{a} = {b} = {self.number()}")
        self.names += [a, b]

    def augment(self):
        targets = self.names[1:] + [f"{name}[0]" for name in self.lists + self.arrays] + [f"{p}.a" for p in self.points]
        if targets:
            self.line(f"{self.pick(*targets)} {self.pick('+=', '-=', '*=')} {self.number(1)}")

    def make_list(self):
        name = self.new("l")
        self.line(f"{name} = [{self.number()}, {self.number()}]")
        self.lists.append(name)

    def make_point(self):
        name = self.new("p")
        self.line(f"{name} = {self.pick('Point', 'Deeper')}({self.number()}, {self.number(1)})")
        self.points.append(name)

    def make_array(self):
        name = self.new("a")
        made = ["np.zeros(3)", "np.linspace(0.1, 0.9, 3)", f"np.full(3, {self.number(1)})"]
        made.append("np.arange(6.0).reshape(2, 3)[1] * 0.1")
        self.line(f"{name} = {self.pick(*made, *[f'{a}[::-1]' for a in self.arrays])}")
        self.arrays.append(name)

    def write(self):
        if self.arrays:
            a = self.pick(*self.arrays)
            place, operator = self.pick("0", "1", "-1", "1:", "::2", "..."), self.pick("=", "+=", "*=")
            self.line(f"{a}[{place}] {operator} {self.number(1)}")

    def item(self):
        places = [f"{name}[1]" for name in self.lists] + [f"{p}.{part}" for p in self.points for part in ("b", "size")]
        places += [f"{p}[0]" for p in self.points]
        if places:
            self.line(f"{self.pick(*places)} = {self.number()}")

    def walrus(self):
        a, b = self.new(), self.new()
        self.line(f"{a} = ({b} := {self.number()}) * {b}")
        self.names += [a, b]

    def delete(self):
        name = self.new()
        self.line(f"{name} = {self.number(1)}; del {name}")
        if self.lists and self.random.random() < 0.3:
            self.line(f"{self.pick(*self.lists)}.append({self.number(1)})")

    def annotate(self):
        name = self.new()
        self.line(f"{name}: float = {self.number()}")
        self.names.append(name)

    def check(self):
        bound = self.pick("100.0", "100.0", "100.0", "0.3")
        self.line(f"assert abs({self.number(1)}) < {bound}, 'too large'")

    def leave(self):
        """Leave the function, a loop, or the program's right way."""
        ways = [f"return {self.number(1)}", f"raise Failure({self.number(1)})", "1 / 0", "[][1]", "{}['key']"]
        ways += ["break", "continue"] * (2 if self.loops else 0)
        self.line(f"if {self.condition()}:")
        self.line(f"    {self.pick(*ways)}")

    def if_(self):
        self.line(f"if {self.condition()}:")
        self.block()
        for _ in range(self.random.randint(0, 1)):
            self.line(f"elif {self.condition()}:")
            self.block()
        if self.random.random() < 0.6:
            self.line("else:")
            self.block()

    def in_loop(self, otherwise=0.3):
        self.loops += 1
        self.block()
        self.loops -= 1
        if self.random.random() < otherwise:
            self.line("else:")
            self.block(1)

    def for_(self):
        name, i = self.new(), self.new("i")
        kept, e = list(self.names), self.number
        target, values = self.random.choice([
            (i, f"range({self.pick(0, 1, 3)})"), (f"{i}, {name}", f"enumerate([{e()}, {e(1)}])"),
            (f"{name}, {i}", f"zip([{e()}, 0.2], (1, 2))"), (name, f"reversed([{e()}, 0.3])"),
            (name, f"np.array([0.1, {e(1)}])"), (name, f"through({e(1)})"), (name, f"Point({e(1)})"),
            (f"({i}, {name})", f"{{1: {e(1)}}}.items()"),
        ])  # fmt: skip
        self.line(f"for {target} in {values}:")
        self.names += [name] if name in target else []
        self.in_loop()
        self.names = kept

    def while_(self):
        count = self.new("n")
        self.line(f"{count} = 0")
        self.line(f"while {count} < {self.random.randint(1, 3)} and {self.condition(0)}:")
        self.line(f"    {count} += 1")
        self.in_loop()

    def try_(self):
        self.line("try:")
        self.block()
        if self.random.random() < 0.6:
            self.depth += 1
            self.leave()
            self.depth -= 1
        form = self.random.randint(0, 2)
        if form < 2:
            kinds = self.pick("Failure", "ZeroDivisionError", "(IndexError, KeyError)", "Exception")
            self.line(f"except {kinds} as error:")
            self.line(f"    {self.new()} = getattr(error, 'value', 0.5)")
            self.names.append(f"v{self.count}")
            self.block(1)
            self.names.pop()
            if self.random.random() < 0.3:
                self.line("    raise Failure(0.2) from error")
            if self.random.random() < 0.5:
                self.line("else:")
                self.block(1)
        if form > 0:
            self.line("finally:")
            self.block(1)

    def with_(self):
        name, other = self.new("p"), self.new()
        self.line(self.pick(
            f"with Point({self.number(1)}) as {name}:",
            f"with Deeper({self.number(1)}) as {name}, doubled({self.number(1)}) as {other}:",
        ))  # fmt: skip
        self.points.append(name)
        self.names += [other] if other in self.lines[-1] else []
        self.block()
        self.points.remove(name)
        self.names = [n for n in self.names if n != other]

    def inside(self, head, names, result):
        """A function's body: it sees the names around it, and returns a number."""
        kept, loops = list(self.names), self.loops
        self.line(head)
        self.names, self.loops = [*self.names, *names], 0
        self.names = [n for n in self.names if n not in ("self",)]
        # Names that the body binds would be its own everywhere in it: it only reads those around it.
        self.depth += 1
        for _ in range(self.random.randint(0, 2)):
            fresh = self.new()
            self.line(f"{fresh} = {self.number()}")
            self.names.append(fresh)
        self.line(f"{result} {self.number()}")
        self.depth -= 1
        self.names, self.loops = kept, loops

    def def_(self):
        name = self.new("f")
        if self.random.random() < 0.4:
            self.line("@decorated")
        head = self.pick(f"def {name}(a, k=0.5):", f"def {name}(a, k={self.number(1)}, *rest, z=0.1, **more):")
        self.inside(head, ["a", "k"], "return")
        self.functions.append((name, "function"))

    def nonlocal_(self):
        name, total = self.new("f"), self.new()
        self.line(f"{total} = {self.number(1)}")
        self.names.append(total)
        self.line(f"def {name}(a, k=0.5):")
        self.line(f"    nonlocal {total}")
        self.line(f"    {total} {self.pick('+=', '=', '*=')} {self.pick('a', 'a * k')} * 0.5")
        self.line(f"    return {total} + a")
        self.functions.append((name, "function"))

    def class_(self):
        name = self.new("C")
        self.line(f"class {name}({self.pick('Point', 'Deeper')}):")
        self.line(f"    scale = {self.number(1)}")
        self.depth += 1
        self.inside("def __init__(self, a, b=0.3):", ["a", "b"], "super().__init__(a, b); self.c =")
        self.inside("def __mul__(self, other):", ["other"], "return self.a * self.c +")
        self.depth -= 1
        point, value = self.new("p"), self.new()
        self.line(f"{point} = {name}({self.number()})")
        self.line(f"{value} = {point} * {self.number(1)} + {point}.c + {point}.scale")
        self.points.append(point)
        self.names.append(value)

    def match_(self):
        e = self.number
        subject = self.pick(f"({e()}, 2)", f"Point({e()}, 0.5)", f"{{'k': {e()}}}", e())
        self.line(f"match {subject}:")
        a, b = self.new(), self.new()
        for case in (f"[{a}, 2]", f"Point({a}, b={b})", f"{{'k': {a}}}", f"{a}"):
            guard = f" if {self.condition(0)}" if self.random.random() < 0.3 and case != a else ""
            self.line(f"    case {case}{guard}:")
            self.names.append(a)
            self.depth += 1
            self.block(1)
            self.depth -= 1
            self.names.remove(a)

    def generator(self):
        name = self.new("g")
        self.inside(f"def {name}(a, k=0.5):", ["a", "k"], self.pick("yield", "yield from steps(k, 2); yield"))
        self.functions.append((name, "generator"))

    def async_(self):
        name, value = self.new("f"), self.new()
        self.line(f"async def {name}(a):")
        self.line(f"    async with Gate({self.number(1)}) as gate:")
        self.line(f"        got = await later(a) + gate * {self.number(1)}")
        self.line(f"    async for part in Gate({self.number(1)}):")
        self.line("        got += part * 0.3")
        self.line(f"    return got + sum([part async for part in Gate(0.2)]) * await Point({self.number(1)})")
        self.line(f"{value} = run({name}({self.number(1)}))")
        self.names.append(value)


def text(seed):
    """The text of a module with a function `f`."""
    writer = Writer(seed)
    writer.lines.append("\n\ndef f(x):")
    for _ in range(writer.random.randint(3, 9)):
        writer.statement()
    parts = [*writer.names, *(f"sum({name}[:2])" for name in writer.lists)]
    parts += [f"np.sum({name})" for name in writer.arrays]
    parts += [f"{point}.a + {point}.b" for point in writer.points]
    terms = " + ".join(f"{0.3 + 0.1 * (k % 7):.1f} * ({part})" for k, part in enumerate(parts))
    writer.line(f"return math.tanh({terms})")
    return PRELUDE + "\n".join(writer.lines) + "\n"
