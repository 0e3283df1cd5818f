"""Rules for `scipy.stats`: densities, distribution functions and quantiles of all distributions, by SciPy's formulas.

A distribution has the formula of its standard form in a method (`_logpdf`, `_cdf`, ...), written with NumPy and
`scipy.special`. The rules here call that method, and treat the location, the scale and the values outside the support
themselves. A point outside the support does not contribute to the derivative. A count has no derivative, because it is
not a smooth argument.
"""


from types import SimpleNamespace

import scipy.integrate
import scipy.special as sp
import scipy.stats
from scipy._lib._array_api import np_compat
from scipy.special import _ufuncs as scu
from scipy.stats import _continuous_distns, _kde, _morestats, _multivariate, _stats_py

from effgrad.arrays.layout import shape_of, size_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import UFUNCS, depends, evaluated, plain
from effgrad.errors import NoRule
from effgrad.functions.scipy.tables import Running, python_of, reals, require, rules_of, traced_inside
from effgrad.primitives.given import as_computed
from effgrad.primitives.kinks import dropping
from effgrad.primitives.product import mT
from effgrad.primitives.special.distributions import noncentral_chi2_density
from effgrad.vocabulary import DTypeLike, Function, Option, Reached, Value

# The method of the standard form, and the values below and above the support.
POINTS = {
    "pdf": ("_pdf", 0.0, 0.0), "logpdf": ("_logpdf", -np.inf, -np.inf), "cdf": ("_cdf", 0.0, 1.0),
    "logcdf": ("_logcdf", -np.inf, 0.0), "sf": ("_sf", 1.0, 0.0), "logsf": ("_logsf", 0.0, -np.inf),
    "pmf": ("_pmf", 0.0, 0.0), "logpmf": ("_logpmf", -np.inf, -np.inf),
}  # fmt: skip
# SciPy's compiled functions for some standard forms, defined by functions that have rules.
_STANDARD = {
    "_cauchy_ppf": lambda q, loc, scale: loc + scale * np.tan(np.pi * (q - 0.5)),
    "_cauchy_isf": lambda q, loc, scale: loc + scale * np.tan(np.pi * (0.5 - q)),
    "_beta_pdf": lambda x, a, b: np.exp(sp.xlogy(a - 1, x) + sp.xlog1py(b - 1, -x) - sp.betaln(a, b)),
    "_beta_ppf": lambda q, a, b: sp.betaincinv(a, b, q),
    "_binom_pmf": lambda k, n, p: np.exp(scipy.stats.binom._logpmf(k, n, p)),
    "_binom_cdf": lambda k, n, p: sp.betaincc(np.floor(k) + 1, n - np.floor(k), p),
    "_binom_sf": lambda k, n, p: sp.betainc(np.floor(k) + 1, n - np.floor(k), p),
    "_ncx2_pdf": noncentral_chi2_density,
    "_nbinom_pmf": lambda k, n, p: np.exp(scipy.stats.nbinom._logpmf(k, n, p)),
    "_nbinom_cdf": lambda k, n, p: sp.betainc(n, np.floor(k) + 1, p),
    "_nbinom_sf": lambda k, n, p: sp.betaincc(n, np.floor(k) + 1, p),
}
UFUNCS.enter({getattr(scu, name): rule for name, rule in _STANDARD.items() if hasattr(scu, name)})


def _apply_where(
    cond: Value, args: object, f1: Value, f2: Value = None, /, *, fill_value: Value = None, **_: Option
) -> Value:
    """SciPy's choice between two formulas. Both are computed, and the unchosen one does not reach the derivative."""
    args = args if isinstance(args, list | tuple) else (args,)
    with np.errstate(all="ignore"):
        return np.where(plain(cond), f1(*args), fill_value if f2 is None else f2(*args))


def _lazywhere(cond: Value, arrays: object, f: Function, fillvalue: object = None, f2: object = None) -> Value:
    return _apply_where(cond, arrays, f, f2, fill_value=fillvalue)


# Before SciPy 1.16, the function of this choice was `_lazywhere`.
CHOICE = (
    (_continuous_distns.xpx, "apply_where", _apply_where)
    if hasattr(_continuous_distns, "xpx")
    else (_continuous_distns, "_lazywhere", _lazywhere)
)


