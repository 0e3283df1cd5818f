"""Singular values and singular vectors. As in NumPy, the functions take stacks of matrices.

`effgrad.primitives.decomposition` explains the packed results, the undefined derivatives and the conjugated cotangents.
Complex singular vectors: Wan and Zhang, Automatic differentiation for complex valued SVD (2019).
"""

from typing import Any, cast

from effgrad.arrays import laurent, library_matrices
from effgrad.arrays.layout import shape_of
from effgrad.arrays.namespace import BY_NUMPY
from effgrad.arrays.reach import np
from effgrad.arrays.value import FUNCTIONS, composed, evaluated, plain
from effgrad.primitives import eigenseries
from effgrad.primitives.batching import stacked
from effgrad.primitives.complements import complement
from effgrad.primitives.complexes import conj, is_complex
from effgrad.primitives.cotangents import dense
from effgrad.primitives.factors import adjoint, imaginary_diagonal
from effgrad.primitives.given import as_computed
from effgrad.primitives.primitive import general
from effgrad.primitives.product import mT
from effgrad.primitives.quotients import (
    cleared,
    closeness,
    diagonal,
    inverse_if_apart,
    is_zero,
    nonzero_mask,
    of_phases,
    over_differences,
    phases,
    undefined_where,
)
from effgrad.vocabulary import Cotangent, Shape, Tangent, Value

SVDResult = cast(Any, type(np.linalg.svd(np.eye(1))))

# The primitive packs u, s and the adjoint of v, raveled one after the other.


def _svd_value(a: Value) -> Value:
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    return _pack(u, s, vt)


def _pack(u: Value, s: Value, vt: Value) -> Value:
    batch = shape_of(s)[:-1]
    return np.concatenate([np.reshape(u, (*batch, -1)), s, np.reshape(vt, (*batch, -1))], axis=-1)


def _unpack(y: Value, shape: Shape) -> tuple[Value, Value, Value]:
    *batch, m, n = shape
    k = min(m, n)
    u, s, vt = y[..., : m * k], y[..., m * k : m * k + k], y[..., m * k + k :]
    return np.reshape(u, (*batch, m, k)), np.real(s), np.reshape(vt, (*batch, k, n))


def _over_squares(product: Value, s: Value, known: Value = True, beside: Value = None) -> Value:
    """Return `product` over the differences of the squares of the singular values."""
    total = s[..., None, :] + s[..., :, None]
    return over_differences(product, s, known, beside) * inverse_if_apart(total, plain(total) == 0)


def _over_values(outside: Value, s: Value, known: Value = True) -> Value:
    """Return the part outside the singular vectors over the singular values.

    It is NaN for a singular value of 0, whose vectors are arbitrary.
    """
    zero = evaluated(is_zero, s, closeness(s))[..., None, :]
    quotient = cleared(outside, outside) * inverse_if_apart(s[..., None, :], zero)
    return undefined_where(quotient, evaluated(_undefined_columns, zero, known, outside))


def _undefined_columns(zero: Value, known: Value, outside: Value) -> Value:
    columns = known if known is True else np.any(known, axis=-2, keepdims=True)
    return np.broadcast_to(zero & columns, outside.shape)


def _half_phase(inner: Value, s: Value, known: Value = True) -> Value:
    """Return half of the relative change of phase between left and right singular vectors.

    The rule turns each of the two by half. LAPACK then turns both so that the first element of the left vector is real
    for a wide matrix, and of the right vector otherwise.
    """
    if not is_complex(inner):
        return 0.0
    return imaginary_diagonal(_over_values(0.5 * inner, s, known))


def _svd_jvp(t: Tangent, y: Value, a: Value) -> Value:
    u, s, vt = _unpack(y, shape_of(a))
    v, row = adjoint(vt), s[..., None, :]
    inner = np.matmul(np.matmul(adjoint(u), t), v)
    phase = _half_phase(inner, s)
    du = np.matmul(u, _over_squares(inner * row + mT(row) * adjoint(inner), s) + phase)
    dv = np.matmul(v, _over_squares(mT(row) * inner + adjoint(inner) * row, s) - phase)
    if _is_tall(u):
        du = du + _over_values(np.matmul(t, v) - np.matmul(u, inner), s)
    if _is_tall(v):
        dv = dv + _over_values(np.matmul(adjoint(t), u) - np.matmul(v, adjoint(inner)), s)
    phase = phases(du, u, 0) if _is_tall(v) else phases(dv, v, 0)
    du, dv = du - u * phase, dv - v * phase
    return _pack(du, np.real(diagonal(inner)), adjoint(dv))


def _is_tall(u: Value) -> bool:
    """Return whether the vectors do not span the whole space, so that there is a part outside them."""
    return shape_of(u)[-2] > shape_of(u)[-1]


