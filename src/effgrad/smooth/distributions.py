"""Distribution functions of statistics in `scipy.special`, their complements and their inverses.

The derivative of a distribution function is its density, and that of an inverse one over it; in a noncentrality, the
difference of the functions with two more degrees of freedom. Degrees of freedom and counts are `unknown`. Johnson, Kotz
and Balakrishnan, Continuous univariate distributions, volume 2 (1995), chapters 29 and 30.
"""

from typing import Any

import numpy as np

from effgrad.smooth.special import (
    SQRT_2PI,
    beta_density,
    boxcox_power,
    enter,
    gamma_density,
    normal_density,
    piecewise,
    sp,
    unknown,
)  # fmt: skip
from effgrad.smooth.traced import plain


def _student_density(v: Any, x: Any) -> Any:
    return np.exp(-(v + 1) / 2 * np.log1p(x * x / v) - sp.betaln(0.5, v / 2)) / np.sqrt(v)


def _f_density(m: Any, n: Any, x: Any) -> Any:
    # Of m x / (m x + n), which has a beta distribution.
    u = m * x / (m * x + n)
    return beta_density(m / 2, n / 2, u) * m * n / (m * x + n) ** 2


def _poisson_mass(k: Any, m: Any) -> Any:
    k = np.floor(plain(k))
    return np.exp(sp.xlogy(k, m) - m - sp.gammaln(k + 1))


def _binomial(k: Any, n: Any, p: Any) -> Any:
    # 1 - bdtr(k, n, p) is betainc(k + 1, n - k, p)
    k = np.floor(plain(k))
    return beta_density(k + 1, n - k, p)


def _negative_binomial(k: Any, n: Any, p: Any) -> Any:
    k = np.floor(plain(k))
    return beta_density(n, k + 1, p)


def _noncentral_chi2_density(x: Any, v: Any, nc: Any) -> Any:
    return gamma_density(v / 2, x / 2) / 2 * np.exp(-nc / 2) * sp.hyp0f1(v / 2, nc * x / 4)


def _ncf_density(m: Any, n: Any, nc: Any, x: Any) -> Any:
    a, b, c, u = m / 2, n / 2, nc / 2, m * x / (m * x + n)
    return beta_density(a, b, u) * np.exp(-c) * sp.hyp1f1(a + b, a, c * u) * m * n / (m * x + n) ** 2


def _ncf_noncentrality(m: Any, n: Any, nc: Any, x: Any) -> Any:
    a, b, c, u = m / 2, n / 2, nc / 2, m * x / (m * x + n)
    first = np.exp(sp.xlogy(a, u) + sp.xlog1py(b, -u) - sp.betaln(a, b) - c) / a
    return -first / 2 * sp.hyp1f1(a + b, a + 1, c * u)


def _kolmogorov_slope(x: Any) -> Any:
    """The derivative of the sum of 2 (-1)**(k-1) exp(-2 k² x²), and near 0 of its theta transform."""

    def near_0(x: Any) -> Any:
        z = np.pi**2 / (8 * x * x)
        return SQRT_2PI / (x * x) * sum((1 - 2 * k * k * z) * np.exp(-k * k * z) for k in (1, 3, 5, 7))

    def far(x: Any) -> Any:
        return 8 * x * sum((-1) ** k * k * k * np.exp(-2 * k * k * x * x) for k in range(1, 7))

    x = np.where(plain(x) < 0.03, 0.03, x)  # where it is 0, to the last digit
    return piecewise(plain(x) < 1, x, 0.5, near_0, 2.0, far)


def _tukey_density(y: Any, shape: Any) -> Any:
    return 1 / (y ** (shape - 1) + (1 - y) ** (shape - 1))


