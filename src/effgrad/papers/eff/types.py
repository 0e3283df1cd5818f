"""The type-and-effect checker of EFF.

The type of a term follows from the term alone: binders, injections and the return clauses of handlers are annotated,
operations are declared, and a thunk that names no effect has the effect around it. The rules are those of the paper,
which never widen an effect. So a thunk can be forced only where its effect is the current one, and a computation under
a handler can perform only operations that the handler has clauses for. The effects are filled in before the types are
checked, so that a term keeps its type wherever reduction moves it.

Sigal 2024, figures 7.6, 7.7, 7.13, 7.14, 7.22 and 7.23.
"""

from collections.abc import Mapping
from dataclasses import replace

from effgrad.papers.eff import terms as t
from effgrad.papers.eff import type_terms as types
from effgrad.papers.eff.signature import builtin
from effgrad.papers.syntax import IllTyped, deep
from effgrad.vocabulary import Object

Context = Mapping[str, types.ValueType]


@deep()
def check(program: t.Program, effect: types.Effect = frozenset(), variables: frozenset[str] = frozenset(),
          context: Context | None = None) -> tuple[t.Program, types.ComputationType]:  # fmt: skip
    """Return a program with its effects filled in, and its type; raise `IllTyped` with the rule that is broken.

    Arguments:
        program: a program that `parse` returns.
        effect: the operations that the context handles; none for a program to be run.
        variables: the type variables that it may use.
        context: the types of its free variables.

    >>> from effgrad.papers.eff.reading import parse
    >>> print(check(parse("x <- return 1.0; return (x, x)"))[1])
    F (R * R)
    """
    checker = Checker(program.operations, variables)
    checker.declarations()
    term = with_effects(program.body, effect)
    return t.Program(program.operations, term), checker.computation(term, context or {}, effect)


def with_effects(term: Object, effect: types.Effect) -> Object:
    """Give each thunk, recursion and handling in a term that names no effect the effect of its context."""
    match term:
        case t.Thunk(body, named):
            own = effect if named is None else named
            return t.Thunk(with_effects(body, own), own, place=term.place)
        case t.Recursive(effect=named):
            term = replace(term, effect=effect if named is None else named)
        case t.Handle(body, t.Handler() as handler, outer, shallow):
            inner, handler = with_effects(body, handler.handled), with_effects(handler, effect)
            return t.Handle(inner, handler, effect if outer is None else outer, shallow, place=term.place)
    return term.rebuilt(lambda part: with_effects(part, effect))


