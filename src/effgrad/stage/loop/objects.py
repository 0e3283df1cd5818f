"""Objects of the program's own classes that a loop makes anew in each step, as `position = position + velocity * dt`.

Such an object is known to capture from the call of its class, so capture knows its attributes, which hold symbolic
values, and may assign them in the block that makes it. Afterwards it is only read. From step to step the loop carries
the attributes, and the next step has an object of its own with them. The program cannot tell the difference as long as
no two names have the same object at the end of a step, which `check_names` sees to.
"""

import copy
import dataclasses
import inspect
from collections.abc import Iterator, Mapping
from types import FunctionType

from effgrad.stage.loop.affine import NotCaptured
from effgrad.stage.loop.containers import MADE, is_made, like, parts_of
from effgrad.stage.loop.desugar import origin
from effgrad.stage.loop.frames import FactFound
from effgrad.stage.loop.operands import Complex, Value
from effgrad.stage.loop.registry import is_library

_SIZE = type("Plain", (), {}).__basicsize__
# The methods by which a class defines how `copy.copy` copies its objects.
COPYING = ("__copy__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__")


def is_plain(value: Value) -> bool:
    """Whether a value is an object of a class of the program that nothing but its attributes makes up."""
    return is_plain_class(type(value)) and not is_made(value)


def is_plain_class(kind: Value) -> bool:
    """Whether a value is a class of the program whose objects keep their attributes in a `__dict__`, as Python does."""
    if not isinstance(kind, type) or type(kind).__call__ is not type.__call__ or kind.__basicsize__ != _SIZE:
        return False
    methods = ("__new__", "__setattr__", "__delattr__", "__getattribute__")
    own = any(getattr(kind, name) is not getattr(object, name) for name in methods)
    hooks = any(hasattr(kind, name) for name in ("__getattr__", "__del__"))
    above = [base for base in kind.__mro__ if base is not object]
    return bool(above) and not own and not hooks and not any(map(is_library, above))


def begun(kind: type) -> Value:
    """A new object of a class, without attributes."""
    made: Value = object.__new__(kind)
    made.__dict__[MADE] = frozenset([object()])
    return made


def initialize(made: Value, args: list[Value], kwargs: Mapping[str, Value], capture: Value) -> None:
    """Give a new object its attributes, as its class does when it is called."""
    kind = type(made)
    init = inspect.getattr_static(kind, "__init__")
    if not isinstance(init, FunctionType):
        if args or kwargs:
            raise NotCaptured(f"a call of {kind.__name__!r} with arguments")
    elif dataclasses.is_dataclass(kind) and init.__code__.co_filename == "<string>":
        _set_fields(made, inspect.signature(init).bind(made, *args, **kwargs).arguments, capture)
    else:
        capture.inline(init, [made, *args], kwargs)


def _set_fields(made: Value, given: dict[str, Value], capture: Value) -> None:
    """Set the fields of a dataclass as the method does that `dataclasses` generates."""
    fields = dataclasses.fields(made)
    if not given.keys() - {next(iter(given))} <= {field.name for field in fields}:
        raise NotCaptured("a dataclass with arguments that are no fields")
    for field in fields:
        if field.name in given:
            assign(made, field.name, given[field.name], capture)
        elif field.default_factory is not dataclasses.MISSING:
            assign(made, field.name, capture.call(field.default_factory, [], {}), capture)
        elif field.init:
            assign(made, field.name, field.default, capture)
    if after := getattr(type(made), "__post_init__", None):
        capture.inline(after, [made], {})


def check_read(value: Value, key: str) -> None:
    """Raise if an attribute of an object that the loop makes, or of `super()`, runs code that is not captured."""
    above = type(value) is super
    if not above and not is_made(value):
        return
    kinds = type(value.__self__).__mro__ if above else type(value).__mro__
    kinds = kinds[kinds.index(value.__thisclass__) + 1 :] if above else kinds
    found = next((vars(kind)[key] for kind in kinds if key in vars(kind)), None)
    known = isinstance(found, FunctionType | classmethod | staticmethod) or isinstance(found, property) and not above
    if key == "__dict__" or (above or key not in value.__dict__) and hasattr(type(found), "__get__") and not known:
        raise NotCaptured(f"the attribute {key!r} of an object that the loop makes")


def assign(made: Value, key: str, value: Value, capture: Value) -> None:
    """Assign to an attribute of an object that the capture has made in the current block."""
    if not capture.makes(made):
        raise NotCaptured("an attribute of an object that the loop makes, assigned in another step or in a branch")
    if hasattr(type(inspect.getattr_static(type(made), key, None)), "__set__"):
        raise NotCaptured("an assignment to a property")
    made.__dict__[key] = capture.lift(value)