def _svd_vjp(g: Cotangent, y: Value, a: Value) -> Value:
    shape = shape_of(a)
    u, s, vt = _unpack(y, shape)
    known_u, known_v = _asked_of(g, shape)
    gu, gs, gvt = _unpack(dense(g), shape)
    gu, v, gv = conj(gu), adjoint(vt), mT(gvt)
    if is_complex(u):
        along = np.sum(conj(gu) * u, axis=-2, keepdims=True) + np.sum(conj(gv) * v, axis=-2, keepdims=True)
        gu, gv = (gu + of_phases(along, gu, u, 0), gv) if _is_tall(v) else (gu, gv + of_phases(along, gv, v, 0))
    row, inner_u, inner_v = s[..., None, :], np.matmul(adjoint(u), gu), np.matmul(adjoint(v), gv)
    # These are the transposes of the lines of the forward rule.
    pu = _over_squares(inner_u - adjoint(inner_u), s, known_u, inner_u)
    pv = _over_squares(inner_v - adjoint(inner_v), s, known_v, inner_v)
    middle = pu * row + mT(row) * pv + gs[..., None, :] * np.eye(s.shape[-1])
    middle = middle + _half_phase(inner_u - inner_v, s, evaluated(_either, known_u, known_v))
    result = np.matmul(np.matmul(u, middle), vt)
    if _is_tall(u):
        result = result + np.matmul(_outside(gu, u, s, known_u), vt)
    if _is_tall(v):
        result = result + np.matmul(u, adjoint(_outside(gv, v, s, known_v)))
    return conj(result)


def _asked_of(g: Cotangent, shape: Shape) -> tuple[Value, Value]:
    """Return the masks of the cotangents of left and right vectors, as columns, that exclude structural zeros."""
    known = nonzero_mask(g)
    if known is True:
        return True, True
    known_u, _, known_vt = _unpack(known, shape)
    return known_u, mT(known_vt)


def _either(known_u: Value, known_v: Value) -> Value:
    """Return the mask of the pairs of vectors of which at least one has a cotangent, as a row."""
    columns = [known if known is True else np.any(known, axis=-2, keepdims=True) for known in (known_u, known_v)]
    return columns[0] | columns[1]


def _outside(g: Value, u: Value, s: Value, known: Value) -> Value:
    """Return the part of a cotangent outside the span of the vectors, over the singular values."""
    return _over_values(g - np.matmul(u, np.matmul(adjoint(u), g)), s, known)


svd_packed = general(_svd_value, _svd_jvp, _svd_vjp, name="svd", forms=True, batch=stacked, counterpart=BY_NUMPY)


def thin_svd(a: Value) -> Value:
    """Return singular values with as many vectors as there are values."""
    return SVDResult(*_unpack(svd_packed(a), shape_of(a)))


def _square_factors(a: Value) -> Value:
    """Return singular values with vectors that are a basis of the whole space on each side."""
    u, s, vt = thin_svd(a)
    if _is_tall(u):
        return SVDResult(np.concatenate([u, complement(u, evaluated(_rest_of_left, a))], axis=-1), s, vt)
    rest = complement(adjoint(vt), evaluated(_rest_of_right, a))
    return SVDResult(u, s, np.concatenate([vt, adjoint(rest)], axis=-2))


def _rest_of_left(a: Value) -> Value:
    return np.linalg.svd(a)[0][..., :, shape_of(a)[-1] :]


def _rest_of_right(a: Value) -> Value:
    return adjoint(np.linalg.svd(a)[2][..., shape_of(a)[-2] :, :])


def _svdvals_jvp(t: Tangent, y: Value, a: Value) -> Value:
    u, _, vt = thin_svd(a)
    return np.real(np.sum(conj(u) * np.matmul(t, adjoint(vt)), axis=-2))


def _svdvals_vjp(g: Cotangent, y: Value, a: Value) -> Value:
    u, _, vt = thin_svd(a)
    return conj(np.matmul(u * np.real(g)[..., None, :], vt))


svdvals = general(
    lambda a: np.linalg.svd(a, compute_uv=False), _svdvals_jvp, _svdvals_vjp, name="svdvals", batch=stacked,
    counterpart=library_matrices.linalg("svdvals"),
)


def _svd(a: Value, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Value:
    if hermitian:
        return _svd_by_eigh(a, compute_uv)
    if not compute_uv:
        return svdvals(a)
    shape = shape_of(a)
    return _square_factors(a) if full_matrices and shape[-1] != shape[-2] else thin_svd(a)


def _svd_by_eigh(a: Value, compute_uv: bool) -> Value:
    """Return the singular values of a Hermitian matrix, of which the lower triangle is read, as NumPy does."""
    if not compute_uv:
        return np.flip(np.sort(np.abs(np.linalg.eigvalsh(a))), -1)
    w, v = np.linalg.eigh(a)
    order = evaluated(_by_size, w)
    s, u = np.take_along_axis(w, order, axis=-1), np.take_along_axis(v, order[..., None, :], axis=-1)
    return SVDResult(u, np.abs(s), adjoint(u * np.sign(plain(s))[..., None, :]))


def _by_size(w: Value) -> Value:
    return np.argsort(np.abs(w))[..., ::-1]


def _series_of_svd(a: laurent.Laurent) -> Value:
    return eigenseries.packed_svd(a) or laurent.unknown(a)


def _series_of_svdvals(a: laurent.Laurent) -> Value:
    *_, m, n = a.coefficients.shape
    k, packed = min(m, n), eigenseries.packed_svd(a)
    return packed and laurent.linear(lambda y: y[..., m * k : m * k + k], packed)


svd_packed.series, svdvals.series = _series_of_svd, _series_of_svdvals


composed({np.linalg.svdvals: lambda x, /: svdvals(x)})
FUNCTIONS.enter({np.linalg.svd: as_computed(np.linalg.svd, _svd)})
