"""Arrays over one buffer that are no views of each other, such as two of `np.frombuffer(data)`, or `np.from_dlpack(a)`.

Which of them share memory is found by their addresses.
"""

import ctypes
from typing import Any

import numpy as np

from effgrad.arrays.layout import Addressed
from effgrad.errors import Detached
from effgrad.living import LivingSet
from effgrad.vocabulary import Array

# The key, among a session's caches, of the arrays over buffers that share no memory with arrays of traced values.
APART = "arrays over buffers"
# The key that is there if an array over another object's buffer was the first to be written to. An array without a base
# may then be that object: the base is a capsule where the buffer was handed over by DLPack.
OVER_BUFFERS = "memories over buffers"


def note_buffer(owner: Array, session: Any) -> None:
    """Note that a session has a memory over another object's buffer, if the owner of a new memory lies in one."""
    if owner.base is not None and not isinstance(owner.base, Addressed):
        session.caches[OVER_BUFFERS] = True


def keeps_buffer(array: Array) -> bool:
    """Whether an array that is no view of an array lies in the buffer of another object, which it keeps alive.

    An array at an address alone does not: its memory may be freed before the array is.
    """
    base: Any = array.base.obj if isinstance(array.base, memoryview) else array.base
    if base is None or isinstance(base, Addressed):
        return False
    while getattr(base, "_b_base_", None) is not None:
        base = base._b_base_
    if not hasattr(base, "_b_needsfree_"):  # not of ctypes
        return True
    keeping = [part for part in (base._objects or {}).values() if not isinstance(part, int | ctypes.c_void_p)]
    return bool(keeping or base._b_needsfree_ and not isinstance(base, ctypes._Pointer))


def memory_beside(array: Array, memories: dict[int, Any], session: Any) -> Any:
    """Return the memory that holds traced values of the session at the addresses of an array over a buffer, or None."""
    apart = session.caches.setdefault(APART, LivingSet())
    if array in apart:
        return None
    low, high = np.lib.array_utils.byte_bounds(array)
    for memory in memories.copy().values():
        start, end = memory.start, memory.start + memory.flat.nbytes
        if start < high and low < end and session.owns(memory):
            if start <= low and high <= end:
                return memory
            raise Detached(
                "an array shares a part of its memory with another one that holds traced values, and neither is a view "
                "of the other: make both of them views of one array"
            )
    apart.add(array)
    return None
