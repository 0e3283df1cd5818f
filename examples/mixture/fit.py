"""The fit: L-BFGS-B on the exact gradient of `objective`, from several starts.

The points are standardised for the fit, and the result is in the units of the data.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from timeit import Timer
from typing import Any

import numpy as np
from scipy.optimize import minimize

from effgrad import value_and_grad
from mixture.objective import objective

RESTARTS = 4
GAMMA, M = 0.1, 0  # a weak prior on standardised data: it only keeps a component from shrinking onto a point


@dataclass
class Fit:
    """A fitted mixture in the units of the data, its components in the order of their means."""

    weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray
    objective: float
    evaluations: int
    ratio: float  # time of the value and gradient over the time of the objective alone


def fit(x: np.ndarray, components: int, seed: int, report: Callable[[int, float], None] = lambda *_: None) -> Fit:
    """Return the best of a few L-BFGS-B runs; `report(restart, objective)` is called after every iteration."""
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
    """Return means by k-means++ seeding, and round components as wide as the distance to the nearest of them."""
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
