"""Shapes, indices and writes of another library's arrays."""

from typing import Any

import numpy as np

from effgrad.arrays.library_array import numpy_dtype
from effgrad.arrays.namespace import Library, of_another_library


def reshape(lib: Library, x: Any, shape: Any) -> Any:
    shape = (int(shape),) if isinstance(shape, int | np.integer) else tuple(map(int, shape))
    return lib.xp.reshape(lib.array(x), shape)


def transpose(lib: Library, x: Any, axes: Any = None) -> Any:
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


def getitem(lib: Library, x: Any, index: Any) -> Any:
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


def setitem(lib: Library, x: Any, value: Any, index: Any) -> Any:
    x = lib.array(x)
    return _written(lib, x, index, lib.array(value, numpy_dtype(x.dtype)))


def scatter_add(lib: Library, *pieces: Any, shape: Any, indices: Any) -> Any:
    values = lib.promoted(*pieces)
    total = lib.xp.zeros(shape, dtype=values[0].dtype, device=lib.device)
    for index, value in zip(indices, values, strict=True):
        total = _written(lib, total, index, value, adding=True)
    return total


def overwrite(lib: Library, base: Any, *values: Any, places: Any) -> Any:
    base = lib.array(base)
    flat = lib.xp.reshape(base, (-1,))
    for place, value in zip(places, values, strict=True):
        flat = _written(lib, flat, place, lib.array(value, numpy_dtype(base.dtype)))
    return lib.xp.reshape(flat, base.shape)


def joining(name: str) -> Any:
    def counterpart(lib: Library, *arrays: Any, axis: Any) -> Any:
        return getattr(lib.xp, name)(lib.promoted(*arrays), axis=axis)

    return counterpart


# Products and decompositions of matrices; Fourier transforms.
