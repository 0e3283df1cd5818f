"""Rules for NumPy functions and classes that make arrays, most of which do not dispatch on traced arguments."""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from effgrad.arrays import reach
from effgrad.arrays.layout import dtype_of, ndim_of, order_of, shape_of, to_dtype, without_axes
from effgrad.arrays.signatures import ask_numpy, known_options
from effgrad.arrays.subarrays import Converter, real
from effgrad.arrays.value import FUNCTIONS, Tracer, composed, contiguous, example, outline, plain, traced_inside
from effgrad.errors import Detached, NoRule
from effgrad.functions.scipy.tables import Calling
from effgrad.program.object_arrays import array_of_objects, noticed
from effgrad.vocabulary import DTypeLike, Function, Option, Reached, Shape, Value


def _vectorized(self: Value, *args: Value, **kwargs: Option) -> Value:
    """Call an `np.vectorize` object. For no elements NumPy returns an empty array of its declared dtype, or raises."""
    if self.signature is None and not self.excluded and any(0 in shape_of(a) for a in (*args, *kwargs.values())):
        numpys: Any = np.vectorize
        return numpys._call_as_normal(self, *map(plain, args), **{key: plain(a) for key, a in kwargs.items()})
    return _by_elements(self, *args, **kwargs)


def _by_elements(self: Value, *args: Value, **kwargs: Option) -> Value:
    """Call a vectorised function for each element or, if it has a signature, for each array of its core dimensions."""
    given: dict[Value, Value] = {**dict(enumerate(args)), **kwargs}
    included = {key: a for key, a in given.items() if key not in self.excluded}
    mapped = {key: a if isinstance(a, Tracer) else np.asarray(a) for key, a in included.items()}
    cores = [0] * len(mapped) if self.signature is None else map(len, self._in_and_out_core_dims[0])
    outer = {key: a.ndim - core for (key, a), core in zip(mapped.items(), cores, strict=True)}
    shape = np.broadcast_shapes(*[a.shape[: outer[key]] for key, a in mapped.items()])
    mapped = {key: np.broadcast_to(a, shape + a.shape[outer[key] :]) for key, a in mapped.items()}
    results = []
    for place in np.ndindex(shape):
        here = {**given, **{key: a[place] for key, a in mapped.items()}}
        results.append(self.pyfunc(*[here[i] for i in range(len(args))], **{key: here[key] for key in kwargs}))
    gathered = functools.partial(_gathered, shape)
    types: Value = self.otypes or itertools.repeat(None)
    if results and isinstance(results[0], tuple):
        return tuple(map(gathered, zip(*results, strict=True), types))
    return _laid_like(list(mapped.values()), gathered(results, next(iter(types))), self.signature is None)


def _laid_like(arrays: Sequence[Value], result: Value, by_elements: bool) -> Value:
    """Return a result in the memory order that NumPy gives the result of an elementwise function of `arrays`."""
    if not by_elements or all(map(contiguous, arrays)):
        return result
    laid = np.frompyfunc(lambda *_: 0, len(arrays), 1)(*map(outline, arrays))
    return reach.in_order(result, order_of(laid))


def _gathered(shape: Shape, parts: Value, dtype: DTypeLike) -> Value:
    """Return results as one array, of the given dtype or, as in NumPy, of the dtype of the first result."""
    arrays = [reach.np.asarray(part) for part in parts]
    return np.reshape(np.stack(arrays).astype(dtype or dtype_of(arrays[0])), shape + shape_of(arrays[0]))


def _apply_along_axis(func1d: Value, axis: int, arr: Value, *args: Value, **kwargs: Option) -> Value:
    """`np.apply_along_axis`: as in NumPy, the dtype is that of the first line's result."""
    lines = np.moveaxis(arr, axis, -1)
    many, count = math.prod(shape_of(lines)[:-1]), shape_of(lines)[-1]
    results = [func1d(line, *args, **kwargs) for line in np.reshape(lines, (many, count))]
    result = _gathered(shape_of(lines)[:-1], results, None)
    inner, axis = ndim_of(result) - ndim_of(arr) + 1, axis % ndim_of(arr)
    return np.moveaxis(result, tuple(range(-inner, 0)), tuple(range(axis, axis + inner)))


def _full(shape: Shape, fill_value: Value, dtype: DTypeLike = None, order: Option = "C", **options: Option) -> Value:
    if not _of_objects(dtype):
        return reach.full(shape, fill_value, dtype, order, **options)
    return noticed(np.full(shape, array_of_objects(fill_value), dtype, order=order))


def _full_like(a: Value, fill_value: Value, dtype: DTypeLike = None, *args: Value, **kwargs: Option) -> Value:
    ask_numpy(np.full_like, (a, fill_value, dtype, *args), kwargs)
    if not _of_objects(dtype):
        return FUNCTIONS[np.full_like](a, fill_value, dtype, *args, **kwargs)
    return noticed(np.full_like(outline(a), array_of_objects(fill_value), dtype, *args, **kwargs))


