"""`scipy.linalg`: definitions by `numpy.linalg`, and primitives for triangular and banded systems, functions of
matrices and Sylvester equations.

A derivative of a function of a matrix is a block of the function of a larger matrix, f([[A, E], [0, A]]) =
[[f(A), L(A, E)], [0, f(A)]]: Mathias, A chain rule for matrix functions and applications (1996). The rules of LU and of
triangular systems: Giles, An extended collection of matrix derivative results (2008).
"""

from typing import Any

import numpy as np
import scipy.linalg

from effgrad.arrays.value import evaluated, plain
from effgrad.functions.scipy.tables import constant, reals, require
from effgrad.primitives import cotangents
from effgrad.primitives.complexes import conj, is_complex
from effgrad.primitives.primitive import Primitive, general
from effgrad.primitives.product import mT


def triangle(x: Any, lower: bool, unit: bool = False) -> Any:
    """The triangle of a matrix, without its diagonal if that counts as ones."""
    return np.tril(x, -1 if unit else 0) if lower else np.triu(x, 1 if unit else 0)


def _columns(x: Any, b: Any) -> Any:
    """Solutions or right-hand sides as matrices, whatever the right-hand side `b` was."""
    return x[..., None] if np.ndim(plain(b)) == 1 else x


# Triangular systems.


def _triangular_tangent(t: Any, y: Any, a: Any, b: Any, lower: bool, trans: int, unit: bool) -> Any:
    t = triangle(t, lower, unit)
    return -triangular(a, np.matmul(mT(t) if trans else t, y), lower=lower, trans=trans, unit=unit)


def _triangular_matrix(g: Any, y: Any, a: Any, b: Any, lower: bool, trans: int, unit: bool) -> Any:
    w = _columns(triangular(a, g, lower=lower, trans=1 - trans, unit=unit), b)
    y = _columns(y, b)
    outer = np.matmul(y, mT(w)) if trans else np.matmul(w, mT(y))
    return cotangents.unbroadcast(-triangle(outer, lower, unit), a)


triangular: Primitive = general(
    lambda a, b, lower, trans, unit: scipy.linalg.solve_triangular(
        a, b, lower=lower, trans=trans, unit_diagonal=unit, check_finite=False
    ),
    jvp=(_triangular_tangent, lambda t, y, a, b, **kind: triangular(a, t, **kind)),
    vjp=(
        _triangular_matrix,
        lambda g, y, a, b, lower, trans, unit: cotangents.unbroadcast(
            triangular(a, g, lower=lower, trans=1 - trans, unit=unit), b
        ),
    ),
    name="solve_triangular",
)


def _solve_triangular(
    a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False, *_: Any, **__: Any
) -> Any:
    if trans in (2, "C"):
        a = conj(a)
    trans = {0: 0, 1: 1, 2: 1, "N": 0, "T": 1, "C": 1}[trans]
    return triangular(a, b, lower=bool(lower), trans=trans, unit=bool(unit_diagonal))


def _cholesky(a: Any, lower: bool = False, *_: Any, **__: Any) -> Any:
    # Only one triangle is read: the derivative by the other is zero.
    factor = np.linalg.cholesky(_symmetric(a, lower))
    return factor if lower else mT(factor)


def _cho_factor(a: Any, lower: bool = False, *_: Any, **__: Any) -> Any:
    # The other triangle keeps what was there.
    return _cholesky(a, lower) + triangle(a, not lower, unit=True), lower


def _cho_solve(c_and_lower: Any, b: Any, *_: Any, **__: Any) -> Any:
    c, lower = c_and_lower
    half = triangular(c if lower else conj(c), b, lower=bool(lower), trans=0 if lower else 1, unit=False)
    return triangular(conj(c) if lower else c, half, lower=bool(lower), trans=1 if lower else 0, unit=False)


def _symmetric(a: Any, lower: bool, hermitian: bool = True) -> Any:
    """The symmetric or Hermitian matrix of which one triangle is given."""
    rest = triangle(a, lower, unit=True)
    if not hermitian or not is_complex(a):
        return triangle(a, lower) + mT(rest)
    return rest + mT(conj(rest)) + np.real(a) * np.eye(np.shape(plain(a))[-1])


