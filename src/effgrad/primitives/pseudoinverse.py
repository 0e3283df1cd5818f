"""The pseudoinverse, whose rule holds in directions that keep the rank.

Golub and Pereyra, The differentiation of pseudo-inverses (1973).
"""

from effgrad.arrays import laurent, library_matrices
from effgrad.arrays.reach import np
from effgrad.primitives.batching import stacked
from effgrad.primitives.complexes import conj
from effgrad.primitives.factors import adjoint
from effgrad.primitives.primitive import general
from effgrad.vocabulary import Cotangent, Option, Tangent, Value


def _pinv_jvp(t: Tangent, y: Value, a: Value, rcond: Option) -> Value:
    yt, tt = adjoint(y), adjoint(t)
    left = np.matmul(y, np.matmul(yt, tt))
    right = np.matmul(np.matmul(tt, yt), y)
    return (
        -np.matmul(np.matmul(y, t), y) + left - np.matmul(np.matmul(left, a), y) + right
        - np.matmul(y, np.matmul(a, right))
    )  # fmt: skip


def _pinv_vjp(g: Cotangent, y: Value, a: Value, rcond: Option) -> Value:
    g = conj(g)
    yt, gt = adjoint(y), adjoint(g)
    left = np.matmul(np.matmul(gt, y), yt)
    right = np.matmul(yt, np.matmul(y, gt))
    return conj(
        -np.matmul(np.matmul(yt, g), yt) + left - np.matmul(a, np.matmul(y, left)) + right
        - np.matmul(np.matmul(right, y), a)
    )  # fmt: skip


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
