"""The operators, attributes and methods of NumPy's arrays, for traced values.

An operator applies NumPy's ufunc for it, and a method NumPy's function of the same name. So neither needs a rule.
"""

import decimal
import numbers
import operator
from typing import Any

import numpy as np

from effgrad.arrays.flags import Flags, base_of, strides_of
from effgrad.arrays.indexing import as_index
from effgrad.arrays.keys import equal
from effgrad.arrays.labelled import labelled, of_pandas, on_table
from effgrad.arrays.layout import DOUBLES, is_dense, order_of, to_dtype, without_axes
from effgrad.arrays.operator_ufuncs import BINARY, SIGNS, STEPWISE
from effgrad.arrays.protocols import Protocols
from effgrad.arrays.reach import in_order
from effgrad.arrays.signatures import check_out
from effgrad.arrays.value import (
    PLAIN_TYPES,
    UFUNCS,
    Tracer,
    contiguous,
    example,
    is_foreign,
    operations,
    outline,
    owned_by,
    perform,
    plain,
    plain_tree,
    to_operand,
)
from effgrad.errors import Detached
from effgrad.vocabulary import Axes, DTypeLike, Function, Index, Option, Tree, Value


def right_decides(other: Value) -> bool:
    """Whether NumPy would leave an operator to its right operand: a sparse matrix, a quantity with units, a table."""
    kind = type(other)
    if labelled(other):
        return not of_pandas(other)
    if hasattr(kind, "__array_ufunc__"):
        return kind.__array_ufunc__ is None or not hasattr(kind, "__array__")
    if isinstance(other, type):
        return False
    return hasattr(other, "tocsr") or (getattr(other, "__array_priority__", 0) > 0 and not hasattr(kind, "__dlpack__"))


def left_computes(value: Tracer, other: object) -> bool:
    """Whether a traced value computes an operator with `other` on the right: a number, an array, or its like.

    A traced value of another number class (`effgrad.spec`) also computes with numbers of that class.
    """
    kind = type(other)
    if isinstance(other, Tracer) or kind in PLAIN_TYPES or kind in (list, tuple, range, Flat):
        return True
    if right_decides(other):
        return False
    numeric = isinstance(other, np.ndarray | np.generic | numbers.Number | decimal.Decimal)
    return numeric or hasattr(kind, "__array__") or is_foreign(other) or kind is type(plain(value))


RESIZED = (
    "ndarray.resize changes the memory of an array, which NumPy allows only while nothing else refers to it; a "
    "derivative refers to it. Write a = np.concatenate([a.ravel(), np.zeros(n)]).reshape(shape) for n elements more, "
    "and a = a.ravel()[:n].reshape(shape) for the first n"
)


def defer_to_right(value: Tracer, other: object, name: str) -> object:
    """Leave an operator to the other operand; if it has none, raise Python's own error."""
    if hasattr(type(other), f"__r{name}__"):
        return NotImplemented
    kinds = f"'{value.__class__.__name__}' and '{type(other).__name__}'"
    raise TypeError(f"unsupported operand type(s) for {SIGNS[name]}: {kinds}")


def _binary(name: str) -> Value:
    """Return an operator with a rule, its reflection, and its form in place."""
    ufunc, operate = BINARY[name], getattr(operator, f"__{name}__")

    def forward(self: Tracer, other: Value) -> Value:
        # A shortcut past the search of `perform` in the common case: a number, or two values of one live activation.
        owner = self.owner
        if not isinstance(other, Tracer) and type(other) not in PLAIN_TYPES:
            if ufunc is np.multiply and _repeats(self, other):
                return NotImplemented
            if not left_computes(self, other):
                return defer_to_right(self, other, name)
            if of_pandas(other):
                return on_table(ufunc, (self, other))
            other = to_operand(other)
        if owner.alive and (not isinstance(other, Tracer) or owned_by(other, owner)):
            return owner.apply(UFUNCS[ufunc], self, other)
        return perform(UFUNCS[ufunc], self, other)

    def backward(self: Tracer, other: Value) -> Value:
        if type(other) not in PLAIN_TYPES:
            if of_pandas(other):
                return on_table(ufunc, (other, self))
            if ufunc is np.multiply and _repeats(self, other):
                return NotImplemented
        return UFUNCS[ufunc](to_operand(other), self)

    def inplace(self: Tracer, other: Value) -> Value:
        if type(self.primal) in DOUBLES and self.addresses() is None:  # a number, which is not changed
            return operate(self, other)
        other = to_operand(other)
        return _assigned(self, UFUNCS[ufunc](self, other), ufunc, other)

    return forward, backward, inplace


