"""Protection of the plain arrays that a recording refers to: later writes must not change the derivative.

A small array is copied, and so is one of another library. A large one is locked against writing while the program
runs, and its checksum is compared when the recording is used, since a view made before can still be written through.
"""

from typing import Any

import numpy as np

from effgrad.arrays.namespace import BORROWED, LibraryArray
from effgrad.errors import Overwritten
from effgrad.primitives.cotangents import LARGE

Array = np.ndarray[Any, Any]
# A prime, so that moving rows of a matrix changes the sums.
_COLUMNS = 997
KEPT = frozenset((np.ndarray, LibraryArray))


class Protected:
    """The large arrays that one recording refers to."""

    def __init__(self) -> None:
        self.arrays: dict[int, tuple[Array, Any]] = {}
        self.copies: dict[int, tuple[Any, Any]] = {}
        self.locked: list[Array] = []

    def keep(self, array: Any) -> Any:
        """The array as it is now: a copy, or itself, locked."""
        if type(array) is LibraryArray:
            return self._copy(array)
        if (
            array.nbytes < LARGE
            or not array.flags.c_contiguous
            or type(array) is not np.ndarray
            or array.dtype.hasobject
        ):
            return array.copy("K")
        if id(array) not in self.arrays:
            self.arrays[id(array)] = array, _checksum(array)
            part: Any = array
            while isinstance(part, np.ndarray):
                if part.flags.writeable:
                    part.flags.writeable = False
                    self.locked.append(part)
                part = part.base
        return array

    def _copy(self, array: Any) -> Any:
        """A copy of another library's array, which has no lock: one as long as the array stays the same."""
        if array.shadow is not BORROWED:
            return array
        known = self.copies.get(id(array.primal))
        if known is None or not array.owner.same(known[1], array):
            known = self.copies[id(array.primal)] = array, array.copy()
        return known[1]

    def release(self) -> None:
        """Unlock; bases first, as NumPy asks, whichever view of one was locked first."""
        for array in sorted(self.locked, key=_depth):
            array.flags.writeable = True
        self.locked.clear()

    def verify(self) -> None:
        """Raises `Overwritten` if an array is not as it was."""
        for array, checksum in self.arrays.values():
            if not np.array_equal(_checksum(array), checksum):
                raise Overwritten(
                    f"an array of shape {array.shape} that the derivative needs was written to after its use, through "
                    "a view or after the function had returned; give the function a copy of it"
                )


class explained:  # noqa: N801 (a context)
    """Say why an array is read-only, if that is what an error in the block is about."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if isinstance(error, ValueError) and "read-only" in str(error):
            error.add_note("a large array that the derivative needs is locked meanwhile: write to a copy, a = a.copy()")


def _depth(array: Any) -> int:
    """How many arrays an array is a view of a view of."""
    return 1 + _depth(array.base) if isinstance(array, np.ndarray) else 0


def _checksum(array: Array) -> Any:
    data = array.reshape(-1).view(np.uint8)
    words = data[: data.size // 8 * 8].view(np.uint64)
    whole = words.size // _COLUMNS * _COLUMNS
    sums = np.add.reduce(words[:whole].reshape(-1, _COLUMNS), axis=0)
    return np.concatenate([sums, words[whole:], data[data.size // 8 * 8 :].astype(np.uint64)])
