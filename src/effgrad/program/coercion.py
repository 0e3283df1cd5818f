"""The arrays that NumPy makes of objects of the program: by their `__array__`, or of the items of a sequence.

NumPy would call the methods of these objects as they are written, without rules. So where it makes an array of a value,
the array or the list of items is made first, by the rewritten methods.
"""

import operator
from types import FunctionType

import numpy as np

from effgrad.arrays.labelled import labelled, of_pandas
from effgrad.arrays.value import LISTS, Tracer, is_foreign, traced_inside
from effgrad.arrays.written import read
from effgrad.living import for_each_living
from effgrad.program.carries import carries
from effgrad.program.classes import is_builtin
from effgrad.program.rewritten import SOURCES, root_of
from effgrad.vocabulary import Object


def coerced(value: Object) -> Object:
    """Return what NumPy makes an array of, if that holds traced values; return other values unchanged.

    It is the array that a class of the program makes of its object by `__array__`, and a list of the items of another
    sequence, such as a named tuple. Both may be items of lists.
    """
    if type(value) in LISTS:
        items = [*map(coerced, value)]
        return value if all(map(operator.is_, items, value)) else items
    if is_builtin(value) or isinstance(value, np.ndarray) or is_of_library(value):
        return value
    method, kind = method_of_protocol(value, "__array__"), type(value)
    asked = method is not None or not hasattr(kind, "__array__") and _has_items(kind)
    if not asked or not carries((value,), {}):
        return value
    if method is not None:
        return read(method(value))
    items = coerced([*vars(SOURCES.operations)["iterate"](value)])
    return items if traced_inside(items) else value


def method_of_protocol(value: Object, name: str) -> Object:
    """Return a method of a protocol that a class of the program defines in Python, rewritten, or None."""
    found = getattr(type(value), name, None)
    table = labelled(value) and name == "__array_ufunc__" and of_pandas(value)
    if is_of_library(value) and not table or type(found) is not FunctionType:
        return None
    return vars(SOURCES.operations)["call"](found)


def is_of_library(value: Object) -> bool:
    """Whether an object is a traced value, a table, or an array of another library than NumPy."""
    foreign = is_foreign(value) and not isinstance(value, np.ndarray)
    return isinstance(value, Tracer) or foreign or labelled(value)


@for_each_living
def _has_items(kind: Object) -> bool:
    """Whether NumPy takes objects of a class for sequences, if they are no arrays."""
    others = issubclass(kind, dict | str | bytes | bytearray | memoryview) or hasattr(kind, "tocsr")
    asked = hasattr(kind, "__len__") and hasattr(kind, "__getitem__")
    return asked and not others and root_of(kind.__module__) != "effgrad"
