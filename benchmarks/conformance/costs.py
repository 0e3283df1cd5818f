"""The costs of the gradients of other people's programs, and which of their loops a compiled gradient unrolls.

    PYTHONPATH=src:tests python -m benchmarks.conformance costs FOLDER [NAME]...

The programs are those of `conformance programs`. Each runs in a process of its own; times are processor time, the least
of a few runs. What is printed at the end are medians, and the reasons for which loops were unrolled.
"""

import collections
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

from benchmarks.conformance import programs
from benchmarks.conformance.programs.judge import weighted

import effgrad

SECONDS = 120
TURNS = 3
ALONE = """
import pathlib, sys
from benchmarks.conformance import costs
costs.one(pathlib.Path(sys.argv[1]), sys.argv[2])
"""


def seconds(f: Callable[..., Any], *args: Any) -> float:
    start = time.process_time()
    f(*args)
    return time.process_time() - start


def one(folder: pathlib.Path, name: str) -> None:
    """Print the costs of one program, in seconds, as JSON."""
    sys.stdout, out = sys.stderr, sys.stdout  # programs print
    f, *args = programs.table()[name].function(folder)
    objective = weighted(f, tuple(args))
    slope = effgrad.grad(objective)
    slope(tuple(args))
    compiled = effgrad.compile(slope)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", effgrad.StagingWarning)
        first = seconds(compiled, tuple(args))
    costs: dict[str, Any] = {
        key: min(seconds(run, tuple(args)) for _ in range(TURNS))
        for key, run in (("f", objective), ("eager", slope), ("compiled", compiled))
    }
    # The loop over the results is ours.
    found = [str(w.message) for w in caught if " is unrolled, because of " in str(w.message)]
    costs |= {"first": first, "unrolled": [text for text in found if "'objective'" not in text]}
    print(json.dumps(costs), file=out)


def apart(folder: pathlib.Path, name: str) -> dict[str, Any] | None:
    """The costs of one program, from a process of its own; None if it has none."""
    environment = {**os.environ, "MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            [sys.executable, "-c", ALONE, str(folder), name], capture_output=True, text=True, timeout=SECONDS,
            check=True, env=environment,
        )  # fmt: skip
    except subprocess.SubprocessError:
        return None
    costs: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return costs


def run(folder: pathlib.Path, *names: str) -> None:
    found = {}
    for name in names or programs.table():
        costs = apart(folder, name)
        if costs is None:
            print(f"{name}: no costs", flush=True)
            continue
        found[name] = costs
        print(
            f"{name}: f {costs['f'] * 1e3:.3g} ms, gradient {costs['eager'] / costs['f']:.3g} f, compiled "
            f"{costs['compiled'] / costs['f']:.3g} f, first call {costs['first']:.2g} s"
            + "".join(f"\n  {text}" for text in costs["unrolled"]),
            flush=True,
        )
    summary(found)


def summary(found: dict[str, dict[str, Any]]) -> None:
    every = [*found.values()]
    print(f"\n{len(every)} programs; in the median:")
    print(f"gradient {statistics.median(c['eager'] / c['f'] for c in every):.3g} f")
    print(f"compiled {statistics.median(c['compiled'] / c['f'] for c in every):.3g} f")
    print(f"first call {statistics.median(c['first'] for c in every):.2g} s")
    print(f"{sum(bool(c['unrolled']) for c in every)} programs have a loop of their own that is unrolled, because of")
    reasons = collections.Counter(text.partition("because of ")[2] for c in every for text in c["unrolled"])
    for reason, count in reasons.most_common():
        print(f"{count:4d}  {reason}")
