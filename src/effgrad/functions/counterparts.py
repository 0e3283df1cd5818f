"""The table of what operations mean over the arrays of another library, which `effgrad.arrays.namespace` asks.

One entry an operation: a primitive, or a function of NumPy that rules ask about plain values, and the function of the
array API standard (or, where the standard has none, of the library) that computes it. An entry is called with the
library and the arguments: its arrays, and plain numbers and NumPy arrays, which it converts.

The array API standard, https://data-apis.org/array-api/2024.12.
"""

import operator
from typing import Any

import numpy as np
import scipy.special

from effgrad.arrays.library_array import LibraryArray, numpy_dtype
from effgrad.arrays.namespace import BY_NUMPY, Library, of_another_library
from effgrad.arrays.value import UFUNCS
from effgrad.functions import library_matrices, library_places
from effgrad.primitives import (
    complexes,
    decomposition,
    elementwise,
    fourier,
    kinks,
    move,
    overwrite,
    product,
    reduction,
)

# Elementwise functions of the standard by their names there; the result of integers is a floating point number.
_FLOATING = {
    name: name
    for name in (
        "exp", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "hypot",
        "logaddexp", "copysign", "reciprocal",
    )
} | {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
    "arctan2": "atan2",
}  # fmt: skip
_ANY = {
    name: name
    for name in (
        "floor", "ceil", "trunc", "sign", "signbit", "isnan", "isinf", "isfinite", "less", "less_equal",
        "greater", "greater_equal", "equal", "not_equal", "square", "floor_divide", "bitwise_and", "bitwise_or",
        "bitwise_xor", "maximum", "minimum",
    )
} | {"invert": "bitwise_invert", "rint": "round", "fabs": "abs", "positive": "positive"}  # fmt: skip


def _elementwise(name: str, floating: bool = False) -> Any:
    def counterpart(lib: Library, *args: Any) -> Any:
        return getattr(lib.xp, name)(*lib.promoted(*args, floating=floating))

    return counterpart


def _logical(name: str) -> Any:
    return lambda lib, *args: getattr(lib.xp, name)(*[lib.array(a, bool) for a in args])


def _named(kind: Any, counterpart: Any) -> Any:
    """A function of several results, which NumPy gives by names."""
    return lambda lib, *args, **options: kind(*counterpart(lib, *args, **options))


def _operator(function: Any, floating: bool = False) -> Any:
    """An operator, which takes Python's numbers as they are."""

    def counterpart(lib: Library, a: Any, b: Any) -> Any:
        kind = getattr(a, "dtype", None)
        if type(b) is float and kind is not None and numpy_dtype(kind).kind in "fc" and type(a) is not np.ndarray:
            return function(a, b)
        if kind is None or type(a) is not type(b) or kind != b.dtype or floating:
            a, b = lib.promoted(a, b, floating=floating)
        return function(a, b)

    return counterpart


def _special(name: str, otherwise: Any = None) -> Any:
    """A function of the library's counterpart of `scipy.special`, or by others."""

    def counterpart(lib: Library, *args: Any) -> Any:
        args = tuple(lib.promoted(*args, floating=True))
        for alias in (name, _SPECIAL_NAMES.get(name, name)):
            function = getattr(lib.special, alias, None)
            if function is not None:
                return function(*args)
        if otherwise is None:
            raise lib.no_counterpart(getattr(scipy.special, name))
        return otherwise(lib.xp, *args)

    return counterpart


_SPECIAL_NAMES = {
    "j0": "bessel_j0", "j1": "bessel_j1", "y0": "bessel_y0", "y1": "bessel_y1", "k0": "modified_bessel_k0",
    "k1": "modified_bessel_k1", "k0e": "scaled_modified_bessel_k0", "k1e": "scaled_modified_bessel_k1",
    "ndtri_exp": "log_ndtri",
}  # fmt: skip


def _own(name: str, otherwise: Any) -> Any:
    """A function that the standard lacks: the library's own, or by others."""

    def counterpart(lib: Library, *args: Any) -> Any:
        args = tuple(lib.promoted(*args, floating=True))
        function = getattr(lib.xp, name, None)
        return function(*args) if function is not None else otherwise(lib.xp, *args)

    return counterpart


def _chosen(better: str) -> Any:
    """`fmax` and `fmin`: of a number and a NaN, the number."""

    def counterpart(lib: Library, a: Any, b: Any) -> Any:
        xp = lib.xp
        a, b = lib.promoted(a, b)
        a, b = xp.where(xp.isnan(a), b, a), xp.where(xp.isnan(b), a, b)
        return getattr(xp, better)(a, b)

    return counterpart


