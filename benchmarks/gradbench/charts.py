"""Charts of the figures: time against the size of the input, the ratio to the best peer, and how they grow."""

import math
import re

import matplotlib
import numpy as np

from workloads import WORKLOADS

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402 (after the choice of a backend)


def size(evaluation, workload):
    """How many numbers a workload's arrays hold."""

    def count(value):
        if isinstance(value, tuple | list):
            return sum(map(count, value))
        return np.size(value) if isinstance(value, np.ndarray) and value.dtype.kind == "f" else 0

    return max(1, count(WORKLOADS[evaluation][workload]()))


def draw(figures, folder, ours):
    """`gradbench-times.svg` and `gradbench-ratios.svg`."""
    good = [f for f in figures if f.median is not None and not f.note]
    evaluations = list(dict.fromkeys(f.evaluation for f in good))
    tools = list(dict.fromkeys(f.tool for f in good))
    colours = dict(zip(tools, matplotlib.colormaps["tab10"].colors, strict=False))
    _times(good, evaluations, tools, colours, folder / "gradbench-times.svg", ours)
    _ratios(good, evaluations, colours, folder / "gradbench-ratios.svg", ours)


def _times(good, evaluations, tools, colours, path, ours):
    rows = math.ceil(len(evaluations) / 3)
    canvas, axes = pyplot.subplots(rows, 3, figsize=(12, 3 * rows), squeeze=False, layout="constrained")
    for axis in axes.flat[len(evaluations) :]:
        axis.set_axis_off()
    for evaluation, axis in zip(evaluations, axes.flat, strict=False):
        modes = evaluation in ("particle", "saddle")
        for tool in tools:
            own = [f for f in good if (f.evaluation, f.tool) == (evaluation, tool)]
            places = [(f.workload if modes else size(evaluation, f.workload), f.median) for f in own]
            if places:
                x, y = zip(*(places if modes else sorted(places)), strict=True)
                axis.plot(x, y, "o" if modes else "o-", color=colours[tool], label=tool, lw=2 if tool in ours else 1)
        axis.set(title=evaluation, xlabel="mode" if modes else "numbers in the input", ylabel="derivative, ms")
        axis.set_yscale("log")
        if not modes:
            axis.set_xscale("log")
    handles = [pyplot.Line2D([], [], marker="o", color=colours[tool], label=tool) for tool in tools]
    canvas.legend(handles=handles, loc="outside lower center", ncols=len(tools))
    _save(canvas, path)


def _ratios(good, evaluations, colours, path, ours):
    """Each of ours against the best peer: on the left of 1 it is faster."""
    rows = []
    for evaluation in evaluations:
        for workload in dict.fromkeys(f.workload for f in good if f.evaluation == evaluation):
            times = {f.tool: f.median for f in good if (f.evaluation, f.workload) == (evaluation, workload)}
            peers = [time for tool, time in times.items() if tool not in ours]
            if peers:
                rows.append((f"{evaluation} {workload}", {t: times[t] / min(peers) for t in ours if t in times}))
    canvas, axis = pyplot.subplots(figsize=(8, 1 + 0.22 * len(rows)), layout="constrained")
    for tool in ours:
        points = [(ratios[tool], place) for place, (_, ratios) in enumerate(rows) if tool in ratios]
        if points:
            axis.plot(*zip(*points, strict=True), "o", color=colours[tool], label=tool)
    axis.axvline(1, color="grey", lw=1)
    axis.set(xscale="log", xlabel="time, relative to the best peer's", yticks=range(len(rows)))
    axis.set_yticklabels([name for name, _ in rows])
    axis.invert_yaxis()
    axis.legend()
    _save(canvas, path)


def _save(canvas, path):
    canvas.savefig(path, metadata={"Date": None})
    pyplot.close(canvas)


def scaling(figures):
    """A table of the exponents with which time and grown memory follow the number that grows in the workload's name."""
    lines = [
        "| evaluation | tool | sizes | time grows as | R² | memory grows as | R² |",
        "| --- | --- | --- | --- | ---: | --- | ---: |",
    ]
    for evaluation in dict.fromkeys(f.evaluation for f in figures):
        for tool in dict.fromkeys(f.tool for f in figures):
            own = [f for f in figures if (f.evaluation, f.tool) == (evaluation, tool) and f.median is not None]
            if len(own) < 3:
                continue
            sizes = _growing([f.workload for f in own])
            time, memory = _power(sizes, [f.median for f in own]), _power(sizes, [max(f.grown, 0.1) for f in own])
            ends = f"{own[0].workload} to {own[-1].workload}"
            lines.append(
                f"| {evaluation} | {tool} | {ends} | size^{time[0]:.2f} | {time[1]:.3f} | size^{memory[0]:.2f} | "
                f"{memory[1]:.3f} |"
            )
    return "\n".join(lines) + "\n"


def _growing(workloads):
    """Of the numbers in the names, the last that is not the same in all."""
    columns = zip(*(map(int, re.findall(r"\d+", workload)) for workload in workloads), strict=True)
    return [column for column in columns if len(set(column)) > 1][-1]


def _power(sizes, values):
    """The exponent of the power law through the points, and the part of their variance that it explains."""
    x, y = np.log(sizes), np.log(values)
    slope, intercept = np.polyfit(x, y, 1)
    rest = np.sum((y - slope * x - intercept) ** 2)
    return slope, 1 - rest / max(np.sum((y - np.mean(y)) ** 2), 1e-300)
