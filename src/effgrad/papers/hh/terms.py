"""The terms and patterns of HH; `reading.py` has the concrete syntax. De Vilhena and Pottier 2023, section 7.1."""

from __future__ import annotations

from dataclasses import dataclass

from effgrad.papers.syntax import Node
from effgrad.vocabulary import Object

# Patterns


@dataclass(frozen=True)
class Name(Node):
    name: str


@dataclass(frozen=True)
class Row(Node):
    """A pattern for a tuple; without items it matches the unit."""

    items: tuple[Pattern, ...]


@dataclass(frozen=True)
class Made(Node):
    """A pattern for a value of a constructor, with a pattern for its argument."""

    constructor: str
    argument: Pattern


Pattern = Name | Row | Made


# Terms


@dataclass(frozen=True)
class Term(Node):
    pass


@dataclass(frozen=True)
class Var(Term):
    name: str


@dataclass(frozen=True)
class Literal(Term):
    value: Object


@dataclass(frozen=True)
class Quoted(Term):
    """A Python value that the program is applied to."""

    value: Object


@dataclass(frozen=True)
class Fun(Term):
    """A function. If it has a name, its body may call it by that name."""

    parameter: Pattern
    body: Term
    name: str | None = None


@dataclass(frozen=True)
class Let(Term):
    pattern: Pattern
    bound: Term
    body: Term


@dataclass(frozen=True)
class Branch(Term):
    """`pattern -> body`. A handler's branch for an effect also has a name for the continuation."""

    pattern: Pattern
    body: Term
    continuation: str | None = None


@dataclass(frozen=True)
class Match(Term):
    scrutinee: Term
    branches: tuple[Branch, ...]


@dataclass(frozen=True)
class Handle(Term):
    body: Term
    branches: tuple[Branch, ...]


@dataclass(frozen=True)
class Strict(Term):
    """A construct that evaluates all its parts, the last one first, and then applies its rule to the values."""

    rule: str
    arguments: tuple[Term, ...]


UNIT = Row(())
