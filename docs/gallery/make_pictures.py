"""Runs the code of the gallery's pages, and draws their pictures and thumbnails.

PYTHONPATH=src python docs/gallery/make_pictures.py [name ...]
"""

import pathlib
import sys

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))
from pages import run_page  # noqa: E402

BLUE, ORANGE, GREEN, GREY = "#3b6fb6", "#e07b39", "#4f9d69", "#9aa0a6"
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


def draw_survival(figure, p):
    axes = figure.subplots()
    times, died, covariates = p["observed"]
    t = np.linspace(0.01, 6.0, 200)
    for treated, colour, name in [(1, BLUE, "treated"), (0, ORANGE, "not treated")]:
        group = covariates[:, 1] == treated
        curves = [p["survival"](p["result"].x, t, c[None]) for c in covariates[group]]
        axes.plot(t, np.mean(curves, axis=0), color=colour, lw=2, label=name)
        axes.step(*p["kaplan_meier"](times[group], died[group]), color=colour, lw=0.8, where="post")
    axes.set(xlabel="years", ylabel="alive", ylim=(0, 1), xlim=(0, 6))
    axes.legend()


def draw_orbit(figure, p):
    axes = figure.subplots()
    axes.set_aspect("equal")
    turn = np.linspace(0, 2 * np.pi, 200)
    axes.plot(np.cos(turn), np.sin(turn), color=GREY, lw=1)
    path = p["propagate"](p["result"].x, 500)
    guess = p["propagate"](p["start"](), 500)
    for i, longitude in zip(p["NIGHTS"][::3], p["seen"][0][::3], strict=True):
        earth = p["circle"](1.0, 1.0, i * p["STEP"])[:2]
        axes.plot(*np.array([earth, earth + 3.2 * np.array([np.cos(longitude), np.sin(longitude)])]).T, ":", color=GREY)
    axes.plot(*guess[:, :2].T, color=ORANGE, lw=1, label="first guess")
    axes.plot(*path[:, :2].T, color=BLUE, lw=2, label="orbit found")
    axes.plot(*path[p["NIGHTS"], :2].T, "o", color=BLUE, ms=3)
    axes.plot(0, 0, "o", color="#e0b020", ms=9)
    axes.set(xticks=[], yticks=[])
    axes.legend(loc="upper left")


def draw_kinetics(figure, p):
    axes = figure.subplots()
    times, y, start = p["TIMES"][1:], p["simulate"](p["result"].x)[1:], p["simulate"](p["start"]())[1:]
    for k, (colour, name) in enumerate([(BLUE, "A"), (GREEN, "10⁴ B"), (ORANGE, "C")]):
        scale = 1e4 if k == 1 else 1.0
        axes.semilogx(times, scale * p["measured"][:, k], ".", color=colour, ms=4)
        axes.semilogx(times, scale * y[:, k], color=colour, lw=2, label=name)
        axes.semilogx(times, scale * start[:, k], ":", color=colour, lw=1)
    axes.set(xlabel="time", ylabel="concentration")
    axes.legend()


def draw_heston(figure, p):
    axes = figure.subplots()
    first, fitted = p["prices"](p["start"]()), p["prices"](p["result"].x)
    for i, maturity in enumerate(p["MATURITIES"]):
        colour = plt.get_cmap("viridis")(i / 4)
        axes.plot(p["STRIKES"], fitted[i], color=colour, lw=2, label=f"{maturity:g} years")
        axes.plot(p["STRIKES"], first[i], ":", color=colour, lw=1)
        axes.plot(p["STRIKES"], p["quotes"][i], "o", color=colour, ms=4)
    axes.set(xlabel="strike", ylabel="price")
    axes.legend()


def draw_filter(figure, p):
    left, right = figure.subplots(1, 2)
    f = p["FREQUENCIES"]
    for x, colour, style, name in [(p["start"](), GREY, ":", "start"), (p["result"].x, BLUE, "-", "fitted")]:
        left.plot(f / np.pi, np.abs(p["response"](x, f)) / (40 if name == "start" else 1), style, color=colour)
    left.axvspan(0.3, 0.42, color=GREY, alpha=0.15, lw=0)
    left.set(title="gain", ylim=(0, 1.1), xlabel="frequency, in half the sampling rate")
    right.plot(f[:78] / np.pi, p["group_delay"](p["result"].x, f[:78]), color=ORANGE)
    right.set(title="delay in samples", ylim=(0, 12), xlabel="frequency")


