"""The table of errors: every rule of the elementwise primitives against mpmath at 50 digits.

The first derivative is taken by jvp and by vjp, the second by either of the other, mixed ones included, at a grid of
points of the domain with its edges; the exact value is that of the function's definition, differentiated by mpmath.
The error is in ulps, the distance to the next double at the exact value: 2^52 times the relative error, about.
It takes minutes; `python -m docs.generate.accuracy tanh erfcx` prints some rows, and where the error is.
"""

import itertools
import math
import multiprocessing
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special as sp
from mpmath import mp, mpf

from effgrad import grad, jvp
from effgrad.arrays.value import UFUNCS
from effgrad.primitives.special.table import PARTS, SPECIAL

DIGITS = 50


@dataclass(frozen=True)
class Domain:
    """Where to differentiate: a list of points, and how the page calls it."""

    name: str
    points: tuple[float, ...]


@dataclass(frozen=True)
class Constant:
    """An argument without a derivative (an order, a degree of freedom), at some values."""

    points: tuple[float, ...]


@dataclass(frozen=True)
class Case:
    """A primitive: the function, its definition in mpmath, its arguments, and conventions where it is not smooth."""

    function: Any
    exact: Callable[..., Any]
    arguments: tuple[Any, ...]
    convention: str = ""
    second: bool = True


def logs(low: int, high: int, step: int = 1) -> list[float]:
    return [1.1 * 10.0**k for k in range(low, high + 1, step)]


def signed(points: list[float]) -> tuple[float, ...]:
    return tuple([-x for x in reversed(points)] + points)


BELOW_1 = [1 - 2.0**-k for k in (2, 4, 10, 20, 40, 53)]
REAL = Domain("real", signed([1e-8, 0.01, 0.3, 0.9, 1.0, 1.7, 3.0, 8.0, 30.0]) + (0.0,))
WIDE = Domain("real", signed([1e-300, 1e-20, 1e-5, 0.3, 1.0, 3.0, 1e5, 1e20]))
FINITE = Domain("[-700, 700]", signed([1e-300, 1e-10, 0.3, 1.0, 5.0, 20.0, 40.0, 300.0, 700.0]))
ANGLE = Domain("real", signed([1e-300, 1e-8, 0.5, 1.5, 1.57079632679, 3.0, 10.0, 1e3, 1e8]))
POSITIVE = Domain("x > 0", (1e-300, 1e-20, 1e-5, 0.1, 0.5, 0.999, 1.0, 1.001, 2.0, 10.0, 1e5, 1e20, 1e100))
MODERATE = Domain("0 < x <= 100", (1e-3, 0.1, 0.6, 1.0, 2.4, 7.0, 20.0, 100.0))
QUARTER = Domain("[-1.5, 1.5]", signed([1e-8, 1e-3, 0.2, 0.7, 1.3]))
SHORT = Domain("0 < x <= 15", (0.05, 0.6, 1.0, 2.4, 7.0, 15.0))
SMALL = Domain("[-5, 5]", signed([1e-8, 1e-3, 0.2, 0.7, 1.3, 2.4, 5.0]) + (0.0,))
UNIT = Domain("(-1, 1)", signed([1e-300, 1e-10, 0.1, *BELOW_1]))
ABOVE_1 = Domain("x > 1", (1 + 2.0**-52, 1 + 2.0**-30, 1 + 2.0**-10, 1.3, 2.0, 10.0, 1e5, 1e100))
ABOVE_MINUS_1 = Domain(
    "x > -1", (-1 + 2.0**-53, -1 + 2.0**-20, -0.9, -0.1, -1e-10, 1e-300, 1e-10, 0.5, 3.0, 1e10, 1e100)
)
PROBABILITY = Domain("(0, 1)", (1e-10, 1e-4, 0.01, 0.2, 0.5, 0.7, 0.95, 1 - 2.0**-10, 1 - 2.0**-20))
PAIR = Domain("real", (-3.0, -0.7, -1e-5, 0.4, 2.0, 50.0))
STEPS = Domain("real", (-2.3, 0.3, 1.7))
PAIR_POSITIVE = Domain("x > 0", (1e-3, 0.4, 1.0, 2.5, 30.0))
GAMMA = Domain("real, not 0, -1, ...", (-7.3, -2.5, -1.1, -0.5, 1e-10, 0.2, 1.0, 1.46, 2.0, 3.7, 20.0, 100.0))
NORMAL = Domain("[-37, 8]", (-37.0, -20.0, -8.0, -3.0, -1.0, -1e-5, 0.0, 0.5, 2.0, 5.0, 8.0))
ORTHOGONAL = Domain("[-1, 1]", (-1.0, -0.9, -0.3, -1e-5, 0.1, 0.5, 0.99, 1.0))
CARLSON = Domain("x > 0", (0.4, 1.0, 30.0))
BELOW = Domain("m < 1", (-3.0, 1e-8, 0.5, 0.96))
PARAMETER = Domain("m < 1", (-20.0, -3.0, -0.5, -1e-8, 0.0, 1e-8, 0.3, 0.9, 1 - 2.0**-30))
DEGREES = Domain("real", (-200.0, -44.0, -1.0, 1e-5, 30.0, 45.0, 88.0, 100.0, 359.0))
ORDERS, COUNTS = Constant((0.0, 1.0, 1.5, 4.0)), Constant((0, 1, 2, 5))
FREEDOM = Constant((1.0, 2.5, 8.0))


