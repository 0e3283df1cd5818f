"""The type checker: one rule for each form of term, with the types of binders found by unification.

Types are simple (monomorphic): a binder has one type, which may be left out. `typeof` returns the type of a term.
Krawiec et al. 2022, section 2.
"""

from collections.abc import Callable, Mapping

from effgrad.papers.lam import terms as t
from effgrad.papers.lam.primitives import CONSTANTS
from effgrad.papers.syntax import IllTyped, deep


@deep()
def typeof(term: t.Term, context: Mapping[str, t.Type] | None = None) -> t.Type:
    """Return the type of a term in a context; raise `IllTyped` with the rule that is broken, and the term.

    >>> from effgrad.papers.lam import parse
    >>> print(typeof(parse("\\\\(x, y). sin x * y")))
    R * R -> R
    """
    checker = _Checker()
    return checker.known(checker.infer(term, dict(context or {})))


@deep()
def types_of(term: t.Term) -> dict[int, t.Type]:
    """The type of every node of a closed term, by the node's `id`; no node may occur twice."""
    checker = _Checker()
    checker.infer(term, {})
    return {node: checker.known(type_) for node, type_ in checker.types.items()}


def dual(type_: t.Type) -> t.Type:
    """The forward translation on types: R becomes R * R. Figure 3."""
    return mapped(type_, t.Product(t.R, t.R))


def mapped(type_: t.Type, real: t.Type, effect: Callable[[t.Type], t.Type] = lambda result: result) -> t.Type:
    """Replace R in a type by another type, and apply `effect` to the result types of functions."""
    match type_:
        case t.Base("R"):
            return real
        case t.Arrow(argument, result):
            return t.Arrow(mapped(argument, real, effect), effect(mapped(result, real, effect)))
    return type_.rebuilt(lambda part: mapped(part, real, effect))


def reverse_dual(type_: t.Type) -> t.Type:
    """The monadic translation on types: R becomes R * Delta, and functions give computations. Figure 9."""
    return mapped(type_, t.Product(t.R, t.DELTA), t.Monad)


# The type of a polytypic operation at a type, from the tables of figures 1 and 16 and from the wrappers.
POLYTYPIC: dict[str, Callable[[t.Type], t.Type]] = {
    "scale": lambda a: t.Arrow(t.Product(t.R, a), a),
    "add": lambda a: t.Arrow(t.Product(a, a), a),
    "dot": lambda a: t.Arrow(t.Product(a, a), t.R),
    "zero": lambda a: a,
    "onehot": lambda a: t.Arrow(t.Z, a),
    "primal": lambda a: t.Arrow(dual(a), a),
    "zip": lambda a: t.Arrow(t.Product(a, a), dual(a)),
    "delta": lambda a: t.Arrow(dual(a), a),
    "eval2": lambda a: t.Arrow(t.Product(t.R, t.Product(t.DELTA, a)), a),
    "initVars": lambda a: t.Arrow(t.Product(a, t.Z), t.Product(reverse_dual(a), t.Z)),
    "initZeros": lambda a: t.Arrow(a, reverse_dual(a)),
    "lookup": lambda a: t.Arrow(t.Product(t.Map(t.R), reverse_dual(a)), a),
    "fused": lambda a: t.Arrow(t.Arrow(a, t.R), t.Arrow(a, t.R)),
}


