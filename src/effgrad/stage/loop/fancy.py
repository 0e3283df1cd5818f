"""Arrays of integers as indices, and library functions that are not maps, which are applied to whole arrays."""

import functools
import inspect
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from effgrad.arrays.value import any_traced, contiguous
from effgrad.program.resolve import call
from effgrad.stage.loop.affine import Affine, NotCaptured, affine, new_point
from effgrad.stage.loop.basic_index import full_key
from effgrad.stage.loop.buffers import INT, constant, index, integer
from effgrad.stage.loop.element import (
    ADD,
    EQUAL,
    GREATER_EQUAL,
    LESS,
    OR,
    WHERE,
    cast,
    element,
    primitive_of,
    turned,
    widened,
)
from effgrad.stage.loop.ir import OF_RULE, OF_WHOLE, Apply, Repeat, Statement, Store
from effgrad.stage.loop.operands import (
    Extent,
    Lazy,
    Value,
    View,
    broadcast,
    broadcast_shape,
    may_be_in_place,
    symbolic,
    times,
    whole_view,
)
from effgrad.stage.loop.registry import has_rule, rule
from effgrad.stage.loop.symbols import Symbols
from effgrad.vocabulary import Function, Params


def is_fancy(key: Value) -> bool:
    """Whether an index contains arrays or lists of integers."""
    keys = key if isinstance(key, tuple) else (key,)
    return any(isinstance(k, list) or (isinstance(k, View | Lazy | np.ndarray) and len(k.shape) > 0) for k in keys)


class Points:
    """The elements `x[key]` of an array, for a key that contains arrays of integers, by their indices in the result.

    The axes of the arrays' common shape stand where the arrays stand in the key, or first if the arrays are not
    adjacent.
    """

    def __init__(self, c: Symbols, shape: Sequence[Extent], key: Value) -> None:
        keys, self.extents = full_key(key, len(shape)), shape
        if any(k is None for k in keys):
            raise NotCaptured("an array as an index beside None")
        places = [k for k, given in enumerate(keys) if not isinstance(given, slice)]
        self.arrays = {k: _inside(c, keys[k], shape[k]) for k in places}
        self.slices = {k: c.slice_of(keys[k], shape[k]) for k in range(len(keys)) if k not in self.arrays}
        self.common = broadcast_shape([a.shape for a in self.arrays.values()])
        self.broadcast = {k: broadcast(a, self.common) for k, a in self.arrays.items()}
        together = len(places) == places[-1] + 1 - places[0]
        first = places[0] if together else 0
        extents = [extent for _, _, extent in self.slices.values()]
        self.shape = [*extents[:first], *self.common, *extents[first:]]
        # The axes of the result that come from the arrays.
        self.listed = range(first, first + len(self.common))
        self.tables = [(_table(keys[k]), shape[k]) for k, a in self.arrays.items() if a.shape]

    def at(self, point: Sequence[Value]) -> list[Affine]:
        """The indices into the array of an element of the result."""
        inner = [point[k] for k in self.listed]
        rest = iter([i for k, i in enumerate(point) if k not in self.listed])
        return [
            integer(cast(self.broadcast[k].element(inner), INT)) if k in self.arrays
            else self.slices[k][0] + times(next(rest), self.slices[k][1])
            for k in range(len(self.extents))
        ]  # fmt: skip

    def all_different(self) -> bool:
        """Whether no element of the array is selected twice, as far as this is known at capture."""
        known = [t % n for t, n in self.tables if t is not None and isinstance(n, int)]
        if len(known) < len(self.tables) or not all(isinstance(n, int) for n in self.common):
            return False
        rows = np.stack([np.broadcast_to(t, self.common).ravel() for t in known], axis=1)  # type: ignore[arg-type]
        return len(np.unique(rows, axis=0)) == len(rows)


def _table(key: Value) -> np.ndarray | None:
    """The integers of an index if they are known at capture, else None."""
    if isinstance(key, np.ndarray | list | tuple):
        return None if symbolic([key]) else np.asarray(key)
    if not isinstance(key, View) or key.buffer.data is None or any(b.terms for b in key.base):
        return None
    if any(not isinstance(a.step, int) for a in key.axes):
        return None
    shape = [n for n in key.shape if isinstance(n, int)]
    if len(shape) < len(key.shape):
        return None
    steps = np.indices(shape)
    place = [np.full(shape, b.constant) for b in key.base]
    for (axis, step, _), i in zip(key.axes, steps, strict=True):
        if axis is not None:
            place[axis] = place[axis] + step * i
    return np.asarray(key.buffer.data[tuple(place)])


