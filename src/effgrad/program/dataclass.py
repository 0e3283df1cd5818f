"""The `__init__` that `dataclasses` generates, which has no source but calls a `__post_init__` that must be rewritten.

An object with a `__dict__` holds the rewritten method while `__init__` runs. An object with slots cannot hold it, and
fields may be descriptors with a `__set__` in Python. Then the fields are set here as the generated code sets them (the
documentation of `dataclasses`, "Post-init processing" and "Descriptor-typed fields").
"""

import dataclasses
import inspect
from collections.abc import Callable
from types import FunctionType

from effgrad.vocabulary import Function, Value


def is_generated(f: FunctionType) -> bool:
    """Whether a function without source may be the `__init__` of a dataclass."""
    return "__post_init__" in f.__code__.co_names or (f.__code__.co_filename, f.__name__) == ("<string>", "__init__")


def initialiser(start: FunctionType, call: Callable[[Value], Value], otherwise: Function) -> Function:
    """Return `__init__` with its `__post_init__` and its fields' `__set__` rewritten by `call`.

    For an object of another class it calls `otherwise`.
    """

    def initialise(self: Value, /, *args: Value, **kwargs: Value) -> None:
        if not hasattr(type(self), "__dataclass_fields__"):
            otherwise(self, *args, **kwargs)
            return
        own, finish = getattr(self, "__dict__", None), getattr(type(self), "__post_init__", None)
        written = type(finish) is FunctionType
        if has_descriptors(type(self)) or written and own is None:
            rest = set_fields(start, self, args, kwargs, call)
            if written:
                call(finish)(self, *rest)
        elif own is None or not written:
            start(self, *args, **kwargs)
        else:

            def finished(*given: Value) -> None:
                del own["__post_init__"]
                call(finish)(self, *given)

            own["__post_init__"] = finished
            start(self, *args, **kwargs)

    return initialise


def has_descriptors(kind: Value) -> bool:
    """Whether a field of a dataclass is a property, or a descriptor whose `__set__` is written in Python."""
    found = [inspect.getattr_static(kind, field.name, None) for field in dataclasses.fields(kind)]
    return any(type(one) is property or type(getattr(type(one), "__set__", None)) is FunctionType for one in found)


def set_fields(
    start: FunctionType, new: Value, args: tuple[Value, ...], kwargs: dict[str, Value], call: Callable[[Value], Value]
) -> list[Value]:
    """Set the fields of an object, and return the arguments for its `__post_init__`."""
    try:
        given = inspect.signature(start).bind(new, *args, **kwargs).arguments
    except TypeError:
        start(new, *args, **kwargs)  # raises Python's own error
        raise
    fields, rest = new.__dataclass_fields__, []
    ordinary = {field.name for field in dataclasses.fields(new)}
    put = call(object.__setattr__ if type(new).__dataclass_params__.frozen else setattr)
    for name, field in fields.items():
        if field.init and name in given:
            value = given[name]
        elif field.default_factory is not dataclasses.MISSING:
            value = field.default_factory()
        elif field.default is not dataclasses.MISSING and (field.init or not hasattr(new, "__dict__")):
            value = field.default
        else:
            continue
        if name in ordinary:
            put(new, name, value)
        elif name in inspect.signature(start).parameters:
            rest.append(value)
    return rest


def has_generated_repr(kind: Value) -> bool:
    """Whether the `__repr__` of a class is the one that `dataclasses` generates."""
    if not dataclasses.is_dataclass(kind):
        return False
    code = getattr(getattr(kind.__repr__, "__wrapped__", None), "__code__", None)
    return code is not None and code.co_filename == "<string>"
