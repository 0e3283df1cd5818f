"""Primitives that move, copy and place elements by reshaping, joining and indexing. All are linear."""

import functools
from itertools import accumulate, pairwise
from typing import Any

from numpy.lib.array_utils import normalize_axis_index

from effgrad.arrays import counterparts, layout
from effgrad.arrays.layout import PYTHON_NUMBERS, dtype_of, memory_like, ndim_of, shape_of, size_of, without_axes
from effgrad.arrays.memory_order import laid_as, seen_as
from effgrad.arrays.reach import np
from effgrad.arrays.traced import alias, always_view, view
from effgrad.arrays.value import (
    CONSTANT,
    FUNCTIONS,
    LISTS,
    Tracer,
    contiguous,
    example,
    is_lazy,
    known,
    operations,
    outline,
    plain,
    to_operand,
)
from effgrad.errors import Detached
from effgrad.primitives.batching import stacked
from effgrad.primitives.index_map import join, move, writing
from effgrad.primitives.indices import basic_view, distinct, places_of
from effgrad.primitives.machine_code import SAME
from effgrad.vocabulary import Axes, Function, Index, Option, Params, Value


def _scatter_add(*pieces: Value, shape: Value, indices: Value) -> Value:
    total = np.zeros(shape, np.result_type(*{dtype_of(p) for p in pieces}))
    if distinct(indices[0]):  # assigned, since a negative zero added to zero would lose its sign
        total[indices[0]] = pieces[0]
        pieces, indices = pieces[1:], indices[1:]
    for index, piece in zip(indices, pieces, strict=True):
        if distinct(index):
            total[index] += piece
        elif total.ndim == 1 and type(index) is np.ndarray and index.shape == np.shape(piece):
            np.add.at(total, index.reshape(-1), np.reshape(piece, -1))  # an eighth of the time of several axes
        else:
            np.add.at(total, index, piece)
    return total


def _set(array: object, value: Value, index: Index) -> Value:
    result = np.array(array)
    if np.iscomplexobj(value) and not np.iscomplexobj(result):
        raise Detached("a complex value was assigned into a real array, which would lose its imaginary part")
    result[index] = value
    return result


laid_out = move(lambda x, *, order: np.array(x, order=order), name="laid_out", code=SAME)
reshape = move(
    np.reshape, view=lambda x, shape: np.reshape(x, shape, copy=False), text="np.reshape({0}, {shape})",
    counterpart=counterparts.reshape,
)  # fmt: skip
transpose = move(
    np.transpose, view=np.transpose, text="np.transpose({0}, {axes})", counterpart=counterparts.transpose,
)
broadcast_to = move(
    lambda x, shape: np.broadcast_to(x, shape), name="broadcast_to", view=np.broadcast_to,
    text="np.broadcast_to({0}, {shape})", code=SAME, counterpart=counterparts.broadcast_to,
)  # fmt: skip
astype = move(
    lambda x, dtype: np.asarray(x).astype(dtype)[()], name="astype", text="np.asarray({0}).astype({dtype})[()]",
    code=SAME, counterpart=counterparts.astype,
)  # fmt: skip
getitem = move(
    lambda x, index: x[index] if type(x) is not float else np.asarray(x)[index], name="getitem",
    source=lambda index: index, view=basic_view, text="{0}[{index}]", counterpart=counterparts.getitem,
)  # fmt: skip
setitem: Any = writing(
    _set, lambda number, shape, index: index, "setitem", text="_set({0}, {1}, np.s_[{index}])",
    counterpart=counterparts.setitem,
)  # fmt: skip
scatter_add = join(
    lambda shapes, shape, indices: (shape, indices), _scatter_add, "scatter_add", adds=True,
    text="_scatter_add({shape}, {indices}, [{args}])", counterpart=counterparts.scatter_add,
)  # fmt: skip


