"""The translation of a program to a computation of EFF (Sigal 2024, section 7.2).

In EFF the nearest handler receives every operation, so each handler here has a clause for every operation. The clauses
for operations that the program's handler does not handle perform them again. The operation a of effect 0 under m masks
is `e0a_m`. A mask is a handler that increases m, and a handler of effect 0 decreases it. As in `to_hh`, the answer to
an operation is `ok` of a value that the library returns, or `err` of an error that it raises. An exception is an
operation whose continuation is not resumed. The outermost handler collects the output.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from effgrad.papers.eff import terms as eff
from effgrad.papers.eff.semantics import evaluate
from effgrad.papers.eff.type_terms import Variant, Z
from effgrad.papers.handlers import terms as t
from effgrad.papers.syntax import Stuck, TooManySteps

ANSWER = Variant((("ok", Z), ("err", Z)))
ZERO = eff.Constant(Z, 0)
MASKS = 4


def ok(value: eff.Term) -> eff.Term:
    return eff.Inj(ANSWER, "ok", value)


def resumed(k: str, answer: eff.Term) -> eff.Term:
    return eff.App(eff.Force(eff.Var(k)), answer)


def either(answer: eff.Term, value: str, then: eff.Term, error: str, otherwise: eff.Term) -> eff.Term:
    return eff.To(
        "a_", answer, eff.Case(eff.Var("a_"), (eff.Branch("ok", value, then), eff.Branch("err", error, otherwise)))
    )


class _Translation:
    """The translation of one program. It knows the program's operations, so that handlers can pass them on."""

    def __init__(self, term: t.Term) -> None:
        used = {(part.effect, part.operation) for part in term.all() if isinstance(part, t.Perform)}
        # Masks may be nested deeper at run time than in the text, since a clause that resumes may add one each time.
        masks = MASKS if any(isinstance(part, t.Mask) for part in term.all()) else 0
        self.names = [f"e{effect}{operation}_{m}" for effect, operation in sorted(used) for m in range(masks + 1)]
        self.names += ["exc", "out"]
        self.operations = {name: (Z, Z if name in ("exc", "out") else ANSWER) for name in self.names}

    def handler(self, value: str, returns: eff.Term, meanings: dict[str, Callable[[], eff.Term]]) -> eff.Handler:
        """Return a handler whose clauses are `meanings`, in `p_` (the parameter) and `k_` (the continuation).

        It passes on all operations without a meaning.
        """
        clauses = [
            eff.Clause(name, "p_", "k_", meanings[name]() if name in meanings else self.forward(name))
            for name in self.names
        ]
        return eff.Handler(value, Z, returns, tuple(clauses))

    def forward(self, name: str) -> eff.Term:
        return eff.To("x_", eff.Call(name, eff.Var("p_")), resumed("k_", eff.Var("x_")))

    def caught(self, body: eff.Term) -> eff.Term:
        """Return a computation whose value is `ok` of the value of `body`, or `err` of the number that it raises."""
        error = eff.Return(eff.Inj(ANSWER, "err", eff.Var("p_")))
        return eff.Handle(body, self.handler("v_", eff.Return(ok(eff.Var("v_"))), {"exc": lambda: error}))

    def term(self, term: t.Term) -> eff.Term:
        match term:
            case t.Num() | t.Var():
                return eff.Return(atom(term))
            case t.Plus(left, right):
                return eff.Call("plusZ", eff.Pair(atom(left), atom(right)))
            case t.Let(name, bound, body):
                return eff.To(name, self.term(bound), self.term(body))
            case t.Out(argument):
                return eff.Call("out", atom(argument))
            case t.Perform(effect, operation, argument):
                answer = eff.Call(f"e{effect}{operation}_0", atom(argument))
                return either(answer, "v_", eff.Return(eff.Var("v_")), "e_", eff.Call("exc", eff.Var("e_")))
            case t.Raise(argument):
                return eff.Call("exc", atom(argument))
            case t.Try(body, name, rescue):
                return either(self.caught(self.term(body)), "v_", eff.Return(eff.Var("v_")), name, self.term(rescue))
            case t.Mask(effect, body):
                return eff.Handle(
                    self.term(body), self.handler("v_", eff.Return(eff.Var("v_")), self.shifted(effect, 1))
                )
            case t.Resume(k, argument):
                return resumed(k, ok(atom(argument)))
            case t.Throw(k, argument):
                return resumed(k, eff.Inj(ANSWER, "err", atom(argument)))
            case t.Handle():
                return self.handled(term)
        raise AssertionError(term)

    def shifted(self, effect: int, by: int) -> dict[str, Callable[[], eff.Term]]:
        """Return clauses that perform the operations of an effect again, under one mask more or less."""
        meanings: dict[str, Callable[[], eff.Term]] = {}
        for name in self.names:
            base, _, masks = name.rpartition("_")
            if base.startswith(f"e{effect}") and int(masks) + by >= 0:
                to = f"{base}_{int(masks) + by}"
                meanings[name] = partial(self.forward, to)
        return meanings

    def handled(self, term: t.Handle) -> eff.Term:
        meanings = self.shifted(term.effect, -1)
        for clause in term.clauses:
            meanings[f"e{term.effect}{clause.operation}_0"] = partial(self.clause, clause)
        returns = eff.Return(eff.Var(term.value)) if term.returns is None else self.term(term.returns)
        return eff.Handle(self.term(term.body), self.handler(term.value, returns, meanings))

    def clause(self, clause: t.Clause) -> eff.Term:
        """Translate a clause, and bind the parameter and the continuation to names that no other clause uses."""
        k = clause.k or f"c{clause.name}"
        body = self.term(clause.body)
        match clause.kind:
            case "tail":
                body = eff.To("a_", self.caught(body), resumed(k, eff.Var("a_")))
            case "around" | "once":
                body = self.deferring(clause, k, body)
        return eff.To(clause.name, eff.Return(eff.Var("p_")), eff.To(k, eff.Return(eff.Var("k_")), body))

    def deferring(self, clause: t.Clause, k: str, body: eff.Term) -> eff.Term:
        assert clause.after is not None
        resuming: t.Term = t.Resume(k, t.Var("y1_"))
        if clause.around is not None:
            resuming = replace(clause.around, body=resuming)
        rest, after, result = self.term(resuming), self.term(clause.after), clause.result or f"r{clause.name}"
        if clause.kind == "around":
            after = eff.To("_", after, eff.Return(eff.Var(result)))
        if clause.rescue is None:
            meaning: eff.Term = eff.To(result, rest, after)
        else:
            rescue = self.term(clause.rescue)
            if clause.kind == "around":
                rescue = eff.To("_", rescue, eff.Call("exc", eff.Var(clause.error)))
            meaning = either(self.caught(rest), result, after, clause.error, rescue)
        return either(self.caught(body), "y1_", meaning, "e1_", resumed(k, eff.Inj(ANSWER, "err", eff.Var("e1_"))))

    def program(self, term: t.Term) -> eff.Program:
        collect = eff.To(
            "z_",
            resumed("k_", ZERO),
            eff.Split(
                eff.Var("z_"), "v_", "l_", eff.Return(eff.Pair(eff.Var("v_"), eff.Pair(eff.Var("p_"), eff.Var("l_"))))
            ),
        )
        written = eff.Handler(
            "x_", Z, eff.Return(eff.Pair(eff.Var("x_"), eff.Unit())), (eff.Clause("out", "p_", "k_", collect),)
        )
        return eff.Program(self.operations, eff.Handle(self.caught(self.term(term)), written))


def atom(term: t.Term) -> eff.Term:
    return eff.Constant(Z, term.value) if isinstance(term, t.Num) else eff.Var(term.name)  # type: ignore[attr-defined]


def run(term: t.Term, steps: int) -> tuple[str, int | None, list[int] | None]:
    """Run a program, and return how it ends, its value, and the numbers that it wrote."""
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
