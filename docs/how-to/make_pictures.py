"""Runs the code of the how-to pages and draws their pictures.

PYTHONPATH=src python docs/how-to/make_pictures.py [name ...]
"""

import pathlib
import re
import sys

import matplotlib
import numpy as np
import scipy.optimize

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

HERE = pathlib.Path(__file__).parent
BLUE, ORANGE, GREY = "#3b6fb6", "#e07b39", "#9aa0a6"
STYLE = {
    "figure.figsize": (6.0, 3.0), "figure.dpi": 100, "font.size": 9, "axes.spines.top": False,
    "axes.spines.right": False, "axes.edgecolor": GREY, "axes.titlelocation": "left", "legend.frameon": False,
}  # fmt: skip


def draw_batches(axes, page):
    lengths = page["lengths"]
    axes.plot(range(5, 200), lengths[5:], "o", color=BLUE, ms=3, label="a sample")
    axes.plot(range(5), lengths[:5], "o", color=ORANGE, ms=5, label="a wrong sample")
    axes.axhline(1.0, color=GREY, lw=1)
    axes.set(xlabel="sample", ylabel="length of its gradient")
    axes.legend()


def draw_sparse(axes, page):
    figure, points = axes.figure, page["points"]
    axes.remove()
    for place, (title, values) in enumerate([("true", page["truth"]), ("found", page["found"].x)]):
        axes = figure.add_subplot(1, 2, place + 1)
        drawn = axes.tripcolor(*points.T, page["triangles"], values, cmap="viridis", vmin=0.2, vmax=1.2)
        axes.set(title=title, aspect="equal", xticks=[], yticks=[])
    figure.colorbar(drawn, ax=figure.axes, label="conductivity")


def draw_sparse_derivatives(axes, page):
    figure = axes.figure
    axes.remove()
    left, right = figure.subplots(1, 2)
    small = page["slope"].pattern[:14, :14].tocoo()
    left.scatter(small.col, small.row, c=[(BLUE, ORANGE, GREY)[j % 3] for j in small.col], marker="s", s=38)
    left.set(xlabel="input", ylabel="output", title="a product for each colour", aspect="equal")
    left.invert_yaxis()
    right.semilogy(range(1, len(page["steps"]) + 1), page["steps"], "o-", color=BLUE)
    right.set(xlabel="iteration", ylabel="largest change", title="Newton's method")


def draw_solvers(axes, page):
    cost, nearest, movement = page["cost"], page["nearest"], page["movement"]
    x, y = np.meshgrid(np.linspace(-0.1, 2.2, 80), np.linspace(-0.1, 1.5, 80))
    axes.contour(x, y, cost(np.stack([x, y])), 14, colors="#dddddd", linewidths=0.8)
    angle = np.linspace(0, np.pi / 2, 60)
    for radius in (0.7, 0.85, 1.0, 1.15, 1.3):
        axes.plot(radius * np.cos(angle), radius * np.sin(angle), color=BLUE, lw=0.7)
        axes.plot(*nearest(radius), "o", color=BLUE)
    for step in (-0.3, 0.3):
        end = nearest(1.0) + step * movement
        axes.annotate("", end, nearest(1.0), arrowprops={"arrowstyle": "->", "color": ORANGE, "lw": 2})
    axes.set(xlabel="w[0]", ylabel="w[1]", xlim=(-0.1, 2.2), ylim=(-0.1, 1.5))


def draw_rules(axes, page):
    x, grad, erf = np.linspace(-2.5, 2.5, 101), page["grad"], page["erf"]
    for f, name, color in ((erf, "erf of the C library", BLUE), (grad(erf), "its derivative", ORANGE)):
        axes.plot(x, [f(float(v)) for v in x], label=name, color=color)
    axes.plot(x, [grad(grad(erf))(float(v)) for v in x], label="its second derivative", color=GREY)
    axes.legend()


