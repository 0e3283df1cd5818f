"""Evaluation that counts: how many operations reach the handler below a mode."""

from typing import Any

from effgrad.arrays.traced import Traced
from effgrad.modes.evaluate import Evaluate


class Counting(Evaluate):
    """Evaluation that keeps the names of the operations performed."""

    def enter(self) -> None:
        self.performed: list[str] = []

    def apply(self, primitive: Any, *args: Any, **params: Any) -> Traced:
        self.performed.append(primitive.name)
        return super().apply(primitive, *args, **params)
