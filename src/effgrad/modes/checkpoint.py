"""Checkpoints: the effect that marks a part of a program to be recomputed.

`checkpoint(f)` performs `Checkpoint.run`. A reverse mode runs the thunk without recording it, and keeps the thunk. When
the reverse pass reaches the checkpoint, the mode reruns the thunk and records it. The reverse pass of that part follows
at once, and its record is dropped. The innermost mode that records decides. A mode that cannot recompute records the
part like the rest of the program. Sigal 2021, section 3.4; Sigal 2024, section 5.2.
"""

import contextvars
import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from effgrad.effects import Effect, handled, operation
from effgrad.errors import require_function
from effgrad.functions.numpy.draws import Replayed
from effgrad.vocabulary import Value


class Checkpoint(Effect):
    """The effect that asks a reverse mode to recompute a part of the program instead of recording it."""

    @operation
    def run(self, thunk: Callable[[], Value]) -> Value:
        """Return the result of the thunk."""


class Recompute(Effect):
    """The effect that marks the rerun of a part; a staged graph keeps its operations apart from the first run's."""

    @operation
    def begin(self) -> None:
        """Begin the rerun, to which the following operations belong."""

    @operation
    def end(self) -> None:
        """End the rerun."""


P = ParamSpec("P")
R = TypeVar("R")


def checkpoint(f: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Return `f(*args, **kwargs)`, which the reverse pass recomputes instead of keeping a record of it.

    The record of `f` needs memory only while the reverse pass of `f` runs. The price is one more evaluation of `f`.
    Checkpoints nest, and without a reverse mode `f` is just called. In the rerun, `f` draws the same random numbers
    from NumPy, and arrays that the program writes to have the state that they had in the first run.

    Arguments:
        f: a function in plain NumPy, which may close over anything, and may write to arrays made before the call.
        args: the arguments of `f`.
        kwargs: the keyword arguments of `f`.

    Returns:
        The result of `f`.

    Raises:
        Irreproducible: in the reverse pass, `f` gives another result than in its first run, for example because it
            reads a name that has been rebound.

    Sigal 2021, section 3.5; Griewank 1992.

    >>> grad(lambda x: checkpoint(lambda: np.sin(x) ** 2))(0.5) == grad(lambda x: np.sin(x) ** 2)(0.5)
    True
    """
    require_function("checkpoint", f)
    if not handled(Checkpoint):
        return f(*args, **kwargs)
    # A clause runs outside its handler, but the thunk is a part of the program and has to run inside, in every run.
    inside = contextvars.copy_context()
    result: R = Checkpoint.run(functools.partial(inside.run, functools.partial(Replayed(f), *args, **kwargs)))
    return result


# The call passes on an array that the program writes to as the same object, since `f` may write to it too. Other
# functions get the array's current value.
checkpoint.hands_on = True  # type: ignore[attr-defined]
