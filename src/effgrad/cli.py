"""The command line.

    effgrad gmm DATA.csv --components K --out DIR [--seed S]
    effgrad calculus run|type|trace FILE [ARGUMENT] [--translation T] [--steps N]
    effgrad verify [--programs N] [--seed S] [--jobs J] [--report FILE] [--counterexample FILE]

`gmm` fits a Gaussian mixture by L-BFGS-B on the exact gradient of the objective in `examples/gmm.py`. The points are
standardised for the fit and the result is reported in the units of the file. Results reach DIR only when the run is
over.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import importlib.util
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from timeit import Timer
from typing import Any

import numpy as np
from scipy.optimize import minimize

from effgrad.papers.commands import ACTIONS, LANGUAGES, TRANSLATIONS, Request, execute, language_of
from effgrad.papers.syntax import CalculusError, pointed

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "gmm.py"
RESTARTS = 4
GAMMA, M = 0.1, 0  # a weak prior on standardised data: it only keeps a component from shrinking onto a point


class UserError(Exception):
    """A mistake in what the command was given, in one sentence."""


@dataclass
class Fit:
    """A fitted mixture in the units of the data, its components in the order of their means."""

    weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray
    objective: float
    evaluations: int
    ratio: float  # time of the value and gradient over the time of the objective alone


def main(argv: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(argv)
    try:
        options.command(options)
    except UserError as error:
        print(f"effgrad: error: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="effgrad", description="Derivatives of plain NumPy code.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    gmm = commands.add_parser("gmm", help="fit a Gaussian mixture")
    gmm.set_defaults(command=lambda options: run(options.data, options.components, options.out, options.seed))
    gmm.add_argument("data", type=Path, metavar="DATA.csv", help="numbers, one point a row; a header row is optional")
    gmm.add_argument("--components", type=int, required=True, metavar="K")
    gmm.add_argument("--out", type=Path, required=True, metavar="DIR", help="receives fit.png and parameters.json")
    gmm.add_argument("--seed", type=int, default=0, metavar="S")
    calculus = commands.add_parser("calculus", help="run a program of one of the papers' languages")
    calculus.set_defaults(command=run_calculus)
    calculus.add_argument("action", choices=ACTIONS)
    calculus.add_argument("file", type=Path, metavar="FILE", help=f"a program; ends in {', '.join(LANGUAGES)}")
    calculus.add_argument("argument", nargs="?", metavar="ARGUMENT", help=".lam: a term to apply the program to")
    calculus.add_argument("--translation", choices=TRANSLATIONS, help=".lam: the derivative by this translation")
    calculus.add_argument("--steps", type=int, default=10**6, metavar="N", help="the limit (a million)")
    verify = commands.add_parser("verify", help="differentiate generated programs by every means, and compare")
    verify.set_defaults(command=run_verify)
    verify.add_argument("--programs", type=int, default=1000, metavar="N")
    verify.add_argument("--seed", type=int, default=0, metavar="S")
    verify.add_argument("--jobs", type=int, default=1, metavar="J", help="processes")
    verify.add_argument("--size", type=int, default=12, metavar="K", help="how large the programs are")
    verify.add_argument("--report", type=Path, metavar="FILE", help="receives the report: .json, or Markdown")
    verify.add_argument("--counterexample", type=Path, metavar="FILE", default=Path("counterexample.txt"))
    return parser


def run_calculus(options: argparse.Namespace) -> None:
    try:
        text = options.file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {options.file}: {error}") from error
    try:
        language = language_of(options.file)
        execute(Request(options.action, language, text, options.argument, options.translation, options.steps), print)
    except CalculusError as error:
        raise UserError(pointed(error, text)) from error
    except ImportError as error:
        raise UserError(str(error)) from error


def run_verify(options: argparse.Namespace) -> None:
    for name in ("programs", "jobs", "size"):
        if getattr(options, name) < 1:
            raise UserError(f"--{name} must be at least 1, not {getattr(options, name)}")
    progress = _extra("rich.progress", "papers")
    from effgrad.papers.verify.means import MEANS, PUBLIC
    from effgrad.papers.verify.verification import shrunk, verify

    with progress.Progress() as bar:
        task = bar.add_task("programs", total=options.programs)
        report = verify(options.programs, options.seed, options.jobs, options.size,
                        lambda report: bar.update(task, completed=report.programs))  # fmt: skip
    text = "\n".join(report.lines())
    print(text)
    if options.report is not None:
        command = f"effgrad verify --programs {options.programs} --seed {options.seed} --size {options.size}"
        page = f"`{command}`\n\n{text}\n"
        options.report.write_text(report.as_json() + "\n" if options.report.suffix == ".json" else page)
    if report.failures:
        options.counterexample.write_text(f"{shrunk(report.failures[0], MEANS | PUBLIC)}\n")
        raise UserError(f"the means disagree on a program: see {options.counterexample}")


def run(data: Path, components: int, out: Path, seed: int) -> None:
    if components < 1:
        raise UserError(f"--components must be at least 1, not {components}")
    if seed < 0:
        raise UserError(f"--seed must not be negative, not {seed}")
    if out.exists() and not out.is_dir():
        raise UserError(f"--out {out} is not a directory")
    names, x = read_points(data, components)
    progress = Progress()
    with progress:
        result = fit(x, components, seed, progress.report)
    _write(out, names, x, result)
    _print_table(names, result, out)


# The data


def read_points(path: Path, components: int = 1) -> tuple[list[str], np.ndarray]:
    """The column names and the points of a CSV file; an error names the row (counted from 1) and the column."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [(number, row) for number, row in enumerate(csv.reader(file), 1) if row]
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path} is not a CSV text file: {error}") from error
    if not rows:
        raise UserError(f"{path} is empty: row 1, column 1 should hold a column name or a number")
    first = rows[0][1]
    header = not any(map(_is_number, first)) and all(field.strip() for field in first)
    names = [field.strip() for field in first] if header else [f"column {j}" for j in range(1, len(first) + 1)]
    x = [[_number(path, i, names, j, row) for j in range(_width(path, i, names, row))] for i, row in rows[header:]]
    return names, _usable(path, names, np.array(x).reshape(len(x), len(names)), components)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _width(path: Path, i: int, names: list[str], row: list[str]) -> int:
    if len(row) < len(names):
        raise UserError(f"{path}, row {i}, column {len(row) + 1} ({names[len(row)]}): the value is missing")
    if len(row) > len(names):
        raise UserError(f"{path}, row {i}, column {len(names) + 1}: a value too many, {len(names)} are expected")
    return len(row)


