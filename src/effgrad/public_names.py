"""The names of a library's functions as its users know them, for errors."""

import inspect
import sys
from types import FrameType, FunctionType


def public_module(module: str) -> str:
    """The name of a module as users know it: its part before the first private module."""
    parts = module.split(".")
    return ".".join(parts[: next((i for i, part in enumerate(parts) if part.startswith("_")), len(parts))])


def name_of_call(frame: FrameType) -> str:
    """The public name of the function that a frame runs: a method by the class of its object, a wrapper's function."""
    module, name, code = frame.f_globals["__name__"], frame.f_code.co_qualname, frame.f_code
    if "<locals>" in name and code.co_flags & inspect.CO_VARARGS and code.co_flags & inspect.CO_VARKEYWORDS:
        inside = (frame.f_locals.get(cell) for cell in code.co_freevars)
        wrapped = next((f for f in inside if type(f) is FunctionType and "<" not in f.__qualname__), None)
        if wrapped is not None:
            module, name = wrapped.__module__, wrapped.__qualname__
    method = name.rpartition(".")[2]
    if "." in name and (kind := _class_of_object(frame, module, method)) is not None:
        module, name = kind.__module__, f"{kind.__name__}.{method}"
    return f"{_shortest(module, name.partition('.')[0])}.{name}"


def _class_of_object(frame: FrameType, module: str, method: str) -> type | None:
    """The class of the object whose method a frame runs, if it is a public class of the same library."""
    given = [frame.f_locals["self"]] if "self" in frame.f_locals else frame.f_locals.get("args")
    kind = type(given[0]) if type(given) in (list, tuple) and given else object
    of_library = str(kind.__module__).partition(".")[0] == module.partition(".")[0]
    return kind if of_library and hasattr(kind, method) and not kind.__name__.startswith("_") else None


def _shortest(module: str, name: str) -> str:
    """The outermost package of a module that has the module's function or class of a name, else its public part."""
    parts = public_module(module).split(".")
    found = getattr(sys.modules.get(module), name, None)
    packages = [".".join(parts[:count]) for count in range(1, len(parts) + 1)]
    holding = (package for package in packages if getattr(sys.modules.get(package), name, None) is found)
    return packages[-1] if found is None else next(holding, packages[-1])
