"""What every mode shares: a handler of `Smooth` whose values carry a shadow.

The shadow is what the mode keeps beside a value: a tangent, a cell, a name on a tape. A mode says what the shadow of an
operation's result is. A value that another activation owns is a constant here. Reverse modes say how they record an
operation and how cotangents go back; checkpoints, and recording or not, are the same for all of them.
"""

import abc
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from effgrad.arrays.traced import Traced, as_plain
from effgrad.arrays.value import Smooth, Tracer, constant
from effgrad.effects import Handler
from effgrad.errors import EscapedValue
from effgrad.modes.checkpoint import Checkpoint, CheckpointRun, leaked
from effgrad.primitives import cotangents


class Operation(NamedTuple):
    """One application of a primitive, with the shadows of its arguments (None for a constant)."""

    primitive: Any
    params: dict[str, Any]
    primals: list[Any]
    shadows: list[Any]
    result: Any

    def push(self, tangents: list[Any]) -> Any:
        """Return the tangent of the result, from those of the arguments."""
        return self.primitive.push_all(tangents, self.result, self.primals, self.params)

    def pull(self, cotangent: Any) -> list[tuple[Any, Any]]:
        """Return pairs of an argument's shadow and its share of the cotangent; structural zeros are left out."""
        shadows = self.shadows
        wanted = [index for index, shadow in enumerate(shadows) if shadow is not None]
        parts = self.shares(wanted, cotangent)
        return [(shadows[i], part) for i, part in zip(wanted, parts, strict=True) if part is not None]

    def shares(self, wanted: list[int], cotangent: Any) -> list[Any]:
        """Return the shares of a cotangent that some arguments receive (None: a structural zero)."""
        primitive, params, primals, _, result = self
        parts: list[Any] = primitive.pull_all(wanted, cotangent, result, primals, params)
        return parts


def owned(value: Any, activation: Any) -> Any:
    """The value, which must be one of the activation's."""
    if not isinstance(value, Tracer) or value.owner is not activation:
        raise EscapedValue(f"{type(activation).__name__} was given {value!r}, which is not a value of this activation")
    return value


class Mode(Handler[Smooth]):
    """A handler of `Smooth`; `value` is the class of its values."""

    value: type[Traced] = Traced
    constant: Callable[[Any], Any] = staticmethod(as_plain)

    def owns(self, value: Any) -> bool:
        return isinstance(value, Tracer) and value.owner is self

    def primal(self, value: Any) -> Any:
        """Return a value as it is in the handlers below; what this activation does not own is a constant."""
        return value.primal if self.owns(value) else self.constant(value)

    def variable(self, primal: Any, shadow: Any = None) -> Tracer:
        """Return an input of the program."""
        return self.value(self, primal, shadow)

    def perform(self, primitive: Any, args: Sequence[Any], params: dict[str, Any]) -> Operation:
        """Perform an operation in the handlers below."""
        primals, shadows = [], []
        for a in args:
            mine = isinstance(a, Tracer) and a.owner is self  # as `owns`, which costs a call for every argument
            primals.append(a.primal if mine else self.constant(a))
            # The shadow as it is now: an array that is written to later names a new value, with a new shadow.
            shadows.append(a.shadow if mine else None)
        return Operation(primitive, params, primals, shadows, primitive(*primals, **params))

    def apply(self, primitive: Any, *args: Any, **params: Any) -> Traced:
        operation = self.perform(primitive, args, params)
        return self.value(self, operation.result, self.shadow(operation))

    def shadow(self, operation: Operation) -> Any:
        """Return the shadow of an operation's result."""


class ReverseMode(Mode, Handler[Smooth, Checkpoint]):
    """A mode with a reverse pass: it begins with `seed`, and `cotangents` returns those of the inputs."""

    constant = staticmethod(constant)  # copied, since it may be written to before the reverse pass
    records = recording = True
    paused: dict[str, Any] = {"recording": False}  # the attributes of an activation that does not record

    def variable(self, primal: Any, shadow: Any = None) -> Traced:
        return self.value(self, primal, self.input())

    def shadow(self, operation: Operation) -> Any:
        if not self.recording:
            return UNRECORDED
        if UNRECORDED in operation.shadows:
            raise leaked()
        return self.record(operation)

    def run(self, thunk: Callable[[], Any]) -> Any:
        """Run a checkpoint without recording; it runs again, recorded, when the reverse pass comes to it."""
        if not self.recording:
            return thunk()
        first = CheckpointRun(self, thunk, **self.paused)
        for part, shadow in zip(first.parts, self.rerun(first), strict=True):
            part.shadow = shadow
        return first.result

    def recorded(self, shadow: Any) -> bool:
        """Return whether a shadow was made while the activation recorded."""
        return shadow is not UNRECORDED

    def seeded(self, value: Any) -> Any:
        """Return the shadow of a value that the reverse pass begins with."""
        shadow = owned(value, self).shadow
        if not self.recorded(shadow):
            raise leaked()
        return shadow

    @abc.abstractmethod
    def input(self) -> Any:
        """Return the shadow of an input."""

    @abc.abstractmethod
    def record(self, operation: Operation) -> Any:
        """Record an operation and return the shadow of its result."""

    @abc.abstractmethod
    def rerun(self, first: CheckpointRun) -> Sequence[Any]:
        """Record that a checkpoint runs again in the reverse pass; return shadows for the parts of its result."""

    @abc.abstractmethod
    def seed(self, value: Any, cotangent: Any) -> None:
        """Let the reverse pass begin with a cotangent of a value."""

    @abc.abstractmethod
    def cotangents(self, shadows: list[Any]) -> list[Any]:
        """Run the reverse pass and return the cotangents of the inputs with these shadows."""


