"""Waiting with an end: a test that would hang fails, and no process outlives the test that started it."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time


@contextlib.contextmanager
def within(seconds):
    """Raise `TimeoutError` in the main thread when the block takes longer, and again every five seconds."""

    def ring(*_):
        raise TimeoutError(f"this took longer than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, 5)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def run_apart(function, folder, seconds=55):
    """Run a function of a test module, given a folder, in a new process; return what it printed there.

    The process takes SIGINT as an interrupt, also where this one ignores it, as the background jobs of a shell do. It
    leads a group of its own, which is killed when the time is over; fails if a process of the group outlives it by ten
    seconds. The output goes to a file: a pipe would stay open for as long as any process of the group has it.
    """
    program = (
        "import pathlib, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        f"import {function.__module__} as module; module.{function.__name__}(pathlib.Path({str(folder)!r}))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    output = pathlib.Path(folder) / "output"
    with open(output, "wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
            env=environment, start_new_session=True,
        )  # fmt: skip
        try:
            status = process.wait(seconds)
            left = _outlived(process.pid, 10)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"took longer than {seconds} seconds:\n{output.read_text()}") from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)
    assert status == 0, output.read_text()
    assert not left, f"the processes {left} were left behind:\n{output.read_text()}"
    return output.read_text()


def _outlived(group, seconds):
    """Return the processes of a group that still run after some seconds."""
    end = time.monotonic() + seconds
    while (left := _running(group)) and time.monotonic() < end:
        time.sleep(0.05)
    return left


def _running(group):
    """Return the names of a group's processes by /proc, where there is one; a zombie does not run."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, rest = stat.read_text().partition("(")[2].rpartition(")")
            state, _, its_group = rest.split()[:3]
            if int(its_group) == group and state not in "ZX":
                found.append(f"{stat.parent.name} ({name})")
    return found
