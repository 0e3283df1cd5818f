"""The special methods that Python calls in `with`, `for` and `await`, rewritten if they are written in Python."""

from collections.abc import Iterator
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType, MethodType, WrapperDescriptorType
from typing import Any

from effgrad.program.resolve import call
from effgrad.vocabulary import Object

COMPILED = frozenset((WrapperDescriptorType, MethodDescriptorType, BuiltinFunctionType, type(None)))


def method_of(kind: Object, name: str) -> Object:
    """Return a special method that a class defines in Python, rewritten, or None if it has no such method."""
    found = getattr(kind, name, None)
    if type(found) in COMPILED:
        return None
    if vars(kind).get(name) is not found:  # it is inherited, or made by a descriptor
        found = next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)
    return call(found) if type(found) is FunctionType else _by_descriptor(found)


def _by_descriptor(descriptor: Object) -> Object:
    """Return a special method that a descriptor in Python binds, such as a `singledispatchmethod`, or None."""
    bind = getattr(type(descriptor), "__get__", None)
    if type(bind) is not FunctionType:
        return None
    return lambda owner, *args: call(call(bind)(descriptor, owner, type(owner)))(*args)


class Managed:
    """A context manager of the program with its methods rewritten."""

    def __init__(self, manager: Object, enter: Object, leave: Object) -> None:
        self.manager, self.enter, self.leave = manager, enter, leave

    def __enter__(self) -> Object:
        return self.enter(self.manager)

    def __exit__(self, *error: Object) -> Object:
        return self.leave(self.manager, *error)


def context(manager: Object) -> Object:
    """Return a context manager, with its methods rewritten if they are written in Python."""
    enter, leave = method_of(type(manager), "__enter__"), method_of(type(manager), "__exit__")
    return manager if enter is None or leave is None else Managed(manager, enter, leave)


class ManagedAsync(Managed):
    """A context manager of `async with`, with its methods rewritten."""

    __aenter__, __aexit__ = Managed.__enter__, Managed.__exit__


def context_async(manager: Object) -> Object:
    """Return a context manager of `async with`, with its methods rewritten if they are written in Python."""
    enter, leave = method_of(type(manager), "__aenter__"), method_of(type(manager), "__aexit__")
    return manager if enter is None or leave is None else ManagedAsync(manager, enter, leave)


class SteppingAsync:
    """An iterator of `async for` with its `__anext__` rewritten."""

    def __init__(self, iterator: Object, following: Object) -> None:
        self.iterator, self.following = iterator, following

    def __aiter__(self) -> "SteppingAsync":
        return self
    def __anext__(self) -> Object:
        return self.following(self.iterator)


def iterate_async(values: Object) -> Object:
    """Return the object that `async for` iterates over in place of `values`."""
    found = method_of(type(values), "__aiter__")
    if found is None:
        return values
    iterator = found(values)
    following = method_of(type(iterator), "__anext__")
    return iterator if following is None else SteppingAsync(iterator, following)


class Awaited:
    """An awaitable with its `__await__` rewritten."""

    def __init__(self, value: Object, wait: Object) -> None:
        self.value, self.wait = value, wait

    def __await__(self) -> Object:
        return self.wait(self.value)


def awaited(value: Object) -> Object:
    """Return the object that is awaited in place of `value`."""
    wait = method_of(type(value), "__await__")
    return value if wait is None else Awaited(value, wait)


def by_items(found: Any, values: Any) -> Iterator[Any]:
    """Iterate over an object that has `__getitem__` and no `__iter__`."""
    place = 0
    while True:
        try:
            item = found(values, place)
        except (IndexError, StopIteration):
            return
        yield item
        place += 1


class Stepping:
    """An iterator of the program with its `__next__` rewritten.

    The first `iter()` of it is Python's of a loop, whose `__iter__` was called already. Another one, which Python makes
    of the rest of `a, *b = iterator`, is a call of the program's own `__iter__`.
    """

    def __init__(self, following: Any, iterator: Any, iterate: Any) -> None:
        self.following, self.iterator, self.iterate = following, iterator, iterate
        self.begun = False

    def __iter__(self) -> Any:
        if self.begun:
            return self.iterate(self.iterator)
        self.begun = True
        return self

    def __next__(self) -> Any:
        return self.following(self.iterator)


def class_item(a: Object) -> Object:
    """Return a function for the `__class_getitem__` of a class, if that is written in Python, else None."""
    found = getattr(a, "__class_getitem__", None) if isinstance(a, type) else None
    if type(found) is not MethodType or hasattr(type(a), "__getitem__"):
        return None
    return lambda _, key: call(found)(key)


def missing_item(a: Object, key: Object) -> Object:
    """Return the `__missing__` of a dictionary, if that is written in Python and the key is absent, else None."""
    found = method_of(type(a), "__missing__") if isinstance(a, dict) else None
    return None if found is None or key in a else found