def _repeats(value: Tracer, other: object) -> bool:
    """Whether a value is an integer by which Python repeats a sequence."""
    sequence = isinstance(other, list | tuple | str | bytes | bytearray)
    return sequence and value.dtype.kind in "iu" and _is_a_number(value)


def _is_a_number(value: Tracer) -> bool:
    return value.ndim == 0 and value.addresses() is None and not isinstance(plain(value), np.ndarray)


def _assigned(array: Tracer, result: Value, ufunc: np.ufunc, other: Value) -> Value:
    """Return the array after its operator in place, or the result alone if it is a number, which is not changed."""
    if _is_a_number(array):
        return result
    if result.shape != array.shape:
        shapes = f"{array.shape} and {np.shape(other)}"
        raise ValueError(f"in-place {ufunc.__name__} of shapes {shapes} changes the shape")
    check_out(array, result, ufunc, (array, other), {})
    array.assign(result)
    return array


def _stepwise(name: str) -> Value:
    """Return the operator of a function that has no derivative, its reflection, and its form in place."""
    ufunc, operate = STEPWISE[name], getattr(operator, f"__{name}__")

    def forward(self: Tracer, other: Value) -> Value:
        return operate(plain(self), other if of_pandas(other) else plain(to_operand(other)))

    def backward(self: Tracer, other: Value) -> Value:
        return operate(plain(to_operand(other)), plain(self))

    def inplace(self: Tracer, other: Value) -> Value:
        other = to_operand(other)
        return _assigned(self, operate(self, other), ufunc, other)

    return forward, backward, inplace


def _comparison(compare: Value) -> Function:
    return lambda self, other: compare(plain(self), other if of_pandas(other) else plain(to_operand(other)))


def _method(function: Any) -> Function:
    """Return a method that calls a function of NumPy and has its name, which libraries of units look at."""

    def method(self: Tracer, *args: Value, **kwargs: Option) -> Value:
        return function(self, *args, **kwargs)

    method.__name__ = method.__qualname__ = function.__name__
    return method


# What to write in place of a view of complex numbers as pairs of real ones, and of pairs as complex numbers.
INSTEAD_OF_VIEWS = {
    "cf": "np.stack([x.real, x.imag], axis=-1)", "fc": "x[..., ::2] + 1j * x[..., 1::2]",
}  # fmt: skip

