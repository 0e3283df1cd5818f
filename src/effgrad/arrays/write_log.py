"""The writes to a memory since they were last merged, and which elements a write or a read selects.

The addresses of a memory are numbers in an array of the memory's shape (`effgrad.arrays.memory`). A selection of them
that is itself a view is given by slices. NumPy reads and writes slices much faster than listed places, and so do the
rules of `getitem` and `setitem`.
"""

import numpy as np

from effgrad.arrays.element_places import Place, are_distinct, place_of, within
from effgrad.arrays.layout import ndim_of, shape_of, size_of
from effgrad.arrays.value import Tracer, operations, plain
from effgrad.vocabulary import Index, Shape, Value

# NumPy takes less time for a list of so many places than it takes to make a view.
SHORT = 128


class WriteLog:
    """The values written to a memory, and for each element the write that it comes from.

    The latter is found when it is first asked for, since a read of the whole memory after one write need not ask.
    """

    __slots__ = ("values", "places", "_writer", "_element")

    def __init__(self) -> None:
        self.values: list[Value] = []
        # The addresses of the writes that `_writer` and `_element` do not know yet, which are the last ones.
        self.places: list[Value] = []
        # For each address: the number of the last write there, or -1, and the index of the element in that write.
        self._writer: Value = None
        self._element: Value = None

    def __bool__(self) -> bool:
        return bool(self.values)

    def append(self, addresses: Value, value: Value) -> None:
        self.values.append(value)
        self.places.append(addresses)

    def copy(self) -> "WriteLog":
        log = WriteLog()
        log.values, log.places = self.values.copy(), self.places.copy()
        if self._writer is not None:
            log._writer, log._element = self._writer.copy(), self._element.copy()
        return log

    def latest(self, addresses: Value, memory: Value) -> Value:
        """Return the value of the last write if it was to these addresses, as the one before a read often is.

        `memory` are all addresses. A write that names an element twice leaves there the last value only.
        """
        if not self.places or self.places[-1].shape != addresses.shape or shape_of(self.values[-1]) != addresses.shape:
            return None
        if not (self.places[-1] == addresses).all() or not are_distinct(place_of(addresses, memory)):
            return None
        return self.values[-1]

    def apart(self, memory: Value) -> tuple[list[tuple[Value, Value]], bool] | None:
        """Return the addresses and the value of each write, and whether all addresses are written.

        None if a write changed elements of another one.
        """
        if len(self.places) < len(self.values):
            return None
        written = np.zeros(memory.size, bool)
        for places in self.places:
            put(written, places, memory, True)
        count = np.count_nonzero(written)
        if count != sum(map(size_of, self.places)):
            return None
        writes = [(at, value) for at, value in zip(self.places, self.values, strict=True) if at.size]
        return writes, count == memory.size

    def sources(self, addresses: Value, memory: Value) -> tuple[Value, Value]:
        """Return, for some addresses, the numbers of the writes that the elements come from, and their indices there.

        `memory` are all addresses. The number is -1 for an element that no write has changed.
        """
        self._find(memory)
        return numbers_at(self._writer, addresses, memory), numbers_at(self._element, addresses, memory)

    def untraced(self, before: Value, memory: Value, indices: list[Index] | None) -> Value:
        """Return which elements hold no traced value after the writes, given which held none before.

        `indices` lead to the elements of each write, if all are slices.
        """
        traced = [isinstance(value, Tracer) for value in self.values]
        if indices is None:
            self._find(memory)
            return np.where(self._writer < 0, before, ~np.array(traced)[self._writer])
        elements = before.reshape(memory.shape)
        for index, derived in zip(indices, traced, strict=True):
            elements[index] = not derived
        return before

    def put_back(self, addresses: Value, memory: Value, sources: tuple[Value, Value]) -> None:
        """Set where elements come from to what `sources` said before a write that is undone."""
        self._find(memory)
        for array, before in zip((self._writer, self._element), sources, strict=True):
            put(array, addresses, memory, before)

    def _find(self, memory: Value) -> None:
        if self._writer is None:
            self._writer, self._element = np.full(memory.size, -1), np.zeros(memory.size, int)
        first = len(self.values) - len(self.places)
        for number, places in enumerate(self.places, first):
            put(self._writer, places, memory, number)
            order = np.arange(places.size).reshape(places.shape) if ndim_of(places) else 0
            put(self._element, places, memory, order)
        self.places = []

    def slices(self, memory: Value) -> list[Index] | None:
        """Return the index of each write into an array of the memory's shape, or None if one is not made of slices."""
        if len(self.places) < len(self.values):
            return None
        indices = [slices(addresses, memory) for addresses in self.places]
        return None if any(index is None for index in indices) else indices


