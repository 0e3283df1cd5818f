"""Time against operations, for every mode: the reciprocal series of Sigal 2024, section 6.1.

The program sums the series of 1/x around 1; each round performs four operations on numbers. Each mode runs it at
several sizes, several times; a line and a parabola are fitted to the medians. Evaluation is the same program with
every operation performed through the `Evaluate` handler.

    python benchmarks/asymptotics.py [--operations N] [--runs R]
"""

import argparse
import json
import pathlib
import statistics
import time

import numpy as np
from rich.progress import Progress

from effgrad import grad, hessian, jvp, second_order, taylor
from effgrad.modes import REVERSE, Evaluate

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


def reciprocal(x, rounds):
    previous = total = 1.0
    for _ in range(rounds):
        previous = previous * -(x - 1.0)
        total = previous + total
    return total


def evaluate(f, x):
    with Evaluate() as evaluation:
        return evaluation.primal(f(evaluation.variable(x)))


def modes():
    reverse = {name: (lambda f, x, name=name: grad(f, mode=name)(x)) for name in REVERSE}
    return {
        "evaluate": evaluate,
        "forward": lambda f, x: jvp(f, (x,), (1.0,))[1],
        **reverse,
        "second_order": second_order,
        "taylor, order 2": lambda f, x: taylor(f, [x, 1.0], order=2),
        "hessian": lambda f, x: hessian(f, mode="hessian")(x),
    }


def r_squared(x, y, degree):
    residual = y - np.polyval(np.polyfit(x, y, degree), x)
    return 1 - np.sum(residual**2) / np.sum((y - np.mean(y)) ** 2)


def measure(run, rounds, runs):
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        run(lambda x: reciprocal(x, rounds), 0.5)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--operations", type=int, default=100_000, help="the largest number of operations")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    sizes = np.linspace(options.operations / 5, options.operations, 5).astype(int) // 4
    rows = {}
    with Progress() as progress:
        task = progress.add_task("modes", total=len(modes()) * len(sizes))
        for name, run in modes().items():
            seconds = []
            for rounds in sizes:
                seconds.append(measure(run, int(rounds), options.runs))
                progress.advance(task)
            rows[name] = np.array(seconds)
    operations = 4 * sizes
    slope = {name: np.polyfit(operations, seconds, 1)[0] for name, seconds in rows.items()}
    table = []
    for name, seconds in rows.items():
        linear, quadratic = (r_squared(operations, seconds, degree) for degree in (1, 2))
        order = "linear" if linear >= 0.99 else "nonlinear"
        table.append(("effgrad", name, linear, quadratic, order, slope[name] / slope["evaluate"]))
    for language, modes_there in THESIS.items():
        table += [(language, name, *row) for name, row in modes_there.items()]
    lines = ["| | mode | linear R² | quadratic R² | order | ratio |", "|---|---|---|---|---|---|"]
    for language, name, linear, quadratic, order, ratio in table:
        lines.append(f"| {language} | {name} | {linear:.3f} | {quadratic:.3f} | {order} | {ratio or 0:.2f} |")
    text = "\n".join(lines).replace(" 0.00 |", " - |")
    print(text)
    for name in rows:
        print(f"{name:28}{slope[name] * 1e6:8.2f} us an operation")
    results = HERE / "results"
    results.mkdir(exist_ok=True)
    data = {name: dict(zip(map(int, operations), map(float, seconds), strict=True)) for name, seconds in rows.items()}
    (results / "asymptotics.json").write_text(json.dumps({"seconds": data}, indent=1) + "\n")
    (results / "asymptotics.md").write_text(text + "\n")
    draw(operations, rows, HERE.parent / "docs" / "asymptotics.svg")


def draw(operations, rows, path):
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for name, seconds in rows.items():
        axes.plot(operations, seconds, "o-", label=name, markersize=3)
    axes.set(xscale="log", yscale="log", xlabel="operations", ylabel="seconds", title="Reciprocal series, every mode")
    axes.legend(fontsize=7)
    figure.savefig(path)


if __name__ == "__main__":
    main()
