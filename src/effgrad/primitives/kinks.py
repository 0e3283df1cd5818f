"""Kinks, points where a function is not smooth: ties of a maximum, `abs` at 0, `clip` at a bound, a norm at 0.

A rule that meets a kink performs the operation `Kink.take`. Without a handler the derivative there is the documented
default: the minimum-norm element of the subdifferential (0 for `abs`, the average at ties), and 1 for `clip` at its
bounds.

The weight at a kink is a step function of a distance: `abs` has the partial `2 step(x) - 1`, a maximum has
`step(a - b)`, and a norm y of x has `x * inverse(y)`. Under a further derivative a step is an operation. Its derivative
at 0 is NaN, never 0, since `abs` has no second derivative at 0. The second derivative of `abs(x)**2` is the limit of
those near the point, which `effgrad.modes.nearby` finds. For this, a step, a spike and an inverse have Laurent series
like any operation.
"""

from collections import Counter

import numpy as np

from effgrad.arrays import counterparts, laurent
from effgrad.arrays.batched_value import Batched
from effgrad.arrays.counterparts import own
from effgrad.arrays.layout import size_of
from effgrad.arrays.traced import Traced
from effgrad.arrays.value import Tracer, depends, plain
from effgrad.effects import Effect, Handler, handled, operation
from effgrad.errors import NotSmooth
from effgrad.primitives import machine_code
from effgrad.primitives.partials import Factored
from effgrad.primitives.primitive import Primitive, elementwise, not_at_zero
from effgrad.vocabulary import Axis, Value


class Kink(Effect):
    """The effect of meeting points where a function is not smooth."""

    @operation
    def take(self, name: str, at: Value, left: Value, right: Value, default: Value) -> Value:
        """Return the partial of `name`, given its default and, where `at` holds, its limits from the left and right."""


def kink(name: str, at: Value, left: Value, right: Value, default: Value) -> Value:
    """Return `default`, or the partial that a handler of `Kink` chooses where the function is not smooth.

    `at` is a function that gives the mask of these points. `left` and `right` may be functions too. Without a handler
    none of them is called.
    """
    if not handled(Kink):
        return default
    points = at()
    if not np.any(points):
        return default
    left, right = (side() if callable(side) else side for side in (left, right))
    return Kink.take(name, points, left, right, default)


def _spike(distance: Value) -> Value:
    return np.where(distance == 0, np.nan, 0.0)[()]


def _spike_series(distance: laurent.Laurent) -> laurent.Laurent:
    # A spike has order -1. Where the function is smooth, it is multiplied by a jump of order 2 or more, and the product
    # vanishes. Where the function is not smooth, the jump has order 0, and the product is infinite.
    order = distance.order()
    at = (distance.start + order >= 2) & (order < len(distance.coefficients))
    return laurent.Laurent(-1, laurent.constant(at * 1.0).coefficients)


def _step_series(distance: laurent.Laurent, at_zero: laurent.Laurent) -> laurent.Laurent:
    return laurent.constant(np.heaviside(laurent.sign(distance), at_zero.plain()))


def _inverse(y: Value) -> Value:
    with np.errstate(divide="ignore"):
        return np.where(y == 0, 0.0, np.reciprocal(y, dtype=np.result_type(y, np.float16)))[()]


