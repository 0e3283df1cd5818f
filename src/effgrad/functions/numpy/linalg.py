"""Rules for `numpy.linalg`: functions defined by decompositions, products and sums."""

import math
from collections.abc import Callable

from numpy.lib.array_utils import normalize_axis_tuple
from numpy.linalg import _umath_linalg as compiled

from effgrad.arrays.layout import NUMERIC_KINDS, dtype_of, ndim_of, shape_of, size_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import CONSTANT, FUNCTIONS, UFUNCS, Tracer, composed, contiguous, evaluated, plain
from effgrad.errors import NoRule
from effgrad.primitives.complexes import squared
from effgrad.primitives.factors import adjoint, hermitian_of_triangle
from effgrad.primitives.given import as_computed, value_with_derivative
from effgrad.primitives.pseudoinverse import pinv_of
from effgrad.primitives.reduction import mark_underflow, root, root_of
from effgrad.vocabulary import Axes, Axis, Function, Option, Value


def symmetric(a: Value) -> Value:
    """Return (a + a^H) / 2: the matrices `a` themselves where they are Hermitian, with a Hermitian derivative.

    `cholesky`, `eigh`, `eigvalsh` and their like read one triangle of their argument, and their derivative by the other
    is 0. A derivative through `symmetric` is the one in the space of symmetric (or Hermitian) matrices.

    Arguments:
        a: an array of shape (..., n, n), real or complex.

    Returns:
        An array of the same shape.

    >>> import numpy as np
    >>> from effgrad import grad, symmetric
    >>> a = np.array([[4.0, 2.0], [2.0, 5.0]])
    >>> grad(lambda a: np.sum(np.diag(np.linalg.cholesky(a))))(a)
    array([[ 0.3125,  0.    ],
           [-0.25  ,  0.25  ]])
    >>> grad(lambda a: np.sum(np.diag(np.linalg.cholesky(symmetric(a)))))(a)
    array([[ 0.3125, -0.125 ],
           [-0.125 ,  0.25  ]])
    """
    a = np.asarray(a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2] or a.dtype.kind not in NUMERIC_KINDS:
        raise ValueError(f"symmetric takes square matrices; it was given an array of {a.dtype} of shape {a.shape}")
    return 0.5 * a + 0.5 * adjoint(a)


# The pseudoinverse, and least squares computed with it.


def _pinv(a: Value, rcond: Option = None, hermitian: bool = False, *, rtol: Option = 1e-15) -> Value:
    a = hermitian_of_triangle(a, True) if hermitian else a
    if rcond is None:
        machine = max(shape_of(a)[-2:]) * np.finfo(dtype_of(a)).eps
        rcond = machine if rtol is None else rtol
    return _inverse(a, plain(rcond))


def _inverse(a: Value, limit: Option) -> Value:
    """The pseudoinverse of a matrix, in which singular values up to `limit` times the largest one count as 0."""
    if (isinstance(limit, float) and limit <= _rounding(a)) or not evaluated(_leaves_out, a, limit):
        return pinv_of(a, rcond=limit)
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    kept = evaluated(_above, s, limit)
    inverse = np.where(kept, 1 / np.where(kept, s, 1.0), 0.0)
    right = np.where(kept[..., :, None], vt, 0.0) * inverse[..., :, None]
    return np.matmul(adjoint(right), adjoint(np.where(kept[..., None, :], u, 0.0)))


def _above(s: Value, limit: Option) -> Value:
    return s > np.asarray(limit)[..., None] * np.max(s, axis=-1, keepdims=True, initial=0.0)


def _leaves_out(a: Value, limit: Option) -> bool:
    """Whether the limit leaves out a singular value that is larger than rounding errors."""
    s = np.linalg.svdvals(a)
    return bool(np.any(_above(s, _rounding(a)) & ~_above(s, limit)))


def _rounding(a: Value) -> float:
    """The size, relative to the largest, of a singular value that may be a rounding error."""
    return 10.0 * max(shape_of(a)[-2:]) * float(np.finfo(dtype_of(a)).eps)


def _lstsq(a: Value, b: Value, rcond: Option = None) -> Value:
    a = np.asarray(a)
    m, n = shape_of(a)
    eps = np.finfo(dtype_of(a)).eps
    limit = eps * max(m, n) if rcond is None else rcond if 0 < rcond < 1 else eps  # as LAPACK's gelsd takes it
    x = np.matmul(_inverse(a, limit), b)
    rank = evaluated(_rank, a, limit)
    rest = b - np.matmul(a, x)
    full = m > n and rank == n
    residuals = np.sum(squared(rest), axis=0, keepdims=ndim_of(b) == 1) if full else np.array([])
    return x, residuals, rank, np.linalg.svdvals(a)


def _rank(a: Value, limit: float) -> Value:
    return np.intc(np.linalg.matrix_rank(a, rtol=limit))


# Powers, chains, norms, conditions.


