"""Distribution functions of statistics in `scipy.special`, their complements and their inverses.

The derivative of a distribution function is its density, and the derivative of an inverse is one over the density. The
derivative in a noncentrality is a difference of two functions, one of which has two more degrees of freedom. The
derivatives in shapes and degrees of freedom come from `effgrad.primitives.special.parameters`. The partials of an
inverse are quotients of these derivatives, by implicit differentiation. The partials in the degrees of freedom of
noncentral distributions, and in counts, are `unknown`. Johnson, Kotz and Balakrishnan, Continuous univariate
distributions, volume 2 (1995), chapters 29 and 30.
"""

import numpy as np

from effgrad.arrays.value import plain
from effgrad.primitives.special.elementary import (
    SQRT_2PI,
    beta_density,
    boxcox_power,
    gamma_density,
    normal_density,
)  # fmt: skip
from effgrad.primitives.special.parameters import beta_shapes, f_degrees, gamma_shape, student_degrees
from effgrad.primitives.special.table import enter, piecewise, sp, unknown
from effgrad.vocabulary import Function, Partial, Tangent, Value


def _student_density(v: Value, x: Value) -> Value:
    return np.exp(-(v + 1) / 2 * np.log1p(x * x / v) - sp.betaln(0.5, v / 2)) / np.sqrt(v)


def _f_density(m: Value, n: Value, x: Value) -> Value:
    # m x / (m x + n) has a beta distribution.
    total = m * x + n
    return beta_density(m / 2, n / 2, m * x / total, n / total) * m * n / total**2


def _poisson_mass(k: Value, m: Value) -> Value:
    k = np.floor(plain(k))
    return np.exp(sp.xlogy(k, m) - m - sp.gammaln(k + 1))


def _binomial(k: Value, n: Value, p: Value) -> Value:
    # 1 - bdtr(k, n, p) is betainc(k + 1, n - k, p), with integer numbers of successes and trials.
    k, n = np.floor(plain(k)), np.trunc(plain(n))
    return np.where(k < 0, 0.0, beta_density(np.maximum(k, 0.0) + 1, n - k, p))


def _negative_binomial(k: Value, n: Value, p: Value) -> Value:
    k, n = np.trunc(plain(k)), np.trunc(plain(n))
    return beta_density(n, k + 1, p)


def noncentral_chi2_density(x: Value, v: Value, nc: Value) -> Value:
    return gamma_density(v / 2, x / 2) / 2 * np.exp(-nc / 2) * sp.hyp0f1(v / 2, nc * x / 4)


def _ncf_density(m: Value, n: Value, nc: Value, x: Value) -> Value:
    total = m * x + n
    a, b, c, u = m / 2, n / 2, nc / 2, m * x / total
    return beta_density(a, b, u, n / total) * np.exp(-c) * sp.hyp1f1(a + b, a, c * u) * m * n / total**2


def _ncf_noncentrality(m: Value, n: Value, nc: Value, x: Value) -> Value:
    a, b, c, u = m / 2, n / 2, nc / 2, m * x / (m * x + n)
    first = np.exp(sp.xlogy(a, u) + sp.xlog1py(b, -u) - sp.betaln(a, b) - c) / a
    return -first / 2 * sp.hyp1f1(a + b, a + 1, c * u)


def _kolmogorov_slope(x: Value) -> Value:
    """Return the derivative of the sum of 2 (-1)**(k-1) exp(-2 k² x²), near 0 by its theta transform."""

    def near_0(x: Value) -> Value:
        z = np.pi**2 / (8 * x * x)
        return SQRT_2PI / (x * x) * sum((1 - 2 * k * k * z) * np.exp(-k * k * z) for k in (1, 3, 5, 7))

    def far(x: Value) -> Value:
        return 8 * x * sum((-1) ** k * k * k * np.exp(-2 * k * k * x * x) for k in range(1, 7))

    x = np.where(plain(x) < 0.03, 0.03, x)  # up to 0.03 the derivative is 0 to the last digit
    return piecewise(plain(x) < 1, x, 0.5, near_0, 2.0, far)


def _in_support(slope: Function, y: Value) -> Value:
    """Return the slope of a distribution function from the function's value `y`; it is 0 where `y` is 0 or 1."""
    inside = (y > 0) & (y < 1)
    return np.where(inside, slope(np.where(inside, y, 0.5)), 0.0)


def _tukey_density(y: Value, shape: Value) -> Value:
    return 1 / (y ** (shape - 1) + (1 - y) ** (shape - 1))


