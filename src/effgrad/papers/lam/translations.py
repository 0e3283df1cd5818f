"""The translations of programs to programs that also compute derivatives. Each improves on the one before it.

| here       | figures | a real is paired with       | cost                                            |
|------------|---------|-----------------------------|-------------------------------------------------|
| `forward`  | 3, 4    | its tangent                 | one run for each direction                      |
| `reverse1` | 5, 6    | a whole vector of R^a       | every operation costs a                         |
| `reverse2` | 7, 8    | a delta term, shared in memory only | exponential: `eval` sees a tree         |
| `reverse`  | 9, 10   | the name of a delta term    | linear                                          |
| `fused`    | 15      | as for `reverse`; a call of a function leaves one term, however long it is | linear |

All but the last are the same recursion, which changes nothing except at real literals and primitive functions (for
`reverse`, in monadic form). Each has a wrapper that makes the derivative of a closed program of type R^a -> R.
`forward_derivative` and `reverse_derivative` are the wrappers of figure 16, for any first-order S -> T. The wrapped
programs are terms of the language too, and the same type checker gives them the types that the paper states.

Names that begin with an underscore are reserved for the translations; no program can write them.
Krawiec et al. 2022.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from effgrad.papers.lam import terms
from effgrad.papers.lam.nesting import as_source
from effgrad.papers.lam.primitives import CONSTANTS, Constant
from effgrad.papers.lam.reading import parse
from effgrad.papers.lam.terms import (
    App,
    Arrow,
    Base,
    Case,
    Do,
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
    Pure,
    R,
    Real,
    Snd,
    Sum,
    Term,
    Type,
    Var,
    Vector,
    apply,
    dimension,
    tuple_,
)
from effgrad.papers.lam.types import mapped, reverse_dual, typeof
from effgrad.papers.syntax import IllTyped, deep
from effgrad.vocabulary import Object

# Figures 3, 5 and 7: everything is homomorphic but reals


@dataclass(frozen=True)
class Dual:
    """The kind of tangent that a translation pairs with a real: its type, its zero, scaling and addition."""

    type: Type
    zero: Term
    scale: Callable[[Term, Term], Term]
    add: Callable[[Term, Term], Term]


TANGENT = Dual(R, Real(0), lambda r, d: apply("*", r, d), lambda d, e: apply("+", d, e))
DELTA = Dual(terms.DELTA, Op("Zero"), lambda r, d: apply("Scale", r, d), lambda d, e: apply("Add", d, e))


def vectors(source: Type) -> Dual:
    """The tangents of figure 5, which are values of the whole input's type."""

    def polytypic(name: str) -> Callable[[Term, Term], Term]:
        return lambda one, other: App(Poly(name, source), Pair(one, other))

    return Dual(source, Poly("zero", source), polytypic("scale"), polytypic("add"))


def translate(term: Term, kind: Dual) -> Term:
    """Translate a term by figure 3, 5 or 7, depending on the kind of tangent."""
    match term:
        case Real():
            return Pair(term, kind.zero)
        case Op(name):
            return _dual_function(CONSTANTS[name], kind)
        case Lam(name, body, annotation) if annotation is not None:
            return Lam(name, translate(body, kind), mapped(annotation, Product(R, kind.type)), place=term.place)
        case Poly("fused"):
            return Lam("_f", Var("_f"))
        case Poly() | Pure() | Do():
            raise IllTyped(f"source program: {term} occurs only in translated programs", term.place)
    return term.rebuilt(lambda part: translate(part, kind))


def _dual_function(constant: Constant, kind: Dual) -> Term:
    """Translate a constant by figure 14, of which the cases of figure 3 are instances."""
    if constant.kind == "smooth":
        results, bindings, deltas = _arguments(constant)
        tangents = [_combination(row, deltas, kind) for row in _partials(constant.name)]
        outcome = tuple_(*[Pair(y, dy) for y, dy in zip(results, tangents, strict=True)])
        return Lam("_p", _bound(bindings, Let("_y", App(Op(constant.name), _inputs(len(deltas))), outcome)))
    if constant.kind == "constant":
        return Lam("_n", Pair(App(Op(constant.name), Var("_n")), kind.zero))
    if constant.kind == "observing":
        return Lam("_p", App(Op(constant.name), Pair(Fst(Fst(Var("_p"))), Fst(Snd(Var("_p"))))))
    _only_source(constant)
    return Op(constant.name)