def _inside(low: Value, high: Value) -> Value:
    """A point inside the support: its middle, or the point at distance 1 from its only finite end."""
    bounded = np.isfinite(low), np.isfinite(high)
    low, high = np.where(bounded[0], low, np.where(bounded[1], high - 2, -1)), np.where(
        bounded[1], high, np.where(bounded[0], low + 2, 1))  # fmt: skip
    return (low + high) / 2


# Isolated shapes, as pairs of the shape's place and its value: there SciPy takes another formula than for all shapes
# nearby, and that formula does not have the derivative by the shape.
ISOLATED = {
    "genpareto": ((0, 0.0),), "genextreme": ((0, 0.0),), "kappa4": ((0, 0.0), (1, 0.0)), "tukeylambda": ((0, 0.0),),
    "skewnorm": ((0, 0.0),),
}  # fmt: skip
ISOLATED_MOMENTS = {"truncpareto": ((0, 1.0), (0, 2.0), (0, 3.0), (0, 4.0))}


def _as_shapes(self: Value, shapes: Value, isolated: dict[str, Value]) -> tuple[Value, ...]:
    """Return the shapes of a distribution as arrays; refuse an isolated shape that a derivative goes through."""
    arrays: list[Value] = [*map(np.asarray, shapes)]
    for place, number in isolated.get(self.name, ()):

        def check(shape: Value, number: float = number) -> Value:
            apart = not np.any(np.asarray(shape) == number)
            require(apart, f"stats.{self.name}", f"shapes beside {number}, where SciPy takes another formula")
            return 0.0

        if depends(arrays[place]):
            arrays[place] = arrays[place] + evaluated(check, arrays[place])
    return tuple(arrays)


def _standard(name: str) -> Function:
    """Return the rule of a method of continuous distributions."""
    method, below, above = POINTS[name]

    def rule(self: Value, x: Value, *args: Value, **named: Option) -> Value:
        shapes, loc, scale = self._parse_args(*args, **named)
        shapes = _as_shapes(self, shapes, ISOLATED)
        z = (np.asarray(x) - loc) / scale
        low, high = self._get_support(*map(plain, shapes))
        valid = evaluated(self._argcheck, *shapes) & (plain(scale) > 0) & (plain(z) == plain(z))
        inside = (plain(z) >= low) & (plain(z) <= high)
        # At the ends of its support a density has its formula; the other functions have their values outside there.
        inside = inside if name in ("pdf", "logpdf") else inside & (plain(z) > low) & (plain(z) < high)
        with np.errstate(all="ignore"):
            value = getattr(self, method)(np.where(inside, z, _inside(low, high)), *shapes)
        value = value / scale if name == "pdf" else value - np.log(scale) if name == "logpdf" else value
        outside = np.where(plain(z) <= low, below, above)
        return np.where(valid, np.where(inside, value, outside), np.nan)[()]

    return rule


def _counted(name: str) -> Function:
    """Return the rule of a method of discrete distributions, which is differentiable in their parameters."""
    method, below, above = POINTS[name]

    def rule(self: Value, k: Value, *args: Value, **named: Option) -> Value:
        shapes, loc, _ = self._parse_args(*args, **named)
        if traced_inside(k) or traced_inside(loc):
            raise NoRule(
                f"scipy.stats.{self.name}.{name} has a derivative rule in its parameters, not in the count k: "
                "effgrad.stop_gradient(k) makes it a constant"
            )
        shapes = _as_shapes(self, shapes, ISOLATED)
        k = np.asarray(k) - loc
        low, high = self._get_support(*map(plain, shapes))
        valid, inside = self._argcheck(*map(plain, shapes)), (k >= low) & (k <= high)
        if name in ("pmf", "logpmf"):
            inside = inside & (np.floor(k) == k)
        elif name in ("cdf", "logcdf"):
            inside = inside & (k < high)
        with np.errstate(all="ignore"):
            value = getattr(self, method)(np.where(inside, k, low), *shapes)
        return np.where(valid, np.where(inside, value, np.where(k < low, below, above)), np.nan)[()]

    return rule


def _quantile(name: str) -> Function:
    def rule(self: Value, q: Value, *args: Value, **named: Option) -> Value:
        shapes, loc, scale = self._parse_args(*args, **named)
        shapes = _as_shapes(self, shapes, ISOLATED)
        low, high = self._get_support(*map(plain, shapes))
        low, high = (low, high) if name == "ppf" else (high, low)
        valid = evaluated(self._argcheck, *shapes) & (plain(scale) > 0) & (plain(q) >= 0) & (plain(q) <= 1)
        inside = (plain(q) > 0) & (plain(q) < 1)
        z = getattr(self, f"_{name}")(np.where(inside, q, 0.5), *shapes)
        z = np.where(inside, z, np.where(plain(q) <= 0, low, high))
        return np.where(valid, z * scale + loc, np.nan)[()]

    return rule


