"""The semirings in which `represents` tries an expression.

A semiring consists of a dictionary, a choice of points, and a check whether a value is right. The free semiring alone
decides for a polymorphic expression, which computes the same in every semiring. The other semirings are tried because a
Python function need not be polymorphic: it can inspect a type, or test whether a number is zero.
"""

import math
import operator
import random
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from effgrad.spec.expressions import Dictionary, Expression, Numbers, Polynomial
from effgrad.vocabulary import Shape, Value


@dataclass(frozen=True)
class Semiring:
    """A semiring in which to try an expression.

    `check(e, p, x, expected, actual)` says whether the value `actual` of `e` at `x` is right, where `expected` is the
    value of the polynomial `p` with the same dictionary. It tests equality, unless the numbers are only nearly a
    semiring.
    """

    name: str
    dictionary: Numbers
    points: Callable[[random.Random], list[Value]]
    check: Callable[[Expression, Polynomial, Value, Value, Value], bool] = lambda e, p, x, expected, actual: (
        expected == actual
    )


def _matrix_sum(a: Value, b: Value) -> Value:
    return tuple(tuple(x + y for x, y in zip(r, s, strict=True)) for r, s in zip(a, b, strict=True))


def _matrix_product(a: Value, b: Value) -> Value:
    columns = list(zip(*b, strict=True))
    return tuple(tuple(sum(x * y for x, y in zip(row, column, strict=True)) for column in columns) for row in a)


def _random_matrix(rng: random.Random) -> tuple[Shape, ...]:
    return tuple(tuple(rng.randint(-3, 3) for _ in range(2)) for _ in range(2))


@dataclass(frozen=True)
class Interval:
    """All rational numbers from `low` to `high`."""

    low: Fraction
    high: Fraction

    def __add__(self, other: "Interval") -> "Interval":
        return Interval(self.low + other.low, self.high + other.high)

    def __mul__(self, other: "Interval") -> "Interval":
        ends = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        return Interval(min(ends), max(ends))

    def __contains__(self, value: Fraction) -> bool:
        return self.low <= value <= self.high


def interval(low: float, high: float) -> Interval:
    """Return an interval of rational numbers."""
    return Interval(Fraction(low), Fraction(high))


def _encloses(e: Expression, p: Polynomial, x: Interval, expected: object, actual: Interval) -> bool:
    """Return whether an interval contains p's values at points of x, as interval arithmetic is only subdistributive."""
    inside = [x.low + (x.high - x.low) * Fraction(i, 4) for i in range(5)]
    return all(p(RATIONALS.dictionary, point) in actual for point in inside)


# A dictionary that bounds the number of roundings in a result of non-negative floats, one for each operation.
_ROUNDINGS: Dictionary[int] = Dictionary(0, 0, lambda a, b: max(a, b) + 1, lambda a, b: a + b + 1)


def _rounded(e: Expression, p: Polynomial, x: float, expected: object, actual: float) -> bool:
    """Return whether a float is the exact value up to its roundings, as float arithmetic is not a semiring.

    The numbers are non-negative, so nothing cancels.
    """
    exact = p(RATIONALS.dictionary, Fraction(x))
    error = e(_ROUNDINGS, 0) * Fraction(1, 2**53)
    if error >= 1 or exact > Fraction(2) ** 1000 or (exact and exact < Fraction(1, 2**1000)):
        return True  # there is no bound: the computation is too long, or leaves the range of floats
    return math.isfinite(actual) and abs(Fraction(actual) - exact) <= exact * error / (1 - error)


INTEGERS = Semiring(
    "integers", Dictionary(0, 1, operator.add, operator.mul), lambda rng: [-2, 0, 1, rng.randint(-(10**9), 10**9)]
)
RATIONALS = Semiring(
    "rationals",
    Dictionary(Fraction(0), Fraction(1), operator.add, operator.mul),
    lambda rng: [Fraction(-3, 7), Fraction(0), Fraction(rng.randint(-999, 999), rng.randint(1, 999))],
)
BOOLEANS = Semiring("booleans", Dictionary(False, True, operator.or_, operator.and_), lambda rng: [False, True])
TROPICAL = Semiring("tropical (min, +)", Dictionary(math.inf, 0, min, operator.add), lambda rng: [math.inf, 0, 1, -5])
MATRICES = Semiring(
    "matrices 2 x 2",
    Dictionary(((0, 0), (0, 0)), ((1, 0), (0, 1)), _matrix_sum, _matrix_product),
    lambda rng: [((0, 1), (0, 0)), _random_matrix(rng), _random_matrix(rng)],
)
FLOATS = Semiring(
    "floats",
    Dictionary(0.0, 1.0, operator.add, operator.mul),
    lambda rng: [0.0, 0.5, 1.0, rng.uniform(0.1, 1.1)],
    _rounded,
)
INTERVALS = Semiring(
    "intervals",
    Dictionary(interval(0, 0), interval(1, 1), Interval.__add__, Interval.__mul__),
    lambda rng: [interval(-1, 1), interval(0, 1), interval(-0.75, -0.5)],
    _encloses,
)

SEMIRINGS = (INTEGERS, RATIONALS, BOOLEANS, TROPICAL, MATRICES, FLOATS, INTERVALS)