def _fmod(lib: Library, a: Any, b: Any) -> Any:
    a, b = lib.promoted(a, b)
    rest = lib.xp.remainder(lib.xp.abs(a), lib.xp.abs(b))
    return lib.xp.where(a < 0, -rest, rest)


def _where(lib: Library, condition: Any, a: Any = None, b: Any = None) -> Any:
    condition = lib.array(condition, bool)
    return lib.xp.nonzero(condition) if a is None else lib.xp.where(condition, *lib.promoted(a, b))


def _inverse_if_apart(lib: Library, x: Any, equal: Any) -> Any:
    (x,), equal = lib.promoted(x, floating=True), lib.array(equal, bool)
    apart = lib.xp.where(equal, lib.xp.ones_like(x), x)
    return lib.xp.where(equal, lib.xp.zeros_like(x), 1.0 / apart)


def _undefined_where(lib: Library, x: Any, at: Any) -> Any:
    (x,) = lib.promoted(x, floating=True)
    return lib.xp.where(lib.array(at, bool), lib.xp.full_like(x, np.nan), x)


def _clip(lib: Library, x: Any, low: Any, high: Any) -> Any:
    x, low, high = lib.promoted(x, low, high)
    return lib.xp.minimum(lib.xp.maximum(x, low), high)


def _sinc(xp: Any, x: Any) -> Any:
    t = xp.where(x == 0, xp.ones_like(x), x * np.pi)
    return xp.where(x == 0, xp.ones_like(x), xp.sin(t) / t)


def _step(xp: Any, distance: Any, at_zero: Any) -> Any:
    sided = xp.where(distance > 0, xp.ones_like(distance), xp.zeros_like(distance))
    return xp.where(xp.isnan(distance), distance, xp.where(distance == 0, at_zero, sided))


def _spike(xp: Any, distance: Any) -> Any:
    zeros = xp.zeros_like(distance)
    return xp.where(distance == 0, zeros + np.nan, zeros)


def _inverse(xp: Any, y: Any) -> Any:
    return xp.where(y == 0, xp.zeros_like(y), 1.0 / xp.where(y == 0, xp.ones_like(y), y))


def _cbrt(xp: Any, x: Any) -> Any:
    return xp.sign(x) * xp.abs(x) ** (1 / 3)


# Reductions.


