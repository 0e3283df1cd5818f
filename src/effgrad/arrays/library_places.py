"""Shapes, indices and writes of another library's arrays."""

from typing import Any

import numpy as np

from effgrad.arrays.layout import index_parts
from effgrad.arrays.library_array import of_another_library
from effgrad.errors import NoCounterpart
from effgrad.vocabulary import DTypeLike, Index, Namespace, Shape, Value


class Places:
    """Shapes, indices and writes of a library's arrays. The class for a library may override them."""

    xp: Namespace
    device: Any
    # Whether its arrays take the same indices as NumPy's, except slices with negative steps.
    indexes: bool

    def array(self, value: Value, dtype: DTypeLike = None) -> Value:
        """Return a value as an array of the library, in a NumPy dtype."""
        raise NotImplementedError

    def copied(self, tensor: Value) -> Value:
        """A copy of an array."""
        return self.xp.asarray(tensor, copy=True)

    def no_counterpart(self, operation: object) -> NoCounterpart:
        """The error for an operation that the library has no function for."""
        raise NotImplementedError

    def zeros(self, shape: Shape, dtype: DTypeLike) -> Value:
        """Zeros of one of the library's dtypes."""
        return self.xp.zeros(shape, dtype=dtype, device=self.device)

    def reshape(self, x: Value, shape: Shape) -> Value:
        """An array in another shape."""
        return self.xp.reshape(x, (int(shape),) if isinstance(shape, int | np.integer) else tuple(map(int, shape)))

    def broadcast_to(self, x: Value, shape: Shape) -> Value:
        """Return an array broadcast to a shape."""
        return self.xp.broadcast_to(x, shape)

    def nonzero(self, condition: Value) -> Value:
        """The indices where a condition holds, one array for each axis."""
        return self.xp.nonzero(condition)

    def refuse_chunked(self, x: Value, axis: int, function: str) -> None:
        """Raise an error if a function needs an axis in one piece and the library keeps it in chunks."""

    def getitem(self, x: Value, index: Index) -> Value:
        """The elements of an array at an index."""
        if self.indexes and _common(index):
            return x[self._located(index)]
        if _basic(index) and all(type(i) is not slice or i == slice(None) for i in index_parts(index)):
            return x[index if Ellipsis in index_parts(index) else (*index_parts(index), ...)]
        places = self._addresses(index, tuple(x.shape))
        found = self.xp.take(self.xp.reshape(x, (-1,)), self.xp.reshape(places, (-1,)), axis=0)
        return self.xp.reshape(found, places.shape)

    def written(self, x: Value, index: Index, value: Value, adding: bool = False) -> Value:
        """Return a copy of an array with a value written to, or added to, the elements at an index."""
        if not (self.indexes and _common(index)):
            places = self._addresses(index, tuple(x.shape))
            value = self.xp.reshape(self.xp.broadcast_to(value, places.shape), (-1,))
            flat, places = self.xp.reshape(x, (-1,)), self.xp.reshape(places, (-1,))
            flat = (
                self.written(flat, places, value, adding)
                if self.indexes
                else _gathered(self.xp, flat, places, value, adding)
            )
            return self.xp.reshape(flat, x.shape)
        index = self._located(index)
        if hasattr(x, "at"):  # JAX's arrays are immutable
            return x.at[index].add(value) if adding else x.at[index].set(value)
        x = self.copied(x)
        if not adding:
            x[index] = value
        elif _basic(index):
            x[index] += value
        elif hasattr(x, "index_put_"):
            self._index_add(x, index, value)
        elif self.xp.isdtype(x.dtype, "complex floating"):  # CuPy's add.at takes only real numbers
            self.xp.add.at(x.real, index, value.real)
            self.xp.add.at(x.imag, index, value.imag)
        else:
            self.xp.add.at(x, index, value)
        return x

    def _located(self, index: Index) -> tuple[Value, ...]:
        """Return the parts of an index, with NumPy arrays and lists converted to the library's arrays."""
        return tuple(
            self.array(i if not isinstance(i, list) or i else np.zeros(0, int))
            if isinstance(i, list | np.ndarray) else int(i) if isinstance(i, np.integer) else i
            for i in index_parts(index)
        )  # fmt: skip

    def _addresses(self, index: Index, shape: Shape) -> Value:
        """The flat addresses of the elements that an index selects, by NumPy or computed from the library's arrays."""
        parts = [i for i in index_parts(index) if not (type(i) is slice and i == slice(None)) and i is not Ellipsis]
        if not any(of_another_library(i) for i in parts):
            return self.array(np.arange(int(np.prod(shape))).reshape(shape)[index])
        if any(a is not b for a, b in zip(parts, index_parts(index), strict=False)) or len(parts) > len(shape):
            raise self.no_counterpart("an index of arrays behind slices")
        if len(parts) == 1 and self.xp.isdtype(parts[0].dtype, "bool"):
            parts = list(self.xp.nonzero(parts[0]))
        places: Any = 0
        for part, n in zip(parts, shape, strict=False):
            part = self.array(part)
            places = places * n + self.xp.where(part < 0, part + n, part)
        rest = shape[len(parts) :]
        numbers = self.array(np.arange(int(np.prod(rest))).reshape(rest))
        return self.xp.reshape(places, (*places.shape, *(1,) * len(rest))) * int(np.prod(rest)) + numbers

    def _index_add(self, x: Value, index: Index, value: Value) -> None:
        """Add to elements of a PyTorch tensor. PyTorch needs an index of tensors, so other indices become addresses."""
        if all(hasattr(i, "dtype") for i in index):
            x.index_put_(index, value, accumulate=True)
        else:
            numbers = self.xp.reshape(self.xp.arange(x.numel(), device=self.device), x.shape)[index]
            value = self.xp.broadcast_to(value, numbers.shape)
            x.view(-1).index_add_(0, numbers.reshape(-1), value.reshape(-1))


def _common(index: Index) -> bool:
    """Whether an index means the same in NumPy and the other libraries.

    It does not if a slice has a negative step, or if a slice, None or ellipsis separates arrays and integers: NumPy and
    PyTorch then order the axes differently.
    """
    parts = index_parts(index)
    if any(type(i) is slice and i.step is not None and i.step < 0 for i in parts):
        return False
    places = [n for n, i in enumerate(parts) if i is not None and i is not Ellipsis and type(i) is not slice]
    return _basic(index) or places[-1] - places[0] < len(places)


def _basic(index: Index) -> bool:
    return all(i is None or i is Ellipsis or type(i) is slice or isinstance(i, int | np.integer) and not isinstance(
        i, bool) for i in index_parts(index))  # fmt: skip


def _gathered(xp: Namespace, x: Value, places: Value, values: Value, adding: bool) -> Value:
    """Return a vector with values set at, or added to, positions, by functions of the standard alone.

    The standard has no indexed writes, so each element looks up the value that is written to it.
    """
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
