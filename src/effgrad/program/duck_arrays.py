"""Objects of the program's own classes with NumPy's protocols: `__array_ufunc__`, `__array_function__`, `__array__`.

NumPy would call these methods itself, and they would run as they are written, without rules. So a call of a NumPy
function with such an object calls the rewritten method, in NumPy's order. Libraries' classes and subclasses of arrays
have their own ways.
"""

from types import FunctionType

import numpy as np

from effgrad.arrays.labelled import labelled
from effgrad.arrays.value import Tracer, is_foreign
from effgrad.arrays.written import read
from effgrad.nested import leaves
from effgrad.program.carries import carries
from effgrad.program.classes import is_builtin
from effgrad.program.rewritten import SOURCES
from effgrad.vocabulary import Function, Object


def by_protocol(f: Function, args: Object, kwargs: Object) -> Object:
    """Return the result of the first argument's protocol that computes one, or `NotImplemented` without such."""
    given = [value for value in leaves([args, [*kwargs.values()]]) if not is_builtin(value)]
    ufunc = f if isinstance(f, np.ufunc) else getattr(f, "__self__", None)
    for value in _in_order(given):
        if isinstance(ufunc, np.ufunc):
            method = _method(value, "__array_ufunc__")
            name = "__call__" if f is ufunc else f.__name__
            result = method and method(value, ufunc, name, *args, **kwargs)
        else:
            method = _method(value, "__array_function__") if type(f) is type(np.sum) else None
            result = method and method(value, f, {type(one) for one in given}, args, kwargs)
        if method is not None and result is not NotImplemented:
            return result
    return NotImplemented


def _in_order(values: list[Object]) -> list[Object]:
    """Return the values in the order in which NumPy asks them: subclasses first, else from the left."""
    ordered: list[Object] = []
    for value in values:
        place = next((i for i, other in enumerate(ordered) if isinstance(value, type(other))), len(ordered))
        if type(value) not in map(type, ordered):
            ordered.insert(place, value)
    return ordered


def defines_ufuncs(value: Object) -> bool:
    """Whether an array on the left leaves an operator to the class of `value`, by its `__array_ufunc__`."""
    return _method(value, "__array_ufunc__") is not None


def to_traced(value: Object) -> Object:
    """Return what the `__array__` of a class of the program makes, if it is traced; return other values unchanged."""
    method = None if is_builtin(value) else _method(value, "__array__")
    return value if method is None or not carries((value,), {}) else read(method(value))


def _method(value: Object, name: str) -> Object:
    """Return a method of a protocol that a class of the program defines in Python, rewritten, or None."""
    found = getattr(type(value), name, None)
    known = isinstance(value, np.ndarray | Tracer) or labelled(value) or is_foreign(value)
    if known or type(found) is not FunctionType:
        return None
    return vars(SOURCES.operations)["call"](found)
