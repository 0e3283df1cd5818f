"""A run whose handlers are gone when it ends, whatever ends it: an interrupt comes at any instruction.

The run has a copy of the context, which is C's to enter and to leave. What the program itself set there is handed on.
"""

from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import ParamSpec, TypeVar

from effgrad.effects.effect import frames

P = ParamSpec("P")
Result = TypeVar("Result")
# The names of our own variables begin so.
OURS = "effgrad_"


def confined(f: Callable[P, Result], *args: P.args, **kwargs: P.kwargs) -> Result:
    """Run `f` so that all that it enters of ours ends with it; under a handler, which does the same, just run it."""
    if frames.get() is not None:
        return f(*args, **kwargs)
    context = copy_context()
    try:
        return context.run(f, *args, **kwargs)
    finally:
        for variable, value in context.items():
            if not variable.name.startswith(OURS):
                _hand_on(variable, value)


def _hand_on(variable: ContextVar[object], value: object) -> None:
    if variable.get(None) is not value:
        variable.set(value)
