"""Texts: programs that `eval` and `exec` are given, which are rewritten, and values that become texts.

Where a class of the program writes `__str__`, `__repr__` or `__format__` in Python, these are calls (the Python
Language Reference, 3.3.1).
"""

import builtins
import functools
from typing import Any

from effgrad.arrays.digits import of_number
from effgrad.arrays.value import Tracer
from effgrad.arrays.written import read
from effgrad.program.classes import is_builtin
from effgrad.program.infix import mod as remainder
from effgrad.program.managers import method_of
from effgrad.program.rewritten import SOURCES
from effgrad.vocabulary import Value


def text(function: Value, source: Value) -> Value:
    """Return the program that `eval` or `exec` runs for a text."""
    mode = "eval" if function is builtins.eval else "exec" if function is builtins.exec else ""
    if not mode or type(source) is not str:
        return source
    try:
        return _read(source.lstrip(" \t") if mode == "eval" else source, mode)
    except (SyntaxError, ValueError, RecursionError):
        return source  # Python's own error


@functools.lru_cache(maxsize=256)
def _read(source: str, mode: str) -> Value:
    return SOURCES.read_text(source, mode)


TEXTS = frozenset((str, bytes, bytearray))


def mod(a: Value, b: Value) -> Value:
    """`a % b`: of a text, the text with values in it."""
    return filled(a, b) if type(a) in TEXTS else remainder(a, b)


def filled(pattern: Any, values: Value) -> Value:
    """`pattern % values`, as of plain values."""
    if type(values) is tuple:
        shown: Any = tuple([_shown(value) for value in values])
        return pattern % shown
    if type(values) is dict:
        return pattern % {key: _shown(value) for key, value in values.items()}
    values = read(values)
    if type(pattern) is str and isinstance(values, Tracer):
        return of_number(lambda value: pattern % value, values)
    return pattern % _shown(values)


def _shown(value: Value) -> Value:
    value = read(value)
    return value.shown() if isinstance(value, Tracer) else value


def represented(value: Value) -> str:
    """`repr(value)`."""
    value = read(value)
    found = None if is_builtin(value) else method_of(type(value), "__repr__")
    return builtins.repr(value) if found is None else found(value)


def as_text(value: Value) -> str:
    """`str(value)`."""
    value = read(value)
    if is_builtin(value):
        return builtins.str(value)
    found = method_of(type(value), "__str__")
    if found is None and getattr(type(value), "__str__") is object.__str__:  # noqa: B009
        return represented(value)
    return builtins.str(value) if found is None else found(value)


def formatted(value: Value, how: str, spec: str) -> str:
    """A value in an f-string, as `how` (s, r, a or nothing) and the part after the colon say."""
    value = read(value)
    if how:
        value = as_text(value) if how == "s" else represented(value)
        value = value.encode("ascii", "backslashreplace").decode() if how == "a" else value
    if is_builtin(value):
        return builtins.format(value, spec)
    found = method_of(type(value), "__format__")
    if found is None and not spec and getattr(type(value), "__format__") is object.__format__:  # noqa: B009
        return as_text(value)
    return builtins.format(value, spec) if found is None else found(value, spec)
