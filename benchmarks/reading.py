"""What reading a user's functions costs: gradients of five small programs, beside another version of effgrad.

    taskset -c 0 python benchmarks/reading.py [--beside CHECKOUT] [--rounds 15]

Both versions run in processes of their own that take turns. A number is the least time of a call, in microseconds, and
the ratio is the median over the rounds. Without a checkout only the times of this version are shown. The last two rows
are a gradient of one product with NumPy alone, and with much of SciPy imported.
"""

import argparse
import functools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import numpy as np

HERE = pathlib.Path(__file__).parents[1]
SCIPY = ("linalg", "fft", "signal", "interpolate", "ndimage", "sparse.linalg", "spatial.distance", "stats", "optimize")


def arrays(x):
    w = np.outer(x, x) + np.eye(len(x))
    for _ in range(5):
        x = np.tanh(w @ x) + 0.1 * x
    return np.sum(x * x)


def scalars(x):
    s = 0.0
    for _ in range(100):
        s = s + x * x * 0.5
    return s


def _line(a, b):
    return a * b + 1.0


def tiny_functions(x):
    s = 0.0
    for _ in range(100):
        s = _line(s, x)
    return s


def plain_loop(x):
    s, t = 0, 1.5
    for i in range(1000):
        s += i * 3 % 7
        t = t * 1.0001 + s * 0.1
        if t > 1e6:
            t = 0.5
    return x * t


def writes(x):
    a = np.zeros(100)
    for i in range(100):
        a[i] = x[i % 10] * 2.0
    return np.sum(a * a)


PROGRAMS = {
    "array operations": (arrays, np.linspace(0, 1, 50)), "300 scalar operations": (scalars, 1.1),
    "100 tiny functions": (tiny_functions, 0.9), "plain loop of 1000": (plain_loop, 1.1),
    "100 writes": (writes, np.linspace(0, 1, 10)), "one product": (lambda x: x * x, 1.1),
}  # fmt: skip


def least(f, runs=40, seconds=0.002):
    """The least time of a call, in microseconds."""
    f()
    start = time.perf_counter()
    f()
    number = max(1, int(seconds / (time.perf_counter() - start)))
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        for _ in range(number):
            f()
        times.append((time.perf_counter() - start) / number)
    return min(times) * 1e6


def measure():
    """The times of this process's version."""
    from effgrad import grad

    found = {name: least(functools.partial(grad(f), x)) for name, (f, x) in PROGRAMS.items()}
    for name in SCIPY:
        __import__(f"scipy.{name}")
    gradient = grad(PROGRAMS["one product"][0])
    return {**found, "one product, SciPy imported": least(functools.partial(gradient, 1.1))}


def run(checkout):
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, __file__, "--measure"], env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beside", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure()))
        return
    pairs = [(run(HERE), run(options.beside.resolve()) if options.beside else None) for _ in range(options.rounds)]
    print("| program | us | ratio |\n|---|---|---|")
    for name in pairs[0][0]:
        ours = statistics.median(here[name] for here, _ in pairs)
        ratio = statistics.median(here[name] / there[name] for here, there in pairs) if options.beside else float("nan")
        print(f"| {name} | {ours:.1f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
