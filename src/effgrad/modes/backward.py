"""The common part of the reverse modes that record operations: checkpoints, and switching the recording off.

A subclass defines how it records an operation and how it propagates cotangents back.
"""

import abc
from collections.abc import Callable, Sequence

from effgrad.arrays.traced import Traced
from effgrad.arrays.value import Smooth, constant
from effgrad.effects import Handler
from effgrad.modes.checkpoint import Checkpoint
from effgrad.modes.mode import Mode, Operation, owned
from effgrad.modes.rerun import CheckpointRun, leaked
from effgrad.vocabulary import Cotangent, Shadow, Value


class ReverseMode(Mode, Handler[Smooth, Checkpoint]):
    """A mode with a reverse pass, which `seed` begins and for which `cotangents` returns those of the inputs."""

    constant = staticmethod(constant)  # makes a copy, since the program may write to the array before the reverse pass
    records = recording = True
    paused: dict[str, Value] = {"recording": False}  # the attributes of an activation while it does not record

    def variable(self, primal: Value, shadow: Shadow = None) -> Traced:
        return self.value(self, primal, self.input())

    def shadow(self, operation: Operation) -> Shadow:
        if not self.recording:
            return UNRECORDED
        if UNRECORDED in operation.shadows:
            raise leaked()
        return self.record(operation)

    def run(self, thunk: Callable[[], Value]) -> Value:
        """Run a checkpoint without recording it; when the reverse pass reaches it, it is rerun and recorded."""
        if not self.recording:
            return thunk()
        first = CheckpointRun(self, thunk, **self.paused)
        for part, shadow in zip(first.parts, self.rerun(first), strict=True):
            part.shadow = shadow
        return first.result

    def recorded(self, shadow: Shadow) -> bool:
        """Return whether a shadow was made while the activation recorded."""
        return shadow is not UNRECORDED

    def seeded(self, value: Value) -> Value:
        """Return the shadow of a value that the reverse pass begins with."""
        shadow = owned(value, self).shadow
        if not self.recorded(shadow):
            raise leaked()
        return shadow

    @abc.abstractmethod
    def input(self) -> Value:
        """Return the shadow of an input."""

    @abc.abstractmethod
    def record(self, operation: Operation) -> Value:
        """Record an operation and return the shadow of its result."""

    @abc.abstractmethod
    def rerun(self, first: CheckpointRun) -> Sequence[Value]:
        """Record that the reverse pass has to rerun a checkpoint; return shadows for the parts of its result."""

    @abc.abstractmethod
    def seed(self, value: Value, cotangent: Cotangent) -> None:
        """Add a cotangent of a value with which the reverse pass begins."""

    @abc.abstractmethod
    def cotangents(self, shadows: list[Shadow]) -> list[Cotangent]:
        """Run the reverse pass and return the cotangents of the inputs with these shadows."""


class _Unrecorded:
    """The shadow of a value that was computed while nothing was recorded."""


UNRECORDED = _Unrecorded()
