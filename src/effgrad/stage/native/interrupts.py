"""Native loops that hear Ctrl-C: other threads run meanwhile, and now and then a long loop asks for signals.

A function of a region runs without Python's lock. `ask` takes it, lets signal handlers run, and gives it back; if a
handler has raised, it keeps the lock, and the call returns with the exception, as one of Python's does.
"""

import ctypes
import math

import numpy as np

from effgrad.stage.loop.affine import Ranges
from effgrad.stage.loop.ir import Map, Pop, Push, Repeat, Statement, While, parts, topological

INTERRUPTED = 4
# Operations, at about a nanosecond each, after which a loop asks.
PATIENCE = 1 << 22

_CALLED = ("PyErr_CheckSignals", "PyEval_SaveThread", "PyEval_RestoreThread")


def services() -> np.ndarray:
    """The addresses of what is called, and room for the thread's state while it runs without the lock."""
    return np.array([*[ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value for name in _CALLED], 0])


def wrapped(place: int) -> str:
    """`@KERNEL`, which runs `@KERNEL.body` without the lock, and `@KERNEL.ask`; `place` is that of the services in the
    table."""
    return _TEXT.replace("PLACE", str(place)).replace("INTERRUPTED", str(INTERRUPTED))


_TEXT = """
define internal i32 @KERNEL.ask(ptr %services) noinline {
  %check = load ptr, ptr %services
  %b = getelementptr ptr, ptr %services, i64 1
  %save = load ptr, ptr %b
  %c = getelementptr ptr, ptr %services, i64 2
  %restore = load ptr, ptr %c
  %d = getelementptr ptr, ptr %services, i64 3
  %thread = load ptr, ptr %d
  call void %restore(ptr %thread)
  %raised = call i32 %check()
  %stop = icmp ne i32 %raised, 0
  br i1 %stop, label %leave, label %go
go:
  %now = call ptr %save()
  store ptr %now, ptr %d
  ret i32 0
leave:
  ret i32 1
}
define i32 @KERNEL(ptr %arguments) {
  %a = getelementptr ptr, ptr %arguments, i64 PLACE
  %services = load ptr, ptr %a
  %b = getelementptr ptr, ptr %services, i64 1
  %save = load ptr, ptr %b
  %c = getelementptr ptr, ptr %services, i64 2
  %restore = load ptr, ptr %c
  %d = getelementptr ptr, ptr %services, i64 3
  %thread = call ptr %save()
  store ptr %thread, ptr %d
  %code = call i32 @KERNEL.body(ptr %arguments)
  %held = icmp eq i32 %code, INTERRUPTED
  br i1 %held, label %done, label %back
back:
  %now = load ptr, ptr %d
  call void %restore(ptr %now)
  br label %done
done:
  ret i32 %code
}
"""


def steps_between(s: Repeat | While, ranges: Ranges) -> int | None:
    """After how many steps, a power of two, a loop asks; None if it is short: then what is around it asks."""
    return _loop(s, ranges)[0]


def _loop(s: Repeat | While, ranges: Ranges) -> tuple[int | None, float]:
    """After how many steps a loop asks, and its operations, at most; those of a loop that asks count as none."""
    step = sum(_work(x, ranges) for part in parts(s) for x in part)
    if isinstance(s, Repeat):
        span = ranges.upper((s.stop - s.start) if s.step > 0 else (s.start - s.stop))
        if span is not None and step * span < PATIENCE:
            return None, step * span
    return 1 << max(0, math.floor(math.log2(PATIENCE / min(max(step, 1.0), PATIENCE)))), 0.0


def _work(s: Statement, ranges: Ranges) -> float:
    """The operations of a statement, at most."""
    if isinstance(s, Map | Push | Pop):
        extents = [ranges.upper(n) for _, n in s.dims]
        points = math.prod(PATIENCE if n is None else max(n, 0) for n in extents)
        return points * (len(topological([t.value for t in s.stores])) if isinstance(s, Map) else 1)
    if isinstance(s, Repeat | While):
        return _loop(s, ranges)[1]
    return sum(_work(x, ranges) for part in parts(s) for x in part) or 100.0
