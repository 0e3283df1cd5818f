"""Well-typed terms of EFF made at random: a type first, then a term of it, by the typing rules read upwards."""

import random

from effgrad.papers.eff.terms import (
    Access,
    App,
    Branch,
    Call,
    Case,
    Choice,
    Clause,
    Constant,
    Force,
    Handle,
    Handler,
    Inj,
    Lam,
    Pair,
    Prj,
    Recursive,
    Return,
    Smooth,
    Split,
    Thunk,
    To,
    Unit,
    Var,
)
from effgrad.papers.eff.type_terms import (
    BOOL,
    UNIT,
    Arrow,
    Base,
    Both,
    F,
    Product,
    R,
    U,
    Variant,
    Z,
    power,
)
from effgrad.papers.expressions import function

OPERATIONS = {"get": (UNIT, R), "put": (R, UNIT), "choose": (UNIT, BOOL), "fail": (Z, R),
              "apply": (Product(U(frozenset({"get"}), Arrow(R, F(R))), R), R)}  # fmt: skip
FUNCTIONS = {0: ["2.0"], 1: ["sin x", "x * x + 1.0"], 2: ["x * y", "x - y * y"]}


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.count = 0

    def name(self):
        self.count += 1
        return f"x{self.count}"

    def effect(self):
        return frozenset(op for op in OPERATIONS if self.random.random() < 0.4)

    def value_type(self, size):
        if size <= 0 or self.random.random() < 0.4:
            return self.random.choice([UNIT, R, Z, BOOL, Base("Op1")])
        match self.random.randrange(3):
            case 0:
                return Product(self.value_type(size - 1), self.value_type(size - 1))
            case 1:
                return Variant((("l", self.value_type(size - 1)), ("m", R), ("r", self.value_type(size - 2))))
        return U(self.effect(), self.computation_type(size - 1))

    def computation_type(self, size):
        match self.random.randrange(4) if size > 0 else 0:
            case 0 | 1:
                return F(self.value_type(size - 1))
            case 2:
                return Arrow(self.value_type(size - 1), self.computation_type(size - 1))
        return Both(self.computation_type(size - 1), self.computation_type(size - 1))

    def value(self, type_, context, size):
        fitting = [name for name, found in context.items() if found == type_]
        if fitting and self.random.random() < 0.6:
            return Var(self.random.choice(fitting))
        match type_:
            case Product(left, right):
                return Pair(self.value(left, context, size - 1), self.value(right, context, size - 1))
            case Variant(cases):
                label, content = self.random.choice(cases)
                return Inj(type_, label, self.value(content, context, size - 1))
            case U(effect, inner):
                return Thunk(self.computation(inner, context, effect, size - 1), effect)
            case Base("1"):
                return Unit()
            case Base("R"):
                return Constant(R, self.random.choice([0.5, -1.0, 2.0]))
            case Base("Z"):
                return Constant(Z, self.random.randrange(3))
        n = int(type_.name[2:])
        names = ("x", "y")[:n]
        return Constant(type_, Smooth(names, function(names, self.random.choice(FUNCTIONS[n]))))

    def computation(self, type_, context, effect, size):
        if size > 0 and self.random.random() < 0.9:
            made = self.elimination(type_, context, effect, size - 1)
            if made is not None:
                return made
        match type_:
            case F(inner):
                return Return(self.value(inner, context, size - 1))
            case Arrow(argument, result):
                name = self.name()
                return Lam(name, argument, self.computation(result, {**context, name: argument}, effect, size - 1))
            case Both(left, right):
                return Choice(*(self.computation(part, context, effect, size - 1) for part in (left, right)))

    def elimination(self, type_, context, effect, size):
        """A computation of a type by a rule that any type may have; None where the rule does not apply."""
        match self.random.randrange(12):
            case 10:  # a reference; what is written to one could make a program run for ever
                inner, made, got = self.value_type(1), self.name(), self.name()
                rest = self.computation(type_, {**context, got: inner}, effect, size)
                read = To(got, Access("read", Var(made)), rest)
                return To(made, Access("ref", self.value(inner, context, size)), read)
            case 11:  # a recursion that ends at once
                return Recursive(self.name(), type_, self.computation(type_, context, effect, size))
            case 0:
                left, right, first, second = self.value_type(1), self.value_type(1), self.name(), self.name()
                body = self.computation(type_, {**context, first: left, second: right}, effect, size)
                return Split(self.value(Product(left, right), context, size), first, second, body)
            case 1:
                variant = Variant((("l", self.value_type(1)), ("r", self.value_type(1))))
                branches = []
                for label, content in variant.cases:
                    name = self.name()
                    body = self.computation(type_, {**context, name: content}, effect, size - 1)
                    branches.append(Branch(label, name, body))
                return Case(self.value(variant, context, size), tuple(branches))
            case 2:
                return Force(self.value(U(effect, type_), context, size))
            case 3 | 4:
                inner, name = self.value_type(2), self.name()
                if effect and self.random.random() < 0.4:
                    operation = self.random.choice(sorted(effect))
                    parameter, inner = OPERATIONS[operation]
                    first = Call(operation, self.value(parameter, context, size))
                else:
                    first = self.computation(F(inner), context, effect, size)
                return To(name, first, self.computation(type_, {**context, name: inner}, effect, size))
            case 5:
                argument = self.value_type(2)
                applied = self.computation(Arrow(argument, type_), context, effect, size)
                return App(applied, self.value(argument, context, size))
            case 6:
                other, index = self.computation_type(1), self.random.choice([1, 2])
                both = Both(type_, other) if index == 1 else Both(other, type_)
                return Prj(index, self.computation(both, context, effect, size))
            case 7 | 8:
                return self.handle(type_, context, effect, size)
        calls = [name for name in effect if F(OPERATIONS[name][1]) == type_]
        if calls:
            name = self.random.choice(sorted(calls))
            return Call(name, self.value(OPERATIONS[name][0], context, size))
        n = self.random.choice([0, 1, 2])
        if type_ == F(R):
            return Call(f"eval{n}", self.value(Product(Base(f"Op{n}"), power(R, n)), context, size))
        return Call("less", self.value(power(R, 2), context, size)) if type_ == F(BOOL) else None

    def handle(self, type_, context, effect, size):
        source, handled, name = self.value_type(1), self.effect(), self.name()
        shallow = self.random.random() < 0.3
        rest = (handled, F(source)) if shallow else (effect, type_)
        clauses = []
        for operation in sorted(handled):
            parameter, result = OPERATIONS[operation]
            p, k = self.name(), self.name()
            inner = {**context, p: parameter, k: U(rest[0], Arrow(result, rest[1]))}
            if not shallow and self.random.random() < 0.6:
                body = App(Force(Var(k)), self.value(result, inner, size - 1))
            else:
                body = self.computation(type_, inner, effect, size - 2)
            clauses.append(Clause(operation, p, k, body))
        body = self.computation(type_, {**context, name: source}, effect, size - 1)
        handler = Handler(name, source, body, tuple(clauses))
        return Handle(self.computation(F(source), context, handled, size), handler, shallow=shallow)
