"""The terms and types of the language `lam`, and how they are written; `reading.py` has the concrete syntax.

Krawiec, Peyton Jones, Krishnaswami, Ellis, Eisenberg and Fitzgibbon 2022, section 2, figure 1.
"""

from fractions import Fraction

from effgrad.papers.syntax import Arrow as Arrow
from effgrad.papers.syntax import Base as Base
from effgrad.papers.syntax import Node, Variable
from effgrad.papers.syntax import Product as Product
from effgrad.papers.syntax import Type as Type
from effgrad.papers.syntax import power as power

# Types


class Sum(Type):
    left: Type
    right: Type
    form, level = "{:1} + {:2}", 1


class Vector(Type):
    item: Type
    form = "Vector {:3}"


class Map(Type):
    """A finite map from integers."""

    item: Type
    form = "Map {:3}"


class Monad(Type):
    """M A: a computation that may bind delta terms."""

    result: Type
    form = "M {:3}"


class Unknown(Type):
    """A type that inference has not found yet; in the type of a constant, a type that each use chooses."""

    name: str
    form = "{}"


R, Z, STRING = Base("R"), Base("Z"), Base("String")
DELTA = Base("Delta")


def dimension(type_: Type) -> int | None:
    """The number a of a type R^a; None for any other type."""
    if type_ == R:
        return 1
    rest = dimension(type_.right) if isinstance(type_, Product) and type_.left == R else None
    return None if rest is None else rest + 1


# Terms


# How strongly the operators bind. Application has level 4, and terms without an operator have higher levels.
INFIX = {"<": 1, "+": 2, "-": 2, "+Z": 2, "-Z": 2, "*": 3, "/": 3, "*Z": 3}


class Term(Node):
    pass


class Var(Term, Variable):
    pass


class Lam(Term):
    name: str
    body: Term
    annotation: Type | None = None
    scopes, level = {"body": ("name",)}, 0

    def text(self) -> str:
        binder = self.name if self.annotation is None else f"({self.name} : {self.annotation})"
        return f"\\{binder}. {self.body.written()}"


class App(Term):
    function: Term
    argument: Term
    form = "{:4} {:5}"

    def written(self, level: int = 0) -> str:
        """The text of an application, which may be that of an infix operator or of an array literal."""
        own, text = 4, ""
        match self:
            case App(Op("cons"), Pair()) if (items := _array(self)) is not None:
                return f"[{', '.join([item.written() for item in items])}]"
            case App(Op(name), Pair(first, second)) if name in INFIX:
                own = INFIX[name]
                text = f"{first.written(own if own > 1 else 2)} {name} {second.written(own + 1)}"
        text = text or self.text()
        return f"({text})" if own < level else text


class Let(Term):
    name: str
    bound: Term
    body: Term
    form, level = "let {} = {} in {}", 0
    scopes = {"body": ("name",)}


class Pair(Term):
    first: Term
    second: Term

    def text(self) -> str:
        rest = self.second.written()
        return f"({self.first.written()}, {rest[1:-1] if isinstance(self.second, Pair) else rest})"


class Fst(Term):
    pair: Term
    form, level = "fst {:5}", 4


class Snd(Term):
    pair: Term
    form, level = "snd {:5}", 4


class Inl(Term):
    content: Term
    form, level = "inl {:5}", 4


class Inr(Term):
    content: Term
    form, level = "inr {:5}", 4


class Case(Term):
    scrutinee: Term
    left: str
    left_body: Term
    right: str
    right_body: Term
    form, level = "case {} of inl {} -> {}, inr {} -> {}", 0
    scopes = {"left_body": ("left",), "right_body": ("right",)}


class Real(Term):
    value: Fraction | int

    def written(self, level: int = 0) -> str:
        text = _decimal(self.value)
        return f"({text})" if self.value < 0 and level > 3 else text


class Literal(Term):
    """A discrete literal: an integer or a string."""

    value: int | str

    def text(self) -> str:
        if isinstance(self.value, str):
            return f'"{self.value}"'
        return str(self.value) if self.value >= 0 else f"({self.value})"


class Op(Term):
    """A primitive function, or a constant of the delta terms."""

    name: str

    def text(self) -> str:
        return "[]" if self.name == "nil" else f"({self.name})" if self.name in INFIX else self.name


class Poly(Term):
    """A polytypic operation at a type, such as the scaling of all reals in a value."""

    name: str
    type: Type
    form = "{}[{}]"


class Pure(Term):
    content: Term
    form, level = "pure {:5}", 4


class Do(Term):
    """`do {name <- bound; rest}`; a longer list of statements is nested."""

    name: str
    bound: Term
    rest: Term
    form = "do {{{} <- {}; {}}}"
    scopes = {"rest": ("name",)}


def tuple_(*items: Term) -> Term:
    """(e1, ..., en): nested pairs to the right."""
    return items[0] if len(items) == 1 else Pair(items[0], tuple_(*items[1:]))


def apply(function: str, *arguments: Term) -> Term:
    """A constant applied to a tuple."""
    return App(Op(function), tuple_(*arguments))


def _array(term: Term) -> list[Term] | None:
    """The elements of an array literal; None for any other term."""
    items = []
    while isinstance(term, App):
        match term:
            case App(Op("cons"), Pair(first, rest)):
                items.append(first)
                term = rest
            case _:
                return None
    return items if term == Op("nil") else None


def _decimal(number: Fraction | int) -> str:
    """The text of a real literal that reads back as the same number."""
    value = Fraction(number)
    denominator = value.denominator
    for prime in (2, 5):
        while denominator % prime == 0:
            denominator //= prime
    if denominator != 1:
        return f"{value.numerator}/{value.denominator}r"
    digits = 0
    while (value * 10**digits).denominator != 1:
        digits += 1
    scaled = str(abs(value * 10 ** max(digits, 1))).rjust(max(digits, 1) + 1, "0")
    return f"{'-' if value < 0 else ''}{scaled[: -max(digits, 1)]}.{scaled[-max(digits, 1) :]}"
