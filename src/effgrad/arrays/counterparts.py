"""The counterparts of primitives for the arrays of other libraries, which the rows of primitives refer to.

A counterpart is called with the `Library` and the arguments. These are the library's arrays, and plain numbers and
NumPy arrays, which it converts. It calls a function of the array API standard or, where the standard has none, of the
library (https://data-apis.org/array-api/2024.12).
"""

import numpy as np
import scipy.special

from effgrad.arrays.library_array import LibraryArray, numpy_dtype
from effgrad.arrays.namespace import Library
from effgrad.vocabulary import Axes, Axis, DTypeLike, Function, Index, Namespace, Option, Shape, Value


def any_type(name: str) -> Function:
    """Return the counterpart by a function of the standard that takes numbers of any dtype."""
    return lambda lib, *args: getattr(lib.xp, name)(*lib.promoted(*args))


def floating(name: str) -> Function:
    """Return the counterpart by a function of the standard, with integer arguments converted to floating point."""
    return lambda lib, *args: getattr(lib.xp, name)(*lib.promoted(*args, floating=True))


def logical(name: str) -> Function:
    return lambda lib, *args: getattr(lib.xp, name)(*[lib.array(a, bool) for a in args])


def operator(function: Function, floating: bool = False) -> Function:
    """Return the counterpart by an operator, to which a Python float is passed without conversion."""

    def counterpart(lib: Library, a: Value, b: Value) -> Value:
        kind = getattr(a, "dtype", None)
        if type(b) is float and kind is not None and numpy_dtype(kind).kind in "fc" and type(a) is not np.ndarray:
            return function(a, b)
        if kind is None or type(a) is not type(b) or kind != b.dtype or floating:
            a, b = lib.promoted(a, b, floating=floating)
        return function(a, b)

    return counterpart


def special(name: str, otherwise: Function | None = None) -> Function:
    """Return the counterpart by the library's own special function, or by `otherwise` if it has none."""

    def counterpart(lib: Library, *args: Value) -> Value:
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


def own(name: str, otherwise: Function) -> Function:
    """Return the counterpart of a function that the standard lacks: the library's own, or else `otherwise`."""

    def counterpart(lib: Library, *args: Value) -> Value:
        args = tuple(lib.promoted(*args, floating=True))
        function = getattr(lib.xp, name, None)
        return function(*args) if function is not None else otherwise(lib.xp, *args)

    return counterpart


def ignoring_nan(better: str) -> Function:
    """Return the counterpart of `fmax` or `fmin`, which prefer a number to a NaN."""

    def counterpart(lib: Library, a: Value, b: Value) -> Value:
        xp = lib.xp
        a, b = lib.promoted(a, b)
        a, b = xp.where(xp.isnan(a), b, a), xp.where(xp.isnan(b), a, b)
        return getattr(xp, better)(a, b)

    return counterpart


def fmod(lib: Library, a: Value, b: Value) -> Value:
    a, b = lib.promoted(a, b)
    rest = lib.xp.remainder(lib.xp.abs(a), lib.xp.abs(b))
    return lib.xp.where(a < 0, -rest, rest)


def where(lib: Library, condition: Value, a: Value = None, b: Value = None) -> Value:
    condition = lib.array(condition, bool)
    return lib.nonzero(condition) if a is None else lib.xp.where(condition, *lib.promoted(a, b))


def inverse_if_apart(lib: Library, x: Value, equal: object) -> Value:
    (x,), equal = lib.promoted(x, floating=True), lib.array(equal, bool)
    apart = lib.xp.where(equal, lib.xp.ones_like(x), x)
    return lib.xp.where(equal, lib.xp.zeros_like(x), 1.0 / apart)


def undefined_where(lib: Library, x: Value, at: Value) -> Value:
    (x,) = lib.promoted(x, floating=True)
    return lib.xp.where(lib.array(at, bool), lib.xp.full_like(x, np.nan), x)


def clip(lib: Library, x: Value, low: Value, high: Value) -> Value:
    x, low, high = lib.promoted(x, low, high)
    return lib.xp.minimum(lib.xp.maximum(x, low), high)


