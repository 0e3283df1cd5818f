"""Protection of the plain arrays that a recording refers to: later writes must not change the derivative.

Small arrays and arrays of other libraries are copied. For a large array the recording keeps a view. The program's
writes are operations (`effgrad.program`), and before each one the view gets its own copy of the memory (`preserve`). So
an array that nobody writes to is never copied, and no array is locked. Writes by compiled code, or after the function
has returned, are not operations; a checksum detects them when the recording is used.
"""

import functools
import weakref
from typing import Any, Protocol

import numpy as np

from effgrad.arrays.layout import LARGE_BYTES, duplicate
from effgrad.arrays.library_array import BORROWED, LibraryArray
from effgrad.arrays.marks import marking, refuse_marked
from effgrad.errors import Overwritten
from effgrad.vocabulary import Array, Value

# The checksum adds rows of this many words. It is prime, so that swapping rows of a matrix changes the sums.
_COLUMNS = 997
ARRAYS = frozenset((np.ndarray, LibraryArray))


class Protected:
    """The large arrays that one recording refers to."""

    def __init__(self) -> None:
        # The program's array, the recording's view of it, and its checksum.
        self.arrays: dict[int, tuple[Array, Array, Value]] = {}
        self.copies: dict[int, tuple[Value, Value]] = {}

    def keep(self, array: Value) -> Value:
        """Return the array's current elements: a copy, or a view that gets its own memory before the first write."""
        if type(array) is LibraryArray:
            return self._copy(array)
        if marking:
            refuse_marked(array)
        if (
            array.nbytes < LARGE_BYTES
            or not array.flags.c_contiguous
            or type(array) is not np.ndarray
            or array.dtype.hasobject
        ):
            return duplicate(array, shared=True)
        known = self.arrays.get(id(array))
        if known is None:
            known = self.arrays[id(array)] = array, array.view(), _checksum(array)
            listen(self)
        return known[1]

    def _copy(self, array: Value) -> Value:
        """Return a copy of another library's array. The same copy is returned while the array's elements stay equal."""
        if array.shadow is not BORROWED:
            return array
        known = self.copies.get(id(array.primal))
        if known is None or not array.owner.same(known[1], array):
            known = self.copies[id(array.primal)] = array, array.copy()
        return known[1]

    def preserve(self, written: Array) -> None:
        """Move the recorded views of an array's memory to memory of their own, before the program writes there."""
        for key, (array, view, _) in list(self.arrays.items()):
            if np.may_share_memory(array, written):
                # The tape refers to the view object itself, and NumPy has no other way to move an array's memory.
                there: Any = view
                there.__setstate__((1, view.shape, view.dtype, False, view.tobytes()))
                del self.arrays[key]

    def verify(self) -> None:
        """Raise `Overwritten` if an array has changed since it was recorded."""
        for array, _, checksum in self.arrays.values():
            if not np.array_equal(_checksum(array), checksum):
                raise Overwritten(
                    f"an array of shape {array.shape} that the derivative needs was written to after its use, by "
                    "compiled code or after the function had returned; give the function a copy of it"
                )


class Listener(Protocol):
    """An object that refers to arrays of the program, such as a recording."""

    def preserve(self, written: Array) -> None:
        """Hear that the program is about to write to an array."""


# What listens to writes, such as recordings with views of the program's large arrays. Each write walks them; this is
# not a WeakSet, because to walk an empty one takes a microsecond.
_records: dict[int, weakref.ref[Listener]] = {}


def listen(record: Listener) -> None:
    """Call `record.preserve` with each plain array that the program is about to write to, while `record` lives."""
    _records[id(record)] = weakref.ref(record, functools.partial(_records.pop, id(record)))


def preserve(array: Array) -> None:
    """Let recordings save the elements of an array's memory before the program writes to it."""
    for ref in tuple(_records.values()):
        record = ref()
        if record is not None:
            record.preserve(array)


def _checksum(array: Array) -> Value:
    data = array.reshape(-1).view(np.uint8)
    words = data[: data.size // 8 * 8].view(np.uint64)
    whole = words.size // _COLUMNS * _COLUMNS
    sums = np.add.reduce(words[:whole].reshape(-1, _COLUMNS), axis=0)
    return np.concatenate([sums, words[whole:], data[data.size // 8 * 8 :].astype(np.uint64)])
