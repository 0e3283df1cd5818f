"""Keep Python's search for cyclic garbage away from what a handler records.

A reverse derivative keeps something of every operation until its end. None of that is garbage, and each of it is freed
when its last reference goes; but the collector looks through all of it again and again, which took up to four times the
time of the derivative. So where an activation of a handler that `records` is in the current context, what a search of
the young objects has left counts as old at once, unseen. No switch is thrown that another thread would meet, or that an
error, a fork or a continuation that never goes on could leave thrown: outside the handler, and in other threads, all is
as before. Objects that the user froze (`gc.freeze`) are left alone.
"""

import gc
from typing import Any

from effgrad.effects.effect import frames

# Handlers of programs nest a few deep; beyond this, the search is not worth its time.
NEAREST = 32


def _recording() -> bool:
    frame = frames.get()
    for _ in range(NEAREST):
        if frame is None:
            return False
        if frame.activation is not None and frame.activation.records:
            return True
        frame = frame.below
    return False


def age(phase: str, info: dict[str, Any]) -> None:
    """Let the objects that a search of the collector has left count as old, if they are a record."""
    if phase == "stop" and info["generation"] < 2 and _recording() and not gc.get_freeze_count():
        gc.freeze()  # moves all objects out of the generations, at the price of linking three lists
        gc.unfreeze()  # and back, to the oldest


gc.callbacks.append(age)