def _solve(
    a: Any, b: Any, lower: bool = False, overwrite_a: bool = False, overwrite_b: bool = False,
    check_finite: bool = True, assume_a: Any = None, transposed: bool = False,
) -> Any:  # fmt: skip
    if assume_a in ("upper triangular", "lower triangular"):
        return triangular(a, b, lower=assume_a.startswith("lower"), trans=int(transposed), unit=False)
    if assume_a in ("sym", "symmetric", "her", "hermitian", "pos", "positive definite"):
        a = _symmetric(a, lower, not assume_a.startswith("sym"))
    elif assume_a == "diagonal":
        a = np.triu(np.tril(a))
    elif assume_a == "tridiagonal":
        a = np.triu(np.tril(a, 1), -1)
    return np.linalg.solve(mT(a) if transposed else a, b)


def _inv(a: Any, *_: Any, assume_a: Any = None, lower: bool = False, **__: Any) -> Any:
    n = np.shape(plain(a))[-1]
    return np.linalg.inv(a) if assume_a is None else _solve(a, np.eye(n), lower=lower, assume_a=assume_a)


# LU factors, of a matrix whose rows are in the order of its pivots: that order is a constant.


def _permutation(a: Any) -> Any:
    return scipy.linalg.lu(a, p_indices=True)[0]


def _packed(a: Any) -> Any:
    return scipy.linalg.lu_factor(a)[0]


def _lower_upper(packed: Any) -> tuple[Any, Any]:
    return triangle(packed, True, unit=True) + np.eye(np.shape(plain(packed))[-1]), np.triu(packed)


def _packed_jvp(t: Any, y: Any, a: Any) -> Any:
    lower, upper = _lower_upper(y)
    f = triangular(y, t, lower=True, trans=0, unit=True)
    f = mT(triangular(y, mT(f), lower=False, trans=1, unit=False))
    return np.matmul(lower, np.tril(f, -1)) + np.matmul(np.triu(f), upper)


def _packed_vjp(g: Any, y: Any, a: Any) -> Any:
    lower, upper = _lower_upper(y)
    f = np.tril(np.matmul(mT(lower), np.tril(g, -1)), -1) + np.triu(np.matmul(np.triu(g), mT(upper)))
    f = triangular(y, f, lower=True, trans=1, unit=True)
    return mT(triangular(y, mT(f), lower=False, trans=0, unit=False))


packed_lu = general(_packed, jvp=_packed_jvp, vjp=_packed_vjp, name="lu_factor")


def _pivots(a: Any) -> Any:
    return scipy.linalg.lu_factor(a)[1]


def _factored(a: Any) -> tuple[Any, Any]:
    """The order of the rows, and the packed factors of the matrix in that order."""
    require(np.ndim(plain(a)) == 2 and len(set(np.shape(plain(a)))) == 1, "linalg.lu", "square matrices, one at a time")
    # `lu` says where the rows of L go: the inverse of the order of the rows.
    order = evaluated(np.argsort, evaluated(_permutation, a))
    return order, packed_lu(a[order])


def _lu(a: Any, permute_l: bool = False, *_: Any, p_indices: bool = False, **__: Any) -> Any:
    order, packed = _factored(a)
    lower, upper = _lower_upper(packed)
    place = evaluated(np.argsort, order)
    if permute_l:
        return lower[place], upper
    return (place if p_indices else np.eye(np.shape(plain(a))[0])[:, order], lower, upper)


def _lu_factor(a: Any, *_: Any, **__: Any) -> Any:
    return _factored(a)[1], evaluated(_pivots, a)


def _order(pivots: Any) -> Any:
    order = np.arange(len(pivots))
    for row, other in enumerate(pivots):
        order[[row, other]] = order[[other, row]]
    return order


