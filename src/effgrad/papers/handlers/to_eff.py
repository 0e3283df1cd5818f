"""A program as a computation of EFF, after Sigal 2024, section 7.2.

In EFF the nearest handler takes every operation, so each handler here has a clause for each operation, which passes on
those that it does not handle. The operation a of effect 0 under m masks is `e0a_m`; a mask is a handler that raises m,
and a handler of effect 0 one that lowers it. As in HH, answers say where the library returns and where it raises, and
an exception is an operation whose continuation is not called. What is written is collected by the outermost handler.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from effgrad.papers.eff.semantics import evaluate
from effgrad.papers.eff.terms import (
    App,
    Branch,
    Call,
    Case,
    Clause,
    Constant,
    Force,
    Handle,
    Handler,
    Inj,
    Pair,
    Program,
    Return,
    Split,
    Term,
    To,
    Unit,
    Var,
)
from effgrad.papers.eff.type_terms import Variant, Z
from effgrad.papers.handlers import terms as t
from effgrad.papers.syntax import Stuck, TooManySteps

ANSWER = Variant((("ok", Z), ("err", Z)))
ZERO = Constant(Z, 0)
MASKS = 4


def ok(value: Term) -> Term:
    return Inj(ANSWER, "ok", value)


def resumed(k: str, answer: Term) -> Term:
    return App(Force(Var(k)), answer)


def either(answer: Term, value: str, then: Term, error: str, otherwise: Term) -> Term:
    return To("a_", answer, Case(Var("a_"), (Branch("ok", value, then), Branch("err", error, otherwise))))


class _Translation:
    """Knows the operations of one program, so that its handlers can pass them on."""

    def __init__(self, term: t.Term) -> None:
        used = {(part.effect, part.operation) for part in t.parts(term) if isinstance(part, t.Perform)}
        # A program can be under more masks than it has, since a clause that resumes may mask each time.
        masks = MASKS if any(isinstance(part, t.Mask) for part in t.parts(term)) else 0
        self.names = [f"e{effect}{operation}_{m}" for effect, operation in sorted(used) for m in range(masks + 1)]
        self.names += ["exc", "out"]
        self.operations = {name: (Z, Z if name in ("exc", "out") else ANSWER) for name in self.names}

    def handler(self, value: str, returns: Term, meanings: dict[str, Callable[[], Term]]) -> Handler:
        """A handler with meanings for some operations, of the parameter `p_` and the continuation `k_`."""
        clauses = [
            Clause(name, "p_", "k_", meanings[name]() if name in meanings else self.forward(name))
            for name in self.names
        ]
        return Handler(value, Z, returns, tuple(clauses))

    def forward(self, name: str) -> Term:
        return To("x_", Call(name, Var("p_")), resumed("k_", Var("x_")))

    def caught(self, body: Term) -> Term:
        """`ok` of the value of a computation, or `err` of what it raises."""
        error = Return(Inj(ANSWER, "err", Var("p_")))
        return Handle(body, self.handler("v_", Return(ok(Var("v_"))), {"exc": lambda: error}))

    def term(self, term: t.Term) -> Term:
        match term:
            case t.Num() | t.Var():
                return Return(atom(term))
            case t.Plus(left, right):
                return Call("plusZ", Pair(atom(left), atom(right)))
            case t.Let(name, bound, body):
                return To(name, self.term(bound), self.term(body))
            case t.Out(argument):
                return Call("out", atom(argument))
            case t.Perform(effect, operation, argument):
                answer = Call(f"e{effect}{operation}_0", atom(argument))
                return either(answer, "v_", Return(Var("v_")), "e_", Call("exc", Var("e_")))
            case t.Raise(argument):
                return Call("exc", atom(argument))
            case t.Try(body, name, rescue):
                return either(self.caught(self.term(body)), "v_", Return(Var("v_")), name, self.term(rescue))
            case t.Mask(effect, body):
                return Handle(self.term(body), self.handler("v_", Return(Var("v_")), self.shifted(effect, 1)))
            case t.Resume(k, argument):
                return resumed(k, ok(atom(argument)))
            case t.Throw(k, argument):
                return resumed(k, Inj(ANSWER, "err", atom(argument)))
            case t.Handle():
                return self.handled(term)
        raise AssertionError(term)

    def shifted(self, effect: int, by: int) -> dict[str, Callable[[], Term]]:
        """Meanings of the operations of an effect: to perform them under one mask more, or less."""
        meanings: dict[str, Callable[[], Term]] = {}
        for name in self.names:
            base, _, masks = name.rpartition("_")
            if base.startswith(f"e{effect}") and int(masks) + by >= 0:
                to = f"{base}_{int(masks) + by}"
                meanings[name] = partial(self.forward, to)
        return meanings

    def handled(self, term: t.Handle) -> Term:
        meanings = self.shifted(term.effect, -1)
        for clause in term.clauses:
            meanings[f"e{term.effect}{clause.operation}_0"] = partial(self.clause, clause)
        returns = Return(Var(term.value)) if term.returns is None else self.term(term.returns)
        return Handle(self.term(term.body), self.handler(term.value, returns, meanings))

    def clause(self, clause: t.Clause) -> Term:
        """The meaning of a clause, with its own names for the parameter and the continuation."""
        k = clause.k or f"c{clause.name}"
        body = self.term(clause.body)
        match clause.kind:
            case "tail":
                body = To("a_", self.caught(body), resumed(k, Var("a_")))
            case "around" | "once":
                body = self.deferring(clause, k, body)
        return To(clause.name, Return(Var("p_")), To(k, Return(Var("k_")), body))

    def deferring(self, clause: t.Clause, k: str, body: Term) -> Term:
        assert clause.after is not None
        resuming: t.Term = t.Resume(k, t.Var("y1_"))
        if clause.around is not None:
            resuming = replace(clause.around, body=resuming)
        rest, after, result = self.term(resuming), self.term(clause.after), clause.result or f"r{clause.name}"
        if clause.kind == "around":
            after = To("_", after, Return(Var(result)))
        if clause.rescue is None:
            meaning: Term = To(result, rest, after)
        else:
            rescue = self.term(clause.rescue)
            if clause.kind == "around":
                rescue = To("_", rescue, Call("exc", Var(clause.error)))
            meaning = either(self.caught(rest), result, after, clause.error, rescue)
        return either(self.caught(body), "y1_", meaning, "e1_", resumed(k, Inj(ANSWER, "err", Var("e1_"))))

    def program(self, term: t.Term) -> Program:
        collect = To(
            "z_", resumed("k_", ZERO), Split(Var("z_"), "v_", "l_", Return(Pair(Var("v_"), Pair(Var("p_"), Var("l_")))))
        )
        written = Handler("x_", Z, Return(Pair(Var("x_"), Unit())), (Clause("out", "p_", "k_", collect),))
        return Program(self.operations, Handle(self.caught(self.term(term)), written))


def atom(term: t.Term) -> Term:
    return Constant(Z, term.value) if isinstance(term, t.Num) else Var(term.name)  # type: ignore[attr-defined]


def run(term: t.Term, steps: int) -> tuple[str, int | None, list[int] | None]:
    """How a program ends, its value, and the numbers that it has written."""
    try:
        (label, value), rest = evaluate(_Translation(term).program(term), steps=steps)
    except TooManySteps:
        return "too long", None, None
    except Stuck as stuck:
        if f"_{MASKS + 1}" in str(stuck):
            return "too long", None, None
        if "the nearest handler has no clause" in str(stuck):
            return "unhandled", None, None
        raise
    written = []
    while rest:
        number, rest = rest
        written.append(number)
    return ("value" if label == "ok" else "error"), value, written
