"""Taped reverse mode: the tape refers to values by names, and the reverse pass is one walk back along the tape.

An operation on the tape holds the names (positions) of its arguments. A constant has no name and leaves no trace. The
cotangents lie in one list, indexed by name. `effgrad.fast.recording`, which `grad` uses, is this mode made fast.
Sigal 2024, section 4.4; the explicit stack of de Vilhena and Pottier 2023, section 3.3, is its scalar sibling.
"""

from collections.abc import Iterable

from effgrad.modes.mode import Operation
from effgrad.modes.walk import ListMode
from effgrad.vocabulary import Cotangent, Value


class Taped(ListMode):
    """Taped reverse mode; a value's shadow is its name, the position of its operation on the tape."""

    def record(self, operation: Operation) -> int:
        return self.append(operation)

    def back(self, operation: Operation, cotangent: Cotangent) -> Iterable[tuple[int, Value]]:
        return operation.pull(cotangent)
