"""Arrays that are written to: `a[i] = v`, views written through, and arrays made empty and filled in a loop.

A traced value never changes; an array that the program writes to is a *variable* whose value does. Its memory is a
`Storage`: a base value and a log of writes. The array and its views are handles on the storage, each with the
addresses of its elements. The addresses are themselves a NumPy array, indexed, reshaped and transposed as the program
does with the handle, so which elements two handles share is NumPy's own answer. A read takes each element from its
last writer; a loop that fills an array therefore takes linear time, and leaves one operation (`overwrite`).

Until something is written, arrays are ordinary traced values: `alias` only notes which ones are views of which.
"""

import itertools
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import numpy as np

from effgrad.arrays.value import (
    OPERATORS,
    Evaluation,
    Tracer,
    as_index,
    contiguous,
    getitem,
    held,
    is_lazy,
    outline,
    plain,
    plain_tree,
    take_shape,
)
from effgrad.errors import Detached, Irreproducible
from effgrad.primitives import cotangents
from effgrad.primitives.primitive import moving

Path = tuple[Callable[[Any], Any], ...]

clock = itertools.count(1)


class Part:
    """A run of a part of the program whose record is not kept: a checkpoint's first run, or `again` its second.

    What it reads of arrays from before is not kept by them either. A second run sees these arrays as they were in the
    first, and must not read elements that have been written to since.
    """

    latest = 0

    def __init__(self, again: "Part | None" = None) -> None:
        self.begun = Part.latest = next(clock)
        self.again, self.running = again, True
        self.read: list[Handle] = []
        self.rewound: dict[Storage, Any] = {}

    def end(self) -> None:
        self.running = False
        for handle in self.read:
            handle.version = -1
        for storage, state in self.rewound.items():
            storage.restore(state)
        self.rewound.clear()


# The parts without a record around, the innermost last. Inside a second run's own checkpoints, it may have ended.
PARTS: ContextVar[tuple[Part, ...]] = ContextVar("effgrad_parts", default=())


def rewind(storage: "Storage", parts: tuple[Part, ...]) -> list[Part]:
    """In second runs, let an array from before be as in the first, until the innermost ends; these runs."""
    again = storage.second_runs(parts)
    if again:
        innermost = next(part for part in reversed(again) if part.running)
        if storage not in innermost.rewound:
            innermost.rewound[storage] = storage.state()
            storage.rewind(min(part.again.begun for part in again if part.again is not None))
    return again


class Outermost(Evaluation):
    """Owns arrays made inside a derivative that hold no traced value yet: NumPy evaluates what is done with them."""

    serial = -2

    def apply(self, primitive: Any, *args: Any, **params: Any) -> Any:
        return primitive.function(*[plain(a) for a in args], **params)

    def constant(self, value: Any) -> Any:
        return value.handle.shared(value.primal)

    def released(self, value: Any) -> Any:
        return value.primal

    def exposed(self, value: Any) -> Any:
        return value.handle.exposed(value.primal)


OUTERMOST = Outermost()


def buffer(array: Any) -> Any:
    """A fresh array as one of ours: code whose writes are not seen can write traced values into it."""
    result: Any = Mutable(OUTERMOST, array, None)
    # np.ascontiguousarray would give a number an axis.
    Handle(Storage(np.asarray(array, order="C"), PARTS.get())).attach(result)
    return result


def as_plain(value: Any) -> Any:
    """An array that holds no traced value as a plain one, whose operations are faster; anything else as it is."""
    return value.owner.constant(value) if type(value) is Mutable and value.owner is OUTERMOST else value


# A read of more writes than this settles them, if a write stands for no more elements than this.
MANY = 3
ELEMENTS = 4096


