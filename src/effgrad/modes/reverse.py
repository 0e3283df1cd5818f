"""Stateful reverse mode: every value owns a cell that collects its cotangent.

The clause runs the operation, resumes the program with the result (`yield`), and when the rest of the program has
finished, reads the result's cotangent and adds its arguments' shares. The clauses finish in the opposite order of the
operations, so every cotangent is complete when it is read. Sigal 2021, section 3.3; Sigal 2024, section 4.2;
de Vilhena and Pottier 2023, section 5.
"""

from collections.abc import Callable, Generator
from typing import Any

from effgrad.arrays.value import KINDS, Smooth, Traced, constant, owned
from effgrad.effects import Handler, around
from effgrad.modes.region import Checkpoint
from effgrad.primitives import cotangents


class Cell:
    """Collects one cotangent; None until something contributes."""

    __slots__ = ("cotangent",)

    def __init__(self) -> None:
        self.cotangent: Any = None

    def accumulate(self, part: Any) -> None:
        if part is not None:
            self.cotangent = part if self.cotangent is None else cotangents.add(self.cotangent, part)


class Reverse(Handler[Smooth, Checkpoint]):
    """Stateful reverse mode; a traced value's shadow is its cell."""

    @around
    def apply(self, primitive: Any, *args: Any, **params: Any) -> Generator[Traced, None, None]:
        primals = [self.primal(a) for a in args]
        # The cells as they are now: an array that is written to later names a new value, with a new cell.
        cells = [a.shadow if type(a) in KINDS and a.owner is self else None for a in args]
        result = Traced(self, primitive(*primals, **params), Cell())
        primal, cell = result.primal, result.shadow
        yield result  # the rest of the program runs here
        if cell.cotangent is not None:
            targets = {index: target for index, target in enumerate(cells) if target is not None}
            parts = primitive.pull_all(list(targets), cell.cotangent, primal, primals, params)
            for target, part in zip(targets.values(), parts, strict=True):
                target.accumulate(part)

    def run(self, thunk: Callable[[], Any]) -> Any:
        """A checkpoint is recorded like the rest; `effgrad.modes.checkpointed` does otherwise."""
        return thunk()

    def primal(self, value: Any) -> Any:
        """A value as it is below this activation; a constant is copied, since it may be written to before the end."""
        return value.primal if type(value) in KINDS and value.owner is self else constant(value)

    def variable(self, primal: Any) -> Traced:
        """An input of the program, with an empty cell."""
        return Traced(self, primal, Cell())

    def seed(self, value: Traced, cotangent: Any) -> None:
        """Let the reverse pass begin with a cotangent of a value."""
        owned(value, self).shadow.accumulate(cotangent)

    def cotangents(self, cells: list[Cell]) -> list[Any]:
        """The cotangents in the cells, when the activation has ended."""
        return [cell.cotangent for cell in cells]
