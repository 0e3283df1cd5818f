"""Taped reverse mode: names instead of references, and the reverse pass is one walk back along a tape.

An operation on the tape holds the names (positions) of its arguments; a constant has none and leaves no trace. The
cotangents lie in one list, indexed by name. This is the mode behind `grad`: its values compute with Python floats in
operators written out from the rules (`effgrad.modes.floats`), whose entries on the tape are just names and partials.
Sigal 2024, section 4.5 (taped reverse mode); the explicit stack of de Vilhena and Pottier 2023, section 3, is its
scalar sibling.

An entry is `()` for a variable, `(name, partial, ...)` pairs for an operation on floats, and
`[primitive, params, result, primals, names]` otherwise.
"""

from typing import Any

import numpy as np

from effgrad.effects import Handler
from effgrad.modes.floats import float_operators
from effgrad.smooth import cotangents
from effgrad.smooth.protection import Protected
from effgrad.smooth.traced import KINDS, Smooth, Traced, constant


class TapedValue(Traced):
    """A value on a tape; its shadow is its name."""

    __slots__ = ()


class Taped(Handler[Smooth]):
    """Taped reverse mode; a traced value's shadow is its name on the tape."""

    value = TapedValue

    def enter(self) -> None:
        self.tape: list[Any] = []
        self.protected = Protected()

    def finally_(self) -> None:
        self.protected.release()

    def apply(self, primitive: Any, *args: Any, **params: Any) -> Traced:
        primals: list[Any] = []
        names: list[int | None] = []
        for arg in args:
            if type(arg) in KINDS and arg.owner is self:
                primals.append(arg.primal)
                names.append(arg.shadow)
            else:
                primals.append(self.protected.keep(arg) if type(arg) is np.ndarray else constant(arg))
                names.append(None)
        result = primitive(*primals, **params)
        self.tape.append([primitive, params, result, primals, names])
        return self.value(self, result, len(self.tape) - 1)

    def primal(self, value: Any) -> Any:
        """A value as it is below this activation; a constant is copied, since it may be written to before the end."""
        return value.primal if isinstance(value, Traced) and value.owner is self else constant(value)

    def variable(self, primal: Any) -> Traced:
        """An input of the program."""
        self.tape.append(())
        return self.value(self, primal, len(self.tape) - 1)

    def pull(self, seeds: list[tuple[int, Any]]) -> list[Any]:
        """The cotangents of the variables, by name, from those of some values; any number of times."""
        self.protected.verify()
        collected: list[Any] = [None] * len(self.tape)
        for name, seed in seeds:
            collected[name] = cotangents.add(collected[name], seed)
        for name in range(len(self.tape) - 1, -1, -1):
            cotangent, entry = collected[name], self.tape[name]
            if cotangent is None or not entry:
                continue
            collected[name] = None
            if type(entry) is tuple:
                for source, partial in entry:
                    part, before = cotangent * partial, collected[source]
                    if part != part:
                        part = cotangents.product(cotangent, partial)
                    collected[source] = part if before is None else before + part
                continue
            primitive, params, result, primals, names = entry
            wanted = [index for index, source in enumerate(names) if source is not None]
            parts = primitive.pull_all(wanted, cotangent, result, primals, params)
            for index, part in zip(wanted, parts, strict=True):
                if part is not None:
                    collected[names[index]] = cotangents.add(collected[names[index]], part)
        return collected


float_operators(
    TapedValue,
    unary="z.shadow = len(tape := owner.tape); tape.append(((x.shadow, {0}),))",
    binary="z.shadow = len(tape := owner.tape); tape.append(((x.shadow, {0}), (y.shadow, {1})))",
)
