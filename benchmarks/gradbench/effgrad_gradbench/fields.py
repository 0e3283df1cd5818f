"""Fields of an input that came as JSON, checked: each is what an evaluation asks for, or a `BadInput` says why not."""

from typing import Any

import numpy as np


class BadInput(ValueError):
    """An input of an evaluation that is not what the evaluation asks for."""


def field(source: Any, name: str) -> Any:
    """What an object has under a name."""
    if not isinstance(source, dict):
        raise BadInput(f"expected an object with a field {name!r}, got {type(source).__name__}")
    if name not in source:
        raise BadInput(f"the field {name!r} is missing")
    return source[name]


def number(value: Any, name: str = "input") -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadInput(f"{name} is {_kind(value)}, not a number")
    try:
        value = float(value)
    except OverflowError:
        value = np.inf
    if not np.isfinite(value):
        raise BadInput(f"{name} is {value}, not a finite number")
    return value


def integer(source: Any, name: str, least: int = 1, most: int = 10**9) -> int:
    """An integer field that is large enough, and not so large that nobody lives to see the result."""
    value = field(source, name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadInput(f"{name} is {_kind(value)}, not an integer")
    if value < least:
        raise BadInput(f"{name} is {value}, but must be at least {least}")
    if value > most:
        raise BadInput(f"{name} is more than {most}, which would take too long")
    return value


def truth(source: Any, name: str) -> bool:
    """A field that is true or false."""
    value = field(source, name)
    if not isinstance(value, bool):
        raise BadInput(f"{name} is {_kind(value)}, not true or false")
    return value


def array(source: Any, name: str, *shape: int | None) -> np.ndarray:
    """A field of nested lists of finite numbers, of a shape; None stands for any size but zero."""
    value = _array(source, name, shape, "fiu").astype(float)
    if not np.all(np.isfinite(value)):
        raise BadInput(f"{name} has an entry that is not finite")
    return value


def indices(source: Any, name: str, *shape: int | None, below: int, least: int = 0) -> np.ndarray:
    """A field of nested lists of integers, each at least `least` and less than `below`."""
    value = _array(source, name, shape, "iu")
    if np.any((value < least) | (value >= below)):
        raise BadInput(f"{name} has an index outside {least} to {below - 1}")
    return value


def _array(source: Any, name: str, shape: tuple[int | None, ...], kinds: str) -> np.ndarray:
    value = field(source, name)
    if not isinstance(value, list):
        raise BadInput(f"{name} is {_kind(value)}, not a list")
    try:
        result = np.array(value)
    except ValueError:
        raise BadInput(f"{name} is ragged: its rows have different lengths") from None
    expected = " x ".join("any" if size is None else str(size) for size in shape)
    if result.ndim != len(shape) or any(s not in (None, r) for s, r in zip(shape, result.shape, strict=True)):
        raise BadInput(f"{name} has the shape {' x '.join(map(str, result.shape))}, not {expected}")
    if any(size is None and not r for size, r in zip(shape, result.shape, strict=True)):
        raise BadInput(f"{name} is empty")
    if result.size and result.dtype.kind not in kinds:
        raise BadInput(f"{name} has entries that are not {'integers' if kinds == 'iu' else 'numbers'}")
    return result


def _kind(value: Any) -> str:
    names = {bool: "a truth value", str: "a string", list: "a list", dict: "an object", type(None): "null"}
    return names.get(type(value), f"{value!r}")
