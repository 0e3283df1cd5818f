"""What scoped interception adds to a derivative call: microseconds for putting the replacements in place and taking
them back, with more and more of SciPy imported, beside the smallest gradient call. Medians of several runs.

    taskset -c 0 python benchmarks/interception.py
"""

import importlib
import statistics
import timeit

from effgrad import grad
from effgrad.program import interception

MODULES = ("linalg", "fft", "signal", "interpolate", "ndimage", "sparse.linalg", "spatial.distance", "stats")


def microseconds(f, number=2000, runs=15):
    return statistics.median(timeit.repeat(f, number=number, repeat=runs)) / number * 1e6


def enter_and_leave():
    with interception.intercepted():
        pass


def nested():
    with interception.intercepted():
        return microseconds(enter_and_leave)


if __name__ == "__main__":
    gradient = grad(lambda x: x * x)
    print(f"{'imported':20}{'replaced':>10}{'interception':>14}{'nested':>8}{'gradient':>10}{'share':>8}")
    for name in ("numpy only", *MODULES):
        if name != "numpy only":
            importlib.import_module(f"scipy.{name}")
        gradient(1.0)
        cost, inner, whole = microseconds(enter_and_leave), nested(), microseconds(lambda: gradient(1.0))
        count = len(interception._replaced)
        print(f"{name:20}{count:10}{cost:11.2f} us{inner:8.2f}{whole:7.1f} us{cost / whole:8.1%}")
