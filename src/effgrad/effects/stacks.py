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
# This many stacks may wait for another program.
SPARES = 8


class Stack(greenlet):  # type: ignore[misc]
    """A greenlet that runs one program after another; `asker` is the greenlet that waits for the current one."""

    __slots__ = ("asker", "spares", "depth", "functions", "last")

    def __init__(self, root: Object, spares: list["Stack"]) -> None:
        super().__init__(self._live, root)
        self.asker: Any = None
        self.spares = spares  # where it waits for the next program
        self.depth = 0  # how many clauses wait on it
        self.functions = 0  # how many functions it has got as results
        self.last: Any = None  # the continuation that the clause or program on this stack uses only to end with it

    def _live(self, request: "_Start | None") -> Object:
        while request is not None:
            self.asker, program = request.asker, request.program
            request.asker = request.program = None  # the root holds the request while the program runs
            self.depth, self.last = 0, None
            del request
            finished = _Finished(self, _outcome(program))
            del program  # it may refer to other stacks
            if self.asker is self.parent:  # the root waits for nothing else
                return finished
            request = self.parent.switch(finished)
        return None


def _outcome(program: Callable[[], Object]) -> tuple[str, Object]:
    try:
        return "value", program()
    except BaseException as error:
        return "error", error


class _Start:
    """A request to the root to run a program on a stack of its own."""

    __slots__ = ("program", "asker", "context")

    def __init__(self, program: Any, asker: Object) -> None:
        self.program, self.asker, self.context = program, asker, copy_context()


class _Finished:
    """A request to the root to pass the outcome of a stack's program to the greenlet that waits for it."""

    __slots__ = ("stack", "outcome")

    def __init__(self, stack: Stack, outcome: Any) -> None:
        self.stack, self.outcome = stack, outcome


def _serve(request: Object) -> Object:
    """Serve the stacks, on the root, until the root's own answer is there.

    A new stack costs ten times as much as a switch, because Python maps and unmaps memory for it. So stacks whose
    programs have finished wait for the next programs, but not longer than the root, which may go on at another depth.
    """
    spares: list[Stack] = []
    try:
        while True:
            if type(request) is _Start:
                stack = spares.pop() if spares else Stack(getcurrent(), spares)
                stack.gr_context = request.context
                request = stack.switch(request)
            elif type(request) is _Finished:
                stack, asker, outcome = request.stack, request.stack.asker, request.outcome
                request.outcome = None  # a stack that waits for another program holds its request
                if asker is getcurrent():
                    return outcome
                if stack.spares is spares and len(spares) < SPARES:
                    stack.asker = stack.gr_context = None
                    spares.append(stack)
                else:
                    stack.switch(None)
                del stack
                request = asker.switch(outcome)
            else:
                return request
    finally:
        while spares:
            spares.pop().switch(None)


def switch(target: Object, message: Object) -> Object:
    """Send a message to a greenlet, and wait for an answer; if this is a root, it serves its stacks meanwhile."""
    try:
        answer = target.switch(message)
        return _serve(answer) if type(answer) is _Start or type(answer) is _Finished else answer
    except (SwitchError, ValueError) as error:  # greenlet's errors for a greenlet of another thread
        raise ContinuationEscaped(f"a continuation was resumed where it cannot run: {error}") from None


def start(program: Callable[[], Object]) -> Object:
    """Let the root run a program on a stack of its own, and wait for a message."""
    current = getcurrent()
    request = _Start(program, current)
    return switch(current.parent, request) if type(current) is Stack else _serve(request)


def has_room() -> bool:
    """Return whether the current greenlet is a `Stack` on which another clause may wait."""
    current = getcurrent()
    return type(current) is Stack and current.depth < DEPTH


def on_new_stack(f: Callable[..., object], *args: object, **kwargs: object) -> Object:
    """Call a function on a new stack, which is as shallow as the root's."""
    kind, value = start(functools.partial(f, *args, **kwargs))
    if kind == "error":
        try:
            raise value
        finally:
            del value  # its traceback refers to this frame
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
