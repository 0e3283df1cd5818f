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


def as_key(value: Object) -> Object:
    """Return a key of a set or a dictionary; raise if it is, or has, a traced number of the program's own class."""
    if memories:
        for part in value if type(value) is tuple else (value,):
            if own_numbers.is_own_number(part) and own_numbers.read_number(part) is not part:
                raise Detached(
                    f"a traced number of the class {type(part).__name__!r} is a key of a set or a dictionary, which "
                    "asks for its hash: take effgrad.stop_gradient(float(x)) for the key"
                )
    return value


def method(f: Any, compiled: Function) -> Object:
    """Return the target of a compiled method, whose arguments may be keys of a set or a dictionary."""
    if type(f.__self__) not in HASHING:
        return own_numbers.method(f, compiled)
    return functools.partial(_keyed, f) if f.__name__ in METHODS else f


def _keyed(f: Any, *args: Object) -> Object:
    return f(*map(as_key, args)) if memories else f(*args)
