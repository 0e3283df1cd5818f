"""Decompositions of matrices, and what is computed from them. Batches everywhere, as in NumPy.

A decomposition has several results; its primitive returns them packed in one array, and the functions take it apart.
Where eigenvalues or singular values coincide, the vectors have no derivative; the part of a rule that divides by their
difference is taken as 0 there, which is right for every function that does not depend on the choice of the vectors.

Eigenvectors and singular vectors: Giles 2008, An extended collection of matrix derivative results for forward and
reverse mode algorithmic differentiation; Boeddeker et al. 2017, On the computation of complex-valued gradients (eig).
QR: Walter and Lehmann 2010. The pseudoinverse: Golub and Pereyra 1973.
"""

from typing import Any, cast

import numpy as np

from effgrad.arrays.value import CONSTANT, FUNCTIONS, composed, evaluated, plain
from effgrad.errors import NoRule
from effgrad.primitives.complexes import conj, is_complex, require_real, squared
from effgrad.primitives.primitive import general
from effgrad.primitives.product import mT
from effgrad.primitives.reduction import root


def _adjoint(x: Any) -> Any:
    return conj(mT(x))


def _over_differences(product: Any, w: Any) -> Any:
    """`product` over w_j - w_i.

    Where the two are equal to rounding it is 0 if the product is 0 too, and otherwise NaN: what is asked for depends on
    which vectors of their common space LAPACK has chosen.
    """
    equal = evaluated(_equal, w)
    quotient = np.where(equal, 0.0, product / np.where(equal, 1.0, w[..., None, :] - w[..., :, None]))
    return np.where(evaluated(_undefined, equal, product), np.nan, quotient)


def _equal(w: Any) -> Any:
    if w.size == 0:
        return np.ones((*w.shape, w.shape[-1]), bool)
    tolerance = 4 * np.finfo(w.dtype).eps * np.max(np.abs(w), axis=-1)[..., None, None]
    return np.abs(w[..., None, :] - w[..., :, None]) <= tolerance


def _undefined(equal: Any, product: Any) -> Any:
    return equal & ~np.eye(equal.shape[-1], dtype=bool) & _more_than_rounding(product)


def _more_than_rounding(x: Any) -> Any:
    size = np.abs(x)
    return size > 100 * np.finfo(size.dtype).eps * np.max(size, axis=(-2, -1), keepdims=True, initial=0.0)


def _diagonal(x: Any) -> Any:
    return np.diagonal(x, axis1=-2, axis2=-1)


# Symmetric and Hermitian matrices: a row of eigenvalues over the matrix of eigenvectors.


def _eigh_value(a: Any) -> Any:
    w, v = np.linalg.eigh(a)
    return np.concatenate([w[..., None, :], v], axis=-2)


def _eigh_jvp(t: Any, y: Any, a: Any) -> Any:
    w, v = np.real(y[..., 0, :]), y[..., 1:, :]
    inner = np.matmul(np.matmul(_adjoint(v), 0.5 * (t + _adjoint(t))), v)
    turned = np.matmul(v, _over_differences(inner, w))
    return np.concatenate([np.real(_diagonal(inner))[..., None, :], turned], axis=-2)


def _eigh_vjp(g: Any, y: Any, a: Any) -> Any:
    w, v = np.real(y[..., 0, :]), y[..., 1:, :]
    gw, gv = np.real(g[..., 0, :]), conj(g[..., 1:, :])
    middle = _over_differences(np.matmul(_adjoint(v), gv), w) + gw[..., None, :] * np.eye(w.shape[-1])
    result = np.matmul(np.matmul(v, middle), _adjoint(v))
    return conj(0.5 * (result + _adjoint(result)))


eigh_packed = general(_eigh_value, _eigh_jvp, _eigh_vjp, name="eigh")
EighResult, EigResult, SVDResult, QRResult = (
    cast(Any, type(f(np.eye(1)))) for f in (np.linalg.eigh, np.linalg.eig, np.linalg.svd, np.linalg.qr)
)


def _identity(a: Any) -> Any:
    return np.eye(np.shape(plain(a))[-1], dtype=np.result_type(plain(a)))


def _from_triangle(a: Any, triangle: str) -> Any:
    """The whole matrix, of which one triangle is looked at."""
    if triangle.upper() not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    half = np.tril(a, -1) if triangle.upper() == "L" else np.triu(a, 1)
    return half + _adjoint(half) + np.real(a) * _identity(a)


