"""Taped reverse mode: names instead of references, and the reverse pass is one walk back along a tape.

An operation on the tape holds the names (positions) of its arguments; a constant has none and leaves no trace. The
cotangents lie in one list, indexed by name. This is the mode behind `grad`: its values compute with Python floats in
operators written out from the rules (`effgrad.modes.operators`), whose entries on the tape are just names and partials.
Sigal 2024, section 4.4; the explicit stack of de Vilhena and Pottier 2023, section 3.3, is its
scalar sibling.

An entry is `()` for a variable, `(name, partial)` pairs for an operation on floats, `[region, names]` for a checkpoint,
and `[primitive, params, result, primals, names]` otherwise.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from effgrad.arrays.record import KEPT, Protected
from effgrad.arrays.value import KINDS, Smooth, Traced, constant, owned, perform, staging
from effgrad.effects import Handler
from effgrad.modes.operators import write_operators
from effgrad.modes.region import Checkpoint, Region, leaked
from effgrad.primitives import cotangents
from effgrad.primitives.cotangents import LARGE
from effgrad.primitives.primitive import NUMBERS


class TapedValue(Traced):
    """A value on a tape; its shadow is its name."""

    __slots__ = ()


new: Any = object.__new__  # a value without the call of its __init__


class _Nowhere:
    """The tape of a part of the program that is not recorded: all names are out of every tape's range."""

    def append(self, entry: Any) -> None:
        pass

    def __len__(self) -> int:
        return UNRECORDED


UNRECORDED = 1 << 60


class Taped(Handler[Smooth, Checkpoint]):
    """Taped reverse mode; a traced value's shadow is its name on the tape."""

    value: type[Traced] = TapedValue

    def enter(self) -> None:
        self.tape: Any = []
        self.seeds: list[tuple[int, Any]] = []
        self.protected = Protected()

    def finally_(self) -> None:
        self.protected.release()

    def apply(self, primitive: Any, *args: Any, **params: Any) -> Traced:
        primals: list[Any] = []
        names: list[int | None] = []
        below: Any = None
        simple, large = not params, False
        for arg in args:
            kind = type(arg)
            if kind in KINDS and arg.owner is self:
                primal = arg.primal
                names.append(arg.shadow)
            else:
                primal = self.protected.keep(arg) if kind in KEPT else arg if kind is float else constant(arg)
                names.append(None)
            if type(primal) is np.ndarray:
                large = large or primal.nbytes >= LARGE
            elif type(primal) in KINDS:
                simple = simple and (below is None or below is primal.owner)
                below = primal.owner
            primals.append(primal)
        # With one handler below or none, `perform` would find that out at a price of its own.
        if below is None and not (params and staging(params.values()) is not None):
            result = primitive.function(*primals, **params) if params else primitive.function(*primals)
        elif simple and below.alive:
            result = below.apply(primitive, *primals)
        else:
            result = perform(primitive, *primals, **params)
        name = len(self.tape)
        if large or (type(result) is np.ndarray and result.nbytes >= LARGE):
            self.tape.append(light(primitive, params, result, primals, names))
        else:
            self.tape.append([primitive, params, result, primals, names])
        value: Traced = new(self.value)
        value.owner, value.primal, value.shadow = self, result, name
        return value

    def primal(self, value: Any) -> Any:
        """A value as it is below this activation; a constant is copied, since it may be written to before the end."""
        return value.primal if isinstance(value, Traced) and value.owner is self else constant(value)

    def variable(self, primal: Any) -> Traced:
        """An input of the program."""
        self.tape.append(())
        return self.value(self, primal, len(self.tape) - 1)

    def run(self, thunk: Any) -> Any:
        """A checkpoint: its entry on the tape is the part of the program itself."""
        if type(self.tape) is _Nowhere:
            return thunk()
        region = Region(self, thunk, lambda part: part.shadow >= UNRECORDED, tape=_Nowhere())
        names: list[int] = []
        self.tape.append([region, names])
        for part in region.parts:
            names.append(len(self.tape))
            part.shadow = len(self.tape)
            self.tape.append(())
        return region.result

    def seed(self, value: Any, cotangent: Any) -> None:
        """Let the reverse pass begin with a cotangent of a value."""
        self.seeds.append((owned(value, self).shadow, cotangent))

    def cotangents(self, names: list[int]) -> list[Any]:
        """The cotangents of the variables named."""
        return self.pull(self.seeds, names)

    def pull(self, seeds: list[tuple[int, Any]], variables: list[int]) -> list[Any]:
        """The cotangents of the variables from those of some values; any number of times."""
        self.protected.verify()
        collected: list[Any] = [None] * len(self.tape)
        for name, seed in seeds:
            if name >= UNRECORDED:
                raise leaked()
            collected[name] = cotangents.add(collected[name], seed)
        try:
            self._walk(collected, 0)
        except IndexError:
            if any(name >= UNRECORDED for entry in self.tape for name in _sources(entry)):
                raise leaked() from None
            raise
        return [collected[name] for name in variables]

    def _walk(self, collected: list[Any], first: int) -> None:
        """The reverse pass over the tape from its end down to entry `first`."""
        tape = self.tape
        for name in range(len(tape) - 1, first - 1, -1):
            cotangent, entry = collected[name], tape[name]
            if not entry or (cotangent is None and type(entry[0]) is not Region):
                continue
            collected[name] = None
            if type(entry) is tuple:
                for source, partial in entry:
                    part, before = cotangent * partial, collected[source]
                    if part != part:
                        part = cotangents.product(cotangent, partial)
                    collected[source] = part if before is None else before + part
            elif type(entry[0]) is Region:
                self._walk_region(collected, *entry)
            else:
                primitive, params, result, primals, names = entry
                kind = type(cotangent)
                pulls = (  # `primitive.pulls_of(cotangent)` without the call, once for every operation
                    primitive.array_pulls if kind is np.ndarray
                    else primitive.number_pulls if kind in NUMBERS
                    else primitive.pulls
                )  # fmt: skip
                if not pulls:
                    wanted = [index for index, source in enumerate(names) if source is not None]
                    parts = primitive.pull_all(wanted, cotangent, result, primals, params)
                    for index, part in zip(wanted, parts, strict=True):
                        if part is not None:
                            cotangents.accumulate(collected, names[index], part)
                    continue
                for source, pull in zip(names, pulls, strict=False):  # a table for any number of arguments has no end
                    if source is not None and pull is not None:
                        part = pull(cotangent, result, *primals, **params)
                        if collected[source] is None:
                            collected[source] = part
                        elif part is not None:
                            cotangents.accumulate(collected, source, part)

    def _walk_region(self, collected: list[Any], region: Region, names: list[int]) -> None:
        """Record a checkpointed part at the end of the tape, walk back over it, and forget it."""
        given = [collected[name] for name in names]
        if all(cotangent is None for cotangent in given):
            return
        end = len(self.tape)
        parts = region.again()
        collected.extend([None] * (len(self.tape) - end))
        for part, cotangent in zip(parts, given, strict=True):
            if cotangent is not None:
                collected[part.shadow] = cotangents.add(collected[part.shadow], cotangent)
        self._walk(collected, end)
        del self.tape[end:], collected[end:]


