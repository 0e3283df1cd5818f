"""Evaluation: every smooth operation just computes its value.

This is the smallest handler of `Smooth`, and the reference for the number of operations that a program performs. A
different handler, `effgrad.arrays.namespace.Library`, lies below all others and evaluates over the arrays of another
library. Sigal 2021, section 3.1; Sigal 2024, listing 4.3.
"""

from effgrad.modes.mode import Mode, Operation


class Evaluate(Mode):
    """Evaluation over any kind of numbers; values have no shadow."""

    def shadow(self, operation: Operation) -> None:
        return None
