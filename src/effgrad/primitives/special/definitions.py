"""Functions of `scipy.special` that are not ufuncs, whose rules are found by name when a program is rewritten."""

import numpy as np
import scipy.special

from effgrad.arrays.layout import ndim_of
from effgrad.arrays.value import UFUNCS, composed, plain
from effgrad.errors import NoRule
from effgrad.primitives.given import as_computed
from effgrad.primitives.logsumexp import logsumexp
from effgrad.primitives.primitive import Primitive
from effgrad.primitives.special.elementary import BERNOULLI, polygamma
from effgrad.primitives.special.table import piecewise, sp, special, unknown
from effgrad.vocabulary import Axis, Option, Value

hurwitz: Primitive = special(sp.zeta, unknown, lambda y, x, q: -x * hurwitz(x + 1, q), name="zeta")


def _zeta(x: Value, q: Value = None, out: Option = None) -> Value:
    if plain(x) is x:
        return hurwitz(x, 1.0 if q is None else q)
    if q is not None:
        return np.where(plain(x) > 1, _summed_zeta(np.where(plain(x) > 1, x, 2.0), q), np.nan)

    return _riemann(x, 1)


def _riemann(x: Value, first: int) -> Value:
    """Return the sum of k**-x over k from `first` (1 or 2) on."""

    def reflected(x: Value) -> Value:
        whole = 2 * (2 * np.pi) ** (x - 1) * np.sin(np.pi / 2 * x) * sp.gamma(1 - x) * _summed_zeta(1 - x, 1)
        return whole - (first - 1)

    return piecewise(plain(x) < 0, x, -0.5, reflected, 2.0, lambda x: _summed_zeta(x, first))


def _summed_zeta(x: Value, q: Value) -> Value:
    """Return the sum over k of (q + k)**-x by the Euler-Maclaurin formula, which can be differentiated in x as well.

    NIST Digital Library of Mathematical Functions (https://dlmf.nist.gov), section 25.11.
    """
    terms = 12
    last = q + terms
    total, power = last ** (1 - x) / (x - 1) + last**-x / 2, x * last ** (-x - 1)
    for k in range(terms):
        total = total + (q + k) ** -x
    for k, coefficient in enumerate(BERNOULLI):
        total = total + coefficient * power
        power = power * (x + 2 * k + 1) * (x + 2 * k + 2) / (last * last)
    return total


def _polygamma(n: Value, x: Value) -> Value:
    return polygamma(n, x)


def _lambertw(z: Value, k: Value = 0, tol: float = 1e-8) -> Value:
    return lambert(z, k, tol)


lambert: Primitive = special(scipy.special.lambertw, lambda y, z, k, tol: np.exp(-y) / (1 + y), unknown, unknown)


def _diric(x: Value, n: int) -> Value:
    return sp.eval_chebyu(n - 1, np.cos(x / 2)) / n


def _multigammaln(a: Value, d: Value) -> Value:
    terms = sum(sp.gammaln(a - j / 2) for j in range(int(d)))
    return terms + d * (d - 1) / 4 * np.log(np.pi).item()


def _softmax(x: Value, axis: Axis = None) -> Value:
    return np.exp(_log_softmax(x, axis))


def _logsumexp(a: Value, *args: Value, **options: Option) -> Value:
    """Return the sum of `a`, with an axis if it is a number and this version of SciPy gives it one."""
    return logsumexp(np.reshape(a, _SHAPE_OF_NUMBERS) if ndim_of(a) == 0 else a, *args, **options)


_SHAPE_OF_NUMBERS = np.shape(scipy.special.logsumexp(0.0, keepdims=True))


def _log_softmax(x: Value, axis: Axis = None) -> Value:
    return x - logsumexp(x, axis=axis, keepdims=True)


def _softplus(x: Value, **options: Option) -> Value:
    return np.logaddexp(0.0, x, **options)


def _factorial(n: Value, exact: bool = False, extend: str = "zero") -> Value:
    _refuse_exact("factorial", exact)
    return sp.gamma(n + 1) if extend == "complex" else np.where(plain(n) < 0, 0.0, sp.gamma(n + 1))


def _factorialk(n: Value, k: Value, exact: bool = False, extend: str = "zero") -> Value:
    _refuse_exact("factorialk", exact)
    if extend != "complex":
        raise NoRule("scipy.special.factorialk of numbers that are no integers takes extend='complex'")
    return np.power(k, (n - 1) / k) * sp.gamma(n / k + 1) * sp.rgamma(1 / k + 1)


def _factorial2(n: Value, exact: bool = False, extend: str = "zero") -> Value:
    return _factorialk(n, 2, exact, extend)


def _comb(n: Value, k: Value, *, exact: bool = False, repetition: bool = False) -> Value:
    _refuse_exact("comb", exact)
    if repetition:
        return np.where((plain(k) == 0) & (plain(n) >= 0), 1.0, sp.binom(n + k - 1, k))
    return np.where(_can_choose(n, k), sp.binom(n, k), 0.0)


def _perm(n: Value, k: Value, exact: bool = False) -> Value:
    _refuse_exact("perm", exact)
    return np.where(_can_choose(n, k), sp.poch(n - k + 1, k), 0.0)


def _can_choose(n: Value, k: Value) -> Value:
    n, k = plain(n), plain(k)
    return np.less_equal(k, n) & np.greater_equal(n, 0) & np.greater_equal(k, 0)


def _refuse_exact(name: str, exact: bool) -> None:
    if exact:
        raise NoRule(f"scipy.special.{name} with exact=True counts integers and has no derivative; leave exact out")


UFUNCS.enter({sp.zetac: as_computed(sp.zetac, lambda x: _riemann(x, 2))})
composed({np.i0: as_computed(np.i0, lambda x: sp.i0(x))})

_DEFINITIONS: dict[str, Value] = {
    "polygamma": _polygamma, "zeta": _zeta, "lambertw": _lambertw, "diric": _diric, "multigammaln": _multigammaln,
    "softmax": _softmax, "log_softmax": _log_softmax, "logsumexp": _logsumexp, "softplus": _softplus,
    "factorial": _factorial, "factorial2": _factorial2, "factorialk": _factorialk, "comb": _comb, "perm": _perm,
}  # fmt: skip
RULES: dict[str, Value] = {
    name: as_computed(getattr(scipy.special, name), definition)
    for name, definition in _DEFINITIONS.items()
    if hasattr(scipy.special, name)  # `softplus` came with SciPy 1.15
}
