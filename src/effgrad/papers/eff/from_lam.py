"""The translation of `lam` to EFF, by which the handlers of chapter 8 can differentiate programs of `lam`.

It is Levy's translation of call by value: a function becomes a thunk, and every step of evaluation a sequencing. A real
becomes a value of a type X, and a function on reals becomes an operation at X. So one program runs under evaluation
(X = R), forward mode (X = Dual) and continuation reverse mode (X = Prop), by the macro of section 8.2. The paper's EFF
has neither vectors nor recursion, so `fold (f, (a, build (n, g)))` with a literal n becomes n applications.
Sigal 2024, sections 7.2 and 8.2.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from effgrad.papers import expressions
from effgrad.papers.eff import terms as eff
from effgrad.papers.eff import type_terms as types
from effgrad.papers.eff.reading import parse
from effgrad.papers.eff.semantics import evaluate
from effgrad.papers.eff.types import check
from effgrad.papers.lam import terms as lam
from effgrad.papers.lam.primitives import CONSTANTS
from effgrad.papers.lam.types import types_of
from effgrad.papers.syntax import IllTyped, deep
from effgrad.vocabulary import Object


class Numbers(NamedTuple):
    """A kind of number: its type, and the ending of the names of its operations."""

    type: types.ValueType
    ending: str

    @property
    def effect(self) -> types.Effect:
        return frozenset(name + self.ending for name in ("ap0", "ap1", "ap2", "below"))


_LIBRARY = parse("import smooth return ()").operations
_DUAL, _PROP = types.Product(types.R, types.R), _LIBRARY["ap0_prop"][1]
PLAIN, DUAL, PROP = Numbers(types.R, ""), Numbers(_DUAL, "_dual"), Numbers(_PROP, "_prop")


@deep()
def translated(term: lam.Term, numbers: Numbers) -> eff.Term:
    """Translate a closed program of `lam` to a computation of EFF over a kind of number."""
    fresh = _copied(term)
    return _Translation(types_of(fresh), numbers).term(fresh)


def _copied(term: lam.Term) -> lam.Term:
    """Return a copy of a term in which no node object occurs twice, as `types_of` needs."""
    return term.rebuilt(_copied)


class _Translation:
    def __init__(self, types: dict[int, lam.Type], numbers: Numbers) -> None:
        self.types, self.numbers, self.count = types, numbers, 0

    def fresh(self) -> str:
        self.count += 1
        return f"_{self.count}"

    def then(self, term: lam.Term, rest: Callable[[eff.Term], eff.Term]) -> eff.Term:
        """Evaluate a term and give its value to `rest`; a variable is a value already."""
        if isinstance(term, lam.Var):
            return rest(eff.Var(term.name))
        name = self.fresh()
        return eff.To(name, self.term(term), rest(eff.Var(name)))

    def type(self, type_: lam.Type) -> types.ValueType:
        match type_:
            case lam.Base("R"):
                return self.numbers.type
            case lam.Base("Z"):
                return types.Z
            case lam.Product(left, right):
                return types.Product(self.type(left), self.type(right))
            case lam.Sum():
                return self.sum(type_)
            case lam.Arrow(argument, result):
                return types.U(self.numbers.effect, types.Arrow(self.type(argument), types.F(self.type(result))))
        raise IllTyped(f"EFF has no type {type_}")

    def sum(self, type_: lam.Type) -> types.Variant:
        assert isinstance(type_, lam.Sum)
        return types.Variant((("inl", self.type(type_.left)), ("inr", self.type(type_.right))))

    def thunk(self, body: eff.Term) -> eff.Term:
        return eff.Thunk(body, self.numbers.effect)

    def term(self, term: lam.Term) -> eff.Term:
        match term:
            case lam.Var(name):
                return eff.Return(eff.Var(name))
            case lam.Real(value):
                return self.call("ap0", eff.Pair(_smooth(0, expressions.Number(value)), eff.Unit()))
            case lam.Literal(int(value)):
                return eff.Return(eff.Constant(types.Z, value))
            case lam.Lam(name, body):
                type_ = self.types[id(term)]
                assert isinstance(type_, lam.Arrow)
                return eff.Return(self.thunk(eff.Lam(name, self.type(type_.argument), self.term(body))))
            case lam.Let(name, bound, body):
                return eff.To(name, self.term(bound), self.term(body))
            case lam.Pair(first, second):
                return self.then(first, lambda x: self.then(second, lambda y: eff.Return(eff.Pair(x, y))))
            case lam.Fst(pair):
                return self.then(pair, lambda p: eff.Split(p, "_a", "_b", eff.Return(eff.Var("_a"))))
            case lam.Snd(pair):
                return self.then(pair, lambda p: eff.Split(p, "_a", "_b", eff.Return(eff.Var("_b"))))
            case lam.Inl(content) | lam.Inr(content):
                label = "inl" if isinstance(term, lam.Inl) else "inr"
                sum_ = self.sum(self.types[id(term)])
                return self.then(content, lambda x: eff.Return(eff.Inj(sum_, label, x)))
            case lam.Case(scrutinee, left, left_body, right, right_body):
                one = eff.Branch("inl", left, self.term(left_body))
                other = eff.Branch("inr", right, self.term(right_body))
                return self.then(scrutinee, lambda x: eff.Case(x, (one, other)))
            case lam.App():
                return self.application(term)
        raise IllTyped(f"EFF has no counterpart of {term}", term.place)

    def application(self, term: lam.App) -> eff.Term:
        """Translate an application; a fold over a build is unrolled."""
        match term:
            case lam.App(lam.Op("fold"), lam.Pair(function, lam.Pair(start, lam.App(lam.Op("build"), built)))):
                return self.loop(function, start, built)
            case lam.App(lam.Op(name), argument) | lam.App(lam.Poly(name), argument) if name in CONSTANTS:
                return self.then(argument, lambda x: self.primitive(name, x))
            case lam.App(lam.Poly("fused"), function):
                return self.term(function)
        return self.then(term.function, lambda f: self.then(term.argument, lambda x: eff.App(eff.Force(f), x)))

    def call(self, name: str, parameter: eff.Term) -> eff.Term:
        return eff.Call(name + self.numbers.ending, parameter)

    def primitive(self, name: str, argument: eff.Term) -> eff.Term:
        constant = CONSTANTS[name]
        if constant.kind == "smooth" and len(constant.partials) == 1:
            n = len(constant.partials[0])
            arguments = tuple(map(expressions.Argument, range(1, n + 1)))
            return self.call(f"ap{n}", eff.Pair(_smooth(n, expressions.Call(name, arguments)), argument))
        if name == "<":
            outcome = self.sum(CONSTANTS["<"].type.result)  # type: ignore[attr-defined]
            zero = eff.Constant(types.Z, 0)
            branches = tuple(
                eff.Branch(label, "_", eff.Return(eff.Inj(outcome, side, zero)))
                for label, side in (("true", "inl"), ("false", "inr"))
            )
            return eff.To("_b", self.call("below", argument), eff.Case(eff.Var("_b"), branches))
        if name == "real":
            constant_of = eff.Pair(eff.Var("_c"), eff.Unit())
            return eff.To("_c", eff.Call("constant", argument), self.call("ap0", constant_of))
        if name in _INTEGERS:
            return eff.Call(_INTEGERS[name], argument)
        raise IllTyped(f"EFF has no counterpart of {name}")

    def loop(self, function: lam.Term, start: lam.Term, built: lam.Term) -> eff.Term:
        match built:
            case lam.Pair(lam.Literal(int(n)), element):
                return self.then(function, lambda f: self.then(start, lambda a: self.then(
                    element, lambda g: self.unrolled(f, a, g, n))))  # fmt: skip
        raise IllTyped(f"EFF has no vectors, and a loop needs a literal for its length, not {built}", built.place)

    def unrolled(self, function: eff.Term, value: eff.Term, element: eff.Term, n: int) -> eff.Term:
        items, values = [self.fresh() for _ in range(n)], [self.fresh() for _ in range(n)]
        ends = [value, *map(eff.Var, values)]
        result: eff.Term = eff.Return(ends[-1])
        for i in reversed(range(n)):
            step = eff.App(eff.Force(function), eff.Pair(ends[i], eff.Var(items[i])))
            result = eff.To(values[i], step, result)
        for i in reversed(range(n)):
            result = eff.To(items[i], eff.App(eff.Force(element), eff.Constant(types.Z, i)), result)
        return result


_INTEGERS = {"+Z": "plusZ", "-Z": "minusZ", "*Z": "timesZ"}


def _smooth(n: int, expression: expressions.Expression) -> eff.Term:
    return eff.Constant(types.Base(f"Op{n}"), eff.Smooth(tuple(f"x{i}" for i in range(1, n + 1)), expression))


# Running a program R^n -> R under the handlers of chapter 8


def run(term: lam.Term, mode: str, point: list[Object], tangent: list[Any] | None = None,
        reals: Callable[[Object], Object] = float, steps: int = 10**6) -> Object:  # fmt: skip
    """Run a program of `lam` from R^n to R in EFF, under the handlers of a mode.

    Arguments:
        mode: "eval" for the value, "forward" for the value and the derivative in the direction of the tangent,
            "reverse" for the same by backpropagators.
        point: n numbers.
        tangent: n numbers; the default is the point.

    >>> from effgrad.papers import lam
    >>> square = lam.parse("\\\\x. x * x")
    >>> run(square, "eval", [3.0]), run(square, "forward", [3.0], [1.0]), run(square, "reverse", [3.0], [1.0])
    (9.0, (9.0, 6.0), (9.0, 6.0))
    """
    numbers = {"eval": PLAIN, "forward": DUAL, "reverse": PROP}[mode]
    computation = translated(term, numbers)
    inputs = [_input(mode, x, dx) for x, dx in zip(point, tangent or point, strict=True)]
    result: eff.Term = eff.To("_f", computation, eff.App(eff.Force(eff.Var("_f")), _tuple(inputs)))
    if mode != "eval":
        result = eff.Handle(result, _HANDLERS[mode])
    if mode == "reverse":
        pulled = eff.To("_d", eff.App(eff.Force(eff.Var("_k")), eff.Constant(types.R, 1)),
                        eff.Return(eff.Pair(eff.Var("_y"), eff.Var("_d"))))  # fmt: skip
        result = eff.To("_r", result, eff.Split(eff.Var("_r"), "_y", "_k", pulled))
    program = eff.Program(_LIBRARY, eff.Handle(result, _HANDLERS["evaluated " + mode]))
    return evaluate(check(program)[0], reals, steps)


def _input(mode: str, x: object, dx: object) -> eff.Term:
    number = eff.Constant(types.R, x)
    if mode == "eval":
        return number
    if mode == "forward":
        return eff.Pair(number, eff.Constant(types.R, dx))
    scaled = eff.Pair(eff.Constant(types.R, dx), eff.Var("z"))
    times = _smooth(2, expressions.Call("*", (expressions.Argument(1), expressions.Argument(2))))
    return eff.Pair(number, eff.Thunk(eff.Lam("z", types.R, eff.Call("ap2", eff.Pair(times, scaled))), PLAIN.effect))


def _tuple(items: list[eff.Term]) -> eff.Term:
    return items[0] if len(items) == 1 else eff.Pair(items[0], _tuple(items[1:]))


def _handler(use: str) -> eff.Term:
    body = parse(f"import smooth handle return () with {use}").body
    assert isinstance(body, eff.Handle)
    return body.handler


_HANDLERS = {
    "forward": _handler("forward[Dual]"),
    "reverse": _handler("reverse[Prop]"),
    "evaluated eval": _handler("eval[R]"),
    "evaluated forward": _handler("eval[Dual]"),
    "evaluated reverse": _handler("eval[R * R]"),
}
