"""The link of an array to its memory."""

import functools

import numpy as np

from effgrad.arrays.layout import dtype_of, is_read_only, without_axes
from effgrad.arrays.memory import Path, Storage
from effgrad.arrays.parts import PARTS
from effgrad.arrays.value import Tracer, plain
from effgrad.vocabulary import Array, DType, Function, Value


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
        whole = addresses is storage.addresses
        if passing or not whole and (storage.stored is not None or 2 * addresses.size < storage.addresses.size):
            return self.elements(addresses)
        value = storage.merge_writes()
        if storage.are_constants(addresses):
            return self.elements(addresses)
        for step in self.path:
            value = step(value)
        return value if addresses.ndim else without_axes(value)


class ArrayHandle(Handle):
    """The link of a plain array to the memory of the traced values that were written to it."""

    __slots__ = ("array",)
    array: Array
