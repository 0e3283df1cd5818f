"""Integrals as `scipy.integrate.quad` computes them, for traced integrands and limits.

QUADPACK chooses the intervals by plain values. Where the integrand is not smooth, they are halved further. The integral
on each interval is a sum by the Gauss-Legendre rule, and this sum is differentiated. So the value is QUADPACK's, and a
derivative is as exact as the Gauss-Legendre rule is for the integrand's derivative. At the points that the user names,
the integrand may jump or have a kink, also one that moves with these points. Piessens, de Doncker-Kapenga, Uberhuber
and Kahaner, QUADPACK (1983).
"""

import itertools
from collections.abc import Callable
from typing import Any, TypeAlias

from numpy.polynomial import legendre

from effgrad.arrays.reach import np
from effgrad.arrays.value import depends, plain, plain_tree
from effgrad.errors import NoRule
from effgrad.primitives.kinks import derivative_order
from effgrad.toolbox.singular_ends import integral_at_end, near
from effgrad.toolbox.slopes import closed_graph
from effgrad.toolbox.switches import switch_moves
from effgrad.vocabulary import Function, Value

POINTS, WEIGHTS = (array / 2 for array in legendre.leggauss(15))
COARSE_POINTS, COARSE_WEIGHTS = (array / 2 for array in legendre.leggauss(10))
Interval: TypeAlias = tuple[float, float]
Term: TypeAlias = Callable[[float], Any]
Part: TypeAlias = tuple[float, float, Any]
Stays: TypeAlias = Callable[[float, float], bool]  # whether a jump or kink between two points stays where it is
NEXT = 1e-6  # the part of an interval that counts as its end
# The shortest part of an interval, relative to the whole, next to which a jump in the second derivative is seen, and in
# the third.
SHORTEST = 2.0**-8, 2.0**-4
# Where the integrand is smooth, an interval that QUADPACK chose is halved at most this often.
SMOOTH = 8
NOT_SMOOTH = (
    "scipy.integrate.{} has a derivative rule for integrands that neither jump nor have poles, and a second one for "
    "smooth ones; not near {:.4g}: name the place in points=, or write it as two integrals, to and from there"
)
NOT_A_POWER = (
    "scipy.integrate.quad has a derivative rule for integrands that are smooth, or at an end of the interval a power "
    "of the distance; not near {:.4g}: substitute, so that the singularity goes away"
)
# The matrix that gives the coefficients of the polynomial with some values at POINTS, and the rows that give its first
# three derivatives at both ends of an interval of length 1.
FIT = np.linalg.inv(legendre.legvander(2 * POINTS, 14))
BETWEEN = legendre.legvander(2 * COARSE_POINTS, 14) @ FIT  # gives that polynomial's values at COARSE_POINTS
SLOPES = [[2**k * legendre.legval(end, legendre.legder(FIT, k)) for end in (-1.0, 1.0)] for k in (1, 2, 3)]


def listed(points: Value) -> list[Value]:
    """The points at which the user says that an integrand is not smooth, as a list; None are none."""
    if points is None or isinstance(points, list | tuple):
        return list(points or ())
    return list(points) if np.ndim(points) else [points]


def by_pieces(
    func: Function, like: Value, a: Value, b: Value, args: Value, info: dict[str, Value], points: list[Value]
) -> Value:
    """The integral as a sum of integrals from point to point, where the integrand need not be smooth.

    So the derivative is right if a jump moves with a point that is traced; a jump that moves otherwise is refused.
    """
    low, high = sorted((float(plain(a)), float(plain(b))))
    inside = sorted((point for point in points if low < plain(point) < high), key=plain)
    inside = inside if plain(a) < plain(b) else inside[::-1]
    for point in inside:
        _refuse_other_jumps(lambda x: func(x, *args), point, 1e-9 * (high - low))
    edges = [a, *inside, b]
    return sum((on_intervals(func, like, *pair, args, info) for pair in itertools.pairwise(edges)), start=0.0)


