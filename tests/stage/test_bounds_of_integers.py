"""The bounds of integers in captured loops, against all values that they have."""

import numpy as np
import pytest

from effgrad.stage.loop import element as elements
from effgrad.stage.loop.affine import Affine, Ranges, variable
from effgrad.stage.loop.buffers import constant, index, integer

OPERATIONS = (
    elements.FLOOR_DIVIDE, elements.primitive_of(np.remainder), elements.MULTIPLY, elements.MAXIMUM, elements.MINIMUM,
)  # fmt: skip


def drawn(random, names, depth=2):
    """A random integer of some loop variables: affine in them, and in quotients, remainders, products and extremes."""
    value = Affine(int(random.integers(-3, 4)))
    for name in names:
        value = value + variable(name) * int(random.integers(-2, 3))
    if depth and random.random() < 0.7:
        operation = OPERATIONS[int(random.integers(len(OPERATIONS)))]
        first = index(drawn(random, names, depth - 1))
        divides = operation in OPERATIONS[:2]
        second = constant(int(random.integers(1, 4))) if divides else index(drawn(random, names, depth - 1))
        value = value + integer(elements.element(operation, first, second)) * int(random.integers(-2, 3))
    return value


def at(value, point):
    """The integer, or the expression of integers, at a point."""
    if isinstance(value, Affine):
        return value.constant + sum(k * (point[x] if isinstance(x, str) else at(x, point)) for x, k in value.terms)
    if value.op in ("constant", "index"):
        return at(value.args[0], point) if value.op == "index" else int(value.args[0])
    return int(value.op.function(*[at(a, point) for a in value.args]))


@pytest.mark.thinned(8)
@pytest.mark.parametrize("seed", range(40))
def test_bounds_hold_for_all_values(seed):
    random = np.random.default_rng(seed)
    for _ in range(25):
        ranges, points = Ranges(), [{}]
        for name in ("i", "j", "k"):
            outer = list(ranges.bounds)
            low = drawn(random, outer, 1)
            high = low + Affine(int(random.integers(0, 4))) if random.random() < 0.4 else drawn(random, outer, 1)
            ranges.bounds[name] = low, high
            points = [
                {**point, name: value}
                for point in points
                for value in range(at(low, point), at(high, point) + 1)
            ]
        for _ in range(4):
            value = drawn(random, ("i", "j", "k"))
            numbers = [at(value, point) for point in points]
            low, high = ranges.lower(value), ranges.upper(value)
            assert low is None or not numbers or low <= min(numbers), (value, ranges.bounds)
            assert high is None or not numbers or high >= max(numbers), (value, ranges.bounds)
