"""A test whether traced values enter a call: as arguments, inside arguments, or through functions that it may call."""

import functools
from collections import deque
from collections.abc import Iterable
from types import FunctionType, GeneratorType, MethodType, ModuleType

import numpy as np

from effgrad.arrays.value import LISTS, Tracer, traced_inside
from effgrad.arrays.written import READERS, memories, memory_of, read
from effgrad.vocabulary import Object


def carries(args: Object, kwargs: Object) -> bool:
    """Whether arguments are or may contain traced values: in lists, in attributes, or in functions to be called."""
    return any(map(_carries, args)) or any(map(_carries, kwargs.values()))


# Classes of callables and generators, whose code may use traced values.
CODE = frozenset((FunctionType, GeneratorType, functools.partial, MethodType))
# Libraries whose objects hold arrays deeper than in their attributes.
TABLES = frozenset(("pandas", "xarray"))


def _carries(arg: Object) -> bool:
    kind = type(arg)
    if isinstance(arg, Tracer) or kind in CODE:
        return True
    if is_written(arg):
        return True
    if kind in PLAIN:
        return False
    if any(map(_carries, _items(arg))):
        return True
    if kind in LISTS:
        return False
    if traced_inside(arg) or str(kind.__module__).partition(".")[0] in TABLES:
        return True
    if isinstance(arg, type | ModuleType):
        return False
    inside = attributes_of(arg).values()
    return any(type(value) in CODE or traced_inside(value) or is_written(value) for value in inside)


def _items(value: Object) -> Iterable[Object]:
    """The items of a container of Python, or of a class derived from one."""
    kind = type(value)  # and not `__class__`, which an object may choose
    if issubclass(kind, dict):
        return dict.values(value)
    base = next((base for base in (list, tuple, deque) if issubclass(kind, base)), None)
    return () if base is None else base.__iter__(value)


def attributes_of(value: Object) -> dict[str, Object]:
    """The attributes of an object, in its `__dict__` and its slots; a class may have both."""
    inside = getattr(value, "__dict__", None)
    names = [name for base in type(value).__mro__ for name in vars(base).get("__slots__", ())]
    if type(inside) is dict:
        return {**inside, **{name: getattr(value, name, None) for name in names}} if names else inside
    return {name: getattr(value, name, None) for name in names}


def is_written(value: object) -> bool:
    """Whether a value is an array, a sparse matrix or a number of the program's class with traced values in memory."""
    if not memories:
        return False
    if isinstance(value, np.ndarray):
        return memory_of(value) is not None
    return type(value) in READERS and read(value) is not value


PLAIN = frozenset((int, float, bool, str, complex, type(None), np.ndarray, np.float64, np.dtype))
