"""Functions in machine code: float32 in the vector library, sums of exponentials, and triangles of matrices."""

import numpy as np
import pytest
import scipy.special as sp

import effgrad

RNG = np.random.default_rng(3)
DOMAINS = {
    np.exp: (-80, 80), np.log: (1e-30, 1e30), np.sin: (-100, 100), np.cos: (-100, 100), np.tan: (-1.5, 1.5),
    np.tanh: (-5, 5), np.sinh: (-20, 20), np.cosh: (-20, 20), np.expm1: (-5, 5), np.log1p: (-0.9, 10),
    np.log2: (1e-6, 1e6), np.log10: (1e-6, 1e6), np.exp2: (-60, 60), np.cbrt: (-9, 9), np.arcsin: (-1, 1),
    np.arccos: (-1, 1), np.arctan: (-50, 50), np.arcsinh: (-50, 50), np.arccosh: (1, 50), np.arctanh: (-0.99, 0.99),
}  # fmt: skip
SPECIAL = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 80, -80, 1e-40])


@pytest.mark.parametrize("f", DOMAINS, ids=lambda f: f.__name__)
def test_functions_of_float32_are_within_four_units_in_the_last_place(f):
    x = RNG.uniform(*DOMAINS[f], 4003).astype(np.float32)
    found, expected = effgrad.compile(lambda x: f(x))(x), f(x.astype(float))
    assert found.dtype == np.float32
    assert np.max(np.abs(found - expected) / np.spacing(np.abs(expected).astype(np.float32))) < 4


@pytest.mark.parametrize("f", [np.exp, np.log, np.sin, np.tanh, np.expm1, np.log1p, np.cbrt], ids=lambda f: f.__name__)
def test_functions_of_float32_have_numpys_special_values(f):
    x = np.tile(SPECIAL.astype(np.float32), 8)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(effgrad.compile(lambda x: f(x))(x), f(x), rtol=1e-6)


@pytest.mark.parametrize("dtype", [float, np.float32])
def test_sums_of_exponentials_are_numpys(dtype):
    tolerance = 8 * np.finfo(dtype).eps
    several = np.concatenate([SPECIAL, *[RNG.normal(size=30) * scale for scale in (1e-6, 1, 30, 80)]]).astype(dtype)
    a, b = (x.ravel() for x in np.meshgrid(several, several))
    with np.errstate(all="ignore"):
        found, expected = effgrad.compile(lambda a, b: np.logaddexp(a, b))(a, b), np.logaddexp(a, b)
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
        found, expected = effgrad.compile(lambda a: sp.log_expit(a))(several), sp.log_expit(several)
        np.testing.assert_allclose(found, expected, rtol=tolerance)
    assert found.dtype == dtype


@pytest.mark.parametrize("f", [np.tril, np.triu], ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", [float, np.float32, int])
def test_triangles_are_numpys(f, dtype):
    x = (10 * RNG.normal(size=(3, 5, 7))).astype(dtype)
    if dtype is not int:
        x[0, 0, 6], x[0, 4, 0] = np.nan, np.inf  # left out by one of the two
    for k in (-9, -2, 0, 3, 9):
        found = effgrad.compile(lambda x, k=k: f(2 * x, k))(x)
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(found, f(2 * x, k))
    squares = effgrad.compile(effgrad.grad(lambda x: np.sum(f(x, 1) ** 2)))(x[1].astype(float))
    np.testing.assert_array_equal(squares, 2 * f(x[1].astype(float), 1))
