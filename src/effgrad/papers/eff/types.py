"""The type-and-effect checker of EFF.

Every type is found from the term: binders, injections and the return clauses of handlers are annotated, operations are
declared, and a thunk that names no effect is of the effect around it. The rules are those of the paper, so an effect is
never widened: a thunk is forced at its own effect, and what a handler does not handle cannot be performed below it.
Checking also fills the effects in, so that a term keeps its type wherever reduction moves it.

Sigal 2024, figures 7.6, 7.7, 7.13, 7.14, 7.22 and 7.23.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from effgrad.papers.eff import terms as t
from effgrad.papers.eff import type_terms as types
from effgrad.papers.eff.signature import builtin
from effgrad.papers.syntax import IllTyped, deep

Context = Mapping[str, types.ValueType]


@deep()
def check(program: t.Program, effect: types.Effect = frozenset(), variables: frozenset[str] = frozenset(),
          context: Context | None = None) -> tuple[t.Program, types.ComputationType]:  # fmt: skip
    """A program with its effects filled in, and its type; raises `IllTyped` with the rule that is broken.

    Arguments:
        program: what `parse` gives.
        effect: the operations that the context handles; none for a program to be run.
        variables: the type variables that it may use.
        context: the types of its free variables.

    >>> from effgrad.papers.eff.reading import parse
    >>> print(check(parse("x <- return 1.0; return (x, x)"))[1])
    F (R * R)
    """
    checker = Checker(program.operations, variables)
    checker.declarations()
    term, type_ = checker.computation(program.body, context or {}, effect)
    return t.Program(program.operations, term), type_


class Checker:
    """The judgements; each gives the term with its effects filled in, and its type."""

    def __init__(self, operations: types.Operations, variables: frozenset[str] = frozenset()) -> None:
        self.operations, self.variables = operations, variables

    # Kinds

    def declarations(self) -> None:
        """The types of an operation may speak of operations before it only: there are no recursive effects."""
        before: dict[str, Any] = {}
        for name, ends in self.operations.items():
            earlier = Checker(dict(before), self.variables)
            for type_ in ends:
                earlier.kind(type_, None)
            before[name] = ends

    def kind(self, type_: Any, term: t.Term | None) -> None:
        """That a type is well-kinded."""
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

    def value(self, term: t.Term, context: Context, effect: types.Effect) -> tuple[t.Term, types.ValueType]:
        match term:
            case t.Var(name):
                if name not in context:
                    raise IllTyped(f"variable: {name} is not bound", term.place)
                return term, context[name]
            case t.Unit():
                return term, types.UNIT
            case t.Constant(type_, _):
                return term, type_
            case t.Location(_, item):
                return term, types.Ref(item)
            case t.Pair(first, second):
                first, left = self.value(first, context, effect)
                second, right = self.value(second, context, effect)
                return t.Pair(first, second, place=term.place), types.Product(left, right)
            case t.Inj(type_, label, content):
                self.kind(type_, term)
                cases = dict(type_.cases) if isinstance(type_, types.Variant) else {}
                if label not in cases:
                    raise IllTyped(f"injection: {type_} has no label {label}, in {term}", term.place)
                content, found = self.value(content, context, effect)
                self.same(found, cases[label], "injection", term)
                return t.Inj(type_, label, content, place=term.place), type_
            case t.Thunk(body, named):
                own = effect if named is None else self.effect(named, term)
                body, inner = self.computation(body, context, own)
                return t.Thunk(body, own, place=term.place), types.U(own, inner)
        raise IllTyped(f"value: {term} is none; {{ }} suspends a computation", term.place)

    # Computations

    def computation(self, term: t.Term, context: Context, effect: types.Effect) -> tuple[t.Term, types.ComputationType]:
        match term:
            case t.Split(pair, first, second, body):
                pair, found = self.value(pair, context, effect)
                if not isinstance(found, types.Product):
                    raise self.wrong("case of a pair", "A * B", found, term)
                body, type_ = self.computation(body, {**context, first: found.left, second: found.right}, effect)
                return t.Split(pair, first, second, body, place=term.place), type_
            case t.Case(scrutinee, branches):
                return self.case(term, scrutinee, branches, context, effect)
            case t.Force(thunk):
                thunk, found = self.value(thunk, context, effect)
                if not isinstance(found, types.U):
                    raise self.wrong("force", "U[E] C", found, term)
                if found.effect != effect:
                    raise self.wrong("force", f"a thunk of the effect {_named(effect)} here", found, term)
                return t.Force(thunk, place=term.place), found.type
            case t.Return(value):
                value, given = self.value(value, context, effect)
                return t.Return(value, place=term.place), types.F(given)
            case t.To(name, first, rest):
                first, got = self.computation(first, context, effect)
                if not isinstance(got, types.F):
                    raise self.wrong("sequencing", "F A before `;`", got, term)
                rest, type_ = self.computation(rest, {**context, name: got.type}, effect)
                return t.To(name, first, rest, place=term.place), type_
            case t.Lam(name, bound, body):
                self.kind(bound, term)
                body, type_ = self.computation(body, {**context, name: bound}, effect)
                return t.Lam(name, bound, body, place=term.place), types.Arrow(bound, type_)
            case t.App(function, argument):
                function, type_ = self.computation(function, context, effect)
                if not isinstance(type_, types.Arrow):
                    raise self.wrong("application", "A -> C", type_, term)
                argument, found = self.value(argument, context, effect)
                self.same(found, type_.argument, "argument of an application", term)
                return t.App(function, argument, place=term.place), type_.result
            case t.Choice() | t.Prj():
                return self.choice(term, context, effect)
        return self.operation(term, context, effect)

    def choice(
        self, term: t.Choice | t.Prj, context: Context, effect: types.Effect
    ) -> tuple[t.Term, types.ComputationType]:
        """The type of a pair of computations, or of one of a pair."""
        if isinstance(term, t.Choice):
            left, one = self.computation(term.left, context, effect)
            right, other = self.computation(term.right, context, effect)
            return t.Choice(left, right, place=term.place), types.Both(one, other)
        choice, type_ = self.computation(term.choice, context, effect)
        if not isinstance(type_, types.Both) or term.index not in (1, 2):
            raise self.wrong(f"projection {term.index}", "C & D", type_, term)
        return t.Prj(term.index, choice, place=term.place), type_.left if term.index == 1 else type_.right

    def operation(self, term: t.Term, context: Context, effect: types.Effect) -> tuple[t.Term, types.ComputationType]:
        """The type of a computation that performs an operation, uses the store, recurs or handles."""
        match term:
            case t.Call(name, parameter):
                parameter, given = self.value(parameter, context, effect)
                wanted, result = self.called(name, effect, term)
                self.same(given, wanted, f"parameter of {name}", term)
                return t.Call(name, parameter, place=term.place), types.F(result)
            case t.Access(name, parameter):
                parameter, given = self.value(parameter, context, effect)
                return t.Access(name, parameter, place=term.place), types.F(self.accessed(name, given, term))
            case t.Recursive(name, type_, body, own):
                self.kind(type_, term)
                own = effect if own is None else own
                self.same(own, effect, "recursion", term)
                body, inner = self.computation(body, {**context, name: types.U(effect, type_)}, effect)
                self.same(inner, type_, "recursion", term)
                return t.Recursive(name, type_, body, own, place=term.place), type_
            case t.Handle(body, t.Handler() as handler, outer, shallow):
                outer = effect if outer is None else outer
                self.same(outer, effect, "handling", term)
                handler, source, operations, type_ = self.handler(handler, context, effect, shallow)
                body, handled = self.computation(body, context, operations)
                self.same(handled, types.F(source), "handled computation", term)
                return t.Handle(body, handler, outer, shallow, place=term.place), type_
        raise IllTyped(f"computation: {term} is a value; return it", term.place)

    def case(self, term: t.Term, scrutinee: t.Term, branches: tuple[t.Branch, ...], context: Context,
             effect: types.Effect) -> tuple[t.Term, types.ComputationType]:  # fmt: skip
        scrutinee, found = self.value(scrutinee, context, effect)
        if not isinstance(found, types.Variant):
            raise self.wrong("case of a variant", "a variant", found, term)
        cases = dict(found.cases)
        if [b.label for b in branches] != list(cases) or not branches:
            raise self.wrong("case of a variant", f"the branches {', '.join(cases)}",
                             ", ".join(b.label for b in branches), term)  # fmt: skip
        done: list[t.Branch] = []
        found_types: list[types.ComputationType] = []
        for branch in branches:
            body, type_ = self.computation(branch.body, {**context, branch.name: cases[branch.label]}, effect)
            self.same(type_, (found_types or [type_])[0], "branches of case", branch)
            done.append(t.Branch(branch.label, branch.name, body, place=branch.place))
            found_types.append(type_)
        return t.Case(scrutinee, tuple(done), place=term.place), found_types[0]

    def called(self, name: str, effect: types.Effect, term: t.Term) -> tuple[types.ValueType, types.ValueType]:
        if (function := builtin(name)) is not None:
            return function.parameter, function.result
        if name not in self.operations:
            raise IllTyped(f"operation: {name} is not declared, in {term}", term.place)
        if name not in effect:
            raise IllTyped(f"operation: {name} is not of the effect {_named(effect)} here, in {term}", term.place)
        return self.operations[name]

    def accessed(self, name: str, given: types.ValueType, term: t.Term) -> types.ValueType:
        """The type of what making, reading or writing a reference returns."""
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
                shallow: bool) -> tuple[t.Handler, types.ValueType, types.Effect, types.ComputationType]:  # fmt: skip
        """The type A, the effect handled, and the type of the result of a handler."""
        self.kind(handler.type, handler)
        body, type_ = self.computation(handler.body, {**context, handler.name: handler.type}, outer)
        # The rest of the program under the handler, or, after a shallow one, as it is.
        handled = frozenset(clause.operation for clause in handler.clauses)
        rest = (handled, types.F(handler.type)) if shallow else (outer, type_)
        clauses: list[t.Clause] = []
        for clause in handler.clauses:
            if clause.operation not in self.operations:
                raise IllTyped(f"clause of a handler: the operation {clause.operation} is not declared", clause.place)
            if clause.operation in {c.operation for c in clauses}:
                raise IllTyped(f"clause of a handler: {clause.operation} has two", clause.place)
            parameter, result = self.operations[clause.operation]
            bound = {clause.parameter: parameter, clause.continuation: types.U(rest[0], types.Arrow(result, rest[1]))}
            inner, found = self.computation(clause.body, {**context, **bound}, outer)
            self.same(found, type_, f"clause of {clause.operation}", clause)
            clauses.append(t.Clause(clause.operation, clause.parameter, clause.continuation, inner, place=clause.place))
        done = replace(handler, body=body, clauses=tuple(clauses))
        return done, handler.type, handled, type_

    def same(self, found: Any, wanted: Any, rule: str, term: t.Term) -> None:
        if found != wanted:
            raise self.wrong(rule, wanted, found, term)

    def wrong(self, rule: str, wanted: Any, found: Any, term: t.Term) -> IllTyped:
        return IllTyped(f"{rule}: expected {wanted}, found {found}, in {term}", term.place)


def _named(effect: types.Effect) -> str:
    return f"[{', '.join(sorted(effect))}]"
