"""The translation of `lam` to ordinary Python, with functions, tuples, `if` and `for`, as a user might write it.

`fused` becomes a checkpoint, so that checkpointing is tested too.
"""

from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from effgrad.modes.checkpoint import checkpoint
from effgrad.papers.lam import terms as t
from effgrad.papers.syntax import IllTyped
from effgrad.vocabulary import Object

_INFIX = {"+": "+", "-": "-", "*": "*", "/": "/", "+Z": "+", "-Z": "-", "*Z": "*"}
_FUNCTIONS = {name: f"np.{name}" for name in ("sin", "cos", "exp", "tanh", "log", "sqrt")}


def source(program: t.Term) -> str:
    """Return the text of a Python function `program` for a program of `lam`.

    >>> from effgrad.papers.lam import parse
    >>> print(source(parse("\\\\x. let y = x * x in if y < 1.0 then y else sin y")))
    def program(x):
        y = x * x
        if y < number(1, 1):
            _1 = y
        else:
            _1 = np.sin(y)
        return _1
    <BLANKLINE>
    """
    writer, renamed = _Writer(), program.renamed({}, _Distinct())
    assert isinstance(renamed, t.Lam)
    writer.define("program", renamed)
    return "\n".join(writer.lines) + "\n"


def compiled(
    program: t.Term, number: Callable[[int, int], object], part: Callable[..., object] = checkpoint
) -> Callable[[Object], Object]:
    """Return the function that `source` writes. `number` makes its literals, and `part` replaces `checkpoint`."""
    scope: dict[str, Object] = {"np": np, "number": number, "checkpoint": part}
    exec(source(program), scope)  # noqa: S102
    function: Callable[[Object], Object] = scope["program"]
    return function


def floating(numerator: int, denominator: int) -> float:
    return numerator / denominator


def exact(numerator: int, denominator: int) -> Fraction:
    return Fraction(numerator, denominator)


class _Distinct:
    """Gives each binding a distinct name, since the scope of a Python variable is a whole function."""

    def __init__(self) -> None:
        self.taken: Counter[str] = Counter()

    def __call__(self, name: str) -> str:
        # A name that begins with an underscore could clash with the names that the writer makes.
        base = f"p{name}" if name.startswith("_") else name
        self.taken[base] += 1
        return base if self.taken[base] == 1 else f"{base}_{self.taken[base]}"


class _Writer:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.indent = 0
        self.count = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def fresh(self) -> str:
        self.count += 1
        return f"_{self.count}"

    def block(self, head: str, write: Callable[[], None]) -> None:
        self.line(head)
        self.indent += 1
        write()
        self.indent -= 1

    def define(self, name: str, function: t.Lam) -> None:
        self.block(f"def {name}({function.name}):", lambda: self.line(f"return {self.expression(function.body)}"))

    def named(self, term: t.Term) -> str:
        """Return a name or a literal for a term, which may be written twice without being computed twice."""
        text = self.expression(term)
        if text.isidentifier() or isinstance(term, t.Real):
            return text
        name = self.fresh()
        self.line(f"{name} = {text}")
        return name

    def expression(self, term: t.Term) -> str:
        """Write the statements that a term needs, and return an expression for its value."""
        match term:
            case t.Var(name):
                return name
            case t.Real(value):
                return f"number({Fraction(value).numerator}, {Fraction(value).denominator})"
            case t.Literal(value):
                return repr(value)
            case t.Lam():
                name = self.fresh()
                self.define(name, term)
                return name
            case t.Let(name, bound, body):
                self.line(f"{name} = {self.expression(bound)}")
                return self.expression(body)
            case t.Pair(first, second):
                before = self.named(first)
                return f"({before}, {self.named(second)})"
            case t.Fst(pair):
                return f"{self.named(pair)}[0]"
            case t.Snd(pair):
                return f"{self.named(pair)}[1]"
            case t.Inl(content):
                return f'("inl", {self.named(content)})'
            case t.Inr(content):
                return f'("inr", {self.named(content)})'
            case t.Case(t.App(t.Op("<"), t.Pair(left, right)), _, then, _, otherwise):
                lower = self.named(left)
                return self.either(f"{lower} < {self.named(right)}", then, otherwise)
            case t.Case(scrutinee, left_name, left_body, right_name, right_body):
                chosen = self.named(scrutinee)
                held = t.Var(f"{chosen}[1]")
                one, other = t.Let(left_name, held, left_body), t.Let(right_name, held, right_body)
                return self.either(f'{chosen}[0] == "inl"', one, other)
            case t.App(function, argument):
                return self.application(function, argument)
        raise IllTyped(f"no Python is written for {term}", term.place)

    def either(self, condition: str, then: t.Term, otherwise: t.Term) -> str:
        result = self.fresh()
        self.block(f"if {condition}:", lambda: self.line(f"{result} = {self.expression(then)}"))
        self.block("else:", lambda: self.line(f"{result} = {self.expression(otherwise)}"))
        return result

    def application(self, function: t.Term, argument: t.Term) -> str:
        match function, argument:
            case t.Op(name), t.Pair(left, right) if name in _INFIX:
                one = self.named(left)
                return f"{one} {_INFIX[name]} {self.named(right)}"
            case t.Op("negate"), _:
                return f"-{self.named(argument)}"
            case t.Op("real"), _:
                return f"number({self.expression(argument)}, 1)"
            case t.Op("atan2"), t.Pair(left, right):
                one = self.named(left)
                return f"np.arctan2({one}, {self.named(right)})"
            case t.Op(name), _ if name in _FUNCTIONS:
                return f"{_FUNCTIONS[name]}({self.named(argument)})"
            case t.Op("fold"), t.Pair(step, t.Pair(start, t.App(t.Op("build"), t.Pair(count, element)))):
                return self.loop(step, start, count, element)
            case t.App(t.Poly("fused"), inner), _:
                called = self.named(inner)
                return f"checkpoint({called}, {self.named(argument)})"
            case t.Op(name), _:
                raise IllTyped(f"no Python is written for {name}", function.place)
        called = self.named(function)
        return f"{called}({self.named(argument)})"

    def loop(self, step: t.Term, start: t.Term, count: t.Term, element: t.Term) -> str:
        function, total = self.named(step), self.fresh()
        self.line(f"{total} = {self.expression(start)}")
        item, index = self.named(element), self.fresh()
        self.block(f"for {index} in range({self.expression(count)}):",
                   lambda: self.line(f"{total} = {function}(({total}, {item}({index})))"))  # fmt: skip
        return total
