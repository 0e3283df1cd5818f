"""Triangular factors of matrices: Cholesky and QR. As in NumPy, they take stacks of matrices.

`cholesky` reads one triangle of its argument, so the derivative with respect to the other is 0. Applying
`effgrad.symmetric(a)` before it gives the symmetric derivative.

Cotangents are not conjugated (`effgrad.primitives.complexes`): the rules below are stated for the conjugate G of a
cotangent, with dL = Re tr(G^H dY), and conjugate their result.

Cholesky: Murray, Differentiation of the Cholesky decomposition (2016). QR: Walter and Lehmann, Algorithmic
differentiation of linear algebra functions (2010); reflections: Golub and Van Loan, Matrix computations, section 5.1.
"""

from typing import Any, cast

import numpy as np

from effgrad.arrays import library_matrices
from effgrad.arrays.layout import dtype_of, shape_of
from effgrad.arrays.namespace import BY_NUMPY
from effgrad.arrays.value import FUNCTIONS, evaluated, example, plain
from effgrad.primitives.batching import stacked
from effgrad.primitives.complexes import conj, is_complex
from effgrad.primitives.given import as_computed
from effgrad.primitives.primitive import general
from effgrad.primitives.product import mT
from effgrad.primitives.triangular import solved
from effgrad.vocabulary import Cotangent, Tangent, Value


def adjoint(x: Value) -> Value:
    """Return the conjugate transposes of matrices."""
    return conj(mT(x))


def diagonal_matrix(x: Value) -> Value:
    """Return the diagonals of matrices as matrices; the other elements are not read, so a NaN there has no effect."""
    return np.triu(np.tril(x))


def imaginary_diagonal(x: Value) -> Value:
    return 1j * np.imag(diagonal_matrix(x)) if is_complex(x) else 0.0


# Hermitian matrices given by one triangle.


def hermitian_of_triangle(a: Value, lower: bool) -> Value:
    """Return the Hermitian matrix that has one triangle of `a`."""
    half = np.tril(a, -1) if lower else np.triu(a, 1)
    return half + adjoint(half) + np.real(diagonal_matrix(a))


def into_triangle(g: Cotangent, lower: bool) -> Value:
    """Return the transpose of `hermitian` applied to a cotangent."""
    both = g + adjoint(g)
    return (np.tril(both, -1) if lower else np.triu(both, 1)) + np.real(diagonal_matrix(g))


# Cholesky factors: a = L L^H. An upper factor is L^H.


def _phi(x: Value) -> Value:
    """Return the lower triangle with half the diagonal."""
    return np.tril(x) - 0.5 * diagonal_matrix(x)


def _cholesky_jvp(t: Tangent, y: Value, a: Value, upper: bool) -> Value:
    factor, t = (adjoint(y) if upper else y), hermitian_of_triangle(t, not upper)
    inner = adjoint(solved(factor, adjoint(solved(factor, t, True)), True))
    change = np.matmul(factor, _phi(inner))
    return adjoint(change) if upper else change


def _cholesky_vjp(g: Cotangent, y: Value, a: Value, upper: bool) -> Value:
    factor, received = (adjoint(y), mT(g)) if upper else (y, conj(g))
    inner = solved(adjoint(factor), _phi(np.matmul(adjoint(factor), np.tril(received))), False)
    return into_triangle(conj(adjoint(solved(adjoint(factor), adjoint(inner), False))), not upper)


cholesky = general(
    lambda a, upper: np.linalg.cholesky(a, upper=upper), jvp=_cholesky_jvp, vjp=_cholesky_vjp, name="cholesky",
    batch=stacked, counterpart=library_matrices.hermitian("cholesky"),
)


# The primitive QR, for matrices with at least as many rows as columns, packs q on top of r. For a wide matrix the
# remaining columns of r are q^H times those of the matrix.


def _qr_value(a: Value) -> Value:
    q, r = np.linalg.qr(a)
    return np.concatenate([q, r], axis=-2)


def _below(x: Value) -> Value:
    return np.tril(x, -1)


def _qr_jvp(t: Tangent, y: Value, a: Value) -> Value:
    m = shape_of(a)[-2]
    q, r = y[..., :m, :], y[..., m:, :]
    scaled = mT(np.linalg.solve(mT(r), mT(t)))
    inner = np.matmul(adjoint(q), scaled)
    # LAPACK keeps the diagonal of r real.
    skew = _below(inner) - adjoint(_below(inner)) + imaginary_diagonal(inner)
    return np.concatenate([scaled + np.matmul(q, skew - inner), np.matmul(inner - skew, r)], axis=-2)


