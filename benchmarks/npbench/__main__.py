"""Gradients of NPBench's unmodified kernels, beside JAX's own versions: time, first call, and agreement.

    python benchmarks/npbench CHECKOUT [--preset S] [--kernels lu,gemm] [--systems compiled,eager,jax,dace]
                                       [--limit 120] [--into FILE.json] [--chart FILE.svg]

CHECKOUT is a copy of https://github.com/spcl/npbench. Each kernel and system has a process of its own, under limits of
processor time and memory; times are processor time of one thread, the best of several runs. `f` is the kernel in NumPy,
measured in the same process. `error` is the relative difference of the derivative along a direction from a difference
quotient, which is coarse for kernels in float32, with kinks, or badly conditioned. `memory` is how much
more is resident at the highest than before the first call. With `--into` the results are added to a file,
whose kernels are not measured again; the table and the chart show all of them. The first call of DaCe AD
runs a compiler of C++, whose time is not counted.
"""

import argparse
import json
import math
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

from problems import Problem, has_loops, kernels

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
    if system == "dace":
        import dace_programs

        return dace_programs.gradient(problem)
    import effgrad

    derivative = effgrad.grad(problem.loss, argnums=places)
    return effgrad.compile(derivative) if system == "compiled" else derivative


def measured(root, kernel, system, preset):
    """The times of one kernel in one system, in this process."""
    problem = Problem(root, kernel, preset)
    forward = fastest(lambda: problem.total(problem.outputs(problem.arguments())))
    difference, run = problem.difference(), gradient(problem, kernel, system)
    before, start = reset_peak(), clock()
    found = run(*problem.points())
    first, points = clock() - start, problem.points()
    error = abs(problem.along(found) - difference) / (abs(difference) + 1e-300)
    steady = fastest(lambda: run(*points))
    memory = resident("VmHWM") - before
    return {"f": forward, "steady": steady, "first": first, "error": error, "memory": memory}


def resident(field):
    """How much of the process is in memory now (VmRSS), or was at the highest (VmHWM), in megabytes; Linux only."""
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


def reset_peak():
    """Begin anew to note the highest, and return what is in memory now."""
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    return resident("VmRSS")


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
        environment.pop("OPENBLAS_CORETYPE", None)  # each library chooses its instructions by the processor
        done = subprocess.run(command, capture_output=True, text=True, env=environment, preexec_fn=limited)
    if done.returncode == 0:
        return json.loads(done.stdout.splitlines()[-1])
    told = [line for line in done.stderr.splitlines() if "Error" in line] or done.stderr.strip().splitlines()
    limit = done.returncode < 0 or not told
    return {"why": f"more than {a.limit} s or {a.memory} GB" if limit else told[-1][:70]}


def table(results, systems, loops):
    """A Markdown table, and the means below it."""
    several = [f"{s} / f" for s in systems], [f"first {s}, s" for s in systems], [f"{s}, MB" for s in systems]
    head = ["kernel", "f, ms", *[name for names in several for name in names], "error"]
    rows = [head, ["---"] * len(head)]
    for kernel, by_system in results.items():
        found = [by_system.get(s, {}) for s in systems]
        f = next((r["f"] for r in found if "f" in r), None)
        ratios = [f"{r['steady'] / r['f']:.3g}" if "f" in r else r.get("why", "-") for r in found]
        firsts = [f"{r['first']:.2g}" if "f" in r else "-" for r in found]
        memories = [f"{r['memory']:.0f}" if "f" in r else "-" for r in found]
        error = f"{found[0]['error']:.1g}" if "f" in found[0] else "-"
        rows.append([kernel, f"{f * 1e3:.3g}" if f else "-", *ratios, *firsts, *memories, error])
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([*lines, "", *means(results, systems, loops)])


def means(results, systems, loops):
    """Geometric means and medians: over all kernels, and over those with loops; and of each system by the first."""
    lines = []
    for title, some in ("all", list(results)), ("loops", [k for k in results if k in loops]):
        for s in systems:
            done = [results[k][s] for k in some if "f" in results[k].get(s, {})]
            lines.append(f"{title}: {s} {mean([r['steady'] / r['f'] for r in done])} of f")
        for s in systems[1:]:
            pairs = [[results[k].get(x, {}) for x in (s, systems[0])] for k in some]
            ratios = [a["steady"] / b["steady"] for a, b in pairs if "f" in a and "f" in b]
            lines.append(f"{title}: {s} / {systems[0]} {mean(ratios)}")
    return lines


def mean(ratios):
    """The geometric mean of ratios and their median, as text."""
    if not ratios:
        return "-"
    geometric = math.exp(statistics.mean(map(math.log, ratios)))
    return f"geometric mean {geometric:.3g}, median {statistics.median(ratios):.3g} ({len(ratios)} kernels)"


def draw(results, systems, path):
    """A chart of all kernels: the gradient in times of f for each system, on a logarithmic scale."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "effgrad"
    import matplotlib.pyplot as plt

    done = {s: {k: r[s]["steady"] / r[s]["f"] for k, r in results.items() if "f" in r.get(s, {})} for s in systems}
    order = sorted(done[systems[0]], key=done[systems[0]].__getitem__)
    figure, axes = plt.subplots(figsize=(7, 0.19 * len(order) + 1), layout="constrained")
    for s, mark in zip(systems, "os^d", strict=False):
        places = [(k, n) for n, k in enumerate(order) if k in done[s]]
        axes.plot([done[s][k] for k, _ in places], [n for _, n in places], mark, label=s, markersize=4)
    axes.axvline(1, color="gray", linewidth=0.8)
    axes.set(xscale="log", xlabel="gradient / NumPy's run", yticks=range(len(order)), ylim=(len(order) - 0.5, -0.5))
    axes.set_yticklabels(order, fontsize=7)
    axes.grid(axis="x", linewidth=0.3)
    axes.legend(loc="lower left")
    figure.savefig(path, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout")
    parser.add_argument("--preset", default="S")
    parser.add_argument("--kernels")
    parser.add_argument("--systems", default="compiled")
    parser.add_argument("--limit", type=int, default=120, help="seconds of processor time for each kernel and system")
    parser.add_argument("--memory", type=int, default=6, help="gigabytes for each kernel and system")
    parser.add_argument("--into", type=pathlib.Path, help="a file of results, which those measured are added to")
    parser.add_argument("--chart", help="a file for a chart of the results")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.worker:
        kernel, system = a.worker.split(":")
        print(json.dumps(measured(a.checkout, kernel, system, a.preset)))
        return
    systems, chosen = a.systems.split(","), a.kernels.split(",") if a.kernels else kernels(a.checkout)
    results = json.loads(a.into.read_text()) if a.into and a.into.exists() else {}
    for kernel in chosen:
        for s in [s for s in systems if s not in results.get(kernel, {})]:
            results.setdefault(kernel, {})[s] = launched(a, kernel, s)
            print(kernel, s, results[kernel][s], file=sys.stderr)
        if a.into:
            a.into.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results, systems, {k for k in results if has_loops(a.checkout, k)}))
    if a.chart:
        draw(results, systems, a.chart)


if __name__ == "__main__":
    main()
