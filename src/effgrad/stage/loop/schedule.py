"""Binomial checkpointing: where the reverse of a loop keeps states, so that it reruns the fewest steps.

Griewank 1992, "Achieving logarithmic growth of temporal and spatial complexity in reverse automatic differentiation";
Griewank and Walther 2000, algorithm 799.

With `slots` checkpoints besides the state at its start, and `levels` forward runs, a stretch of at most ``C(slots +
levels, levels)`` chunks can be reversed. The stretch is cut into segments. The first and longest may use all slots
while it is reversed, and at the last all slots are taken. Each segment is reversed with one forward run less. So a
segment that begins when `left` slots are left ends where the next one begins, and a table gives how much of the stretch
remains at that place.
"""

import math
from dataclasses import dataclass

import numpy as np

# More levels save little: with this many, there is a checkpoint for each doubling of the number of steps.
MOST_LEVELS = 20


@dataclass(frozen=True)
class Schedule:
    """The reverse of a loop by `levels` of segments, with `slots + 1` checkpoints at a time.

    The shortest segments have `chunk` steps, and save what each of these needs.
    """

    levels: int
    slots: int
    chunk: int

    @property
    def reach(self) -> int:
        """The most steps that the schedule can reverse."""
        return self.chunk * math.comb(self.slots + self.levels, self.levels)

    def remaining(self, level: int) -> np.ndarray:
        """How many steps of a stretch remain where a segment begins; element ``left + 1`` is for `left` slots.

        >>> Schedule(levels=2, slots=3, chunk=1).remaining(2)
        array([ 0,  1,  3,  6, 10])
        """
        return np.array([0, *[self.chunk * math.comb(left + level, level) for left in range(self.slots + 1)]])

    def bytes(self, state: int, record: float) -> int:
        """The bytes that are kept, given the bytes of a state and of the record of a step."""
        return state * (self.slots + 1) + round(record * self.chunk)


@dataclass(frozen=True)
class Stretches:
    """The reverse of a loop of unknown length: it keeps a state before each stretch of steps.

    The first `alike` stretches have `chunk` steps, the next `alike` have twice as many, and so on. A stretch is
    reversed in parts of `chunk` steps, which save what each step needs. After i stretches there have been at least
    `chunk * i**2 / (2 * alike)` steps, and `i * (1 + 1 / alike)` states are kept.
    """

    chunk: int
    alike: int

    levels = 2


def stretches(state: int, record: int, room: int) -> Stretches:
    """The stretches that fit in `room` bytes: for the records of the first steps and of a part, and for states.

    >>> stretches(8, 8, 8_000)
    Stretches(chunk=125, alike=62)
    """
    return Stretches(max(room // (8 * record), 1), max(room // (16 * max(state, record)), 1))


def schedule(count: int, state: int, record: float, room: int) -> tuple[Schedule | None, int]:
    """The schedule with the fewest reruns of each step that keeps at most `room` bytes, and the bytes that it keeps.

    If none keeps so few, it is the schedule that keeps the fewest bytes; None if the record of all steps has the
    fewest.

    Arguments:
        count: the steps of the loop.
        state: the bytes of what the loop carries.
        record: the bytes that the reverse of a step needs.

    >>> schedule(10_000, 8, 8.0, 2_000)
    (Schedule(levels=1, slots=99, chunk=100), 1600)
    >>> schedule(10_000, 8, 8.0, 1_000)
    (Schedule(levels=2, slots=25, chunk=29), 440)
    """
    best: tuple[Schedule | None, int] = None, round(count * record)
    state = max(state, 8)
    for levels in range(1, MOST_LEVELS + 1):
        found = min(_balanced(count, levels, state, max(record, 8.0)), key=lambda s: s.bytes(state, record))
        if found.bytes(state, record) < best[1]:
            best = found, found.bytes(state, record)
        if best[1] <= room or found.slots == 1:
            break
    return best


def _balanced(count: int, levels: int, state: int, record: float) -> list[Schedule]:
    """The schedules near the optimum, at which one more state costs as many bytes as it saves of the record.

    The optimum comes from the approximation C(s + t, t) = (s + (t + 1) / 2)**t / t!.
    """
    best = (record / state * count * math.factorial(levels) * levels) ** (1 / (levels + 1)) - (levels + 1) / 2
    few = [slots for slots in range(round(best) - 2, round(best) + 3) if slots >= 1] or [1]
    found = []
    for slots in few:
        chunk = math.ceil(count / math.comb(slots + levels, levels))
        while slots > 1 and chunk * math.comb(slots - 1 + levels, levels) >= count:
            slots -= 1
        found.append(Schedule(levels, slots, chunk))
    return found
