"""The concrete syntax of HH: functions, references, and effect handlers with one-shot continuations; no types.

    terms     e ::= x | () | 2 | 2.5 | "text" | fun p -> e | rec f p -> e | e1 e2 | let p = e1 in e2 | e1; e2
                  | (e1, ..., en) | C | C e | match e with p1 -> e1 | ... | pn -> en end | if e then e1 else e2
                  | ref e | !e | e1 := e2 | e1 + e2 | e1 - e2 | e1 * e2 | e1 < e2 | print e
                  | perform e | continue e1 e2
                  | handle e with p -> e0 | effect p1, k -> e1 | ... | effect pn, k -> en end
    patterns  p ::= _ | x | () | (p1, ..., pn) | C | C p

Constructors C begin with a capital letter. An effect is a value; a handler catches those that one of its patterns
fits, and passes on the rest: with a variable for a pattern, as in HH, that is all, and with constructors it is as in
OCaml. `print` is there for figure 7 of the paper. Records, and the functions of dictionaries, are tuples.

De Vilhena and Pottier 2023, sections 4, 5 and 7.1.
"""

from __future__ import annotations

from fractions import Fraction

from effgrad.papers.hh.terms import (
    UNIT,
    Branch,
    Fun,
    Handle,
    Let,
    Literal,
    Made,
    Match,
    Name,
    Pattern,
    Row,
    Strict,
    Term,
    Var,
)
from effgrad.papers.syntax import IllFormed, Place, Reader, deep

GRAMMAR = r"""
?term: "let" pattern "=" term "in" term                                     -> let
     | "fun" pattern "->" term                                              -> fun
     | "rec" NAME pattern "->" term                                         -> rec
     | "if" comparison "then" comparison "else" comparison                  -> if_
     | comparison
     | comparison ";" term                                                  -> then
?comparison: arithmetic | arithmetic "<" arithmetic                         -> less
     | arithmetic ":=" arithmetic                                           -> assign
?arithmetic: product | arithmetic ADD product                               -> binary
?product: application | product "*" application                             -> times
?application: atom | application atom                                       -> apply
     | CONSTRUCTOR atom                                                     -> made
     | WORD atom                                                            -> word
     | "continue" atom atom                                                 -> continue_
?atom: NAME                                                                 -> var
     | CONSTRUCTOR                                                          -> constructor
     | INTEGER                                                              -> integer
     | REAL                                                                 -> real
     | TEXT                                                                 -> text
     | "!" atom                                                             -> read_
     | "(" ")"                                                              -> unit
     | "(" term ("," term)* ")"                                             -> row
     | "match" term "with" "|"? branch ("|" branch)* "end"                  -> match
     | "handle" term "with" "|"? clause ("|" clause)* "end"                 -> handle
branch: pattern "->" term
?clause: pattern "->" term                                                  -> branch
     | "effect" pattern "," NAME "->" term                                  -> effect
?pattern: small_pattern | CONSTRUCTOR small_pattern                         -> made_pattern
?small_pattern: NAME                                                        -> named
     | CONSTRUCTOR                                                          -> constructor_pattern
     | "(" ")"                                                              -> nothing
     | "(" pattern ("," pattern)* ")"                                       -> rows

WORD.2: /(ref|perform|print)(?![\w'])/
ADD: "+" | "-"
REAL.2: /\d+\.\d+/
INTEGER: /\d+/
TEXT: /"[^"\n]*"/
CONSTRUCTOR: /[A-Z][\w']*/
NAME: /(?!(let|in|fun|rec|if|then|else|match|with|handle|effect|continue|end)(?![\w']))[a-z_][\w']*/
%import common.WS
%ignore WS
%ignore /\(\*(.|\n)*?\*\)/
"""