def _matrix_power(a: Value, n: int) -> Value:
    if n < 0:
        a, n = np.linalg.inv(a), -n
    if n == 0:
        return a * 0.0 + np.eye(shape_of(a)[-1], dtype=dtype_of(a))
    half = _matrix_power(a, n // 2) if n > 1 else None
    square = a if half is None else np.matmul(half, half)
    return np.matmul(square, a) if n > 1 and n % 2 else square


_computed_power = as_computed(np.linalg.matrix_power, _matrix_power)


def _multi_dot(arrays: Value, *, out: Option = None) -> Value:
    """Multiply matrices in the order that takes the fewest operations."""
    first, last = ndim_of(arrays[0]) == 1, ndim_of(arrays[-1]) == 1
    matrices = [np.reshape(arrays[0], (1, -1)) if first else arrays[0], *arrays[1:-1]]
    matrices.append(np.reshape(arrays[-1], (-1, 1)) if last else arrays[-1])
    sizes = [shape_of(matrix)[0] for matrix in matrices] + [shape_of(matrices[-1])[1]]
    best: dict[tuple[int, int], tuple[int, int]] = {}
    for length in range(len(matrices)):
        for i in range(len(matrices) - length):
            j = i + length
            best[i, j] = min(
                ((best[i, k][0] + best[k + 1, j][0] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)),
                default=(0, i),
            )

    def product(i: int, j: int) -> Value:
        k = best[i, j][1]
        return matrices[i] if i == j else np.matmul(product(i, k), product(k + 1, j))

    result = product(0, len(matrices) - 1)
    shape = shape_of(result)
    return np.reshape(result, shape[first : 2 - last]) if first or last else result


def _largest_of(sizes: Value, axis: Axis, keepdims: bool = False) -> Value:
    """The largest of some sizes, or 0 if there are none."""
    if not size_of(sizes):
        sizes = np.sum(sizes, axis=axis, keepdims=True)
    return np.max(sizes, axis=axis, keepdims=keepdims)


def _euclidean(x: Value, axis: Axis, keepdims: bool) -> Value:
    """The square root of the sum of squares."""
    return root(mark_underflow(np.sum(squared(x), axis=axis, keepdims=keepdims), x, axis=axis, keepdims=keepdims))


def _matrix_norm(x: Value, ord: Option, keepdims: bool) -> Value:
    """The norm of the matrices in the last two axes."""
    name = ord if isinstance(ord, str) else None  # numbers of a batch are not compared with a text
    if ord is None or name == "fro":
        return _euclidean(x, (-2, -1), keepdims)
    if name is None and ord in (1, -1, np.inf, -np.inf):
        sums = np.sum(np.abs(x), axis=-2 if abs(ord) == 1 else -1)
        result = _largest_of(sums, -1) if ord > 0 else np.min(sums, axis=-1)
    elif name == "nuc" or name is None and ord in (2, -2):
        s = _singular_values(x)
        # `np.abs` gives singular values of 0 the derivative 0; the derivative at a tie for the largest is an average.
        result = np.sum(np.abs(s), -1) if name == "nuc" else _largest_of(s, -1) if ord == 2 else np.min(s, -1)
    else:
        raise ValueError(f"Invalid norm order {ord!r} for matrices")
    return result[..., None, None] if keepdims else result


def _singular_values(x: Value) -> Value:
    """The singular values of matrices; a row or a column has one, its length, which has a series of any order."""
    return _length_of_one(x) if min(shape_of(x)[-2:]) == 1 else np.linalg.svdvals(x)


_length_of_one = as_computed(np.linalg.svdvals, lambda x: _euclidean(x, (-2, -1), False)[..., None])


def _vector_norm(x: Value, ord: Option, axis: Axis, keepdims: bool) -> Value:
    if ord in (None, 2):
        return _euclidean(x, axis, keepdims)
    size = np.abs(x)
    if ord == np.inf:
        return _largest_of(size, axis, keepdims)
    if ord == -np.inf:
        return np.min(size, axis=axis, keepdims=keepdims)
    if ord == 0:
        nonzero = (plain(x) != 0).astype(plain(size).dtype)
        return np.sum(nonzero, axis=axis, keepdims=keepdims)
    if ord == 1:
        return np.sum(size, axis=axis, keepdims=keepdims)
    if not isinstance(ord, int | float | np.integer | np.floating):
        raise NoRule(f"numpy.linalg.norm of the order {ord!r} has no derivative rule: give it a number")
    total = np.sum(size**ord, axis=axis, keepdims=keepdims)
    total = mark_underflow(total, x, axis=axis, keepdims=keepdims)
    return total ** (1.0 / ord) if isinstance(ord, Tracer) else root_of(total, float(1.0 / ord))


def _norm(x: Value, ord: Option = None, axis: Axis = None, keepdims: bool = False) -> Value:
    x = np.asarray(x)
    ndim = ndim_of(x)
    if axis is None and (ord is None or (ndim == 1 and ord == 2) or (ndim == 2 and ord in ("f", "fro"))):
        result = _norm_of_all(x)
        return np.reshape(result, (1,) * ndim) if keepdims else result
    if axis is None:
        axis = tuple(range(ndim))
        if ndim not in (1, 2):
            raise ValueError("Improper number of dimensions to norm.")
    axes = tuple(int(i) % ndim for i in np.atleast_1d(axis))
    if len(axes) == 1:
        return _vector_norm(x, ord, axes[0], keepdims)
    result = _matrix_norm(np.moveaxis(x, axes, (-2, -1)), ord, False)
    return np.expand_dims(result, tuple(sorted(axes))) if keepdims else result


def _norm_of_all(x: Value) -> Value:
    """The norm of all elements in memory order. The real 2-norm's value is that of NumPy, which squares by `np.dot`."""
    x = np.ravel(x) if contiguous(x) else np.ravel(x, order="K")
    value = plain(x)
    if isinstance(value, Tracer) or value.dtype.kind == "c":
        return _euclidean(x, 0, False)
    return root(mark_underflow(value_with_derivative(np.sum(squared(x)), np.dot(value, value)), x))


def _by_numpy_if_complex(original: Callable[..., object], definition: Function) -> Function:
    """Return a definition's rule; complex arrays take NumPy's value, because NumPy rounds their squares differently."""
    computed = as_computed(original, definition)

    def rule(x: Value, *args: Value, **options: Option) -> Value:
        return (computed if np.iscomplexobj(plain(x)) else definition)(x, *args, **options)

    return rule


def _linalg_vector_norm(x: Value, /, *, axis: Axis = None, keepdims: bool = False, ord: Option = 2) -> Value:
    """The norm over any axes, which are joined to one that is summed along, since NumPy rounds so."""
    axes = normalize_axis_tuple(range(ndim_of(x)) if axis is None else axis, ndim_of(x))
    joined, along = np.ravel(x), 0
    if isinstance(axis, tuple):
        rest = [i for i in range(ndim_of(x)) if i not in axes]
        count = math.prod([shape_of(x)[i] for i in axes])
        joined = np.reshape(np.transpose(x, (*axes, *rest)), (count, *[shape_of(x)[i] for i in rest]))
    elif axis is not None:
        joined, along = x, axis
    result = _vector_norm(joined, ord, along, False)
    return np.expand_dims(result, axes) if keepdims else result


def _cond(x: Value, p: Value = None) -> Value:
    if p in (None, 2, -2):
        s = np.linalg.svdvals(x)
        ratio = s[..., 0] / s[..., -1] if p != -2 else s[..., -1] / s[..., 0]
    else:
        ratio = _norm(x, p, (-2, -1)) * _norm(np.linalg.inv(x), p, (-2, -1))
    # A matrix of zeros has an infinite condition number.
    undefined = np.isnan(plain(ratio)) & ~np.isnan(plain(x)).any(axis=(-2, -1))
    return np.where(undefined, np.inf, ratio)


def _tensorsolve(a: Value, b: Value, axes: Axes = None) -> Value:
    ndim = ndim_of(a)
    if axes is not None:
        kept = [i for i in range(ndim) if i not in {int(j) % ndim for j in axes}]
        a = np.transpose(a, [*kept, *axes])
    shape = shape_of(a)[ndim_of(b) :]
    size = int(np.prod(shape))
    return np.reshape(np.linalg.solve(np.reshape(a, (size, size)), np.ravel(b)), shape)


composed({
    np.linalg.pinv: as_computed(np.linalg.pinv, _pinv), np.linalg.cond: as_computed(np.linalg.cond, _cond),
})  # fmt: skip
FUNCTIONS.enter({
    np.linalg.lstsq: as_computed(np.linalg.lstsq, _lstsq),
    np.linalg.matrix_power: lambda a, n: a if n == 1 else _computed_power(a, n),
    np.linalg.multi_dot: as_computed(np.linalg.multi_dot, _multi_dot),
    np.linalg.tensorsolve: as_computed(np.linalg.tensorsolve, _tensorsolve),
    np.linalg.norm: _by_numpy_if_complex(np.linalg.norm, _norm),
    np.linalg.vector_norm: _by_numpy_if_complex(np.linalg.vector_norm, _linalg_vector_norm),
    np.linalg.matrix_norm: _by_numpy_if_complex(
        np.linalg.matrix_norm, lambda x, /, *, keepdims=False, ord="fro": _matrix_norm(x, ord, keepdims)),
})  # fmt: skip
CONSTANT.enter([np.linalg.matrix_rank])
# The ufuncs that NumPy's functions of these names call, which some programs call themselves.
UFUNCS.enter({
    compiled.solve: lambda a, b: np.linalg.solve(a, b), compiled.inv: lambda a: np.linalg.inv(a),
    compiled.solve1: lambda a, b: np.linalg.solve(a, b[..., None])[..., 0], compiled.det: lambda a: np.linalg.det(a),
    compiled.cholesky_lo: lambda a: np.linalg.cholesky(a), compiled.eigvalsh_lo: lambda a: np.linalg.eigvalsh(a),
    compiled.eigh_lo: lambda a: tuple(np.linalg.eigh(a)), compiled.slogdet: lambda a: tuple(np.linalg.slogdet(a)),
})  # fmt: skip
