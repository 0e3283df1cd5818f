"""The namespace of traced values is one of the array API standard, and libraries written for it take traced values."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

from effgrad import check_grad, grad, jvp

BACKEND = "numpy"  # of the compiled runs

X = np.random.default_rng(0).uniform(0.2, 0.8, (3, 4))
ELEMENTWISE = """abs acos asin asinh atan atanh cos cosh exp expm1 log log1p log2 log10 negative positive reciprocal
    sign sin sinh sqrt square tan tanh ceil floor round trunc""".split()
BINARY = """add subtract multiply divide pow maximum minimum hypot logaddexp atan2 remainder floor_divide
    copysign""".split()


def unary(name):
    return lambda xp, x: getattr(xp, name)(x)


def binary(name):
    return lambda xp, x: getattr(xp, name)(x, x[::-1] * 0.7 + 0.1)


CASES = {
    **{name: unary(name) for name in ELEMENTWISE},
    **{name: binary(name) for name in BINARY},
    "acosh": lambda xp, x: xp.acosh(1 + x),
    "astype": lambda xp, x: xp.astype(x, xp.float64),
    "broadcast_arrays": lambda xp, x: xp.broadcast_arrays(x[:1], x)[0],
    "broadcast_to": lambda xp, x: xp.broadcast_to(x, (2, 3, 4)),
    "clip": lambda xp, x: xp.clip(x, 0.3, 0.7),
    "concat": lambda xp, x: xp.concat([x, x**2], axis=1),
    "cumulative_sum": lambda xp, x: xp.cumulative_sum(x, axis=0),
    "cumulative_prod": lambda xp, x: xp.cumulative_prod(x, axis=0),
    "diff": lambda xp, x: xp.diff(x, axis=0),
    "expand_dims": lambda xp, x: xp.expand_dims(x, axis=1),
    "flip": lambda xp, x: xp.flip(x, axis=1),
    "matmul": lambda xp, x: xp.matmul(x, xp.matrix_transpose(x)),
    "max": lambda xp, x: xp.max(x, axis=0),
    "mean": lambda xp, x: xp.mean(x, axis=1, keepdims=True),
    "meshgrid": lambda xp, x: xp.meshgrid(x[0], x[1])[0],
    "min": lambda xp, x: xp.min(x),
    "moveaxis": lambda xp, x: xp.moveaxis(x, 0, 1),
    "permute_dims": lambda xp, x: xp.permute_dims(x, (1, 0)),
    "prod": lambda xp, x: xp.prod(x, axis=1),
    "repeat": lambda xp, x: xp.repeat(x, 2, axis=0),
    "reshape": lambda xp, x: xp.reshape(x, (2, 6)),
    "roll": lambda xp, x: xp.roll(x, 1, axis=0),
    "sort": lambda xp, x: xp.sort(x, axis=1),
    "squeeze": lambda xp, x: xp.squeeze(x[None], axis=0),
    "stack": lambda xp, x: xp.stack([x, x**2], axis=1),
    "std": lambda xp, x: xp.std(x, axis=0, correction=1),
    "sum": lambda xp, x: xp.sum(x, axis=0, dtype=xp.float64),
    "take": lambda xp, x: xp.take(x, xp.asarray([0, 2]), axis=1),
    "take_along_axis": lambda xp, x: xp.take_along_axis(x, xp.argsort(x, axis=0), axis=0),
    "tensordot": lambda xp, x: xp.tensordot(x, x, axes=((0,), (0,))),
    "tile": lambda xp, x: xp.tile(x, (2, 1)),
    "tril": lambda xp, x: xp.tril(x, k=-1),
    "triu": lambda xp, x: xp.triu(x),
    "unstack": lambda xp, x: xp.unstack(x, axis=1)[2],
    "var": lambda xp, x: xp.var(x, correction=1),
    "vecdot": lambda xp, x: xp.vecdot(x, x[::-1], axis=-1),
    "where": lambda xp, x: xp.where(x > 0.5, x, x**2),
    "zeros_like": lambda xp, x: xp.zeros_like(x) + x,
    "full_like": lambda xp, x: xp.full_like(x, 2.0) * x,
    "isfinite": lambda xp, x: xp.where(xp.isfinite(x) & xp.logical_not(xp.isnan(x)), x, 0.0),
    "argmax": lambda xp, x: x[xp.argmax(x, axis=0), 0],
    "searchsorted": lambda xp, x: x[0] * xp.searchsorted(xp.asarray([0.3, 0.6]), x[0]),
    "unique_values": lambda xp, x: xp.unique_values(x),
    "linalg.cholesky": lambda xp, x: xp.linalg.cholesky(x @ x.T + xp.eye(3), upper=True),
    "linalg.cross": lambda xp, x: xp.linalg.cross(x[:, :3], x[:, 1:]),
    "linalg.det": lambda xp, x: xp.linalg.det(x[:, :3]),
    "linalg.diagonal": lambda xp, x: xp.linalg.diagonal(x, offset=1),
    "linalg.eigh": lambda xp, x: xp.linalg.eigh(x @ x.T).eigenvalues,
    "linalg.eigvalsh": lambda xp, x: xp.linalg.eigvalsh(x @ x.T),
    "linalg.inv": lambda xp, x: xp.linalg.inv(x @ x.T + xp.eye(3)),
    "linalg.matrix_norm": lambda xp, x: xp.linalg.matrix_norm(x),
    "linalg.matrix_power": lambda xp, x: xp.linalg.matrix_power(x[:, :3], 3),
    "linalg.outer": lambda xp, x: xp.linalg.outer(x[0], x[1]),
    "linalg.pinv": lambda xp, x: xp.linalg.pinv(x, rtol=1e-10),
    "linalg.qr": lambda xp, x: xp.linalg.qr(x.T, mode="reduced").Q,
    "linalg.slogdet": lambda xp, x: xp.linalg.slogdet(x @ x.T).logabsdet,
    "linalg.solve": lambda xp, x: xp.linalg.solve(x @ x.T + xp.eye(3), x),
    "linalg.svd": lambda xp, x: xp.linalg.svd(x, full_matrices=False).S,
    "linalg.svdvals": lambda xp, x: xp.linalg.svdvals(x),
    "linalg.trace": lambda xp, x: xp.linalg.trace(x),
    "linalg.vector_norm": lambda xp, x: xp.linalg.vector_norm(x, axis=1, ord=3),
    "fft.fft": lambda xp, x: xp.abs(xp.fft.fft(x)),
    "fft.irfft": lambda xp, x: xp.fft.irfft(xp.fft.rfft(x)),
    "fft.fftshift": lambda xp, x: xp.fft.fftshift(x),
}  # fmt: skip


def case(name):
    # The namespace is asked of the value, as libraries do.
    return lambda x: CASES[name](x.__array_namespace__(), x)


@pytest.mark.parametrize("name", CASES)
def test_functions_of_the_standard_take_traced_values(run, name):
    f = case(name)
    check_grad(lambda x: np.sum(np.sin(f(x))), X, tolerance=2e-5)
    value, tangent = run(jvp)(f, (X,), (np.ones_like(X),))
    np.testing.assert_allclose(value, f(X), rtol=1e-13)
    assert np.shape(tangent) == np.shape(value)


def test_a_traced_value_has_the_attributes_of_the_standard(run):
    def f(x):
        assert (x.ndim, x.shape, x.size, x.device, x.dtype) == (2, (3, 4), 12, "cpu", np.float64)
        assert x.to_device("cpu") is x
        assert x.T.shape == x.mT.shape == (4, 3)
        return np.sum(x.T @ x)

    assert run(grad)(f)(X).shape == X.shape


def finishes(program):
    """In a process of its own: SciPy looks at SCIPY_ARRAY_API when it is imported."""
    program = "import os\nos.environ['SCIPY_ARRAY_API'] = '1'\n" + textwrap.dedent(program)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_a_number_of_the_standard_is_rounded():
    xp = pytest.importorskip("array_api_strict")
    assert float(grad(lambda x: round(x, 2) * x)(xp.asarray(0.123))) == 0.12


def test_scipy_with_its_array_api_switched_on():
    finishes("""
        import numpy as np, scipy.special, scipy.stats, scipy.signal, scipy.cluster.vq, scipy.linalg, scipy.integrate
        from effgrad import check_grad
        x = np.array([[0.3, 0.5, 0.7], [0.2, 0.9, 0.4]])
        for f in (
            lambda x: scipy.special.logsumexp(x, axis=0), lambda x: scipy.special.softmax(x, axis=1),
            scipy.special.gammaln, scipy.special.expit, lambda x: scipy.special.xlogy(x, x),
            scipy.stats.zscore, scipy.stats.entropy, scipy.stats.gmean, scipy.stats.skew,
            lambda x: scipy.stats.norm.logpdf(x),
            scipy.signal.detrend, scipy.cluster.vq.whiten, scipy.integrate.trapezoid,
            lambda x: scipy.linalg.det(x[:, :2]),
        ):
            check_grad(lambda x: np.sum(np.sin(f(x))), x, tolerance=2e-5)
    """)


def test_scikit_learn_with_array_api_dispatch():
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    finishes("""
        import numpy as np, sklearn.metrics, sklearn.preprocessing
        from sklearn import config_context
        from effgrad import check_grad
        x = np.array([[0.3, 0.5, 0.7], [0.2, 0.9, 0.4]])
        def scaled(x):
            with config_context(array_api_dispatch=True):
                return sklearn.preprocessing.MinMaxScaler().fit_transform(x)
        for f in (
            scaled, lambda x: sklearn.metrics.pairwise.linear_kernel(x, 2 * x),
            lambda x: sklearn.metrics.mean_squared_error(x * x, x, multioutput="raw_values"),
        ):
            check_grad(lambda x: np.sum(np.sin(f(x))), x, tolerance=2e-5)
    """)


def network(w, x):
    """Written in NumPy, for arrays of any library."""
    return np.sum(np.tanh(np.matmul(x, w)) ** 2) + np.sum(w * w)


def test_derivatives_of_tensors_of_pytorch_are_tensors():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    for kind in (torch.float64, torch.float32):
        w = torch.tensor([[0.3, 0.5], [0.7, -0.2]], dtype=kind)
        x = torch.tensor([[1.0, 2.0], [0.5, 0.1]], dtype=kind)
        expected = torch.autograd.functional.vjp(
            lambda w, x=x: (torch.tanh(x @ w) ** 2).sum() + (w * w).sum(), w, torch.tensor(1.0, dtype=kind)
        )[1]
        for mode in ("taped", "reverse", "continuation", "delta"):
            gradient = grad(network, mode=mode)(w, x.numpy())
            assert type(gradient) is torch.Tensor and gradient.dtype == kind
            torch.testing.assert_close(gradient, expected)
        tangent = jvp(lambda w, x=x: network(w, x.numpy()), (w,), (w,))[1]
        np.testing.assert_allclose(tangent, (expected * w).sum(), rtol=1e-5)
        twice = grad(lambda w, x=x: np.sum(grad(network)(w, x.numpy()) * w))(w)
        assert type(twice) is torch.Tensor and bool(torch.isfinite(twice).all())
