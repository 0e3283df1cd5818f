"""Functions that join, choose and place elements, written with the primitives that move elements."""

from effgrad.arrays.layout import OF_SHARING, dtype_of, ndim_of, shape_of, size_of
from effgrad.arrays.reach import np
from effgrad.arrays.traced import TracedArray, handle_of
from effgrad.arrays.value import CONSTANT, FUNCTIONS, Tracer, depends, example, known, outline, plain, to_operand
from effgrad.errors import Detached
from effgrad.primitives import move
from effgrad.primitives.elementwise import where
from effgrad.primitives.given import as_computed
from effgrad.primitives.index_map import element_numbers
from effgrad.vocabulary import DTypeLike, Function, Option, Shape, Value


def _insert(arr: Value, obj: Value, values: Value, axis: int | None = None) -> Value:
    """Insert elements by letting NumPy insert their numbers, and gathering the elements by the resulting numbers."""
    if axis is None:
        arr, axis = np.ravel(arr), 0
    dtype = dtype_of(arr)
    if dtype.kind != "c" and np.iscomplexobj(plain(values)):
        np.insert(np.zeros(shape_of(arr), dtype), obj, example(values), axis)  # takes the real parts, or raises
        values = np.real(values)
    values = values.astype(dtype) if isinstance(values, Tracer) else np.asarray(values, dtype)
    old, new = element_numbers([shape_of(arr), shape_of(values)])
    return np.concatenate([np.ravel(arr), np.ravel(values)])[np.insert(old, known(obj), new, axis) - 1]


def _kron(a: Value, b: Value) -> Value:
    n = max(ndim_of(a), ndim_of(b))
    sa, sb = ((1,) * (n - len(s)) + s for s in (shape_of(a), shape_of(b)))
    left = np.reshape(a, tuple(k for s in sa for k in (s, 1)))
    right = np.reshape(b, tuple(k for s in sb for k in (1, s)))
    return np.reshape(left * right, tuple(i * j for i, j in zip(sa, sb, strict=True)))


def _block(arrays: object) -> Value:
    def depth(x: Value) -> int:
        return 1 + max(map(depth, x)) if isinstance(x, list) else 0

    def join(x: Value, levels: int, ndim: int) -> Value:
        if not isinstance(x, list):
            return np.reshape(x, (1,) * (ndim - ndim_of(x)) + shape_of(x))
        return np.concatenate([join(item, levels - 1, ndim) for item in x], axis=-levels)

    def largest(x: Value) -> int:
        return max(map(largest, x)) if isinstance(x, list) else ndim_of(x)

    levels = depth(arrays)
    joined = join(arrays, levels, max(levels, largest(arrays)))
    return joined if levels else joined.copy()


