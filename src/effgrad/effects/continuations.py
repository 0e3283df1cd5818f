"""First-class one-shot continuations: the engine of `@control` clauses.

The handled computation runs in a greenlet, and so does every clause that has been given a continuation. None of them
calls another: each hands its wish (perform this operation, resume that continuation, here is my result) to one flat
loop, which switches to whoever is next. The clauses that wait for the result of a resumed continuation lie on the
activation's list of pending clauses, like those of `@around`. So neither the depth of pending clauses nor the number of
operations grows a stack.

A continuation may be kept and resumed after its handler has returned, also under other handlers: the loop then runs at
the place of the call. Dropped, it is closed: `finally` and `with` blocks in it run.
"""

import contextvars
from collections.abc import Callable
from typing import Any

from greenlet import error as _SwitchError
from greenlet import getcurrent, greenlet

from effgrad.effects import _core
from effgrad.effects.errors import ContinuationEscaped, ResumedTwice


class _Closed(BaseException):
    """Unwinds a continuation that nobody can resume any more."""


class _Task(greenlet):  # type: ignore[misc]
    """A greenlet of one activation: the handled computation, or a clause."""

    def __init__(self, activation: Any, frame: Any, run: Callable[[], Any]) -> None:
        super().__init__(self._guarded)
        self.gr_context = contextvars.copy_context()
        self.activation, self.frame, self.task = activation, frame, run

    def _guarded(self) -> tuple[str, Any]:
        _core._frame.set(self.frame)
        try:
            return "value", self.task()
        except BaseException as error:
            return "error", error
        finally:
            del self.task  # it may refer to the continuation, and so to other greenlets


class Continuation:
    """The rest of a handled computation, after one operation: `k(value)` resumes it and returns the handled result."""

    __slots__ = ("_activation", "_performer", "__weakref__")

    def __init__(self, activation: Any, performer: Any) -> None:
        self._activation, self._performer = activation, performer

    def __call__(self, value: Any = None) -> Any:
        return self._resume("value", value)

    def throw(self, error: BaseException) -> Any:
        """Resume with an exception, raised where the operation was performed."""
        return self._resume("error", error)

    def _resume(self, kind: str, value: Any) -> Any:
        performer, self._performer = self._performer, None
        if performer is None:
            raise ResumedTwice("a one-shot continuation was resumed a second time")
        activation, current = self._activation, getcurrent()
        if isinstance(current, _Task) and current.activation is activation and activation._hub is current.parent:
            return _switch(activation._hub, ("resume", (current, performer, kind, value)))
        return _drive(activation, performer, kind, value)

    def __del__(self) -> None:
        performer, self._performer = self._performer, None
        if performer is not None and not performer.dead:
            try:
                _drive(self._activation, performer, "error", _Closed())
            except (_Closed, ContinuationEscaped):
                pass


def perform(activation: Any, clause: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Hand an operation to the loop of its activation; returns what the continuation is resumed with."""
    if activation._hub is None:
        raise ContinuationEscaped(f"{clause.__name__} was performed when the program of its handler had finished")
    return _switch(activation._hub, ("perform", (clause, args, kwargs, getcurrent())))


def run(activation: Any, f: Callable[[], Any]) -> Any:
    """Run a handled computation that may be captured, to its handled result."""
    activation._body = _Task(activation, activation._frame, lambda: _core._returned(activation, f))
    return _drive(activation, activation._body, "start", None)


def _switch(target: Any, message: Any) -> Any:
    kind, value = target.switch(message)
    if kind == "error":
        raise value
    return value


def _drive(activation: Any, target: Any, kind: str, value: Any) -> Any:
    """The loop: switch to `target`, and go on as it asks, until a result is left that no clause waits for."""
    hub, waiting, alive = activation._hub, activation._pending, activation.alive
    activation._hub, activation._pending, activation.alive = getcurrent(), [], True
    _relink(activation, target)
    try:
        while True:
            try:
                activation._body.parent = activation._hub
                wish, asked = target.switch() if kind == "start" else target.switch((kind, value))
            except (_SwitchError, ValueError) as error:  # what greenlet says of another thread
                raise ContinuationEscaped(f"a continuation was resumed where it cannot run: {error}") from None
            if wish == "perform":
                clause, args, kwargs, performer = asked
                k = Continuation(activation, performer)
                target = _Task(activation, activation._frame.below, _Call(clause, activation, k, args, kwargs))
                kind, value = "start", None
                del k, asked, performer
            elif wish == "resume":
                clause, target, kind, value = asked
                activation._pending.append(clause)
                _relink(activation, target)
                del asked
            else:
                target = None
                finished = _settle(activation, wish, asked)
                if len(finished) == 2:
                    outcome, value = finished
                    if outcome == "error":
                        raise value
                    return value
                target, kind, value = finished
    finally:
        activation._hub, activation._pending, activation.alive = hub, waiting, alive
        if hub is None and activation._body.dead:
            _core._end(activation)


class _Call:
    """The call of a clause, which lets go of the continuation as soon as the clause has it."""

    def __init__(self, clause: Any, activation: Any, k: Any, args: Any, kwargs: Any) -> None:
        self.parts = clause, activation, k, args, kwargs

    def __call__(self) -> Any:
        clause, activation, k, args, kwargs = self.parts
        del self.parts
        arguments = [activation, k, *args]
        del k
        return clause(*_emptying(arguments), **kwargs)


def _emptying(arguments: list[Any]) -> Any:
    while arguments:
        yield arguments.pop(0)


def _settle(activation: Any, outcome: str, value: Any) -> tuple[Any, ...]:
    """Give a result to the pending clauses, the last first: the final outcome, or the clause to switch to."""
    pending = activation._pending
    result, error = (value, None) if outcome == "value" else (None, value)
    while pending:
        if isinstance(pending[-1], _Task):
            return pending.pop(), "value" if error is None else "error", result if error is None else error
        result, error = _core._finish(activation, pending.pop(), result, error)
    return ("value", result) if error is None else ("error", error)


def _relink(activation: Any, performer: Any) -> None:
    """What the computation does not handle goes to the handlers around the place where it is resumed."""
    below = _core._frame.get()
    frame = activation._frame
    if frame.below is below or getcurrent() is performer:
        return
    frame.below = below
    context = performer.gr_context
    top = context.get(_core._frame) if context is not None else None
    while top is not None:
        top.found.clear()
        top = None if top is frame else top.below
    frame.found.clear()
