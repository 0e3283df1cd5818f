"""A captured loop as a primitive. Its derivatives are regions too, so every mode has it, nested in any order.

`run_region` returns all outputs in one vector of float64, in which each output has its own slice. Nothing is copied
where a native program reads them. Integers and booleans are stored in the vector as their bits.
"""

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from effgrad.api import stop_gradient
from effgrad.arrays.layout import address_of, dtype_of
from effgrad.primitives import cotangents
from effgrad.primitives.primitive import Primitive
from effgrad.stage.loop.affine import Ranges
from effgrad.stage.loop.buffers import Buffer
from effgrad.stage.loop.derive import Reversal
from effgrad.stage.loop.ir import Apply, Branch, Pop, Push, Region, Repeat, Statement, While, parts, walk
from effgrad.stage.loop.operands import Value
from effgrad.stage.loop.schedule import Schedule, Stretches, schedule, stretches
from effgrad.stage.loop.tangents import tangent
from effgrad.vocabulary import Params

# The bytes that reverse mode may save before it keeps checkpoints of the outermost loop instead. The second limit is
# for loops whose steps call NumPy, which takes long for each byte: contour_integral of NPBench saves 9 MB in 32 steps
# and would take 1.4 times as long with checkpoints. It is also for as many states as one level of segments keeps:
# floyd_warshall, whose state has 1.3 MB, takes twice as long with the levels that 8 MB need.
ROOM, MOST_ROOM = 8 << 20, 128 << 20

# A `while` saves what all its steps need if there is memory for this many steps, as few loops have more. One with
# checkpoints takes 2.6 times as long (a Runge-Kutta method on three numbers, 2026-11-22).
MOST_KEPT = 40_000

# At a singular point Python runs loops of at most this many steps in all, to find the limit of the derivative.
LONGEST_IN_PYTHON = 5000


# Vectors of their own for outputs, by the number of the output.
Apart = Mapping[int, np.ndarray]
NONE_APART: Apart = {}

# Makes a region executable, by machine code or by the executor.
Make = Callable[[Region], Callable[..., list[np.ndarray]]]


class Program:
    """A region that can be run, and the programs derived from it."""

    def __init__(self, region: Region, make: Make, room: Callable[[], int] = lambda: ROOM) -> None:
        self.region, self.make, self.room = region, make, room
        self.derived: dict[Value, Program] = {}
        # About how many bytes it saves, and how often it runs a step forward at most.
        self.saved, self.evaluations = 0, 1
        # For a reverse, returns the regions of its forward and its reverse sweep.
        self.halves: Callable[[], tuple[Region, Region] | None] = lambda: None
        # Where each output begins in the vector of all outputs.
        self.starts = list(itertools.accumulate([b.size for b in region.outputs], initial=0))

    @property
    def size(self) -> int:
        """The length of the vector of all outputs."""
        return self.starts[-1]

    @property
    def is_long(self) -> bool:
        """Whether Python would take seconds to run the loops, or their number of steps is not known."""
        return not _all_steps(self.region.block, ranges_of(self.region.block)) <= LONGEST_IN_PYTHON

    @functools.cached_property
    def run(self) -> Callable[..., list[np.ndarray]]:
        """A function from arguments to outputs."""
        return self.make(self.region)

    def tangent(self, moved: tuple[int, ...]) -> "Program":
        """The program of the outputs' tangents, given the arguments and the tangents of the `moved` ones."""
        inputs = [self.region.inputs[i] for i in moved]
        key = "tangent", moved
        if key not in self.derived:
            program = self.derived[key] = Program(tangent(self.region, inputs), self.make, self.room)
            program.saved, program.evaluations = 2 * self.saved, self.evaluations  # tangents are saved beside values
        return self.derived[key]

    def adjoint(self, wanted: tuple[int, ...]) -> "Program":
        """The program of the cotangents of the `wanted` arguments.

        Its inputs are the arguments and the cotangents of the smooth outputs.
        """
        inputs = [self.region.inputs[i] for i in wanted]
        key = "adjoint", wanted
        if key not in self.derived:
            found = reversal(self.region, inputs, self.room())
            program = self.derived[key] = Program(found.whole_region(inputs), self.make, self.room)
            program.halves = lambda: found.halves(inputs)
            kept, evaluations = found.cost
            program.saved, program.evaluations = self.saved + kept, self.evaluations * evaluations
        return self.derived[key]


