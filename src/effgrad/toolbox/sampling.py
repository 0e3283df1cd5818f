"""Distributions that NumPy draws from: how a sample moves with the parameters, its density, and its weak derivative.

There is one row for each distribution. `path` reparametrises a plain sample x: the noise u that x came from is held
fixed, and x moves as a location and scale, by the inverse of the distribution function in closed form, or implicitly,
along F(x, p) = F(x0, p0). `log_density` is for the score function. `weak` is for measure-valued derivatives: it writes
the derivative of the density as a weight times the difference of two densities, and draws a sample of each. Discrete
distributions have no path. Figurnov, Mohamed and Mnih, Implicit reparameterization gradients (2018); Jankowiak and
Obermeyer, Pathwise derivatives beyond the reparameterization trick (2018); Mohamed et al., Monte Carlo gradient
estimation in machine learning (2020), table 1; Devroye, Non-uniform random variate generation (1986).
"""

import pickle
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.special as sp

from effgrad.arrays.layout import shape_of
from effgrad.errors import NoRule
from effgrad.functions.scipy.tables import traced_inside
from effgrad.toolbox.implicit import newton_corrected
from effgrad.toolbox.solutions import with_value
from effgrad.vocabulary import Function, Value

Parameters: TypeAlias = dict[str, Value]
REQUIRED: Any = object()
# A weak derivative: a function from a generator and an element's plain parameters to the weight, and to the two numbers
# that replace the element.
Weak: TypeAlias = Callable[..., tuple[float, float, float]]


class Distribution(NamedTuple):
    """One row: the parameters with their defaults, and the path, the log-density and the weak derivatives, if known.

    `instead` is the part of error messages that says why there is no path or log-density, or what to use.
    """

    name: str
    parameters: Parameters
    path: Function | None
    log_density: Function | None = None
    weak: dict[str, Weak] = {}
    instead: str = ""

    def bound(self, args: tuple[Value, ...], kwargs: Parameters) -> tuple[Parameters, Parameters]:
        """Return the parameters of a call, and its remaining arguments, such as `size`."""
        names = [*self.parameters, "size"]
        given = dict(zip(names, args, strict=False)) | kwargs
        size = {key: given.pop(key) for key in [*given] if key not in self.parameters}
        missing = [name for name, default in self.parameters.items() if default is REQUIRED and name not in given]
        if missing or len(args) > len(names):
            raise TypeError(f"{self.name}() takes {', '.join(self.parameters)} and size; missing: {', '.join(missing)}")
        return {name: given.get(name, default) for name, default in self.parameters.items()}, size


class Sample(NamedTuple):
    """A plain sample of a distribution with traced parameters."""

    distribution: Distribution
    value: Value
    parameters: Parameters
    plain: Parameters
    seed: Callable[[], int]

    def state(self) -> bytes:
        """The state of the generator after the draw."""
        (generator,) = getattr(self.seed, "args", (np.random,))
        state = generator.get_state(legacy=False) if hasattr(generator, "get_state") else generator.bit_generator.state
        return pickle.dumps(state)

    def traced(self) -> Parameters:
        """The parameters that are traced."""
        return {name: value for name, value in self.parameters.items() if traced_inside(value)}

    def path(self) -> Value:
        """Return the sample as a function of the parameters, with the same noise."""
        row = self.distribution
        if row.path is None:
            hint = (
                "choose an estimator of the derivative of its expectation: effgrad.stochastic.expectation(f, 'score')"
                if row.log_density is not None
                else "draw it from other draws that have one, or with constant parameters"
            )
            raise NoRule(
                f"a draw of {row.name} has no path derivative in {', '.join(self.traced())}: "
                f"{row.instead or 'its samples change in steps'}; {hint}"
            )
        plain = [np.asarray(p) if type(p) in (list, tuple) else p for p in self.plain.values()]
        return with_value(row.path(self.value, *self.parameters.values(), *plain), self.value)

    def log_density(self) -> Value:
        """Return the logarithm of the density of the sample, summed over its elements."""
        if self.distribution.log_density is None:
            raise NoRule(
                f"a draw of {self.distribution.name} has no log-density here for the estimator 'score': "
                f"{self.distribution.instead or 'use the path derivative'}"
            )
        return np.sum(self.distribution.log_density(self.value, *self.parameters.values()))

    def measures(self, name: str) -> Iterator[tuple[Any, float, float, float]]:
        """Yield the index of each element, the weight of a parameter's derivative, and the two numbers to run with.

        The results of the two runs are subtracted.
        """
        row = self.distribution
        if name not in row.weak:
            raise NoRule(f"a draw of {row.name} has no measure-valued derivative in {name}; use 'score' or 'path'")
        rng = np.random.default_rng(self.seed())
        shape = np.shape(self.value)
        spread = [np.broadcast_to(value, shape) for value in self.plain.values()]
        for index in np.ndindex(shape):
            yield index, *row.weak[name](rng, *[float(value[index]) for value in spread])


