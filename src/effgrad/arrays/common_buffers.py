"""Arrays over one buffer that no array owns, such as two of `np.frombuffer(data)`: neither is the other's base.

Which of them share memory is found by their addresses.
"""

from typing import Any

import numpy as np

from effgrad.errors import Detached
from effgrad.living import LivingSet
from effgrad.vocabulary import Array

# The key, among a session's caches, of the arrays over buffers that share no memory with arrays of traced values.
APART = "arrays over buffers"


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
