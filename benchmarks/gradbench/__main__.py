"""Effgrad beside its peers on the evaluations of GradBench: `./dev bench gradbench [EVALUATION...] [--peers ...]`.

Each measurement has a process of its own, pinned to one core with one thread; all tools get the same inputs, and their
results are compared with each other. Peers are installed in virtual environments of their own; a clone of the suite
in which `make` has built `tools/manual` or `tools/codipack` gives these too. Writes the figures as JSON, as Markdown
tables and as charts; what is not measured keeps the figures that it had.
"""

import argparse
import datetime
import json
import math
import os
import pathlib
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from dataclasses import asdict, dataclass

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import charts
from workloads import SCALING, WORKLOADS

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OURS = ("effgrad", "effgrad_eager")
# What each peer needs; those with the same entry share an environment.
REQUIREMENTS = {
    "autograd": ("autograd==1.9.1", "scipy"),
    "torch": ("torch==2.13.0", "numpy", "scipy"),
    "jax": ("jax[cpu]==0.10.2", "scipy"),
    "jax_nojit": ("jax[cpu]==0.10.2", "scipy"),
    "tensorflow": ("tensorflow-cpu==2.21.0", "scipy"),
}
# Tools of the suite itself, in C++: derivatives written by hand, and a library of operator overloading.
SUITES = ("manual", "codipack")
# Peers that run operation by operation.
EAGER = ("autograd", "torch", "jax_nojit", "tensorflow")
ONE_THREAD = {
    **{f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")},
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "PYTHONPATH": str(ROOT / "src"),
    "TF_CPP_MIN_LOG_LEVEL": "3",
}
# How far results may be apart, relative to the largest number in them: all tools compute in double precision. The
# hand-written derivative of ode is that of the equation's solution, not of the steps.
TOLERANCE = 1e-9
OF_THE_SOLUTION = {("ode", "manual"): 1e-4}


@dataclass
class Figure:
    """One measurement. Times are in milliseconds, memory in MB; `note` says what went wrong, if anything."""

    evaluation: str
    workload: str
    tool: str
    first: float | None = None
    median: float | None = None
    runs: int = 0
    peak: float | None = None
    grown: float | None = None
    note: str = ""
    day: str = ""
    processor: str = ""


def environment(peer: str) -> pathlib.Path:
    """The interpreter of a peer, installed now if it is not."""
    requirements = REQUIREMENTS[peer]
    place = ROOT / ".venv-peers" / requirements[0].partition("=")[0].partition("[")[0]
    python = place / "bin" / "python"
    if not (place / "installed").exists():
        venv.create(place, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *requirements], check=True, capture_output=True)
        (place / "installed").write_text("\n".join(requirements))
    return python


def measure(python, tool, evaluation, workload, options, result) -> Figure:
    """Run the worker."""
    figure = Figure(evaluation, workload, tool, day=datetime.date.today().isoformat(), processor=processor())
    command = ["worker.py", tool, evaluation, workload, options.seconds, options.limit, result, options.scaling]
    if tool in SUITES:
        command = ["suites_worker.py", options.suite, tool, evaluation, workload, options.seconds, result]
    limit = options.limit * (4 if tool in SUITES else 1)  # which read and write their numbers as text
    with subprocess.Popen(
        [python, *map(str, command)], cwd=HERE, env={**os.environ, **ONE_THREAD}, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, preexec_fn=lambda: os.sched_setaffinity(0, {options.core}), start_new_session=True,
    ) as run:  # fmt: skip
        try:
            output, errors = run.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            figure.note = f"over {limit:g} s"
            return figure
    if run.returncode:
        last = (errors.strip().splitlines() or [f"exit status {run.returncode}"])[-1]
        figure.note = last if run.returncode > 0 else f"ended by signal {-run.returncode}"
        return figure
    told = json.loads(output.splitlines()[-1])
    if told is None:
        figure.note = "no program"
        return figure
    first, *later = told["nanoseconds"]
    figure.first, figure.median = first / 1e6, statistics.median(later or [first]) / 1e6
    figure.runs = len(later)
    figure.peak = told["peak"] / 1e6
    figure.grown = None if told["before"] is None else (told["peak"] - told["before"]) / 1e6
    return figure


