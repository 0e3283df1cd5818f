"""Integrands that are singular at an end of the interval, where they are a power of the distance from it.

The integrals over intervals next to the end, each half as long as the one before, are a geometric series then. So the
rest, next to the end, follows from the last two of them, with its derivatives: those of a power x^p are x^p times
polynomials in log x, and the formula for the rest is right for all p. Both are checked, for the integrand and for
its derivatives along one direction. Davis and Rabinowitz, Methods of Numerical Integration (1984), section 2.12.
"""

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

from effgrad.api import jvp
from effgrad.arrays.reach import np
from effgrad.arrays.value import plain
from effgrad.stage.closures import replay
from effgrad.toolbox.frozen import number
from effgrad.toolbox.slopes import closed_graph
from effgrad.vocabulary import Function, Value

Term: TypeAlias = Callable[[float], Any]
Rule: TypeAlias = tuple[Value, Value]
# The intervals begin at this part of the whole interval from the end; and if the end is the number 0, near which
# numbers are dense, at the second one.
NEAR, NEAR_ZERO = 2.0**-26, 2.0**-40
# The largest ratio of two integrals, and the error of the rest relative to the whole integral.
SLOWEST, TOLERANCE = 0.97, 1e-8
# The number of samples, each half as far from the end as the one before, and their relative error.
SAMPLES, RELATIVE = 12, 1e-3


def near(end: float, whole: float) -> float:
    """The distance from an end at which the integrals of `integral_at_end` begin."""
    return whole * (NEAR if end else NEAR_ZERO)


def integral_at_end(term: Term, end: float, step: float, usual: float, order: int, rule: Rule) -> Value | None:
    """Return the integral of `term` from `end` as far as `step`, or None if it is not a power of the distance.

    `usual` is the size of the whole integral, `order` the number of derivatives that are taken, and `rule` has the
    points and weights of a quadrature rule on the interval from -1/2 to 1/2.
    """
    points, weights = rule

    def integrals(f: Term, count: int) -> list[Any]:
        lengths = [step * 2.0**k for k in range(count)]
        return [abs(h) * sum(w * f(float(end + h * (1.5 + x))) for x, w in zip(points, weights, strict=True))
                for h in lengths]  # fmt: skip

    found = integrals(term, 3)
    first, second, third = (float(plain(part)) for part in found)
    if not first or not second or not third:
        return None
    ratio, before = first / second, second / third
    if not 0 < ratio <= SLOWEST or not _is_regular(term, end, step, ratio):
        return None
    value = found[0] ** 2 / (found[1] - found[0])
    if abs(float(plain(value)) * (ratio - before)) > TOLERANCE * usual * (1 - ratio):
        return None
    tangents = _tangents(term, end + 1.5 * step, order)
    if tangents is None:
        return None
    for degree, tangent in enumerate(tangents, 1):
        scaled = [float(part) * ratio**k for k, part in enumerate(integrals(tangent, degree + 2))]
        if abs(np.diff(scaled, degree + 1)[0]) > TOLERANCE * usual * (1 - ratio) ** (degree + 2):
            return None
    return value


def _is_regular(term: Term, end: float, step: float, ratio: float) -> bool:
    """Whether samples nearer to the end are the power that the ratio shows, times a polynomial in the logarithm.

    They are not if the integrand jumps there.
    """
    found = np.array([float(plain(term(end + step * 0.5**k))) / (2 * ratio) ** k for k in range(SAMPLES)])
    smooth = np.polynomial.Polynomial.fit(np.arange(SAMPLES), found, 3)(np.arange(SAMPLES))
    return bool(np.max(np.abs(found - smooth)) <= RELATIVE * np.max(np.abs(found)))


def _tangents(term: Term, t: float, order: int) -> list[Term] | None:
    """Return the first `order` derivatives of a term along a direction, as functions on plain numbers."""
    staged = closed_graph(lambda t: term(t), t)
    if staged is None:
        return None
    closed, graph = [number(value) for value in staged[0]], staged[1]
    rng = np.random.default_rng(0)
    directions = [rng.normal(size=np.shape(value)) for value in closed]

    def along(s: Value, t: float) -> Value:
        return replay(graph, [*(c + s * d for c, d in zip(closed, directions, strict=True)), t])[0]

    def derivative(f: Function) -> Function:
        return lambda s, t: jvp(lambda s: f(s, t), (s,), (1.0,))[1]

    functions: list[Function] = [along]
    for _ in range(order):
        functions.append(derivative(functions[-1]))
    return [functools.partial(f, 0.0) for f in functions[1:]]
