"""Strings: the programs given to `eval` and `exec`, which are rewritten, and the conversion of values to strings.

A string with traced numbers written in it knows them (`effgrad.arrays.digits`). If it is a program, these numbers are
constants of its code. If a class of the program defines `__str__`, `__repr__` or `__format__` in Python, the conversion
calls the rewritten method (the Python Language Reference, 3.3.1).
"""

import builtins
import dataclasses
import functools
import re
import reprlib
import string
from collections.abc import Callable, Iterable
from typing import Any

from effgrad.arrays.digits import Text, of_number, of_parts, refuse_texts
from effgrad.arrays.value import Tracer
from effgrad.arrays.written import read
from effgrad.nested import map_leaves
from effgrad.program.classes import is_builtin
from effgrad.program.dataclass import has_generated_repr
from effgrad.program.infix import mod as remainder
from effgrad.program.managers import method_of
from effgrad.program.own_numbers import is_own_number
from effgrad.program.resolve import call
from effgrad.program.rewritten import SOURCES
from effgrad.vocabulary import Value


def text(function: Value, source: Value) -> Value:
    """Return rewritten code for a string that `eval` or `exec` is given, or else the argument unchanged."""
    mode = "eval" if function is builtins.eval else "exec" if function is builtins.exec else ""
    if not mode or type(source) not in (str, Text):
        return source
    if mode == "eval" and type(source) is str:
        refuse_texts(source)
    read = SOURCES.read_text if type(source) is Text else _read
    try:
        return read(source.lstrip(" \t") if mode == "eval" else source, mode)
    except (SyntaxError, ValueError, RecursionError):
        return source  # Python raises its own error for it


@functools.lru_cache(maxsize=256)
def _read(source: str, mode: str) -> Value:
    return SOURCES.read_text(source, mode)


TEXTS = frozenset((str, bytes, bytearray, Text))


def mod(a: Value, b: Value) -> Value:
    """Return `a % b`, which formats values if `a` is a string."""
    return filled(a, b) if type(a) in TEXTS else remainder(a, b)


# A conversion of `pattern % values` (the Python Library Reference, printf-style String Formatting).
CONVERSION = re.compile(r"%(?:\((?P<key>[^)]*)\))?[#0\- +]*(\*|\d+)?(?:\.(\*|\d+))?[hlL]?(?P<kind>.)")


def filled(pattern: Any, values: Value) -> Value:
    """Return `pattern % values` of a string, with the text that plain values would give."""
    if type(pattern) in (str, Text) and _fit(pattern, values):
        return joined(*_filled_parts(pattern, values))
    return pattern % map_leaves(shown, values)


def _fit(pattern: str, values: Value) -> bool:
    """Whether a pattern is correct and takes these values; if not, Python raises its own error."""
    found = [part for part in CONVERSION.finditer(pattern) if part["kind"] != "%"]
    if "%" in CONVERSION.sub("", pattern) or not all(part["kind"] in "diouxXeEfFgGcrsa" for part in found):
        return False
    if any(part["key"] is not None for part in found):
        stars = any("*" in (part[2], part[3]) for part in found)
        return type(values) is dict and not stars and all(part["key"] in values for part in found)
    count = len(values) if isinstance(values, tuple) else 1
    return count == sum(1 + (part[2] == "*") + (part[3] == "*") for part in found)


def _filled_parts(pattern: str, values: Value) -> Iterable[str]:
    """Yield the parts of `pattern % values`: the literal text, and the values as text."""
    left = list(values) if isinstance(values, tuple) else [values]
    end = 0
    for found in CONVERSION.finditer(pattern):
        yield pattern[end : found.start()]
        end = found.end()
        if found["kind"] == "%":
            yield "%"
            continue
        widths = tuple([left.pop(0) for group in (2, 3) if found[group] == "*"])
        value = values[found["key"]] if found["key"] is not None else left.pop(0)
        yield _converted(found[0].replace(f"({found['key']})", ""), widths, value)
    yield pattern[end:]


def _converted(conversion: str, widths: tuple[int, ...], value: Value) -> str:
    """Return a value converted by `%`, in a string."""
    kind, own = conversion[-1], not is_builtin(value) and not isinstance(value, Tracer)
    if kind in "sra" and (own or type(value) in DISPLAYED):
        made = formatted(value, kind, "")
        return of_parts((conversion[:-1] + "s") % (*widths, made), made)
    number = call(float)(value) if own and kind in "eEfFgG" else read(value)
    write: Callable[[Value], str] = lambda value: conversion % (*widths, value)  # noqa: E731
    return of_number(write, number) if isinstance(number, Tracer) else write(number)