def reversal(region: Region, wanted: Sequence[Buffer], room: int) -> Reversal:
    """The reverse of a region. A loop whose steps would save more than `room` bytes keeps checkpoints instead."""
    plain = Reversal(region, wanted)
    costs = {s: saved_bytes([x], ranges_of([x])) for s, x in zip(region.block, _forward(plain, region), strict=False)}
    plans: dict[Statement, tuple[Schedule | Stretches | None, int]] = {}
    for s, bytes_ in costs.items():
        if bytes_ > room and isinstance(s, Repeat) and _runs_again(s):
            steps, state = _steps(s), _state(plain, s)
            own = _room_of(s, steps, state) if room == ROOM else room
            if bytes_ > own:
                plans[s] = schedule(steps, state, bytes_ / steps, own)
    unknown = {s for s, bytes_ in costs.items() if _is_unknown(s) and room < MOST_KEPT * bytes_}
    if unknown:  # with checkpoints each step saves more, so this is computed again
        probe = Reversal(region, wanted, lambda loop: Stretches(1, 1) if loop in unknown else None)
        for loop, block in probe.records.items():
            costs[loop] = saved_bytes(block, ranges_of(block))
            plan = stretches(_state(probe, loop), costs[loop], room)
            plans[loop] = plan, 2 * plan.chunk * costs[loop]
    found = Reversal(region, wanted, lambda loop: plans[loop][0] if loop in plans else None) if plans else plain
    kept = sum(bytes_ for s, bytes_ in costs.items() if s not in plans) + sum(bytes_ for _, bytes_ in plans.values())
    _note_bytes(found, kept)
    found.cost = kept, 1 + max((plan.levels for plan, _ in plans.values() if plan), default=0)
    return found


def _note_bytes(found: Reversal, kept: int) -> None:
    """Note on each stack of a reverse how many bytes it needs; the stacks of its region have that already."""
    for s in walk([*found.forward, *found.backward]):
        if isinstance(s, Push):
            s.stack.bytes = s.stack.bytes or kept


def _room_of(loop: Statement, steps: int, state: int) -> int:
    """The bytes that the reverse of a loop may save if nobody has set a limit."""
    if any(isinstance(s, Apply) for s in walk([loop])):
        return MOST_ROOM
    return min(max(2 * (math.isqrt(steps) + 1) * state, ROOM), MOST_ROOM)


def _state(reversal: Reversal, loop: Repeat | While) -> int:
    """The bytes of a checkpoint of a loop."""
    return 8 * max(sum(b.size for b in reversal.state(loop)), 1)


def _is_unknown(s: Statement) -> bool:
    """Whether a statement is a loop with an unknown number of steps that can be rerun."""
    return isinstance(s, While) and not any(isinstance(x, Push | Pop) for x in walk([s]))


def _forward(reversal: Reversal, region: Region) -> list[Statement]:
    """The statements of the forward sweep that correspond to those of the region, without the saves before them."""
    kept: list[Statement] = [s for s in reversal.forward if not isinstance(s, Push)]
    return kept[: len(region.block)]


def _steps(s: Statement) -> int:
    """The number of steps of a loop; 0 if it is not known."""
    return len(s.steps or ()) if isinstance(s, Repeat) else 0


def _runs_again(s: Repeat) -> bool:
    """Whether the steps of a loop can be rerun: it runs forward, has more than three, and they neither push nor pop."""
    return _steps(s) > 3 and not s.backwards and not any(isinstance(x, Push | Pop) for x in walk(s.body))


def ranges_of(block: Sequence[Statement]) -> Ranges:
    """The bounds of the variables of all loops in a block."""
    ranges = Ranges()
    ranges.bounds.update({s.variable: s.bounds for s in walk(block) if isinstance(s, Repeat)})
    return ranges


def cost(
    block: Sequence[Statement], ranges: Ranges, own: Callable[[Statement, list[float]], float], unknown: float = 1.0
) -> float:
    """The cost of statements: `own` gives that of one, from those of its blocks. Each step of a loop has it again.

    A loop whose number of steps is not known counts as `unknown` steps.
    """
    total = 0.0
    for s in block:
        of_one = own(s, [cost(part, ranges, own, unknown) for part in parts(s)])
        steps = s.most_steps(ranges) if isinstance(s, Repeat) else 1
        total += of_one * (unknown if steps is None else steps)
    return total


