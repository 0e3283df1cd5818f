"""What a mode does to a program: the operations performed, who takes each, and the reverse pass as a program.

`Explain` is stateful reverse mode that writes down what it does. Below it, `Counting` takes the operations that its
clause performs in turn. The reverse pass is what a source transformation would have written. Sigal 2024, listing 4.6.
"""

from collections.abc import Callable, Generator
from typing import Any

import numpy as np

from effgrad.api.checks import check_scalar
from effgrad.api.run import run
from effgrad.arrays.value import Smooth, Traced, plain
from effgrad.effects import Handler, around
from effgrad.modes.checkpoint import Checkpoint
from effgrad.modes.evaluate import Evaluate
from effgrad.modes.reverse import Cell, Reverse
from effgrad.primitives import cotangents


class Counting(Evaluate):
    """Evaluation that counts the operations performed and keeps their names."""

    def enter(self) -> None:
        self.performed: list[str] = []

    def apply(self, primitive: Any, *args: Any, **params: Any) -> Traced:
        self.performed.append(f"{primitive.name}({', '.join(_short(plain(a)) for a in args)})")
        return super().apply(primitive, *args, **params)


class Explain(Reverse, Handler[Smooth, Checkpoint]):
    """Stateful reverse mode that writes down its passes."""

    def __init__(self, below: Counting) -> None:
        self.below = below

    def enter(self) -> None:
        self.forward: list[str] = []
        self.reverse: list[str] = []
        self.names: dict[int, str] = {}
        self.kept: list[Cell] = []
        self.made = self.inputs = 0

    def variable(self, primal: Any, shadow: Any = None) -> Traced:
        value = super().variable(primal)
        self.inputs += 1
        self.name(value.shadow, f"x{self.inputs}")
        return value

    def name(self, cell: Cell, name: str) -> None:
        self.names[id(cell)] = name
        self.kept.append(cell)

    @around
    def apply(self, primitive: Any, *args: Any, **params: Any) -> Generator[Traced, None, None]:
        before = len(self.below.performed)
        operation = self.perform(primitive, args, params)
        primals, cells = operation.primals, operation.shadows
        result = Traced(self, operation.result, Cell())
        self.made += 1
        self.name(result.shadow, f"r{self.made}")
        shown = [_short(plain(p)) if c is None else self.names[id(c)] for c, p in zip(cells, primals, strict=True)]
        own = f"{self.names[id(result.shadow)]} = {primitive.name}({', '.join(shown)})"
        taken = ", ".join(self.below.performed[before:]) or "nothing"
        self.forward.append(f"{own:32} = {_short(plain(result)):12} by Reverse, which performs {taken}: by Evaluate")
        primal, cell = result.primal, result.shadow
        yield result
        if cell.cotangent is not None:
            for index, target in enumerate(cells):
                if target is not None:
                    part = primitive.pull(index, cell.cotangent, primal, *primals, **params)
                    target.accumulate(part)
                    name, own = self.names[id(target)], self.names[id(cell)]
                    values = ", ".join(_short(plain(p)) for p in primals)
                    step = f"<{name}> := <{name}> + d{index + 1} {primitive.name}({values}) * <{own}>"
                    now = _short(plain(cotangents.dense(target.cotangent)))
                    self.reverse.append(f"{step:60} now {now}")


def explain(f: Callable[..., Any], *args: Any) -> None:
    """Print what stateful reverse mode does to `f(*args)`: the operations, who takes each, and the reverse pass.

    `f` returns one real number; its arguments are numbers and arrays, named x1, x2, ... in what is printed. `<r>` is
    the cotangent of r, and `d2 f(a, b)` the derivative of f with respect to its second argument.

    >>> explain(lambda x: x * x * 3.0, 2.0)
    forward pass
      r1 = multiply(x1, x1)            = 4            by Reverse, which performs multiply(2, 2): by Evaluate
      r2 = multiply(r1, 3)             = 12           by Reverse, which performs multiply(4, 3): by Evaluate
    reverse pass
      <r2> := 1
      <r1> := <r1> + d1 multiply(4, 3) * <r2>                      now 3
      <x1> := <x1> + d1 multiply(2, 2) * <r1>                      now 6
      <x1> := <x1> + d2 multiply(2, 2) * <r1>                      now 12
    derivatives
      d/dx1 = 12
    """

    def counted(counting: Counting, _: list[Any], inputs: list[Any]) -> tuple[Explain, list[Cell]]:
        return run(Explain(counting), lambda inputs: f(*inputs), [(value,) for value in inputs], explained)

    def explained(explaining: Explain, cells: list[Cell], output: Any) -> tuple[Explain, list[Cell]]:
        check_scalar(output)
        if explaining.owns(output):
            explaining.reverse.append(f"<{explaining.names[id(output.shadow)]}> := 1")
            explaining.seed(output, 1.0)
        return explaining, cells

    explaining, cells = run(Counting(), list, [(arg,) for arg in args], counted)
    derivatives = [plain(cotangents.dense(cell.cotangent)) for cell in cells]
    results = [f"d/dx{i} = {_short(0.0 if d is None else d)}" for i, d in enumerate(derivatives, 1)]
    for title, lines in (
        ("forward pass", explaining.forward), ("reverse pass", explaining.reverse), ("derivatives", results),
    ):  # fmt: skip
        print(title)
        print("\n".join(f"  {line}" for line in lines))


def _short(value: Any) -> str:
    if np.ndim(value) == 0:
        return f"{value:.6g}" if isinstance(value, float) else str(value)
    return f"{value.dtype}{list(value.shape)}"
