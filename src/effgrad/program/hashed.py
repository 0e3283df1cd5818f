"""Keys of sets and dictionaries: traced numbers of the program's own classes cannot be keys.

Compiled code hashes such a number, and finds its mark (`effgrad.program.own_numbers`) and not its value. Equal numbers
would be different keys, without a word.
"""

import functools
from typing import Any

from effgrad.arrays.written import memories
from effgrad.errors import Detached
from effgrad.program import own_numbers
from effgrad.vocabulary import Function, Object

HASHING = frozenset((dict, set, frozenset))
# The methods whose arguments are keys, of which only a call of the method can tell whether they hold traced numbers.
METHODS = frozenset(("get", "setdefault", "pop", "add", "discard", "remove", "__contains__"))
# The methods whose arguments are iterated over, and give keys.
ITERATING = frozenset((
    "update", "union", "intersection", "intersection_update", "difference", "difference_update", "isdisjoint",
    "symmetric_difference", "symmetric_difference_update", "issubset", "issuperset",
))  # fmt: skip


def as_key(value: Object) -> Object:
    """Return a key of a set or a dictionary; raise if it is, or has, a traced number of the program's own class."""
    if memories and own_numbers.is_own_number(value) and own_numbers.read_number(value) is not value:
        raise Detached(
            f"a traced number of the class {type(value).__name__!r} is a key of a set or a dictionary, which "
            "asks for its hash: take effgrad.stop_gradient(float(x)) for the key"
        )
    if memories and type(value) is tuple:
        for part in value:
            as_key(part)
    return value


def holder(make: Function) -> Object:
    """Return the target of a class of sets or dictionaries, whose instances `make` makes."""
    return lambda *args, **kwargs: _with_keys(make(*args, **kwargs))


def _with_keys(keys: Any) -> Object:
    """Return keys that compiled code hashes; raise if one of them is a traced number of the program's own class."""
    if own_numbers.are_held():
        for key in keys:
            as_key(key)
    return keys


def method(f: Any, compiled: Function, iterating: Function) -> Object:
    """Return the target of a compiled method, whose arguments may be or hold keys of a set or a dictionary."""
    kind = type(f.__self__)
    if kind not in HASHING:
        return own_numbers.method(f, compiled)
    if f.__name__ in METHODS:
        return functools.partial(_keyed, f)
    if f.__name__ not in ITERATING:
        return f
    return functools.partial(_each_keyed, f if kind is dict else iterating(f), dict if kind is dict else list)


def _keyed(f: Any, *args: Object) -> Object:
    return f(*map(as_key, args)) if memories else f(*args)


def _each_keyed(f: Any, kind: Any, *args: Any, **kwargs: Object) -> Object:
    if own_numbers.are_held():
        args = tuple([_with_keys(arg if type(arg) in HASHING else kind(arg)) for arg in args])
    return f(*args, **kwargs)