def draw_registration(figure, p):
    fixed, moving = p["data"](blur=1.0)
    after = p["warp"](moving, p["result"].x) - fixed
    pictures = [("fixed", fixed), ("moving", moving), ("before", moving - fixed), ("after", after)]
    for axes, (title, image) in zip(figure.subplots(1, 4), pictures, strict=True):
        limits = (0, 1) if title in ("fixed", "moving") else (-1, 1)
        axes.imshow(image, cmap="gray" if limits[0] == 0 else "RdBu", vmin=limits[0], vmax=limits[1])
        axes.set(title=title, xticks=[], yticks=[])


def draw_power_flow(figure, p):
    axes = figure.subplots()
    x = np.arange(1, 10)
    for v, shift, colour, name in [(p["start"](), -0.2, GREY, "start"), (p["result"].x, 0.2, BLUE, "least losses")]:
        axes.bar(x + shift, np.abs(p["power_flow"](v, *p["grid"])), 0.38, color=colour, label=name)
    axes.axhline(1.0, color=ORANGE, lw=1)
    axes.set(xlabel="bus", ylabel="voltage", ylim=(0.9, 1.06), xticks=x)
    axes.legend(ncols=2, loc="upper right")


def draw_seismic(figure, p):
    for axes, title, speed in zip(figure.subplots(1, 2), ["true", "found"], [p["truth"](), p["speed"]], strict=True):
        image = axes.imshow(speed, cmap="viridis", vmin=1650, vmax=2350)
        axes.plot(*np.array(p["SOURCES"])[:, ::-1].T, "v", color=ORANGE, ms=5)
        axes.set(title=title, xticks=[], yticks=[])
    figure.colorbar(image, ax=figure.axes, location="bottom", label="metres a second", shrink=0.5)


def draw_cart_pole(figure, p):
    upper, lower = figure.subplots(2, 1, height_ratios=[2, 1])
    states = p["simulate"](p["result"].x)
    for i in range(0, len(states), 2):
        x, angle = states[i, 0] + 0.1 * i, states[i, 1]  # moved to the right with time
        shade = 0.3 + 0.7 * i / len(states)
        tip = (x + 0.5 * np.sin(angle), -0.5 * np.cos(angle))
        upper.plot([x, tip[0]], [0, tip[1]], color=BLUE, alpha=shade, lw=1)
        upper.plot(*tip, "o", color=ORANGE, alpha=shade, ms=4)
        upper.plot(x, 0, "s", color=BLUE, alpha=shade, ms=6)
    upper.set_aspect("equal")
    upper.set(xticks=[], yticks=[])
    lower.step(np.arange(60) * p["DT"], p["result"].x, color=BLUE)
    lower.set(xlabel="seconds", ylabel="newtons")


def draw_molecule(figure, p):
    left, right = figure.add_subplot(121, projection="3d"), figure.add_subplot(122)
    x, (i, j) = p["positions"], p["pairs"]
    near = p["distances"](x, p["pairs"]) < 1.25
    for a, b in zip(i[near], j[near], strict=True):
        left.plot(*x[[a, b]].T, color=GREY, lw=0.8)
    left.scatter(*x.T, s=60, c=[ORANGE if np.linalg.norm(r - x.mean(0)) < 0.5 else BLUE for r in x], depthshade=True)
    left.set_axis_off()
    right.stem(np.arange(39), p["vibrations"], linefmt=BLUE, basefmt=" ", markerfmt=".")
    right.set(title="frequencies", xlabel="vibration")


def draw_quantum_gate(figure, p):
    left, right = figure.subplots(1, 2)
    times = np.arange(p["STEPS"]) * p["DT"]
    fields = p["result"].x.reshape(-1, 4)
    for k, colour in enumerate([BLUE, "#8fb0dc", ORANGE, "#f0bb94"]):
        left.step(times, fields[:, k], color=colour, label=["x₁", "y₁", "x₂", "y₂"][k])
    left.set(title="fields", xlabel="time")
    left.legend(ncols=4, loc="lower center", fontsize=7)
    populations = np.abs(p["evolve"](fields)[:, :, 2]) ** 2
    for k, colour in enumerate([GREY, GREEN, BLUE, ORANGE]):
        right.plot(np.arange(len(populations)) * p["DT"], populations[:, k], color=colour, label=f"{k:02b}")
    right.set(title="state, from 10", xlabel="time")
    right.legend(ncols=2, fontsize=7)


def draw_airfoil(figure, p):
    upper, lower = figure.subplots(2, 1, height_ratios=[2, 1], sharex=True)
    for x, colour, style, name in [(p["start"](), GREY, ":", "start"), (p["result"].x, BLUE, "-", "found")]:
        along, across = p["outline"](x)
        upper.plot((along[1:] + along[:-1]) / 2, -p["pressure"](x), style, color=colour, label=name)
        lower.plot(along, across, style, color=colour)
    upper.plot((along[1:] + along[:-1]) / 2, -p["wanted"], ".", color=ORANGE, label="wanted")
    upper.set(ylabel="-pressure")
    upper.legend()
    lower.set_aspect("equal")
    lower.set(xticks=[], yticks=[])