# Paths.


def _location_scale(x: Value, a: Value, b: Value, a0: Value, b0: Value) -> Value:
    return a + b * ((x - a0) / b0)


def _uniform(x: Value, low: Value, high: Value, low0: Value, high0: Value) -> Value:
    return low + (high - low) * ((x - low0) / (high0 - low0))


def _scale(x: Value, scale: Value, scale0: Value) -> Value:
    return scale * (x / scale0)


def _lognormal(x: Value, mean: Value, sigma: Value, mean0: Value, sigma0: Value) -> Value:
    return np.exp(_location_scale(np.log(x), mean, sigma, mean0, sigma0))


def _triangular(x: Value, left: Value, mode: Value, right: Value, left0: Value, mode0: Value, right0: Value) -> Value:
    rising = x < mode0
    u = (x - left0) ** 2 / ((right0 - left0) * (mode0 - left0))
    v = (right0 - x) ** 2 / ((right0 - left0) * (right0 - mode0))
    low = left + np.sqrt(np.where(rising, u, 1.0) * (right - left) * (mode - left))
    high = right - np.sqrt(np.where(rising, 1.0, v) * (right - left) * (right - mode))
    return np.where(rising, low, high)


def _implicit(x: Value, distribution: Function, density: Value) -> Value:
    """Move a sample so that its distribution function keeps its value; if the density underflows it does not move."""
    fixed = ~(np.isfinite(density) & (density > 0))
    density = np.where(fixed, np.inf, density)
    return newton_corrected(distribution, x, x, lambda change: change / density)


def _standard_gamma(x: Value, shape: Value, shape0: Value) -> Value:
    density = np.exp(sp.xlogy(shape0 - 1, x) - x - sp.gammaln(shape0))
    upper = x > shape0  # the smaller of the two tails is more accurate
    return _implicit(x, lambda x: np.where(upper, -sp.gammaincc(shape, x), sp.gammainc(shape, x)), density)


def _beta(x: Value, a: Value, b: Value, a0: Value, b0: Value) -> Value:
    density = np.exp(sp.xlogy(a0 - 1, x) + sp.xlog1py(b0 - 1, -x) - sp.betaln(a0, b0))
    return _implicit(x, lambda x: sp.betainc(a, b, x), density)


def _gamma(x: Value, shape: Value, scale: Value, shape0: Value, scale0: Value) -> Value:
    return scale * _standard_gamma(x / scale0, shape, shape0)


def _chisquare(x: Value, df: Value, df0: Value) -> Value:
    return 2 * _standard_gamma(x / 2, df / 2, df0 / 2)


def _f(x: Value, n: Value, d: Value, n0: Value, d0: Value) -> Value:
    w = _beta(n0 * x / (n0 * x + d0), n / 2, d / 2, n0 / 2, d0 / 2)
    return d * w / (n * (1 - w))


