"""Evaluation infinitely near a point, which gives the limit of a derivative whose formula gives NaN at the point.

The program, with the derivatives that it takes, runs at x + w t**2 for an infinitesimal t and a direction w in general
position. The functions that are singular at x are smooth on this path, so every rule holds unchanged, and the result is
a series in t. Its standard part is the limit of the derivative along the path. If the derivative exists, it is this
limit, so paths on several sides have to agree. The path is quadratic, so that `sqrt` of a coordinate has a series.
Shamseddine and Berz 1996, Exception handling in derivative computation with nonarchimedean calculus.
"""

from collections.abc import Iterator

import numpy as np

from effgrad.arrays.laurent import TERMS, Laurent
from effgrad.arrays.traced import Traced
from effgrad.arrays.value import Smooth, constant, owned_by, plain
from effgrad.effects import Handler
from effgrad.modes.series_rules import leaves_domain, series_of
from effgrad.primitives import infinitesimal
from effgrad.primitives.infinitesimal import Along
from effgrad.primitives.primitive import Primitive
from effgrad.vocabulary import Option, Value

# The elements of an array with a series, and the series on all paths; all operations on a path, and their elements.
LARGEST, LONGEST = 100_000, 80_000
OPERATIONS, ELEMENTS = 200_000, 100_000_000


class NearbyValue(Traced):
    """A value at a point; its shadow is what is known of the value infinitely near the point."""

    __slots__ = ()


class Nearby(Handler[Smooth]):
    """A handler that evaluates at a point, and along the path as a Laurent series in t where that is needed."""

    def __init__(self, done: int = 0) -> None:
        # `outside`: the path has left a domain; `order`: that of the derivatives; `merged`: nearly equal numbers are
        # merged; `done`, `run`, `held`: how many series (on all paths), operations, and their elements.
        self.outside, self.order, self.merged, self.done, self.run, self.held = False, 0, False, done, 0, 0

    def apply(self, primitive: Primitive, *args: Value, **params: Option) -> Traced:
        arguments = tuple([a.shadow if owned_by(a, self) else constant(a) for a in args])
        with np.errstate(all="ignore"):
            result = primitive.function(*map(self.primal, args), **params)
            self.run, self.held = self.run + 1, self.held + np.size(result)
            if self.run > OPERATIONS or self.held > ELEMENTS:
                raise OverflowError("the program is too long")
            self._find_standard(along := Along(primitive, arguments, params, result))
            return NearbyValue(self, result, along)

    def _find_standard(self, along: Along) -> None:
        """Find the standard part of a result, by the program's own function if that is analytic, or by its series."""
        along.standard = along.by_function()
        if along.standard is None and along.standards() is not None and infinitesimal.says_by_series(along.primitive):
            found = series_of(along.primitive, along.probes(), along.results(), along.params)
            if not found.merged and np.isfinite(found.coefficients).all() and found.is_bounded():
                along.standard = found.standard()
        if along.standard is not None:
            along.analytic = True
        elif infinitesimal.combines(along):  # a later factor may be so small that no further terms are needed
            for factor, terms in infinitesimal.leading_terms_needed(along):
                self.find(factor, terms)
            along.series = self._series(along, TERMS)
        else:
            self.find(along, 1)
        if along.standard is None and along.series is not None and along.series.is_bounded():
            along.standard = along.series.standard()

    def find(self, along: Along, terms: int) -> None:
        """Compute the series of a value up to the exponent `terms`, and those of earlier values that it needs."""
        waiting = [self._steps(along, terms)]
        while waiting:
            if (request := next(waiting[-1], None)) is None:
                waiting.pop()
            else:
                waiting.append(self._steps(*request))

    def _steps(self, along: Along, terms: int) -> Iterator[tuple[Along, int]]:
        """Iterate over the values that have to be known, and then compute a series from them."""
        asked, terms, end = min(terms, TERMS), min(terms, TERMS), -np.inf
        while not along.is_known(terms):
            yield from infinitesimal.arguments_needed(along, asked)
            along.series = self._series(along, asked)
            if along.series.end >= terms or asked == TERMS or along.series.end <= end:
                along.asked = terms
                return
            end = along.series.end
            asked = min(asked + terms - end, TERMS)

    def _series(self, along: Along, terms: int) -> Laurent:
        self.done += 1
        if np.size(along.result) > LARGEST or self.done > LONGEST:
            raise OverflowError("an array is too large for series, or the program too long")
        with np.errstate(all="ignore"):
            series = along.series_known()
            found = series_of(along.primitive, series, along.results(), along.params, terms)
            self.merged |= found.merged
            total = infinitesimal.is_total(along.primitive)
            self.outside |= leaves_domain(found, along.result, series, total)
        return found

    def primal(self, value: Value) -> Value:
        """Return a value at the point itself."""
        return plain(value)

    def variable(self, primal: Value, direction: Value) -> Traced:
        """Return an input of the program that moves along a direction."""
        coefficients = np.zeros((TERMS, *np.shape(primal)), np.result_type(primal))
        coefficients[0], coefficients[2] = primal, direction
        return NearbyValue(self, primal, Along.of_series(primal, Laurent(0, coefficients)))

    def limits(self, value: Value) -> tuple[Value, Value]:
        """Return the limit of a value along the path, NaN where there is none, and a coarse value, or NaN."""
        if not owned_by(value, self):
            return plain(value), plain(value)
        along: Along = value.shadow
        self.find(along, TERMS if self.merged else 1)
        return along.series_or_standard().limits(self.merged)