def _combination(partials: tuple[Term, ...], deltas: list[Term], kind: Dual) -> Term:
    """Return the sum of the partials times the tangents; a factor of one is left out."""
    parts = [d if p == Real(1) else kind.scale(p, d) for p, d in zip(partials, deltas, strict=True)]
    total = parts[0]
    for part in parts[1:]:
        total = kind.add(total, part)
    return total


def _arguments(constant: Constant) -> tuple[list[Term], list[tuple[str, Term]], list[Term]]:
    """For a smooth function: the results in `_y`, bindings of x1, _d1, ..., xn, _dn to parts of `_p`, the tangents."""
    argument, result = constant.type.argument, constant.type.result  # type: ignore[attr-defined]
    n, m = dimension(argument) or 0, dimension(result) or 0
    bindings: list[tuple[str, Term]] = []
    for i, dual in enumerate(_components(Var("_p"), n), 1):
        bindings += [(f"x{i}", Fst(dual)), (f"_d{i}", Snd(dual))]
    return _components(Var("_y"), m), bindings, [Var(f"_d{i}") for i in range(1, n + 1)]


def _components(whole: Term, n: int) -> list[Term]:
    """The projections of an n-tuple."""
    if n == 1:
        return [whole]
    return [Fst(whole), *_components(Snd(whole), n - 1)]


def _inputs(n: int) -> Term:
    return tuple_(*[Var(f"x{i}") for i in range(1, n + 1)])


def _bound(bindings: list[tuple[str, Term]], body: Term) -> Term:
    for name, term in reversed(bindings):
        body = Let(name, term, body)
    return body


@cache
def _partials(name: str) -> tuple[tuple[Term, ...], ...]:
    return tuple(tuple(parse(text) for text in row) for row in CONSTANTS[name].partials)


def _only_source(constant: Constant) -> None:
    if constant.kind == "output":
        raise IllTyped(f"source program: {constant.name} occurs only in translated programs")


# Figure 9: the monadic translation


def monadic(term: Term) -> Term:
    """Translate a term by figure 9, with the cases of section 8 for arrays and for all primitive functions."""
    match term:
        case Var() | Literal():
            return Pure(term)
        case Real():
            return Pure(Pair(term, Op("Zero")))
        case Lam(name, body, annotation):
            return Pure(Lam(name, monadic(body), None if annotation is None else reverse_dual(annotation)))
        case Let(name, bound, body):
            return Do(name, monadic(bound), monadic(body))
        case App(Poly("fused", source), function):
            return fused(function, source)
        case App(function, argument):
            return Do("_f", monadic(function), Do("_x", monadic(argument), App(Var("_f"), Var("_x"))))
        case Pair(first, second):
            return Do("_x", monadic(first), Do("_y", monadic(second), Pure(Pair(Var("_x"), Var("_y")))))
        case Fst(inner) | Snd(inner) | Inl(inner) | Inr(inner):
            return Do("_x", monadic(inner), Pure(type(term)(Var("_x"))))
        case Case(scrutinee, left, left_body, right, right_body):
            chosen = Case(Var("_x"), left, monadic(left_body), right, monadic(right_body))
            return Do("_x", monadic(scrutinee), chosen)
        case Op(name):
            return Pure(_monadic_function(CONSTANTS[name]))
    raise IllTyped(f"source program: {term} occurs only in translated programs", term.place)


def _monadic_function(constant: Constant) -> Term:
    if constant.kind == "smooth":
        results, bindings, deltas = _arguments(constant)
        names = [f"_u{j}" for j in range(1, len(results) + 1)]
        pairs = [Pair(y, apply("Var", Var(u))) for y, u in zip(results, names, strict=True)]
        body: Term = Pure(tuple_(*pairs))
        for name, row in reversed(list(zip(names, _partials(constant.name), strict=True))):
            body = Do(name, apply("deltaLet", _combination(row, deltas, DELTA)), body)
        return Lam("_p", _bound(bindings, Let("_y", App(Op(constant.name), _inputs(len(deltas))), body)))
    if constant.name == "build":
        return Lam("_p", apply("sequence", App(Op("build"), Var("_p"))))
    if constant.name == "fold":
        return Op("foldM")
    if constant.kind in ("constant", "observing"):
        return Lam("_p", Pure(App(_dual_function(constant, DELTA), Var("_p"))))
    _only_source(constant)
    if not isinstance(constant.type, Arrow):
        return Op(constant.name)
    return Lam("_p", Pure(App(Op(constant.name), Var("_p"))))


