"""Means of integers in compiled programs."""

import numpy as np
import pytest

from effgrad import compile


@pytest.mark.parametrize("x", [
    np.array([2**62, 2**62, 2**62]), np.array([2**64 - 1, 2**63], np.uint64), np.array([200, 100], np.uint8),
    np.arange(4) > 1,
])  # fmt: skip
def test_means_of_integers_are_of_floats(x):
    """The sum of the integers overflowed before it was divided; NumPy adds them as floats."""

    def means(x):
        return np.mean(x), x.mean(axis=0), np.average(x), np.mean(x, keepdims=True), np.mean(x, dtype=np.float32)

    compiled = compile(means)
    for argument in (x, x[::-1]):
        for expected, found in zip(means(argument), compiled(argument), strict=True):
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)
