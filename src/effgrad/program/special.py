"""Python's built-in functions that call a special method: `abs(p)`, `float(p)`, `iter(p)`, `getattr(p, name)`.

If a class of the program defines the method in Python, its rewritten method is called; else the function is Python's.
"""

import ast
import builtins
import decimal
import fractions
import functools
import json
import logging
import operator
import types

import numpy as np

from effgrad.arrays.digits import Text, as_constant, read_back, refuse_texts
from effgrad.arrays.value import Tracer
from effgrad.nested import map_leaves
from effgrad.program import operations
from effgrad.program.attributes import get_by_object, put_by_object
from effgrad.program.classes import is_builtin
from effgrad.program.duck_arrays import defines_ufuncs, ufunc_of
from effgrad.program.managers import method_of
from effgrad.program.own_numbers import is_own_number
from effgrad.program.resolve import KNOWN, call
from effgrad.program.texts import TEXTS, as_text, format_into, formatted, join, refusing_texts, represented, shown
from effgrad.program.truths import truth
from effgrad.program.used_up import items_of, sum_of
from effgrad.vocabulary import Function, Value

METHODS: dict[Value, str] = {
    abs: "__abs__", round: "__round__", divmod: "__divmod__", reversed: "__reversed__",
    float: "__float__", complex: "__complex__", int: "__int__", bool: "__bool__", hash: "__hash__",
    operator.index: "__index__",
}  # fmt: skip
# Functions that iterate over their first argument.
ITERATING = (tuple, list, set, frozenset, enumerate)
# Those of them that do so at once.
USING_UP = (tuple, list)
# Functions that compare the items of their only argument, or their arguments if there are several.
COMPARING = (min, max, sorted)
# Attributes by which programs tell arrays from numbers.
OF_ARRAYS = frozenset((
    "__len__", "__iter__", "__getitem__", "__setitem__", "__contains__", "shape", "ndim", "dtype", "size",
))  # fmt: skip
# Attributes that traced values have for the numbers among them.
OF_NUMBERS = frozenset(("is_integer", "bit_length", "bit_count", "as_integer_ratio", "to_bytes"))
# They read numbers from texts.
OF_TEXTS = (np.fromstring, np.loadtxt, np.genfromtxt, ast.literal_eval, json.loads, json.load, compile)
LOGGING = ("debug", "info", "warning", "error", "exception", "critical", "log")
OPERATORS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "lt", "le", "gt", "ge", "eq", "ne",
             "neg", "pos", "invert", "getitem", "and_", "or_", "xor", "lshift", "rshift",
             *operations.IN_PLACE)  # fmt: skip


def method_of_first(args: tuple[Value, ...], name: str) -> Value:
    """Return the rewritten method of the first argument that a class of the program defines, or None."""
    return None if not args or is_builtin(args[0]) else method_of(type(args[0]), name)


def by_method(f: Value, name: str) -> Function:
    """Return the target of a built-in function that calls a method of its first argument."""
    plainly = call(f)

    def asked(*args: Value, **kwargs: Value) -> Value:
        if f in (float, complex) and args and type(args[0]) in TEXTS:
            if type(args[0]) is Text:
                return read_back(args[0], f)
            refuse_texts(args[0])
        found = method_of_first(args, name)
        if f is abs and found is None and args and isinstance(args[0], np.ndarray) and defines_ufuncs(args[0]):
            found = ufunc_of("abs")
        return plainly(*args, **kwargs) if found is None else found(*args, **kwargs)

    return asked


def iterating(f: Value) -> Function:
    """Return the target of a function that iterates over its first argument."""
    plainly = call(f)

    def through(*args: Value, **kwargs: Value) -> Value:
        if args and not is_builtin(args[0]):
            args = operations.iterate(args[0]), *args[1:]
        if args and f in USING_UP:
            args = items_of(args[0]), *args[1:]
        return plainly(*args, **kwargs)

    return through


PLAIN_SUM = call(sum)


def total(items: Value, /, start: Value = 0) -> Value:
    """Return `sum(items, start)`, by the rewritten operators of items of classes of the program."""
    if (found := sum_of(items, start)) is not None:
        return found
    items = items if isinstance(items, Tracer) else [*operations.iterate(items)]
    if isinstance(items, Tracer) or all(map(is_builtin, items)) or isinstance(start, str | bytes | bytearray):
        return PLAIN_SUM(items, start)
    return functools.reduce(operations.add, items, start)


class Ordered:
    """An item of a comparison that calls the rewritten methods of a class of the program."""

    def __init__(self, item: Value) -> None:
        self.item = item

    def __lt__(self, other: "Ordered") -> bool:
        return bool(truth(operations.lt(self.item, other.item)))

    def __gt__(self, other: "Ordered") -> bool:
        return bool(truth(operations.gt(self.item, other.item)))


def comparing(f: Value) -> Function:
    """Return the target of a function that compares items with each other."""
    plainly = call(f)

    def compared(*args: Value, **kwargs: Value) -> Value:
        if len(args) == 1 and not is_builtin(args[0]):
            args = (operations.iterate(args[0]),)
        if len(args) == 1 and type(args[0]) not in (list, tuple) and not isinstance(args[0], Tracer):
            return plainly(*args, **kwargs)
        items = args[0] if len(args) == 1 else args
        if not isinstance(items, Tracer) and any(map(is_own_number, items)):  # the result is one of them
            key = kwargs.get("key")
            return f(*args, **{**kwargs, "key": Ordered if key is None else call(key)})
        if kwargs.get("key") is None and not isinstance(items, Tracer) and any(map(_decides_order, items)):
            return plainly(*args, **{**kwargs, "key": Ordered})
        return plainly(*args, **kwargs)

    return compared


