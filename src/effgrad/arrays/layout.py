"""The shape and dtype of arrays and numbers, and the order of an array's elements in memory."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from effgrad.nested import map_leaves
from effgrad.vocabulary import Array, DType, DTypeLike, Function, Index, Shape, Tree, Value

# The classes of the parts of a basic index.
BASIC = {int, slice, type(None), type(...)}
# The bytes from which an array is large: memory traffic then costs more than the call.
LARGE_BYTES = 1 << 15
# Python's numbers, and numbers in double precision; the kinds of dtypes of numbers.
PYTHON_NUMBERS = frozenset((float, int, complex, bool))
DOUBLES = frozenset((float, np.float64))
NUMERIC_KINDS = frozenset("fciub")
# The class of Python's numbers for each kind of dtype.
PYTHONS = {"f": float, "c": complex, "i": int, "u": int, "b": bool}

# NumPy's functions that return views where they can; such a result has the memory order of its argument.
VIEWING: frozenset[Function] = frozenset((
    np.reshape, np.ravel, np.transpose, np.swapaxes, np.moveaxis, np.rollaxis, np.squeeze, np.expand_dims, np.diagonal,
    np.atleast_1d, np.atleast_2d, np.atleast_3d, np.broadcast_to, np.split, np.array_split, np.hsplit, np.vsplit,
    np.dsplit, np.flip, np.fliplr, np.flipud, np.rot90, np.real, np.imag, np.broadcast_arrays,
))  # fmt: skip
# The functions that copy unless an option says otherwise, and all functions that may return views.
COPYING: frozenset[Function] = frozenset((np.array, np.astype, np.meshgrid))
MAY_VIEW: frozenset[Function] = VIEWING.union(COPYING, (
    np.asarray, np.asanyarray, np.ascontiguousarray, np.asfortranarray, np.require, np.diag, np.matrix_transpose,
    np.linalg.diagonal, np.linalg.matrix_transpose, np.unstack, np.ix_, np.einsum, np.lib.stride_tricks.as_strided,
    np.lib.stride_tricks.sliding_window_view, np.float64, np.from_dlpack, np.frombuffer,
))  # fmt: skip
# The class of the object between a result of `as_strided` and its array.
_HOLDER: Any = type(np.lib.stride_tricks.as_strided(np.zeros(1)).base)
# The questions whether two arrays share memory.
OF_SHARING: frozenset[Function] = frozenset((np.shares_memory, np.may_share_memory))
# The names of array methods that may return views, except those that copy by default.
VIEWING_METHODS = frozenset(f.__name__ for f in MAY_VIEW - COPYING if hasattr(np.ndarray, f.__name__))


def order_of(array: Array) -> str:
    """Return "F" if the elements of an array lie in column order, else "C"."""
    return "F" if array.flags.fnc else "C"


def without_axes(value: Value) -> Value:
    """Return a value, a number in the form of an array without axes, which can be written to."""
    return np.reshape(value, (1,))[0, ...] if np.ndim(value) == 0 else value


def in_form_of(given: object, value: Value) -> Value:
    """Return a number or an array without axes in the form that a library gives it; return other arrays unchanged."""
    if np.ndim(value) or isinstance(given, np.ndarray) == isinstance(value, np.ndarray):
        return value
    return without_axes(value) if isinstance(given, np.ndarray) else value[()]


def is_basic(index: Index) -> bool:
    """Whether an index consists of Python's integers, slices, None and `...`."""
    return BASIC.issuperset(map(type, index)) if type(index) is tuple else type(index) in BASIC


def index_parts(index: Index) -> tuple[Value, ...]:
    """Return the parts of an index as a tuple."""
    return index if type(index) is tuple else (index,)


