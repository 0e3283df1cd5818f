"""Evaluation that counts the operations which reach the handler below a mode."""


from effgrad.arrays.traced import Traced
from effgrad.modes.evaluate import Evaluate
from effgrad.primitives.primitive import Primitive
from effgrad.vocabulary import Option, Value


class Counting(Evaluate):
    """Evaluation that lists the names of the operations performed."""

    def enter(self) -> None:
        self.performed: list[str] = []

    def apply(self, primitive: Primitive, *args: Value, **params: Option) -> Traced:
        self.performed.append(primitive.name)
        return super().apply(primitive, *args, **params)
