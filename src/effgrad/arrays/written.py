"""Plain arrays that traced values were written to: a table from the arrays' memory to the traced values in it.

The program's array stays the object that NumPy made, for every name, view and container that refers to it. The table
is keyed by the array that owns the memory, which a view finds through its `base`; the view's address and strides give
its elements. The memory itself holds the program's plain numbers, and a marked NaN (`effgrad.arrays.marks`) in place
of each traced number. When the outermost derivative ends, plain numbers replace the marks.
A memory belongs to one run of a derivative (`Session`); other threads do not see it.
"""

import functools
import weakref
from collections import deque
from contextvars import Context, ContextVar
from types import TracebackType
from typing import Any

import numpy as np

from effgrad import forks
from effgrad.arrays.common_buffers import APART, OVER_BUFFERS, keeps_buffer, memory_beside, note_buffer
from effgrad.arrays.handle import ArrayHandle, ComplexPart
from effgrad.arrays.layout import DOUBLES, address_of, has_field, memory_at, owner_of
from effgrad.arrays.library_array import LibraryArray
from effgrad.arrays.marks import mark, marking, no_mark
from effgrad.arrays.memory import Storage
from effgrad.arrays.parts import PARTS, Part, clock
from effgrad.arrays.record import preserve
from effgrad.arrays.registries import Registry
from effgrad.arrays.traced import OUTERMOST, Mutable
from effgrad.arrays.value import HOLDERS, LISTS, Tracer, example, operations, plain, plain_tree
from effgrad.arrays.write_log import picked, put
from effgrad.errors import Detached
from effgrad.living import forgetting
from effgrad.vocabulary import Array, DType, Index, Value

Place = tuple[Any, ComplexPart | None]
# The steps from complex memory to a view of its real or imaginary parts.
REAL = ComplexPart(np.real, lambda z, part: part + 1j * np.imag(z))
IMAGINARY = ComplexPart(np.imag, lambda z, part: np.real(z) + 1j * part)


class Idle(dict[int, "Memory"]):
    """The memories that a session has opened, while it has opened none or has ended; then dropping it does nothing.

    It has no `__del__`, as an interrupt that arrives in one is lost.
    """

    __slots__ = ("token",)
    token: int  # of the session, to which memories must not refer: it ends when it is dropped

    def end(self) -> None:
        """Do nothing."""

    def __setitem__(self, key: int, memory: "Memory") -> None:
        self.__class__ = Held  # type: ignore[assignment]
        self[key] = memory


class Held(dict[int, "Memory"]):
    """The memories that a session has opened."""

    __slots__ = ("token",)
    token: int

    def end(self) -> None:
        """Replace the marks in the arrays by plain numbers.

        It may run twice, and the second time after a later session has written to the same arrays.
        """
        for key, memory in self.copy().items():
            if memories.get(key) is memory:
                memory.write_back()
                memories.pop(key, None)
        marking.discard(self.token)
        with _opening:
            if not memories:
                Tracer.direct.update(HOLDERS - LISTS)
        self.__class__ = Idle  # type: ignore[assignment]

    __del__ = end  # an interrupt may come where nobody else can end it


class Session:
    """A run of an outermost derivative, the memories that it wrote traced values to, and caches of such values."""

    __slots__ = ("started", "held", "caches", "closures")

    def __init__(self) -> None:
        self.caches: dict[Any, Any] = {}
        self.closures: Any = None  # those that were rewritten for it
        self.held: Held | Idle = Idle()
        self.held.token = self.started = next(clock)

    @property
    def idle(self) -> bool:
        return isinstance(self.held, Idle)

    def owns(self, memory: "Memory") -> bool:
        return memory.token == self.started

    def end(self) -> None:
        try:
            self.held.end()
        finally:  # an interrupt may have stopped the first call
            self.held.end()
            if self.closures is not None:
                self.closures.forget()


_session: ContextVar[Session | None] = ContextVar("effgrad_session", default=None)
# The memories of all sessions, by the id of their owner. While there are none, reads and operators need no look-up.
memories: dict[int, "Memory"] = {}
# Guards the invariant that arrays and containers are in `Tracer.direct` only while there are no memories.
_opening = forks.lock()


