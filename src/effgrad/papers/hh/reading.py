"""The concrete syntax of HH: functions, references, and effect handlers with one-shot continuations; no types.

    terms     e ::= x | () | 2 | 2.5 | "text" | fun p -> e | rec f p -> e | e1 e2 | let p = e1 in e2 | e1; e2
                  | (e1, ..., en) | C | C e | match e with p1 -> e1 | ... | pn -> en end | if e then e1 else e2
                  | ref e | !e | e1 := e2 | e1 + e2 | e1 - e2 | e1 * e2 | e1 < e2 | print e
                  | perform e | continue e1 e2
                  | handle e with p -> e0 | effect p1, k -> e1 | ... | effect pn, k -> en end
    patterns  p ::= _ | x | () | (p1, ..., pn) | C | C p

Constructors C begin with a capital letter. An effect is a value. A handler catches the effects that match one of its
patterns, and passes on the rest. A variable as a pattern catches every effect, as in the paper's HH; constructors make
handlers selective, as in OCaml. `print` is needed for figure 7 of the paper. Records are written as tuples, and so are
dictionaries of functions.

De Vilhena and Pottier 2023, sections 4, 5 and 7.1.
"""

from __future__ import annotations

from fractions import Fraction

from effgrad.papers.hh import terms as t
from effgrad.papers.syntax import IllFormed, Place, Reader, deep

GRAMMAR = r"""
?term: "let" pattern "=" term "in" term                                     -> let
     | "fun" pattern "->" term                                              -> fun
     | "rec" NAME pattern "->" term                                         -> rec
     | "if" comparison "then" comparison "else" comparison                  -> if_
     | comparison
     | comparison ";" term                                                  -> then
?comparison: arithmetic | arithmetic LESS arithmetic                        -> infix
     | arithmetic ASSIGN arithmetic                                         -> infix
?arithmetic: product | arithmetic ADD product                               -> infix
?product: application | product MULTIPLY application                        -> infix
?application: atom | application atom                                       -> apply
     | CONSTRUCTOR atom                                                     -> prefix
     | WORD atom                                                            -> prefix
     | CONTINUE atom atom                                                   -> prefix
?atom: NAME                                                                 -> var
     | CONSTRUCTOR                                                          -> constructor
     | INTEGER                                                              -> integer
     | REAL                                                                 -> real
     | TEXT                                                                 -> text
     | READ atom                                                            -> prefix
     | "(" ")"                                                              -> row
     | "(" term ("," term)* ")"                                             -> row
     | "match" term "with" "|"? branch ("|" branch)* "end"                  -> match
     | "handle" term "with" "|"? clause ("|" clause)* "end"                 -> handle
branch: pattern "->" term
?clause: pattern "->" term                                                  -> branch
     | "effect" pattern "," NAME "->" term                                  -> effect
?pattern: small_pattern | CONSTRUCTOR small_pattern                         -> made
?small_pattern: NAME                                                        -> name
     | CONSTRUCTOR                                                          -> pattern
     | "(" ")"                                                              -> rows
     | "(" pattern ("," pattern)* ")"                                       -> rows

WORD.2: /(ref|perform|print)(?![\w'])/
LESS: "<"
ASSIGN: ":="
ADD: "+" | "-"
MULTIPLY: "*"
CONTINUE: "continue"
READ: "!"
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
    terms = (t,)

    def rec(self, at: Place, name: str, pattern: t.Pattern, body: t.Term) -> t.Term:
        return t.Fun(pattern, body, name, place=at)

    def if_(self, at: Place, condition: t.Term, then: t.Term, otherwise: t.Term) -> t.Term:
        branches = t.Branch(t.Made("True", t.UNIT), then), t.Branch(t.Made("False", t.UNIT), otherwise)
        return t.Match(condition, branches, place=at)

    def then(self, at: Place, first: t.Term, rest: t.Term) -> t.Term:
        return t.Let(t.Name("_"), first, rest, place=at)

    def infix(self, at: Place, left: t.Term, operator: str, right: t.Term) -> t.Term:
        return t.Strict(operator, (left, right), place=at)

    def prefix(self, at: Place, word: str, *arguments: t.Term) -> t.Term:
        return t.Strict(word, arguments, place=at)

    def apply(self, at: Place, function: t.Term, argument: t.Term) -> t.Term:
        return t.Strict("apply", (function, argument), place=at)

    def constructor(self, at: Place, name: str) -> t.Term:
        return t.Strict(name, (t.Strict("row", ()),), place=at)

    def integer(self, at: Place, text: str) -> t.Term:
        return t.Literal(int(text), place=at)

    def real(self, at: Place, text: str) -> t.Term:
        return t.Literal(Fraction(text), place=at)

    def text(self, at: Place, text: str) -> t.Term:
        return t.Literal(text[1:-1], place=at)

    def row(self, at: Place, *items: t.Term) -> t.Term:
        return items[0] if len(items) == 1 else t.Strict("row", items, place=at)

    def match(self, at: Place, scrutinee: t.Term, *branches: t.Branch) -> t.Term:
        return t.Match(scrutinee, branches, place=at)

    def handle(self, at: Place, body: t.Term, *branches: t.Branch) -> t.Term:
        if sum(branch.continuation is None for branch in branches) != 1:
            raise IllFormed("a handler has one branch for the value, and one for each effect", at)
        return t.Handle(body, branches, place=at)

    def effect(self, at: Place, pattern: t.Pattern, continuation: str, body: t.Term) -> t.Term:
        return t.Branch(pattern, body, continuation, place=at)

    def pattern(self, at: Place, constructor: str) -> t.Pattern:
        return t.Made(constructor, t.UNIT, place=at)

    def rows(self, at: Place, *items: t.Pattern) -> t.Pattern:
        return items[0] if len(items) == 1 else t.Row(items, place=at)


_READER = _Reader()


@deep()
def parse(text: str) -> t.Term:
    """Read a term; raises `IllFormed` with the line and the column."""
    term: t.Term = _READER.read(text, "term")
    return term
