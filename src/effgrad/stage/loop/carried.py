"""The memory of one name that a loop carries from step to step."""

from typing import NamedTuple

from effgrad.stage.loop.affine import Affine, variable
from effgrad.stage.loop.buffers import load
from effgrad.stage.loop.number_classes import Classes
from effgrad.stage.loop.operands import Lazy, Value, View


class Growth(NamedTuple):
    """How an array grows: each step appends `by` elements along `axis`."""

    axis: int
    by: int


class Cell:
    """The memory of one carried name.

    For an array that grows, `view` is the array at the start of a step, `grown` at its end, and `last` after the loop.
    """

    def __init__(self, view: View, first: Classes, later: Classes, grown: View | None = None,
                 last: View | None = None) -> None:  # fmt: skip
        self.view, self.grown, self.last = view, grown, last
        # The classes that the value may have before the loop, and after a step.
        self.first, self.later = first, later

    @property
    def classes(self) -> Classes:
        """The classes that the value may have at the start of a step."""
        return self.first | self.later

    def holds(self, value: Value) -> bool:
        """Whether a value is the current content of the cell, so that no copy is needed."""
        if self.view.axes:
            return value is (self.grown or self.view)
        e = value.value if isinstance(value, Lazy) else None
        if isinstance(value, Affine) and len(value.terms) == 1 and value == variable(value.terms[0][0]):
            e = value.terms[0][0]
        return e is load(self.view.buffer, ())


class Unknown:
    """The result of a loop that may return from inside, while its kind is not yet known."""

    def __init__(self, key: tuple[Value, str]) -> None:
        self.key = key


def exchanged_in(found: list[tuple[str, Cell, Value, Value]]) -> set[Cell]:
    """The cells that each step fills from one another in turn, as in `a, b = b, a`: each keeps an array of another."""
    cells = {cell.view.buffer: cell for _, cell, _, _ in found}
    before = {cell: cells.get(v.buffer) for _, cell, _, v in found if isinstance(v, View) and not cell.holds(v)}
    turning = set(before)
    while left := {cell for cell in turning if before[cell] not in turning}:
        turning -= left
    return turning
