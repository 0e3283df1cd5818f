"""Deferred values: results of a staged program's run on the example that are computed only if they are needed.

An operation on large arrays is not carried out while it is recorded, if the shape, the dtype and the memory layout of
its result follow from those of its arguments. It is carried out, after all deferred operations that it depends on, when
Python asks for the value in a branch, or when it is passed to a function for which this module has no rule.

How a result lies in memory is NumPy's answer for arrays of at most two elements along each axis, which lie in memory as
the arguments do: NumPy decides by the order of the strides alone.
"""

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from effgrad.arrays.layout import extent, memory_like, with_strides
from effgrad.arrays.value import contiguous
from effgrad.primitives.indices import reduced_axes
from effgrad.primitives.move import astype
from effgrad.primitives.primitive import Primitive
from effgrad.primitives.product import einsum, matmul
from effgrad.primitives.reduction import maximum_of, minimum_of, sum_
from effgrad.vocabulary import Array, DType, Params, Value

# Operations on arrays of fewer elements are carried out: that takes less time than inferring shape, dtype and layout.
DEFERRED_SIZE = 1 << 14

# Python's comparisons and logical operators, which act on arrays element by element.
TRUTH_OPERATORS = {
    operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
    operator.and_, operator.or_, operator.xor, operator.invert,
}  # fmt: skip


class Deferred:
    """A deferred value: it holds the operation that computes it until the value is needed.

    `isinstance` takes it for an instance of its `kind`. The `strides`, in elements, say how an array lies in memory;
    they are None if that is not known. The `root` of a view is that of the value whose memory it shares; every other
    value is its own root.
    """

    __slots__ = ("operation", "value", "kind", "shape", "dtype", "strides", "root")

    def __init__(
        self, kind: type, shape: tuple[int, ...], dtype: DType, strides: tuple[int, ...] | None,
        root: "Deferred | None" = None,
    ) -> None:  # fmt: skip
        self.kind, self.shape, self.dtype, self.strides, self.root = kind, shape, dtype, strides, root or self
        self.operation: tuple[Primitive, Sequence[Any], dict[str, Any]] | None = None
        self.value: Value = None

    __class__ = property(lambda self: self.kind)
    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))

    def __len__(self) -> int:
        return len(np.empty(self.shape, np.bool_))

    @property
    def ordered(self) -> bool:
        """Whether it is certainly in C order in memory, without gaps."""
        if self.strides is None:
            return False
        steps = zip(self.shape, self.strides, _packed(self.shape), strict=True)
        return all(step == packed for n, step, packed in steps if n > 1)

    def outline(self, dtype: DType) -> Array | None:
        """Return an array of zeros with its shape and strides; None if these are not known."""
        if self.strides is None:
            return None
        return np.zeros(self.shape, dtype) if self.ordered else _zeros(self.shape, self.strides, dtype)


def _zeros(shape: tuple[int, ...], strides: Sequence[int], dtype: DType) -> Array:
    """Return an array of zeros with these strides, in elements."""
    return with_strides(np.zeros(extent(shape, strides), dtype), shape, strides)