def _reduction(name: str) -> Any:
    def counterpart(lib: Library, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        axis = tuple(map(int, axis)) if type(axis) in (list, tuple) else axis
        return getattr(lib.xp, name)(lib.array(x), axis=axis, keepdims=keepdims)

    return counterpart


def _sum(lib: Library, x: Any, axis: Any) -> Any:
    x = lib.array(x)
    if numpy_dtype(x.dtype).kind == "b":
        x = lib.xp.astype(x, lib.dtype(np.int64))
    return lib.xp.sum(x, axis=axis)


def _prod(lib: Library, x: Any, axis: Any) -> Any:
    x = lib.array(x)
    return lib.xp.prod(x if axis is not None else lib.xp.reshape(x, (-1,)), axis=0 if axis is None else axis)


def _along(name: str) -> Any:
    """A function along one axis, by default of all elements."""

    def counterpart(lib: Library, x: Any, axis: Any = None, **options: Any) -> Any:
        x = lib.array(x)
        x, axis = (lib.xp.reshape(x, (-1,)), 0) if axis is None else (x, int(axis))
        return getattr(lib.xp, name)(x, axis=axis, **options)

    return counterpart


def _argsort(lib: Library, a: Any, axis: Any = -1, kind: Any = None, *, stable: Any = None) -> Any:
    return _along("argsort")(lib, a, axis)


def _argpartition(lib: Library, a: Any, kth: Any, axis: Any = -1, kind: Any = None) -> Any:
    return _along("argsort")(lib, a, axis)


def _count_nonzero(lib: Library, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return _reduction("sum")(lib, lib.xp.astype(lib.array(x) != 0, lib.dtype(np.int64)), axis, keepdims)


def _close(lib: Library, a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    xp = lib.xp
    a, b = lib.promoted(a, b, floating=True)
    close = (xp.abs(a - b) <= atol + rtol * xp.abs(b)) & xp.isfinite(b) | (a == b)
    return close | (xp.isnan(a) & xp.isnan(b)) if equal_nan else close


def _array_equal(lib: Library, a: Any, b: Any, equal_nan: bool = False) -> Any:
    a, b = lib.promoted(a, b)
    same = tuple(a.shape) == tuple(b.shape)
    return same and bool(lib.xp.all((a == b) | ((a != a) & (b != b)) if equal_nan else a == b))


def _searchsorted(lib: Library, a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    a, v = lib.promoted(a, v)
    flat = lib.xp.searchsorted(a if sorter is None else a[lib.array(sorter)], lib.xp.reshape(v, (-1,)), side=side)
    return lib.xp.reshape(flat, v.shape)


def _round(lib: Library, a: Any, decimals: int = 0) -> Any:
    a = lib.array(a)
    return lib.xp.round(a) if decimals == 0 else lib.xp.round(a * 10.0**decimals) / 10.0**decimals


def _nan_to_num(
    lib: Library, x: Any, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    xp, x = lib.xp, lib.array(x)
    limits = np.finfo(numpy_dtype(x.dtype))
    for where, value in (
        (xp.isnan(x), nan), (x == np.inf, limits.max if posinf is None else posinf),
        (x == -np.inf, limits.min if neginf is None else neginf),
    ):  # fmt: skip
        x = xp.where(where, lib.array(value, numpy_dtype(x.dtype)), x)
    return x


def _isin(lib: Library, x: Any, elements: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    x, elements = lib.promoted(x, elements)
    found = lib.xp.any(x[..., None] == lib.xp.reshape(elements, (-1,)), axis=-1)
    return ~found if invert else found


def _unique(
    lib: Library, x: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
) -> Any:  # fmt: skip
    xp, x = lib.xp, lib.xp.reshape(lib.array(x), (-1,))
    order = xp.argsort(x, stable=True)
    ordered = x[order]
    before, after = ordered[:-1], ordered[1:]
    new = (before != after) & ((before == before) | (after == after))  # all NaNs are one
    new = xp.concat([xp.ones_like(ordered[:1], dtype=xp.bool), new])
    first = xp.nonzero(new)[0]
    number = xp.cumulative_sum(xp.astype(new, lib.dtype(np.int64))) - 1
    ends = xp.concat([first[1:], xp.ones_like(first[:1]) * x.shape[0]])
    parts = (ordered[first], order[first], number[xp.argsort(order)], ends - first)
    asked = (True, return_index, return_inverse, return_counts)
    chosen = tuple(part for part, wanted in zip(parts, asked, strict=True) if wanted)
    return chosen if len(chosen) > 1 else chosen[0]


def _histogram_bin_edges(lib: Library, a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    if of_another_library(a) or of_another_library(bins):
        raise lib.no_counterpart(np.histogram_bin_edges)
    return np.histogram_bin_edges(a, bins, range)  # which has nothing to do with the weights


def _elementwise_table() -> dict[Any, Any]:
    """The counterparts of elementwise functions, and of their primitives, that the standard or the library has."""
    table: dict[Any, Any] = {}
    for names, floating in ((_FLOATING, True), (_ANY, False)):
        for name, standard in names.items():
            function = getattr(np, name)
            table[UFUNCS.get(function, function)] = table[function] = _elementwise(standard, floating)
    for function, primitive in UFUNCS.items():
        if getattr(np, function.__name__, None) is not function:
            table[primitive] = _special(function.__name__)
    return table


COUNTERPARTS: dict[Any, Any] = {
    **_elementwise_table(),
    **{getattr(np, f"logical_{name}"): _logical(f"logical_{name}") for name in ("and", "or", "not", "xor")},
    elementwise.add: _operator(operator.add), elementwise.subtract: _operator(operator.sub),
    elementwise.multiply: _operator(operator.mul), elementwise.divide: _operator(operator.truediv, floating=True),
    elementwise.power: _operator(operator.pow), elementwise.mod: _elementwise("remainder"),
    elementwise.negative: _elementwise("negative"), elementwise.absolute: _elementwise("abs"),
    UFUNCS[np.exp2]: _own("exp2", lambda xp, x: 2.0**x), UFUNCS[np.cbrt]: _own("cbrt", _cbrt),
    UFUNCS[scipy.special.log_expit]: _special(
        "log_expit", lambda xp, x: -xp.logaddexp(xp.zeros_like(x), -x)),
    UFUNCS[scipy.special.cosm1]: _special("cosm1", lambda xp, x: -2 * xp.sin(x / 2) ** 2),
    UFUNCS[scipy.special.expit]: _special("expit", lambda xp, x: 1 / (1 + xp.exp(-x))),
    elementwise.sinc: _own("sinc", _sinc),
    reduction.unseen: lambda lib, total, hidden: total,
    reduction.root: _elementwise("sqrt", floating=True), reduction.power_root: _operator(operator.pow),
    kinks.step: _own("heaviside", _step),
    kinks.spike: _own("spike", _spike),
    kinks.inverse: _own("inverse_or_zero", _inverse), kinks.kinked: _own("kinked", lambda xp, y: 0.0 * y),
    decomposition.inverse_if_apart: _inverse_if_apart, decomposition.undefined_where: _undefined_where,
    kinks.bounded: _own("bounded", lambda xp, r: xp.where(r == 0, xp.nan, r)),
    kinks.reciprocal_root: _own("reciprocal", lambda xp, y: 1.0 / y),
    elementwise.fmod: _fmod, elementwise.fmax: _chosen("maximum"), elementwise.fmin: _chosen("minimum"),
    elementwise.where: _where, np.where: _where, np.nonzero: _where, elementwise.clip: _clip,
    complexes.real: _elementwise("real"), complexes.imag: _elementwise("imag"),
    complexes.conjugate: _elementwise("conj"),
    reduction.sum_: _sum, reduction.prod: _prod, reduction.maximum_of: _reduction("max"),
    reduction.minimum_of: _reduction("min"), reduction.cumsum: _along("cumulative_sum"),
    np.all: _reduction("all"), np.any: _reduction("any"), np.argmax: _along("argmax"), np.argmin: _along("argmin"),
    np.argsort: _argsort, np.argpartition: _argpartition, np.count_nonzero: _count_nonzero, np.isclose: _close,
    np.allclose: lambda lib, *args, **options: bool(lib.xp.all(_close(lib, *args, **options))),
    np.array_equal: _array_equal, np.searchsorted: _searchsorted, np.round: _round, np.around: _round,
    move.reshape: library_places.reshape, move.transpose: library_places.transpose,
    move.broadcast_to: lambda lib, x, shape: lib.xp.broadcast_to(lib.array(x), shape),
    move.astype: lambda lib, x, dtype: LibraryArray(lib, lib.array(x, dtype), None),
    move.getitem: library_places.getitem, move.setitem: library_places.setitem,
    move.scatter_add: library_places.scatter_add,
    overwrite.overwrite: library_places.overwrite, move.concatenate: library_places.joining("concat"),
    move.stack: library_places.joining("stack"),
    move.tril: lambda lib, x, k: lib.xp.tril(lib.array(x), k=k),
    move.triu: lambda lib, x, k: lib.xp.triu(lib.array(x), k=k),
    product.matmul: library_matrices.matmul, product.einsum: library_matrices.einsum,
    product.inv: library_matrices.linalg("inv"), product.det: library_matrices.linalg("det"),
    product.solve: library_matrices.solve, decomposition.cholesky: library_matrices.hermitian("cholesky"),
    np.linalg.slogdet: _named(product.SlogdetResult, library_matrices.linalg("slogdet")),
    np.linalg.eigh: _named(decomposition.EighResult, library_matrices.hermitian("eigh")),
    np.linalg.svd: _named(decomposition.SVDResult, library_matrices.linalg("svd")),
    np.linalg.qr: _named(decomposition.QRResult, library_matrices.qr),
    np.linalg.eig: _named(decomposition.EigResult, library_matrices.eig),
    decomposition.eigvalsh: library_matrices.hermitian("eigvalsh"),
    decomposition.svdvals: library_matrices.linalg("svdvals"),
    np.linalg.matrix_rank: library_matrices.linalg("matrix_rank"), decomposition.pinv_of: library_matrices.pinv,
    fourier.fft: library_matrices.fourier("fft"), fourier.ifft: library_matrices.fourier("ifft"),
    **dict.fromkeys((
        product.logabsdet, product.phase_of_det, decomposition.qr_packed, decomposition.eigh_packed,
        decomposition.svd_packed, decomposition.eig_packed), BY_NUMPY),
    np.result_type: lambda lib, *args: np.result_type(
        *[numpy_dtype(a.dtype) if of_another_library(a) else a for a in args]),
    np.may_share_memory: lambda lib, a, b: False,
    np.flatnonzero: lambda lib, x: lib.xp.nonzero(lib.xp.reshape(lib.array(x), (-1,)))[0],
    np.nan_to_num: _nan_to_num, np.isin: _isin, np.unique: _unique,
    np.unique_values: _unique, np.histogram_bin_edges: _histogram_bin_edges,
    np.iscomplexobj: lambda lib, x: numpy_dtype(x.dtype).kind == "c",
    np.common_type: lambda lib, *arrays: np.common_type(*[np.empty(0, numpy_dtype(a.dtype)) for a in arrays]),
}  # fmt: skip
