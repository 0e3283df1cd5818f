"""Parts of a program that run again, checkpoints, and the memory that they read and write.

A second run sees arrays as they were for the first: each memory (`effgrad.arrays.memory.Storage`) keeps what later
writes write over, and is wound back until the run ends. What a part has written to arrays from before are results of
it, like what it returns.
"""

import itertools
from contextvars import ContextVar

import numpy as np

from effgrad.living import LivingSet
from effgrad.vocabulary import Value

clock = itertools.count(1)


class Part:
    """A run of a part of the program whose record is not kept: a checkpoint's first run, or `again` its second.

    What it reads of arrays from before is not kept by them either. A second run sees these arrays as they were when the
    first began, and those inside it, which run again when it has ended, as they were in it.
    """

    latest = 0
    # The first runs of checkpoints that may run again.
    first: LivingSet["Part"] = LivingSet()

    def __init__(self, again: "Part | None" = None) -> None:
        self.begun = Part.latest = next(clock)
        self.again, self.running = again, True
        if again is None:
            Part.first.add(self)
        self.read: list[Value] = []
        # Arrays from before as they were when it came to them, and as it left them.
        self.rewound: dict[Value, Value] = {}
        self.left: dict[Value, Value] = {}
        # The arrays from before that it has written to, with the addresses of each write.
        self.touched: dict[Value, list[Value]] = {}

    def written(self) -> list[Value]:
        """The elements of arrays from before that it has written, one vector of each array, which takes their place.

        All elements of an array whose memory it has made, by the first traced number in it: that may have been read.
        """
        found = []
        for storage, places in [*self.touched.items()]:
            if storage.raw is None or storage.raw.owner() is not None:  # else nobody has it any more
                places = [storage.addresses] if storage.made > (self.again or self).begun else places
                addresses = np.unique(np.concatenate([*map(np.ravel, places)]))
                found.append(storage.read(addresses))
                storage.write(addresses, found[-1])
        return found

    def end(self) -> None:
        self.running = False
        for handle in self.read:
            handle.version = -1
        for storage, state in self.rewound.items():
            self.left[storage] = storage.state()
            storage.restore(state)
        self.rewound.clear()
        self.touched.clear()


# The parts without a record around, the innermost last. Inside a second run's own checkpoints, it may have ended.
PARTS: ContextVar[tuple[Part, ...]] = ContextVar("effgrad_parts", default=())


def rewind(storage: Value, parts: tuple[Part, ...]) -> None:
    """In second runs, let an array from before be as it was for the first, until the innermost ends."""
    again: list[Part] = storage.second_runs(parts)
    if again:
        innermost = next(part for part in reversed(again) if part.running)
        if storage not in innermost.rewound:
            before = storage.state()
            for part in again:
                if storage in part.left:
                    storage.restore(part.left[storage])
                elif storage not in part.rewound and part.again is not None:
                    storage.rewind(part.again.begun)
            innermost.rewound[storage] = before
