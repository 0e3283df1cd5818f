"""The concrete syntax of the language `lam`: a grammar, and the reader.

    types    A ::= R | Z | String | A * B | A + B | A -> B | Vector A
    terms    e ::= x | \\x. e | e1 e2 | let x = e1 in e2 | (e1, e2) | fst e | snd e
                 | inl e | inr e | case e of inl x -> e1, inr y -> e2 | 2 | 2.0 | "text" | op
                 | [e1, ..., en]

Infix operators are constants applied to pairs: `x * y` on reals, `x *Z y` on integers. `x < y` returns `inl 0` if it
holds and `inr 0` if not, and `if` is a `case` on that. Binders may be patterns, which stand for projections. The
output of the translations also has `pure e`, `do {x <- e; ...}`, delta terms and the types Delta and M A.

Krawiec, Peyton Jones, Krishnaswami, Ellis, Eisenberg and Fitzgibbon 2022, section 2, figure 1.
"""

from __future__ import annotations

from fractions import Fraction

from effgrad.papers.lam import terms as t
from effgrad.papers.lam.primitives import CONSTANTS
from effgrad.papers.syntax import Place, Reader, deep
from effgrad.vocabulary import Object

GRAMMAR = r"""
?term: ("\\" | "λ") pattern "." term                                        -> lam
     | "let" pattern "=" term "in" term                                     -> let
     | "case" term "of" "inl" NAME "->" term "," "inr" NAME "->" term       -> case
     | "if" term "then" term "else" term                                    -> if_
     | comparison
?comparison: sum | sum LESS sum                                             -> infix
?sum: product | sum ADD product                                             -> infix
?product: unary | product MUL unary                                         -> infix
?unary: application | "-" unary                                             -> negative
?application: atom
     | application atom                                                     -> app
     | PROJECTION_OR_INJECTION atom                                                          -> prefix
?atom: NAME                                                                 -> var
     | REAL                                                                 -> real
     | INTEGER                                                              -> integer
     | TEXT                                                                 -> text
     | "(" term ")"
     | "(" term ("," term)+ ")"                                             -> tuple
     | POLYTYPIC_OPERATION "[" type "]"                                     -> poly
     | "[" (term ("," term)*)? "]"                                          -> array
     | "do" "{" (statement ";")* term "}"                                   -> do
?pattern: binder
     | "(" binder ":" type ")"                                              -> annotated
     | "(" pattern ("," pattern)+ ")"                                       -> patterns
binder: NAME
statement: NAME "<-" term

?type: sum_type | sum_type ("->" | "→") type                                -> arrow
?sum_type: product_type | sum_type "+" product_type                         -> sum
?product_type: item_type | item_type ("*" | "×") product_type               -> product
?item_type: "Vector" item_type                                              -> vector
     | "Map" item_type                                                      -> map
     | "M" item_type                                                        -> monad
     | BASE                                                                 -> base
     | "(" type ")"

BASE: "R" | "ℝ" | "Z" | "ℤ" | "String" | "Delta"
PROJECTION_OR_INJECTION.2: /(fst|snd|inl|inr|pure)(?![\w'])/
POLYTYPIC_OPERATION.2: /[a-zA-Z]\w*(?=\[)/
LESS: "<"
ADD: "+Z" | "-Z" | "+" | "-"
MUL: "*Z" | "*" | "×" | "/"
REAL.2: /\d+\.\d+([eE][+-]?\d+)?|\d+\/\d+r/
INTEGER: /\d+/
TEXT: /"[^"\n]*"/
NAME: /(?!(let|in|case|of|inl|inr|if|then|else|do|fst|snd|pure)(?![\w']))[a-zA-Z][\w']*|_/
%import common.WS
%ignore WS
%ignore /--[^\n]*/
"""


