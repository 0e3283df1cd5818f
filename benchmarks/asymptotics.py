"""Time against operations, for every mode: the reciprocal series of Sigal 2024, section 6.1.

The program sums the series of 1/x around 1; each round performs four operations on numbers. Each mode runs it at
several sizes, several times; a line and a parabola are fitted to the fastest. Evaluation is the same program with
every operation performed through the `Evaluate` handler.

Time is the process's own (not what others on the machine use). Python's collector of cyclic garbage is on, as it is
for users: a derivative keeps it from searching its record (`effgrad.effects.collector`). The last column but one has
the ratio with the collector paused. A mode with the mark `*` has operators on Python floats written out from the rules
(`effgrad.fast.operators`) in place of the readable clause; `evaluate*` is the bare program on Python floats.

    python benchmarks/asymptotics.py [--operations N] [--runs R] [--modes "A;B"] [--only-draw]
"""

import argparse
import gc
import json
import pathlib
import time

import numpy as np
from rich.progress import Progress

from effgrad import grad, hessian, jvp, second_order, taylor
from effgrad.fast import REVERSE
from effgrad.modes import Evaluate, Forward, Taped

# Tables 6.1 to 6.4 of the thesis: linear R^2, quadratic R^2, order, ratio to evaluation.
THESIS = {
    "Frank": {
        "evaluate": (0.971, 0.971, "linear", 1.00), "forward": (0.934, 0.935, "linear", 5.91),
        "continuation": (0.838, 0.962, "nonlinear", None), "reverse": (0.870, 0.942, "nonlinear", None),
        "taped": (0.936, 0.995, "quadratic", None),
    },
    "Eff": {
        "evaluate": (0.997, 0.997, "linear", 1.00), "forward": (0.996, 0.997, "linear", 4.83),
        "continuation": (0.874, 0.997, "quadratic", None), "reverse": (0.884, 0.998, "quadratic", None),
        "taped": (0.851, 0.970, "nonlinear", None),
    },
    "Koka, linear effects": {
        "evaluate": (0.982, 0.982, "linear", 1.00), "forward": (0.999, 0.999, "linear", 7.95),
        "continuation": (0.951, 0.999, "quadratic", None), "taped": (0.997, 0.997, "linear", 93.4),
    },
    "OCaml": {
        "evaluate": (0.993, 0.993, "linear", 1.00), "forward": (0.999, 0.999, "linear", 4.76),
        "continuation": (0.952, 1.000, "quadratic", None), "reverse": (1.000, 1.000, "linear", 8.54),
        "taped": (1.000, 1.000, "linear", 8.26),
    },
}  # fmt: skip
HERE = pathlib.Path(__file__).parent
RESULTS = HERE / "results"


def reciprocal(x, rounds):
    previous = total = 1.0
    for _ in range(rounds):
        previous = previous * -(x - 1.0)
        total = previous + total
    return total


def evaluate(f, x):
    with Evaluate() as evaluation:
        return evaluation.primal(f(evaluation.variable(x)))


def forward(f, x):
    with Forward() as mode:
        return f(mode.variable(x, 1.0)).shadow


def taped(f, x):
    with Taped() as mode:
        variable = mode.variable(x)
        mode.seed(f(variable), 1.0)
    return mode.cotangents([variable.shadow])[0]


def modes():
    reverse = {name + FAST.get(name, ""): (lambda f, x, name=name: grad(f, mode=name)(x)) for name in REVERSE}
    return {
        "evaluate": evaluate,
        "evaluate*": lambda f, x: f(x),
        "forward": forward,
        "forward*": lambda f, x: jvp(f, (x,), (1.0,))[1],
        "taped": taped,
        **reverse,
        "second_order": second_order,
        "taylor, order 2": lambda f, x: taylor(f, [x, 1.0], order=2),
        "hessian": lambda f, x: hessian(f, mode="hessian")(x),
    }


FAST = dict.fromkeys(("taped", "higher_order", "higher_order_checkpointed"), "*")


def measure(run, rounds, runs):
    """Seconds of the fastest of several runs."""
    times = []
    for _ in range(runs):
        gc.collect()
        start = time.process_time()
        run(lambda x: reciprocal(x, rounds), 0.5)
        times.append(time.process_time() - start)
    return min(times)


def r_squared(x, y, degree):
    residual = y - np.polyval(np.polyfit(x, y, degree), x)
    return 1 - np.sum(residual**2) / np.sum((y - np.mean(y)) ** 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--operations", type=int, default=100_000, help="the largest number of operations")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--modes", default="", help="some of them, whose results replace those kept")
    parser.add_argument("--only-draw", action="store_true", help="from the results kept")
    options = parser.parse_args()
    kept = RESULTS / "asymptotics.json"
    data = json.loads(kept.read_text()) if kept.exists() and (options.only_draw or options.modes) else {}
    chosen = [] if options.only_draw else options.modes.split(";") if options.modes else list(modes())
    sizes = np.linspace(options.operations / 5, options.operations, 5).astype(int) // 4
    with Progress() as progress:
        task = progress.add_task("modes", total=len(chosen) * len(sizes))
        for name in chosen:
            run = modes()[name]
            measure(run, 1000, 1)  # warm up
            data[name] = []
            for place, rounds in enumerate(sizes):
                seconds = measure(run, int(rounds), options.runs)
                gc.disable()
                # With the collector paused, the two smallest sizes are enough for a slope.
                paused = measure(run, int(rounds), options.runs) if place < 2 else None
                gc.enable()
                data[name].append([4 * int(rounds), seconds, paused])
                progress.advance(task)
    RESULTS.mkdir(exist_ok=True)
    kept.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in data.items()) + "\n}\n")
    text = table(data)
    print(text)
    (RESULTS / "asymptotics.md").write_text(text + "\n")
    draw(data, HERE.parent / "docs" / "modes" / "asymptotics.svg")


def table(data):
    """The tables of the thesis and ours, of one form."""
    lines = [
        "| | mode | linear R² | quadratic R² | order | ratio | collector paused | µs an operation |",
        "|---|---|---|---|---|---|---|---|",
    ]
    slopes = {}
    for name, rows in data.items():
        operations, seconds, paused = np.array(rows, float).T
        columns = (seconds, slice(None)), (paused, slice(2))
        slopes[name] = [np.polyfit(operations[some], taken[some], 1)[0] for taken, some in columns]
        linear, quadratic = (r_squared(operations, seconds, degree) for degree in (1, 2))
        ratio, other = (a / b for a, b in zip(slopes[name], slopes["evaluate"], strict=True))
        order = "linear" if linear >= 0.99 else "nonlinear"
        lines.append(
            f"| effgrad | {name} | {linear:.3f} | {quadratic:.3f} | {order} | {ratio:.2f} | {other:.2f} "
            f"| {slopes[name][0] * 1e6:.2f} |"
        )
    for language, rows in THESIS.items():
        for name, (linear, quadratic, order, ratio) in rows.items():
            shown = "-" if ratio is None else f"{ratio:.2f}"
            lines.append(f"| {language} | {name} | {linear:.3f} | {quadratic:.3f} | {order} | {shown} | | |")
    return "\n".join(lines)


def draw(data, path):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "effgrad"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for place, (name, rows) in enumerate(data.items()):
        operations, seconds, _ = np.array(rows, float).T
        axes.plot(operations, seconds, "o-s-^-"[2 * (place // 10) :][:2], label=name, markersize=3)
    axes.set(xscale="log", yscale="log", xlabel="operations", ylabel="seconds", title="Reciprocal series, every mode")
    axes.legend(fontsize=7)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
