"""Loops that bind arrays to names again, and writes to these arrays after the loops, against the plain program."""

import warnings

import numpy as np
import pytest
import rebinding_programs

import effgrad
from effgrad import grad, jvp

POINT, DIRECTION = rebinding_programs.POINT, np.array([0.3, -0.2, 0.5, 0.1])


def two_names_of_one_value(v):
    a = v * 1.0
    for _ in range(40):
        a = np.sin(a)
        best = a
    a[0] = 5.0 * v[1]
    return np.sum(best**2)


def the_value_of_the_step_before(v):
    u = v * 1.0
    for _ in range(40):
        old = u
        u = 0.9 * u + 0.1 * np.roll(u, 1)
    u[0] = 0.0
    return np.sum(u * old)


def a_name_for_the_array_that_is_written_to(v):
    a = v * 1.0
    for t in range(40):
        a[t % 4] = a[(t + 1) % 4] * 0.9 + v[0]
        w = a
    a[0] = v[1]
    return np.sum(w**2)


def a_name_that_had_another_array(v):
    a, w = v * 1.0, v
    for t in range(40):
        a[t % 4] = a[(t + 1) % 4] * 0.9 + v[0]
        w = a
    w[0] = 1.0
    return np.sum(a**2)


def loops_in_turn(v):
    a, total = v * 1.0, 0.0
    for k in range(3):
        for _ in range(40):
            b = a
            a = np.sin(a) + b * 0.1
        a[k] = 0.3
        total = total + np.sum(a * b)
    return total


def another_name_without_a_step(v, until=40):
    x, n = v * 1.0, 0
    y = x
    while n < until and x[0] < 5:
        x = x * 0.9 + 0.1
        n += 1
    x[1] = 3.0 * v[0]
    return np.sum(x * y)


def no_step(v):
    return another_name_without_a_step(v, 0)


def a_name_for_the_array_of_an_outer_loop(v):
    a, c, d = v[::-1] * 0.5, v * 2.0, v * 1.0
    for i in range(40):
        c = np.where(v > 0, c, d) * 0.9
        for _ in range(2):
            a, d = 0.9 * a + 0.05 * d, c
        c[1:] = c[:-1] * 0.5 + 0.01 * i
    return np.sum(a**2) + np.sum(d * c)


def a_choice_of_arrays(v):
    a = v * 1.0
    best = a
    for i in range(40):
        a = a * 0.9 + 0.1
        if a[i % 4] > 0.5:
            best = a
    a[0] = 7.0
    return np.sum(best**2)


CAPTURED = [
    two_names_of_one_value, the_value_of_the_step_before, a_name_for_the_array_that_is_written_to, loops_in_turn,
    a_name_that_had_another_array, another_name_without_a_step, no_step, a_name_for_the_array_of_an_outer_loop,
]  # fmt: skip


def second(f):
    return grad(lambda v: grad(f)(v) @ DIRECTION)


def check(f, text, second_order):
    """Compare the value, the gradient with differences and with the eager one, and both nestings of second order."""
    expected = f(POINT.copy())
    assert effgrad.compile(f)(POINT.copy()) == pytest.approx(expected, rel=1e-12, nan_ok=True), text
    slope = grad(f)(POINT.copy())
    np.testing.assert_allclose(effgrad.compile(grad(f))(POINT.copy()), slope, rtol=1e-9, atol=1e-11, err_msg=text)
    if second_order:
        curve, tangent = second(f)(POINT.copy()), lambda v: jvp(grad(f), (v,), (DIRECTION,))[1]
        for run in (second(f), tangent):
            np.testing.assert_allclose(effgrad.compile(run)(POINT.copy()), curve, rtol=1e-8, atol=1e-10, err_msg=text)


@pytest.mark.parametrize("f", CAPTURED)
def test_names_share_arrays_after_a_loop(f):
    """`two_names_of_one_value` lost the write: each name had an array of its own after the loop."""
    step = 1e-5
    with warnings.catch_warnings():
        warnings.simplefilter("error", effgrad.StagingWarning)
        check(f, f.__name__, second_order=True)
    expected = (f(POINT + step * DIRECTION) - f(POINT - step * DIRECTION)) / (2 * step)
    assert effgrad.compile(grad(f))(POINT.copy()) @ DIRECTION == pytest.approx(expected, rel=1e-7)


@pytest.mark.filterwarnings("ignore::effgrad.StagingWarning")
def test_a_name_that_values_choose_is_followed():
    check(a_choice_of_arrays, "", second_order=True)


@pytest.mark.filterwarnings("ignore::effgrad.StagingWarning")
@pytest.mark.parametrize("seed", [*range(40), *(pytest.param(s, marks=pytest.mark.sweep) for s in range(40, 700))])
def test_random_rebindings_are_followed(seed):
    check(rebinding_programs.program(seed), rebinding_programs.source(seed), second_order=seed % 8 == 0)
