"""Compiled programs: the gradient against the primal, compilation, scalar operations, chains and calls.

`python benchmarks/staging.py [jax=PYTHON] [torch=PYTHON]` measures JAX and PyTorch too, in interpreters that have them.
Every time is processor time, the best of several runs, of one thread; pin it to a core (`taskset -c 0`).
"""

import functools
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time
import types

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
CACHE = tempfile.TemporaryDirectory()
os.environ["EFFGRAD_CACHE"] = CACHE.name  # first calls compile

import numpy as np  # noqa: E402

import effgrad  # noqa: E402
import peers  # noqa: E402

effgrad.compile(lambda x: x)(1.0)  # imports llvmlite
native = sys.modules["effgrad.stage.native"]

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "examples"))
from mixture.objective import objective as gmm  # noqa: E402

random = np.random.default_rng(0)


def best(f, *args, runs=7):
    times = []
    for _ in range(runs):
        start = time.process_time()
        f(*args)
        times.append(time.process_time() - start)
    return min(times)


def log_sum_exp(x):
    top = np.max(x)
    return np.log(np.sum(np.exp(x - top))) + top


def gmm_arguments(d, k, n):
    shapes = [(k,), (k, d), (k, d), (k, d * (d - 1) // 2), (n, d)]
    return [*map(random.standard_normal, shapes), 1.0]


def gmm_program(alpha, mu, q, l, x, gamma):  # noqa: E741 (the papers' letter)
    return gmm(alpha, mu, q, l, x, gamma, 0)


NUMPY = types.SimpleNamespace(xp=np, zeros=np.zeros, scan=peers.unrolled)
lstm, ode = (functools.partial(program, lib=NUMPY) for program in (peers.lstm, peers.ode))
PROGRAMS = {
    "gmm d=10 k=25 n=1000": (gmm_program, gmm_arguments(10, 25, 1000), (0, 1, 2, 3)),
    "gmm d=64 k=100 n=1000": (gmm_program, gmm_arguments(64, 100, 1000), (0, 1, 2, 3)),
    "lstm 1000 steps of 14": (lstm, [random.standard_normal((10, 14)), random.standard_normal((1001, 14))], (0,)),
    "logsumexp of 10^6": (log_sum_exp, [random.standard_normal(10**6)], (0,)),
    "ode of 2 x 1000": (ode, [random.uniform(1, 2, (2, 1000))], (0,)),
}


def programs():
    rows = {}
    for name, (f, arguments, numbers) in PROGRAMS.items():
        gradient = effgrad.value_and_grad(f, numbers)
        chosen = tuple(arguments[i] for i in numbers)

        def tangent(*args, f=f, numbers=numbers, chosen=chosen):
            return effgrad.jvp(lambda *some: f(*some, *args[len(numbers) :]), chosen and args[: len(numbers)], chosen)

        compiled = [effgrad.compile(g, flush_subnormals=True) for g in (f, gradient, tangent)]
        first = [best(c, *arguments, runs=1) for c in compiled]
        primal, reverse, forward = (best(c, *arguments) for c in compiled)
        rows[name] = {
            "primal ms": primal * 1e3,
            "reverse ms": reverse * 1e3,
            "reverse ratio": reverse / primal,
            "forward ratio": forward / primal,
            "eager primal ms": best(f, *arguments, runs=2) * 1e3,
            "eager gradient ms": best(gradient, *arguments, runs=2) * 1e3,
            "first call s": first[1],
            "sum": float(sum(np.abs(part).sum() for part in compiled[1](*arguments)[1])),
        }
        print(f"{name:24}", *(f"{label} {value:.3g} |" for label, value in rows[name].items()), flush=True)
    return rows


def unrolled(n):
    """The steps of a loop, from a generator, which is not captured."""
    yield from range(n)


def scalar_program(n, sines=True, steps=unrolled):
    """`n` operations on two numbers: arithmetic, and a sine in fourteen of them."""

    def f(x, y):
        count = 1
        for i in steps(n):
            if count + 6 > n:
                return x + y
            if sines and i % 3 == 0:
                x, y, count = x * 0.999 + y * 0.001, np.sin(x), count + 4
            else:
                x, y, count = x + 0.001 * (x * y), y - 0.001 * (x * x), count + 6
        return x + y

    return f


def figures():
    rows = {}
    for label, n, sines in (("20,000 operations", 20_000, True), ("20,000 without sines", 20_000, False)):
        f = effgrad.value_and_grad(scalar_program(n, sines), (0, 1))
        for kind, most in (("straight-line", 10**9), ("interpreter", 0)):
            native.MOST_COMPILED, usual = most, native.MOST_COMPILED
            compiled = effgrad.compile(f)
            rows[f"scalar program, {label}, {kind}: first call s"] = best(compiled, 0.5, 0.3, runs=1)
            time_of_run = best(compiled, 0.5, 0.3, runs=200)
            rows[f"scalar program, {label}, {kind}: ns an operation, value and gradient"] = time_of_run / n * 1e9
            native.MOST_COMPILED = usual
    captured = effgrad.compile(effgrad.value_and_grad(scalar_program(20_000, steps=range), (0, 1)))
    rows["scalar program, 20,000 operations, captured loop: first call s"] = best(captured, 0.5, 0.3, runs=1)
    each = best(captured, 0.5, 0.3, runs=200) / 20_000
    rows["scalar program, 20,000 operations, captured loop: ns an operation, value and gradient"] = each * 1e9
    graph = effgrad.compile(scalar_program(20_000))
    rows["scalar program, 20,000 operations, primal: first call s"] = best(graph, 0.5, 0.3, runs=1)
    many = [float(v) for v in random.uniform(0.99, 1, 250_000)]

    def drawn():
        yield from many

    def long(x, y):
        for a in drawn():
            x, y = x * a + y * 0.001, y - x * a
        return x

    compiled = effgrad.compile(long)
    rows["10^6 different operations: recorded, s"] = best(compiled, 0.5, 0.3, runs=1)
    assert compiled.path(0.5, 0.3).program.tapes
    rows["10^6 different operations: replayed, ns an operation"] = best(compiled, 0.5, 0.3) * 1e3

    def walk(x):
        return effgrad.loop.fori(0, 10**6, lambda i, c: c + 1e-6 * (np.cos(c) - c), x)

    for label, f in (("", walk), (", value and gradient", effgrad.value_and_grad(walk))):
        compiled = effgrad.compile(f)
        rows[f"effgrad.loop of 10^6 steps{label}: first call s"] = best(compiled, 0.3, runs=1)
        rows[f"effgrad.loop of 10^6 steps{label}: ms"] = best(compiled, 0.3) * 1e3
    matrix = np.ones((1000, 1000))
    ceiling = 1e9 / best(lambda: matrix @ matrix)  # multiplications a second, each with an addition
    x = random.uniform(0.5, 1, 10**6)

    def chain(x):
        y = x
        for _ in range(25):
            y = y * 1.0001 + x
        return y

    compiled = effgrad.compile(chain)
    compiled(x)
    rows["chain of 50 operations on 10^6 elements: ms"] = best(compiled, x) * 1e3
    rows["copy of 10^6 elements: ms"] = best(x.copy) * 1e3
    rows["50 additions or multiplications of 10^6 elements at the speed of a product's: ms"] = 25e6 / ceiling * 2e3
    rows["chain of 50 operations, eager: ms"] = best(chain, x) * 1e3
    ten = [random.standard_normal(10) for _ in range(10)]
    compiled = effgrad.compile(lambda *a: sum(a))
    compiled(*ten)
    rows["call with ten arrays: us"] = best(lambda: [compiled(*ten) for _ in range(1000)]) * 1e3
    for label, value in rows.items():
        print(f"{label:55} {value:10.3g}", flush=True)
    return rows


def processor():
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.processor())


def peer(name, python):
    """The same programs on the same arguments by another library."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "arguments.npz"
        arrays = {f"{program}/{i}": a for program, row in PROGRAMS.items() for i, a in enumerate(row[1])}
        np.savez(path, **{key: a for key, a in arrays.items() if isinstance(a, np.ndarray)})
        script = pathlib.Path(__file__).with_name("peers.py")
        done = subprocess.run([python, script, name, path], capture_output=True, text=True, check=True)
    rows = dict(map(json.loads, done.stdout.splitlines()))
    for program, row in rows.items():
        print(f"{name:6} {program:24}", *(f"{label} {value:.4g} |" for label, value in row.items()), flush=True)
    return rows


def main():
    results = {"processor": processor(), "programs": programs(), "figures": figures()}
    for name, python in (argument.split("=") for argument in sys.argv[1:]):
        results[name] = peer(name, python)
    out = pathlib.Path(__file__).parent / "results"
    out.mkdir(exist_ok=True)
    (out / "staging.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
