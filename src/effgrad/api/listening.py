"""One listener for all modes, which records the steps that activations take.

Each activation made while the listener listens gets another class before it begins: a subclass of its mode with a mixin
that reports to the listener before and after each call of the mode. So no mode knows of explanations, nothing is
computed twice, and derivatives inside the program are recorded like the explained one. A fast mode runs as the readable
mode from which it is derived, since its operators bypass clauses.

A value is identified by the data that its activation keeps of it: the primal and the shadow.
"""

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from effgrad.api.explanation import Activation, Argument, Share, Step
from effgrad.api.records import NOT_RECORDED, parameter, plain_value, record, shown
from effgrad.arrays.value import Tracer
from effgrad.errors import user_frame
from effgrad.modes.backward import ReverseMode
from effgrad.modes.hessian import EdgePushing
from effgrad.modes.mode import Mode, Operation
from effgrad.modes.rerun import values_of
from effgrad.modes.reverse import Reverse
from effgrad.modes.walk import ListMode
from effgrad.primitives.primitive import Primitive
from effgrad.vocabulary import Cotangent, Option, Params, Shadow, Tree, Value


class Listener:
    """Collects the steps of all activations that `effgrad.effects.handler.observed` shows to it."""

    def __init__(self, below: bool) -> None:
        # Whether the first activation is an evaluation below all others, whose values count as plain.
        self.below = below
        # The frame that calls `explain`, which is not part of the program.
        self.asking = user_frame()
        self.steps: list[Step] = []
        self.activations: list[Activation] = []
        self.phase = "forward"
        self.open: list[Step] = []
        # The number of running reverse passes that take derivatives themselves.
        self.working = 0
        self.names: dict[Value, str] = {}
        self.kept: list[Value] = []
        self.counts: dict[str, int] = {}
        # The cotangents accumulated so far, by the names of their values.
        self.totals: dict[str, Value] = {}

    def activated(self, activation: object) -> None:
        """Listen to an activation that is about to begin."""
        if not isinstance(activation, Mode):
            return
        kind = _readable(type(activation))
        mixed: Any = _listened
        activation.__class__ = mixed(kind)
        number = len(self.activations)
        vars(activation).update(listener=self, number=number)
        before = sum(other.mode == kind.__name__ for other in self.activations[self.below :])
        name = f"{kind.__name__} {before + 1}" if before else kind.__name__
        self.activations.append(Activation(number, name, kind.__name__, bool(self.open) or self.working > 0))
        self.step("begin", activation)

    def step(self, kind: str, activation: Any, **fields: Option) -> Step:
        """Record a step and return it."""
        parent = self.open[-1].number if self.open else None
        fields.setdefault("line", self.line())
        made = Step(len(self.steps), kind, activation.number, parent, self.phase, **fields)
        self.steps.append(made)
        return made

    def line(self) -> tuple[str, int] | None:
        """The file and number of the program's current line, or None."""
        frame = user_frame()
        return None if frame is None or frame is self.asking else (frame.f_code.co_filename, frame.f_lineno)

    @contextmanager
    def during(self, step: Step) -> Iterator[Step]:
        """Make the steps recorded in the block children of a step."""
        self.open.append(step)
        try:
            yield step
        finally:
            self.open.pop()

    def new(self, prefix: str) -> str:
        self.counts[prefix] = self.counts.get(prefix, 0) + 1
        return f"{prefix}{self.counts[prefix]}"

    def is_internal(self, activation: Any) -> bool:
        """Whether the current work of an activation is internal to a clause."""
        own: bool = self.activations[activation.number].internal
        return own or (bool(self.open) and self.open[-1].activation == activation.number)

    def call(self, activation: Any, value: Value, name: str) -> str:
        """Give a value a name, and return the name."""
        primal, shadow = value.primal, value.shadow
        self.kept.append((primal, shadow))  # kept alive, because their ids identify the value
        self.names[_key(activation, primal, shadow)] = name
        return name

    def name(self, value: Value) -> str | None:
        """The name of a value, or None."""
        if not isinstance(value, Tracer) or not hasattr(value.owner, "listener"):
            return None
        return self.names.get(_key(value.owner, value.primal, value.shadow))

    def argument(self, value: Value) -> Argument:
        return Argument(self.name(value), shown(value))

    def add(self, name: str | None, part: Value) -> Value:
        """Add to the cotangent of a value, and return the sum so far."""
        if name is None:
            return part
        before = self.totals.get(name)
        self.totals[name] = part if before is None else before + part
        return self.totals[name]


