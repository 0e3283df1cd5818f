"""What a limit of memory costs: peak memory and time of `grad(f, memory=...)` beside the unlimited gradient.

Each run is a process of its own. Peak memory is what the process has more than before the derivative (ru_maxrss). With
`--compiled`, of compiled gradients: the time is that of the second call, the peak that of both, the compiler included.

    python benchmarks/memory.py [--runs 3] [--compiled] [--write]

`--write` puts the rows into the table of the documentation, as for snapshots.py and scaling.py.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

from effgrad import compile, grad


def loop(x):
    """A million steps of a recurrence on numbers."""
    for _ in range(1_000_000):
        x = x - 1e-6 * x * x
    return x


def recursion(x):
    """Divide and conquer: 2^12 leaves."""

    def tree(depth, y):
        if depth == 0:
            return np.sin(y * x)
        return tree(depth - 1, y) * np.cos(tree(depth - 1, y + 1.0))

    return np.sum(tree(12, 1.0))


def network(weights):
    """A residual network of 60 layers on 2,000 samples."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 64))
    for _ in range(60):
        x = x + 0.1 * np.tanh(x @ weights)
    return np.mean(x**2)


def pde(u):
    """Burgers' equation on 20,000 points, 400 steps by Lax and Friedrichs."""
    for _ in range(400):
        flux = 0.5 * u * u
        u = 0.5 * (np.roll(u, 1) + np.roll(u, -1)) - 0.05 * (np.roll(flux, -1) - np.roll(flux, 1))
    return np.sum(u * u)


JOBS = {
    "loop, 10^6 steps": (loop, lambda: 0.5, ["20 MB", "5 MB"]),
    "recursion, 2^12 leaves": (recursion, lambda: np.linspace(0.1, 1.0, 200), ["10 MB", "3 MB"]),
    "network, 60 layers": (network, lambda: np.eye(64) * 0.3, ["40 MB", "15 MB"]),
    "PDE, 400 steps": (pde, lambda: np.sin(np.linspace(0, 6.28, 20_000)), ["60 MB", "15 MB"]),
}


def prepared(x):
    """What the programs use, before the measurement: modules are imported, and BLAS has its memory."""
    y = np.random.default_rng(0).normal(size=(2000, 64)) @ (np.mean(x) * np.ones((64, 64)))
    return np.mean(np.tanh(y) ** 2) + np.sum(np.roll(x, 1) * np.cos(np.sin(x)))


def warmed(x):
    """A small loop, for which the compiler is loaded."""
    for _ in range(100):
        x = np.sin(x)
    return np.sum(x)


COMPILED = {
    "loop, 10^6 steps": (loop, lambda: 0.5, ["100 kB", "1 kB"]),
    "PDE, 400 steps": (pde, lambda: np.sin(np.linspace(0, 6.28, 20_000)), ["20 MB", "5 MB"]),
    "network, 60 layers": (network, lambda: np.eye(64) * 0.3, ["80 MB", "15 MB"]),
}


def measure(job, memory, compiled):
    f, start, _ = (COMPILED if compiled else JOBS)[job]
    x = start()
    grad(prepared, memory="4 MB")(np.ones(3))
    gradient = grad(f, memory=memory)
    if compiled:
        compile(grad(warmed))(np.ones(3))
        gradient = compile(gradient)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        if compiled:
            gradient(x)
    began = time.perf_counter()
    derivative = gradient(x)
    seconds = time.perf_counter() - began
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3
    on_disk = any("on disk" in str(warning.message) for warning in warned)
    print(json.dumps([seconds, peak, float(np.sum(derivative)), on_disk]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--one", nargs=2)
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if options.one:
        return measure(options.one[0], options.one[1] if options.one[1] != "none" else None, options.compiled)
    print("| program | limit | peak, MB | seconds | time over unlimited |\n|---|---|---|---|---|")
    rows = []
    for job, (_, _, limits) in (COMPILED if options.compiled else JOBS).items():
        unlimited = None
        for limit in ("none", *limits):
            command = [sys.executable, __file__, "--one", job, limit, *["--compiled"] * options.compiled]
            runs = [json.loads(subprocess.check_output(command)) for _ in range(options.runs)]
            seconds, peak = (statistics.median(run[i] for run in runs) for i in (0, 1))
            unlimited = unlimited or (seconds, runs[0][2])
            assert np.isclose(runs[0][2], unlimited[1], rtol=1e-8), "the limited gradient is another"
            name = job + (" (on disk)" if runs[0][3] else "")
            rows.append(f"| {name} | {limit} | {peak:.0f} | {seconds:.2f} | {seconds / unlimited[0]:.2f} |")
            print(rows[-1], flush=True)
    if options.write:
        write("memory-compiled" if options.compiled else "memory", rows)


def write(name, lines):
    """Write a table of results, which pages of the documentation include."""
    (Path(__file__).parent / "results" / f"{name}.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
