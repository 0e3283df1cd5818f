"""Rules for `scipy.integrate`: `quad` and the functions that SciPy builds on it, for traced integrands and limits.

QUADPACK chooses the intervals by plain values. Where the integrand is not smooth, they are halved further. The integral
on each interval is a sum by the Gauss-Legendre rule, and this sum is differentiated. So the value is QUADPACK's, and a
derivative is as exact as the Gauss-Legendre rule is for the integrand's derivative. Piessens, de Doncker-Kapenga,
Uberhuber and Kahaner, QUADPACK (1983).
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import scipy.integrate
from numpy.polynomial import legendre

from effgrad.arrays.reach import np
from effgrad.arrays.value import depends, plain, plain_tree
from effgrad.errors import NoRule
from effgrad.functions.scipy.tables import by_matrix, derivative_order, require, rules_of, traced_inside
from effgrad.vocabulary import Function, Option, Reached, Value

_quad, _simpson = scipy.integrate.quad, scipy.integrate.cumulative_simpson
POINTS, WEIGHTS = (array / 2 for array in legendre.leggauss(15))
COARSE_POINTS, COARSE_WEIGHTS = (array / 2 for array in legendre.leggauss(10))
Interval: TypeAlias = tuple[float, float]
Term: TypeAlias = Callable[[float], Any]
Part: TypeAlias = tuple[float, float, Any]
# The shortest part of an interval, relative to the whole, next to which a jump in the second derivative is seen, and in
# the third.
SHORTEST = 2.0**-8, 2.0**-4
# Where the integrand is smooth, an interval that QUADPACK chose is halved at most this often.
SMOOTH = 8
NOT_SMOOTH = (
    "scipy.integrate.{} has a derivative rule for integrands that neither jump nor have poles, and a second one for "
    "smooth ones; not near {:.4g}: write it as two integrals, to and from there"
)
# The matrix that gives the coefficients of the polynomial with some values at POINTS, and the rows that give its first
# three derivatives at both ends of an interval of length 1.
FIT = np.linalg.inv(legendre.legvander(2 * POINTS, 14))
BETWEEN = legendre.legvander(2 * COARSE_POINTS, 14) @ FIT  # gives that polynomial's values at COARSE_POINTS
SLOPES = [[2**k * legendre.legval(end, legendre.legder(FIT, k)) for end in (-1.0, 1.0)] for k in (1, 2, 3)]


def integral(
    func: Function, a: Value, b: Value, args: object = (), full_output: object = 0, *,
    switched: Callable[[], bool] = lambda: False, **options: Option,
) -> Value:  # fmt: skip
    """The rule of `quad`.

    `switched` says whether an integrand that returns plain numbers chooses them by traced values. If it jumps, the
    integral has a derivative that no traced value shows.
    """
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
        if low != high and switched():
            on_intervals(func, func, a, b, args, info)
        return (result, error, info, *rest) if full_output else (result, error)
    total = on_intervals(func, func, a, b, args, info)
    require(np.isrealobj(plain(total)), "integrate.quad", "no weight and no complex function")
    total = total + (result - float(plain(total)))  # the value is QUADPACK's
    return (total, error, info, *rest) if full_output else (total, error)


def on_intervals(func: Function, like: Value, a: Value, b: Value, args: Value, info: dict[str, Value]) -> Value:
    """The integral by the Gauss-Legendre rule on the intervals that QUADPACK chose, which are in its `info`.

    `like` decides where the integrand is smooth. It is `func`, or a function with its values and without derivatives.
    """
    if float(plain(a)) == float(plain(b)):
        return (b - a) * func(a, *args)
    count = info["last"]
    intervals = list(zip(info["alist"][:count], info["blist"][:count], strict=True))

    def term(t: float) -> Value:
        return integrand_term(func, t, a, b, args)

    def value(t: float) -> Value:
        return integrand_term(like, t, plain(a), plain(b), plain_tree(args))

    known = info.get("pts", ())
    refuse_jumps(value, [start for start, _ in intervals if start not in known], "quad")
    parts = sorted(_smooth_parts(term, term if like is func else value, intervals), key=lambda part: part[0])
    order = max(derivative_order(t) for t in parts[0][2])
    if order > 1:
        refuse_kinks([(a, b, np.asarray(plain_tree(terms))) for a, b, terms in parts], order, known, "quad")
    total: Value = 0.0
    for start, end, terms in parts:
        total = total + (end - start) * sum(weight * t for weight, t in zip(WEIGHTS, terms, strict=True))
    return total


def _smooth_parts(term: Term, like: Term, intervals: list[Interval]) -> Iterator[tuple[float, float, list[Value]]]:
    """Yield intervals, halved until a polynomial fits the integrand, with the integrand at the points of the rule.

    A kink is left in an interval that is too short to count, also in a first derivative. A jump is refused, because
    the derivative depends on how the place of the jump moves. So is a second derivative of an integrand with a kink,
    because the first derivative of that integrand jumps.
    """
    waiting = [(start, end, 0, _at(like, start, end, POINTS)) for start, end in intervals]
    whole = sum(abs(end - start) for start, end in intervals)
    usual = sum(abs(end - start) * np.abs(plain_tree(terms)) @ WEIGHTS for start, end, _, terms in waiting) / (
        whole or 1
    )
    while waiting:
        start, end, halved, terms = waiting.pop()
        fine, coarse = plain_tree(terms), plain_tree(_at(like, start, end, COARSE_POINTS))
        agree, fitted = fits(np.asarray(fine), np.asarray(coarse), usual, abs(end - start) / (whole or 1))
        smooth = agree and fitted
        short = abs(end - start) <= 1e-12 * whole
        if not smooth:
            _refuse_jump(term, start, (short and np.ptp(fine) > 1e-4 * usual), halved > SMOOTH and not agree)
        if smooth or short:
            yield start, end, terms if like is term else _at(term, start, end, POINTS)
        else:
            middle = (start + end) / 2
            waiting += [(*half, halved + 1, _at(like, *half, POINTS)) for half in ((start, middle), (middle, end))]


def fits(fine: Value, coarse: Value, usual: Value, part: float) -> tuple[bool, bool]:
    """Return whether the sums of two rules agree on a part of the interval, and whether a polynomial fits the values.

    `fine` and `coarse` are the values at POINTS and at COARSE_POINTS. The sums agree even for some integrands with a
    kink in the middle of the part.
    """
    rounding = 1e4 * np.finfo(np.result_type(fine)).eps * usual
    sums = np.tensordot(WEIGHTS, fine, 1) - np.tensordot(COARSE_WEIGHTS, coarse, 1)
    values = part * (np.tensordot(BETWEEN, fine, 1) - coarse)
    agree, fitted = (bool(np.max(np.abs(d), initial=0.0) <= rounding) for d in (sums, values))
    return agree, fitted


def refuse_jumps(value: Term, starts: list[float], name: str) -> None:
    """Refuse an integrand that jumps where one interval ends and the next begins; the intervals begin at `starts`."""
    starts = sorted(starts)
    joints = list(itertools.pairwise(starts))

    def at(t: float) -> Value:
        return np.asarray(plain_tree(value(t)), complex)

    def change(start: float, step: float) -> float:
        return float(np.max(np.abs(at(start - step) - at(start + step)), initial=0.0))

    usual = max((np.max(np.abs(at((before + start) / 2)), initial=0.0) for before, start in joints), default=0.0)
    for before, start in joints:
        near, nearer = 1e-9 * (start - before), 1e-11 * (start - before)
        jump = change(start, near)
        if jump > 1e-4 * usual and change(start, nearer) > 0.5 * jump:  # a steep change shrinks with the step
            raise NoRule(
                f"scipy.integrate.{name} has a derivative rule for integrands that do not jump; this one does near "
                f"{start:.4g}: write it as two integrals, to and from there"
            )


def _refuse_jump(term: Term, start: float, jumps: bool, kinked: bool) -> None:
    """Refuse an integrand that jumps near `start`; if it may have a kink there, refuse its second derivative."""
    if jumps or (kinked and derivative_order(term(start)) > 1):
        raise NoRule(NOT_SMOOTH.format("quad", start))


def refuse_kinks(parts: list[Part], order: int, known: Iterable[float], name: str) -> None:
    """Refuse an integrand of which one of the first `order` - 1 derivatives jumps between two parts of the interval.

    On each part a polynomial fits the integrand, given by its values at POINTS. Its derivatives at the ends are
    compared with those of the next part, and their rounding errors are bounded by Markov's inequality. In a part that
    is shorter than SHORTEST, second or third derivatives could jump unseen.
    """
    whole = parts[-1][1] - parts[0][0]
    usual = 1e4 * np.finfo(float).eps * max(np.max(np.abs(values)) for *_, values in parts)
    shortest = min(parts, key=lambda part: part[1] - part[0])
    if order > 2 and shortest[1] - shortest[0] < SHORTEST[order > 3] * whole:
        raise NoRule(NOT_SMOOTH.format(name, shortest[0]))
    for (start, joint, values), (_, end, following) in itertools.pairwise(parts):
        before, after = joint - start, end - joint
        least = min(before, after) / whole
        for k, (at_start, at_end) in enumerate(SLOPES[: order - 1], 1):
            change = np.tensordot(at_end, values, 1) / before**k - np.tensordot(at_start, following, 1) / after**k
            change = change * whole**k
            rounding = usual / least * (2 * len(POINTS) ** 2 / least) ** k
            if np.max(np.abs(change), initial=0.0) > rounding and joint not in known:
                raise NoRule(NOT_SMOOTH.format(name, joint))


def _at(term: Term, start: float, end: float, points: Value) -> list[Value]:
    return [term(float(t)) for t in start + (end - start) * (0.5 + points)]


def integrand_term(func: Function, t: float, a: Value, b: Value, args: Value) -> Value:
    """The integrand in QUADPACK's variable t.

    If a limit is infinite, t is 1 / (1 + the distance from the finite limit, or from 0 if both are infinite).
    """
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


def _cumulative_simpson(y: Value, *, x: Value = None, dx: Value = 1.0, axis: int = -1, initial: Value = None) -> Value:
    require(not traced_inside((x, dx)) and np.ndim(x) < 2, "integrate.cumulative_simpson", "y, and x of one dimension")
    y = np.asarray(y)
    result = by_matrix(lambda rows: _simpson(rows, x=x, dx=dx, axis=0), y, axis)
    if initial is None:
        return result
    first = np.broadcast_to(initial, [1 if n == axis % y.ndim else size for n, size in enumerate(y.shape)])
    return np.concatenate([first, result + first], axis=axis)


RULES: list[Reached] = [
    *rules_of(scipy.integrate, {"cumulative_simpson": _cumulative_simpson}),
]
