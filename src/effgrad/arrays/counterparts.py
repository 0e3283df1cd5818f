"""What operations mean over the arrays of another library: the table of `effgrad.arrays.namespace`.

One entry an operation: a primitive, or a function of NumPy that rules ask about plain values, and the function of the
array API standard (or, where the standard has none, of the library) that computes it. An entry is called with the
library and the arguments: its arrays, and plain numbers and NumPy arrays, which it converts.

The array API standard, https://data-apis.org/array-api/2024.12.
"""

import operator
from typing import Any

import numpy as np
import scipy.special

from effgrad.arrays.namespace import BY_NUMPY, COUNTERPARTS, Library, LibraryArray, numpy_dtype, of_another_library
from effgrad.arrays.value import UFUNCS
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


# Shape, joining, indexing.


def _reshape(lib: Library, x: Any, shape: Any) -> Any:
    shape = (int(shape),) if isinstance(shape, int | np.integer) else tuple(map(int, shape))
    return lib.xp.reshape(lib.array(x), shape)


def _transpose(lib: Library, x: Any, axes: Any = None) -> Any:
    x = lib.array(x)
    return lib.xp.permute_dims(x, tuple(range(x.ndim))[::-1] if axes is None else tuple(int(i) for i in axes))


def _tupled(index: Any) -> tuple[Any, ...]:
    return index if type(index) is tuple else (index,)


def _located(lib: Library, index: Any) -> tuple[Any, ...]:
    """An index with its NumPy arrays and lists as the library's."""
    return tuple(
        lib.array(i if not isinstance(i, list) or i else np.zeros(0, int))
        if isinstance(i, list | np.ndarray) else int(i) if isinstance(i, np.integer) else i
        for i in _tupled(index)
    )  # fmt: skip


def _common(index: Any) -> bool:
    """Whether an index means the same everywhere: not where slices go backward, nor where arrays and integers have
    other things between them, which NumPy and PyTorch put in different orders."""
    parts = _tupled(index)
    if any(type(i) is slice and i.step is not None and i.step < 0 for i in parts):
        return False
    places = [n for n, i in enumerate(parts) if i is not None and i is not Ellipsis and type(i) is not slice]
    return _basic(index) or places[-1] - places[0] < len(places)


def _basic(index: Any) -> bool:
    return all(i is None or i is Ellipsis or type(i) is slice or isinstance(i, int | np.integer) and not isinstance(
        i, bool) for i in _tupled(index))  # fmt: skip


def _getitem(lib: Library, x: Any, index: Any) -> Any:
    x = lib.array(x)
    if lib.indexes and _common(index):
        return x[_located(lib, index)]
    if _basic(index) and all(type(i) is not slice or i == slice(None) for i in _tupled(index)):
        return x[index if Ellipsis in _tupled(index) else (*_tupled(index), ...)]
    places = _addresses(lib, index, tuple(x.shape))
    return lib.xp.reshape(lib.xp.take(lib.xp.reshape(x, (-1,)), lib.xp.reshape(places, (-1,)), axis=0), places.shape)


def _written(lib: Library, x: Any, index: Any, value: Any, adding: bool = False) -> Any:
    """A copy of an array with a value at (or added to) the places of an index."""
    if not (lib.indexes and _common(index)):
        places = _addresses(lib, index, tuple(x.shape))
        value = lib.xp.reshape(lib.xp.broadcast_to(value, places.shape), (-1,))
        flat, places = lib.xp.reshape(x, (-1,)), lib.xp.reshape(places, (-1,))
        flat = (
            _written(lib, flat, places, value, adding)
            if lib.indexes
            else _gathered(lib.xp, flat, places, value, adding)
        )
        return lib.xp.reshape(flat, x.shape)
    index = _located(lib, index)
    if hasattr(x, "at"):  # arrays of JAX are never written to
        return x.at[index].add(value) if adding else x.at[index].set(value)
    x = lib.copied(x)
    if not adding:
        x[index] = value
    elif _basic(index):
        x[index] += value
    elif hasattr(x, "index_put_"):
        _index_add(lib, x, index, value)
    else:
        lib.xp.add.at(x, index, value)
    return x


