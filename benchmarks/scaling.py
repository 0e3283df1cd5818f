"""Strong and weak scaling of `effgrad.distributed` on this machine, and a model of its cost.

The program is a logistic regression with 50 features, in blocks of rows. The model has three constants, all measured
here: the seconds that a worker computes on a block, the seconds that the scheduler spends on a task, and the seconds
for a round with no work. `predicted` is checked against the runs, and then used for machines that are not here.

    python benchmarks/scaling.py [--rows 50000] [--blocks 16]
"""

import argparse
import math
import statistics
import time

import numpy as np
from distributed import Client

from effgrad import value_and_grad
from effgrad.toolbox.distributed import Sum

FEATURES = 50


def loss(w, block):
    x, y = block
    z = x @ w
    return np.sum(np.logaddexp(0.0, z) - y * z)


def data(seed, rows):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, FEATURES)), rng.integers(0, 2, rows).astype(float)


def seconds(run, runs=5):
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def measured(workers, blocks, rows):
    """Seconds of one value and gradient, once every worker has its blocks."""
    with Client(n_workers=workers, threads_per_worker=1, dashboard_address=None) as client:
        total = Sum(loss, [data(seed, rows) for seed in range(blocks)], client)
        w = np.zeros(FEATURES)
        total.value_and_grad(w)
        return seconds(lambda: total.value_and_grad(w))


def predicted(workers, blocks, block, task, round_trip):
    """Work shared by the workers; two tasks a block through one scheduler; a tree as deep as the logarithm."""
    depth = math.ceil(math.log2(max(blocks, 2)))
    return math.ceil(blocks / workers) * block + 2 * blocks * task + depth * round_trip


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--blocks", type=int, default=16)
    options = parser.parse_args()
    w, example = np.zeros(FEATURES), data(0, options.rows)
    block = seconds(lambda: value_and_grad(loss)(w, example))
    one, many = measured(1, 1, 10), measured(1, 64, 10)
    task = max(many - one, 0.0) / (2 * 63)
    constants = {f"a block of {options.rows} rows": block, "a task": task, "a round": one}
    print(", ".join(f"{name} {value * 1e3:.2f} ms" for name, value in constants.items()), end="\n\n")
    print("| workers | blocks | measured, s | model, s |\n|---|---|---|---|")
    for workers, blocks in [(1, options.blocks), (2, options.blocks), (1, options.blocks // 2), (2, options.blocks)]:
        found = measured(workers, blocks, options.rows)
        model = predicted(workers, blocks, block, task, one)
        print(f"| {workers} | {blocks} | {found:.3f} | {model:.3f} |", flush=True)
    print("\n10^12 rows on 1,000 workers, by the model:\n\n| rows a block | blocks | work, s | scheduler, s | all, s |")
    print("|---|---|---|---|---|")
    for rows in (10**6, 10**7, 10**8):
        blocks, cost = 10**12 // rows, block * rows / options.rows
        work = math.ceil(blocks / 1000) * cost
        total = predicted(1000, blocks, cost, task, one)
        print(f"| {rows:.0e} | {blocks} | {work:.0f} | {2 * blocks * task:.0f} | {total:.0f} |")


if __name__ == "__main__":
    main()
