"""The elementary functions of `scipy.special`, each with its partials, one per argument.

The identities are those of the NIST Digital Library of Mathematical Functions (https://dlmf.nist.gov), whose chapter is
named at each group. Where a textbook formula loses its digits (such as that of erfcx for large arguments), an equal
formula is used that does not.

At the ends of a domain a derivative is the limit from within, even if it is infinite (`entr` at 0). `xlogy` is flat in
its second argument at (0, 0).
"""

import math

import numpy as np

from effgrad.arrays.value import CONSTANT, plain
from effgrad.primitives import powers
from effgrad.primitives.complexes import is_complex
from effgrad.primitives.elementwise import UNARY
from effgrad.primitives.machine_code import EXPIT, LOG_EXPIT, XLOGY, library
from effgrad.primitives.primitive import Primitive
from effgrad.primitives.special.hypergeometric import GAUSS, KUMMER
from effgrad.primitives.special.table import Row, enter, enter_parts, piecewise, sp, special, unknown
from effgrad.vocabulary import Option, Value

SQRT_PI, SQRT_2PI, DEGREE = np.sqrt(np.pi).item(), np.sqrt(2 * np.pi).item(), np.pi / 180

# Gamma and beta functions: chapters 5 and 8.


def _rgamma(y: Value, x: Value) -> Value:
    # 1/gamma is entire. Left of 1/2 the reflection formula avoids the poles of digamma.
    def reflected(x: Value) -> Value:
        z = 1 - x
        return sp.gamma(z) * (np.cos(np.pi * x) - sp.digamma(z) * np.sin(np.pi * x) / np.pi)

    return piecewise(np.real(plain(x)) < 0.5, x, 0.0, reflected, 1.0, lambda x: -sp.rgamma(x) * sp.digamma(x))


def _poch_base(y: Value, z: Value, m: Value) -> Value:
    # Left of 1/2 the poles of digamma(z) are those of 1/gamma(z) and cancel; for an integer m and a z + m left of 1/2
    # too, the reflection formula takes both arguments to the right (5.5.4).
    left = (np.real(plain(z)) < 0.5) & (np.real(plain(z)) > -170)
    both = left & (np.real(plain(z + m)) < 0.5) & (plain(m) == np.rint(np.real(plain(m))))
    one = left & ~both & (np.real(plain(z + m)) < 170)
    first, last = np.where(both, 1 - z - m, z + m), np.where(both, 1 - z, np.where(one, 1.0, z))
    usual = y * (sp.digamma(first) - np.where(one, 0.0, sp.digamma(last)))
    at_poles = sp.gamma(np.where(one, z + m, 1.0)) * _rgamma(None, np.where(one, z, 1.0))
    return usual + np.where(one, at_poles, 0.0)


def gamma_density(a: Value, x: Value) -> Value:
    """Return the partial of `gammainc(a, x)` in `x`."""
    return np.exp(sp.xlogy(a - 1, x) - x - sp.gammaln(a))


def beta_density(a: Value, b: Value, x: Value, rest: Value | None = None) -> Value:
    """Return the partial of `betainc(a, b, x)` in `x`; `rest` is 1 - x if its caller knows that with more digits."""
    by_rest = sp.xlog1py(b - 1, -x) if rest is None else sp.xlogy(b - 1, rest)
    return np.exp(sp.xlogy(a - 1, x) + by_rest - sp.betaln(a, b))


def _xlogy_second(y: Value, a: Value, b: Value) -> Value:
    corner = (plain(a) == 0) & (plain(b) == 0)
    return np.where(corner, 0.0, a / np.where(corner, 1.0, b))


# Error functions: chapter 7. For large arguments, the difference in the formula loses its digits, and a series is used.

FAR = 10.0
# The coefficients 1 3 5 ... (2 k + 1) / 2^k. From x = 10 on, 15 terms of the asymptotic series are enough.
_INVERSE_POWERS = np.cumprod([1.0, *(k + 0.5 for k in range(1, 15))]).tolist()


def _inverse_powers(x: Value, sign: float) -> Value:
    z = sign / (x * x)
    total = _INVERSE_POWERS[-1]
    for coefficient in _INVERSE_POWERS[-2::-1]:
        total = coefficient + z * total
    return total


def erfcx_slope(x: Value) -> Value:
    """Return the derivative of `erfcx`."""
    return piecewise(
        (np.abs(plain(x)) > FAR) & (np.real(plain(x)) >= 0),
        x, FAR, lambda x: -_inverse_powers(x, -1.0) / (SQRT_PI * x * x),
        0.0, lambda x: 2 * x * sp.erfcx(x) - 2 / SQRT_PI,
    )  # fmt: skip


