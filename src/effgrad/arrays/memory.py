"""The memory of arrays that are written to.

A traced value never changes; an array that the program writes to is a *variable* whose value does. Its memory is a
`Storage`: a base value and a log of writes. The array and its views are handles on the storage, each with the
addresses of its elements. The addresses are themselves a NumPy array. They are indexed, reshaped and transposed as the
program does with the array, so NumPy decides which elements two handles share. A read takes each element from its
last writer. A loop that fills an array therefore takes linear time and records one operation (`overwrite`). A few
writes of slices are merged into the base by `setitem`, whose slices take less time than listed addresses.
"""

import bisect
import functools
import operator
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from effgrad.arrays.layout import copied_as, dtype_of, is_read_only, memory_like, ndim_of, shape_of, size_of
from effgrad.arrays.parts import PARTS, Part, clock, rewind
from effgrad.arrays.value import (
    Tracer,
    contiguous,
    getitem,
    operations,
    outline,
    plain,
)
from effgrad.arrays.write_log import WriteLog, elements_of, picked, selected
from effgrad.vocabulary import DType, Function, Value

Path = tuple[Callable[[Any], Any], ...]
# The time of a write, its addresses, and what it overwrote: numbers, or each element's last write and its index there.
Write = tuple[int, Any, Any]

# A read from several writes merges them if the reads since the last merge have read from more than MANY writes, and the
# memory has at most ELEMENTS elements for each: to read from one takes as long as to copy thousands of elements.
MANY = 3
ELEMENTS = 4096
# A merge of as few writes of slices copies the memory for each, if it has at most so many elements.
COPIED = 16384


