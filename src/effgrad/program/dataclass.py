"""The `__init__` that `dataclasses` generates, which has no source but calls a `__post_init__` that must be rewritten.

An object with a `__dict__` holds the rewritten method while `__init__` runs. An object with slots cannot hold it, so
its fields are set here as the generated code sets them (the documentation of `dataclasses`, "Post-init processing").
"""

import dataclasses
import inspect
from collections.abc import Callable
from types import FunctionType

from effgrad.vocabulary import Function, Value


def initialiser(start: FunctionType, call: Callable[[Value], Value]) -> Function:
    """Return `__init__` with its `__post_init__` rewritten by `call`."""

    def initialise(self: Value, /, *args: Value, **kwargs: Value) -> None:
        own, finish = getattr(self, "__dict__", None), type(self).__post_init__
        if type(finish) is not FunctionType:
            start(self, *args, **kwargs)
        elif own is None:
            call(finish)(self, *set_fields(start, self, args, kwargs))
        else:

            def finished(*given: Value) -> None:
                del own["__post_init__"]
                call(finish)(self, *given)

            own["__post_init__"] = finished
            start(self, *args, **kwargs)

    return initialise


def set_fields(start: FunctionType, new: Value, args: tuple[Value, ...], kwargs: dict[str, Value]) -> list[Value]:
    """Set the fields of an object with slots, and return the arguments for its `__post_init__`."""
    try:
        given = inspect.signature(start).bind(new, *args, **kwargs).arguments
    except TypeError:
        start(new, *args, **kwargs)  # raises Python's own error
        raise
    fields, rest = new.__dataclass_fields__, []
    ordinary = {field.name for field in dataclasses.fields(new)}
    for name, field in fields.items():
        if field.init and name in given:
            value = given[name]
        elif field.default_factory is not dataclasses.MISSING:
            value = field.default_factory()
        elif field.default is not dataclasses.MISSING:
            value = field.default
        else:
            continue
        if name in ordinary:
            object.__setattr__(new, name, value)
        elif name in inspect.signature(start).parameters:
            rest.append(value)
    return rest