def _places_along(shapes: list[tuple[int, ...]], axis: int) -> Value:
    """Return the shape of arrays joined along an existing axis, and the index of each in it."""
    axis = normalize_axis_index(axis, len(shapes[0]))
    if len({(*shape[:axis], 0, *shape[axis + 1 :]) for shape in shapes}) > 1:
        raise ValueError("the arrays have different lengths along other axes")
    ends = [0, *accumulate([shape[axis] for shape in shapes])]
    before = (slice(None),) * axis
    return (*shapes[0][:axis], ends[-1], *shapes[0][axis + 1 :]), [(*before, slice(*e)) for e in pairwise(ends)]


def _layers(shapes: list[tuple[int, ...]], axis: int) -> Value:
    """Return the shape of arrays of equal shape stacked along a new axis, and the index of each in it."""
    shape, count = shapes[0], len(shapes)
    axis = normalize_axis_index(axis, len(shape) + 1)
    if shapes.count(shape) < count:
        raise ValueError("the arrays have different shapes")
    before = (slice(None),) * axis
    return (*shape[:axis], count, *shape[axis:]), [(*before, i) for i in range(count)]


concatenate = join(
    _places_along, lambda *arrays, axis: np.concatenate(arrays, axis), "concatenate",
    text="np.concatenate([{args}], {axis})", counterpart=counterparts.joining("concat"),
)  # fmt: skip
stack = join(
    _layers, lambda *arrays, axis: np.stack(arrays, axis), "stack",
    text="np.stack([{args}], {axis})", counterpart=counterparts.joining("stack"),
)  # fmt: skip


def _rows(m: Value) -> Value:
    """Return a vector repeated as the rows of a square matrix, of which NumPy takes the triangle; else `m` itself."""
    return m if ndim_of(m) != 1 else np.broadcast_to(m, (size_of(m),) * 2)


def _triangle(name: str) -> Value:
    """Return the primitive that keeps one triangle of matrices."""
    part: Value = getattr(np, name)
    return move(
        lambda x, k: part(x, k), name=name, clears=True, text=f"np.{name}({{0}}, {{k}})", batch=stacked,
        counterpart=counterparts.triangle(name),
    )  # fmt: skip


tril, triu = _triangle("tril"), _triangle("triu")


def _transpose(a: Value, axes: Axes = None) -> Value:
    if axes is not None:
        axes = axes if type(axes) is tuple else np.atleast_1d(axes)
        axes = tuple([normalize_axis_index(int(i), a.ndim) for i in axes])

    def step(value: Value) -> Value:
        return transpose(value, axes=axes)

    return view(step(a), a, step)


def _broadcast_to(array: object, shape: Value, subok: bool = False) -> Value:
    if type(shape) is not tuple:  # a tuple is left unchanged, since its lengths may be staged values
        shape = tuple(map(int, np.atleast_1d(shape))) if np.ndim(shape) or np.size(shape) else ()

    def step(value: Value) -> Value:
        return broadcast_to(value, shape=shape)

    return always_view(step(array), array, step)


def _reshape(a: object, shape: object) -> Value:
    def step(value: Value) -> Value:
        return reshape(value, shape=shape)

    return view(step(a), a, step)


def _reshape_in_order(a: object, shape: object, order: object = "C", *, copy: bool | None = None) -> Value:
    if not copy and (order == "C" or shape == shape_of(a)):  # with the same shape, the result is a view in any order
        return _reshape(a, shape)
    return rearranging(np.reshape)(a, shape, order=order, copy=copy)


def _ravel(a: Value, order: object = "C") -> Value:
    if order != "C":
        return rearranging(np.ravel)(a, order=order)
    # Unlike a reshape, a ravel copies every array that is not contiguous.
    return _reshape(a if contiguous(a) else a.copy(), (-1,))