def draw_lens(figure, p):
    left, right = figure.subplots(1, 2, width_ratios=[3, 1])
    x = p["result"].x
    places = np.concatenate([[0.0], np.cumsum(x[6:])])
    y = np.linspace(-7, 7, 60)
    for k, (curvature, z) in enumerate(zip(x[:6], places, strict=False)):
        left.plot(z + curvature * y**2 / (1 + np.sqrt(1 - (curvature * y) ** 2)), y, color=BLUE)
        if k % 2 == 0:
            left.fill_betweenx(y, z + curvature * y**2 / 2, places[k + 1] + x[k + 1] * y**2 / 2, color=BLUE, alpha=0.15)
    for field, colour in zip(p["FIELDS"], [BLUE, GREEN, ORANGE], strict=True):
        heights = np.array([[0.0, h] for h in (-4.0, 0.0, 4.0)])
        path = p["trace"](x, heights, field, 1)  # surfaces, coordinates, rays
        for _, across, along in np.transpose(path, (2, 1, 0)):
            before = across[0] - np.tan(field) * (8 + along[0])
            left.plot([-8, *along], [before, *across], color=colour, lw=0.8)
        spot = p["trace"](x, p["rays"][0], field, 1)[-1, :2] - np.array([[0.0], [50 * np.tan(field)]])
        right.plot(*(1000 * spot), ".", color=colour, ms=3, label=f"{np.degrees(field):.0f}°")
    left.axvline(places[-1], color=GREY)
    left.set(xticks=[], yticks=[])
    left.set_aspect("equal")
    right.set(title="spots, micrometres")
    right.set_aspect("equal")
    right.legend(fontsize=7)


def draw_truss(figure, p):
    points, bars = p["bridge"][:2]
    for axes, shares in zip(figure.subplots(2, 1), [p["start"](), p["result"].x], strict=True):
        for (i, j), area in zip(bars, p["areas"](shares, points, bars), strict=True):
            if area > 0.01:
                axes.plot(*points[[i, j]].T, color=BLUE, lw=1.2 * area, solid_capstyle="round")
        axes.plot(*points[3:-3:3].T, "v", color=ORANGE, ms=5)
        axes.plot(*points[[0, -3]].T, "^", color=GREY, ms=8)
        axes.set_aspect("equal")
        axes.set_axis_off()


def draw_weather(figure, p):
    upper, lower = figure.subplots(2, 1)
    guess, _, truth = p["observed"]
    upper.plot(truth, color=GREY, lw=3, alpha=0.6, label="truth")
    upper.plot(guess, ":", color=ORANGE, label="first guess")
    upper.plot(p["result"].x, color=BLUE, label="analysis")
    upper.plot(p["STATIONS"], np.full(20, -9.0), "^", color=GREY, ms=3)
    upper.legend(ncols=3, loc="upper right", fontsize=7)
    upper.set(title="every site, at the beginning", ylim=(-10, 20))
    for x, colour, style, width in [(truth, GREY, "-", 3), (guess, ORANGE, ":", 1), (p["result"].x, BLUE, "-", 1)]:
        lower.plot(p["forecast"](x, 60)[:, 11], style, color=colour, lw=width)
    lower.axvspan(0, 24, color=GREY, alpha=0.15, lw=0)
    lower.set(title="one site without a station, over time", xlabel="steps; observed in the grey time")


def draw_soap_film(figure, p):
    left, right = figure.add_subplot(121, projection="3d"), figure.add_subplot(122)
    t = np.linspace(0, 1, p["SIZE"])
    left.plot_surface(*np.meshgrid(t, t), p["surface"](p["heights"], p["rim"]), cmap="viridis", rstride=1, cstride=1)
    left.set_axis_off()
    right.spy(p["curvature"](p["heights"], p["rim"]), markersize=0.4, color=BLUE)
    right.set(title="second derivatives", xticks=[], yticks=[])


NAMES = [name.removeprefix("draw_") for name in list(globals()) if name.startswith("draw_")]


def main(*names):
    plt.rcParams.update(STYLE)
    (HERE / "thumbnails").mkdir(exist_ok=True)
    for name in names or NAMES:
        figure = plt.figure(layout="constrained")
        globals()[f"draw_{name}"](figure, run_page(HERE / f"{name}.md"))
        figure.savefig(HERE / f"{name}.png")
        figure.savefig(HERE / "thumbnails" / f"{name}.png", dpi=40)
        plt.close(figure)


if __name__ == "__main__":
    main(*sys.argv[1:])
