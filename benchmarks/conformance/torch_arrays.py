"""PyTorch's operators on indices, matrices and masks that no function of NumPy is, as programs of NumPy."""

import itertools
from typing import Any

import numpy as np
import scipy.linalg
import scipy.special as sp
import scipy.stats

from effgrad import symmetric


def places(x: Any, dim: int, index: Any) -> tuple[Any, ...]:
    """The index of NumPy for PyTorch's, which has one place along an axis for each of its own."""
    if x.ndim == 0:
        raise np.exceptions.AxisError(dim, 0)
    index = np.atleast_1d(index)
    grid = list(np.ogrid[tuple(slice(n) for n in index.shape)])
    grid[dim] = index
    return tuple(grid)


def scattered(combine: Any) -> Any:
    def program(x: Any, dim: int, index: Any, source: Any, **options: Any) -> Any:
        y, at = np.array(x), places(x, dim, index)
        part = source if np.ndim(source) == 0 else source[tuple(slice(n) for n in index.shape)]
        combine = options.get("reduce")
        if combine is None:
            y[at] = part
        else:
            {"add": np.add, "multiply": np.multiply}[combine].at(y, at, part)
        return y

    def added(x: Any, dim: int, index: Any, source: Any) -> Any:
        y = np.array(x)
        np.add.at(y, places(x, dim, index), source[tuple(slice(n) for n in index.shape)])
        return y

    return program if combine is None else added


REDUCTIONS = {"sum": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum, "mean": np.add}
FIRST_VALUES = {"sum": 0.0, "prod": 1.0, "amax": -np.inf, "amin": np.inf, "mean": 0.0}


def combined(x: Any, at: Any, source: Any, reduce: str, include_self: bool) -> Any:
    """`x` with elements of the source reduced into some places."""
    y, counts = np.array(x), np.full(x.shape, float(include_self))
    if not include_self:
        y[at] = FIRST_VALUES[reduce]
    REDUCTIONS[reduce].at(y, at, source)
    np.add.at(counts, at, 1.0)
    touched = np.zeros(x.shape, bool)
    touched[at] = True
    return np.where(touched, y / np.maximum(counts, 1), x) if reduce == "mean" else y


def scatter_reduce(x: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True) -> Any:
    part = source[tuple(slice(n) for n in index.shape)]
    return combined(x, places(x, dim, index), part, reduce, include_self)


def index_reduce(x: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True) -> Any:
    axis = range(x.ndim)[dim] if x.ndim else places(x, dim, index)
    return combined(x, (slice(None),) * axis + (index,), source, reduce, include_self)


def strided(x: Any, size: Any, stride: Any, storage_offset: int = 0) -> Any:
    grid = np.ogrid[tuple(slice(n) for n in size)]
    return x.reshape(-1)[storage_offset + sum(step * place for step, place in zip(stride, grid, strict=True))]


def masked_write(x: Any, mask: Any, source: Any) -> Any:
    y = np.array(np.broadcast_to(x, np.broadcast_shapes(x.shape, mask.shape)))
    mask = np.broadcast_to(mask, y.shape)
    y[mask] = source.reshape(-1)[: mask.sum()]
    return y


