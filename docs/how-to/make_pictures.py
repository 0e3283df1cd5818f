"""Runs the code of the how-to pages and draws their pictures.

PYTHONPATH=src python docs/how-to/make_pictures.py [name ...]
"""

import pathlib
import re
import sys

import matplotlib

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
