# ruff: noqa: F504, UP030, UP031, UP032 (the older forms are tested)
"""Texts that a program writes of its numbers, and reads back: by differences of the plain program, or refused."""

import ast
import collections
import contextlib
import csv
import dataclasses
import decimal
import io
import json
import logging
import re
import string
import tempfile
import textwrap

import numpy as np
import pytest

import effgrad
from effgrad import grad
from effgrad.errors import Detached, NotBatched
from effgrad.modes import Taped

POINT = np.array([0.7, -1.3, 0.25])


def by_list(x):
    text = str([x[0], 3.0, x[1]]).replace("np.float64(", "").replace(")", "")
    return sum(float(part) ** 2 for part in text.strip("[]").split(","))


def by_eval_of_lists(x):
    parts = [x.tolist()[0], x.tolist()[2]]
    program = "total(" + str(parts) + "," + str((4.0, 5)) + ")"
    return eval(program, {"total": lambda a, b: sum(p * p for p in a) * sum(b)})


def by_exec(x):
    names: dict = {}
    exec(f"a = {x[0]}\nb = a * {x[1]} - {2.5}\n", names)
    return names["b"] ** 2


def by_lines(x):
    lines = []
    for i, number in enumerate(x):
        lines.append("point %d: %r, %.17g" % (i, i, number))
    return sum(float(line.rsplit(" ", 1)[1]) ** 2 for line in "\n".join(lines).splitlines())


def of_three(read):
    return lambda x: read(*x.tolist())