def _decides_order(item: Value) -> bool:
    return not is_builtin(item) and method_of(type(item), "__lt__") is not None


def is_instance(value: Value, kind: Value, /) -> bool:
    """Return `isinstance(value, kind)`. An abstract class such as `Iterable` tests the class that a tracer imitates."""
    if not isinstance(value, kind):
        return False
    if not isinstance(value, Tracer) or type(kind) is type:
        return True
    if isinstance(kind, types.UnionType):
        kind = kind.__args__
    if isinstance(kind, tuple):
        return any(is_instance(value, part) for part in kind)
    try:
        return issubclass(value.__class__, kind)
    except TypeError:  # a protocol with data attributes, for which Python allows only `isinstance`
        return True


def get_attribute(*args: Value) -> Value:
    if len(args) not in (2, 3):
        return getattr(*args)
    if len(args) == 3 and _lacks(args[0], args[1]):
        return args[2]
    try:
        return operations.attribute(args[0], args[1])
    except AttributeError:
        if len(args) == 2 or _stands_for_one_with(args[0], args[1]):
            raise
        return args[2]


def has_attribute(owner: Value, name: str, /) -> bool:
    if _lacks(owner, name):
        return False
    try:
        operations.attribute(owner, name)
    except AttributeError:
        return _stands_for_one_with(owner, name)
    return True


def _lacks(owner: Value, name: str) -> bool:
    """Whether a traced value has an attribute that the number or array it stands for lacks, such as `__len__`."""
    known = name in OF_ARRAYS or name in OF_NUMBERS
    return known and isinstance(owner, Tracer) and not hasattr(owner.__class__, name)


def _stands_for_one_with(owner: Value, name: str) -> bool:
    """Whether a traced value stands for a number or an array with an attribute."""
    return isinstance(owner, Tracer) and name[:2] != "__" and hasattr(owner.__class__, name)


def set_attribute(owner: Value, name: str, value: Value, /) -> None:
    operations.setattribute(value, owner, name)


def delete_attribute(owner: Value, name: str, /) -> None:
    operations.delattribute(owner, name)


ATTRIBUTES = {
    getattr: get_attribute, hasattr: has_attribute, setattr: set_attribute, delattr: delete_attribute,
    isinstance: is_instance,
}  # fmt: skip


def iterator(*args: Value) -> Value:
    """Return `iter(...)`; for a class of the program it is the very object that its `__iter__` returns."""
    found = method_of_first(args, "__iter__") if len(args) == 1 else None
    if found is None:
        return iter(operations.iterate(args[0])) if len(args) == 1 else builtins.iter(*args)
    result = found(args[0])
    return result if hasattr(type(result), "__next__") else builtins.iter(*args)


def following(*args: Value) -> Value:
    """Return `next(...)`, by the rewritten `__next__` of a class of the program."""
    found = method_of_first(args, "__next__")
    if found is None:
        return builtins.next(*args)
    try:
        return found(args[0])
    except StopIteration:
        if len(args) == 1:
            raise
        return args[1]


def text_of(*args: Value, **kwargs: Value) -> str:
    return str(*args, **kwargs) if len(args) != 1 or kwargs else as_text(args[0])


def format_of(value: Value, spec: str = "", /) -> str:
    return formatted(value, "", spec)


def reading(f: Value) -> Function:
    """Return the target of a constructor of numbers that may be given the text of a traced number."""
    plainly = call(f)

    def made(*args: Value, **kwargs: Value) -> Value:
        return plainly(*map(number, args), **kwargs)

    def number(value: Value) -> Value:
        if type(value) is Text:
            return read_back(value, float) if f is np.float64 else as_constant(value)
        refuse_texts(value)
        return value

    return made


def print_texts(*args: Value, **kwargs: Value) -> None:
    print(*map(as_text, args), **kwargs)


def logged(f: Value) -> Function:
    """Return the target of a function that logs, which gets the numbers that traced values show."""

    def called(*args: Value, **kwargs: Value) -> None:
        given = [arg if isinstance(arg, logging.Logger) else map_leaves(shown, arg) for arg in args]
        # The line that is logged is that of the program, one frame above this one.
        f(*given, **{**kwargs, "stacklevel": kwargs.get("stacklevel", 1) + 1})

    return called


def enter() -> None:
    """Register the targets of these functions."""
    targets: dict[Value, Value] = {f: by_method(f, name) for f, name in METHODS.items()}
    targets |= {f: iterating(f) for f in ITERATING} | {f: comparing(f) for f in COMPARING} | ATTRIBUTES
    targets |= {getattr(operator, name): getattr(operations, name) for name in OPERATORS}
    targets |= {sum: total, operator.setitem: lambda holder, key, value, /: operations.setitem(value, holder, key)}
    targets |= {operator.truth: lambda value, /: bool(truth(value))}
    targets |= {operator.not_: lambda value, /: not truth(value)}
    targets |= {repr: represented, str: text_of, format: format_of, print: print_texts}
    targets |= {str.join: join, str.format: format_into}
    targets |= {any: lambda items, /: any(map(truth, operations.iterate(items)))}
    targets |= {all: lambda items, /: all(map(truth, operations.iterate(items)))}
    targets |= {object.__getattribute__: get_by_object, object.__setattr__: put_by_object}
    targets |= {f: reading(f) for f in (np.float64, decimal.Decimal, fractions.Fraction)}
    targets |= {getattr(of, name): logged(getattr(of, name)) for of in (logging, logging.Logger) for name in LOGGING}
    targets |= {iter: iterator, next: following}
    targets |= {operator.contains: lambda holder, value: operations.contains(value, holder)}
    targets |= {f: refusing_texts(call(f)) for f in OF_TEXTS}
    for f, target in targets.items():
        KNOWN.keep(f, target)


enter()
