"""The meaning of a term: a call-by-value interpreter that counts reduction steps.

Functions are Python functions, products are pairs, and a value of M A is a function of the state. A step is an
application, a `let`, a projection, a `case`, a `do`, a constant that is applied, or a node of a delta term that `eval`
visits. A polytypic operation also takes a step for each leaf of the value, so adding two vectors of n reals takes at
least n steps, as on a machine. Krawiec et al. 2022, sections 2 and 5, figures 8 and 11; the table of figure 1.
"""

from collections.abc import Callable
from fractions import Fraction

from effgrad.papers.lam import delta
from effgrad.papers.lam import terms as t
from effgrad.papers.lam.primitives import CONSTANTS, Left, Right
from effgrad.papers.syntax import Stuck, TooManySteps, Value, deep

Environment = dict[str, Value]


def evaluate(term: t.Term, *arguments: Value, reals: Callable[[Fraction], Value] = float, steps: int = 10**7) -> Value:
    """Return the value of a term, applied to the arguments if there are any.

    Arguments:
        term: a well-typed term.
        arguments: numbers, pairs, `Left` and `Right`, lists for vectors, functions.
        reals: converts literals to numbers: `float`, `Fraction`, or another type with Python's operators.
        steps: the limit of steps; `TooManySteps` is raised beyond it.

    >>> from effgrad.papers.lam import parse
    >>> evaluate(parse("\\\\(x, y). x * y + 2.0"), (3.0, 4.0))
    14.0
    """
    return Interpreter(reals, steps).run(term, *arguments)