def _refuse_other_jumps(func: Function, point: Value, near: float) -> None:
    """Refuse an integrand with a jump, or in a second derivative a kink, that does not move as this point does."""
    place = float(plain(point))
    below, above = func(place - near), func(place + near)
    continuous = abs(plain(above) - plain(below)) <= 1e-4 * max(abs(plain(above)), abs(plain(below)))
    if continuous and derivative_order(above) < 2:
        return
    staged = closed_graph(func, place - near)
    moves = staged is None or switch_moves(*staged, [place - near], [place + near])
    if moves is not None and moves is not depends(point):
        raise NoRule(
            f"scipy.integrate.quad has a derivative rule for integrands that are not smooth where points= says; this "
            f"one does not change near {place:.4g} as the point does: give the point as the integrand computes it"
        )


def on_intervals(func: Function, like: Value, a: Value, b: Value, args: Value, info: dict[str, Value]) -> Value:
    """The integral by the Gauss-Legendre rule on the intervals that QUADPACK chose, which are in its `info`.

    `like` decides where the integrand is smooth. It is `func`, or a function with its values and without derivatives.
    """
    if float(plain(a)) == float(plain(b)):
        return of_no_length(lambda t: func(t, *args), a, b)
    count = info["last"]
    low, high = sorted((float(plain(a)), float(plain(b))))
    low, high = (low, high) if np.isfinite(high - low) else (0.0, 1.0)
    chosen = zip(info["alist"][:count], info["blist"][:count], strict=True)
    intervals = [(start, end) for start, end in chosen if low <= start and end <= high]

    def term(t: float) -> Value:
        return integrand_term(func, t, a, b, args)

    def value(t: float) -> Value:
        return integrand_term(like, t, plain(a), plain(b), plain_tree(args))

    def stays(low: float, high: float) -> bool:
        """Whether the integrand changes between two points by conditions on the variable alone."""
        staged = closed_graph(term, low)
        return staged is not None and switch_moves(*staged, [low], [high]) is False

    if not intervals:  # shorter than the spacing of numbers
        return of_no_length(lambda t: func(t, *args), a, b)
    refuse_jumps(value, [start for start, _ in intervals], "quad", stays)
    order = derivative_order(term(sum(intervals[0]) / 2))
    halving = Halving(term, term if like is func else value, intervals, order, stays)
    parts = halving.parts()
    if order > 1:
        refuse_kinks([(a, b, np.asarray(plain_tree(terms))) for a, b, terms in parts], order, "quad", stays)
    total = halving.singular
    for start, end, terms in parts:
        total = total + (end - start) * sum(weight * t for weight, t in zip(WEIGHTS, terms, strict=True))
    return total


def of_no_length(func: Function, a: Value, b: Value) -> Value:
    """Return the integral over an interval without length, by a rule that has its derivatives of all orders."""
    return (b - a) * sum(weight * func(a + (b - a) * (0.5 + x)) for weight, x in zip(WEIGHTS, POINTS, strict=True))


