"""The terms and types of the language of 003, and how they are shown; `reading.py` has the concrete syntax.

Krawiec, Peyton Jones, Krishnaswami, Ellis, Eisenberg and Fitzgibbon 2022, section 2, figure 1.
"""

from dataclasses import dataclass
from fractions import Fraction

from effgrad.papers.syntax import Arrow as Arrow
from effgrad.papers.syntax import Base as Base
from effgrad.papers.syntax import Node, Variable
from effgrad.papers.syntax import Product as Product
from effgrad.papers.syntax import Type as Type
from effgrad.papers.syntax import power as power

# Types


@dataclass(frozen=True)
class Sum(Type):
    left: Type
    right: Type
    form, level = "{:1} + {:2}", 1


@dataclass(frozen=True)
class Vector(Type):
    item: Type
    form = "Vector {:3}"


@dataclass(frozen=True)
class Map(Type):
    """A finite map from integers."""

    item: Type
    form = "Map {:3}"


@dataclass(frozen=True)
class Monad(Type):
    """M A: a computation that may bind delta terms."""

    result: Type
    form = "M {:3}"


@dataclass(frozen=True)
class Unknown(Type):
    """A type that inference has still to find; in the type of a constant, one that each use chooses."""

    name: str
    form = "{}"


R, Z, STRING = Base("R"), Base("Z"), Base("String")
DELTA = Base("Delta")


def dimension(type_: Type) -> int | None:
    """The a of a type R^a; None for another type."""
    if type_ == R:
        return 1
    rest = dimension(type_.right) if isinstance(type_, Product) and type_.left == R else None
    return None if rest is None else rest + 1


# Terms


@dataclass(frozen=True)
class Term(Node):
    def __str__(self) -> str:
        return show(self)


@dataclass(frozen=True)
class Var(Term, Variable):
    pass


@dataclass(frozen=True)
class Lam(Term):
    name: str
    body: Term
    annotation: Type | None = None
    scopes = {"body": ("name",)}


@dataclass(frozen=True)
class App(Term):
    function: Term
    argument: Term


@dataclass(frozen=True)
class Let(Term):
    name: str
    bound: Term
    body: Term
    scopes = {"body": ("name",)}


@dataclass(frozen=True)
class Pair(Term):
    first: Term
    second: Term


@dataclass(frozen=True)
class Fst(Term):
    pair: Term


@dataclass(frozen=True)
class Snd(Term):
    pair: Term


@dataclass(frozen=True)
class Inl(Term):
    content: Term


@dataclass(frozen=True)
class Inr(Term):
    content: Term


@dataclass(frozen=True)
class Case(Term):
    scrutinee: Term
    left: str
    left_body: Term
    right: str
    right_body: Term
    scopes = {"left_body": ("left",), "right_body": ("right",)}


@dataclass(frozen=True)
class Real(Term):
    value: Fraction | int


@dataclass(frozen=True)
class Literal(Term):
    """A discrete literal: an integer or a string."""

    value: int | str


@dataclass(frozen=True)
class Op(Term):
    """A primitive function, or a constant of the delta terms."""

    name: str


@dataclass(frozen=True)
class Poly(Term):
    """A polytypic operation at a type, such as the scaling of all reals in a value."""

    name: str
    type: Type


@dataclass(frozen=True)
class Pure(Term):
    content: Term


@dataclass(frozen=True)
class Do(Term):
    """`do {name <- bound; rest}`; a longer list of statements is nested."""

    name: str
    bound: Term
    rest: Term
    scopes = {"rest": ("name",)}


def tuple_(*items: Term) -> Term:
    """(e1, ..., en): nested pairs to the right."""
    return items[0] if len(items) == 1 else Pair(items[0], tuple_(*items[1:]))


def apply(function: str, *arguments: Term) -> Term:
    """A constant applied to a tuple."""
    return App(Op(function), tuple_(*arguments))


# How terms are shown

INFIX = {"+": 2, "-": 2, "+Z": 2, "-Z": 2, "*": 3, "/": 3, "*Z": 3, "<": 1}


def show(term: Term, level: int = 0) -> str:
    """A term in the concrete syntax; parentheses where it stands at a higher level of binding."""

    def wrap(text: str, own: int) -> str:
        return f"({text})" if own < level else text

    match term:
        case App() | Pair():
            return _together(term, level)
        case Op("nil"):
            return "[]"
        case Var(name) | Op(name):
            return name if name not in INFIX else f"({name})"
        case Poly(name, type_):
            return f"{name}[{type_}]"
        case Real(value):
            return _decimal(value) if value >= 0 else wrap(_decimal(value), 3)
        case Literal(value):
            return f'"{value}"' if isinstance(value, str) else str(value) if value >= 0 else f"({value})"
        case Lam() | Let() | Case():
            return wrap(_binding(term), 0)
        case Do(name, bound, rest):
            return f"do {{{name} <- {show(bound)}; {show(rest)}}}"
    (content,) = term.parts()
    return wrap(f"{type(term).__name__.lower()} {show(content, 5)}", 4)


def _binding(term: Lam | Let | Case) -> str:
    """A term that binds a name in what follows to the right."""
    match term:
        case Lam(name, body, annotation):
            binder = name if annotation is None else f"({name} : {annotation})"
            return f"\\{binder}. {show(body)}"
        case Let(name, bound, body):
            return f"let {name} = {show(bound)} in {show(body)}"
        case Case(scrutinee, left, left_body, right, right_body):
            branches = f"inl {left} -> {show(left_body)}, inr {right} -> {show(right_body)}"
            return f"case {show(scrutinee)} of {branches}"


def _together(term: App | Pair, level: int) -> str:
    """A pair, an application, or what is written for one: an operator between its arguments, or an array literal."""
    match term:
        case App(Op("cons"), Pair()) if (items := _array(term)) is not None:
            return f"[{', '.join(show(item) for item in items)}]"
        case App(Op(name), Pair(first, second)) if name in INFIX:
            own = INFIX[name]
            text = f"{show(first, own if own > 1 else 2)} {name} {show(second, own + 1)}"
        case App(function, argument):
            own, text = 4, f"{show(function, 4)} {show(argument, 5)}"
        case Pair(first, second):
            after = show(second)
            return f"({show(first)}, {after[1:-1] if isinstance(second, Pair) else after})"
    return f"({text})" if own < level else text


def _array(term: Term) -> list[Term] | None:
    """The elements of an array literal; None for another term."""
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
    """A real literal that reads back as the same number."""
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
