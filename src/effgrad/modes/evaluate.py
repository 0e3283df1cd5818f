"""Evaluation: every smooth operation means its own value.

The smallest handler of `Smooth`, and the reference for the number of operations a program performs. Evaluation over the
arrays of another library is the handler `effgrad.arrays.namespace.Library`, which lies below all others.
Sigal 2021, section 3.1; Sigal 2024, listing 4.3.
"""

from typing import Any

from effgrad.arrays.value import Smooth, Traced
from effgrad.effects import Handler


class Evaluate(Handler[Smooth]):
    """Evaluate, over whatever numbers the primals are."""

    def apply(self, primitive: Any, *args: Any, **params: Any) -> Traced:
        return Traced(self, primitive(*[self.primal(a) for a in args], **params), None)

    def primal(self, value: Any) -> Any:
        """A value as it is below this activation: what is not owned here is a constant."""
        return value.primal if isinstance(value, Traced) and value.owner is self else value

    def variable(self, primal: Any) -> Traced:
        """An input of the program."""
        return Traced(self, primal, None)
