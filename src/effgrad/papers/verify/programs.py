"""Well-typed programs of `lam` from R^n to R, made at random: a type first, then a term of it.

They have products, sums, functions of functions, names that are used many times, branches on reals, and loops by
folding. A program for exact arithmetic has only +, -, *, negation and division by what cannot be zero.
"""

import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from effgrad.papers.lam.terms import (
    App,
    Arrow,
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
    R,
    Real,
    Snd,
    Sum,
    Term,
    Type,
    Var,
    Z,
    apply,
    free,
    power,
    tuple_,
)
from effgrad.papers.lam.types import typeof
from effgrad.papers.syntax import IllTyped

Scope = dict[str, Type]
_PAIR, _EITHER, _FUNCTION = Product(R, R), Sum(R, Product(R, R)), Arrow(R, R)
_TYPES: list[Type] = [R, _PAIR, _EITHER, _FUNCTION, Arrow(_PAIR, R), Arrow(R, _PAIR), Arrow(_FUNCTION, R), Sum(R, R)]


def program(seed: int | str, exact: bool, size: int = 12) -> Term:
    """The program of a seed, of type R^n -> R with n from 1 to 3; with `size` grows the number of its constructs.

    >>> from effgrad.papers.lam import typeof
    >>> all(str(typeof(program(seed, exact=True))).endswith("R -> R") for seed in range(20))
    True
    """
    return _Maker(random.Random(seed), exact).program(size)


