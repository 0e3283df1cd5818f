"""Functions of `scipy.linalg.blas`, by their own names and as `get_blas_funcs` finds them, against differences."""

import numpy as np
import pytest
import scipy.linalg
from differences import directional
from scipy.linalg import blas

from effgrad import compile, grad

A, B = np.arange(6.0).reshape(2, 3) + 0.3, np.cos(np.arange(12.0)).reshape(3, 4)
PROGRAMS = {
    "ddot": lambda x: blas.ddot(x, x**2), "ddot of lists": lambda x: blas.ddot([x[0], 1.0], [2.0, x[1]]),
    "zdotc": lambda x: abs(blas.zdotc(x * 1j + x**2, np.exp(1j * x))) ** 2,
    "zdotu": lambda x: blas.zdotu(x * 1j + x**2, np.exp(1j * x)).real, "dnrm2": lambda x: blas.dnrm2(x) ** 3,
    "dgemm": lambda x: np.sum(np.sin(blas.dgemm(x[0], A * x, B))),
    "dgemm transposed": lambda x: np.sum(
        np.sin(blas.dgemm(2.0, B * x[1], A * x, beta=x[2], c=np.ones((4, 2)), trans_a=1, trans_b=1))),
    "dgemm overwriting": lambda x: np.sum(
        np.sin(blas.dgemm(1.0, A * x, B, 2.0, np.asfortranarray((A * x) @ B), overwrite_c=1))),
    "zgemm": lambda x: np.sum(np.abs(blas.zgemm(1.0, A * x * 1j + A, B + 1j * x[:, None])) ** 2),
    "zgemm conjugated": lambda x: np.sum(np.abs(blas.zgemm(1.0, A.T * (1 + 1j * x[:, None]), B, trans_a=2)) ** 2),
    "dgemv": lambda x: np.sum(blas.dgemv(1.5, A, x, beta=2.0, y=x[:2]) ** 2),
    "dgemv transposed": lambda x: np.sum(blas.dgemv(x[0], A, x[:2], trans=1) ** 2),
    "get_blas_funcs": lambda x: scipy.linalg.get_blas_funcs("dot", dtype=np.dtype(float))(x, x),
    "get_blas_funcs of arrays": lambda x: np.sum(scipy.linalg.get_blas_funcs(("gemm",), (x,))[0](1.0, A * x, B)),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_products_by_their_blas_names_have_derivatives(name):
    f, x, u = PROGRAMS[name], np.array([0.3, 0.7, -1.0]), np.array([0.2, -0.5, 0.9])
    expected, _ = directional(f, x, u, step=0.01)
    found = grad(f)(x)
    assert found @ u == pytest.approx(float(expected), rel=1e-8)
    np.testing.assert_allclose(compile(grad(f))(x), found, rtol=1e-12)
