"""Callable objects that hold another function: `functools.partial` and `np.vectorize`, with that function rewritten."""

import functools
from typing import Any

import numpy as np

from effgrad.program.object_arrays import noticed
from effgrad.vocabulary import Function, Object


def partial(f: Any, call: Function) -> Object:
    target = call(f.func)
    return f if target is f.func else functools.partial(target, *f.args, **f.keywords)


def vectorized(f: Any, call: Function) -> Object:
    """Return the target of an `np.vectorize(g)`, with `g` rewritten."""
    if getattr(f, "pyfunc", None) is None:
        return f
    clone = object.__new__(np.vectorize)
    vars(clone).update(vars(f), pyfunc=call(f.pyfunc))
    target = call(np.vectorize.__call__)
    return lambda *args, **kwargs: noticed(target(clone, *args, **kwargs))
