"""Rules for `scipy.linalg`: banded systems, and factors and eigenvalues of banded matrices."""

import numpy as np
import scipy.linalg

from effgrad.arrays.layout import ndim_of, shape_of
from effgrad.arrays.value import plain
from effgrad.functions.scipy.signs import with_phases
from effgrad.functions.scipy.tables import over_batches
from effgrad.primitives.complexes import conj
from effgrad.primitives.factors import adjoint
from effgrad.primitives.primitive import Primitive, general
from effgrad.vocabulary import Cotangent, Value

# Banded systems. Element (i, j) of a matrix with u diagonals above the main one is stored in row u + i - j, column j.


def _band_places(low: int, up: int, n: int) -> Value:
    """Return the row and the column of each stored element, and whether the element is inside the matrix."""
    column = np.arange(n)[None, :] + np.zeros((low + up + 1, 1), int)
    row = column + np.arange(low + up + 1)[:, None] - up
    inside = (row >= 0) & (row < n)
    return np.where(inside, row, 0), column, inside


def _transposed_band(stored: Value, low: int, up: int) -> Value:
    row, column, inside = _band_places(up, low, shape_of(stored)[1])
    return np.where(inside, stored[np.where(inside, up + column - row, 0), row], 0.0)


def _band_product(stored: object, y: Value, low: int, up: int) -> Value:
    """The banded matrix times a vector or a matrix; the stored columns of its transpose are its rows."""
    rows = _transposed_band(stored, low, up)
    place = _band_places(up, low, shape_of(stored)[1])[0]
    return np.sum((rows if ndim_of(y) == 1 else rows[..., None]) * y[place], axis=0)


def _banded_matrix(g: Cotangent, y: Value, stored: object, b: Value, low: int, up: int) -> Value:
    w = banded(_transposed_band(stored, low, up), g, low=up, up=low)
    row, column, inside = _band_places(low, up, shape_of(stored)[1])
    product = w[row] * y[column]
    return -np.where(inside, product if ndim_of(b) == 1 else np.sum(product, axis=-1), 0.0)


banded: Primitive = general(
    lambda stored, b, low, up: scipy.linalg.solve_banded((low, up), stored, b, check_finite=False),
    jvp=(
        lambda t, y, stored, b, low, up: -banded(stored, _band_product(t, y, low, up), low=low, up=up),
        lambda t, y, stored, b, low, up: banded(stored, t, low=low, up=up),
    ),
    vjp=(
        _banded_matrix,
        lambda g, y, stored, b, low, up: banded(_transposed_band(stored, low, up), g, low=up, up=low),
    ),
    name="solve_banded",
)


def _solve_banded(l_and_u: Value, ab: object, b: Value) -> Value:
    low, up = (int(width) for width in l_and_u)
    return over_batches(lambda ab, b: banded(ab, b, low=low, up=up), 2, -1)(ab, b)


def _whole_band(ab: object, lower: bool) -> Value:
    """All stored diagonals of the Hermitian matrix whose lower or upper diagonals are in `ab`."""
    width = shape_of(ab)[0] - 1
    rest = np.zeros_like(plain(ab))[1:]
    low, up = (width, 0) if lower else (0, width)
    other = conj(_transposed_band(ab, low, up))
    halves = [np.concatenate([rest, ab]), np.concatenate([other, rest])] if lower else [
        np.concatenate([ab, rest]), np.concatenate([rest, other])]  # fmt: skip
    once = np.reshape(np.where(np.arange(2 * width + 1) == width, 0.5, 1.0), (-1, 1))
    return (halves[0] + halves[1]) * once


def _solveh_banded(ab: object, b: Value, lower: bool = False) -> Value:
    width = shape_of(ab)[0] - 1
    return banded(_whole_band(ab, lower), b, low=width, up=width)


def _band(whole: Value, low: int, up: int, corners: Value) -> Value:
    """The stored diagonals of a matrix; the unused elements of the storage are those of `corners`."""
    row, column, inside = _band_places(low, up, shape_of(whole)[0])
    return np.where(inside, whole[row, column], corners)


def _cholesky_banded(ab: object, lower: bool = False) -> Value:
    n, width = shape_of(ab)[1], shape_of(ab)[0] - 1
    factor = np.linalg.cholesky(_band_product(_whole_band(ab, lower), np.eye(n), width, width))
    return _band(factor, width, 0, ab) if lower else _band(adjoint(factor), 0, width, ab)


def _solved_by_band(cb: Value, lower: Value, b: Value) -> Value:
    width = shape_of(cb)[0] - 1
    low, up = (width, 0) if lower else (0, width)
    other = conj(_transposed_band(cb, low, up))
    first, second = (cb, other) if lower else (other, cb)
    return banded(second, banded(first, b, low=width, up=0), low=0, up=width)


_solve_by_band = over_batches(_solved_by_band, 2, 0, -1)


def _cho_solve_banded(cb_and_lower: Value, b: Value) -> Value:
    return _solve_by_band(*cb_and_lower, b)


def _eigvals_banded(a_band: object, lower: bool = False) -> Value:
    return np.linalg.eigvalsh(_dense(a_band, lower))


def _eig_banded(a_band: object, lower: bool = False, eigvals_only: bool = False) -> Value:
    if eigvals_only:
        return _eigvals_banded(a_band, lower)
    values, vectors = np.linalg.eigh(_dense(a_band, lower))
    return values, with_phases(vectors, lambda band: scipy.linalg.eig_banded(band, lower)[1], a_band)


def _dense(a_band: object, lower: bool) -> Value:
    """The Hermitian matrix whose lower or upper diagonals are in `a_band`."""
    width = shape_of(a_band)[0] - 1
    return _band_product(_whole_band(a_band, lower), np.eye(shape_of(a_band)[1]), width, width)


def _eigh_tridiagonal(d: Value, e: Value, eigvals_only: bool = False) -> Value:
    whole = np.diag(d) + np.diag(e, -1)
    if eigvals_only:
        return np.linalg.eigvalsh(whole)
    values, vectors = np.linalg.eigh(whole)
    return values, with_phases(vectors, lambda d, e: scipy.linalg.eigh_tridiagonal(d, e)[1], d, e)


RULES = {
    "solve_banded": _solve_banded, "solveh_banded": over_batches(_solveh_banded, 2, -1),
    "cholesky_banded": over_batches(_cholesky_banded, 2), "cho_solve_banded": _cho_solve_banded,
    "eigvals_banded": over_batches(_eigvals_banded, 2), "eig_banded": over_batches(_eig_banded, 2),
    "eigh_tridiagonal": over_batches(_eigh_tridiagonal, 1, 1),
    "eigvalsh_tridiagonal": over_batches(lambda d, e: _eigh_tridiagonal(d, e, True), 1, 1),
}  # fmt: skip
