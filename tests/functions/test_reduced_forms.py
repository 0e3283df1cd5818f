"""The Hessenberg form, balanced matrices and LDL factors: SciPy's values, and derivatives that complex steps or
differences of SciPy's own results confirm."""

import numpy as np
import pytest
import scipy.linalg
from differences import directional

from effgrad import compile, grad, jvp

RNG = np.random.default_rng(4)
GENERAL = RNG.normal(size=(4, 4))
COMPLEX = GENERAL + 1j * RNG.normal(size=(4, 4))
CALLS = {
    "hessenberg": lambda a: scipy.linalg.hessenberg(a),
    "hessenberg with q": lambda a: scipy.linalg.hessenberg(a, calc_q=True),
    "matrix_balance": lambda a: scipy.linalg.matrix_balance(a)[0],
    "matrix_balance scaled": lambda a: scipy.linalg.matrix_balance(a * SCALES, permute=False)[0],
    "matrix_balance separate": lambda a: scipy.linalg.matrix_balance(np.triu(a, -1) * SCALES, separate=True)[0],
    "ldl": lambda a: scipy.linalg.ldl(a)[:2],
    "ldl upper": lambda a: scipy.linalg.ldl(a, lower=False)[:2],
    "ldl of blocks": lambda a: scipy.linalg.ldl(a * OFF)[:2],
    "ldl of blocks, upper": lambda a: scipy.linalg.ldl(a * OFF, lower=False)[:2],
    "ldl symmetric": lambda a: scipy.linalg.ldl(a, hermitian=False)[:2],
}
SCALES = np.array([[1.0, 1e4, 1, 1], [1e-4, 1, 1, 1], [1, 1, 1, 1e3], [1, 1, 1e-3, 1]])
OFF = 1.0 - 0.95 * np.eye(4)


def real_parts(result):
    parts = result if isinstance(result, tuple) else (result,)
    flat = np.concatenate([np.ravel(part) for part in parts])
    return np.concatenate([np.real(flat), np.imag(flat)]) if np.iscomplexobj(flat) else flat


def leaves(result):
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", ["real", "complex"])
@pytest.mark.parametrize("name", CALLS)
def test_values_are_scipys_and_derivatives_those_of_differences(name, kind, size):
    if size < 4 and ("blocks" in name or "scaled" in name or "separate" in name):
        pytest.skip("the factors are for matrices of four rows")
    f, a = CALLS[name], (GENERAL if kind == "real" else COMPLEX)[:size, :size]
    rng = np.random.default_rng(size)
    u = rng.normal(size=a.shape) + (1j * rng.normal(size=a.shape) if kind == "complex" else 0)
    weights = rng.normal(size=np.size(real_parts(f(a))))

    def g(a):
        return np.sum(weights * real_parts(f(a)))

    value, _ = jvp(f, (a,), (u,))
    for one, other in zip(leaves(value), leaves(f(a)), strict=True):
        assert np.array_equal(one, other) and one.dtype == other.dtype
    expected, error = directional(g, a, u, step=2e-4 if "balance" in name else 0.01)  # the scaling has jumps
    assert error < 1e-6 * (1 + abs(expected))
    np.testing.assert_allclose(jvp(g, (a,), (u,))[1], expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(np.real(np.sum(np.conj(grad(g)(a)) * u)), expected, rtol=1e-6, atol=1e-7)
    if size > 2:
        found = compile(grad(g), "numpy")(a)
        np.testing.assert_allclose(np.real(np.sum(np.conj(found) * u)), expected, rtol=1e-6, atol=1e-7)