def _lu_solve(lu_and_piv: Any, b: Any, trans: int = 0, *_: Any, **__: Any) -> Any:
    packed, pivots = lu_and_piv
    order = evaluated(_order, pivots)
    if trans == 2:
        packed = conj(packed)
    if trans:
        half = triangular(packed, b, lower=False, trans=1, unit=False)
        return triangular(packed, half, lower=True, trans=1, unit=True)[evaluated(np.argsort, order)]
    half = triangular(packed, b[order], lower=True, trans=0, unit=True)
    return triangular(packed, half, lower=False, trans=0, unit=False)


# Banded systems: row u + i - j, column j of the stored matrix is its element (i, j).


def _band_places(low: int, up: int, n: int) -> Any:
    """For each stored element its row and column, and whether they are in the matrix."""
    column = np.arange(n)[None, :] + np.zeros((low + up + 1, 1), int)
    row = column + np.arange(low + up + 1)[:, None] - up
    inside = (row >= 0) & (row < n)
    return np.where(inside, row, 0), column, inside


def _transposed_band(stored: Any, low: int, up: int) -> Any:
    row, column, inside = _band_places(up, low, np.shape(plain(stored))[1])
    return np.where(inside, stored[np.where(inside, up + column - row, 0), row], 0.0)


def _band_product(stored: Any, y: Any, low: int, up: int) -> Any:
    """The banded matrix times a vector or a matrix: its transpose is stored by its rows."""
    rows = _transposed_band(stored, low, up)
    place = _band_places(up, low, np.shape(plain(stored))[1])[0]
    return np.sum((rows if np.ndim(plain(y)) == 1 else rows[..., None]) * y[place], axis=0)


def _banded_matrix(g: Any, y: Any, stored: Any, b: Any, low: int, up: int) -> Any:
    w = banded(_transposed_band(stored, low, up), g, low=up, up=low)
    row, column, inside = _band_places(low, up, np.shape(plain(stored))[1])
    product = w[row] * y[column]
    return -np.where(inside, product if np.ndim(plain(b)) == 1 else np.sum(product, axis=-1), 0.0)


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


def _solve_banded(l_and_u: Any, ab: Any, b: Any, *_: Any, **__: Any) -> Any:
    low, up = (int(width) for width in l_and_u)
    return banded(ab, b, low=low, up=up)


def _whole_band(ab: Any, lower: bool) -> Any:
    """All diagonals of the symmetric matrix of which one half is stored."""
    width = np.shape(plain(ab))[0] - 1
    rest = np.zeros_like(plain(ab))[1:]
    low, up = (width, 0) if lower else (0, width)
    other = conj(_transposed_band(ab, low, up))
    halves = [np.concatenate([rest, ab]), np.concatenate([other, rest])] if lower else [
        np.concatenate([ab, rest]), np.concatenate([rest, other])]  # fmt: skip
    once = np.reshape(np.where(np.arange(2 * width + 1) == width, 0.5, 1.0), (-1, 1))
    return (halves[0] + halves[1]) * once


def _solveh_banded(
    ab: Any, b: Any, overwrite_ab: bool = False, overwrite_b: bool = False, lower: bool = False, *_: Any, **__: Any
) -> Any:
    width = np.shape(plain(ab))[0] - 1
    return banded(_whole_band(ab, lower), b, low=width, up=width)


def _band(whole: Any, low: int, up: int, corners: Any) -> Any:
    """The stored diagonals of a matrix; what is stored beside them is what was there."""
    row, column, inside = _band_places(low, up, np.shape(plain(whole))[0])
    return np.where(inside, whole[row, column], corners)


def _cholesky_banded(ab: Any, overwrite_ab: bool = False, lower: bool = False, check_finite: bool = True) -> Any:
    n, width = np.shape(plain(ab))[1], np.shape(plain(ab))[0] - 1
    factor = np.linalg.cholesky(_band_product(_whole_band(ab, lower), np.eye(n), width, width))
    return _band(factor, width, 0, ab) if lower else _band(mT(factor), 0, width, ab)


def _cho_solve_banded(cb_and_lower: Any, b: Any, *_: Any, **__: Any) -> Any:
    cb, lower = cb_and_lower
    reals("linalg.cho_solve_banded", cb)
    width = np.shape(plain(cb))[0] - 1
    low, up = (width, 0) if lower else (0, width)
    other = _transposed_band(cb, low, up)
    first, second = (cb, other) if lower else (other, cb)
    return banded(second, banded(first, b, low=width, up=0), low=0, up=width)