def fused(function: Term, source: Type) -> Term:
    """Figure 15: differentiate a closed function of R^a at each call, which leaves one delta term."""
    n = dimension(source)
    if n is None or function.free:
        raise IllTyped(f"fused: {function} must be a closed function from R^a, not from {source}", function.place)
    duals = _components(Var("_p"), n)
    start = tuple_(*[Pair(Fst(d), apply("Var", Literal(i))) for i, d in enumerate(duals, 1)])
    total: Term = Op("Zero")
    for i, dual in enumerate(duals, 1):
        partial = apply("lookupOrZero", Literal(i), Var("_m"))
        total = apply("Add", total, apply("Scale", partial, Snd(dual)))
    result = Do("_u", apply("deltaLet", total), Pure(Pair(Fst(Var("_r")), apply("Var", Var("_u")))))
    return Pure(Lam("_p", Let("_r", _run(n, function, start), Let("_m", _eval(Real(1), Snd(Var("_r"))), result))))


def _run(n: int, function: Term, start: Term) -> Term:
    """`runDelta (n + 1)` of the translated function at a point."""
    return apply("runDelta", Literal(n + 1), Do("_f", monadic(function), App(Var("_f"), start)))


def _eval(factor: Term, delta: Term) -> Term:
    return apply("eval", factor, delta, Op("emptyMap"))


# The wrappers for R^a -> R: figures 4, 6, 8 and 10


def _source(term: Term) -> tuple[Term, Type, int]:
    """Return a main expression as a source program, the type of its input, and the number of reals in that."""
    type_ = typeof(term)
    match type_:
        case Arrow(source, Base("R")) if (n := dimension(source)) is not None:
            return as_source(term), source, n
    raise IllTyped(
        f"main expression: {type_} is not R^a -> R; see forward_derivative and reverse_derivative", term.place
    )


@deep()
def forward(term: Term) -> Term:
    """Figure 4: (R^a * R^a) -> R, the derivative at a point in a direction."""
    term, _, n = _source(term)
    points, directions = _components(Fst(Var("_s")), n), _components(Snd(Var("_s")), n)
    duals = tuple_(*[Pair(s, ds) for s, ds in zip(points, directions, strict=True)])
    return Lam("_s", Snd(App(translate(term, TANGENT), duals)))


@deep()
def reverse1(term: Term) -> Term:
    """Figure 6: (R^a * R) -> R^a, by vectors."""
    term, source, n = _source(term)

    def seed(i: int) -> Term:
        return App(Poly("scale", source), Pair(Snd(Var("_s")), App(Poly("onehot", source), Literal(i))))

    points = _components(Fst(Var("_s")), n)
    duals = tuple_(*[Pair(s, seed(i)) for i, s in enumerate(points, 1)])
    return Lam("_s", Snd(App(translate(term, vectors(source)), duals)))


@deep()
def reverse2(term: Term) -> Term:
    """Figure 8: (R^a * R) -> R^a, by delta terms with sharing that `eval` cannot see."""
    term, source, n = _source(term)
    points = _components(Fst(Var("_s")), n)
    duals = tuple_(*[Pair(s, apply("OneHot", Literal(i))) for i, s in enumerate(points, 1)])
    zeros = tuple_(*[Real(0)] * n)
    evaluated = App(Poly("eval2", source), tuple_(Snd(Var("_s")), Snd(Var("_t")), zeros))
    return Lam("_s", Let("_t", App(translate(term, DELTA), duals), evaluated))


@deep()
def reverse(term: Term) -> Term:
    """Figure 10: (R^a * R) -> R^a, by delta terms with explicit sharing."""
    term, _, n = _source(term)
    points = _components(Fst(Var("_s")), n)
    duals = tuple_(*[Pair(s, apply("Var", Literal(i))) for i, s in enumerate(points, 1)])
    parts = tuple_(*[apply("lookupOrZero", Literal(i), Var("_m")) for i in range(1, n + 1)])
    return Lam("_s", Let("_r", _run(n, term, duals), Let("_m", _eval(Snd(Var("_s")), Snd(Var("_r"))), parts)))