READ = {
    "between spaces": of_three(lambda a, b, c: float(f" {a} ") * float(f"\t{b}\n")),
    "in fields": of_three(lambda a, b, c: sum(float(part) ** 2 for part in f"{a};{b};3;{c}".split(";"))),
    "joined": of_three(lambda a, b, c: sum(float(part) ** 3 for part in ",".join([str(a), "2", str(c)]).split(","))),
    "joined from a generator": of_three(lambda a, b, c: float("".join(str(part) for part in [a])) ** 2),
    "by format": of_three(lambda a, b, c: float("{1} {0}".format(a, b).split()[1]) ** 2),
    "by format with names": of_three(lambda a, b, c: float("{p!s:>9}|".format(p=a).split("|")[0]) ** 2),
    "by a pattern of two": of_three(lambda a, b, c: np.prod([float(p) for p in ("%s or %.17g" % (a, b)).split("or")])),
    "by a pattern of names": of_three(lambda a, b, c: float(("%(p)s" % {"p": a}).strip()) ** 2),
    "with another sign": of_three(lambda a, b, c: float("-" + str(a)) ** 3 + float(str(b)[1:]) ** 3),
    "equal numbers": of_three(lambda a, b, c: eval(f"[{a}, {a * 1}, {b}]")[1] ** 2),
    "eval of an expression": of_three(lambda a, b, c: eval(f"({a} + {b} * 2) ** 2 - {c}")),
    "eval beside a constant": of_three(lambda a, b, c: eval(f"0.7 * {a} ** 2")),
    "a list": by_list, "eval of lists": by_eval_of_lists, "exec": by_exec, "lines of a table": by_lines,
    "a dictionary": of_three(lambda a, b, c: eval(f"{ {'p': a, 'q': (b,)} }")["q"][0] ** 2),
    "a constant beside": of_three(lambda a, b, c: a * float(f"{b} 3.5".split()[1])),
    "a rounded number": of_three(lambda a, b, c: a * float(f"at {b / 3:.2f}".split()[1])),
    "after a letter": of_three(lambda a, b, c: float(f"x{a}"[1:]) ** 2),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_a_number_is_read_back_from_a_text(name):
    """Its derivative was 0 where the text had more than the number in it."""
    f, step = READ[name], 1e-5
    wanted = [(f(POINT + d) - f(POINT - d)) / (2 * step) for d in step * np.eye(3)]
    found = []
    np.testing.assert_allclose(grad(lambda x: found.append(f(x)) or found[0])(POINT), wanted, rtol=1e-8, atol=1e-8)


class Shown:
    def __init__(self, v):
        self.v = v

    def __str__(self):
        return "str %.3f" % self.v

    def __repr__(self):
        return f"repr {self.v:.2e}"

    def __float__(self):
        return float(2.0 * self.v)


class Repeated(Shown):
    __str__ = object.__str__


class Own(float):
    def __str__(self):
        return f"own {self.real}"


class Tagged(str):
    def __str__(self):
        return "tag " + str.__str__(self)


@dataclasses.dataclass
class Fields:
    a: float
    b: list
    c: int = dataclasses.field(default=3, repr=False)


def cyclic(a):
    items = [1, Shown(a)]
    items.append({2: (items,)})
    return items


def mistaken(pattern, values):
    try:
        return pattern % values
    except (TypeError, ValueError, LookupError) as error:
        return f"{type(error).__name__}: {error}"


WRITTEN = {
    "str by %": lambda a: "%s|%10s|%-12s|%.5s" % (Shown(a), Shown(a), Repeated(a), Own(a)),
    "repr by %": lambda a: "%r %a %s %s" % (Shown(a), Repeated(a), [Shown(a)], {"k": (Own(a),)}),
    "one value by %": lambda a: "%s" % Shown(a) + "%r" % Shown(a) + "%s" % [Shown(a)] + "%s" % Own(a),
    "names by %": lambda a: "%(a)s %(a)r %(a).2f" % {"a": Shown(a), "b": 1},
    "float by %": lambda a: "%.2f %e %d %5.1f%% %*.*f" % (Shown(a), Own(a), Own(a), a, 9, 2, a),
    "constants by %": lambda a: "%c%c %i %x %r %s %s %%" % (65, "b", 2.7, 255, b"a", None, {1}),
    "a str of the program's own class": lambda a: "%s %s" % (Tagged("a"), [Tagged("a")]) + f"{Tagged('b')}",
    "a list": lambda a: f"{[Shown(a)]} {(Repeated(a),)} {[a, [a]]} { {a: a} }",
    "a list in itself": lambda a: str(cyclic(a)),
    "a dataclass": lambda a: f"{Fields(a, [Shown(a)])} {[Fields(a, [])]}",
    "a set": lambda a: str({Shown(a)}) + repr(collections.deque([a])),
    "mistakes": lambda a: [
        mistaken("%d %s", (a,)), mistaken("%d", (a, 2)), mistaken("%y", a), mistaken("%(a)s", a), mistaken("a", {}),
        mistaken("%(a)s", {"b": a}), mistaken("%", a), mistaken("%.2f", "a"), mistaken("%*d", (a, 2)),
    ],
    "bytes": lambda a: b"%.3f %d %a" % (a, 3, [a]),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITTEN)
def test_values_are_written_as_the_plain_program_writes_them(name):
    """`%` wrote a number of the program's own class without its `__str__`; a `__str__` that formats was refused."""
    texts = []
    grad(lambda x: texts.append(WRITTEN[name](x[0])) or x[0])(POINT)
    assert texts == [WRITTEN[name](POINT[0])]


LOST = {
    "digits are missing": of_three(lambda a, b, c: float(f" {a:.1f} ") ** 2),
    "digits are cut off": of_three(lambda a, b, c: float(f"{a / 3} "[:6]) ** 2),
    "another digit beside": of_three(lambda a, b, c: float(f"1{a}") ** 2),
    "an exponent beside": of_three(lambda a, b, c: float(f"{a}e3") ** 2),
    "two equal numbers in pieces": of_three(lambda a, b, c: float(f"{a} {1 * a}".split()[0]) ** 2),
    "eval of missing digits": of_three(lambda a, b, c: eval(f"{a:.1f} * 2")),
    "an array of texts": of_three(lambda a, b, c: np.sum(np.array([str(a), "2"]).astype(float))),
    "an array of floats": of_three(lambda a, b, c: np.sum(np.array([[f"{a}"], ["2"]], dtype=float))),
    "the text of an array": lambda x: float(str(x).strip("[]").split()[0]) ** 2,
    "the text of a complex number": of_three(lambda a, b, c: abs(complex(str(a + 2j)))),
    "np.fromstring": of_three(lambda a, b, c: np.sum(np.fromstring(f"{a} {b}", sep=" "))),
    "np.loadtxt": of_three(lambda a, b, c: np.sum(np.loadtxt([f"{a} {b}", "1 2"]))),
    "json.loads": of_three(lambda a, b, c: json.loads(f"[{a}]")[0]),
    "literal_eval": of_three(lambda a, b, c: ast.literal_eval(f"[{a}]")[0]),
    "compile": of_three(lambda a, b, c: eval(compile(f"{a} * 2", "", "eval"))),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:string or file could not be read")
@pytest.mark.parametrize("name", LOST)
def test_a_number_that_cannot_be_read_back_is_refused(name):
    """Its derivative was 0."""
    LOST[name](POINT)
    with pytest.raises(Detached, match="is the text of a traced number"):
        grad(LOST[name])(POINT)


def printed(a):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        print(a)
    return out.getvalue()


def in_a_file(a):
    with tempfile.TemporaryFile("w+") as file:
        file.write(f"{a}")
        file.seek(0)
        return file.read()


def by_csv(a):
    file = io.StringIO()
    csv.writer(file).writerow([f"{a}"])
    return next(csv.reader([file.getvalue()]))[0]


PLAIN_STRINGS = {
    "io.StringIO": lambda a: float(io.StringIO(str(a)).read()),
    "a line of a file": lambda a: sum(float(line) for line in io.StringIO(f"{a}\n{a}\n")),
    "print": lambda a: float(printed(a)),
    "a file": lambda a: float(in_a_file(a)),
    "csv": lambda a: float(by_csv(a)),
    "re": lambda a: float(re.findall(r"[\d.]+", f"v={a}")[0]),
    "characters": lambda a: float("".join(list(f"{a}"))),
    "bytes": lambda a: float(f"{a}".encode()),
    "string.Template": lambda a: float(string.Template("$a").substitute(a=a)),
    "textwrap": lambda a: float(textwrap.dedent(f"  {a}")),
    "np.loadtxt": lambda a: np.sum(np.loadtxt(io.StringIO(f"{a} 2.5"))),
    "np.float64": lambda a: np.float64(io.StringIO(str(a)).read()),
    "complex": lambda a: complex(io.StringIO(str(a)).read()).real,
    "decimal": lambda a: float(decimal.Decimal(io.StringIO(str(a)).read())),
    "json.load": lambda a: json.load(io.StringIO(f"[{a}]"))[0],
    "eval": lambda a: eval(io.StringIO(f"{a} * 2").read()),
}  # fmt: skip


RUNS = {"grad": grad, "compiled": lambda f: effgrad.compile(grad(f)), "compiled value": effgrad.compile}


@pytest.mark.parametrize("derive", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("name", PLAIN_STRINGS)
def test_a_number_in_a_plain_string_is_refused(name, derive):
    """Its derivative was 0, and a compiled program gave the first call's value ever after."""
    f = of_three(lambda a, b, c: a * PLAIN_STRINGS[name](c))
    f(POINT)
    with pytest.raises(Detached, match="'0.25' was written for a traced number"):
        derive(f)(POINT)


def test_a_constant_is_read_from_a_plain_string():
    def f(x):
        print(x, f"{x:.1f}", file=io.StringIO())
        return x * float(io.StringIO("0.5").read()) * int(io.StringIO("3").read())

    assert grad(f)(0.25) == 1.5
    assert grad(f)(3.0) == 1.5
    grad(lambda x: x * len(f"{x}"))(0.5)
    assert grad(lambda x: x * float("0.5"))(0.5) == 0.5  # the numerals are those of one derivative


def test_numerals_of_a_batch_are_forgotten_with_it():
    """Numerals that `vmap` wrote stayed with the thread, and later constants with these digits were refused."""
    effgrad.vmap(lambda x: [f"{x}", x][1])(np.array([0.625, 0.75]))
    assert grad(lambda x: x * float(io.StringIO("0.625").read()))(2.0) == 0.625
    effgrad.hessian(lambda x: [f"{x[0]}", x[0] ** 2][1])(np.array([0.875, 0.75]))
    assert grad(lambda x: x * float(io.StringIO("0.875").read()))(2.0) == 0.875


def test_numerals_of_a_mode_that_was_entered_by_hand_are_forgotten():
    """Those of all later derivatives were added to them."""
    with Taped() as mode:
        f"{mode.variable(0.375)}"
    assert grad(lambda x: x * float(io.StringIO("0.375").read()))(2.0) == 0.375
    grad(lambda x: [f"{x}", x][1])(0.4375)
    assert grad(lambda x: x * float(io.StringIO("0.4375").read()))(2.0) == 0.4375


def test_texts_are_those_of_plain_numbers():
    def texts(x):
        a, b, _ = x.tolist()
        return [
            f"{a}, {b!s:>8} {[a, (b,)]} { {'k': a} } {7:03d}", "{} {:.2f} {n[0]}".format(a, b, n=[a]), str([a, None]),
            "%s|%5.1f|%d%%|%*.2f" % (a, b, 3, 9, a), "%s %s" % ([a], {"k": b}), ",".join(map(str, [a, b])), str((a,)),
            str(a) * 2, "é{}".format(a), repr([a, "t"]), f"{[a]!s:>30}", "%(u)s" % {"u": a, "v": b},
        ]  # fmt: skip

    found = []
    grad(lambda x: found.append(texts(x)) or x[0])(POINT)
    assert [str(text) for text in found[0]] == texts(POINT)


@pytest.mark.parametrize("kind", [float, np.float64, np.float32, np.array, lambda x: np.array(x, np.float32)])
def test_numbers_of_every_kind_are_written(kind):
    """A text of an array without axes raised a TypeError about sequences of integers."""

    def texts(a):
        return [f"{a}", str(a), f"{a:.3f}", "%s" % a, "{:8.2f}".format(a)]

    found = []
    assert grad(lambda x: found.append(texts(x)) or x * 2)(kind(0.1)) == 2
    assert [str(text) for text in found[0]] == texts(kind(0.1))


DECIDED = {
    "length": lambda x: x * len(f"{x}"),
    "equality": lambda x: x * (2 if f"{x:.1f}" == "0.5" else 3),
    "int": lambda x: x * int(f"{x:.0f}"),
    "float": lambda x: x * float(f"{x / 7:.2f}"),
    "a key": lambda x: {"0.5": 2.0}.get(str(x), 3.0) * x,
    "a part": lambda x: x * ("25" in str(x)),
    "truth": lambda x: x * 2 if str(x).strip("0.5") else x,
    "comparison of two": lambda x: x * (f"{x}" < f"{1 / x}"),
    "a prefix of a longer one": lambda x: x * f"{x} and {2}".startswith("0"),
    "printed only": lambda x: [f"{x:.3f}", x * 2][1],
}  # fmt: skip


@pytest.mark.parametrize("name", DECIDED)
def test_decisions_by_a_text_are_those_of_each_call(name):
    """A compiled function took the way of its first call, and a batch that of its own text."""
    f, points = DECIDED[name], np.array([0.5, 0.25, 0.15, 4.5])
    compiled, gradient = effgrad.compile(f), effgrad.compile(grad(f))
    for x in (*points.tolist(), *points):
        assert compiled(x) == f(x)
        np.testing.assert_allclose(gradient(x), f(x) / x)  # each is x times what the text decides
    try:
        found = effgrad.vmap(f)(points)
    except effgrad.EffgradError as error:
        assert name != "printed only" and type(error) in (NotBatched, Detached)
    else:
        np.testing.assert_array_equal(found, [f(x) for x in points])
    np.testing.assert_array_equal(effgrad.vmap(f)(np.full(3, 4.25)), f(np.float64(4.25)))


def test_a_long_text_is_made_in_linear_time():
    """The parts of a text that grew by 20,000 numbers were walked by recursion."""

    def f(x):
        text = ""
        for _ in range(20_000):
            text += f"{x} "
        return float(text.split()[0]) if len(text) < 0 else float(f"{x}") ** 2

    assert grad(f)(1.5) == 3.0


def test_a_pattern_that_is_a_text_itself_keeps_its_numbers():
    def f(x):
        pattern = f"{x} %s"
        return float((pattern % "a").split()[0]) ** 2

    assert grad(f)(1.5) == 3.0


def test_an_array_without_axes_has_a_text():
    """It was a TypeError of ours: NumPy's class of arrays makes none from a number."""
    compiled = effgrad.compile(lambda n, x: x * len(str(n)))
    assert [compiled(np.array(n), 2.0) for n in (3, 31)] == [2.0, 4.0]
    assert grad(lambda x: float(str(np.array(x))) ** 2)(1.5) == 3.0


def test_the_representation_of_a_number_is_that_of_the_plain_one():
    """It was `Traced(2.5)`, so that `eval` and `float` of it, and its length, were not those of the plain program."""

    def f(x):
        return eval(repr(x)) * 2 + float(f"{x!r}") ** 2 + len(f"{x!r:>9}{[x]!r}") * x

    compiled = effgrad.compile(f)
    for x in (3.0, 2.5, 0.125):
        slope = 2 + 2 * x + len(f"{x!r:>9}{[x]!r}")
        assert effgrad.value_and_grad(f)(x) == (f(x), slope)
        assert compiled(x) == f(x)
    assert grad(lambda x: np.sum(x) * len(repr(x)))(POINT)[0] == len(repr(POINT))


def test_a_logger_writes_what_it_writes_of_plain_numbers():
    """A message with `%.3f` was an error that logging printed and dropped; `%s` wrote `Traced(...)`."""
    logger, texts = logging.getLogger("a test of effgrad"), []
    logger.setLevel("INFO")
    logger.propagate = False

    def f(x):
        handler = logging.StreamHandler(out := io.StringIO())
        handler.setFormatter(logging.Formatter("%(filename)s %(funcName)s %(levelname)s %(message)s"))
        logger.addHandler(handler)
        logger.info("x = %s, %.3f, %r", x, x[0], [1, x[1]])
        logger.warning("%(a).2f", {"a": x[2]})
        logger.debug("%d", x[0])
        logger.log(logging.ERROR, f"{x[0]}", stacklevel=1)
        logger.removeHandler(handler)
        texts.append(out.getvalue())
        return np.sum(x) * out.getvalue().count("\n")

    np.testing.assert_array_equal([f(POINT), *grad(f)(POINT)], [3 * np.sum(POINT), 3, 3, 3])
    assert texts[0] == texts[1] and "test_texts.py f INFO x = [ 0.7  -1.3   0.25], 0.700" in texts[0]
    with pytest.raises(Detached, match="'0.7' was written for a traced number"):
        grad(lambda x: float((f(x), texts[-1].split()[-1])[1]))(POINT)


def test_after_the_derivative_a_text_is_a_plain_string():
    kept = []

    def f(x):
        kept.append(x)
        return np.sum(x * x)

    def outer(y):
        effgrad.grad(f)(y)
        assert type(repr(kept[-1])) is not str  # `y` is still traced
        return y

    effgrad.grad(f)(np.arange(3.0))
    effgrad.jvp(outer, (np.float64(0.3),), (np.float64(1.0),))
    assert [type(text) for x in kept for text in (repr(x), str(x), f"{x}")] == [str] * 6
