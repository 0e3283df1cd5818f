"""A report of a compiled program's steps, beside the machine's ceilings."""

import functools
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from effgrad.primitives.machine_code import SAME
from effgrad.stage.loop.affine import Ranges
from effgrad.stage.loop.ir import Apply, Block, Map, Region, Repeat, parts, topological, walk
from effgrad.stage.loop.program import ranges_of
from effgrad.stage.native import Native
from effgrad.stage.native.steps import Call, Fused, Product, Step

_ROWS = 12


def report(program: Native, leaves: list[Any], seconds_to_compile: float) -> str:
    """The report on a program run on these leaves; every step is timed alone, the best of three."""
    program(*leaves)
    held = program.prepare(leaves)
    rows = []
    number = 0
    for step in program.plan.steps:
        if not isinstance(step, Call):
            run, number = program.run(number, number + 1), number + 1
        else:
            run = program.call(step)
        seconds = _best(lambda run=run: program.settled([run]))  # type: ignore[misc]
        rows.append((seconds, _flops(step), _bytes(program, step), _name(step)))
    del held
    bandwidth, arithmetic = ceilings()
    outside = sum(buffer.size for buffer in program.plan.direct if buffer.source is None)
    peak = program.plan.arena + outside + sum(np.asarray(leaf).nbytes for leaf in leaves)
    total = sum(row[0] for row in rows) or 1e-9  # a program of constants has no steps
    flops, moved = sum(row[1] for row in rows), sum(row[2] for row in rows)
    called = [s.node.primitive.name for s in program.plan.steps if isinstance(s, Call) and _region(s) is None]
    names = ", ".join(f"{name} ({called.count(name)})" for name in dict.fromkeys(called))
    lines = [
        f"{len(rows)} steps, {program.kernels} different kernels, {len(called)} calls of NumPy{names and ': ' + names}",
        f"staged and compiled in {seconds_to_compile:.3g} s; "
        f"peak memory {_scaled(peak)}B, arguments and results included",
        f"{_scaled(flops)}flop, {_scaled(moved)}B moved, {total * 1e3:.3g} ms: "
        f"{_scaled(flops / total)}flop/s of {_scaled(arithmetic)}, {_scaled(moved / total)}B/s of {_scaled(bandwidth)}",
        f"{'us':>10} {'share':>6} {'flop':>8} {'bytes':>8} {'ceiling':>8}  step",
    ]
    for seconds, operations, traffic, name in sorted(rows, key=lambda row: -row[0])[:_ROWS]:
        share = f"{seconds / total:.1%}"
        # The time that the machine needs at the least, of the time that the step takes.
        ceiling = f"{max(operations / arithmetic, traffic / bandwidth) / seconds:.0%}"
        figures = f"{seconds * 1e6:10.1f} {share:>6} {_scaled(operations):>8} {_scaled(traffic):>8} {ceiling:>8}"
        lines.append(f"{figures}  {name[:70]}")
    return "\n".join(lines)


@functools.cache
def ceilings() -> tuple[float, float]:
    """The machine's memory bandwidth (bytes a second, in a copy) and arithmetic (flop a second, in a product)."""
    source, target = np.ones(1 << 23), np.empty(1 << 23)
    matrix = np.ones((512, 512))
    copying = _best(lambda: np.copyto(target, source))
    return 2 * source.nbytes / copying, 2 * 512**3 / _best(lambda: matrix @ matrix)


def _best(f: Callable[[], Any]) -> float:
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
    """The calls of NumPy in the loop that a step is."""
    region = _region(step)
    return [] if region is None else [s for s in walk(region.block) if isinstance(s, Apply)]


def operations(block: Block, ranges: Ranges) -> int:
    """The elementwise operations of a region at the most; a `while` counts as one step."""
    total = 0
    for s in block:
        inner = sum(operations(part, ranges) for part in parts(s))
        if isinstance(s, Map):
            points = math.prod(max(ranges.upper(n) or 1, 0) for _, n in s.dims)
            inner = points * sum(not isinstance(e.op, str) for e in topological([t.value for t in s.stores]))
        elif isinstance(s, Repeat):
            inner *= max(0, ranges.upper(s.stop - s.start if s.step > 0 else s.start - s.stop) or 1) // abs(s.step)
        total += inner
    return total


def _scaled(value: float) -> str:
    for unit, name in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:.3g} {name}"
    return f"{value:.3g} "
