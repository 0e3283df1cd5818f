"""Taped mode with cheap entries. It is `effgrad.modes.taped`, with the same tape and the same walk.

For Python floats, the values have operators written out from the rules (`effgrad.fast.operators`), whose entries on the
tape are just names and partials. For the rest, the clause tests each property of an argument once. A large array whose
elements the reverse pass does not read is not kept.

An entry is None for an input, `(name, partial)` pairs for an operation on floats, a `Rerun` for a checkpoint, one of
the classes of `effgrad.fast.stored` for memory, and a list `[primitive, params, result, primals, names]` otherwise.
"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from effgrad.arrays.layout import DOUBLES, LARGE_BYTES
from effgrad.arrays.record import ARRAYS, Protected
from effgrad.arrays.traced import Traced
from effgrad.arrays.value import Smooth, Tracer, constant, owned_by, staging
from effgrad.effects import Handler
from effgrad.fast.operators import write_operators
from effgrad.fast.stored import Opened, Store, Stored, new
from effgrad.living import LivingSet
from effgrad.modes.checkpoint import Checkpoint
from effgrad.modes.higher_order import Functions, HigherOrder
from effgrad.modes.higher_order_checkpointed import HigherOrderCheckpointed
from effgrad.modes.rerun import leaked
from effgrad.modes.taped import Taped
from effgrad.modes.walk import Rerun
from effgrad.primitives import cotangents
from effgrad.primitives.cotangents import typed
from effgrad.primitives.primitive import Primitive
from effgrad.vocabulary import Cotangent, Entry, Option, Params, Value

UNRECORDED = 1 << 60
ndarray = np.ndarray


class TapedValue(Traced):
    """A value on a tape; its shadow is its name."""

    __slots__ = ()


class _UnrecordedTape:
    """The tape of a part of the program that is not recorded; its names are out of the range of every real tape."""

    def append(self, entry: Entry) -> None:
        pass

    def __len__(self) -> int:
        return UNRECORDED


class FastTaped(Taped):
    """Taped reverse mode, fast."""

    value = TapedValue
    paused = {"recording": False, "entries": _UnrecordedTape()}
    writes_in_place = True
    stored: LivingSet[Stored] | None = None  # the memories that it writes to in place

    def enter(self) -> None:
        super().enter()
        self.protected = Protected()

    def run(self, thunk: Callable[[], Value]) -> Value:
        for memory in self.stored or ():  # its reruns need them as they are now
            memory.close()
        return super().run(thunk)

    def stored_memory(self, base: Value) -> Stored | None:
        """Return a memory to write to in place, with the elements of `base`, or None if they are not plain numbers."""
        elements = base.primal if owned_by(base, self) else base
        if type(elements) is not np.ndarray or not self.alive:
            return None
        memory = Stored(self, base)
        self.stored = LivingSet() if self.stored is None else self.stored
        self.stored.add(memory)
        return memory

    def recorded(self, shadow: int) -> bool:
        return shadow < UNRECORDED

    def apply(self, primitive: Primitive, *args: Value, **params: Option) -> Traced:
        primals: list[Value] = []
        names: list[int | None] = []
        below: Value = None
        simple, large = not params, False
        for arg in args:
            if isinstance(arg, Tracer) and arg.owner is self:
                primal = arg.primal
                names.append(arg.shadow)
            else:
                primal = self.kept(arg)
                names.append(None)
            if type(primal) is np.ndarray:
                large |= primal.nbytes >= LARGE_BYTES
            elif isinstance(primal, Tracer):
                simple = simple and below in (None, primal.owner)
                below = primal.owner
            primals.append(primal)
        # With at most one handler below, the operation is applied directly, which saves the cost of `perform`.
        if below is None and not (params and staging(params.values()) is not None):
            result = primitive.function(*primals, **params)
        else:
            known = simple and below.alive
            result = below.apply(primitive, *primals) if known else primitive(*primals, **params)
        name = len(self.entries)
        if large or (type(result) is np.ndarray and result.nbytes >= LARGE_BYTES):
            self.entries.append(drop_unread(primitive, params, result, primals, names))
        else:
            self.entries.append([primitive, params, result, primals, names])
        value: Traced = new(self.value)
        value.owner, value.primal, value.shadow = self, result, name
        return value

    def kept(self, arg: Value) -> Value:
        """Return a constant with its present elements, which later writes of the program must not change."""
        kind = type(arg)
        return arg if kind is float else self.protected.keep(arg) if kind in ARRAYS else constant(arg)

    def pull(self, seeds: list[tuple[int, object]], shadows: list[int]) -> list[Cotangent]:
        self.protected.verify()
        try:
            return super().pull(seeds, shadows)
        except IndexError:
            if any(name >= UNRECORDED for entry in self.entries for name in _sources(entry)):
                raise leaked() from None
            raise

    def walk(self, collected: Value, first: int) -> None:
        self.walk_over(collected, self.entries, range(len(self.entries) - 1, first - 1, -1), first)

    def walk_over(self, collected: Value, entries: Value, names: Iterable[int], first: int) -> None:
        """Walk over some entries, by their names."""
        for name in names:
            cotangent, entry = collected[name], entries[name]
            kind = type(entry)
            if first and kind is not Rerun:
                entries[name] = None
            if kind is Rerun:
                entry = cotangent = None  # otherwise this frame would keep them alive while the checkpoint is walked
                self.walk_again(collected, name, once=first > 0)
            elif cotangent is None or entry is None:
                if kind is Store:
                    entry.pull(collected)
            elif kind is list:
                collected[name] = None
                _pull_entry(collected, entry, cotangent)
            elif kind is not tuple:  # of a stored memory
                collected[name] = None
                entry.pull(collected, cotangent)
            else:
                collected[name] = None
                for source, partial in entry:
                    part, before = cotangent * partial, collected[source]
                    collected[source] = part if before is None else before + part


def _pull_entry(collected: Value, entry: Entry, cotangent: Cotangent) -> None:
    """Add the shares of an operation's arguments to their cotangents."""
    primitive, params, result, primals, names = entry
    kind = type(cotangent)
    pulls = (  # `primitive.pulls_of(cotangent)` written out, which saves a call for every operation
        primitive.array_pulls if kind is np.ndarray
        else primitive.number_pulls if kind in DOUBLES
        else primitive.pulls
    )  # fmt: skip
    if not pulls:
        _pull_together(collected, entry, cotangent)
        return
    # Some tables of pulls are infinite; `strict=False` would take a tenth of a microsecond.
    for source, pull, primal in zip(names, pulls, primals):  # noqa: B905
        if source is not None and pull is not None:
            part = pull(cotangent, result, *primals, **params) if params else pull(cotangent, result, *primals)
            if not (type(part) is type(primal) is ndarray and part.dtype is primal.dtype):  # saves a call to `typed`
                part = typed(part, primal)
            before = collected[source]
            if before is None:
                collected[source] = part
            elif type(before) is type(part) is ndarray and before.nbytes < LARGE_BYTES:  # saves a call to `accumulate`
                collected[source] = before + part
            elif part is not None:
                before = None  # `accumulate` counts the references to the array
                cotangents.accumulate(collected, source, part)


