"""One measurement of a tool of the suite: `python suites_worker.py CLONE TOOL EVALUATION WORKLOAD SECONDS RESULT`.

The tool is asked as the suite asks it, in lines of JSON, and what it tells is told as `worker` does: its own times, by
a clock on the wall, and the peak of resident memory of its process.
"""

import json
import pathlib
import resource
import subprocess
import sys

import numpy as np

from worker import leaves
from workloads import DERIVATIVE, WORKLOADS


def gmm(alpha, mu, q, lower, x, gamma, m):
    (n, d), k = x.shape, len(alpha)
    return {
        "d": d, "k": k, "n": n, "alpha": alpha, "mu": mu, "q": q, "l": lower, "x": x, "gamma": gamma, "m": m
    }  # fmt: skip


def ba(cameras, points, weights, features, camera, point):
    sizes = {"n": len(cameras), "m": len(points), "p": len(weights)}
    return {**sizes, "cam": cameras[0], "x": points[0], "w": weights[0], "feat": features[0]}


def ht(theta, us, model, points, corners):
    parents, relative, inverse_absolute, positions, weights, _ = model
    hand = {
        "bone_count": len(parents), "bone_names": [""] * len(parents), "parents": parents, "base_relatives": relative,
        "inverse_base_absolutes": inverse_absolute, "base_positions": positions, "weights": weights,
        "triangles": corners, "is_mirrored": False,
    }  # fmt: skip
    data = {"model": hand, "correspondences": np.arange(len(points)), "points": points}
    return {"theta": theta, "us": us, "data": data}


def named(*names):
    return lambda *arguments: dict(zip(names, arguments, strict=True))


# What the suite sends for the arguments of each evaluation's functions.
INPUTS = {
    "hello": lambda x: x, "gmm": gmm, "ba": ba, "ht": ht,
    "lstm": named("main_params", "extra_params", "state", "sequence"), "kmeans": named("points", "centroids"),
    "llsq": named("x", "n"), "lse": named("x"), "ode": named("x", "s"),
    "det": lambda a: {"ell": len(a), "A": a.ravel()},
}  # fmt: skip


def main(clone, tool, evaluation, workload, seconds, result):
    executable = pathlib.Path(clone, "tools", tool, "bin", evaluation)
    if evaluation not in INPUTS or not executable.exists():
        print(json.dumps(None))
        return
    given = INPUTS[evaluation](*WORKLOADS[evaluation][workload]())
    if isinstance(given, dict):
        given = {**given, "min_runs": 3, "min_seconds": float(seconds)}
    message = {"id": 0, "kind": "evaluate", "module": evaluation, "function": DERIVATIVE[evaluation], "input": given}
    line = json.dumps(message, default=lambda value: value.tolist())
    run = subprocess.run(
        [sys.executable, "python/gradbench/gradbench/cpp.py", tool], cwd=clone, input=line + "\n", text=True,
        stdout=subprocess.PIPE, check=True,
    )  # fmt: skip
    answer = json.loads(run.stdout)
    if not answer["success"]:
        raise SystemExit(answer["error"])
    np.savez(result, *[np.ravel(leaf) for leaf in leaves(answer["output"])])
    times = [t["nanoseconds"] for t in answer["timings"] if t["name"] == "evaluate"]
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    print(json.dumps({"nanoseconds": times, "before": None, "peak": peak}))


if __name__ == "__main__":
    main(*sys.argv[1:])
