"""Expectations in closed form, by every distribution with derivatives: what estimators are tested against.

`PYTHONPATH=src python -m benchmarks.estimators` prints the table of docs/how-to/randomness.md: the standard deviation
of one estimate by each estimator. The closed forms are moments from Johnson, Kotz and Balakrishnan, Continuous
univariate distributions (1994), and Johnson, Kemp and Kotz, Univariate discrete distributions (2005); mpmath
differentiates them.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import mpmath as mp
import numpy as np

from effgrad import jvp, stochastic, vmap
from effgrad.toolbox.sampling import CHOICE, DISTRIBUTIONS, Distribution

Function = Callable[..., Any]


def as_given(*p: Any) -> tuple[Any, ...]:
    return p


class Expectation(NamedTuple):
    """E g(X) at some parameters: `g` of samples along the last axis, and its mean by mpmath.

    `arguments` makes the arguments of NumPy's function of the parameters, where these are not the same.
    """

    at: tuple[float, ...]
    g: Function
    mean: Function
    arguments: Function = as_given


def square(x: Any) -> Any:
    return x**2


def alone(x: Any) -> Any:
    return x * 1.0


def of_two(x: Any) -> Any:
    """The product of two elements of a vector, and their squares."""
    return x[..., 0] * x[..., 1] + x[..., 0] ** 2 + x[..., 1] ** 2


def vector(*p: Any) -> tuple[Any, ...]:
    return (np.stack(p),)


EXPECTATIONS: dict[str, Expectation] = {
    "normal": Expectation((0.7, 1.5), lambda x: x**3, lambda m, s: m**3 + 3 * m * s**2),
    "uniform": Expectation((0.5, 2.0), square, lambda a, b: (a * a + a * b + b * b) / 3),
    "exponential": Expectation((1.5,), square, lambda s: 2 * s**2),
    "rayleigh": Expectation((1.5,), lambda x: x**3, lambda s: 3 * s**3 * mp.sqrt(mp.pi / 2)),
    "laplace": Expectation((0.7, 1.5), square, lambda m, b: m**2 + 2 * b**2),
    "logistic": Expectation((0.7, 1.5), square, lambda m, s: m**2 + (mp.pi * s) ** 2 / 3),
    "gumbel": Expectation((0.7, 1.5), square, lambda m, b: (m + mp.euler * b) ** 2 + (mp.pi * b) ** 2 / 6),
    "lognormal": Expectation((0.3, 0.5), alone, lambda m, s: mp.exp(m + s**2 / 2)),
    "weibull": Expectation((1.7,), square, lambda a: mp.gamma(1 + 2 / a)),
    "pareto": Expectation((7.0,), alone, lambda a: 1 / (a - 1)),
    "power": Expectation((2.0,), alone, lambda a: a / (a + 1)),
    "triangular": Expectation(
        (1.0, 2.0, 4.0), square, lambda a, b, c: (a * a + b * b + c * c + a * b + a * c + b * c) / 6),
    "standard_gamma": Expectation((2.3,), square, lambda a: a * (a + 1)),
    "gamma": Expectation((2.3, 1.5), square, lambda a, s: a * (a + 1) * s**2),
    "chisquare": Expectation((3.3,), square, lambda n: n * (n + 2)),
    "beta": Expectation((2.3, 1.5), square, lambda a, b: a * (a + 1) / ((a + b) * (a + b + 1))),
    "f": Expectation((5.0, 30.0), square, lambda n, d: d**2 * (n + 2) / (n * (d - 2) * (d - 4))),
    "standard_t": Expectation((9.0,), square, lambda n: n / (n - 2)),
    "wald": Expectation((1.5, 2.0), square, lambda m, k: m**2 + m**3 / k),
    "vonmises": Expectation((0.4, 2.0), np.cos, lambda m, k: mp.besseli(1, k) / mp.besseli(0, k) * mp.cos(m)),
    "dirichlet": Expectation(
        (2.0, 1.5, 1.0), of_two,
        lambda a, b, c: (a * b + a * (a + 1) + b * (b + 1)) / ((a + b + c) * (a + b + c + 1)), vector),
    "multivariate_normal": Expectation(
        (0.7, 0.4, 1.5, 0.3, 1.2), of_two, lambda m, n, a, b, c: m * n + b + m**2 + a + n**2 + c,
        lambda m, n, a, b, c: (np.stack([m, n]), np.stack([np.stack([a, b]), np.stack([b, c])]))),
    "poisson": Expectation((3.0,), square, lambda r: r + r**2),
    "binomial": Expectation((0.3,), square, lambda p: 5 * p * (1 - p) + 25 * p**2, lambda p: (5, p)),
    "geometric": Expectation((0.4,), alone, lambda p: 1 / p),
    "logseries": Expectation((0.5,), alone, lambda p: -p / ((1 - p) * mp.log(1 - p))),
    "negative_binomial": Expectation((3.5, 0.4), alone, lambda n, p: n * (1 - p) / p),
    "multinomial": Expectation(
        (0.3, 0.5), of_two, lambda p, q: 20 * (p * q + p**2 + q**2) + 5 * (p + q),
        lambda p, q: (5, np.stack([p, q, 1 - p - q]))),
    "choice": Expectation((0.3, 0.5), square, lambda p, q: q + 4 * (1 - p - q),
                          lambda p, q: (np.stack([p, q, 1 - p - q]),)),
}  # fmt: skip
# The parameters where these are not NumPy's.
VECTORS = {
    "dirichlet": ("alpha[0]", "alpha[1]", "alpha[2]"), "binomial": ("p",), "choice": ("p[0]", "p[1]"),
    "multivariate_normal": ("mean[0]", "mean[1]", "cov[0, 0]", "cov[0, 1]", "cov[1, 1]"),
    "multinomial": ("pvals[0]", "pvals[1]"),
}  # fmt: skip
ROWS: dict[str, Distribution] = DISTRIBUTIONS | {"choice": CHOICE}


def exact(name: str, place: int) -> float:
    """The derivative of an expectation in one of its parameters."""
    at, _, mean, _ = EXPECTATIONS[name]
    orders = tuple(int(i == place) for i in range(len(at)))
    with mp.workdps(30):
        return float(mp.diff(mean, tuple(map(mp.mpf, at)), orders))


def derivatives() -> Iterator[tuple[str, int, str]]:
    """Every distribution, parameter, and estimator that there is for it."""
    for name, expectation in EXPECTATIONS.items():
        row = ROWS[name]
        for place in range(len(expectation.at)):
            known = {
                "path": row.path, "score": row.log_density,
                "measure": len(row.parameters) == len(expectation.at) and [*row.parameters][place] in row.weak
                or name == "binomial",
            }  # fmt: skip
            yield from ((name, place, estimator) for estimator, rule in known.items() if rule)


def drawn(name: str, arguments: Any, rng: Any, count: int) -> Any:
    """Samples of a distribution by NumPy."""
    return rng.choice(3, count, p=arguments[0]) if name == "choice" else getattr(rng, name)(*arguments, size=count)


def estimates(name: str, place: int, estimator: str, count: int = 20000, seed: int = 5) -> Any:
    """Independent estimates of a derivative, all from one array of samples."""
    at, g, _, arguments = EXPECTATIONS[name]
    row, rng = ROWS[name], np.random.default_rng(seed)
    direction = tuple(float(i == place) for i in range(len(at)))
    if estimator == "path":
        return jvp(lambda *p: g(drawn(name, arguments(*p), np.random.default_rng(seed), count)), at, direction)[1]
    samples = drawn(name, arguments(*at), rng, count)
    if estimator == "measure":
        parameter = [*row.weak][0] if name == "binomial" else [*row.parameters][place]
        weights = [row.weak[parameter](rng, *arguments(*at)) for _ in range(count)]
        return np.array([weight * (g(above) - g(below)) for weight, above, below in weights])

    def log_density(*p: Any) -> Any:
        given = arguments(*p)
        if name in ("multivariate_normal", "multinomial"):  # the density of all samples, where it is given an array
            return vmap(lambda x: row.log_density(x, *given))(samples)
        return row.log_density(samples, *given)

    scores = jvp(log_density, at, direction)[1]
    return g(samples) * scores


def by_expectation(name: str, place: int, estimator: str, count: int, **options: Any) -> Any:
    """Independent estimates by `stochastic.expectation`, each from a run of its own."""
    at, g, _, arguments = EXPECTATIONS[name]
    rng = stochastic.Generator(np.random.PCG64(8))

    def cost(parameter: Any) -> Any:
        return g(drawn(name, arguments(*at[:place], parameter, *at[place + 1 :]), rng, 1))[0]

    f = stochastic.expectation(cost, estimator, **options)
    return np.array([jvp(f, (at[place],), (1.0,))[1] for _ in range(count)])


def main() -> None:
    """Print the table."""
    found: dict[tuple[str, int], dict[str, float]] = {}
    for name, place, estimator in derivatives():
        found.setdefault((name, place), {})[estimator] = float(np.std(estimates(name, place, estimator, 4000)))
    print("| draw | parameter | derivative | path | score | measure |\n|---|---|---|---|---|---|")
    for (name, place), cells in found.items():
        at, names = EXPECTATIONS[name].at[place], [*ROWS[name].parameters]
        own = EXPECTATIONS[name].arguments is as_given
        parameter = names[place] if own else VECTORS[name][place]
        told = [f"{cells[estimator]:.3g}" if estimator in cells else "" for estimator in ("path", "score", "measure")]
        print(f"| `{name}` | {parameter} = {at:g} | {exact(name, place):.4g} | {' | '.join(told)} |")


if __name__ == "__main__":
    main()