def _eigh(a: Any, UPLO: str = "L") -> Any:
    y = eigh_packed(_from_triangle(a, UPLO))
    return EighResult(np.real(y[..., 0, :]), y[..., 1:, :])


def _eigvalsh(a: Any, UPLO: str = "L") -> Any:
    return _eigh(a, UPLO)[0]


# General square matrices: eigenvalues and eigenvectors are complex, even where they happen to be real.


def _eig_value(a: Any) -> Any:
    w, v = np.linalg.eig(a)
    return np.concatenate([w[..., None, :], v], axis=-2).astype(np.result_type(w, 1j))


def _eig_jvp(t: Any, y: Any, a: Any) -> Any:
    w, v = y[..., 0, :], y[..., 1:, :]
    inner = np.linalg.solve(v, np.matmul(t, v))
    turned = np.matmul(v, _over_differences(inner, w))
    # LAPACK's eigenvectors have length 1, and their largest element is real.
    length = np.real(np.sum(conj(v) * turned, axis=-2, keepdims=True))
    phase = np.imag(np.sum(turned * _over_largest(v), axis=-2, keepdims=True))
    turned = turned - v * (length + 1j * phase)
    return np.concatenate([_diagonal(inner)[..., None, :], turned], axis=-2)


def _largest(v: Any) -> Any:
    """Which element of each column is the largest, as weights."""
    size = np.abs(v)
    first = np.argmax(size, axis=-2)[..., None, :] if size.size else np.zeros(size.shape, int)[..., :1, :]
    return (np.arange(v.shape[-2])[:, None] == first) * 1.0


def _over_largest(v: Any) -> Any:
    at = evaluated(_largest, v)
    return at / np.where(at == 0, 1.0, v)


def _eig_vjp(g: Any, y: Any, a: Any) -> Any:
    w, v = y[..., 0, :], y[..., 1:, :]
    gw, gv = g[..., 0, :], g[..., 1:, :]
    along = np.sum(v * gv, axis=-2, keepdims=True)
    gv = gv - conj(v) * np.real(along) - 1j * np.imag(along) * _over_largest(v)
    middle = _over_differences(np.matmul(mT(v), gv), w) + gw[..., None, :] * np.eye(w.shape[-1])
    return np.matmul(np.linalg.solve(mT(v), middle), mT(v))


eig_packed = general(_eig_value, _eig_jvp, _eig_vjp, name="eig")


def _eig(a: Any) -> Any:
    y = eig_packed(a)
    w, v = y[..., 0, :], y[..., 1:, :]
    if evaluated(_all_real, w) and not is_complex(a):
        return EigResult(np.real(w), np.real(v))
    return EigResult(w, v)


def _all_real(w: Any) -> bool:
    return bool(np.all(np.imag(w) == 0))


def _eigvals(a: Any) -> Any:
    return _eig(a)[0]


# Singular values: u, s and the transpose of v, raveled one after the other.


def _svd_value(a: Any) -> Any:
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    return _pack(u, s, vt)


def _pack(u: Any, s: Any, vt: Any) -> Any:
    batch = np.shape(plain(s))[:-1]
    return np.concatenate([np.reshape(u, (*batch, -1)), s, np.reshape(vt, (*batch, -1))], axis=-1)


def _unpack(y: Any, shape: tuple[int, ...]) -> tuple[Any, Any, Any]:
    *batch, m, n = shape
    k = min(m, n)
    u, s, vt = y[..., : m * k], y[..., m * k : m * k + k], y[..., m * k + k :]
    return np.reshape(u, (*batch, m, k)), s, np.reshape(vt, (*batch, k, n))


def _over_squares(product: Any, s: Any) -> Any:
    """`product` over the differences of squares."""
    total = s[..., None, :] + s[..., :, None]
    return _over_differences(product, s) / np.where(plain(total) == 0, 1.0, total)


def _over_values(outside: Any, s: Any) -> Any:
    """What is outside the singular vectors over the singular values; of one that is 0, 0 over 0 is 0."""
    zero = plain(s)[..., None, :] == 0
    quotient = np.where(zero, 0.0, outside / np.where(zero, 1.0, s[..., None, :]))
    return np.where(zero & evaluated(_more_than_rounding, outside), np.nan, quotient)


