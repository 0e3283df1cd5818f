"""Evaluation over Dask arrays: the derivative of a program over them is a graph of chunks that is not computed yet.

Evaluation over Dask is evaluation over another library (`effgrad.arrays.namespace`), with three differences. An
operation that would compute the graph (`if x > 0`, `float(x)`, a shape that depends on data) is refused. The lengths in
a shape remember their chunks, so that a value broadcast to an array's shape has the array's chunks. And an array has no
memory to share: `x[i] = v` makes another graph, as in Dask itself.

Dask, https://docs.dask.org/en/stable/array.html.
"""

import functools
import sys
from typing import Any

import numpy as np
import scipy.special

from effgrad.arrays.layout import dtype_of, index_parts
from effgrad.arrays.library_array import LibraryArray, of_another_library
from effgrad.arrays.namespace import Library
from effgrad.arrays.value import depends
from effgrad.errors import NoCounterpart
from effgrad.primitives import decomposition, singular_values, systems
from effgrad.vocabulary import DTypeLike, Function, Index, Option, Params, Shape, Value

Array = Any  # dask.array.Array


class Length(int):
    """The length of an axis, with the lengths of its chunks."""

    chunks: tuple[int, ...]

    def __new__(cls, length: int, chunks: tuple[int, ...]) -> "Length":
        self = super().__new__(cls, length)
        self.chunks = chunks
        return self


def chunks_of(shape: Shape) -> tuple[Value, ...]:
    """The chunks of a shape: those that its lengths remember, and "auto", which is Dask's choice, for other lengths."""
    return tuple(n.chunks if type(n) is Length else "auto" for n in shape)


class DaskLibrary(Library):
    """Evaluation over arrays of Dask."""

    of = "array_api_compat.dask.array"
    lazy = True

    def __init__(self, namespace: Any, device: object) -> None:
        super().__init__(Namespace(namespace), device)
        self.special = scipy.special  # Dask applies SciPy's ufuncs to each chunk
        self.immutable = True

    def wrap(self, tensor: Array) -> LibraryArray:
        if any(n != n for n in tensor.shape):
            raise NoCounterpart(
                "an array of Dask has chunks of unknown lengths: call x.compute_chunk_sizes() before the derivative"
            )
        return super().wrap(tensor.copy())  # keeps this graph when `x[i] = v` gives `tensor` another

    def shape(self, tensor: Array) -> Shape:
        return tuple(map(Length, tensor.shape, tensor.chunks))

    def number(self, tensor: Array) -> Value:
        what = self.running() or "an if, a while, float(x) or int(x)"
        raise self.refusal(f"{what} asks for a number of an array of Dask: write np.where for an if")

    def numpy(self, tensor: Array) -> Value:
        raise self.refusal(f"{self.running() or 'the program'} asks for the elements of an array of Dask")

    def refusal(self, message: str) -> NoCounterpart:
        """Return the error for an operation that would compute the graph."""
        return NoCounterpart(f"{message}; nothing is computed while a program over Dask is differentiated")

    def is_mask(self, index: Index) -> bool:
        """Whether an index is a boolean Dask array."""
        return isinstance(index, self.xp.Array) and index.dtype == bool

    def performed(self, counterpart: object, args: Value, params: Params) -> Value:
        try:
            return super().performed(counterpart, args, params)
        except NotImplementedError as error:
            raise NoCounterpart(f"Dask has no such operation on its arrays: {error}") from error

    def filled(self, shape: Shape, value: Value, dtype: DTypeLike) -> Value:
        zeros = self.result(self.xp.zeros(tuple(shape), dtype=dtype, chunks=chunks_of(shape)))
        return (zeros + value).astype(dtype)

    def like(self, derivative: Value, value: Value, given: set[int] | None = None) -> Value:
        """Return a derivative with the shape, chunks and dtype of a value; it is lazy, even for a value of NumPy's."""
        shape, dtype = np.shape(value), np.result_type(value)
        if derivative is None:
            return self.result(self.xp.zeros(shape, dtype=dtype, chunks=chunks_of(shape)))
        if dtype_of(derivative).kind == "c" and dtype.kind != "c":
            derivative = np.real(derivative)
        if depends(derivative):
            return derivative if derivative.dtype == dtype else derivative.astype(dtype)
        return self.result(in_chunks(self.broadcast_to(self.array(self.argument(derivative), dtype), shape), shape))

    def zeros(self, shape: Shape, dtype: DTypeLike) -> Array:
        return self.xp.zeros(shape, dtype=dtype, chunks=chunks_of(shape))

    def reshape(self, x: Array, shape: Shape) -> Array:
        shape = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
        return in_chunks(self.xp.reshape(x, tuple(map(int, shape))), shape)

    def broadcast_to(self, x: Array, shape: Shape) -> Array:
        """Broadcast an array to a shape; an axis whose length changes gets the chunks that the new length remembers."""
        shape = tuple(shape)
        chunks = list(self.xp.core.normalize_chunks(chunks_of(shape), shape, dtype=x.dtype)) if shape else []
        for axis in range(-x.ndim, 0):
            if x.shape[axis] == shape[axis]:
                chunks[axis] = x.chunks[axis]
        return self.xp.broadcast_to(x, shape, chunks=tuple(chunks))

    def nonzero(self, condition: Array) -> Value:
        raise self.refusal("the shape of numpy.nonzero(x) depends on the elements of an array of Dask")

    def refuse_chunked(self, x: Array, axis: int, function: str) -> None:
        if x.numblocks[axis] != 1:
            raise NoCounterpart(
                f"{function} is known along an axis that lies in one chunk: write x.rechunk({{{axis}: -1}}) before, if "
                "one fits into the memory of a worker"
            )

    def evaluated(self, function: Function, *args: Value, **kwargs: Option) -> Value:
        if function in ASKING:
            raise self.refusal(f"numpy.{function.__name__} asks for the elements of an array of Dask")
        return super().evaluated(function, *args, **kwargs)

    def getitem(self, x: Array, index: Index) -> Array:
        if _of_vector(x, index):
            return self.xp.reshape(x[index.ravel()], index.shape)
        return x[tuple(_parts(self, index, x.ndim))]

    def written(self, x: Array, index: Index, value: Value, adding: bool = False) -> Array:
        """Return a copy of an array with a value written at an index or, if `adding`, added there."""
        if self.is_mask(index):
            return self.xp.where(index, value, x)
        if _of_vector(x, index):
            index, value = index.ravel(), self.xp.reshape(self.xp.broadcast_to(value, index.shape), (-1,))
        parts = _parts(self, index, x.ndim)
        value = self.xp.broadcast_to(value, x[tuple(parts)].shape)
        axes = [part for part in parts if not isinstance(part, int | np.integer)]
        value = value[tuple(0 if part is None else slice(None) for part in axes)]
        parts, axes = ([part for part in some if part is not None] for some in (parts, axes))
        basic = tuple(slice(None) if isinstance(part, np.ndarray) else part for part in parts)
        current = x[basic]
        for axis, part in enumerate(axes):
            if isinstance(part, np.ndarray):
                value = _scattered(self, current, axis, part, value, adding)
                break
        else:
            value = current + value if adding else value
        if all(part == slice(None) for part in basic):
            return value.astype(x.dtype)
        result = x.copy()
        result[basic] = value
        return result