def _number(path: Path, i: int, names: list[str], j: int, row: list[str]) -> float:
    text, place = row[j].strip(), f"{path}, row {i}, column {j + 1} ({names[j]})"
    if not text:
        raise UserError(f"{place}: the value is missing")
    if not _is_number(text):
        raise UserError(f"{place}: {text!r} is not a number")
    if not np.isfinite(value := float(text)):
        raise UserError(f"{place}: {text!r} is not a finite number")
    return value


def _usable(path: Path, names: list[str], x: np.ndarray, components: int) -> np.ndarray:
    needed = max(components, 1) * (len(names) + 1)
    if len(x) < needed:
        raise UserError(
            f"{path} has too few rows: {len(x)} of data, and {components} component(s) in {len(names)} column(s) "
            f"need {needed}"
        )
    for j in np.flatnonzero(np.ptp(x, axis=0) == 0):
        raise UserError(f"{path}, column {j + 1} ({names[j]}): every row holds the same value, so it has no spread")
    if len(np.unique(x, axis=0)) < components:
        raise UserError(f"{path} has fewer different rows than the {components} components asked for")
    return x


# The fit


def load_objective(path: Path = EXAMPLE) -> Callable[..., Any]:
    """`objective` of the example, which is a file of the repository and not part of the package."""
    if not path.is_file():
        raise UserError(f"{path} is missing: `effgrad gmm` runs from a clone of the repository (pip install -e .)")
    spec = importlib.util.spec_from_file_location("effgrad_example_gmm", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    objective: Callable[..., Any] = module.objective
    return objective


def fit(x: np.ndarray, components: int, seed: int, report: Callable[[int, float], None] = lambda *_: None) -> Fit:
    """The best of a few L-BFGS-B runs; `report(restart, objective)` is called after every iteration."""
    from effgrad import value_and_grad

    objective = load_objective()
    gradient = value_and_grad(objective, argnums=(0, 1, 2, 3))
    centre, scale = x.mean(axis=0), x.std(axis=0)
    points = (x - centre) / scale
    shapes = _shapes(components, x.shape[1])

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        value, parts = gradient(*_unpack(flat, shapes), points, GAMMA, M)
        return -float(value) / len(x), -_pack(parts) / len(x)

    random = np.random.default_rng(seed)
    options = {"maxiter": 1000, "ftol": 1e-12}
    results = []
    for restart in range(1, RESTARTS + 1):
        start = _pack(_start(points, components, random))
        callback = _callback(partial(report, restart), len(x))
        results.append(minimize(loss, start, jac=True, method="L-BFGS-B", options=options, callback=callback))
    best = min(results, key=lambda result: result.fun)
    alpha, mu, q, l = _unpack(best.x, shapes)  # noqa: E741
    order = np.lexsort(mu.T[::-1])
    return Fit(
        weights=(np.exp(alpha - alpha.max()) / np.exp(alpha - alpha.max()).sum())[order],
        means=(centre + scale * mu)[order],
        covariances=(_covariances(q, l) * np.outer(scale, scale))[order],
        objective=-best.fun * len(x),
        evaluations=sum(result.nfev for result in results),
        ratio=_seconds(lambda: loss(best.x)) / _seconds(lambda: objective(alpha, mu, q, l, points, GAMMA, M)),
    )


def _callback(report: Callable[[float], None], n: int) -> Callable[[Any], None]:
    def callback(intermediate_result: Any) -> None:  # SciPy goes by this exact name and by its being the only one
        report(-intermediate_result.fun * n)

    return callback


def _shapes(k: int, d: int) -> list[tuple[int, ...]]:
    return [(k,), (k, d), (k, d), (k, d * (d - 1) // 2)]


def _pack(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.ravel(part) for part in parts])


def _unpack(flat: np.ndarray, shapes: list[tuple[int, ...]]) -> list[np.ndarray]:
    ends = np.cumsum([np.prod(shape, dtype=int) for shape in shapes])[:-1]
    return [part.reshape(shape) for part, shape in zip(np.split(flat, ends), shapes, strict=True)]


def _start(points: np.ndarray, k: int, random: np.random.Generator) -> list[np.ndarray]:
    """Means by k-means++ seeding, and round components as wide as the distance to the nearest of them."""
    n, d = points.shape
    means = points[random.integers(n)][None]
    while len(means) < k:
        distance = _squared_distance(points, means)
        means = np.vstack([means, points[random.choice(n, p=distance / distance.sum())]])
    width = np.sqrt(max(_squared_distance(points, means).mean() / d, 1e-4))
    alpha, _, q, l = (np.zeros(shape) for shape in _shapes(k, d))  # noqa: E741
    return [alpha, means, q - np.log(width), l]


def _squared_distance(points: np.ndarray, means: np.ndarray) -> np.ndarray:
    distances: np.ndarray = ((points[:, None] - means) ** 2).sum(axis=2)
    nearest: np.ndarray = np.min(distances, axis=1)
    return nearest


def _covariances(q: np.ndarray, l: np.ndarray) -> np.ndarray:  # noqa: E741
    k, d = q.shape
    factors = np.exp(q)[:, :, None] * np.eye(d)
    column, row = np.triu_indices(d, 1)
    factors[:, row, column] = l
    inverse = np.linalg.inv(factors)
    return inverse @ inverse.swapaxes(1, 2)


def _seconds(f: Callable[[], Any]) -> float:
    return min(Timer(f).repeat(5, 10)) / 10


# What is shown and written


def _extra(module: str, extra: str = "optimize") -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        raise UserError(f"this command needs {package}: pip install 'effgrad[{extra}]'") from error


class Progress(AbstractContextManager["Progress"]):
    """A live line: the restart, its iterations so far, and the objective."""

    def __init__(self) -> None:
        progress = _extra("rich.progress")
        _extra("matplotlib")  # found missing before the fit, not after it
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


def _print_table(names: list[str], result: Fit, out: Path) -> None:
    table = _extra("rich.table").Table(title="Gaussian mixture")
    for heading in ("component", "weight", f"mean ({', '.join(names)})", "covariance"):
        table.add_column(heading)
    for k, (weight, mean, covariance) in enumerate(
        zip(result.weights, result.means, result.covariances, strict=True), 1
    ):
        rows = "\n".join(" ".join(f"{entry:10.4g}" for entry in row) for row in covariance)
        table.add_row(str(k), f"{weight:.4f}", ", ".join(f"{entry:.4g}" for entry in mean), rows)
    console = _extra("rich.console").Console()
    console.print(table)
    console.print(f"log posterior         {result.objective:.6f} (standardised data)", highlight=False)
    console.print(f"gradient evaluations  {result.evaluations}", highlight=False)
    console.print(f"gradient / objective  {result.ratio:.2f} (time, measured)", highlight=False)
    console.print(f"written               {out}: fit.png, parameters.json", highlight=False, soft_wrap=True)


def _write(out: Path, names: list[str], x: np.ndarray, result: Fit) -> None:
    """Both files complete, or none: they are made beside DIR's contents and then moved over them."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out, prefix=".effgrad-") as folder:
            made = Path(folder)
            (made / "parameters.json").write_text(json.dumps(_as_json(names, result), indent=2) + "\n")
            _plot(made / "fit.png", names, x, result)
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


def _plot(path: Path, names: list[str], x: np.ndarray, result: Fit) -> None:
    """The first two columns: points, components at two standard deviations, density. One column: a histogram."""
    figure_class = _extra("matplotlib.figure").Figure  # no pyplot: its canvas is Agg, whatever the user's backend is
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


if __name__ == "__main__":
    sys.exit(main())
