"""Modes over fractions: exact, with fractions on either side of an operator."""

import operator
from fractions import Fraction

import pytest

from effgrad import checkpoint
from effgrad.fast import REVERSE
from effgrad.modes.forward import Forward

HALF = Fraction(1, 2)
OPERATORS = {operator.add: 1, operator.sub: -1, operator.mul: HALF, operator.truediv: -HALF / Fraction(2, 3) ** 2}


@pytest.mark.parametrize("operation", OPERATORS)
def test_a_fraction_on_the_left_of_a_traced_fraction(operation):
    # A traced value used to pass for a Fraction, whose operators then asked it for its numerator.
    with Forward() as forward:
        x = forward.variable(Fraction(2, 3), Fraction(1))
        y = operation(HALF, x)
        assert (HALF < x) is True and (HALF > x) is False
    assert (y.primal, y.shadow) == (operation(HALF, Fraction(2, 3)), OPERATORS[operation])


@pytest.mark.parametrize("mode", REVERSE)
def test_a_fraction_on_the_left_in_reverse(mode):
    with REVERSE[mode]() as activation:
        x = activation.variable(Fraction(2, 3))
        shadow = x.shadow
        activation.seed(HALF * x - Fraction(1) / x, Fraction(1))
    assert activation.cotangents([shadow]) == [HALF + Fraction(9, 4)]


@pytest.mark.parametrize("mode", REVERSE)
def test_a_checkpointed_part_may_return_a_fraction(mode):
    # Whether the second run gave the same was asked of NumPy, which knows no fractions.
    with REVERSE[mode]() as activation:
        x = activation.variable(Fraction(2, 3))
        shadow = x.shadow
        pair = checkpoint(lambda y: (y * y, HALF), x)
        activation.seed(pair[0] * pair[1], Fraction(1))
    assert activation.cotangents([shadow]) == [Fraction(2, 3)]
