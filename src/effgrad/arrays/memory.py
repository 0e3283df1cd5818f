"""The memory of arrays that are written to.

A traced value never changes; an array that the program writes to is a *variable* whose value does. Its memory is a
`Storage`: a base value and a log of writes. The array and its views are handles on the storage, each with the
addresses of its elements. The addresses are themselves a NumPy array. They are indexed, reshaped and transposed as the
program does with the array, so NumPy decides which elements two handles share. A read takes each element from its
last writer. A loop that fills an array therefore takes linear time and records one operation (`overwrite`). A few
writes of slices are merged into the base by `setitem`, whose slices take less time than listed addresses.
Elements to which no traced value was written stay constants in a merged base: a read of such elements alone is plain.

A program that often reads between writes may write to the memory in place: once the reads have taken the time of a
merge, the activation that owns the elements is asked to (taped mode is, in `effgrad.fast.stored`).
"""

import bisect
import operator
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from effgrad.arrays.element_places import place_of
from effgrad.arrays.layout import PYTHON_NUMBERS, memory_like, ndim_of, shape_of, size_of, without_axes
from effgrad.arrays.memory_order import laid_as
from effgrad.arrays.parts import PARTS, Part, clock, rewind
from effgrad.arrays.value import (
    Tracer,
    contiguous,
    depends,
    operations,
    outline,
    owned_by,
    plain,
)
from effgrad.arrays.write_log import WriteLog, elements_of, is_whole, numbers_at, picked, put, selected
from effgrad.vocabulary import Activation, Index, Value

Path = tuple[Callable[[Any], Any], ...]
# The time of a write, its addresses, and what it overwrote: numbers, or each element's last write and its index there.
Write = tuple[int, Any, Any]

# A read from several writes merges them if the reads since the last merge have read from more than MANY writes, and the
# memory has at most ELEMENTS elements for each: to read from one takes as long as to copy thousands of elements.
MANY = 3
ELEMENTS = 4096
# A merge of as few writes of slices copies the memory for each, if it has at most so many elements.
COPIED = 16384
_NUMBERS, _FORM = (np.generic, *PYTHON_NUMBERS), np.empty(())