def _standard_t(x: Value, df: Value, df0: Value) -> Value:
    density = np.exp(
        sp.gammaln((df0 + 1) / 2) - sp.gammaln(df0 / 2) - np.log(df0 * np.pi) / 2 - (df0 + 1) / 2 * np.log1p(x**2 / df0)
    )
    sign = np.where(x > 0, -1.0, 1.0)
    return _implicit(x, lambda x: sign * sp.stdtr(df, sign * x), density)


def _wald(x: Value, mean: Value, scale: Value, mean0: Value, scale0: Value) -> Value:
    density = np.sqrt(scale0 / (2 * np.pi * x**3)) * np.exp(-scale0 * (x - mean0) ** 2 / (2 * mean0**2 * x))

    def distribution(x: Value) -> Value:
        root = np.sqrt(scale / x)
        return sp.ndtr(root * (x / mean - 1)) + np.exp(2 * scale / mean + sp.log_ndtr(-root * (x / mean + 1)))

    return _implicit(x, distribution, density)


def _vonmises(x: Value, mu: Value, kappa: Value, mu0: Value, kappa0: Value) -> Value:
    """Move the angle from the mean; its distribution function is a Fourier series in quotients of Bessel functions."""
    z = np.remainder(x - mu0 + np.pi, 2 * np.pi) - np.pi
    density = np.exp(kappa0 * (np.cos(z) - 1)) / (2 * np.pi * sp.i0e(kappa0))
    terms = np.arange(1, 20 + int(12 * np.sqrt(np.max(kappa0))))

    def distribution(z: Value) -> Value:
        kappas, angles = np.expand_dims(kappa, -1), np.expand_dims(z, -1)
        waves = sp.ive(terms, kappas) / sp.i0e(kappas) * np.sin(terms * angles) / (np.pi * terms)
        return z / (2 * np.pi) + np.sum(waves, axis=-1)

    return mu + _implicit(z, distribution, density)


def _dirichlet(x: Value, alpha: Value, alpha0: Value) -> Value:
    """Move the elements in turn.

    Each is a fraction of what the elements before it leave. The fractions are independent and have beta distributions.
    """
    rest0, rest, parts = np.ones(np.shape(x)[:-1]), 1.0, []
    for i in range(np.shape(x)[-1] - 1):
        share = _beta(x[..., i] / rest0, alpha[i], np.sum(alpha[i + 1 :]), alpha0[i], np.sum(alpha0[i + 1 :]))
        parts.append(rest * share)
        rest, rest0 = rest * (1 - share), rest0 - x[..., i]
    return np.stack([*parts, rest * np.ones(np.shape(x)[:-1])], axis=-1)


def _multivariate_normal(x: Value, mean: Value, cov: Value, mean0: Value, cov0: Value) -> Value:
    noise = np.linalg.solve(np.linalg.cholesky(cov0), np.reshape(x - mean0, (-1, len(mean0))).T)
    return mean + np.reshape(np.transpose(np.linalg.cholesky(cov) @ noise), np.shape(x))


# Log-densities.


def _log_normal(x: Value, mean: Value, scale: Value) -> Value:
    return -(((x - mean) / scale) ** 2) / 2 - np.log(scale) - np.log(2 * np.pi) / 2


def _log_multivariate_normal(x: Value, mean: Value, cov: Value) -> Value:
    centred = np.reshape(x - mean, (-1, shape_of(cov)[0]))
    quadratic = np.sum(centred * np.transpose(np.linalg.solve(cov, np.transpose(centred))))
    return -quadratic / 2 - shape_of(centred)[0] * (np.linalg.slogdet(cov)[1] / 2)


def _log_gamma(x: Value, shape: Value, scale: Value = 1.0) -> Value:
    return sp.xlogy(shape - 1, x / scale) - x / scale - sp.gammaln(shape) - np.log(scale)


def _log_binomial(k: Value, n: Value, p: Value) -> Value:
    return sp.xlogy(k, p) + sp.xlog1py(n - k, -p) + sp.gammaln(n + 1) - sp.gammaln(k + 1) - sp.gammaln(n - k + 1)


def _log_choice(k: Value, p: Value) -> Value:
    return np.log(p[k])