def embedded(x: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """`diag_embed`."""
    n = x.shape[-1] + abs(offset)
    y = np.zeros((*x.shape[:-1], n, n), x.dtype)
    rows = np.arange(x.shape[-1])
    y[..., rows + max(-offset, 0), rows + max(offset, 0)] = x
    return np.moveaxis(y, (-2, -1), (dim1, dim2))


def pieces(x: Any, sizes: Any, dim: int = 0) -> Any:
    """`split`: parts of a size, or of several."""
    if isinstance(sizes, int):
        return np.split(x, range(sizes, x.shape[dim], sizes), dim)
    return np.split(x, np.cumsum(sizes)[:-1], dim)


def largest(x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    y = -np.sort(-x, dim) if largest else np.sort(x, dim)
    return np.take(y, np.arange(k), dim)


def most_common(x: Any, dim: int = -1, keepdim: bool = False) -> Any:
    return scipy.stats.mode(x, axis=dim, keepdims=keepdim).mode


# Matrices.


def reflected(a: Any, tau: Any) -> Any:
    """`householder_product`: the first columns of a product of reflections."""
    m, n = a.shape[-2:]
    q = np.eye(m) + np.zeros((*a.shape[:-2], 1, 1))
    for i in range(tau.shape[-1]):
        v = np.concatenate([np.zeros((*a.shape[:-2], i)), np.ones((*a.shape[:-2], 1)), a[..., i + 1 :, i]], axis=-1)
        q = q - tau[..., i, None, None] * (q @ v[..., :, None]) * np.conj(v)[..., None, :]
    return q[..., :, :n]


def multiplied(a: Any, tau: Any, other: Any, left: bool = True, transpose: bool = False) -> Any:
    """`ormqr`."""
    m = a.shape[-2]
    square = np.concatenate([a, np.zeros((*a.shape[:-1], max(m - a.shape[-1], 0)))], axis=-1)[..., :m]
    q = reflected(square, tau)
    q = np.conj(np.swapaxes(q, -1, -2)) if transpose else q
    return q @ other if left else other @ q


def from_cholesky(a: Any, upper: bool = False) -> Any:
    a = np.triu(a) if upper else np.tril(a)
    h = np.conj(np.swapaxes(a, -1, -2))
    return np.linalg.inv(h @ a if upper else a @ h)


def unpacked(lu: Any, pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:
    if not (unpack_data and unpack_pivots):
        raise NotImplementedError
    m, n = lu.shape[-2:]
    k = min(m, n)
    order = np.broadcast_to(np.arange(m), (*lu.shape[:-2], m)).copy()
    for i in range(pivots.shape[-1]):
        j = pivots[..., i, None] - 1
        other = np.take_along_axis(order, j, -1)
        np.put_along_axis(order, j, order[..., i, None], -1)
        order[..., i, None] = other
    p = np.swapaxes(np.eye(m)[order], -1, -2).astype(lu.dtype)
    return p, np.tril(lu[..., :k], -1) + np.eye(m, k), np.triu(lu[..., :k, :])


def by_lu(lu: Any, pivots: Any, b: Any, left: bool = True, adjoint: bool = False) -> Any:
    p, lower, upper = unpacked(lu, pivots)
    a = p @ lower @ upper
    a = np.conj(np.swapaxes(a, -1, -2)) if adjoint else a
    if left:
        return np.linalg.solve(a, b)
    return np.swapaxes(np.linalg.solve(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2)), -1, -2)


def over_triangle(
    b: Any, a: Any, upper: bool = False, transpose: bool = False, unitriangular: bool = False
) -> tuple[Any, Any]:
    a = np.triu(a) if upper else np.tril(a)
    return scipy.linalg.solve_triangular(a, b, trans=int(transpose), lower=not upper, unit_diagonal=unitriangular), a


# Arrays of which a mask leaves out elements.


def axes(dim: Any, x: Any) -> Any:
    if dim is None or isinstance(dim, list | tuple) and not dim:
        return None
    return tuple(dim) if isinstance(dim, list | tuple) else dim


def masked(function: Any, **options: Any) -> Any:
    """A reduction over the elements that a mask keeps."""

    def program(x: Any, *args: Any, dim: Any = None, keepdim: bool = False, mask: Any = None, **more: Any) -> Any:
        where = True if mask is None else np.broadcast_to(mask, x.shape)
        return function(x, *args, axis=axes(dim, x), keepdims=keepdim, where=where, **options, **more)

    return program


def spread(function: Any) -> Any:
    def program(x: Any, *, unbiased: Any = None, correction: Any = None, **options: Any) -> Any:
        ddof = correction if correction is not None else int(unbiased is not False)
        return masked(function, ddof=ddof)(x, **options)

    return program


def filled(function: Any, fill: float) -> Any:
    """A function along an axis, with a number in the place of what a mask leaves out."""

    def program(x: Any, *args: Any, dim: Any = None, mask: Any = None, dtype: Any = None, **options: Any) -> Any:
        x = x if mask is None else np.where(mask, x, fill)
        return function(x, *args, **({} if dim is None else {"axis": axes(dim, x)}), **options)

    return program


def masked_norm(x: Any, ord: Any, dim: Any = None, keepdim: bool = False, mask: Any = None) -> Any:
    x = x if mask is None else np.where(mask, x, 0.0 if ord >= 0 else np.inf)
    return np.linalg.vector_norm(x, ord=ord, axis=axes(dim, x), keepdims=keepdim)


def scaled(x: Any, ord: Any, dim: Any, mask: Any = None, eps: float = 1e-12) -> Any:
    return x / np.maximum(masked_norm(x, ord, dim, True, mask), eps)


def lower_median(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return np.nanquantile(x, 0.5, axis, method="lower", keepdims=keepdims)


PLACES = {
    "chunk": lambda x, n, dim=0: pieces(x, -(-x.shape[dim] // n), dim), "split": pieces, "unsafe_split": pieces,
    "unsafe_chunk": lambda x, n, dim=0: pieces(x, -(-x.shape[dim] // n), dim), "split_with_sizes": pieces,
    "split_with_sizes_copy": pieces, "diag_embed": embedded, "narrow_copy": lambda x, dim, start, length: np.take(
        x, np.arange(start, start + length), dim), "as_strided": strided, "as_strided_copy": strided,
    "kthvalue": lambda x, k, dim=-1, keepdim=False: (lambda y: np.expand_dims(y, dim) if keepdim else y)(
        np.take(np.sort(x, dim), k - 1, dim)), "topk": largest, "mode": most_common, "masked_scatter": masked_write,
    "expand": lambda x, shape: np.broadcast_to(
        x, [m if n == -1 else n for n, m in zip(shape, (1,) * (len(shape) - x.ndim) + x.shape, strict=True)]),
    "expand_as": lambda x, y: np.broadcast_to(x, y.shape), "scatter_add": scattered(np.add), "scatter": scattered(None),
    "scatter_reduce": scatter_reduce, "index_reduce": index_reduce, "gather": lambda x, dim, index, sparse_grad=False:
        x[places(x, dim, index)], "reshape_as": lambda x, y: x.reshape(y.shape), "view_as": lambda x, y: x.reshape(
        y.shape), "unflatten": lambda x, dim, sizes: x.reshape(*x.shape[:dim], *sizes, *x.shape[dim:][1:]),
    "slice": lambda x, dim=0, start=None, end=None, step=1: x[(slice(None),) * dim + (slice(start, end, step),)],
    "contiguous": lambda x: np.array(x, order="C"), "permute_copy": np.transpose, "transpose_copy": np.swapaxes,
    "t_copy": np.transpose, "unsqueeze_copy": np.expand_dims, "alias_copy": np.array,
    "diagonal_copy": lambda x, offset=0, dim1=0, dim2=1: np.diagonal(x, offset, dim1, dim2).copy(),
    "view_as_complex": lambda x: x[..., 0] + 1j * x[..., 1], "view_as_real": lambda x: np.stack([x.real, x.imag], -1),
    "double": lambda x, **_: x.real.astype(np.float64), "cdouble": lambda x, **_: x.astype(complex),
    "combinations": lambda x, r=2, with_replacement=False: scipy_combinations(x, r, with_replacement),
    "cartesian_prod": lambda *x: np.stack([g.ravel() for g in np.meshgrid(*x, indexing="ij")], -1) if len(
        x) > 1 else x[0], "meshgrid list_of_tensors": lambda xs, indexing: np.meshgrid(*xs, indexing=indexing),
    "sum_to_size": lambda x, *shape: (lambda shape: np.reshape(np.sum(x, tuple(
        i for i in range(x.ndim) if i < x.ndim - len(shape) or shape[i - x.ndim + len(shape)] == 1)), shape))(
        tuple(shape[0]) if shape and isinstance(shape[0], list | tuple) else shape),
}  # fmt: skip
MATRICES = {
    "linalg.householder_product": reflected, "ormqr": multiplied, "cholesky_inverse": from_cholesky,
    "cholesky_solve": lambda b, a, upper=False: np.linalg.solve(
        np.conj(np.swapaxes(a, -1, -2)) @ a if upper else a @ np.conj(np.swapaxes(a, -1, -2)), b),
    "lu_unpack": unpacked, "linalg.lu_solve": lambda lu, p, b, *, left=True, adjoint=False: by_lu(
        lu, p, b, left, adjoint), "lu_solve": lambda b, lu, p: by_lu(lu, p, b), "triangular_solve": over_triangle,
    "linalg.inv_ex": lambda a, check_errors=False: np.linalg.inv(a),
    "linalg.cholesky_ex": lambda a, upper=False: np.linalg.cholesky(2 * symmetric(a), upper=upper),
    "linalg.solve_ex": lambda a, b: np.linalg.solve(a, b[..., None])[..., 0] if b.ndim == 1 or (
        b.ndim == a.ndim - 1 and b.shape == a.shape[:-1]) else np.linalg.solve(a, b),
    "linalg.lu_factor_ex": lambda a, pivot=True: scipy.linalg.lu_factor(a)[0],
    "lu": lambda a, pivot=True, infos=False: scipy.linalg.lu_factor(a)[0],
}  # fmt: skip
MASKED = {
    "masked.sum": masked(np.sum), "masked.prod": masked(np.prod), "masked.mean": masked(np.mean),
    "masked.amax": masked(np.max, initial=-np.inf), "masked.amin": masked(np.min, initial=np.inf),
    "masked.var": spread(np.var), "masked.std": spread(np.std), "masked.norm": masked_norm,
    "masked.cumsum": lambda x, dim, mask=None, dtype=None: filled(np.cumsum, 0.0)(x, dim=dim, mask=mask),
    "masked.cumprod": lambda x, dim, mask=None, dtype=None: filled(np.cumprod, 1.0)(x, dim=dim, mask=mask),
    **{f"masked.{name}": (lambda x, dim, mask=None, dtype=None, f=f, s=s: s * filled(f, -s * np.inf)(
        x, dim=dim, mask=mask)) for name, f, s in (("softmax", sp.softmax, 1), ("log_softmax", sp.log_softmax, 1))},
    "masked.softmin": lambda x, dim, mask=None, dtype=None: filled(sp.softmax, -np.inf)(-x, dim=dim, mask=mask),
    "masked.logsumexp": lambda x, dim=None, keepdim=False, mask=None: filled(sp.logsumexp, -np.inf)(
        x, dim=dim, mask=mask, keepdims=keepdim), "masked.normalize": scaled,
    "masked.median": lambda x, dim, keepdim=False, mask=None: filled(lower_median, np.nan)(
        x, dim=dim, mask=mask, keepdims=keepdim),
    "masked.logaddexp": lambda a, b, input_mask=None, other_mask=None: np.where(
        (True if input_mask is None else input_mask) & np.asarray(True if other_mask is None else other_mask),
        np.logaddexp(a, b), 0.0),
}  # fmt: skip


def scipy_combinations(x: Any, r: int, replaced: bool) -> Any:
    choose = itertools.combinations_with_replacement if replaced else itertools.combinations
    rows = np.array(list(choose(range(len(x)), r)), int).reshape(-1, r)
    return x[rows]


def shown(program: Any, along: Any) -> Any:
    """A program with 0 in its result where the mask leaves nothing, as PyTorch's own checks of derivatives have it."""

    def function(x: Any, *args: Any, mask: Any = None, **options: Any) -> Any:
        y = program(x, *args, mask=mask, **options)
        if mask is None:
            return y
        mask = np.broadcast_to(mask, x.shape)
        if along is None:
            return np.where(mask, y, 0.0)
        dim = axes(options.get("dim", args[along] if len(args) > along else None), x)
        return np.where(np.any(mask, axis=dim, keepdims=options.get("keepdim", False)), y, 0.0)

    return function


REDUCING = "sum mean amax amin var std norm logsumexp median".split()
FOR_EACH = "cumsum cumprod softmax log_softmax softmin normalize".split()
SHOWN = {
    **{f"masked.{name}": shown(MASKED[f"masked.{name}"], int(name == "norm")) for name in REDUCING},
    **{f"masked.{name}": shown(MASKED[f"masked.{name}"], None) for name in FOR_EACH},
}
ARRAYS: dict[str, Any] = {**PLACES, **MATRICES, **MASKED, **SHOWN}