class _Reader(Reader):
    grammar = GRAMMAR
    starts = ("term", "type")
    terms = (t,)

    def lam(self, at: Place, pattern: object, body: t.Term) -> t.Term:
        name, annotation, unpack = self._binder(pattern)
        return t.Lam(name, unpack(body), annotation, place=at)

    def let(self, at: Place, pattern: object, bound: t.Term, body: t.Term) -> t.Term:
        name, annotation, unpack = self._binder(pattern)
        if annotation is not None:
            return t.App(t.Lam(name, unpack(body), annotation, place=at), bound, place=at)
        return t.Let(name, bound, unpack(body), place=at)

    def binder(self, at: Place, name: str) -> tuple[str, None, Place]:
        return name, None, at

    def annotated(self, at: Place, binder: Object, type_: t.Type) -> Object:
        return binder[0], type_, at

    def patterns(self, at: Place, *items: object) -> Object:
        return list(items), None, at

    def _binder(self, pattern: Object) -> Object:
        """Return the name that a pattern binds, its type if given, and a function that adds projections to a body."""
        name, annotation, at = pattern
        if isinstance(name, str):
            return name, annotation, lambda body: body
        whole = f"_{at.line}_{at.column}"

        def unpack(body: t.Term) -> t.Term:
            for binding, path in reversed(list(_paths(name, t.Var(whole, place=at)))):
                body = t.Let(binding, path, body, place=at)
            return body

        return whole, None, unpack

    def if_(self, at: Place, condition: t.Term, then: t.Term, otherwise: t.Term) -> t.Term:
        return t.Case(condition, "_", then, "_", otherwise, place=at)

    def infix(self, at: Place, left: t.Term, operator: str, right: t.Term) -> t.Term:
        name = "*" if operator == "×" else operator
        return t.App(t.Op(name, place=at), t.Pair(left, right, place=at), place=at)

    def negative(self, at: Place, term: t.Term) -> t.Term:
        if isinstance(term, t.Real):
            return t.Real(-term.value, place=at)
        return t.App(t.Op("negate", place=at), term, place=at)

    def prefix(self, at: Place, word: str, argument: t.Term) -> t.Term:
        return self.kinds[word](argument, place=at)  # type: ignore[no-any-return]

    def real(self, at: Place, text: str) -> t.Term:
        return t.Real(Fraction(text.removesuffix("r")), place=at)

    def integer(self, at: Place, text: str) -> t.Term:
        return t.Literal(int(text), place=at)

    def text(self, at: Place, text: str) -> t.Term:
        return t.Literal(text[1:-1], place=at)

    def tuple(self, at: Place, *items: t.Term) -> t.Term:
        result = items[-1]
        for item in reversed(items[:-1]):
            result = t.Pair(item, result, place=at)
        return result

    def array(self, at: Place, *items: t.Term) -> t.Term:
        result: t.Term = t.Op("nil", place=at)
        for item in reversed(items):
            result = t.App(t.Op("cons", place=at), t.Pair(item, result, place=at), place=at)
        return result

    def statement(self, at: Place, name: str, term: t.Term) -> Object:
        return name, term, at

    def do(self, at: Place, *statements: Object) -> t.Term:
        *bindings, result = statements
        for name, term, where in reversed(bindings):
            result = t.Do(name, term, result, place=where)
        return result  # type: ignore[no-any-return]

    def base(self, at: Place, name: str) -> t.Type:
        return t.Base({"ℝ": "R", "ℤ": "Z"}.get(name, name))


def _paths(items: list[Object], whole: t.Term) -> Object:
    """Yield the names in a pattern, each with the projections that reach it."""
    for index, (name, _, at) in enumerate(items):
        here = whole if index == len(items) - 1 else t.Fst(whole, place=at)
        if isinstance(name, list):
            yield from _paths(name, here)
        elif name != "_":
            yield name, here
        whole = t.Snd(whole, place=at)


_READER = _Reader()


@deep()
def parse(text: str) -> t.Term:
    """Read a term, and resolve the names of constants.

    >>> print(parse("\\\\(x, y). x * y + 2.0"))
    \\_1_2. let x = fst _1_2 in let y = snd _1_2 in x * y + 2.0

    Raises `IllFormed` with the line and the column.
    """
    return resolved(_READER.read(text, "term"), frozenset())


def parse_type(text: str) -> t.Type:
    """Read a type, as in `R * R -> R`."""
    return _READER.read(text, "type")  # type: ignore[no-any-return]


def resolved(term: t.Term, bound: frozenset[str]) -> t.Term:
    """Replace each free variable that has the name of a constant by this constant."""
    match term:
        case t.Var(name) if name not in bound and name in CONSTANTS:
            return t.Op(name, place=term.place)
    return term.rebuilt_inside(lambda part, names: resolved(part, bound.union(names)))
