"""Stacks let a program of any depth run without recursion.

A stack is a greenlet, so it stays suspended at its point while other stacks run. The *root*, the greenlet that the
user's program runs on, starts all stacks. It waits in `switch` and serves two kinds of requests: to start another
stack, and to pass on the outcome of a finished one. So every stack is as shallow as the root's, whichever stack asked
for it. A recursion that moves to a new stack now and then needs neither a higher recursion limit nor a larger C stack.
"""

import functools
from collections.abc import Callable
from contextvars import copy_context
from types import FunctionType
from typing import Any

from greenlet import error as SwitchError
from greenlet import getcurrent, greenlet

from effgrad.effects.effect_errors import ContinuationEscaped
from effgrad.vocabulary import Object

# The number of waiting clauses that fill the 16 kB that Python allocates for a stack.
DEPTH = 52
# One in this many functions that a stack gets as results is called on a new stack.
FUNCTIONS = 100


class Stack(greenlet):  # type: ignore[misc]
    """A greenlet that runs `program` on a separate stack; `asker` is the greenlet that waits for its outcome."""

    __slots__ = ("asker", "program", "depth", "functions", "last")

    def __init__(self, root: Object, asker: Object, program: Callable[[], Object]) -> None:
        super().__init__(self._live, root)
        self.gr_context = copy_context()  # type: ignore[misc]
        self.asker, self.program = asker, program
        self.depth = 0  # how many clauses wait on it
        self.functions = 0  # how many functions it has got as results
        self.last: Any = None  # the continuation that the clause or program on this stack uses only to end with it

    def _live(self) -> "_Finished":
        try:
            outcome = "value", self.program()
        except BaseException as error:
            outcome = "error", error
        del self.program  # it may refer to other stacks
        return _Finished(self.asker, outcome)


class _Start:
    """A request to the root to start a stack."""

    __slots__ = ("stack",)

    def __init__(self, stack: Stack) -> None:
        self.stack = stack

    def serve(self) -> Object:
        return self.stack.switch()


class _Finished:
    """A request to the root to pass the outcome of a finished stack to the greenlet that waits for it."""

    __slots__ = ("asker", "outcome")

    def __init__(self, asker: Object, outcome: tuple[str, Object]) -> None:
        self.asker, self.outcome = asker, outcome

    def serve(self) -> Object:
        return self.outcome if self.asker is getcurrent() else self.asker.switch(self.outcome)


def switch(target: Object, message: Object) -> Object:
    """Send a message to a greenlet, and wait for an answer; if this is a root, it serves its stacks meanwhile."""
    try:
        answer = target.switch(message)
        while type(answer) is _Start or type(answer) is _Finished:
            answer = answer.serve()
    except (SwitchError, ValueError) as error:  # greenlet's errors for a greenlet of another thread
        raise ContinuationEscaped(f"a continuation was resumed where it cannot run: {error}") from None
    return answer


def start(stack: Stack) -> Object:
    """Let the root start a stack, and wait for a message."""
    request = _Start(stack)
    if stack.parent is not getcurrent():
        return switch(stack.parent, request)
    answer = request.serve()
    while type(answer) is _Start or type(answer) is _Finished:
        answer = answer.serve()
    return answer


def root() -> Object:
    """The root of the current greenlet, which may be the root itself."""
    current = getcurrent()
    return current.parent if type(current) is Stack else current


def has_room() -> bool:
    """Return whether the current greenlet is a `Stack` on which another clause may wait."""
    current = getcurrent()
    return type(current) is Stack and current.depth < DEPTH


def on_new_stack(f: Callable[..., object], *args: object, **kwargs: object) -> Object:
    """Call a function on a new stack, which is as shallow as the root's."""
    kind, value = start(Stack(root(), getcurrent(), functools.partial(f, *args, **kwargs)))
    if kind == "error":
        raise value
    return value


def for_stack(stack: object, result: object) -> Object:
    """Return a result for a stack; one in `FUNCTIONS` functions is wrapped to be called on a new stack.

    In state passing, a clause returns a function of the state, which calls the next such function. Their frames make a
    stack as deep as the program is long, and they are the user's, so only their calls can be moved. A continuation is
    returned unchanged.
    """
    if type(result) is not FunctionType or vars(result):
        return result
    if type(stack) is Stack:
        stack.functions += 1
        if stack.functions % FUNCTIONS:
            return result
    return functools.partial(on_new_stack, result)
