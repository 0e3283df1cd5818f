"""Evaluation: every smooth operation means its own value.

The smallest handler of `Smooth`, and the reference for the number of operations a program performs. Evaluation over the
arrays of another library is the handler `effgrad.arrays.namespace.Library`, which lies below all others.
Sigal 2021, section 3.1; Sigal 2024, listing 4.3.
"""

from effgrad.modes.mode import Mode, Operation


class Evaluate(Mode):
    """Evaluate, over whatever numbers the primals are."""

    def shadow(self, operation: Operation) -> None:
        return None