# The partials of each distribution function, as functions of its arguments.
GAMMA = gamma_shape, gamma_density
GAMMA_OF_RATE = (
    lambda a, b, x: x * gamma_density(b, a * x),
    lambda a, b, x: gamma_shape(b, a * x),
    lambda a, b, x: a * gamma_density(b, a * x),
)
CHI2 = (lambda v, x: gamma_shape(v / 2, x / 2) / 2, lambda v, x: gamma_density(v / 2, x / 2) / 2)
BETA = (lambda a, b, x: beta_shapes(a, b, x)[0], lambda a, b, x: beta_shapes(a, b, x)[1], beta_density)
STUDENT = student_degrees, _student_density
F = (lambda m, n, x: f_degrees(m, n, x)[0], lambda m, n, x: f_degrees(m, n, x)[1], _f_density)
NONCENTRAL_CHI2 = (noncentral_chi2_density, unknown, lambda x, v, nc: -noncentral_chi2_density(x, v + 2, nc))
NONCENTRAL_F = unknown, unknown, _ncf_noncentrality, _ncf_density
# The partials of distributions of counts: first for integer counts, then (`..._COUNT`) for real ones, which the
# inverses that search for a count need.
POISSON = (unknown, lambda k, m: -_poisson_mass(k, m))
BINOMIAL = (unknown, unknown, lambda k, n, p: -_binomial(k, n, p))
NEGATIVE_BINOMIAL = (unknown, unknown, _negative_binomial)
POISSON_COUNT = (lambda k, m: -gamma_shape(k + 1, m), lambda k, m: -gamma_density(k + 1, m))
BINOMIAL_COUNT = (
    lambda k, n, p: np.subtract(*beta_shapes(n - k, k + 1, 1 - p, p)[::-1]),
    lambda k, n, p: beta_shapes(n - k, k + 1, 1 - p, p)[0],
    lambda k, n, p: -beta_density(k + 1, n - k, p),
)
NEGATIVE_BINOMIAL_COUNT = (
    lambda k, n, p: beta_shapes(n, k + 1, p)[1],
    lambda k, n, p: beta_shapes(n, k + 1, p)[0],
    lambda k, n, p: beta_density(n, k + 1, p),
)


def _rising(slopes: Value) -> tuple[Value, ...]:
    return tuple(slope if slope is unknown else _of_arguments(slope) for slope in slopes)


def _of_arguments(slope: Tangent) -> Function:
    return lambda y, *args: slope(*args)


def _falling(slopes: Value) -> tuple[Value, ...]:
    """Return the partials of the complement of a distribution function."""
    return tuple(slope if slope is unknown else _negative(slope) for slope in slopes)


def _negative(slope: Tangent) -> Function:
    return lambda y, *args: -slope(*args)


def _inverse(partials: Value, place: int, last: float = np.inf) -> tuple[Value, ...]:
    """Return the partials of the inverse in the argument at `place`, where it takes the function's value instead.

    The ends of a distribution, 0 and `last`, do not depend on its shape, so other partials are 0 there.
    """

    def rule(index: int) -> Value:
        def partial(y: Value, *args: Value) -> Value:
            args = (*args[:place], y, *args[place + 1 :])
            slope = partials[place](None, *args)
            if index == place:
                return 1 / slope
            moved = -partials[index](None, *args) / slope
            return np.where((plain(y) == 0) | (plain(y) == last), 0.0, moved)

        return unknown if partials[index] is unknown else partial

    return tuple(map(rule, range(len(partials))))


def _searched(partials: tuple[Partial, ...], least: float = 1e-300, most: float = 1e100) -> tuple[Value, ...]:
    """Return the partials of an inverse that SciPy searches for between two bounds; at a bound they are 0."""

    def between(partial: Value) -> Function:
        return lambda y, *args: np.where((plain(y) <= least) | (plain(y) >= most), 0.0, partial(y, *args))

    return tuple(partial if partial is unknown else between(partial) for partial in partials)


def _of_whole(partials: tuple[Partial, ...]) -> tuple[Value, ...]:
    """Return the partials of a function that leaves out the fraction of its first argument, a count."""

    def whole(partial: Value) -> Function:
        return lambda y, k, *args: partial(y, np.trunc(plain(k)), *args)

    return tuple(partial if partial is unknown else whole(partial) for partial in partials)


def _no_fewer_than_successes(partials: tuple[Partial, ...]) -> tuple[Partial, ...]:
    """Return the partials of a count of trials; where it equals the count of successes, it moves with these alone."""
    # The partials there: in the successes, in the probability of at most as many (not replaced), in that of one.
    ends = (1.0, None, 0.0)

    def above(partial: Value, end: float | None) -> Function:
        return lambda y, k, *args: np.where(plain(y) == plain(k), end, partial(y, k, *args))

    return tuple(partial if end is None else above(partial, end) for partial, end in zip(partials, ends, strict=True))