@functools.lru_cache(1024)
def _turns(function: Function, ndim: int, args: Value, options: Params) -> Value:
    """Return the index by which a function reverses axes, and the order of axes that it then makes, or None for each.

    They are read off its result for an array that is never read, whose axes all have different lengths."""
    memory = np.lib.stride_tricks.as_strided(np.zeros(1), tuple(range(2, ndim + 2)), (1,) * ndim)
    seen = function(memory, *args, **dict(options))
    axes = [n - 2 for n in seen.shape]
    backwards = [axis for axis, step in zip(axes, seen.strides, strict=True) if step < 0]
    index = tuple(slice(None, None, -1 if i in backwards else None) for i in range(ndim))
    indexed = backwards or not isinstance(seen, np.ndarray)  # `np.flip` of an array without axes gives a number
    return index if indexed else None, None if backwards and axes == sorted(axes) else axes


def _is_fixed(option: object) -> bool:
    """Return whether an option consists of plain integers, and so can be a cache key."""
    return option is None or type(option) is int or (type(option) is tuple and {*map(type, option)} <= {int})


def _turned(function: object) -> Value:
    """Return the rule of a function that permutes axes and reverses some of them."""

    def rule(a: Value, *args: object, **kwargs: Option) -> Value:
        find = _turns if all(map(_is_fixed, (*args, *kwargs.values()))) else _turns.__wrapped__
        index, axes = find(function, ndim_of(a), args, tuple(kwargs.items()))
        a = np.reshape(a, (1,))[0] if index == () else a if index is None else a[index]
        return a if axes is None else _transpose(a, axes)

    return rule


def _roll(a: Value, shift: Value, axis: Axes = None) -> Value:
    """Roll an array by exchanging two slices along each axis."""
    if axis is None:
        return np.reshape(_roll(np.ravel(a), shift, 0), shape_of(a))
    result, turns = a, np.broadcast(shift, axis)
    if turns.ndim > 1:
        np.roll(np.empty(0), example(shift), example(axis))  # NumPy's error
    for by, along in turns:
        along = normalize_axis_index(int(along), a.ndim)
        size = a.shape[along]
        cut = -int(by) % size if size else 0
        before = (slice(None),) * along
        if cut:
            parts = [result[(*before, slice(cut, None))], result[(*before, slice(None, cut))]]
            result = concatenate(*parts, axis=along)
    return result.copy() if result is a else result


def _array_split(ary: Value, indices_or_sections: Value, axis: int = 0) -> Value:
    """Return slices of an array along an axis, cut where NumPy cuts an `arange` of its length."""
    cuts = known(indices_or_sections)  # floats may be a number of sections or no indices
    pieces = np.array_split(np.arange(ary.shape[axis]), np.asarray(example(cuts)) if ndim_of(cuts) else cuts)
    before = (slice(None),) * (axis % ary.ndim)
    return [ary[(*before, slice(p[0], p[0] + len(p)) if len(p) else slice(0))] for p in map(np.ndarray.tolist, pieces)]


def rearranging(function: Function) -> Value:
    """Return the rule of a function that only rearranges elements: it gathers by the elements' rearranged numbers."""

    def rule(a: Value, *args: object, **kwargs: Option) -> Value:
        numbers = np.arange(size_of(a)).reshape(shape_of(a))
        if not contiguous(a):  # whether a result is a view depends on the order in memory
            laid = memory_like(outline(a), int, shared=True)
            laid[...] = numbers
            numbers = laid
        places = function(numbers, *map(known, args), **{name: known(option) for name, option in kwargs.items()})
        flat, shares = reshape(a, shape=(-1,)), not isinstance(outline(a), np.generic | float | int | complex)

        def take(place: Value, step: Value) -> Value:
            result = getitem(flat, index=place)
            viewed = shares and np.may_share_memory(place, numbers)
            return alias(seen_as(result, place), a, step) if viewed else laid_as(result, place)

        if isinstance(places, list | tuple):
            return type(places)(
                take(place, lambda value, i=i: function(value, *args, **kwargs)[i]) for i, place in enumerate(places)
            )
        return take(places, lambda value: function(value, *args, **kwargs))

    return rule


