"""Numbers whose class changes in a loop, between Python's and NumPy's, are those of the plain program, to the class.

Each program runs plainly and compiled; a loop whose result depends on a class that only its values decide is unrolled.
"""

import warnings

import class_programs
import numpy as np
import pytest

import effgrad
from effgrad import grad

POINT = class_programs.POINT


def bound_to_a_truth(v):
    k = 0
    for i in range(40):
        k = v[i % 3] > 0
    return k + k


def bound_to_one_of_two_truths(v):
    k = 0
    for i in range(40):
        k = v[i % 3] > 0 and i > 3
    return k


def item_of_a_mixed_tuple(v):
    t = v[0]
    for i in range(40):
        t = t + (1.0 if isinstance((1, 2.5)[i % 2], int) else v[1])
    return t


def text_of_a_mixed_tuple(v):
    t = v[0]
    for i in range(40):
        t = t + float(f"{(1, 2.5)[i % 2]}1") * v[1]
    return t


def root_in_the_first_step(v):
    t = -1.0
    for _ in range(40):
        t = np.real(np.sqrt(t)) * 0.5 + 1j * v[0]
    return abs(t)


def whole_array_in_the_first_step(v):
    a = np.ones(3, int)
    for _ in range(40):
        a = (a // 2) * 0.9 + v
    return a.sum()


def truncated_in_the_first_step(v):
    a = np.zeros(3, int)
    for _ in range(40):
        a[0] = 1.7
        a = a + v
    return a.sum()


def no_step(v):
    t, i = 0, 0
    while i < v[0] - 40:
        t, i = t + v[0], i + 1
    return t


PROGRAMS = [
    bound_to_a_truth, bound_to_one_of_two_truths, item_of_a_mixed_tuple, text_of_a_mixed_tuple, root_in_the_first_step,
    whole_array_in_the_first_step, truncated_in_the_first_step, no_step,
]  # fmt: skip


def run_quietly(f, v):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return f(v.copy())


def assert_same_class(found, expected, text):
    """Compare two numbers to the bit; `np.float64` may stand for its base class `float`, and a float for an `int`.

    The latter is an integer that a loop leaves as it was, where it might have bound the name to a float.
    """
    both, stays = {type(found), type(expected)}, type(expected) is int and isinstance(found, float)
    assert stays or type(found) is type(expected) or both in ({float, np.float64}, {complex, np.complex128}), text
    np.testing.assert_allclose(found, expected, rtol=1e-13, err_msg=text)


@pytest.mark.parametrize("f", PROGRAMS)
def test_a_class_is_that_of_the_plain_program(f):
    """`bound_to_a_truth` was 2 for True: the truth value was added as the integer that `k` is before the loop."""
    assert_same_class(run_quietly(effgrad.compile(f), POINT), f(POINT), f.__name__)


# The plain program 988 squares an integer in each of 40 steps, and does not end.
@pytest.mark.parametrize("seed", [*range(60), *(pytest.param(s, marks=pytest.mark.sweep) for s in range(60, 988))])
def test_random_programs_have_the_classes_of_plain_ones(seed):
    f, text = class_programs.program(seed), class_programs.source(seed)
    try:
        expected = run_quietly(f, POINT)
    except (TypeError, ValueError, OverflowError, ZeroDivisionError):
        pytest.skip("the plain program raises")
    try:
        found = run_quietly(effgrad.compile(f), POINT)
    except OverflowError:
        assert abs(expected) >= 2**63, text
        return
    assert_same_class(found, expected, text)


def accumulated(v):
    t = 0
    for i in range(40):
        t += v[i % 3] * i
    return t


def greatest(v):
    best = 0.0
    for i in range(40):
        if v[i % 3] * i > best:
            best = v[i % 3] * i
    return best * v[0]


def hinge(v):
    t = 0
    for i in range(40):
        t = t + max(0, 1 - v[i % 3] * i) ** 2 - 0.1 * t
    return t


def truth_weights(v):
    t = 0.0
    for i in range(40):
        t = t + (v[i % 3] > 0 and i > 3) * v[0]
    return t


def complex_from_the_first_step(v):
    z = 0.0
    for i in range(40):
        z = 0.5 * z + np.exp(1j * v[i % 3])
    return np.abs(z)


def last_truth(v):
    t = v[0]
    for i in range(40):
        k = 0
        for j in range(i):
            k = v[j % 3] > 0.1 * i
        t = 0.9 * t + np.sin(v[1] * (k + 1))
    return t


def descended(v):
    a = 1.0
    for _ in range(40):
        a = a - 0.1 * np.cos(grad(lambda t: v[0] * t * t)(a))
    return a


def bisected(v):
    low, high = 0, 3
    for _ in range(60):
        middle = 0.5 * (low + high)
        if np.cos(middle) > 0.1:
            low = middle
        else:
            high = middle
    return low + high * v[1]


def greatest_from_0(v):
    best = 0
    for i in range(60):
        best = max(best, np.sin(i * v[0]) * v[1])
    return best


CAPTURED = [
    bisected, greatest_from_0, descended, accumulated, greatest, hinge, truth_weights, complex_from_the_first_step,
]  # fmt: skip


@pytest.mark.parametrize("f", CAPTURED)
def test_a_change_of_class_that_does_not_matter_is_captured(f):
    step, direction = 1e-6, np.array([0.3, -0.2, 0.5])
    expected = (f(POINT + step * direction) - f(POINT - step * direction)) / (2 * step)
    with warnings.catch_warnings():
        warnings.simplefilter("error", effgrad.StagingWarning)
        assert_same_class(effgrad.compile(f)(POINT), f(POINT), f.__name__)
        slope = effgrad.compile(grad(f))(POINT)
        curve = effgrad.compile(grad(lambda v: grad(f)(v) @ direction))(POINT)
    assert slope @ direction == pytest.approx(expected, rel=1e-7)
    np.testing.assert_allclose(curve, grad(lambda v: grad(f)(v) @ direction)(POINT), rtol=1e-9, atol=1e-12)


def test_an_inner_loop_without_a_step_keeps_the_class():
    step, direction = 1e-6, np.array([0.3, -0.2, 0.5])
    expected = (last_truth(POINT + step * direction) - last_truth(POINT - step * direction)) / (2 * step)
    assert run_quietly(effgrad.compile(grad(last_truth)), POINT) @ direction == pytest.approx(expected, rel=1e-7)