enter({
    sp.gammainc: _rising(GAMMA),
    sp.gammaincc: _falling(GAMMA),
    sp.gammaincinv: _inverse(_rising(GAMMA), 1),
    sp.gammainccinv: _inverse(_falling(GAMMA), 1),
    sp.gdtr: _rising(GAMMA_OF_RATE),
    sp.gdtrc: _falling(GAMMA_OF_RATE),
    sp.gdtria: _inverse(_rising(GAMMA_OF_RATE), 0),
    sp.gdtrib: _searched(_inverse(_rising(GAMMA_OF_RATE), 1)),
    sp.gdtrix: _inverse(_rising(GAMMA_OF_RATE), 2),
    sp.chdtr: _rising(CHI2),
    sp.chdtrc: _falling(CHI2),
    sp.chdtri: _inverse(_falling(CHI2), 1),
    sp.chdtriv: _searched(_inverse(_rising(CHI2), 0)),
    sp.betainc: _rising(BETA),
    sp.betaincc: _falling(BETA),
    sp.betaincinv: _inverse(_rising(BETA), 2, 1.0),
    sp.betainccinv: _inverse(_falling(BETA), 2, 1.0),
    sp.btdtria: _searched(_inverse(_rising(BETA), 0)),
    sp.btdtrib: _searched(_inverse(_rising(BETA), 1)),
    sp.stdtr: _rising(STUDENT),
    sp.stdtrit: _inverse(_rising(STUDENT), 1),
    sp.stdtridf: _searched(_inverse(_rising(STUDENT), 0), most=1e10),
    sp.fdtr: _rising(F),
    sp.fdtrc: _falling(F),
    sp.fdtri: _inverse(_rising(F), 2),
    sp.fdtridfd: _searched(_inverse(_rising(F), 1)),
    sp.pdtr: _rising(POISSON),
    sp.pdtrc: _falling(POISSON),
    sp.pdtri: _of_whole(_inverse(_rising(POISSON), 1)),
    sp.pdtrik: _searched(_inverse(_rising(POISSON_COUNT), 0)),
    sp.bdtr: _rising(BINOMIAL),
    sp.bdtrc: _falling(BINOMIAL),
    sp.bdtri: _inverse(_rising(BINOMIAL), 2),
    sp.bdtrik: _searched(_inverse(_rising(BINOMIAL_COUNT), 0)),
    sp.bdtrin: _no_fewer_than_successes(_searched(_inverse(_rising(BINOMIAL_COUNT), 1), 1e-9)),
    sp.nbdtr: _rising(NEGATIVE_BINOMIAL),
    sp.nbdtrc: _falling(NEGATIVE_BINOMIAL),
    sp.nbdtri: _inverse(_rising(NEGATIVE_BINOMIAL), 2),
    sp.nbdtrik: _searched(_inverse(_rising(NEGATIVE_BINOMIAL_COUNT), 0)),
    sp.nbdtrin: _searched(_inverse(_rising(NEGATIVE_BINOMIAL_COUNT), 1)),
    sp.chndtr: _rising(NONCENTRAL_CHI2),
    sp.chndtrix: _searched(_inverse(_rising(NONCENTRAL_CHI2), 0)),
    sp.chndtrinc: _searched(_inverse(_rising(NONCENTRAL_CHI2), 2)),
    sp.ncfdtr: _rising(NONCENTRAL_F),
    sp.ncfdtrinc: _searched(_inverse(_rising(NONCENTRAL_F), 2)),
    sp.ncfdtri: _searched(_inverse(_rising(NONCENTRAL_F), 3)),
    sp.nrdtrimn: (
        lambda y, p, std, x: -std / normal_density(sp.ndtri(p)), lambda y, p, std, x: -sp.ndtri(p), 1
    ),
    sp.nrdtrisd: (
        lambda y, mean, p, x: -1 / sp.ndtri(p),
        lambda y, mean, p, x: -y / (sp.ndtri(p) * normal_density(sp.ndtri(p))),
        lambda y, mean, p, x: 1 / sp.ndtri(p),
    ),
    sp.tklmbda: (
        lambda y, x, shape: _in_support(lambda y: _tukey_density(y, shape), y),
        lambda y, x, shape: _in_support(
            lambda y: (boxcox_power(np.log1p(-y), shape) - boxcox_power(np.log(y), shape)) * _tukey_density(y, shape), y
        ),
    ),
    sp.kolmogorov: lambda y, x: _kolmogorov_slope(x),
    sp.kolmogi: lambda y, p: 1 / _kolmogorov_slope(y),
})  # fmt: skip
