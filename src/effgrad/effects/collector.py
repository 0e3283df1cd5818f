"""Keep Python's search for cyclic garbage away from what a handler records.

A reverse derivative keeps something of every operation until its end. None of that is garbage, and each of it is freed
when its last reference goes; but the collector looks through all of it again and again, which took up to four times the
time of the derivative. So where an activation of a handler that `records` is in the current context, what a search of
the young objects has left counts as old at once, unseen. So does, now and then, what the clauses of `around` and `once`
leave to the end, which are outside their handler while they begin. No switch is thrown that another thread would meet,
or that an error, a fork or a continuation that never goes on could leave thrown: outside the handler, and in other
threads, all is as before. Objects that the user froze (`gc.freeze`) are left alone.

The collector calls C alone. Most interrupts that come during a search are raised by the first instruction of Python
after it, and one that is raised in a function that the collector calls is lost: of 930 interrupts at random times it
lost 41 when this was such a function.
"""

import functools
import gc
import operator

from effgrad.effects.effect import Frame, frames

# So many times pass before it is asked again whether the user froze objects.
LOOK_AGAIN = 1000
# No more objects are frozen by the interpreter itself (375 in Python 3.12, none in 3.11 and 3.13).
INTERPRETERS = 1000
# Freezes and thaws by one call from C, in the time of linking three lists: an interrupt between would leave all frozen.
_age = functools.partial(next, zip(iter(gc.freeze, 0), iter(gc.unfreeze, 0), strict=True))


class Old:
    """Lets all objects count as old when its attribute `now` is read."""

    now = property(_age)


class Ageing:
    """Decides whether a record may count as old: not where the user froze objects."""

    def __init__(self) -> None:
        self.passing, self.old = 0, Old()

    def asked(self) -> Old | None:
        """Return the object that lets all count as old, or None."""
        if self.passing:
            self.passing -= 1
        elif gc.get_freeze_count() <= INTERPRETERS:  # which goes through all that are frozen
            return self.old
        else:
            self.passing = LOOK_AGAIN
        return None

    def now(self) -> None:
        """Let all objects count as old."""
        if self.asked():
            _age(None)


class Searched:
    """The end of a search: reading `stop` lets what it has left count as old, if the innermost frame has a record."""

    frame = property(frames.get)
    stop = property(operator.attrgetter("frame.record.now"))


AGEING = Ageing()
# Called with "start" or "stop" and another argument, which is its answer where there is no frame or no record.
gc.callbacks.append(functools.partial(getattr, Searched()))


def recording(frame: Frame) -> None:
    """Note that the handler of a frame records."""
    frame.record = AGEING.asked()
