"""Python's `statistics` and SciPy's assignments: Python's values and errors, and the derivatives of differences."""

import fractions
import statistics

import numpy as np
import pytest
import scipy.optimize

from effgrad import compile, grad, hvp, jvp, vmap

X, T = np.array([0.8, 0.3, 1.1, 0.5]), np.array([0.3, -0.7, 0.2, 1.1])
Y, W = [1.0, 3.0, 2.0, 5.0], [1.0, 2.0, 3.0, 4.0]
PROGRAMS = {
    "mean": statistics.mean,
    "mean of an iterator": lambda x: statistics.mean(v * v for v in x),
    "fmean": lambda x: statistics.fmean(list(x)) * statistics.fmean(x, W),
    "geometric_mean": statistics.geometric_mean,
    "harmonic_mean": lambda x: statistics.harmonic_mean(x) + statistics.harmonic_mean(x, weights=W),
    "variance": lambda x: statistics.variance(x) + statistics.variance(data=x, xbar=x[0]),
    "pvariance": lambda x: statistics.pvariance(x) + statistics.pvariance(list(x), mu=0.5),
    "deviations": lambda x: statistics.stdev(x) * statistics.pstdev(x),
    "covariance": lambda x: statistics.covariance(x, Y) + statistics.covariance(Y, x**2),
    "correlation": lambda x: statistics.correlation(x, Y),
    "linear_regression": lambda x: sum(statistics.linear_regression(x, Y)),
    "proportional": lambda x: statistics.linear_regression(x, Y, proportional=True).slope,
    "sorted": lambda x: statistics.median(x) * statistics.quantiles(x, n=3)[1],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_statistics_have_derivatives(name):
    f, step = PROGRAMS[name], 1e-6
    slopes = [(f(X + e) - f(X - e)) / (2 * step) for e in step * np.eye(4)]
    value, tangent = jvp(f, (X,), (T,))
    assert value == f(X) and tangent == pytest.approx(slopes @ T, rel=1e-7)
    np.testing.assert_allclose(grad(f)(X), slopes, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(compile(grad(f))(1.1 * X), grad(f)(1.1 * X), rtol=1e-12, atol=1e-14)
    second = (grad(f)(X + step * T) - grad(f)(X - step * T)) / (2 * step)
    np.testing.assert_allclose(hvp(f, X, T), second, rtol=1e-6, atol=1e-8)
    if name != "sorted":
        np.testing.assert_allclose(vmap(f)(np.stack([X, 2 * X])), [f(X), f(2 * X)], rtol=1e-13)


def test_statistics_of_plain_numbers_are_pythons():
    def f(x):
        assert statistics.mean([fractions.Fraction(1, 2), 1]) == fractions.Fraction(3, 4)
        assert type(statistics.mean([1, 3])) is int
        return statistics.mean(x)

    np.testing.assert_array_equal(grad(f)(X), [0.25] * 4)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: statistics.mean(x[:0]),
        lambda x: statistics.stdev(x[:1]),
        lambda x: statistics.correlation(x, W[:2]),
        lambda x: statistics.fmean(x, [1]),
        lambda x: statistics.geometric_mean(-x),
        lambda x: statistics.mean(),
    ],
)
def test_errors_are_pythons(f):
    with pytest.raises((statistics.StatisticsError, TypeError)) as plain:
        f(X)
    with pytest.raises(type(plain.value)) as traced:
        grad(f)(X)
    assert str(traced.value).startswith(str(plain.value))


@pytest.mark.parametrize("maximize", [False, True])
def test_an_assignment_is_constant(maximize):
    """It was refused, though its rows and columns are integers, which change in steps."""

    def f(x):
        costs = np.outer(x, x[::-1]) + np.sin(np.arange(16.0)).reshape(4, 4)
        rows, columns = scipy.optimize.linear_sum_assignment(costs, maximize=maximize)
        return np.sum(costs[rows, columns] ** 2)

    slopes = [(f(X + e) - f(X - e)) / 2e-6 for e in 1e-6 * np.eye(4)]
    np.testing.assert_allclose(grad(f)(X), slopes, rtol=1e-7)
    compiled = compile(grad(f))
    for x in (X, X[::-1], -X):  # each may have another assignment
        np.testing.assert_allclose(compiled(x), grad(f)(x), rtol=1e-12)
