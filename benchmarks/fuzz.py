"""Random programs, value and gradient, compiled against eager: `python benchmarks/fuzz.py 10000 [first seed]`.

Each program is compiled with and without optimisation, and run at two points, of which the second may take another
path. A thousand share a process, so that a crash of machine code is seen and the run goes on after it.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
CHUNK = 1000


def differences(seed):
    """What is wrong with the program of a seed: a list of messages."""
    import numpy as np
    from random_programs import random_program

    from effgrad import compile, value_and_grad
    from effgrad.stage import GuardFailed, stage
    from effgrad.stage.native import program

    f = value_and_grad(random_program(seed))
    x = np.random.default_rng(seed).normal(size=(3, 4))
    found = []
    compiled, recorded = compile(f), program(stage(f)(x))
    for point in (x, 0.5 * x):
        value, gradient = f(point)
        executions = {"compiled": compiled, "as recorded": recorded}
        for name, run in executions.items():
            try:
                other, slope = run(point)
            except GuardFailed as failed:
                if point is x:
                    found.append(f"seed {seed}, {name}: takes another path where it was recorded: {failed}")
                continue
            # What rounding may do, to a program and to its derivative, grows with their size.
            error = (
                abs(other - value) / (1 + abs(value)),
                np.max(np.abs(slope - gradient)) / (1 + np.abs(gradient).max()),
            )
            if not max(error) < 1e-9:
                found.append(f"seed {seed}, {name}: differs by {error[0]:.2g} and {error[1]:.2g}")
    return found


def chunk(first, last):
    for seed in range(first, last):
        try:
            messages = differences(seed)
        except Exception as error:
            messages = [f"seed {seed}: {type(error).__name__}: {error}"]
        print(json.dumps([seed, messages]), flush=True)


def main(count, first=0):
    root = pathlib.Path(__file__).resolve().parents[1]
    paths = [str(root / "tests"), str(root / "src"), os.environ.get("PYTHONPATH", "")]
    start, tried, wrong = time.perf_counter(), 0, []
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "EFFGRAD_CACHE": cache}
        seed = first
        while seed < first + count:
            last = min(seed + CHUNK, first + count)
            command = [sys.executable, __file__, "chunk", str(seed), str(last)]
            done = subprocess.run(command, capture_output=True, text=True, env=environment)
            rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
            tried += len(rows)
            wrong += [message for _, messages in rows for message in messages]
            seed = rows[-1][0] + 1 if rows else seed
            if done.returncode:
                wrong.append(f"seed {seed}: the process ended with {done.returncode}: {done.stderr[-200:]}")
                seed += 1
            print(f"{tried} programs, {len(wrong)} wrong, {time.perf_counter() - start:.0f} s", *wrong[-3:], sep="\n  ",
                  flush=True)  # fmt: skip
    results = root / "benchmarks" / "results"
    results.mkdir(exist_ok=True)
    report = {"programs": tried, "wrong": wrong, "seconds": round(time.perf_counter() - start)}
    (results / "fuzz.json").write_text(json.dumps(report, indent=1) + "\n")
    return bool(wrong)


if __name__ == "__main__":
    if sys.argv[1] == "chunk":
        chunk(*map(int, sys.argv[2:]))
    else:
        sys.exit(main(*map(int, sys.argv[1:])))
