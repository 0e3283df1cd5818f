"""Forward mode: every value carries its tangent (a dual number).

The tangent of a result is the sum of the contributions of the arguments' tangents. A missing tangent (None) is a
structural zero. Sigal 2021, section 3.2; Sigal 2024, section 4.1; Krawiec et al. 2022, figure 3.
"""


from effgrad.modes.mode import Mode, Operation
from effgrad.vocabulary import Shadow


class Forward(Mode):
    """Forward mode; a value's shadow is its tangent."""

    def shadow(self, operation: Operation) -> Shadow:
        return operation.push(operation.shadows)