def _eigvals_banded(a_band: Any, lower: bool = False, *_: Any, select: Any = "a", **__: Any) -> Any:
    require(select in ("a", "all", 0), "linalg.eigvals_banded", "select='a'")
    n = np.shape(plain(a_band))[1]
    width = np.shape(plain(a_band))[0] - 1
    return np.linalg.eigvalsh(_band_product(_whole_band(a_band, lower), np.eye(n), width, width))


def _eigh_tridiagonal(d: Any, e: Any, eigvals_only: bool = False, select: Any = "a", *_: Any, **__: Any) -> Any:
    require(select in ("a", "all", 0), "linalg.eigh_tridiagonal", "select='a'")
    return _eigh(np.diag(d) + np.diag(e, -1), eigvals_only=eigvals_only)


# Functions of matrices.


def _frechet(function: Primitive, a: Any, direction: Any) -> Any:
    """The derivative of a function of matrices along a direction, whose size is taken out before."""
    size = np.max(np.abs(plain(direction)), initial=0.0)
    size = np.where(size == 0, 1.0, size)
    n = np.shape(plain(a))[-1]
    top = np.concatenate([a, direction / size], axis=-1)
    bottom = np.concatenate([np.zeros(np.shape(plain(a))), a], axis=-1)
    return size * function(np.concatenate([top, bottom], axis=-2))[..., :n, n:]


def _matrix_function(function: Any) -> Primitive:
    primitive: Primitive = general(
        function,
        jvp=lambda t, y, a: _frechet(primitive, a, t),
        vjp=lambda g, y, a: _frechet(primitive, mT(a), g),
    )
    return primitive


MATRIX_FUNCTIONS = {
    name: _matrix_function(getattr(scipy.linalg, name))
    for name in ("expm", "sqrtm", "logm", "cosm", "sinm", "tanm", "coshm", "sinhm", "tanhm")
}


def _of_matrix(name: str) -> Any:
    def rule(A: Any, *options: Any, **more: Any) -> Any:
        require(not options and not more, f"linalg.{name}", "its first argument only")
        return MATRIX_FUNCTIONS[name](A)

    return rule


def _signm(A: Any) -> Any:
    return np.matmul(A, np.linalg.inv(MATRIX_FUNCTIONS["sqrtm"](np.matmul(A, A))))


def _fractional_matrix_power(A: Any, t: Any) -> Any:
    return MATRIX_FUNCTIONS["expm"](t * MATRIX_FUNCTIONS["logm"](A))


def _expm_frechet(A: Any, E: Any, method: Any = None, compute_expm: bool = True, check_finite: bool = True) -> Any:
    derivative = _frechet(MATRIX_FUNCTIONS["expm"], A, E)
    return (MATRIX_FUNCTIONS["expm"](A), derivative) if compute_expm else derivative


# Sylvester equations a x + x b = q.


sylvester: Primitive = general(
    scipy.linalg.solve_sylvester,
    jvp=(
        lambda t, y, a, b, q: -sylvester(a, b, np.matmul(t, y)),
        lambda t, y, a, b, q: -sylvester(a, b, np.matmul(y, t)),
        lambda t, y, a, b, q: sylvester(a, b, t),
    ),
    vjp=(
        lambda g, y, a, b, q: -np.matmul(sylvester(mT(a), mT(b), g), mT(y)),
        lambda g, y, a, b, q: -np.matmul(mT(y), sylvester(mT(a), mT(b), g)),
        lambda g, y, a, b, q: sylvester(mT(a), mT(b), g),
    ),
)


def _discrete_lyapunov(a: Any, q: Any, method: Any = None) -> Any:
    """The system for all elements of x = a x a' + q together."""
    n = np.shape(plain(a))[0]
    return np.reshape(np.linalg.solve(np.eye(n * n) - np.kron(a, conj(a)), np.ravel(q)), (n, n))


