"""The argument `where` of reductions."""

import numpy as np
import pytest

from effgrad import compile


@pytest.mark.parametrize("f", [np.sum, np.max, np.mean])
def test_masks_of_other_shapes_are_refused(f):
    """A mask of more rows than the array has was broadcast with it; NumPy refuses it."""

    def reduced(x):
        return f(x, axis=0, where=np.ones((3, 1), bool), **({"initial": 0.0} if f is np.max else {}))

    for x in (np.ones(3), np.ones((1, 2))):
        with pytest.raises(ValueError):
            reduced(x)
        with pytest.raises(ValueError):
            compile(reduced)(x)
    np.testing.assert_array_equal(compile(reduced)(np.ones((3, 2))), reduced(np.ones((3, 2))))
