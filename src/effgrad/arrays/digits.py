"""Strings with digits of traced numbers.

Converting a traced number to a string makes a `Text`, a string that knows which of its numerals stands for which
number. Strings that a program makes of it, by `+`, f-strings, `join` or methods of `str`, are of this class too. A
numeral that has all digits of a number is read back as that number. A numeral that is rounded is a constant.

Where a program decides by a `Text` (compares it, takes its length), the path of a compiled program and the members of a
batch have to agree about the numbers in it. Printing it asks for no agreement.

Code that is not rewritten makes plain strings of a `Text`: a file, `re.findall`, `csv`. So a derivative remembers the
numerals that it wrote for traced numbers, and a plain string with one of them cannot be read as a number.
"""

import io
import re
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from effgrad.arrays.value import NUMERIC, Tracer, depends, plain
from effgrad.effects.effect import frames
from effgrad.errors import Detached
from effgrad.vocabulary import Activation, Value

NUMERAL = re.compile(r"(?<![\w.])(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[jJ]?(?![\w.])")

CONSTANT = "a constant"
LOST = "a number without all its digits"
# A numeral without its sign, and what it stands for: a traced number, CONSTANT or LOST.
Numeral = tuple[str, Value]
# The numerals that the running derivative has written for traced numbers, with its outermost activation.
_written: ContextVar[tuple[Activation, set[str]] | None] = ContextVar("effgrad_numerals", default=None)


class Text(str):
    """A string made of `parts`, some of which have digits of traced numbers; `known` are its numerals, once found."""

    __slots__ = ("parts", "known")
    parts: Sequence[str | Tracer]
    known: list[Numeral] | None

    def __str__(self) -> str:
        return self

    def __float__(self) -> float:
        return float(as_constant(self))

    def __int__(self) -> int:
        return int(decided_by(self))

    def __radd__(self, before: str) -> str:
        return of_parts(before + str.__str__(self), before, self)


def as_constant(text: str) -> str:
    """Return a text as a plain string, to be read as constants; raise an error if it has digits of traced numbers."""
    if any(number is not CONSTANT for _, number in numerals(text)):
        raise Detached(
            f"{str.__str__(text)!r} is the text of a traced number, and was read as a number, which would lose the "
            "derivative; use the number itself, or round(x, digits) where it is to be rounded"
        )
    return decided_by(text)


def refuse_numerals(text: str | bytes) -> None:
    """Raise an error if a plain string has a numeral that the running derivative has written for a traced number."""
    written = _known()
    if written is None:
        return
    for digits in NUMERAL.findall(text if isinstance(text, str) else text.decode("latin-1")):
        if digits in written:
            raise Detached(
                f"{digits!r} was written for a traced number, and a plain string with it was read as a number, which "
                "would lose the derivative; use the number itself, and read constants before the function runs"
            )


def decided_by(text: str) -> str:
    """Return a text as a plain string by which the program decides; the handlers below are asked for its numbers."""
    left: list[str | Tracer] = [text]
    while left:
        part = left.pop()
        if isinstance(part, Tracer):
            if isinstance(below := plain(part), Tracer):
                below.decide()
        elif type(part) is Text:
            left.extend(part.parts)
    return str.__str__(text)


def of_parts(text: str, *parts: object) -> str:
    """Return a string made of other values: a `Text` if one of them is."""
    if not any(type(part) is Text for part in parts):
        return text
    made = Text(text)
    made.parts, made.known = [part for part in parts if isinstance(part, str)], None
    return made


def numerals(text: str) -> list[Numeral]:
    """Return the numerals of a string in their order."""
    if type(text) is Text and text.known is not None:
        return text.known
    found: list[Numeral] = []
    left: list[Any] = [text]
    while left:
        part = left.pop()
        if type(part) is not Text:
            found.extend((digits, CONSTANT) for digits in NUMERAL.findall(part))
        elif part.known is not None:
            found.extend(part.known)
        else:
            left.extend(reversed(part.parts))
    written = NUMERAL.findall(text)
    if [digits for digits, _ in found] != written:  # a piece, or numerals that have grown together
        found = [(digits, _only(number for other, number in found if other == digits)) for digits in written]
    if type(text) is Text:
        text.known = found
    return found


def _only(numbers: Iterable[Value]) -> Value:
    """Return the number that several equal numerals stand for, or LOST if they stand for different ones."""
    first, *others = [*numbers] or [LOST]
    return first if all(other is first for other in others) else LOST


def _method(name: str) -> Callable[..., Value]:
    plainly = getattr(str, name)

    def method(text: Text, *args: Value, **options: Value) -> Value:
        result = plainly(text, *args, **options)
        if type(result) in (list, tuple):
            return type(result)(of_parts(part, text, *args) for part in result)
        return of_parts(result, text, *args)

    return method