def adopted(value: Value, name: str, cells: Value) -> Value:
    """The value that a name has before a loop, with objects of the capture for those that each step replaces.

    The loop has copies of them, so the objects themselves may not be changed any more.
    """
    capture = cells.capture
    if is_made(value):
        capture.lists.pop(id(value), None)
    if replaced(name, origin(cells.loop)) in capture.facts and is_plain(value):
        if not cells.least:
            raise NotCaptured(f"{name!r}, an object that a loop of no steps would keep")
        made = begun(type(value))
        made.__dict__[MADE] = frozenset([id(value)])
        for key, part in value.__dict__.items():
            if capture.places.name(value, key) is not None:
                raise NotCaptured("an object whose attributes the loop assigns, and that it replaces")
            made.__dict__[key] = capture.lift(part)
        value = made
    parts = None if isinstance(value, Complex) else parts_of(value)
    return value if parts is None else like(value, [adopted(v, f"{name}_{k}", cells) for k, v in enumerate(parts)])


def objects_in(value: Value) -> Iterator[Value]:
    """The objects that the capture has made among a value and its parts."""
    if is_made(value):
        yield value
        if any(isinstance(part, list | dict | set) for part in parts_of(value) or ()):
            raise NotCaptured("an object that the loop makes, and that has a list, a dictionary or a set")
    for part in parts_of(value) or ():
        yield from objects_in(part)


def check_names(values: Mapping[str, Value]) -> None:
    """Raise if two names, or two parts of what they have, may have one object."""
    seen: set[object] = set()
    for name, value in values.items():
        for made in objects_in(value):
            if not seen.isdisjoint(made.__dict__[MADE]):
                raise NotCaptured(f"{name!r} has an object that the loop makes, and that may have another name")
            seen |= made.__dict__[MADE]


def replaced(name: str, loop: Value) -> tuple[Value, str]:
    """The key in `facts` for a name that has an object before a loop, and another of its class after each step."""
    return loop, f"{name} is replaced"


def check_replaced(before: Value, after: Value, name: str, loop: Value) -> None:
    """Capture again if a name, or a part of its value, has an object before a loop and another one after a step."""
    if is_plain(before) and type(after) is type(before) and after is not before:
        raise FactFound(replaced(name, loop), True)
    parts = zip(parts_of(before) or (), parts_of(after) or (), strict=False)
    for k, (a, b) in enumerate(() if isinstance(before, Complex) else parts):
        check_replaced(a, b, f"{name}_{k}", loop)


def check_branches(a: Value, b: Value, name: str, capture: Value) -> None:
    """Capture again if a branch leaves a name with its object from before the loop or with one that the loop makes."""
    if type(a) is type(b) and is_plain_class(type(a)) and is_made(a) is not is_made(b):
        for loop in reversed(capture.places.loops):
            if replaced(name, loop) not in capture.facts:
                raise FactFound(replaced(name, loop), True)


def parent(frame: Value) -> Value:
    """`super()` in a method: the attributes of the classes above."""
    arguments = frame.source.node.args
    return super(frame["__class__"], frame[[*arguments.posonlyargs, *arguments.args][0].arg])


def copied(f: Value, args: list[Value], changes: Mapping[str, Value], capture: Value) -> Value:
    """The result of `copy.copy` or `dataclasses.replace` for an object, or None if `f` is another function."""
    if not any(f is one for one in (copy.copy, dataclasses.replace)) or not args or not is_plain_class(type(args[0])):
        return None
    value, kind = args[0], type(args[0])
    if f is dataclasses.replace:
        fields = {field.name: capture.attribute(value, field.name) for field in dataclasses.fields(value) if field.init}
        return capture.call(kind, [], {**fields, **changes})
    if any(getattr(kind, name, None) is not getattr(object, name, None) for name in COPYING):
        raise NotCaptured(f"a copy of a {kind.__name__!r}, which defines how it is made")
    made = capture.own(begun(kind))
    for key in value.__dict__.keys() - {MADE}:
        assign(made, key, capture.attribute(value, key), capture)
    return made


def either(joined: Value, a: Value, b: Value, capture: Value) -> Value:
    """Mark an object that a branch leaves as one of two, of which none may be changed any more."""
    if is_made(joined):
        joined.__dict__[MADE] = a.__dict__[MADE] | b.__dict__[MADE]
        for one in (a, b):
            capture.lists.pop(id(one), None)
    return joined


def released(value: Value) -> Value:
    """An object as the program gets it."""
    if is_made(value):
        del value.__dict__[MADE]
    return value
