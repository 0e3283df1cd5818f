"""The terms and patterns of HH; `reading.py` has the concrete syntax. De Vilhena and Pottier 2023, section 7.1."""

from __future__ import annotations

from effgrad.papers.syntax import Node
from effgrad.vocabulary import Object

# Patterns


class Name(Node):
    name: str


class Row(Node):
    """A pattern for a tuple; without items it matches the unit."""

    items: tuple[Pattern, ...]


class Made(Node):
    """A pattern for a value of a constructor, with a pattern for its argument."""

    constructor: str
    argument: Pattern


Pattern = Name | Row | Made


# Terms


class Term(Node):
    pass


class Var(Term):
    name: str


class Literal(Term):
    value: Object


class Quoted(Term):
    """A Python value that the program is applied to."""

    value: Object


class Fun(Term):
    """A function. If it has a name, its body may call it by that name."""

    parameter: Pattern
    body: Term
    name: str | None = None


class Let(Term):
    pattern: Pattern
    bound: Term
    body: Term


class Branch(Term):
    """`pattern -> body`. A handler's branch for an effect also has a name for the continuation."""

    pattern: Pattern
    body: Term
    continuation: str | None = None


class Match(Term):
    scrutinee: Term
    branches: tuple[Branch, ...]


class Handle(Term):
    body: Term
    branches: tuple[Branch, ...]


class Strict(Term):
    """A construct that evaluates all its parts, the last one first, and then applies its rule to the values."""

    rule: str
    arguments: tuple[Term, ...]


UNIT = Row(())
