"""The type checker: one rule for each form of term, with the types of binders found by unification.

Types are simple: a binder has one type, which may be left out. `typeof` gives the type of a closed term.
Krawiec et al. 2022, section 2.
"""

from collections.abc import Callable, Mapping

from effgrad.papers.lam.primitives import CONSTANTS
from effgrad.papers.lam.terms import (
    DELTA,
    STRING,
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
    Map,
    Monad,
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
    Unknown,
    Var,
    Vector,
    Z,
)
from effgrad.papers.syntax import IllTyped, deep


@deep()
def typeof(term: Term, context: Mapping[str, Type] | None = None) -> Type:
    """The type of a term in a context; raises `IllTyped` with the rule that is broken, and the term.

    >>> from effgrad.papers.lam import parse
    >>> print(typeof(parse("\\\\(x, y). sin x * y")))
    R * R -> R
    """
    checker = _Checker()
    return checker.known(checker.infer(term, dict(context or {})))


@deep()
def types_of(term: Term) -> dict[int, Type]:
    """The type of every node of a closed term, by the node's `id`; no node may occur twice."""
    checker = _Checker()
    checker.infer(term, {})
    return {node: checker.known(type_) for node, type_ in checker.types.items()}


def dual(type_: Type) -> Type:
    """The forward translation on types: R becomes R * R. Figure 3."""
    return mapped(type_, Product(R, R))


def mapped(type_: Type, real: Type, effect: Callable[[Type], Type] = lambda result: result) -> Type:
    """A type with another type for R, and an effect at the results of functions."""
    match type_:
        case Base("R"):
            return real
        case Arrow(argument, result):
            return Arrow(mapped(argument, real, effect), effect(mapped(result, real, effect)))
    return rebuilt(type_, lambda part: mapped(part, real, effect))


def reverse_dual(type_: Type) -> Type:
    """The monadic translation on types: R becomes R * Delta, and functions give computations. Figure 9."""
    return mapped(type_, Product(R, DELTA), Monad)


# The type of a polytypic operation at a type, from the tables of figures 1 and 16 and from the wrappers.
POLYTYPIC: dict[str, Callable[[Type], Type]] = {
    "scale": lambda a: Arrow(Product(R, a), a),
    "add": lambda a: Arrow(Product(a, a), a),
    "dot": lambda a: Arrow(Product(a, a), R),
    "zero": lambda a: a,
    "onehot": lambda a: Arrow(Z, a),
    "primal": lambda a: Arrow(dual(a), a),
    "zip": lambda a: Arrow(Product(a, a), dual(a)),
    "delta": lambda a: Arrow(dual(a), a),
    "eval2": lambda a: Arrow(Product(R, Product(DELTA, a)), a),
    "initVars": lambda a: Arrow(Product(a, Z), Product(reverse_dual(a), Z)),
    "initZeros": lambda a: Arrow(a, reverse_dual(a)),
    "lookup": lambda a: Arrow(Product(Map(R), reverse_dual(a)), a),
    "fused": lambda a: Arrow(Arrow(a, R), Arrow(a, R)),
}