# Riccati equations. From SciPy's answer, which counts as a constant, each of Newton's steps doubles the number of
# derivatives that are right: Kleinman, On an iterative technique for Riccati equation computations (1968), and Hewer,
# An iterative technique for the computation of the steady state gains for the discrete optimal regulator (1971).
STEPS = 3


def _continuous_riccati(a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None, balanced: bool = True) -> Any:
    require(e is None and s is None, "linalg.solve_continuous_are", "e=None and s=None")
    reals("linalg.solve_continuous_are", a, b, q, r)
    x = evaluated(scipy.linalg.solve_continuous_are, a, b, q, r)
    for _ in range(STEPS):
        gain = np.linalg.solve(r, np.matmul(mT(b), x))
        closed = a - np.matmul(b, gain)
        x = sylvester(mT(closed), closed, -q - np.matmul(mT(gain), np.matmul(r, gain)))
    return x


def _discrete_riccati(a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None, balanced: bool = True) -> Any:
    require(e is None and s is None, "linalg.solve_discrete_are", "e=None and s=None")
    reals("linalg.solve_discrete_are", a, b, q, r)
    x = evaluated(scipy.linalg.solve_discrete_are, a, b, q, r)
    for _ in range(STEPS):
        xb = np.matmul(x, b)
        gain = np.linalg.solve(r + np.matmul(mT(b), xb), np.matmul(mT(xb), a))
        closed = a - np.matmul(b, gain)
        x = _discrete_lyapunov(mT(closed), q + np.matmul(mT(gain), np.matmul(r, gain)))
    return x


# Decompositions by NumPy's, with the signs of the columns that SciPy's LAPACK driver gives.


def _eigh(
    a: Any, b: Any = None, *, lower: bool = True, eigvals_only: bool = False, type: int = 1,
    subset_by_index: Any = None, subset_by_value: Any = None, **_: Any,
) -> Any:  # fmt: skip
    require(type == 1 and subset_by_value is None, "linalg.eigh", "type=1 and without subset_by_value")
    first, last = (0, None) if subset_by_index is None else (subset_by_index[0], subset_by_index[1] + 1)
    whole, factor = _symmetric(a, lower), None
    if b is not None:
        factor = np.linalg.cholesky(_symmetric(b, lower))
        half = triangular(factor, whole, lower=True, trans=0, unit=False)
        whole = triangular(factor, mT(half), lower=True, trans=0, unit=False)
    if eigvals_only:
        return np.linalg.eigvalsh(whole)[..., first:last]
    values, vectors = np.linalg.eigh(whole)
    if factor is not None:
        vectors = triangular(factor, vectors, lower=True, trans=1, unit=False)

    def signs(vectors: Any, a: Any, *b: Any) -> Any:
        return np.where(np.sum(scipy.linalg.eigh(a, *b, lower=lower)[1] * vectors, axis=-2) < 0, -1.0, 1.0)

    vectors = vectors * evaluated(signs, vectors, *((a,) if b is None else (a, b)))[..., None, :]
    return values[..., first:last], vectors[..., first:last]


def _eig(a: Any, b: Any = None, left: bool = False, right: bool = True, *_: Any, **__: Any) -> Any:
    require(not left, "linalg.eig", "left=False")
    require(b is None or not right, "linalg.eig", "right=False, of a generalised problem")
    if b is not None:
        return _eigvals(a, b)
    values, vectors = np.linalg.eig(a)
    return (values + 0j, vectors) if right else values + 0j


def _eigvals(a: Any, b: Any = None, *_: Any, **__: Any) -> Any:
    return np.linalg.eigvals(a if b is None else np.linalg.solve(b, a)) + 0j


def _svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, *_: Any, **__: Any) -> Any:
    return tuple(np.linalg.svd(a, full_matrices=full_matrices)) if compute_uv else np.linalg.svd(a, compute_uv=False)


def _order_of_columns(a: Any) -> Any:
    return scipy.linalg.qr(a, mode="r", pivoting=True)[1]


