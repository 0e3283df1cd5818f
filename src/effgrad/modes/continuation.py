"""Continuation reverse mode: every value carries a backpropagator, the continuation of its cotangent.

A backpropagator takes the cotangent of its value, and passes each argument's share on to the argument's backpropagator.
The listing of the thesis calls it as soon as a share arrives. A result used twice is then propagated twice, and a chain
of n such results 2^n times. Here a share only *waits* at its backpropagator. The youngest backpropagator is called
first, once, with its whole cotangent, which is complete because all uses of a value are younger than the value. So the
mode is linear in time and memory, and nothing recurses. Sigal 2024, section 4.3.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from effgrad.modes.backward import ReverseMode
from effgrad.modes.mode import Operation
from effgrad.modes.rerun import CheckpointRun
from effgrad.primitives import cotangents
from effgrad.vocabulary import Cotangent, Value


class Backpropagator:
    """A function of the cotangent of a value.

    `age` orders backpropagators by creation, and `waiting` is the sum of the shares that have arrived.
    """

    __slots__ = ("age", "call", "waiting")

    def __init__(self, age: int, call: Callable[[Value], None] | None) -> None:
        self.age, self.call = age, call
        self.waiting: Any = None

    def __lt__(self, other: "Backpropagator") -> bool:
        return self.age > other.age


class Continuation(ReverseMode):
    """Continuation reverse mode; a value's shadow is its backpropagator."""

    def enter(self) -> None:
        self.made = 0
        self.pending: list[Backpropagator] = []

    def backpropagator(self, call: Callable[[Value], None] | None) -> Backpropagator:
        self.made += 1
        return Backpropagator(self.made, call)

    def input(self) -> Backpropagator:
        return self.backpropagator(None)  # the cotangent goes no further

    def record(self, operation: Operation) -> Backpropagator:
        def backpropagate(cotangent: Cotangent) -> None:
            for target, part in operation.pull(cotangent):
                self.send(target, part)

        return self.backpropagator(backpropagate)

    def rerun(self, first: CheckpointRun) -> list[Backpropagator]:
        received: list[Value] = [None] * len(first.parts)

        def again(_: Value) -> None:
            for part, cotangent in zip(first.again(), received, strict=True):
                self.send(part.shadow, cotangent)

        # The results' backpropagators are younger than `older`, so their cotangents are complete before it is called.
        older = self.backpropagator(again)

        def receiver(place: int) -> Callable[[Value], None]:
            def receive(cotangent: Cotangent) -> None:
                received[place] = cotangent
                self.send(older, 0.0)

            return receive

        return [self.backpropagator(receiver(place)) for place in range(len(first.parts))]

    def send(self, target: Backpropagator, part: Cotangent) -> None:
        """Let a share of a cotangent wait at its backpropagator."""
        if part is not None:
            if target.waiting is None:
                heappush(self.pending, target)
            target.waiting = cotangents.add(target.waiting, part)

    def seed(self, value: Value, cotangent: Cotangent) -> None:
        self.send(self.seeded(value), cotangent)

    def cotangents(self, shadows: list[Backpropagator]) -> list[Cotangent]:
        while self.pending:
            youngest = heappop(self.pending)
            if youngest.call is not None:
                cotangent, youngest.waiting = youngest.waiting, None
                youngest.call(cotangent)
        return [variable.waiting for variable in shadows]
