"""The containers whose items a loop carries: tuples, lists, dictionaries, and objects of the program.

An object is carried if it is a named tuple or a frozen dataclass, which nothing can change, or if the capture has made
it (`effgrad.stage.loop.objects`): then its attributes hold symbolic values, and `MADE` says which objects it may be.
"""

import dataclasses
from collections.abc import Iterable
from typing import Any

from effgrad.stage.loop.affine import NotCaptured

# How the module of a named tuple's `__new__` begins.
NAMED = "namedtuple_"
# The key, in the `__dict__` of an object that a capture has made, for a set of tokens, one for each object that it may
# be for the program. No attribute has such a name.
MADE = "made in a capture"


def parts_of(value: Any) -> list[Any] | None:
    """The items of a tuple, a list or a dictionary, or the attributes of an object; None for other values."""
    if isinstance(value, tuple | list):
        return list(value)
    if isinstance(value, dict):
        return list(value.values())
    if is_made(value):
        return [value.__dict__[name] for name in attributes_of(value)]
    return [getattr(value, name) for name in fields_of(value)] if is_frozen(value) else None


def is_made(value: Any) -> bool:
    """Whether a capture has made an object."""
    return type(value) is not super and MADE in getattr(value, "__dict__", ())


def attributes_of(value: Any) -> list[str]:
    """The names of the attributes of an object that a capture has made, in an order that does not depend on them."""
    return sorted(value.__dict__.keys() - {MADE})


def like(value: Any, parts: Iterable[Any]) -> Any:
    """Return the parts in a container of the same type as `value`."""
    if isinstance(value, dict):
        if type(value) is not dict:
            raise NotCaptured(f"a {type(value).__name__} that is bound in each step")
        return dict(zip(value, parts, strict=True))
    if isinstance(value, tuple | list):
        named = isinstance(value, tuple) and hasattr(value, "_fields")  # planes, or a named tuple of the program
        return type(value)(*parts) if named else list(parts) if isinstance(value, list) else tuple(parts)
    made = object.__new__(type(value))
    if is_made(value):
        made.__dict__.update(value.__dict__)
        made.__dict__.update(zip(attributes_of(value), parts, strict=True))
        return made
    for name, part in zip(fields_of(value), parts, strict=True):
        object.__setattr__(made, name, part)
    return made


def same_structure(a: Any, b: Any) -> bool:
    """Whether two containers have the same class, and as many items or the same keys in one order."""
    if isinstance(a, dict):
        return type(a) is type(b) and list(a) == list(b)
    if isinstance(a, tuple | list):
        return isinstance(b, type(a)) and len(a) == len(b)
    if is_made(a):
        return type(a) is type(b) and is_made(b) and attributes_of(a) == attributes_of(b)
    return type(a) is type(b) and is_frozen(a) and is_frozen(b)


def is_immutable(value: Any) -> bool:
    """Whether a value is a named tuple of the program, or a frozen dataclass."""
    named = isinstance(value, tuple) and only_makes(type(value)) and not type(value).__module__.startswith("effgrad.")
    return named or is_frozen(value)


def is_frozen(value: Any) -> bool:
    """Whether a value is an instance of a frozen dataclass that has only its fields."""
    if not _has_only_fields(type(value)):
        return False
    return list(getattr(value, "__dict__", fields_of(value))) == fields_of(value)


def fields_of(value: Any) -> list[str]:
    """The names of the fields of a dataclass."""
    return [field.name for field in dataclasses.fields(value)]


def only_makes(f: Any, *args: Any) -> bool:
    """Whether a call of a class, or of a function that replaces items, only makes a named tuple or frozen dataclass."""
    if isinstance(f, type):
        return issubclass(f, tuple) and (f.__new__.__module__ or "").startswith(NAMED) or _has_only_fields(f)
    if f is dataclasses.replace:
        return bool(args) and is_frozen(args[0])
    return getattr(f, "__name__", "") == "_replace" and is_immutable(getattr(f, "__self__", None))


def _has_only_fields(kind: type) -> bool:
    """Whether a class is a frozen dataclass that is made without any code of the program."""
    if not dataclasses.is_dataclass(kind) or not kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        return False
    generated = getattr(kind.__init__, "__code__", None)
    runs = hasattr(kind, "__post_init__") or kind.__new__ is not object.__new__
    return not runs and generated is not None and generated.co_filename == "<string>"
