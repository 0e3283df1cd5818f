"""Derivatives as source programs, so that they can be translated again: derivatives of derivatives.

The output of a translation has names that no program can write, which the next translation would capture. It also has
polytypic operations, delta terms and the monad M. Here the names become ordinary ones, and each polytypic operation
becomes a term that goes through the values of its type, as `dot` does. `folding.py` encodes the rest.
Krawiec et al. 2022, figures 1 and 16.
"""

import itertools
import re
from collections.abc import Callable

from effgrad.papers.lam.folding import encode_deltas
from effgrad.papers.lam.terms import (
    App,
    Base,
    Case,
    Fst,
    Inl,
    Inr,
    Lam,
    Let,
    Literal,
    Op,
    Pair,
    Poly,
    Product,
    Real,
    Snd,
    Sum,
    Term,
    Type,
    Var,
    Vector,
    apply,
)

_OWN = re.compile(r"_[a-zA-Z]")
Leaf = Callable[..., Term]


def as_source(term: Term) -> Term:
    """Return a derivative as a program of the source language; a source program is returned unchanged."""
    term = encode_deltas(_expanded(term))
    names = {name for part in term.all() for name in part.parts() if isinstance(name, str)}
    if any(_OWN.match(name) for name in names):
        fresh = (name for n in itertools.count(1) if (name := f"v{n}") not in names)
        term = term.renamed({}, lambda name: next(fresh) if _OWN.match(name) else name)
    return term


def _expanded(term: Term) -> Term:
    match term:
        case App(Poly("onehot", type_), Literal(int(index))):
            return _onehot(type_, index)
        case Poly("zero", type_):
            return _onehot(type_, 0)
        case Poly(name, type_) if name in _OPERATIONS:
            return _OPERATIONS[name](type_)
    return term.rebuilt(_expanded)


def _onehot(type_: Type, index: int) -> Term:
    """Return the value of a type R^a with 1 in one component, counted from 1, and 0 elsewhere; index 0 gives zero."""
    if isinstance(type_, Product):
        return Pair(_onehot(type_.left, index), _onehot(type_.right, index - 1))
    return Real(int(index == 1))


def _of_one(leaf: Leaf) -> Callable[[Type], Term]:
    return lambda type_: Lam("x", leafwise(type_, leaf, Var("x")))


def _of_two(leaf: Leaf) -> Callable[[Type], Term]:
    def function(type_: Type) -> Term:
        body = leafwise(type_, leaf, Var("x"), Var("y"))
        return Lam("p", Let("x", Fst(Var("p")), Let("y", Snd(Var("p")), body)))

    return function


def _scale(type_: Type) -> Term:
    scaled = leafwise(type_, lambda x: apply("*", Var("r"), x), Var("x"))
    return Lam("p", Let("r", Fst(Var("p")), Let("x", Snd(Var("p")), scaled)))


def _init_vars(type_: Type) -> Term:
    return Lam("p", _counted(type_, lambda x, n: Pair(x, apply("Var", n)), Fst(Var("p")), Snd(Var("p"))))


def _lookup(type_: Type) -> Term:
    found = leafwise(type_, lambda x: apply("lookupOrZero", Fst(Snd(x)), Var("m")), Var("x"))
    return Lam("p", Let("m", Fst(Var("p")), Let("x", Snd(Var("p")), found)))


def _eval2(type_: Type) -> Term:
    evaluated = apply("eval", Fst(Var("p")), Fst(Snd(Var("p"))), Op("emptyMap"))
    total = _counted(type_, lambda x, n: apply("+", x, apply("lookupOrZero", n, Var("m"))), Var("x"), Literal(0))
    return Lam("p", Let("m", evaluated, Let("x", Snd(Snd(Var("p"))), Fst(total))))


