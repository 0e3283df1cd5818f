"""Higher-order programs with a checkpoint at every application of a function value.

A program that uses functions as values needs no marks for the parts to recompute, since every application is one. The
record of an application lives only while the reverse pass is in it. Sigal 2024, section 5.3.
"""

import contextvars
from typing import Any

from effgrad.arrays.value import Smooth
from effgrad.effects import Handler
from effgrad.modes.checkpoint import Checkpoint
from effgrad.modes.higher_order import Functions, HigherOrder
from effgrad.vocabulary import Value


class HigherOrderCheckpointed(HigherOrder, Handler[Smooth, Checkpoint, Functions]):
    """Taped reverse mode that recomputes every application of a function value when the reverse pass needs it."""

    def app(self, thunk: Any) -> Value:
        # The checkpoint is performed in the program's context, so that an inner mode handles what it has recorded.
        inside: contextvars.Context = thunk.func.__self__
        return inside.copy().run(Checkpoint.run, thunk)
