"""Writes in place, whose results NumPy refuses to cast to the dtype of the array."""

import numpy as np
import pytest

from effgrad import compile

WHOLE, HALVES = np.ones(2, np.int8), np.array([1.5, 2.5])


def copied_to(x, y):
    np.copyto(x, y)
    return x


def augmented(operator):
    def f(x, y):
        return getattr(x, operator)(y)

    return f


REFUSED = {
    **{name: augmented(name) for name in ("__iadd__", "__imul__", "__itruediv__", "__ipow__", "__imod__")},
    "a number": lambda x, y: x.__iadd__(1.5),
    "out": lambda x, y: np.add(x, y, out=x),
    "out of one argument": lambda x, y: np.sin(x, out=x),
    "out of clip": lambda x, y: np.clip(x, 0.5, 1.5, out=x),
    "out of dot": lambda x, y: np.dot(y, y, out=x[:1].reshape(())),
    "copyto": copied_to,
    "place": lambda x, y: np.place(x, [True, False], y),
}


@pytest.mark.parametrize("f", REFUSED.values(), ids=REFUSED.keys())
def test_refused_casts_are_numpys_errors(f):
    """Floats were truncated to the integers of the array, without a word, where NumPy raises an error."""
    with pytest.raises((TypeError, ValueError)) as expected:
        f(WHOLE.copy(), HALVES)
    with pytest.raises(expected.type):
        compile(f)(WHOLE, HALVES)


ACCEPTED = {
    "single precision": lambda x, y: x.astype(np.float32).__iadd__(y),
    "shorter integers": lambda x, y: x.__iadd__(np.array([300, 2])),
    "unsafe": lambda x, y: np.multiply(x, y, out=x, casting="unsafe"),
    "assignment": lambda x, y: x.__setitem__(slice(None), y) or x,
}


@pytest.mark.parametrize("f", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepted_casts_are_numpys(f):
    with np.errstate(all="ignore"):
        expected = f(WHOLE.copy(), HALVES)
    found = compile(f)(WHOLE, HALVES)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == expected.dtype