def solved(forward: Callable[..., Any], start: Callable[..., float]) -> Callable[..., Any]:
    """The inverse of a function in its last argument: the secant method at full precision, from SciPy's answer."""

    def inverse(*args: Any) -> Any:
        *others, p = args
        near = mpf(start(*[float(a) for a in others], float(p)))
        before, y = near * (1 + mpf(10) ** -12) + mpf(10) ** -15, near
        f_before, f = forward(*others, before) - p, forward(*others, y) - p
        while f != f_before and abs(y - before) > abs(y) * mpf(10) ** (3 - mp.dps):
            before, y = y, y - f * (y - before) / (f - f_before)
            f_before, f = f, forward(*others, y) - p
        return y

    return inverse


def gamma_cdf(a: Any, x: Any) -> Any:
    return mp.gammainc(a, 0, x, regularized=True)


def gamma_tail(a: Any, x: Any) -> Any:
    return mp.gammainc(a, x, mp.inf, regularized=True)


def beta_cdf(a: Any, b: Any, x: Any) -> Any:
    return mp.betainc(a, b, 0, x, regularized=True)


def beta_tail(a: Any, b: Any, x: Any) -> Any:
    return mp.betainc(a, b, x, 1, regularized=True)


def student_cdf(v: Any, x: Any) -> Any:
    """The distribution function of Student's t, smooth at 0."""
    c = mp.gamma((v + 1) / 2) / mp.sqrt(v * mp.pi) / mp.gamma(v / 2)
    return mpf(1) / 2 + c * x * mp.hyp2f1(mpf(1) / 2, (v + 1) / 2, mpf(3) / 2, -x * x / v)


def kolmogorov_tail(x: Any) -> Any:
    return 2 * sum((-1) ** (k - 1) * mp.exp(-2 * k * k * x * x) for k in range(1, 200))


def f_cdf(m: Any, n: Any, x: Any) -> Any:
    return beta_cdf(m / 2, n / 2, m * x / (m * x + n))


def normal_log(x: Any) -> Any:
    return mp.log(mp.erfc(-x / mp.sqrt(2)) / 2)


def scaled(function: Any, sign: int) -> Any:
    return lambda v, x: function(v, x) * mp.exp(sign * abs(x) if sign < 0 else x)


def spherical(function: Any) -> Any:
    return lambda n, x: mp.sqrt(mp.pi / (2 * x)) * function(n + mpf(1) / 2, x)


def elliptic(part: str) -> Any:
    return lambda u, m: mp.ellipfun(part, u, m=m)


def amplitude(u: Any, m: Any) -> Any:
    return mp.atan2(mp.ellipfun("sn", u, m=m), mp.ellipfun("cn", u, m=m))


def chebyshev(first: int) -> Any:
    """T_n (first = 1) or U_n (first = 2) by recurrence, also where mpmath's hypergeometric series stops at the ends."""

    def polynomial(n: Any, x: Any) -> Any:
        before, value = mpf(1), first * x
        for _ in range(int(n)):
            before, value = value, 2 * x * value - before
        return before

    return polynomial


def part_of(function: Any, index: int) -> Any:
    return lambda *args: function(*args)[index]


def boxcox(x: Any, p: Any) -> Any:
    return mp.log(x) if p == 0 else mp.expm1(p * mp.log(x)) / p


def inv_boxcox(y: Any, p: Any) -> Any:
    return mp.exp(y) if p == 0 else mp.exp(mp.log1p(p * y) / p)


def pseudo_huber(d: Any, r: Any) -> Any:
    return d * d * (mp.sqrt(1 + (r / d) ** 2) - 1)


