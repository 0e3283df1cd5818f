"""Special functions: `scipy.special`, each with its partials, one per argument.

The identities are those of the NIST Digital Library of Mathematical Functions (https://dlmf.nist.gov); the chapter is
named at each group. `unknown` stands where no derivative is known in closed form (an order, a degree of freedom) and
raises `NoRule` when it is asked for: such an argument is never taken as a constant. Where the textbook formula loses
its digits (erfcx far out, complete elliptic integrals at 0) an equal one is used that does not.

At the ends of a domain the value is the limit from within, also where it is infinite (`entr` at 0). The scaled Bessel
functions `i0e`, `i1e`, `ive` have a kink at 0, where their factor exp(-abs(x)) counts as flat. `xlogy` is flat in its
second argument at (0, 0).
"""

from typing import Any

import numpy as np
import scipy.special
from scipy.special import _ufuncs

from effgrad.errors import NoRule
from effgrad.smooth.elementwise import UNARY, _power_base, _power_exponent, _sign
from effgrad.smooth.primitive import Primitive, elementwise
from effgrad.smooth.reductions import logsumexp
from effgrad.smooth.traced import CONSTANT, UFUNCS, composed, plain


class _Compiled:
    """`scipy.special` with its ufuncs as they are: with SCIPY_ARRAY_API=1, SciPy puts dispatchers in their place."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_ufuncs, {"digamma": "psi"}.get(name, name), None) or getattr(scipy.special, name)


sp = _Compiled()
SQRT_PI, SQRT_2PI, DEGREE = np.sqrt(np.pi).item(), np.sqrt(2 * np.pi).item(), np.pi / 180


def unknown(*_: Any) -> Any:
    """Stands for a partial for which no rule is known."""


def special(function: Any, *partials: Any, name: str = "") -> Primitive:
    """An elementwise primitive some of whose partials are `unknown`."""
    name = name or function.__name__
    rules = [_refused(name, index) if partial is unknown else partial for index, partial in enumerate(partials)]
    return elementwise(function, *rules, name=name)


def _refused(name: str, index: int) -> Any:
    def partial(*_: Any) -> Any:
        raise NoRule(
            f"scipy.special.{name} has no derivative rule in its argument number {index + 1}; "
            "effgrad.stop_gradient(argument) makes it a constant"
        )

    return partial


def _piecewise(condition: Any, x: Any, inside: Any, then: Any, outside: Any, otherwise: Any) -> Any:
    """`then(x)` where the condition holds, else `otherwise(x)`; each sees a harmless number where the other counts."""
    return np.where(condition, then(np.where(condition, x, inside)), otherwise(np.where(condition, outside, x)))


# Gamma and beta functions: chapters 5 and 8.


def _rgamma(y: Any, x: Any) -> Any:
    # 1/gamma is entire; left of 1/2 the reflection formula avoids the poles of digamma.
    def reflected(x: Any) -> Any:
        z = 1 - x
        return sp.gamma(z) * (np.cos(np.pi * x) - sp.digamma(z) * np.sin(np.pi * x) / np.pi)

    return _piecewise(plain(x) < 0.5, x, 0.0, reflected, 1.0, lambda x: -sp.rgamma(x) * sp.digamma(x))


def gamma_density(a: Any, x: Any) -> Any:
    """The partial of `gammainc(a, x)` in `x`."""
    return np.exp(sp.xlogy(a - 1, x) - x - sp.gammaln(a))


def beta_density(a: Any, b: Any, x: Any) -> Any:
    """The partial of `betainc(a, b, x)` in `x`."""
    return np.exp(sp.xlogy(a - 1, x) + sp.xlog1py(b - 1, -x) - sp.betaln(a, b))


def _xlogy_second(y: Any, a: Any, b: Any) -> Any:
    corner = (plain(a) == 0) & (plain(b) == 0)
    return np.where(corner, 0.0, a / np.where(corner, 1.0, b))


# Error functions: chapter 7. Far out, the difference in the formula loses its digits, and a series has them all.

FAR = 10.0
# 1 3 5 ... (2 k + 1) / 2^k: from 10 on, 15 terms of the asymptotic series are enough.
_INVERSE_POWERS = np.cumprod([1.0, *(k + 0.5 for k in range(1, 15))]).tolist()


def _inverse_powers(x: Any, sign: float) -> Any:
    z = sign / (x * x)
    total = _INVERSE_POWERS[-1]
    for coefficient in _INVERSE_POWERS[-2::-1]:
        total = coefficient + z * total
    return total


def _erfcx(y: Any, x: Any) -> Any:
    return _piecewise(
        plain(x) > FAR, x, FAR, lambda x: -_inverse_powers(x, -1.0) / (SQRT_PI * x * x),
        0.0, lambda x: 2 * x * sp.erfcx(x) - 2 / SQRT_PI,
    )  # fmt: skip


def _dawsn(y: Any, x: Any) -> Any:
    return _piecewise(
        np.abs(plain(x)) > FAR, x, FAR, lambda x: -_inverse_powers(x, 1.0) / (2 * x * x),
        0.0, lambda x: 1 - 2 * x * sp.dawsn(x),
    )  # fmt: skip


def _over_normal_density(x: Any) -> Any:
    return SQRT_2PI * np.exp(x * x / 2)


# Parts of functions that return several numbers.


def _si(x: Any) -> Any:
    return sp.sici(x)[0]


def _ci(x: Any) -> Any:
    return sp.sici(x)[1]


def _shi(x: Any) -> Any:
    return sp.shichi(x)[0]


def _chi(x: Any) -> Any:
    return sp.shichi(x)[1]


def _fresnel_s(x: Any) -> Any:
    return sp.fresnel(x)[0]


def _fresnel_c(x: Any) -> Any:
    return sp.fresnel(x)[1]


def _airy_a(x: Any) -> Any:
    return sp.airy(x)[0]


def _airy_a_prime(x: Any) -> Any:
    return sp.airy(x)[1]


def _airy_b(x: Any) -> Any:
    return sp.airy(x)[2]


def _airy_b_prime(x: Any) -> Any:
    return sp.airy(x)[3]


def _sn(u: Any, m: Any) -> Any:
    return sp.ellipj(u, m)[0]


def _cn(u: Any, m: Any) -> Any:
    return sp.ellipj(u, m)[1]


def _dn(u: Any, m: Any) -> Any:
    return sp.ellipj(u, m)[2]


def _amplitude(u: Any, m: Any) -> Any:
    return sp.ellipj(u, m)[3]


PARTS: dict[Any, tuple[Primitive, ...]] = {
    sp.sici: (special(_si, lambda y, x: np.sinc(x / np.pi)), special(_ci, lambda y, x: np.cos(x) / x)),
    sp.shichi: (
        special(_shi, lambda y, x: (sp.exprel(x) + sp.exprel(-x)) / 2), special(_chi, lambda y, x: np.cosh(x) / x)
    ),
    sp.fresnel: (
        special(_fresnel_s, lambda y, x: np.sin(np.pi / 2 * x * x)),
        special(_fresnel_c, lambda y, x: np.cos(np.pi / 2 * x * x)),
    ),
    sp.airy: (
        special(_airy_a, lambda y, x: sp.airy(x)[1]), special(_airy_a_prime, lambda y, x: x * sp.airy(x)[0]),
        special(_airy_b, lambda y, x: sp.airy(x)[3]), special(_airy_b_prime, lambda y, x: x * sp.airy(x)[2]),
    ),
    sp.ellipj: (
        special(_sn, lambda y, u, m: sp.ellipj(u, m)[1] * sp.ellipj(u, m)[2], unknown),
        special(_cn, lambda y, u, m: -sp.ellipj(u, m)[0] * sp.ellipj(u, m)[2], unknown),
        special(_dn, lambda y, u, m: -m * sp.ellipj(u, m)[0] * sp.ellipj(u, m)[1], unknown),
        special(_amplitude, lambda y, u, m: sp.ellipj(u, m)[2], unknown),
    ),
}  # fmt: skip


# Bessel functions: chapter 10. Orders are constants.


def _order_below(order: Any) -> Any:
    """The order of the next polynomial or function down; at 0 the factor before it is 0."""
    order = plain(order)
    return np.where(order == 0, order, order - 1)[()]


def _from_one(order: Any) -> Any:
    return (plain(order) != 0) * 1.0


def _bessel(function: Any, below: int, above: int) -> Any:
    return lambda y, v, x: (below * function(v - 1, x) + above * function(v + 1, x)) / 2


def _struve_term(v: Any, x: Any) -> Any:
    return (x / 2) ** v / (SQRT_PI * sp.gamma(v + 1.5))


def _spherical(function: Any, below: int, above: int) -> Primitive:
    """The primitive of a spherical Bessel function: its derivative from its neighbours, regular at 0."""

    def partial(y: Any, n: Any, x: Any) -> Any:
        lower, upper = primitive(_order_below(n), x), primitive(n + 1, x)
        return (below * n * lower + above * (n + 1) * upper) / (2 * n + 1)

    primitive = special(function, unknown, partial)
    return primitive


spherical_jn = _spherical(sp.spherical_jn, 1, -1)
spherical_yn = _spherical(sp.spherical_yn, 1, -1)
spherical_in = _spherical(sp.spherical_in, 1, 1)
spherical_kn = _spherical(sp.spherical_kn, -1, -1)


def _expn(y: Any, n: Any, x: Any) -> Any:
    n = plain(n)
    return np.where(n == 0, -(1 + 1 / x) * np.exp(-x) / x, -sp.expn(_order_below(n), x))


def _spence(y: Any, x: Any) -> Any:
    return _piecewise(
        np.abs(plain(x) - 1) < 0.1, x, 1.0, lambda x: -sp.hyp2f1(1.0, 1.0, 2.0, 1 - x),
        2.0, lambda x: np.log(x) / (1 - x),
    )  # fmt: skip


def _relative_exponential(x: Any) -> Any:
    """The derivative of `exprel`."""
    return sp.hyp1f1(2.0, 3.0, x) / 2


def _boxcox_power(log: Any, power: Any) -> Any:
    """The partial of `boxcox` in the power, from the logarithm of its argument; regular at power 0."""
    return log**2 * _relative_exponential(power * log)


def _log_inv_boxcox(x: Any, power: Any) -> Any:
    """The logarithm of `inv_boxcox(x, power)`: that of 1 + power x, over power."""
    t = power * x
    ratio = _piecewise(
        np.abs(plain(t)) < 0.1, t, 0.0, lambda t: sp.hyp2f1(1.0, 1.0, 2.0, -t), 1.0, lambda t: np.log1p(t) / t
    )
    return x * ratio


def _e_below_1(rest: Any) -> Any:
    return sp.ellipe(1 - rest)


# E as a function of 1 - m, for m near 1, where m itself has lost the digits.
e_below_1: Primitive = special(_e_below_1, lambda y, rest: (sp.ellipkm1(rest) - y) / (2 * (1 - rest)))


def _ellipk_parameter(m: Any, rest: Any) -> Any:
    """The derivative of the complete elliptic integral in its parameter m = 1 - rest."""

    def near_1(rest: Any) -> Any:
        # (E - rest K) / (2 m rest), which cancels for small m alone
        return (e_below_1(rest) - rest * sp.ellipkm1(rest)) / (2 * (1 - rest) * rest)

    return np.where(
        plain(m) > 0.5,
        near_1(np.where(plain(m) > 0.5, rest, 0.5)),
        np.pi / 8 * sp.hyp2f1(1.5, 1.5, 2.0, np.where(plain(m) > 0.5, 0.0, m)),
    )


def _pseudo_huber_scale(y: Any, scale: Any, r: Any) -> Any:
    # 2 scale (s - 1) - r**2 / (scale s), without the cancellation for small r.
    q = (r / scale) ** 2
    s = np.sqrt(1 + q)
    return scale * q * q / (s * (s + 1) ** 2)


def _huber(y: Any, scale: Any, r: Any) -> Any:
    inside = np.abs(plain(r)) <= plain(scale)
    return np.where(inside, r, scale * np.sign(plain(r)))


def _huber_scale(y: Any, scale: Any, r: Any) -> Any:
    inside = np.abs(plain(r)) <= plain(scale)
    return np.where(inside, 0.0, np.abs(r) - scale)


def _normal_density(x: Any) -> Any:
    return np.exp(-x * x / 2) / SQRT_2PI


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


_TABLE: dict[Any, Any] = {
    # gamma functions
    sp.gammaln: lambda y, x: sp.digamma(x),
    sp.loggamma: lambda y, x: sp.digamma(x),
    sp.gamma: lambda y, x: y * sp.digamma(x),
    sp.rgamma: _rgamma,
    sp.digamma: lambda y, x: polygamma(1, x),
    sp.gammainc: (unknown, lambda y, a, x: gamma_density(a, x)),
    sp.gammaincc: (unknown, lambda y, a, x: -gamma_density(a, x)),
    sp.gammaincinv: (unknown, lambda y, a, p: 1 / gamma_density(a, y)),
    sp.gammainccinv: (unknown, lambda y, a, p: -1 / gamma_density(a, y)),
    sp.poch: (
        lambda y, z, m: y * (sp.digamma(z + m) - sp.digamma(z)),
        lambda y, z, m: y * sp.digamma(z + m),
    ),
    # beta functions
    sp.beta: (
        lambda y, a, b: y * (sp.digamma(a) - sp.digamma(a + b)),
        lambda y, a, b: y * (sp.digamma(b) - sp.digamma(a + b)),
    ),
    sp.betaln: (
        lambda y, a, b: sp.digamma(a) - sp.digamma(a + b),
        lambda y, a, b: sp.digamma(b) - sp.digamma(a + b),
    ),
    sp.betainc: (unknown, unknown, lambda y, a, b, x: beta_density(a, b, x)),
    sp.betaincc: (unknown, unknown, lambda y, a, b, x: -beta_density(a, b, x)),
    sp.betaincinv: (unknown, unknown, lambda y, a, b, p: 1 / beta_density(a, b, y)),
    sp.betainccinv: (unknown, unknown, lambda y, a, b, p: -1 / beta_density(a, b, y)),
    sp.binom: (
        lambda y, n, k: y * (sp.digamma(n + 1) - sp.digamma(n - k + 1)),
        lambda y, n, k: y * (sp.digamma(n - k + 1) - sp.digamma(k + 1)),
    ),
    # error functions and the normal distribution
    sp.erf: lambda y, x: 2 / SQRT_PI * np.exp(-x * x),
    sp.erfc: lambda y, x: -2 / SQRT_PI * np.exp(-x * x),
    sp.erfcx: _erfcx,
    sp.erfi: lambda y, x: 2 / SQRT_PI * np.exp(x * x),
    sp.dawsn: _dawsn,
    sp.erfinv: lambda y, x: SQRT_PI / 2 * np.exp(y * y),
    sp.erfcinv: lambda y, x: -SQRT_PI / 2 * np.exp(y * y),
    sp.ndtr: lambda y, x: _normal_density(x),
    sp.log_ndtr: lambda y, x: 2 / SQRT_2PI / sp.erfcx(-x / np.sqrt(2).item()),
    sp.ndtri: lambda y, p: _over_normal_density(y),
    sp.ndtri_exp: lambda y, p: SQRT_2PI / 2 * sp.erfcx(-y / np.sqrt(2).item()),
    sp.owens_t: (
        lambda y, h, a: -sp.erf(a * h / np.sqrt(2).item()) * np.exp(-h * h / 2) / (2 * SQRT_2PI),
        lambda y, h, a: np.exp(-(1 + a * a) * h * h / 2) / (2 * np.pi * (1 + a * a)),
    ),
    # Bessel functions
    sp.j0: lambda y, x: -sp.j1(x),
    sp.j1: lambda y, x: (sp.j0(x) - sp.jv(2, x)) / 2,
    sp.y0: lambda y, x: -sp.y1(x),
    sp.y1: lambda y, x: (sp.y0(x) - sp.yv(2, x)) / 2,
    sp.i0: lambda y, x: sp.i1(x),
    sp.i1: lambda y, x: (sp.i0(x) + sp.iv(2, x)) / 2,
    sp.k0: lambda y, x: -sp.k1(x),
    sp.k1: lambda y, x: -(sp.k0(x) + sp.kv(2, x)) / 2,
    sp.i0e: lambda y, x: sp.i1e(x) - _sign(x) * y,
    sp.i1e: lambda y, x: (sp.i0e(x) + sp.ive(2, x)) / 2 - _sign(x) * y,
    sp.k0e: lambda y, x: y - sp.k1e(x),
    sp.k1e: lambda y, x: y - (sp.k0e(x) + sp.kve(2, x)) / 2,
    sp.jv: (unknown, _bessel(sp.jv, 1, -1)),
    sp.jve: (unknown, _bessel(sp.jve, 1, -1)),
    sp.yv: (unknown, _bessel(sp.yv, 1, -1)),
    sp.yve: (unknown, _bessel(sp.yve, 1, -1)),
    sp.yn: (unknown, _bessel(sp.yv, 1, -1)),
    sp.iv: (unknown, _bessel(sp.iv, 1, 1)),
    sp.ive: (unknown, lambda y, v, x: (sp.ive(v - 1, x) + sp.ive(v + 1, x)) / 2 - _sign(x) * y),
    sp.kv: (unknown, _bessel(sp.kv, -1, -1)),
    sp.kn: (unknown, _bessel(sp.kv, -1, -1)),
    sp.kve: (unknown, lambda y, v, x: y - (sp.kve(v - 1, x) + sp.kve(v + 1, x)) / 2),
    sp.ber: lambda y, x: sp.berp(x),
    sp.bei: lambda y, x: sp.beip(x),
    sp.ker: lambda y, x: sp.kerp(x),
    sp.kei: lambda y, x: sp.keip(x),
    sp.struve: (unknown, lambda y, v, x: (sp.struve(v - 1, x) - sp.struve(v + 1, x) + _struve_term(v, x)) / 2),
    sp.modstruve: (
        unknown, lambda y, v, x: (sp.modstruve(v - 1, x) + sp.modstruve(v + 1, x) + _struve_term(v, x)) / 2
    ),
    # logistic functions, exponentials and logarithms
    sp.expit: lambda y, x: y * sp.expit(-x),
    sp.log_expit: lambda y, x: sp.expit(-x),
    sp.logit: lambda y, x: np.reciprocal(x * (1 - x)),
    sp.exp2: UNARY[np.exp2].partials,
    sp.exp10: lambda y, x: y * np.log(10.0).item(),
    sp.expm1: lambda y, x: np.exp(x),
    sp.exprel: lambda y, x: _relative_exponential(x),
    sp.log1p: UNARY[np.log1p].partials,
    sp.cbrt: UNARY[np.cbrt].partials,
    sp.cosm1: lambda y, x: -np.sin(x),
    sp.powm1: (
        lambda y, x, p: _power_base(y, x, p),
        lambda y, x, p: _power_exponent(x**p, x, p),
    ),
    sp.sindg: lambda y, x: DEGREE * sp.cosdg(x),
    sp.cosdg: lambda y, x: -DEGREE * sp.sindg(x),
    sp.tandg: lambda y, x: DEGREE / sp.cosdg(x) ** 2,
    sp.cotdg: lambda y, x: -DEGREE / sp.sindg(x) ** 2,
    sp.radian: (DEGREE, DEGREE / 60, DEGREE / 3600),
    # entropies, losses and transformations of statistics
    sp.xlogy: (lambda y, a, b: np.log(b), _xlogy_second),
    sp.xlog1py: (lambda y, a, b: np.log1p(b), lambda y, a, b: a / (1 + b)),
    sp.entr: lambda y, x: -np.log(x) - 1,
    sp.rel_entr: (lambda y, a, b: np.log(a / b) + 1, lambda y, a, b: -a / b),
    sp.kl_div: (lambda y, a, b: np.log(a / b), lambda y, a, b: 1 - a / b),
    sp.huber: (_huber_scale, _huber),
    sp.pseudo_huber: (_pseudo_huber_scale, lambda y, scale, r: r / np.sqrt(1 + (r / scale) ** 2)),
    sp.boxcox: (lambda y, x, p: x ** (p - 1), lambda y, x, p: _boxcox_power(np.log(x), p)),
    sp.boxcox1p: (lambda y, x, p: np.exp((p - 1) * np.log1p(x)), lambda y, x, p: _boxcox_power(np.log1p(x), p)),
    sp.inv_boxcox: (
        lambda y, x, p: y ** (1 - p),
        lambda y, x, p: -_boxcox_power(_log_inv_boxcox(x, p), p) * y ** (1 - p),
    ),
    sp.inv_boxcox1p: (
        lambda y, x, p: (1 + y) ** (1 - p),
        lambda y, x, p: -_boxcox_power(_log_inv_boxcox(x, p), p) * (1 + y) ** (1 - p),
    ),
    sp.wrightomega: lambda y, x: y / (1 + y),
    # exponential integrals and the dilogarithm: chapters 6 and 25
    sp.expi: lambda y, x: np.exp(x) / x,
    sp.exp1: lambda y, x: -np.exp(-x) / x,
    sp.expn: (unknown, _expn),
    sp.spence: _spence,
    # elliptic integrals: chapter 19, as hypergeometric functions of the parameter; hypergeometric functions: 15, 13
    sp.ellipk: lambda y, m: _ellipk_parameter(m, 1 - m),
    sp.ellipkm1: lambda y, p: -_ellipk_parameter(1 - p, p),
    sp.ellipe: lambda y, m: -np.pi / 8 * sp.hyp2f1(0.5, 1.5, 2.0, m),
    sp.ellipkinc: (lambda y, phi, m: 1 / np.sqrt(1 - m * np.sin(phi) ** 2), unknown),
    sp.ellipeinc: (lambda y, phi, m: np.sqrt(1 - m * np.sin(phi) ** 2), unknown),
    sp.hyp2f1: (unknown, unknown, unknown, lambda y, a, b, c, x: a * b / c * sp.hyp2f1(a + 1, b + 1, c + 1, x)),
    sp.hyp1f1: (unknown, unknown, lambda y, a, b, x: a / b * sp.hyp1f1(a + 1, b + 1, x)),
    sp.hyp0f1: (unknown, lambda y, b, x: sp.hyp0f1(b + 1, x) / b),
    sp.hyperu: (unknown, unknown, lambda y, a, b, x: -a * sp.hyperu(a + 1, b + 1, x)),
    # distribution functions of statistics
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
    # orthogonal polynomials, in x: chapter 18
    sp.eval_jacobi: (unknown, unknown, unknown, lambda y, n, a, b, x: (
        _from_one(n) * (n + a + b + 1) / 2 * sp.eval_jacobi(_order_below(n), a + 1, b + 1, x))),
    sp.eval_sh_jacobi: (unknown, unknown, unknown, lambda y, n, p, q, x: (
        n * sp.eval_sh_jacobi(_order_below(n), p + 2, q + 1, x))),
    sp.eval_gegenbauer: (unknown, unknown, lambda y, n, a, x: (
        _from_one(n) * 2 * a * sp.eval_gegenbauer(_order_below(n), a + 1, x))),
    sp.eval_legendre: (unknown, lambda y, n, x: (
        _from_one(n) * sp.eval_gegenbauer(_order_below(n), 1.5, x))),
    sp.eval_sh_legendre: (unknown, lambda y, n, x: (
        _from_one(n) * 2 * sp.eval_gegenbauer(_order_below(n), 1.5, 2 * x - 1))),
    sp.eval_chebyt: (unknown, lambda y, n, x: n * sp.eval_chebyu(_order_below(n), x)),
    sp.eval_sh_chebyt: (unknown, lambda y, n, x: 2 * n * sp.eval_chebyu(_order_below(n), 2 * x - 1)),
    sp.eval_chebyu: (unknown, lambda y, n, x: _from_one(n) * 2 * sp.eval_gegenbauer(_order_below(n), 2.0, x)),
    sp.eval_sh_chebyu: (unknown, lambda y, n, x: (
        _from_one(n) * 4 * sp.eval_gegenbauer(_order_below(n), 2.0, 2 * x - 1))),
    sp.eval_chebyc: (unknown, lambda y, n, x: n * sp.eval_chebyu(_order_below(n), x / 2)),
    sp.eval_chebys: (unknown, lambda y, n, x: _from_one(n) * sp.eval_gegenbauer(_order_below(n), 2.0, x / 2)),
    sp.eval_hermite: (unknown, lambda y, n, x: 2 * n * sp.eval_hermite(_order_below(n), x)),
    sp.eval_hermitenorm: (unknown, lambda y, n, x: n * sp.eval_hermitenorm(_order_below(n), x)),
    sp.eval_genlaguerre: (unknown, unknown, lambda y, n, a, x: (
        -_from_one(n) * sp.eval_genlaguerre(_order_below(n), a + 1, x))),
    sp.eval_laguerre: (unknown, lambda y, n, x: (
        -_from_one(n) * sp.eval_genlaguerre(_order_below(n), 1.0, x))),
}  # fmt: skip

SPECIAL: dict[Any, Primitive] = {
    function: special(function, *(partials if type(partials) is tuple else (partials,)))
    for function, partials in _TABLE.items()
}
UFUNCS.update(SPECIAL)


def _several(parts: tuple[Primitive, ...]) -> Any:
    return lambda *args: tuple(part(*args) for part in parts)


UFUNCS.update({function: _several(parts) for function, parts in PARTS.items()})
CONSTANT.update({sp.gammasgn, sp.round})


# Functions that are not ufuncs: entries of `interception.RULES`.

polygamma: Primitive = special(sp.polygamma, unknown, lambda y, n, x: polygamma(n + 1, x))
zeta: Primitive = special(sp.zeta, unknown, lambda y, x, q: -x * zeta(x + 1, q))


def _zeta(x: Any, q: Any = None, out: Any = None) -> Any:
    return zeta(x, 1.0 if q is None else q)


def _polygamma(n: Any, x: Any) -> Any:
    return polygamma(n, x)


def _multigammaln(a: Any, d: Any) -> Any:
    terms = sum(sp.gammaln(a - j / 2) for j in range(int(d)))
    return terms + d * (d - 1) / 4 * np.log(np.pi).item()


def _softmax(x: Any, axis: Any = None) -> Any:
    return np.exp(_log_softmax(x, axis))


def _log_softmax(x: Any, axis: Any = None) -> Any:
    return x - logsumexp(x, axis=axis, keepdims=True)


def _softplus(x: Any, **options: Any) -> Any:
    return np.logaddexp(0.0, x, **options)


def _factorial(n: Any, exact: bool = False, extend: str = "zero") -> Any:
    _refuse_exact("factorial", exact)
    return np.where(plain(n) < 0, 0.0, sp.gamma(n + 1))


def _comb(n: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> Any:
    _refuse_exact("comb", exact)
    return sp.binom(n + k - 1 if repetition else n, k)


def _perm(n: Any, k: Any, exact: bool = False) -> Any:
    _refuse_exact("perm", exact)
    return sp.poch(n - k + 1, k)


def _refuse_exact(name: str, exact: bool) -> None:
    if exact:
        raise NoRule(f"scipy.special.{name} with exact=True counts integers and has no derivative; leave exact out")


def _of_spherical(primitive: Primitive) -> Any:
    def rule(n: Any, z: Any, derivative: bool = False) -> Any:
        if not derivative:
            return primitive(n, z)
        return primitive.partials[1](None, n, z)

    return rule


composed({np.i0: sp.i0})

RULES: dict[str, Any] = {
    "polygamma": _polygamma,
    "zeta": _zeta,
    "multigammaln": _multigammaln,
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "logsumexp": logsumexp,
    "softplus": _softplus,
    "factorial": _factorial,
    "comb": _comb,
    "perm": _perm,
    "spherical_jn": _of_spherical(spherical_jn),
    "spherical_yn": _of_spherical(spherical_yn),
    "spherical_in": _of_spherical(spherical_in),
    "spherical_kn": _of_spherical(spherical_kn),
}
