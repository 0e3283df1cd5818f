"""Arrays of integers as indices, and functions that are no maps: these are applied to whole arrays."""

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from effgrad.arrays.value import any_traced
from effgrad.program.resolve import call
from effgrad.stage.loop.affine import Affine, NotCaptured, affine, fresh, variable
from effgrad.stage.loop.element import WHERE, cast, element, primitive_of, widened
from effgrad.stage.loop.ir import INT, Apply, Check, Store, constant, index, integer
from effgrad.stage.loop.operands import Extent, Lazy, View, symbolic, whole_view
from effgrad.stage.loop.symbols import Symbols


def is_fancy(key: Any) -> bool:
    """Whether an index has arrays or lists of integers in it."""
    keys = key if isinstance(key, tuple) else (key,)
    return any(isinstance(k, list) or (isinstance(k, View | Lazy | np.ndarray) and len(k.shape) > 0) for k in keys)


Places = Callable[[Sequence[Any]], list[Affine]]


def _fancy_points(c: Symbols, shape: Sequence[Extent], key: Any) -> tuple[list[Extent], Places]:
    """The shape of `x[key]`, and the place in `x` of each of its points; the arrays of the key are neighbours."""
    keys = list(key) if isinstance(key, tuple) else [key]
    if any(k is Ellipsis or k is None for k in keys):
        raise NotCaptured("an array as an index beside `...` or None")
    keys += [slice(None)] * (len(shape) - len(keys))
    arrays = {place: _inside(c, c.lazy(k), shape[place]) for place, k in enumerate(keys) if not isinstance(k, slice)}
    first, last = min(arrays), max(arrays)
    if len(arrays) != last + 1 - first:
        raise NotCaptured("arrays as indices that are not next to each other")
    common = c.broadcast_shape([a.shape for a in arrays.values()])
    slices = {k: c.slice_of(keys[k], shape[k]) for k in range(len(keys)) if k not in arrays}
    result = [*[slices[k][2] for k in range(first)], *common, *[slices[k][2] for k in range(last + 1, len(keys))]]

    def at(point: Sequence[Any]) -> list[Affine]:
        inner = point[first : first + len(common)]
        rest = iter([*point[:first], *point[first + len(common) :]])
        return [
            integer(cast(c.broadcast(arrays[k], common).element(inner), INT)) if k in arrays
            else slices[k][0] + affine(next(rest)) * slices[k][1]
            for k, n in enumerate(shape)
        ]  # fmt: skip

    return result, at


def _inside(c: Symbols, keys: Lazy, n: Extent) -> Lazy:
    """Integers as indices counted from the beginning: known to lie inside, or checked by the program."""
    if keys.dtype.kind not in "iu":
        raise NotCaptured("an array as an index that is not of integers")
    keys = Lazy(keys.names, keys.shape, cast(keys.value, INT))
    table = keys.value.args[0].data if keys.value.op == "load" else None
    if table is not None and table.size and isinstance(n, int):
        low, high = int(table.min()), int(table.max())
        if low < -n or high >= n:
            raise IndexError(f"an index of {low} to {high} is out of bounds for axis with size {n}")
        if low >= 0:
            return keys
    keys = c.lazy(c.store(keys))
    later = c.elementwise(primitive_of(np.add), keys, Lazy((), (), index(affine(n)), True))  # type: ignore[arg-type]
    keys = c.elementwise(WHERE, c.elementwise(primitive_of(np.less), keys, 0), later, keys)  # type: ignore[arg-type]
    if table is None:
        above = c.elementwise(primitive_of(np.greater_equal), keys, Lazy((), (), index(affine(n)), True))  # type: ignore[arg-type]
        below = c.elementwise(primitive_of(np.less), keys, 0)  # type: ignore[arg-type]
        wrong = c.elementwise(primitive_of(np.logical_or), above, below)  # type: ignore[arg-type]
        count = c.lazy(c.reduce(c.elementwise(WHERE, wrong, 1.0, 0.0)))
        flag = element(primitive_of(np.equal), count.value, constant(0.0))  # type: ignore[arg-type]
        c.block.append(Check(flag, f"{c.place()}: an index is out of bounds for axis with size {n}"))
    return keys