def cases() -> dict[str, Case]:
    """The table: every elementwise primitive that has a partial."""
    half = mpf(1) / 2
    kink0 = "0 at 0"
    table = {
        "positive": (np.positive, lambda x: x, (WIDE,)),
        "negative": (np.negative, lambda x: -x, (WIDE,)),
        "exp": (np.exp, mp.exp, (FINITE,)),
        "exp2": (np.exp2, lambda x: mpf(2) ** x, (FINITE,)),
        "expm1": (np.expm1, mp.expm1, (FINITE,)),
        "log": (np.log, mp.log, (POSITIVE,)),
        "log2": (np.log2, lambda x: mp.log(x, 2), (POSITIVE,)),
        "log10": (np.log10, mp.log10, (POSITIVE,)),
        "log1p": (np.log1p, mp.log1p, (ABOVE_MINUS_1,)),
        "sqrt": (np.sqrt, mp.sqrt, (POSITIVE,), "infinite at 0"),
        "cbrt": (np.cbrt, lambda x: mp.sign(x) * mp.cbrt(abs(x)), (WIDE,), "infinite at 0"),
        "square": (np.square, lambda x: x * x, (WIDE,)),
        "reciprocal": (np.reciprocal, lambda x: 1 / x, (Domain("not 0", WIDE.points),)),
        "sin": (np.sin, mp.sin, (ANGLE,)),
        "cos": (np.cos, mp.cos, (ANGLE,)),
        "tan": (np.tan, mp.tan, (ANGLE,)),
        "arcsin": (np.arcsin, mp.asin, (UNIT,), "infinite at -1 and 1"),
        "arccos": (np.arccos, mp.acos, (UNIT,), "infinite at -1 and 1"),
        "arctan": (np.arctan, mp.atan, (WIDE,)),
        "sinh": (np.sinh, mp.sinh, (FINITE,)),
        "cosh": (np.cosh, mp.cosh, (FINITE,)),
        "tanh": (np.tanh, mp.tanh, (FINITE,)),
        "arcsinh": (np.arcsinh, mp.asinh, (WIDE,)),
        "arccosh": (np.arccosh, mp.acosh, (ABOVE_1,), "infinite at 1"),
        "arctanh": (np.arctanh, mp.atanh, (UNIT,), "infinite at -1 and 1"),
        "deg2rad": (np.deg2rad, mp.radians, (WIDE,)),
        "rad2deg": (np.rad2deg, mp.degrees, (WIDE,)),
        "radians": (np.radians, mp.radians, (WIDE,)),
        "degrees": (np.degrees, mp.degrees, (WIDE,)),
        "fabs": (np.fabs, abs, (WIDE,), kink0),
        "absolute": (np.absolute, abs, (WIDE,), kink0),
        "sinc": (np.sinc, lambda x: mp.sinc(mp.pi * x), (SMALL,)),
        "add": (np.add, lambda a, b: a + b, (PAIR, PAIR)),
        "subtract": (np.subtract, lambda a, b: a - b, (PAIR, PAIR)),
        "multiply": (np.multiply, lambda a, b: a * b, (PAIR, PAIR)),
        "divide": (np.divide, lambda a, b: a / b, (PAIR, PAIR)),
        "power": (
            np.power,
            lambda a, b: a**b,
            (PAIR_POSITIVE, PAIR),
            "flat in the base where the exponent is 0, and in the exponent where the base is 0",
        ),
        "float_power": (np.float_power, lambda a, b: a**b, (PAIR_POSITIVE, PAIR), "as power"),
        "remainder": (
            np.remainder,
            lambda a, b: a - b * mp.floor(a / b),
            (PAIR, STEPS),
            "constant quotient at its jumps",
        ),
        "fmod": (
            np.fmod,
            lambda a, b: a - b * (mp.floor(a / b) if a / b > 0 else mp.ceil(a / b)),
            (PAIR, STEPS),
            "constant quotient at its jumps",
        ),
        "hypot": (np.hypot, mp.hypot, (PAIR, PAIR), "0 at (0, 0)"),
        "arctan2": (np.arctan2, mp.atan2, (PAIR, PAIR)),
        "logaddexp": (np.logaddexp, lambda a, b: mp.log(mp.exp(a) + mp.exp(b)), (PAIR, PAIR), "0 where both are -inf"),
        "logaddexp2": (
            np.logaddexp2,
            lambda a, b: mp.log(mpf(2) ** a + mpf(2) ** b, 2),
            (PAIR, PAIR),
            "0 where both are -inf",
        ),
        "copysign": (np.copysign, lambda a, b: abs(a) * mp.sign(b), (PAIR, Constant((-2.0, 3.0))), "0 at 0"),
        "maximum": (np.maximum, max, (PAIR, Constant((-1.0, 0.5))), "1/2 each at a tie"),
        "minimum": (np.minimum, min, (PAIR, Constant((-1.0, 0.5))), "1/2 each at a tie"),
        "fmax": (np.fmax, max, (PAIR, Constant((-1.0, 0.5))), "1/2 each at a tie"),
        "fmin": (np.fmin, min, (PAIR, Constant((-1.0, 0.5))), "1/2 each at a tie"),
        "where": (
            lambda x: np.where(x > 0.5, x, -x),
            lambda x: x if x > half else -x,
            (PAIR,),
            "the branch that is taken",
        ),
        "clip": (lambda x: np.clip(x, -1.0, 0.5), lambda x: min(max(x, mpf(-1)), half), (PAIR,), "1 at both ends"),
        # scipy.special
        "gammaln": (sp.gammaln, lambda x: mp.log(abs(mp.gamma(x))), (GAMMA,)),
        "loggamma": (sp.loggamma, mp.loggamma, (POSITIVE,)),
        "gamma": (sp.gamma, mp.gamma, (GAMMA,)),
        "rgamma": (sp.rgamma, mp.rgamma, (Domain("real", (*GAMMA.points, 0.0, -1.0, -3.0)),)),
        "digamma": (sp.digamma, mp.digamma, (GAMMA,)),
        "gammainc": (sp.gammainc, gamma_cdf, (FREEDOM, MODERATE)),
        "gammaincc": (sp.gammaincc, gamma_tail, (FREEDOM, MODERATE)),
        "gammaincinv": (sp.gammaincinv, solved(gamma_cdf, sp.gammaincinv), (FREEDOM, PROBABILITY)),
        "gammainccinv": (sp.gammainccinv, solved(gamma_tail, sp.gammainccinv), (FREEDOM, PROBABILITY)),
        "poch": (sp.poch, mp.rf, (PAIR_POSITIVE, PAIR_POSITIVE)),
        "beta": (sp.beta, mp.beta, (PAIR_POSITIVE, PAIR_POSITIVE)),
        "betaln": (sp.betaln, lambda a, b: mp.log(mp.beta(a, b)), (PAIR_POSITIVE, PAIR_POSITIVE)),
        "betainc": (sp.betainc, beta_cdf, (Constant((0.5, 3.0)), Constant((0.5, 2.5)), PROBABILITY)),
        "betaincc": (sp.betaincc, beta_tail, (Constant((0.5, 3.0)), Constant((0.5, 2.5)), PROBABILITY)),
        "betaincinv": (
            sp.betaincinv,
            solved(beta_cdf, sp.betaincinv),
            (Constant((1.5,)), Constant((2.5,)), PROBABILITY),
        ),
        "betainccinv": (
            sp.betainccinv,
            solved(beta_tail, sp.betainccinv),
            (Constant((1.5,)), Constant((2.5,)), PROBABILITY),
        ),
        "binom": (sp.binom, mp.binomial, (Domain("n > k", (4.1, 5.9, 20.5)), Domain("k > 0", (0.3, 1.0, 2.5)))),
        "erf": (sp.erf, mp.erf, (SMALL,)),
        "erfc": (sp.erfc, mp.erfc, (Domain("[-5, 26]", (*SMALL.points, 10.0, 26.0)),)),
        "erfcx": (
            sp.erfcx,
            lambda x: mp.exp(x * x) * mp.erfc(x),
            (Domain("x >= -5", (*SMALL.points, 10.0, 30.0, 49.9, 50.1, 1e3, 1e8)),),
        ),
        "erfi": (sp.erfi, mp.erfi, (SMALL,)),
        "dawsn": (
            sp.dawsn,
            lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x),
            (Domain("real", (*SMALL.points, 10.0, 30.0, 49.9, 50.1, 1e3, -1e8)),),
        ),
        "erfinv": (sp.erfinv, mp.erfinv, (Domain("(-1, 1)", (-0.999, -0.9, -0.3, 1e-10, 0.5, 0.99, 1 - 2.0**-20)),)),
        "erfcinv": (
            sp.erfcinv,
            solved(mp.erfc, sp.erfcinv),
            (Domain("(0, 2)", (1e-100, 1e-10, 0.1, 0.9, 1.1, 1.9, 2 - 2.0**-20)),),
        ),
        "ndtr": (sp.ndtr, mp.ncdf, (NORMAL,)),
        "log_ndtr": (sp.log_ndtr, normal_log, (NORMAL,)),
        "ndtri": (sp.ndtri, solved(mp.ncdf, sp.ndtri), (PROBABILITY,)),
        "ndtri_exp": (
            sp.ndtri_exp,
            solved(normal_log, sp.ndtri_exp),
            (Domain("x < 0", (-100.0, -20.0, -5.0, -1.0, -0.5, -0.01)),),
        ),
        "owens_t": (
            sp.owens_t,
            lambda h, a: mp.quad(lambda t: mp.exp(-h * h * (1 + t * t) / 2) / (1 + t * t), [0, a]) / (2 * mp.pi),
            (Domain("real", (-1.5, 0.3, 2.0)), Domain("real", (-0.8, 0.5, 1.7))),
        ),
        "j0": (sp.j0, lambda x: mp.besselj(0, x), (MODERATE,)),
        "j1": (sp.j1, lambda x: mp.besselj(1, x), (MODERATE,)),
        "y0": (sp.y0, lambda x: mp.bessely(0, x), (MODERATE,)),
        "y1": (sp.y1, lambda x: mp.bessely(1, x), (MODERATE,)),
        "i0": (sp.i0, lambda x: mp.besseli(0, x), (MODERATE,)),
        "i1": (sp.i1, lambda x: mp.besseli(1, x), (MODERATE,)),
        "k0": (sp.k0, lambda x: mp.besselk(0, x), (SHORT,)),
        "k1": (sp.k1, lambda x: mp.besselk(1, x), (SHORT,)),
        "i0e": (sp.i0e, lambda x: scaled(mp.besseli, -1)(0, x), (MODERATE,), "0 at 0"),
        "i1e": (sp.i1e, lambda x: scaled(mp.besseli, -1)(1, x), (MODERATE,), "1/2 at 0"),
        "k0e": (sp.k0e, lambda x: scaled(mp.besselk, 1)(0, x), (SHORT,)),
        "k1e": (sp.k1e, lambda x: scaled(mp.besselk, 1)(1, x), (SHORT,)),
        "jv": (sp.jv, mp.besselj, (ORDERS, MODERATE)),
        "jve": (sp.jve, mp.besselj, (ORDERS, MODERATE)),
        "yv": (sp.yv, mp.bessely, (ORDERS, MODERATE)),
        "yve": (sp.yve, mp.bessely, (ORDERS, MODERATE)),
        "yn": (sp.yn, mp.bessely, (COUNTS, MODERATE)),
        "iv": (sp.iv, mp.besseli, (ORDERS, MODERATE)),
        "ive": (sp.ive, scaled(mp.besseli, -1), (ORDERS, MODERATE), "the factor exp(-abs(x)) is flat at 0"),
        "kv": (sp.kv, mp.besselk, (ORDERS, SHORT)),
        "kn": (sp.kn, mp.besselk, (COUNTS, SHORT)),
        "kve": (sp.kve, scaled(mp.besselk, 1), (ORDERS, SHORT)),
        "ber": (sp.ber, lambda x: mp.ber(0, x), (MODERATE,)),
        "bei": (sp.bei, lambda x: mp.bei(0, x), (MODERATE,)),
        "ker": (sp.ker, lambda x: mp.ker(0, x), (MODERATE,)),
        "kei": (sp.kei, lambda x: mp.kei(0, x), (MODERATE,)),
        "struve": (sp.struve, mp.struveh, (ORDERS, MODERATE)),
        "modstruve": (sp.modstruve, mp.struvel, (ORDERS, MODERATE)),
        "expit": (sp.expit, lambda x: 1 / (1 + mp.exp(-x)), (FINITE,)),
        "log_expit": (sp.log_expit, lambda x: -mp.log1p(mp.exp(-x)), (FINITE,)),
        "logit": (sp.logit, lambda p: mp.log(p / (1 - p)), (PROBABILITY,)),
        "exp10": (sp.exp10, lambda x: mpf(10) ** x, (Domain("[-300, 300]", signed([1e-10, 0.5, 3.0, 300.0])),)),
        "exprel": (
            sp.exprel,
            lambda x: mp.expm1(x) / x if x else mpf(1),
            (Domain("[-700, 700]", signed([1e-8, 1e-3, 0.5, 1.0, 5.0, 50.0, 700.0])),),
        ),
        "cosm1": (sp.cosm1, lambda x: mp.cos(x) - 1, (SMALL,)),
        "powm1": (sp.powm1, lambda a, b: a**b - 1, (PAIR_POSITIVE, PAIR), "as power"),
        "sindg": (sp.sindg, lambda x: mp.sin(mp.radians(x)), (DEGREES,)),
        "cosdg": (sp.cosdg, lambda x: mp.cos(mp.radians(x)), (DEGREES,)),
        "tandg": (sp.tandg, lambda x: mp.tan(mp.radians(x)), (DEGREES,)),
        "cotdg": (sp.cotdg, lambda x: mp.cot(mp.radians(x)), (DEGREES,)),
        "radian": (
            sp.radian,
            lambda d, m, s: mp.radians(d + m / 60 + s / 3600),
            (PAIR_POSITIVE, Constant((0.5,)), Constant((20.0,))),
        ),
        "xlogy": (sp.xlogy, lambda a, b: a * mp.log(b), (PAIR, PAIR_POSITIVE), "flat in the second argument at (0, 0)"),
        "xlog1py": (sp.xlog1py, lambda a, b: a * mp.log1p(b), (PAIR, PAIR_POSITIVE)),
        "entr": (sp.entr, lambda x: -x * mp.log(x), (POSITIVE,), "infinite at 0"),
        "rel_entr": (sp.rel_entr, lambda a, b: a * mp.log(a / b), (PAIR_POSITIVE, PAIR_POSITIVE)),
        "kl_div": (sp.kl_div, lambda a, b: a * mp.log(a / b) - a + b, (PAIR_POSITIVE, PAIR_POSITIVE)),
        "huber": (
            sp.huber,
            lambda d, r: r * r / 2 if abs(r) <= d else d * (abs(r) - d / 2),
            (Domain("x > 0", (1e-3, 0.35, 1.1)), PAIR),
            "smooth at abs(r) = scale; the second derivative there is that of the inside",
        ),
        "pseudo_huber": (sp.pseudo_huber, pseudo_huber, (PAIR_POSITIVE, PAIR)),
        "boxcox": (sp.boxcox, boxcox, (PAIR_POSITIVE, Domain("real", (-1.5, -1e-5, 0.3, 2.0)))),
        "boxcox1p": (
            sp.boxcox1p,
            lambda x, p: boxcox(1 + x, p),
            (PAIR_POSITIVE, Domain("real", (-1.5, -1e-5, 0.3, 2.0))),
        ),
        "inv_boxcox": (sp.inv_boxcox, inv_boxcox, (PAIR_POSITIVE, Domain("real", (1e-5, 0.3, 2.0)))),
        "inv_boxcox1p": (
            sp.inv_boxcox1p,
            lambda y, p: inv_boxcox(y, p) - 1,
            (PAIR_POSITIVE, Domain("real", (1e-5, 0.3, 2.0))),
        ),
        "wrightomega": (sp.wrightomega, lambda x: mp.lambertw(mp.exp(x)).real, (SMALL,)),
        "expi": (sp.expi, mp.ei, (Domain("not 0", (-100.0, -5.0, -0.1, 1e-5, 0.3, 1.0, 4.0, 50.0)),)),
        "exp1": (sp.exp1, mp.e1, (MODERATE,)),
        "expn": (sp.expn, lambda n, x: mp.expint(n, x), (COUNTS, MODERATE)),
        "spence": (
            sp.spence,
            lambda x: mp.polylog(2, 1 - x).real,
            (Domain("x > 0", (1e-5, 0.3, 0.89, 0.91, 0.999999, 1.000001, 1.09, 1.2, 1.95, 3.0, 50.0)),),
        ),
        "ellipk": (sp.ellipk, mp.ellipk, (PARAMETER,)),
        "ellipkm1": (
            sp.ellipkm1,
            lambda p: mp.ellipk(1 - p),
            (Domain("p > 0", (1e-20, 1e-5, 0.3, 1.0, 1.7, 10.0)),),
        ),
        "ellipe": (sp.ellipe, mp.ellipe, (PARAMETER,)),
        "ellipkinc": (sp.ellipkinc, mp.ellipf, (SMALL, BELOW)),
        "ellipeinc": (sp.ellipeinc, mp.ellipe, (SMALL, BELOW)),
        "elliprf": (sp.elliprf, mp.elliprf, (CARLSON, CARLSON, CARLSON)),
        "elliprc": (sp.elliprc, mp.elliprc, (CARLSON, CARLSON)),
        "elliprd": (sp.elliprd, mp.elliprd, (CARLSON, CARLSON, CARLSON)),
        "elliprj": (sp.elliprj, mp.elliprj, (CARLSON, CARLSON, Constant((1.0,)), CARLSON)),
        "elliprg": (sp.elliprg, mp.elliprg, (CARLSON, CARLSON, CARLSON)),
        "agm": (sp.agm, mp.agm, (PAIR_POSITIVE, PAIR_POSITIVE)),
        "hyp2f1": (
            sp.hyp2f1,
            mp.hyp2f1,
            (
                Constant((0.5,)),
                Constant((1.5,)),
                Constant((2.5,)),
                Domain("x < 1", (-5.0, -0.9, -1e-5, 0.3, 0.8, 0.99)),
            ),
        ),
        "hyp1f1": (sp.hyp1f1, mp.hyp1f1, (Constant((0.5, 2.0)), Constant((1.5,)), SMALL)),
        "hyp0f1": (sp.hyp0f1, mp.hyp0f1, (Constant((0.5, 2.0)), SMALL)),
        "hyperu": (sp.hyperu, mp.hyperu, (Constant((0.5,)), Constant((1.5,)), MODERATE)),
        "stdtr": (sp.stdtr, student_cdf, (FREEDOM, SMALL)),
        "stdtrit": (sp.stdtrit, solved(student_cdf, sp.stdtrit), (FREEDOM, Domain("(0, 1)", (0.01, 0.2, 0.51, 0.95)))),
        "chdtr": (sp.chdtr, lambda v, x: gamma_cdf(v / 2, x / 2), (FREEDOM, MODERATE)),
        "chdtrc": (sp.chdtrc, lambda v, x: gamma_tail(v / 2, x / 2), (FREEDOM, MODERATE)),
        "chdtri": (sp.chdtri, solved(lambda v, x: gamma_tail(v / 2, x / 2), sp.chdtri), (FREEDOM, PROBABILITY)),
        "fdtr": (sp.fdtr, f_cdf, (Constant((3.0,)), Constant((4.0,)), MODERATE)),
        "fdtrc": (sp.fdtrc, lambda m, n, x: 1 - f_cdf(m, n, x), (Constant((3.0,)), Constant((4.0,)), MODERATE)),
        "fdtri": (sp.fdtri, solved(f_cdf, sp.fdtri), (Constant((3.0,)), Constant((4.0,)), PROBABILITY)),
        "gdtr": (
            sp.gdtr,
            lambda a, b, x: gamma_cdf(b, a * x),
            (PAIR_POSITIVE, Constant((1.5,)), Domain("x > 0", (0.1, 1.0, 3.0))),
        ),
        "gdtrc": (
            sp.gdtrc,
            lambda a, b, x: gamma_tail(b, a * x),
            (PAIR_POSITIVE, Constant((1.5,)), Domain("x > 0", (0.1, 1.0, 3.0))),
        ),
        "kolmogorov": (sp.kolmogorov, kolmogorov_tail, (Domain("x > 0", (0.1, 0.5, 0.999, 1.001, 3.0)),)),
        "pdtr": (sp.pdtr, lambda k, m: gamma_tail(k + 1, m), (COUNTS, MODERATE)),
        "pdtrc": (sp.pdtrc, lambda k, m: gamma_cdf(k + 1, m), (COUNTS, MODERATE)),
        "bdtr": (
            sp.bdtr,
            lambda k, n, p: beta_cdf(n - k, k + 1, 1 - p),
            (Constant((2.0,)), Constant((6.0,)), PROBABILITY),
        ),
        "bdtrc": (
            sp.bdtrc,
            lambda k, n, p: beta_cdf(k + 1, n - k, p),
            (Constant((2.0,)), Constant((6.0,)), PROBABILITY),
        ),
        "nbdtr": (sp.nbdtr, lambda k, n, p: beta_cdf(n, k + 1, p), (Constant((2.0,)), Constant((3.0,)), PROBABILITY)),
        "nbdtrc": (
            sp.nbdtrc,
            lambda k, n, p: beta_tail(n, k + 1, p),
            (Constant((2.0,)), Constant((3.0,)), PROBABILITY),
        ),
        "eval_jacobi": (sp.eval_jacobi, mp.jacobi, (COUNTS, Constant((0.5,)), Constant((1.5,)), ORTHOGONAL)),
        "eval_sh_jacobi": (
            sp.eval_sh_jacobi,
            lambda n, p, q, x: mp.jacobi(n, p - q, q - 1, 2 * x - 1) / mp.binomial(2 * n + p - 1, n),
            (COUNTS, Constant((2.5,)), Constant((1.5,)), PROBABILITY),
        ),
        "eval_gegenbauer": (sp.eval_gegenbauer, mp.gegenbauer, (COUNTS, Constant((0.5, 1.5)), ORTHOGONAL)),
        "eval_legendre": (sp.eval_legendre, mp.legendre, (COUNTS, ORTHOGONAL)),
        "eval_sh_legendre": (sp.eval_sh_legendre, lambda n, x: mp.legendre(n, 2 * x - 1), (COUNTS, PROBABILITY)),
        "eval_chebyt": (sp.eval_chebyt, chebyshev(1), (COUNTS, ORTHOGONAL)),
        "eval_sh_chebyt": (sp.eval_sh_chebyt, lambda n, x: chebyshev(1)(n, 2 * x - 1), (COUNTS, PROBABILITY)),
        "eval_chebyu": (sp.eval_chebyu, chebyshev(2), (COUNTS, ORTHOGONAL)),
        "eval_sh_chebyu": (sp.eval_sh_chebyu, lambda n, x: chebyshev(2)(n, 2 * x - 1), (COUNTS, PROBABILITY)),
        "eval_chebyc": (sp.eval_chebyc, lambda n, x: 2 * chebyshev(1)(n, x / 2), (COUNTS, SMALL)),
        "eval_chebys": (sp.eval_chebys, lambda n, x: chebyshev(2)(n, x / 2), (COUNTS, SMALL)),
        "eval_hermite": (sp.eval_hermite, mp.hermite, (COUNTS, SMALL)),
        "eval_hermitenorm": (
            sp.eval_hermitenorm,
            lambda n, x: mpf(2) ** (-n / 2) * mp.hermite(n, x / mp.sqrt(2)),
            (COUNTS, SMALL),
        ),
        "eval_genlaguerre": (sp.eval_genlaguerre, mp.laguerre, (COUNTS, Constant((0.5,)), SMALL)),
        "eval_laguerre": (sp.eval_laguerre, lambda n, x: mp.laguerre(n, 0, x), (COUNTS, SMALL)),
        "sici (Si)": (part_of(sp.sici, 0), mp.si, (SMALL,)),
        "sici (Ci)": (part_of(sp.sici, 1), mp.ci, (MODERATE,)),
        "shichi (Shi)": (part_of(sp.shichi, 0), mp.shi, (SMALL,)),
        "shichi (Chi)": (part_of(sp.shichi, 1), mp.chi, (MODERATE,)),
        "fresnel (S)": (part_of(sp.fresnel, 0), mp.fresnels, (SMALL,)),
        "fresnel (C)": (part_of(sp.fresnel, 1), mp.fresnelc, (SMALL,)),
        "airy (Ai)": (part_of(sp.airy, 0), mp.airyai, (SMALL,)),
        "airy (Ai')": (part_of(sp.airy, 1), lambda x: mp.airyai(x, derivative=1), (SMALL,)),
        "airy (Bi)": (part_of(sp.airy, 2), mp.airybi, (SMALL,)),
        "airy (Bi')": (part_of(sp.airy, 3), lambda x: mp.airybi(x, derivative=1), (SMALL,)),
        "ellipj (sn)": (part_of(sp.ellipj, 0), elliptic("sn"), (QUARTER, Constant((0.4,)))),
        "ellipj (cn)": (part_of(sp.ellipj, 1), elliptic("cn"), (QUARTER, Constant((0.4,)))),
        "ellipj (dn)": (part_of(sp.ellipj, 2), elliptic("dn"), (QUARTER, Constant((0.4,)))),
        "ellipj (am)": (part_of(sp.ellipj, 3), amplitude, (QUARTER, Constant((0.4,)))),
    }
    return {name: Case(*parts) for name, parts in table.items()}


