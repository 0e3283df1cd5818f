"""The memory of arrays that are written to.

A traced value never changes; an array that the program writes to is a *variable* whose value does. Its memory is a
`Storage`: a base value and a log of writes. The array and its views are handles on the storage, each with the
addresses of its elements. The addresses are themselves a NumPy array, indexed, reshaped and transposed as the program
does with the handle, so which elements two handles share is NumPy's own answer. A read takes each element from its
last writer; a loop that fills an array therefore takes linear time, and leaves one operation (`overwrite`).
"""

import bisect
import operator
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from effgrad.arrays.layout import dtype_of, ndim_of, shape_of, size_of
from effgrad.arrays.parts import PARTS, Part, clock, rewind
from effgrad.arrays.value import (
    Tracer,
    contiguous,
    getitem,
    operations,
    outline,
    plain,
)
from effgrad.vocabulary import DType, Function, Shape, Value

Path = tuple[Callable[[Any], Any], ...]
# When elements were written, their addresses, and what was there: numbers, or the last writer of each and its element.
Write = tuple[int, Any, Any]

# A read of more writes than this settles them, if a write stands for no more elements than this.
MANY = 3
ELEMENTS = 4096


class Storage:
    """The memory that an array and its views share: a base value, and the writes since."""

    __slots__ = (
        "base", "parts", "addresses", "dtype", "version", "writes", "writer", "element", "written", "unwritten",
        "borrowed", "made", "settled", "history", "rewound", "raw", "log",
    )  # fmt: skip

    def __init__(self, base: Value, parts: tuple[Part, ...] = ()) -> None:
        # The parts without a record in which it was made for certain.
        self.base, self.parts = base, parts
        self.dtype = plain(base).dtype
        self.addresses: Any = None
        self.version = 0
        self.writes: list[Value] = []
        # For each address: which write was the last, and which of the written elements went there.
        self.writer: Any = None
        self.element: Value = None
        self.unwritten: list[weakref.ref[Tracer]] | None = []
        # For each address, when it was last written to.
        self.written: Any = None
        # When it was made, and last settled; what it was before that, for parts that began before and run again.
        self.made = self.settled = next(clock)
        self.history: Any = None
        self.rewound = False
        # Writes since then, with what they wrote over.
        self.log: list[Write] = []
        self.borrowed = False
        # The memory of a plain array that it stands for.
        self.raw: Any = None

    def locate(self, path: Path) -> Value:
        """The addresses of what `path` selects."""
        if self.addresses is None:
            addresses = np.arange(size_of(self.base)).reshape(shape_of(self.base))
            if not contiguous(self.base):  # what is a view depends on the order in memory
                addresses, laid = np.empty_like(outline(self.base), int), addresses
                addresses[...] = laid
            self.addresses = addresses
        addresses = self.addresses
        for step in path:
            addresses = step(addresses)
        return addresses

    def note(self, view: Tracer) -> None:
        """Remember an array of this memory, to be told of the first write."""
        if self.unwritten is None:
            view.become_mutable()
            return
        self.unwritten.append(weakref.ref(view))
        if len(self.unwritten) & (len(self.unwritten) - 1) == 0:  # at each doubling, forget those that are gone
            self.unwritten = [ref for ref in self.unwritten if ref() is not None]

    def second_runs(self, parts: tuple[Part, ...]) -> list[Part]:
        """Those of the parts that run for the second time, and before which the memory was there."""
        return [part for part in parts if part.again is not None and part not in self.parts and self.made < part.begun]

    def state(self) -> dict[str, Value]:
        names = ("base", "writes", "writer", "element", "written", "settled", "history", "rewound", "log")
        return {name: getattr(self, name) for name in names}

    def restore(self, state: dict[str, object]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self.version = next(clock)

    def rewind(self, time: int) -> None:
        """Be as at a time."""
        while self.history is not None and self.settled > time:
            self.base, self.writes, self.writer, self.element, self.log, self.settled, self.history = self.history
        first = bisect.bisect(self.log, time, key=operator.itemgetter(0))
        undone, self.log = self.log[first:], self.log[:first]
        self.writer, self.element = copied(self.writer), copied(self.element)
        if any(type(before) is not tuple for _, _, before in undone):
            self.base = self.base.copy()
        for _, addresses, before in reversed(undone):
            if type(before) is tuple:
                self.writer[addresses], self.element[addresses] = before
                continue
            self.base.reshape(-1)[addresses] = before
            if self.writer is not None:
                self.writer[addresses] = -1
        self.version = next(clock)
        self.rewound = self.borrowed = True

    def _note(self, addresses: Value, plainly: bool) -> None:
        """Keep what a write writes over, if a part has begun since that was written."""
        if not Part.first or self.written is not None and np.all(self.written[addresses] > Part.latest):
            return
        before: Value = -1, 0
        if plainly:
            before = self.base.reshape(-1)[addresses].copy()
        elif self.writer is not None:
            before = self.writer[addresses].copy(), self.element[addresses].copy()
        self.log.append((self.version, addresses, before))

    def write(self, addresses: Value, value: Value) -> None:
        if parts := PARTS.get():
            rewind(self, parts)
        if self.rewound:
            self.writes, self.written, self.rewound = self.writes.copy(), copied(self.written), False
            self.writer, self.element = copied(self.writer), copied(self.element)
        for part in parts:
            if part.running and (part not in self.parts or self.raw is not None):
                part.touched.setdefault(self, []).append(addresses)
        for ref in self.unwritten or ():
            view = ref()
            if view is not None:
                view.become_mutable()
        self.unwritten = None
        self.version = next(clock)
        if self.raw is not None:
            self.raw.wrote(addresses, value)
        plainly = not self.writes and not isinstance(value, Tracer) and type(self.base) is np.ndarray
        self._note(addresses, plainly)
        if self.written is None:
            self.written = np.zeros(self.addresses.size, int)
        self.written[addresses] = self.version
        if not plainly:
            self._append(addresses, value)
            return
        if self.borrowed:
            self.base, self.borrowed = self.base.copy(), False
        self.base.reshape(-1)[addresses] = value

    def _append(self, addresses: Value, value: Value) -> None:
        """Write to the log of writes."""
        if self.writer is None:
            self.writer = np.full(self.addresses.size, -1)
            self.element = np.zeros(self.addresses.size, int)
        self.writes.append(value)
        self.element[addresses] = np.arange(addresses.size).reshape(addresses.shape) if addresses.ndim else 0
        self.writer[addresses] = len(self.writes) - 1

    def settle(self) -> Value:
        """The whole value; the log of writes is empty afterwards."""
        if self.writes:
            if self.log or self.settled < Part.latest:
                before = (self.base, self.writes, self.writer, self.element, self.log, self.settled, self.history)
                self.settled, self.history = next(clock), before
            # It may be a number that was written everywhere, spread, or what `history` keeps: a write goes to a copy.
            self.base, self.borrowed = self.read(self.addresses), True
            self.writes, self.writer, self.element, self.log = [], None, None, []
        return self.base

    def read(self, addresses: Value) -> Value:
        """The values at some addresses."""
        value = self._read(addresses)
        return laid_as(value, addresses) if np.ndim(addresses) else value

    def _read(self, addresses: Value) -> Value:
        if parts := PARTS.get():
            rewind(self, parts)
        if not self.writes:
            return self._from_base(addresses)
        if np.ndim(addresses) == 0:
            write = self.writer[addresses]
            if write < 0:
                return self._from_base(addresses)
            return self._cast(_elements(self.writes[write], self.element[addresses], ()))
        writers, elements = self.writer[addresses], self.element[addresses]
        if addresses.size == 0:
            return self._from_base(addresses)
        if addresses is not self.addresses and self.settles(writers, parts):
            self.settle()
            return self._from_base(addresses)
        first = writers.item(0)
        if (writers == first).all():
            if first < 0:
                return self._from_base(addresses)
            return self._cast(_elements(self.writes[first], elements, addresses.shape))
        return self._of_several(writers.ravel(), elements.ravel(), addresses)

    def _of_several(self, writers: Value, elements: Value, addresses: Value) -> Value:
        """The values at some addresses that several writes went to."""
        order = np.argsort(writers, kind="stable")
        chosen, starts = np.unique(writers[order], return_index=True)
        places = np.split(order, starts[1:])
        written = [(self.writes[k], at) for k, at in zip(chosen, places, strict=True) if k >= 0]
        values = [v if ndim_of(v) == 0 else _elements(v, elements[at], at.shape) for v, at in written]
        kept = [int(at[0]) if len(at) == 1 and ndim_of(v) == 0 else at for v, at in written]
        start = self._from_base(addresses) if chosen[0] < 0 else np.zeros(addresses.shape, self.dtype)
        return operations.overwrite(start, *values, places=tuple(kept))

    def settles(self, writers: Value, parts: object) -> bool:
        """Whether a read settles all writes: one of many writers in a memory that is not much larger.

        A read of one write costs some ten microseconds, as much as thousands of elements. So the settled elements are
        paid for by the writes that are gone afterwards, and filling an array and reading it takes linear time.
        """
        size, count = self.addresses.size, len(self.writes)
        if parts or count < MANY or size > ELEMENTS * count:
            return False
        few = writers.ravel()[: 4 * MANY]
        return len(np.unique(few)) > MANY

    def _from_base(self, addresses: Value) -> Value:
        if addresses is self.addresses:
            return self.base
        return getitem(self.base, index=np.unravel_index(addresses, self.addresses.shape))

    def _cast(self, value: Value) -> Value:
        if isinstance(value, Tracer):
            kind = plain(value)
            # A Python float in an array of doubles stays one: its operations are faster.
            return value if np.result_type(kind) == self.dtype else value.astype(self.dtype)
        return np.asarray(value, self.dtype)[()]


def laid_as(value: Value, memory: Value) -> Value:
    """A value with its elements in the order in which they lie in memory: sums go by it."""
    laid: Any = outline(value)
    if memory.flags.c_contiguous and laid.flags.c_contiguous:
        return value
    if 0 in _steps(memory):  # an element stands for several
        first = tuple([slice(0, 1) if step == 0 else slice(None) for step in memory.strides])
        return np.broadcast_to(laid_as(getitem(value, index=first), memory[first]), memory.shape)
    back = tuple([slice(None, None, -1) if step < 0 else slice(None) for step in memory.strides])
    wanted, found = (np.empty_like(array[back], bool) for array in (memory, laid))
    alike = wanted.strides == found.strides and min(_steps(laid[back]), default=1) > 0
    if alike or not wanted.flags.forc:
        return value
    order = "C" if wanted.flags.c_contiguous else "F"
    if min(memory.strides) >= 0:
        return value.copy(order)
    return getitem(getitem(value, index=back).copy(order), index=back)


def _steps(array: Value) -> list[int]:
    """The strides along axes that have more than one element."""
    return [step for step, n in zip(array.strides, array.shape, strict=True) if n > 1]


def copied(array: Value) -> Value:
    return None if array is None else array.copy()


def flat(value: Value) -> Value:
    return value if ndim_of(value) == 1 else np.ravel(value)


def _elements(value: Value, elements: Value, shape: Shape) -> Value:
    """Some elements of a written value, by their number in the region that it was written to."""
    size = size_of(value)
    if size == 1:
        if isinstance(plain(value), np.ndarray):  # the element, and no array that could be written to
            value = getitem(value, index=(0,) * ndim_of(value))
        return value if shape == () else np.broadcast_to(value, shape)
    if np.size(elements) == size and np.array_equal(np.ravel(elements), np.arange(size)):
        return value if shape_of(value) == shape else np.reshape(value, shape)
    return flat(value)[elements]


class Half:
    """The step to the real or imaginary parts of complex elements, whose addresses are those of the elements."""

    def __init__(self, take: Value, combine: Function) -> None:
        self.take, self.combine = take, combine

    def __call__(self, value: Value) -> Value:
        return self.take(value) if dtype_of(value).kind == "c" else value


class Handle:
    """An array's link to its memory: the storage, the way to its elements, and when it was last read.

    With a `half` it sees the real or imaginary parts of the elements alone.
    """

    __slots__ = ("storage", "path", "addresses", "version", "half")

    def __init__(
        self, storage: Storage, path: Path = (), addresses: Value = None, version: int = 0, half: Half | None = None
    ) -> None:
        self.storage, self.path, self.addresses, self.version = storage, path, addresses, version
        self.half = half

    @property
    def dtype(self) -> DType:
        dtype = self.storage.dtype
        return dtype if self.half is None else np.empty(0, dtype).real.dtype

    def elements(self, addresses: Value) -> Value:
        """The values at some addresses, as the handle sees them."""
        value = self.storage.read(addresses)
        return value if self.half is None else self.half(value)

    def write(self, addresses: Value, value: Value) -> None:
        if self.half is not None:
            value = self.half.combine(self.storage.read(addresses), value)
        self.storage.write(addresses, value)

    def attach(self, value: Tracer) -> None:
        value.handle = self

    def located(self) -> Value:
        if self.addresses is None:
            self.addresses = self.storage.locate(self.path)
        return self.addresses

    def outline(self) -> Value:
        """An array of the handle's shape: the addresses, unless nobody has needed them yet."""
        return self.located() if self.path or self.addresses is not None else plain(self.storage.base)

    def shared(self, value: Value) -> Value:
        """The plain value, for somebody who keeps it: the next write goes to a copy of the memory."""
        self.storage.borrowed = True
        return value

    def exposed(self, value: Value) -> Value:
        """The plain value, for code that could write to it: it must not reach memory that is shared."""
        if self.storage.borrowed:
            value = value.view()
            value.flags.writeable = False
        return value

    def read(self) -> Value:
        """The value now."""
        addresses, storage = self.located(), self.storage
        passing = [part for part in PARTS.get() if part not in storage.parts]
        for part in passing:
            part.read.append(self)
        if passing or (addresses is not storage.addresses and 2 * addresses.size < storage.addresses.size):
            return self.elements(addresses)
        value = storage.settle()
        for step in self.path:
            value = step(value)
        return value