def _qr(
    a: Any, overwrite_a: bool = False, lwork: Any = None, mode: str = "full", pivoting: bool = False, *_: Any, **__: Any
) -> Any:
    require(mode in ("full", "economic", "r"), "linalg.qr", "mode 'full', 'economic' or 'r'")
    order = evaluated(_order_of_columns, a) if pivoting else None
    a = a if order is None else a[..., order]
    m, n = np.shape(plain(a))[-2:]
    if mode == "r":
        # Of the full shape, like SciPy's.
        r = np.linalg.qr(a, mode="r")
        parts: tuple[Any, ...] = (np.concatenate([r, np.zeros((*np.shape(plain(a))[:-2], m - n, n))], axis=-2),)
        parts = parts if m > n else (r,)
    else:
        parts = tuple(np.linalg.qr(a, mode="complete" if mode == "full" else "reduced"))
    return parts if order is None else (*parts, order)


def _lstsq(a: Any, b: Any, cond: Any = None, *_: Any, **__: Any) -> Any:
    return tuple(np.linalg.lstsq(a, b, rcond=cond))


def _pinv(a: Any, *, atol: Any = None, rtol: Any = None, return_rank: bool = False, check_finite: bool = True) -> Any:
    require(not atol and not return_rank, "linalg.pinv", "neither atol nor return_rank")
    shape = np.shape(plain(a))
    rtol = max(shape[-2:]) * np.finfo(np.result_type(plain(a))).eps if rtol is None else rtol
    return np.linalg.pinv(a, rcond=rtol)


def _polar(a: Any, side: str = "right") -> Any:
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    stretch = np.matmul(mT(vh) * s, vh) if side == "right" else np.matmul(u * s, mT(u))
    return np.matmul(u, vh), stretch


# Matrices made of vectors.


def _vector(x: Any, name: str) -> Any:
    x = x if hasattr(x, "shape") else np.asarray(x)
    require(np.ndim(plain(x)) <= 1, f"linalg.{name}", "vectors, one at a time")
    return np.ravel(x)


def _toeplitz(c: Any, r: Any = None) -> Any:
    c = _vector(c, "toeplitz")
    r = conj(c) if r is None else _vector(r, "toeplitz")
    m, n = c.size, r.size
    return np.concatenate([c[::-1], r[1:]])[m - 1 + np.arange(n) - np.arange(m)[:, None]]


def _hankel(c: Any, r: Any = None) -> Any:
    c = _vector(c, "hankel")
    r = np.zeros(c.size) if r is None else _vector(r, "hankel")
    return np.concatenate([c, r[1:]])[np.arange(c.size)[:, None] + np.arange(r.size)]


def _circulant(c: Any) -> Any:
    c = _vector(c, "circulant")
    return c[(np.arange(c.size)[:, None] - np.arange(c.size)) % c.size]


def _companion(a: Any) -> Any:
    a = _vector(a, "companion")
    return np.concatenate([np.reshape(-a[1:] / a[0], (1, -1)), np.eye(a.size - 2, a.size - 1)])


def _leslie(f: Any, s: Any) -> Any:
    f, s = _vector(f, "leslie"), _vector(s, "leslie")
    return np.concatenate([np.reshape(f, (1, -1)), np.concatenate([np.diag(s), np.zeros((s.size, 1))], axis=1)])


