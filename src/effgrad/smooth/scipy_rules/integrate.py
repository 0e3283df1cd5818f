"""`scipy.integrate`: `quad` and what SciPy makes of it: integrals of functions of traced values, between traced limits.

QUADPACK chooses the intervals by plain values. On these the integral is a sum, by the rule of Gauss and Legendre, and
the sum is differentiated: a derivative is as exact as that rule is for the integrand's derivative on those intervals.
Piessens, de Doncker-Kapenga, Überhuber and Kahaner, QUADPACK (1983).
"""

from typing import Any

import numpy as np
import scipy.integrate

from effgrad.errors import NoRule
from effgrad.smooth.scipy_rules.tables import Calling, by_matrix, require, traced_inside
from effgrad.smooth.traced import depends, plain

_quad, _simpson = scipy.integrate.quad, scipy.integrate.cumulative_simpson
POINTS, WEIGHTS = (array / 2 for array in np.polynomial.legendre.leggauss(15))


def _integral(func: Any, a: Any, b: Any, args: Any = (), full_output: Any = 0, **options: Any) -> Any:
    args = args if isinstance(args, tuple) else (args,)
    traced = traced_inside((a, b, args))

    def value(t: float) -> float:
        nonlocal traced
        result = func(t, *args)
        traced = traced or depends(result)
        return float(plain(result))

    low, high = float(plain(a)), float(plain(b))
    if options.get("weight") is not None or options.get("complex_func"):
        require(not traced, "integrate.quad", "no weight and no complex function")
        return _quad(func, a, b, args, full_output, **options)
    result, error, info, *rest = _quad(value, low, high, full_output=1, **options)
    if not traced:
        return (result, error, info, *rest) if full_output else (result, error)
    total: Any = (b - a) * func(a, *args) if low == high else 0.0
    size = 0.0
    count = info["last"] if low != high else 0
    for start, end in zip(info["alist"][:count], info["blist"][:count], strict=True):
        for t, weight in zip(start + (end - start) * (0.5 + POINTS), (end - start) * WEIGHTS, strict=True):
            part = float(weight) * _term(func, float(t), a, b, args)
            total, size = total + part, size + abs(plain(part))
    precision = max(1e-7, 100 * float(np.finfo(np.result_type(plain(total))).eps))
    if not abs(plain(total) - result) <= max(precision * size, 10 * error, 1e-12):
        raise NoRule(
            "scipy.integrate.quad has a derivative rule for integrands without singularities: write it in another "
            "variable, in which the integrand has none"
        )
    return (total, error, info, *rest) if full_output else (total, error)


def _term(func: Any, t: float, a: Any, b: Any, args: Any) -> Any:
    """The integrand in QUADPACK's variable: t, or where a limit is infinite 1 / (1 + the distance from the other)."""
    low, high = float(plain(a)), float(plain(b))
    if np.isfinite(low) and np.isfinite(high):
        return func(a + (b - a) * ((t - low) / (high - low)), *args) * (b - a) / abs(high - low)
    away, slope = (1 - t) / t, 1 / (t * t)
    sign = 1.0 if high > low else -1.0
    if np.isfinite(low):
        return sign * slope * func(a + away * sign, *args)
    if np.isfinite(high):
        return sign * slope * func(b - away * sign, *args)
    return sign * slope * (func(away, *args) + func(-away, *args))


def _cumulative_simpson(y: Any, *, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None) -> Any:
    require(not traced_inside((x, dx)) and np.ndim(x) < 2, "integrate.cumulative_simpson", "y, and x of one dimension")
    y = np.asarray(y)
    result = by_matrix(lambda rows: _simpson(rows, x=x, dx=dx, axis=0), y, axis)
    if initial is None:
        return result
    first = np.broadcast_to(initial, [1 if n == axis % y.ndim else size for n, size in enumerate(y.shape)])
    return np.concatenate([first, result + first], axis=axis)


RULES: list[tuple[Any, str, Any]] = [
    (scipy.integrate, "cumulative_simpson", _cumulative_simpson),
    (scipy.integrate, "quad", Calling(_integral)),
    (scipy.integrate._quadpack_py, "quad", Calling(_integral)),
]
