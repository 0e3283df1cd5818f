"""Rules for NumPy's functions on symbolic values: maps, reductions, products and views."""

import functools
from typing import Any

import numpy as np

from effgrad.primitives.elementwise import maximum, minimum
from effgrad.primitives.primitive import Primitive
from effgrad.stage.loop import asked, planes
from effgrad.stage.loop.affine import Affine, NotCaptured, affine, as_constant
from effgrad.stage.loop.buffers import BOOL, Element, constant, index
from effgrad.stage.loop.concatenation import as_array
from effgrad.stage.loop.element import (
    ADD,
    GREATER_EQUAL,
    MULTIPLY,
    SUBTRACT,
    WHERE,
    ZERO,
    cast,
    element,
    primitive_of,
)
from effgrad.stage.loop.number_classes import Memory
from effgrad.stage.loop.operands import (
    Complex,
    Extent,
    Lazy,
    Method,
    Value,
    View,
    axes_of,
    axis_of,
    broadcast,
    may_be_in_place,
    same_extent,
    symbolic,
    times,
    without_axes,
)
from effgrad.stage.loop.registry import is_symbolic, rule
from effgrad.stage.loop.symbols import Symbols
from effgrad.vocabulary import Array, DTypeLike, Entry, Option, Params

# Making arrays


def _shape(c: Symbols, shape: Value) -> list[Extent]:
    items = list(shape) if isinstance(shape, tuple | list) else [shape]
    extents = [n if isinstance(n, int) else as_constant(c.as_index(n)) for n in items]
    lowest = [c.ranges.lower(n) for n in extents if isinstance(n, Affine)]
    if any(n is None or n < 0 for n in lowest):
        raise NotCaptured("an array whose length may be negative")
    return extents


def _filled(c: Symbols, shape: Value, dtype: DTypeLike, value: Value, like: Lazy | None = None) -> View | Complex:
    extents = _shape(c, shape)
    if planes.is_complex(value) or (dtype is not None and np.dtype(dtype).kind == "c"):
        return planes.filled(c, extents, value, dtype or getattr(value, "dtype", complex), like)
    view = c.new(extents, float if dtype is None else dtype, like)
    if value is None:
        view.buffer.cleared = True
    c.assign(view, 0 if value is None else value)
    view.own = True
    return view


def _new(value: int, c: Symbols, shape: Value, dtype: DTypeLike = None, order: Option = "C") -> View | Complex:
    if order != "C":
        raise NotCaptured(f"the order {order!r} of an array")
    return _filled(c, shape, dtype, value)


def _new_like(value: int, c: Symbols, a: Value, dtype: DTypeLike = None, order: Option = "K") -> View | Complex:
    if order not in ("K", "C"):
        raise NotCaptured(f"the order {order!r} of an array")
    like = c.lazy(a)
    kind = like.dtype if dtype is None else dtype
    return _filled(c, list(like.shape), kind, value, like if order == "K" else None)


_zeros = rule(np.zeros, np.empty, np.ndarray)(functools.partial(_new, 0))
_ones = rule(np.ones)(functools.partial(_new, 1))
_zeros_like = rule(np.zeros_like, np.empty_like)(functools.partial(_new_like, 0))
_ones_like = rule(np.ones_like)(functools.partial(_new_like, 1))


@rule(np.full)
def _full(c: Symbols, shape: Value, fill_value: Value, dtype: DTypeLike = None, order: Option = "C") -> View | Complex:
    known = dtype is not None or planes.is_complex(fill_value)
    return _filled(c, shape, dtype if known else c.lazy(fill_value).dtype, fill_value)


@rule(np.asarray, np.asanyarray)
def _asarray(c: Symbols, a: Value, dtype: DTypeLike = None) -> Value:
    is_one = isinstance(a, View | Lazy) and bool(a.shape) and dtype in (None, a.dtype)
    return a if is_one else _array(c, a, dtype)


@rule(np.ascontiguousarray)
def _ascontiguousarray(c: Symbols, a: Value, dtype: DTypeLike = None) -> Value:
    return _array(c, a, dtype, "C")


