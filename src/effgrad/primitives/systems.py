"""Inverses, determinants and linear systems; as in NumPy, all of them take stacks of matrices.

Giles, An extended collection of matrix derivative results (2008).
"""

import numpy as np

from effgrad.arrays import library_matrices
from effgrad.arrays.layout import ndim_of, shape_of
from effgrad.arrays.namespace import BY_NUMPY
from effgrad.arrays.value import FUNCTIONS, evaluated
from effgrad.primitives import cotangents
from effgrad.primitives.batching import Arguments, stacked
from effgrad.primitives.complexes import is_complex
from effgrad.primitives.primitive import Primitive, general
from effgrad.primitives.product import mT
from effgrad.vocabulary import Cotangent, Params, Tangent, Value

inv = general(
    np.linalg.inv,
    jvp=lambda t, y, x: -np.matmul(np.matmul(y, t), y),
    vjp=lambda g, y, x: -np.matmul(np.matmul(mT(y), g), mT(y)),
    batch=stacked,
    counterpart=library_matrices.linalg("inv"),
)
det = general(
    np.linalg.det,
    jvp=lambda t, y, x: np.sum(cofactors(x) * t, axis=(-1, -2)),
    vjp=lambda g, y, x: g[..., None, None] * cofactors(x) if ndim_of(g) else g * cofactors(x),
    batch=stacked,
    counterpart=library_matrices.linalg("det"),
)


def _log_change(t: Tangent, x: Value) -> Value:
    """Return the derivative of log(det(x)) along `t`."""
    return np.sum(mT(np.linalg.inv(x)) * t, axis=(-1, -2))


def _against_inverse(g: Cotangent, x: Value) -> Value:
    return (g[..., None, None] if ndim_of(g) else g) * mT(np.linalg.inv(x))


logabsdet = general(
    lambda x: np.linalg.slogdet(x)[1],
    jvp=lambda t, y, x: np.real(_log_change(t, x)),
    vjp=lambda g, y, x: _against_inverse(np.real(g), x),
    name="logabsdet",
    text="np.linalg.slogdet({0})[1]",
    batch=stacked,
    counterpart=BY_NUMPY,
)
# The sign of a complex determinant is on the unit circle.
phase_of_det = general(
    lambda x: np.linalg.slogdet(x)[0],
    jvp=lambda t, y, x: y * (1j * np.imag(_log_change(t, x))),
    vjp=lambda g, y, x: _against_inverse(1j * np.imag(g * y), x),
    name="phase_of_det",
    batch=stacked,
    counterpart=BY_NUMPY,
)


def _full_rank(x: Value) -> bool:
    if not x.size or not np.isfinite(x).all():  # NumPy 2.1 has no rank for an empty matrix, no version one for NaN
        return True
    return bool(np.all(np.linalg.matrix_rank(x) == x.shape[-1]))


def cofactors(x: Value) -> Value:
    """Return the matrix of cofactors, which is the gradient of `det` even where the matrix is singular."""
    if evaluated(_full_rank, x):
        d = np.linalg.det(x)
        return (d[..., None, None] if ndim_of(d) else d) * mT(np.linalg.inv(x))
    n = x.shape[-1]
    if n == 1:
        return np.ones(shape_of(x))
    keep = [np.delete(np.arange(n), i) for i in range(n)]
    minors = [[(-1.0) ** (i + j) * np.linalg.det(x[..., keep[i][:, None], keep[j]]) for j in range(n)]
              for i in range(n)]  # fmt: skip
    return np.stack([np.stack(row, axis=-1) for row in minors], axis=-2)


def columns(x: Value, b: Value) -> Value:
    """Return solutions or right-hand sides as matrices; they are vectors if the right-hand side `b` has one axis."""
    return x[..., None] if ndim_of(b) == 1 else x


def uncolumned(x: Value, b: Value) -> Value:
    """Return solutions that are matrices in the form of the right-hand side `b`, as vectors if it has one axis."""
    return x[..., 0] if ndim_of(b) == 1 else x


def _solve_matrix(g: Cotangent, y: Value, a: Value, b: Value) -> Value:
    w = np.linalg.solve(mT(a), columns(g, b))
    return cotangents.unbroadcast(-np.matmul(w, mT(columns(y, b))), a)


def _solve_right(g: Cotangent, y: Value, a: Value, b: Value) -> Value:
    return cotangents.unbroadcast(uncolumned(np.linalg.solve(mT(a), columns(g, b)), b), b)


def _solve_tangent(t: Tangent, y: Value, a: Value, b: Value) -> Value:
    return -uncolumned(np.linalg.solve(a, np.matmul(t, columns(y, b))), b)


def _solve_of_batch(primitive: Primitive, batch: Arguments, params: Params) -> Value:
    """Solve a batch of systems, turning vectors into matrices of one column, since NumPy takes no stack of vectors."""
    if len(batch.shapes[0]) != 2:
        return None
    a, b = batch.spread()
    return solve(a, b[..., None])[..., 0] if len(batch.shapes[1]) == 1 else solve(a, b)


solve = general(
    np.linalg.solve,
    jvp=(_solve_tangent, lambda t, y, a, b: np.linalg.solve(a, t)),
    vjp=(_solve_matrix, _solve_right),
    batch=_solve_of_batch,
    counterpart=library_matrices.solve,
)


SlogdetResult = type(np.linalg.slogdet(np.eye(1)))


def _slogdet(a: Value) -> Value:
    return SlogdetResult(phase_of_det(a) if is_complex(a) else evaluated(np.linalg.slogdet, a)[0], logabsdet(a))


FUNCTIONS.enter({
    np.linalg.inv: lambda a: inv(a), np.linalg.det: lambda a: det(a), np.linalg.solve: lambda a, b: solve(a, b),
    np.linalg.slogdet: _slogdet,
})  # fmt: skip