class Formatter(string.Formatter):
    """A formatter like `str.format` that keeps the strings of which its result consists."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def parse(self, pattern: Any) -> Iterable[Any]:
        for part in super().parse(pattern):
            self.parts.append(part[0])
            yield part

    def convert_field(self, value: Value, conversion: Any) -> Value:
        return formatted(value, conversion, "") if conversion else value

    def format_field(self, value: Value, spec: str) -> str:
        made = formatted(value, "", spec)
        self.parts.append(made)
        return made


def format_into(pattern: str, *args: Value, **kwargs: Value) -> str:
    """Return `pattern.format(*args, **kwargs)`."""
    formatter = Formatter()
    result = formatter.vformat(pattern, args, kwargs)
    return of_parts(result, *formatter.parts)


def join(separator: str, texts: Iterable[str]) -> str:
    """Return `separator.join(texts)`."""
    items = list(texts)
    return of_parts(separator.join(items), *[part for item in items for part in (separator, item)][1:])


def joined(*parts: str) -> str:
    """Return the value of an f-string with these parts."""
    return of_parts("".join(parts), *parts)


def refusing_texts(f: Callable[..., Value]) -> Callable[..., Value]:
    """Return a function that refuses strings with digits of traced numbers, from which it would read plain ones."""

    @functools.wraps(f)
    def reading(*args: Value, **kwargs: Value) -> Value:
        if args:
            refuse_texts(args[0])
        return f(*args, **kwargs)

    return reading


class Shown:
    """Stands for an object of the program where compiled code converts it, and calls its rewritten methods."""

    def __init__(self, value: Value) -> None:
        self.value = value

    def __str__(self) -> str:
        return as_text(self.value)

    def __repr__(self) -> str:
        return represented(self.value)

    def __float__(self) -> float:
        return float(shown(call(float)(self.value)))

    def __int__(self) -> int:
        return int(shown(call(int)(self.value)))


CONVERTED = ("__str__", "__repr__", "__float__", "__int__")


def shown(value: Value) -> Value:
    """Return a value for compiled code that writes it, as the program would write it."""
    value = _read_unless(value, *CONVERTED)
    if isinstance(value, Tracer):
        of_number(str, value)  # its numerals are remembered
        return value.shown()
    own = not is_builtin(value) and any(method_of(type(value), name) is not None for name in CONVERTED)
    return Shown(value) if own else value


def _read_unless(value: Value, *methods: str) -> Value:
    """Return a value read from memory, except a number whose own class has one of these methods in Python."""
    own = is_own_number(value) and any(method_of(type(value), name) is not None for name in methods)
    return value if own else read(value)


def represented(value: Value) -> str:
    """Return `repr(value)`."""
    value = _read_unless(value, "__repr__")
    if isinstance(value, Tracer):
        return of_number(builtins.repr, value)
    if type(value) is dict or type(value) in DISPLAYED and not PRIMITIVE.issuperset(map(type, value)):
        return _displayed(value)
    if is_builtin(value):
        return builtins.repr(value)
    if has_generated_repr(type(value)):
        return _of_fields(value)
    found = method_of(type(value), "__repr__")
    return builtins.repr(value) if found is None else found(value)


@reprlib.recursive_repr()
def _of_fields(value: Any) -> str:
    """Return `repr` of a dataclass, as the method that `dataclasses` generates does."""
    fields = [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value) if field.repr]
    parts = [part for name, item in fields for part in (", ", f"{name}=", represented(item))]
    return joined(f"{type(value).__qualname__}(", *parts[1:], ")")


# Python's containers, which show their items by `repr`.
DISPLAYED = frozenset((list, tuple, dict))
PRIMITIVE = frozenset((int, float, complex, str, bool, type(None)))


def _displayed(value: Any) -> str:
    """Return `repr` of a container, in which traced numbers look like plain ones."""
    return _DISPLAY[type(value)](value)


def _display(start: str, end: str) -> Callable[[Any], str]:
    @reprlib.recursive_repr(f"{start}...{end}")
    def display(value: Any) -> str:
        if type(value) is dict:
            parts = [part for key, item in value.items() for part in (", ", represented(key), ": ", represented(item))]
        else:
            parts = [part for item in value for part in (", ", represented(item))]
        return joined(start, *parts[1:], f",{end}" if type(value) is tuple and len(value) == 1 else end)

    return display


_ENDS = {list: "[]", tuple: "()", dict: "{}"}
_DISPLAY: dict[Any, Callable[[Any], str]] = {kind: _display(*ends) for kind, ends in _ENDS.items()}


def as_text(value: Value) -> str:
    """Return `str(value)`."""
    value = _read_unless(value, "__str__", "__repr__")
    if type(value) in DISPLAYED:
        return represented(value)
    if is_builtin(value):
        return builtins.str(value)
    found = method_of(type(value), "__str__")
    if found is None and getattr(type(value), "__str__") is object.__str__:  # noqa: B009
        return represented(value)
    return builtins.str(value) if found is None else found(value)


def formatted(value: Value, how: str, spec: str) -> str:
    """Return a value as in an f-string, with the conversion `how` (s, r, a or empty) and the format `spec`."""
    value = _read_unless(value, "__format__", "__str__", "__repr__")
    if how:
        value = as_text(value) if how == "s" else represented(value)
        value = value.encode("ascii", "backslashreplace").decode() if how == "a" else value
    if type(value) in DISPLAYED and not spec:
        return represented(value)
    if is_builtin(value):
        return builtins.format(value, spec)
    found = method_of(type(value), "__format__")
    if found is None and is_own_number(value):
        return builtins.format(read(value), spec) if spec else as_text(value)
    if found is None and not spec and getattr(type(value), "__format__") is object.__format__:  # noqa: B009
        return as_text(value)
    return builtins.format(value, spec) if found is None else found(value, spec)