def in_chunks(x: Array, shape: Shape) -> Array:
    """Rechunk an array to the chunks that a shape remembers."""
    return x.rechunk({axis: n.chunks for axis, n in enumerate(shape) if type(n) is Length})


# Indices. Dask accepts integers, slices and one array in an index.


def _parts(lib: object, index: Index, ndim: int) -> list[Value]:
    """Return an index as a list of one integer, slice or integer array for each axis, and None for each new axis."""
    parts = [np.asarray(i) if type(i) is list else i for i in index_parts(index)]
    _check(lib, parts)
    named = [n for n, i in enumerate(parts) if i is not None and i is not ...]
    missing = [slice(None)] * (ndim - len(named))
    at = next((n for n, i in enumerate(parts) if i is ...), len(parts))
    parts[at : at + 1] = missing
    return [np.flatnonzero(i) if isinstance(i, np.ndarray) and i.dtype == bool else i for i in parts]


def _check(lib: Value, parts: list[Value]) -> None:
    """Refuse an index that Dask does not accept."""
    if any(of_another_library(i) for i in parts):
        raise lib.refusal("an index is itself an array of Dask: write np.where(mask, x, 0) for x[mask]")
    advanced = [n for n, i in enumerate(parts) if isinstance(i, np.ndarray | int | np.integer)]
    arrays = [n for n in advanced if isinstance(parts[n], np.ndarray)]
    apart = bool(arrays) and advanced[-1] - advanced[0] >= len(advanced)
    if len(arrays) > 1 or apart or any(parts[n].ndim != 1 for n in arrays) or bool in map(type, parts):
        raise NoCounterpart(
            "arrays of Dask take one array of one dimension as an index, with numbers beside it and slices: write "
            "x[rows][:, columns] for more"
        )


def _of_vector(x: Array, index: Index) -> bool:
    """Whether `x` is a vector and its index an integer array that is not a vector."""
    return x.ndim == 1 and isinstance(index, np.ndarray) and index.dtype.kind in "iu" and index.ndim != 1