class _Checker:
    def __init__(self) -> None:
        self.found: dict[str, Type] = {}
        self.types: dict[int, Type] = {}
        self.count = 0

    def infer(self, term: Term, context: dict[str, Type]) -> Type:
        self.types[id(term)] = type_ = self.rule(term, context)
        return type_

    def rule(self, term: Term, context: dict[str, Type]) -> Type:
        match term:
            case Var(name):
                if name not in context:
                    raise IllTyped(f"variable: {name} is not bound", term.place)
                return context[name]
            case Lam(name, body, annotation):
                argument = annotation or self.fresh()
                return Arrow(argument, self.infer(body, {**context, name: argument}))
            case App(function, argument):
                wanted, result = self.fresh(), self.fresh()
                self.equal(self.infer(function, context), Arrow(wanted, result), "function of an application", term)
                self.equal(self.infer(argument, context), wanted, "argument of an application", argument)
                return result
            case Let(name, bound, body):
                return self.infer(body, {**context, name: self.infer(bound, context)})
            case Pure(content):
                return Monad(self.infer(content, context))
            case Do(name, bound, rest):
                given = self.fresh()
                self.equal(self.infer(bound, context), Monad(given), "do", bound)
                whole = self.infer(rest, {**context, name: given})
                self.equal(whole, Monad(self.fresh()), "do", rest)
                return whole
            case Real() | Literal() | Op() | Poly():
                return self.constant(term)
        return self.data(term, context)

    def data(self, term: Term, context: dict[str, Type]) -> Type:
        """The type of a pair, of a case of a sum, or of what takes one apart."""
        match term:
            case Pair(first, second):
                return Product(self.infer(first, context), self.infer(second, context))
            case Fst(pair) | Snd(pair):
                left, right = self.fresh(), self.fresh()
                self.equal(self.infer(pair, context), Product(left, right), "projection", term)
                return left if isinstance(term, Fst) else right
            case Inl(content):
                return Sum(self.infer(content, context), self.fresh())
            case Inr(content):
                return Sum(self.fresh(), self.infer(content, context))
            case Case(scrutinee, left_name, left_body, right_name, right_body):
                one, other = self.fresh(), self.fresh()
                self.equal(self.infer(scrutinee, context), Sum(one, other), "case", scrutinee)
                whole = self.infer(left_body, {**context, left_name: one})
                self.equal(self.infer(right_body, {**context, right_name: other}), whole, "branches of case", term)
                return whole
        raise AssertionError(term)

    def constant(self, term: Term) -> Type:
        """The type of a literal, of a constant, or of an operation at a type."""
        match term:
            case Real():
                return R
            case Literal(value):
                return STRING if isinstance(value, str) else Z
            case Op(name):
                return self.instance(CONSTANTS[name].type, {})
            case Poly(name, type_):
                if name not in POLYTYPIC:
                    raise IllTyped(f"polytypic operation: there is no {name}", term.place)
                return POLYTYPIC[name](type_)
        raise AssertionError(term)

    def fresh(self) -> Unknown:
        self.count += 1
        return Unknown(f"?{self.count}")

    def instance(self, type_: Type, chosen: dict[str, Type]) -> Type:
        """The type of a constant, with unknowns of this use for those of the table."""
        match type_:
            case Unknown(name):
                return chosen.setdefault(name, self.fresh())
        return rebuilt(type_, lambda part: self.instance(part, chosen))

    def equal(self, one: Type, other: Type, rule: str, term: Term) -> None:
        if not self.unify(one, other):
            raise IllTyped(f"{rule}: expected {self.shown(other)}, found {self.shown(one)}, in {term}", term.place)

    def unify(self, one: Type, other: Type) -> bool:
        one, other = self.resolve(one), self.resolve(other)
        if one == other:
            return True
        if isinstance(one, Unknown) or isinstance(other, Unknown):
            unknown, type_ = (one, other) if isinstance(one, Unknown) else (other, one)
            assert isinstance(unknown, Unknown)
            if self.occurs(unknown.name, type_):
                return False
            self.found[unknown.name] = type_
            return True
        if type(one) is not type(other) or isinstance(one, Base):
            return False
        return all(self.unify(a, b) for a, b in zip(_parts(one), _parts(other), strict=True))

    def resolve(self, type_: Type) -> Type:
        while isinstance(type_, Unknown) and type_.name in self.found:
            type_ = self.found[type_.name]
        return type_

    def occurs(self, name: str, type_: Type) -> bool:
        type_ = self.resolve(type_)
        return type_ == Unknown(name) or any(self.occurs(name, part) for part in _parts(type_))

    def shown(self, type_: Type) -> Type:
        return rebuilt(self.resolve(type_), self.shown)

    def known(self, type_: Type) -> Type:
        """A type with all that was found put in; what nothing determines is Z, as no use can tell."""
        type_ = self.resolve(type_)
        if isinstance(type_, Unknown):
            return Z
        return rebuilt(type_, self.known)


def rebuilt(type_: Type, change: Callable[[Type], Type]) -> Type:
    """A type with its parts changed."""
    match type_:
        case Product(left, right):
            return Product(change(left), change(right))
        case Sum(left, right):
            return Sum(change(left), change(right))
        case Arrow(argument, result):
            return Arrow(change(argument), change(result))
        case Vector(item) | Map(item):
            return type(type_)(change(item))
        case Monad(result):
            return Monad(change(result))
    return type_


def _parts(type_: Type) -> tuple[Type, ...]:
    match type_:
        case Product(left, right) | Sum(left, right):
            return left, right
        case Arrow(argument, result):
            return argument, result
        case Vector(item) | Map(item) | Monad(item):
            return (item,)
    return ()
