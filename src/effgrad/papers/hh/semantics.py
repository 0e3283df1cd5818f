"""The meaning of HH: a machine with a control stack, a heap, and continuations that are pieces of the stack.

To perform an effect, the machine moves the frames above the nearest handler that catches it from the stack to the heap.
They form the continuation, with the handler itself, since handlers are deep. To resume the continuation, the machine
moves them back to the stack, which it can do once. Operands are evaluated from right to left, as in OCaml.
De Vilhena and Pottier 2023, sections 4 and 7.1.
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from effgrad.papers.hh import terms as t
from effgrad.papers.syntax import Place, Stuck, TooManySteps, Value

Environment = dict[str, Value]


@dataclass(frozen=True)
class Constructed:
    """A value: a constructor applied to an argument."""

    constructor: str
    argument: Value

    def __str__(self) -> str:
        return self.constructor if self.argument == () else f"{self.constructor} {shown(self.argument)}"


@dataclass(frozen=True, eq=False)
class Closure:
    function: t.Fun
    scope: Environment

    def __str__(self) -> str:
        return "a function"


@dataclass(frozen=True)
class Location:
    """An address in the heap, of a reference or of a continuation."""

    number: int

    def __str__(self) -> str:
        return f"l{self.number}"


@dataclass(frozen=True)
class Continuation:
    """The frames that performing an effect took off the stack; they are in the heap until the continuation resumes."""

    frames: list[Value]

    def __str__(self) -> str:
        return f"a continuation of {len(self.frames)} frames"


USED = "a continuation that was resumed"


@dataclass(frozen=True)
class Waiting:
    """A stack frame: a term that waits for the value of one of its parts, and the values of the parts right of it."""

    term: Value
    scope: Environment
    values: tuple[Value, ...] = ()


def evaluate(term: t.Term, *arguments: Value, reals: Callable[[Fraction], Value] = float, steps: int = 10**6,
             tell: Callable[[str, "Machine"], None] = lambda rule, machine: None) -> Value:  # fmt: skip
    """Return the value of a term, applied to the arguments if there are any.

    Arguments:
        term: a term that `parse` returns.
        arguments: numbers, tuples, `Constructed`, or Python functions of one value.
        reals: converts a literal such as 2.5 to a number.
        steps: the limit of steps; `TooManySteps` is raised beyond it.
        tell: is called after each step with the name of its rule and the machine.

    >>> from effgrad.papers.hh import parse
    >>> evaluate(parse("fun x -> let r = ref x in r := !r + 1; !r * 2"), 20)
    42
    """
    for argument in arguments:
        term = t.Strict("apply", (term, t.Quoted(argument)))
    machine = Machine(term, reals)
    while machine.frames or machine.term is not None:
        rule = machine.step()
        if rule is not None:
            tell(rule, machine)
        if machine.steps > steps:
            raise TooManySteps(steps)
    return machine.value


class Machine:
    """A running program: the term under evaluation with its scope, or its value; the frames around it; and the heap.

    `term` is None while the machine has a `value` for the innermost frame.
    """

    def __init__(self, term: t.Term, reals: Callable[[Fraction], Value] = float) -> None:
        self.reals = reals
        self.term: t.Term | None = term
        self.scope: Environment = {}
        self.value: Value = None
        self.frames: list[Waiting] = []
        self.heap: dict[Location, Value] = {}
        self.printed: list[Value] = []
        self.steps = 0
        self.place: Place | None = None

    def step(self) -> str | None:
        """Go on to the next part of a term, or apply a rule. Return the rule's name, or None if none was applied."""
        if self.term is None:
            rule = self._receive(self.frames.pop())
            self.steps += rule is not None
            return rule
        self._enter(self.term, self.scope)
        return None

    def _enter(self, term: t.Term, scope: Environment) -> None:
        self.place = term.place or self.place
        match term:
            case t.Var(name):
                if name not in scope:
                    raise Stuck(f"{name} is not bound", term.place)
                self._give(scope[name])
            case t.Literal(value):
                self._give(self.reals(value) if isinstance(value, Fraction) else value)
            case t.Quoted(value):
                self._give(value)
            case t.Fun():
                self._give(Closure(term, scope))
            case t.Strict("row", ()):
                self._give(())
            case t.Strict(_, (*_, last)):
                self._wait(term, scope, last)
            case t.Let(_, inner, _) | t.Match(inner, _) | t.Handle(inner, _):
                self._wait(term, scope, inner)

    def _wait(self, term: t.Term, scope: Environment, part: t.Term) -> None:
        self.frames.append(Waiting(term, scope))
        self.term, self.scope = part, scope

    def _give(self, value: Value) -> None:
        self.term, self.value = None, value

    def _go(self, term: t.Term, scope: Environment) -> None:
        self.term, self.scope = term, scope

    def _receive(self, frame: Waiting) -> str | None:
        """Give the value to the frame that waits for it, and return the name of the rule that is applied, if any."""
        term, scope = frame.term, frame.scope
        self.place = term.place or self.place
        match term:
            case t.Strict(rule, parts):
                values = (self.value, *frame.values)
                if len(values) == len(parts):
                    return self._apply(rule, values)
                self.frames.append(Waiting(term, scope, values))
                self._go(parts[-1 - len(values)], scope)
                return None
            case t.Let(pattern, _, body):
                self._go(body, {**scope, **self._bound(pattern, self.value)})
                return "let"
            case t.Match(_, branches):
                return self._choose("match", branches, scope)
            case t.Handle(_, branches):
                return self._choose("return", [b for b in branches if b.continuation is None], scope)
        raise AssertionError(term)

    def _choose(self, rule: str, branches: Value, scope: Environment) -> str:
        for branch in branches:
            if (found := matched(branch.pattern, self.value)) is not None:
                self._go(branch.body, {**scope, **found})
                return rule
        raise Stuck(f"no pattern fits {shown(self.value)}", self.place)

    def _bound(self, pattern: t.Pattern, value: Value) -> Environment:
        found = matched(pattern, value)
        if found is None:
            raise Stuck(f"the pattern does not fit {shown(value)}", self.place)
        return found

    def _apply(self, rule: str, values: tuple[Value, ...]) -> str:
        match rule, values:
            case "row", _:
                self._give(values)
            case "apply", (Closure(function, scope) as closure, argument):
                own = {function.name: closure} if function.name else {}
                self._go(function.body, {**scope, **own, **self._bound(function.parameter, argument)})
            case "apply", (function, argument) if callable(function):
                self._give(function(argument))
            case "print", (value,):
                self.printed.append(value)
                self._give(())
            case "perform", (value,):
                self._perform(value)
            case ("ref", (_,)) | ("!" | ":=" | "continue", (Location(), *_)):
                self._use_heap(rule, values)
            case "<", (left, right):
                self._give(Constructed("True" if left < right else "False", ()))
            case _ if rule in _ARITHMETIC:
                self._give(_ARITHMETIC[rule](*values))
            case _ if rule[0].isupper():
                self._give(Constructed(rule, values[0]))
            case _:
                raise Stuck(f"no rule for {rule} of {', '.join(map(shown, values))}", self.place)
        return rule

    def _use_heap(self, rule: str, values: tuple[Value, ...]) -> None:
        """Apply a rule that reads or changes the heap."""
        match rule, values:
            case "ref", (value,):
                self._give(self.new(value))
            case "!", (location,):
                self._give(self.heap[location])
            case ":=", (location, value):
                self.heap[location] = value
                self._give(())
            case "continue", (location, value):
                frames = self.heap.get(location)
                if frames is USED:
                    raise Stuck(f"the continuation {location} is resumed a second time; it is one-shot", self.place)
                if not isinstance(frames, Continuation):
                    raise Stuck(f"{location} is not a continuation", self.place)
                self.heap[location] = USED
                self.frames += frames.frames
                self._give(value)
            case _:
                raise Stuck(f"no rule for {rule} of {', '.join(map(shown, values))}", self.place)

    def new(self, content: Value) -> Location:
        location = Location(len(self.heap) + 1)
        self.heap[location] = content
        return location

    def _perform(self, effect: Value) -> None:
        for height in reversed(range(len(self.frames))):
            frame = self.frames[height]
            for branch in frame.term.branches if isinstance(frame.term, t.Handle) else ():
                found = matched(branch.pattern, effect)
                if branch.continuation is not None and found is not None:
                    found[branch.continuation] = self.new(Continuation(self.frames[height:]))
                    del self.frames[height:]
                    return self._go(branch.body, {**frame.scope, **found})
        raise Stuck(f"no handler catches the effect {shown(effect)}", self.place)


_ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul}


def matched(pattern: t.Pattern, value: Value) -> Environment | None:
    """Return the names that a pattern binds when it fits a value; None when it does not."""
    match pattern, value:
        case t.Name("_"), _:
            return {}
        case t.Name(name), _:
            return {name: value}
        case t.Row(items), tuple() if len(items) == len(value):
            found: Environment = {}
            for item, part in zip(items, value, strict=True):
                inner = matched(item, part)
                if inner is None:
                    return None
                found |= inner
            return found
        case t.Made(constructor, argument), Constructed(made, content) if made == constructor:
            return matched(argument, content)
    return None


def shown(value: Value) -> str:
    """The text of a value."""
    if isinstance(value, tuple):
        return f"({', '.join(map(shown, value))})"
    if isinstance(value, Constructed):
        return f"({value})" if value.argument != () else str(value)
    return "a function" if callable(value) else str(value)