def draw_equations(axes, page):
    times, at = np.linspace(0.0, 10.0, 41), page["parameters"]
    hares, slope = page["hares_and_lynxes"](at)[0], page["sensitivity"][0, :, 0]
    spread = 0.03 * slope
    axes.fill_between(times, hares - spread, hares + spread, color=BLUE, alpha=0.3, label="by the derivative")
    axes.plot(times, hares, color=BLUE, label="a = 1.1")
    for change in (-0.03, 0.03):
        other = page["hares_and_lynxes"](at + np.array([change, 0, 0, 0]))[0]
        axes.plot(times, other, ":", color=ORANGE, label=f"a = {1.1 + change:.2f}")
    axes.set(xlabel="time", ylabel="hares")
    axes.legend()


def draw_randomness(axes, page):
    stochastic, grad = page["stochastic"], page["grad"]
    rng, expectation = stochastic.Generator(np.random.PCG64(2)), stochastic.expectation
    for estimator, color in (("score", GREY), ("path", BLUE), ("measure", ORANGE)):
        f = grad(expectation(lambda m: rng.normal(m, 1.5) ** 2, estimator, samples=10))
        axes.hist([f(0.7) for _ in range(400)], bins=np.linspace(-4, 7, 80), alpha=0.6, label=estimator, color=color)
    axes.axvline(1.4, color="black", lw=1)
    axes.set(xlabel="estimate of the derivative")


def draw_optimise(axes, page):
    unknowns, plain = page["start"], []

    def counted(x):
        plain.append(page["misfit"]({"height": x[0], "rates": x[1:]}))
        return plain[-1]

    scipy.optimize.minimize(counted, np.array([unknowns["height"], *unknowns["rates"]]))
    for values, colour, label in [(plain, GREY, "SciPy, differences"), (page["result"].history, BLUE, "effgrad")]:
        axes.semilogy(range(1, len(values) + 1), np.minimum.accumulate(values), "-", color=colour, label=label)
        axes.semilogy(range(1, len(values) + 1), values, ".", color=colour)
    axes.set(xlabel="evaluation", ylabel="misfit")
    axes.legend()


def draw_tables_and_units(axes, page):
    smooth = page["pd"].Series(page["level"]).rolling(7, min_periods=1).mean()
    axes.plot(page["level"], color=GREY, lw=1, label="level")
    axes.plot(smooth, color=BLUE, label="mean of seven days")
    axes.axhline(10, color=GREY, lw=0.7)
    axes.bar(range(60), page["influence"], color=ORANGE, width=0.8, label="influence of the day")
    axes.set(xlabel="day")
    axes.legend(ncols=3, loc="upper center")


def rows_of(name):
    """The cells of a table of measured results."""
    lines = (HERE.parents[1] / "benchmarks" / "results" / f"{name}.md").read_text().splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]


def draw_memory(axes, page):
    labels = [f"{program.split(',')[0]}, {limit}" for program, limit, *_ in rows_of("memory")]
    peaks = [float(peak) for _, _, peak, *_ in rows_of("memory")]
    axes.barh(labels[::-1], peaks[::-1], color=[BLUE if "none" in label else ORANGE for label in labels[::-1]])
    axes.set(xscale="log", xlabel="peak memory, MB")


def draw_distributed(axes, page):
    rows = [row for row in rows_of("distributed") if len(row) == 5 and row[4][0].isdigit()]
    seconds = [[float(number) for number in row[4].split(", ")] for row in rows]
    places = range(len(rows))
    axes.bar([p - 0.2 for p in places], [found for found, _ in seconds], 0.4, color=BLUE, label="measured")
    axes.bar([p + 0.2 for p in places], [model for _, model in seconds], 0.4, color=ORANGE, label="model")
    axes.set_xticks(places, [row[0].replace(", ", "\n") for row in rows], fontsize=7)
    axes.set(ylabel="seconds")
    axes.legend()


def run(name):
    """The names after all code blocks of a page."""
    scope = {"__name__": name}
    for block in re.findall(r"```python\n(.*?)```", (HERE / f"{name}.md").read_text(), re.DOTALL):
        exec(block, scope)
    return scope


if __name__ == "__main__":
    functions = [(key.removeprefix("draw_"), draw) for key, draw in list(globals().items()) if key.startswith("draw_")]
    drawings = {key.replace("_", "-"): draw for key, draw in functions}
    for name in sys.argv[1:] or drawings:
        with plt.rc_context(STYLE):
            figure, axes = plt.subplots(layout="constrained")
            drawings[name](axes, run(name))
            figure.savefig(HERE / f"{name}.png")