def numbers_at(numbers: Value, addresses: Value, memory: Value) -> Value:
    """Return the elements of a flat array at some addresses."""
    array, index = within(numbers, _place(addresses, memory))
    return array[index]


def put(numbers: Value, addresses: Value, memory: Value, values: Value) -> None:
    """Set the elements of a flat array at some addresses of a memory, whose addresses are all given."""
    array, index = within(numbers, _place(addresses, memory))
    array[index] = values


def _place(addresses: Value, memory: Value) -> Place:
    """Return the place of the elements with some addresses, which are the place themselves if they are few."""
    return place_of(addresses, memory) if addresses.size > SHORT and memory.flags.c_contiguous else addresses


def selected(addresses: Value, memory: Value) -> Index:
    """Return the index that selects some addresses in an array of the memory's shape."""
    index = slices(addresses, memory)
    if index is None and not memory.ndim:  # at most one element, with new axes
        return (None,) * addresses.ndim if addresses.size else False
    return np.unravel_index(addresses, memory.shape) if index is None else index


def picked(value: Value, addresses: Value, memory: Value) -> Value:
    """Return the elements of a value at some addresses of the memory that it fills; a plain array is copied."""
    part = operations.getitem(value, index=selected(addresses, memory))
    return part.copy("K") if type(part) is np.ndarray else part  # later writes may change the array


def slices(addresses: Value, memory: Value) -> Index | None:
    """Return the index of integers and slices that selects some addresses of a memory, or None if there is none.

    Addresses that are a view of the memory's have its strides times the steps of the slices.
    """
    if ndim_of(addresses) == 0:
        return _position(int(addresses), memory.shape)
    shape, strides = addresses.shape, addresses.strides
    if shape == memory.shape and strides == memory.strides:
        return (...,) if addresses is memory or np.may_share_memory(addresses, memory) else None
    if addresses.size == 0 or not np.may_share_memory(addresses, memory):
        return None
    starts, axis = _position(addresses.item(0), memory.shape), 0
    index: list[object] = []
    for length, stride in zip(shape, strides, strict=True):
        if length == 1:
            index.append(None)
            continue
        while axis < memory.ndim:
            start, unit = starts[axis], memory.strides[axis]
            step, rest = divmod(stride, unit)
            axis += 1
            if step and not rest and 0 <= (last := start + (length - 1) * step) < memory.shape[axis - 1]:
                index.append(slice(start, None if last + step < 0 else last + step, step))
                break
            index.append(start)
        else:
            return None
    return (*index, *starts[axis:])


def _position(address: int, shape: Shape) -> Shape:
    """Return the position of an element along each axis of an array, from its number in C order."""
    position = []
    for length in reversed(shape):
        address, at = divmod(address, length)
        position.append(at)
    return (*reversed(position),)


def elements_of(value: Value, elements: Value, shape: Shape) -> Value:
    """Return elements of a written value, given by their index in the region that it was written to."""
    size = size_of(value)
    if size == 1:
        if isinstance(plain(value), np.ndarray):  # take the number out of an array that could be written to
            value = operations.getitem(value, index=(0,) * ndim_of(value))
        return value if shape == () else np.broadcast_to(value, shape)
    if is_whole(value, elements):
        return value if shape_of(value) == shape else np.reshape(value, shape)
    return (value if ndim_of(value) == 1 else np.ravel(value))[elements]


def is_whole(value: Value, elements: Value) -> bool:
    """Whether the elements of a written value with some indices are all of them, in their order."""
    size = size_of(value)
    return np.size(elements) == size and np.array_equal(np.ravel(elements), np.arange(size))


def spread(value: Value, shape: Shape) -> Value:
    """Return a value broadcast to the shape of the elements that it is written to; a number stays a number."""
    given = shape_of(value)
    if given in (shape, ()):
        return value
    while len(given) > len(shape) and given[0] == 1:
        given = given[1:]
    if given != shape_of(value):
        value = np.reshape(value, given)
    if np.broadcast_shapes(given, shape) != shape:
        raise ValueError(f"could not broadcast input array from shape {given} into shape {shape}")
    return np.broadcast_to(value, shape)
