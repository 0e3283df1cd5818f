"""Gradients of NPBench's unmodified kernels, beside JAX's own versions: time, first call, and agreement.

    python benchmarks/npbench CHECKOUT [--preset S] [--kernels lu,gemm] [--systems compiled,eager,jax] [--limit 120]

CHECKOUT is a copy of https://github.com/spcl/npbench. Each kernel and system has a process of its own, under limits of
processor time and memory; times are processor time of one thread, the best of several runs. `f` is the kernel in NumPy,
measured in the same process. `error` is the relative difference of the derivative along a direction from a difference
quotient, which is coarse for kernels in float32, with kinks, or badly conditioned.
"""

import argparse
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

from problems import Problem, kernels

clock = time.process_time
SHORT = 0.02


def gradient(problem, kernel, system):
    """The gradient of the loss in the active arrays, as a function of these."""
    places = tuple(range(len(problem.active)))
    if system == "jax":
        import jax

        jax.config.update("jax_enable_x64", True)
        problem.for_jax(kernel)
        derivative = jax.jit(jax.grad(lambda *active: problem.loss(*active), argnums=places))
        return lambda *active: jax.block_until_ready(derivative(*active))
    import effgrad

    derivative = effgrad.grad(problem.loss, argnums=places)
    return effgrad.compile(derivative) if system == "compiled" else derivative


def measured(root, kernel, system, preset):
    """The times of one kernel in one system, in this process."""
    problem = Problem(root, kernel, preset)
    forward = fastest(lambda: problem.total(problem.outputs(problem.arguments())))
    difference, run = problem.difference(), gradient(problem, kernel, system)
    start = clock()
    found = run(*problem.points())
    first, points = clock() - start, problem.points()
    error = abs(problem.along(found) - difference) / (abs(difference) + 1e-300)
    return {"f": forward, "steady": fastest(lambda: run(*points)), "first": first, "error": error}


def fastest(run, budget=1.5):
    """The processor time of a call, the best of several; short calls are timed together, for the clock is coarse."""
    times, together = [], 1
    while not times or (len(times) < 30 and sum(times) * together < budget):
        start = clock()
        for _ in range(together):
            run()
        spent = clock() - start
        if spent < SHORT:
            together *= 4
        else:
            times.append(spent / together)
    return min(times)


def launched(a, kernel, system):
    """The same in a process of its own: the times, or why there are none."""
    command = [sys.executable, __file__, a.checkout, "--preset", a.preset, "--worker", f"{kernel}:{system}"]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

    def limited():
        resource.setrlimit(resource.RLIMIT_CPU, (a.limit, a.limit))
        resource.setrlimit(resource.RLIMIT_AS, (a.memory << 30, a.memory << 30))

    with tempfile.TemporaryDirectory() as cache:
        flags = {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"}
        environment = {**os.environ, **threads, **flags, "EFFGRAD_CACHE": cache}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, preexec_fn=limited)
    if done.returncode == 0:
        return json.loads(done.stdout.splitlines()[-1])
    told = done.stderr.strip().splitlines()
    limit = done.returncode < 0 or not told
    return {"why": f"more than {a.limit} s or {a.memory} GB" if limit else told[-1][:70]}


def table(results, systems):
    """A Markdown table, and the means below it."""
    head = ["kernel", "f, ms", *[f"{s}, of f" for s in systems], "first call, s", "error"]
    rows = [head, ["---"] * len(head)]
    for kernel, by_system in results.items():
        found = next((r for r in by_system.values() if "f" in r), {})
        ratios = [f"{r['steady'] / r['f']:.3g}" if "f" in r else r["why"] for r in by_system.values()]
        own = by_system.get("compiled", found)
        figures = [f"{own[k]:.2g}" if k in own else "-" for k in ("first", "error")]
        rows.append([kernel, f"{found['f'] * 1e3:.3g}" if found else "-", *ratios, *figures])
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    for s in systems:
        ratios = [r[s]["steady"] / r[s]["f"] for r in results.values() if "f" in r.get(s, {})]
        if ratios:
            mean = math.exp(statistics.mean(map(math.log, ratios)))
            middle = statistics.median(ratios)
            lines.append(f"\n{s}: {len(ratios)} kernels, geometric mean {mean:.3g} of f, median {middle:.3g}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout")
    parser.add_argument("--preset", default="S")
    parser.add_argument("--kernels")
    parser.add_argument("--systems", default="compiled")
    parser.add_argument("--limit", type=int, default=120, help="seconds of processor time for each kernel and system")
    parser.add_argument("--memory", type=int, default=6, help="gigabytes for each kernel and system")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.worker:
        kernel, system = a.worker.split(":")
        print(json.dumps(measured(a.checkout, kernel, system, a.preset)))
        return
    systems = a.systems.split(",")
    results = {}
    for kernel in a.kernels.split(",") if a.kernels else kernels(a.checkout):
        results[kernel] = {s: launched(a, kernel, s) for s in systems}
        print(kernel, results[kernel], file=sys.stderr)
    print(table(results, systems))


if __name__ == "__main__":
    main()
