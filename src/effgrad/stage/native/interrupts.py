"""Native loops that Ctrl-C can interrupt: other threads run meanwhile, and long loops check for signals now and then.

Machine code runs without Python's lock. Kernels and regions check for signals by `effgrad_ask`, which takes the lock,
lets signal handlers run, and releases the lock. If a handler has raised, they return `STOPPED`, and the call ends with
the exception, as a call in Python does. A long map of a region runs in stretches, so that the loop over the stretches
can check.
"""

import math

from effgrad.stage.loop.affine import Affine, Ranges, fresh, row_major, variable
from effgrad.stage.loop.buffers import INT, constant, index, integer, topological
from effgrad.stage.loop.element import MINIMUM, element
from effgrad.stage.loop.ir import Map, Pop, Push, Repeat, Statement, While, parts

# A loop checks for signals after this many operations, at about a nanosecond each.
PATIENCE = 1 << 22

# The function by which machine code checks for signals, and the functions that it calls.
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

def steps_between(s: Repeat | While, ranges: Ranges) -> int | None:
    """Return after how many steps, a power of two, a loop checks for signals; None for a short loop.

    The loop around a short one checks instead.
    """
    return _loop(s, ranges)[0]


def _loop(s: Repeat | While, ranges: Ranges) -> tuple[int | None, float]:
    """Return after how many steps a loop checks for signals, or None; and its operations at most, or 0 if it checks."""
    step = sum(_work(x, ranges) for part in parts(s) for x in part)
    if isinstance(s, Repeat):
        steps = s.most_steps(ranges)
        if steps is not None and step * steps < PATIENCE:
            return None, step * steps
    return turns_between(step), 0.0


def _work(s: Statement, ranges: Ranges) -> float:
    """Return the largest number of operations of a statement, without those of loops that check for signals."""
    if isinstance(s, Map | Push | Pop):
        operations = len(topological([t.value for t in s.stores])) if isinstance(s, Map) else 1
        return ranges.points(s.dims, PATIENCE) * operations
    if isinstance(s, Repeat | While):
        return _loop(s, ranges)[1]
    return sum(_work(x, ranges) for part in parts(s) for x in part) or 100.0


def turns_between(work: float) -> int:
    """Return after how many turns, a power of two, a loop checks for signals, from the operations of one turn."""
    return 1 << max(0, math.floor(math.log2(PATIENCE / min(max(work, 1.0), PATIENCE))))


def stretches(m: Map, ranges: Ranges) -> Repeat | None:
    """Return a loop over stretches of a map along its outermost axis; None if it has at most `PATIENCE` operations.

    No point of the map may store what another point reads. Sums along the innermost axis are not split.
    """
    work = _work(m, ranges)
    extents = {name: ranges.upper(n) for name, n in m.dims}
    long = [(name, n) for name, n in m.dims if (extents[name] or 2) > 1]
    if work <= PATIENCE or not long:
        return None
    places = [row_major(t.indices, t.buffer.shape) for t in m.stores]
    name, n = max(long, key=lambda d: sum(abs(place.coefficient(d[0])) for place in places))
    most = extents[name]
    size = PATIENCE if most is None else max(1, int(PATIENCE * most // work))
    first = fresh("first")
    place = variable(name) + variable(first)
    length = integer(element(MINIMUM, index(n - variable(first)), constant(size, INT)))
    dims = tuple((other, length if other == name else extent) for other, extent in m.dims)
    return Repeat(first, Affine(0), n, size, [Map(dims, [t.substitute({name: place}) for t in m.stores])])