class _Maker:
    def __init__(self, source: random.Random, exact: bool) -> None:
        self.random, self.exact = source, exact
        self.count = 0

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def program(self, size: int) -> Term:
        n = self.random.randint(1, 3)
        names = [self.fresh() for _ in range(n)]
        body = self.term(R, dict.fromkeys(names, R), size)
        point: Term = Var("point")
        bindings = []
        for i, name in enumerate(names, 1):
            bindings.append((name, point if i == n else Fst(point)))
            point = Snd(point)
        for name, bound in reversed(bindings):
            body = Let(name, bound, body)
        return Lam("point", body, power(R, n))

    def term(self, type_: Type, scope: Scope, size: int) -> Term:
        if size <= 0:
            return self.leaf(type_, scope)
        ways: list[Callable[[Type, Scope, int], Term | None]] = [self.let, self.use, self.introduction]
        # A variable of type R ends a term: early it would leave most programs linear.
        weights = [3.0, 1.0, 7.0] if type_ == R and size > 2 else [3.0, 4.0, 5.0]
        if size > 2:
            ways += [self.apply, self.case, self.branch, self.loop]
            weights += [1.0, 1.0, 1.0, 0.7 if type_ == R else 0.2]
        made = self.random.choices(ways, weights)[0](type_, scope, size - 1)
        return self.introduction(type_, scope, size - 1) if made is None else made

    def leaf(self, type_: Type, scope: Scope) -> Term:
        """A smallest term of a type, a variable where there is one."""
        fitting = [name for name, found in scope.items() if found == type_]
        if fitting and self.random.random() < 0.9:
            return Var(self.random.choice(fitting))
        return self.introduction(type_, scope, 0)

    def introduction(self, type_: Type, scope: Scope, size: int) -> Term:
        match type_:
            case Product(left, right):
                return Pair(*self.split([left, right], scope, size))
            case Sum(left, right):
                if self.random.random() < 0.5:
                    return Inl(self.term(left, scope, size))
                return Inr(self.term(right, scope, size))
            case Arrow(argument, result):
                name = self.fresh()
                return Lam(name, self.term(result, {**scope, name: argument}, size), argument)
        return self.number(scope, size)

    def split(self, types: list[Type], scope: Scope, size: int) -> list[Term]:
        """A term of each type, of a random share of the size."""
        cuts = sorted(self.random.randint(0, size) for _ in types[1:])
        shares = [after - before for before, after in zip([0, *cuts], [*cuts, size], strict=True)]
        return [self.term(type_, scope, share) for type_, share in zip(types, shares, strict=True)]

    def number(self, scope: Scope, size: int) -> Term:
        if size <= 0:
            integers = [name for name, found in scope.items() if found == Z]
            if integers and self.random.random() < 0.6:
                return apply("real", Var(self.random.choice(integers)))
            return Real(Fraction(self.random.randint(-8, 8), 4))
        operations = ["+", "-", "*", "*", "*", "/", "negate"]
        if not self.exact:
            operations += ["sin", "cos", "exp", "tanh", "log", "sqrt", "atan2", "sin", "tanh"]
        name = self.random.choice(operations)
        if name in ("+", "-", "*"):
            return apply(name, *self.split([R, R], scope, size))
        if name in ("/", "atan2"):
            one, other = self.split([R, R], scope, size)
            return apply(name, one, self.positive(other))
        inner = self.term(R, scope, size)
        if name in ("log", "sqrt"):
            inner = self.positive(inner)
        elif name == "exp":
            inner = apply("tanh", inner)  # what grows too fast leaves nothing to compare
        return apply(name, inner)

    def positive(self, term: Term) -> Term:
        name = self.fresh()
        return Let(name, term, apply("+", apply("*", Var(name), Var(name)), Real(1)))

    def let(self, type_: Type, scope: Scope, size: int) -> Term:
        bound, name = self.random.choice(_TYPES), self.fresh()
        share = self.random.randint(0, size)
        one = self.term(bound, scope, share)
        return Let(name, one, self.term(type_, {**scope, name: bound}, size - share))

    def use(self, type_: Type, scope: Scope, size: int) -> Term | None:
        """A variable, or what a variable gives when it is taken apart or applied."""
        ways: list[Callable[[], Term]] = []
        for name, found in scope.items():
            ways += self.uses(Var(name), found, type_, scope, size)
        # The later a name was bound, the likelier it is used: few definitions are made in vain.
        return self.random.choices(ways, range(1, len(ways) + 1))[0]() if ways else None

    def uses(self, head: Term, found: Type, type_: Type, scope: Scope, size: int) -> Iterator[Callable[[], Term]]:
        if found == type_:
            yield lambda: head
        match found:
            case Product(left, right):
                yield from self.uses(Fst(head), left, type_, scope, size)
                yield from self.uses(Snd(head), right, type_, scope, size)
            case Arrow(argument, result) if size > 0:

                def applied() -> Term:
                    return App(head, self.term(argument, scope, size // 2))

                if result == type_:
                    yield applied
                elif isinstance(result, Product) and result.left == type_:
                    yield lambda: Fst(applied())
                elif isinstance(result, Product) and result.right == type_:
                    yield lambda: Snd(applied())

    def apply(self, type_: Type, scope: Scope, size: int) -> Term:
        if type_ == R and self.random.random() < 0.3:
            # A closed function of R^2 that is differentiated at its call: figure 15; a checkpoint in Python.
            name = self.fresh()
            body = self.term(R, {name: _PAIR}, size // 2)
            return App(App(Poly("fused", _PAIR), Lam(name, body, _PAIR)), self.term(_PAIR, scope, size // 2))
        argument = self.random.choice(_TYPES)
        function, given = self.split([Arrow(argument, type_), argument], scope, size)
        return App(function, given)

    def case(self, type_: Type, scope: Scope, size: int) -> Term:
        sum_ = self.random.choice([_EITHER, Sum(R, R)])
        assert isinstance(sum_, Sum)
        left, right = self.fresh(), self.fresh()
        one = self.term(type_, {**scope, left: sum_.left}, size // 3)
        other = self.term(type_, {**scope, right: sum_.right}, size // 3)
        return Case(self.term(sum_, scope, size // 3), left, one, right, other)

    def branch(self, type_: Type, scope: Scope, size: int) -> Term:
        one, other = self.split([R, R], scope, size // 3)
        then, otherwise = self.term(type_, scope, size // 3), self.term(type_, scope, size // 3)
        return Case(apply("<", one, other), "_", then, "_", otherwise)

    def loop(self, type_: Type, scope: Scope, size: int) -> Term:
        """fold ((\\(a, b). ...), (start, build (n, \\i. ...)))"""
        name, index = self.fresh(), self.fresh()
        step = Lam(name, self.term(type_, {**scope, name: Product(type_, R)}, size // 2), Product(type_, R))
        item = Lam(index, self.term(R, {**scope, index: Z}, size // 4), Z)
        start = self.term(type_, scope, size // 4)
        built = apply("build", Literal(self.random.randint(0, 3)), item)
        return App(Op("fold"), tuple_(step, start, built))


# Making a program that fails smaller


def smaller(program_: Term, fails: Callable[[Term], bool]) -> Term:
    """A program that still fails and from which nothing more can be left out."""
    shrinking = True
    while shrinking:
        shrinking = False
        for candidate in _candidates(program_):
            if _size(candidate) < _size(program_) and _like(candidate, program_) and fails(candidate):
                program_, shrinking = candidate, True
                break
    return program_


def _like(candidate: Term, program_: Term) -> bool:
    try:
        return typeof(candidate) == typeof(program_)
    except IllTyped:
        return False


def _candidates(term: Term) -> Iterator[Term]:
    """The term with one part replaced by a number, or by something inside it; the greatest parts first."""
    yield from _replacements(term)
    parts = term.parts()
    for place, part in enumerate(parts):
        if isinstance(part, Term):
            for inner in _candidates(part):
                kind: Any = type(term)
                yield kind(*parts[:place], inner, *parts[place + 1 :])


def _replacements(term: Term) -> Iterator[Term]:
    yield from (Real(0), Real(1))
    if isinstance(term, Let) and term.name not in free(term.body):
        yield term.body
    for part in term.parts():
        if isinstance(part, Term):
            yield part
        if isinstance(part, Pair):
            yield from (part.first, part.second)
    if isinstance(term, Literal) and isinstance(term.value, int) and term.value > 0:
        yield Literal(term.value - 1)


def _size(term: Term) -> tuple[int, int]:
    """The number of nodes; among equals, smaller literals."""
    inner = [_size(part) for part in term.parts() if isinstance(part, Term)]
    weight = term.value if isinstance(term, Literal) and isinstance(term.value, int) else 0
    weight += isinstance(term, Var) + 2 * (isinstance(term, Real) and term.value not in (0, 1))
    return 1 + sum(nodes for nodes, _ in inner), weight + sum(weights for _, weights in inner)