def _scattered(lib: Value, x: Array, axis: int, places: Value, value: Array, adding: bool) -> Array:
    """Return a copy of an array with slices along an axis written or added to, chunk by chunk."""
    places = np.where(places < 0, places + x.shape[axis], places)
    before, chunks, start = (slice(None),) * axis, [], 0
    for length in x.chunks[axis]:
        chunk = x[(*before, slice(start, start + length))]
        here = np.flatnonzero((places >= start) & (places < start + length))
        if here.size:
            rows = value[(*before, here)].rechunk({i: -1 if i == axis else c for i, c in enumerate(chunk.chunks)})
            chunk = lib.xp.map_blocks(
                _write_chunk, chunk, rows, axis=axis, places=places[here] - start, adding=adding, dtype=x.dtype,
                chunks=chunk.chunks, meta=x._meta,
            )  # fmt: skip
        chunks.append(chunk)
        start += length
    return lib.xp.concatenate(chunks, axis=axis)


def _write_chunk(chunk: object, rows: Value, axis: int, places: Value, adding: bool) -> Value:
    result = np.array(chunk)
    moved = np.moveaxis(result, axis, 0)
    if adding:
        np.add.at(moved, places, np.moveaxis(rows, axis, 0))
    else:
        moved[places] = np.moveaxis(rows, axis, 0)
    return result


# Linear algebra, by NumPy's functions of each chunk: each matrix must lie in one chunk.


def _of_matrices(function: Function, signature: str, result: Value = None) -> Function:
    """Apply a NumPy function to the matrices in the last axes; `signature` is that of a generalised ufunc."""
    terms = signature.partition("->")[0].split("),(")

    def of_chunks(*args: Array, **options: Option) -> Value:
        cores = [-1 - term.count(",") for term in terms]
        if any(n != 1 for x, core in zip(args, cores, strict=True) for n in x.numblocks[core:]):
            raise NoCounterpart(
                f"numpy.linalg.{function.__name__} is known for matrices of Dask that lie in one chunk: write "
                "x.rechunk(-1) before, if a matrix fits into the memory of one worker"
            )
        applied = functools.partial(function, **options)
        example = applied(*[np.ones((1,) * x.ndim, x.dtype) for x in args])
        several = isinstance(example, tuple)
        found = sys.modules["dask.array"].apply_gufunc(
            applied, signature, *args, output_dtypes=[part.dtype for part in example] if several else example.dtype,
            output_sizes={"k": min(args[0].shape[-2:])} if "k" in signature else None,
        )  # fmt: skip
        return result(*found) if several else found

    return of_chunks


class Linalg:
    """The `linalg` extension of the array API standard, for matrices that lie in one chunk."""

    inv = staticmethod(_of_matrices(np.linalg.inv, "(i,i)->(i,i)"))
    det = staticmethod(_of_matrices(np.linalg.det, "(i,i)->()"))
    solve = staticmethod(_of_matrices(np.linalg.solve, "(i,i),(i,j)->(i,j)"))
    cholesky = staticmethod(_of_matrices(np.linalg.cholesky, "(i,i)->(i,i)"))
    slogdet = staticmethod(_of_matrices(np.linalg.slogdet, "(i,i)->(),()", systems.SlogdetResult))
    eigh = staticmethod(_of_matrices(np.linalg.eigh, "(i,i)->(i),(i,i)", decomposition.EighResult))
    eigvalsh = staticmethod(_of_matrices(np.linalg.eigvalsh, "(i,i)->(i)"))
    eig = staticmethod(_of_matrices(np.linalg.eig, "(i,i)->(i),(i,i)", decomposition.EigResult))
    svd = staticmethod(_of_matrices(np.linalg.svd, "(m,n)->(m,k),(k),(k,n)", singular_values.SVDResult))
    svdvals = staticmethod(_of_matrices(np.linalg.svdvals, "(m,n)->(k)"))
    qr = staticmethod(_of_matrices(np.linalg.qr, "(m,n)->(m,k),(k,n)", decomposition.QRResult))
    pinv = staticmethod(_of_matrices(np.linalg.pinv, "(m,n)->(n,m)"))
    matrix_rank = staticmethod(_of_matrices(np.linalg.matrix_rank, "(m,n)->()"))


class Namespace:
    """The array API namespace of Dask, with `Linalg` in place of its own `linalg`, which lacks some functions."""

    linalg = Linalg

    def __init__(self, namespace: Any) -> None:
        self._namespace, self.__name__ = namespace, namespace.__name__

    def __getattr__(self, name: str) -> Value:
        return getattr(self._namespace, name)


# Functions that would compute the graph, because the result or its shape depends on the elements.
ASKING = {
    np.flatnonzero, np.unique, np.unique_values, np.array_equal, np.allclose, np.histogram_bin_edges, np.searchsorted,
}  # fmt: skip
