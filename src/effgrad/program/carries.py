"""Whether traced values go into a call: as arguments, in what these hold, or by functions that are called."""

import functools
from types import FunctionType, GeneratorType, MethodType, ModuleType

import numpy as np

from effgrad.arrays.value import Tracer, traced_inside
from effgrad.arrays.written import memories, memory_of
from effgrad.vocabulary import Object


def carries(args: Object, kwargs: Object) -> bool:
    """Whether traced values go in: as arguments, in their attributes, or by functions that are called."""
    return any(map(_carries, args)) or any(map(_carries, kwargs.values()))


# What runs code that may hold traced values.
CODE = frozenset((FunctionType, GeneratorType, functools.partial, MethodType))
# Libraries whose objects hold their arrays deep inside.
TABLES = frozenset(("pandas", "xarray"))


def _carries(arg: Object) -> bool:
    kind = type(arg)
    if isinstance(arg, Tracer) or kind in CODE:
        return True
    if kind in PLAIN:
        return False
    if _is_written(arg):
        return True
    if kind is list or kind is tuple:
        return any(map(_carries, arg))
    if traced_inside(arg) or str(kind.__module__).partition(".")[0] in TABLES:
        return True
    inside = getattr(arg, "__dict__", None)
    if type(inside) is not dict or isinstance(arg, type | ModuleType):
        return False
    return any(type(value) in CODE or traced_inside(value) or _is_written(value) for value in inside.values())


def _is_written(value: object) -> bool:
    return isinstance(value, np.ndarray) and bool(memories) and memory_of(value) is not None


PLAIN = frozenset((int, float, bool, str, complex, type(None), np.ndarray, np.float64, np.dtype))
