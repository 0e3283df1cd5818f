"""Calls of NumPy in machine code programs, which write their results in place, beside the plain calls."""

import numpy as np
import pytest

import effgrad

PROGRAMS = {
    "ufuncs": lambda x, n: np.exp(x) * x + np.conj(x) / (2.0 + x) - np.tan(x),
    "matmul": lambda x, n: x @ x.T + np.matmul(x[None], x.T[None, :, ::-1]),
    "broadcast": lambda x, n: x * x[0] + x[:, :1],
    "numbers": lambda x, n: (x * n + 2) * 1j - 3 * x,
    "a number of NumPy": lambda x, n: x * x[0, 0] + np.float64(n) * x,
    "reshape of a transpose": lambda x, n: np.reshape(x.T, -1) * 1j,
    "reshape of a part": lambda x, n: x[::2, ::-1].reshape(3, -1, 1) + 1j,
    "ravel of axes exchanged": lambda x, n: (x.reshape(4, 3, 2, 4).T * 2j).transpose(2, 3, 1, 0).ravel(),
    "mixed": lambda x, n: np.multiply(x.real, x) + np.abs(x),
    "empty": lambda x, n: x[:0] * x[:0] + x[:0].T.reshape(0, 8),
    "used again": lambda x, n: (x * x).T.reshape(8, 12) @ (x * x + x.reshape(12, 8, order="C")),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [complex, np.complex64, float, np.float32])
@pytest.mark.parametrize("name", PROGRAMS)
def test_calls_give_what_numpy_gives(name, dtype):
    rng, program = np.random.default_rng(3), PROGRAMS[name]
    x = (rng.normal(size=(12, 8)) + 1j * rng.normal(size=(12, 8))).astype(complex)
    x = x.astype(dtype) if np.dtype(dtype).kind == "c" else x.real.astype(dtype)
    run = effgrad.compile(program)
    for scale in (1, 2):
        expected, found = program(scale * x, 3), run(scale * x, 3)
        assert found.dtype == expected.dtype and found.shape == expected.shape
        error = np.abs(found - expected).max(initial=0.0)
        assert error <= 30 * np.finfo(found.dtype).eps * np.abs(expected).max(initial=1.0)