def _key(activation: Any, primal: Value, shadow: Shadow) -> tuple[Value, ...]:
    """The key of a value in `Listener.names`: its name on the tape, or the ids of its primal and shadow."""
    return (activation.number, shadow) if type(shadow) is int else (activation.number, id(primal), id(shadow))


class Heard(Operation):
    """An operation that reports each cotangent that is pulled through it."""

    telling: Any
    step: Step
    names: list[str | None]

    def shares(self, wanted: list[int], cotangent: Cotangent) -> list[Cotangent]:
        listener, step = self.telling.listener, self.step
        listener.totals[step.name] = plain_value(cotangent)
        pull = listener.step(
            "pull", self.telling, name=step.name, operation=step.operation, arguments=step.arguments, line=step.line,
            parameters=step.parameters, record=step.record, content=step.content, cotangent=shown(cotangent),
            pairs=self.telling.pairs_held(),
        )  # fmt: skip
        with listener.during(pull):
            parts = super().shares(wanted, cotangent)
        for index, part in zip(wanted, parts, strict=True):
            if part is not None:
                name, value = self.names[index], plain_value(part)
                pull.shares.append(Share(index + 1, name, shown(value), shown(listener.add(name, value))))
        return parts


class Listened(Mode):
    """A mixin before a mode that reports to the listener the mode's inputs and operations, with their results."""

    listener: Listener
    number: int

    def variable(self, primal: Value, *beside: Value) -> Value:
        value = super().variable(primal, *beside)
        if not self.is_evaluation():
            listener = self.listener
            name = listener.call(self, value, listener.new("s" if listener.is_internal(self) else "x"))
            given = [listener.argument(primal)]
            listener.step("input", self, name=name, arguments=given, value=shown(value), **self.kept(value))
        return value

    def apply(self, primitive: Primitive, *args: Value, **params: Option) -> Value:
        parent: Any = super()
        return self.tell(parent.apply, primitive, args, params)

    def tell(self, clause: Any, primitive: Primitive, args: Sequence[Value], params: Params) -> Value:
        listener = self.listener
        step = listener.step("apply", self, operation=primitive.name, arguments=[*map(listener.argument, args)])
        step.parameters = {name: parameter(value) for name, value in params.items() if value is not None}
        with listener.during(step):
            result = clause(primitive, *args, **params)
        step.value = shown(result)
        if not self.is_evaluation() and self.owns(result):
            step.name = listener.call(self, result, listener.new("s" if listener.is_internal(self) else "r"))
            vars(step).update(self.kept(result))
        return result

    def perform(self, primitive: Primitive, args: Sequence[Value], params: Params) -> Operation:
        operation = Heard(*super().perform(primitive, args, params))
        operation.telling, operation.step = self, self.listener.open[-1]
        operation.names = [self.listener.name(arg) for arg in args]
        return operation

    def kept(self, value: Value) -> dict[str, str]:
        return dict(zip(("record", "content"), record(self, value.shadow), strict=True))

    def pairs_held(self) -> dict[str, str]:
        """The second derivatives that the reverse pass holds now, by pairs of names."""
        return {}

    def is_evaluation(self) -> bool:
        """Whether this is the evaluation below all other activations, whose values count as plain."""
        return self.number == 0 and self.listener.below

    def finally_(self) -> None:
        super().finally_()
        self.listener.step("end", self)


class ListenedReverse(Listened):
    """Reports checkpoints, and the beginning of the reverse pass."""

    def unrecorded(self, primitive: Primitive, *args: Value, **params: Option) -> Value:
        parent: Any = super()
        return self.tell(parent.unrecorded, primitive, args, params)

    def run(self, thunk: object) -> Value:
        parent: Any = super()
        part = HeardPart(self, thunk)
        result = parent.run(part)
        part.recorded_as(result)
        return result

    def seed(self, value: Value, cotangent: Cotangent) -> None:
        self.begin_reverse(self.listener.name(value), cotangent)
        parent: Any = super()
        parent.seed(value, cotangent)

    def begin_reverse(self, name: str | None, cotangent: Cotangent) -> None:
        listener = self.listener
        if self.number == int(listener.below):
            listener.phase = "reverse"
        total = listener.add(name, plain_value(cotangent))
        listener.step("seed", self, name=name, cotangent=shown(total))