def _svd_jvp(t: Any, y: Any, a: Any) -> Any:
    u, s, vt = _unpack(y, np.shape(plain(a)))
    v = mT(vt)
    row = s[..., None, :]
    inner = np.matmul(np.matmul(mT(u), t), v)
    du = np.matmul(u, _over_squares(inner * row + mT(row) * mT(inner), s))
    dv = np.matmul(v, _over_squares(mT(row) * inner + mT(inner) * row, s))
    outside_u = np.matmul(t, v) - np.matmul(u, inner)
    outside_v = np.matmul(mT(t), u) - np.matmul(v, mT(inner))
    return _pack(du + _over_values(outside_u, s), _diagonal(inner), mT(dv + _over_values(outside_v, s)))


def _svd_vjp(g: Any, y: Any, a: Any) -> Any:
    shape = np.shape(plain(a))
    u, s, vt = _unpack(y, shape)
    gu, gs, gvt = _unpack(g, shape)
    v, gv = mT(vt), mT(gvt)
    row = s[..., None, :]
    # The transpose of each line of the rule going forward.
    pu, pv = _over_squares(np.matmul(mT(u), gu), s), _over_squares(np.matmul(mT(v), gv), s)
    middle = (pu + mT(pu)) * row + mT(row) * (pv + mT(pv)) + gs[..., None, :] * np.eye(s.shape[-1])
    result = np.matmul(np.matmul(u, middle), vt)
    outside_u, outside_v = _over_values(gu, s), _over_values(gv, s)
    outside_u = outside_u - np.matmul(u, np.matmul(mT(u), outside_u))
    outside_v = outside_v - np.matmul(v, np.matmul(mT(v), outside_v))
    return result + np.matmul(outside_u, vt) + np.matmul(u, mT(outside_v))


svd_packed = general(_svd_value, _svd_jvp, _svd_vjp, name="svd")


def _svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    require_real(a, "numpy.linalg.svd")
    shape = np.shape(plain(a))
    u, s, vt = _unpack(svd_packed(a), shape)
    if not compute_uv:
        return s
    if full_matrices and shape[-1] != shape[-2]:
        raise NoRule(
            "the square factors of numpy.linalg.svd of a matrix that is not square have no derivative: "
            "use full_matrices=False"
        )
    return SVDResult(u, s, vt)


def _svdvals(x: Any, /) -> Any:
    return _svd(x, compute_uv=False)


# QR of matrices with at least as many rows as columns: q and r raveled. A wide matrix is q times r and the rest.


def _qr_value(a: Any) -> Any:
    q, r = np.linalg.qr(a)
    return np.concatenate([q, r], axis=-2)


def _lower(x: Any) -> Any:
    return np.tril(x, -1)


def _qr_jvp(t: Any, y: Any, a: Any) -> Any:
    m = np.shape(plain(a))[-2]
    q, r = y[..., :m, :], y[..., m:, :]
    scaled = mT(np.linalg.solve(mT(r), mT(t)))
    inner = np.matmul(mT(q), scaled)
    skew = _lower(inner) - mT(_lower(inner))
    return np.concatenate([scaled + np.matmul(q, skew - inner), np.matmul(inner - skew, r)], axis=-2)


def _qr_vjp(g: Any, y: Any, a: Any) -> Any:
    m = np.shape(plain(a))[-2]
    q, r, gq, gr = y[..., :m, :], y[..., m:, :], g[..., :m, :], g[..., m:, :]
    # Transposing the rule going forward: what `inner` receives, then `scaled`.
    into = np.matmul(gr, mT(r)) - np.matmul(mT(q), gq)
    received = into - _lower(into - mT(into))
    return mT(np.linalg.solve(r, mT(gq + np.matmul(q, received))))


qr_packed = general(_qr_value, _qr_jvp, _qr_vjp, name="qr")


def _qr(a: Any, mode: str = "reduced") -> Any:
    require_real(a, "numpy.linalg.qr")
    m, n = np.shape(plain(a))[-2:]
    if mode not in ("reduced", "r") and not (mode == "complete" and m <= n):
        raise NoRule(f"numpy.linalg.qr with mode={mode!r} has no derivative rule: use mode='reduced'")
    k = min(m, n)
    y = qr_packed(a[..., :k])
    q, r = y[..., :m, :], y[..., m:, :]
    if n > k:
        r = np.concatenate([r, np.matmul(mT(q), a[..., k:])], axis=-1)
    return r if mode == "r" else QRResult(q, r)


# The pseudoinverse, and least squares by it. The rule holds in directions that keep the rank.


