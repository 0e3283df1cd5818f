"""The values of a staged program: each stands for a plain value, and operations on it become nodes of the graph.

When Python needs a concrete value, in `if`, `range` or an index, it gets the example's value, and a guard is recorded.
"""

import functools
import inspect
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from effgrad.arrays import value as traced
from effgrad.arrays.batched_value import Batched
from effgrad.arrays.keys import key_hash
from effgrad.arrays.layout import OF_SHARING
from effgrad.arrays.operator_ufuncs import COMPARISONS, STEPWISE
from effgrad.arrays.signatures import gives_out, required_by_position
from effgrad.arrays.traced import TracedArray, take_shape
from effgrad.arrays.value import COMPOSED, CONSTANT, FUNCTIONS, UFUNCS, Tracer
from effgrad.errors import EscapedValue
from effgrad.nested import leaves
from effgrad.primitives.constants import BITS, CONSTANTS, ROWS
from effgrad.primitives.given import without_overwriting
from effgrad.primitives.primitive import Primitive, constant
from effgrad.stage.deferred import Deferred, force, share_memory, small
from effgrad.stage.nodes import UNRULED, ByName, ResultOf
from effgrad.vocabulary import Array, DTypeLike, Function, Option, Params, Tree, Value

# Functions that read only the shapes and dtypes of their arguments.
SHAPE_ONLY = {
    np.result_type,
    np.can_cast,
    np.iscomplexobj,
    np.isrealobj,
    np.common_type,
}
# Functions whose result has a shape, or a text, that depends on values.
SHAPED_BY_DATA = {
    np.nonzero, np.flatnonzero, np.argwhere, np.unique, np.unique_values, np.intersect1d, np.array_repr, np.array_str,
    np.array2string,
}  # fmt: skip
ASKING_FOR_ZEROS = {np.nonzero, np.flatnonzero, np.argwhere}
LOGICAL = {np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert}
_TYPED = {np.float64, np.ndarray}


@functools.cache
def constant_primitive(function: Function) -> Primitive:
    """Return the primitive that applies a function without a derivative: a comparison, rounding, argmax, ..."""
    if function in CONSTANTS or function in BITS:
        return CONSTANTS.get(function) or BITS[function]
    row = ROWS.get(function)
    if row is None:
        return constant(function)
    return constant(function, text=row.text, neutral=row.neutral, code=row.code, counterpart=row.counterpart)


@functools.cache
def unruled_primitive(function: Function) -> Primitive:
    """Return the primitive of a function that has no rule, so that the shape of its result may change between runs."""
    return Primitive(function.__name__, function, UNRULED, (), ())


@functools.cache
def by_name(function: Function, names: tuple[str, ...]) -> Function:
    """Return a function that passes its last arguments by these names."""
    return ByName(function, names) if names else function


@functools.cache
def part_primitive(primitive: Primitive, number: int) -> Primitive:
    """Return the primitive that gives one of the several results of a function."""
    return Primitive(primitive.name, ResultOf(primitive.function, number), primitive.kind, (), ())


def _under_derivative(tree: Tree) -> bool:
    """Whether an argument is of a derivative or a batch inside the staged program; a function of it needs a rule."""
    return any(
        isinstance(leaf, Tracer) and type(leaf) is not Staged and isinstance(traced.plain(leaf), Tracer)
        for leaf in leaves(tree)
    )


def _batched_above(value: "Staged", tree: Tree) -> bool:
    """Whether an argument is of a batch inside the staged program, whose operations perform those of the program."""
    below = [traced.plain(leaf) for leaf in leaves(tree) if isinstance(leaf, Tracer) and type(leaf) is not Staged]
    return any(type(leaf) is Batched and leaf.owner.serial > value.owner.serial for leaf in below)


def _by_position(function: Function, args: Sequence[Value], kwargs: Params) -> tuple[Function, Sequence[Value], Params]:
    """Return a call with its staged options by position, where a node has its inputs; integers (axes) are guarded."""
    staged = {name: value for name, value in kwargs.items() if isinstance(value, Tracer)}
    names = tuple(name for name, value in staged.items() if value.dtype.kind in "fc" or value.ndim)
    rest = {name: guarded_value(value) for name, value in kwargs.items() if name not in names}
    return by_name(function, names), [*args, *[staged[name] for name in names]], rest


