"""A truth value that a program computes is Python's `True` or `False`, also where it is compared by `is`."""

import math

import numpy as np
import pytest

import effgrad


def by_constant(x):
    large = x > 0.5
    if large is True:
        return x * x
    if large is not False:
        return x * 5
    return x * 3 if (x < 0.2) is False else -x


def by_name(x):
    last, turns = None, 0
    for value in (x - 0.5, 0.5 - x, x, x - 0.6):
        sign = value > 0
        turns += last is not None and sign is not last
        last = sign
    return x * turns


def by_match(x):
    match x > 0.5, [x < 0.6, {"nan": math.isnan(x)}]:
        case (True, [False, {"nan": False}]):
            return x * x
        case (True, [True | None, _]) | (None, _):
            return x * 3
        case (False as small, [inside, _]) if inside is not small:
            return x * 7
    return x


def by_pattern_in_a_class(x):
    class Sizes:
        match x > 0.5:
            case True:
                power = 2
            case _:
                power = 3

    assert [name for name in vars(Sizes) if not name.startswith("__")] == ["power"]
    return x**Sizes.power


@pytest.mark.parametrize("f", [by_constant, by_name, by_match, by_pattern_in_a_class])
@pytest.mark.parametrize("x", [0.1, 0.3, 0.55, 0.7, np.float64(0.7)])
def test_truth_values_compare_by_identity_as_in_python(f, x):
    """Compiled, `(x > 0.5) is True` was always false, and so was the pattern `True`: wrong values without an error."""
    h = 1e-6
    value, slope = f(x), (f(x + h) - f(x - h)) / (2 * h)
    for transformed in (effgrad.value_and_grad(f), effgrad.compile(effgrad.value_and_grad(f))):
        found = transformed(x)
        assert found[0] == pytest.approx(value, rel=1e-15)
        assert found[1] == pytest.approx(slope, rel=1e-8)
    assert effgrad.compile(f)(x) == pytest.approx(value, rel=1e-15)


def test_other_objects_compare_by_identity():
    numbers = [float("1000.5"), float("1000.5")]

    def f(x):
        first, second = numbers
        same = [first is second, first is numbers[0], (1 > 0) is True]
        return x if same == [False, True, True] else -x

    assert effgrad.grad(f)(1.0) == f(1.0) == 1.0


def test_comparisons_of_plain_numbers_are_no_identity():
    """`k > m` of two names that certainly hold numbers was read as `k is not m`, in every mode."""

    def f(x):
        k, m, taken = 1, 4, []
        for i in range(3):
            if k > m:
                taken.append("greater")
            if k + 1000 == m + 997:
                taken.append("equal")
            if i < 2:
                taken.append("less")
        return x * len(taken)

    assert effgrad.grad(f)(1.0) == effgrad.compile(effgrad.grad(f))(1.0) == f(1.0) == 5.0
