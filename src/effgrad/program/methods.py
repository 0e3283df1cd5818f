"""Methods of plain arrays, of what the array and the arguments hold."""

import operator
from typing import Any

import numpy as np

from effgrad.arrays.record import preserve
from effgrad.arrays.value import traced_inside
from effgrad.arrays.written import handle, memories, memory_of
from effgrad.arrays.written import read as now
from effgrad.program.rewritten import SOURCES
from effgrad.program.rules_by_callable import laid_as

# Methods of plain arrays that write to it, and those that give a view, NumPy's own.
WRITING = frozenset(("fill", "put", "itemset", "__setitem__", "sort", "partition", "setfield"))
VIEWING = frozenset((
    "reshape", "ravel", "transpose", "swapaxes", "squeeze", "diagonal", "view", "conj", "conjugate", "astype",
    "getfield", "__getitem__",
))  # fmt: skip


def array_method(array: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
    """A method of a plain array, of what it and the arguments hold."""
    if f.__name__ == "__setitem__" and len(args) == 2:
        return vars(SOURCES.operations)["setitem"](args[1], array, args[0])
    memory = None
    if memories:
        memory = memory_of(array)
        args, kwargs = tuple(map(now, args)), {key: now(value) for key, value in kwargs.items()}
    if memory is None and not (traced_inside(args) or traced_inside(kwargs)):
        if f.__name__ in WRITING:
            preserve(array)
        return f(*args, **kwargs)
    name = f.__name__
    if name in WRITING:
        return getattr(handle(array), name)(*args, **kwargs)
    if memory is None:
        return getattr(operator if name.startswith("__") else np, name)(array, *args, **kwargs)
    if name in VIEWING:
        result = f(*args, **kwargs)
        if np.may_share_memory(result, array):
            return result
        return laid_as(result, getattr(memory.value(array), name)(*args, **kwargs))
    return getattr(memory.value(array), name)(*args, **kwargs)
