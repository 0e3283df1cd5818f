"""Derivatives by delta terms without delta terms: programs of the source language.

A delta term is only ever evaluated. So a delta term can be the function that `eval` makes of it, from a factor and a
map of cotangents to the map with what the term contributes: figure 11, a line of which is a line of `FOLDED`. With it
goes the name of a variable, which `lookup` asks for. A computation of the monad M is a function of its state, which
has the next free name and the bindings so far, as a function that puts them around a term. What this makes of a
derivative uses vectors and maps, sums, functions and arithmetic, so every translation takes it, to any order.

Krawiec et al. 2022, figures 7, 8 and 11; section 8.6 leaves the derivative of a reverse derivative open.
"""

from functools import cache

from effgrad.papers.lam.reading import parse
from effgrad.papers.lam.terms import (
    DELTA,
    App,
    Arrow,
    Do,
    Fst,
    Lam,
    Let,
    Map,
    Monad,
    Op,
    Pair,
    Product,
    Pure,
    R,
    Snd,
    Term,
    Type,
    Var,
    Z,
)
from effgrad.papers.lam.types import rebuilt

FOLDED_DELTA = Product(Z, Arrow(Product(R, Map(R)), Map(R)))
STATE = Product(Z, Arrow(FOLDED_DELTA, FOLDED_DELTA))

_VARIABLE = r"""\i. (i, \(x, um). case find (i, um) of
    inl missing -> insert ((i, x), um), inr before -> insert ((i, before + x), um))"""
_LET = r"""(0, \(x, um). let after = snd body (x, um) in case find (fst state, after) of
    inl missing -> after, inr factor -> snd bound (factor, delete (fst state, after)))"""

FOLDED = {
    "Zero": r"(0, \(x, um). um)",
    "OneHot": _VARIABLE,
    "Var": _VARIABLE,
    "Scale": r"\(r, d). (0, \(x, um). snd d (x * r, um))",
    "Add": r"\(d, e). (0, \(x, um). snd e (x, snd d (x, um)))",
    "eval": r"\(x, (d, um)). snd d (x, um)",
    "lookupOrZero": r"\(i, um). case find (i, um) of inl missing -> 0.0, inr found -> found",
    "deltaLet": rf"\bound. \state. (fst state, (fst state +Z 1, \body. snd state {_LET}))",
    "runDelta": r"""\(n, action). let done = action (n, \d. d) in
        (fst (fst done), snd (snd done) (snd (fst done)))""",
    "sequence": r"""\actions. \state. let done = fold (
            (\(reached, action). let next = action (snd reached) in (cons (fst next, fst reached), snd next)),
            (([], state), actions))
        in (build (size actions, \i. index (fst done, size actions -Z 1 -Z i)), snd done)""",
    "foldM": r"""\(f, (start, items)). \state.
        fold ((\(reached, item). f (fst reached, item) (snd reached)), ((start, state), items))""",
}


@cache
def _folded(name: str) -> Term:
    return parse(FOLDED[name])


def folded(term: Term) -> Term:
    """A term in which delta terms are functions, and computations are functions of their state."""
    match term:
        case Op(name) if name in FOLDED:
            return _folded(name)
        case Pure(content):
            return Lam("_state", Pair(folded(content), Var("_state")))
        case Do(name, bound, rest):
            reached = Let(name, Fst(Var("_reached")), App(folded(rest), Snd(Var("_reached"))))
            return Lam("_state", Let("_reached", App(folded(bound), Var("_state")), reached))
        case Lam(name, body, annotation) if annotation is not None:
            return Lam(name, folded(body), folded_type(annotation), place=term.place)
    return term.rebuilt(folded)


def folded_type(type_: Type) -> Type:
    """The type of a folded term, from that of the term."""
    if type_ == DELTA:
        return FOLDED_DELTA
    if isinstance(type_, Monad):
        return Arrow(STATE, Product(folded_type(type_.result), STATE))
    return rebuilt(type_, folded_type)
