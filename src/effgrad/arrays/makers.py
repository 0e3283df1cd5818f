"""NumPy's functions and classes that make arrays and never ask traced values: most are reached by interception."""

import sys
from typing import Any

import numpy as np

import effgrad.primitives.move  # noqa: F401 (it enters the rule of full_like)
from effgrad.arrays.memory import Mutable
from effgrad.arrays.value import FUNCTIONS, KINDS, composed, depends, example, plain

LIBRARIES = frozenset((
    "numpy", "scipy", "effgrad", "pandas", "xarray", "sklearn", "matplotlib", "torch", "jax", "cupy",
    "array_api_compat", "array_api_strict", "dask", "distributed",
))  # fmt: skip
# Modules of libraries that fill the arrays they make with NumPy operations only.
PURE = (
    "numpy.polynomial", "scipy.signal._short_time_fft", "scipy.signal._waveforms", "scipy.integrate._quadrature",
    "scipy.interpolate._cubic", "scipy._lib._util",
)  # fmt: skip
OURS = (__name__, "effgrad.program.interception")


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


def as_array(value: Any, dtype: Any = None, order: Any = None, *, copy: Any = None, **_: Any) -> Any:
    return _array(value, dtype, copy=copy)


def _contiguous(order: str) -> Any:
    """An array in an order of memory: a copy, where it is not in that order."""

    def rule(a: Any, dtype: Any = None, **_: Any) -> Any:
        result = _array(a, dtype, copy=None, ndmin=1)
        return result if example(result).flags[order] else result.copy(order)

    return rule


def _full(shape: Any, fill_value: Any, dtype: Any = None, **_: Any) -> Any:
    return _array(np.broadcast_to(as_array(fill_value, dtype), shape))


def _vectorized(self: Any, *args: Any, **kwargs: Any) -> Any:
    """A vectorised function, called once for each element, or with a signature for each array of its dimensions."""
    given: dict[Any, Any] = {**dict(enumerate(args)), **kwargs}
    mapped = {key: a if type(a) in KINDS else np.asarray(a) for key, a in given.items() if key not in self.excluded}
    cores = [0] * len(mapped) if self.signature is None else map(len, self._in_and_out_core_dims[0])
    outer = {key: a.ndim - core for (key, a), core in zip(mapped.items(), cores, strict=True)}
    shape = np.broadcast_shapes(*[a.shape[: outer[key]] for key, a in mapped.items()])
    mapped = {key: np.broadcast_to(a, shape + a.shape[outer[key] :]) for key, a in mapped.items()}
    results = []
    for place in np.ndindex(shape):
        here = {**given, **{key: a[place] for key, a in mapped.items()}}
        results.append(self.pyfunc(*[here[i] for i in range(len(args))], **{key: here[key] for key in kwargs}))
    if results and isinstance(results[0], tuple):
        return tuple(_gathered(parts, shape) for parts in zip(*results, strict=True))
    return _gathered(results, shape)


def _gathered(parts: Any, shape: tuple[int, ...]) -> Any:
    return np.reshape(np.stack(parts), shape + np.shape(plain(parts[0])))


def _kaiser(M: int, beta: Any) -> Any:
    t = np.linspace(-1, 1, M) if M > 1 else np.zeros(M)
    return np.i0(beta * np.sqrt(1 - t * t)) / np.i0(beta)


for _function in (np.polynomial.polynomial.polyval2d, np.polynomial.polynomial.polygrid2d):
    if hasattr(_function, "_implementation"):  # in NumPy 2.1 they are no functions that the protocol sees
        composed({_function: _function._implementation})

RULES: list[tuple[Any, str, Any]] = [
    (np, "array", _array),
    *((np, name, as_array) for name in ("asarray", "asanyarray", "asarray_chkfinite", "require")),
    (np, "ascontiguousarray", _contiguous("C")),
    (np, "asfortranarray", _contiguous("F")),
    (np, "full", _full),
    (np, "full_like", FUNCTIONS[np.full_like]),
    (np, "kaiser", _kaiser),
    # What `np.r_[...]` and `np.c_[...]` make of each part, and what vectorised functions call: replacing the special
    # methods themselves costs Python several times more.
    (sys.modules[type(np.r_).__module__], "array", _array),
    (np.vectorize, "_call_as_normal", _vectorized),
]  # fmt: skip
