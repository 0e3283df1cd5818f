"""The kinds of clauses, and the clauses that wait for the rest of the program.

A clause gives one operation its meaning. Its kind says what it may do with the rest of the program. The default is the
cheapest kind.

    plain method    resume once, last            the operation returns what the clause returns
    `@around`       resume once, then act        `yield value` resumes; the code after it runs when the rest is done
    `@once`         and transform the result     `result = yield value`; the clause returns the new result
    `@final`        never resume                 the clause returns the handled result
    `@control`      keep, move, resume later     the clause gets `k`, the rest of the program as a function to call once
    `@multi`        resume any number of times   the clause gets `k`, to call any number of times

A clause of `@around` or `@once` is a generator. After its `yield` it is *pending*: its activation keeps it on a list.
When the rest of the program has finished, the pending clauses of the list finish too, the last first, so no call stack
grows. Each sees the result or the error that the clauses after it left. Sigal 2024, section 3.2.
"""

import functools
from collections.abc import Callable
from typing import Any

from effgrad.effects.collector import AGEING
from effgrad.effects.effect import frames, install
from effgrad.effects.effect_errors import ContinuationEscaped, EffectError, ResumedTwice
from effgrad.living import for_each_living
from effgrad.vocabulary import Activation, Object

# Whenever this many more clauses are pending, they are moved to the collector's oldest generation (`collector.py`).
OFTEN = 128


def around(clause: Callable[..., object]) -> Callable[..., Object]:
    """Make a clause that resumes at its one `yield`, and goes on when the rest of the program has finished.

    An error before the `yield` is raised where the operation was performed, as from a plain method.
    """
    return _deferring(clause, needs_result=False)


def once(clause: Callable[..., object]) -> Callable[..., Object]:
    """Make a clause like that of `around`, whose ``result = yield value`` gets the handled result.

    The value that the clause returns is the new handled result.
    """
    perform = _deferring(clause, needs_result=True)
    perform._needs_result = True  # type: ignore[attr-defined]
    return perform


def _deferring(clause: Callable[..., Object], needs_result: bool) -> Callable[..., Object]:
    """Make a clause that waits after its `yield`.

    Its generator becomes pending. A tuple around the generator marks a clause that needs the result.
    """

    @functools.wraps(clause)
    def perform(self: Object, *args: Object, **kwargs: Object) -> Object:
        generator = clause(self, *args, **kwargs)
        below = frames.get()
        try:
            value = next(generator)
        except StopIteration:
            raise _without_yield(self, clause) from None
        self._pending.append((generator,) if needs_result else generator)
        if not len(self._pending) % OFTEN:
            AGEING.now()
        if (installed := frames.get()) is not below:
            install(self, below, installed)
        return value

    perform._defers = True  # type: ignore[attr-defined]
    return perform


def _without_yield(activation: object, clause: Callable[..., object]) -> EffectError:
    return EffectError(
        f"{type(activation).__name__}.{clause.__name__} ended without `yield`, and so did not resume the program: "
        "write @final for a clause that never does"
    )


class Abort(BaseException):
    """The exception that carries the result or the error of a `@final` clause to its activation."""

    def __init__(self, activation: Activation, result: Object, error: BaseException | None) -> None:
        self.activation, self.result, self.error = activation, result, error

    def outcome(self) -> Object:
        """Return the result of the clause, or raise its error."""
        if self.error is not None:
            raise self.error
        return self.result


def final(clause: Callable[..., object]) -> Callable[..., Object]:
    """Make a clause that never resumes; the value that it returns is the handled result."""

    @functools.wraps(clause)
    def perform(self: object, *args: object, **kwargs: object) -> Object:
        try:
            result = clause(self, *args, **kwargs)
        except Exception as error:
            # The program is not resumed, so it must have no chance to catch the error.
            raise Abort(self, None, error) from None
        raise Abort(self, result, None)

    perform._needs_result = True  # type: ignore[attr-defined]
    return perform


def control(clause: Callable[..., object]) -> Callable[..., Object]:
    """Make a clause that is given the continuation, as ``clause(self, k, *args)``.

    `k(value)` resumes the program where the operation was performed and returns the handled result. `k.throw(error)`
    raises the error at that operation. The continuation is one-shot: it may be kept, moved and resumed later, but only
    once. A continuation that is dropped is closed. The value that the clause returns is the handled result. Such
    clauses need greenlet (the extra `control`).
    """
    return _capturing(clause, "control")


def multi(clause: Callable[..., object]) -> Callable[..., Object]:
    """Make a clause that is given the continuation, like `control`, and may call it any number of times.

    The first call goes on with the suspended program. Each further call reruns the program with the answers that its
    operations have had so far. So the program must be deterministic apart from its operations. Its other side effects,
    such as printing or writing to a list that it did not make, happen again.
    """
    return _capturing(clause, "multi")


def _capturing(clause: Callable[..., object], engine: str) -> Callable[..., Object]:
    @functools.wraps(clause)
    def perform(self: Object, *args: object, **kwargs: object) -> Object:
        run = self._run
        if run is None:
            raise ContinuationEscaped(f"{clause.__name__} was performed when the program of its handler had finished")
        return run.perform_captured(clause, args, kwargs)

    perform._needs_result = True  # type: ignore[attr-defined]
    perform._engine = engine  # type: ignore[attr-defined]
    return perform


class Abandoned(BaseException):
    """The exception that unwinds a program that will never finish; pending clauses are closed, not resumed."""


_finished = object()


def unwind(activation: Activation, pending: list[Object], result: Object, error: BaseException | None) -> Object:
    """Finish the pending clauses, the last first; each sees the result or the error that the clauses after it left."""
    while pending:
        result, error = _finish(activation, pending.pop(), result, error)
    if error is not None:
        try:
            raise error
        finally:
            del error  # its traceback refers to this frame
    return result


def _finish(activation: Activation, clause: Any, result: Object, error: BaseException | None) -> tuple[Object, Object]:
    """Let one pending clause finish; return the result and the error that it leaves."""
    transforms = type(clause) is tuple
    generator = clause[0] if transforms else clause
    if isinstance(error, Abandoned):
        generator.close()
        return None, error
    origin = error.__traceback__ if error is not None else None
    try:
        if error is not None:
            generator.throw(error)
        elif transforms:
            generator.send(result)
        # `next` raises nothing at the end, and takes half the time of `send`.
        elif next(generator, _finished) is _finished:
            return result, None
    except StopIteration as stop:
        return (stop.value, None) if transforms else (result, error)
    except BaseException as raised:
        # An error that passes through must not gain a traceback entry from each pending clause.
        return None, raised.with_traceback(origin) if raised is error else raised
    generator.close()
    return None, ResumedTwice(f"a clause of {type(activation).__name__} yielded twice")


def end(activation: Activation) -> None:
    """End an activation; its values cannot be used any more."""
    activation.alive = False
    # The frame refers back to the activation. Without it there is no cycle, so its contents are freed at once.
    activation._frame.found.clear()
    activation._frame = activation._run = None
    activation.finally_()


@for_each_living
def defers(handler: type) -> bool:
    """Return whether a handler has clauses that wait for the rest of the program."""
    return any(hasattr(getattr(handler, name), "_defers") for name in dir(handler))
