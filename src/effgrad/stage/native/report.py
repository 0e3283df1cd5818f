"""Report the steps of a compiled program: their times, compared with the machine's ceilings."""

import functools
import itertools
import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from effgrad.primitives.machine_code import SAME
from effgrad.primitives.primitive import RULED
from effgrad.stage.loop.affine import Ranges
from effgrad.stage.loop.buffers import topological
from effgrad.stage.loop.ir import OF_RULE, OF_WHOLE, UNWRITTEN, Apply, Block, Map, Region, Statement
from effgrad.stage.loop.pairing import run_forward
from effgrad.stage.loop.program import cost, ranges_of
from effgrad.stage.native import Halves, Native
from effgrad.stage.native.scalars import TYPES, dtype_of
from effgrad.stage.native.steps import Call, Fused, Product, Step
from effgrad.stage.nodes import GUARD
from effgrad.stage.paths import titled_lines
from effgrad.vocabulary import Value

_ROWS = 12


def report(program: Native, leaves: list[Value], seconds_to_compile: float, unrolled: Sequence[str]) -> str:
    """Return the report on a program run on these leaves; each step is timed alone, and the best of three runs counts.

    `unrolled` has the line of each loop that Python has run, and the reason.
    """
    rows = _timed(program, leaves)
    bandwidth, arithmetic = ceilings()
    outside = sum(buffer.size for buffer in program.plan.direct if buffer.source is None)
    peak = program.plan.arena + outside + sum(np.asarray(leaf).nbytes for leaf in leaves)
    total = sum(row[0] for row in rows) or 1e-9  # a program of constants has no steps
    flops, moved = sum(row[1] for row in rows), sum(row[2] for row in rows)
    called = [_straight(s) for s in program.plan.steps if isinstance(s, Call) and _region(s) is None]
    names = [f"{name} ({count})" for name, count in Counter([call.name for call in called]).items()]
    counted = ": " * bool(names) + ", ".join(names)
    lines = [
        f"{len(rows)} steps, {program.kernels} different kernels, {len(called)} calls of NumPy{counted}",
        f"staged and compiled in {seconds_to_compile:.3g} s; "
        f"peak memory {_scaled(peak)}B, arguments and results included",
        f"{_scaled(flops)}flop, {_scaled(moved)}B moved, {total * 1e3:.3g} ms: "
        f"{_scaled(flops / total)}flop/s of {_scaled(arithmetic)}, {_scaled(moved / total)}B/s of {_scaled(bandwidth)}",
        f"{'us':>10} {'share':>6} {'flop':>8} {'bytes':>8} {'ceiling':>8}  step",
    ]
    for seconds, operations, traffic, name in sorted(rows, key=lambda row: -row[0])[:_ROWS]:
        share = f"{seconds / total:.1%}"
        # The least time that the machine needs, as a share of the time that the step takes.
        ceiling = f"{max(operations / arithmetic, traffic / bandwidth) / seconds:.0%}"
        figures = f"{seconds * 1e6:10.1f} {share:>6} {_scaled(operations):>8} {_scaled(traffic):>8} {ceiling:>8}"
        lines.append(f"{figures}  {name[:70]}")
    stayed = _counted([*called, *itertools.chain(*map(_in_loop, program.plan.steps))])
    return "\n".join([*lines, *titled_lines("calls of NumPy, and why", stayed), *titled_lines("unrolled", unrolled)])


def _timed(program: Native, leaves: list[Value]) -> list[tuple[float, int, int, str]]:
    """Return the seconds of each step, its operations and bytes, and its name."""
    program(*leaves)
    held = program.prepare(leaves)
    rows = []
    number = 0
    for step in program.plan.steps:
        if not isinstance(step, Call):
            run, number = program.run(number, number + 1), number + 1
        else:
            run = program.call(step)
        seconds = _best(lambda run=run: program.run_segments([run]))  # type: ignore[misc]
        rows.append((seconds, _flops(step), _bytes(program, step), _name(step)))
    del held
    return rows


class Called(NamedTuple):
    """A function that a program calls: its name, the line of the user's program, and why it is called."""

    name: str
    place: str
    reason: str

    def __str__(self) -> str:
        return f"{self.place or 'the reverse pass'}: {self.name}: {self.reason}"


