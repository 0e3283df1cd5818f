"""Numbers of the program's own classes: subclasses of `float`, with attributes and methods of their own.

`float.__new__(cls, x)` of a traced x gives a real instance of the class, so its type, its attributes and its methods
are the program's. The number inside it is memory like that of an array (`effgrad.arrays.written`): a marked NaN until
the derivative ends, and then the plain number. An operator that the class does not define takes the traced number.
"""

import weakref
from typing import Any

import numpy as np

from effgrad.arrays.layout import memory_at
from effgrad.arrays.marks import refuse_marked
from effgrad.arrays.traced import as_pythons
from effgrad.arrays.value import Tracer
from effgrad.arrays.written import READERS, handle, memories, numbers_of, read, running
from effgrad.living import forgetting
from effgrad.program.classes import is_builtin
from effgrad.program.subclasses import read_arrays
from effgrad.vocabulary import Function, Object

# The number of a float is the last field of its object.
NUMBER_AT = float.__basicsize__ - np.dtype(float).itemsize
# The names that a session keeps its numbers under, and those that `float` gives to a number.
KEPT = "own numbers"
OF_FLOAT = frozenset(name for name in vars(float) if not name.startswith("__")) - {"fromhex"}


def is_own_number(value: object) -> bool:
    """Whether a value is an instance of a subclass of `float` that the program or a library defines."""
    return issubclass(type(value), float) and not is_builtin(value)


# The constructors of numbers that a subclass may call: an integer of a traced number is a constant.
CONSTRUCTORS = (float.__new__, int.__new__)


def constructor(f: Any, call: Function, compiled: Function) -> Object:
    """Return the target of a constructor in C: `call` gives that of a class, and `compiled` that of another one."""
    return _constructor(f.__self__, call(f.__self__)) if f in CONSTRUCTORS else compiled(f)


def _constructor(base: Any, convert: Function) -> Function:
    """Return the target of `base.__new__` for `float` or `int`, where `convert` is the target of `base`."""

    def made(kind: Any, *args: Object) -> Object:
        number: Any = convert(*args)
        refuse_marked(number)
        if kind is base or not isinstance(number, Tracer):
            return number if kind is base else base.__new__(kind, number)
        result = float.__new__(kind, float(numbers_of(number)))
        _hold(result, number)
        return result

    return made


def _hold(instance: Any, number: Object) -> None:
    """Let an instance have a traced number."""
    session = running()
    assert session is not None
    table, key = session.caches.setdefault(KEPT, {}), id(instance)
    array = memory_at(key + NUMBER_AT, 1, np.dtype(float))
    weak = type(instance).__weakrefoffset__
    table[key] = weakref.ref(instance, forgetting(table, key)) if weak else instance, array
    handle(array)[0] = number
    if type(instance) not in READERS:
        READERS.enter({type(instance): _number_of})


def _number_of(instance: Object) -> Object:
    """Return the traced number of an instance, or the instance itself if it has none."""
    session = running()
    held = None if session is None else session.caches.get(KEPT, {}).get(id(instance))
    return instance if held is None else as_pythons(read(held[1])[0])


def are_held() -> bool:
    """Whether the running session has traced numbers of the program's own classes."""
    session = running() if memories else None
    return session is not None and bool(session.caches.get(KEPT))


def read_number(value: Object) -> Object:
    """Return the traced number of a number of the program's own class, and other values unchanged."""
    return read(value) if memories and is_own_number(value) else value


def read_operand(value: object) -> Object:
    """Return an operand read from memory, except a number of the program's own class, which may define the operator."""
    return value if is_own_number(value) else read_arrays(value)


def method(f: Any, compiled: Function) -> Object:
    """Return the target of a compiled method, which may be bound to a traced number of the program's own class."""
    number = read_number(f.__self__)
    return compiled(f) if number is f.__self__ else getattr(number, f.__name__)
