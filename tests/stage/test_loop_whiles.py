"""The reverse of `while` loops: the first steps keep what they need, the others a state for each stretch of steps."""

import math
import warnings

import numpy as np
import pytest
from captured_regions import captured
from region_execution import execute

import effgrad
from effgrad import grad
from effgrad.stage.loop.derive import Reversal
from effgrad.stage.loop.ir import While
from effgrad.stage.loop.program import ROOM, reversal
from effgrad.stage.loop.schedule import Stretches
from effgrad.stage.native.executable import Executable


def counted(a):
    x, n = a * 1.0, 0
    while n < 50:
        x = np.sin(x) + 0.3 * x * a
        n = n + 1
    return np.sum(x**2)


def of_values(a):
    x, s, u = a * 1.0, 0.0, a * 0
    while np.sum(x * x) > 0.5:
        u = np.exp(-x * x) + u * 0.1
        x = x - 0.05 * x * u
        s = s + np.sum(u * a)
    return s + np.sum(u) * np.sum(x)


def with_jumps(a):
    x, y, k = a * 1.0, np.zeros(3), 0
    while np.sum(x) > 1.0 and k < 45:
        y[k % 3] = y[(k + 1) % 3] * 0.3 + x[k % 5]
        x = x * 0.97 + 0.01 * np.sum(y**2)
        k += 1
        if k % 4 == 0:
            continue
        x = np.sin(x)
    return np.sum(y * y) + np.sum(x) + k


def never_run(a):
    x = a * 1.0
    while np.sum(x * x) > 1e6:
        x = np.sin(x) * a
    return np.sum(x**3)


def of_whiles(a):
    x, k = a * 1.0, 0
    while k < 12:
        y = 2.0 + np.sum(x)
        while y > 0.3:
            y = y * 0.7
            x = x + 0.05 * np.sin(x * y) * a
        x = x * 0.9
        k = k + 1
    return np.sum(x**2) + y


def of_whiles_in_a_for(a):
    x = a * 1.0
    for i in range(9):
        while np.sum(x * x) > 0.5 + 0.1 * i:
            x = x - 0.05 * np.sin(x) * x
        x = x + 0.3 * np.cos(x) * a
    return np.sum(x**2)


def of_a_for_in_a_while(a):
    x, k = a * 1.0, 0
    while k < 7:
        for i in range(6):
            x[i % 5] = np.sin(x[(i + 1) % 5]) + 0.3 * x[i % 5] * a[2]
        k = k + 1
    return np.sum(x**2)


A = np.array([0.9, 0.8, 1.2, 0.3, 0.6])


NESTED = [of_whiles, of_whiles_in_a_for, of_a_for_in_a_while]


@pytest.mark.thinned(3)
@pytest.mark.parametrize("f", [counted, of_values, with_jumps, never_run, *NESTED])
def test_stretches_are_right_to_the_bit(f):
    region = captured(f, A)
    everything = Executable(reversal(region, region.inputs, ROOM).whole_region(region.inputs))(A, 1.0)[0]
    np.testing.assert_allclose(everything, grad(f)(A), rtol=1e-10)
    for room in (16, 300, 2000):
        back = reversal(region, region.inputs, room).whole_region(region.inputs)
        np.testing.assert_array_equal(Executable(back)(A, 1.0)[0], everything)
        np.testing.assert_allclose(execute(back, [A, 1.0])[0], everything, rtol=1e-10)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("f", [counted, with_jumps, of_whiles])
def test_stretches_in_programs_and_second_derivatives(f):
    direction = np.array([1.0, -2.0, 0.5, 0.3, 1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        value, slope = effgrad.compile(effgrad.value_and_grad(f), memory="4 kB")(A)
        product = effgrad.compile(lambda a: effgrad.hvp(f, a, direction), memory="4 kB")(A)
    assert value == pytest.approx(f(A), rel=1e-12)
    np.testing.assert_allclose(slope, grad(f)(A), rtol=1e-10)
    np.testing.assert_allclose(product, effgrad.hvp(f, A, direction), rtol=1e-9)


@pytest.mark.parametrize("steps", [100, 10_000, 100_000])
@pytest.mark.parametrize("records", [1, 2])
def test_states_are_at_most_two_for_each_root_of_a_step(steps, records):
    """However many steps there are; those of stretches of equal length grew with them."""

    def f(a):
        x, n = a, 0
        while n < steps:
            for _ in range(records):
                x = x + 1e-5 * np.sin(np.cos(x))
            n += 1
        return np.sum(x)

    a, room = np.linspace(0.1, 1.0, 10), 20_000
    region = captured(f, a)
    everything = Executable(reversal(region, region.inputs, 1 << 30).whole_region(region.inputs))(a, 1.0)[0]
    back = Executable(reversal(region, region.inputs, room).whole_region(region.inputs))
    back(a, 1.0)
    for stack in back.stacks.values():  # which are large enough now
        stack.fill(math.pi)
    np.testing.assert_array_equal(back(a, 1.0)[0], everything)
    kept = sum(np.count_nonzero(stack != math.pi) * stack.itemsize for stack in back.stacks.values())
    loop = next(s for s in region.block if isinstance(s, While))
    state = sum(8 * b.size for b in Reversal(region, region.inputs, lambda _: Stretches(1, 1)).state(loop))
    assert kept <= max(room, 2 * math.sqrt(steps) * state)


def test_a_long_loop_keeps_little():
    """The record of all steps would take more than 64 MB."""

    def f(a):
        x, n = a, 0
        while n < 200_000:
            x = x + 1e-5 * np.sin(np.cos(x))
            n += 1
        return np.sum(x)

    a = np.linspace(0.1, 1.0, 40)
    region = captured(f, a)
    back = Executable(reversal(region, region.inputs, ROOM).whole_region(region.inputs))
    found = back(a, 1.0)[0]
    assert sum(stack.nbytes for stack in back.stacks.values()) <= 4 * ROOM
    step = 1e-6
    np.testing.assert_allclose(np.sum(found), (f(a + step) - f(a - step)) / (2 * step), rtol=1e-6)