def _entropy(self: Value, *args: Value, **named: Option) -> Value:
    shapes, loc, scale = self._parse_args(*args, **named)
    shapes = _as_shapes(self, shapes, ISOLATED)
    valid = evaluated(self._argcheck, *shapes) & (plain(scale) > 0)
    value = self._entropy(*shapes)
    value = value + np.log(scale) if isinstance(self, scipy.stats.rv_continuous) else value
    return np.where(valid, value + 0.0 * loc, np.nan)[()]


def _integrated_entropy(self: Value, *shapes: Value) -> Value:
    """The integral of -p log p, to which a density p that has underflowed adds nothing."""

    def integrand(x: Value) -> Value:
        density = self._pdf(x, *shapes)
        gone = ~(plain(density) > np.finfo(float).tiny)
        return np.where(gone, 0.0, sp.entr(np.where(gone, 1.0, density)))

    return scipy.integrate.quad(integrand, *self._get_support(*shapes))[0]


def _moments(self: Value, *args: Value, **named: Option) -> Value:
    """`stats`, by the moments that a distribution states for its standard form.

    The methods `mean`, `var` and `std` call it.
    """
    shapes, loc, scale, letters = self._parse_args_stats(*args, **named)
    shapes = _as_shapes(self, shapes, ISOLATED | ISOLATED_MOMENTS)
    valid = evaluated(self._argcheck, *shapes) & (plain(scale) > 0)
    with np.errstate(all="ignore"):
        stated = self._stats(*shapes, **({"moments": letters} if self._stats_has_moments else {}))
        first = stated[0] if stated[0] is not None else self._munp(1, *shapes)
        square, second = first * first, stated[1]
        if second is None:  # with an infinite mean, the variance is infinite
            second = np.where(np.isinf(plain(first)), square, self._munp(2, *shapes) - square)
    values = {"m": scale * first + loc, "v": scale * scale * second, "s": stated[2], "k": stated[3]}
    if any(values[letter] is None for letter in letters):
        raise NoRule(f"scipy.stats.{self.name}.stats has a derivative rule for the mean and the variance")
    results = tuple(np.where(valid, values[letter] + 0.0 * loc, np.nan)[()] for letter in "mvsk" if letter in letters)
    return results[0] if len(results) == 1 else results


def _covariance(
    self: Value, M: Value, cond: Value = None, rcond: Option = None, lower: bool = True, check_finite: bool = True,
    allow_singular: bool = True,
) -> None:  # fmt: skip
    """A positive definite covariance, by its Cholesky factor.

    SciPy takes its eigenvectors, which have no derivative where eigenvalues are equal.
    """
    n = shape_of(M)[0]

    def tolerance(matrix: Value) -> float:
        plainly: Value = _multivariate._PSD(matrix, cond, rcond, lower, check_finite, allow_singular)
        require(plainly.rank == n, "stats", "a covariance that is not singular")
        return float(plainly.eps)

    self.eps = evaluated(tolerance, M)
    factor = np.linalg.cholesky(M)
    self._M, self._pinv = M, None
    self.V, self.rank = np.zeros((n, 0)), n
    self.U = mT(np.linalg.inv(factor))
    self.log_pdet = 2 * np.sum(np.log(np.diagonal(factor)))


def _pearsonr(
    x: Value, y: Value, *, alternative: str = "two-sided", method: Option = None, axis: int | None = 0
) -> Value:
    require(method is None, "stats.pearsonr", "no method")
    x, y = np.broadcast_arrays(np.asarray(x), np.asarray(y))
    x, y = (np.ravel(x), np.ravel(y)) if axis is None else (x, y)
    axis = axis or 0
    given = x, y
    # Scaled to size 1, so that squares and products stay in range; a factor does not change the correlation.
    x, y = (z / np.max(np.abs(plain(z)), axis, keepdims=True) for z in (x, y))
    x, y = (z - np.mean(z, axis, keepdims=True) for z in (x, y))
    r = np.sum(x * y, axis) / np.sqrt(np.sum(x * x, axis) * np.sum(y * y, axis))
    n = shape_of(x)[axis]
    # (1 + r) / 2 has a beta distribution.
    beyond = {"two-sided": (1 - np.abs(r)) / 2, "less": (1 + r) / 2, "greater": (1 - r) / 2}
    if alternative not in beyond:
        raise ValueError("`alternative` must be 'less', 'greater', or 'two-sided'.")
    if n == 2:  # the correlation of two points is 1 or -1
        r = np.round(r)
        p = 1.0 + 0 * r
    else:
        p = (1 + (alternative == "two-sided")) * sp.betainc(n / 2 - 1, n / 2 - 1, beyond[alternative])
    return _stats_py.PearsonRResult(
        statistic=r, pvalue=p, alternative=alternative, n=n, x=given[0], y=given[1], axis=axis
    )


