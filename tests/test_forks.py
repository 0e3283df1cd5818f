"""A fork waits for the locks that guard what a child needs whole, those too that are made while it waits."""

import os
import threading

import pytest

from effgrad import forks

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def test_a_fork_waits_for_locks_that_are_made_while_it_waits(monkeypatch):
    """As an import of LLVM makes one: a child was forked in the middle of a call of LLVM, and waited there forever."""
    monkeypatch.setattr(forks, "_ours", [])
    monkeypatch.setattr(forks, "_of_others", [])
    importing = forks.lock(waits=True)
    imported, blocked, whole, other = threading.Event(), threading.Event(), [], threading.RLock()

    def importer():
        with importing:
            imported.set()
            blocked.wait(0.2)  # until the fork waits; nothing tells when it does
            forks.wait_for(other)
            other.acquire()  # its first call begins before the import ends
        whole.append(False)
        blocked.wait(0.2)
        whole.append(True)
        other.release()

    thread = threading.Thread(target=importer)
    thread.start()
    imported.wait(10)
    child = os.fork()
    if child == 0:
        os._exit(whole != [False, True])
    status = os.waitpid(child, 0)[1]
    thread.join(10)
    assert status == 0
