"""The pseudoinverse, whose rule holds in directions that keep the rank.

Golub and Pereyra, The differentiation of pseudo-inverses (1973).
"""

from effgrad.arrays import laurent, library_matrices
from effgrad.arrays.layout import shape_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import evaluated, example
from effgrad.primitives.batching import stacked
from effgrad.primitives.complexes import conj
from effgrad.primitives.factors import adjoint
from effgrad.primitives.given import value_with_derivative
from effgrad.primitives.primitive import general
from effgrad.vocabulary import Cotangent, Option, Tangent, Value


def _outside(a: Value, y: Value, left: bool) -> Value:
    """Return the projector onto what is orthogonal to the columns (`left`) or rows of a matrix, or None if it is 0.

    Its value comes from singular vectors, since the rounding error of 1 - a y is multiplied by the square of y.
    """
    inside = np.matmul(a, y) if left else np.matmul(y, a)
    outside = np.eye(shape_of(inside)[-1]) - inside
    if type(example(a)) is not np.ndarray:  # an array of another library
        return outside
    value = evaluated(_of_singular_vectors, a, y, left)
    return None if type(value) is np.ndarray and not value.any() else value_with_derivative(outside, value)


def _of_singular_vectors(a: Value, y: Value, left: bool) -> Value:
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    kept = np.real(np.sum(conj(adjoint(vt)) * np.matmul(y, u), axis=-2)) * s > 0.5  # else the pseudoinverse has a 0
    vectors, full = u if left else adjoint(vt), np.sum(kept, axis=-1) == a.shape[-2 if left else -1]
    outside = np.eye(vectors.shape[-2]) - np.matmul(vectors * kept[..., None, :], adjoint(vectors))
    return np.where(full[..., None, None], 0.0, outside).astype(y.dtype)


def _pinv_jvp(t: Tangent, y: Value, a: Value, rcond: Option) -> Value:
    yt, tt = adjoint(y), adjoint(t)
    left, right = _outside(a, y, True), _outside(a, y, False)
    change = -np.matmul(np.matmul(y, t), y)
    if left is not None:
        change = change + np.matmul(np.matmul(y, np.matmul(yt, tt)), left)
    return change if right is None else change + np.matmul(right, np.matmul(np.matmul(tt, yt), y))


def _pinv_vjp(g: Cotangent, y: Value, a: Value, rcond: Option) -> Value:
    g = conj(g)
    yt, gt = adjoint(y), adjoint(g)
    left, right = _outside(a, y, True), _outside(a, y, False)
    total = -np.matmul(np.matmul(yt, g), yt)
    if left is not None:
        total = total + np.matmul(left, np.matmul(np.matmul(gt, y), yt))
    return conj(total if right is None else total + np.matmul(np.matmul(yt, np.matmul(y, gt)), right))


def _series(a: laurent.Laurent, rcond: laurent.Laurent) -> laurent.Laurent | None:
    """Return None, which stands for the series by the derivative, if the rank is full, else an unknown series.

    If the rank is not full, it may change along the path, where the rule is only a convention.
    """
    matrix = a.plain()
    if np.all(np.isfinite(matrix)) and np.all(np.linalg.matrix_rank(matrix) == min(matrix.shape[-2:])):
        return None
    return laurent.unknown(laurent.constant(np.swapaxes(matrix, -1, -2)))


pinv_of = general(
    lambda a, rcond: np.linalg.pinv(a, rcond), _pinv_jvp, _pinv_vjp, name="pinv", batch=stacked,
    counterpart=library_matrices.pinv,
)  # fmt: skip
pinv_of.series = _series