def _dawsn(y: Value, x: Value) -> Value:
    # Near the imaginary axis the function grows, and nothing cancels.
    real, imag = np.abs(np.real(plain(x))), np.abs(np.imag(plain(x)))
    return piecewise(
        (real > FAR) & (imag < real / 2), x, FAR, lambda x: -_inverse_powers(x, 1.0) / (2 * x * x),
        0.0, lambda x: 1 - 2 * x * sp.dawsn(x),
    )  # fmt: skip


def over_normal_density(x: Value) -> Value:
    return SQRT_2PI * np.exp(x * x / 2)


def _voigt_slope(x: Value, sigma: Value, gamma: Value) -> Value:
    """Return the derivative of the profile by gamma, whose imaginary part is that by x."""
    # The profile is the real part of erfcx(z) / (sigma sqrt(2 pi)), and with sigma = 0 that of 1 / (pi w).
    w, zero = gamma - 1j * x, plain(sigma) == 0
    width = np.where(zero, 1.0, sigma)
    z = np.where(zero, 1.0, w) / (width * np.sqrt(2).item())
    return np.where(zero, -1 / (np.pi * np.where(zero, w, 1.0) ** 2), erfcx_slope(z) / (2 * SQRT_PI) / width**2)


def _voigt_in_width(y: Value, x: Value, sigma: Value, gamma: Value) -> Value:
    w, zero = gamma - 1j * x, plain(sigma) == 0
    narrow = -2 * sigma * np.real(1 / np.where(zero, w, 1.0) ** 3) / np.pi
    return np.where(zero, narrow, -(y + np.real(_voigt_slope(x, sigma, gamma) * w)) / np.where(zero, 1.0, sigma))


# Functions with orders and degrees, which are constants.


def order_below(order: Option) -> Value:
    """Return the order minus one; for order 0 return 0, since the factor of that term in a derivative is then 0."""
    order = plain(order)
    return np.where(order == 0, order, order - 1)[()]


def _from_one(order: Option) -> Value:
    return (plain(order) != 0) * 1.0


def _expn(y: Value, n: Value, x: Value) -> Value:
    n = np.trunc(plain(n))  # SciPy truncates the order too
    return np.where(n == 0, -(1 + 1 / x) * np.exp(-x) / x, -sp.expn(order_below(n), x))


def _spence(y: Value, x: Value) -> Value:
    return piecewise(
        np.abs(plain(x) - 1) < 0.1, x, 1.0, lambda x: -sp.hyp2f1(1.0, 1.0, 2.0, 1 - x),
        2.0, lambda x: np.log(x) / (1 - x),
    )  # fmt: skip


def _sinhc(x: Value) -> Value:
    if is_complex(x):
        zero = plain(x) == 0
        return np.where(zero, 1.0, np.sinh(x) / np.where(zero, 1.0, x))
    return (sp.exprel(x) + sp.exprel(-x)) / 2


def _relative_exponential(x: Value) -> Value:
    """Return the derivative of `exprel`; it avoids `hyp1f1` for large numbers, for which SciPy's does not return."""
    return piecewise(
        np.abs(plain(x)) < 2, x, 0.0, lambda x: sp.hyp1f1(2.0, 3.0, x) / 2,
        2.0, lambda x: np.exp(x) / x * (1 - 1 / x) + 1 / x / x,
    )  # fmt: skip


def boxcox_power(log: Value, power: Value) -> Value:
    """Return the partial of `boxcox` in the power, from the logarithm of its argument; it is regular at power 0."""
    zero = (plain(log) == -np.inf) & (plain(power) > 0)  # boxcox(0, power) is -1 / power
    finite = np.where(zero, 0.0, log)
    at_zero = 1 / np.where(zero, power, 1.0) ** 2
    return np.where(zero, at_zero, finite**2 * _relative_exponential(power * finite))


def _log_inv_boxcox(x: Value, power: Value) -> Value:
    """Return the logarithm of `inv_boxcox(x, power)`, which is log(1 + power x) / power."""
    t = power * x
    ratio = piecewise(
        np.abs(plain(t)) < 0.1, t, 0.0, lambda t: sp.hyp2f1(1.0, 1.0, 2.0, -t), 1.0, lambda t: np.log1p(t) / t
    )
    return x * ratio


