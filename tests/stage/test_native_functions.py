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


VECTORS = {
    "matrix @ vector": lambda A, x: A @ x,
    "transposed @ vector": lambda A, x: A.T @ x,
    "vector @ matrix": lambda A, x: x @ A,
    "vector @ transposed": lambda A, x: x @ A.T,
    "matrix @ column": lambda A, x: A @ x[:, None],
    "row @ matrix": lambda A, x: x[None] @ A,
    "matrix @ every second": lambda A, x: A[:, ::2] @ x[::2],
    "columns of a matrix": lambda A, x: A @ A[:, 1],
    "rows of a matrix": lambda A, x: A[2] @ A,
    "a batch of vectors": lambda A, x: np.stack([A, A * A]) @ x,
    "a batch of matrices": lambda A, x: (np.stack([A, A * A]) @ np.stack([x, x * x])[:, :, None])[..., 0],
    "vectors alone": lambda A, x: A[0] @ x,
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("form", VECTORS)
def test_products_with_vectors(form, dtype):
    """What lay in a result's memory before, no numbers here, is no part of it."""
    f, rng = VECTORS[form], np.random.default_rng(0)
    A, x = rng.normal(size=(7, 7)).astype(dtype), rng.normal(size=7).astype(dtype)
    program = effgrad.compile(lambda A, x: np.sin(f(A, x)))
    for scale in (np.nan, 1.0):
        found = program(A * dtype(scale), x)
    np.testing.assert_allclose(found, np.sin(f(A, x)), rtol=0, atol=1e-12 if dtype is np.float64 else 1e-4)
    loss = effgrad.compile(effgrad.grad(lambda A, x: np.sum(f(A, x) ** 2), argnums=(0, 1)))
    for found, expected in zip(
        loss(A, x), effgrad.grad(lambda A, x: np.sum(f(A, x) ** 2), argnums=(0, 1))(A, x), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 if dtype is np.float64 else 1e-2)