class _Reader(Reader):
    grammar = GRAMMAR
    starts = ("term",)

    def let(self, at: Place, pattern: Pattern, bound: Term, body: Term) -> Term:
        return Let(pattern, bound, body, place=at)

    def fun(self, at: Place, pattern: Pattern, body: Term) -> Term:
        return Fun(pattern, body, place=at)

    def rec(self, at: Place, name: str, pattern: Pattern, body: Term) -> Term:
        return Fun(pattern, body, str(name), place=at)

    def if_(self, at: Place, condition: Term, then: Term, otherwise: Term) -> Term:
        branches = Branch(Made("True", UNIT), then), Branch(Made("False", UNIT), otherwise)
        return Match(condition, branches, place=at)

    def then(self, at: Place, first: Term, rest: Term) -> Term:
        return Let(Name("_"), first, rest, place=at)

    def less(self, at: Place, left: Term, right: Term) -> Term:
        return Strict("<", (left, right), place=at)

    def assign(self, at: Place, reference: Term, value: Term) -> Term:
        return Strict(":=", (reference, value), place=at)

    def binary(self, at: Place, left: Term, operator: str, right: Term) -> Term:
        return Strict(str(operator), (left, right), place=at)

    def times(self, at: Place, left: Term, right: Term) -> Term:
        return Strict("*", (left, right), place=at)

    def apply(self, at: Place, function: Term, argument: Term) -> Term:
        return Strict("apply", (function, argument), place=at)

    def made(self, at: Place, constructor: str, argument: Term) -> Term:
        return Strict(str(constructor), (argument,), place=at)

    def word(self, at: Place, word: str, argument: Term) -> Term:
        return Strict(str(word), (argument,), place=at)

    def continue_(self, at: Place, continuation: Term, value: Term) -> Term:
        return Strict("continue", (continuation, value), place=at)

    def var(self, at: Place, name: str) -> Term:
        return Var(str(name), place=at)

    def constructor(self, at: Place, name: str) -> Term:
        return Strict(str(name), (Strict("row", ()),), place=at)

    def integer(self, at: Place, text: str) -> Term:
        return Literal(int(text), place=at)

    def real(self, at: Place, text: str) -> Term:
        return Literal(Fraction(text), place=at)

    def text(self, at: Place, text: str) -> Term:
        return Literal(str(text[1:-1]), place=at)

    def read_(self, at: Place, reference: Term) -> Term:
        return Strict("!", (reference,), place=at)

    def unit(self, at: Place) -> Term:
        return Strict("row", (), place=at)

    def row(self, at: Place, *items: Term) -> Term:
        return items[0] if len(items) == 1 else Strict("row", items, place=at)

    def match(self, at: Place, scrutinee: Term, *branches: Branch) -> Term:
        return Match(scrutinee, branches, place=at)

    def handle(self, at: Place, body: Term, *branches: Branch) -> Term:
        if sum(branch.continuation is None for branch in branches) != 1:
            raise IllFormed("a handler has one branch for the value, and one for each effect", at)
        return Handle(body, branches, place=at)

    def branch(self, at: Place, pattern: Pattern, body: Term) -> Term:
        return Branch(pattern, body, place=at)

    def effect(self, at: Place, pattern: Pattern, continuation: str, body: Term) -> Term:
        return Branch(pattern, body, str(continuation), place=at)

    def named(self, at: Place, name: str) -> Pattern:
        return Name(str(name), place=at)

    def constructor_pattern(self, at: Place, constructor: str) -> Pattern:
        return Made(str(constructor), UNIT, place=at)

    def made_pattern(self, at: Place, constructor: str, argument: Pattern) -> Pattern:
        return Made(str(constructor), argument, place=at)

    def nothing(self, at: Place) -> Pattern:
        return UNIT

    def rows(self, at: Place, *items: Pattern) -> Pattern:
        return items[0] if len(items) == 1 else Row(items, place=at)


_READER = _Reader()


@deep()
def parse(text: str) -> Term:
    """Read a term; raises `IllFormed` with the line and the column."""
    term: Term = _READER.read(text, "term")
    return term
