"""The small-step semantics of EFF: a term is taken apart into a context and a redex, one beta reduction is a step.

The context is a list of frames, the innermost last. Basic frames are sequencing, application and projection; `handle`
is a computation frame, and an operation takes the basic frames up to the nearest one with it into its continuation:
handlers are deep, and continuations may be resumed any number of times. Sigal 2024, figures 7.4, 7.11 and 7.20.

Beyond the figures, as chapter 9 asks: the continuation of a shallow handler goes without it (Hillerström and Lindley
2018), recursion unfolds, and references are places in a store, which continuations share.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from effgrad.papers.eff.signature import builtin, shaped
from effgrad.papers.eff.terms import (
    Access,
    App,
    Call,
    Case,
    Choice,
    Constant,
    Force,
    Handle,
    Handler,
    Inj,
    Lam,
    Location,
    Pair,
    Prj,
    Program,
    Recursive,
    Return,
    Split,
    Term,
    Thunk,
    To,
    Unit,
    Var,
    substituted,
)
from effgrad.papers.eff.type_terms import Operations, R
from effgrad.papers.eff.types import Checker
from effgrad.papers.syntax import Stuck, TooManySteps, deep


@deep()
def evaluate(program: Program, reals: Callable[[Fraction], Any] = float, steps: int = 10**6,
             tell: Callable[[str, "Machine"], None] = lambda rule, machine: None) -> Any:  # fmt: skip
    """The value that a program returns: numbers, pairs, (label, value) for variants, terms for thunks.

    Arguments:
        program: what `check` gives.
        reals: makes a number of a literal.
        steps: the limit; `TooManySteps` is raised beyond it.
        tell: is called after each step with the name of its rule.

    >>> from effgrad.papers.eff.reading import parse
    >>> evaluate(parse("x <- return 1.0; y <- eval2 (op[a, b. a + b], (x, x)); return (x, y)"))
    (1.0, 2.0)
    """
    machine = Machine(program, reals)
    for _ in range(steps):
        rule = machine.step()
        if rule is None:
            if not isinstance(machine.focus, Return):
                raise Stuck(f"{machine.focus} is finished, but returns no value", machine.focus.place)
            return plain(machine.focus.value, reals)
        tell(rule, machine)
    raise TooManySteps(steps)


def plain(value: Term, reals: Callable[[Fraction], Any] = float) -> Any:
    """A value of EFF as one of Python."""
    match value:
        case Constant(type_, number):
            return reals(number) if type_ == R else number
        case Unit():
            return ()
        case Pair(first, second):
            return plain(first, reals), plain(second, reals)
        case Inj(_, label, content):
            return label, plain(content, reals)
    return value


class Machine:
    """A computation that is being reduced: the part in focus, and the frames around it."""

    def __init__(self, program: Program, reals: Callable[[Any], Any] = float) -> None:
        self.reals = reals
        self.operations: Operations = program.operations
        self.types = Checker(program.operations)
        self.focus: Term = program.body
        self.frames: list[Term] = []
        self.store: list[Term] = []

    def whole(self) -> Term:
        """The computation as one term."""
        return _plugged(self.frames, self.focus)

    def step(self) -> str | None:
        """Take one step; its rule, or None when there is none to take because the computation has finished."""
        while True:
            match self.focus:
                case To(_, inner, _) | App(inner, _) | Prj(_, inner) | Handle(inner, _):
                    self.frames.append(self.focus)
                    self.focus = inner
                case _:
                    return self._reduce(self.focus)

    def _reduce(self, focus: Term) -> str | None:
        match focus:
            case Split(Pair(one, other), first, second, body):
                return self._to("×", substituted(body, {first: one, second: other}))
            case Case(Inj(_, label, content), branches):
                for branch in branches:
                    if branch.label == label:
                        return self._to("+", substituted(branch.body, {branch.name: content}))
            case Force(Thunk(body)):
                return self._to("U", body)
            case Call(name, parameter) if (function := builtin(name)) is not None:
                if shaped(parameter, function.parameter):
                    return self._to("const", Return(function.meaning(parameter, self.reals), place=focus.place))
            case Call(name, parameter):
                return self._perform(focus, name, parameter)
            case Access(name, parameter):
                return self._to(name, Return(self._access(focus, name, parameter), place=focus.place))
            case Recursive(name, _, body, effect):
                return self._to("rec", substituted(body, {name: Thunk(focus, effect)}))
            case Return() | Lam() | Choice():
                return self._finish(focus)
        raise Stuck(f"no rule reduces {focus}", focus.place)

    def _access(self, focus: Term, name: str, parameter: Term) -> Term:
        """The value of making, reading or writing a reference."""
        match name, parameter:
            case "ref", _:
                self.store.append(parameter)
                return Location(len(self.store) - 1, self.types.value(parameter, {}, frozenset())[1])
            case "read", Location(number):
                return self.store[number]
            case "write", Pair(Location(number), value):
                self.store[number] = value
                return Unit()
        raise Stuck(f"no rule reduces {focus}", focus.place)

    def _finish(self, focus: Term) -> str | None:
        """A computation that is a result meets the frame that waits for it."""
        if not self.frames:
            return None
        match focus, self.frames.pop():
            case Return(value), To(name, _, rest):
                return self._to("F", substituted(rest, {name: value}))
            case Return(value), Handle(_, Handler(name, _, body)):
                return self._to("ret", substituted(body, {name: value}))
            case Lam(name, _, body), App(_, argument):
                return self._to("→", substituted(body, {name: argument}))
            case Choice(left, right), Prj(index, _):
                return self._to("&", left if index == 1 else right)
        raise Stuck(f"{focus} does not fit where it stands", focus.place)

    def _perform(self, focus: Term, name: str, parameter: Term) -> str:
        basic = []
        while self.frames and not isinstance(self.frames[-1], Handle):
            basic.append(self.frames.pop())
        if not self.frames:
            raise Stuck(f"no handler is around the operation {name}", focus.place)
        handle = self.frames.pop()
        assert isinstance(handle, Handle) and isinstance(handle.handler, Handler)
        for clause in handle.handler.clauses:
            if clause.operation == name:
                resumed, effect = _plugged(basic[::-1], Return(Var("x"))), handle.effect
                if handle.shallow:
                    effect = frozenset(clause.operation for clause in handle.handler.clauses)
                else:
                    resumed = Handle(resumed, handle.handler, effect)
                continuation = Thunk(Lam("x", self.operations[name][1], resumed), effect)
                values = {clause.parameter: parameter, clause.continuation: continuation}
                return self._to("shallow op" if handle.shallow else "op", substituted(clause.body, values))
        raise Stuck(f"the nearest handler has no clause for {name}", focus.place)

    def _to(self, rule: str, focus: Term) -> str:
        self.focus = focus
        return rule


def _plugged(frames: list[Term], term: Term) -> Term:
    """A context with a term in its hole."""
    for frame in reversed(frames):
        match frame:
            case To(name, _, rest):
                term = To(name, term, rest, place=frame.place)
            case App(_, argument):
                term = App(term, argument, place=frame.place)
            case Prj(index, _):
                term = Prj(index, term, place=frame.place)
            case Handle(_, handler, effect, shallow):
                term = Handle(term, handler, effect, shallow, place=frame.place)
    return term