def _inside(c: Symbols, key: Value, n: Extent) -> Lazy:
    """Return integers as indices counted from the beginning; the program checks them unless all are known."""
    keys = c.lazy(key)
    if keys.dtype.kind not in "iu":
        raise NotCaptured("an array as an index that is not of integers")
    if not keys.shape:
        return Lazy((), (), index(c.inside_axis(key, n)))
    keys = Lazy(keys.names, keys.shape, cast(keys.value, INT))
    table = widened(keys.value).args[0].data if widened(keys.value).op == "load" else None
    if table is not None and table.size and isinstance(n, int):
        low, high = int(table.min()), int(table.max())
        if low < -n or high >= n:
            raise IndexError(f"an index of {low} to {high} is out of bounds for axis with size {n}")
        if low >= 0:
            return keys
    keys, end = c.lazy(c.store(keys)), Lazy((), (), index(affine(n)), True)
    keys = c.elementwise(WHERE, c.elementwise(LESS, keys, 0), c.elementwise(ADD, keys, end), keys)
    if table is None or not isinstance(n, int):
        wrong = c.elementwise(OR, c.elementwise(GREATER_EQUAL, keys, end), c.elementwise(LESS, keys, 0))
        count = c.lazy(c.reduce(c.elementwise(WHERE, wrong, 1.0, 0.0)))
        flag = element(EQUAL, count.value, constant(0.0))
        c.check(flag, f"{c.place()}: an index is out of bounds for axis with size {n}")
    return keys


def gather(c: Symbols, value: View | Lazy, key: Value) -> Lazy:
    """`value[key]` for arrays of integers, which is a copy."""
    points = Points(c, value.shape, key)
    found = c.lazy_at(points.shape, lambda point: value.element(points.at(point)))
    if points.listed.start > 0:  # NumPy has the axes of the arrays first in memory
        found.value = turned(found.value)
    return found


def scatter(c: Symbols, view: View, key: Value, value: Value) -> None:
    """`view[key] = value` for arrays of integers. If an element is selected twice, the last value stays."""
    points = Points(c, view.shape, key)
    if points.all_different():
        c.write_at(points.shape, view, points.at, broadcast(c.lazy(value), points.shape).element)
        return
    names, point = new_point(points.shape)
    dims = list(zip(names, points.shape, strict=True))
    kept = c.store(broadcast(c.lazy(value), points.shape))
    outer, c.block = c.block, []
    together = [d for k, d in enumerate(dims) if k not in points.listed]
    c.emit(together, [Store(view.buffer, view.at(points.at(point)), c.converted(kept.element(point), view.dtype))])
    steps, c.block = c.block, outer
    write: Statement
    *materialized, write = steps  # lazy values that read the array's old elements
    for name, n in reversed([dims[k] for k in points.listed]):
        write = Repeat(name, affine(0), affine(n), 1, [write])
    c.block += [*materialized, write]


def _accumulated(sign: int, c: Symbols, array: Value, key: Value, value: Value) -> None:
    """`np.add.at(array, key, value)`, or `np.subtract.at`."""
    view, value = c.as_memory(array), c.lazy(value)
    value = value if sign > 0 else c.elementwise(primitive_of(np.negative), value)  # type: ignore[arg-type]
    if not is_fancy(key):
        part = c.index(view, key)
        if isinstance(part, View):
            c.assign(part, value, adds=True)
        else:
            buffer, place = part.value.args
            c.emit([], [Store(buffer, place, c.converted(broadcast(value, ()).value, view.dtype), adds=True)])
        return
    points = Points(c, view.shape, key)
    c.write_at(points.shape, view, points.at, broadcast(value, points.shape).element, adds=True)


_add_at = rule((np.add, "at"))(functools.partial(_accumulated, 1))
_subtract_at = rule((np.subtract, "at"))(functools.partial(_accumulated, -1))