@rule(np.array)
def _new_array(
    c: Symbols, object: Value, dtype: DTypeLike = None, *, copy: bool | None = True, order: Option = "K",
    subok: bool = False, ndmin: int = 0,
) -> Value:  # fmt: skip
    if not symbolic([object]):
        return np.array(object, dtype, copy=copy, order=order, subok=subok, ndmin=ndmin)
    if copy is False:
        raise NotCaptured("np.array with copy=False")
    made = _array(c, object, dtype, order) if copy else _asarray(c, object, dtype)
    while len(np.shape(made) if isinstance(made, np.ndarray) else made.shape) < ndmin:
        made = c.index(made, (None, ...))
    return made


@rule(np.copy)
def _array(c: Symbols, value: Value, dtype: DTypeLike = None, order: Option = "K") -> Value:
    if not symbolic([value]):
        return np.array(value, dtype, order=order)
    if order not in ("K", "C"):
        raise NotCaptured(f"the order {order!r} of an array")
    value = c.stacked(value) if isinstance(value, list | tuple) else value
    if dtype is not None and np.dtype(dtype).kind == "c":
        return planes.copied(c, value, dtype)
    if dtype is not None and np.dtype(dtype) != c.lazy(value).dtype:
        return _astype(c, value, dtype)
    return c.copy(value, order) if c.lazy(value).shape else c.lazy(value)


@rule(np.eye, np.identity)
def _eye(c: Symbols, n: Entry, M: Entry = None, k: int = 0, dtype: DTypeLike = float) -> View | Complex:
    made = np.eye(n, M, k, dtype)
    return planes.copied(c, made) if made.dtype.kind == "c" else c.copy(c.lazy(made))


@rule(np.arange)
def _arange(c: Symbols, *args: Value, dtype: DTypeLike = None) -> Lazy | Array:
    if not is_symbolic(*args):
        return np.arange(*args, dtype=dtype)
    if dtype is not None or not all(isinstance(a, int | Affine) for a in args):
        raise NotCaptured("np.arange of numbers that change")
    start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
    if step == 1:
        return c.lazy_at([c.at_least_zero(affine(stop) - start)], lambda point: index(point[0] + start))
    count = c.steps_between(affine(start), affine(stop), as_constant(step))
    return c.lazy_at([count], lambda point: index(times(point[0], step) + start))


# Products


@rule(np.dot)
def _dot(c: Symbols, a: Value, b: Value) -> View | Lazy:
    first, second = (len(c.lazy(x).shape) for x in (a, b))
    if not first or not second:
        return c.elementwise(MULTIPLY, a, b)
    if first > 1 and second > 2:
        raise NotCaptured("np.dot with a stack of matrices on the right")
    return c.matmul(a, b)


@rule(np.matmul)
def _matmul(c: Symbols, a: Value, b: Value) -> View | Lazy:
    if not all(c.lazy(x).shape for x in (a, b)):
        raise NotCaptured("a matrix product with a number, which NumPy rejects")
    return c.matmul(a, b)


@rule(np.outer)
def _outer(c: Symbols, a: Value, b: Value) -> Lazy:
    a, b = [x if len(x.shape) == 1 else c.reshape(x, [-1]) for x in (c.lazy(a), c.lazy(b))]
    return c.elementwise(MULTIPLY, c.index(a, (slice(None), None)), b)


@rule(np.inner)
def _inner(c: Symbols, a: Value, b: Value) -> View | Lazy:
    if len(c.lazy(b).shape) > 2:
        raise NotCaptured("np.inner with a stack of matrices on the right")
    return c.matmul(a, b if len(c.lazy(b).shape) < 2 else c.transpose(c.lazy(b)))


def _outer_of(primitive: Primitive, c: Symbols, a: Value, b: Value) -> Lazy:
    added = (None,) * len(c.lazy(b).shape)
    return c.elementwise(primitive, c.index(c.lazy(a), (..., *added)) if added else a, b)


