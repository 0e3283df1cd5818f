"""Eigenvalues and eigenvectors. As in NumPy, the functions take stacks of matrices.

The derivatives are those of the functions as NumPy computes them. `eigh` and `eigvalsh` read one triangle of their
argument, so the derivative with respect to the other is 0. Applying `effgrad.symmetric(a)` before them gives the
symmetric derivative.

A decomposition with several results has a primitive that returns them packed in one array, and the functions unpack it.
Where eigenvalues coincide, their vectors have no derivative. The part of a rule that divides by the eigenvalues'
difference is then NaN, unless the vectors are not used at all, which the cotangent's structural zeros show. If the
choice of vectors cancels in a program, its derivative is found as a limit (`effgrad.api.singular`).

Cotangents are not conjugated (`effgrad.primitives.complexes`): the rules below are stated for the conjugate G of a
cotangent, with dL = Re tr(G^H dY), and conjugate their result.

Complex eigenvectors of Hermitian matrices have the phases that LAPACK gives them, whose reflections leave a row of the
vectors real.

Eigenvectors: Giles, An extended collection of matrix derivative results (2008); Boeddeker et al., On the computation of
complex-valued gradients (2017).
"""

from typing import Any, cast

from effgrad.arrays import laurent, library_matrices
from effgrad.arrays.namespace import BY_NUMPY
from effgrad.arrays.reach import np
from effgrad.arrays.value import FUNCTIONS, Evaluation, Tracer, composed, evaluated, plain
from effgrad.primitives import eigenseries
from effgrad.primitives.batching import stacked
from effgrad.primitives.complexes import conj, is_complex
from effgrad.primitives.cotangents import dense
from effgrad.primitives.defective import completed_basis
from effgrad.primitives.factors import QRResult as QRResult
from effgrad.primitives.factors import adjoint, hermitian_of_triangle, into_triangle
from effgrad.primitives.factors import cholesky as cholesky
from effgrad.primitives.factors import qr_packed as qr_packed
from effgrad.primitives.given import as_computed
from effgrad.primitives.primitive import general
from effgrad.primitives.product import mT
from effgrad.primitives.quotients import diagonal, nonzero_mask, of_phases, over_differences, phases, undefined_where
from effgrad.primitives.systems import inv, solve
from effgrad.vocabulary import Cotangent, Tangent, Value

# Hermitian matrices; the primitive packs the row of eigenvalues on top of the matrix of eigenvectors.


def _triangle(lower: bool) -> Value:
    return "L" if lower else "U"


def _kept_real(lower: bool) -> int:
    """Return the row of complex eigenvectors that is real, because LAPACK's reflections leave it unchanged."""
    return 0 if lower else -1


def _eigh_value(a: Value, lower: bool) -> Value:
    w, v = np.linalg.eigh(a, _triangle(lower))
    return np.concatenate([w[..., None, :], v], axis=-2)


def _eigh_jvp(t: Tangent, y: Value, a: Value, lower: bool) -> Value:
    w, v = np.real(y[..., 0, :]), y[..., 1:, :]
    inner = np.matmul(np.matmul(adjoint(v), hermitian_of_triangle(t, lower)), v)
    turned = np.matmul(v, over_differences(inner, w))
    turned = turned - v * phases(turned, v, _kept_real(lower))
    return np.concatenate([np.real(diagonal(inner))[..., None, :], turned], axis=-2)


def _eigh_vjp(g: Cotangent, y: Value, a: Value, lower: bool) -> Value:
    w, v = np.real(y[..., 0, :]), y[..., 1:, :]
    gw, gv, _, known = _of_packed(g)
    gv = conj(gv)
    if is_complex(v):
        gv = gv + of_phases(np.sum(conj(gv) * v, axis=-2, keepdims=True), gv, v, _kept_real(lower))
    inner = np.matmul(adjoint(v), gv)
    # Only the Hermitian part of the quotients contributes.
    quotient = over_differences((inner - adjoint(inner)) / 2, w, known, inner)
    middle = quotient + np.real(gw)[..., None, :] * np.eye(w.shape[-1])
    return into_triangle(conj(np.matmul(np.matmul(v, middle), adjoint(v))), lower)


def _of_packed(g: Cotangent) -> tuple[Value, Value, Value, Value]:
    """Return the cotangents of eigenvalues and of eigenvectors, and the masks of both without structural zeros."""
    known, g = nonzero_mask(g), dense(g)
    masks = (True, True) if known is True else (known[..., 0, :], known[..., 1:, :])
    return g[..., 0, :], g[..., 1:, :], *masks


eigh_packed = general(
    _eigh_value, _eigh_jvp, _eigh_vjp, name="eigh", forms=True, batch=stacked, counterpart=BY_NUMPY
)  # fmt: skip
EighResult, EigResult = [cast(Any, type(getattr(np.linalg, f)(np.eye(1)))) for f in ("eigh", "eig")]


def _eigvalsh_jvp(t: Tangent, y: Value, a: Value, lower: bool) -> Value:
    v = _eigh(a, _triangle(lower))[1]
    return np.real(np.sum(conj(v) * np.matmul(hermitian_of_triangle(t, lower), v), axis=-2))


def _eigvalsh_vjp(g: Cotangent, y: Value, a: Value, lower: bool) -> Value:
    v = _eigh(a, _triangle(lower))[1]
    return into_triangle(conj(np.matmul(v * np.real(g)[..., None, :], adjoint(v))), lower)


eigvalsh = general(
    lambda a, lower: np.linalg.eigvalsh(a, _triangle(lower)), _eigvalsh_jvp, _eigvalsh_vjp, name="eigvalsh",
    batch=stacked, counterpart=library_matrices.hermitian("eigvalsh"),
)