def _pull_together(collected: Value, entry: Entry, cotangent: Cotangent) -> None:
    """Add the shares for a primitive with one rule for all arguments."""
    primitive, params, result, primals, names = entry
    wanted = [index for index, source in enumerate(names) if source is not None]
    parts = primitive.pull_all(wanted, cotangent, result, primals, params)
    for index, part in zip(wanted, parts, strict=True):
        if part is not None:
            cotangents.accumulate(collected, names[index], part)


def drop_unread(
    primitive: Primitive, params: Params, result: Value, primals: Sequence[Value], names: Sequence[int | None]
) -> list[Value]:
    """Return an entry in which each array whose elements the reverse pass does not read is reduced to its shape.

    The memory of such an array is free for later arrays as soon as the program drops it.
    """
    kept = primitive.read_by_pulls(tuple([name is not None for name in names]))
    result, *primals = [
        value if keep or type(value) is not np.ndarray else shape_only(value)
        for value, keep in zip((result, *primals), kept, strict=True)
    ]
    return [primitive, params, result, primals, names]


def shape_only(array: Value) -> Value:
    """Return an array with the shape and dtype of another, whose elements all share one memory location."""
    if array.dtype.hasobject:
        return array
    # This takes half a microsecond; np.broadcast_to of np.empty takes ten.
    return np.ndarray(array.shape, array.dtype, np.ndarray((), array.dtype), 0, (0,) * array.ndim)


def _sources(entry: object) -> list[int]:
    if type(entry) is tuple:
        return [source for source, _ in entry]
    if isinstance(entry, Opened | Store):
        return [entry.source] if entry.source is not None else []
    return [name for name in entry[4] if name is not None] if type(entry) is list else []


class FastHigherOrder(HigherOrder, FastTaped, Handler[Smooth, Checkpoint, Functions]):
    """Taped reverse mode for programs with functions as values, fast."""

    writes_in_place = False  # an application of a function may run again


class FastHigherOrderCheckpointed(HigherOrderCheckpointed, FastTaped, Handler[Smooth, Checkpoint, Functions]):
    """Taped reverse mode that recomputes every application of a function value, fast."""

    writes_in_place = False


write_operators(
    TapedValue,
    unary="z.shadow = len(tape := owner.entries); tape.append(((x.shadow, {0}),))",
    binary="z.shadow = len(tape := owner.entries); tape.append(((x.shadow, {0}), (y.shadow, {1})))",
    arrays=(
        "z.shadow = len(tape := owner.entries); tape.append("
        "drop_unread(primitive, {params}, r, {primals}, {shadows}) "
        "if type({largest}) is np.ndarray and {largest}.nbytes >= LARGE_BYTES "
        "else [primitive, {params}, r, {primals}, {shadows}])"
    ),
    names={"LARGE_BYTES": LARGE_BYTES, "drop_unread": drop_unread},
)