for _name in (
    "strip", "lstrip", "rstrip", "lower", "upper", "replace", "zfill", "ljust", "rjust", "center", "split", "rsplit",
    "partition", "rpartition", "splitlines", "removeprefix", "removesuffix", "expandtabs", "translate", "__getitem__",
    "__add__", "__mul__", "__rmul__", "format", "join", "__format__",
):  # fmt: skip
    setattr(Text, _name, _method(_name))


def _decision(name: str) -> Callable[..., Value]:
    plainly = getattr(str, name)
    return lambda text, *args: plainly(decided_by(text), *args)


for _name in (
    "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__", "__len__", "__contains__", "__iter__",
    "startswith", "endswith", "find", "rfind", "index", "rindex", "count", "encode", "isdigit", "isdecimal",
    "isnumeric", "isalpha", "isalnum", "isspace",
):  # fmt: skip
    setattr(Text, _name, _decision(_name))


def of_number(write: Callable[[Value], str], traced: Tracer) -> str:
    """Return the string that a function makes of a traced value."""
    value = traced.shown()
    text = write(value)
    if _has_ended(traced):  # as in the report of a failed test, which may be sent to another process
        return text
    written, sizes = NUMERAL.findall(text), _sizes(value)
    made = Text(text)
    made.parts = (traced,)
    made.known = [(digits, LOST if sizes is None or _size(digits) in sizes else CONSTANT) for digits in written]
    if len(written) == 1 and made.known[0][1] is LOST and _is_whole(text, write, value):
        made.known = [(written[0], traced)]
    _remember(made.known)
    constant = not isinstance(plain(traced), Tracer) and all(number is CONSTANT for _, number in made.known)
    return text if constant else made


def _has_ended(value: Value) -> bool:
    """Whether all activations that trace a value have ended, so that its text has no digits of traced numbers."""
    while depends(value):
        if value.owner.alive:
            return False
        value = value.primal
    return True


def _sizes(value: Value) -> set[float] | None:
    """Return the sizes of the numbers in a value, or None for an array of another library, whose numbers stay there."""
    if not isinstance(value, NUMERIC):
        return None
    if np.asarray(value).dtype.kind in "US":  # an array of constant texts
        return set()
    return {abs(part) for item in np.ravel(value) for part in (item.real, item.imag)}


def _is_whole(text: str, write: Callable[[Value], str], value: Value) -> bool:
    """Whether a text has all digits of a number: its neighbours look otherwise."""
    if np.ndim(value) or isinstance(value, complex):
        return False
    same_type = np.asarray if isinstance(value, np.ndarray) else type(value)
    return not any(write(same_type(np.nextafter(value, end))) == text for end in (np.inf, -np.inf))


def _remember(known: list[Numeral]) -> None:
    """Remember the numerals that stand for traced numbers; those of whole numbers are too common to be recognised."""
    if frames.get() is None:  # a debugger shows a number that outlived its derivative
        return
    digits = {digits for digits, number in known if number is not CONSTANT and not digits.isdigit()}
    if digits and (written := _known()) is not None:
        written |= digits
    elif digits and (outermost := _outermost()) is not None:
        _written.set((outermost, digits))


def _known() -> set[str] | None:
    """The numerals that the running derivative has written; not those of one that has ended, entered by hand."""
    found = _written.get()
    return found[1] if found is not None and found[0].alive else None


def _outermost() -> Activation | None:
    frame, found = frames.get(), None  # a mask has no activation
    while frame is not None:
        found = frame.activation or found
        frame = frame.below
    return found


def _size(digits: str) -> float:
    return float(digits.rstrip("jJ"))


def read_back(text: Text, kind: Callable[[str], Value]) -> Value:
    """Return `float` or `complex` of a text: the traced number if the text has all its digits, or a plain number."""
    known = numerals(text)
    written = str.strip(text)
    if len(known) == 1 and isinstance(number := known[0][1], Tracer) and written.lstrip("+-") == known[0][0]:
        return with_sign(number, negative=written.startswith("-"))
    return kind(as_constant(text))


def with_sign(number: Value, negative: bool) -> Value:
    """Return the traced number that a numeral with its digits stands for, given the sign before the numeral."""
    return number if np.signbit(number.shown()) == negative else -number


def refuse_texts(value: Value) -> None:
    """Raise an error if a string, one in a list, or a file in memory has digits of traced numbers."""
    if type(value) in (list, tuple) and value and isinstance(value[0], str | bytes | list | tuple):
        for item in value:
            refuse_texts(item)
    elif isinstance(value, io.StringIO | io.BytesIO):
        refuse_numerals(value.getvalue())
    elif type(value) is Text:
        as_constant(value)
    elif type(value) in (str, bytes, bytearray):
        refuse_numerals(value)