def _diagonal(a: object, *args: Value, **kwargs: Option) -> Value:
    """Return the diagonal of a matrix as a slice of its raveled elements, with NumPy's offset and stride."""

    def step(value: Value) -> Value:
        return np.diagonal(value, *args, **kwargs)

    seen = step(memory := np.empty(shape_of(a), bool))
    if seen.ndim > 1 or not seen.size or not contiguous(a):
        return rearranging(np.diagonal)(a, *args, **kwargs)
    start = np.lib.array_utils.byte_bounds(seen)[0] - np.lib.array_utils.byte_bounds(memory)[0]
    stop = start + (seen.size - 1) * seen.strides[0] + 1
    return alias(getitem(reshape(a, shape=(-1,)), index=slice(start, stop, max(seen.strides[0], 1))), a, step)


def _reshaped(function: Function) -> Value:
    """Return the rule of a function that only changes the shape."""

    def rule(a: Value, *args: object, **kwargs: Option) -> Value:
        return _reshape(a, function(np.empty(shape_of(a), bool), *args, **kwargs).shape)

    return rule


def _at_least(function: Function) -> Value:
    one = _reshaped(function)
    return lambda *arrays: one(*arrays) if len(arrays) == 1 else tuple(function(a) for a in arrays)


def _take_along_axis(a: Value, indices: object, axis: int | None = -1) -> Value:
    indices = plain(indices)
    if not isinstance(indices, Tracer):
        return rearranging(np.take_along_axis)(a, indices, axis)
    if axis is None:
        return getitem(np.ravel(a), index=indices)
    grid: list[Value] = list(np.ogrid[tuple(map(slice, shape_of(a)))])
    grid[axis] = indices
    return getitem(a, index=tuple(grid))


def _take(a: Value, indices: object, axis: int | None = None, **options: object) -> Value:
    indices = plain(indices)
    if not isinstance(indices, Tracer) or options:
        return rearranging(np.take)(a, indices, axis, **options)
    if axis is None:
        return getitem(np.ravel(a), index=indices)
    return getitem(a, index=(*(slice(None),) * (axis % ndim_of(a)), indices))