def difference(result, reference, evaluation) -> float:
    """How far results are apart; infinite if one is not a number or they have other sizes."""
    with np.load(result) as a, np.load(reference) as b:
        parts = [[archive[name] for name in archive.files] for archive in (a, b)]
    if evaluation == "ba" and parts[0][0].size < parts[1][0].size:  # the suite's tools tell the ends of each array
        data, indices, pointers = (np.append(part[:30], part[-1]) for part in parts[1])
        parts[1] = [indices, pointers, data]
    x, y = map(np.concatenate, parts)
    if x.shape != y.shape or not np.all(np.isfinite(x)) or not np.all(np.isfinite(y)):
        return math.inf
    pairs = zip(*parts, strict=True) if len(parts[0]) == len(parts[1]) else [(x, y)]
    return max(_apart(a, b) if a.shape == b.shape else _apart(x, y) for a, b in pairs)


def _apart(x, y) -> float:
    return float(np.max(np.abs(x - y), initial=0.0) / max(np.max(np.abs(y), initial=0.0), 1e-300))


def compared(figure: Figure, result: str, reference: str) -> Figure:
    """The figure, with a note if the result is not that of the others."""
    apart = difference(result, reference, figure.evaluation)
    if not apart <= OF_THE_SOLUTION.get((figure.evaluation, figure.tool), TOLERANCE):
        figure.note = f"differs by {apart:.1e}"
    return figure


def measured(jobs, tools, options, keep) -> None:
    """Measure, with a progress bar; each figure is kept as soon as it is there."""
    columns = TextColumn("{task.description:44}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    end = time.monotonic() + 60 * options.minutes
    with Progress(*columns) as progress, tempfile.TemporaryDirectory() as folder:
        task = progress.add_task("", total=len(jobs))
        for evaluation, workload, tool in jobs:
            if time.monotonic() > end:
                progress.console.print(f"{options.minutes:g} minutes are over: the rest keeps the figures that it had")
                break
            progress.update(task, description=f"{evaluation} {workload} {tool}")
            result, reference = f"{folder}/{tool}.npz", f"{folder}/{evaluation}-{workload}.npz"
            figure = measure(tools[tool], tool, evaluation, workload, options, result)
            if figure.median is not None:
                # The first to answer is whom the others are compared with; it is compared with itself.
                figure = compared(figure, result, reference if os.path.exists(reference) else result)
                if not os.path.exists(reference) and not figure.note:
                    os.rename(result, reference)
            keep(figure)
            progress.advance(task)


def processor() -> str:
    info = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in info if line.startswith("model name")), platform.machine())


def machine() -> str:
    """The processor and the versions that the figures are from."""
    return f"{processor()}, one core, CPython {platform.python_version()}, NumPy {np.__version__}"


