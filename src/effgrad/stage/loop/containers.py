"""The containers whose items a loop carries: tuples, lists, dictionaries, named tuples and frozen dataclasses."""

import dataclasses
from collections.abc import Iterable
from typing import Any

from effgrad.stage.loop.affine import NotCaptured

# How the module of a named tuple's `__new__` begins.
NAMED = "namedtuple_"


def parts_of(value: Any) -> list[Any] | None:
    """The items of a tuple, a list or a dictionary, or the fields of a frozen dataclass; None for other values."""
    if isinstance(value, tuple | list):
        return list(value)
    if isinstance(value, dict):
        return list(value.values())
    return [getattr(value, name) for name in fields_of(value)] if is_frozen(value) else None


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
    for name, part in zip(fields_of(value), parts, strict=True):
        object.__setattr__(made, name, part)
    return made


def same_structure(a: Any, b: Any) -> bool:
    """Whether two containers have the same class, and as many items or the same keys in one order."""
    if isinstance(a, dict):
        return type(a) is type(b) and list(a) == list(b)
    if isinstance(a, tuple | list):
        return isinstance(b, type(a)) and len(a) == len(b)
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
