"""Functions without source: their code is unchanged, but a look-up of a global name gives the name's rule."""

from collections.abc import Callable
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from effgrad.vocabulary import Object


def like(f: FunctionType, result: FunctionType) -> FunctionType:
    result.__kwdefaults__, result.__qualname__, result.__doc__ = f.__kwdefaults__, f.__qualname__, f.__doc__
    result.__module__, result.__annotations__ = f.__module__, f.__annotations__
    result.__dict__.update(f.__dict__)
    return result


class Namespace(ModuleType):
    """A module as a function without source sees it: attributes with a rule are replaced by the rule."""

    def __init__(self, module: ModuleType, link: Callable[[Object], Object]) -> None:
        super().__init__(module.__name__, module.__doc__)
        self.__dict__.update({"@module": module, "@link": link})

    def __getattr__(self, name: str) -> Object:
        return self.__dict__["@link"](getattr(self.__dict__["@module"], name))


class LinkedUfunc:
    """A ufunc as a function without source sees it: a call and each method have their rules."""

    def __init__(self, ufunc: np.ufunc, link: Callable[[Object], Any]) -> None:
        self.ufunc, self.link = ufunc, link

    def __call__(self, *args: Object, **kwargs: Object) -> Object:
        return self.link(self.ufunc)(*args, **kwargs)

    def __getattr__(self, name: str) -> Object:
        value = getattr(self.ufunc, name)
        return self.link(value) if callable(value) else value


class Linked(dict[str, Any]):
    """The globals of a function without source; a look-up gives the rule of a value that has one."""

    def __init__(self, names: dict[str, Object], link: Callable[[Object], Object]) -> None:
        super().__init__({key: names[key] for key in ("__builtins__", "__name__") if key in names})
        self.names, self.link = names, link

    def __getitem__(self, name: str) -> Object:
        return self.link(self.names[name])


def cells_of(code: CodeType, f: FunctionType) -> tuple[CellType, ...] | None:
    """The cells of a function for other code, or None if it has not all of them."""
    closure = f.__closure__ or ()
    names = code.co_freevars
    if not names and not closure:
        return closure
    cells = dict(zip(f.__code__.co_freevars, closure, strict=True))
    return tuple(map(cells.__getitem__, names)) if cells.keys() >= set(names) else None


def content(cell: CellType) -> Object:
    """The content of a closure's cell, or None while it is empty."""
    try:
        return cell.cell_contents
    except ValueError:
        return None
