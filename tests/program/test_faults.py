"""An exception at any line of ours, an interrupt at any time and a fork leave nothing behind."""

import contextlib
import dis
import gc
import itertools
import math
import os
import random
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import scipy.integrate

import effgrad
from effgrad import checkpoint, forks, grad
from effgrad.arrays import marks, written
from effgrad.arrays.parts import PARTS
from effgrad.arrays.value import Smooth
from effgrad.effects import handled
from effgrad.effects.collector import INTERPRETERS
from effgrad.effects.effect import frames

OURS = os.path.dirname(effgrad.__file__)
OUTSIDE = np.arange(4.0)
NUMPY = dict(vars(np))


def writes(x):
    OUTSIDE[1:3] = np.sin(x) * 2.0
    a = np.zeros(3)
    for i in range(3):
        a[i] = OUTSIDE[i] * x
    return np.sum(a * a) + OUTSIDE[2]


def segments(x):
    a = np.zeros(2)
    for _ in range(3):
        a[0] += checkpoint(lambda y: y * y + math.sin(y), x)
    return a.sum()


def second(x):
    return grad(lambda y: np.exp(y) * np.linalg.norm(np.stack([y, x])))(x)


def integral(x):
    return scipy.integrate.quad(lambda t: np.exp(-t * x), 0.0, 1.0)[0]


def staged(x):
    return effgrad.compile(lambda y: np.sum(np.tanh(y * np.ones(3))), backend="numpy")(x)


JOBS = {f.__name__: f for f in (writes, segments, second, integral, staged)}


class Fault(BaseException):
    """Raised where nobody expects an exception."""


def leaves_a_block(frame):
    """Whether Python is about to call the `__exit__` of a `with`, where it answers no signal, but traces the line.

    A fault there would leave a lock closed, for which threads of other tests wait for ever.
    """
    ahead = itertools.islice((i for i in dis.get_instructions(frame.f_code) if i.offset >= frame.f_lasti), 3)
    return all(i.opname == "LOAD_CONST" and i.argval is None for i in ahead)


def run(job, at=None):
    """Run a derivative; raise at a line event of ours, by its number. Returns how many there were."""
    count = 0

    def local(frame, event, arg):
        nonlocal count
        if event == "line":
            count += 1
            if count == at and not leaves_a_block(frame):
                raise Fault
        return local

    def trace(frame, event, arg):
        return local if frame.f_code.co_filename.startswith(OURS) else None

    sys.settrace(trace)
    try:
        grad(job)(0.7)
    finally:
        sys.settrace(None)
    return count


def something_is_left():
    """Whether a run has left a handler, a session, a mark or a changed NumPy; what is left is cleared away."""
    if written.memories or marks.marking:
        gc.collect()
    held = written.memories or marks.marking or written._session.get() or gc.get_freeze_count() > INTERPRETERS
    held = held or PARTS.get() or any(lock._is_owned() for lock in [*forks._locks, *forks._ours])
    left = held or handled(Smooth) or not np.isfinite(OUTSIDE).all()
    assert all(vars(np)[name] is value for name, value in NUMPY.items() if name in vars(np))
    if left:
        written.memories.clear()
        marks.marking.clear()
        written._session.set(None)
        PARTS.set(())
        frames.set(None)
        gc.unfreeze()
        OUTSIDE[:] = np.arange(4.0)
    return bool(left)


def faults_of(job, step):
    expected = grad(job)(0.7)
    lines, left = range(1, run(job), step), 0
    for at in lines:
        with contextlib.suppress(Fault, effgrad.EffgradError, RuntimeError):  # a fault in a callback is swallowed
            run(job, at)
        left += something_is_left()
    assert not left
    assert grad(job)(0.7) == expected