_OPERATIONS: dict[str, Callable[[Type], Term]] = {
    "zip": _of_two(Pair),
    "add": _of_two(lambda x, y: apply("+", x, y)),
    "primal": _of_one(Fst),
    "delta": _of_one(Snd),
    "scale": _scale,
    "initVars": _init_vars,
    "initZeros": _of_one(lambda x: Pair(x, Op("Zero"))),
    "lookup": _lookup,
    "eval2": _eval2,
}


def leafwise(type_: Type, leaf: Leaf, *values: Term, depth: int = 0) -> Term:
    """Return a term that combines values of one shape by `leaf` at each real; all else is that of the first value."""
    first = values[0]
    match type_:
        case Base("R"):
            return leaf(*values)
        case Product(left, right):
            one = leafwise(left, leaf, *map(Fst, values), depth=depth)
            return Pair(one, leafwise(right, leaf, *map(Snd, values), depth=depth))
        case Vector(item):
            i = Var(f"i{depth}")
            items = [apply("index", value, i) for value in values]
            made = Lam(i.name, leafwise(item, leaf, *items, depth=depth + 1))
            return apply("build", apply("size", first), made)
        case Sum(left, right):
            one, other = _side(Inl, left, leaf, values, depth), _side(Inr, right, leaf, values, depth)
            return Case(first, f"c{depth}", one, f"c{depth}", other)
    return first


def _side(inject: type[Inl] | type[Inr], part: Type, leaf: Leaf, values: tuple[Term, ...], depth: int) -> Term:
    """Return a branch of the `case` on the first value; it gets stuck if another value is not on the same side."""
    names = [Var(f"c{depth}"), *[Var(f"c{depth}o{n}") for n in range(1, len(values))]]
    body: Term = inject(leafwise(part, leaf, *names, depth=depth + 1))
    for value, name in zip(values[1:], names[1:], strict=True):
        stuck = apply("index", Op("nil"), Literal(0))
        body = Case(value, name.name, body, "_", stuck) if inject is Inl else Case(value, "_", stuck, name.name, body)
    return body


def _counted(type_: Type, leaf: Leaf, value: Term, last: Term, depth: int = 0) -> Term:
    """Return a term for a pair: a value with `leaf` applied at each real and its number, and the last number.

    `last` is the number of the real before the first one of this value.
    """
    match type_:
        case Base("R"):
            n = Var(f"n{depth}")
            return Let(n.name, apply("+Z", last, Literal(1)), Pair(leaf(value, n), n))
        case Product(left, right):
            one, other = Var(f"a{depth}"), Var(f"b{depth}")
            second = _counted(right, leaf, Snd(value), Snd(one), depth + 1)
            both = Let(other.name, second, Pair(Pair(Fst(one), Fst(other)), Snd(other)))
            return Let(one.name, _counted(left, leaf, Fst(value), last, depth + 1), both)
        case Vector(item):
            pair, reached, next_ = Var(f"q{depth}"), Fst(Var(f"q{depth}")), Var(f"a{depth}")
            joined = Pair(apply("cons", Fst(next_), Fst(reached)), Snd(next_))
            step = Lam(pair.name, Let(next_.name, _counted(item, leaf, Snd(pair), Snd(reached), depth + 1), joined))
            return Let(next_.name, apply("fold", step, Pair(Op("nil"), last), value), _turned(next_, depth))
        case Sum(left, right):
            c, a = Var(f"c{depth}"), Var(f"a{depth}")
            sides = [
                Let(a.name, _counted(part, leaf, c, last, depth + 1), Pair(inject(Fst(a)), Snd(a)))
                for inject, part in ((Inl, left), (Inr, right))
            ]
            return Case(value, c.name, sides[0], c.name, sides[1])
    return Pair(value, last)


def _turned(counted: Term, depth: int) -> Term:
    """Return a term that reverses the vector in a pair of a vector and a number."""
    items, i = Fst(counted), Var(f"i{depth}")
    from_the_end = apply("-Z", apply("-Z", apply("size", items), Literal(1)), i)
    return Pair(apply("build", apply("size", items), Lam(i.name, apply("index", items, from_the_end))), Snd(counted))
