"""Random draws as an effect: a draw's plain sample comes from its generator, unless a handler answers the draw.

A checkpoint handles the draws inside it. Its first run records the samples and reruns get them again, so a random
program may be checkpointed.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from effgrad.effects import Effect, Handler, handled, operation
from effgrad.vocabulary import Function, Option, Value

Sample: TypeAlias = Any


class Draw(Effect):
    """The effect of drawing random numbers."""

    @operation
    def take(self, thunk: Callable[[], Sample]) -> Sample:
        """Return a plain sample; `thunk` draws one from its generator."""


def take(thunk: Callable[[], Sample]) -> Sample:
    """Return a plain sample from the innermost handler of `Draw`, or from the generator if there is none."""
    return Draw.take(thunk) if handled(Draw) else thunk()


class Replay(Handler[Draw]):
    """Answer draws from a list of samples; past its end, draw new samples and append them."""

    def __init__(self, samples: list[Sample]) -> None:
        self.samples = samples

    def enter(self) -> None:
        self.place = 0

    def take(self, thunk: Callable[[], Sample]) -> Sample:
        if self.place == len(self.samples):
            self.samples.append(take(thunk))
        self.place += 1
        sample = self.samples[self.place - 1]
        return sample.copy() if hasattr(sample, "copy") else sample


class Replayed:
    """A function that draws the same numbers each time it is called."""

    def __init__(self, f: Function) -> None:
        self.f = f
        self.samples: list[Sample] = []

    def __call__(self, *args: Value, **kwargs: Option) -> Value:
        with Replay(self.samples):
            return self.f(*args, **kwargs)

    def __repr__(self) -> str:
        return repr(self.f)