# The derivative of a step, which is NaN at 0, because no number is right there.
spike: Primitive = elementwise(
    _spike, lambda y, d: spike(d), name="spike", series=_spike_series, analytic=not_at_zero,
    counterpart=own("spike", counterparts.spike),
)  # fmt: skip
step = elementwise(
    np.heaviside, lambda y, d, at_zero: spike(d), None, name="step", series=_step_series, analytic=not_at_zero,
    counterpart=own("heaviside", counterparts.step),
)  # fmt: skip
# 1 / y, but 0 at y = 0, which is the convention for norms.
inverse = elementwise(
    _inverse, lambda r, y: (spike(y) - r) * r, name="inverse",
    series=lambda y: laurent.power(y, -1.0, of_zero=0.0), analytic=not_at_zero,
    counterpart=own("inverse_or_zero", counterparts.inverse),
)  # fmt: skip
# `reciprocal_root` is 1 / y for a root y of a number that may be a square, so that y may have a kink at 0. Its
# derivative contains `kinked`, which is 0 at the point and a spike in the series infinitely near it.
kinked = elementwise(
    lambda y: 0.0 * y, lambda z, y: 0.0, name="kinked", series=_spike_series, analytic=not_at_zero,
    counterpart=own("kinked", lambda xp, y: 0.0 * y),
)  # fmt: skip
reciprocal_root = elementwise(
    np.reciprocal,
    lambda r, y: (kinked(y) - r) * r,
    name="reciprocal",
    # A root that is zero all along the path has an argument that is zero too, so its derivative is taken as 0.
    series=lambda y: laurent.power(y, -1.0, of_zero=0.0), analytic=not_at_zero,
    code=machine_code.RECIPROCAL,
    counterpart=own("reciprocal", lambda xp, y: 1.0 / y),
)

# A reciprocal, but NaN where it is 0, since its argument is infinite there, or negative, since its argument is outside
# the domain. The series infinitely near is unchanged. A negative zero is at the end of the domain.
nan_outside = elementwise(
    lambda r: np.where(is_outside(r), np.nan, r)[()],
    lambda y, r: np.where(is_outside(plain(r)) & (plain(r) != 0), np.nan, 1.0),
    name="bounded", series=lambda r: r, analytic=not_at_zero,
    counterpart=own("bounded", lambda xp, r: xp.where(is_outside(r), xp.nan, r)),
)  # fmt: skip


def _missing(lost: Value) -> Value:
    return lost * np.nan


def _series_of_missing(lost: laurent.Laurent) -> laurent.Laurent:
    return laurent.unknown(lost) if lost.coefficients.any() else lost


# The unknown derivative in an element that a function has left out because it is 0: NaN, or 0 for a constant zero.
missing: Primitive = elementwise(
    _missing, lambda y, lost: missing(lost), series=_series_of_missing, analytic=lambda lost: False, name="missing",
    counterpart=own("missing", lambda xp, lost: lost * xp.nan),
)  # fmt: skip


def _through_missing(v: Value, y: Value, kept: Value, lost: Value) -> Value:
    return v * np.where(plain(v) == 0, 0.0, missing(lost))[()]


def _series_of_dropping(kept: laurent.Laurent, lost: laurent.Laurent) -> laurent.Laurent:
    return laurent.unknown(kept, lost) if lost.coefficients.any() else kept


# `dropping(kept, lost)` is `kept`, which has another shape beside the point: `lost` is the total of elements left out.
dropping = elementwise(
    lambda kept, lost: kept, 1, Factored(lambda y, kept, lost: missing(lost), _through_missing, _through_missing),
    name="dropping", series=_series_of_dropping, analytic=lambda kept, lost: False,
    counterpart=own("dropping", lambda xp, kept, lost: kept),
)  # fmt: skip


def without(kept: Value, *lost: Value) -> Value:
    """Return `kept` as what remains of a value of which the elements `lost` are 0, and so were left out."""
    for part in lost:
        if size_of(part) and depends(part):
            kept = dropping(kept, np.sum(part))
    return kept


def is_outside(reciprocal: Value) -> Value:
    """Whether a reciprocal that is positive in a domain is 0 or negative."""
    if np.iscomplexobj(reciprocal):
        return reciprocal == 0
    return (reciprocal <= 0) & (reciprocal > -np.inf)


def differentiated(value: Value) -> bool:
    """Return whether a value that a rule is given, or the batch that it stands for, is itself being differentiated."""
    while type(value) is Batched:
        value = value.primal
    return isinstance(value, Traced)


def derivative_order(value: Value) -> int:
    """Return how many derivatives are taken of a value, by nested ones or by one of higher order."""
    order = 0
    while isinstance(value, Tracer):
        order += getattr(value.owner, "order", 1) if isinstance(value, Traced) else 0
        value = value.primal
    return order