def _meshgrid(*xi: Value, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Value:
    n = len(xi)
    order = [1, 0, *range(2, n)] if indexing == "xy" and n > 1 else list(range(n))
    shape = tuple([size_of(xi[i]) for i in order])
    result = []
    for i, x in enumerate(xi):
        own = [1] * n
        own[order.index(i)] = -1
        x = np.reshape(x, own)
        grid = x if sparse else _broadcast(x, shape)
        result.append(grid.copy() if copy else grid)
    return tuple(result)


def _ix(*args: Value) -> Value:
    """Return an open mesh, also of numbers that are not indices."""
    meshes = np.ix_(*[np.empty(a.shape) if isinstance(a, Tracer) else a for a in args])
    return tuple(
        np.reshape(a, mesh.shape) if isinstance(a, Tracer) else mesh for a, mesh in zip(args, meshes, strict=True)
    )


def _broadcast(x: Value, shape: Shape) -> Value:
    """Return a broadcast array that can be written to, as those of `np.broadcast_arrays`."""
    x = np.broadcast_to(x, shape)
    if isinstance(x, TracedArray):
        x.protect(True)
    return x


def _broadcast_arrays(*args: Value, subok: bool = False) -> Value:
    shape = np.broadcast_shapes(*map(shape_of, args))
    return tuple(_broadcast(a, shape) for a in args)


def _choose(a: Value, choices: Value, out: Option = None, mode: str = "raise") -> Value:
    index = np.asarray(a) if isinstance(a, list | tuple) else plain(a)
    index = index.astype(np.intp) if dtype_of(index).kind == "b" else index
    stacked = np.stack(np.broadcast_arrays(*choices))
    shape = shape_of(stacked)
    stacked = np.reshape(stacked, shape[:1] + (1,) * (np.ndim(index) + 1 - len(shape)) + shape[1:])
    index = index % len(stacked) if mode == "wrap" else np.clip(index, 0, len(stacked) - 1) if mode == "clip" else index
    index = np.broadcast_to(index, np.broadcast_shapes(np.shape(index), stacked.shape[1:]))
    stacked = np.broadcast_to(stacked, (len(stacked), *index.shape))
    return np.take_along_axis(stacked, index[None], axis=0)[0]


def _where(condition: Value, *choices: Value) -> Value:
    if not choices:
        return np.nonzero(condition)
    if len(choices) != 2:
        np.where(True, *map(example, choices))  # NumPy's error
    x, y = choices
    if x is None or y is None:
        raise Detached("numpy.where with None makes an array of objects, which has no derivative: use np.nan")
    return where(plain(to_operand(condition)), to_operand(x), to_operand(y))


def _select(condlist: Value, choicelist: Value, default: Value = 0) -> Value:
    condlist, result = [*map(to_operand, condlist)], default
    if not all(dtype_of(plain(condition)).kind == "b" for condition in condlist):
        np.select([*map(example, condlist)], [*map(example, choicelist)], example(default))  # NumPy's error
    for condition, choice in reversed(list(zip(condlist, choicelist, strict=True))):
        result = np.where(condition, choice, result)
    return result


def _resize(a: Value, new_shape: Value) -> Value:
    if not size_of(a):
        return np.zeros(new_shape, dtype_of(a))
    return np.ravel(a)[np.resize(np.arange(size_of(a)), new_shape)]


def _compress(condition: Value, a: Value, axis: int | None = None, out: Option = None) -> Value:
    if np.ndim(plain(condition)) != 1:
        raise ValueError("condition must be a 1-d array")
    return np.take(a, np.flatnonzero(plain(condition)), axis=axis)


def _extract(condition: Value, arr: Value) -> Value:
    return np.ravel(arr)[np.flatnonzero(plain(condition))]


def _diag(v: Value, k: int = 0) -> Value:
    if ndim_of(v) == 2:
        return np.diagonal(v, k)
    n = v.shape[0]
    rows = np.arange(n) + max(-k, 0)
    return move.setitem(np.zeros((n + abs(k),) * 2, dtype_of(v)), v, index=(rows, rows + k))


def _trace(a: Value, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Option = None) -> Value:
    return np.sum(np.diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)


def _diagflat(v: Value, k: int = 0) -> Value:
    return np.diag(np.ravel(v), k)


def _vander(x: Value, N: int | None = None, increasing: bool = False) -> Value:
    if not depends(x):
        return np.vander(plain(x), N, increasing)
    n = x.size if N is None else N
    powers = np.arange(n) if increasing else np.arange(n - 1, -1, -1)
    return x[:, None] ** powers


def _linspace(
    start: Value,
    stop: Value,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike = None,
    axis: int = 0,
) -> Value:
    start, stop = to_operand(start), to_operand(stop)
    parts = np.linspace(0.0, 1.0, num, endpoint, dtype=np.result_type(plain(start), plain(stop), 0.0))
    gaps = num - endpoint
    step = (stop - start) / gaps if gaps > 0 else np.nan
    shape = np.broadcast_shapes(shape_of(start), shape_of(stop))
    parts = np.reshape(parts, (-1,) + (1,) * len(shape))
    values = np.moveaxis(start + (stop - start) * parts, 0, axis)
    if dtype is not None:
        values = (np.floor(values) if np.issubdtype(dtype, np.integer) else values).astype(dtype)
    return (values, step) if retstep else values


def _geomspace(
    start: Value, stop: Value, num: int = 50, endpoint: bool = True, dtype: DTypeLike = None, axis: int = 0
) -> Value:
    start, stop = np.broadcast_arrays(start, stop)
    values = np.moveaxis(start * np.exp(np.linspace(0.0, np.log(stop / start), num, endpoint)), 0, axis)
    return values if dtype is None else values.astype(dtype)


def _sharing(function: Function) -> Function:
    """Return the rule of NumPy's question whether two arrays share memory: their addresses answer it."""

    def rule(a: Value, b: Value, *args: object, **kwargs: Option) -> Value:
        if not all(isinstance(x, Tracer) and isinstance(outline(x), np.ndarray) for x in (a, b)):
            return False  # a number, or a plain array, which holds no traced number
        one, other = map(handle_of, (a, b))
        if one.storage is not other.storage or one.half is not other.half and None not in (one.half, other.half):
            return False
        return function(one.located(), other.located(), *args, **kwargs)

    rule.constant = True  # type: ignore[attr-defined]
    return rule


_INSERT, _VANDER = as_computed(np.insert, _insert), as_computed(np.vander, _vander)
FUNCTIONS.enter({
    np.insert: _INSERT, np.kron: _kron, np.block: _block, np.meshgrid: _meshgrid,
    np.broadcast_arrays: _broadcast_arrays, np.ix_: _ix, np.choose: _choose, np.select: _select, np.where: _where,
    np.resize: _resize, np.compress: _compress, np.extract: _extract,
    np.diag: _diag, np.trace: _trace, np.diagflat: _diagflat, np.vander: _VANDER,
    np.astype: lambda x, dtype, /, *, copy=True, device=None: x.astype(dtype, copy=copy),
    np.linspace: as_computed(np.linspace, _linspace),
    np.geomspace: as_computed(np.geomspace, _geomspace),
})  # fmt: skip
FUNCTIONS.enter({f: _sharing(f) for f in OF_SHARING})
CONSTANT.enter({
    np.argwhere, np.flatnonzero, np.fix, np.array_equiv, np.diag_indices_from, np.tril_indices_from,
    np.triu_indices_from, np.iscomplex, np.isrealobj, np.isneginf, np.isposinf, np.isin, np.lexsort, np.nanargmax,
    np.nanargmin, np.einsum_path, np.min_scalar_type, np.common_type, np.array2string,
})  # fmt: skip
