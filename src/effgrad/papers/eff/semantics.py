"""The small-step semantics of EFF: a term is split into a context and a redex, and each beta reduction is one step.

The context is a list of frames, the innermost last. Sequencing, application and projection are basic frames, and
`handle` is a computation frame. An operation captures the basic frames up to the nearest `handle`, and this frame too,
as its continuation. So handlers are deep, and continuations may be resumed any number of times. Sigal 2024, figures
7.4, 7.11 and 7.20.

Chapter 9 asks for three extensions, which go beyond the figures. The continuation of a shallow handler does not contain
the handler (Hillerström and Lindley 2018), recursion unfolds, and references are places in a store, which all
continuations share.
"""

from collections.abc import Callable
from fractions import Fraction

from effgrad.papers.eff import terms as t
from effgrad.papers.eff.signature import builtin, shaped
from effgrad.papers.eff.type_terms import Operations, R
from effgrad.papers.eff.types import Checker
from effgrad.papers.syntax import Stuck, TooManySteps, Value, deep


@deep()
def evaluate(program: t.Program, reals: Callable[[Fraction], Value] = float, steps: int = 10**6,
             tell: Callable[[str, "Machine"], None] = lambda rule, machine: None) -> Value:  # fmt: skip
    """Return a program's value: numbers, pairs, (label, value) for variants, terms for thunks.

    Arguments:
        program: a program that `check` returns.
        reals: converts a literal to a number.
        steps: the limit of steps; `TooManySteps` is raised beyond it.
        tell: is called after each step with the name of its rule and the machine.

    >>> from effgrad.papers.eff.reading import parse
    >>> evaluate(parse("x <- return 1.0; y <- eval2 (op[a, b. a + b], (x, x)); return (x, y)"))
    (1.0, 2.0)
    """
    machine = Machine(program, reals)
    for _ in range(steps):
        rule = machine.step()
        if rule is None:
            if not isinstance(machine.focus, t.Return):
                raise Stuck(f"{machine.focus} is finished, but returns no value", machine.focus.place)
            return plain(machine.focus.value, reals)
        tell(rule, machine)
    raise TooManySteps(steps)


def plain(value: t.Term, reals: Callable[[Fraction], Value] = float) -> Value:
    """Convert a value of EFF to a Python value."""
    match value:
        case t.Constant(type_, number):
            return reals(number) if type_ == R else number
        case t.Unit():
            return ()
        case t.Pair(first, second):
            return plain(first, reals), plain(second, reals)
        case t.Inj(_, label, content):
            return label, plain(content, reals)
    return value


class Machine:
    """A computation under reduction: the part in focus, the frames around it, and the store."""

    def __init__(self, program: t.Program, reals: Callable[[Value], Value] = float) -> None:
        self.reals = reals
        self.operations: Operations = program.operations
        self.types = Checker(program.operations)
        self.focus: t.Term = program.body
        self.frames: list[t.Term] = []
        self.store: list[t.Term] = []

    def whole(self) -> t.Term:
        """The whole computation as one term."""
        return _plugged(self.frames, self.focus)

    def step(self) -> str | None:
        """Take one step and return the name of its rule; return None if the computation has finished."""
        while True:
            match self.focus:
                case t.To(_, inner, _) | t.App(inner, _) | t.Prj(_, inner) | t.Handle(inner, _):
                    self.frames.append(self.focus)
                    self.focus = inner
                case _:
                    return self._reduce(self.focus)

    def _reduce(self, focus: t.Term) -> str | None:
        match focus:
            case t.Split(t.Pair(one, other), first, second, body):
                return self._to("×", t.substituted(body, {first: one, second: other}))
            case t.Case(t.Inj(_, label, content), branches):
                for branch in branches:
                    if branch.label == label:
                        return self._to("+", t.substituted(branch.body, {branch.name: content}))
            case t.Force(t.Thunk(body)):
                return self._to("U", body)
            case t.Call(name, parameter) if (function := builtin(name)) is not None:
                if shaped(parameter, function.parameter):
                    return self._to("const", t.Return(function.meaning(parameter, self.reals), place=focus.place))
            case t.Call(name, parameter):
                return self._perform(focus, name, parameter)
            case t.Access(name, parameter):
                return self._to(name, t.Return(self._access(focus, name, parameter), place=focus.place))
            case t.Recursive(name, _, body, effect):
                return self._to("rec", t.substituted(body, {name: t.Thunk(focus, effect)}))
            case t.Return() | t.Lam() | t.Choice():
                return self._finish(focus)
        raise Stuck(f"no rule reduces {focus}", focus.place)

    def _access(self, focus: t.Term, name: str, parameter: t.Term) -> t.Term:
        """Make, read or write a reference, and return the resulting value."""
        match name, parameter:
            case "ref", _:
                self.store.append(parameter)
                return t.Location(len(self.store) - 1, self.types.value(parameter, {}))
            case "read", t.Location(number):
                return self.store[number]
            case "write", t.Pair(t.Location(number), value):
                self.store[number] = value
                return t.Unit()
        raise Stuck(f"no rule reduces {focus}", focus.place)

    def _finish(self, focus: t.Term) -> str | None:
        """Give a finished computation to the frame that waits for it; return None if there is no frame."""
        if not self.frames:
            return None
        match focus, self.frames.pop():
            case t.Return(value), t.To(name, _, rest):
                return self._to("F", t.substituted(rest, {name: value}))
            case t.Return(value), t.Handle(_, t.Handler(name, _, body)):
                return self._to("ret", t.substituted(body, {name: value}))
            case t.Lam(name, _, body), t.App(_, argument):
                return self._to("→", t.substituted(body, {name: argument}))
            case t.Choice(left, right), t.Prj(index, _):
                return self._to("&", left if index == 1 else right)
        raise Stuck(f"{focus} does not fit where it stands", focus.place)

    def _perform(self, focus: t.Term, name: str, parameter: t.Term) -> str:
        basic = []
        while self.frames and not isinstance(self.frames[-1], t.Handle):
            basic.append(self.frames.pop())
        if not self.frames:
            raise Stuck(f"no handler is around the operation {name}", focus.place)
        handle = self.frames.pop()
        assert isinstance(handle, t.Handle) and isinstance(handle.handler, t.Handler)
        for clause in handle.handler.clauses:
            if clause.operation == name:
                resumed, effect = _plugged(basic[::-1], t.Return(t.Var("x"))), handle.effect
                if handle.shallow:
                    effect = handle.handler.handled
                else:
                    resumed = t.Handle(resumed, handle.handler, effect)
                continuation = t.Thunk(t.Lam("x", self.operations[name][1], resumed), effect)
                values = {clause.parameter: parameter, clause.continuation: continuation}
                return self._to("shallow op" if handle.shallow else "op", t.substituted(clause.body, values))
        raise Stuck(f"the nearest handler has no clause for {name}", focus.place)

    def _to(self, rule: str, focus: t.Term) -> str:
        self.focus = focus
        return rule


def _plugged(frames: list[t.Term], term: t.Term) -> t.Term:
    """Return a context, given by its frames, with a term in its hole."""
    for frame in reversed(frames):
        match frame:
            case t.To(name, _, rest):
                term = t.To(name, term, rest, place=frame.place)
            case t.App(_, argument):
                term = t.App(term, argument, place=frame.place)
            case t.Prj(index, _):
                term = t.Prj(index, term, place=frame.place)
            case t.Handle(_, handler, effect, shallow):
                term = t.Handle(term, handler, effect, shallow, place=frame.place)
    return term
