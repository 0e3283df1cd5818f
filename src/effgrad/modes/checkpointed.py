"""Checkpointing: run a part of the program now without recording it, and again when the reverse pass needs it.

The clause `run` runs its thunk twice. The first run comes before the clause resumes, and its operations record nothing.
The rerun comes after the rest of the program has finished, and its operations are recorded. Their pending clauses are
the next to finish, so the record of the part lives only while its own reverse pass runs. Sigal 2021, section 3.4; Sigal
2024, section 5.2.
"""

from collections.abc import Callable, Generator

from effgrad.arrays.traced import Traced
from effgrad.arrays.value import Smooth
from effgrad.effects import Handler, around
from effgrad.modes.checkpoint import Checkpoint
from effgrad.modes.rerun import CheckpointRun, leaked
from effgrad.modes.reverse import Cell, Reverse
from effgrad.primitives.primitive import Primitive
from effgrad.vocabulary import Cotangent, Option, Value


class _Unrecorded(Cell):
    """The cell of a value that was computed without recording and not returned from its checkpoint."""

    __slots__ = ()

    def accumulate(self, part: Cotangent) -> None:
        raise leaked()


class Checkpointed(Reverse, Handler[Smooth, Checkpoint]):
    """Stateful reverse mode with checkpoints."""

    def run(self, thunk: Callable[[], Value]) -> Value:
        return thunk() if "apply" in vars(self) else self._checkpoint(thunk)

    def unrecorded(self, primitive: Primitive, *args: Value, **params: Option) -> Traced:
        """Perform an operation without recording it; this replaces `apply` during a first run."""
        return self.value(self, self.perform(primitive, args, params).result, _Unrecorded())

    def recorded(self, cell: Cell) -> bool:
        return type(cell) is not _Unrecorded

    @around
    def _checkpoint(self, thunk: Callable[[], Value]) -> Generator[Value, None, None]:
        first = CheckpointRun(self, thunk, apply=self.unrecorded)
        cells = [Cell() for _ in first.parts]
        for part, cell in zip(first.parts, cells, strict=True):
            part.shadow = cell
        yield first.result  # the rest of the program runs here
        if any(cell.cotangent is not None for cell in cells):
            # The clauses of the rerun are pending now, and are the next to finish.
            for part, cell in zip(first.again(), cells, strict=True):
                if cell.cotangent is not None:
                    part.shadow.accumulate(cell.cotangent)