class Storage:
    """The memory that an array and its views share: a base value, and the writes since."""

    __slots__ = (
        "base", "parts", "addresses", "dtype", "version", "writes", "written", "unwritten", "borrowed", "made_at",
        "merged_at", "history", "rewound", "raw", "log", "visited", "stored", "constant", "maker", "whole",
        "__weakref__",
    )  # fmt: skip

    def __init__(self, base: Value, parts: tuple[Part, ...] = ()) -> None:
        # The parts in which the memory is known to have been made; it needs no rewinding for them.
        self.base, self.parts = base, parts
        # The serial number of the activation that owned the first value of the memory; None for plain values.
        self.maker: int | None = base.owner.serial if depends(base) else None
        self.dtype = plain(base).dtype
        self.addresses: Any = None
        self.version = 0
        self.writes = WriteLog()
        # The arrays to make mutable at the next write; None if that is done.
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
        # What writes in place for the activation that owns the traced elements, if it does.
        self.stored: Any = None
        # A weak reference to the traced array whose memory this is, for the attribute `base` of views.
        self.whole: Any = None
        # For each address, whether the element of a traced base is a constant; None if none is known to be.
        self.constant: Any = None

    @property
    def form(self) -> Value:
        """A value of the array's class: the base, but not if it is a number written to an array without axes."""
        return _FORM if isinstance(self.base, _NUMBERS) else self.base

    def is_around(self, activation: Activation) -> bool:
        """Whether the memory is one of the program around a derivative, and has no value of the derivative."""
        self._close()
        if any(owned_by(value, activation) for value in (self.base, *self.writes.values)):
            return False
        return self.raw is not None or self.maker is not None and self.maker < activation.serial

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

    def watch(self, watcher: Value) -> None:
        """Call `watcher.become_mutable` at the next write."""
        self.unwritten = [*(self.unwritten or ()), weakref.ref(watcher)]

    def reruns(self, parts: tuple[Part, ...]) -> list[Part]:
        """Return the parts that are reruns and began after the memory was made."""
        return [p for p in parts if p.again is not None and p not in self.parts and self.made_at < p.begun]

    def state(self) -> dict[str, Value]:
        self._close()
        names = ("base", "writes", "written", "merged_at", "history", "rewound", "log", "constant")
        return {name: getattr(self, name) for name in names}

    def restore(self, state: dict[str, object]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self.version = next(clock)

    def rewind(self, time: int) -> None:
        """Undo all writes after a time."""
        while self.history is not None and self.merged_at > time:
            self.base, self.constant, self.writes, self.log, self.merged_at, self.history = self.history
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
        if self.stored is not None and self._stores(addresses, value):
            return
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

    def _open(self) -> bool:
        """Let the activation that owns the merged elements write in place from now on; return whether it does."""
        base = self.merge_writes()
        able = isinstance(base, Tracer) and getattr(base.owner, "writes_in_place", False)
        self.stored = base.owner.stored_memory(base) if able else None
        if self.stored is None:
            return False
        self.base, self.borrowed = self.stored.elements, True
        return True

    def _may_open(self) -> bool:
        """Whether one activation seems to own the traced elements, over plain numbers, and no part needs them again."""
        last = self.writes.values[-1]
        value: Any = last if isinstance(last, Tracer) else self.base
        able = isinstance(value, Tracer) and getattr(value.owner, "writes_in_place", False)
        plainly = able and not isinstance(value.primal, Tracer) and self.dtype.char in "df"
        return plainly and self.addresses.flags.c_contiguous and not PARTS.get() and not self._runs_again()

    def _runs_again(self) -> bool:
        """Whether a part that may run again may need the memory as it is now."""
        return bool(Part.first) and self.made_at < Part.latest

    def _close(self) -> None:
        if self.stored is not None:
            self.base, self.stored = self.stored.close(), None

    def _stores(self, addresses: Value, value: Value) -> bool:
        """Write in place, or else close."""
        value = self._cast(value)
        able = self.stored.is_open and not self._runs_again()
        if able and self.stored.store(place_of(addresses, self.addresses), value):
            if self.constant is not None:
                put(self.constant, addresses, self.addresses, not isinstance(value, Tracer))
            return True
        self._close()
        return False

    def merge_writes(self) -> Value:
        """Return the value of the whole memory, which becomes the base; the list of writes is empty afterwards."""
        self._close()
        if self.writes:
            if self.log or self.merged_at < Part.latest:
                before = (self.base, self.constant, self.writes, self.log, self.merged_at, self.history)
                self.merged_at, self.history = next(clock), before
            # The base may be a number broadcast over the memory, or be kept by `history`. So a write goes to a copy.
            indices = self._few_slices()
            merged, self.constant = laid_as(self._merged(indices), self.addresses), self._constants(indices)
            self.base, self.borrowed = merged, True
            self.writes, self.log, self.visited = WriteLog(), [], 0
        return self.base

    def _few_slices(self) -> list[Index] | None:
        """Return the indices of the writes, if they are few writes of slices, which `setitem` merges."""
        count = len(self.writes.values)
        few = count == 1 or count <= MANY and self.addresses.size <= COPIED
        simple = few and self.dtype.kind == "f" and self.addresses.ndim and not PARTS.get()
        return self.writes.slices(self.addresses) if simple else None

    def _constants(self, indices: list[Index] | None) -> Value:
        """Return which elements are constants after the writes, to which `indices` lead if they are slices."""
        if isinstance(self.base, Tracer) and self.constant is None or not self.addresses.ndim:
            return None
        before = np.ones(self.addresses.size, bool) if self.constant is None else self.constant.copy()
        constant = self.writes.untraced(before, self.addresses, indices)
        return constant if constant.any() else None

    def _merged(self, indices: list[Index] | None) -> Value:
        """Return the base with the writes."""
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
        if self.stored is not None and addresses is not self.addresses and self.stored.is_open and not PARTS.get():
            return self._load(addresses)
        self._close()
        value = self._read(addresses)
        if np.ndim(addresses):
            return laid_as(value, addresses)
        return without_axes(value) if type(addresses) is np.ndarray else value

    def _load(self, addresses: Value) -> Value:
        """Read from the memory that is written in place."""
        if self.are_constants(addresses):
            return self._from_base(addresses)
        return self.stored.load(place_of(addresses, self.addresses))

    def are_constants(self, addresses: Value) -> bool:
        """Whether all elements at some addresses are known to be constants, though other elements are not."""
        return self.constant is not None and bool(numbers_at(self.constant, addresses, self.addresses).all())

    def _read(self, addresses: Value) -> Value:
        if parts := PARTS.get():
            rewind(self, parts)
        if not self.writes:
            return self._from_base(addresses)
        if addresses.size == 0:
            return self._from_base(addresses)
        latest = self.writes.latest(addresses, self.addresses)
        if latest is not None:
            return self._cast(latest if addresses.ndim else elements_of(latest, 0, ()))
        if addresses is not self.addresses and self._may_open() and self.should_merge(1) and self._open():
            return self._load(addresses)
        if addresses is self.addresses and addresses.ndim and (found := self.writes.apart(addresses)) is not None:
            return self._of_all(*found)
        writers, elements = self.writes.sources(addresses, self.addresses)
        first = writers.item(0)
        if (writers == first).all():
            if first < 0:
                return self._from_base(addresses)
            return self._cast(elements_of(self.writes.values[first], elements, addresses.shape))
        return self._of_several(writers.ravel(), elements.ravel(), addresses)

    def _of_all(self, writes: list[tuple[Value, Value]], all_written: bool) -> Value:
        """Return the whole value after writes of which none changed elements of another one."""
        if not writes:
            return self.base
        start = np.zeros(self.addresses.shape, self.dtype) if all_written else self.base
        places = tuple([at if at.ndim else at.item() for at, _ in writes])
        return operations.overwrite(start, *[value for _, value in writes], places=places)

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
        values = [self.writes.values[k] for k in chosen if k >= 0]
        kept: list[Value] = places[len(places) - len(values) :]
        for number, (value, at) in enumerate(zip(values, kept, strict=True)):
            if ndim_of(value) == 0:
                kept[number] = int(at[0]) if len(at) == 1 else at
            elif is_whole(value, elements[at]):
                kept[number] = at.reshape(shape_of(value))
            else:
                values[number] = elements_of(value, elements[at], at.shape)
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
        if not self.addresses.shape:  # of one element, which a view with axes, or a mask, reads into an array
            elements = np.broadcast_to(self.base, addresses.shape or (1,))
            return elements if addresses.shape else elements[0]
        base = plain(self.base) if self.are_constants(addresses) else self.base
        return picked(base, addresses, self.addresses)

    def _cast(self, value: Value) -> Value:
        if isinstance(value, Tracer):
            kind = plain(value)
            # A Python float in an array of doubles stays a Python float, whose operations are faster.
            return value if np.result_type(kind) == self.dtype else value.astype(self.dtype)
        return np.asarray(value, self.dtype)[()]


def copied(array: Value) -> Value:
    return None if array is None else array.copy()