def _log_ratio(a: Value, b: Value) -> Value:
    """Return the logarithm of a / b, even if the quotient leaves the range of doubles."""
    ratio = a / b
    within = (plain(ratio) > 1e-290) & (plain(ratio) < 1e290)
    return np.where(within, np.log(np.where(within, ratio, 1.0)), np.log(a) - np.log(b))


def _inv_boxcox_slope(y: Value, x: Value, power: Value) -> Value:
    # The formula y**(1 - power) multiplies the rounding error of y by the power, so it is used only where y is 0.
    inner = 1 + power * x
    end = plain(inner) == 0
    return np.where(end, y ** (1 - power), y / np.where(end, 1.0, inner))


def _pseudo_huber_scale(y: Value, scale: Value, r: Value) -> Value:
    # This is 2 scale (s - 1) - r**2 / (scale s) without the cancellation for small r. For large r it is |r|.
    far, t = _far(scale, r)
    q = t**2
    s = np.sqrt(1 + q)
    return np.where(far, np.abs(r), scale * q * q / (s * (s + 1) ** 2))


def _pseudo_huber(y: Value, scale: Value, r: Value) -> Value:
    far, t = _far(scale, r)
    return np.where(far, scale * np.sign(plain(r)), r / np.sqrt(1 + t**2))


def _far(scale: Value, r: Value) -> tuple[Value, Value]:
    """Return whether the loss is linear to all digits, and the ratio r / scale where it is not."""
    far = np.abs(plain(r)) / 1e70 > plain(scale)
    return far, r / np.where(far, 1.0, scale)


def _huber(y: Value, scale: Value, r: Value) -> Value:
    inside = np.abs(plain(r)) <= plain(scale)
    return np.where(inside, r, scale * np.sign(plain(r)))


def _huber_scale(y: Value, scale: Value, r: Value) -> Value:
    inside = np.abs(plain(r)) <= plain(scale)
    return np.where(inside, 0.0, np.abs(r) - scale)


def normal_density(x: Value) -> Value:
    return np.exp(-x * x / 2) / SQRT_2PI


# The Bernoulli numbers of even index from 2 on, divided by the factorials of their indices (24.2.1).
_NUMBERS = [1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330,
            854513 / 138, -236364091 / 2730]  # fmt: skip
BERNOULLI = [b / math.factorial(2 * j + 2) for j, b in enumerate(_NUMBERS)]
_FAR = 12  # from here on the series below has all digits, for orders up to about 10


def _polygamma(n: Value, x: Value) -> Value:
    """Return SciPy's polygamma; for complex numbers compute Hurwitz's zeta function (5.15.1) by Euler-Maclaurin."""
    if not is_complex(x):
        return sp.polygamma(n, x)
    order, z = np.broadcast_arrays(n, x)
    order, first = order + 1.0, np.maximum(np.ceil(_FAR - z.real), 0)
    total, far = np.zeros(z.shape, complex), z + first
    with np.errstate(all="ignore"):
        for k in range(int(np.max(first, initial=0))):
            total += np.where(k < first, (z + k) ** -order, 0)
        total += far ** (1 - order) / (order - 1) + far**-order / 2
        for j, b in enumerate(BERNOULLI[:10]):
            total += b * sp.poch(order, 2 * j + 1) * far ** (-order - 2 * j - 1)
        return np.where(order == 1, sp.digamma(z), (-1.0) ** order * sp.gamma(order) * total)[()]


_polygamma.__name__ = "polygamma"  # the name by which it is found in other array libraries
polygamma: Primitive = special(_polygamma, unknown, lambda y, n, x: polygamma(n + 1, x))

