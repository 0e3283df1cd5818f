"""Filters of `scipy.ndimage` with a type as `output`, which some of them take as a class only."""

import numpy as np
import pytest
import scipy.ndimage as nd

from effgrad import compile, grad, jvp

IMAGE = np.cos(np.arange(6.0)).reshape(2, 3)
FILTERS = {"fourier_gaussian": 1.7, "fourier_uniform": 2.0, "fourier_ellipsoid": 3.0, "gaussian_filter": 1.0}
OUTPUTS = [np.float64, np.float32, np.complex128, float, None, "float32"]


@pytest.mark.parametrize("output", OUTPUTS, ids=str)
@pytest.mark.parametrize("name", FILTERS)
def test_a_type_as_output_is_scipys(name, output):
    f = lambda x: getattr(nd, name)(x, FILTERS[name], output=output)  # noqa: E731
    try:
        expected = f(IMAGE)
    except (RuntimeError, AttributeError):
        with pytest.raises((RuntimeError, AttributeError)):
            jvp(f, (IMAGE,), (IMAGE,))
        return
    found, compiled = jvp(f, (IMAGE,), (IMAGE,))[0], compile(f, "numpy")(IMAGE)
    assert np.array_equal(found, expected) and found.dtype == compiled.dtype == expected.dtype
    np.testing.assert_allclose(compiled, expected, rtol=1e-6 if expected.dtype == np.float32 else 1e-13)
    if expected.dtype == float:
        moved = grad(lambda x: np.sum(f(x) * IMAGE))(IMAGE)
        np.testing.assert_allclose(np.sum(moved * IMAGE), np.sum(f(IMAGE) * IMAGE), rtol=1e-12)  # linear