def light(primitive: Any, params: Any, result: Any, primals: Sequence[Any], names: Sequence[Any]) -> list[Any]:
    """An entry whose arrays are hollow if the pass back reads no elements of them.

    So their memory is free for what comes next as soon as the program drops them.
    """
    kept = primitive.kept(tuple([name is not None for name in names]))
    result, *primals = [
        value if keep or type(value) is not np.ndarray else _hollow(value)
        for value, keep in zip((result, *primals), kept, strict=True)
    ]
    return [primitive, params, result, primals, names]


def _hollow(array: Any) -> Any:
    """An array of the shape and type of another, all of whose elements are one."""
    if array.dtype.hasobject:
        return array
    # Half a microsecond; np.broadcast_to of np.empty takes ten, and inside a derivative they are intercepted.
    return np.ndarray(array.shape, array.dtype, np.ndarray((), array.dtype), 0, (0,) * array.ndim)


def _sources(entry: Any) -> list[int]:
    if type(entry) is tuple:
        return [source for source, _ in entry]
    return [] if type(entry[0]) is Region else [name for name in entry[4] if name is not None]


write_operators(
    TapedValue,
    unary="z.shadow = len(tape := owner.tape); tape.append(((x.shadow, {0}),))",
    binary="z.shadow = len(tape := owner.tape); tape.append(((x.shadow, {0}), (y.shadow, {1})))",
    arrays=(
        "z.shadow = len(tape := owner.tape); tape.append("
        "light(primitive, {params}, r, {primals}, {shadows}) "
        "if type({largest}) is np.ndarray and {largest}.nbytes >= LARGE "
        "else [primitive, {params}, r, {primals}, {shadows}])"
    ),
    names={"LARGE": LARGE, "light": light},
)