def _as_one_operation(function: Function, args: Value, kwargs: Value) -> Value | None:
    """Record a call as one operation; return None if a derivative needs its rule, or if the call makes a view."""
    ruled, given = function in FUNCTIONS, (args, tuple(kwargs.values()))
    # If an argument is a function, the values that it closes over would not be recorded.
    if ruled and (function not in COMPOSED or any(map(inspect.isroutine, args))):
        return None
    if _under_derivative(given):
        return None
    args, kwargs = without_overwriting(function, args, kwargs)  # other nodes may read its arguments
    function, args, kwargs = _by_position(function, args, kwargs)
    if traced.staging(args) is None:
        return None
    result = record(unruled_primitive(function), *args, **kwargs)
    return None if ruled and _shares_memory(result, given) else result


def _shares_memory(result: Tree, args: Tree) -> bool:
    """Whether a result is an argument or a view of it, as of `np.diff(x, n=0)`, whose writes would be lost."""
    owner = traced.staging(leaves(args))
    arrays = [owner.example_of(leaf) for leaf in leaves(args) if np.ndim(leaf)]
    results = leaves(list(result) if isinstance(result, tuple) else result)  # it may be a named tuple
    return any(share_memory(example_value(r), a) for r in results if np.ndim(r) for a in arrays)


class Staged(TracedArray):
    """A value of a staged program. Its primal is the value on the example, perhaps deferred; its shadow is its node."""

    __slots__ = ()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Value, **kwargs: Option) -> Value:
        if _batched_above(self, inputs):
            return NotImplemented
        if method == "__call__" and not kwargs and all(type(example_value(x)) is int for x in inputs):
            if np.result_type(ufunc(*map(example_value, inputs))).kind != "f":  # NumPy's integer, not Python's
                return ufunc(*map(guarded_value, inputs))
        if method == "__call__" and not kwargs and ufunc not in UFUNCS:
            if ufunc in CONSTANT or ufunc in LOGICAL or not _under_derivative(inputs):
                return record(constant_primitive(ufunc), *inputs)
        return super().__array_ufunc__(ufunc, method, *inputs, **kwargs)

    def __array_function__(self, function: Function, types: Value, args: Value, kwargs: Value) -> Value:
        if _batched_above(self, (args, tuple(kwargs.values()))):
            return self.beside_batch(function, types, args, kwargs)
        if kwargs:
            args, kwargs = required_by_position(function, args, kwargs)
        if gives_out(function, args, kwargs):
            return super().__array_function__(function, types, args, kwargs)
        if function in OF_SHARING:
            return FUNCTIONS[function](*args, **kwargs)
        if function in SHAPE_ONLY:
            return function(*[small(example_value(a)) for a in args], **kwargs)
        if function in SHAPED_BY_DATA and not _under_derivative(args):
            return function(*_asked(function, args), **kwargs)
        if function in CONSTANT:  # the keys of a lexsort, a tuple of arrays, become the rows of one array
            args = [np.stack(a) if type(a) in (tuple, list) and traced.traced_inside(a) else a for a in args]
            function, args, kwargs = _by_position(function, args, kwargs)
            return record(constant_primitive(function), *args, **kwargs)
        if (result := _as_one_operation(function, args, kwargs)) is not None:
            return result
        return super().__array_function__(function, types, args, kwargs)

    def shares(self, other: Value) -> bool:
        return share_memory(example_value(self), example_value(other))

    def beside_batch(self, function: Function, types: Value, args: Value, kwargs: Value) -> Value:
        """Apply a function to members of a batch too, by its rule, or else leave it to the batch."""
        if function in FUNCTIONS and function not in COMPOSED:
            return super().__array_function__(function, types, args, kwargs)
        return NotImplemented

    def __bool__(self) -> bool:
        return bool(guarded_value(self != 0 if self.dtype.kind in "fc" else self))

    def __int__(self) -> int:
        return int(guarded_value(np.trunc(self) if self.dtype.kind == "f" else self))

    def __round__(self, digits: int | None = None) -> Value:
        return round(guarded_value(self), digits)

    def array_to_index(self, array: Any, index: Any) -> Any:
        """Return the array as a constant of the program; one of objects, records or dates stays plain, with a guard."""
        constant = self.dtype.kind in "iu" and array.dtype.kind not in "OVmM"
        return Staged(self.owner, array, self.owner.argument(array)) if constant else array

    def __index__(self) -> int:
        # NumPy may call this for an exponent. No guard is needed where the answer is Python's error for a float.
        whole = np.result_type(self.value_below()).kind in "iub"
        return operator.index(guarded_value(self) if whole else self.value_below())

    def __hash__(self) -> int:
        return key_hash(self, guarded_value(self))

    def __float__(self) -> float:
        return float(guarded_value(self))

    def __complex__(self) -> complex:
        return complex(guarded_value(self))

    def decide(self) -> None:
        guarded_value(self)

    def __array__(self, dtype: DTypeLike = None, copy: Value = None) -> Array:
        return np.array(guarded_value(self), dtype)

    def astype(self, dtype: DTypeLike, *args: Option, **options: Option) -> Value:
        if dtype in (object, np.dtype(object)) and self.dtype.kind in "biu":  # objects are constants of one path
            return guarded_value(self).astype(dtype, *args, **options)
        return super().astype(dtype, *args, **options)

    def view(self, *args: Option, **options: Option) -> Value:
        if self.dtype.kind != "b" or args in ((), (bool,), (np.bool_,)):
            return super().view(*args, **options)
        seen = np.array(guarded_value(self)).view(*args, **options)
        seen.flags.writeable = False  # a write would not reach the program's array
        return seen

    def __len__(self) -> int:
        return len(self.primal)

    def __invert__(self) -> Value:
        truth = not np.ndim(self.primal) and self.dtype.kind == "b"
        return np.logical_not(self) if truth else np.invert(self)

    def __repr__(self) -> str:
        return f"Staged({self.value_below()!r})"

    def shown(self) -> Any:
        decides = isinstance(self.primal, int | np.integer) or self.dtype.kind in "US"  # it may become part of a name
        return guarded_value(self) if decides else self.value_below()

    def value_below(self, form: bool = False) -> Value:
        value = self.primal
        if form and type(value) is Deferred and value.kind is not np.ndarray:
            return value.kind(0)
        outline = value.outline(value.dtype) if form and type(value) is Deferred else None
        return force(value) if outline is None else outline

    def contiguous(self) -> bool:
        value = self.primal
        if type(value) is Deferred and value.strides is not None:
            return value.ordered
        return traced.contiguous(force(value))

    @property
    def shape(self) -> Value:
        value = self.primal
        return () if type(value) is float else value.shape if type(value) in _TYPED else np.shape(value)

    @shape.setter
    def shape(self, shape: Value) -> None:
        take_shape(self, shape)

    strides = property(lambda self: self.value_below(form=True).strides)
    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))
    dtype = property(lambda self: self.primal.dtype if type(self.primal) in _TYPED else np.result_type(self.primal))