def _all_steps(block: Sequence[Statement], ranges: Ranges) -> float:
    """An upper bound of the number of steps of all loops of a block."""

    def own(s: Statement, inner: list[float]) -> float:
        if isinstance(s, While):  # one with a `break` may be a `for`, whose number of steps has a bound
            return max(1.0, *inner) * (math.inf if s.count.reach is None else s.count.reach[1])
        return max(1.0, *inner) if isinstance(s, Repeat) else sum(inner)

    return cost(block, ranges, own, math.inf)


def saved_bytes(block: Sequence[Statement], ranges: Ranges) -> int:
    """An upper bound of the bytes that statements save; a `while` counts as one step."""

    def own(s: Statement, inner: list[float]) -> float:
        if isinstance(s, Push):
            return 8 * ranges.points(s.dims)
        return max(inner) if isinstance(s, Branch) else sum(inner)

    return round(cost(block, ranges, own))


def _run(
    *arguments: Value, program: Program, vector: np.ndarray | None = None, apart: Apart = NONE_APART
) -> np.ndarray:
    """Run the program; return all outputs in one vector, the given one if it is not None, but for those `apart`."""
    return packed(program.run(*arguments, into=vector, apart=apart), vector, apart)


def packed(
    outputs: Sequence[np.ndarray], into: np.ndarray | None = None, apart: Apart = NONE_APART
) -> np.ndarray:
    """Pack outputs into one vector of float64, integers as their bits; those that are there already stay.

    The outputs in `apart`, by their number, go to the vectors given there, and leave their part of the vector as it is.
    """
    vector, start = np.empty(sum(o.size for o in outputs)) if into is None else into, 0
    for number, output in enumerate(outputs):
        stretch = apart[number] if number in apart else vector[start : start + output.size]
        start += output.size
        if address_of(output) == address_of(stretch):
            continue
        if output.dtype.kind in "bi":
            stretch.view(np.int64)[...] = output.ravel()
        else:
            stretch[...] = output.ravel()
    return vector


def _push(tangents: list[Value], args: list[Value], params: Params) -> Value:
    """The tangent of the vector of outputs."""
    program: Program = params["program"]
    moved = tuple(i for i, t in enumerate(tangents) if t is not None and program.region.inputs[i].smooth)
    if not moved:
        return np.zeros(program.size)
    return run_region(*args, *[tangents[i] for i in moved], program=program.tangent(moved))


def _pull(wanted: list[int], g: Value, args: list[Value], params: Params) -> list[Value]:
    """The cotangents of the arguments."""
    program: Program = params["program"]
    inputs, g = program.region.inputs, cotangents.dense(g)
    if dtype_of(g).kind == "c":  # the cotangent is complex if two planes were joined to a complex array
        g = np.real(g)
    smooth = tuple(i for i in wanted if inputs[i].smooth)
    if not smooth:
        return [None] * len(wanted)
    back = program.adjoint(smooth)
    seeds = [part(g, program, k) for k, b in enumerate(program.region.outputs) if b.smooth]
    results = run_region(*args, *seeds, program=back)
    found = {i: part(results, back, k) for k, i in enumerate(smooth)}
    return [found.get(i) for i in wanted]


def part(results: Value, program: Program, k: int) -> Value:
    """Output `k` of the vector of all outputs."""
    b = program.region.outputs[k]
    start, stop = program.starts[k], program.starts[k + 1]
    if b.dtype.kind in "bi":
        bits = stop_gradient(as_integers(results, start=start, stop=stop, shape=b.shape))
        return bits if b.dtype == np.dtype(np.int64) else bits.astype(b.dtype)
    value = results[start:stop].reshape(b.shape) if b.shape else results[start]
    return value if b.dtype == np.dtype(float) else value.astype(b.dtype)


def _integers(results: Value, start: int, stop: int, shape: tuple[int, ...]) -> Value:
    return np.array(results[start:stop]).view(np.int64).reshape(shape)[()]


as_integers = Primitive(
    "as_integers", _integers, "constant", (None,), (None,),
    yields=lambda start, stop, shape: (shape, np.dtype(np.int64)),
)  # fmt: skip
run_region = Primitive(
    "run_region", _run, "general", (), (), yields=lambda program: ((program.size,), np.dtype(float))
)  # fmt: skip
run_region.push_jointly, run_region.pull_jointly = _push, _pull

