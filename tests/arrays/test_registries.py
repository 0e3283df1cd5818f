"""The tables of rows: each row is stated in one place."""

import numpy as np
import pytest

from effgrad.arrays.value import COMPOSED, CONSTANT, FUNCTIONS, REASONS, REDUCTIONS, UFUNCS
from effgrad.primitives.special.table import PARTS, SPECIAL


@pytest.mark.parametrize("table", [UFUNCS, FUNCTIONS, CONSTANT, COMPOSED, REDUCTIONS, REASONS, SPECIAL, PARTS])
def test_a_row_is_entered_once_and_stays(table):
    key, row = next(iter(table.items()))
    before = dict(table)
    with pytest.raises(ValueError, match="there is a row for .* already"):
        table.enter({key: None})
    for change in (
        lambda: table.__setitem__(key, None), lambda: table.__delitem__(key), lambda: table.update({key: None}),
        lambda: table.setdefault("another", 1), lambda: table.pop(key), table.popitem, table.clear,
    ):  # fmt: skip
        with pytest.raises(TypeError, match="entered once"):
            change()
    assert dict(table) == before and table[key] is row


def test_no_function_but_the_sign_is_both_differentiated_and_a_constant():
    assert CONSTANT.keys() & (UFUNCS.keys() | FUNCTIONS.keys()) == {np.sign}  # of real numbers a constant
    assert COMPOSED.keys() <= FUNCTIONS.keys()
    assert np.add in UFUNCS
