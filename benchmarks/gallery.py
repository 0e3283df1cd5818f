"""What the derivatives of the gallery's programs cost, beside the programs themselves run by NumPy.

taskset -c 0 python benchmarks/gallery.py [--out FILE]: medians of repeated runs, each program's three side by side.
"""

import argparse
import functools
import importlib
import pathlib
import sys
import time
import warnings

import numpy as np

import effgrad

ROOT = pathlib.Path(__file__).parents[1]
ROOMS = [ROOT / "examples", ROOT / "examples" / "gallery"]
KNOWN = "robot_arm ode_fit neural_network gaussian_process hidden_markov".split()


def names():
    return sorted(KNOWN + [path.stem for path in ROOMS[1].glob("*.py")])


def medians(runs, seconds=0.6):
    """The median time of each function, in seconds; they take turns, so that a busy moment is shared."""
    times = [[] for _ in runs]
    end = time.perf_counter() + seconds * len(runs)
    while len(times[0]) < 5 or (time.perf_counter() < end and len(times[0]) < 200):
        for run, taken in zip(runs, times, strict=True):
            begin = time.perf_counter()
            run()
            taken.append(time.perf_counter() - begin)
    return [float(np.median(taken)) for taken in times]


def measure(name):
    """Seconds of f, of value and gradient, of the same compiled, and of the first compiled call."""
    program = importlib.import_module(name)
    x, data = program.start(), program.data()
    gradient = effgrad.value_and_grad(program.objective)
    compiled = effgrad.compile(gradient)
    begin = time.perf_counter()
    compiled(x, data)
    first = time.perf_counter() - begin
    gradient(x, data)
    return [*medians([functools.partial(f, x, data) for f in (program.objective, gradient, compiled)]), first]


def row(name, plain, gradient, compiled, first):
    ms = f"{1e3 * plain:.3g}"
    title = name.replace("_", " ")
    return f"| {title} | {ms} | {gradient / plain:.0f} | {compiled / plain:.2g} | {first:.2g} |"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=pathlib.Path)
    out = parser.parse_args().out
    sys.path[:0] = map(str, ROOMS)
    warnings.simplefilter("ignore")  # that a loop is unrolled
    lines = [
        "| program | NumPy alone, ms | value and gradient, in runs of it | compiled | first call, s |",
        "|---|---|---|---|---|",
    ]
    for name in names():
        lines.append(row(name, *measure(name)))
        print(lines[-1], flush=True)
    if out:
        out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
