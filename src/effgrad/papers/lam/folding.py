"""Delta terms encoded as functions, so that a reverse derivative is a program of the source language.

A delta term is only ever evaluated. So it can be replaced by the function that `eval` makes of it. This function maps a
factor and a map of cotangents to the map plus the contributions of the term; each line of figure 11 is a line of
`FOLDED`. The encoding is a pair of a name and this function. The name is that of the variable if the term is one, which
`lookup` needs. A computation of the monad M is encoded as a function of its state, which is a pair. It has the next
free name, and a function that puts the bindings so far around a term. An encoded derivative uses only vectors, maps,
sums, functions and arithmetic, so every translation accepts it, to any order.

Krawiec et al. 2022, figures 7, 8 and 11; section 8.6 leaves the derivative of a reverse derivative open.
"""

from functools import cache

from effgrad.papers.lam import terms as t
from effgrad.papers.lam.reading import parse

FOLDED_DELTA = t.Product(t.Z, t.Arrow(t.Product(t.R, t.Map(t.R)), t.Map(t.R)))
STATE = t.Product(t.Z, t.Arrow(FOLDED_DELTA, FOLDED_DELTA))

_VARIABLE = r"""\i. (i, \(x, um). case find (i, um) of
    inl missing -> insert ((i, x), um), inr before -> insert ((i, before + x), um))"""
_LET = r"""(0, \(x, um). let after = snd body (x, um) in case find (fst state, after) of
    inl missing -> after, inr factor -> snd bound (factor, delete (fst state, after)))"""

DELTA_ENCODING = {
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
def _folded(name: str) -> t.Term:
    return parse(DELTA_ENCODING[name])


def encode_deltas(term: t.Term) -> t.Term:
    """Return a term with delta terms encoded as functions, and computations as functions of their state."""
    match term:
        case t.Op(name) if name in DELTA_ENCODING:
            return _folded(name)
        case t.Pure(content):
            return t.Lam("_state", t.Pair(encode_deltas(content), t.Var("_state")))
        case t.Do(name, bound, rest):
            reached = t.Let(name, t.Fst(t.Var("_reached")), t.App(encode_deltas(rest), t.Snd(t.Var("_reached"))))
            return t.Lam("_state", t.Let("_reached", t.App(encode_deltas(bound), t.Var("_state")), reached))
        case t.Lam(name, body, annotation) if annotation is not None:
            return t.Lam(name, encode_deltas(body), folded_type(annotation), place=term.place)
    return term.rebuilt(encode_deltas)


def folded_type(type_: t.Type) -> t.Type:
    """Return the type of a folded term, given the type of the term."""
    if type_ == t.DELTA:
        return FOLDED_DELTA
    if isinstance(type_, t.Monad):
        return t.Arrow(STATE, t.Product(folded_type(type_.result), STATE))
    return type_.rebuilt(folded_type)