def _f_oneway(*samples: Value, axis: int = 0, equal_var: bool = True, **options: Option) -> Value:
    require(equal_var and not options, "stats.f_oneway", "equal variances and no options")
    samples = tuple(map(np.asarray, samples))
    sizes = [shape_of(s)[axis] for s in samples]
    means = [np.mean(s, axis, keepdims=True) for s in samples]
    inside = sum(np.sum((s - m) ** 2, axis) for s, m in zip(samples, means, strict=True))
    whole = sum(n * m for n, m in zip(sizes, means, strict=True)) / sum(sizes)
    between = sum(n * np.sum((m - whole) ** 2, axis) for n, m in zip(sizes, means, strict=True))
    degrees = len(samples) - 1.0, float(sum(sizes) - len(samples))
    statistic = between / degrees[0] / (inside / degrees[1])
    return _stats_py.F_onewayResult(statistic, sp.fdtrc(*degrees, statistic))


def _expectile(a: Value, alpha: Value = 0.5, *, weights: Value = None) -> Value:
    """The mean with the weight 1 - alpha below the expectile and alpha above it."""
    a = np.asarray(a)
    below = plain(a) <= evaluated(lambda a, alpha, w: scipy.stats.expectile(a, alpha, weights=w), a, alpha, weights)
    w = np.where(below, 1 - alpha, alpha)
    w = w if weights is None else w * np.asarray(weights)
    return np.sum(w * a) / np.sum(w)


def _boxcox_llf(
    lmb: Value, data: Value, *, axis: int | None = 0, keepdims: bool = False, nan_policy: str = "propagate"
) -> Value:
    require(not keepdims and nan_policy == "propagate", "stats.boxcox_llf", "keepdims=False, nan_policy='propagate'")
    reals("stats.boxcox_llf", lmb, data)
    data = np.asarray(data)
    count = shape_of(data)[axis] if axis is not None else size_of(data)
    return (lmb - 1) * np.sum(np.log(data), axis) - count / 2 * np.log(np.var(sp.boxcox(data, lmb), axis))


def _normal_inverse_gaussian_sf(self: Value, x: Value, a: Value, b: Value) -> Value:
    """Broadcast the arguments, as SciPy's own method only works for arguments of equal shapes."""
    sf = np.vectorize(lambda x, a, b: scipy.integrate.quad(self._pdf, x, np.inf, args=(a, b))[0])
    return sf(x, a, b)


def _exponents(points: Value, xi: object, factor: Value) -> Value:
    """The logarithms of normal densities around `points`; `factor` is the Cholesky factor of their covariance."""
    inverse = np.linalg.inv(factor).T
    apart = (np.asarray(xi) @ inverse)[:, None] - np.asarray(points) @ inverse
    size = np.sum(np.log(np.diagonal(factor))) + shape_of(factor)[0] / 2 * np.log(2 * np.pi)
    return -np.sum(apart * apart, axis=-1) / 2 - size


def _kernel_estimate(points: Value, values: Value, xi: object, factor: object, dtype: DTypeLike) -> Value:
    return np.exp(_exponents(points, xi, factor)) @ values


def _log_kernel_estimate(points: Value, values: Value, xi: object, factor: object, dtype: DTypeLike) -> Value:
    return sp.logsumexp(_exponents(points, xi, factor), axis=1, b=np.ravel(values))[:, None]


def _methods(owner: type, definitions: dict[str, Value]) -> list[Reached]:
    return [(owner, name, as_computed(vars(owner)[name], rule)) for name, rule in definitions.items()]