def ulps(actual: float, exact: Any, natural: Any) -> float:
    """The distance in units of the last place; numbers near the ends of the range of doubles are left out."""
    if not mp.isfinite(exact):
        raise ValueError(f"the definition has the derivative {exact} there")
    size = abs(exact)
    if size > mpf("1e290") or (size and size < mpf("1e-290")):
        return 0.0
    if not math.isfinite(actual):
        return math.inf
    if not exact:
        return float(abs(mpf(float(actual))) / natural * 2**52) if natural else abs(actual) * 2.0**52
    return float(abs(mpf(float(actual)) - exact) / mpf(float(np.spacing(float(size)))))


def exact_partial(case: Case, point: tuple[float, ...], *indices: int) -> tuple[Any, Any]:
    """A first or second partial of the definition, by mpmath's differences; and the size that it is to be compared to.

    The variables are scaled to their sizes, so that steps fit points of any magnitude. What is left of a derivative
    that vanishes is rounding, far below the size of the function over that of the variables: it is taken as 0.
    """
    with mp.workdps(DIGITS):
        values = [mpf(x) for x in point]
        scales = [abs(x) or mpf(1) for x in values]
        orders = tuple(indices.count(i) for i in range(len(point)))
        smooth = [i for i, order in enumerate(orders) if order]

        def moved(*steps: Any) -> Any:
            args = list(values)
            for i, step in zip(smooth, steps, strict=True):
                args[i] += scales[i] * step
            return case.exact(*args)

        counts = tuple(orders[i] for i in smooth)
        along = mp.diff(moved, 0, counts[0]) if len(smooth) == 1 else mp.diff(moved, (0,) * len(smooth), counts)
        size = 1 / mp.fprod(scales[i] for i in indices)
        natural = size * (abs(case.exact(*values)) or 1)
        return (along * size if abs(along * size) > natural * mpf(10) ** (10 - DIGITS) else mpf(0)), natural


