"""Strong and weak scaling of `effgrad.distributed` on this machine, and a model of its cost.

The program is a logistic regression in blocks of rows. The model counts tasks and bytes, and has four constants, all
measured here on one worker: seconds of work on a row, seconds of the scheduler on a task, seconds to move a byte, and
seconds of a round with nothing to do. It is checked against runs on one and two processes, and then used for machines
that are not here.

    python benchmarks/scaling.py [--rows 50000] [--blocks 16] [--write]
"""

import argparse
import math
import statistics
import time
from typing import NamedTuple

import dask
import memory
import numpy as np
from distributed import Client
from distributed.diagnostics.plugin import SchedulerPlugin

from effgrad import value_and_grad
from effgrad.toolbox.distributed import Sum

FEATURES = 50
READING = 1e9  # bytes a second that a worker reads of data that its memory does not hold: assumed, not measured
MEMORY = 64e9  # bytes of a worker: assumed


def loss(w, block):
    x, y = block
    z = x @ w[:FEATURES]
    return np.sum(np.logaddexp(0.0, z) - y * z)


def data(seed, rows):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, FEATURES)), rng.integers(0, 2, rows).astype(float)


def seconds(run, runs=7):
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


class Cost(NamedTuple):
    tasks: float
    bytes: float
    seconds: float


class Counted(SchedulerPlugin):
    """Counts the tasks that workers finish."""

    name = "counted"
    tasks = 0

    def transition(self, key, start, finish, *_, **__):
        self.tasks += start == "processing" and finish == "memory"


def counts(client):
    """The tasks that workers have finished, and the bytes that they have sent."""
    tasks = client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.plugins["counted"].tasks)
    sent = client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total)
    return tasks, sum(sent.values())


def measured(workers, blocks, rows, unknowns=FEATURES):
    """The cost of one value and gradient, once every worker has its blocks."""
    with Client(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as client:
        client.register_plugin(Counted())
        total = Sum(loss, [dask.delayed(data)(seed, rows) for seed in range(blocks)], client)
        w = np.zeros(unknowns)
        total.value_and_grad(w)
        before = counts(client)
        total.value_and_grad(w)
        after = counts(client)
        moved = [b - a for a, b in zip(before, after, strict=True)]
        return Cost(*moved, seconds(lambda: total.value_and_grad(w)))


class Model(NamedTuple):
    """Seconds of work on a row, of the scheduler on a task, of a byte that moves, and of a round with nothing to do."""

    row: float
    task: float
    byte: float
    round: float

    def cost(self, workers, blocks, rows, unknowns=FEATURES):
        """Tasks are the parameters, the blocks and the joins. Each worker takes the parameters, a join of the results
        of two workers moves one, and the last result goes to the client. Workers move at once, and the levels of the
        tree come one after another.
        """
        vector = 8 * unknowns
        tasks = 2 * blocks
        moved = (workers - 1) * vector + (blocks - 1) * (1 - 1 / workers) * vector + vector
        work = math.ceil(blocks / workers) * rows * self.row
        moving = self.moving(workers, blocks, unknowns, moved)
        return Cost(tasks, moved, work + tasks * self.task + moving + self.round)

    def moving(self, workers, blocks, unknowns, moved):
        levels = math.ceil(math.log2(max(blocks, 2))) if workers > 1 else 0
        return (moved / workers + levels * 8 * unknowns) * self.byte


def constants(rows):
    w, example = np.zeros(FEATURES), data(0, rows)
    row = seconds(lambda: value_and_grad(loss)(w, example)) / rows
    few, many, large = measured(1, 1, 10), measured(1, 64, 10), measured(1, 1, 10, 1_000_000)
    return Model(
        row, max(many.seconds - few.seconds, 0.0) / (2 * 63), max(large.seconds - few.seconds, 0.0) / 8e6, few.seconds
    )


def check(model, blocks, rows):
    """Runs beside the model: strong scaling has the same blocks, weak scaling the same blocks for each worker."""
    half = blocks // 2
    runs = {
        "strong, 1": (1, blocks, rows), "strong, 2": (2, blocks, rows),
        "weak, 1": (1, half, rows), "weak, 2": (2, blocks, rows),
        "100,000 unknowns, 2": (2, half, rows, 100_000), "small blocks, 2": (2, 8 * blocks, 100),
    }  # fmt: skip
    yield "| run, workers | blocks | tasks: run, model | MB moved: run, model | seconds: run, model |"
    yield "|---" * 5 + "|"
    for name, arguments in runs.items():
        found, expected = measured(*arguments), model.cost(*arguments)
        yield (
            f"| {name} | {arguments[1]} | {found.tasks:.0f}, {expected.tasks:.0f} | {found.bytes / 1e6:.3f}, "
            f"{expected.bytes / 1e6:.3f} | {found.seconds:.3f}, {expected.seconds:.3f} |"
        )


def extrapolate(model, workers=1000, all_rows=10**12):
    """Seconds of one value and gradient by the model, each part, and which part is the largest."""
    stored = all_rows * (FEATURES + 1) * 8
    held = min(workers * MEMORY, stored)
    reading = (stored - held) / workers / READING
    yield ""
    yield f"10^12 rows are {stored / 1e12:.0f} TB, of which {workers} workers hold {held / 1e12:.0f} TB in memory."
    yield f"The rest is read in {reading:.0f} s."
    yield ""
    yield "| rows a block | unknowns | tasks | GB moved | work, s | scheduler, s | moving, s | binds first |"
    yield "|---" * 8 + "|"
    for rows, unknowns in ((10**6, FEATURES), (10**7, FEATURES), (10**8, FEATURES), (10**8, 10**6)):
        cost = model.cost(workers, all_rows // rows, rows, unknowns)
        parts = {
            "work": all_rows / workers * model.row, "scheduler": cost.tasks * model.task,
            "moving": model.moving(workers, all_rows // rows, unknowns, cost.bytes), "reading": reading,
        }  # fmt: skip
        yield (
            f"| {rows:.0e} | {unknowns} | {cost.tasks} | {cost.bytes / 1e9:.3g} | {parts['work']:.0f} | "
            f"{parts['scheduler']:.0f} | {parts['moving']:.2g} | {max(parts, key=lambda name: parts[name])} |"
        )


def page(rows, blocks):
    model = constants(rows)
    yield f"A row takes {model.row * 1e9:.0f} ns, a task {model.task * 1e3:.2f} ms, a megabyte {model.byte * 1e9:.1f}"
    yield f"ms, and a round {model.round * 1e3:.1f} ms; blocks have {rows} rows."
    yield ""
    yield from check(model, blocks, rows)
    yield from extrapolate(model)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--blocks", type=int, default=16)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    lines = []
    for line in page(options.rows, options.blocks):
        lines.append(line)
        print(line, flush=True)
    if options.write:
        memory.write("distributed", lines)


if __name__ == "__main__":
    main()