class Halving:
    """Intervals, halved until a polynomial fits the integrand, with the integrand at the points of the rule.

    A kink is left in an interval that is too short to count, also in a first derivative. A jump is refused, because
    the derivative depends on how the place of the jump moves, unless it `stays`. So is a second derivative of an
    integrand with a kink, because the first derivative of that integrand jumps. Next to an end where the integrand is
    singular, the integral is `singular`.
    """

    def __init__(self, term: Term, like: Term, intervals: list[Interval], order: int, stays: Stays) -> None:
        self.term, self.like, self.order, self.stays = term, like, order, stays
        self.found: list[Part] = []
        self.singular: Value = 0.0
        self.ends = min(start for start, _ in intervals), max(end for _, end in intervals)
        self.untried = set(self.ends)
        self.waiting = [(start, end, 0, values_at(like, start, end, POINTS)) for start, end in intervals]
        self.whole = sum(abs(end - start) for start, end in intervals)
        sizes = [abs(end - start) * np.abs(plain_tree(terms)) @ WEIGHTS for start, end, _, terms in self.waiting]
        self.usual = sum(sizes) / (self.whole or 1)

    def parts(self) -> list[Part]:
        """Return the intervals in order."""
        while self.waiting:
            self._take(*self.waiting.pop())
        return sorted(self.found, key=lambda part: part[0])

    def _take(self, start: float, end: float, halved: int, terms: list[Value]) -> None:
        outer = self._outer(start, end)
        agree, fitted, steep, high = self._shown(start, end, terms, outer)
        smooth, short = agree and fitted, abs(end - start) <= 1e-12 * self.whole
        if not smooth:
            if outer is None:
                if short and high:  # a pole
                    raise NoRule(NOT_SMOOTH.format("quad", start))
                self._refuse_jump(start, end, short and steep, halved > SMOOTH and not agree)
            elif (steep or self.order > 1) and self._is_singular(outer, start + end - 2 * outer, short):
                return
        if smooth or short:
            terms = terms if self.like is self.term else values_at(self.term, start, end, POINTS)
            self.found.append((start, end, terms))
        else:
            middle = (start + end) / 2
            halves = (start, middle), (middle, end)
            self.waiting += [(*half, halved + 1, values_at(self.like, *half, POINTS)) for half in halves]

    def _shown(self, start: float, end: float, terms: list[Value], outer: float | None) -> tuple[bool, ...]:
        """Return what `fits` does for an interval, and whether the integrand is steep there, and much above usual."""
        fine, coarse = (np.asarray(plain_tree(t)) for t in (terms, values_at(self.like, start, end, COARSE_POINTS)))
        length, change = abs(end - start), float(np.ptp(fine))
        top = float(np.max(np.abs(fine)))
        size = max(self.usual, top)
        if outer is None:  # places are rounded too, which changes the values of a steep integrand
            size = max(size, 1e-3 * max(abs(start), abs(end)) * change / (length or 1))
        return *fits(fine, coarse, size, length / (self.whole or 1)), change > 1e-4 * self.usual, top > 1e3 * self.usual

    def _refuse_jump(self, start: float, end: float, jumps: bool, kinked: bool) -> None:
        """Refuse an integrand that jumps in an interval; if it may have a kink there, refuse its second derivative."""
        if (jumps or (kinked and self.order > 1)) and not self.stays(start, end):
            raise NoRule(NOT_SMOOTH.format("quad", start))

    def _outer(self, start: float, end: float) -> float | None:
        """Return which end of the whole interval is one of this interval, if any is."""
        return start if start == self.ends[0] else end if end == self.ends[1] else None

    def _is_singular(self, end: float, step: float, short: bool) -> bool:
        """Whether the integral from an end as far as `step` is known, as that of a power."""
        if end in self.untried and abs(step) <= near(end, self.whole):
            self.untried.remove(end)
            size, rule = self.usual * self.whole, (POINTS, WEIGHTS)
            tail = integral_at_end(self.term, end, step, size, self.order, rule)
            if tail is not None:
                self.singular = self.singular + tail
                return True
        if short:
            raise NoRule(NOT_A_POWER.format(end))
        return False


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


def refuse_jumps(value: Term, starts: list[float], name: str, stays: Stays = lambda low, high: False) -> None:
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
        steep = jump > 1e-4 * usual and change(start, nearer) > 0.5 * jump  # any other change shrinks with the step
        if steep and not stays(start - near, start + near):
            raise NoRule(
                f"scipy.integrate.{name} has a derivative rule for integrands that do not jump; this one does near "
                f"{start:.4g}: write it as two integrals, to and from there"
            )


def refuse_kinks(parts: list[Part], order: int, name: str, stays: Stays = lambda low, high: False) -> None:
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
            jumps = np.max(np.abs(change), initial=0.0) > rounding
            if jumps and not stays(joint - NEXT * before, joint + NEXT * after):
                raise NoRule(NOT_SMOOTH.format(name, joint))


def values_at(term: Term, start: float, end: float, points: Value) -> list[Value]:
    """Return the values of an integrand at points of an interval, given from -1/2 to 1/2."""
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