def _convolution_matrix(a: Any, n: int, mode: str = "full") -> Any:
    a = _vector(a, "convolution_matrix")
    full = _toeplitz(np.concatenate([a, np.zeros(n - 1)]), np.concatenate([a[:1], np.zeros(n - 1)]))
    shorter, longer = sorted((a.size, n))
    first, size = {"full": (0, shorter + longer - 1), "same": ((shorter - 1) // 2, longer),
                   "valid": (shorter - 1, longer - shorter + 1)}[mode]  # fmt: skip
    return full[first : first + size]


def _toeplitz_of(c_or_cr: Any) -> Any:
    return _toeplitz(*c_or_cr) if isinstance(c_or_cr, tuple) else _toeplitz(c_or_cr)


def _khatri_rao(a: Any, b: Any) -> Any:
    return np.reshape(a[..., :, None, :] * b[..., None, :, :], (-1, np.shape(plain(b))[-1]))


def _procrustes(A: Any, B: Any, *_: Any, **__: Any) -> Any:
    u, w, vt = np.linalg.svd(np.matmul(mT(B), A).T, full_matrices=False)
    return np.matmul(u, vt), np.sum(w)


def _block_diag(*arrays: Any) -> Any:
    blocks = [np.atleast_2d(a) for a in arrays]
    widths = [np.shape(plain(b))[1] for b in blocks]
    rows, before = [], 0
    for block, width in zip(blocks, widths, strict=True):
        height = np.shape(plain(block))[0]
        sides = np.zeros((height, before)), np.zeros((height, sum(widths) - before - width))
        rows.append(np.concatenate([sides[0], block, sides[1]], axis=1))
        before += width
    return np.concatenate(rows, axis=0)


RULES: list[tuple[Any, str, Any]] = [
    (scipy.linalg, name, rule)
    for name, rule in {
        "cholesky": _cholesky, "cho_factor": _cho_factor, "cho_solve": _cho_solve, "solve": _solve, "inv": _inv,
        "det": lambda a, *_, **__: np.linalg.det(a), "solve_triangular": _solve_triangular, "lu": _lu,
        "lu_factor": _lu_factor, "lu_solve": _lu_solve, "solve_banded": _solve_banded, "solveh_banded": _solveh_banded,
        **{name: _of_matrix(name) for name in MATRIX_FUNCTIONS}, "expm_frechet": _expm_frechet,
        "fractional_matrix_power": _fractional_matrix_power,
        "solve_sylvester": lambda a, b, q: sylvester(a, b, q),
        "solve_continuous_lyapunov": lambda a, q: sylvester(a, conj(mT(a)), q),
        "solve_lyapunov": lambda a, q: sylvester(a, conj(mT(a)), q), "solve_discrete_lyapunov": _discrete_lyapunov,
        "eigh": _eigh, "eigvalsh": lambda a, b=None, **options: _eigh(a, b, eigvals_only=True, **options),
        "eig": _eig, "eigvals": _eigvals, "eigvals_banded": _eigvals_banded, "eigh_tridiagonal": _eigh_tridiagonal,
        "eigvalsh_tridiagonal": lambda d, e, *options, **more: _eigh_tridiagonal(d, e, True, *options, **more),
        "svd": _svd, "svdvals": lambda a, *_, **__: np.linalg.svd(a, compute_uv=False), "qr": _qr, "lstsq": _lstsq,
        "pinv": _pinv, "polar": _polar, "orthogonal_procrustes": _procrustes, "toeplitz": _toeplitz, "hankel": _hankel,
        "pinvh": lambda a, atol=None, rtol=None, lower=True, return_rank=False, check_finite=True: _pinv(
            _symmetric(a, lower), atol=atol, rtol=rtol, return_rank=return_rank),
        "cholesky_banded": _cholesky_banded, "cho_solve_banded": _cho_solve_banded, "signm": _signm,
        "solve_continuous_are": _continuous_riccati, "solve_discrete_are": _discrete_riccati,
        "circulant": _circulant, "companion": _companion, "leslie": _leslie, "convolution_matrix": _convolution_matrix,
        "solve_toeplitz": lambda c_or_cr, b, check_finite=True: np.linalg.solve(_toeplitz_of(c_or_cr), b),
        "matmul_toeplitz": lambda c_or_cr, x, *_, **__: np.matmul(_toeplitz_of(c_or_cr), x),
        "solve_circulant": lambda c, b, *_, **__: np.linalg.solve(_circulant(c), b),
        "block_diag": _block_diag, "khatri_rao": _khatri_rao, "bandwidth": constant(scipy.linalg.bandwidth),
        "issymmetric": constant(scipy.linalg.issymmetric), "ishermitian": constant(scipy.linalg.ishermitian),
        "norm": lambda a, ord=None, axis=None, keepdims=False, check_finite=True: np.linalg.norm(
            a, ord, axis, keepdims),
    }.items()
]  # fmt: skip