_add_outer = rule((np.add, "outer"))(functools.partial(_outer_of, ADD))
_subtract_outer = rule((np.subtract, "outer"))(functools.partial(_outer_of, SUBTRACT))
_multiply_outer = rule((np.multiply, "outer"))(functools.partial(_outer_of, MULTIPLY))


# Moving elements


@rule(np.transpose)
def _transpose(c: Symbols, a: Value, axes: Value = None) -> View | Lazy:
    return c.transpose(as_array(c, a), axes)


@rule(np.swapaxes)
def _swapaxes(c: Symbols, a: Value, axis1: int, axis2: int) -> View | Lazy:
    order = list(range(len(as_array(c, a).shape)))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return c.transpose(as_array(c, a), order)


@rule(np.reshape)
def _reshape(c: Symbols, a: Value, shape: Value) -> View | Lazy:
    items = _shape(c, shape)
    if not all(isinstance(n, int) for n in items):
        raise NotCaptured("reshape to a shape that changes")
    return c.reshape(as_array(c, a), items)  # type: ignore[arg-type]


@rule(np.ravel)
def _ravel(c: Symbols, a: Value) -> View | Lazy:
    value = as_array(c, a)
    if len(value.shape) != 1:
        value = c.reshape(value, [-1])
        value.buffer.order = "C"  # without gaps even if it is a view
        return value
    if isinstance(value, View) and not value.is_dense:
        return c.copy(value)
    if isinstance(value, View):
        value.buffer.flattened = True
    return value


@rule(np.expand_dims)
def _expand_dims(c: Symbols, a: Value, axis: int) -> View | Lazy:
    value = as_array(c, a)
    return c.index(value, (*(slice(None),) * axis_of(axis, len(value.shape) + 1), None))


@rule(np.squeeze)
def _squeeze(c: Symbols, a: Value, axis: Value = None) -> View | Lazy:
    value = as_array(c, a)
    short = [k for k, n in enumerate(value.shape) if same_extent(n, 1)]
    gone = short if axis is None else axes_of(axis, len(value.shape))
    if not set(gone) <= set(short):
        raise NotCaptured("np.squeeze of an axis whose length may not be 1")
    return c.index(value, tuple(0 if k in gone else slice(None) for k in range(len(value.shape))))


@rule(np.flip)
def _flip(c: Symbols, a: Value, axis: Value = None) -> View | Lazy:
    value = as_array(c, a)
    turned = axes_of(axis, len(value.shape))
    return c.index(value, tuple(slice(None, None, -1) if k in turned else slice(None) for k in range(len(value.shape))))


@rule(np.flipud)
def _flipud(c: Symbols, m: Value) -> View | Lazy:
    return c.index(as_array(c, m), slice(None, None, -1))


@rule(np.diff)
def _diff(c: Symbols, a: Value, n: int = 1, axis: int = -1) -> Value:
    value = as_array(c, a)
    if value.dtype == BOOL or n == 0:
        raise NotCaptured("np.diff of truth values, or of order 0, which returns its argument")
    key: list[slice] = [slice(None)] * len(value.shape)
    for _ in range(n):
        later, sooner = ([*key] for _ in range(2))
        later[axis], sooner[axis] = slice(1, None), slice(None, -1)
        value = c.elementwise(SUBTRACT, c.index(value, tuple(later)), c.index(value, tuple(sooner)))
    return value


@rule(np.broadcast_to)
def _broadcast_to(c: Symbols, a: Value, shape: Value) -> Lazy:
    return broadcast(c.lazy(a), _shape(c, shape))


@rule(np.where)
def _where(c: Symbols, condition: Value, *values: Value) -> Lazy:
    if len(values) != 2:
        raise NotCaptured("np.where of a condition alone")
    test = c.lazy(condition)
    if test.dtype != BOOL:
        test = c.elementwise(primitive_of(np.not_equal), test, 0)  # type: ignore[arg-type]
    return c.elementwise(WHERE, test, *values)


@rule(np.clip)
def _clip(c: Symbols, a: Value, a_min: Value = None, a_max: Value = None) -> Value:
    value = a if a_min is None else c.elementwise(maximum, a, a_min)
    return value if a_max is None else c.elementwise(minimum, value, a_max)


