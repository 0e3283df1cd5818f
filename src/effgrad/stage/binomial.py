"""Binomial checkpointing: how far to advance between snapshots, so that reversing a chain of steps runs fewest steps.

Griewank 1992, "Achieving logarithmic growth of temporal and spatial complexity in reverse automatic differentiation";
Griewank and Walther 2000, algorithm 799.
"""

import math


def split(length: int, snapshots: int) -> int:
    """Return how many steps to advance before the next snapshot, so that reversing `length` steps runs fewest steps.

    >>> split(10, snapshots=3)
    4
    """
    if snapshots == 1:
        return length - 1
    times = 1
    while math.comb(snapshots + times, snapshots) < length:
        times += 1
    earlier, later = math.comb(snapshots + times - 1, snapshots), math.comb(snapshots + times - 2, snapshots - 1)
    return max(1, min(earlier, length - later))


def default_memory(length: int) -> int:
    """Return how many carries a loop keeps by default: enough that every step is run at most three times.

    >>> default_memory(200)
    20
    """
    return max(2, math.ceil(math.sqrt(2 * length)))