class Interpreter:
    """One evaluation. It counts the steps, and reports each of them to `tell`."""

    def __init__(
        self,
        reals: Callable[[Fraction], Value] = float,
        limit: int = 10**7,
        tell: Callable[[str, Value], None] | None = None,
    ) -> None:
        self.reals, self.limit, self.tell = reals, limit, tell
        self.steps = 0

    @deep()
    def run(self, term: t.Term, *arguments: Value) -> Value:
        value = self.value(term, {})
        for argument in arguments:
            value = value(argument)
        return value

    def step(self, rule: str = "", subject: Value = None) -> None:
        self.steps += 1
        if self.steps > self.limit:
            raise TooManySteps(self.limit)
        if self.tell is not None:
            self.tell(rule, subject)

    def value(self, term: t.Term, scope: Environment) -> Value:
        return _MEANINGS[type(term)](self, term, scope)

    def variable(self, term: t.Var, scope: Environment) -> Value:
        if term.name not in scope:
            raise Stuck(f"{term.name} is not bound", term.place)
        return scope[term.name]

    def abstraction(self, term: t.Lam, scope: Environment) -> Value:
        def function(argument: Value) -> Value:
            self.step("apply", term)
            return self.value(term.body, {**scope, term.name: argument})

        return function

    def application(self, term: t.App, scope: Environment) -> Value:
        function = self.value(term.function, scope)
        return function(self.value(term.argument, scope))

    def let(self, term: t.Term, scope: Environment) -> Value:
        # A loop replaces the recursion here, since programs are long chains of lets.
        while isinstance(term, t.Let):
            bound = self.value(term.bound, scope)
            self.step("let", (term.name, bound))
            scope = {**scope, term.name: bound}
            term = term.body
        return self.value(term, scope)

    def case(self, term: t.Case, scope: Environment) -> Value:
        chosen = self.value(term.scrutinee, scope)
        self.step("case", chosen)
        if type(chosen) is Left:
            return self.value(term.left_body, {**scope, term.left: chosen.content})
        return self.value(term.right_body, {**scope, term.right: chosen.content})

    def first(self, term: t.Fst, scope: Environment) -> Value:
        self.step("fst")
        return self.value(term.pair, scope)[0]

    def second(self, term: t.Snd, scope: Environment) -> Value:
        self.step("snd")
        return self.value(term.pair, scope)[1]

    def do(self, term: t.Do, scope: Environment) -> Value:
        first = self.value(term.bound, scope)

        def run(state: delta.State) -> Value:
            inner, action, rest = scope, first, term
            while True:
                self.step("do")
                inner = {**inner, rest.name: action(state)}
                if not isinstance(rest.rest, t.Do):
                    return self.value(rest.rest, inner)(state)
                rest = rest.rest
                action = self.value(rest.bound, inner)

        return run

    def pure(self, term: t.Pure, scope: Environment) -> Value:
        content = self.value(term.content, scope)
        return lambda state: content

    def constant(self, term: t.Op, scope: Environment) -> Value:
        special = _SPECIAL.get(term.name)
        meaning = CONSTANTS[term.name].meaning if special is None else getattr(self, special)
        if not callable(meaning):
            return meaning

        def applied(argument: Value) -> Value:
            self.step(term.name, argument)
            return meaning(argument)

        return applied

    def _real(self, integer: int) -> Value:
        return self.reals(Fraction(integer))

    # Arrays, and the functions of figures 8 and 11

    def _build(self, argument: Value) -> Value:
        return [argument[1](i) for i in range(argument[0])]

    def _index(self, argument: Value) -> Value:
        items, i = argument
        if not 0 <= i < len(items):
            raise Stuck(f"index {i} of a vector of {len(items)}")
        return items[i]

    def _fold(self, argument: Value) -> Value:
        function, (value, items) = argument
        for item in items:
            value = function((value, item))
        return value

    def _fold_monadic(self, argument: Value) -> Value:
        function, (start, items) = argument

        def run(state: delta.State) -> Value:
            value = start
            for item in items:
                value = function((value, item))(state)
            return value

        return run

    def _sequence(self, actions: Value) -> Value:
        return lambda state: [action(state) for action in actions]

    def _delta_let(self, term: delta.Delta) -> Value:
        return lambda state: state.let(term)

    def _run_delta(self, argument: Value) -> Value:
        state = delta.State(argument[0])
        result, term = argument[1](state)
        return result, state.wrapped(term)

    def _eval(self, argument: Value) -> Value:
        factor, (term, given) = argument
        return delta.evaluate(factor, term, given, lambda: self.step("eval"))

    # Polytypic operations: by recursion on the type

    def polytypic(self, term: t.Poly, scope: Environment) -> Value:
        operation: Callable[..., Value] = getattr(self, f"_{term.name}")
        if term.name == "zero":
            return operation(term.type)

        def applied(argument: Value) -> Value:
            self.step(term.name, argument)
            return operation(term.type, argument)

        return applied

    def leaves(self, type_: t.Type, change: Callable[..., Value], *values: Value, shared: bool = True) -> Value:
        """Combine values of one shape by `change` at each real; all else is that of the first value."""
        match type_:
            case t.Base("R"):
                self.step()
                return change(*values)
            case t.Product(one, other):
                return tuple(self.leaves(part, change, *[v[i] for v in values]) for i, part in enumerate((one, other)))
            case t.Sum(one, other):
                if any(type(v) is not type(values[0]) for v in values):
                    raise Stuck("two values of a sum type that should have one shape are an inl and an inr")
                part = one if type(values[0]) is Left else other
                return type(values[0])(self.leaves(part, change, *[v.content for v in values]))
            case t.Vector(item):
                if any(len(v) != len(values[0]) for v in values):
                    raise Stuck("two vectors that should have one length have two")
                return [self.leaves(item, change, *together) for together in zip(*values, strict=True)]
        return values[0]

    def _scale(self, type_: t.Type, argument: Value) -> Value:
        return self.leaves(type_, lambda x: argument[0] * x, argument[1])

    def _add(self, type_: t.Type, argument: Value) -> Value:
        return self.leaves(type_, lambda x, y: x + y, *argument)

    def _dot(self, type_: t.Type, argument: Value) -> Value:
        products: list[Value] = []
        self.leaves(type_, lambda x, y: products.append(x * y), *argument)
        return sum(products)

    def _zero(self, type_: t.Type) -> Value:
        if isinstance(type_, t.Product):
            return self._zero(type_.left), self._zero(type_.right)
        self.step("zero")
        return 0

    def _onehot(self, type_: t.Type, index: int) -> Value:
        # Places are counted from 1, as in the paper.
        if isinstance(type_, t.Product):
            return self._onehot(type_.left, index), self._onehot(type_.right, index - 1)
        self.step("onehot")
        return int(index == 1)

    def _primal(self, type_: t.Type, value: Value) -> Value:
        return self.leaves(type_, lambda x: x[0], value)

    def _delta(self, type_: t.Type, value: Value) -> Value:
        return self.leaves(type_, lambda x: x[1], value)

    def _zip(self, type_: t.Type, argument: Value) -> Value:
        return self.leaves(type_, lambda x, dx: (x, dx), *argument)

    def _initVars(self, type_: t.Type, argument: Value) -> Value:  # noqa: N802 (the paper's name, as in the programs)
        value, last = argument

        def name(x: Value) -> Value:
            nonlocal last
            last += 1
            return x, delta.Var(last)

        return self.leaves(type_, name, value), last

    def _initZeros(self, type_: t.Type, value: Value) -> Value:  # noqa: N802
        return self.leaves(type_, lambda x: (x, delta.Zero()), value)

    def _lookup(self, type_: t.Type, argument: Value) -> Value:
        return self.leaves(type_, lambda x: argument[0].get(x[1].name, 0), argument[1])

    def _eval2(self, type_: t.Type, argument: Value) -> Value:
        factor, (term, vector) = argument
        changes = delta.evaluate(factor, term, {}, lambda: self.step("eval"))
        place = 0

        def add_at(x: Value) -> Value:
            nonlocal place
            place += 1
            return x + changes.get(place, 0)

        return self.leaves(type_, add_at, vector)

    def _fused(self, type_: t.Type, function: Value) -> Value:
        return function


_SPECIAL = {
    "real": "_real", "index": "_index", "build": "_build", "fold": "_fold", "foldM": "_fold_monadic",
    "sequence": "_sequence", "deltaLet": "_delta_let", "runDelta": "_run_delta", "eval": "_eval",
}  # fmt: skip

_MEANINGS: dict[type, Callable[..., Value]] = {
    t.Var: Interpreter.variable,
    t.Lam: Interpreter.abstraction,
    t.App: Interpreter.application,
    t.Let: Interpreter.let,
    t.Pair: lambda self, term, scope: (self.value(term.first, scope), self.value(term.second, scope)),
    t.Fst: Interpreter.first,
    t.Snd: Interpreter.second,
    t.Inl: lambda self, term, scope: Left(self.value(term.content, scope)),
    t.Inr: lambda self, term, scope: Right(self.value(term.content, scope)),
    t.Case: Interpreter.case,
    t.Real: lambda self, term, scope: self.reals(term.value),
    t.Literal: lambda self, term, scope: term.value,
    t.Op: Interpreter.constant,
    t.Poly: Interpreter.polytypic,
    t.Pure: Interpreter.pure,
    t.Do: Interpreter.do,
}