class session:  # noqa: N801 (a context)
    """The outermost of these contexts begins and ends a session."""

    def __enter__(self) -> None:
        self.outermost: Any = None
        if _session.get() is None:
            self.outermost = Session()
            _session.set(self.outermost)

    def __exit__(self, kind: type, error: BaseException | None, traceback: TracebackType | None) -> None:
        if self.outermost is not None:
            try:
                _session.set(None)
            finally:
                self.outermost.end()


class rerunning_session:  # noqa: N801 (a context)
    """A context to rerun a part of the program in its session, whose arrays hold their traced values until it ends."""

    def __init__(self, context: Context) -> None:
        self.session = context.get(_session)

    def __enter__(self) -> None:
        self.before: list[tuple[Array, Memory, Array]] = []
        self.outside = _session.get()
        # Otherwise the session still runs, or the rerun of an enclosing part ends it.
        self.ends = self.outside is not self.session and self.session is not None and self.session.idle
        _session.set(self.session)
        # A copy, since the collector may drop an entry while a list of pairs is made.
        for memory in self.session.held.copy().values() if self.session is not None else ():
            owner = memory.owner()
            if owner is not None and id(owner) not in memories:
                self.before.append((owner, memory, memory.flat.copy()))
                enter(id(owner), memory)

    def __exit__(self, kind: type, error: BaseException | None, traceback: TracebackType | None) -> None:
        _session.set(self.outside)
        if self.ends:
            self.session.end()  # type: ignore[union-attr]
        for owner, memory, numbers in self.before:
            memory.flat[...] = numbers
            memory.marked[...] = False
            memories.pop(id(owner), None)


def running() -> Session | None:
    """Return the session of the derivative that runs in this context."""
    return _session.get()


def logs_all() -> bool:
    """Whether all writes must be logged: a part of the session may run again."""
    session = _session.get()
    return session is not None and Part.latest > session.started