def _qr_vjp(g: Cotangent, y: Value, a: Value) -> Value:
    m, g = shape_of(a)[-2], conj(g)
    q, r, gq, gr = y[..., :m, :], y[..., m:, :], g[..., :m, :], g[..., m:, :]
    # The transpose of the forward rule: first the cotangent of `inner`, then that of `scaled`.
    into = np.matmul(np.triu(gr), adjoint(r)) - np.matmul(adjoint(q), gq)
    received = into - _below(into - adjoint(into)) - imaginary_diagonal(into)
    return conj(adjoint(np.linalg.solve(r, adjoint(gq + np.matmul(q, received)))))


QRResult = cast(Any, type(np.linalg.qr(np.eye(1))))
qr_packed = general(_qr_value, _qr_jvp, _qr_vjp, name="qr", batch=stacked, counterpart=BY_NUMPY)


def _qr(a: Value, mode: str = "reduced") -> Value:
    m, n = shape_of(a)[-2:]
    if mode == "raw" or (mode == "complete" and m > n):
        reflectors, tau, q = householder(a)
        return (mT(reflectors), tau) if mode == "raw" else QRResult(q, np.triu(reflectors))
    k = min(m, n)
    if evaluated(_depend, a[..., :k]):  # with reflections, the last column of a square matrix may depend on the others
        reflectors, _, q = householder(a)
        q, r = q[..., :k], np.triu(reflectors)[..., :k, :]
    else:
        y = qr_packed(a[..., :k])
        q, r = y[..., :m, :], y[..., m:, :]
        if n > k:
            r = np.concatenate([r, np.matmul(adjoint(q), a[..., k:])], axis=-1)
    return r if mode == "r" else QRResult(q, r)


def _depend(a: Value) -> bool:
    """Return whether a column depends on those before it, up to rounding; this is tested for NumPy arrays only."""
    if type(a) is not np.ndarray:
        return False
    heads = np.diagonal(np.linalg.qr(a, "r"), axis1=-2, axis2=-1)
    return bool(np.any(np.abs(heads) <= rounding(a)[..., None]))


def rounding(a: Value) -> Value:
    """Return the largest length that rounding may leave of a column that depends on other columns."""
    return np.finfo(a.dtype).eps * max(a.shape[-2:]) * np.abs(a).max(axis=(-2, -1), initial=0.0)


def householder(a: Value) -> tuple[Value, Value, Value]:
    """Return LAPACK's QR by reflections I - tau v v^H: r above the vectors v, the numbers tau, and the square q.

    The reflection for a column that depends on those before it has no derivative.
    """
    least = evaluated(rounding, a) if type(example(a)) is np.ndarray else 0.0
    m, n = shape_of(a)[-2:]
    q: Value = np.broadcast_to(np.eye(m, dtype=dtype_of(a)), (*shape_of(a)[:-1], m))
    columns, scales, rest = [], [], a
    for j in range(min(m, n)):
        x, above = rest[..., j:, 0], rest[..., :j, 0]
        beta, tau, v = reflector(x, least)
        columns.append(np.concatenate([above, beta[..., None], v[..., 1:]], axis=-1))
        scales.append(tau)
        v, tau = v[..., :, None], tau[..., None, None]
        below = rest[..., j:, 1:]
        below = below - conj(tau) * v * np.matmul(adjoint(v), below)
        rest = np.concatenate([rest[..., :j, 1:], below], axis=-2)
        right = q[..., j:]
        q = np.concatenate([q[..., :j], right - tau * np.matmul(right, v) * adjoint(v)], axis=-1)
    whole = np.concatenate([np.stack(columns, axis=-1), rest], axis=-1) if n > m else np.stack(columns, axis=-1)
    return whole, np.stack(scales, axis=-1), q


def reflector(x: Value, least: Value) -> tuple[Value, Value, Value]:
    """Return beta, tau and v of the reflection that maps a vector to its first axis.

    They are NaN for a vector no longer than `least`.
    """
    if shape_of(x)[-1] > 1:
        short = evaluated(_is_short, x, least)
        x = x * np.where(short, np.nan, 1.0)[..., None]
    alpha = x[..., 0]
    size = np.linalg.vector_norm(x, axis=-1)
    beta = -np.copysign(1.0, np.real(plain(alpha))) * size
    still = evaluated(_on_axis, x)
    beta = np.where(still, alpha, beta)
    rest = x[..., 1:] / np.where(still, 1.0, alpha - beta)[..., None]
    v = np.concatenate([np.ones_like(plain(x)[..., :1]), rest], axis=-1)
    return beta, np.where(still, 0.0, (beta - alpha) / np.where(still, 1.0, beta)), v


def _is_short(x: Value, least: Value) -> Value:
    return np.linalg.vector_norm(x, axis=-1) <= least


def _on_axis(x: Value) -> Value:
    return np.all(x[..., 1:] == 0, axis=-1) & (np.imag(x[..., 0]) == 0)


FUNCTIONS.enter({
    np.linalg.cholesky: lambda a, /, *, upper=False: cholesky(a, upper=bool(upper)),
    np.linalg.qr: as_computed(np.linalg.qr, _qr),
})  # fmt: skip
