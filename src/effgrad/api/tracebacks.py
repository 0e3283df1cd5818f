"""The edge between a user's program and a derivative of it: what the derivative is called, and what tracebacks show.

A traceback has the user's lines alone. `EFFGRAD_TRACEBACK=full` in the environment keeps the lines of effgrad.
"""

import functools
import os
from collections.abc import Callable
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from effgrad.errors import EffgradError, is_ours

P = ParamSpec("P")
R = TypeVar("R")


def boundary(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a public function: errors leave it without the frames of effgrad."""

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            shorten(error)
            raise

    return called


def derivative(name: str, f: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate the function that computes a derivative of `f`: it is called `name(f)`, and is a `boundary`."""

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        result = boundary(function)
        result.__name__ = result.__qualname__ = f"{name}({getattr(f, '__name__', type(f).__name__)})"
        result.__doc__ = getattr(f, "__doc__", None)
        return result

    return decorated


def shorten(error: BaseException | None) -> None:
    """Take the frames of effgrad out of the traceback of an error and of its causes."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen and os.environ.get("EFFGRAD_TRACEBACK") != "full":
        seen.add(id(error))
        error.__traceback__ = _shortened(error, error.__traceback__)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _shortened(error: BaseException, traceback: TracebackType | None) -> TracebackType | None:
    steps = []
    while traceback is not None:
        steps.append(traceback)
        traceback = traceback.tb_next
    theirs = [number for number, step in enumerate(steps) if not is_ours(step.tb_frame)]
    if not isinstance(error, EffgradError):  # where it was raised stays, also if that is effgrad
        theirs += range(theirs[-1] + 1 if theirs else 0, len(steps))
    for number in reversed(theirs):
        step = steps[number]
        traceback = TracebackType(traceback, step.tb_frame, step.tb_lasti, step.tb_lineno)
    return traceback
