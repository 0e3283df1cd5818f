"""The values, computations and handlers of MAM and EFF, how they are written, and substitution.

The concrete syntax is in `reading.py`, which describes each form. Sigal 2024, section 7.2, figures 7.3, 7.5, 7.10,
7.12, 7.19 and 7.21, after Forster, Kammar, Lindley and Pretnar 2019.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from effgrad.papers.eff.type_terms import Base, ComputationType, Effect, Operations, ValueType
from effgrad.papers.expressions import Expression, shown
from effgrad.papers.syntax import Node, Variable
from effgrad.vocabulary import Object


class Term(Node):
    pass


class Var(Term, Variable):
    pass


class Unit(Term):
    form = "()"


class Pair(Term):
    first: Term
    second: Term
    form = "({}, {})"


class Inj(Term):
    type: ValueType
    label: str
    content: Term
    form, level = "inj[{}] {} {:2}", 1


class Thunk(Term):
    """A suspended computation; the checker fills in the effect where the program leaves it out."""

    body: Term
    effect: Effect | None = None

    def text(self) -> str:
        effect = "" if self.effect is None else f"[{', '.join(sorted(self.effect))}] "
        return f"{{{effect}{self.body.written()}}}"


class Constant(Term):
    """A base constant: a real, an integer, or a smooth function."""

    type: Base
    value: Object

    def text(self) -> str:
        text = str(float(self.value)) if isinstance(self.value, Fraction) else str(self.value)
        return f"({text})" if text.startswith("-") else text


@dataclass(frozen=True)
class Smooth:
    """A constant of a type Op_n: an expression of n arguments."""

    names: tuple[str, ...]
    expression: Expression

    def __str__(self) -> str:
        return f"op[{', '.join(self.names)}. {shown(self.expression, self.names)}]"


class Location(Term):
    """A reference, identified by its number. It occurs only in a running program."""

    number: int
    item: ValueType
    form = "l{}"


class Split(Term):
    """`case V of (x, y) -> M`."""

    pair: Term
    first: str
    second: str
    body: Term
    scopes = {"body": ("first", "second")}
    form, level = "case {} of ({}, {}) -> {}", 0


class Branch(Term):
    label: str
    name: str
    body: Term
    scopes = {"body": ("name",)}
    form = "{} {} -> {}"


class Case(Term):
    scrutinee: Term
    branches: tuple[Branch, ...]
    form, level = "case {} of {{{: | }}}", 0


class Force(Term):
    thunk: Term
    form = "{:2}!"


class Return(Term):
    value: Term
    form = "return {:2}"


class To(Term):
    """`x <- M; N`."""

    name: str
    first: Term
    rest: Term
    scopes = {"rest": ("name",)}
    form, level = "{} <- {:1}; {}", 0


class Lam(Term):
    name: str
    type: ValueType
    body: Term
    scopes = {"body": ("name",)}
    form, level = "\\({} : {}). {}", 0


class App(Term):
    function: Term
    argument: Term
    form, level = "{:1} {:2}", 1


class Choice(Term):
    """`<M, N>`."""

    left: Term
    right: Term
    form = "<{}, {}>"


class Prj(Term):
    index: int
    choice: Term
    form, level = "prj {} {:2}", 0


class Call(Term):
    """An operation, or a built-in function, with its parameter."""

    name: str
    parameter: Term
    form = "{} {:2}"


# The operations on the store: make a reference, read one, and write to one, by a pair of the reference and the value.
STORE = ("ref", "read", "write")


class Access(Term):
    """`ref V`, `read V` or `write (V, W)`."""

    name: str
    parameter: Term
    form = "{} {:2}"


class Recursive(Term):
    """`rec (f : C). M`: the computation M, in which f is a thunk of the whole term; the checker fills in the effect."""

    name: str
    type: ComputationType
    body: Term
    effect: Effect | None = None
    scopes = {"body": ("name",)}
    form, level = "rec ({} : {}). {}", 0


class Clause(Term):
    operation: str
    parameter: str
    continuation: str
    body: Term
    scopes = {"body": ("parameter", "continuation")}
    form = "{} {} {} -> {}"


class Handler(Term):
    """A handler: its return clause (`name`, `type` and `body`) and its clauses for operations.

    `origin` is the use of a definition that the handler comes from, as which it is written.
    """

    name: str
    type: ValueType
    body: Term
    clauses: tuple[Clause, ...]
    origin: str | None = field(default=None, compare=False)

    @property
    def handled(self) -> Effect:
        """The operations that the handler has clauses for."""
        return frozenset(clause.operation for clause in self.clauses)

    scopes = {"body": ("name",)}

    def text(self) -> str:
        if self.origin is not None:
            return self.origin
        returns = f"return ({self.name} : {self.type}) -> {self.body.written()}"
        return f"{{{' | '.join([returns, *[clause.written() for clause in self.clauses]])}}}"


class Handle(Term):
    """A computation under a handler. A shallow handler handles one operation only.

    `effect` is the effect of the context, which the checker fills in.
    """

    body: Term
    handler: Term
    effect: Effect | None = None
    shallow: bool = False
    level = 0

    def text(self) -> str:
        return f"{'shallow' if self.shallow else 'handle'} {self.body.written()} with {self.handler.written()}"


class Use(Term):
    """The use of a definition, with types and operations for its parameters. The reader expands it."""

    name: str
    arguments: tuple[Object, ...]
    form = "{}[{}]"


@dataclass(frozen=True)
class Program:
    """A computation, and the operations that it and its types may name."""

    operations: Operations
    body: Term


def substituted(term: object, values: Mapping[str, Term]) -> Object:
    """Return a term with closed values in place of variables; since they are closed, no binder captures anything."""
    if type(term) is tuple:
        return tuple([substituted(part, values) for part in term])
    if not isinstance(term, Term) or term.free.isdisjoint(values):
        return term
    if isinstance(term, Var):
        return values[term.name]
    # The copy is made by hand, since `dataclasses.replace` takes twice as long for frozen classes.
    result = object.__new__(type(term))
    new = result.__dict__
    for name, part in term.__dict__.items():
        if isinstance(part, Term) or type(part) is tuple:
            bound = term.bound_in(name) if name in term.scopes else ()
            part = substituted(part, {n: v for n, v in values.items() if n not in bound} if bound else values)
        new[name] = part
    new["free"] = term.free.difference(values)
    return result