def _steps(array: Array) -> tuple[int, ...]:
    """Return the strides of an array, in elements."""
    return tuple([step // array.itemsize for step in array.strides])


def _packed(shape: tuple[int, ...], like: Sequence[int] | None = None) -> tuple[int, ...]:
    """Return the strides, in elements, of an array without gaps: in C order, or with its axes in the order of `like`.

    Axes of stride 0 repeat the elements, and keep it.
    """
    axes: Sequence[int] = range(len(shape) - 1, -1, -1)
    if like is not None:
        axes = sorted(axes, key=lambda axis: abs(like[axis]))
    steps, step = [0] * len(shape), 1
    for axis in axes:
        if like is None or like[axis]:
            steps[axis] = step
            step *= shape[axis]
    return tuple(steps)


def _sample(value: Value) -> Value:
    """Return a value of the same type with at most two elements along each axis, which lie in memory as its own do."""
    if type(value) is np.ndarray:
        return value[(slice(2),) * value.ndim]
    if type(value) is not Deferred:
        return value
    kind: Any = value.kind
    if kind is not np.ndarray:
        return kind(1)
    shape = tuple([min(n, 2) for n in value.shape])
    if value.strides is None or value.ordered:
        return np.ones(shape, value.dtype)
    sample = _zeros(shape, _packed(shape, value.strides), value.dtype)
    sample.fill(1)
    return sample


def _typed_as(one: Value, shape: tuple[int, ...], args: Sequence[Value]) -> Deferred:
    """Return a deferred value of this shape that is in all else like `one`, the result for samples of the arguments."""
    known = not any(type(a) is Deferred and a.strides is None for a in args)
    strides = _packed(shape, one.strides if shape else ()) if known else None
    return Deferred(one.__class__, shape, np.result_type(one), strides)


def force(value: Value) -> Value:
    """Return a value; if it is deferred, carry out its operation and the deferred operations that it depends on."""
    if type(value) is not Deferred:
        return value
    waiting = [value]
    while waiting:
        last = waiting[-1]
        if last.operation is not None:
            primitive, args, params = last.operation
            missing = [a for a in args if type(a) is Deferred and a.operation is not None]
            if missing:
                waiting += missing
                continue
            last.value = primitive.function(*[a.value if type(a) is Deferred else a for a in args], **params)
            last.operation = None
        waiting.pop()
    return value.value


def small(value: Value) -> Value:
    """Return a value of the same type with one element: an array of ones of as many axes, or the number one."""
    if type(value) is not Deferred and type(value) is not np.ndarray:
        return value
    kind: Any = value.__class__
    return kind(1) if kind is not np.ndarray else np.ones((1,) * value.ndim, value.dtype)


def result(primitive: Primitive, args: Sequence[Value], params: Params) -> Value:
    """Return the result of an operation, deferred for large arrays, and for loops, which would have to be compiled."""
    if primitive.yields is None:
        for a in args:
            if type(a) is Deferred or (type(a) is np.ndarray and a.size >= DEFERRED_SIZE):
                break
        else:
            return primitive.function(*args, **params)
    inferred = infer_result(primitive, args, params)
    if inferred is None:
        return primitive.function(*map(force, args), **params)
    # The program may overwrite an argument later, so the deferred operation keeps its present value.
    inferred.operation = primitive, [_as_now(a) for a in args], params
    return inferred


def _as_now(a: Value) -> Value:
    """Return an argument that later writes cannot change; a large array in C order is already a copy, or an input."""
    if type(a) is not np.ndarray or not a.flags.writeable or (a.size >= DEFERRED_SIZE and a.flags.c_contiguous):
        return a
    copy = memory_like(a, shared=True)
    copy[...] = a
    return copy


def share_memory(a: Value, b: Value) -> bool:
    """Whether two values share memory."""
    if type(a) is Deferred and type(b) is Deferred:
        return a.root is b.root
    a, b = (x.value if type(x) is Deferred else x for x in (a, b))
    return a is not None and b is not None and np.may_share_memory(a, b)


def infer_result(primitive: Primitive, args: Sequence[Value], params: Params) -> Deferred | None:
    """Return the deferred result of an operation; None if its shape, dtype and layout cannot be inferred."""
    if primitive.function in (float, complex):  # a number becomes Python's
        kind: Any = primitive.function
        return Deferred(kind, (), np.dtype(kind), ())
    rule = _viewed if primitive.view else _joined if primitive.places else _RULES.get(primitive)
    if primitive.yields is not None:
        shape, dtype = primitive.yields(**params)
        return Deferred(np.ndarray if shape else dtype.type, shape, dtype, _packed(shape))
    if rule is None and not params and _elementwise(primitive):
        rule = _broadcast
    if rule is None or not all(isinstance(a, np.ndarray | np.generic | float | int | complex) for a in args):
        return None
    try:
        with np.errstate(all="ignore"):
            return rule(primitive, args, params)
    except (ValueError, TypeError, IndexError):  # the operation itself, carried out next, raises the best message
        return None


def _elementwise(primitive: Primitive) -> bool:
    function: Any = primitive.function
    if primitive.kind == "constant":
        return function in TRUTH_OPERATORS or (isinstance(function, np.ufunc) and function.signature is None)
    return primitive.kind == "elementwise"


def _broadcast(primitive: Primitive, args: Sequence[Value], params: Params) -> Deferred:
    shape = np.broadcast_shapes(*map(np.shape, args))
    return _typed_as(primitive.function(*map(_sample, args)), shape, args)


def _converted(primitive: Primitive, args: Sequence[Value], params: Params) -> Deferred:
    (x,) = args
    return _typed_as(primitive.function(_sample(x), **params), x.shape, args)


def _reduced(primitive: Primitive, args: Sequence[Value], params: Params) -> Deferred | None:
    ((x,), axis) = args, params["axis"]
    one = primitive.function(_sample(x), axis=axis)
    axes = reduced_axes(axis, x.ndim)
    if 0 in x.shape:
        return None
    return _typed_as(one, tuple(n for i, n in enumerate(x.shape) if i not in axes), args)


def _product(primitive: Primitive, args: Sequence[Value], params: Params) -> Deferred | None:
    one = primitive.function(*map(_sample, args))
    a, b = map(np.shape, args)
    rows, columns = a[-2:-1], b[-1:] if len(b) > 1 else ()
    if a[-1] != (b[-2] if len(b) > 1 else b[0]):
        return None
    return _typed_as(one, (*np.broadcast_shapes(a[:-2], b[:-2]), *rows, *columns), args)


def _contracted(primitive: Primitive, args: Sequence[Value], params: Params) -> Deferred | None:
    inputs, output = params["subscripts"].split("->")
    sizes: dict[str, int] = {}
    for term, x in zip(inputs.split(","), args, strict=True):
        for letter, n in zip(term, np.shape(x), strict=True):
            if sizes.setdefault(letter, n) != n:
                return None
    if len(args) == 1:  # may be a view
        return None
    result = _typed_as(primitive.function(*map(_sample, args), **params), tuple(sizes[k] for k in output), args)
    if len(args) > 2 or params.get("optimize"):  # by products of matrices, whose order depends on the sizes
        result.strides = None
    return result


def _viewed(primitive: Primitive, args: Sequence[Value], params: Params) -> Deferred | None:
    """Return the deferred result of a move of one array, which may be a view; None if it cannot be inferred.

    The move is tried on an array that is never read. Whether it gives a view depends on the memory layout only if it
    merges axes; if the layout is not known, the trials in C and in Fortran order then disagree, and the move is not
    deferred.
    """
    (x,) = args
    deferred = type(x) is Deferred
    if not deferred and not isinstance(x, np.ndarray):
        return None
    outline = x.outline(np.dtype(bool)) if deferred else memory_like(x, np.bool_)
    memory = np.empty(x.shape, np.bool_) if outline is None else outline
    seen, shares = trial_move(primitive, memory, params)
    if not deferred and (shares or type(seen) is not np.ndarray):
        return None  # carrying it out takes no time
    if type(seen) is not np.ndarray:
        return Deferred(x.dtype.type, (), x.dtype, ())
    if outline is None and shares != trial_move(primitive, np.empty(x.shape, np.bool_, "F"), params)[1]:
        return None
    strides = None if outline is None else _steps(seen)
    return Deferred(np.ndarray, seen.shape, x.dtype, strides, x.root if shares and deferred else None)


def trial_move(primitive: Primitive, memory: Array, params: Params) -> tuple[Value, bool]:
    """Return the result of a move of an array that is never read, and whether they share memory."""
    seen = primitive.function(memory, **params)
    return seen, np.may_share_memory(seen, memory)


def _joined(primitive: Primitive, args: Sequence[Value], params: Params) -> Deferred | None:
    places, _ = primitive.places([np.shape(x) for x in args], **params)
    shape = tuple(places)
    # A join that adds up its pieces writes them into an array of zeros, which is in C order.
    known = not primitive.moves or all(x.ordered if type(x) is Deferred else contiguous(x) for x in args)
    return Deferred(np.ndarray, shape, np.result_type(*args), _packed(shape) if known else None)


_Rule = Callable[[Primitive, Sequence[Any], dict[str, Any]], Deferred | None]
_RULES: dict[Primitive, _Rule] = {
    sum_: _reduced, maximum_of: _reduced, minimum_of: _reduced, matmul: _product, einsum: _contracted,
    astype: _converted,
}  # fmt: skip
