"""Higher-order programs with a checkpoint at every application of a function value.

Where a program is written with functions as values, the places to recompute are there already, without marks: the
record of an application lives only while the reverse pass is in it. Sigal 2024, section 5.
"""

from collections.abc import Callable
from typing import Any

from effgrad.effects import Handler
from effgrad.modes.checkpointed import Checkpoint
from effgrad.modes.higher_order import Functions, HigherOrder
from effgrad.smooth.traced import Smooth


class HigherOrderCheckpointed(HigherOrder, Handler[Smooth, Checkpoint, Functions]):
    """Taped reverse mode, with every application of a function value recomputed when it is needed."""

    def app(self, thunk: Callable[[], Any]) -> Any:
        return self.run(thunk)