def points(case: Case) -> Iterator[tuple[float, ...]]:
    return itertools.product(*[argument.points for argument in case.arguments])


def measure(case: Case, every: int = 1) -> tuple[tuple[float, Any], tuple[float, Any]]:
    """The largest error of first and of second derivatives, in ulps, and where."""
    smooth = [i for i, argument in enumerate(case.arguments) if isinstance(argument, Domain)]
    first, second = (0.0, None), (0.0, None)
    for point in itertools.islice(points(case), 0, None, every):
        for i in smooth:
            exact = exact_partial(case, point, i)
            for actual in (pulled(case, i)(*point), pushed(case, i)(*point)):
                first = max(first, (ulps(actual, *exact), (i, point)), key=lambda pair: pair[0])
            if case.second:
                for j in smooth:
                    exact = exact_partial(case, point, i, j)
                    for actual in (pushed_of(pulled(case, i), j, point), pulled_of(pushed(case, i), j, point)):
                        second = max(second, (ulps(actual, *exact), ((i, j), point)), key=lambda pair: pair[0])
    return first, second


def pulled(case: Case, index: int) -> Any:
    return grad(case.function, argnums=index)


def pushed(case: Case, index: int) -> Any:
    return lambda *args: pushed_of(case.function, index, args)


def pushed_of(f: Any, index: int, point: Any) -> Any:
    return jvp(lambda x: f(*point[:index], x, *point[index + 1 :]), (point[index],), (1.0,))[1]