class Storage:
    """The memory that an array and its views share: a base value, and the writes since."""

    __slots__ = (
        "base", "parts", "addresses", "dtype", "version", "writes", "written", "unwritten", "borrowed", "made_at",
        "merged_at", "history", "rewound", "raw", "log", "visited",
    )  # fmt: skip

    def __init__(self, base: Value, parts: tuple[Part, ...] = ()) -> None:
        # The parts in which the memory is known to have been made; it needs no rewinding for them.
        self.base, self.parts = base, parts
        self.dtype = plain(base).dtype
        self.addresses: Any = None
        self.version = 0
        self.writes = WriteLog()
        # The arrays to make mutable at the first write; None after it.
        self.unwritten: list[weakref.ref[Tracer]] | None = []
        # For each address, the time of the last write there.
        self.written: Any = None
        # The times when the memory was made and its writes were last merged, and its state before that, for reruns.
        self.made_at = self.merged_at = next(clock)
        self.history: Any = None
        # Whether the fields are those of an earlier time, shared with the state to restore: a write copies them first.
        self.rewound = False
        # The writes since the last merge, with what they overwrote, and how many of them reads have read from.
        self.log: list[Write] = []
        self.visited = 0
        # Whether somebody else refers to the base: a write goes to a copy of it.
        self.borrowed = False
        # The `effgrad.arrays.written.Memory` of the plain array whose elements are here, if there is one.
        self.raw: Any = None

    def locate(self, path: Path) -> Value:
        """The addresses of the elements that `path` selects."""
        if self.addresses is None:
            addresses = np.arange(size_of(self.base)).reshape(shape_of(self.base))
            if not contiguous(self.base):  # NumPy's choice between a view and a copy depends on the memory order
                addresses, laid = memory_like(outline(self.base), int), addresses
                addresses[...] = laid
            self.addresses = addresses
        addresses = self.addresses
        for step in path:
            addresses = step(addresses)
        return addresses

    def note(self, view: Tracer) -> None:
        """Remember an array of this memory, which becomes mutable at the first write."""
        if self.unwritten is None:
            view.become_mutable()
            return
        self.unwritten.append(weakref.ref(view))
        if len(self.unwritten) & (len(self.unwritten) - 1) == 0:  # at each doubling, drop the references that died
            self.unwritten = [ref for ref in self.unwritten if ref() is not None]

    def reruns(self, parts: tuple[Part, ...]) -> list[Part]:
        """Return the parts that are reruns and began after the memory was made."""
        return [p for p in parts if p.again is not None and p not in self.parts and self.made_at < p.begun]

    def state(self) -> dict[str, Value]:
        names = ("base", "writes", "written", "merged_at", "history", "rewound", "log")
        return {name: getattr(self, name) for name in names}

    def restore(self, state: dict[str, object]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self.version = next(clock)

    def rewind(self, time: int) -> None:
        """Undo all writes after a time."""
        while self.history is not None and self.merged_at > time:
            self.base, self.writes, self.log, self.merged_at, self.history = self.history
        first = bisect.bisect(self.log, time, key=operator.itemgetter(0))
        undone, self.log = self.log[first:], self.log[:first]
        self.writes = self.writes.copy()
        if any(type(before) is not tuple for _, _, before in undone):
            self.base = self.base.copy()
        for _, addresses, before in reversed(undone):
            if type(before) is not tuple:
                self.base[selected(addresses, self.addresses)], before = before, (-1, 0)
            self.writes.put_back(addresses, self.addresses, before)
        self.version = next(clock)
        self.rewound = self.borrowed = True

    def _note(self, addresses: Value, plainly: bool) -> None:
        """Log what a write overwrites, if a part that may run again has begun since that was written."""
        at = selected(addresses, self.addresses)
        if np.all(self.written[at] > Part.latest):
            return
        before: Value = -1, 0
        if plainly:
            before = self.base[at].copy()
        elif self.writes:
            writer, element = self.writes.sources(addresses, self.addresses)
            before = writer.copy(), element.copy()
        self.written[at] = self.version
        self.log.append((self.version, addresses, before))

    def write(self, addresses: Value, value: Value) -> None:
        self._prepare_write(addresses)
        if self.raw is not None:
            self.raw.wrote(addresses, value)
        plainly = not self.writes and not isinstance(value, Tracer) and type(self.base) is np.ndarray
        if self.written is None:
            self.written = np.zeros(self.addresses.shape, int)
        if Part.first:
            self._note(addresses, plainly)
        if not plainly:
            self.writes.append(addresses, value)
            return
        if self.borrowed:
            self.base, self.borrowed = self.base.copy(), False
        self.base[selected(addresses, self.addresses)] = value

    def _prepare_write(self, addresses: Value) -> None:
        """Make the views mutable, and keep what reruns of checkpoints need."""
        if parts := PARTS.get():
            rewind(self, parts)
        if self.rewound:
            self.writes, self.written, self.rewound = self.writes.copy(), copied(self.written), False
        for part in parts:
            if part.running and (part not in self.parts or self.raw is not None):
                part.touched.setdefault(self, []).append(addresses)
        for ref in self.unwritten or ():
            view = ref()
            if view is not None:
                view.become_mutable()
        self.unwritten = None
        self.version = next(clock)

    def merge_writes(self) -> Value:
        """Return the value of the whole memory, which becomes the base; the list of writes is empty afterwards."""
        if self.writes:
            if self.log or self.merged_at < Part.latest:
                before = (self.base, self.writes, self.log, self.merged_at, self.history)
                self.merged_at, self.history = next(clock), before
            # The base may be a number broadcast over the memory, or be kept by `history`. So a write goes to a copy.
            self.base, self.borrowed = laid_as(self._merged(), self.addresses), True
            self.writes, self.log, self.visited = WriteLog(), [], 0
        return self.base

    def _merged(self) -> Value:
        """Return the base with the writes."""
        count = len(self.writes.values)
        few = count == 1 or count <= MANY and self.addresses.size <= COPIED
        simple = few and self.dtype.kind == "f" and self.addresses.ndim and not PARTS.get()
        indices = self.writes.slices(self.addresses) if simple else None
        if indices is None:
            return self._read(self.addresses)
        value = self.base
        for index, written in zip(indices, self.writes.values, strict=True):
            if index != (...,):
                value = operations.setitem(value, written, index=index)
                continue
            value = self._cast(written)
            if shape_of(value) != self.addresses.shape:
                value = np.broadcast_to(value, self.addresses.shape)
        return value

    def read(self, addresses: Value) -> Value:
        """The values at some addresses."""
        value = self._read(addresses)
        return laid_as(value, addresses) if np.ndim(addresses) else value

    def _read(self, addresses: Value) -> Value:
        if parts := PARTS.get():
            rewind(self, parts)
        if not self.writes:
            return self._from_base(addresses)
        if addresses.size == 0:
            return self._from_base(addresses)
        latest = self.writes.latest(addresses)
        if latest is not None:
            return self._cast(latest if addresses.ndim else elements_of(latest, 0, ()))
        writers, elements = self.writes.sources(addresses, self.addresses)
        first = writers.item(0)
        if (writers == first).all():
            if first < 0:
                return self._from_base(addresses)
            return self._cast(elements_of(self.writes.values[first], elements, addresses.shape))
        return self._of_several(writers.ravel(), elements.ravel(), addresses)

    def _of_several(self, writers: Value, elements: Value, addresses: Value) -> Value:
        """Return the values at addresses whose elements come from several writes."""
        order = np.argsort(writers, kind="stable")
        writers = writers[order]
        ends = [*(np.flatnonzero(writers[1:] != writers[:-1]) + 1).tolist(), len(order)]  # np.unique takes 15 us
        chosen = writers[[end - 1 for end in ends]].tolist()
        if addresses is not self.addresses and self.should_merge(len(chosen)):
            self.merge_writes()
            return self._from_base(addresses)
        places = [order[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        written = [(self.writes.values[k], at) for k, at in zip(chosen, places, strict=True) if k >= 0]
        values = [v if ndim_of(v) == 0 else elements_of(v, elements[at], at.shape) for v, at in written]
        kept = [int(at[0]) if len(at) == 1 and ndim_of(v) == 0 else at for v, at in written]
        start = self._from_base(addresses) if chosen[0] < 0 else np.zeros(addresses.shape, self.dtype)
        return operations.overwrite(start, *values, places=tuple(kept))

    def should_merge(self, count: int) -> bool:
        """Whether a read from `count` writes merges all: if reads have taken about the time of a merge.

        Merging takes time for each element, but removes the writes. So filling an array takes linear time, however the
        program reads it meanwhile.
        """
        self.visited += count
        return not PARTS.get() and self.visited > MANY and self.addresses.size <= ELEMENTS * self.visited

    def _from_base(self, addresses: Value) -> Value:
        if addresses is self.addresses:
            return self.base
        if not self.addresses.shape:  # of one element, which a mask of one truth value reads into a vector
            return np.broadcast_to(self.base, addresses.shape)
        return picked(self.base, addresses, self.addresses)

    def _cast(self, value: Value) -> Value:
        if isinstance(value, Tracer):
            kind = plain(value)
            # A Python float in an array of doubles stays a Python float, whose operations are faster.
            return value if np.result_type(kind) == self.dtype else value.astype(self.dtype)
        return np.asarray(value, self.dtype)[()]


def laid_as(value: Value, memory: Value) -> Value:
    """Return a value with its elements in the memory order of the array `memory`, on which NumPy's sums depend."""
    laid: Any = outline(value)
    if memory.flags.c_contiguous and laid.flags.c_contiguous:
        return value
    if 0 in _steps(memory):  # a broadcast axis
        first = tuple([slice(0, 1) if step == 0 else slice(None) for step in memory.strides])
        return np.broadcast_to(laid_as(getitem(value, index=first), memory[first]), memory.shape)
    back = tuple([slice(None, None, -1) if step < 0 else slice(None) for step in memory.strides])
    wanted, found = (np.empty_like(array[back], bool) for array in (memory, laid))
    alike = wanted.strides == found.strides and min(_steps(laid[back]), default=1) > 0
    if alike:
        return value
    if min(memory.strides) >= 0:
        return copied_as(value, wanted)
    return getitem(copied_as(getitem(value, index=back), wanted), index=back)


def _steps(array: Value) -> list[int]:
    """The strides of an array along axes that have more than one element."""
    return [step for step, n in zip(array.strides, array.shape, strict=True) if n > 1]


def copied(array: Value) -> Value:
    return None if array is None else array.copy()


def _with_flag(value: Value, write: bool) -> Value:
    """Return a view of an array that can be written to or not. Other values are returned unchanged."""
    if type(value) is not np.ndarray:
        return value
    value = value.view()
    value.flags.writeable = write
    return value


class ComplexPart:
    """A step of a path that selects the real or imaginary parts of complex elements; it keeps their addresses.

    `take` reads the part of a value, and `combine` returns the complex elements after a write to the part.
    """

    def __init__(self, take: Value, combine: Function) -> None:
        self.take, self.combine = take, combine

    def __call__(self, value: Value) -> Value:
        return self.take(value) if dtype_of(value).kind == "c" else value


class Handle:
    """An array's link to its memory: the storage, the path to its elements, and the version that it last read.

    With a `half` the array is a view of only the real or only the imaginary parts of the elements.
    """

    __slots__ = ("storage", "path", "addresses", "version", "half")

    def __init__(
        self, storage: Storage, path: Path = (), addresses: Value = None, version: int = 0,
        half: ComplexPart | None = None,
    ) -> None:  # fmt: skip
        self.storage, self.path, self.addresses, self.version = storage, path, addresses, version
        self.half = half

    @property
    def dtype(self) -> DType:
        dtype = self.storage.dtype
        return dtype if self.half is None else np.empty(0, dtype).real.dtype

    def elements(self, addresses: Value) -> Value:
        """The values at some addresses, or their real or imaginary parts if the handle has a `half`."""
        value = self.storage.read(addresses)
        return value if self.half is None else self.half(value)

    def along(self, step: Function, addresses: Value = None, version: int = 0) -> "Handle":
        """Return the handle of the view that `step` makes of the array."""
        half = step if type(step) is ComplexPart else self.half
        return Handle(self.storage, (*self.path, step), addresses, version, half)

    def protect(self, write: bool) -> None:
        """Allow or forbid writes to the array and to its views to come; its addresses keep NumPy's flag."""
        self.path, self.addresses = (*self.path, functools.partial(_with_flag, write=write)), None
        self.located()

    def write(self, addresses: Value, value: Value) -> None:
        if isinstance(where := self.located(), np.ndarray) and is_read_only(where):
            raise ValueError("assignment destination is read-only")
        if self.half is not None:
            value = self.half.combine(self.storage.read(addresses), value)
        self.storage.write(addresses, value)

    def holds(self, view: "Handle", addresses: Value) -> bool:
        """Whether a view has the elements at some addresses, so that `a[i] += v` need not write them once more."""
        same = view.storage is self.storage and view.half is self.half is None
        return same and np.array_equal(view.located(), addresses) and not is_read_only(self.located())

    def attach(self, value: Tracer) -> None:
        value.handle = self

    def located(self) -> Value:
        if self.addresses is None:
            self.addresses = self.storage.locate(self.path)
        return self.addresses

    def outline(self) -> Value:
        """A plain array of the handle's shape and memory order: the addresses, or the base if they are not needed."""
        return self.located() if self.path or self.addresses is not None else plain(self.storage.base)

    def shared(self, value: Value) -> Value:
        """Return the plain value for a recording to keep; the next write goes to a copy of the memory."""
        self.storage.borrowed = True
        return value

    def exposed(self, value: Value) -> Value:
        """Return the plain value for code that could write to it. It is read-only if a recording keeps the memory."""
        if self.storage.borrowed:
            value = value.view()
            value.flags.writeable = False
        return value

    def read(self) -> Value:
        """Return the array's current value."""
        addresses, storage = self.located(), self.storage
        passing = [part for part in PARTS.get() if part not in storage.parts]
        for part in passing:
            part.read.append(self)
        if passing or (addresses is not storage.addresses and 2 * addresses.size < storage.addresses.size):
            return self.elements(addresses)
        value = storage.merge_writes()
        for step in self.path:
            value = step(value)
        return value