# The wrappers for any first-order S -> T: figure 16


def _ends(term: Term, context: Mapping[str, Type] | None = None) -> tuple[Term, Type, Type]:
    """Return a main expression as a source program, the type of its input, and the type of its output."""
    type_ = typeof(term, context)
    if not isinstance(type_, Arrow) or not _is_first_order(type_.argument) or not _is_first_order(type_.result):
        raise IllTyped(f"main expression: {type_} is not a function between first-order types", term.place)
    return as_source(term), type_.argument, type_.result


def _is_first_order(type_: Type) -> bool:
    match type_:
        case Product(left, right) | Sum(left, right):
            return _is_first_order(left) and _is_first_order(right)
        case Vector(item):
            return _is_first_order(item)
    return isinstance(type_, Base) and type_ != terms.DELTA


@deep()
def forward_derivative(term: Term) -> Term:
    """Figure 16: (S * S) -> T."""
    term, source, target = _ends(term)
    dualised = App(Poly("zip", source), Var("_x"))
    return Lam("_x", App(Poly("delta", target), App(translate(term, TANGENT), dualised)))


@deep()
def reverse_derivative(term: Term) -> Term:
    """Figure 16: (S * T) -> S."""
    return linked(term, [])


class Compiled(NamedTuple):
    """A function of a library, translated once for all programs: its name, its type, and its derivative.

    The derivative has the type M (D{type}), which does not depend on the programs that use it.
    """

    name: str
    type: Type
    derivative: Term


@deep()
def compiled(name: str, definition: Term, library: Sequence[Compiled] = ()) -> Compiled:
    """Translate the definition of a function separately; it needs only the types of the functions that it uses.

    Krawiec et al. 2022, section 8.1.
    """
    type_ = typeof(definition, {used.name: used.type for used in library})
    return Compiled(name, type_, monadic(as_source(definition)))


@deep()
def linked(term: Term, library: Sequence[Compiled]) -> Term:
    """Figure 16, (S * T) -> S, for a program that uses a library, whose functions are not translated again."""
    term, source, target = _ends(term, {used.name: used.type for used in library})
    weighted = Lam("_a", App(dot(target), Pair(App(term, Fst(Var("_a"))), Snd(Var("_a")))))
    start = Pair(Fst(Var("_v")), App(Poly("initZeros", target), Snd(Var("_s"))))
    action: Term = Do("_f", monadic(weighted), App(Var("_f"), start))
    for used in reversed(library):
        action = Do(used.name, used.derivative, action)
    run = apply("runDelta", apply("+Z", Snd(Var("_v")), Literal(1)), action)
    looked_up = App(Poly("lookup", source), Pair(Var("_m"), Fst(Var("_v"))))
    final = Let("_r", run, Let("_m", _eval(Real(1), Snd(Var("_r"))), looked_up))
    return Lam("_s", Let("_v", App(Poly("initVars", source), Pair(Fst(Var("_s")), Literal(0))), final))


def dot(type_: Type) -> Term:
    """Return the dot product at a type as a term without polytypic operations, so that it can be translated."""
    x, y = Fst(Var("_d")), Snd(Var("_d"))
    zero: Term = Real(0)
    match type_:
        case Base("R"):
            return Op("*")
        case Product(left, right):
            one = App(dot(left), Pair(Fst(x), Fst(y)))
            return Lam("_d", apply("+", one, App(dot(right), Pair(Snd(x), Snd(y)))))
        case Sum(left, right):
            lefts = Case(y, "_q", App(dot(left), Pair(Var("_c"), Var("_q"))), "_", zero)
            rights = Case(y, "_", zero, "_q", App(dot(right), Pair(Var("_c"), Var("_q"))))
            return Lam("_d", Case(x, "_c", lefts, "_c", rights))
        case Vector(item):
            i = Snd(Var("_e"))
            part = App(dot(item), Pair(apply("index", x, i), apply("index", y, i)))
            add = Lam("_e", apply("+", Fst(Var("_e")), part))
            return Lam("_d", apply("fold", add, zero, apply("build", apply("size", x), Lam("_i", Var("_i")))))
    return Lam("_d", zero)


TRANSLATIONS: dict[str, Callable[[Term], Object]] = {
    "forward": forward_derivative,
    "reverse1": reverse1,
    "reverse2": reverse2,
    "reverse": reverse_derivative,
}
