"""The first run of a checkpoint, which is not recorded, and its reruns, which are."""

import contextvars
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from effgrad.arrays.layout import same_elements
from effgrad.arrays.parts import PARTS, Part
from effgrad.arrays.traced import memory
from effgrad.arrays.value import Tracer, constant, example, owned_by, plain
from effgrad.arrays.written import read, rerunning_session, whole_memory
from effgrad.effects import handled, revived
from effgrad.effects.confined import run_confined
from effgrad.errors import EscapedValue, Irreproducible
from effgrad.modes.checkpoint import Recompute
from effgrad.program.user_code import run_handled
from effgrad.trees import flatten
from effgrad.vocabulary import Activation, Option, Value


class CheckpointRun:
    """A checkpointed part of a program under one activation: the thunk, and the results of its first run.

    `paused` gives the attributes that the activation has during the first run, in which it records nothing. `parts` are
    the activation's unrecorded values in the results. They are leaves, or are held by values of inner derivatives. A
    recorded value existed before the part and only passes through it. The elements that the part has written to arrays
    made before it also count as its results.
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
        """Run the thunk; return its result, the leaves as plain values, and the activation's values in them."""
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
        with rerunning_session(self.thunk.func.__self__):
            return run_handled(revived(self.thunk.func.__self__), lambda _: self._run(Part(again=self.first)))

    def again(self) -> list[Value]:
        """Rerun the thunk, check that its results are the same, and return the parts of them."""
        has_handler = handled(Recompute)
        if has_handler:
            Recompute.begin()
        try:
            _, values, parts = run_confined(self._run_again)  # the reverse pass has left the derivative's context
        finally:
            if has_handler:
                Recompute.end()
        if len(values) != len(self.values) or not all(map(_same, values, self.values)):
            raise Irreproducible(
                f"a checkpointed function, {self.thunk.args[0].func!r}, gave another result when it was run again: it "
                "draws random numbers, or reads something that has changed; pass these in as arguments"
            )
        return [parts[place] for place in self.places]


def values_of(activation: object, result: Value) -> list[Value]:
    """Return the values of an activation in a result, as leaves or inside values of inner derivatives."""
    return [value for leaf in flatten(result)[0] for value in _values_of(activation, leaf)]


def _values_of(activation: object, value: Value) -> Iterator[Value]:
    # This is not nested in `values_of`: a nested recursive function is a cycle, which would keep the values alive.
    value = memory(value) if isinstance(value, Tracer) else whole_memory(value)
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
    number = isinstance(value, float | complex | int | np.generic | np.ndarray)
    return same_elements(value, before) if number else indistinguishable(value, before)


def indistinguishable(value: Value, before: object) -> bool:
    """Return whether two numbers of a class unknown to NumPy are equal, or True if the class defines no equality."""
    equality: Any = type(value).__eq__
    return equality is object.__eq__ or bool(value == before)


def leaked() -> EscapedValue:
    return EscapedValue(
        "a value computed inside a checkpointed function was used outside without being returned from it: return it"
    )