class ArrayMethods(Protocols):
    """A value with the operators, attributes and methods of an array."""

    __slots__ = ()
    __hash__ = Protocols.__hash__

    __lt__, __le__, __gt__, __ge__ = map(_comparison, (operator.lt, operator.le, operator.gt, operator.ge))
    __ne__ = _comparison(operator.ne)

    def __eq__(self, other: object) -> Value:
        return equal(self, other, plain(self) == plain(to_operand(other)))

    sum, mean, prod, max, min, var, std = map(_method, (np.sum, np.mean, np.prod, np.max, np.min, np.var, np.std))
    cumsum, cumprod, dot, trace = map(_method, (np.cumsum, np.cumprod, np.dot, np.trace))
    round, searchsorted = map(_method, (np.round, np.searchsorted))
    squeeze, ravel, diagonal, swapaxes = map(_method, (np.squeeze, np.ravel, np.diagonal, np.swapaxes))
    repeat, take, choose, nonzero, all, any = map(_method, (np.repeat, np.take, np.choose, np.nonzero, np.all, np.any))
    argmax, argmin, argsort, argpartition = map(_method, (np.argmax, np.argmin, np.argsort, np.argpartition))

    def __invert__(self) -> Value:
        return np.invert(plain(self))

    def __neg__(self) -> Value:
        return UFUNCS[np.negative](self)

    def __pos__(self) -> Value:
        is_array = not self.ndim and isinstance(self, np.ndarray)
        return UFUNCS[np.positive](self) if is_array else self.copy("K")

    def __abs__(self) -> Value:
        return UFUNCS[np.absolute](self)

    def __divmod__(self, other: Value) -> Value:
        return self // other, self % other

    def __rdivmod__(self, other: Value) -> Value:
        return other // self, other % self

    def __contains__(self, value: Value) -> bool:
        return bool(np.any(plain(self) == plain(value)))

    def copy(self, order: Value = "C") -> "Tracer":
        """Return a copy, as `numpy.ndarray.copy`. The memory order matters to functions that depend on it."""
        if order not in ("C", "F", "A", "K"):
            np.empty(0).copy(order)  # NumPy's error, if it has one
            order = str(order).upper()
        result = self.__copy__()
        if not self.ndim or (order != "F" and contiguous(result)):
            return result
        laid: Any = outline(result)
        if order == "A":
            order = order_of(laid)
        # Order "K" keeps the order of the axes, but makes strides positive and expands broadcast axes.
        there = laid.flags.f_contiguous if order == "F" else order == "K" and is_dense(laid)
        return result if there or isinstance(example(result), Tracer) else operations.laid_out(result, order=order)

    T = property(lambda self: np.transpose(self))
    real = property(lambda self: np.real(self), lambda self, value: np.real(self).__setitem__(..., value))
    imag = property(lambda self: np.imag(self), lambda self, value: _set_imaginary(self, value))
    mT = property(lambda self: np.swapaxes(self, -1, -2))
    flat = property(lambda self: Flat(self), lambda self, value: Flat(self).__setitem__(..., value))
    nbytes = property(lambda self: self.size * self.dtype.itemsize)
    itemsize = property(lambda self: self.dtype.itemsize)
    strides = property(lambda self: strides_of(self))
    flags = property(lambda self: Flags(self))
    base = property(lambda self: base_of(self))
    device = "cpu"

    def to_device(self, device: str, stream: object = None) -> Value:
        if device != "cpu":
            raise ValueError(f"NumPy's only device is 'cpu', not {device!r}")
        return self

    def fill(self, value: Value) -> None:
        if np.ndim(plain(value)):
            np.empty(1).fill(plain(value))  # NumPy's error for more than one number
        self[...] = value

    def setflags(self, write: Option = None, align: Option = None, uic: Option = None) -> None:
        np.empty(self.shape, self.dtype).setflags(write=write, align=align, uic=uic)  # NumPy's errors
        if write is not None:
            self.protect(bool(write))

    def protect(self, write: bool) -> None:
        """Allow or forbid writes to the array; an array without memory of its own ignores it."""

    def put(self, indices: Index, values: Value, mode: Option = "raise") -> None:
        np.put(self, indices, values, mode)  # type: ignore[arg-type]

    def sort(self, axis: int = -1, kind: Any = None, order: Option = None, *, stable: Option = None) -> None:
        self[...] = np.sort(self, axis, kind, order, stable=stable)

    def partition(self, kth: Option, axis: int = -1, kind: Option = "introselect", order: Option = None) -> None:
        self[...] = np.partition(self, kth, axis, kind, order)

    def resize(self, *new_shape: Option, refcheck: bool = True) -> None:
        raise Detached(RESIZED)

    def compress(self, condition: Value, axis: int | None = None) -> Value:
        return np.compress(condition, self, axis)

    def tolist(self) -> Value:
        return [item.tolist() for item in self] if self.ndim else operations.as_pythons(self[()])

    def view(self, dtype: DTypeLike = None) -> Value:
        if isinstance(dtype, type) and issubclass(dtype, np.ndarray):
            if dtype is not np.ndarray:
                return operations.view_as(self, dtype)
            dtype = None
        if isinstance(dtype, Tracer):
            np.empty(0).view(plain(dtype))  # NumPy's error
        if dtype is not None and (seen := to_dtype(dtype)) != self.dtype:
            advice = INSTEAD_OF_VIEWS.get(self.dtype.kind + seen.kind, "x.astype(dtype)")
            raise Detached(f"a traced array of {self.dtype} was viewed as {seen}: use {advice}")
        return self[...]

    def astype(self, dtype: DTypeLike, order: Option = "K", *, copy: bool = True, **options: Option) -> Value:
        dtype = plain(dtype)
        if options or isinstance(dtype, np.ndarray):
            np.empty(0, self.dtype).astype(dtype, **options)  # NumPy's error about casting, if it has one
        if not copy and self.dtype == dtype:
            return in_order(self, order)
        dtype = to_dtype(dtype)
        if self.dtype.kind == "c" and dtype.kind == "f":
            raise Detached(f"a complex array was cast to {dtype}, and would lose a part: use x.real")
        if dtype.names is not None:
            raise Detached(
                "an array was cast to records, and would lose its derivative: make the array with np.zeros(n, dtype), "
                "and write each field"
            )
        # A cast to integers or booleans is constant almost everywhere, so it is applied to the plain value.
        result = in_order(operations.astype(self if dtype.kind in "fcO" else plain(self), dtype=dtype), order)
        return without_axes(result) if not self.ndim and isinstance(self, np.ndarray) else result

    def conjugate(self) -> Value:
        return np.conjugate(self) if self.dtype.kind == "c" else self

    conj = conjugate

    def reshape(self, *shape: Value, **options: Option) -> Value:
        if not shape and not options:
            np.empty(0).reshape()  # type: ignore[call-overload]  # NumPy's error
        return np.reshape(self, shape[0] if len(shape) == 1 else shape, **options)

    def transpose(self, *axes: Axes) -> Value:
        return np.transpose(self, axes[0] if len(axes) == 1 else axes or None)

    def clip(self, min: Value = None, max: Value = None, out: Option = None, **options: Option) -> Value:
        return np.clip(self, min, max, out, **options)

    def flatten(self, order: Option = "C") -> Value:
        return np.ravel(self, order).copy()

    def is_integer(self) -> bool:
        inside = plain(self)
        return bool(np.isfinite(inside) & (np.trunc(inside) == inside))

    def item(self, *place: Value) -> Value:
        np.asarray(outline(self)).item(*plain_tree(place))  # NumPy's error for what is no place
        if not place:
            place = ((0,) * self.ndim,)
        if len(place) == 1:
            (number,) = plain_tree(place)
            place = number if isinstance(number, tuple) else np.unravel_index(number % self.size, self.shape)
        return operations.as_pythons(self[place])


