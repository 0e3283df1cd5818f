"""Where a value first differs from plain NumPy's: `debug_values` names the line, the variable and both values."""

import numpy as np
import pytest

from effgrad import debug_values, grad
from effgrad.api.trails import followed
from effgrad.errors import EffgradError


def helper(v):
    total = v * 2
    total = total * (1.02 if hasattr(v, "owner") else 1)  # what no rule does: a program that looks into its arguments
    return total + 1


def program(x):
    y = np.sin(x)
    for i in range(2):
        y = y + i
    return np.sum(helper(y)) / 3


def test_the_first_line_that_differs_is_named_with_both_values():
    x = np.array([0.5, 1.0])
    line = helper.__code__.co_firstlineno + 2
    wanted = (np.sin(0.5) + 1) * 2
    with pytest.raises(EffgradError) as raised:
        debug_values(program)(x)
    text = str(raised.value)
    assert f"total is {wanted * 1.02} at index (0,) after line {line} of helper, and {wanted} in NumPy" in text
    assert __file__ in text


def test_a_write_in_place_is_a_change_of_the_variable():
    def writing(x):
        y = np.zeros(2)
        y[0] = x[0]
        y[1] = 3 * x[1] if hasattr(x, "owner") else x[1]
        return np.sum(y**2)

    line = writing.__code__.co_firstlineno + 3
    expected = rf"y is 3\.0 at index \(1,\) after line {line} of writing, and 1\.0 in NumPy"
    with pytest.raises(EffgradError, match=expected):
        debug_values(writing)(np.array([0.5, 1.0]))


def test_another_path_is_named():
    def branching(x):
        if not hasattr(x, "owner"):
            low = x[0]
            return low * 1.0
        high = x[1]
        return high * 1.0

    with pytest.raises(EffgradError, match="sets high, and line [0-9]+ low in NumPy"):
        debug_values(branching)(np.array([0.5, 1.0]))


def test_trails_of_both_runs_are_the_same_where_the_values_are():
    x = np.array([0.5, 1.0, 2.0])

    def right(x):
        y = x.copy()
        for i in range(3):
            y[i] += np.sum(x) * i
        while y[0] < 4:
            y = y * 2
        return np.sum(y)

    plainly, inside = ([change[1:4] for change in followed(lambda f=f: f(x))] for f in (right, grad(right)))
    assert plainly == inside and len(plainly) > 8
    assert debug_values(right)(x) == right(x)