class Memory:
    """The elements of one dtype in the memory of the array `owner`, in its shape or flat, and the log of writes."""

    def __init__(self, owner: Array, dtype: DType, session: Session, storage: Storage | None = None) -> None:
        low, high = np.lib.array_utils.byte_bounds(owner)
        self.start, self.dtype, self.records, self.token = low, dtype, owner.dtype, session.started
        key, held = id(owner), session.held
        self.owner = weakref.ref(owner, forgetting(memories, key))
        self.dropped = weakref.ref(owner, forgetting(held, key))
        # An array at the owner's address that does not keep the memory alive: it is used only while the owner lives.
        self.flat = memory_at(low, (high - low) // dtype.itemsize, dtype)
        self.kept = owner if storage is not None or keeps_buffer(owner) else None  # others may share this memory
        in_order = storage is None and owner.dtype == dtype and owner.flags.c_contiguous and owner.ndim > 0
        if storage is None:  # slices of an array of the owner's shape take less time than places in a flat one
            storage = Storage(self.flat.reshape(owner.shape if in_order else -1).copy(), PARTS.get())
        self.storage, self.places = storage, np.ascontiguousarray(storage.locate(()))
        self.storage.raw = self
        self.mark = mark(dtype)
        self.marked = np.zeros(self.flat.size, bool)
        self.views: dict[int, tuple[Any, Place]] = {}
        self.values: dict[int, tuple[Any, int, Any]] = {}
        if in_order:
            self.views[id(owner)] = self.owner, (self.places, None)

    def place(self, array: Array) -> Place:
        """Return the addresses of an array's elements, and `REAL` or `IMAGINARY` if it sees only that part of them."""
        known = self.views.get(id(array))
        if known is None:
            gone = weakref.ref(array, forgetting(self.views, id(array)))
            known = self.views[id(array)] = gone, self._place(array)
        return known[1]

    def _place(self, array: Array) -> Place:
        size, half = self.dtype.itemsize, None
        offset = address_of(array) - self.start
        if array.dtype != self.dtype and self.dtype.kind == "c" and array.dtype == np.empty(0, self.dtype).real.dtype:
            half, offset = (IMAGINARY, offset - size // 2) if offset % size else (REAL, offset)
        elif array.dtype != self.dtype:
            advice = "use x.astype(dtype)" if array.dtype.names is None else "read its fields"
            raise Detached(f"memory that holds traced values of {self.dtype} was read as {array.dtype}: {advice}")
        if offset % size or any(stride % size for stride in array.strides):
            advice = "np.dtype(..., align=True) for records" if half is None else "x.real and x.imag for x.view(float)"
            raise Detached(f"memory that holds traced values was read in between its elements: use {advice}")
        if not array.size:
            return np.empty(array.shape, int), half
        strides = [stride // size * self.places.itemsize for stride in array.strides]
        start = offset // size * self.places.itemsize
        at = np.ndarray(array.shape, self.places.dtype, self.places, start, strides)
        at.flags.writeable = array.flags.writeable
        return at, half

    def value(self, array: Array) -> Value:
        """Return an array's current value."""
        known = self.values.get(id(array))
        if known is not None and known[1] == self.storage.version and not PARTS.get():
            return known[2]
        at, half = self.place(array)
        value = self.storage.read(at) if half is None else half(self.storage.read(at))
        if not PARTS.get():
            gone = weakref.ref(array, forgetting(self.values, id(array)))
            self.values[id(array)] = gone, self.storage.version, value
        return value

    def handle(self, array: Array) -> Value:
        """Return a `Mutable` that reads and writes an array through this memory, for functions that write in place."""
        at, half = self.place(array)
        result: Value = Mutable(OUTERMOST, None, None)
        path = () if self.storage.addresses is at else (functools.partial(picked, addresses=at, memory=self.places),)
        handle = ArrayHandle(self.storage, path if half is None else (*path, half), at, version=-1, half=half)
        handle.array = array
        handle.attach(result)
        return result

    def is_unmarkable_field(self, array: Array) -> bool:
        """Whether an array is a view of a field of records whose dtype cannot hold traced values."""
        if self.records.names is None or array.dtype.kind in "fcV":
            return False
        start = address_of(array) - self.start
        return has_field(self.records, start % self.records.itemsize, array.dtype)

    def wrote(self, at: Value, value: Value) -> None:
        """Copy a write to the storage into the array's own memory: plain numbers, or marks for traced ones."""
        traced = isinstance(value, Tracer)
        if traced:
            marking.add(self.token)
            self.storage.base = base_like(self.storage.base, example(value, form=True))
        put(self.marked, at, self.places, traced)
        if (owner := self.owner()) is not None:  # keeps the memory while it is written to
            put(self.flat, at, self.places, self.mark if traced else value)
        del owner

    def write_back(self) -> None:
        """Replace the marks by plain numbers, without performing operations: the activation has ended."""
        owner = self.owner()  # keeps the memory while it is written to
        if owner is None or not self.marked.any():
            return
        storage, (at,) = self.storage, np.nonzero(self.marked)
        numbers = np.array(np.broadcast_to(numbers_of(storage.base), self.places.shape)).reshape(-1)[at]
        if storage.writes:
            writers, order = storage.writes.sources(at, storage.addresses)
            for k in np.unique(writers[writers >= 0]):
                chosen, value = writers == k, numbers_of(storage.writes.values[k])
                numbers[chosen] = value.reshape(-1)[0 if value.size == 1 else order[chosen]]
        self.flat[at], self.marked[at] = numbers, False


def base_like(base: Value, value: Value) -> Value:
    """Return the base of a memory after a write of `value`: converted to the library of the value, if it has one."""
    return value.owner.held(base) if type(value) is LibraryArray and type(base) is np.ndarray else base


def numbers_of(value: Value) -> Array:
    """The plain numbers of a value, as a NumPy array."""
    value = example(value)
    return value.owner.numpy(value.primal) if type(value) is LibraryArray else np.asarray(value)


def memory_of(array: Array) -> Memory | None:
    """Return the memory of a plain array, or None if the session that runs here has written no traced value there."""
    owner = array if array.base is None else owner_of(array)
    memory, session = memories.get(id(owner)), _session.get()
    if memory is None and session is not None and (owner.base is not None or OVER_BUFFERS in session.caches):
        memory = memory_beside(owner, memories, session)
    if memory is None:
        return None
    return memory if session is not None and session.owns(memory) and not memory.is_unmarkable_field(array) else None


# How to read an object whose data are an array, such as a sparse matrix of SciPy's, by its class.
READERS = Registry()


def read(value: Value, within: tuple[object, ...] = ()) -> Value:
    """Return a value in which each plain array that traced values were written to is replaced by its traced value.

    `within` are the enclosing containers; a container that contains itself is returned unchanged.
    """
    if not memories or isinstance(value, Tracer):
        return value
    if isinstance(value, np.ndarray):
        return value if (memory := memory_of(value)) is None else memory.value(value)
    kind = type(value)
    if kind not in (list, tuple, dict, deque) and not isinstance(value, tuple):
        return READERS[kind](value) if kind in READERS else value
    return _with_items_read(value, within)


def _with_items_read(value: Any, within: tuple[object, ...]) -> Any:
    kind, items = type(value), value.values() if type(value) is dict else value
    held = any(isinstance(item, np.ndarray | list | tuple | deque) or type(item) in READERS for item in items)
    if not held or any(value is outer for outer in within):
        return value
    now = [read(item, (*within, value)) for item in items]
    if kind is dict:
        return dict(zip(value, now, strict=True))
    return deque(now, value.maxlen) if kind is deque else list(now) if kind is list else tuple.__new__(kind, now)


def item_of(memory: Memory, array: Array, key: Index) -> Value:
    """Return `array[key]` of an array that holds traced values: NumPy's own view, or the traced elements."""
    key = plain_tree(key)
    result = array[key]
    if result.dtype.names is not None or isinstance(result, np.ndarray) and np.may_share_memory(result, array):
        return result
    at, half = memory.place(array)
    value = memory.storage.read(at[key])
    value = value if half is None else half(value)
    return value.copy("K") if np.ndim(result) else value  # the program may write to it


def whole_memory(value: Value) -> Value:
    """Return the value of the whole memory of a plain array that was written to; return other values unchanged."""
    if type(value) is not np.ndarray or not memories or (known := memory_of(value)) is None:
        return value
    kept = known.storage
    return kept.read(kept.addresses) if kept.reruns(PARTS.get()) else kept.merge_writes()


def write_number(memory: Memory, array: Array, key: Index, value: Value) -> bool:
    """Write a real number to one element of an array with a memory. Return False if the write is of another form."""
    if type(plain(value)) not in DOUBLES or type(value) is Mutable or not array.flags.writeable:
        return False
    at, half = memory.place(array)
    address = at[key]
    if half is not None or not isinstance(address, np.integer):
        return False
    preserve(array)
    memory.storage.write(address, value)
    return True


def memory_for(array: Array) -> Memory:
    """Return the memory of a plain array, and create it if there is none."""
    memory, session = memory_of(array), _session.get()
    if memory is not None or session is None:
        assert memory is not None
        return memory
    if array.dtype.kind not in "fc":
        raise no_mark(array)
    owner = owner_of(array)
    if owner.dtype.hasobject:
        raise Detached("a traced value was written into a field of an array of objects: make an array of floats")
    memory = Memory(owner, owner.dtype if owner.dtype.kind in "fc" else array.dtype, session)
    session.held[id(owner)] = memory
    note_buffer(owner, session)
    enter(id(owner), memory)
    return memory


def enter(key: int, memory: Memory) -> None:
    """Add a memory to the table: from now on, operators of arrays and of containers look there."""
    with _opening:
        memories[key] = memory
        if (session := _session.get()) is not None:
            session.caches.pop(APART, None)
        Tracer.direct.difference_update(HOLDERS)


def handle(array: Array) -> Value:
    """Return a `Mutable` that writes to a plain array, which stays the program's own object."""
    if not array.flags.writeable:
        raise ValueError("assignment destination is read-only")
    preserve(array)
    return memory_for(array).handle(array)


operations.read = read
