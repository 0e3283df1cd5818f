"""The values that a program's variables take, line by line, and the first value in which two of its runs differ.

A run is followed by Python's line tracing (`sys.settrace`), which sees the user's lines in a plain run and under a
derivative alike. Each entry of a trail is a variable whose value has changed, by assignment or in place.
"""

import itertools
import sys
from collections.abc import Callable
from types import FrameType
from typing import NamedTuple

import numpy as np

from effgrad.arrays.layout import NUMERIC_KINDS, same_elements
from effgrad.arrays.value import plain
from effgrad.arrays.written import read
from effgrad.errors import LIBRARIES
from effgrad.program.syntax import LIBRARY_PATHS
from effgrad.vocabulary import Value

# The largest number of changes that are recorded; a longer run is followed up to there.
MOST = 100_000


class Change(NamedTuple):
    """A new value of a variable, and the line that was run before it was seen."""

    file: str
    line: int
    function: str
    name: str
    value: Value


class Trail:
    """A trace function that records the changes of numbers and arrays in the user's frames."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.lines: dict[FrameType, int] = {}
        self.known: dict[FrameType, dict[str, Value]] = {}

    def __call__(self, frame: FrameType, event: str, argument: Value) -> Value:
        if len(self.changes) >= MOST or _is_a_library_s(frame):
            return None
        self.note(frame)
        self.lines[frame] = frame.f_lineno
        if event == "return":
            self.lines.pop(frame), self.known.pop(frame)
        return self

    def note(self, frame: FrameType) -> None:
        """Record the variables of a frame that have changed since its last line."""
        known = self.known.setdefault(frame, {})
        code, line = frame.f_code, self.lines.get(frame, frame.f_lineno)
        for name, value in frame.f_locals.items():
            found = _numbers(value)
            if found is None or not name.isidentifier() or name in known and same_elements(known[name], found):
                continue
            known[name] = found
            self.changes.append(Change(code.co_filename, line, code.co_name, name, found))


def _is_a_library_s(frame: FrameType) -> bool:
    """Whether a frame belongs to a library, to the standard library, or to code generated from text."""
    package, file = str(frame.f_globals.get("__name__", "")).partition(".")[0], frame.f_code.co_filename
    # Operators of tracers and constructors of named tuples are generated from text.
    made = package.startswith("namedtuple_") or file.startswith("<operators of")
    named = package == "effgrad" or package in LIBRARIES or package in sys.stdlib_module_names
    return made or named or any(path in file for path in LIBRARY_PATHS)


def _numbers(value: Value) -> Value:
    """Return a copy of a number or an array with its current value, or None for other values."""
    value = plain(read(value))
    if isinstance(value, bool | int | float | complex | np.generic):
        return value
    return np.array(value) if isinstance(value, np.ndarray) and value.dtype.kind in NUMERIC_KINDS else None


def followed(run: Callable[[], Value]) -> list[Change]:
    """Return the changes of variables during a run."""
    trail, before = Trail(), sys.gettrace()
    sys.settrace(trail)
    try:
        run()
    finally:
        sys.settrace(before)
    return trail.changes


def first_difference(
    found: list[Change], wanted: list[Change], differs: Callable[[Value, Value], Value]
) -> tuple[Change, Change] | None:
    """Return the first pair of changes in which two runs differ, or None if none is found."""
    for place, (one, other) in enumerate(itertools.zip_longest(found, wanted)):
        if one is None or other is None or one[:4] != other[:4]:
            # If only one run changes a variable, compare with the variable's earlier value in the other run.
            if one is not None and (known := _latest(wanted[:place], one)) is not None:
                return one, one._replace(value=known.value)
            if other is not None and (known := _latest(found[:place], other)) is not None:
                return other._replace(value=known.value), other
            return (one, other) if one is not None and other is not None else None
        if np.shape(one.value) != np.shape(other.value) or np.any(differs(one.value, other.value)):
            return one, other
    return None


def _latest(changes: list[Change], change: Change) -> Change | None:
    """Return the last of `changes` to the variable of `change`, or None."""
    variable = change.file, change.function, change.name
    return next((c for c in reversed(changes) if (c.file, c.function, c.name) == variable), None)
