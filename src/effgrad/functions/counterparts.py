"""The counterparts of NumPy functions in other array libraries, for computations that no derivative passes through.

Rules call these functions on primal values: to sort, to compare, to find indices. Each entry is a function of the
`Library` and the arguments of the NumPy function, which are arrays of that library, or plain numbers and NumPy arrays
that the entry converts. The counterparts of primitives are in the primitives' own rows
(`effgrad.arrays.counterparts`).
"""

import numpy as np

from effgrad.arrays import counterparts, library_matrices
from effgrad.arrays.counterparts import along, reduction
from effgrad.arrays.library_array import numpy_dtype, of_another_library
from effgrad.arrays.namespace import Library
from effgrad.primitives import decomposition, singular_values, systems
from effgrad.primitives.constants import ROWS
from effgrad.vocabulary import Axis, Option, Value


def _argsort(lib: Library, a: Value, axis: Axis = -1, kind: type | None = None, *, stable: object = None) -> Value:
    return along("argsort")(lib, a, axis)


def _argpartition(lib: Library, a: Value, kth: object, axis: Axis = -1, kind: type | None = None) -> Value:
    return along("argsort")(lib, a, axis)


def _count_nonzero(lib: Library, x: Value, axis: Axis = None, keepdims: bool = False) -> Value:
    return reduction("sum")(lib, lib.xp.astype(lib.array(x) != 0, lib.dtype(np.int64)), axis, keepdims)


def _close(lib: Library, a: Value, b: Value, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Value:
    xp = lib.xp
    a, b = lib.promoted(a, b, floating=True)
    close = (xp.abs(a - b) <= atol + rtol * xp.abs(b)) & xp.isfinite(b) | (a == b)
    return close | (xp.isnan(a) & xp.isnan(b)) if equal_nan else close


def _array_equal(lib: Library, a: Value, b: Value, equal_nan: bool = False) -> Value:
    a, b = lib.promoted(a, b)
    same = tuple(a.shape) == tuple(b.shape)
    return same and bool(lib.xp.all((a == b) | ((a != a) & (b != b)) if equal_nan else a == b))


def _searchsorted(lib: Library, a: Value, v: Value, side: str = "left", sorter: object = None) -> Value:
    a, v = lib.promoted(a, v)
    flat = lib.xp.searchsorted(a if sorter is None else a[lib.array(sorter)], lib.xp.reshape(v, (-1,)), side=side)
    return lib.xp.reshape(flat, v.shape)


def _round(lib: Library, a: Value, decimals: int = 0) -> Value:
    a = lib.array(a)
    return lib.xp.round(a) if decimals == 0 else lib.xp.round(a * 10.0**decimals) / 10.0**decimals


def _nan_to_num(
    lib: Library, x: Value, copy: bool = True, nan: float = 0.0, posinf: object = None, neginf: object = None
) -> Value:
    xp, x = lib.xp, lib.array(x)
    limits = np.finfo(numpy_dtype(x.dtype))
    for where, value in (
        (xp.isnan(x), nan), (x == np.inf, limits.max if posinf is None else posinf),
        (x == -np.inf, limits.min if neginf is None else neginf),
    ):  # fmt: skip
        x = xp.where(where, lib.array(value, numpy_dtype(x.dtype)), x)
    return x


def _isin(lib: Library, x: Value, elements: Value, assume_unique: bool = False, invert: bool = False) -> Value:
    x, elements = lib.promoted(x, elements)
    found = lib.xp.any(x[..., None] == lib.xp.reshape(elements, (-1,)), axis=-1)
    return ~found if invert else found


def _unique(
    lib: Library, x: Value, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
) -> Value:  # fmt: skip
    xp, x = lib.xp, lib.xp.reshape(lib.array(x), (-1,))
    order = xp.argsort(x, stable=True)
    ordered = x[order]
    before, after = ordered[:-1], ordered[1:]
    new = (before != after) & ((before == before) | (after == after))  # all NaNs count as one element
    new = xp.concat([xp.ones_like(ordered[:1], dtype=xp.bool), new])
    first = xp.nonzero(new)[0]
    number = xp.cumulative_sum(xp.astype(new, lib.dtype(np.int64))) - 1
    ends = xp.concat([first[1:], xp.ones_like(first[:1]) * x.shape[0]])
    parts = (ordered[first], order[first], number[xp.argsort(order)], ends - first)
    asked = (True, return_index, return_inverse, return_counts)
    chosen = tuple(part for part, wanted in zip(parts, asked, strict=True) if wanted)
    return chosen if len(chosen) > 1 else chosen[0]


def _histogram_bin_edges(
    lib: Library, a: Value, bins: Option = 10, range: Option = None, weights: Value = None
) -> Value:
    if of_another_library(a) or of_another_library(bins):
        raise lib.no_counterpart(np.histogram_bin_edges)
    return np.histogram_bin_edges(a, bins, range)  # the edges do not depend on the weights


COUNTERPARTS: dict[Value, Value] = {
    **{function: row.counterpart for function, row in ROWS.items() if row.counterpart},
    np.where: counterparts.where, np.nonzero: counterparts.where,
    np.all: reduction("all"), np.any: reduction("any"), np.argmax: along("argmax"), np.argmin: along("argmin"),
    np.argsort: _argsort, np.argpartition: _argpartition, np.count_nonzero: _count_nonzero, np.isclose: _close,
    np.allclose: lambda lib, *args, **options: bool(lib.xp.all(_close(lib, *args, **options))),
    np.array_equal: _array_equal, np.searchsorted: _searchsorted, np.round: _round, np.around: _round,
    np.linalg.slogdet: library_matrices.named(systems.SlogdetResult, library_matrices.linalg("slogdet")),
    np.linalg.eigh: library_matrices.named(decomposition.EighResult, library_matrices.hermitian("eigh")),
    np.linalg.svd: library_matrices.named(singular_values.SVDResult, library_matrices.linalg("svd")),
    np.linalg.qr: library_matrices.named(decomposition.QRResult, library_matrices.qr),
    np.linalg.eig: library_matrices.named(decomposition.EigResult, library_matrices.eig),
    np.linalg.matrix_rank: library_matrices.linalg("matrix_rank"),
    np.result_type: lambda lib, *args: np.result_type(
        *[numpy_dtype(a.dtype) if of_another_library(a) else a for a in args]),
    np.flatnonzero: lambda lib, x: lib.xp.nonzero(lib.xp.reshape(lib.array(x), (-1,)))[0],
    np.nan_to_num: _nan_to_num, np.isin: _isin, np.unique: _unique,
    np.unique_values: _unique, np.histogram_bin_edges: _histogram_bin_edges,
    np.iscomplexobj: lambda lib, x: numpy_dtype(x.dtype).kind == "c",
    np.common_type: lambda lib, *arrays: np.common_type(*[np.empty(0, numpy_dtype(a.dtype)) for a in arrays]),
}  # fmt: skip