def _log_logistic(x: Value, loc: Value, scale: Value) -> Value:
    z = (x - loc) / scale
    return -z - 2 * np.log1p(np.exp(-z)) - np.log(scale)


def _log_vonmises(x: Value, mu: Value, kappa: Value) -> Value:
    return kappa * (np.cos(x - mu) - 1) - np.log(2 * np.pi * sp.i0e(kappa))


def _log_standard_t(x: Value, df: Value) -> Value:
    return sp.gammaln((df + 1) / 2) - sp.gammaln(df / 2) - np.log(df) / 2 - (df + 1) / 2 * np.log1p(x**2 / df)


def _log_f(x: Value, n: Value, d: Value) -> Value:
    ratio = n * x / d
    return n / 2 * np.log(ratio) - (n + d) / 2 * np.log1p(ratio) - np.log(x) - sp.betaln(n / 2, d / 2)


def _log_wald(x: Value, mean: Value, scale: Value) -> Value:
    return (np.log(scale) - scale * (x - mean) ** 2 / (mean**2 * x)) / 2


def _log_dirichlet(x: Value, alpha: Value) -> Value:
    each = np.sum((alpha - 1) * np.log(x), axis=-1)
    return each + sp.gammaln(np.sum(alpha)) - np.sum(sp.gammaln(alpha))


# Weak derivatives: (weight, above, below).


def _weak_location(rng: np.random.Generator, loc: float, scale: float) -> tuple[float, float, float]:
    w = scale * np.sqrt(2 * rng.exponential())
    return 1 / (scale * np.sqrt(2 * np.pi)), loc + w, loc - w


def _weak_scale(rng: np.random.Generator, loc: float, scale: float) -> tuple[float, float, float]:
    maxwell = np.sqrt(rng.chisquare(3)) * rng.choice([-1.0, 1.0])
    return 1 / scale, loc + scale * maxwell, loc + scale * maxwell * rng.random()  # a random part of it is normal


def _weak_exponential(rng: np.random.Generator, scale: float) -> tuple[float, float, float]:
    first = rng.exponential(scale)
    return 1 / scale, first + rng.exponential(scale), first


def _weak_gamma_scale(rng: np.random.Generator, shape: float, scale: float) -> tuple[float, float, float]:
    below = rng.gamma(shape, scale)
    return shape / scale, below + rng.exponential(scale), below


def _weak_poisson(rng: np.random.Generator, lam: float) -> tuple[float, float, float]:
    k = rng.poisson(lam)
    return 1.0, k + 1, k


def _weak_binomial(rng: np.random.Generator, n: float, p: float) -> tuple[float, float, float]:
    k = rng.binomial(int(n) - 1, p)
    return n, k + 1, k