enter({
    sp.stdtr: (unknown, lambda y, v, x: _student_density(v, x)),
    sp.stdtrit: (unknown, lambda y, v, p: 1 / _student_density(v, y)),
    sp.chdtr: (unknown, lambda y, v, x: gamma_density(v / 2, x / 2) / 2),
    sp.chdtrc: (unknown, lambda y, v, x: -gamma_density(v / 2, x / 2) / 2),
    sp.chdtri: (unknown, lambda y, v, p: -2 / gamma_density(v / 2, y / 2)),
    sp.fdtr: (unknown, unknown, lambda y, m, n, x: _f_density(m, n, x)),
    sp.fdtrc: (unknown, unknown, lambda y, m, n, x: -_f_density(m, n, x)),
    sp.fdtri: (unknown, unknown, lambda y, m, n, p: 1 / _f_density(m, n, y)),
    sp.gdtr: (
        lambda y, a, b, x: x * gamma_density(b, a * x), unknown, lambda y, a, b, x: a * gamma_density(b, a * x)
    ),
    sp.gdtrc: (
        lambda y, a, b, x: -x * gamma_density(b, a * x), unknown, lambda y, a, b, x: -a * gamma_density(b, a * x)
    ),
    sp.pdtr: (unknown, lambda y, k, m: -_poisson_mass(k, m)),
    sp.pdtrc: (unknown, lambda y, k, m: _poisson_mass(k, m)),
    sp.bdtr: (unknown, unknown, lambda y, k, n, p: -_binomial(k, n, p)),
    sp.bdtrc: (unknown, unknown, lambda y, k, n, p: _binomial(k, n, p)),
    sp.nbdtr: (unknown, unknown, lambda y, k, n, p: _negative_binomial(k, n, p)),
    sp.nbdtrc: (unknown, unknown, lambda y, k, n, p: -_negative_binomial(k, n, p)),
    sp.gdtria: (
        lambda y, p, b, x: 1 / (x * gamma_density(b, y * x)), unknown, lambda y, p, b, x: -y / x
    ),
    sp.gdtrix: (
        lambda y, a, b, p: -y / a, unknown, lambda y, a, b, p: 1 / (a * gamma_density(b, a * y))
    ),
    sp.pdtri: (unknown, lambda y, k, p: -1 / _poisson_mass(k, y)),
    sp.bdtri: (unknown, unknown, lambda y, k, n, p: -1 / _binomial(k, n, y)),
    sp.nbdtri: (unknown, unknown, lambda y, k, n, p: 1 / _negative_binomial(k, n, y)),
    sp.nrdtrimn: (
        lambda y, p, std, x: -std / normal_density(sp.ndtri(p)), lambda y, p, std, x: -sp.ndtri(p), 1
    ),
    sp.nrdtrisd: (
        lambda y, mean, p, x: -1 / sp.ndtri(p),
        lambda y, mean, p, x: -y / (sp.ndtri(p) * normal_density(sp.ndtri(p))),
        lambda y, mean, p, x: 1 / sp.ndtri(p),
    ),
    sp.chndtr: (
        lambda y, x, v, nc: _noncentral_chi2_density(x, v, nc), unknown,
        lambda y, x, v, nc: -_noncentral_chi2_density(x, v + 2, nc),
    ),
    sp.chndtrix: (
        lambda y, p, v, nc: 1 / _noncentral_chi2_density(y, v, nc), unknown,
        lambda y, p, v, nc: _noncentral_chi2_density(y, v + 2, nc) / _noncentral_chi2_density(y, v, nc),
    ),
    sp.chndtrinc: (
        lambda y, x, v, p: _noncentral_chi2_density(x, v, y) / _noncentral_chi2_density(x, v + 2, y), unknown,
        lambda y, x, v, p: -1 / _noncentral_chi2_density(x, v + 2, y),
    ),
    sp.ncfdtr: (
        unknown, unknown, lambda y, m, n, nc, x: _ncf_noncentrality(m, n, nc, x),
        lambda y, m, n, nc, x: _ncf_density(m, n, nc, x),
    ),
    sp.ncfdtri: (
        unknown, unknown, lambda y, m, n, nc, p: -_ncf_noncentrality(m, n, nc, y) / _ncf_density(m, n, nc, y),
        lambda y, m, n, nc, p: 1 / _ncf_density(m, n, nc, y),
    ),
    sp.ncfdtrinc: (
        unknown, unknown, lambda y, m, n, p, x: 1 / _ncf_noncentrality(m, n, y, x),
        lambda y, m, n, p, x: -_ncf_density(m, n, y, x) / _ncf_noncentrality(m, n, y, x),
    ),
    sp.tklmbda: (
        lambda y, x, shape: _tukey_density(y, shape),
        lambda y, x, shape: (
            (boxcox_power(np.log1p(-y), shape) - boxcox_power(np.log(y), shape)) * _tukey_density(y, shape)
        ),
    ),
    sp.kolmogorov: lambda y, x: _kolmogorov_slope(x),
    sp.kolmogi: lambda y, p: 1 / _kolmogorov_slope(y),
})  # fmt: skip