def sinc(xp: Namespace, x: Value) -> Value:
    t = xp.where(x == 0, xp.ones_like(x), x * np.pi)
    return xp.where(x == 0, xp.ones_like(x), xp.sin(t) / t)


def step(xp: Namespace, distance: Value, at_zero: Value) -> Value:
    sided = xp.where(distance > 0, xp.ones_like(distance), xp.zeros_like(distance))
    return xp.where(xp.isnan(distance), distance, xp.where(distance == 0, at_zero, sided))


def spike(xp: Namespace, distance: Value) -> Value:
    zeros = xp.zeros_like(distance)
    return xp.where(distance == 0, zeros + np.nan, zeros)


def inverse(xp: Namespace, y: Value) -> Value:
    return xp.where(y == 0, xp.zeros_like(y), 1.0 / xp.where(y == 0, xp.ones_like(y), y))


def cbrt(xp: Namespace, x: Value) -> Value:
    return xp.sign(x) * xp.abs(x) ** (1 / 3)


def reduction(name: str) -> Function:
    def counterpart(lib: Library, x: Value, axis: Axes = None, keepdims: bool = False) -> Value:
        axis = tuple(map(int, axis)) if type(axis) in (list, tuple) else axis
        return getattr(lib.xp, name)(lib.array(x), axis=axis, keepdims=keepdims)

    return counterpart


def sum_(lib: Library, x: Value, axis: Axes) -> Value:
    x = lib.array(x)
    if numpy_dtype(x.dtype).kind == "b":
        x = lib.xp.astype(x, lib.dtype(np.int64))
    return lib.xp.sum(x, axis=axis)


def prod(lib: Library, x: Value, axis: Axis) -> Value:
    x = lib.array(x)
    return lib.xp.prod(x if axis is not None else lib.xp.reshape(x, (-1,)), axis=0 if axis is None else axis)


def along(name: str) -> Function:
    """Return the counterpart by a function along one axis, which by default takes all elements as one axis."""

    def counterpart(lib: Library, x: Value, axis: Axes = None, **options: Option) -> Value:
        x = lib.array(x)
        x, axis = (lib.xp.reshape(x, (-1,)), 0) if axis is None else (x, int(axis))
        return getattr(lib.xp, name)(x, axis=axis, **options)

    return counterpart


# Shapes, indices and writes.


def reshape(lib: Library, x: Value, shape: Shape) -> Value:
    return lib.reshape(lib.array(x), shape)


def transpose(lib: Library, x: Value, axes: Axes = None) -> Value:
    x = lib.array(x)
    return lib.xp.permute_dims(x, tuple(range(x.ndim))[::-1] if axes is None else tuple(int(i) for i in axes))


def broadcast_to(lib: Library, x: Value, shape: Shape) -> Value:
    return lib.broadcast_to(lib.array(x), shape)


def getitem(lib: Library, x: Value, index: Index) -> Value:
    return lib.getitem(lib.array(x), index)


def setitem(lib: Library, x: Value, value: Value, index: Index) -> Value:
    x = lib.array(x)
    return lib.written(x, index, lib.array(value, numpy_dtype(x.dtype)))


def scatter_add(lib: Library, *pieces: Value, shape: Shape, indices: Index) -> Value:
    values = lib.promoted(*pieces)
    total = lib.zeros(shape, values[0].dtype)
    for index, value in zip(indices, values, strict=True):
        total = lib.written(total, index, value, adding=True)
    return total


def overwrite(lib: Library, base: Value, *values: Value, places: Value) -> Value:
    base = lib.array(base)
    flat = lib.xp.reshape(base, (-1,))
    for place, value in zip(places, values, strict=True):
        flat = lib.written(flat, place, lib.array(value, numpy_dtype(base.dtype)))
    return lib.xp.reshape(flat, base.shape)


def joining(name: str) -> Function:
    return lambda lib, *arrays, axis: getattr(lib.xp, name)(lib.promoted(*arrays), axis=axis)


def triangle(name: str) -> Function:
    return lambda lib, x, k: getattr(lib.xp, name)(lib.array(x), k=k)


def astype(lib: Library, x: Value, dtype: DTypeLike) -> LibraryArray:
    return LibraryArray(lib, lib.array(x, dtype), None)