def _addresses(lib: Library, index: Any, shape: Any) -> Any:
    """The numbers of the elements that an index selects: NumPy's answer, or computed from arrays of the library."""
    parts = [i for i in _tupled(index) if not (type(i) is slice and i == slice(None)) and i is not Ellipsis]
    if not any(of_another_library(i) for i in parts):
        return lib.array(np.arange(int(np.prod(shape))).reshape(shape)[index])
    if any(a is not b for a, b in zip(parts, _tupled(index), strict=False)) or len(parts) > len(shape):
        raise lib.no_counterpart("an index of arrays behind slices")
    if len(parts) == 1 and lib.xp.isdtype(parts[0].dtype, "bool"):
        parts = list(lib.xp.nonzero(parts[0]))
    places: Any = 0
    for part, n in zip(parts, shape, strict=False):
        part = lib.array(part)
        places = places * n + lib.xp.where(part < 0, part + n, part)
    rest = shape[len(parts) :]
    numbers = lib.array(np.arange(int(np.prod(rest))).reshape(rest))
    return lib.xp.reshape(places, (*places.shape, *(1,) * len(rest))) * int(np.prod(rest)) + numbers


def _gathered(xp: Any, x: Any, places: Any, values: Any, adding: bool) -> Any:
    """A vector with values set at (added to) places, by the standard alone: each element looks up who writes to it."""
    if not places.shape[0] or not x.shape[0]:
        return x
    order = xp.argsort(places, stable=True)
    ordered = xp.take(places, order, axis=0)
    again = xp.arange(ordered.shape[0], device=ordered.device) - xp.searchsorted(ordered, ordered)
    numbers = xp.arange(x.shape[0], device=x.device)
    for turn in range(int(xp.max(again)) + 1) if adding else [None]:
        chosen, at = (order, ordered) if turn is None else (order[again == turn], ordered[again == turn])
        writer = xp.searchsorted(at, numbers, side="right") - 1
        writer = xp.where(writer < 0, xp.zeros_like(writer), writer)
        value = xp.take(values, xp.take(chosen, writer, axis=0), axis=0)
        x = xp.where(xp.take(at, writer, axis=0) == numbers, x + value if adding else value, x)
    return x


def _index_add(lib: Library, x: Any, index: Any, value: Any) -> None:
    """PyTorch adds at an index of tensors alone: slices and integers become addresses."""
    if all(hasattr(i, "dtype") for i in index):
        x.index_put_(index, value, accumulate=True)
    else:
        numbers = lib.xp.reshape(lib.xp.arange(x.numel(), device=lib.device), x.shape)[index]
        value = lib.xp.broadcast_to(value, numbers.shape)
        x.view(-1).index_add_(0, numbers.reshape(-1), value.reshape(-1))


def _setitem(lib: Library, x: Any, value: Any, index: Any) -> Any:
    x = lib.array(x)
    return _written(lib, x, index, lib.array(value, numpy_dtype(x.dtype)))


def _scatter_add(lib: Library, *pieces: Any, shape: Any, indices: Any) -> Any:
    values = lib.promoted(*pieces)
    total = lib.xp.zeros(shape, dtype=values[0].dtype, device=lib.device)
    for index, value in zip(indices, values, strict=True):
        total = _written(lib, total, index, value, adding=True)
    return total


def _overwrite(lib: Library, base: Any, *values: Any, places: Any) -> Any:
    base = lib.array(base)
    flat = lib.xp.reshape(base, (-1,))
    for place, value in zip(places, values, strict=True):
        flat = _written(lib, flat, place, lib.array(value, numpy_dtype(base.dtype)))
    return lib.xp.reshape(flat, base.shape)


def _joining(name: str) -> Any:
    def counterpart(lib: Library, *arrays: Any, axis: Any) -> Any:
        return getattr(lib.xp, name)(lib.promoted(*arrays), axis=axis)

    return counterpart


# Products and decompositions of matrices; Fourier transforms.


def _matmul(lib: Library, a: Any, b: Any) -> Any:
    if not (type(a) is type(b) and a.dtype == b.dtype):
        a, b = lib.promoted(a, b)
    return lib.xp.matmul(a, b)


def _einsum(lib: Library, *operands: Any, subscripts: str) -> Any:
    xp, operands = lib.xp, tuple(lib.promoted(*operands))
    if hasattr(xp, "einsum"):
        return xp.einsum(subscripts, *operands)
    inputs, output = subscripts.split("->")
    letters = "".join(dict.fromkeys(inputs.replace(",", "")))
    product: Any = None
    for term, x in zip(inputs.split(","), operands, strict=True):
        for letter in set(term):  # a repeated letter is a diagonal
            while term.count(letter) > 1:
                first, second = term.index(letter), term.rindex(letter)
                x = xp.linalg.diagonal(xp.moveaxis(x, (first, second), (-2, -1)))
                term = term[:first] + term[first + 1 : second] + term[second + 1 :] + letter
        x = xp.permute_dims(x, tuple(term.index(s) for s in letters if s in term))
        lengths = iter(x.shape)
        x = xp.reshape(x, tuple(next(lengths) if s in term else 1 for s in letters))
        product = x if product is None else product * x
    total = xp.sum(product, axis=tuple(i for i, s in enumerate(letters) if s not in output))
    kept = [s for s in letters if s in output]
    return xp.permute_dims(total, tuple(kept.index(s) for s in output))


