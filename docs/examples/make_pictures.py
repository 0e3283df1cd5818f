"""Fits the five examples with effgrad, prints a line of results for each, and draws the pictures of their pages.

PYTHONPATH=src python docs/examples/make_pictures.py [directory]
"""

import pathlib
import sys
import time

import matplotlib
import numpy as np
from scipy.optimize import minimize

from effgrad import grad, value_and_grad

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent / "examples"))
import gaussian_process  # noqa: E402
import hidden_markov  # noqa: E402
import neural_network  # noqa: E402
import ode_fit  # noqa: E402
import robot_arm  # noqa: E402

BLUE, ORANGE, GREY = "#3b6fb6", "#e07b39", "#9aa0a6"
STYLE = {
    "figure.figsize": (6.0, 3.4),
    "figure.dpi": 100,
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.titlelocation": "left",
    "legend.frameon": False,
}


def draw_robot_arm(axes, angles, data):
    lengths, _, target = data
    axes.set_aspect("equal")
    for pose, colour, name in [(robot_arm.start(), GREY, "start"), (angles, BLUE, "solution")]:
        axes.plot(*robot_arm.joints(pose, lengths).T, "o-", color=colour, lw=3, ms=6, mfc="white", label=name)
    axes.plot(*target, "x", color=ORANGE, ms=11, mew=3, label="target")
    axes.set_ylim(-0.3, 2.2)
    axes.legend(loc="upper right", ncols=3)


def draw_ode_fit(axes, parameters, data):
    counts, _ = data
    times = ode_fit.STEP * np.arange(len(counts))
    before, after = (ode_fit.solve(p, len(counts) - 1) for p in (ode_fit.start(), parameters))
    for i, (colour, name) in enumerate([(BLUE, "prey"), (ORANGE, "predators")]):
        axes.plot(times, counts[:, i], ".", color=colour, ms=3.5, alpha=0.6)
        axes.plot(times, after[:, i], color=colour, lw=2, label=name)
        axes.plot(times, before[:, i], ":", color=colour, lw=1, label=f"{name}, at the start")
    axes.set(xlabel="time", ylabel="population")
    axes.legend(ncols=2, loc="upper right")
    axes.set_ylim(0, 1.3 * counts.max())


def draw_neural_network(axes, parameters, data):
    points, labels = data
    axes.set_aspect("equal")
    x, y = np.meshgrid(np.linspace(-1.2, 1.2, 160), np.linspace(-1.2, 1.2, 160))
    odds = neural_network.predict(parameters, np.stack([x.ravel(), y.ravel()], axis=1)).reshape(x.shape)
    colours = matplotlib.colors.LinearSegmentedColormap.from_list("", ["#c9d8ee", "#ffffff", "#f7dcc9"])
    axes.contourf(x, y, np.tanh(odds / 2), np.linspace(-1, 1, 9), cmap=colours)
    axes.contour(x, y, odds, [0.0], colors=GREY, linewidths=1)
    for label, colour in [(-1.0, BLUE), (1.0, ORANGE)]:
        axes.plot(*points[labels == label].T, "o", color=colour, ms=3)
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)


def draw_gaussian_process(axes, parameters, data):
    x, y = data
    new = np.linspace(-6.0, 6.0, 300)
    mean, deviation = gaussian_process.predict(parameters, data, new)
    axes.fill_between(new, mean - 2 * deviation, mean + 2 * deviation, color=BLUE, alpha=0.18, lw=0)
    axes.plot(new, mean, color=BLUE, lw=2, label="mean, and two standard deviations")
    axes.plot(new, gaussian_process.predict(gaussian_process.start(), data, new)[0], ":", color=GREY, label="start")
    axes.plot(x, y, "o", color=ORANGE, ms=3.5, label="data")
    axes.set(xlabel="x", ylabel="y")
    axes.legend(loc="upper left")


def draw_hidden_markov(axes, scores, data):
    rolls, dice = data
    transitions, evidence = hidden_markov.model(scores, rolls)
    posterior = grad(hidden_markov.log_likelihood, argnums=1)(transitions, evidence)
    axes.fill_between(np.arange(len(dice)), dice, step="mid", color=ORANGE, alpha=0.3, lw=0, label="loaded die used")
    axes.plot(posterior[:, 1], color=BLUE, lw=1.5, label="its probability, given all rolls")
    axes.set(xlabel="roll", ylim=(0, 1.25), yticks=[0, 0.5, 1])
    axes.legend(ncols=2, loc="upper left")


EXAMPLES = [
    (robot_arm, "BFGS", 1000, draw_robot_arm),
    (ode_fit, "BFGS", 1000, draw_ode_fit),
    (neural_network, "L-BFGS-B", 500, draw_neural_network),
    (gaussian_process, "BFGS", 1000, draw_gaussian_process),
    (hidden_markov, "L-BFGS-B", 1000, draw_hidden_markov),
]


def main(directory=HERE):
    plt.rcParams.update(STYLE)
    for program, method, limit, draw in EXAMPLES:
        observed, start = program.data(), program.start()
        begin = time.perf_counter()
        function = value_and_grad(program.objective)
        result = minimize(function, start, (observed,), method, jac=True, options={"maxiter": limit})
        print(
            f"{program.__name__:17} {start.size:4} parameters  objective {program.objective(start, observed):8.5g}"
            f" to {result.fun:8.5g}  {result.nfev:4} gradients  {time.perf_counter() - begin:6.2f} s"
        )
        figure, axes = plt.subplots(layout="constrained")
        draw(axes, result.x, observed)
        figure.savefig(pathlib.Path(directory) / f"{program.__name__}.png")
        plt.close(figure)


if __name__ == "__main__":
    main(*sys.argv[1:])
