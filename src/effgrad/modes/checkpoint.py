"""Checkpoints: the effect that marks a part of a program to be recomputed.

`checkpoint(f)` performs `Checkpoint.run`. A reverse mode runs the thunk unrecorded, keeps it, and when the reverse pass
comes to it, runs it again, recorded: the reverse pass of that part follows at once, and its record is dropped. The
innermost mode that records decides: one without checkpoints of its own records the part like the rest.
Sigal 2021, section 3.4; Sigal 2024, section 5.2.
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
    """The effect of asking that a part of the program be recomputed instead of recorded."""

    @operation
    def run(self, thunk: Callable[[], Value]) -> Value:
        """The result of the thunk."""


class Recompute(Effect):
    """The effect of telling that a part of the program is run once more; a graph keeps it apart from the first run."""

    @operation
    def begin(self) -> None:
        """From here, operations belong to the second run."""

    @operation
    def end(self) -> None:
        """Until here."""


P = ParamSpec("P")
R = TypeVar("R")


def checkpoint(f: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """`f(*args, **kwargs)`, recomputed in the reverse pass instead of recorded.

    Memory for what happens inside `f` is needed only while its own part of the reverse pass runs; the price is one more
    evaluation of `f`. Checkpoints nest, and without a reverse mode `f` is just called. Random numbers that `f` draws
    with NumPy are the same when it runs again, and arrays that the program writes to are as they were.

    Arguments:
        f: a function in plain NumPy, which may close over anything, and write to arrays from before.
        args: the arguments of `f`.
        kwargs: the keyword arguments of `f`.

    Returns:
        The result of `f`.

    Raises:
        Irreproducible: in the reverse pass, `f` gives another result than before, as when it reads a name that was
            bound anew.

    Sigal 2021, section 3.5; Griewank 1992.

    >>> grad(lambda x: checkpoint(lambda: np.sin(x) ** 2))(0.5) == grad(lambda x: np.sin(x) ** 2)(0.5)
    True
    """
    require_function("checkpoint", f)
    if not handled(Checkpoint):
        return f(*args, **kwargs)
    # A clause runs outside its handler, and the thunk is a part of the program, which runs inside: now and again later.
    inside = contextvars.copy_context()
    result: R = Checkpoint.run(functools.partial(inside.run, functools.partial(Replayed(f), *args, **kwargs)))
    return result


# An array that the program writes to is the same inside: it is not read for the call.
checkpoint.hands_on = True  # type: ignore[attr-defined]
