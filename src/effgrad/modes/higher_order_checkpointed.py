"""Higher-order programs with a checkpoint at every application of a function value.

Where a program is written with functions as values, the places to recompute are there already, without marks: the
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
    """Taped reverse mode, with every application of a function value recomputed when it is needed."""

    def app(self, thunk: Any) -> Value:
        # In the program's context, so that a mode inside this one decides for what it has recorded.
        inside: contextvars.Context = thunk.func.__self__
        return inside.copy().run(Checkpoint.run, thunk)
