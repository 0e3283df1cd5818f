"""The concrete syntax of EFF, its reader, and the expansion of a program's definitions.

    value types        A ::= X | 1 | A * B | <l1 A1, ..., ln An> | U[op, ...] C | Ref A | R | Z | Op0 | Op1 | ...
    computation types  C ::= F A | A -> C | C & D
    values             V ::= x | () | (V, W) | inj[A] l V | {M} | {[op, ...] M} | 2.0 | 2 | op[x, y. x * y]
    computations       M ::= case V of (x, y) -> M | case V of {l1 x -> M1 | ... | ln x -> Mn} | V! | return V
                           | x <- M; N | \\(x : A). M | M V | <M, N> | prj 1 M | prj 2 M
                           | op V | f V | handle M with H
                           | rec (f : C). M | shallow M with H | ref V | read V | write (V, W)
    handlers           H ::= {return (x : A) -> M | op p k -> N | ...}

A thunk `{M}` has the effect of the computation around it, unless it names another. `op[x, y. x * y]` is a constant of
Op2, a smooth function in the syntax of `lam`; `f` is a built-in function of `signature.py`. A program is a list of
declarations and a computation. The declarations are:

    operation ap2 : Op2 * (R * R) -> R       -- at most one type for each name; only operations before it in effects
    effect Smooth = ap1, ap2                 -- a name for several operations
    type Dual = R * R
    handler eval[X] = {return (x : X) -> return x | ...}
    import smooth                            -- the declarations of smooth.eff: chapter 8's effects and handlers
    define square[X, ap2] = {\\(x : X). ap2 (op[x, y. x * y], (x, x))}

A definition is used with types and operations for its parameters, as in `square[Dual, ap2_D]! (3.0, 1.0)`. This is the
macro of Sigal 2024, section 8.2, which makes one program work on another kind of number.

Recursion, shallow handlers and the store are extensions that chapter 9 leaves to future work.

Sigal 2024, section 7.2, figures 7.3, 7.5, 7.10, 7.12, 7.19 and 7.21, after Forster, Kammar, Lindley and Pretnar 2019.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from effgrad.papers.eff import terms as t
from effgrad.papers.eff import type_terms as types
from effgrad.papers.eff.grammar import GRAMMAR
from effgrad.papers.expressions import function
from effgrad.papers.syntax import IllFormed, IllTyped, Place, Reader, deep
from effgrad.vocabulary import Object


class _Reader(Reader):
    grammar = GRAMMAR
    starts = ("program", "declarations", "type")
    terms = (t, types)

    def program(self, at: Place, *parts: Object) -> Object:
        return list(parts)

    declarations = program

    def imported(self, at: Place, name: str) -> tuple[str, str, None, Place]:
        return "import", name, None, at

    def operation(self, at: Place, name: str, parameter: types.ValueType, result: types.ValueType) -> Object:
        return "operation", name, (parameter, result), at

    def effect(self, at: Place, name: str, names: tuple[str, ...]) -> tuple[str, str, tuple[str, ...], Place]:
        return "effect", name, names, at

    def alias(self, at: Place, name: str, type_: types.ValueType) -> Object:
        return "type", name, type_, at

    def definition(self, at: Place, definiendum: Object, body: t.Term) -> Object:
        return "definition", definiendum[0], (definiendum[1], body), at

    def definiendum(self, at: Place, name: str, names: tuple[str, ...] = ()) -> tuple[str, tuple[str, ...]]:
        return name, names

    def names(self, at: Place, *names: str) -> tuple[str, ...]:
        return names

    def split(self, at: Place, pair: t.Term, pattern: object, body: t.Term) -> t.Term:
        if isinstance(pattern, str):
            raise IllFormed("`case V of` takes a pattern of a pair, or branches in braces", at)
        return _unpacked(pair, pattern, body, at)

    def case(self, at: Place, scrutinee: t.Term, *branches: t.Branch) -> t.Term:
        return t.Case(scrutinee, branches, place=at)

    def branch(self, at: Place, label: str, pattern: object, body: t.Term) -> t.Term:
        return t.Branch(label, *_bound(pattern, body, at), place=at)

    def ignored(self, at: Place) -> str:
        return "_"

    def paired(self, at: Place, *patterns: object) -> Object:
        first, *rest = patterns
        return first, (rest[0] if len(rest) == 1 else self.paired(at, *rest))

    def shallow(self, at: Place, body: t.Term, handler: t.Term) -> t.Term:
        return t.Handle(body, handler, shallow=True, place=at)

    def call(self, at: Place, name: str, parameter: t.Term) -> t.Term:
        return (t.Access if name in t.STORE else t.Call)(name, parameter, place=at)

    def prj(self, at: Place, index: str, choice: t.Term) -> t.Term:
        return t.Prj(int(index), choice, place=at)

    def handler(self, at: Place, name: str, type_: types.ValueType, body: t.Term, *clauses: t.Clause) -> t.Term:
        return t.Handler(name, type_, body, clauses, place=at)

    def clause(self, at: Place, operation: str, pattern: Object, continuation: str, body: t.Term) -> t.Term:
        name, body = _bound(pattern, body, at)
        return t.Clause(operation, name, continuation, body, place=at)

    def row(self, at: Place, *items: t.Term) -> t.Term:
        result = items[-1]
        for item in reversed(items[:-1]):
            result = t.Pair(item, result, place=at)
        return result

    def thunk_of(self, at: Place, names: tuple[str, ...], body: t.Term) -> t.Term:
        return t.Thunk(body, frozenset(names), place=at)

    def real(self, at: Place, text: str) -> t.Term:
        return t.Constant(types.R, Fraction(text), place=at)

    def integer(self, at: Place, text: str) -> t.Term:
        return t.Constant(types.Z, int(text), place=at)

    def smooth(self, at: Place, text: str) -> t.Term:
        before, dot, body = text[3:-1].partition(".")
        if not dot:
            raise IllFormed(f"{text} needs its arguments and a dot before its expression, as in op[x, y. x * y]", at)
        names = tuple(name.strip() for name in before.split(",") if name.strip())
        try:
            return t.Constant(types.Base(f"Op{len(names)}"), t.Smooth(names, function(names, body)), place=at)
        except (IllFormed, IllTyped) as error:
            raise IllFormed(f"{text}: {error}", at) from None

    def use(self, at: Place, name: str, *arguments: object) -> t.Term:
        return t.Use(name, arguments, place=at)

    def unit_type(self, at: Place) -> types.ValueType:
        return types.UNIT

    def variant(self, at: Place, *cases: Object) -> types.ValueType:
        return types.Variant(tuple(case for case in cases if case is not None))

    def labelled(self, at: Place, label: str, type_: types.ValueType) -> Object:
        return label, type_

    def u(self, at: Place, names: tuple[str, ...], type_: types.ComputationType) -> types.ValueType:
        return types.U(frozenset(names), type_)


def _bound(pattern: object, body: t.Term, at: Place) -> tuple[str, t.Term]:
    """Return one variable for a pattern, and the body, which first unpacks the variable by the pattern."""
    if isinstance(pattern, str):
        return pattern, body
    name = "_" + "_".join(_names(pattern))
    return name, _unpacked(t.Var(name, place=at), pattern, body, at)


def _names(pattern: Object) -> list[str]:
    return [pattern] if isinstance(pattern, str) else [name for part in pattern for name in _names(part)]


def _unpacked(pair: t.Term, pattern: Object, body: t.Term, at: Place) -> t.Term:
    first, second = pattern
    second, body = _bound(second, body, at)
    first, body = _bound(first, body, at)
    return t.Split(pair, first, second, body, place=at)


_READER = _Reader()


@deep()
def parse(text: str) -> t.Program:
    """Read a program and expand its definitions.

    >>> print(parse("define one[] = {return 1.0} x <- one[]!; return (x, 2)").body)
    x <- {return 1.0}!; return (x, 2)

    Raises `IllFormed` with the line and the column.
    """
    *declarations, body = _READER.read(text, "program")
    reading = _Definitions()
    for declaration in declarations:
        reading.declare(*declaration)
    return t.Program(reading.operations, reading.term(body))


def parse_type(text: str) -> types.ValueType:
    """Read a value type. Without declarations, each name in its effects is an operation."""
    return _Definitions().type(_READER.read(text, "type"))  # type: ignore[no-any-return]


class _Definitions:
    """The names bound by the declarations so far. Its methods `term` and `type` replace them by their meanings."""

    def __init__(self, outer: _Definitions | None = None) -> None:
        self.operations: dict[str, tuple[types.ValueType, types.ValueType]] = {} if outer is None else outer.operations
        self.effects: dict[str, types.Effect] = {} if outer is None else dict(outer.effects)
        self.types: dict[str, types.ValueType] = {} if outer is None else dict(outer.types)
        self.terms: dict[str, tuple[tuple[str, ...], t.Term, _Definitions]] = {} if outer is None else outer.terms

    def declare(self, kind: str, name: str, what: Object, at: Place) -> None:
        if kind == "import":
            return self.include(name, at)
        if kind == "operation" and name in t.STORE:
            raise IllFormed(f"{name} is what programs do with the store: give the operation another name", at)
        if name in (*self.operations, *self.effects, *self.types, *self.terms):
            raise IllFormed(f"{name} is declared twice", at)
        match kind:
            case "operation":
                self.operations[name] = (self.type(what[0]), self.type(what[1]))
            case "effect":
                self.effects[name] = self.effect(what)
            case "type":
                self.types[name] = self.type(what)
            case _:
                self.terms[name] = (*what, _Definitions(self))

    def include(self, name: str, at: Place) -> None:
        """Add the declarations in the file `name`.eff of this package."""
        path = Path(__file__).with_name(f"{name}.eff")
        if not path.is_file():
            raise IllFormed(f"there is no {name} to import", at)
        for declaration in _READER.read(path.read_text(encoding="utf-8"), "declarations"):
            self.declare(*declaration)

    def effect(self, names: Object) -> types.Effect:
        return frozenset[str]().union(*(self.effects.get(name, {name}) for name in names))

    def type(self, type_: Object) -> Object:
        match type_:
            case types.Variable(name):
                return self.types.get(name, types.Base(name) if _is_base(name) else type_)
            case types.U(effect, inner):
                return types.U(self.effect(effect), self.type(inner))
        return type_.rebuilt(self.type)

    def term(self, term: Object) -> Object:
        match term:
            case t.Use(name, arguments):
                return self.used(term, name, arguments)
            case t.Thunk(body, effect) if effect is not None:
                return t.Thunk(self.term(body), self.effect(effect), place=term.place)
            case t.Call(name, parameter):
                return t.Call(self.operation(name), self.term(parameter), place=term.place)
            case t.Clause(operation, parameter, continuation, body):
                return t.Clause(self.operation(operation), parameter, continuation, self.term(body), place=term.place)
            case t.Lam(name, type_, body):
                return t.Lam(name, self.type(type_), self.term(body), place=term.place)
            case t.Inj(type_, label, content):
                return t.Inj(self.type(type_), label, self.term(content), place=term.place)
            case t.Recursive(name, type_, body):
                return t.Recursive(name, self.type(type_), self.term(body), place=term.place)
            case t.Handle(body, handler, _, shallow):
                handler = self.term(handler)
                if not isinstance(handler, t.Handler):
                    raise IllFormed(f"{term.handler} is not a handler", term.place)
                return t.Handle(self.term(body), handler, shallow=shallow, place=term.place)
            case t.Handler(name, type_, body, clauses):
                parts = {"body": self.term(body), "clauses": tuple(map(self.term, clauses))}
                return replace(term, type=self.type(type_), **parts)
        return term.rebuilt(self.term)

    def operation(self, name: str) -> str:
        """Return the operation that a definition's parameter of this name stands for, or else the name itself."""
        named = self.effects.get(name, frozenset({name}))
        return next(iter(named)) if len(named) == 1 else name

    def used(self, term: t.Term, name: str, arguments: tuple[object, ...]) -> t.Term:
        if name not in self.terms:
            raise IllFormed(f"{name} is not defined before this", term.place)
        parameters, body, definitions = self.terms[name]
        if len(parameters) != len(arguments):
            raise IllFormed(f"{name} takes {len(parameters)} parameters, not {len(arguments)}", term.place)
        inner = _Definitions(definitions)
        for parameter, argument in zip(parameters, arguments, strict=True):
            inner.types[parameter] = self.type(argument)
            if isinstance(argument, types.Variable):
                inner.effects[parameter] = self.effect((argument.name,))
        result: t.Term = inner.term(body)
        return replace(result, origin=str(term)) if isinstance(result, t.Handler) else result


def _is_base(name: str) -> bool:
    return name in ("R", "Z") or (name.startswith("Op") and name[2:].isdigit())
