"""Places that a loop assigns, attributes of objects and items of dictionaries, which it carries as it carries names.

    for _ in range(n):
        pendulum.step(dt)  # assigns pendulum.angle and pendulum.speed

The object is known at capture, and so is the place, which has a name of its own: `Pendulum.angle`. Capture finds the
places that a loop assigns, and begins again with them. Meanwhile each place holds `STALE`, so that no code of Python's
that capture runs can read the value from before the loop.
"""

import contextlib
import functools
import inspect
import operator
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType, MemberDescriptorType, ModuleType
from typing import Any, NoReturn

from effgrad.arrays.value import Tracer
from effgrad.stage.loop.affine import NotCaptured
from effgrad.stage.loop.operands import SYMBOLIC, Value
from effgrad.stage.loop.registry import is_library

# The key in `facts` for the places of a loop, and the largest number of times that capture begins again to find them.
PLACES, MOST_ROUNDS = (None, "places"), 10
MISSING: Any = object()


def _refuse(*_: object, **__: object) -> NoReturn:
    raise NotCaptured("an object whose attributes or items the loop assigns, read by code that is not captured")


# The base of values of which every use raises.
Unusable: Any = type("Unusable", (), dict.fromkeys((
    "__getattr__", "__bool__", "__len__", "__iter__", "__contains__", "__getitem__", "__call__", "__hash__",
    "__float__", "__int__", "__index__", "__complex__", "__array__", "__str__", "__repr__", "__format__", "__round__",
    "__abs__", "__neg__", "__pos__", "__invert__", "__copy__", "__deepcopy__", "__reduce_ex__",
    *(f"__{name}__" for name in ("eq", "ne", "lt", "le", "gt", "ge")),
    *(f"__{side}{name}__" for side in ("", "r") for name in (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor")),
), _refuse))  # fmt: skip
# What a place holds while its loop is captured.
STALE: Any = Unusable()


class Place(Unusable):  # type: ignore[misc]
    """An attribute of an object, or an item of a dictionary, with its name in a capture."""

    def __init__(self, holder: Value, key: Value, name: str) -> None:
        self.holder, self.key, self.name = holder, key, name
        self.storage = storage_of(holder, key)  # kept alive, since its identity is that of the place

    def value(self) -> Value:
        """The value that the place holds for Python."""
        return self.holder[self.key] if type(self.holder) is dict else getattr(self.holder, self.key)

    def putting(self, value: Value) -> Callable[[], None]:
        """A function that sets the value that the place holds for Python; no interrupt ends it half-way."""
        if type(self.holder) is dict:
            return functools.partial(dict.__setitem__, self.holder, self.key, value)
        if value is MISSING:
            return functools.partial(object.__delattr__, self.holder, self.key)
        return functools.partial(object.__setattr__, self.holder, self.key, value)

    def own_value(self) -> Value:
        """The value that the place holds, or `MISSING` if the class holds the attribute."""
        inherits = type(self.holder) is not dict and self.key not in getattr(self.holder, "__dict__", {})
        return MISSING if inherits and not _slot(self.holder, self.key) else self.value()


class Places:
    """The places that the loops of one capture assign, as far as this capture and those before it have found them."""

    def __init__(self) -> None:
        self.by_name: dict[str, Place] = {}
        self.names: dict[tuple[int, Value], str] = {}
        # The names of the places that each loop assigns; whether this capture has added one; how often it has begun.
        self.of_loop: dict[Value, set[str]] = {}
        self.is_new, self.rounds = False, 0
        # The values before the loop, by names.
        self.initial: dict[str, Value] = {}
        # The loops around the statement that is being captured; whether it may assign nothing.
        self.loops: list[Value] = []
        self.fixed = False

    def name(self, holder: Value, key: Value) -> str | None:
        """The name of a place that a loop assigns; None for all other attributes and items."""
        return self.names.get((id(storage_of(holder, key)), key)) if self.names else None

    def assigned(self, holder: Value, key: Value) -> str:
        """The name of a place that the program assigns."""
        name = self.name(holder, key)
        if self.fixed:
            raise NotCaptured("an attribute that is assigned in a test")
        if name is None:
            check_holder(holder, key)
            of = f"{type(holder).__name__}.{key}" if type(holder) is not dict else f"dict.{key}"
            name = of if of not in self.by_name else f"{of}.{len(self.by_name)}"
            self.by_name[name] = Place(holder, key, name)
            self.names[id(storage_of(holder, key)), key] = name
        for loop in self.loops:
            known = self.of_loop.setdefault(loop, set())
            self.is_new |= name not in known
            known.add(name)
        return name

    @contextlib.contextmanager
    def inside(self, loop: Value) -> Iterator[None]:
        """Within this context the body of a loop is captured."""
        self.loops.append(loop)
        try:
            yield
        finally:
            self.loops.pop()

    @contextlib.contextmanager
    def unchanged(self) -> Iterator[None]:
        """Within this context nothing is assigned, since Python may not run the code."""
        outer, self.fixed = self.fixed, True
        try:
            yield
        finally:
            self.fixed = outer

    @contextlib.contextmanager
    def hidden(self) -> Iterator[None]:
        """Within this context a capture runs, and the known places hold `STALE`."""
        self.is_new, self.rounds, self.loops = False, self.rounds + self.is_new, []
        if self.rounds > MOST_ROUNDS:
            raise NotCaptured("an attribute of an object that the loop makes")
        hiding = [place.putting(STALE) for place in self.by_name.values()]
        restoring = [place.putting(place.own_value()) for place in self.by_name.values()]
        self.initial = {name: place.value() for name, place in self.by_name.items()}
        try:
            list(map(operator.call, hiding))
            yield
        finally:
            list(map(operator.call, restoring))  # in C, so that an interrupt leaves no place hidden

    def move(self, source: dict[str, Value], target: dict[str, Value]) -> None:
        """Move the values of the places from one frame's names to another's."""
        for name in self.bound(source):
            target[name] = source.pop(name)

    def bound(self, *names: dict[str, Value]) -> set[str]:
        """The names of places among the names of frames."""
        return {name for name in self.by_name if any(name in own for own in names)}

    def read(self, method: Value, args: Sequence[Value]) -> Value:
        """Call a method of a dictionary that reads items; of items that are assigned it gives the places."""
        holder = method.__self__
        places = {key: self.by_name[name] for key in holder if (name := self.name(holder, key)) is not None}
        found = getattr({**holder, **places}, method.__name__)(*args)
        return found if method.__name__ == "get" else list(found)

    def put_back(self, results: dict[str, Value]) -> dict[str, Value]:
        """Assign the values after the loop to the places, and return those of the other names."""
        for name in self.bound(results):
            self.by_name[name].putting(results.pop(name))()
        return results


def storage_of(holder: Value, key: Value) -> Value:
    """The object that holds the value: a dictionary, which objects may share as their attributes, or one with slots."""
    if type(holder) is dict or _slot(holder, key):
        return holder
    return getattr(holder, "__dict__", holder)


def check_holder(holder: Value, key: Value) -> None:
    """Raise if a place is not one of a dictionary's items, or of an object's attributes that Python keeps as such."""
    kind: Any = type(holder)
    if isinstance(holder, (*SYMBOLIC, Tracer, type, ModuleType)):
        raise NotCaptured("an assignment to an attribute")
    if kind is dict:
        if key not in holder:
            raise NotCaptured("an item that is added to a dictionary")
        return
    if kind.__setattr__ is not object.__setattr__ or kind.__getattribute__ is not object.__getattribute__:
        raise NotCaptured(f"an assignment to an attribute of {kind.__name__!r}, which defines how it is done")
    in_class = inspect.getattr_static(kind, key, None)
    if hasattr(type(in_class), "__set__") and not _slot(holder, key):
        raise NotCaptured("an assignment to a property")
    if not hasattr(holder, key):
        raise NotCaptured(f"the attribute {key!r}, which is assigned for the first time")


def _slot(holder: Value, key: Value) -> bool:
    return isinstance(key, str) and isinstance(inspect.getattr_static(type(holder), key, None), MemberDescriptorType)


def getter(holder: Value, key: str) -> FunctionType | None:
    """The function of a property of an object, or None."""
    return _of_property(holder, key, "fget")


def setter(holder: Value, key: Value) -> FunctionType | None:
    """The function that an assignment to a property of an object calls, or None."""
    kind: Any = type(holder)
    if not isinstance(key, str) or kind.__setattr__ is not object.__setattr__:
        return None
    function = _of_property(holder, key, "fset")
    return None if function is None or is_library(function) else function


def _of_property(holder: Value, key: str, name: str) -> FunctionType | None:
    """The function in Python that a property of an object has by a name, or None."""
    found = inspect.getattr_static(type(holder), key, None)
    function = getattr(found, name) if isinstance(found, property) else None
    return function if isinstance(function, FunctionType) else None