@pytest.mark.thinned(2)
@pytest.mark.parametrize("name", JOBS)
def test_an_exception_at_some_lines_leaves_nothing(name):
    run(JOBS[name])
    faults_of(JOBS[name], max(run(JOBS[name]) // 40, 1))


@pytest.mark.sweep
@pytest.mark.parametrize("name", JOBS)
def test_an_exception_at_every_line_leaves_nothing(name):
    faults_of(JOBS[name], 1)


def interrupted(count):
    """Interrupt derivatives at random times; returns how many interrupts came inside one."""
    rng, caught, left = random.Random(1), 0, 0
    expected = {name: grad(job)(0.7) for name, job in JOBS.items()}
    for _ in range(count):
        name = rng.choice(list(JOBS))
        try:
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-5, 1.5e-3))
            grad(JOBS[name])(0.7)
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            caught += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
        left += something_is_left()
    assert not left
    for name, job in JOBS.items():
        assert grad(job)(0.7) == expected[name]
    return caught


@pytest.fixture
def alarms(monkeypatch):
    """Alarms are interrupts, and none is lost in a function that the collector or a weak reference calls."""
    lost = []

    def interrupt(*_):
        raise KeyboardInterrupt

    others = [f for f in gc.callbacks if "effgrad" not in str(f)]  # Hypothesis has one, in Python
    for f in others:
        gc.callbacks.remove(f)
    monkeypatch.setattr(sys, "unraisablehook", lambda what: lost.append(what.object))
    before = signal.signal(signal.SIGALRM, interrupt)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    gc.callbacks.extend(others)
    assert not lost


def test_a_table_that_the_collector_ends_late_leaves_later_ones_alone(monkeypatch):
    """It took the memory of an array that a later session had written to: reading it was refused, by chance."""
    kept = written.Idle.__init__

    def in_a_cycle(self):
        kept(self)
        cycle = [self]
        cycle.append(cycle)

    def later(x):
        OUTSIDE[1:3] = np.sin(x) * 2.0
        gc.collect()
        return OUTSIDE[2] * OUTSIDE[1]

    gc.disable()
    try:
        with monkeypatch.context() as patched:
            patched.setattr(written.Idle, "__init__", in_a_cycle)
            expected = grad(writes)(0.7)
        slope = grad(later)(0.7)
    finally:
        gc.enable()
    assert math.isclose(slope, 8 * math.sin(0.7) * math.cos(0.7)) and expected == grad(writes)(0.7)


def test_interrupts_at_any_time_leave_nothing(alarms):
    assert interrupted(300) > 50


@pytest.mark.sweep
def test_many_interrupts_at_any_time_leave_nothing(alarms):
    assert interrupted(3000) > 500


FRESH = "def f(x):\n    a = np.zeros(3)\n    a[0] = x * {n}.0\n    return np.sum(np.sin(a))\n"


def fresh(n):
    """A function that nobody has read or compiled."""
    import linecache

    text, file = FRESH.format(n=n), f"<fresh {n}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names = {"np": np}
    exec(compile(text, file, "exec"), names)
    return names["f"]


def children(count=10):
    """Fork beside two threads that derive and compile, the first time in this process; true if each child is right."""
    over, statuses = threading.Event(), []

    def work(start):
        n = start
        while not over.is_set():
            n += 1
            f = fresh(n)
            grad(f)(0.5)
            effgrad.compile(f)(0.5)

    threads = [threading.Thread(target=work, args=(k * 10**6,)) for k in (1, 2)]
    for thread in threads:
        thread.start()
    for k in range(count):
        time.sleep(0.01)
        child = os.fork()
        if child == 0:
            signal.alarm(20)  # a child that hangs is killed
            f = fresh(-1 - k)
            os._exit(grad(f)(0.5) != effgrad.compile(grad(f))(0.5))
        statuses.append(os.waitpid(child, 0)[1])
    over.set()
    for thread in threads:
        thread.join(20)
    return not any(statuses)


@pytest.mark.parametrize("times", [2, pytest.param(8, marks=pytest.mark.sweep)])
def test_a_child_of_a_process_whose_threads_derive_and_compile_does_not_hang(times, tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for run in range(times):  # each in a process that has not compiled, with nothing compiled on disk
        command = [sys.executable, "-c", "import test_faults, sys; sys.exit(not test_faults.children())"]
        environment["EFFGRAD_CACHE"] = str(tmp_path / str(run))
        subprocess.run(command, env=environment, cwd=os.path.dirname(__file__), check=True, timeout=100)