def gather(c: Symbols, value: View | Lazy, key: Any) -> Lazy:
    """`value[key]` for arrays of integers: a copy."""
    shape, at = _fancy_points(c, value.shape, key)
    names = [fresh("e") for _ in shape]
    return c.made(names, shape, value.element(at([variable(n) for n in names])))


def scatter(c: Symbols, view: View, key: Any, value: Any) -> None:
    """`view[key] = value` for arrays of integers that are all different."""
    shape, at = _fancy_points(c, view.shape, key)
    keys = [k for k in (key if isinstance(key, tuple) else (key,)) if not isinstance(k, slice)]
    tables = [k for k in keys if isinstance(k, np.ndarray | list)] or [
        widened(k.element([0] * len(k.shape))).args[0].data for k in keys if isinstance(k, View)
    ]
    if len(keys) != 1 or len(tables) != 1 or tables[0] is None or len(np.unique(tables[0])) < np.size(tables[0]):
        raise NotCaptured("elements are written at indices that may be equal")
    names = [fresh("e") for _ in shape]
    point = [variable(n) for n in names]
    e = c.converted(c.broadcast(c.lazy(value), shape).element(point), view.dtype)
    c.emit(list(zip(names, shape, strict=True)), [Store(view.buffer, view.at(at(point)), e)])


# Everything else


def applied(c: Symbols, f: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """A call of a library's function on whole arrays of constant shapes, by NumPy."""
    name = getattr(f, "__name__", repr(f))
    if symbolic(list(kwargs.values())):
        raise NotCaptured(f"{name} with an array as a keyword argument")
    places = [k for k, a in enumerate(args) if isinstance(a, View | Lazy)]
    if any(symbolic([a]) for k, a in enumerate(args) if k not in places) or not places:
        raise NotCaptured(f"{name} of a list of arrays, or of a number that changes")
    inputs = [_stored(c, args[k], name) for k in places]
    function = functools.partial(_called, f, tuple(places), tuple(args), tuple(kwargs.items()))
    if hasattr(f, "reverse"):  # a function of arrays alone
        function = f
    try:
        with np.errstate(all="ignore"):
            result = function(*[sample(v.buffer.shape, v.dtype) for v in inputs])
    except Exception as error:
        raise NotCaptured(f"{name}: {error}") from None
    if inspect.isgenerator(result) or not isinstance(result, np.ndarray | np.generic | float):
        raise NotCaptured(f"{name}, which returns a {type(result).__name__}")
    output = whole_view(c.buffer(name, np.shape(result), np.result_type(result)))
    c.before_write(output.buffer)
    c.block.append(Apply(function, tuple(v.buffer for v in inputs), output.buffer, name))
    output.own = True
    return output if output.axes else c.number(output.element(()))


def _stored(c: Symbols, value: Any, name: str) -> View:
    if not all(isinstance(n, int) for n in c.lazy(value).shape):
        raise NotCaptured(f"{name} of an array whose shape changes")
    return c.store(value)


def _called(f: Any, places: Sequence[int], args: Sequence[Any], kwargs: Any, *values: Any) -> Any:
    """A function with some arguments replaced, by its rule if one is traced."""
    filled = list(args)
    for place, value in zip(places, values, strict=True):
        filled[place] = value
    if any_traced(values):
        f = call(f)
    return f(*filled, **dict(kwargs))


def sample(shape: Any, dtype: Any) -> Any:
    """Numbers of a shape, on which functions of matrices are defined: symmetric, positive, all different."""
    x: Any = 1.0 / (1.0 + np.arange(math.prod(shape)).reshape(shape))
    if len(shape) >= 2 and shape[-1] == shape[-2]:
        x = (x + np.swapaxes(x, -1, -2)) / 2 + np.diag(np.arange(shape[-1]) + shape[-1] * 1.0)
    return x.astype(dtype)[()]