def _pinv_jvp(t: Any, y: Any, a: Any, rcond: Any) -> Any:
    yt, tt = _adjoint(y), _adjoint(t)
    left = np.matmul(y, np.matmul(yt, tt))
    right = np.matmul(np.matmul(tt, yt), y)
    return (
        -np.matmul(np.matmul(y, t), y) + left - np.matmul(np.matmul(left, a), y) + right
        - np.matmul(y, np.matmul(a, right))
    )  # fmt: skip


def _pinv_vjp(g: Any, y: Any, a: Any, rcond: Any) -> Any:
    g = conj(g)
    yt, gt = _adjoint(y), _adjoint(g)
    left = np.matmul(np.matmul(gt, y), yt)
    right = np.matmul(yt, np.matmul(y, gt))
    return conj(
        -np.matmul(np.matmul(yt, g), yt) + left - np.matmul(a, np.matmul(y, left)) + right
        - np.matmul(np.matmul(right, y), a)
    )  # fmt: skip


pinv_of = general(lambda a, rcond: np.linalg.pinv(a, rcond), _pinv_jvp, _pinv_vjp, name="pinv")


def _pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    if rcond is None and rtol is None:
        rcond = 1e-15 if np.finfo(np.result_type(plain(a))).eps < 1e-10 else 1e-6
    return pinv_of(a, rcond=plain(rcond if rtol is None else rtol))


def _lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    m, n = np.shape(plain(a))
    limit = np.finfo(np.result_type(plain(a))).eps * max(m, n) if rcond is None else rcond
    x = np.matmul(pinv_of(a, rcond=limit), b)
    rank = evaluated(_rank, a, limit)
    rest = b - np.matmul(a, x)
    full = m > n and rank == n
    residuals = (
        np.sum(np.abs(rest) ** 2, axis=0, keepdims=np.ndim(plain(b)) == 1)
        if full
        else np.array([], np.finfo(x.dtype).dtype)
    )
    return x, residuals, rank, np.linalg.svdvals(a)


def _rank(a: Any, limit: float) -> Any:
    return np.intc(np.linalg.matrix_rank(a, rtol=limit))


# Powers, chains, norms, conditions.


