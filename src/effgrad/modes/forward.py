"""Forward mode: every value carries its tangent (a dual number).

The tangent of a result is the sum of what comes through each argument. A missing tangent (None) is a zero by
construction. Sigal 2021, section 3.2; Sigal 2024, section 4.1; Krawiec et al. 2022, figure 3.
"""

from typing import Any

from effgrad.modes.mode import Mode, Operation


class Forward(Mode):
    """Forward mode; a value's shadow is its tangent."""

    def shadow(self, operation: Operation) -> Any:
        return operation.push(operation.shadows)