def _linalg(name: str) -> Any:
    def counterpart(lib: Library, *args: Any, **options: Any) -> Any:
        return getattr(lib.xp.linalg, name)(*lib.promoted(*args, floating=True), **options)

    return counterpart


def _hermitian(name: str) -> Any:
    """A function of Hermitian matrices, which the standard lets read either triangle: it is given the whole."""

    def counterpart(lib: Library, a: Any, UPLO: str = "L", lower: bool = True, **options: Any) -> Any:
        xp, a = lib.xp, lib.promoted(a, floating=True)[0]
        lower = lower and UPLO == "L" and not options.get("upper")
        half = xp.tril(a, k=-1) if lower else xp.triu(a, k=1)
        other = xp.matrix_transpose(half)
        other = xp.conj(other) if numpy_dtype(a.dtype).kind == "c" else other
        return getattr(xp.linalg, name)(half + other + xp.tril(xp.triu(a)), **options)

    return counterpart


def _solve(lib: Library, a: Any, b: Any) -> Any:
    a, b = lib.promoted(a, b, floating=True)
    return lib.xp.linalg.solve(a, b[:, None])[..., 0] if b.ndim == 1 else lib.xp.linalg.solve(a, b)


def _pinv(lib: Library, a: Any, rcond: Any) -> Any:
    return lib.xp.linalg.pinv(lib.array(a), rtol=rcond)


def _qr(lib: Library, a: Any, mode: str = "reduced") -> Any:
    return lib.xp.linalg.qr(lib.array(a), mode=mode)


def _eig(lib: Library, a: Any) -> Any:
    return lib.xp.linalg.eig(lib.array(a))


def _fourier(name: str) -> Any:
    def counterpart(lib: Library, x: Any, axis: int, norm: Any) -> Any:
        x = lib.array(x)
        if numpy_dtype(x.dtype).kind != "c":
            x = lib.promoted(x, 1j)[0]
        return getattr(lib.xp.fft, name)(x, axis=axis, norm=norm or "backward")

    return counterpart


for _name, _standard in _FLOATING.items():
    COUNTERPARTS[UFUNCS[getattr(np, _name)]] = COUNTERPARTS[getattr(np, _name)] = _elementwise(_standard, floating=True)
for _name, _standard in _ANY.items():
    _function = getattr(np, _name)
    COUNTERPARTS[UFUNCS.get(_function, _function)] = COUNTERPARTS[_function] = _elementwise(_standard)
for _function, _primitive in UFUNCS.items():
    if getattr(np, _function.__name__, None) is not _function:
        COUNTERPARTS[_primitive] = _special(_function.__name__)
COUNTERPARTS.update({
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
    move.reshape: _reshape, move.transpose: _transpose,
    move.broadcast_to: lambda lib, x, shape: lib.xp.broadcast_to(lib.array(x), shape),
    move.astype: lambda lib, x, dtype: LibraryArray(lib, lib.array(x, dtype), None),
    move.getitem: _getitem, move.setitem: _setitem, move.scatter_add: _scatter_add,
    overwrite.overwrite: _overwrite, move.concatenate: _joining("concat"), move.stack: _joining("stack"),
    move.tril: lambda lib, x, k: lib.xp.tril(lib.array(x), k=k),
    move.triu: lambda lib, x, k: lib.xp.triu(lib.array(x), k=k),
    product.matmul: _matmul, product.einsum: _einsum, product.inv: _linalg("inv"), product.det: _linalg("det"),
    product.solve: _solve, decomposition.cholesky: _hermitian("cholesky"),
    np.linalg.slogdet: _named(product.SlogdetResult, _linalg("slogdet")),
    np.linalg.eigh: _named(decomposition.EighResult, _hermitian("eigh")),
    np.linalg.svd: _named(decomposition.SVDResult, _linalg("svd")),
    np.linalg.qr: _named(decomposition.QRResult, _qr), np.linalg.eig: _named(decomposition.EigResult, _eig),
    decomposition.eigvalsh: _hermitian("eigvalsh"), decomposition.svdvals: _linalg("svdvals"),
    np.linalg.matrix_rank: _linalg("matrix_rank"), decomposition.pinv_of: _pinv,
    fourier.fft: _fourier("fft"), fourier.ifft: _fourier("ifft"),
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
})  # fmt: skip
