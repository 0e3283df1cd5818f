"""Texts of traced numbers: those of the plain ones; one that has all digits may be read back as the traced number."""

from collections.abc import Callable
from typing import NoReturn

import numpy as np

from effgrad.errors import Detached
from effgrad.vocabulary import Value


class Text(str):
    """A text of the digits of a traced number, which compiled code would read back without its derivative.

    `number` is the traced number, where the text has all its digits: those of its neighbours are others.
    """

    __slots__ = ("number",)
    number: Value

    def __str__(self) -> str:
        return self

    def _refuse(self) -> NoReturn:
        raise Detached(
            f"{self!r} is the text of a traced number, and was read as a number, which would lose the derivative; "
            "use the number itself, or round(x, digits) where it is to be rounded"
        )

    __float__ = __complex__ = _refuse

    def __radd__(self, before: str) -> str:
        text: str = _with_digits(self, before + str.__str__(self))
        return text


def _with_digits(text: Text, part: Value) -> Value:
    """The result of a method of a text: a text of the number too, where it has its digits."""
    if type(part) in (list, tuple):
        return type(part)(_with_digits(text, item) for item in part)
    try:
        if float(part) != float(str.__str__(text)):
            return part
    except (TypeError, ValueError):
        return part
    kept = Text(part)
    kept.number = text.number
    return kept


def _method(name: str) -> Callable[..., Value]:
    plainly = getattr(str, name)
    return lambda text, *args, **options: _with_digits(text, plainly(text, *args, **options))


for _name in (
    "strip", "lstrip", "rstrip", "lower", "upper", "replace", "zfill", "ljust", "rjust", "center", "split", "rsplit",
    "partition", "rpartition", "splitlines", "removeprefix", "removesuffix", "expandtabs", "translate", "__getitem__",
    "__add__",
):  # fmt: skip
    setattr(Text, _name, _method(_name))


def of_number(write: Callable[[Value], str], traced: Value) -> str:
    """Return the text that a function writes of a traced value."""
    value = traced.shown()
    text = write(value)
    try:
        if float(text) != value:
            return text
    except (TypeError, ValueError):  # no number, or several
        return text
    made = Text(text)
    neighbours = (np.nextafter(value, np.inf), np.nextafter(value, -np.inf))
    made.number = None if any(write(type(value)(other)) == text for other in neighbours) else traced
    return made


def read_back(text: Value) -> Value:
    """The traced number of which a text has all digits; anything else as it is."""
    return text.number if type(text) is Text and text.number is not None else text
