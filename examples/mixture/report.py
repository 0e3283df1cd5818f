"""The progress line, the table, and the files that a fit leaves."""

from __future__ import annotations

import importlib
import json
import os
import tempfile
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from mixture.data import UserError
from mixture.fit import RESTARTS, Fit


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UserError(f"this command needs {name.split('.')[0]}: pip install 'effgrad[optimize]'") from error


class Progress(AbstractContextManager["Progress"]):
    """A live line: the restart, its iterations so far, and the objective."""

    def __init__(self) -> None:
        progress = _module("rich.progress")
        _module("matplotlib")  # found missing before the fit, not after it
        self._bar = progress.Progress(
            progress.SpinnerColumn(),
            progress.TextColumn("restart {task.fields[restart]}/" + str(RESTARTS)),
            progress.TextColumn("iteration {task.completed:.0f}"),
            progress.TextColumn("log posterior {task.fields[objective]:.6f}"),
            progress.TimeElapsedColumn(),
        )
        self._task = self._bar.add_task("fit", total=None, restart=1, objective=float("nan"))

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def report(self, restart: int, objective: float) -> None:
        self._bar.update(self._task, advance=1, restart=restart, objective=objective)


def print_table(names: list[str], result: Fit, out: Path) -> None:
    table = _module("rich.table").Table(title="Gaussian mixture")
    for heading in ("component", "weight", f"mean ({', '.join(names)})", "covariance"):
        table.add_column(heading)
    for k, (weight, mean, covariance) in enumerate(
        zip(result.weights, result.means, result.covariances, strict=True), 1
    ):
        rows = "\n".join(" ".join(f"{entry:10.4g}" for entry in row) for row in covariance)
        table.add_row(str(k), f"{weight:.4f}", ", ".join(f"{entry:.4g}" for entry in mean), rows)
    console = _module("rich.console").Console()
    console.print(table)
    console.print(f"log posterior         {result.objective:.6f} (standardised data)", highlight=False)
    console.print(f"gradient evaluations  {result.evaluations}", highlight=False)
    console.print(f"gradient / objective  {result.ratio:.2f} (time, measured)", highlight=False)
    console.print(f"written               {out}: fit.png, parameters.json", highlight=False, soft_wrap=True)


def write(out: Path, names: list[str], x: np.ndarray, result: Fit) -> None:
    """Both files complete, or none: they are made beside DIR's contents and then moved over them."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out, prefix=".effgrad-") as folder:
            made = Path(folder)
            (made / "parameters.json").write_text(json.dumps(_as_json(names, result), indent=2) + "\n")
            plot(made / "fit.png", names, x, result)
            for file in made.iterdir():
                os.replace(file, out / file.name)
    except OSError as error:
        raise UserError(f"cannot write to {out}: {error.strerror}") from error


def _as_json(names: list[str], result: Fit) -> dict[str, Any]:
    return {
        "columns": names,
        "weights": result.weights.tolist(),
        "means": result.means.tolist(),
        "covariances": result.covariances.tolist(),
        "objective": result.objective,
        "gradient_evaluations": result.evaluations,
        "gradient_time_over_objective_time": result.ratio,
    }


def plot(path: Path, names: list[str], x: np.ndarray, result: Fit) -> None:
    """The first two columns: points, components at two standard deviations, density. One column: a histogram."""
    figure_class = _module("matplotlib.figure").Figure  # no pyplot: its canvas is Agg, whatever the user's backend is
    figure = figure_class(figsize=(7, 5), layout="constrained")
    axes = figure.subplots()
    axes.set_xlabel(names[0])
    if x.shape[1] == 1:
        grid = np.linspace(x.min(), x.max(), 400)[:, None]
        axes.hist(x[:, 0], bins=30, density=True, alpha=0.4)
        axes.plot(grid[:, 0], _density(grid, result))
    else:
        low, high = x[:, :2].min(axis=0), x[:, :2].max(axis=0)
        margin = 0.1 * (high - low)
        sides = [np.linspace(a, b, 150) for a, b in zip(low - margin, high + margin, strict=True)]
        across, up = np.meshgrid(*sides)
        density = _density(np.stack([across, up], axis=-1).reshape(-1, 2), result).reshape(across.shape)
        axes.contour(across, up, density, levels=10, linewidths=0.8, alpha=0.7)
        axes.scatter(x[:, 0], x[:, 1], s=10, color="black", alpha=0.5)
        angle = np.linspace(0, 2 * np.pi, 100)
        for mean, covariance in zip(result.means, result.covariances, strict=True):
            ellipse = mean[:2, None] + 2 * np.linalg.cholesky(covariance[:2, :2]) @ [np.cos(angle), np.sin(angle)]
            axes.plot(*ellipse, color="tab:red")
            axes.plot(*mean[:2], "+", color="tab:red", markersize=12)
        axes.set_ylabel(names[1])
    figure.savefig(path, dpi=150)


def _density(points: np.ndarray, result: Fit) -> np.ndarray:
    """The mixture's density in the leading columns, the others integrated out."""
    d = points.shape[1]
    total = np.zeros(len(points))
    for weight, mean, covariance in zip(result.weights, result.means, result.covariances, strict=True):
        root = np.linalg.cholesky(covariance[:d, :d])
        whitened = np.linalg.solve(root, (points - mean[:d]).T)
        normaliser = (2 * np.pi) ** (d / 2) * np.prod(np.diag(root))
        total += weight * np.exp(-0.5 * (whitened**2).sum(axis=0)) / normaliser
    return total
