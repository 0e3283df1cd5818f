"""Rules for Python's module `statistics`.

The module computes with exact fractions, so a rule takes the value from its function and the derivative from a
definition in NumPy. Functions that only sort and interpolate (`median`, `quantiles`) need no rule, because their own
source is run with traced values.
"""

import functools
import statistics
from collections.abc import Iterable

from effgrad.arrays.reach import np
from effgrad.arrays.value import Tracer, traced_inside
from effgrad.errors import NoRule
from effgrad.functions.scipy.tables import Calling
from effgrad.primitives.given import as_computed
from effgrad.vocabulary import Function, Option, Reached, Value


def _mean(data: Value) -> Value:
    return np.mean(data)


def _weighted_mean(data: Value, weights: Value = None) -> Value:
    return np.average(data, weights=weights)


def _geometric_mean(data: Value) -> Value:
    return np.exp(np.mean(np.log(data)))


def _harmonic_mean(data: Value, weights: Value = None) -> Value:
    weights = np.ones(np.shape(data)) if weights is None else np.asarray(weights)
    return np.sum(weights) / np.sum(weights / data)


def _spread(data: Value, centre: Value, freedom: int) -> Value:
    """The sum of squared differences from a centre, divided by the number of elements minus `freedom`."""
    centre = np.mean(data) if centre is None else centre
    return np.sum((data - centre) ** 2) / (np.size(data) - freedom)


def _variance(data: Value, xbar: Value = None) -> Value:
    return _spread(data, xbar, 1)


def _population_variance(data: Value, mu: Value = None) -> Value:
    return _spread(data, mu, 0)


def _deviation(data: Value, xbar: Value = None) -> Value:
    return np.sqrt(_spread(data, xbar, 1))


def _population_deviation(data: Value, mu: Value = None) -> Value:
    return np.sqrt(_spread(data, mu, 0))


def _covariance(x: Value, y: Value, /) -> Value:
    return np.sum((x - np.mean(x)) * (y - np.mean(y))) / (np.size(x) - 1)


def _correlation(x: Value, y: Value, /, *, method: Option = "linear") -> Value:
    if method != "linear":
        raise NoRule("statistics.correlation has a derivative rule with method='linear': ranks change in steps")
    return _covariance(x, y) / np.sqrt(_covariance(x, x) * _covariance(y, y))


def _linear_regression(x: Value, y: Value, /, *, proportional: bool = False) -> Value:
    if proportional:
        return statistics.LinearRegression(np.sum(x * y) / np.sum(x * x), 0.0)
    slope = _covariance(x, y) / _covariance(x, x)
    return statistics.LinearRegression(slope, np.mean(y) - slope * np.mean(x))


def _of_samples(original: Function, definition: Function, samples: int) -> Calling:
    """Return the rule of a function whose first `samples` arguments are samples; Python accepts iterators there."""

    def of_arrays(*args: Value, **kwargs: Option) -> Value:
        return definition(*map(_array, args[:samples]), *args[samples:], **kwargs)

    computed = as_computed(original, functools.wraps(definition)(of_arrays))

    @functools.wraps(definition)
    def rule(*args: Value, **kwargs: Option) -> Value:
        if "data" in kwargs:
            args = kwargs.pop("data"), *args
        args = *map(_sample, args[:samples]), *args[samples:]
        return (computed if traced_inside((args, kwargs)) else original)(*args, **kwargs)

    return Calling(rule)  # whether an iterator yields traced numbers shows only when it is consumed


def _sample(data: Value) -> Value:
    """Return a sample that can be iterated over twice."""
    return data if isinstance(data, Tracer) or not isinstance(data, Iterable) else [*data]


def _array(sample: Value) -> Value:
    return sample if isinstance(sample, Tracer) else np.stack(sample)


RULES: list[Reached] = [
    (statistics, name, _of_samples(getattr(statistics, name), definition, samples))
    for name, definition, samples in (
        ("mean", _mean, 1), ("fmean", _weighted_mean, 1), ("geometric_mean", _geometric_mean, 1),
        ("harmonic_mean", _harmonic_mean, 1), ("variance", _variance, 1), ("pvariance", _population_variance, 1),
        ("stdev", _deviation, 1), ("pstdev", _population_deviation, 1), ("covariance", _covariance, 2),
        ("correlation", _correlation, 2), ("linear_regression", _linear_regression, 2),
    )
]  # fmt: skip