def _reads_lower(triangle: str) -> bool:
    if triangle.upper() not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    return triangle.upper() == "L"


def _eigh(a: Value, UPLO: str = "L") -> Value:
    y = eigh_packed(a, lower=_reads_lower(UPLO))
    return EighResult(np.real(y[..., 0, :]), y[..., 1:, :])


def _eigvalsh(a: Value, UPLO: str = "L") -> Value:
    return eigvalsh(a, lower=_reads_lower(UPLO))


# General square matrices; the primitive's eigenvalues and eigenvectors have a complex dtype, even if they are real.


def _eig_value(a: Value) -> Value:
    w, v = np.linalg.eig(a)
    return np.concatenate([w[..., None, :], v], axis=-2).astype(np.result_type(w, 1j))


def _eig_jvp(t: Tangent, y: Value, a: Value) -> Value:
    w, v = y[..., 0, :], y[..., 1:, :]
    basis, dependent = completed_basis(a, w, v)
    inner = np.linalg.solve(basis, np.matmul(t, v))
    turned = np.matmul(v, over_differences(inner, w))
    # LAPACK's eigenvectors have length 1, and their largest element is real.
    length = np.real(np.sum(conj(v) * turned, axis=-2, keepdims=True))
    phase = np.imag(np.sum(turned * _over_largest(v), axis=-2, keepdims=True))
    turned = turned - v * (length + 1j * phase)
    return np.concatenate([undefined_where(diagonal(inner), dependent)[..., None, :], turned], axis=-2)


def _largest(v: Value) -> Value:
    """Return weights that select the largest element of each column."""
    size = np.abs(v)
    first = np.argmax(size, axis=-2)[..., None, :] if size.size else np.zeros(size.shape, int)[..., :1, :]
    return (np.arange(v.shape[-2])[:, None] == first) * 1.0


def _over_largest(v: Value) -> Value:
    at = evaluated(_largest, v)
    return at / np.where(at == 0, 1.0, v)


def _eig_vjp(g: Cotangent, y: Value, a: Value) -> Value:
    w, v = y[..., 0, :], y[..., 1:, :]
    gw, gv, values, known = _of_packed(g)
    basis, dependent = completed_basis(a, w, v)
    gw = undefined_where(gw, dependent & values)
    along, before = np.sum(v * gv, axis=-2, keepdims=True), np.matmul(mT(v), gv)
    gv = gv - conj(v) * np.real(along) - 1j * np.imag(along) * _over_largest(v)
    middle = over_differences(np.matmul(mT(v), gv), w, known, before) + gw[..., None, :] * np.eye(w.shape[-1])
    return np.matmul(np.linalg.solve(mT(basis), middle), mT(v))


eig_packed = general(_eig_value, _eig_jvp, _eig_vjp, name="eig", forms=True, batch=stacked, counterpart=BY_NUMPY)


# NumPy 2.5 returns complex numbers for all eigenvalues; earlier NumPy, and SciPy, return real ones if all are real.
ALWAYS_COMPLEX = np.linalg.eigvals(np.eye(1)).dtype.kind == "c"


def real_where_real(a: Value) -> Value:
    """Return the eigenvalues and eigenvectors of a matrix, real numbers if the matrix and all eigenvalues are real."""
    y = eig_packed(a)
    w, v = y[..., 0, :], y[..., 1:, :]
    if evaluated(_all_real, w) and not is_complex(a):
        return EigResult(np.real(w), np.real(v))
    return EigResult(w, v)


def _eig(a: Value) -> Value:
    if not ALWAYS_COMPLEX:
        return real_where_real(a)
    y = eig_packed(a)
    return EigResult(y[..., 0, :], y[..., 1:, :])


def _all_real(w: Value) -> bool:
    return bool(np.all(np.imag(w) == 0))


def _eigvals(a: Value) -> Value:
    return in_their_order(_eig(a)[0], a)


def in_their_order(w: Value, a: Value) -> Value:
    """Return the eigenvalues of `eig` in the order of `np.linalg.eigvals`, which may differ."""
    value = plain(a)
    if isinstance(value, Tracer) and isinstance(value.owner, Evaluation):
        return w  # another library gives both in the same order
    return np.take_along_axis(w, evaluated(_eigvals_order, a, w), axis=-1)


def _eigvals_order(a: Value, w: Value) -> Value:
    return order_of(np.linalg.eigvals(a), w)


def order_of(wanted: Value, w: Value) -> Value:
    """Return the places at which numbers `w` have to be taken to be those `wanted`, up to rounding errors."""
    order = np.zeros(w.shape, int)
    for place in np.ndindex(w.shape[:-1]):
        free = list(range(w.shape[-1]))
        for i, value in enumerate(wanted[place]):
            nearest = int(np.argmin(np.abs(w[place][free] - value)))
            order[(*place, i)] = free.pop(nearest)
    return order


def _series_of_triangle(a: laurent.Laurent, lower: bool) -> Value:
    hermitian = laurent.linear(lambda c: hermitian_of_triangle(c, lower), a)
    return eigenseries.packed(hermitian, lower=lower) or laurent.unknown(a)


eigh_packed.series = _series_of_triangle
eig_packed.series = lambda a: eigenseries.packed(a, hermitian=False) or laurent.unknown(a)
solve.series = laurent.solved
inv.series = lambda a: laurent.solved(a, laurent.constant(np.eye(a.coefficients.shape[-1])))
eigvalsh.series = lambda a, lower: laurent.linear(lambda y: np.real(y[..., 0, :]), _series_of_triangle(a, lower))


composed({np.linalg.eigvalsh: _eigvalsh, np.linalg.eigvals: as_computed(np.linalg.eigvals, _eigvals)})
FUNCTIONS.enter({np.linalg.eigh: _eigh, np.linalg.eig: _eig})