def _of_each_type(compiled: Value, rule: Function) -> list[Reached]:
    """Return a rule for the functions of a compiled one for each type, which are its items."""
    owner: Value = SimpleNamespace(__name__=_kde.__name__, **compiled.__signatures__)
    return [(owner, kind, rule) for kind in compiled.__signatures__]


# Functions with a shortcut.


def _iqr(
    x: Value, axis: Option = None, rng: Option = (25, 75), scale: Value = 1.0, *args: Option, **options: Option
) -> Value:
    if not traced_inside(scale):
        return _python_of_iqr(x, axis, rng, scale, *args, **options)
    return _python_of_iqr(x, axis, rng, 1.0, *args, **options) / scale


def _yeojohnson(x: Value, lmbda: Value, *args: Option, **options: Option) -> Value:
    positive = plain(x) >= 0
    above = sp.boxcox1p(np.where(positive, x, 0.0), lmbda)
    return np.where(positive, above, -sp.boxcox1p(np.where(positive, 0.0, -x), 2 - lmbda))


def _power_divergence(
    f_obs: Value, f_exp: Value = None, ddof: Value = 0, axis: Option = 0, lambda_: Value = None
) -> Value:
    beside = not traced_inside(lambda_) or plain(lambda_) not in (-1, 0, 1)
    require(beside, "stats.power_divergence", "lambda_ beside -1, 0 and 1, where SciPy takes another formula")
    return _python_of_power_divergence(f_obs, f_exp, ddof, axis, lambda_)


def _skewtest(a: Value, axis: Option = 0, *args: Option, **options: Option) -> Value:
    beside = not traced_inside(a) or bool(np.all(plain(scipy.stats.skew(a, axis))))
    require(beside, "stats.skewtest", "data that are not symmetric; SciPy takes another statistic at a skewness of 0")
    return _python_of_skewtest(a, axis, *args, **options)


def _near_normal(self: Value, x: Value, skew: Value) -> Value:
    """The terms of `pearson3`, which has no derivative in a skewness so small that SciPy takes the normal one."""
    ans, x, transx, mask, *rest = _python_of_pearson3(self, x, skew)
    if np.any(plain(mask)):
        x = np.where(mask, dropping(x, np.broadcast_to(skew, shape_of(x))), x)
    return ans, x, transx, mask, *rest


_python_of_skewtest = python_of(scipy.stats.skewtest)
_python_of_pearson3 = python_of(_continuous_distns.pearson3_gen._preprocess)
_python_of_iqr, _python_of_power_divergence = python_of(scipy.stats.iqr), python_of(scipy.stats.power_divergence)
CONTINUOUS = ("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf")
DISCRETE = ("pmf", "logpmf", "cdf", "logcdf", "sf", "logsf")
RULES: list[Reached] = [
    *_methods(scipy.stats.rv_continuous, {name: _standard(name) for name in CONTINUOUS}),
    *_methods(scipy.stats.rv_continuous, {name: _quantile(name) for name in ("ppf", "isf")}),
    *_methods(scipy.stats.rv_continuous, {"_entropy": _integrated_entropy}),
    *_methods(scipy.stats.rv_discrete, {name: _counted(name) for name in DISCRETE}),
    *_methods(scipy.stats._distn_infrastructure.rv_generic, {"stats": _moments, "entropy": _entropy}),
    CHOICE,
    (np_compat, "clip", lambda x, /, min=None, max=None, **_: np.clip(x, min, max)),
    (_multivariate._PSD, "__init__", _covariance),
    (_continuous_distns.pearson3_gen, "_preprocess", _near_normal),
    (type(scipy.stats.norminvgauss), "_sf", _normal_inverse_gaussian_sf),
    *rules_of(
        scipy.stats, {"pearsonr": _pearsonr, "f_oneway": _f_oneway, "boxcox_llf": _boxcox_llf, "expectile": _expectile}
    ),
    (scipy.stats, "iqr", Running(scipy.stats.iqr, _iqr)),
    (scipy.stats, "skewtest", Running(scipy.stats.skewtest, _skewtest)),
    (scipy.stats, "power_divergence", Running(scipy.stats.power_divergence, _power_divergence)),
    (_morestats, "_yeojohnson_transform", Running(_morestats._yeojohnson_transform, _yeojohnson)),
    *_of_each_type(_kde.gaussian_kernel_estimate, _kernel_estimate),
    *_of_each_type(_kde.gaussian_kernel_estimate_log, _log_kernel_estimate),
]