def nested(distance: Value, at: Value) -> bool:
    """Return whether a weight is itself differentiated at a kink, where `at` holds, and so has to be an operation."""
    return differentiated(distance) and (isinstance(at, Tracer) or bool(np.any(at))) and not handled(Kink)


def step_weight(weight: Value, at: Value, distance: Value, at_zero: Value) -> Value:
    """Return a weight for further differentiation, which is a step of a distance where `at` holds.

    `distance` is a function without arguments that gives the distance.
    """
    return np.where(at, step(distance(), at_zero), weight)


def quotient_or_zero(a: Value, y: Value) -> Value:
    """Return `a / y`, with 0 where y is 0 and NaN where y has overflowed.

    Its derivative is that of a quotient, `-(a / y) / y`, since the square of `1 / y` may underflow when this does not.
    """
    value = plain(y)
    zero = value == 0
    quotient = a / np.where(zero, 1.0, np.where(value == np.inf, np.nan, y))
    if differentiated(y) and (isinstance(zero, Tracer) or np.any(zero)):
        return np.where(zero, a * inverse(y), quotient)
    return quotient


def direction(y: Value, a: Value, b: Value) -> Value:
    """Return `a / hypot(a, b)`.

    Under a further derivative it is computed from the smaller of a/b and b/a, where no digits cancel.
    """
    if not differentiated(y) or np.iscomplexobj(plain(y)):
        return quotient_or_zero(a, y)
    value, long = plain(y), np.abs(plain(a)) > np.abs(plain(b))
    zero = value == 0
    t = np.where(long, b, a) / np.where(zero, 1.0, np.where(value == np.inf, np.nan, np.where(long, a, b)))
    part = np.where(long, np.sign(plain(a)), t * np.sign(plain(b))) / np.sqrt(1 + t * t)
    return np.where(zero, a * inverse(y), part) if isinstance(zero, Tracer) or np.any(zero) else part


class Kinks(Handler[Kink]):
    """A handler that takes one side at every kink ("left", "right"), raises an error ("raise"), or counts ("report").

    Under "report", `counts` says how often each function met a kink. Each element counts once for each argument that is
    differentiated.
    """

    def __init__(self, choice: str) -> None:
        if choice not in ("left", "right", "raise", "report"):
            raise ValueError(f"kinks are taken 'left', 'right', 'raise' or 'report', not {choice!r}")
        self.choice = choice

    def enter(self) -> None:
        self.counts: Counter[str] = Counter()

    def take(self, name: str, at: Value, left: Value, right: Value, default: Value) -> Value:
        if self.choice == "raise":
            place = tuple(int(i[0]) for i in np.nonzero(at)) if np.ndim(at) else ()
            raise NotSmooth(
                f"{name} is not smooth at {np.count_nonzero(at)} of its points, first at index {place}; choose a side "
                "with effgrad.kinks('left') or 'right', or change the program"
            )
        if self.choice == "report":
            self.counts[name] += int(np.count_nonzero(at))
            return default
        side = left if self.choice == "left" else right
        return np.where(at, side, default) if np.ndim(at) else side


def first_of_ties(chosen: Value, axis: Axis, last: bool) -> Value:
    """Return a mask of the first (or last) chosen element of each group along `axis`."""
    moved = chosen.reshape(-1) if axis is None else chosen
    if isinstance(axis, tuple):
        order = [i for i in range(chosen.ndim) if i not in axis] + sorted(axis)
        moved = np.transpose(chosen, order)
        groups = moved.reshape((*moved.shape[: chosen.ndim - len(axis)], -1))
        return np.transpose(first_of_ties(groups, -1, last).reshape(moved.shape), np.argsort(order))
    moved = np.moveaxis(moved, -1 if axis is None else axis, -1)
    n = moved.shape[-1]
    at = n - 1 - np.argmax(np.flip(moved, -1), -1) if last else np.argmax(moved, -1)
    weights = np.expand_dims(at, -1) == np.arange(n)
    return weights.reshape(chosen.shape) if axis is None else np.moveaxis(weights, -1, axis)