def pulled_of(f: Any, index: int, point: Any) -> Any:
    return grad(f, argnums=index)(*point)


def shown(error: float) -> str:
    return f"{math.ceil(error)}" if error < 1000 else f"{error:.0e}" if math.isfinite(error) else "infinite"


def row(name: str, case: Case, first: float, second: float) -> str:
    domains = ", ".join(dict.fromkeys(a.name for a in case.arguments if isinstance(a, Domain)))
    order2 = shown(second) if case.second else "no rule"
    return f"| `{name}` | {domains} | {shown(first)} | {order2} | {case.convention} |"


HEAD = f"""# Accuracy of every rule

`./dev pages accuracy` writes this page, in some minutes. Each elementwise primitive is differentiated by jvp and vjp,
and twice, by either of the other, at a grid of points with the edges of its domain, and compared with its definition,
differentiated by [mpmath](https://mpmath.org) at {DIGITS} digits. The errors are the largest found, in ulps: the
distance to the next double at the exact value. They contain those of SciPy's own functions. Near a zero of a
derivative, an ulp is that of the small number there, and differences in a rule show: the tail of `tanh`, whose
`1 - y*y` is exact to 2^-53 but not relatively.

At a point where a function is not smooth the derivative is the convention of the last column; `effgrad.kinks` takes
another. Arguments without a derivative in closed form (orders, degrees of freedom) raise `NoRule`, and are held
constant here. The rules of a program are multiplied and added in floating point, and [conventions](conventions.md) says
what is lost where a product leaves its range: the derivative of `x / (1 + x*x)` at 1e110 is right forward only.

| primitive | domain | first derivative | second | convention |
|---|---|---|---|---|
"""


