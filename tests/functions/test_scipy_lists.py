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


# Matrices and bands as lists of plain numbers beside a traced vector: the definitions indexed the list, a TypeError.
ROWS, ROWS_OF_BAND = A.tolist(), BAND.tolist()
PROGRAMS |= {
    "rows: solve_banded": lambda x: la.solve_banded((1, 1), ROWS_OF_BAND, [x, 1, 2 * x]),
    "rows: solveh_banded": lambda x: la.solveh_banded(ROWS_OF_BAND[:2], [x, 1, 2 * x]),
    "rows: cho_solve": lambda x: la.cho_solve((ROWS, True), [x, 1, 2 * x]),
    "rows: cho_solve_banded": lambda x: la.cho_solve_banded(([[4.0, 4, 4], [1, 1, 0]], True), [x, 1, 2 * x]),
    "rows: lstsq": lambda x: la.lstsq(ROWS, [x, 1, 2 * x])[0],
    "rows: np.linalg.lstsq": lambda x: np.linalg.lstsq(ROWS, [x, 1, 2 * x])[0],
    "rows: solve_sylvester": lambda x: la.solve_sylvester(ROWS, ROWS, np.diag([x, 1, 2 * x])),
    "rows: lyapunov": lambda x: la.solve_continuous_lyapunov(ROWS, np.diag([x, 1, 2 * x])),
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



FINITE = {
    "solve": lambda x: np.sum(la.solve(A, x)), "inv": lambda x: np.sum(la.inv(np.outer(x, x) + A)),
    "cholesky": lambda x: np.sum(la.cholesky(np.outer(x, x) + A)), "lstsq": lambda x: np.sum(la.lstsq(A, x)[0]),
    "solve_triangular": lambda x: np.sum(la.solve_triangular(A, x)), "norm": lambda x: la.norm(x),
    "eigvalsh": lambda x: la.eigvalsh(np.outer(x, x) + A)[0], "solve_toeplitz": lambda x: la.solve_toeplitz(A[0], x)[0],
    "solve_banded": lambda x: la.solve_banded((1, 1), BAND, x)[0], "in a loop": lambda x: in_a_loop(x),
    "np.asarray_chkfinite": lambda x: np.sum(np.asarray_chkfinite(x)),
}  # fmt: skip


def in_a_loop(x):
    y = x
    for _ in range(60):
        y = la.solve(A + np.outer(y, y), x)
    return np.sum(y)


@pytest.mark.parametrize("derive", [lambda f: f, grad], ids=["value", "gradient"])
@pytest.mark.parametrize("name", FINITE)
def test_a_compiled_program_checks_that_arrays_are_finite(name, derive):
    """It gave NaN, or the derivative of a value that SciPy refuses to compute."""
    f, x = derive(FINITE[name]), np.array([0.3, 0.7, 0.2])
    compiled = compile(f)
    for bad in (np.nan, np.inf):
        np.testing.assert_allclose(compiled(x), f(x), rtol=1e-10)
        for run in (f, compiled):
            with pytest.raises(ValueError, match="must not contain infs or NaNs"):
                run(np.array([0.3, bad, 0.2]))
    unchecked = compile(lambda x: np.sum(la.solve(A, x, check_finite=False)))
    assert np.isnan([unchecked(x), unchecked(x * np.nan)]).tolist() == [False, True]
