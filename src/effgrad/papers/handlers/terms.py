"""A language of effect programs on integers, which has the features of the library's handlers and nothing else.

There are three effects, each with the operations a and b; the third is a fresh instance of the first. The value of a
term is an integer. Operands are numbers or variables, so that the `Let`s alone determine the order of evaluation.
"""

from __future__ import annotations

from effgrad.papers.syntax import Node

EFFECTS, OPERATIONS, SLOTS = 3, "ab", 2


class Term(Node):
    pass


class Num(Term):
    value: int


class Var(Term):
    name: str


Atom = Num | Var


class Plus(Term):
    left: Atom
    right: Atom


class Let(Term):
    name: str
    bound: Term
    body: Term


class Out(Term):
    """Write a number to the output. The value is 0."""

    argument: Atom


class Perform(Term):
    effect: int
    operation: str
    argument: Atom


class Raise(Term):
    argument: Atom


class Try(Term):
    """Evaluate `body`; if it raises a number, bind this to `name` and evaluate `rescue`."""

    body: Term
    name: str
    rescue: Term


class Mask(Term):
    effect: int
    body: Term


class Resume(Term):
    k: str
    argument: Atom


class Throw(Term):
    """Resume a continuation with an exception."""

    k: str
    argument: Atom


class Keep(Term):
    """Put a continuation into a slot, which is global. The value is 0."""

    k: str
    slot: int


class Move(Term):
    """Take the continuation out of a slot and resume it here; if the slot is empty, evaluate `otherwise`."""

    slot: int
    argument: Atom
    otherwise: Term


class Clause(Term):
    """A clause for an operation with the parameter `name`.

    Its kind is tail, around, once, final, control or multi. In an around or once clause, `body` comes before the
    `yield`, and `after` follows it, with `result` bound. If the rest raises, `rescue` follows, with `error` bound. The
    `yield` may be in the block of a handler, `around`, whose own body is ignored.
    """

    operation: str
    kind: str
    name: str
    body: Term
    k: str = ""
    result: str = ""
    after: Term | None = None
    error: str = ""
    rescue: Term | None = None
    around: Handle | None = None


class Handle(Term):
    """A term under a handler, which is a `with` block in Python if `block`. `value` is bound in the return clause."""

    effect: int
    clauses: tuple[Clause, ...]
    body: Term
    value: str = ""
    returns: Term | None = None
    shallow: bool = False
    block: bool = False


def in_hh(term: Term) -> bool:
    """Whether HH can run a term: it has no multi-shot continuation."""
    return not any(isinstance(part, Clause) and part.kind == "multi" for part in term.all())


def in_eff(term: Term) -> bool:
    """Whether EFF can run a term: it has no slots and no shallow handler, and needs no error at a second resumption."""
    for part in term.all():
        if isinstance(part, Keep | Move) or (isinstance(part, Handle) and part.shallow):
            return False
        if isinstance(part, Clause) and part.kind == "control" and uses(part.body, part.k) > 1:
            return False
    return True


def uses(term: Term, k: str) -> int:
    """The number of places where a term uses a continuation."""
    return sum(isinstance(part, Resume | Throw | Keep) and part.k == k for part in term.all())