class ListenedList(ListenedReverse):
    """Reports the beginning of each reverse pass, for a mode whose reverse pass may be repeated."""

    def seed(self, value: Value, cotangent: Cotangent) -> None:
        parent: Any = super(ListenedReverse, self)
        parent.seed(value, cotangent)

    def pull(self, seeds: Value, shadows: Value) -> Cotangent:
        listener = self.listener
        for (number, *_), name in listener.names.items():
            if number == self.number:
                listener.totals.pop(name, None)
        for shadow, cotangent in seeds:
            self.begin_reverse(listener.names.get((self.number, shadow)), cotangent)
        parent: Any = super()
        return parent.pull(seeds, shadows)


class ListenedEdges(ListenedReverse):
    """Reports the second derivatives that edge pushing holds."""

    edges: Any = None

    def pull(self, output: Tree) -> Cotangent:
        self.begin_reverse(self.listener.name(output), 1.0)
        parent: Any = super()
        self.listener.working += 1
        try:
            return parent.pull(output)
        finally:
            self.listener.working -= 1

    def push_edges(self, pairs: object, name: int, local: object) -> None:
        self.edges = pairs
        parent: Any = super()
        parent.push_edges(pairs, name, local)

    def pairs_held(self) -> dict[str, str]:
        names = self.listener.names
        return {
            f"({names.get((self.number, one))}, {names.get((self.number, other))})": _block(block)
            for one, others in (self.edges or {}).items() for other, block in others.items()
        }  # fmt: skip


class HeardPart(functools.partial[Any]):
    """The thunk of a checkpoint, which reports each of its runs."""

    def __new__(cls, activation: Any, thunk: Any) -> "HeardPart":
        made = super().__new__(cls, thunk.func, *thunk.args, **thunk.keywords)
        made.activation, made.name = activation, activation.listener.new("checkpoint ")
        made.runs, made.results = 0, []
        return made

    activation: Any
    name: str
    runs: int
    results: list[tuple[Any, str | None]]

    def __call__(self) -> Value:
        listener, activation = self.activation.listener, self.activation
        self.runs += 1
        recorded = activation.recording if isinstance(activation, ReverseMode) else "apply" not in vars(activation)
        kept = "" if recorded else NOT_RECORDED
        listener.step("part", activation, name=self.name, run=self.runs, record=kept)
        result = super().__call__()
        end = listener.step("part ends", activation, name=self.name, run=self.runs)
        values = [(value, listener.name(value)) for value in values_of(activation, result)]
        for (_, first), (_, name) in zip(self.results, values, strict=False):
            if first != name and first in listener.totals:
                taken = listener.totals[first]
                end.shares.append(Share(0, name, shown(taken), shown(listener.add(name, taken))))
        self.results = self.results or values
        return result

    def recorded_as(self, result: Value) -> None:
        """Give the values of the first run their names again, since the mode has given them other shadows."""
        for value, name in self.results:
            if name is not None:
                self.activation.listener.call(self.activation, value, name)


# The mixins by class of mode; the first that fits is used.
_MIXINS: list[tuple[Value, type[Listened]]] = [
    (ListMode, ListenedList), (EdgePushing, ListenedEdges), ((ReverseMode, Reverse), ListenedReverse), (Mode, Listened),
]  # fmt: skip


@functools.cache
def _listened(kind: type[Mode]) -> Value:
    """Return the subclass of a mode whose activations report to the listener."""
    mixin = next(mixin for of, mixin in _MIXINS if issubclass(kind, of))
    return type(kind.__name__, (mixin, kind), {})


def _readable(kind: type[Mode]) -> type[Mode]:
    """Return the mode itself, or for a fast mode the readable one from which it is derived."""
    return next(base for base in kind.__mro__ if not base.__module__.startswith("effgrad.fast"))


def _block(block: Value) -> str:
    dense = block.toarray() if hasattr(block, "toarray") else block
    return str(shown(dense))
