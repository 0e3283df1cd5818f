"""`scipy.integrate.quad` and `quad_vec`: integrals of functions of traced values.

`quad` is differentiated by `effgrad.functions.scipy.integrate`. For `quad_vec`, SciPy integrates plain numbers, and the
value is SciPy's. The derivative is that of a sum by the rule of Gauss and Legendre on intervals that are halved until
that rule and one of fewer points agree to rounding.
"""

import numpy as np
import scipy.integrate

from effgrad.errors import NoRule
from effgrad.functions.scipy.integrate import COARSE_POINTS, COARSE_WEIGHTS, POINTS, WEIGHTS, integral, integrand_term
from effgrad.functions.scipy.tables import Calling, reals, traced_inside
from effgrad.toolbox.callbacks import called_back
from effgrad.toolbox.calls import Call, rule_of
from effgrad.toolbox.frozen import Function, Value, gathered, number
from effgrad.toolbox.solutions import with_value

# How often an interval is halved, and how many there are, before the integrand counts as one that is not smooth.
DEEPEST, MOST = 10, 500
# How many intervals there are to each end.
LEVELS = 8


def _sum(term: Function, start: float, end: float, points: Value, weights: Value) -> Value:
    terms = [weight * term(float(t)) for t, weight in zip(start + (end - start) * (0.5 + points), weights, strict=True)]
    return (end - start) * sum(terms[1:], terms[0])


def _graded(start: float, end: float) -> list[tuple[float, float, int]]:
    """Intervals that get shorter to both ends, where a derivative may be singular and the integrand not (x^p at 0)."""
    parts = 0.5 * 0.25 ** np.arange(LEVELS)[::-1]
    ends = start + (end - start) * np.concatenate([[0.0], parts, 1 - parts[:-1][::-1], [1.0]])
    return [(float(a), float(b), 0) for a, b in zip(ends[:-1], ends[1:], strict=True)]


def _smooth_intervals(term: Function, start: float, end: float) -> list[tuple[float, float]]:
    """The intervals on which a polynomial is the integrand to rounding."""
    waiting, found = _graded(start, end), []
    usual = np.max(np.abs(_sum(lambda t: np.abs(term(t)), start, end, POINTS, WEIGHTS)), initial=1e-300)
    while waiting:
        a, b, halved = waiting.pop()
        fine, coarse = _sum(term, a, b, POINTS, WEIGHTS), _sum(term, a, b, COARSE_POINTS, COARSE_WEIGHTS)
        rounding = 1e4 * np.finfo(np.result_type(fine)).eps
        if np.max(np.abs(fine - coarse), initial=0.0) <= rounding * usual:
            found.append((a, b))
        elif halved == DEEPEST or len(found) > MOST:
            raise NoRule(
                "scipy.integrate.quad_vec has a derivative rule for integrands that are smooth: not near "
                f"{a:.4g}; write it as two integrals, to and from there"
            )
        else:
            middle = (a + b) / 2
            waiting += [(middle, b, halved + 1), (a, middle, halved + 1)]
    return found


@rule_of(scipy.integrate.quad_vec, "f")
def quad_vec_rule(call: Call) -> Value:
    """The rule of `quad_vec`."""
    f, a, b, args = call.arguments["f"], call.arguments["a"], call.arguments["b"], call.args
    reals("integrate.quad_vec", a, b)
    result = call.run()
    if not call.traced and not traced_inside((a, b, args)):
        return result

    def term(t: float) -> Value:
        value = integrand_term(lambda x, *args: gathered(f(x, *args)), t, a, b, args)
        reals("integrate.quad_vec", value)
        return value

    def at_primals(t: float) -> Value:
        return number(gathered(integrand_term(f, t, number(a), number(b), args)))

    low, high = float(number(a)), float(number(b))
    finite = np.isfinite(low) and np.isfinite(high)
    start, end = (low, high) if finite else (0.0, 1.0)
    intervals = [] if low == high else _smooth_intervals(at_primals, start, end)
    total: Value = sum((_sum(term, *interval, POINTS, WEIGHTS) for interval in intervals), start=0.0)
    if low == high:
        total = (b - a) * gathered(f(a, *args))
    return (with_value(total, result[0]), *result[1:])


def _quad(*args: Value, **kwargs: Value) -> Value:
    def run(converted: Function, kept: Function) -> Value:
        given, named = converted((args, kwargs))
        return integral(*given, **named)

    return called_back(run, "quad")


quad_rule = Calling(_quad)
