"""The layout of the arena, the memory of all values: buffers whose lifetimes do not overlap share memory."""

import heapq
import operator

from effgrad.stage.native.storage import Buffer

ALIGNMENT = 64
# Arguments and results smaller than this are copied into and out of the program's memory.
IN_PLACE_BYTES = 1 << 16
# Loops read arguments of at least this size where the caller has them. To bind a loop to new addresses takes about as
# long as a copy of half as many bytes (6 us, 2026-11-29).
LENT_BYTES = 1 << 19
# At most this many of the largest buffers are packed tightly, which takes time quadratic in their number.
MOST_FITTED = 256


def laid_out(buffers: list[Buffer]) -> int:
    """Give each buffer its place in the arena, and return the size of the arena."""
    large = [b for b in buffers if b.size >= IN_PLACE_BYTES]
    largest = heapq.nsmallest(MOST_FITTED, large, key=lambda b: (-b.size, b.first))
    fitted = set(largest)
    end = _laid_out_quickly([buffer for buffer in buffers if buffer not in fitted])
    placed: list[Buffer] = []
    # The largest buffers come first, each at the lowest place that is free during its lifetime.
    for buffer in largest:
        place = -(-end // ALIGNMENT) * ALIGNMENT
        for other in sorted(placed, key=operator.attrgetter("place")):
            if other.first <= buffer.last and buffer.first <= other.last and other.place < place + buffer.size:
                place = max(place, other.place + _aligned(other.size))
        buffer.place = place
        placed.append(buffer)
    return max([end, *(buffer.place + buffer.size for buffer in placed)])


def _laid_out_quickly(buffers: list[Buffer]) -> int:
    """Give each buffer its place, first come first served, in nearly linear time; return the end of the memory used."""
    free: dict[int, list[int]] = {}  # places of memory that was freed, by its size
    live: list[tuple[int, int, Buffer]] = []
    end = 0
    for number, buffer in enumerate(sorted(buffers, key=operator.attrgetter("first"))):
        while live and live[0][0] < buffer.first:
            _, _, ended = heapq.heappop(live)
            free.setdefault(_aligned(ended.size), []).append(ended.place)
        size = _aligned(buffer.size)
        if max(free, default=0) < size:
            free = _merged(free)
        fitting = size if size in free else min((s for s in free if s > size), default=0)
        if fitting:
            buffer.place = free[fitting].pop()
            if not free[fitting]:
                del free[fitting]
            if fitting > size:
                free.setdefault(fitting - size, []).append(buffer.place + size)
        else:
            buffer.place, end = end, end + size
        heapq.heappush(live, (buffer.last, number, buffer))
    return end


def _merged(free: dict[int, list[int]]) -> dict[int, list[int]]:
    """Return the same free memory, with adjacent pieces joined."""
    merged: list[tuple[int, int]] = []
    for place, size in sorted((place, size) for size, places in free.items() for place in places):
        if merged and sum(merged[-1]) == place:
            merged[-1] = merged[-1][0], merged[-1][1] + size
        else:
            merged.append((place, size))
    sizes: dict[int, list[int]] = {}
    for place, size in merged:
        sizes.setdefault(size, []).append(place)
    return sizes


def _aligned(size: int) -> int:
    unit = 8 if size <= 8 else ALIGNMENT
    return -(-size // unit) * unit
