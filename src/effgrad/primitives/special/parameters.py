"""Derivatives of special functions with respect to their parameters, by quadrature of integral representations.

No closed form is known for them. But a distribution function is the integral of a density whose logarithm is concave in
a suitable variable. So the density falls at least exponentially on one side of any point. The integral is taken on this
side (below the point or above it), after a recurrence that makes the density fall quickly. There the integrand is
smooth over a few decay lengths, and Gauss-Legendre quadrature gives all digits. Its terms are written with operations
that have rules, so derivatives of every order follow.

The integrals and recurrences are those of the NIST Digital Library of Mathematical Functions (https://dlmf.nist.gov),
chapters 8 and 10.
"""

from typing import Any

import numpy as np

from effgrad.arrays.value import plain
from effgrad.primitives.special.elementary import beta_density, gamma_density
from effgrad.primitives.special.table import sp
from effgrad.vocabulary import Option, Value

_POINTS, _WEIGHTS = (array / 2 for array in np.polynomial.legendre.leggauss(96))
# Where an integrand has fallen below exp(-40) of its value at the start, it is neglected.
NOTHING = 40.0
SHIFTS = 3


def _integral(integrand: Value, exponent: Value, *args: Value, limit: Option = np.inf) -> Value:
    """Return the integral from 0 to `limit` of `integrand(s, *args)`, which falls like exp(-exponent(s, *args))."""
    reach: Any = 0.0
    for k in range(-40, 10):
        far = exponent(2.0**k, *map(plain, args)) >= NOTHING
        reach = np.where((reach == 0) & far, 2.0**k, reach)
    reach = np.minimum(np.where(reach == 0, limit, reach), limit)
    lengths = np.expand_dims(reach, -1)
    return reach * (integrand(lengths * (0.5 + _POINTS), *(np.expand_dims(a, -1) for a in args)) @ _WEIGHTS)


# The incomplete gamma function P(a, x) is the integral of exp(a u - exp(u)) over u < log(x), divided by gamma(a); 8.2.


def _below(a: Value, x: Value) -> Value:
    """Return the partial of P in a where x < a, after the recurrence 8.8.11."""
    total: Value = 0.0
    for k in range(SHIFTS):
        total = total + gamma_density(a + k + 1, x) * (np.log(x) - sp.digamma(a + k + 1))
    return total + x * gamma_density(a + SHIFTS, x) * _integral(
        lambda s, a, x: (np.log(x) - s - sp.digamma(a)) * np.exp(-a * s - x * np.expm1(-s)),
        lambda s, a, x: a * s + x * np.expm1(-s), a + SHIFTS, x,
    )  # fmt: skip


def _above(a: Value, x: Value) -> Value:
    """Return the partial of P in a where x > a."""
    return -x * gamma_density(a, x) * _integral(
        lambda s, a, x: (np.log(x) + s - sp.digamma(a)) * np.exp(a * s - x * np.expm1(s)),
        lambda s, a, x: x * np.expm1(s) - a * s, a, x,
    )  # fmt: skip


def gamma_shape(a: Value, x: Value) -> Value:
    """Return the partial of `gammainc(a, x)` in `a`."""
    inside, lower = (plain(x) > 0) & (plain(x) < np.inf), plain(x) <= plain(a)
    here = np.where(inside, x, 1.0)
    below = _below(np.where(inside & lower, a, 2.0), np.where(lower, here, 1.0))
    above = _above(np.where(inside & ~lower, a, 1.0), np.where(lower, 2.0, here))
    return np.where(inside, np.where(lower, below, above), 0.0)


# The incomplete beta function I(a, b, x) is the integral of t**a (1 - t)**b over logit(t) < logit(x), divided by
# beta(a, b); 8.17.


def _log_ratio(s: Value, x: Value) -> Value:
    """Return log(1 - x) - log(1 - t) for the t whose logit is smaller than that of x by s."""
    return np.log1p(x * np.expm1(-s))


def _falling(s: Value, a: Value, b: Value, x: Value) -> Value:
    return a * s + (a + b) * _log_ratio(s, x)


