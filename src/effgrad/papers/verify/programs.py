"""Random well-typed programs of `lam` from R^n to R: the generator chooses a type, and then a term of this type.

The programs have products, sums, functions of functions, names that are used many times, branches on reals, and loops
by folding. A program for exact arithmetic has only +, -, *, negation, and division by terms that cannot be zero.
"""

import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from effgrad.papers.lam import terms as t
from effgrad.papers.lam.types import typeof
from effgrad.papers.syntax import IllTyped

Scope = dict[str, t.Type]
_PAIR, _EITHER, _FUNCTION = t.Product(t.R, t.R), t.Sum(t.R, t.Product(t.R, t.R)), t.Arrow(t.R, t.R)
_TYPES: list[t.Type] = [
    t.R,
    _PAIR,
    _EITHER,
    _FUNCTION,
    t.Arrow(_PAIR, t.R),
    t.Arrow(t.R, _PAIR),
    t.Arrow(_FUNCTION, t.R),
    t.Sum(t.R, t.R),
]


def program(seed: int | str, exact: bool, size: int = 12) -> t.Term:
    """Return the program of a seed, of type R^n -> R with n from 1 to 3. It has more constructs the larger `size` is.

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

    def program(self, size: int) -> t.Term:
        n = self.random.randint(1, 3)
        names = [self.fresh() for _ in range(n)]
        body = self.term(t.R, dict.fromkeys(names, t.R), size)
        point: t.Term = t.Var("point")
        bindings = []
        for i, name in enumerate(names, 1):
            bindings.append((name, point if i == n else t.Fst(point)))
            point = t.Snd(point)
        for name, bound in reversed(bindings):
            body = t.Let(name, bound, body)
        return t.Lam("point", body, t.power(t.R, n))

    def term(self, type_: t.Type, scope: Scope, size: int) -> t.Term:
        if size <= 0:
            return self.leaf(type_, scope)
        strategies: list[Callable[[t.Type, Scope, int], t.Term | None]] = [self.let, self.use, self.introduction]
        # A variable of type R ends a term. If it were chosen early, most programs would be linear.
        weights = [3.0, 1.0, 7.0] if type_ == t.R and size > 2 else [3.0, 4.0, 5.0]
        if size > 2:
            strategies += [self.apply, self.case, self.branch, self.loop]
            weights += [1.0, 1.0, 1.0, 0.7 if type_ == t.R else 0.2]
        made = self.random.choices(strategies, weights)[0](type_, scope, size - 1)
        return self.introduction(type_, scope, size - 1) if made is None else made

    def leaf(self, type_: t.Type, scope: Scope) -> t.Term:
        """A smallest term of a type: mostly a variable, if one has this type."""
        fitting = [name for name, found in scope.items() if found == type_]
        if fitting and self.random.random() < 0.9:
            return t.Var(self.random.choice(fitting))
        return self.introduction(type_, scope, 0)

    def introduction(self, type_: t.Type, scope: Scope, size: int) -> t.Term:
        match type_:
            case t.Product(left, right):
                return t.Pair(*self.split([left, right], scope, size))
            case t.Sum(left, right):
                if self.random.random() < 0.5:
                    return t.Inl(self.term(left, scope, size))
                return t.Inr(self.term(right, scope, size))
            case t.Arrow(argument, result):
                name = self.fresh()
                return t.Lam(name, self.term(result, {**scope, name: argument}, size), argument)
        return self.number(scope, size)

    def split(self, types: list[t.Type], scope: Scope, size: int) -> list[t.Term]:
        """A term of each type; the terms share the size at random."""
        cuts = sorted(self.random.randint(0, size) for _ in types[1:])
        shares = [after - before for before, after in zip([0, *cuts], [*cuts, size], strict=True)]
        return [self.term(type_, scope, share) for type_, share in zip(types, shares, strict=True)]

    def number(self, scope: Scope, size: int) -> t.Term:
        if size <= 0:
            integers = [name for name, found in scope.items() if found == t.Z]
            if integers and self.random.random() < 0.6:
                return t.apply("real", t.Var(self.random.choice(integers)))
            return t.Real(Fraction(self.random.randint(-8, 8), 4))
        operations = ["+", "-", "*", "*", "*", "/", "negate"]
        if not self.exact:
            operations += ["sin", "cos", "exp", "tanh", "log", "sqrt", "atan2", "sin", "tanh"]
        name = self.random.choice(operations)
        if name in ("+", "-", "*"):
            return t.apply(name, *self.split([t.R, t.R], scope, size))
        if name in ("/", "atan2"):
            one, other = self.split([t.R, t.R], scope, size)
            return t.apply(name, one, self.positive(other))
        inner = self.term(t.R, scope, size)
        if name in ("log", "sqrt"):
            inner = self.positive(inner)
        elif name == "exp":
            inner = t.apply("tanh", inner)  # without tanh, overflow would leave nothing to compare
        return t.apply(name, inner)

    def positive(self, term: t.Term) -> t.Term:
        name = self.fresh()
        return t.Let(name, term, t.apply("+", t.apply("*", t.Var(name), t.Var(name)), t.Real(1)))

    def let(self, type_: t.Type, scope: Scope, size: int) -> t.Term:
        bound, name = self.random.choice(_TYPES), self.fresh()
        share = self.random.randint(0, size)
        one = self.term(bound, scope, share)
        return t.Let(name, one, self.term(type_, {**scope, name: bound}, size - share))

    def use(self, type_: t.Type, scope: Scope, size: int) -> t.Term | None:
        """A variable, or projections and applications of a variable; None if no variable yields the type."""
        strategies: list[Callable[[], t.Term]] = []
        for name, found in scope.items():
            strategies += self.uses(t.Var(name), found, type_, scope, size)
        # A name that was bound later is likelier to be used, so that few definitions stay unused.
        return self.random.choices(strategies, range(1, len(strategies) + 1))[0]() if strategies else None

    def uses(
        self, head: t.Term, found: t.Type, type_: t.Type, scope: Scope, size: int
    ) -> Iterator[Callable[[], t.Term]]:
        if found == type_:
            yield lambda: head
        match found:
            case t.Product(left, right):
                yield from self.uses(t.Fst(head), left, type_, scope, size)
                yield from self.uses(t.Snd(head), right, type_, scope, size)
            case t.Arrow(argument, result) if size > 0:

                def applied() -> t.Term:
                    return t.App(head, self.term(argument, scope, size // 2))

                if result == type_:
                    yield applied
                elif isinstance(result, t.Product) and result.left == type_:
                    yield lambda: t.Fst(applied())
                elif isinstance(result, t.Product) and result.right == type_:
                    yield lambda: t.Snd(applied())

    def apply(self, type_: t.Type, scope: Scope, size: int) -> t.Term:
        if type_ == t.R and self.random.random() < 0.3:
            # A closed function of R^2 that is differentiated at its call (figure 15). In Python it is a checkpoint.
            name = self.fresh()
            body = self.term(t.R, {name: _PAIR}, size // 2)
            return t.App(t.App(t.Poly("fused", _PAIR), t.Lam(name, body, _PAIR)), self.term(_PAIR, scope, size // 2))
        argument = self.random.choice(_TYPES)
        function, given = self.split([t.Arrow(argument, type_), argument], scope, size)
        return t.App(function, given)

    def case(self, type_: t.Type, scope: Scope, size: int) -> t.Term:
        sum_ = self.random.choice([_EITHER, t.Sum(t.R, t.R)])
        assert isinstance(sum_, t.Sum)
        left, right = self.fresh(), self.fresh()
        one = self.term(type_, {**scope, left: sum_.left}, size // 3)
        other = self.term(type_, {**scope, right: sum_.right}, size // 3)
        return t.Case(self.term(sum_, scope, size // 3), left, one, right, other)

    def branch(self, type_: t.Type, scope: Scope, size: int) -> t.Term:
        one, other = self.split([t.R, t.R], scope, size // 3)
        then, otherwise = self.term(type_, scope, size // 3), self.term(type_, scope, size // 3)
        return t.Case(t.apply("<", one, other), "_", then, "_", otherwise)

    def loop(self, type_: t.Type, scope: Scope, size: int) -> t.Term:
        """fold ((\\(a, b). ...), (start, build (n, \\i. ...)))"""
        name, index = self.fresh(), self.fresh()
        step = t.Lam(name, self.term(type_, {**scope, name: t.Product(type_, t.R)}, size // 2), t.Product(type_, t.R))
        item = t.Lam(index, self.term(t.R, {**scope, index: t.Z}, size // 4), t.Z)
        start = self.term(type_, scope, size // 4)
        built = t.apply("build", t.Literal(self.random.randint(0, 3)), item)
        return t.App(t.Op("fold"), t.tuple_(step, start, built))


# Shrinking a program that fails


def smaller(program_: t.Term, fails: Callable[[t.Term], bool]) -> t.Term:
    """Shrink a program that fails, until none of its smaller variants fails, and return the last one."""
    shrinking = True
    while shrinking:
        shrinking = False
        for candidate in _candidates(program_):
            if _size(candidate) < _size(program_) and _like(candidate, program_) and fails(candidate):
                program_, shrinking = candidate, True
                break
    return program_


def _like(candidate: t.Term, program_: t.Term) -> bool:
    try:
        return typeof(candidate) == typeof(program_)
    except IllTyped:
        return False


def _candidates(term: t.Term) -> Iterator[t.Term]:
    """Yield variants of a term with one part replaced by a number or by a part of itself, the largest parts first."""
    yield from _replacements(term)
    parts = term.parts()
    for place, part in enumerate(parts):
        if isinstance(part, t.Term):
            for inner in _candidates(part):
                kind: Any = type(term)
                yield kind(*parts[:place], inner, *parts[place + 1 :])


def _replacements(term: t.Term) -> Iterator[t.Term]:
    yield from (t.Real(0), t.Real(1))
    if isinstance(term, t.Let) and term.name not in term.body.free:
        yield term.body
    for part in term.parts():
        if isinstance(part, t.Term):
            yield part
        if isinstance(part, t.Pair):
            yield from (part.first, part.second)
    if isinstance(term, t.Literal) and isinstance(term.value, int) and term.value > 0:
        yield t.Literal(term.value - 1)


def _size(term: t.Term) -> tuple[int, int]:
    """The number of nodes of a term, and a weight that orders terms of equal size: simpler literals weigh less."""
    inner = [_size(part) for part in term.parts() if isinstance(part, t.Term)]
    weight = term.value if isinstance(term, t.Literal) and isinstance(term.value, int) else 0
    weight += isinstance(term, t.Var) + 2 * (isinstance(term, t.Real) and term.value not in (0, 1))
    return 1 + sum(nodes for nodes, _ in inner), weight + sum(weights for _, weights in inner)
