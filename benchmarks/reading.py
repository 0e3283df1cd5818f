"""What reading a user's functions costs: gradients of five small programs, beside another version of effgrad.

    taskset -c 0 python benchmarks/reading.py [--beside CHECKOUT] [--rounds 15]

Both versions run in processes of their own that take turns. A number is the least time of a call, in microseconds, and
the ratio is the median over the rounds. Without a checkout only the times of this version are shown. The first rows are
the import of effgrad, and the first gradient in a file over the second; the last two are a gradient of one product with
NumPy alone, and with much of SciPy imported. A first run, which compiles the modules, does not count.
"""

import argparse
import functools
import json
import os
import pathlib
import runpy
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
from scipy import linalg, special  # noqa: F401 (what effgrad imports of SciPy)

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


FUNCTION = """
def f{n}(x):
    a = np.zeros(3)
    for i in range(3):
        a[i] = np.sin(x) * i + {n}
    return np.sum(a * a)

"""


def reading(grad, lines):
    """The time of a function's first gradient over its second, in a file of so many lines, in microseconds."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "functions.py"
        file.write_text("import numpy as np\n" + "".join(FUNCTION.format(n=n) for n in range(lines // 7)))
        functions = runpy.run_path(str(file))
        times = []
        for _ in range(2):
            start = time.perf_counter()
            grad(functions[f"f{lines // 14}"])(0.5)
            times.append((time.perf_counter() - start) * 1e6)
    return times[0] - times[1]


def importing():
    """The processor time of importing effgrad where NumPy and what it imports of SciPy is there, in microseconds."""
    start = time.process_time()
    from effgrad import grad

    return grad, (time.process_time() - start) * 1e6


def measure():
    """The times of this process's version."""
    grad, imported = importing()
    grad(PROGRAMS["100 writes"][0])(PROGRAMS["100 writes"][1])  # what only the first gradient takes

    found = {"import, over NumPy's and SciPy's": imported}
    found |= {f"reading a file of {lines} lines": reading(grad, lines) for lines in (35, 700, 7000)}
    found |= {name: least(functools.partial(grad(f), x)) for name, (f, x) in PROGRAMS.items()}
    for name in SCIPY:
        __import__(f"scipy.{name}")
    gradient = grad(PROGRAMS["one product"][0])
    return {**found, "one product, SciPy imported": least(functools.partial(gradient, 1.1))}


def run(checkout, compiled):
    paths = {"PYTHONPATH": str(checkout / "src"), "PYTHONPYCACHEPREFIX": compiled, "OMP_NUM_THREADS": "1"}
    environment = {**os.environ, **paths, "PYTHONDONTWRITEBYTECODE": ""}
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
    versions = [HERE, *([options.beside.resolve()] if options.beside else [])]
    with tempfile.TemporaryDirectory() as compiled:
        rounds = [[run(version, compiled) for version in versions] for _ in range(options.rounds + 1)]
    pairs = [(found[0], found[-1]) for found in rounds[1:]]
    print("| program | us | ratio |\n|---|---|---|")
    for name in pairs[0][0]:
        ours = statistics.median(here[name] for here, _ in pairs)
        ratio = statistics.median(here[name] / there[name] for here, there in pairs) if options.beside else float("nan")
        print(f"| {name} | {ours:.1f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
