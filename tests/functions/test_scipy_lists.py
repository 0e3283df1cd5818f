"""SciPy's functions of lists with traced numbers in them: the values, and the derivatives by differences."""

import numpy as np
import pytest
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.linalg as la
import scipy.ndimage
import scipy.signal
import scipy.sparse as sp
import scipy.sparse.linalg
import scipy.spatial.distance as distance
import scipy.stats
from differences import directional

from effgrad import compile, grad, jvp

A = np.array([[4.0, 1, 0.5], [1, 5, 1], [0.5, 1, 6]])
BAND = np.array([[0, 1.0, 1], [4, 5, 6], [1, 1, 0]])
PROGRAMS = {
    "solve": lambda x: la.solve([[4 + x, 1], [1, 3.0]], [x, 1]),
    "solve_triangular": lambda x: la.solve_triangular(A, [x, 1, 2 * x], lower=True),
    "solve_banded": lambda x: la.solve_banded((1, 1), BAND.copy(), [x, 1, 2 * x], overwrite_ab=True),
    "solve_banded of a band": lambda x: la.solve_banded((0, 1), [[0, x], [2.0, 3]], [x, 1]),
    "solveh_banded": lambda x: la.solveh_banded([[0, x], [2.0, 3]], [1.0, x]),
    "lu_solve": lambda x: la.lu_solve(la.lu_factor(A), [x, 1, 2 * x]),
    "solve_toeplitz": lambda x: la.solve_toeplitz([3.0, x, 1], [x, 1, 2 * x]),
    "expm": lambda x: la.expm([[x, 1], [0.0, 2]]), "det": lambda x: la.det([[x, 1], [0.5, 2]]),
    "norm": lambda x: la.norm([x, 1]), "eigvalsh": lambda x: la.eigvalsh([[x, 1], [1.0, 2]]),
    "solve_sylvester": lambda x: la.solve_sylvester(A, A, [[x, 0, 0], [0, 1, 0], [0, 0, 1]]),
    "lfilter": lambda x: scipy.signal.lfilter([x, 1], [1, 0.5 * x], [1, x, 2]),
    "savgol_filter": lambda x: scipy.signal.savgol_filter([x, 1, 3, x, 2], 3, 1),
    "hilbert": lambda x: scipy.signal.hilbert([x, 1, 2]).imag, "dct": lambda x: scipy.fft.dct([x, 1, 2]),
    "zoom": lambda x: scipy.ndimage.zoom([x, 1, 2, 3], 2, order=1),
    "cdist": lambda x: distance.cdist([[x, 1]], [[2.0, 3]]), "pdist": lambda x: distance.pdist([[x, 1], [2.0, 3]]),
    "cosine": lambda x: distance.cosine([x, 1], [2.0, 3]),
    "mahalanobis": lambda x: distance.mahalanobis([x, 1], [2.0, 3], [[1.0, 0], [0, x]]),
    "spsolve": lambda x: sp.linalg.spsolve(sp.csc_matrix(A), [x, 1, 2]),
    "cg": lambda x: sp.linalg.cg(A, [x, 1, 2], rtol=1e-14)[0],
    "zscore": lambda x: scipy.stats.zscore([x, 1, 3]),
    "simpson": lambda x: scipy.integrate.simpson([x, 1, 2], x=[0, 1 + x, 3]),
    "pinv and its rank": lambda x: np.divide(*la.pinv([[x, 1], [1.0, 2], [0, 1]], return_rank=True)),
    "a grid": lambda x: scipy.interpolate.RegularGridInterpolator(([0, 1.0], [0, 1.0]), [[x, 1], [2.0, 3]])(
        [[0.5, x / 3]]),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_list_with_traced_numbers_is_an_array_to_scipy(name):
    """`scipy.linalg.solve(A, [x, 1])` and its like were refused, where NumPy's functions were not."""
    f = PROGRAMS[name]
    weights = np.cos(np.arange(np.size(f(1.3)))).reshape(np.shape(f(1.3)))
    total = lambda x: np.sum(weights * f(x))  # noqa: E731
    expected, _ = directional(total, 1.3, 1.0, step=0.01)
    assert grad(total)(1.3) == pytest.approx(float(expected), rel=1e-7, abs=1e-9)
    np.testing.assert_allclose(jvp(f, (1.3,), (1.0,))[0], f(1.3), rtol=1e-13)
    assert compile(grad(total))(1.3) == pytest.approx(grad(total)(1.3), rel=1e-10)
