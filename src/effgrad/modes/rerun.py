"""The first run of a checkpoint, which nothing records, and the later ones, which are."""

import contextvars
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from effgrad.arrays.parts import PARTS, Part
from effgrad.arrays.traced import memory
from effgrad.arrays.value import Tracer, constant, example, owned_by, plain
from effgrad.arrays.written import read, resumed, whole
from effgrad.effects import handled, revived
from effgrad.effects.confined import confined
from effgrad.errors import EscapedValue, Irreproducible
from effgrad.modes.checkpoint import Recompute
from effgrad.program.user_code import entered
from effgrad.trees import flatten
from effgrad.vocabulary import Activation, Option, Value


class CheckpointRun:
    """A checkpointed part of a program under one activation: the thunk, and what its first run gave.

    `paused` are attributes of the activation while it records nothing. `parts` are the unrecorded values in the results
    that the activation owns: leaves, or what values of inner derivatives hold. A recorded one was there before, and
    only passes through. What the part has written to arrays from before counts as its result.
    """

    def __init__(self, activation: Activation, thunk: Any, **paused: Option) -> None:
        self.activation, self.thunk = activation, thunk
        self.around, self.first = PARTS.get(), Part()
        state = activation.__dict__
        recording = {name: state[name] for name in paused if name in state}
        state.update(paused)
        try:
            self.result, self.values, values = self._run(self.first)
        finally:
            for name in paused:
                del state[name]
            state.update(recording)
        places = reversed(list(enumerate(values)))
        first = {id(part): place for place, part in places if not activation.recorded(part.shadow)}
        self.places = sorted(first.values())
        self.parts = [values[place] for place in self.places]

    def _run(self, part: Part) -> tuple[Value, list[Value], list[Value]]:
        """Run the thunk: its result, its leaves as plain values, and what the activation owns of them."""
        context: contextvars.Context = self.thunk.func.__self__
        context.run(PARTS.set, (*self.around, part))
        outside = PARTS.get()
        try:
            PARTS.set((*self.around, part))
            result = self.thunk()
            given = result, part.written()
            values = [plain(constant(read(leaf))) for leaf in flatten(given)[0]]
            return result, values, values_of(self.activation, given)
        finally:
            PARTS.set(outside)
            part.end()

    def _run_again(self) -> tuple[Value, list[Value], list[Value]]:
        with resumed(self.thunk.func.__self__):
            return entered(revived(self.thunk.func.__self__), lambda _: self._run(Part(again=self.first)))

    def again(self) -> list[Value]:
        """Run the thunk once more; the parts of its results, checked to be the same."""
        told = handled(Recompute)
        if told:
            Recompute.begin()
        try:
            _, values, parts = confined(self._run_again)  # the reverse pass has left the derivative's context
        finally:
            if told:
                Recompute.end()
        if len(values) != len(self.values) or not all(map(_same, values, self.values)):
            raise Irreproducible(
                f"a checkpointed function, {self.thunk.args[0].func!r}, gave another result when it was run again: it "
                "draws random numbers, or reads something that has changed; pass these in as arguments"
            )
        return [parts[place] for place in self.places]


def values_of(activation: object, result: Value) -> list[Value]:
    """Return the values of an activation in a result: leaves, or what values of inner derivatives hold."""
    return [value for leaf in flatten(result)[0] for value in _values_of(activation, leaf)]


def _values_of(activation: object, value: Value) -> Iterator[Value]:
    # Not inside `values_of`: a function that calls itself there is a cycle, which keeps all that it has seen.
    value = memory(value) if isinstance(value, Tracer) else whole(value)
    if isinstance(value, Tracer):
        if owned_by(value, activation):
            yield value
        else:
            yield from _values_of(activation, value.primal)
            yield from _values_of(activation, value.shadow)
    elif isinstance(value, Iterable) and not isinstance(value, np.ndarray | str | bytes | Iterator):  # tangents
        for part in value:
            yield from _values_of(activation, part)


def _same(value: Value, before: Value) -> bool:
    value, before = example(value), example(before)
    if not isinstance(value, float | complex | int | np.generic | np.ndarray):
        return indistinguishable(value, before)
    return bool(np.array_equal(value, before, equal_nan=np.result_type(value).kind in "fc"))


def indistinguishable(value: Value, before: object) -> bool:
    """Whether two numbers of a kind that NumPy does not know are equal, as far as that kind can tell."""
    equality: Any = type(value).__eq__
    return equality is object.__eq__ or bool(value == before)


def leaked() -> EscapedValue:
    return EscapedValue(
        "a value computed inside a checkpointed function was used outside without being returned from it: return it"
    )