class Checker:
    """The judgements of the type system. Each returns the type of a term whose effects are filled in."""

    def __init__(self, operations: types.Operations, variables: frozenset[str] = frozenset()) -> None:
        self.operations, self.variables = operations, variables

    # Kinds

    def declarations(self) -> None:
        """Check that the types of each operation name earlier operations only, since effects are not recursive."""
        before: dict[str, Object] = {}
        for name, ends in self.operations.items():
            earlier = Checker(dict(before), self.variables)
            for type_ in ends:
                earlier.kind(type_, None)
            before[name] = ends

    def kind(self, type_: Object, term: t.Term | None) -> None:
        """Check that a type is well-kinded; `term` is where it occurs."""
        place = None if term is None else term.place
        match type_:
            case types.Variable(name) if name not in self.variables:
                raise IllTyped(f"kind of a type variable: {name} is not declared", place)
            case types.U(effect, _):
                self.effect(effect, term)
            case types.Variant(cases) if len({label for label, _ in cases}) < len(cases):
                raise IllTyped(f"kind of a variant: a label occurs twice in {type_}", place)
        for part in type_.nodes():
            self.kind(part, term)

    def effect(self, effect: types.Effect, term: t.Term | None) -> types.Effect:
        for name in sorted(effect - self.operations.keys()):
            place = None if term is None else term.place
            raise IllTyped(f"kind of an effect: the operation {name} is not declared (before this)", place)
        return effect

    # Values

    def value(self, term: t.Term, context: Context) -> types.ValueType:
        match term:
            case t.Var(name):
                if name not in context:
                    raise IllTyped(f"variable: {name} is not bound", term.place)
                return context[name]
            case t.Unit():
                return types.UNIT
            case t.Constant(type_, _):
                return type_
            case t.Location(_, item):
                return types.Ref(item)
            case t.Pair(first, second):
                return types.Product(self.value(first, context), self.value(second, context))
            case t.Inj(type_, label, content):
                self.kind(type_, term)
                cases = dict(type_.cases) if isinstance(type_, types.Variant) else {}
                if label not in cases:
                    raise IllTyped(f"injection: {type_} has no label {label}, in {term}", term.place)
                self.same(self.value(content, context), cases[label], "injection", term)
                return type_
            case t.Thunk(body, frozenset(own)):
                return types.U(self.effect(own, term), self.computation(body, context, own))
        raise IllTyped(f"value: {term} is none; {{ }} suspends a computation", term.place)

    # Computations

    def computation(self, term: t.Term, context: Context, effect: types.Effect) -> types.ComputationType:
        match term:
            case t.Split(pair, first, second, body):
                found = self.value(pair, context)
                if not isinstance(found, types.Product):
                    raise self.wrong("case of a pair", "A * B", found, term)
                return self.computation(body, {**context, first: found.left, second: found.right}, effect)
            case t.Case(scrutinee, branches):
                return self.case(term, scrutinee, branches, context, effect)
            case t.Force(thunk):
                found = self.value(thunk, context)
                if not isinstance(found, types.U):
                    raise self.wrong("force", "U[E] C", found, term)
                if found.effect != effect:
                    raise self.wrong("force", f"a thunk of the effect {_named(effect)} here", found, term)
                return found.type
            case t.Return(value):
                return types.F(self.value(value, context))
            case t.To(name, first, rest):
                got = self.computation(first, context, effect)
                if not isinstance(got, types.F):
                    raise self.wrong("sequencing", "F A before `;`", got, term)
                return self.computation(rest, {**context, name: got.type}, effect)
            case t.Lam(name, bound, body):
                self.kind(bound, term)
                return types.Arrow(bound, self.computation(body, {**context, name: bound}, effect))
            case t.App(function, argument):
                type_ = self.computation(function, context, effect)
                if not isinstance(type_, types.Arrow):
                    raise self.wrong("application", "A -> C", type_, term)
                self.same(self.value(argument, context), type_.argument, "argument of an application", term)
                return type_.result
            case t.Choice() | t.Prj():
                return self.choice(term, context, effect)
        return self.operation(term, context, effect)

    def choice(self, term: t.Choice | t.Prj, context: Context, effect: types.Effect) -> types.ComputationType:
        """The type of a pair of computations, or of a projection from one."""
        if isinstance(term, t.Choice):
            left, right = (self.computation(part, context, effect) for part in (term.left, term.right))
            return types.Both(left, right)
        type_ = self.computation(term.choice, context, effect)
        if not isinstance(type_, types.Both) or term.index not in (1, 2):
            raise self.wrong(f"projection {term.index}", "C & D", type_, term)
        return type_.left if term.index == 1 else type_.right

    def operation(self, term: t.Term, context: Context, effect: types.Effect) -> types.ComputationType:
        """The type of a computation that performs an operation, uses the store, recurs or handles."""
        match term:
            case t.Call(name, parameter):
                given = self.value(parameter, context)
                wanted, result = self.called(name, effect, term)
                self.same(given, wanted, f"parameter of {name}", term)
                return types.F(result)
            case t.Access(name, parameter):
                return types.F(self.accessed(name, self.value(parameter, context), term))
            case t.Recursive(name, type_, body, own):
                self.kind(type_, term)
                self.same(own, effect, "recursion", term)
                inner = self.computation(body, {**context, name: types.U(effect, type_)}, effect)
                self.same(inner, type_, "recursion", term)
                return type_
            case t.Handle(body, t.Handler() as handler, outer, shallow):
                self.same(outer, effect, "handling", term)
                type_ = self.handler(handler, context, effect, shallow)
                handled = self.computation(body, context, handler.handled)
                self.same(handled, types.F(handler.type), "handled computation", term)
                return type_
        raise IllTyped(f"computation: {term} is a value; return it", term.place)

    def case(self, term: t.Term, scrutinee: t.Term, branches: tuple[t.Branch, ...], context: Context,
             effect: types.Effect) -> types.ComputationType:  # fmt: skip
        found = self.value(scrutinee, context)
        if not isinstance(found, types.Variant):
            raise self.wrong("case of a variant", "a variant", found, term)
        cases = dict(found.cases)
        if [b.label for b in branches] != list(cases) or not branches:
            raise self.wrong("case of a variant", f"the branches {', '.join(cases)}",
                             ", ".join(b.label for b in branches), term)  # fmt: skip
        whole: types.ComputationType | None = None
        for branch in branches:
            type_ = self.computation(branch.body, {**context, branch.name: cases[branch.label]}, effect)
            whole = whole or type_
            self.same(type_, whole, "branches of case", branch)
        assert whole is not None
        return whole

    def called(self, name: str, effect: types.Effect, term: t.Term) -> tuple[types.ValueType, types.ValueType]:
        if (function := builtin(name)) is not None:
            return function.parameter, function.result
        if name not in self.operations:
            raise IllTyped(f"operation: {name} is not declared, in {term}", term.place)
        if name not in effect:
            raise IllTyped(f"operation: {name} is not of the effect {_named(effect)} here, in {term}", term.place)
        return self.operations[name]

    def accessed(self, name: str, given: types.ValueType, term: t.Term) -> types.ValueType:
        """The type of the result of making, reading or writing a reference."""
        if name == "ref":
            return types.Ref(given)
        if name == "read":
            if not isinstance(given, types.Ref):
                raise self.wrong("reading", "Ref A", given, term)
            return given.item
        if not isinstance(given, types.Product) or not isinstance(given.left, types.Ref):
            raise self.wrong("writing", "Ref A * A", given, term)
        self.same(given.right, given.left.item, "writing", term)
        return types.UNIT

    def handler(self, handler: t.Handler, context: Context, outer: types.Effect,
                shallow: bool) -> types.ComputationType:  # fmt: skip
        """The type of a handler's result."""
        self.kind(handler.type, handler)
        type_ = self.computation(handler.body, {**context, handler.name: handler.type}, outer)
        # The effect and the type of a continuation, which runs under the handler unless that is shallow.
        rest = (handler.handled, types.F(handler.type)) if shallow else (outer, type_)
        before: set[str] = set()
        for clause in handler.clauses:
            if clause.operation not in self.operations:
                raise IllTyped(f"clause of a handler: the operation {clause.operation} is not declared", clause.place)
            if clause.operation in before:
                raise IllTyped(f"clause of a handler: {clause.operation} has two", clause.place)
            before.add(clause.operation)
            parameter, result = self.operations[clause.operation]
            bound = {clause.parameter: parameter, clause.continuation: types.U(rest[0], types.Arrow(result, rest[1]))}
            found = self.computation(clause.body, {**context, **bound}, outer)
            self.same(found, type_, f"clause of {clause.operation}", clause)
        return type_

    def same(self, found: object, wanted: object, rule: str, term: t.Term) -> None:
        if found != wanted:
            raise self.wrong(rule, wanted, found, term)

    def wrong(self, rule: str, wanted: object, found: object, term: t.Term) -> IllTyped:
        return IllTyped(f"{rule}: expected {wanted}, found {found}, in {term}", term.place)


def _named(effect: types.Effect) -> str:
    return f"[{', '.join(sorted(effect))}]"
