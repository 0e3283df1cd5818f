"""MAM and EFF: their values, computations and handlers, substitution, and how they are shown.

The concrete syntax is in `reading.py`, which says what each form is. Sigal 2024, section 7.2, figures 7.3, 7.5, 7.10,
7.12, 7.19 and 7.21, after Forster, Kammar, Lindley and Pretnar 2019.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from effgrad.papers.eff.type_terms import Base, ComputationType, Effect, Operations, ValueType
from effgrad.papers.expressions import Expression, shown
from effgrad.papers.syntax import Node, Variable


@dataclass(frozen=True)
class Term(Node):
    def __str__(self) -> str:
        return show(self)


@dataclass(frozen=True)
class Var(Term, Variable):
    pass


@dataclass(frozen=True)
class Unit(Term):
    pass


@dataclass(frozen=True)
class Pair(Term):
    first: Term
    second: Term


@dataclass(frozen=True)
class Inj(Term):
    type: ValueType
    label: str
    content: Term


@dataclass(frozen=True)
class Thunk(Term):
    """A suspended computation; the checker fills in the effect where the program leaves it out."""

    body: Term
    effect: Effect | None = None


@dataclass(frozen=True)
class Constant(Term):
    """A base constant: a real, an integer, or a smooth function."""

    type: Base
    value: Any


@dataclass(frozen=True)
class Smooth:
    """A constant of a type Op_n: an expression of n arguments."""

    names: tuple[str, ...]
    expression: Expression

    def __str__(self) -> str:
        return f"op[{', '.join(self.names)}. {shown(self.expression, self.names)}]"


@dataclass(frozen=True)
class Location(Term):
    """A reference, by its number; only a running program has some."""

    number: int
    item: ValueType


@dataclass(frozen=True)
class Split(Term):
    """`case V of (x, y) -> M`."""

    pair: Term
    first: str
    second: str
    body: Term
    scopes = {"body": ("first", "second")}


@dataclass(frozen=True)
class Branch(Term):
    label: str
    name: str
    body: Term
    scopes = {"body": ("name",)}


@dataclass(frozen=True)
class Case(Term):
    scrutinee: Term
    branches: tuple[Branch, ...]


@dataclass(frozen=True)
class Force(Term):
    thunk: Term


@dataclass(frozen=True)
class Return(Term):
    value: Term


@dataclass(frozen=True)
class To(Term):
    """`x <- M; N`."""

    name: str
    first: Term
    rest: Term
    scopes = {"rest": ("name",)}


@dataclass(frozen=True)
class Lam(Term):
    name: str
    type: ValueType
    body: Term
    scopes = {"body": ("name",)}


@dataclass(frozen=True)
class App(Term):
    function: Term
    argument: Term


@dataclass(frozen=True)
class Choice(Term):
    """`<M, N>`."""

    left: Term
    right: Term


@dataclass(frozen=True)
class Prj(Term):
    index: int
    choice: Term


@dataclass(frozen=True)
class Call(Term):
    """An operation, or a built-in function, with its parameter."""

    name: str
    parameter: Term


# What a program does with the store: make a reference, read one, and write a pair of a reference and a value.
STORE = ("ref", "read", "write")


@dataclass(frozen=True)
class Access(Term):
    """`ref V`, `read V` or `write (V, W)`."""

    name: str
    parameter: Term


@dataclass(frozen=True)
class Recursive(Term):
    """`rec (f : C). M`: M, in which f is the suspended whole; the checker fills in the effect."""

    name: str
    type: ComputationType
    body: Term
    effect: Effect | None = None
    scopes = {"body": ("name",)}


@dataclass(frozen=True)
class Clause(Term):
    operation: str
    parameter: str
    continuation: str
    body: Term
    scopes = {"body": ("parameter", "continuation")}


@dataclass(frozen=True)
class Handler(Term):
    """Its return clause, its other clauses, and the definition it comes from, by which it is shown."""

    name: str
    type: ValueType
    body: Term
    clauses: tuple[Clause, ...]
    origin: str | None = field(default=None, compare=False)
    scopes = {"body": ("name",)}


@dataclass(frozen=True)
class Handle(Term):
    """A shallow handler takes one operation. The effect is that of the context, which the checker fills in."""

    body: Term
    handler: Term
    effect: Effect | None = None
    shallow: bool = False


@dataclass(frozen=True)
class Use(Term):
    """A definition with types and operations for its parameters; gone once a program is read."""

    name: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Program:
    """A computation, and the operations that it and its types speak of."""

    operations: Operations
    body: Term


def substituted(term: Any, values: Mapping[str, Term]) -> Any:
    """A term with closed values for variables: since they are closed, no binder can capture anything."""
    if type(term) is tuple:
        return tuple([substituted(part, values) for part in term])
    if not isinstance(term, Term) or term.free.isdisjoint(values):
        return term
    if isinstance(term, Var):
        return values[term.name]
    # A copy with some fields changed: what dataclasses do for frozen classes takes twice as long.
    result = object.__new__(type(term))
    new = result.__dict__
    for name, part in term.__dict__.items():
        if isinstance(part, Term) or type(part) is tuple:
            bound = term.bound_in(name) if name in term.scopes else ()
            part = substituted(part, {n: v for n, v in values.items() if n not in bound} if bound else values)
        new[name] = part
    new["free"] = term.free.difference(values)
    return result


# How terms are shown


def show(term: Any) -> str:
    """A term in the concrete syntax: a value, a computation, or a part of one."""
    text = _value(term)
    text = _computation(term) if text is None else text
    return _definition(term) if text is None else text


def _value(term: Any) -> str | None:
    """The text of a value, or None."""
    match term:
        case Var(name):
            return name
        case Unit():
            return "()"
        case Pair(first, second):
            return f"({show(first)}, {show(second)})"
        case Inj(type_, label, content):
            return f"inj[{type_}] {label} {_atom(content)}"
        case Thunk(body, effect):
            return f"{{{'' if effect is None else f'[{_listed(effect)}] '}{show(body)}}}"
        case Constant(_, value):
            text = str(float(value)) if isinstance(value, Fraction) else str(value)
            return f"({text})" if text.startswith("-") else text
        case Location(number):
            return f"l{number}"
    return None


def _computation(term: Any) -> str | None:
    """The text of a computation, or None."""
    match term:
        case Split(pair, first, second, body):
            return f"case {show(pair)} of ({first}, {second}) -> {show(body)}"
        case Case(scrutinee, branches):
            return f"case {show(scrutinee)} of {{{' | '.join(map(show, branches))}}}"
        case Force(thunk):
            return f"{_atom(thunk)}!"
        case Return(value):
            return f"return {_atom(value)}"
        case To(name, first, rest):
            return f"{name} <- {_head(first)}; {show(rest)}"
        case Lam(name, type_, body):
            return f"\\({name} : {type_}). {show(body)}"
        case App(function, argument):
            return f"{_head(function)} {_atom(argument)}"
        case Choice(left, right):
            return f"<{show(left)}, {show(right)}>"
        case Prj(index, choice):
            return f"prj {index} {f'({show(choice)})' if isinstance(choice, App) else _head(choice)}"
        case Call(name, parameter) | Access(name, parameter):
            return f"{name} {_atom(parameter)}"
        case Recursive(name, type_, body):
            return f"rec ({name} : {type_}). {show(body)}"
        case Handle(body, handler, _, shallow):
            return f"{'shallow' if shallow else 'handle'} {show(body)} with {show(handler)}"
    return None


def _definition(term: Any) -> str:
    """The text of a handler, of a part of a computation, or of the use of a definition."""
    match term:
        case Branch(label, name, body):
            return f"{label} {name} -> {show(body)}"
        case Clause(operation, parameter, continuation, body):
            return f"{operation} {parameter} {continuation} -> {show(body)}"
        case Handler(origin=str(origin)):
            return origin
        case Handler(name, type_, body, clauses):
            return f"{{{' | '.join([f'return ({name} : {type_}) -> {show(body)}', *map(show, clauses)])}}}"
        case Use(name, arguments):
            return f"{name}[{', '.join(map(str, arguments))}]"
    return "[]"


def _listed(effect: Effect) -> str:
    return ", ".join(sorted(effect))


def _atom(value: Any) -> str:
    return f"({show(value)})" if isinstance(value, Inj) else show(value)


def _head(term: Any) -> str:
    """A computation where one that extends to the right would swallow what follows."""
    return f"({show(term)})" if isinstance(term, Split | Case | To | Lam | Recursive | Handle | Prj) else show(term)