@rule(np.ix_)
def _ix(c: Symbols, *keys: Value) -> Value:
    rank = len(keys)
    axes = [(*(None,) * k, slice(None), *(None,) * (rank - k - 1)) for k in range(rank)]
    found = [k if isinstance(k, View) else np.asarray(k) if not symbolic([k]) else c.lazy(k) for k in keys]
    return tuple(k[a] if isinstance(k, np.ndarray) else c.index(k, a) for k, a in zip(found, axes, strict=True))


# Functions that are not maps


def applied(c: Symbols, f: Value, args: Sequence[Value], kwargs: Params, fresh: bool = False) -> Value:
    """Call a library's function on whole arrays of constant shapes, by NumPy; `fresh` arguments need no copy."""
    name = getattr(f, "__name__", repr(f))
    if symbolic(list(kwargs.values())):
        raise NotCaptured(f"{name} with an array as a keyword argument")
    places = [k for k, a in enumerate(args) if isinstance(a, View | Lazy)]
    if any(symbolic([a]) for k, a in enumerate(args) if k not in places) or not places:
        raise NotCaptured(f"{name} of a list of arrays, or of a number that changes")
    inputs = [args[k] if fresh else _stored(c, args[k], name) for k in places]
    function = functools.partial(_called, f, tuple(places), tuple(args), tuple(kwargs.items()))
    if hasattr(f, "reverse"):  # a function of arrays alone
        function = f
    result, is_view = _example(function, [sample(v.buffer.shape, v.dtype) for v in inputs], name)
    _check_form(f, result, args)
    output = _output(c, name, result, is_view)
    reason = OF_RULE if has_rule(f) else OF_WHOLE
    c.block.append(Apply(function, tuple(v.buffer for v in inputs), output.buffer, name, c.place(), reason))
    if is_view:
        c.view_of(output, [args[k] for k in places])
    return output if isinstance(result, np.ndarray) else c.number(output.element(()))


def _output(c: Symbols, name: str, example: Value, is_view: bool) -> View:
    """The array that a call fills, which is like the example."""
    output = whole_view(c.buffer(name, np.shape(example), np.result_type(example)))
    output.own, output.buffer.order = True, "F" if not contiguous(example) else "A" if is_view else "K"
    c.before_write(output.buffer)
    return output


def _check_form(f: Value, result: Value, args: Sequence[Value]) -> None:
    """Refuse a result without axes of arrays without axes, which are given as numbers: it may be an array, or not."""
    if not np.ndim(result) and not isinstance(f, np.ufunc) and any(map(may_be_in_place, args)):
        raise NotCaptured(f"{getattr(f, '__name__', f)}, which has no rule, of an array without axes")


def _example(function: Function, samples: Sequence[Value], name: str) -> tuple[Value, bool]:
    """The result for example arguments, and whether it may share memory with one of them."""
    given = [np.array(s) for s in samples]
    try:
        with np.errstate(all="ignore"):
            result = function(*samples)
    except Exception as error:
        raise NotCaptured(f"{name}: {error}") from None
    if inspect.isgenerator(result) or not isinstance(result, np.ndarray | np.generic | float):
        raise NotCaptured(f"{name}, which returns a {type(result).__name__}")
    if not all(map(np.array_equal, given, samples)):
        raise NotCaptured(f"{name}, which writes to an argument")
    return result, any(np.may_share_memory(result, s) for s in samples)


def _stored(c: Symbols, value: Value, name: str) -> View:
    if not all(isinstance(n, int) for n in c.lazy(value).shape):
        raise NotCaptured(f"{name} of an array whose shape changes")
    return c.store(value)


def _called(f: Function, places: Sequence[int], args: Sequence[Value], kwargs: Value, *values: Value) -> Value:
    """Call a function with some arguments replaced; if one is traced, by the function's derivative rule."""
    filled = list(args)
    for place, value in zip(places, values, strict=True):
        filled[place] = value if np.ndim(value) else value[()]
    if any_traced(values):
        f = call(f)
    return f(*filled, **dict(kwargs))


def sample(shape: Value, dtype: Any) -> Value:
    """Example numbers of a shape, on which matrix functions are defined: symmetric, positive and distinct."""
    x: Value = 1.0 / (1.0 + np.arange(math.prod(shape)).reshape(shape))
    if len(shape) >= 2 and shape[-1] == shape[-2]:
        x = (x + np.swapaxes(x, -1, -2)) / 2 + np.diag(np.arange(shape[-1]) + shape[-1] * 1.0)
    return x.astype(dtype)[()]