def _of_objects(dtype: DTypeLike) -> bool:
    return dtype is not None and to_dtype(dtype).hasobject


def _kaiser(M: int, beta: Value) -> Value:
    t = np.linspace(-1, 1, M) if M > 1 else np.zeros(M)
    return np.i0(beta * np.sqrt(1 - t * t)) / np.i0(beta)


def _from_iterator(items: Value, dtype: DTypeLike, count: int = -1, **options: Option) -> Value:
    found = [*(items if count < 0 else itertools.islice(items, count))]
    result = np.fromiter(map(example, found), dtype, count, **options)  # raises NumPy's errors
    return reach.array(found, dtype) if traced_inside(found) else result


def _arange(
    start: Value = None, stop: Value = None, step: Value = None, dtype: DTypeLike = None, **options: Option
) -> Value:
    """`np.arange`: a start and steps. The number of elements is constant almost everywhere."""
    start, stop = (0, start) if stop is None else (start, stop)
    start, step = 0 if start is None else start, 1 if step is None else step
    count = max(0, int(np.ceil((stop - start) / step)))
    kind = np.dtype(dtype or np.result_type(*map(dtype_of, (start, stop, step)), int))
    if kind.kind not in "fc" or not traced_inside((start, step)):
        return np.arange(*map(plain, (start, stop, step)), dtype=dtype, **options)
    difference = (start + step) - start  # as NumPy rounds it
    return (start + np.arange(count) * difference).astype(kind)


def _as_strided(x: Value, *args: Option, **options: Option) -> Value:
    array = real(x)
    if array is None or array.strides != x.strides:
        raise Detached("the elements of a traced value do not lie in memory as as_strided would take them: write "
                       "as_strided(np.ascontiguousarray(x), ...)")  # fmt: skip
    return np.lib.stride_tricks.as_strided(array, *args, **options)


def _from_dlpack(x: Value, /, *, device: Option = None, copy: bool | None = None) -> Value:
    if not isinstance(x, Tracer):
        return np.from_dlpack(x, device=device, copy=copy)
    if type(numbers := example(x)) is np.ndarray:
        np.from_dlpack(numbers, device=device, copy=copy)  # raises NumPy's errors
    return x.copy() if copy else x[...]


def _frombuffer(buffer: Value, dtype: DTypeLike = float, count: int = -1, offset: int = 0, **options: Option) -> Value:
    result = np.frombuffer(example(buffer), dtype, count, offset, **options)  # raises NumPy's errors
    if not isinstance(buffer, Tracer):
        return result
    if result.dtype != buffer.dtype or offset % result.itemsize:
        raise NoRule("numpy.frombuffer has a derivative rule for the dtype of its argument: use x.astype(dtype)")
    first = offset // result.itemsize
    return np.reshape(buffer, -1)[first : first + result.size]


def _made(original: Function, rule: Function) -> Callable[..., object]:
    """Return the rule of a function that makes arrays: numbers become arrays without axes, which can be written to."""

    @functools.wraps(rule)
    def make(*args: object, **kwargs: object) -> object:
        result = rule(*args, **(known_options(original, args, kwargs) if kwargs else kwargs))
        return result if isinstance(plain(result), np.ndarray) else without_axes(result)

    return make


def _cleared(make: Callable[..., object]) -> Calling:
    """Return a rule that fills uninitialised arrays with zeros: their memory may hold the marks of a freed array.

    `effgrad.arrays.marks` says what a mark is.
    """

    def rule(*args: object, **kwargs: object) -> object:
        result = make(*args, **kwargs)
        if type(result) is np.ndarray and result.dtype.kind in "fc":
            result.fill(0)
        return result

    return Calling(rule)


composed({np.apply_along_axis: _apply_along_axis})
RULES: list[Reached] = [
    (np, "empty", _cleared(np.empty)),
    (np, "empty_like", _cleared(np.empty_like)),
    *((np, name, _made(getattr(np, name), rule)) for name, rule in {**reach.RULES, "full": _full}.items()),
    (np, "full_like", _full_like),
    (np, "apply_along_axis", Calling(_apply_along_axis)),
    (np._core.function_base, "_array_converter", Calling(Converter)),
    (np, "kaiser", _kaiser),
    (np, "arange", _arange),
    (np, "fromiter", Calling(_from_iterator)),
    (np, "from_dlpack", _from_dlpack),
    (np, "frombuffer", _frombuffer),
    (np.lib.stride_tricks, "as_strided", _as_strided),
    # NumPy's own Python definitions are the rules.
    *((np.polynomial.polynomial, name, getattr(np.polynomial.polynomial, name)._implementation)
      for name in ("polyval2d", "polygrid2d") if hasattr(getattr(np.polynomial.polynomial, name), "_implementation")),
    (np.vectorize, "_call_as_normal", Calling(_vectorized)),
]  # fmt: skip