def _beta_below(a: Value, b: Value, x: Value, rest: Value) -> tuple[Value, Value]:
    """Return the partials in a and b where x is below the mean, after the recurrence 8.17.20; `rest` is 1 - x."""
    by_a, by_b, logs = 0.0, 0.0, (np.log(x), np.log(rest))
    for k in range(SHIFTS):
        term = np.exp((a + k) * logs[0] + b * logs[1] - sp.betaln(a + k, b)) / (a + k)
        by_a = by_a + term * (logs[0] - sp.digamma(a + k + 1) + sp.digamma(a + k + b))
        by_b = by_b + term * (logs[1] - sp.digamma(b) + sp.digamma(a + k + b))
    a = a + SHIFTS
    density = np.exp(a * logs[0] + b * logs[1] - sp.betaln(a, b))

    def in_a(s: Value, a: Value, b: Value, x: Value, log: Value) -> Value:
        drift = log - s - _log_ratio(s, x) - sp.digamma(a) + sp.digamma(a + b)
        return drift * np.exp(-_falling(s, a, b, x))

    def in_b(s: Value, a: Value, b: Value, x: Value, log: Value) -> Value:
        drift = log - _log_ratio(s, x) - sp.digamma(b) + sp.digamma(a + b)
        return drift * np.exp(-_falling(s, a, b, x))

    def falling(s: Value, a: Value, b: Value, x: Value, _: object) -> Value:
        return _falling(s, a, b, x)

    return (
        by_a + density * _integral(in_a, falling, a, b, x, logs[0]),
        by_b + density * _integral(in_b, falling, a, b, x, logs[1]),
    )


def beta_shapes(a: Value, b: Value, x: Value, rest: Value = None) -> tuple[Value, Value]:
    """Return the partials of `betainc(a, b, x)` in `a` and in `b`; `rest` is 1 - x, if it is known more precisely."""
    rest = 1 - x if rest is None else rest
    inside = (plain(x) > 0) & (plain(rest) > 0)
    lower = plain(x) * (plain(a) + plain(b)) <= plain(a)
    x, rest = np.where(inside, x, 0.5), np.where(inside, rest, 0.5)
    # Above the mean, I(a, b, x) is computed as 1 - I(b, a, 1 - x).
    first, second = _beta_below(
        np.where(lower, a, b), np.where(lower, b, a), np.where(lower, x, rest), np.where(lower, rest, x)
    )
    sign = np.where(lower, 1.0, -1.0) * inside
    return sign * np.where(lower, first, second), sign * np.where(lower, second, first)


# Distributions that are made of these functions.


def student_degrees(v: Value, x: Value) -> Value:
    """Return the partial of `stdtr(v, x)` in `v`."""
    zero = plain(x) == 0
    square = np.where(zero, 1.0, x) ** 2
    u, rest = v / (v + square), square / (v + square)
    partial = beta_shapes(v / 2, 0.5, u, rest)[0] / 2 + beta_density(v / 2, 0.5, u, rest) * rest / (v + square)
    return np.where(zero, 0.0, -np.sign(plain(x)) * partial / 2)


def f_degrees(m: Value, n: Value, x: Value) -> tuple[Value, Value]:
    """Return the partials of `fdtr(m, n, x)` in `m` and in `n`."""
    total = m * x + n
    u, rest = m * x / total, n / total
    by_m, by_n = beta_shapes(m / 2, n / 2, u, rest)
    moved = beta_density(m / 2, n / 2, u, rest) * x / total**2
    return by_m / 2 + moved * n, by_n / 2 - moved * m


# The scaled modified Bessel function of the second kind is the integral over t > 0 of
# exp(-2 x sinh(t / 2)**2) cosh(v t); 10.32.9.


def kve_order(v: Value, x: Value) -> Value:
    """Return the partial of `kve(v, x)` in `v`, integrating up and down from the largest value of the integrand.

    At the pole x = 0 it is NaN. Nothing is computed there: in a search for a limit every step would be a singular one.
    """
    pole = plain(x) == 0
    x = np.where(pole, 1.0, x)
    top = np.arcsinh(np.abs(plain(v)) / plain(x))

    def part(sign: int) -> Value:
        def integrand(s: Value, v: Value, x: Value, top: Value) -> Value:
            t = top + sign * s
            fall = 2 * x * np.sinh(t / 2) ** 2
            return t * (np.exp(v * t - fall) - np.exp(-v * t - fall)) / 2

        def exponent(s: Value, v: Value, x: Value, top: Value) -> Value:
            return 2 * x * np.sinh(sign * s / 2) * np.sinh(top + sign * s / 2) - np.abs(v) * sign * s

        return _integral(integrand, exponent, v, x, top, limit=top if sign < 0 else np.inf)

    return np.where(pole, np.nan, part(1) + part(-1))
