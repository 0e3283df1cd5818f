"""The cost of one operation, forward and reverse, on Python floats and small arrays, beside the peers installed.

Medians of several runs, in microseconds an operation, for chains of operations; the rounds of all libraries are
interleaved in one run. Memory is the peak that Python allocates, in bytes an operation.
"""

import json
import pathlib
import statistics
import time
import tracemalloc

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


def peak_bytes(f, *args):
    tracemalloc.start()
    f(*args)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def peers():
    """For each library: the gradient of a chain as a function of a size, if the library is installed."""
    sin, mul = (lambda np: lambda y, x: np.sin(y)), (lambda np: lambda y, x: y * x)
    operations = {"sin": sin, "mul": mul}

    def ours(name, size):
        gradient, x = grad(array_chain(operations[name](np), np.sum)), np.full(size, 0.5)
        return lambda: gradient(x)

    libraries = {"effgrad": ours}
    try:
        import autograd
        import autograd.numpy

        def hips(name, size):
            gradient = autograd.grad(array_chain(operations[name](autograd.numpy), autograd.numpy.sum))
            x = np.full(size, 0.5)
            return lambda: gradient(x)

        libraries["autograd"] = hips
    except ImportError:
        print("autograd is not installed: no comparison (pip install autograd)")
    try:
        import torch

        torch.set_num_threads(1)

        def pytorch(name, size):
            f = array_chain(operations[name](torch), torch.sum)

            def gradient():
                x = torch.full((size,), 0.5, dtype=torch.float64, requires_grad=True)
                return torch.autograd.grad(f(x), x)

            return gradient

        libraries["torch"] = pytorch
    except ImportError:
        print("torch is not installed: no comparison (pip install torch)")
    return libraries


def main():
    rows = {}
    for n in (10**4, 10**5, 10**6):
        runs = 5 if n < 10**6 else 3
        rows[f"scalar forward, {n} operations"] = seconds(jvp, scalar_chain(n), (1.0,), (1.0,), runs=runs) / n
        rows[f"scalar reverse, {n} operations"] = seconds(grad(scalar_chain(n)), 1.0, runs=runs) / n
    for label, value in rows.items():
        print(f"{label:45} {value * 1e6:9.2f} us")
    n = 10**5
    memory = {
        "scalar forward": peak_bytes(jvp, scalar_chain(n), (1.0,), (1.0,)) / n,
        "scalar reverse": peak_bytes(grad(scalar_chain(n)), 1.0) / n,
    }
    for label, value in memory.items():
        print(f"{label:45} {value:9.0f} bytes an operation")
    libraries = peers()
    for size in (1, 1000):
        for operation in ("sin", "mul"):
            gradients = {name: make(operation, size) for name, make in libraries.items()}
            times = {name: [] for name in gradients}
            for _ in range(41):
                for name, gradient in gradients.items():
                    times[name].append(seconds(gradient, runs=1) / 100)
            ours = statistics.median(times["effgrad"])
            for name, measured in times.items():
                value = statistics.median(measured)
                label = f"{operation} of size {size}, reverse, {name}"
                rows[label] = value
                print(f"{label:45} {value * 1e6:9.2f} us   effgrad takes {ours / value:.2f} of it")
    out = pathlib.Path(__file__).parent / "results"
    out.mkdir(exist_ok=True)
    results = {"microseconds": {k: v * 1e6 for k, v in rows.items()}, "bytes": memory}
    (out / "operations.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
