"""Attributes of the program's objects, found as Python finds them, with methods written in Python rewritten.

Each class is examined once in each derivative. Its properties, its descriptors with methods in Python, and its
`__getattribute__`, `__getattr__`, `__setattr__` and `__delattr__` are special. All other attributes are left to Python
(the Python Language Reference, 3.3.2 and the Descriptor Guide).
"""

import functools
from types import ClassMethodDescriptorType, FunctionType, ModuleType

from effgrad.arrays.marks import marking
from effgrad.arrays.value import Tracer
from effgrad.arrays.written import READERS
from effgrad.program import buffer_objects
from effgrad.program.handed import from_compiled, is_compiled
from effgrad.program.held_data import in_memory
from effgrad.program.own_numbers import OF_FLOAT, read_number
from effgrad.program.resolve import call
from effgrad.program.rewritten import SOURCES
from effgrad.program.structured import is_record
from effgrad.vocabulary import Value

Special = dict[str, Value]
HOOKS = ("__getattribute__", "__getattr__", "__setattr__", "__delattr__")
# Each class, by its id, and its special attributes. The table is emptied when a derivative begins.
_classes: dict[int, tuple[type, Special]] = {}
# Descriptors whose `__get__` runs no code of the program.
BINDING = (FunctionType, classmethod, staticmethod, ClassMethodDescriptorType)


def forget_classes() -> None:
    """Forget the special attributes of all classes, since a program may have changed the classes."""
    _classes.clear()


def special_of(kind: type) -> Special:
    """The attributes of a class that the program's own Python code computes, by name."""
    known = _classes.get(id(kind))
    if known is None:
        found: Special = {}
        for base in reversed(kind.__mro__[:-1]):
            for name, value in vars(base).items():
                if _is_computed(value) or (name in HOOKS and type(value) is FunctionType):
                    found[name] = value
                else:
                    found.pop(name, None)
        known = _classes[id(kind)] = kind, found
    return known[1]


def _is_computed(value: Value) -> bool:
    kind = type(value)
    if kind is property or kind is functools.cached_property or _keeps(kind):
        return True
    methods = (getattr(kind, name, None) for name in ("__get__", "__set__", "__delete__"))
    return kind not in BINDING and any(type(method) is FunctionType for method in methods)


def _keeps(kind: type) -> bool:
    """Whether a class of descriptors is pandas' compiled one, which keeps what a function in Python has computed."""
    return kind.__name__ == "CachedProperty" and kind.__module__ == "pandas._libs.properties"


def get(owner: Value, name: str) -> Value:
    """Return `owner.name` of an object of the program."""
    special = special_of(type(owner))
    if name in OF_FLOAT and name not in special and getattr(type(owner), name, None) is vars(float)[name]:
        owner = read_number(owner)
    if not special:
        result = _of_super(owner, name) if type(owner) is super else getattr(owner, name)
        return from_compiled(result, name, type(owner)) if marking and is_compiled(type(owner)) else result
    if "__getattribute__" not in special:
        return _found(owner, name, special)
    if is_record(owner) and name in owner.dtype.names:
        return vars(SOURCES.operations)["item"](owner, name)
    try:
        return call(special["__getattribute__"])(owner, name)
    except AttributeError:
        if "__getattr__" not in special:
            raise
        return call(special["__getattr__"])(owner, name)


def _of_super(owner: Value, name: str) -> Value:
    """Return `super().name`, where a base class may have a property written in Python."""
    above = iter(owner.__self_class__.__mro__)
    for base in above:
        if base is owner.__thisclass__:
            break
    for base in above:
        if name in vars(base):
            found = vars(base)[name]
            reads = type(found) is property and type(found.fget) is FunctionType
            return call(found.fget)(owner.__self__) if reads else getattr(owner, name)
    return getattr(owner, name)


def get_by_object(owner: Value, name: str) -> Value:
    """Return `object.__getattribute__(owner, name)`, which skips the hooks of the class."""
    found = special_of(type(owner)).get(name)
    if found is None:
        return object.__getattribute__(owner, name)
    return _computed(owner, name, found, getattr(owner, "__dict__", {}))


def put_by_object(owner: Value, name: str, value: Value) -> None:
    """Perform `object.__setattr__(owner, name, value)`, which skips the hooks of the class."""
    _put(owner, name, value, special_of(type(owner)).get(name))


def _found(owner: Value, name: str, special: Special) -> Value:
    held = getattr(owner, "__dict__", {}) if name in special or "__getattr__" in special else {}
    if name in special:
        try:
            return _computed(owner, name, special[name], held)
        except AttributeError:
            if "__getattr__" not in special:
                raise
    elif name in held or "__getattr__" not in special or _in_class(type(owner), name):
        return getattr(owner, name)
    return call(special["__getattr__"])(owner, name)


def _computed(owner: Value, name: str, found: Value, held: dict[str, Value]) -> Value:
    kind = type(found)
    if kind is property:
        return call(found.fget)(owner) if type(found.fget) is FunctionType else getattr(owner, name)
    if kind is functools.cached_property:
        if name not in held:
            held[name] = call(found.func)(owner)
        return held[name]
    if _keeps(kind):
        kept = getattr(owner, "_cache", None)
        if kept is None:
            kept = owner._cache = {}
        if name not in kept:
            kept[name] = call(found.fget)(owner)
        return kept[name]
    reads = getattr(kind, "__get__", None)
    over = hasattr(kind, "__set__") or hasattr(kind, "__delete__")  # a data descriptor precedes the `__dict__`
    if type(reads) is not FunctionType or (name in held and not over):
        return getattr(owner, name)
    return call(reads)(found, owner, type(owner))


def _in_class(kind: type, name: str) -> bool:
    return any(name in vars(base) for base in kind.__mro__)


def put(owner: Value, name: str, value: Value) -> None:
    """Perform `owner.name = value` on an object of the program."""
    if name == "data" and type(owner) in READERS and isinstance(value, Tracer):
        value = in_memory(value)
    special = special_of(type(owner))
    if "__setattr__" in special:
        call(special["__setattr__"])(owner, name, value)
    else:
        _put(owner, name, value, special.get(name))


def _put(owner: Value, name: str, value: Value, found: Value) -> None:
    if type(found) is property and type(found.fset) is FunctionType:
        call(found.fset)(owner, value)
    elif type(writes := getattr(type(found), "__set__", None)) is FunctionType:
        call(writes)(found, owner, value)
    elif "__setattr__" in special_of(type(owner)):
        object.__setattr__(owner, name, value)
    else:
        buffer_objects.put(owner, name, value)


def remove(owner: Value, name: str) -> None:
    """Perform `del owner.name` on an object of the program."""
    special = special_of(type(owner))
    found = special.get(name)
    if "__delattr__" in special:
        call(special["__delattr__"])(owner, name)
    elif type(found) is property and type(found.fdel) is FunctionType:
        call(found.fdel)(owner)
    elif type(removes := getattr(type(found), "__delete__", None)) is FunctionType:
        call(removes)(found, owner)
    else:
        delattr(owner, name)


def is_object(owner: Value) -> bool:
    """Whether an object may have special attributes: it is an instance, and not a class or a module."""
    return not isinstance(owner, type | ModuleType)
