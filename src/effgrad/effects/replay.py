"""A log of the answers that a program has been given, which lead it to the same point in a rerun.

Python can neither copy a suspended program nor resume it twice. But a rerun of the program that gets the same answers
reaches the same point. So a run under `@multi` clauses keeps the answers to all operations that leave it, whether its
handler or a handler outside answered them. A rerun does not perform these operations again. To resume a continuation
once more is to rerun the program with the answers up to its operation, and a new answer to this operation.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from effgrad.effects.effect_errors import Diverged
from effgrad.vocabulary import Object

Operation = tuple[Any, str]  # an effect or an instance of an effect, and the operation's name


class Answer(NamedTuple):
    """The answer to one operation; `end` is the position in the log of the next operation after it.

    An operation may run a part of the program, and the operations of that part have the positions that follow. The
    outer operation is answered after them. So its answer is not in the log of a continuation captured before its end.
    """

    operation: Operation
    raised: bool
    value: Object
    end: int


class Log:
    """The answers of one run; `position` counts those that the run has been given.

    An operation that has no answer yet is its own placeholder in the list.
    """

    __slots__ = ("answers", "position")

    def __init__(self, answers: list[Answer | Operation]) -> None:
        self.answers, self.position = answers, 0

    def known(self) -> Answer | None:
        """Return the answer to the next operation, if there is one."""
        kept = self.answers[self.position] if self.position < len(self.answers) else None
        return kept if type(kept) is Answer else None

    def answer(self, operation: Operation, ask: Callable[[], object]) -> Object:
        """Return the answer to the next operation, from the log or else from `ask`, and log it."""
        answer = self.known()
        if answer is None:
            place = self.position
            self.position += 1
            if place == len(self.answers):
                self.answers.append(operation)
            _same(operation, self.answers[place])
            try:
                answer = Answer(operation, False, ask(), self.position)
            except Exception as error:
                answer = Answer(operation, True, error, self.position)
            self.answers[place] = answer
        return self.give(answer, operation)

    def give(self, answer: Answer, operation: Operation) -> Object:
        """Return the answer to an operation, or raise the error that it is."""
        _, raised, value, self.position = answer
        _same(operation, answer.operation)
        if raised:
            raise value
        return value

    def until(self, place: int, raised: bool, value: object) -> "Log":
        """Return the log of a run that goes on after the operation at `place` with a new answer."""
        before = [
            kept.operation if isinstance(kept, Answer) and kept.end > place else kept for kept in self.answers[:place]
        ]
        captured = self.answers[place]
        operation = captured.operation if isinstance(captured, Answer) else captured
        return Log([*before, Answer(operation, raised, value, place + 1)])


def _same(operation: Operation, before: Object) -> None:
    if operation != before:
        raise Diverged(
            f"a program that was run again performed {operation[0]}.{operation[1]} where it had performed "
            f"{before[0]}.{before[1]}: under a @multi clause it must do the same each time, so let it ask for random "
            "numbers, time and input by operations that are handled outside"
        )
