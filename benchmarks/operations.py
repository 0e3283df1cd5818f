"""The cost of one operation, forward and reverse, on Python floats and small arrays; HIPS autograd where installed.

Medians of five runs, in microseconds an operation, for chains of operations.
"""

import json
import pathlib
import statistics
import time

import numpy as np

from effgrad import grad, jvp


def seconds(f, *args, runs=5):
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        f(*args)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def scalar_chain(n):
    def f(x):
        for _ in range(n):
            x = x * 1.0000001
        return x

    return f


def array_chain(operation, sum_):
    def f(x):
        y = x
        for _ in range(100):
            y = operation(y, x)
        return sum_(y)

    return f


def main():
    rows = {}
    for n in (10**4, 10**5, 10**6):
        runs = 5 if n < 10**6 else 3
        rows[f"scalar forward, {n} operations"] = seconds(jvp, scalar_chain(n), (1.0,), (1.0,), runs=runs) / n
        rows[f"scalar reverse, {n} operations"] = seconds(grad(scalar_chain(n)), 1.0, runs=runs) / n
    libraries = {"effgrad": (grad, np)}
    try:
        import autograd
        import autograd.numpy

        libraries["autograd"] = (autograd.grad, autograd.numpy)
    except ImportError:
        print("autograd is not installed: no comparison (pip install autograd)")
    for size in (1, 1000):
        x = np.full(size, 0.5)
        for name, (gradient, numpy) in libraries.items():
            for label, operation in {"sin": lambda y, x, np=numpy: np.sin(y), "mul": lambda y, x: y * x}.items():
                g = gradient(array_chain(operation, numpy.sum))
                rows[f"{label} of size {size}, reverse, {name}"] = seconds(g, x, runs=21) / 100
    for label, value in rows.items():
        print(f"{label:45} {value * 1e6:9.2f} us")
    out = pathlib.Path(__file__).parent / "results"
    out.mkdir(exist_ok=True)
    (out / "operations.json").write_text(json.dumps({k: v * 1e6 for k, v in rows.items()}, indent=1) + "\n")


if __name__ == "__main__":
    main()
