"""What a mode does to a program, printed; and all modes on one program, compared."""

import re

import numpy as np
import pytest

from effgrad import EscapedValue, compare, explain, grad
from effgrad.fast import REVERSE


def test_the_reverse_pass_of_the_thesis(capsys):
    """Sigal 2024, listing 4.6: 1 + (x^3 + (-y^2)) at (2, 4); constants have no cotangent here."""
    explain(lambda x, y: 1 + (x * x * x + -(y * y)), 2.0, 4.0)
    printed = capsys.readouterr().out
    steps = re.findall(r"<(\w+)> := <\w+> \+ (d\d \w+\([^)]*\)) \* <(\w+)>", printed)
    assert steps == [
        ("r5", "d2 add(1, -8)", "r6"),
        ("r2", "d1 add(8, -16)", "r5"),
        ("r4", "d2 add(8, -16)", "r5"),
        ("r3", "d1 negative(16)", "r4"),
        ("x2", "d1 multiply(4, 4)", "r3"),
        ("x2", "d2 multiply(4, 4)", "r3"),
        ("r1", "d1 multiply(4, 2)", "r2"),
        ("x1", "d2 multiply(4, 2)", "r2"),
        ("x1", "d1 multiply(2, 2)", "r1"),
        ("x1", "d2 multiply(2, 2)", "r1"),
    ]
    assert "d/dx1 = 12" in printed and "d/dx2 = -8" in printed
    assert "r1 = multiply(x1, x1)" in printed and "by Reverse, which performs multiply(2, 2): by Evaluate" in printed


def test_arrays_branches_and_constants(capsys):
    explain(lambda x, n: np.sum(np.sin(x)) if x[0] > 0 else n, np.array([0.5, 1.0]), 3.0)
    printed = capsys.readouterr().out
    assert "float64[2]" in printed and "d/dx2 = 0" in printed
    explain(lambda x: 2.0, 1.0)
    assert "d/dx1 = 0" in capsys.readouterr().out


def test_every_mode_is_in_the_comparison(capsys):
    rows = compare(lambda x: np.sum(np.sin(x) * x[0]), np.array([0.3, 0.7]))
    assert {row.mode for row in rows} >= {"evaluate", "forward", "second_order", "taylor", "hessian", *REVERSE}
    expected = np.sum(grad(lambda x: np.sum(np.sin(x) * x[0]))(np.array([0.3, 0.7])))
    for row in rows:
        if row.mode != "evaluate":
            assert row.derivative == pytest.approx(expected)
            assert row.operations >= rows[0].operations and row.peak > 0
    printed = capsys.readouterr().out
    assert all(row.mode in printed for row in rows)


@pytest.mark.parametrize("mode", REVERSE)
def test_a_value_of_another_activation_is_an_error(mode):
    with REVERSE[mode]() as one, REVERSE[mode]() as other:
        value = one.variable(2.0)
        with pytest.raises(EscapedValue, match="not a value of this activation"):
            other.seed(value, 1.0)
        with pytest.raises(EscapedValue, match="not a value of this activation"):
            one.seed(3.0, 1.0)
    with pytest.raises(EscapedValue, match="already ended"):
        value * 2.0
