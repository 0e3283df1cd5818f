"""Stateful reverse mode: every value owns a cell that collects its cotangent.

The clause runs the operation and resumes the program with the result (`yield`). When the rest of the program has
finished, it reads the result's cotangent and adds each argument's share to the argument's cell. The clauses finish in
the opposite order of the operations, so every cotangent is complete when it is read. Sigal 2021, section 3.3; Sigal
2024, section 4.2; de Vilhena and Pottier 2023, section 5.
"""

from collections.abc import Callable, Generator

from effgrad.arrays.traced import Traced
from effgrad.arrays.value import Smooth, constant
from effgrad.effects import Handler, around
from effgrad.modes.checkpoint import Checkpoint
from effgrad.modes.mode import Mode, owned
from effgrad.primitives import cotangents
from effgrad.primitives.primitive import Primitive
from effgrad.vocabulary import Cotangent, Option, Shadow, Value


class Cell:
    """A cell that collects one cotangent, which is None until something contributes."""

    __slots__ = ("cotangent",)

    def __init__(self) -> None:
        self.cotangent: Cotangent = None

    def accumulate(self, part: Cotangent) -> None:
        self.cotangent = part if self.cotangent is None else cotangents.add(self.cotangent, part)


class Reverse(Mode, Handler[Smooth, Checkpoint]):
    """Stateful reverse mode; a value's shadow is its cell."""

    constant = staticmethod(constant)
    records = True

    @around
    def apply(self, primitive: Primitive, *args: Value, **params: Option) -> Generator[Traced, None, None]:
        operation = self.perform(primitive, args, params)
        cell = Cell()
        yield self.value(self, operation.result, cell)  # the rest of the program runs here
        if cell.cotangent is not None:
            for target, part in operation.pull(cell.cotangent):
                target.accumulate(part)

    def run(self, thunk: Callable[[], Value]) -> Value:
        """Record a checkpoint like the rest of the program; `effgrad.modes.checkpointed` recomputes it instead."""
        return thunk()

    def variable(self, primal: Value, shadow: Shadow = None) -> Traced:
        return self.value(self, primal, Cell())

    def seed(self, value: Traced, cotangent: Cotangent) -> None:
        """Add a cotangent of a value with which the reverse pass begins."""
        owned(value, self).shadow.accumulate(cotangent)

    def cotangents(self, cells: list[Cell]) -> list[Cotangent]:
        """Return the cotangents in the cells, which are complete when the activation has ended."""
        return [cell.cotangent for cell in cells]
