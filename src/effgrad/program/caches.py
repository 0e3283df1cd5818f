"""Functions with `functools.lru_cache` under a derivative: a cache of traced values belongs to its session.

The function's own cache outlives the derivative, and would return values of a tape that has ended. It also calls the
function as it is written. So it is asked only if no traced value can reach the function.
"""

import functools
from types import FunctionType, MethodType, ModuleType
from typing import Any

from effgrad.arrays.value import Tracer
from effgrad.arrays.written import running
from effgrad.program.carries import PLAIN, attributes_of, carries, is_written
from effgrad.program.linked import content
from effgrad.vocabulary import Function, Object


def cached(f: Any, call: Function) -> Object:
    """Return the target of a function with `functools.lru_cache`.

    Traced arguments bypass the cache. If traced values are deeper, in objects or a closure, the cache is the session's.
    """

    def called(*args: Object, **kwargs: Object) -> Object:
        if carries(args, kwargs):
            return call(f.__wrapped__)(*args, **kwargs)
        session = running()
        if session is None or not carries_inside([args, kwargs, f.__wrapped__]):
            return f(*args, **kwargs)
        own = session.caches.get(f)
        if own is None:
            own = session.caches[f] = functools.lru_cache(**f.cache_parameters())(call(f.__wrapped__))
        return own(*args, **kwargs)

    return called


def carries_inside(values: Object) -> bool:
    """Whether values contain traced ones at any depth: in containers, attributes and closures."""
    waiting, seen = [*values], set()
    while waiting:
        value = waiting.pop()
        if isinstance(value, Tracer) or is_written(value):
            return True
        if type(value) not in PLAIN and id(value) not in seen:
            seen.add(id(value))
            waiting.extend(_parts(value))
    return False


def _parts(value: Object) -> Object:
    """The values that a container, an object or a function holds; none of a class or a module."""
    kind = type(value)
    if kind in (list, tuple, set, frozenset):
        return value
    if isinstance(value, dict):
        return [*value.values()]
    if kind is FunctionType:
        return map(content, value.__closure__ or ())
    if kind is MethodType:
        return value.__self__, value.__func__
    if kind is functools.partial:
        return value.func, value.args, value.keywords
    return () if isinstance(value, type | ModuleType) else attributes_of(value).values()
