"""The limit of a derivative at a singular point, in place of NaN.

A rule gives NaN where its formula has no value: zero times infinity, or the derivative of a kink's weight. If the
program is smooth there all the same (`norm(x)**2` at 0), its derivative is the limit from nearby points, which the mode
`effgrad.modes.nearby` computes along paths from four sides or more. If all limits agree, they are the derivative. For a
first derivative, opposite sides are averaged first: like the element of least norm elsewhere, a kink gets the mean. All
other cases stay NaN. A side that leaves the domain of the program (`sqrt` of a negative number) is left out.

A rule gives NaN too where a quotient has a denominator so small that it may lose its digits in a sum. If there is no
limit, no such sum is taken, and the derivative is that of the formula, if a coarse value beside the point is near it.
"""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from effgrad.arrays.batched_value import Batched
from effgrad.arrays.layout import DOUBLES
from effgrad.arrays.traced import Traced
from effgrad.arrays.value import Smooth, Tracer, depends
from effgrad.effects import handled
from effgrad.effects.confined import run_confined
from effgrad.errors import EffgradError
from effgrad.modes.beside_norms import BesideNorms
from effgrad.modes.nearby import Nearby
from effgrad.primitives.kinks import Kink
from effgrad.primitives.quotients import Divide, Division
from effgrad.trees import flatten
from effgrad.vocabulary import Function, Option, Tree, Value

_sum, _isnan = np.add.reduce, np.isnan
Computation = Callable[[list[Value]], list[Value]]
# Limits from two sides that differ by more than this, relative to the largest number, do not agree.
AGREEMENT = 1e-8
# Limits agree if they differ by less than this, relative to the size of the value over that of the point (to the power
# of the order): they are then zero up to rounding.
ROUNDING = 1e-13
# A formula is kept for a first derivative if its limit differs by less, since the limit may be the less accurate one.
ALIKE = 1e-6
# A formula is trusted if it differs from a coarse value by less than this, relative to the largest number.
COARSE = 0.1
# The number of runs with other rounding errors, which show the digits that a formula has lost.
RUNS = 3
# The length of a direction near a singular point, relative to the size of the point.
STEP = 1e-3
# The errors of a program that has no series beside the point: a function is refused there, a decomposition does not
# converge, or a series nests too deeply.
NO_SERIES = EffgradError, np.linalg.LinAlgError, RecursionError
# The errors that say nothing about the numbers of a run beside the point: a mistake in the program or in a rule.
MISTAKES = TypeError, AttributeError, NameError, SystemError, MemoryError
# The largest number of directions tried, until the program is defined along two of them.
DIRECTIONS = 8


def completed(
    derivative: Value, compute: Function, point: Sequence[Value], value: Callable[[], Value],
    orders: Sequence[int] = (1,),
) -> Tree:  # fmt: skip
    """Return a derivative with its limit in place of each NaN, unless the program's value is NaN.

    Arguments:
        derivative: a pytree, the result of `compute(*point)`.
        compute: the derivative as a function of the point.
        point: the arguments of `compute`, pytrees.
        value: a function that returns the value of the program at the point.
        orders: the order of the derivative, or of each derivative in a list. The orders of the derivatives that the
            program itself takes are added to them.
    """
    leaves, tree = flatten(derivative)
    inputs, structure = flatten(tuple(point))
    if handled(Smooth):
        _note(inputs, max(orders))
        return derivative
    if handled(Division) or not any(map(undefined, leaves)):
        return derivative
    values = flatten(value())[0]
    if any(map(undefined, values)):
        return derivative

    def at(x: list[Value]) -> list[Value]:
        return flatten(compute(*structure.unflatten(x)))[0]

    if set(orders) == {1} and (norms := run_confined(_beside_norms, at, inputs)) is not None:
        return tree.unflatten(list(map(_with_numbers, leaves, norms)))
    return tree.unflatten(run_confined(_from_limits, at, inputs, leaves, _size(values), orders))