def _recording(function: Function, reflected: bool = False) -> Value:
    def operate(self: Staged, other: Value) -> Value:
        if other is None and function in (operator.eq, operator.ne):
            return np.full(self.shape, function is operator.ne)[()]
        if _batched_above(self, other):
            return NotImplemented
        pair = (other, self) if reflected else (self, other)
        return record(constant_primitive(function), *pair)

    return operate


for _name in COMPARISONS:
    setattr(Staged, f"__{_name}__", _recording(getattr(operator, _name)))
for _name, _ufunc in STEPWISE.items():
    _function = _ufunc if "shift" in _name else getattr(operator, f"__{_name}__")  # Python's shifts do not overflow
    setattr(Staged, f"__{_name}__", _recording(_function))
    setattr(Staged, f"__r{_name}__", _recording(_function, reflected=True))


def record(primitive: Primitive, *args: Value, **params: Option) -> Value:
    """Apply a primitive in the innermost staging activation that owns one of its arguments."""
    values = [traced.plain(a) for a in args]
    owner = None
    for value in values:
        if type(value) is Staged and (owner is None or value.owner.serial > owner.serial):
            owner = value.owner
    if owner is None:
        return primitive.function(*values, **params)
    values = [owner.outer(a) if owner.is_outer(a) else value for a, value in zip(args, values, strict=True)]
    if not owner.alive:
        raise EscapedValue(
            f"{primitive.name} was applied to a value of a staged program that has already ended; "
            "return it from the staged function instead of keeping it"
        )
    return owner.apply(primitive, *values, **params)


def _asked(function: Function, args: tuple[Value, ...]) -> list[Value]:
    """Return guarded arguments for a function whose result's shape depends on values, or on which of them are 0."""
    return [guarded_value(a != 0 if function in ASKING_FOR_ZEROS else a) for a in args]


def example_value(value: Value) -> Value:
    """Return the value on the example, perhaps a deferred one; a plain value is returned unchanged."""
    value = traced.plain(value)
    return value.primal if type(value) is Staged else value


def guarded_value(value: Value) -> Value:
    """Return a staged value's value on the example, and record the guard that every run of the program has it."""
    value = traced.plain(value)
    return value.owner.guard(value) if type(value) is Staged else value