def missing() -> set[str]:
    """Elementwise primitives without a row."""
    skipped = {
        "psi", "conjugate", "sign", "divmod", "modf", "frexp", "ldexp", "nextafter", "heaviside",
    }
    # With complex results, or no definition in mpmath: the tests of the special functions have them.
    skipped |= {
        "hankel1", "hankel1e", "hankel2", "hankel2e", "wofz", "voigt_profile", "berp", "beip", "kerp", "keip",
        "besselpoly", "wright_bessel", "log_wright_bessel", "itstruve0", "it2struve0", "itmodstruve0", "lpmv", "zetac",
        "chndtr", "chndtrinc", "chndtrix", "ncfdtr", "ncfdtri", "ncfdtrinc", "gdtria", "gdtrix", "bdtri", "nbdtri",
        "pdtri", "nrdtrimn", "nrdtrisd", "kolmogi", "tklmbda", "chdtriv", "stdtridf", "fdtridfd", "gdtrib", "btdtria",
        "btdtrib", "pdtrik", "bdtrik", "bdtrin", "nbdtrik", "nbdtrin",
    }  # fmt: skip
    elementwise = [f for f in (*UFUNCS, *SPECIAL) if getattr(f, "signature", None) is None]
    names = {f.__name__ for f in elementwise} - {f.__name__ for f in PARTS} - skipped
    return {name for name in names if not name.startswith("_")} - set(cases())


@contextmanager
def precisely() -> Iterator[None]:
    with mp.workdps(DIGITS), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def measured(name: str) -> tuple[str, str]:
    """The row of a primitive, and where its errors are."""
    with precisely():
        (first, place), (second, places) = measure(cases()[name])
    return row(name, cases()[name], first, second), f"{place} {places}"


def page() -> str:
    with multiprocessing.Pool() as pool:
        rows = [row for row, _ in pool.imap(measured, cases())]
    return HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    for name in sys.argv[1:] or cases():
        print(*measured(name), flush=True)
