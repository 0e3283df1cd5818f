"""Values infinitely near a point: their standard parts, and series where they are needed.

Most operations of a program are analytic at the point. Such a result has the standard part that the program's own
function gives, and no series. Series are computed where a function is singular, of its arguments, and where a factor
is infinitely large, of the other factor up to the term that the product needs: beside `1 / t**2` a factor `a * t**2`
needs only the standard part of `a`. So the search for a limit in a long program takes the time of a few runs.
"""

from collections.abc import Iterator

import numpy as np

from effgrad.arrays import laurent
from effgrad.arrays.laurent import TERMS, Laurent
from effgrad.primitives.primitive import Primitive
from effgrad.vocabulary import Params, Value


class Along:
    """A result along the path: the operation with its arguments, which are such results or plain values.

    `standard` is its standard part, or None if that is unknown or infinite; `series` a series of it, or None; `asked`
    the exponent up to which the series was asked for. `analytic` says that the operation is analytic at the standard
    parts of its arguments.
    """

    __slots__ = ("primitive", "arguments", "params", "result", "standard", "series", "asked", "analytic")

    def __init__(self, primitive: Value, arguments: tuple[Value, ...], params: Params, result: Value) -> None:
        self.primitive, self.arguments, self.params, self.result = primitive, arguments, params, result
        self.standard: Value = None
        self.series: Laurent | None = None
        self.asked, self.analytic = 0, False

    @staticmethod
    def of_series(primal: Value, series: Laurent) -> "Along":
        """Return an input of the program, whose series is known."""
        along = Along(None, (), {}, primal)
        along.standard, along.series, along.asked, along.analytic = primal, series, TERMS, True
        return along

    def is_known(self, terms: int) -> bool:
        """Whether the series is known up to an exponent, or cannot be known further."""
        found = self.series is not None and self.series.end >= terms
        return found or self.asked >= terms or (terms <= 1 and self.standard is not None)

    def standards(self) -> list[Value] | None:
        """The standard parts of the arguments, or None if one of them has none."""
        found = [a.standard if type(a) is Along else a for a in self.arguments]
        return None if any(type(a) is Along and a.standard is None for a in self.arguments) else found

    def results(self) -> list[Value]:
        """The arguments at the point itself."""
        return [a.result if type(a) is Along else a for a in self.arguments]

    def series_known(self) -> list[Laurent | None]:
        """The series of the arguments as far as they are known; None for plain ones."""
        return [a.series_or_standard() if type(a) is Along else None for a in self.arguments]

    def probes(self) -> list[Laurent | None]:
        """Series of the arguments that show whether the function is analytic: a series rule needs no second term."""
        standards = [a.constant() if type(a) is Along else None for a in self.arguments]
        if self.primitive.series is not None:
            return standards
        return [s and Laurent(0, np.concatenate([s.coefficients, np.ones_like(s.coefficients)])) for s in standards]

    def series_or_standard(self) -> Laurent:
        """The series as far as it is known, which may be its standard part alone."""
        return self.series if self.series is not None else self.constant()

    def by_function(self) -> Value:
        """The standard part by the function itself; None if it is not analytic there, or an argument has none."""
        standards = self.standards()
        if standards is None:
            return None
        same = all(type(a) is not Along or a.standard is a.result for a in self.arguments)
        value = self.result if same else self.primitive.function(*standards, **self.params)
        moving = [type(a) is Along for a in self.arguments]
        known = np.isfinite(value).all() and is_analytic(self.primitive, moving, self.params, value, standards)
        return value if known else None

    def constant(self) -> Laurent:
        """The standard part as a series of one term."""
        value = np.asarray(self.standard)
        return Laurent(0, value[None].astype(np.result_type(value, float), copy=False))

    def lowest(self) -> int:
        """A lower bound of the orders of all elements."""
        series = self.series_or_standard()
        return series.start if series.coefficients.any() else series.end

    def highest(self) -> int:
        """The largest order of an element whose order is known."""
        series = self.series_or_standard()
        return series.start + int(series.order().max(initial=0))

    def has_zeros(self) -> bool:
        """Whether the standard part of an element is zero or unknown."""
        return self.standard is None or not np.all(self.standard)


def is_analytic(
    primitive: Primitive, moving: list[bool], params: Params, value: Value, standards: list[Value]
) -> bool:
    """Whether a function is analytic at plain arguments: by its row or, without a series, by finite partials.

    `moving` says which arguments are not constant.
    """
    if primitive.series is not None or says_by_series(primitive):
        return primitive.analytic is not None and bool(primitive.analytic(*standards, **params))
    partials = [p for p, moves in zip(primitive.partials, moving, strict=False) if moves]
    return all(np.isfinite(partial(value, *standards)).all() for partial in partials if callable(partial))


def says_by_series(primitive: Primitive) -> bool:
    """Whether a function says by a series of few terms whether it is analytic."""
    return primitive.kind == "general" and primitive.analytic is None


def arguments_needed(along: Along, terms: int) -> Iterator[tuple[Along, int]]:
    """Iterate over the arguments that have to be known for a series up to an exponent, and up to which they have to."""
    moving = [a for a in along.arguments if type(a) is Along]
    primitive = along.primitive
    if len(moving) == 2 and _is_product(primitive):
        one, other = sorted(moving, key=_smallest_first)
        yield from _of_product(one, other, terms)
    elif len(moving) == 2 and primitive.series is laurent.divide:
        above, below = moving
        yield below, TERMS if below.has_zeros() else terms
        yield above, terms + below.highest()
    else:
        each = terms if along.analytic or _is_sum(primitive) or _is_product(primitive) else TERMS
        for argument in moving:
            yield argument, each


def combines(along: Along) -> bool:
    """Whether a result is a sum or a product of finite series, which gives some of its terms from those known."""
    known = all(_is_finite(a) for a in along.arguments if type(a) is Along)
    return known and (_is_product(along.primitive) or _is_sum(along.primitive))


def leading_terms_needed(along: Along) -> Iterator[tuple[Along, int]]:
    """Iterate over the factors that are zero beside an infinite one, and the terms up to their first, one by one."""
    moving = [a for a in along.arguments if type(a) is Along]
    if len(moving) == 2 and _is_product(along.primitive):
        for one, other in (moving, moving[::-1]):
            for terms in range(2, 2 - other.lowest() if one.has_zeros() and one.standard is not None else 2):
                if not one.series_or_standard().coefficients.any():
                    yield one, terms


def is_total(primitive: Primitive) -> bool:
    """Whether a function is defined everywhere, as a sum or a product is."""
    return _is_sum(primitive) or _is_product(primitive)


def _is_product(primitive: Primitive) -> bool:
    return primitive.series is laurent.multiply or (primitive.kind == "linear" and not _is_sum(primitive))


def _is_sum(primitive: Primitive) -> bool:
    """Whether a function is linear in all its arguments jointly."""
    return primitive.moves or primitive.push_jointly is not None or primitive.series in (laurent.add, laurent.subtract)


def _of_product(one: Along, other: Along, terms: int) -> Iterator[tuple[Along, int]]:
    """Iterate over the factors of a product: one that is small makes the other one count to fewer terms."""
    for first, second in ((one, other), (other, one)):
        yield first, terms - second.lowest() if _is_finite(second) else TERMS


def _smallest_first(along: Along) -> int:
    return 1 if along.standard is None else 2 - 2 * along.has_zeros()


def _is_finite(along: Along) -> bool:
    return along.series is None or bool(np.isfinite(along.series.coefficients).all())
