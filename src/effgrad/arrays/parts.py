"""Checkpoints, the parts of a program that run again, and the memory that they read and write.

A rerun must see arrays as they were in the first run. So each memory (`effgrad.arrays.memory.Storage`) logs the
elements that later writes overwrite, and is rewound until the rerun ends. A part may write to arrays that were made
before it began; the elements written are results of the part, like its return value.
"""

import itertools
from contextvars import ContextVar

import numpy as np

from effgrad.living import LivingSet
from effgrad.vocabulary import Value

clock = itertools.count(1)


class Part:
    """One run of a checkpointed part of the program: its first run, or a rerun of the first run `again`.

    At its end, arrays made before the part drop the values that they have cached in it. A rerun sees these arrays as
    they were when the first run began. A nested checkpoint that reruns after this rerun has ended sees them as they
    were in it.
    """

    # When the newest part began.
    latest = 0
    # The first runs of checkpoints that may run again.
    first: LivingSet["Part"] = LivingSet()

    def __init__(self, again: "Part | None" = None) -> None:
        self.begun = Part.latest = next(clock)
        self.again, self.running = again, True
        if again is None:
            Part.first.add(self)
        self.read: list[Value] = []
        # The states of older memories before this rerun rewound them, and their states at its end.
        self.rewound: dict[Value, Value] = {}
        self.left: dict[Value, Value] = {}
        # The older memories that the part has written to, with the addresses of each write.
        self.touched: dict[Value, list[Value]] = {}

    def written(self) -> list[Value]:
        """Return the elements that the part has written in older memories, as one vector for each memory.

        Each vector is written back in place of the elements. A plain array gets a memory when the first traced number
        is written to it. If the part made the memory, the vector has all its elements, since any may have been read.
        """
        found = []
        for storage, places in [*self.touched.items()]:
            if storage.raw is None or storage.raw.owner() is not None:  # else the program has dropped the array
                places = [storage.addresses] if storage.made_at > (self.again or self).begun else places
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


# The parts that run here, the innermost last. A checkpoint nested in a rerun may run when that rerun has ended.
PARTS: ContextVar[tuple[Part, ...]] = ContextVar("effgrad_parts", default=())


def rewind(storage: Value, parts: tuple[Part, ...]) -> None:
    """In reruns, restore an older memory to its state in the first runs, until the innermost running rerun ends."""
    again: list[Part] = storage.reruns(parts)
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
