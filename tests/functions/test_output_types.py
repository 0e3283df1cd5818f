"""Filters of `scipy.ndimage` with a type as `output`, which some of them take as a class only, and with `axes`."""

import inspect

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


VOLUME = np.random.default_rng(0).uniform(size=(4, 5, 3))
OPTIONS = [
    {}, {"axes": (0,)}, {"axes": (1, 2)}, {"axes": (-1, 0)}, {"axes": 1}, {"axes": ()},
    {"mode": ["wrap", "nearest", "mirror"]}, {"axes": (0, 2), "mode": ["wrap", "nearest"]}, {"sigma": [0.5, 1.2, 0.0]},
    {"sigma": [0.5, 1.2], "axes": (2, 0)},
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", ["gaussian_filter", "gaussian_laplace", "gaussian_gradient_magnitude", "laplace"])
def test_filters_along_some_axes_are_scipys(name, options):
    """Compiled values and derivatives of some were wrong or NaN, as all axes were filtered, or one of no width."""
    options = {"sigma": 0.9, **options} if name != "laplace" else options
    if name == "laplace" and "sigma" in options or name.endswith("magnitude") and np.size(options["sigma"]) == 2:
        pytest.skip("SciPy takes no such option")
    if "axes" in options and "axes" not in inspect.signature(getattr(nd, name)).parameters:
        pytest.skip("an older SciPy takes no axes")
    f, u = lambda x: getattr(nd, name)(x, **options), np.cos(np.arange(60.0)).reshape(4, 5, 3)
    value, slope = jvp(f, (VOLUME,), (u,))
    assert np.array_equal(value, f(VOLUME))
    np.testing.assert_allclose(compile(f, "numpy")(VOLUME), value, rtol=1e-10, atol=1e-12)
    expected = (8 * (f(VOLUME + 1e-3 * u) - f(VOLUME - 1e-3 * u)) - f(VOLUME + 2e-3 * u) + f(VOLUME - 2e-3 * u)) / 12e-3
    np.testing.assert_allclose(slope, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("f", [np.std, np.var, np.mean, np.sum])
def test_statistics_of_a_whole_dtype_are_numpys(f):
    x = np.array([0.3, 4.7])
    found = jvp(lambda x: f(x, dtype=int), (x,), (x,))[0]
    assert found == f(x, dtype=int) and np.result_type(found) == np.result_type(f(x, dtype=int))
