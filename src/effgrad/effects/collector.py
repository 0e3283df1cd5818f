"""Keep Python's search for cyclic garbage away from what a handler records.

A reverse derivative keeps something of every operation until its end. None of that is garbage, and each of it is freed
when its last reference goes; but the collector looks through all of it again and again, which took up to four times the
time of the derivative. So where an activation of a handler that `records` is in the current context, what a search of
the young objects has left counts as old at once, unseen. So does, now and then, what the clauses of `around` and `once`
leave to the end, which are outside their handler while they begin. No switch is thrown that another thread would meet,
or that an error, a fork or a continuation that never goes on could leave thrown: outside the handler, and in other
threads, all is as before. Objects that the user froze (`gc.freeze`) are left alone.
"""

import gc
import operator
from typing import Any

from effgrad.effects.effect import frames

# Handlers of programs nest a few deep; beyond this, the search is not worth its time.
NEAREST = 32
# So many searches pass before it is asked again whether the user froze objects.
LOOK_AGAIN = 1000
# No more objects are frozen by the interpreter itself (375 in Python 3.12, none in 3.11 and 3.13).
INTERPRETERS = 1000


def _recording() -> bool:
    frame = frames.get()
    for _ in range(NEAREST):
        if frame is None:
            return False
        if frame.activation is not None and frame.activation.records:
            return True
        frame = frame.below
    return False


def count_as_old() -> bool:
    """Let all objects count as old; not, and false, where the user froze some.

    The time is that of linking three lists. Both calls are made from C: an interrupt between them would leave all
    objects frozen, for good.
    """
    if gc.get_freeze_count() > INTERPRETERS:  # which goes through all that are frozen
        return False
    tuple(map(operator.call, (gc.freeze, gc.unfreeze)))
    return True


class Ageing:
    """Let the objects that a search of the collector has left count as old, if they are a record."""

    def __init__(self) -> None:
        self.passing = 0

    def __call__(self, phase: str, info: dict[str, Any]) -> None:
        if phase == "stop" and info["generation"] < 2 and _recording():
            self.now()

    def now(self) -> None:
        if self.passing:
            self.passing -= 1
        elif not count_as_old():
            self.passing = LOOK_AGAIN


AGEING = Ageing()
gc.callbacks.append(AGEING)