class Storage:
    """The memory that an array and its views share: a base value, and the writes since."""

    __slots__ = (
        "base", "parts", "addresses", "dtype", "version", "writes", "writer", "element", "written", "unwritten",
        "borrowed", "made", "settled", "history", "rewound", "raw",
    )  # fmt: skip

    def __init__(self, base: Any, parts: tuple[Part, ...] = ()) -> None:
        # The parts without a record in which it was made for certain.
        self.base, self.parts = base, parts
        self.dtype = plain(base).dtype
        self.addresses: Any = None
        self.version = 0
        self.writes: list[Any] = []
        # For each address: which write was the last, and which of the written elements went there.
        self.writer: Any = None
        self.element: Any = None
        self.unwritten: list[weakref.ref[Tracer]] | None = []
        # For each address, when it was last written to.
        self.written: Any = None
        # When it was made, and last settled; what it was before that, for parts that began before and run again.
        self.made = self.settled = next(clock)
        self.history: Any = None
        self.rewound = False
        self.borrowed = False
        # The memory of a plain array that it stands for.
        self.raw: Any = None

    def locate(self, path: Path) -> Any:
        """The addresses of what `path` selects."""
        if self.addresses is None:
            addresses = np.arange(np.size(plain(self.base))).reshape(np.shape(plain(self.base)))
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
            become_mutable(view)
            return
        self.unwritten.append(weakref.ref(view))
        if len(self.unwritten) & (len(self.unwritten) - 1) == 0:  # at each doubling, forget those that are gone
            self.unwritten = [ref for ref in self.unwritten if ref() is not None]

    def second_runs(self, parts: tuple[Part, ...]) -> list[Part]:
        """Those of the parts that run for the second time, and before which the memory was there."""
        return [part for part in parts if part.again is not None and part not in self.parts and self.made < part.begun]

    def state(self) -> dict[str, Any]:
        names = ("base", "writes", "writer", "element", "written", "settled", "history", "rewound")
        return {name: getattr(self, name) for name in names}

    def restore(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self.version = next(clock)

    def rewind(self, time: int) -> None:
        """Be as at a time, apart from the writes since then."""
        while self.history is not None and self.settled > time:
            self.base, self.writes, self.writer, self.element, self.settled, self.history = self.history
        self.version = next(clock)
        self.rewound = self.borrowed = True

    def check(self, again: list[Part], addresses: Any) -> None:
        """Whether second runs read only what the first could."""
        for part in again:
            times = 0 if self.written is None else self.written[addresses]
            if part.again is not None and np.any((times > part.again.begun) & (times < part.begun)):
                raise Irreproducible(
                    "a checkpointed function reads an array that is written to later, and would see other numbers when "
                    "it is run again: pass it a copy, or the elements themselves"
                )

    def write(self, addresses: Any, value: Any) -> None:
        if parts := PARTS.get():
            rewind(self, parts)
        if self.rewound:
            self.writes, self.written, self.rewound = self.writes.copy(), copied(self.written), False
            self.writer, self.element = copied(self.writer), copied(self.element)
        for ref in self.unwritten or ():
            view = ref()
            if view is not None:
                become_mutable(view)
        self.unwritten = None
        self.version = next(clock)
        if self.raw is not None:
            self.raw.wrote(addresses, value)
        if self.written is None:
            self.written = np.zeros(self.addresses.size, int)
        self.written[addresses] = self.version
        if not self.writes and not isinstance(value, Tracer) and type(self.base) is np.ndarray:
            if self.borrowed:
                self.base, self.borrowed = self.base.copy(), False
            self.base.reshape(-1)[addresses] = value
            return
        if self.writer is None:
            self.writer = np.full(self.addresses.size, -1)
            self.element = np.zeros(self.addresses.size, int)
        self.writes.append(value)
        self.element[addresses] = np.arange(np.size(addresses)).reshape(np.shape(addresses))
        self.writer[addresses] = len(self.writes) - 1

    def settle(self) -> Any:
        """The whole value; the log of writes is empty afterwards."""
        if self.writes:
            if self.settled < Part.latest:
                before = (self.base, self.writes, self.writer, self.element, self.settled, self.history)
                self.settled, self.history = next(clock), before
            # It may be a number that was written everywhere, spread, or what `history` keeps: a write goes to a copy.
            self.base, self.borrowed = self.read(self.addresses), True
            self.writes, self.writer, self.element = [], None, None
        return self.base

    def read(self, addresses: Any) -> Any:
        """The values at some addresses."""
        value = self._read(addresses)
        return laid_as(value, addresses) if np.ndim(addresses) else value

    def _read(self, addresses: Any) -> Any:
        if parts := PARTS.get():
            self.check(rewind(self, parts), addresses)
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

    def _of_several(self, writers: Any, elements: Any, addresses: Any) -> Any:
        """The values at some addresses that several writes went to."""
        order = np.argsort(writers, kind="stable")
        chosen, starts = np.unique(writers[order], return_index=True)
        places = np.split(order, starts[1:])
        written = [(self.writes[k], at) for k, at in zip(chosen, places, strict=True) if k >= 0]
        values = [v if np.ndim(plain(v)) == 0 else _elements(v, elements[at], at.shape) for v, at in written]
        kept = [int(at[0]) if len(at) == 1 and np.ndim(plain(v)) == 0 else at for v, at in written]
        start = self._from_base(addresses) if chosen[0] < 0 else np.zeros(addresses.shape, self.dtype)
        return overwrite(start, *values, places=tuple(kept))

    def settles(self, writers: Any, parts: Any) -> bool:
        """Whether a read settles all writes: one of many writers in a memory that is not much larger.

        A read of one write costs some ten microseconds, as much as thousands of elements. So the settled elements are
        paid for by the writes that are gone afterwards, and filling an array and reading it takes linear time.
        """
        size, count = self.addresses.size, len(self.writes)
        if parts or count < MANY or size > ELEMENTS * count:
            return False
        few = writers.ravel()[: 4 * MANY]
        return len(np.unique(few)) > MANY

    def _from_base(self, addresses: Any) -> Any:
        if addresses is self.addresses:
            return self.base
        return getitem(self.base, index=np.unravel_index(addresses, self.addresses.shape))

    def _cast(self, value: Any) -> Any:
        if isinstance(value, Tracer):
            kind = plain(value)
            # A Python float in an array of doubles stays one: its operations are faster.
            return value if np.result_type(kind) == self.dtype else value.astype(self.dtype)
        return np.asarray(value, self.dtype)[()]


def laid_as(value: Any, memory: Any) -> Any:
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


def _steps(array: Any) -> list[int]:
    """The strides along axes that have more than one element."""
    return [step for step, n in zip(array.strides, array.shape, strict=True) if n > 1]


def copied(array: Any) -> Any:
    return None if array is None else array.copy()


def _elements(value: Any, elements: Any, shape: tuple[int, ...]) -> Any:
    """Some elements of a written value, by their number in the region that it was written to."""
    size = np.size(plain(value))
    if size == 1:
        if isinstance(plain(value), np.ndarray):  # the element, and no array that could be written to
            value = getitem(value, index=(0,) * np.ndim(plain(value)))
        return value if shape == () else np.broadcast_to(value, shape)
    if np.size(elements) == size and np.array_equal(np.ravel(elements), np.arange(size)):
        return value if np.shape(plain(value)) == shape else np.reshape(value, shape)
    return np.ravel(value)[elements]


class Half:
    """The step to the real or imaginary parts of complex elements, whose addresses are those of the elements."""

    def __init__(self, take: Any, combine: Any) -> None:
        self.take, self.combine = take, combine

    def __call__(self, value: Any) -> Any:
        return self.take(value) if np.result_type(plain(value)).kind == "c" else value


class Handle:
    """What an array keeps about its memory: the storage, the way to its elements, and when it was last read.

    With a `half` it sees the real or imaginary parts of the elements alone.
    """

    __slots__ = ("storage", "path", "addresses", "version", "half")

    def __init__(
        self, storage: Storage, path: Path = (), addresses: Any = None, version: int = 0, half: Half | None = None
    ) -> None:
        self.storage, self.path, self.addresses, self.version = storage, path, addresses, version
        self.half = half

    @property
    def dtype(self) -> Any:
        dtype = self.storage.dtype
        return dtype if self.half is None else np.empty(0, dtype).real.dtype

    def elements(self, addresses: Any) -> Any:
        """The values at some addresses, as the handle sees them."""
        value = self.storage.read(addresses)
        return value if self.half is None else self.half(value)

    def write(self, addresses: Any, value: Any) -> None:
        if self.half is not None:
            value = self.half.combine(self.storage.read(addresses), value)
        self.storage.write(addresses, value)

    def attach(self, value: Tracer) -> None:
        value.handle = self

    def located(self) -> Any:
        if self.addresses is None:
            self.addresses = self.storage.locate(self.path)
        return self.addresses

    def outline(self) -> Any:
        """An array of the handle's shape: the addresses, unless nobody has needed them yet."""
        return self.located() if self.path or self.addresses is not None else plain(self.storage.base)

    def shared(self, value: Any) -> Any:
        """The plain value, for somebody who keeps it: the next write goes to a copy of the memory."""
        self.storage.borrowed = True
        return value

    def exposed(self, value: Any) -> Any:
        """The plain value, for code that could write to it: it must not reach memory that is shared."""
        if self.storage.borrowed:
            value = value.view()
            value.flags.writeable = False
        return value

    def read(self) -> Any:
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


_OWNER, _PRIMAL, _SHADOW = (Tracer.__dict__[name] for name in ("owner", "primal", "shadow"))
_CLASS: Any = object.__dict__["__class__"]


def _current(descriptor: Any) -> Any:
    """A slot of a mutable array, brought up to date with its memory."""

    def get(self: Any) -> Any:
        handle = self.handle
        if parts := PARTS.get():
            rewind(handle.storage, parts)
        if handle.version != handle.storage.version:
            value = handle.read()
            handle.version = handle.storage.version
            traced = isinstance(value, Tracer)
            _OWNER.__set__(self, value.owner if traced else OUTERMOST)
            _PRIMAL.__set__(self, value.primal if traced else value)
            _SHADOW.__set__(self, value.shadow if traced else None)
        return descriptor.__get__(self)

    return property(get, descriptor.__set__)


class Mutable(Tracer):
    """An array whose memory has been written to, or may absorb traced values."""

    __slots__ = ()
    owner = _current(_OWNER)
    primal = _current(_PRIMAL)
    shadow = _current(_SHADOW)
    shape = property(lambda self: self.handle.outline().shape, lambda self, shape: take_shape(self, shape))
    ndim = property(lambda self: self.handle.outline().ndim)
    size = property(lambda self: self.handle.outline().size)
    dtype = property(lambda self: self.handle.dtype)

    def __init__(self, owner: Any, primal: Any, shadow: Any) -> None:
        _OWNER.__set__(self, owner)
        _PRIMAL.__set__(self, primal)
        _SHADOW.__set__(self, shadow)

    def __len__(self) -> int:
        return len(self.handle.outline())

    def __getitem__(self, index: Any) -> Any:
        index = as_index(index)
        handle = self.handle
        addresses = handle.located()[index]
        if isinstance(addresses, np.ndarray) and np.may_share_memory(addresses, handle.addresses):
            result: Any = Mutable(None, None, None)
            path = (*handle.path, lambda value: getitem(value, index=index))
            Handle(handle.storage, path, addresses, version=-1, half=handle.half).attach(result)
            return result
        value = handle.elements(addresses)
        if np.ndim(addresses):
            value = value.copy("K")  # of what was written, where all is from one write
        return value

    def plain(self) -> Any:
        """What `plain` finds: the array holds a plain value, or one that an activation keeps."""
        owner, primal, shadow = self.owner, self.primal, self.shadow
        return plain(primal if owner is OUTERMOST else held(owner, primal, shadow))

    def contiguous(self) -> bool:
        return contiguous(self.handle.outline())

    def addresses(self) -> Any:
        return self.handle.located()

    def __copy__(self) -> Any:
        owner, primal, shadow = self.owner, self.primal, self.shadow
        return primal.copy() if owner is OUTERMOST else held(owner, primal, shadow)




def memory(array: Tracer) -> Any:
    """The value of the whole memory of an array, which is read through it from now on; without any, the array."""
    handle: Handle | None = getattr(array, "handle", None)
    if handle is None:
        return array
    become_mutable(array)
    handle.located()
    storage = handle.storage
    return storage.read(storage.addresses) if storage.second_runs(PARTS.get()) else storage.settle()


def is_written(array: Any) -> bool:
    """Whether an array, or one that shares its memory, has been written to."""
    handle: Handle | None = getattr(array, "handle", None)
    return handle is not None and handle.storage.written is not None


def become_mutable(array: Tracer) -> None:
    """From now on the array is read through its memory."""
    array.handle.version = -1
    _CLASS.__set__(array, Mutable)


def alias(result: Any, source: Any, step: Callable[[Any], Any]) -> Any:
    """`result`, noted as a view of `source`; `step` is what made it, and applies to the addresses too."""
    if not isinstance(source, Tracer) or not (isinstance(result, Tracer) or type(source) is Mutable):
        return result
    handle = _handle(source)
    half = step if type(step) is Half else handle.half
    if not isinstance(result, Tracer):  # all that the array holds now is plain
        view: Any = Mutable(None, None, None)
        Handle(handle.storage, (*handle.path, step), version=-1, half=half).attach(view)
        return view
    Handle(handle.storage, (*handle.path, step), half=half).attach(result)
    handle.storage.note(result)
    return result


def _handle(array: Any) -> Handle:
    handle: Handle | None = getattr(array, "handle", None)
    if handle is None:
        handle = Handle(Storage(held(array.owner, array.primal, array.shadow)))
        handle.attach(array)
        handle.storage.note(array)
    return handle


def _asked(item: Any) -> Any:
    """A truth value of another library in an index, which NumPy would take for a number."""
    return bool(item) if isinstance(item, Tracer) and item.dtype.kind == "b" and item.ndim == 0 else item


def write(array: Tracer, index: Any, value: Any) -> None:
    """`array[index] = value`."""
    if type(array) is not Mutable and is_lazy(array):  # what has memory of its own is not read to be written
        value = np.array(value) if type(value) in (list, tuple) else value
        _replace(array, OPERATORS["setitem"](array, value, index=as_index(index)))
    else:
        _write(array, index, value)


def _write(array: Tracer, index: Any, value: Any) -> None:
    """`array[index] = value`, in memory that views may share."""
    if type(array) is not Mutable and not isinstance(plain(array), np.ndarray):
        raise TypeError(f"a number of type {type(plain(array)).__name__} cannot be assigned to by index")
    if type(value) in (list, tuple):
        value = np.array(value)
    handle = _handle(array)
    index = plain_tree(index)
    addresses = handle.located()[tuple(map(_asked, index)) if type(index) is tuple else _asked(index)]
    shape, given = np.shape(addresses), np.shape(plain(value))
    if given != shape and given != ():
        while len(given) > len(shape) and given[0] == 1:
            given = given[1:]
        if given != np.shape(plain(value)):
            value = np.reshape(value, given)
        if np.broadcast_shapes(given, shape) != shape:
            raise ValueError(f"could not broadcast input array from shape {given} into shape {shape}")
        value = np.broadcast_to(value, shape)
    if np.result_type(plain(value)).kind == "c" and handle.dtype.kind != "c":
        raise Detached("a complex value was assigned into a real array, which would lose its imaginary part")
    if isinstance(plain(value), np.ndarray):
        # It may be written to later, as a view without axes, too.
        value = value.__copy__() if isinstance(value, Tracer) else value.copy("K")
    handle.write(addresses, value)


def assign(array: Tracer, value: Any) -> None:
    """`array[...] = value`, for augmented assignment and `out=`."""
    fits = isinstance(value, Tracer) and np.shape(plain(value)) == array.shape and plain(value).dtype == array.dtype
    if fits and type(array) is type(value) and getattr(array, "handle", None) is None:
        _replace(array, value)
    else:
        write(array, ..., value)


def _replace(array: Tracer, value: Tracer) -> None:
    array.owner, array.primal, array.shadow = value.owner, value.primal, value.shadow
    if type(array) is not type(value):
        _CLASS.__set__(array, type(value))


def _overwrite(base: Any, *values: Any, places: Any) -> Any:
    # A derivative that is real may be written to with complex parts.
    kind = np.result_type(base, *values) if any(map(np.iscomplexobj, values)) else None
    result = np.array(base, kind, order="C")  # whose flat view is a view
    flat = result.reshape(-1)
    for at, value in zip(places, values, strict=True):
        flat[at] = value
    return result


def _parts(wanted: list[int], g: Any, base: Any, *values: Any, places: Any) -> Any:
    for index in wanted:
        if index == 0:
            written = np.concatenate([np.atleast_1d(at) for at in places])
            yield overwrite(g, 0.0, places=(written,))
        else:
            at = np.unravel_index(places[index - 1], np.shape(plain(g)))
            yield cotangents.unbroadcast(g[at], values[index - 1])


overwrite: Any = moving(_overwrite, _parts, name="overwrite")


OPERATORS.update(write=write, assign=assign, alias=alias)