class _Unrecorded:
    """The shadow of a value that was computed while nothing was recorded."""


UNRECORDED = _Unrecorded()


class ListMode(ReverseMode):
    """A reverse mode whose record is a list, and whose shadows are places in it.

    The reverse pass is one walk back along the list, with the cotangents in a list beside it; it may be repeated.
    """

    def enter(self) -> None:
        self.entries: Any = []
        self.seeds: list[tuple[int, Any]] = []

    def append(self, entry: Any) -> int:
        self.entries.append(entry)
        return len(self.entries) - 1

    def input(self) -> int:
        return self.append(None)

    def rerun(self, first: CheckpointRun) -> range:
        place = len(self.entries) + 1
        names = range(place, place + len(first.parts))
        self.append(Rerun(first, names))
        self.entries += [None] * len(names)
        return names

    def seed(self, value: Any, cotangent: Any) -> None:
        self.seeds.append((self.seeded(value), cotangent))

    def cotangents(self, shadows: list[int]) -> list[Any]:
        return self.pull(self.seeds, shadows)

    def pull(self, seeds: list[tuple[int, Any]], shadows: list[int]) -> list[Any]:
        """Return the cotangents of the inputs from those of some values; any number of times."""
        collected = self.no_cotangents()
        for name, cotangent in seeds:
            collected[name] = cotangents.add(collected[name], cotangent)
        self.walk(collected, 0)
        return [collected[name] for name in shadows]

    def no_cotangents(self) -> Any:
        """Return a list, or what is used like one, of the cotangents of all entries, None so far."""
        return [None] * len(self.entries)

    def walk(self, collected: Any, first: int) -> None:
        """Walk back from the end of the list to the entry `first`.

        What a part that has run again leaves in the list (`first` is not 0) is walked once, and forgotten on the way.
        """
        entries = self.entries
        for name in range(len(entries) - 1, first - 1, -1):
            entry = entries[name]
            if type(entry) is Rerun:
                entry = None  # which would be kept while the checkpoint is walked
                self.walk_again(collected, name, once=first > 0)
            elif entry is not None:
                self.pass_on(collected, name, entry)
                if first:
                    entries[name] = None

    def pass_on(self, collected: Any, name: int, entry: Any) -> None:
        """Pass the cotangent of an operation's result on to its arguments."""
        cotangent = collected[name]
        if cotangent is not None:
            collected[name] = None
            for target, part in self.back(entry, cotangent):
                collected[target] = cotangents.add(collected[target], part)

    def walk_again(self, collected: Any, name: int, once: bool) -> None:
        """Record a checkpoint at the end of the list, walk back over it, and forget it."""
        rerun = self.entries[name]
        given = [collected[name] for name in rerun.names]
        if all(cotangent is None for cotangent in given):
            return
        end = len(self.entries)
        parts = rerun.first.again()
        collected.extend([None] * (len(self.entries) - end))
        for result, part, cotangent in zip(rerun.names, parts, given, strict=True):
            collected[result] = None
            if cotangent is not None:
                collected[part.shadow] = cotangents.add(collected[part.shadow], cotangent)
        if once:
            self.entries[name] = None
        # Checkpoints may nest deep: while inner ones are walked, nothing of this is kept.
        del rerun, parts, given
        part = cotangent = None
        self.walk(collected, end)
        del self.entries[end:], collected[end:]

    @abc.abstractmethod
    def back(self, entry: Any, cotangent: Any) -> Iterable[tuple[int, Any]]:
        """Return pairs of a name and the share of the cotangent that goes to it."""


class Rerun(NamedTuple):
    """The entry of a checkpoint: its first run, and the names of the parts of its result."""

    first: CheckpointRun
    names: range
