"""Native loops that Ctrl-C can interrupt: other threads run meanwhile, and long loops check for signals now and then.

The function of a region runs without Python's lock. Its `ask` takes the lock, lets signal handlers run, and releases
it. If a handler has raised, `ask` keeps the lock, and the call returns with the exception, as a call in Python does. A
kernel checks for signals by `effgrad_ask`, and returns `STOPPED`. A long map of a region runs in stretches, so that the
loop over the stretches can check.
"""

import ctypes
import math
from collections.abc import Callable

import numpy as np

from effgrad.stage.loop.affine import Affine, Ranges, fresh, variable
from effgrad.stage.loop.element import MINIMUM, element
from effgrad.stage.loop.ir import (
    INT,
    Map,
    Pop,
    Push,
    Repeat,
    Statement,
    Store,
    While,
    constant,
    index,
    integer,
    parts,
    topological,
)
from effgrad.stage.native.element_text import flat
from effgrad.stage.native.scalars import Body

INTERRUPTED, STOPPED = 4, -1
# A loop checks for signals after this many operations, at about a nanosecond each.
PATIENCE = 1 << 22

# The function by which kernels check for signals, and the functions that it calls.
ASK_CALLS = (
    "declare i32 @PyGILState_Ensure()", "declare void @PyGILState_Release(i32)", "declare i32 @PyErr_CheckSignals()",
)  # fmt: skip
ASK = """
define i32 @KERNEL() noinline {
  %state = call i32 @PyGILState_Ensure()
  %raised = call i32 @PyErr_CheckSignals()
  call void @PyGILState_Release(i32 %state)
  ret i32 %raised
}
"""

_CALLED = ("PyErr_CheckSignals", "PyEval_SaveThread", "PyEval_RestoreThread")


def services() -> np.ndarray:
    """The addresses of Python's functions that `ask` calls, and a slot for the thread's state while it has no lock."""
    return np.array([*[ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value for name in _CALLED], 0])


def wrapped(place: int) -> str:
    """The text of `@KERNEL`, which runs `@KERNEL.body` without Python's lock, and of `@KERNEL.ask`.

    `place` is the position of the address of the services in the table of arguments.
    """
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
    """Return after how many steps, a power of two, a loop checks for signals; None for a short loop.

    The loop around a short one checks instead.
    """
    return _loop(s, ranges)[0]


def _loop(s: Repeat | While, ranges: Ranges) -> tuple[int | None, float]:
    """Return after how many steps a loop checks for signals, or None; and its operations at most, or 0 if it checks."""
    step = sum(_work(x, ranges) for part in parts(s) for x in part)
    if isinstance(s, Repeat):
        span = ranges.upper((s.stop - s.start) if s.step > 0 else (s.start - s.stop))
        if span is not None and step * span < PATIENCE:
            return None, step * span
    return turns_between(step), 0.0


def _work(s: Statement, ranges: Ranges) -> float:
    """Return the largest number of operations of a statement, without those of loops that check for signals."""
    if isinstance(s, Map | Push | Pop):
        extents = [ranges.upper(n) for _, n in s.dims]
        points = math.prod(PATIENCE if n is None else max(n, 0) for n in extents)
        return points * (len(topological([t.value for t in s.stores])) if isinstance(s, Map) else 1)
    if isinstance(s, Repeat | While):
        return _loop(s, ranges)[1]
    return sum(_work(x, ranges) for part in parts(s) for x in part) or 100.0


def turns_between(work: float) -> int:
    """Return after how many turns, a power of two, a loop checks for signals, from the operations of one turn."""
    return 1 << max(0, math.floor(math.log2(PATIENCE / min(max(work, 1.0), PATIENCE))))


def write_signal_check(body: Body, place: str, every: int, label: Callable[[], str]) -> str:
    """Write a check for signals at each multiple of `every`, a power of two; return the label of what follows."""
    asked, stop, go_on = label(), label(), label()
    body.declared.add("declare i32 @effgrad_ask()")
    now = body.do(f"icmp eq i64 {body.do(f'and i64 {place}, {every - 1}')}, 0")
    body.lines += [f"  br i1 {now}, label %{asked}, label %{go_on}", f"{asked}:"]
    raised = body.do(f"icmp ne i32 {body.do('call i32 @effgrad_ask()')}, 0")
    body.lines += [f"  br i1 {raised}, label %{stop}, label %{go_on}"]
    body.lines += [f"{stop}:", f"  ret i32 {STOPPED}", f"{go_on}:"]
    return go_on


def stretches(m: Map, ranges: Ranges) -> Repeat | None:
    """Return a loop over stretches of a map along its outermost axis; None if it has at most `PATIENCE` operations.

    No point of the map may store what another point reads. Sums along the innermost axis are not split.
    """
    work = _work(m, ranges)
    extents = {name: ranges.upper(n) for name, n in m.dims}
    long = [(name, n) for name, n in m.dims if (extents[name] or 2) > 1]
    if work <= PATIENCE or not long:
        return None
    steps = {name: sum(abs(flat(t.buffer, t.indices).coefficient(name)) for t in m.stores) for name, _ in long}
    name, n = max(long, key=lambda d: steps[d[0]])
    most = extents[name]
    size = PATIENCE if most is None else max(1, int(PATIENCE * most // work))
    first = fresh("first")
    place = variable(name) + variable(first)
    length = integer(element(MINIMUM, index(n - variable(first)), constant(size, INT)))
    dims = tuple((other, length if other == name else extent) for other, extent in m.dims)
    moved = {name: place}
    stores = [
        Store(t.buffer, tuple(i.substitute(moved) for i in t.indices), t.value.substitute(moved), t.adds)
        for t in m.stores
    ]
    return Repeat(first, Affine(0), n, size, [Map(dims, stores)])