def _sort(
    a: Value, axis: int | None = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Value:
    if (kind, order, stable) != (None, None, None):
        np.sort(np.empty(0), kind=kind, order=order, stable=stable)  # NumPy's error
    if axis is None:
        a, axis = np.ravel(a), 0
    return np.take_along_axis(a, np.argsort(plain(a), axis, kind="stable"), axis)


def _partition(
    a: Value, kth: Value, axis: int | None = -1, kind: Any = "introselect", order: Any = None
) -> Value:
    if (kind, order) != ("introselect", None):
        np.partition(np.empty(1), 0, kind=kind, order=order)  # NumPy's error
    if axis is None:
        a, axis = np.ravel(a), 0
    places = np.argpartition(plain(a), kth, axis)
    if isinstance(plain(a), np.ndarray) and np.isnan(plain(a)).any():  # `argpartition` orders NaN differently
        places = places_of(np.partition(plain(a), kth, axis), plain(a), axis)
    return np.take_along_axis(a, places, axis)


def _stack(arrays: Value, axis: int = 0, *, dtype: object = None, casting: str = "same_kind") -> Value:
    result = stack(*map(to_operand, arrays), axis=axis)
    return result if dtype is None else result.astype(dtype, casting=casting)


def _concatenate(arrays: Value, axis: object = 0, dtype: object = None, casting: str = "same_kind") -> Value:
    arrays = [to_operand(a) for a in arrays]
    if axis is None:
        # Joined with arrays, a Python number takes their precision.
        if dtype is None and not PYTHON_NUMBERS.isdisjoint(map(type, arrays)):
            dtype = np.result_type(*map(example, arrays))
        arrays, axis = [np.ravel(a) for a in arrays], 0
    result = concatenate(*arrays, axis=axis)
    return result if dtype is None else result.astype(dtype, casting=casting)


def _along(stacked: int, axis: int) -> Value:
    def rule(arrays: Value, **options: Option) -> Value:
        arrays = [to_operand(a) for a in arrays]
        least = [np.reshape(a, (1,) * (stacked - ndim_of(a)) + shape_of(a)) for a in arrays]
        return _concatenate(least, axis, **options)

    return rule


def _filled_like(
    a: Value, fill_value: Value, dtype: Option = None, order: Option = "K", subok: bool = True, shape: Value = None,
    **_: object,
) -> Value:  # fmt: skip
    a = np.asarray(a) if type(a) in LISTS else a
    shape, dtype = shape_of(a) if shape is None else shape, dtype_of(a) if dtype is None else dtype
    if is_lazy(a):
        return plain(a).owner.filled(shape, fill_value, dtype)
    like = np.empty_like(outline(a), order=order, shape=shape)
    return layout.copied_as(np.broadcast_to(np.asarray(fill_value, dtype), shape), like)


operations.getitem, operations.setitem, operations.scatter_add = getitem, setitem, scatter_add
operations.astype, operations.laid_out = astype, laid_out
FUNCTIONS.enter({
    np.reshape: _reshape_in_order,
    np.ravel: _ravel,
    np.transpose: _transpose, np.stack: _stack, np.concatenate: _concatenate,
    np.broadcast_to: _broadcast_to,
    np.vstack: _along(2, 0), np.column_stack: lambda arrays: concatenate(
        *[np.reshape(a, (-1, 1)) if ndim_of(a) < 2 else a for a in arrays], axis=1),
    np.hstack: lambda arrays, **options: _concatenate(
        [np.atleast_1d(a) for a in arrays], 0 if ndim_of(arrays[0]) <= 1 else 1, **options),
    np.zeros_like: lambda a, dtype=None, **k: _filled_like(a, 0, dtype, **k),
    np.empty_like: lambda prototype, dtype=None, **k: _filled_like(prototype, 0, dtype, **k),
    np.ones_like: lambda a, dtype=None, **k: _filled_like(a, 1, dtype, **k), np.full_like: _filled_like,
    np.take: _take, np.take_along_axis: _take_along_axis,
    np.sort: _sort, np.partition: _partition,
    np.tril: lambda m, k=0: tril(_rows(m), k=k), np.triu: lambda m, k=0: triu(_rows(m), k=k),
    np.copy: lambda a, order="K", **_: without_axes(a.copy(order)), np.shape: lambda a: a.shape,
    np.size: lambda a, axis=None: np.size(np.broadcast_to(False, a.shape), axis), np.ndim: lambda a: a.ndim,
    np.iscomplexobj: lambda a: np.iscomplexobj(plain(a)),
})  # fmt: skip
FUNCTIONS.enter({f: _reshaped(f) for f in (np.squeeze, np.expand_dims)})
FUNCTIONS.enter({f: _at_least(f) for f in (np.atleast_1d, np.atleast_2d, np.atleast_3d)})
FUNCTIONS.enter({
    f: rearranging(f) for f in (np.repeat, np.tile, np.delete, np.lib.stride_tricks.sliding_window_view)
})  # fmt: skip
FUNCTIONS.enter({f: _turned(f) for f in (np.moveaxis, np.swapaxes, np.flip, np.rot90)})
FUNCTIONS.enter({np.roll: _roll, np.array_split: _array_split, np.diagonal: _diagonal})
CONSTANT.enter({
    np.argmax, np.argmin, np.argsort, np.argpartition, np.all, np.any, np.round, np.around, np.array_equal, np.allclose,
    np.isclose, np.nonzero, np.searchsorted, np.digitize, np.count_nonzero, np.result_type, np.can_cast, np.isreal,
    np.array_repr, np.array_str,
})  # fmt: skip
