"""Keep Python's cyclic garbage collector from traversing the records of a handler.

A reverse derivative keeps a record of every operation until its end. None of the records is garbage, and each is freed
when its last reference goes. But the collector traverses all of them again and again, which took up to four times the
time of the derivative. So after each collection, if a handler that `records` is active in the current context, all
surviving objects are moved to the oldest generation without a traversal. The pending clauses of `around` and `once`
begin outside their handler, so they move their generators now and then as well.

No global switch is set. Another thread would meet a switch, and an error, a fork or an abandoned continuation could
leave it set. Outside the handler and in other threads the collector works as usual. Objects that the user froze
(`gc.freeze`) are left alone.

The collector's callback consists of C functions alone. Most interrupts that come during a collection are raised by the
first Python instruction after it. If that instruction belongs to a callback, the collector discards the interrupt: of
930 interrupts at random times, 41 were lost when the callback was a Python function.
"""

import functools
import gc
import operator
from collections.abc import Iterator
from contextlib import contextmanager

from effgrad.effects.effect import Frame, frames

# After frozen objects were found, `Ageing.asked` returns None this many times before it counts them again.
LOOK_AGAIN = 1000
# The interpreter itself freezes fewer objects than this (375 in Python 3.12, none in 3.11 and 3.13).
INTERPRETERS = 1000
# Freeze and thaw all objects in one call to C, which moves them to the oldest generation by linking three lists. An
# interrupt between two calls would leave everything frozen.
_age = functools.partial(next, zip(iter(gc.freeze, 0), iter(gc.unfreeze, 0), strict=True))


class Promotion:
    """An object whose attribute `now`, when read, moves all objects to the collector's oldest generation."""

    now = property(_age)


class Ageing:
    """An object that decides whether all objects may be moved to the oldest generation.

    They may not if the user froze some, since the move would thaw these.
    """

    def __init__(self) -> None:
        self.passing, self.old = 0, Promotion()

    def asked(self) -> Promotion | None:
        """Return the object that moves all objects to the oldest generation, or None if the user froze some."""
        if self.passing:
            self.passing -= 1
        elif gc.get_freeze_count() <= INTERPRETERS:  # the count takes time linear in the number of frozen objects
            return self.old
        else:
            self.passing = LOOK_AGAIN
        return None

    def now(self) -> None:
        """Move all objects to the oldest generation, unless the user froze some."""
        if self.asked():
            _age(None)


class CallbackTarget:
    """The target of the collector's callback: reading `stop` moves all objects to the oldest generation.

    Reading it raises AttributeError if there is no innermost frame or the frame has no record.
    """

    frame = property(frames.get)
    stop = property(operator.attrgetter("frame.record.now"))


AGEING = Ageing()
# The collector calls this with "start" or "stop" and a dictionary. The dictionary serves as the default of `getattr`
# when there is no frame, no record, or no such attribute.
gc.callbacks.append(functools.partial(getattr, CallbackTarget()))


def recording(frame: Frame) -> None:
    """Note on a frame that its handler records."""
    frame.record = AGEING.asked()


@contextmanager
def ageing() -> Iterator[None]:
    """A context, for imports, in which the objects that survive a collection are not traversed again."""
    frame = Frame(None, (), frames.get())
    recording(frame)
    before = frames.set(frame)
    try:
        yield
    finally:
        frames.reset(before)
