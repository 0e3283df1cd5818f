"""Locks that survive a fork.

A forked child has only the thread that forked, so a lock that another thread held would stay closed in it for ever.
The locks made here are open in the child.
"""

import os
import threading
from typing import Any

from effgrad.living import LivingSet
from effgrad.vocabulary import Value

_locks = LivingSet[Any]()
# The locks that a fork waits for. It acquires effgrad's own first, in this order, and then those of other libraries,
# because no code of effgrad runs while one of the latter is held.
_ours: list[Value] = []
_of_others: list[Value] = []
# The locks that the fork under way has acquired.
_held_by_fork: list[Value] = []


def lock(waits: bool = False) -> Value:
    """Return a new reentrant lock, which is open in a forked child.

    With `waits`, a fork waits until the lock is open, so the child never sees half an update of the data that it
    guards. A thread that holds such a lock may acquire only locks made after it.
    """
    made = threading.RLock()
    if waits:
        _ours.append(made)
    else:
        _locks.add(made)
    return made


def wait_for(lock: object) -> None:
    """Make forks wait until a lock of another library is open, and open it in the child."""
    _of_others.append(lock)


def _before() -> None:
    """Acquire all locks that a fork waits for, in their order.

    More of them may be made while it waits, for example when another thread imports LLVM. Then it starts again.
    """
    while True:
        wanted = [*_ours, *_of_others]
        for made in wanted:
            made.acquire()
        if len(wanted) == len(_ours) + len(_of_others):
            _held_by_fork.extend(wanted)
            return
        for made in reversed(wanted):
            made.release()


def _in_parent() -> None:
    while _held_by_fork:
        _held_by_fork.pop().release()


def _in_child() -> None:
    _held_by_fork.clear()
    for made in [*_locks, *_ours, *_of_others]:
        made._at_fork_reinit()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
