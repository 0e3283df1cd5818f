"""A run whose handlers are gone when it ends, even if an interrupt ends it at an arbitrary instruction.

The run gets a copy of the context. C code enters and leaves it, so no interrupt can come in between. Context variables
that the program itself set in the copy are then set in the caller's context.
"""

from collections.abc import Callable
from contextvars import ContextVar, copy_context
from typing import ParamSpec, TypeVar

from effgrad.effects.effect import frames

P = ParamSpec("P")
Result = TypeVar("Result")
# The prefix of the names of effgrad's own context variables.
OURS = "effgrad_"


def run_confined(f: Callable[P, Result], *args: P.args, **kwargs: P.kwargs) -> Result:
    """Run `f` so that every handler that it installs is gone when it ends.

    Under another handler `f` is simply called, because that handler restores the frames when it ends.
    """
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