enter({
    # gamma functions
    sp.gammaln: lambda y, x: sp.digamma(x),
    sp.loggamma: lambda y, x: sp.digamma(x),
    sp.gamma: lambda y, x: y * sp.digamma(x),
    sp.rgamma: _rgamma,
    sp.digamma: lambda y, x: polygamma(1, x),
    sp.poch: (
        lambda y, z, m: _poch_base(y, z, m),
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
    sp.binom: (
        lambda y, n, k: y * (sp.digamma(n + 1) - sp.digamma(n - k + 1)),
        lambda y, n, k: y * (sp.digamma(n - k + 1) - sp.digamma(k + 1)),
    ),
    # error functions and the normal distribution
    sp.erf: Row(lambda y, x: 2 / SQRT_PI * np.exp(-x * x), library("erf"), total=True),
    sp.erfc: Row(lambda y, x: -2 / SQRT_PI * np.exp(-x * x), library("erfc"), total=True),
    sp.erfcx: lambda y, x: erfcx_slope(x),
    sp.erfi: lambda y, x: 2 / SQRT_PI * np.exp(x * x),
    sp.dawsn: _dawsn,
    sp.wofz: lambda y, z: -1j * erfcx_slope(-1j * z),
    sp.voigt_profile: (
        lambda y, x, sigma, gamma: np.imag(_voigt_slope(x, sigma, gamma)),
        _voigt_in_width,
        lambda y, x, sigma, gamma: np.real(_voigt_slope(x, sigma, gamma)),
    ),
    sp.erfinv: lambda y, x: SQRT_PI / 2 * np.exp(y * y),
    sp.erfcinv: lambda y, x: -SQRT_PI / 2 * np.exp(y * y),
    sp.ndtr: lambda y, x: normal_density(x),
    sp.log_ndtr: lambda y, x: 2 / SQRT_2PI / sp.erfcx(-x / np.sqrt(2).item()),
    sp.ndtri: lambda y, p: over_normal_density(y),
    sp.ndtri_exp: lambda y, p: SQRT_2PI / 2 * sp.erfcx(-y / np.sqrt(2).item()),
    sp.owens_t: (
        lambda y, h, a: -sp.erf(a * h / np.sqrt(2).item()) * np.exp(-h * h / 2) / (2 * SQRT_2PI),
        lambda y, h, a: np.exp(-(1 + a * a) * h * h / 2) / (2 * np.pi * (1 + a * a)),
    ),
    # logistic functions, exponentials and logarithms
    sp.expit: Row(lambda y, x: y * sp.expit(-x), EXPIT, lambda xp, x: 1 / (1 + xp.exp(-x)), total=True),
    sp.log_expit: Row(
        lambda y, x: sp.expit(-x), LOG_EXPIT, lambda xp, x: -xp.logaddexp(xp.zeros_like(x), -x), total=True
    ),
    sp.logit: lambda y, x: np.reciprocal(x * (1 - x)),
    sp.exp2: Row(UNARY[np.exp2].partials, library("exp2"), total=True),
    sp.exp10: lambda y, x: y * np.log(10.0).item(),
    sp.expm1: Row(lambda y, x: np.exp(x), library("expm1"), total=True),
    sp.exprel: lambda y, x: _relative_exponential(x),
    sp.log1p: Row(UNARY[np.log1p].partials, library("log1p")),
    sp.cbrt: Row(UNARY[np.cbrt].partials, library("cbrt")),
    sp.cosm1: Row(lambda y, x: -np.sin(x), None, lambda xp, x: -2 * xp.sin(x / 2) ** 2, total=True),
    sp.powm1: (
        lambda y, x, p: powers.base_partial(y, x, p),
        lambda y, x, p: powers.exponent_partial(x**p, x, p),
    ),
    sp.sindg: lambda y, x: DEGREE * sp.cosdg(x),
    sp.cosdg: lambda y, x: -DEGREE * sp.sindg(x),
    sp.tandg: lambda y, x: DEGREE / sp.cosdg(x) ** 2,
    sp.cotdg: lambda y, x: -DEGREE / sp.sindg(x) ** 2,
    sp.radian: (DEGREE, DEGREE / 60, DEGREE / 3600),
    # entropies, losses and transformations of statistics
    sp.xlogy: Row((lambda y, a, b: np.log(b), _xlogy_second), XLOGY),
    sp.xlog1py: (lambda y, a, b: np.log1p(b), lambda y, a, b: _xlogy_second(y, a, 1 + b)),
    sp.entr: lambda y, x: -np.log(x) - 1,
    sp.rel_entr: (lambda y, a, b: _log_ratio(a, b) + 1, lambda y, a, b: -a / b),
    sp.kl_div: (lambda y, a, b: _log_ratio(a, b), lambda y, a, b: 1 - a / b),
    sp.huber: (_huber_scale, _huber),
    sp.pseudo_huber: (_pseudo_huber_scale, _pseudo_huber),
    sp.boxcox: (lambda y, x, p: x ** (p - 1), lambda y, x, p: boxcox_power(np.log(x), p)),
    sp.boxcox1p: (lambda y, x, p: np.exp((p - 1) * np.log1p(x)), lambda y, x, p: boxcox_power(np.log1p(x), p)),
    sp.inv_boxcox: (
        lambda y, x, p: _inv_boxcox_slope(y, x, p),
        lambda y, x, p: -boxcox_power(_log_inv_boxcox(x, p), p) * y ** (1 - p),
    ),
    sp.inv_boxcox1p: (
        lambda y, x, p: _inv_boxcox_slope(1 + y, x, p),
        lambda y, x, p: -boxcox_power(_log_inv_boxcox(x, p), p) * (1 + y) ** (1 - p),
    ),
    sp.wrightomega: lambda y, x: y / (1 + y),
    # exponential integrals and the dilogarithm: chapters 6 and 25
    sp.expi: lambda y, x: np.exp(x) / x,
    sp.exp1: lambda y, x: -np.exp(-x) / x,
    sp.expn: (unknown, _expn),
    sp.spence: _spence,
    # hypergeometric functions: chapters 15 and 13
    sp.hyp2f1: (*GAUSS, lambda y, a, b, c, x: a * b / c * sp.hyp2f1(a + 1, b + 1, c + 1, x)),
    sp.hyp1f1: (*KUMMER, lambda y, a, b, x: a / b * sp.hyp1f1(a + 1, b + 1, x)),
    sp.hyp0f1: (unknown, lambda y, b, x: sp.hyp0f1(b + 1, x) / b),
    sp.hyperu: (unknown, unknown, lambda y, a, b, x: -a * sp.hyperu(a + 1, b + 1, x)),
    # orthogonal polynomials, in x: chapter 18
    sp.eval_jacobi: (unknown, unknown, unknown, lambda y, n, a, b, x: (
        _from_one(n) * (n + a + b + 1) / 2 * sp.eval_jacobi(order_below(n), a + 1, b + 1, x))),
    sp.eval_sh_jacobi: (unknown, unknown, unknown, lambda y, n, p, q, x: (
        n * sp.eval_sh_jacobi(order_below(n), p + 2, q + 1, x))),
    sp.eval_gegenbauer: (unknown, unknown, lambda y, n, a, x: (
        _from_one(n) * 2 * a * sp.eval_gegenbauer(order_below(n), a + 1, x))),
    sp.eval_legendre: (unknown, lambda y, n, x: (
        _from_one(n) * sp.eval_gegenbauer(order_below(n), 1.5, x))),
    sp.eval_sh_legendre: (unknown, lambda y, n, x: (
        _from_one(n) * 2 * sp.eval_gegenbauer(order_below(n), 1.5, 2 * x - 1))),
    sp.eval_chebyt: (unknown, lambda y, n, x: n * sp.eval_chebyu(order_below(n), x)),
    sp.eval_sh_chebyt: (unknown, lambda y, n, x: 2 * n * sp.eval_chebyu(order_below(n), 2 * x - 1)),
    sp.eval_chebyu: (unknown, lambda y, n, x: _from_one(n) * 2 * sp.eval_gegenbauer(order_below(n), 2.0, x)),
    sp.eval_sh_chebyu: (unknown, lambda y, n, x: (
        _from_one(n) * 4 * sp.eval_gegenbauer(order_below(n), 2.0, 2 * x - 1))),
    sp.eval_chebyc: (unknown, lambda y, n, x: n * sp.eval_chebyu(order_below(n), x / 2)),
    sp.eval_chebys: (unknown, lambda y, n, x: _from_one(n) * sp.eval_gegenbauer(order_below(n), 2.0, x / 2)),
    sp.eval_hermite: (unknown, lambda y, n, x: 2 * n * sp.eval_hermite(order_below(n), x)),
    sp.eval_hermitenorm: (unknown, lambda y, n, x: n * sp.eval_hermitenorm(order_below(n), x)),
    sp.eval_genlaguerre: (unknown, unknown, lambda y, n, a, x: (
        -_from_one(n) * sp.eval_genlaguerre(order_below(n), a + 1, x))),
    sp.eval_laguerre: (unknown, lambda y, n, x: (
        -_from_one(n) * sp.eval_genlaguerre(order_below(n), 1.0, x))),
})  # fmt: skip

enter_parts({
    sp.sici: ((lambda y, x: np.sinc(x / np.pi),), (lambda y, x: np.cos(x) / x,)),
    sp.shichi: ((lambda y, x: _sinhc(x),), (lambda y, x: np.cosh(x) / x,)),
    sp.fresnel: ((lambda y, x: np.sin(np.pi / 2 * x * x),), (lambda y, x: np.cos(np.pi / 2 * x * x),)),
})  # fmt: skip
CONSTANT.enter({sp.gammasgn, sp.round})
