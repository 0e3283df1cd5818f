"""Memory that is written in place under taped mode, as stateful reverse mode keeps its cells.

A read and a write of elements are one entry of the tape each, and a reverse pass keeps one array of cotangents for the
whole memory: a read adds its cotangent to its elements there, a write takes them out. So both take the time of their
own elements, however often the program has written to the others. While the memory is `Stored`, its elements are plain
numbers in one flat array. `close` makes it an ordinary value again.
"""

from typing import Any

import numpy as np

from effgrad.arrays.element_places import Place, are_distinct, within
from effgrad.arrays.layout import DOUBLES
from effgrad.arrays.traced import Traced, buffer
from effgrad.arrays.value import Tracer, operations, owned_by
from effgrad.primitives.cotangents import Masked, accumulate, dense, known_of, transposed
from effgrad.vocabulary import Activation, Array, Cotangent, DType, Shape, Value

new: Value = object.__new__  # makes a value without calling its __init__


class Stored:
    """A memory that an activation of taped mode writes to in place."""

    __slots__ = ("owner", "flat", "opened", "closed", "__weakref__")

    def __init__(self, owner: Activation, base: Value) -> None:
        traced = owned_by(base, owner)
        elements = np.array(base.primal if traced else base, order="C")
        self.owner, self.flat, self.closed = owner, elements.reshape(-1), None
        self.opened = Opened(len(owner.entries), base.shadow if traced else None, elements.shape, elements.dtype)
        owner.entries.append(self.opened)

    @property
    def is_open(self) -> bool:
        """Whether elements can be read and written here: it is not closed, and its derivative has not ended."""
        return self.closed is None and bool(self.owner.alive)

    @property
    def elements(self) -> Array:
        """The present elements, plain, in the memory's shape."""
        return self.flat.reshape(self.opened.shape)

    def load(self, place: Place) -> Value:
        """Return the elements at a place."""
        array, index = within(self.flat, place)
        found, entries = array[index], self.owner.entries
        result: Traced = new(self.owner.value)
        result.owner, result.shadow = self.owner, len(entries)
        result.primal = found.copy("K") if type(found) is np.ndarray else found
        entries.append(Load(self.opened, place))
        return result

    def store(self, place: Place, value: Value) -> bool:
        """Write a value of the memory's dtype at a place; return False if that is not possible here."""
        name = None
        if isinstance(value, Tracer):
            if not owned_by(value, self.owner):
                return False
            name, value = value.shadow, value.primal
        if type(value) not in DOUBLES and not isinstance(value, np.ndarray | np.floating):
            return False
        if not are_distinct(place):
            return False
        array, index = within(self.flat, place)
        array[index] = value
        self.owner.entries.append(Store(self.opened, place, name, np.ndim(value) == 0))
        return True

    def close(self) -> Value:
        """Return the whole memory as a value, which later writes do not change: this memory must have none."""
        if self.closed is None:
            owner, name = self.owner, len(self.owner.entries)
            owner.entries.append(Closed(self.opened))
            self.closed = owner.value(owner, self.elements, name)
        return self.closed


class Opened:
    """The entry that begins a stored memory. Its cotangent is an `Adjoint`, which the entries after it have left."""

    __slots__ = ("name", "source", "shape", "dtype")

    def __init__(self, name: int, source: int | None, shape: Shape, dtype: DType) -> None:
        self.name, self.source, self.shape, self.dtype = name, source, shape, dtype

    def adjoint(self, collected: Value) -> "Adjoint":
        """Return the cotangents of the memory in a reverse pass."""
        found: Adjoint | None = collected[self.name]
        if found is None:
            size = int(np.prod(self.shape))
            found = collected[self.name] = Adjoint(np.zeros(size, self.dtype), np.zeros(size, bool))
        return found

    def pull(self, collected: Value, adjoint: "Adjoint") -> None:
        if self.source is not None and (whole := adjoint.whole(self.shape)) is not None:
            accumulate(collected, self.source, whole)


