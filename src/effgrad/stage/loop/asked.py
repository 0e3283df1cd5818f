"""Rules for questions about a value besides its numbers: its class, its type, its axes. A sample of it answers."""

import functools
import operator

import numpy as np

from effgrad.stage.loop.affine import Affine, NotCaptured, affine, as_constant
from effgrad.stage.loop.containers import like, parts_of
from effgrad.stage.loop.frames import Function as DefinedFunction
from effgrad.stage.loop.generators import Generator
from effgrad.stage.loop.number_classes import Memory, refuse_class
from effgrad.stage.loop.operands import (
    Complex,
    Counted,
    Growing,
    Iterated,
    Lazy,
    Masked,
    Method,
    OneOf,
    Value,
    View,
    classes_of,
    symbolic,
)
from effgrad.stage.loop.planes import has_complex
from effgrad.stage.loop.registry import is_of_library, rule, rules_in
from effgrad.stage.loop.symbols import Symbols
from effgrad.vocabulary import Function, Params


def sample_of(value: Value) -> Value:
    """Return a value of the class, the type and the number of axes that a symbolic value has in the program.

    Containers remain as they are, and so do values that are not symbolic.
    """
    if isinstance(value, Affine):
        return 1
    if isinstance(value, Complex):
        real = sample_of(value.real)
        return complex(real) if type(real) is float else real.astype(np.result_type(real, np.complex64))[()]
    if isinstance(value, Generator):
        return (item for item in range(0))
    if isinstance(value, DefinedFunction):
        return lambda: None
    if isinstance(value, Iterated | Method | OneOf | Counted | Masked | Growing):
        raise NotCaptured("the class of an iterator, a method, or elements that a mask selects")
    if not isinstance(value, View | Lazy):
        return value
    if value.shape:
        return np.ones((1,) * len(value.shape), value.dtype)
    classes = classes_of(value)
    if len(classes) > 1:
        refuse_class()
    (kind,) = classes
    array = np.ones((), value.dtype)
    return array if kind.memory != Memory.NONE else array.item() if kind.weak else array[()]


def _class_asked(f: Function, c: Symbols, value: Value, *others: Value) -> Value:
    return f(sample_of(value), *others)


# The functions that ask for the class of a value, which may be a container.
_OF_CLASS = [rule(f)(functools.partial(_class_asked, f)) for f in (isinstance, type, hasattr, np.isscalar, np.iterable)]


def _type_asked(f: Function, c: Symbols, *args: Value) -> Value:
    return f(*map(_sampled, args))


def _sampled(value: Value) -> Value:
    parts = parts_of(value)
    return sample_of(value) if parts is None or isinstance(value, Complex) else like(value, map(_sampled, parts))


# The functions that ask for the types of numbers and arrays, or of containers of such.
_OF_TYPES = [
    rule(f)(functools.partial(_type_asked, f))
    for f in (np.iscomplexobj, np.isrealobj, np.result_type, np.common_type, np.can_cast)
]


def attribute(value: Value, name: str) -> Value:
    """Return `shape`, `ndim`, `size`, `dtype`, `itemsize` or `nbytes` of a value."""
    if not isinstance(value, View | Lazy | Complex):
        return getattr(np.asarray(sample_of(value)), name)
    shape = value.real.shape if isinstance(value, Complex) else value.shape
    dtype = np.result_type(value.real.dtype, np.complex64) if isinstance(value, Complex) else value.dtype
    if name in ("dtype", "itemsize"):
        return dtype if name == "dtype" else dtype.itemsize
    if name in ("shape", "ndim"):
        return shape if name == "shape" else len(shape)
    bytes_each = dtype.itemsize if name == "nbytes" else 1
    return as_constant(functools.reduce(operator.mul, shape, affine(bytes_each)))


ATTRIBUTES = frozenset(("shape", "ndim", "size", "dtype", "itemsize", "nbytes"))


def _shape_asked(name: str, c: Symbols, a: Value, axis: Value = None) -> Value:
    value = c.lazy(c.stacked(a)) if isinstance(a, list | tuple) and not isinstance(a, Complex) else a
    known = attribute(value, name if axis is None else "shape")
    return known if axis is None else known[axis]


# The functions that ask for what is also an attribute of an array.
_OF_SHAPE = [
    rule(f)(functools.partial(_shape_asked, name)) for f, name in
    ((np.shape, "shape"), (np.ndim, "ndim"), (np.size, "size"))
]  # fmt: skip


@rule(callable)
def _callable(c: Symbols, value: Value) -> bool:
    return callable(value) or isinstance(value, DefinedFunction | Method | OneOf)


# The functions whose rules take complex values as they take real ones.
OF_ANY_VALUES = frozenset((*rules_in(globals()), enumerate, zip, reversed, tuple, list))


def needs_planes(f: Function, args: list[Value], kwargs: Params) -> bool:
    """Whether a library's function is called with complex values and has a rule of its own for their planes."""
    if not has_complex([args, kwargs]) or not symbolic([args, kwargs]):
        return False
    return is_of_library(f) and f not in OF_ANY_VALUES