def _part_of_matrix(upper: bool, c: Symbols, a: Value, k: int = 0) -> Lazy:
    value = c.lazy(a)

    def at(point: list[Affine]) -> Element:
        test = element(GREATER_EQUAL, index((point[-1] - point[-2] - k) * (1 if upper else -1)), ZERO)
        return element(WHERE, test, value.element(point), constant(0, value.dtype))

    return c.lazy_at(value.shape, at)


_triu = rule(np.triu)(functools.partial(_part_of_matrix, True))
_tril = rule(np.tril)(functools.partial(_part_of_matrix, False))


# Attributes and methods


def attribute(c: Symbols, value: View | Lazy | Complex, name: str) -> Value:
    """An attribute of a symbolic array."""
    if name in asked.ATTRIBUTES:
        return asked.attribute(value, name)
    if isinstance(value, Complex):
        if name == "T":
            return Complex(*map(c.transpose, value))
        return getattr(value, name) if name in ("real", "imag") else Method(value, name)
    if name == "T":
        return without_axes(c.transpose(value)) if may_be_in_place(value) else c.transpose(value)
    if name == "real":
        return value
    if name == "flat":
        return c.view_of(c.call(np.ravel, [value], {}), value)
    return broadcast(c.number(constant(0, value.dtype)), value.shape) if name == "imag" else Method(value, name)


# The methods that take the same arguments as the functions of the same names.
_METHODS = {
    "sum", "mean", "max", "min", "dot", "var", "std", "clip", "squeeze", "ravel", "swapaxes", "reshape", "transpose",
    "any", "all", "argmax", "argmin", "argsort", "cumsum", "cumprod", "prod", "trace", "diagonal", "repeat", "round",
}  # fmt: skip


def method(c: Symbols, value: View | Lazy, name: str, args: list[Value], kwargs: Params) -> Value:
    """Call a method of a symbolic array."""
    if name in ("reshape", "transpose") and len(args) > 1:
        args = [args]
    if name in _METHODS:
        return c.call(getattr(np, name), [value, *args], kwargs)
    if name == "flatten":
        return c.copy(c.call(np.ravel, [value, *args], kwargs))
    if set(kwargs) - {"copy"}:
        raise NotCaptured(f"the method {name!r} with the arguments {sorted(kwargs)}")
    if name in ("conj", "conjugate"):  # of real numbers: itself
        return value
    if name == "copy":
        return _copy(c, value)
    if name == "astype":
        return _astype(c, value, args[0])
    if name == "item" and not args:
        return c.index(value, (0,) * len(value.shape)) if value.shape else value
    if name == "fill" and isinstance(value, View):
        c.assign(value, args[0])
        return None
    raise NotCaptured(f"the method {name!r} of an array")


def _copy(c: Symbols, value: View | Lazy) -> View | Lazy:
    """The copy of an array; a number is its own."""
    return c.copy(value, "C") if value.shape or may_be_in_place(value) else value


def _astype(c: Symbols, value: Value, dtype: DTypeLike) -> Lazy | Complex:
    lazy = c.lazy(value)
    if np.dtype(dtype).kind == "c":
        return planes.copied(c, value, dtype)
    if lazy.dtype.kind == "f" and np.dtype(dtype).kind != "f":
        raise NotCaptured("floats are converted to integers")
    found = c.new_lazy(lazy.names, lazy.shape, cast(lazy.value, np.dtype(dtype)))
    return without_axes(found, Memory.OWN) if may_be_in_place(value) else found


def call_into(c: Symbols, f: Any, args: list[Value], kwargs: Params) -> View:
    """Call a library function that writes its result to the array `out`."""
    out = kwargs["out"]
    out = out[0] if isinstance(out, tuple) and not isinstance(out, Complex) and len(out) == 1 else out
    value = c.lazy(c.call(f, args, {k: v for k, v in kwargs.items() if k != "out"}))
    if not isinstance(out, View | Lazy) or value.shape != out.shape:
        raise NotCaptured("`out` that is not an array of the result's shape")
    view = c.as_memory(out)
    c.assign(view, value)
    return view
