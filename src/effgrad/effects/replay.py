"""Continuations to resume any number of times: the engine of `@multi` clauses.

A program that performs a `@multi` operation is abandoned there. To resume it, it is run again from its start, and gets
the answers that it was given before: those of its own handler and those of the handlers below, which are not performed
again. Nothing but the standard library is needed; a resumption costs as much as the program up to that point.
"""

from collections.abc import Callable
from typing import Any

from effgrad.effects import _core
from effgrad.effects._core import Abandoned, Frame
from effgrad.effects.errors import ContinuationEscaped

# An answer: whether it is an error, what it is, and the position after it. None stands for that of an operation which
# runs a part of the program (a checkpoint), while that part runs: its own operations have the positions that follow.
Answer = tuple[bool, Any, int]


class _Capture(Abandoned):
    def __init__(self, run: "_Run", clause: Any, args: Any, kwargs: Any) -> None:
        self.run, self.clause, self.args, self.kwargs = run, clause, args, kwargs


class _Run:
    """One run of the program: the answers that it gets, and those that it got."""

    catches_all = True

    def __init__(self, names: tuple[Any, ...], answers: list[Answer | None]) -> None:
        self.names, self.answers, self.position = names, answers, 0
        self.finished = False

    def perform(self, frame: Frame, name: Any, operation: str, args: Any, kwargs: Any) -> Any:
        clause = getattr(frame.activation, operation) if name in self.names else None
        if getattr(clause, "_defers", False):
            # What it does when the rest has run belongs to this run alone.
            return _core._perform_at(frame, operation, args, kwargs)
        if self.finished:
            raise ContinuationEscaped(f"{name}.{operation} was performed when the program of its handler had finished")
        place = self.position
        if place == len(self.answers):
            if getattr(clause, "_engine", None) == "multi":
                raise _Capture(self, clause, args, kwargs)
            self.answers.append(None)
        self.position += 1
        answer = self.answers[place]
        if answer is None:
            raised, value = self._answer(frame, name, operation, args, kwargs, clause)
            answer = self.answers[place] = (raised, value, self.position)
        raised, value, self.position = answer
        if raised:
            raise value
        return value

    def _answer(self, frame: Frame, name: Any, operation: str, args: Any, kwargs: Any, clause: Any) -> tuple[bool, Any]:
        try:
            if clause is not None:
                return False, _core._perform_at(frame, operation, args, kwargs)
            token = _core._frame.set(frame.below)
            try:
                return False, _core._perform(name, operation, *args, **kwargs)
            finally:
                _core._frame.reset(token)
        except Exception as error:
            return True, error


def explore(activation: Any, program: Callable[[], Any], answers: list[Answer | None]) -> Any:
    """Run the program with the answers given; the handled result."""
    names = activation._frame.names
    run = _Run(names, answers)
    frame = Frame(activation, names, _core._frame.get(), run)
    outer, activation._pending = activation._pending, []
    try:
        return _core._run(activation, frame, program)
    except _Capture as capture:
        if capture.run is not run:
            raise
        clause, args, kwargs = capture.clause, capture.args, capture.kwargs
    finally:
        activation._pending = outer
        run.finished = True
    given = run.answers

    def k(value: Any = None) -> Any:
        return explore(activation, program, [*given, (False, value, len(given) + 1)])

    return clause._clause(activation, k, *args, **kwargs)