class Load:
    """The entry of a read."""

    __slots__ = ("opened", "place")

    def __init__(self, opened: Opened, place: Place) -> None:
        self.opened, self.place = opened, place

    def pull(self, collected: Value, cotangent: Cotangent) -> None:
        self.opened.adjoint(collected).add(self.place, cotangent)


class Store:
    """The entry of a write. It has no result, and so no cotangent of its own."""

    __slots__ = ("opened", "place", "source", "single")

    def __init__(self, opened: Opened, place: Place, source: int | None, single: bool) -> None:
        self.opened, self.place, self.source, self.single = opened, place, source, single

    def pull(self, collected: Value) -> None:
        adjoint = collected[self.opened.name]
        part = None if adjoint is None else adjoint.take(self.place)
        if self.source is None or part is None:
            return
        spread = self.single and type(self.place) is not int  # one number was written to all elements
        accumulate(collected, self.source, np.sum(dense(part)) if spread else part)


class Closed:
    """The entry of the value that a stored memory has become."""

    __slots__ = ("opened",)

    def __init__(self, opened: Opened) -> None:
        self.opened = opened

    def pull(self, collected: Value, cotangent: Cotangent) -> None:
        flat = transposed(lambda g: np.reshape(g, -1), True, cotangent)
        if flat is not None:
            self.opened.adjoint(collected).add(slice(None), flat)


class Adjoint:
    """The cotangents of a memory's elements, and which of them are not structurally zero.

    The values are a plain array, or one that effgrad's own memory holds once a traced cotangent is added.
    """

    __slots__ = ("values", "known")

    def __init__(self, values: Value, known: Array) -> None:
        self.values, self.known = values, known

    def add(self, place: Place, cotangent: Cotangent) -> None:
        if type(place) is int and type(cotangent) in DOUBLES and type(self.values) is np.ndarray:
            self.values[place] += cotangent
            self.known[place] = True
            return
        inside, cotangent = known_of(cotangent), dense(cotangent)
        if isinstance(cotangent, Tracer) or type(self.values) is not np.ndarray:
            self._add_traced(place, cotangent)
        elif type(place) is np.ndarray:
            np.add.at(self.values, place, cotangent)
        else:
            array, index = within(self.values, place)
            array[index] += cotangent
        known, index = within(self.known, place)
        if inside is True or isinstance(inside, Tracer):
            known[index] = True
        else:
            np.logical_or.at(known, index, inside)

    def _add_traced(self, place: Place, cotangent: Cotangent) -> None:
        if type(self.values) is np.ndarray:
            self.values = buffer(self.values)
        place = self._listed(place)
        if type(place) is np.ndarray:
            self.values[...] = self.values + operations.scatter_add(cotangent, shape=self.known.shape, indices=(place,))
        else:
            self.values[place] = self.values[place] + cotangent

    def _listed(self, place: Place) -> Any:
        array, index = within(np.arange(self.known.size), place) if type(place) is tuple else (place, None)
        return array if index is None else np.ascontiguousarray(array)

    def take(self, place: Place) -> Cotangent:
        """Return the cotangent of the elements at a place, and set it to zero; None if it is structurally zero."""
        known, index = within(self.known, place)
        inside = known[index]
        if not np.logical_or.reduce(inside, axis=None):
            return None
        mask = None if inside.all() else inside.copy()
        known[index] = False
        if type(self.values) is np.ndarray:
            array, index = within(self.values, place)
        else:
            array, index = self.values, self._listed(place)
        part = array[index]
        part = part.copy("K") if np.ndim(part) else part
        array[index] = 0.0
        return part if mask is None else Masked(part, mask)

    def whole(self, shape: Shape) -> Cotangent:
        """Return the cotangent of the whole memory, or None."""
        if not self.known.any():
            return None
        values = np.reshape(self.values if type(self.values) is np.ndarray else self.values.copy(), shape)
        return values if self.known.all() else Masked(values, self.known.reshape(shape))
