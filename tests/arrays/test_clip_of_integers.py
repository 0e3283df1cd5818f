"""`np.clip` of integers in compiled programs."""

import numpy as np
import pytest

from effgrad import compile


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.uint64, np.float32, complex])
@pytest.mark.parametrize("bounds", [(None, 2), (1, None), (None, 2.5)])
def test_clip_by_one_bound_keeps_the_dtype(dtype, bounds):
    """A missing bound was an infinity, and made floats of integers, which lose digits beyond 2**53."""
    x = np.array([0, 1, 2, 3, 2**62 + 1]).astype(dtype)
    expected, found = np.clip(x, *bounds), compile(lambda x: np.clip(x, *bounds))(x)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == expected.dtype