IN_STEPS = "its samples change in steps"
EDGES = "its support moves with the parameters; use the path derivative"
LOCATION_SCALE = {"loc": 0.0, "scale": 1.0}
ROWS = [
    Distribution("normal", LOCATION_SCALE, _location_scale, _log_normal, {"loc": _weak_location, "scale": _weak_scale}),
    Distribution("uniform", {"low": 0.0, "high": 1.0}, _uniform, None, instead=EDGES),
    Distribution("exponential", {"scale": 1.0}, _scale, lambda x, s: -x / s - np.log(s), {"scale": _weak_exponential}),
    Distribution("rayleigh", {"scale": 1.0}, _scale, lambda x, s: -((x / s) ** 2) / 2 - 2 * np.log(s)),
    Distribution("laplace", LOCATION_SCALE, _location_scale, lambda x, a, b: -np.abs(x - a) / b - np.log(b)),
    Distribution("logistic", LOCATION_SCALE, _location_scale, _log_logistic),
    Distribution(
        "gumbel", LOCATION_SCALE, _location_scale,
        lambda x, a, b: -(x - a) / b - np.exp(-(x - a) / b) - np.log(b),
    ),
    Distribution(
        "lognormal", {"mean": 0.0, "sigma": 1.0}, _lognormal, lambda x, m, s: _log_normal(np.log(x), m, s) - np.log(x)
    ),
    Distribution(
        "weibull", {"a": REQUIRED}, lambda x, a, a0: np.exp(np.log(x) * (a0 / a)),
        lambda x, a: np.log(a) + (a - 1) * np.log(x) - x**a,
    ),
    Distribution(
        "pareto", {"a": REQUIRED}, lambda x, a, a0: np.expm1(np.log1p(x) * (a0 / a)),
        lambda x, a: np.log(a) - (a + 1) * np.log1p(x),
    ),
    Distribution(
        "power", {"a": REQUIRED}, lambda x, a, a0: np.exp(np.log(x) * (a0 / a)),
        lambda x, a: np.log(a) + (a - 1) * np.log(x),
    ),
    Distribution("triangular", dict.fromkeys(("left", "mode", "right"), REQUIRED), _triangular, None, instead=EDGES),
    Distribution("standard_gamma", {"shape": REQUIRED}, _standard_gamma, _log_gamma),
    Distribution("gamma", {"shape": REQUIRED, "scale": 1.0}, _gamma, _log_gamma, {"scale": _weak_gamma_scale}),
    Distribution("chisquare", {"df": REQUIRED}, _chisquare, lambda x, df: _log_gamma(x, df / 2, 2.0)),
    Distribution(
        "beta", {"a": REQUIRED, "b": REQUIRED}, _beta,
        lambda x, a, b: sp.xlogy(a - 1, x) + sp.xlog1py(b - 1, -x) - sp.betaln(a, b),
    ),
    Distribution("f", {"dfnum": REQUIRED, "dfden": REQUIRED}, _f, _log_f),
    Distribution("standard_t", {"df": REQUIRED}, _standard_t, _log_standard_t),
    Distribution("wald", {"mean": REQUIRED, "scale": REQUIRED}, _wald, _log_wald),
    Distribution("vonmises", {"mu": REQUIRED, "kappa": REQUIRED}, _vonmises, _log_vonmises),
    Distribution("dirichlet", {"alpha": REQUIRED}, _dirichlet, _log_dirichlet),
    Distribution(
        "multivariate_normal", {"mean": REQUIRED, "cov": REQUIRED}, _multivariate_normal, _log_multivariate_normal
    ),
    Distribution(
        "poisson", {"lam": 1.0}, None, lambda k, r: sp.xlogy(k, r) - r - sp.gammaln(k + 1), {"lam": _weak_poisson}
    ),
    Distribution("binomial", {"n": REQUIRED, "p": REQUIRED}, None, _log_binomial, {"p": _weak_binomial}),
    Distribution("geometric", {"p": REQUIRED}, None, lambda k, p: sp.xlog1py(k - 1, -p) + np.log(p)),
    Distribution(
        "logseries", {"p": REQUIRED}, None, lambda k, p: k * np.log(p) - np.log(k) - np.log(-np.log1p(-p))
    ),
    Distribution(
        "negative_binomial", {"n": REQUIRED, "p": REQUIRED}, None,
        lambda k, n, p: sp.gammaln(k + n) - sp.gammaln(n) - sp.gammaln(k + 1) + n * np.log(p) + sp.xlog1py(k, -p),
    ),
    Distribution(
        "multinomial", {"n": REQUIRED, "pvals": REQUIRED}, None,
        lambda k, n, p: np.sum(sp.xlogy(k, p)),
    ),
    *(
        Distribution(name, dict.fromkeys(names.split(), REQUIRED), None, None, instead=instead)
        for name, names, instead in (
            ("noncentral_chisquare", "df nonc", "its distribution function has no rule"),
            ("noncentral_f", "dfnum dfden nonc", "its distribution function has no rule"),
            ("hypergeometric", "ngood nbad nsample", IN_STEPS), ("zipf", "a", IN_STEPS),
        )
    ),
]  # fmt: skip
DISTRIBUTIONS = {row.name: row for row in ROWS}
CHOICE = Distribution("choice", {"p": REQUIRED}, None, _log_choice)