def summary(figures: list[Figure]) -> list[str]:
    """Ours as multiples of the hand-written C++, of the best other peer, and of the best peer that is not compiled."""
    times: dict[tuple[str, str], dict[str, float]] = {}
    for f in figures:
        if f.median is not None and not f.note:
            times.setdefault((f.evaluation, f.workload), {})[f.tool] = f.median
    lines = [
        "| workload | effgrad ms | / manual | / best other | which | eager ms | / best eager | which |",
        "| --- | ---: | ---: | ---: | --- | ---: | ---: | --- |",
    ]

    def ratio(time, peers):
        best = min(peers, key=peers.get, default=None)
        return (f"{time / peers[best]:.2g}", best) if time and best else ("-", "-")

    for (evaluation, workload), own in times.items():
        eager = {tool: t for tool, t in own.items() if tool in EAGER}
        others = {tool: t for tool, t in own.items() if tool not in (*OURS, "manual")}
        ours, slow = own.get("effgrad"), own.get("effgrad_eager")
        cells = [f"{evaluation} {workload}", f"{ours:.3g}" if ours else "-"]
        cells += [ratio(ours, {"manual": own["manual"]} if "manual" in own else {})[0], *ratio(ours, others)]
        cells += [f"{slow:.3g}" if slow else "-", *ratio(slow, eager)]
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def markdown(figures: list[Figure], described: str) -> str:
    """Ratios, and a table for each evaluation, of each workload the fastest tool first."""
    lines = [f"Medians of the runs after the first, in processor time, on {described}.", "", *summary(figures)]
    for evaluation in dict.fromkeys(f.evaluation for f in figures):
        lines += [
            f"### {evaluation}", "", "| workload | tool | derivative ms | first run ms | peak MB | of which grown MB |",
            "| --- | --- | ---: | ---: | ---: | ---: |",
        ]  # fmt: skip
        own = [f for f in figures if f.evaluation == evaluation and f.note != "no program"]
        places = {workload: place for place, workload in enumerate(dict.fromkeys(f.workload for f in own))}
        for f in sorted(own, key=lambda f: (places[f.workload], f.median or math.inf)):
            name = f"**{f.tool}**" if f.tool in OURS else f.tool
            numbers = (
                [f"{f.median:.3g}", f"{f.first:.3g}", f"{f.peak:.0f}", "-" if f.grown is None else f"{f.grown:.0f}"]
                if f.median is not None and not f.note
                else [f.note, "-", "-", "-"]
            )
            lines.append(f"| {f.workload} | {name} | " + " | ".join(numbers) + " |")
        lines.append("")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev bench gradbench", description=__doc__.split("\n")[0])
    parser.add_argument(
        "evaluations", nargs="*", help=f"of {', '.join(WORKLOADS)}, or one workload, as gmm/2_5_1000 (default: all)"
    )
    parser.add_argument("--peers", default=",".join(REQUIREMENTS), help="peers, separated by commas; '' for none")
    parser.add_argument("--seconds", type=float, default=0.5, help="how long each is run, after its first run")
    parser.add_argument("--limit", type=float, default=30.0, help="seconds after which a measurement is given up")
    parser.add_argument("--minutes", type=float, default=40.0, help="after which no further measurement begins")
    parser.add_argument("--reuse", action="store_true", help="keep the figures of peers of this day and processor")
    parser.add_argument("--suite", type=pathlib.Path, help="a clone of the suite whose C++ tools are measured too")
    parser.add_argument("--core", type=int, default=min(os.sched_getaffinity(0)), help="the core to run on")
    parser.add_argument("--scaling", action="store_true", help="how ours grow with the workload, instead of the table")
    options = parser.parse_args()
    console = Console()
    table = SCALING if options.scaling else WORKLOADS
    asked = [tuple(name.split("/", 1)) for name in options.evaluations or table]
    chosen = [(name, w) for name, *one in asked for w in one or table.get(name, ())]
    peers = [] if options.scaling else [name for name in options.peers.split(",") if name]
    unknown = [name for name, *_ in asked if name not in table]
    unknown += [f"{e}/{w}" for e, w in chosen if w not in table[e]]
    unknown += [name for name in peers if name not in REQUIREMENTS]
    if unknown:
        console.print(f"there is no evaluation, workload or peer {unknown[0]!r}")
        return 2
    tools = dict.fromkeys(OURS, sys.executable)
    for peer in peers:
        try:
            with console.status(f"installing {peer}"):
                tools[peer] = environment(peer)
        except subprocess.CalledProcessError as error:
            console.print(f"{peer} cannot be installed: {error.stderr.decode().strip().splitlines()[-1]}")
    if options.suite and not options.scaling:
        tools |= {tool: sys.executable for tool in SUITES if (options.suite / "tools" / tool / "bin").is_dir()}
    stored = ROOT / "benchmarks" / "results" / ("gradbench-scaling.json" if options.scaling else "gradbench.json")
    known = json.loads(stored.read_text())["figures"] if stored.exists() else []
    figures = {(f["evaluation"], f["workload"], f["tool"]): Figure(**f) for f in known}

    def ordered() -> list[Figure]:
        places = {(e, w): place for place, (e, w) in enumerate((e, w) for e in table for w in table[e])}
        return sorted(figures.values(), key=lambda f: places[f.evaluation, f.workload])

    def keep(figure: Figure) -> None:
        figures[figure.evaluation, figure.workload, figure.tool] = figure
        stored.write_text(
            json.dumps({"machine": machine(), "figures": [asdict(f) for f in ordered()]}, indent=1) + "\n"
        )

    def is_known(job) -> bool:
        figure = figures.get(job)
        today = datetime.date.today().isoformat(), processor()
        return figure is not None and job[2] not in OURS and (figure.day, figure.processor) == today

    # What runs operation by operation, and may take long, comes last.
    jobs = sorted(((e, w, t) for e, w in chosen for t in tools), key=lambda job: job[2] in (*EAGER, "effgrad_eager"))
    measured([job for job in jobs if not (options.reuse and is_known(job))], tools, options, keep)
    written = charts.scaling(ordered()) if options.scaling else markdown(ordered(), machine())
    stored.with_suffix(".md").write_text(written)
    if not options.scaling:
        charts.draw(ordered(), ROOT / "docs", OURS)
    console.print(written, markup=False, highlight=False)
    failed = [f for f in ordered() if f.note.startswith("differs")]
    for f in failed:
        console.print(f"{f.evaluation} {f.workload}: {f.tool} {f.note}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