for _name in BINARY:
    for _way, _operator in zip(("", "r", "i"), (_stepwise if _name in STEPWISE else _binary)(_name), strict=True):
        setattr(ArrayMethods, f"__{_way}{_name}__", _operator)


class Flat:
    """The iterator `array.flat`: the elements in C order, which can be indexed and written to."""

    def __init__(self, array: Value) -> None:
        self.array, self.index = array, 0

    holds_traced = True
    all_elements = property(lambda self: self.array.flatten())

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Value, **kwargs: Option) -> Value:
        return getattr(ufunc, method)(*_with_elements(inputs), **kwargs)

    def __array_function__(self, function: Function, types: Option, args: Value, kwargs: Option) -> Value:
        return function(*_with_elements(args), **_with_elements(kwargs))

    def __len__(self) -> int:
        return int(self.array.size)

    def __iter__(self) -> "Flat":
        return self

    def __next__(self) -> Value:
        if self.index == len(self):
            raise StopIteration
        self.index += 1
        return self[self.index - 1]

    @property
    def coords(self) -> tuple[Value, ...]:
        shape = self.array.shape
        return tuple(map(int, np.unravel_index(self.index, shape))) if self.index < len(self) else shape

    def __getitem__(self, index: Index) -> Value:
        found = np.ravel(self.array)[as_index(index)]
        return found.copy() if found.shape else found

    def __setitem__(self, index: Index, value: Value) -> None:
        np.put(self.array, np.arange(self.array.size)[as_index(index)], value)


def _set_imaginary(array: Tracer, value: Value) -> None:
    if array.dtype.kind != "c":
        raise TypeError("array does not have imaginary part to set")
    np.imag(array)[...] = value


def _with_elements(tree: Tree) -> Value:
    """Return arguments with each `array.flat` replaced by an array of its elements."""
    if type(tree) in (list, tuple):
        return type(tree)(map(_with_elements, tree))
    if type(tree) is dict:
        return {key: _with_elements(value) for key, value in tree.items()}
    return getattr(tree, "all_elements", tree)