def _matrix_power(a: Any, n: int) -> Any:
    if n < 0:
        a, n = np.linalg.inv(a), -n
    if n == 0:
        return a * 0.0 + _identity(a)
    half = _matrix_power(a, n // 2) if n > 1 else None
    square = a if half is None else np.matmul(half, half)
    return np.matmul(square, a) if n > 1 and n % 2 else square


def _multi_dot(arrays: Any, *, out: Any = None) -> Any:
    """The order of multiplication is the one with the fewest operations."""
    first, last = np.ndim(plain(arrays[0])) == 1, np.ndim(plain(arrays[-1])) == 1
    matrices = [np.reshape(arrays[0], (1, -1)) if first else arrays[0], *arrays[1:-1]]
    matrices.append(np.reshape(arrays[-1], (-1, 1)) if last else arrays[-1])
    sizes = [np.shape(plain(matrix))[0] for matrix in matrices] + [np.shape(plain(matrices[-1]))[1]]
    best: dict[tuple[int, int], tuple[int, int]] = {}
    for length in range(len(matrices)):
        for i in range(len(matrices) - length):
            j = i + length
            best[i, j] = min(
                ((best[i, k][0] + best[k + 1, j][0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)),
                default=(0, i),
            )

    def product(i: int, j: int) -> Any:
        k = best[i, j][1]
        return matrices[i] if i == j else np.matmul(product(i, k), product(k + 1, j))

    result = product(0, len(matrices) - 1)
    shape = np.shape(plain(result))
    return np.reshape(result, shape[first : 2 - last]) if first or last else result


def _largest_of(sizes: Any, axis: Any, keepdims: bool = False) -> Any:
    """The largest size; of none, 0."""
    if not np.size(plain(sizes)):
        sizes = np.sum(sizes, axis=axis, keepdims=True)
    return np.max(sizes, axis=axis, keepdims=keepdims)


def _matrix_norm(x: Any, ord: Any, keepdims: bool) -> Any:
    """The norm of the matrices in the last two axes."""
    if ord in ("fro", None):
        return root(np.sum(squared(x), axis=(-2, -1), keepdims=keepdims))
    if ord in (1, -1, np.inf, -np.inf):
        sums = np.sum(np.abs(x), axis=-2 if abs(ord) == 1 else -1)
        result = _largest_of(sums, -1) if ord > 0 else np.min(sums, axis=-1)
    elif ord in (2, -2, "nuc"):
        s = np.linalg.svdvals(x)
        # The absolute value is for singular values of 0, where it is flat; a tie for the largest is averaged.
        result = np.sum(np.abs(s), -1) if ord == "nuc" else _largest_of(s, -1) if ord == 2 else np.min(s, -1)
    else:
        raise ValueError(f"Invalid norm order {ord!r} for matrices")
    return result[..., None, None] if keepdims else result


def _vector_norm(x: Any, ord: Any, axis: Any, keepdims: bool) -> Any:
    if ord in (None, 2):
        return root(np.sum(squared(x), axis=axis, keepdims=keepdims))
    size = np.abs(x)
    if ord == np.inf:
        return _largest_of(size, axis, keepdims)
    if ord == -np.inf:
        return np.min(size, axis=axis, keepdims=keepdims)
    if ord == 0:
        return np.sum(plain(x) != 0, axis=axis, keepdims=keepdims) * 1.0
    if ord == 1:
        return np.sum(size, axis=axis, keepdims=keepdims)
    total = np.sum(size**ord, axis=axis, keepdims=keepdims)
    zero = plain(total) == 0
    return np.where(zero, 0.0, np.where(zero, 1.0, total) ** (1.0 / ord))


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    x = np.asarray(x)
    ndim = np.ndim(plain(x))
    if axis is None and (ord is None or ndim == 1):
        result = _vector_norm(np.ravel(x), ord, 0, False)
        return np.reshape(result, (1,) * ndim) if keepdims else result
    if axis is None:
        axis = (0, 1)
        if ndim != 2:
            raise ValueError("Improper number of dimensions to norm.")
    axes = tuple(int(i) % ndim for i in np.atleast_1d(axis))
    if len(axes) == 1:
        return _vector_norm(x, ord, axes[0], keepdims)
    result = _matrix_norm(np.moveaxis(x, axes, (-2, -1)), ord, False)
    return np.expand_dims(result, tuple(sorted(axes))) if keepdims else result


def _linalg_vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    if axis is None:
        result = _vector_norm(np.ravel(x), ord, 0, False)
        return np.reshape(result, (1,) * np.ndim(plain(x))) if keepdims else result
    return _vector_norm(x, ord, axis, keepdims)


def _cond(x: Any, p: Any = None) -> Any:
    if p in (None, 2, -2):
        s = np.linalg.svdvals(x)
        ratio = s[..., 0] / s[..., -1] if p != -2 else s[..., -1] / s[..., 0]
    else:
        ratio = _norm(x, p, (-2, -1)) * _norm(np.linalg.inv(x), p, (-2, -1))
    # A matrix of zeros has an infinite condition.
    undefined = np.isnan(plain(ratio)) & ~np.isnan(plain(x)).any(axis=(-2, -1))
    return np.where(undefined, np.inf, ratio)


def _tensorinv(a: Any, ind: int = 2) -> Any:
    shape = np.shape(plain(a))
    rows = int(np.prod(shape[:ind]))
    return np.reshape(np.linalg.inv(np.reshape(a, (rows, -1))), shape[ind:] + shape[:ind])


def _tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    ndim = np.ndim(plain(a))
    if axes is not None:
        kept = [i for i in range(ndim) if i not in {int(j) % ndim for j in axes}]
        a = np.transpose(a, [*kept, *axes])
    shape = np.shape(plain(a))[np.ndim(plain(b)) :]
    size = int(np.prod(shape))
    return np.reshape(np.linalg.solve(np.reshape(a, (size, size)), np.ravel(b)), shape)


composed({
    np.linalg.eigvalsh: _eigvalsh, np.linalg.eigvals: _eigvals, np.linalg.svdvals: _svdvals, np.linalg.pinv: _pinv,
    np.linalg.cond: _cond,
})  # fmt: skip
FUNCTIONS.update({
    np.linalg.eigh: _eigh, np.linalg.eig: _eig, np.linalg.svd: _svd, np.linalg.qr: _qr, np.linalg.lstsq: _lstsq,
    np.linalg.matrix_power: _matrix_power, np.linalg.multi_dot: _multi_dot, np.linalg.tensorinv: _tensorinv,
    np.linalg.tensorsolve: _tensorsolve, np.linalg.norm: _norm, np.linalg.vector_norm: _linalg_vector_norm,
    np.linalg.matrix_norm: lambda x, /, *, keepdims=False, ord="fro": _matrix_norm(x, ord, keepdims),
})  # fmt: skip
CONSTANT.add(np.linalg.matrix_rank)