def _counted(calls: Sequence[Called]) -> list[str]:
    """Return the text of each different call, with the number of times that it occurs."""
    return [f"{call}{f', {count} times' if count > 1 else ''}" for call, count in Counter(calls).items()]


def _straight(step: Call) -> Called:
    """Describe a call of NumPy that is a step of the program, outside loops."""
    primitive, types = step.node.primitive, [*map(dtype_of, step.node.args), step.node.dtype]
    foreign = next((dtype for dtype in types if dtype.kind in "biufc" and dtype not in TYPES), None)
    if primitive.name.endswith(RULED):
        reason = OF_RULE
    elif foreign is not None:
        reason = f"machine code has no {foreign}"
    elif primitive is GUARD:
        reason = "Python asks for the value of an array"
    else:
        reason = UNWRITTEN if primitive.kind == "elementwise" else OF_WHOLE
    return Called(primitive.name.removesuffix(RULED), step.node.place, reason)


def _in_loop(step: Step) -> list[Called]:
    """Describe the calls of NumPy in the loop that a step runs."""
    return [Called(s.name, s.place, f"{s.reason} (in a loop)") for s in _applied(step)]


@functools.cache
def ceilings() -> tuple[float, float]:
    """Measure the machine's memory bandwidth (bytes per second, in a copy) and arithmetic (flop/s, in a product)."""
    source, target = np.ones(1 << 23), np.empty(1 << 23)
    matrix = np.ones((512, 512))
    copying = _best(lambda: np.copyto(target, source))
    return 2 * source.nbytes / copying, 2 * 512**3 / _best(lambda: matrix @ matrix)


def _best(f: Callable[[], Value]) -> float:
    times = []
    for _ in range(3):
        start = time.perf_counter()
        f()
        times.append(time.perf_counter() - start)
    return min(times)


def _flops(step: Step) -> int:
    if isinstance(step, Fused):
        kernel = step.kernel
        counted = sum(node.primitive.code is not SAME for node in kernel.nodes)
        return (counted + sum(bool(o.reduction) for _, o in kernel.writes)) * math.prod(kernel.shape)
    if isinstance(step, Product):
        return 2 * step.node.size * int(step.operands[0].view.shape[-1])
    region = _region(step)
    return step.node.size if region is None else operations(region.block, ranges_of(region.block))


def _bytes(program: Native, step: Step) -> int:
    storages = program.plan.storages(step)
    if isinstance(step, Call):
        return sum(s.view.nbytes for s in storages)
    return sum(buffer.size for buffer in {s.buffer for s in storages})


def _name(step: Step) -> str:
    if isinstance(step, Fused):
        reductions = [o.reduction for _, o in step.kernel.writes if o.reduction]
        names = [n.primitive.name for n in step.kernel.nodes if n.primitive.code is not SAME]
        return f"{list(step.kernel.shape)} {' '.join([*names, *reductions])}"
    library = "BLAS" if isinstance(step, Product) else "NumPy" if _region(step) is None else "loop"
    called = ", ".join(dict.fromkeys(s.name for s in _applied(step)))
    inside = f", in it calls of NumPy: {called}" if called else ""
    return f"{list(step.node.shape)} {step.node.primitive.name} ({library}{inside})"


def _region(step: Step) -> Region | None:
    """The region that a step runs, if it is a loop."""
    params = step.node.params if isinstance(step, Call) else {}
    program = params["pair"].program if "pair" in params else params.get("program")
    return None if program is None else program.region


def _applied(step: Step) -> list[Apply]:
    """The calls of NumPy in the loop that a step runs."""
    if not isinstance(step, Call) or _region(step) is None:
        return []
    params, primitive = step.node.params, step.node.primitive
    if "program" in params:
        return params["program"].run.applied  # type: ignore[no-any-return]
    halves: Halves = params["pair"].halves
    return (halves.there if primitive is run_forward else halves.back).applied


def operations(block: Block, ranges: Ranges) -> int:
    """Estimate the elementwise operations of a block; a `while` counts as one step, an unknown length as one."""

    def own(s: Statement, inner: list[float]) -> float:
        if not isinstance(s, Map):
            return sum(inner)
        return ranges.points(s.dims) * sum(not isinstance(e.op, str) for e in topological([t.value for t in s.stores]))

    return round(cost(block, ranges, own))


def _scaled(value: float) -> str:
    for unit, name in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:.3g} {name}"
    return f"{value:.3g} "