def _from_limits(
    compute: Computation, inputs: list[Value], leaves: list[Value], size: float, orders: Sequence[int]
) -> list[Value]:
    """Return the leaves of a derivative with limits in place of NaN; `size` is that of the program's value."""
    with Divide():
        formula = compute(inputs)
    close = not any(map(undefined, formula))
    if close and _is_steady(compute, inputs, formula, leaves):
        return formula
    try:
        found = _limits(compute, inputs, max(orders), close)
    except OverflowError:
        return formula
    if found is None:
        return leaves
    sides, coarse, around = found
    reach, each, limits = _size(inputs), len(leaves) // len(orders), []
    for place, leaf in enumerate(leaves):
        order = orders[place // each] + around
        limit = _replaced(leaf, _each(sides, place), order, _rounding(size, reach, order))
        limits.append(_filled(limit, formula[place], _each(coarse, place)))
    tolerance = ALIKE if max(orders) + around == 1 else 10 * AGREEMENT
    return formula if close and all(_agree(*pair, tolerance) for pair in zip(limits, formula, strict=True)) else limits


def _beside_norms(compute: Computation, inputs: list[Value]) -> list[Value] | None:
    """Return first derivatives in which roots of sums of squares are norms; None if something else is singular too."""
    if handled(Kink) or not all(map(_is_inexact, inputs)):
        return None
    with BesideNorms() as norms:
        try:
            found = [norms.primal(part) for part in compute(list(map(norms.variable, inputs)))]
        except NO_SERIES:
            return None
    return None if norms.order > 1 or norms.kinked or any(map(undefined, found)) else found


def _with_numbers(leaf: Value, found: Value) -> Value:
    """Return a leaf with numbers in place of each NaN."""
    if not undefined(leaf):
        return leaf
    return _in_form_of(leaf, np.where(np.isnan(leaf), found, leaf))


def _in_form_of(leaf: Value, found: Value) -> Value:
    """Return an array of NumPy's in the dtype of a leaf, or as a number of its class."""
    return np.asarray(found, leaf.dtype) if type(leaf) is np.ndarray else type(leaf)(found)


def _is_steady(compute: Computation, inputs: list[Value], formula: list[Value], leaves: list[Value]) -> bool:
    """Return whether a formula keeps its value when only the rounding errors in it change.

    Digits that it has lost are not the same at inputs that differ by rounding errors.
    """
    if not all(map(_is_inexact, inputs)):
        return False
    rng, moved = np.random.default_rng(0), [not undefined(leaf) for leaf in leaves]
    for _ in range(RUNS):
        with Divide():
            try:
                found = compute([_rounded_otherwise(rng, x) for x in inputs])
            except MISTAKES:
                raise
            except Exception:  # also of the program itself, which may reject numbers beside the point
                return False
        if not all(_agree(*pair, 10 * AGREEMENT) for pair in zip(found, formula, strict=True)):
            return False
        moved = [was or bool(np.any(a != b)) for was, a, b in zip(moved, found, formula, strict=True)]
    return all(moved)


def _rounded_otherwise(rng: np.random.Generator, leaf: Value) -> Value:
    """Return numbers that differ by several rounding errors, in elements that are zero of the largest one."""
    size = np.where(leaf == 0, _size([leaf]) or 1.0, leaf)
    unit = float(np.finfo(np.result_type(leaf)).eps)
    return (leaf + size * unit * rng.uniform(8, 64, np.shape(leaf)) * rng.choice((-1.0, 1.0), np.shape(leaf)))[()]


def _limits(
    compute: Computation, inputs: list[Value], order: int, close: bool
) -> tuple[list[Value], list[Value], int] | None:
    """Return the limits and coarse values from each side, and how many derivatives there are around those of `order`.

    They are None if the program has no series beside the point, or does not have two sides. `close` says that the point
    is only near a singular one, and then the distance from it counts relative to its size.
    """
    if not all(map(_is_inexact, inputs)):
        return None
    # Inside `kinks` a side may be chosen; then opposite sides are not averaged, as for an order above 1.
    sides: list[Value] = []
    coarse: list[Value] = []
    around, inside, done = int(handled(Kink)), 0, 0
    for direction in _directions(inputs, close):
        for sign in (1.0, -1.0):
            with Nearby(done) as nearby:
                try:
                    found = compute([nearby.variable(x, sign * w) for x, w in zip(inputs, direction, strict=True)])
                    both = [nearby.limits(part) for part in found]  # computes the series that were not yet needed
                except NO_SERIES:
                    return None
                sides.append(None if nearby.outside else [limit for limit, _ in both])
                coarse.append(None if nearby.outside else [value for _, value in both])
                done = nearby.done
                around = max(around, nearby.order - order)
        inside += sides[-2:] != [None, None]
        if inside == 2:
            return sides, coarse, around
    return None


def _agree(limit: Value, formula: Value, tolerance: float) -> bool:
    """Return whether a limit is that of the formula, which then has not lost more digits than the limit may have."""
    size = np.max(np.abs(limit), initial=0.0)
    return bool(np.all(np.abs(limit - formula) <= tolerance * size))


def _filled(limit: Value, formula: Value, coarse: list[Value]) -> Value:
    """Return a limit with the value of the formula in place of each NaN, if it is near a coarse value from some side.

    If it is not, it has lost its digits.
    """
    if not undefined(limit):
        return limit
    with np.errstate(invalid="ignore"):
        size = COARSE * np.max(np.abs(formula), initial=0.0)
        near = np.any([np.abs(side - formula) <= size for side in coarse if side is not None], axis=0)
    filled = np.where(np.isnan(limit) & near, formula, limit)
    return filled if type(limit) is np.ndarray else type(limit)(filled)


def _rounding(size: float, reach: float, order: int) -> float:
    """The size of the rounding error in a derivative that is zero; 0 if that is not finite."""
    left = ROUNDING * size
    for _ in range(order):  # not `reach**order`, which may underflow to 0
        left /= reach or 1.0
    return left if math.isfinite(left) else 0.0


def _each(sides: list[Value], place: int) -> list[Value]:
    """Return one leaf of the limits from each side, or None for a side that leaves the domain."""
    return [side and side[place] for side in sides]


def _size(leaves: Sequence[Value]) -> float:
    """The largest absolute value of the finite numbers in leaves."""
    numbers = [np.asarray(leaf) for leaf in leaves if getattr(leaf, "dtype", np.dtype(float)).kind in "fciu"]
    return max((float(np.max(np.abs(x), initial=0.0, where=np.isfinite(x))) for x in numbers), default=0.0)


def value_of(value: Value, f: Function, *args: Value, **kwargs: Option) -> Value:
    """Return the value of a program that ran inside a derivative, corrected if it has a NaN.

    Derivatives that the program takes itself are NaN at singular points, because limits are only taken outside of
    other derivatives. So a program with a NaN runs again, outside.
    """
    if type(value) in DOUBLES and value == value:
        return value
    if not any(map(undefined, flatten(value)[0])) or handled(Smooth):
        return value
    return f(*args, **kwargs)


def _note(inputs: list[Value], order: int) -> None:
    """Report the order of a derivative, plus those around it, to the limit around them, or mark a staged program."""
    for value in inputs:
        around = 0
        while isinstance(value, Traced | Batched) and not isinstance(value.owner, Nearby | BesideNorms):
            if type(value) is Batched:
                value.owner.differentiated = True
            value, around = value.primal, around + isinstance(value, Traced)
        if isinstance(value, Tracer) and isinstance(value.owner, Nearby | BesideNorms):
            value.owner.order = max(value.owner.order, around + order)
            return
        if isinstance(value, Tracer) and hasattr(value.owner, "differentiated"):  # a staged program
            value.owner.differentiated = True


def undefined(leaf: Value) -> bool:
    if type(leaf) in (float, np.float64, complex, np.complex128):
        return bool(leaf != leaf)
    if type(leaf) is not np.ndarray or leaf.dtype.kind not in "fc":
        return False
    total = _sum(leaf, axis=None)
    return bool(total != total) and bool(_isnan(leaf).any())


def _is_inexact(leaf: Value) -> bool:
    plain_array = isinstance(leaf, np.ndarray) and leaf.dtype.kind in "fc"
    return not depends(leaf) and (plain_array or isinstance(leaf, float | complex))


def _directions(inputs: list[Value], relative: bool) -> Iterator[list[Value]]:
    """Iterate over directions in general position: alternately with positive elements and with either sign."""
    rng = np.random.default_rng(0)
    scales = [STEP * (_size([leaf]) or 1.0) if relative else 1.0 for leaf in inputs]
    for turn in range(DIRECTIONS):
        signs = (-1.0, 1.0) if turn % 2 else (1.0,)
        yield [_direction(rng, leaf, signs) * scale for leaf, scale in zip(inputs, scales, strict=True)]


def _direction(rng: np.random.Generator, leaf: Value, signs: tuple[float, ...]) -> Value:
    shape = np.shape(leaf)
    real = (rng.uniform(0.5, 1.5, shape) * rng.choice(signs, shape))[()]
    return real * np.exp(2j * np.pi * rng.uniform(size=shape))[()] if np.iscomplexobj(leaf) else real


def _replaced(leaf: Value, sides: list[Value], order: int, rounding: float) -> Value:
    """Return a leaf with each NaN replaced by the limit from all sides, if these agree or differ by `rounding`."""
    if not undefined(leaf):
        return leaf
    pairs: list[Value] = []
    for one, other in zip(sides[::2], sides[1::2], strict=True):
        if one is not None and other is not None and order == 1:
            pairs.append((np.asarray(one) + other) / 2)
        else:
            pairs += [np.asarray(side) for side in (one, other) if side is not None]
    with np.errstate(invalid="ignore"):
        mean = sum(pairs) / len(pairs)
        # Opposite sides may cancel, so the tolerance is relative to their size and not to that of their mean.
        known = [np.asarray(side) for side in sides if side is not None]
        size = max(np.abs(one[np.isfinite(one)]).max(initial=0.0) for one in known)
        near = max(AGREEMENT * size, rounding)
        agree = np.all([(np.abs(one - mean) <= near) | (one == mean) for one in pairs], axis=0)
    # An infinite second derivative may be that of a kink. So an infinite limit counts only if the formula is infinite
    # too, and the derivative is a first one or a side leaves the domain.
    ended = np.isinf(leaf) & (order == 1 or any(side is None for side in sides))
    agree &= np.isfinite(mean) | ended
    return _in_form_of(leaf, np.where(np.isfinite(leaf), leaf, np.where(agree, mean, np.nan)))
