"""NumPy's functions and classes that make arrays and never ask traced values: most are reached by interception."""

import sys
from typing import Any

import numpy as np

import effgrad.smooth.structure  # noqa: F401 (it enters the rule of full_like)
from effgrad.errors import NoRule
from effgrad.smooth.mutable import Mutable
from effgrad.smooth.traced import FUNCTIONS, KINDS, composed, depends, example, plain

LIBRARIES = frozenset((
    "numpy", "scipy", "effgrad", "pandas", "xarray", "sklearn", "matplotlib", "torch", "jax", "cupy",
    "array_api_compat", "array_api_strict",
))  # fmt: skip
# Modules of libraries that fill the arrays they make with NumPy operations only.
PURE = (
    "numpy.polynomial", "scipy.signal._short_time_fft", "scipy.signal._waveforms", "scipy.integrate._quadrature",
    "scipy.interpolate._cubic",
)  # fmt: skip
OURS = (__name__, "effgrad.smooth.interception")


def by_library() -> bool:
    """Whether the function replaced here was called by a library around compiled code."""
    frame = sys._getframe(1)
    while (module := frame.f_globals.get("__name__", "")) in OURS and frame.f_back is not None:
        frame = frame.f_back
    return module.partition(".")[0] in LIBRARIES and not module.startswith(PURE)


def nested(value: Any) -> Any:
    """Nested lists with traced numbers in them as a traced array."""
    return np.stack([nested(item) for item in value]) if type(value) in (list, tuple) else value


def _array(value: Any, dtype: Any = None, *, copy: Any = True, order: Any = "K", ndmin: int = 0, **_: Any) -> Any:
    """`np.array` of a traced array or of nested lists with traced numbers in them."""
    if type(value) is Mutable and not depends(value) and by_library():
        return np.array(value.__array__(), dtype, copy=copy, ndmin=ndmin)
    if type(value) in KINDS:
        result = value.copy(order) if copy in (True, np._CopyMode.ALWAYS) else value
    else:
        result = nested(value)
    if dtype is not None and np.dtype(dtype) != result.dtype:
        result = result.astype(dtype)
    return result if result.ndim >= ndmin else np.reshape(result, (1,) * (ndmin - result.ndim) + result.shape)


def _asarray(value: Any, dtype: Any = None, order: Any = None, *, copy: Any = None, **_: Any) -> Any:
    return _array(value, dtype, copy=copy)


def _contiguous(order: str) -> Any:
    """An array in an order of memory: a copy, where it is not in that order."""

    def rule(a: Any, dtype: Any = None, **_: Any) -> Any:
        result = _array(a, dtype, copy=None, ndmin=1)
        return result if example(result).flags[order] else result.copy(order)

    return rule


def _full(shape: Any, fill_value: Any, dtype: Any = None, **_: Any) -> Any:
    return _array(np.broadcast_to(_asarray(fill_value, dtype), shape))


def _joined(self: Any, key: Any) -> Any:
    """`np.r_[...]` and `np.c_[...]`: where each element goes is what NumPy does with the elements' numbers."""
    parts = key if type(key) is tuple else (key,)
    values, numbers, count = [], [], 0
    for part in parts:
        if not isinstance(plain(part), str):
            value = np.r_[part] if isinstance(part, slice) else nested(part)
            shape, size = np.shape(plain(value)), np.size(plain(value))
            values.append(np.ravel(value))
            part = np.arange(count, count + size).reshape(shape) if shape else count
            count += size
        numbers.append(part)
    return np.concatenate(values)[self[tuple(numbers)]]


def _vectorized(self: np.vectorize, *args: Any, **kwargs: Any) -> Any:
    """A vectorised function, called once for each element."""
    if kwargs or self.signature is not None or self.excluded:
        raise NoRule("numpy.vectorize with a signature, excluded arguments or keywords has no derivative rule")
    args = np.broadcast_arrays(*[a if type(a) in KINDS else np.asarray(a) for a in args])
    shape = plain(args[0]).shape
    results = [self.pyfunc(*[a[place] for a in args]) for place in np.ndindex(shape)]
    if results and isinstance(results[0], tuple):
        return tuple(np.reshape(np.stack(result), shape) for result in zip(*results, strict=True))
    return np.reshape(np.stack(results), shape)


def _kaiser(M: int, beta: Any) -> Any:
    t = np.linspace(-1, 1, M) if M > 1 else np.zeros(M)
    return np.i0(beta * np.sqrt(1 - t * t)) / np.i0(beta)


for _function in (np.polynomial.polynomial.polyval2d, np.polynomial.polynomial.polygrid2d):
    composed({_function: _function._implementation})  # type: ignore[attr-defined]

_joiner = type(np.r_).__mro__[1]
RULES: list[tuple[Any, str, Any]] = [
    (np, "array", _array),
    *((np, name, _asarray) for name in ("asarray", "asanyarray", "asarray_chkfinite", "require")),
    (np, "ascontiguousarray", _contiguous("C")),
    (np, "asfortranarray", _contiguous("F")),
    (np, "full", _full),
    (np, "full_like", FUNCTIONS[np.full_like]),
    (np, "kaiser", _kaiser),
    (np.vectorize, "__call__", _vectorized),
    (_joiner, "__getitem__", _joined),
]  # fmt: skip