def memory_like(array: Array, dtype: DTypeLike = None, shared: bool = False) -> Array:
    """Return an unfilled array with an array's shape and strides, negative strides and gaps included.

    With narrow gaps, and the same order of axes, if the gaps are wide or, unless `shared`, if an axis is broadcast
    (has stride 0).
    """
    dtype, width = np.dtype(dtype or array.dtype), array.itemsize
    regular = array.size and all((step or shared) and step % width == 0 for step in array.strides)
    if array.flags.forc or not array.size:
        return np.empty_like(array, dtype, subok=False)
    steps = [step // width for step in array.strides] if regular else []
    if not regular or extent(array.shape, steps) > 4 * array.size:
        return _with_narrow_gaps(array, dtype)
    return with_strides(np.empty(extent(array.shape, steps), dtype), array.shape, steps)


def extent(shape: Shape, steps: Sequence[int]) -> int:
    """Return how many elements of memory an array with these strides, in elements, reaches over."""
    return 1 + sum(abs(step) * (n - 1) for step, n in zip(steps, shape, strict=True))


def with_strides(memory: Array, shape: Shape, steps: Sequence[int]) -> Array:
    """Return the array with these strides, in elements, that reaches over a whole vector of memory."""
    first = -sum(step * (n - 1) for step, n in zip(steps, shape, strict=True) if step < 0)
    width = memory.itemsize
    return np.ndarray(shape, memory.dtype, memory, first * width, [step * width for step in steps])


def axes_in_memory(array: Array) -> tuple[int, ...]:
    """Return the axes from that of the largest stride to that of the smallest in what NumPy computes of an array."""
    few: Array = array[(slice(2),) * array.ndim]
    flags: list[list[Any]] = [["readonly"], ["writeonly", "allocate"]]
    result = np.nditer([few, None], ["refs_ok"], flags, [array.dtype, np.dtype(bool)]).operands[1]
    return tuple(sorted(range(array.ndim), key=lambda axis: -result.strides[axis]))


def _with_narrow_gaps(array: Array, dtype: DType) -> Array:
    """Return an unfilled array, not contiguous, with its axes in the order that NumPy gives results of the array."""
    order = axes_in_memory(array)
    memory = np.empty([array.shape[k] + 1 for k in order], dtype)
    return memory[tuple(slice(array.shape[k]) for k in order)].transpose(np.argsort(order))


def is_dense(array: Array) -> bool:
    """Whether the strides are positive and leave no gaps, for some order of the axes."""
    return array.flags.forc or np.empty_like(array, subok=False).strides == array.strides


def is_read_only(array: Array) -> bool:
    """Whether an array is a read-only view of memory that can be written to; a staged program's constants cannot be."""
    if array.flags.writeable:
        return False
    while isinstance(array.base, np.ndarray):
        array = array.base
    return bool(array.flags.writeable)


def owner_of(array: Array) -> Array:
    """Return the array that owns the memory of an array."""
    while array.base is not None:
        base: Any = array.base.obj if isinstance(array.base, memoryview) else array.base
        if type(base) is _HOLDER:
            base = base.base
        if not isinstance(base, np.ndarray):
            break
        array = base
    return array


def address_of(array: Array) -> int:
    """Return the address in bytes of the first element of an array."""
    return int(array.__array_interface__["data"][0])


def duplicate(array: Array, shared: bool = False) -> Array:
    """Return a copy of an array with its memory layout, in which elements share memory only if `shared`."""
    if array.flags.forc:
        return array.copy("K")
    copy = memory_like(array, shared=shared)
    copy[...] = array
    return copy


def exact_duplicate(array: Array) -> Array:
    """Return a copy of an array with its strides, also along axes of one element, where no element depends on them."""
    copy = duplicate(array)
    if copy.strides == array.strides or not array.flags.forc:
        return copy
    return np.ndarray(array.shape, array.dtype, copy.ravel("K"), 0, array.strides)


def copy_arrays(tree: Tree) -> Tree:
    """Return nested lists, tuples and dictionaries with copies of their arrays, which lie in memory as these do."""
    return map_leaves(lambda leaf: duplicate(leaf) if isinstance(leaf, np.ndarray) else leaf, tree)


def copied_as(value: Value, outline: Array) -> Value:
    """Return a copy of a value whose axes lie in memory in the order of those of an array without gaps."""
    if outline.flags.forc:
        return value.copy(order_of(outline))
    axes = sorted(range(outline.ndim), key=lambda axis: -outline.strides[axis])
    return value.transpose(axes).copy("C").transpose([axes.index(axis) for axis in range(outline.ndim)])


def shape_of(value: Value) -> Shape:
    """Return the shape of an array, a traced value or a number. It reads `shape`, as NumPy's function takes longer."""
    shape = getattr(value, "shape", None)
    return shape if shape is not None else () if type(value) in PYTHON_NUMBERS else np.shape(value)


def ndim_of(value: Value) -> int:
    """Return the number of axes of an array, a traced value or a number."""
    return len(shape_of(value))


def size_of(value: Value) -> int:
    """Return the number of elements of an array, a traced value or a number."""
    return math.prod(shape_of(value))


def dtype_of(value: Value) -> DType:
    """Return the dtype of an array, a traced value or a number."""
    dtype = getattr(value, "dtype", None)
    return np.result_type(value) if dtype is None else dtype


def native(value: Value) -> Value:
    """Return a value in the byte order of this machine, in which machine code reads it."""
    other = type(value) is np.ndarray and not value.dtype.isnative
    return value.astype(value.dtype.newbyteorder("=")) if other else value


def to_dtype(dtype: DTypeLike) -> DType:
    """Return `np.dtype(dtype)`, but for a class as `type(x.dtype)` its dtype, where NumPy returns that of objects."""
    given_class = isinstance(dtype, type) and issubclass(dtype, np.dtype)
    return np.empty(0, dtype).dtype if given_class else np.dtype(dtype)


def same_elements(one: Value, other: Value) -> bool:
    """Return whether two arrays or numbers have the same shape and the same elements, where NaN equals NaN."""
    return bool(np.array_equal(one, other, equal_nan=np.result_type(one).kind in "fc"))


class Addressed:
    """An object that offers the memory at an address through NumPy's array interface."""

    def __init__(self, address: int, count: int, dtype: DType) -> None:
        self.__array_interface__ = {"data": (address, False), "typestr": dtype.str, "shape": (count,), "version": 3}


def memory_at(address: int, count: int, dtype: DType) -> Array:
    """Return the numbers at an address as an array, which does not keep the memory alive."""
    return np.asarray(Addressed(address, count, dtype))


def has_field(records: DType, start: int, wanted: DType) -> bool:
    """Whether records have a field of the dtype `wanted`, or of arrays of it, with an element at byte `start`."""
    if records.fields is None:
        return records.base == wanted and start % wanted.itemsize == 0
    fields = [records.fields[name][:2] for name in records.names or ()]
    return any(has_field(part, start - at, wanted) for part, at in fields if at <= start < at + part.itemsize)


def extremes(dtype: DType) -> tuple[Value, Value]:
    """Return Python numbers that bound the numbers of a dtype, and that leave it the dtype of a comparison's result."""
    if dtype.kind in "iu":
        return np.iinfo(dtype).min, np.iinfo(dtype).max
    return (False, True) if dtype.kind == "b" else (-np.inf, np.inf)


def as_item(value: Value, dtype: DType) -> Value:
    """Return a value as one that is written to an array of a dtype, which it does not promote.

    Python's integers raise NumPy's error if they do not fit an array of integers.
    """
    if isinstance(value, int):
        least, largest = extremes(dtype)
        return dtype.type(int(value)) if dtype.kind in "iu" and (value < least or value > largest) else value
    if dtype_of(value) == dtype or dtype.kind not in "iub":
        return value
    return value.astype(dtype) if hasattr(value, "astype") else dtype.type(value)