class _Checker:
    def __init__(self) -> None:
        self.found: dict[str, t.Type] = {}
        self.types: dict[int, t.Type] = {}
        self.count = 0

    def infer(self, term: t.Term, context: dict[str, t.Type]) -> t.Type:
        self.types[id(term)] = type_ = self.rule(term, context)
        return type_

    def rule(self, term: t.Term, context: dict[str, t.Type]) -> t.Type:
        match term:
            case t.Var(name):
                if name not in context:
                    raise IllTyped(f"variable: {name} is not bound", term.place)
                return context[name]
            case t.Lam(name, body, annotation):
                argument = annotation or self.fresh()
                return t.Arrow(argument, self.infer(body, {**context, name: argument}))
            case t.App(function, argument):
                wanted, result = self.fresh(), self.fresh()
                self.equal(self.infer(function, context), t.Arrow(wanted, result), "function of an application", term)
                self.equal(self.infer(argument, context), wanted, "argument of an application", argument)
                return result
            case t.Let(name, bound, body):
                return self.infer(body, {**context, name: self.infer(bound, context)})
            case t.Pure(content):
                return t.Monad(self.infer(content, context))
            case t.Do(name, bound, rest):
                given = self.fresh()
                self.equal(self.infer(bound, context), t.Monad(given), "do", bound)
                whole = self.infer(rest, {**context, name: given})
                self.equal(whole, t.Monad(self.fresh()), "do", rest)
                return whole
            case t.Real() | t.Literal() | t.Op() | t.Poly():
                return self.constant(term)
        return self.data(term, context)

    def data(self, term: t.Term, context: dict[str, t.Type]) -> t.Type:
        """The type of a pair, an injection, a projection or a `case`."""
        match term:
            case t.Pair(first, second):
                return t.Product(self.infer(first, context), self.infer(second, context))
            case t.Fst(pair) | t.Snd(pair):
                left, right = self.fresh(), self.fresh()
                self.equal(self.infer(pair, context), t.Product(left, right), "projection", term)
                return left if isinstance(term, t.Fst) else right
            case t.Inl(content):
                return t.Sum(self.infer(content, context), self.fresh())
            case t.Inr(content):
                return t.Sum(self.fresh(), self.infer(content, context))
            case t.Case(scrutinee, left_name, left_body, right_name, right_body):
                one, other = self.fresh(), self.fresh()
                self.equal(self.infer(scrutinee, context), t.Sum(one, other), "case", scrutinee)
                whole = self.infer(left_body, {**context, left_name: one})
                self.equal(self.infer(right_body, {**context, right_name: other}), whole, "branches of case", term)
                return whole
        raise AssertionError(term)

    def constant(self, term: t.Term) -> t.Type:
        """The type of a literal, of a constant, or of a polytypic operation at a type."""
        match term:
            case t.Real():
                return t.R
            case t.Literal(value):
                return t.STRING if isinstance(value, str) else t.Z
            case t.Op(name):
                return self.instance(CONSTANTS[name].type, {})
            case t.Poly(name, type_):
                if name not in POLYTYPIC:
                    raise IllTyped(f"polytypic operation: there is no {name}", term.place)
                return POLYTYPIC[name](type_)
        raise AssertionError(term)

    def fresh(self) -> t.Unknown:
        self.count += 1
        return t.Unknown(f"?{self.count}")

    def instance(self, type_: t.Type, chosen: dict[str, t.Type]) -> t.Type:
        """Return the type of a constant, with fresh unknowns for those of the table; `chosen` collects them."""
        match type_:
            case t.Unknown(name):
                return chosen.setdefault(name, self.fresh())
        return type_.rebuilt(lambda part: self.instance(part, chosen))

    def equal(self, one: t.Type, other: t.Type, rule: str, term: t.Term) -> None:
        if not self.unify(one, other):
            raise IllTyped(f"{rule}: expected {self.shown(other)}, found {self.shown(one)}, in {term}", term.place)

    def unify(self, one: t.Type, other: t.Type) -> bool:
        one, other = self.resolve(one), self.resolve(other)
        if one == other:
            return True
        if isinstance(one, t.Unknown) or isinstance(other, t.Unknown):
            unknown, type_ = (one, other) if isinstance(one, t.Unknown) else (other, one)
            assert isinstance(unknown, t.Unknown)
            if self.occurs(unknown.name, type_):
                return False
            self.found[unknown.name] = type_
            return True
        if type(one) is not type(other) or isinstance(one, t.Base):
            return False
        return all(self.unify(a, b) for a, b in zip(one.nodes(), other.nodes(), strict=True))

    def resolve(self, type_: t.Type) -> t.Type:
        while isinstance(type_, t.Unknown) and type_.name in self.found:
            type_ = self.found[type_.name]
        return type_

    def occurs(self, name: str, type_: t.Type) -> bool:
        type_ = self.resolve(type_)
        return type_ == t.Unknown(name) or any(self.occurs(name, part) for part in type_.nodes())

    def shown(self, type_: t.Type) -> t.Type:
        return self.resolve(type_).rebuilt(self.shown)

    def known(self, type_: t.Type) -> t.Type:
        """Substitute the types found for unknowns. An undetermined one becomes Z, since no use of it can differ."""
        type_ = self.resolve(type_)
        if isinstance(type_, t.Unknown):
            return t.Z
        return type_.rebuilt(self.known)
