"""Compiled functions that pass on or move objects that they are given, which stay the program's own: `max`, heaps.

Where such a function compares arrays of one element, it is given their values.
"""

from typing import Any

import numpy as np

from effgrad.arrays.value import LISTS
from effgrad.arrays.written import memories, read
from effgrad.program.rewritten import SOURCES
from effgrad.vocabulary import Function, Object

# The modules of functions that compare and move the items of lists.
_COMPARING = frozenset(("_heapq", "_bisect"))


def passing(f: Any, careful: Object, callback: Function) -> Object:
    """Return the target of a compiled function: `careful`, unless it is one that passes its arguments on."""
    if f is max or f is min:
        return _extreme(f, careful, callback)
    if f is sum:
        return lambda *args, **kwargs: (_joined if _joins(*args, **kwargs) else careful)(*args, **kwargs)
    return _comparing(f, callback) if f.__module__ in _COMPARING else careful


def _extreme(f: Function, careful: Object, callback: Function) -> Function:
    """Return `max` or `min`, which with a key compares the keys alone."""

    def called(*args: Object, **options: Object) -> Object:
        if not memories or options.get("key") is None:
            return careful(*args, **options)
        options["key"] = callback(options["key"])
        return f(*map(vars(SOURCES.operations)["iterate"], args[:1]) if len(args) == 1 else args, **options)

    return called


def _joins(values: Object = (), start: Object = 0) -> bool:
    return bool(memories) and type(start) in LISTS


def _joined(values: Object, start: Object) -> Object:
    """Return the sum of lists or tuples."""
    for value in vars(SOURCES.operations)["iterate"](values):
        start = vars(SOURCES.operations)["add"](start, value)
    return start


def _comparing(f: Function, callback: Function) -> Function:
    def called(*args: Object, **options: Object) -> Object:
        named = {name: callback(option) if name == "key" else option for name, option in options.items()}
        return f(*(map(_compared, args) if memories else args), **named)

    return called


def _compared(item: Object) -> Object:
    """Return an item that may be compared, with the value of an array of one element."""
    if type(item) is tuple:
        return tuple(map(_compared, item)) if any(_compared(part) is not part for part in item) else item
    return read(item) if isinstance(item, np.ndarray) and item.size == 1 else item
