"""Functions of NumPy with `out=` in compiled programs and in batches, which wrote nothing there for some functions."""

import numpy as np
import pytest

import effgrad

X = np.array([0.7, 1.3, -0.4, 0.2])
FUNCTIONS = {
    "fft": lambda x, out: np.fft.fft(x, out=out), "ifft": lambda x, out: np.fft.ifft(x, None, -1, None, out),
    "rfft": lambda x, out: np.fft.rfft(x, out=out[:3]), "ihfft": lambda x, out: np.fft.ihfft(x, out=out[1:]),
    "fft2": lambda x, out: np.fft.fft2(x.reshape(2, 2), out=out.reshape(2, 2)),
    "irfft": lambda x, out: np.fft.irfft(x, 4, out=out.real), "round": lambda x, out: np.round(x, 1, out.real),
    "fix": lambda x, out: np.fix(3 * x, out=out.imag), "take": lambda x, out: np.take(x, [3, 1], out=out.real[:2]),
}  # fmt: skip


@pytest.mark.parametrize("transform", ["compile", "vmap"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_written_to_out(name, transform):
    def f(x):
        out = np.zeros(4, complex)
        FUNCTIONS[name](x, out)
        return np.sum(np.real(out) * [1.0, 2.0, 3.0, 4.0]) + np.sum(np.imag(out) * [4.0, 2.0, 3.0, 1.0])

    both = effgrad.value_and_grad(f)
    if transform == "compile":
        value, slope = effgrad.compile(both)(X)
    else:
        value, slope = (part[1] for part in effgrad.vmap(both)(np.stack([2.0 * X, X])))
    wanted = [(f(X + d) - f(X - d)) / 2e-6 for d in 1e-6 * np.eye(4)]
    assert value == pytest.approx(f(X), rel=1e-13)
    np.testing.assert_allclose(slope, wanted, rtol=1e-8, atol=1e-8)
