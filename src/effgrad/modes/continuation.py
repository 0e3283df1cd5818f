"""Continuation reverse mode: every value carries a backpropagator, the continuation of its cotangent.

A backpropagator takes the cotangent of its value and passes the arguments' shares on to theirs. Called as soon as a
share is there, as in the listing of the thesis, a result used twice is propagated twice, and a chain of n such results
2^n times. Here a share only *waits* at a backpropagator, and the one made last is called first, once, with its whole
cotangent: all uses of a value were made after it. So the mode is linear in time and memory, and nothing recurses.
Sigal 2024, section 4.3.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from effgrad.arrays.value import KINDS, Smooth, Traced, constant, owned
from effgrad.effects import Handler
from effgrad.modes.region import Checkpoint, Region, leaked
from effgrad.primitives import cotangents


class Backpropagator:
    """What to do with the cotangent of a value; `age` orders backpropagators by creation."""

    __slots__ = ("age", "call", "waiting")

    def __init__(self, age: int, call: Callable[[Any], None]) -> None:
        self.age, self.call = age, call
        self.waiting: Any = None

    def __lt__(self, other: "Backpropagator") -> bool:
        return self.age > other.age


def _keep(cotangent: Any) -> None:
    """The end of the way: the cotangent stays where it arrived."""


class Continuation(Handler[Smooth, Checkpoint]):
    """Continuation reverse mode; a traced value's shadow is its backpropagator."""

    def enter(self) -> None:
        self.made = 0
        self.recording = True
        self.pending: list[Backpropagator] = []

    def apply(self, primitive: Any, *args: Any, **params: Any) -> Traced:
        primals = [self.primal(a) for a in args]
        result = primitive(*primals, **params)
        if not self.recording:
            return Traced(self, result, None)
        targets = {i: a.shadow for i, a in enumerate(args) if type(a) in KINDS and a.owner is self}
        if None in targets.values():
            raise leaked()

        def backpropagate(cotangent: Any) -> None:
            parts = primitive.pull_all(list(targets), cotangent, result, primals, params)
            for target, part in zip(targets.values(), parts, strict=True):
                self.send(target, part)

        return self.value(result, backpropagate)

    def run(self, thunk: Callable[[], Any]) -> Any:
        """A checkpoint: its backpropagators are made when its results' cotangents come."""
        if not self.recording:
            return thunk()
        region = Region(self, thunk, lambda part: part.shadow is None, recording=False)
        received: list[Any] = [None] * len(region.parts)

        def again(_: Any) -> None:
            for part, cotangent in zip(region.again(), received, strict=True):
                self.send(part.shadow, cotangent)

        # Younger than `again`, the results have their whole cotangents before it is called.
        rerun = self.backpropagator(again)
        for place, part in enumerate(region.parts):

            def receive(cotangent: Any, place: int = place) -> None:
                received[place] = cotangent
                self.send(rerun, 0.0)

            part.shadow = self.backpropagator(receive)
        return region.result

    def primal(self, value: Any) -> Any:
        """A value as it is below this activation; what is not owned here is a constant."""
        return value.primal if type(value) in KINDS and value.owner is self else constant(value)

    def value(self, primal: Any, backpropagate: Callable[[Any], None]) -> Traced:
        return Traced(self, primal, self.backpropagator(backpropagate))

    def backpropagator(self, call: Callable[[Any], None]) -> Backpropagator:
        self.made += 1
        return Backpropagator(self.made, call)

    def variable(self, primal: Any) -> Traced:
        """An input of the program: its cotangent goes no further."""
        return self.value(primal, _keep)

    def send(self, target: Backpropagator, part: Any) -> None:
        """Let a share of a cotangent wait at its backpropagator."""
        if part is not None:
            if target.waiting is None:
                heappush(self.pending, target)
            target.waiting = cotangents.add(target.waiting, part)

    def seed(self, value: Traced, cotangent: Any) -> None:
        """Let the reverse pass begin with a cotangent of a value."""
        if owned(value, self).shadow is None:
            raise leaked()
        self.send(value.shadow, cotangent)

    def cotangents(self, variables: list[Backpropagator]) -> list[Any]:
        """The reverse pass; the cotangents that came to the variables."""
        while self.pending:
            youngest = heappop(self.pending)
            cotangent = youngest.waiting
            if youngest.call is not _keep:
                youngest.waiting = None
            youngest.call(cotangent)
        return [variable.waiting for variable in variables]
