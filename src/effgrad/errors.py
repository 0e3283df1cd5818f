"""What can go wrong when a program is differentiated, each with what to write instead.

Every error has a short code, points at the line of the user's program, and has a section in docs/errors.md.
"""

import linecache
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

_PACKAGE = str(Path(__file__).parent)


LIBRARIES = ("numpy", "scipy", "optree", "sklearn")


def user_line() -> str | None:
    """The innermost line of the running program that is neither ours nor a library's, as `file:line: text`."""
    for frame in _running():
        if not _inside(frame):
            text = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
            return f"{frame.f_code.co_filename}:{frame.f_lineno}: {text}"
    return None


def library_call(frames: Sequence[FrameType] | None = None) -> tuple[str | None, list[FrameType]]:
    """The public name of the library's function that the program has called, and the library's frames since.

    `frames` are those of a traceback, outermost first; without them, those of the running program.
    """
    inside: list[FrameType] = []
    for frame in reversed(frames) if frames is not None else _running():
        if f"{frame.f_globals.get('__name__')}.".startswith(("scipy.", "sklearn.", "numpy.ma.")):
            inside.append(frame)
        elif inside and not _inside(frame):
            break
    # Neither the wrapper that a decorator made nor a dispatcher over backends is the function.
    named = [f for f in inside if not any(part in f.f_code.co_qualname for part in ("<", "__ua_function__"))] or inside
    if not named:
        return None, inside
    name = named[-1].f_code.co_qualname
    for method in (".__init__", ".__call__", ".__new__"):
        name = name.removesuffix(method)
    return f"{_public(named[-1].f_globals['__name__'])}.{name}", inside


def public_name(owner: Any) -> str:
    """The name of a module or class as users know it: without the private modules that it is made in."""
    return f"{_public(owner.__module__)}.{owner.__qualname__}" if isinstance(owner, type) else _public(owner.__name__)


def _public(module: str) -> str:
    parts = module.split(".")
    return ".".join(parts[: next((i for i, part in enumerate(parts) if part.startswith("_")), len(parts))])


def _running() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _inside(frame: FrameType) -> bool:
    name, file = frame.f_globals.get("__name__", ""), frame.f_code.co_filename
    first = name.partition(".")[0]
    return file.startswith((_PACKAGE, "<")) or first in LIBRARIES or first in sys.stdlib_module_names


class EffgradError(Exception):
    """The base of every error that effgrad raises about a differentiated program."""

    code = "E0"

    def __init__(self, message: str) -> None:
        line = user_line()
        super().__init__(f"{message} [{self.code}]" + (f"\n  at {line}" if line else ""))


class EscapedValue(EffgradError):
    """A traced value was used after the derivative that made it had ended."""

    code = "E1"


class NoRule(EffgradError, TypeError):
    """A function was applied to a traced value and has no derivative rule."""

    code = "E2"


class Detached(EffgradError, TypeError):
    """A traced value was about to be turned into a plain number, which would lose its derivative."""

    code = "E3"


class NotDifferentiable(EffgradError, TypeError):
    """The function's inputs or output do not admit the derivative that was asked for."""

    code = "E4"


class NotSmooth(EffgradError, ArithmeticError):
    """A function was differentiated at a point where it is not smooth, under `kinks("raise")`."""

    code = "E5"


class NotFinite(EffgradError, ArithmeticError):
    """An operation made a NaN or an infinity, under `debug_nans`."""

    code = "E6"


class Overwritten(EffgradError):
    """An array that the derivative needs was written to after its use."""

    code = "E7"


class Irreproducible(EffgradError):
    """A checkpointed function gave another result when it was run again."""

    code = "E8"


class NotStaged(EffgradError, TypeError):
    """A program cannot be staged or compiled."""

    code = "E9"


class NoCounterpart(EffgradError, TypeError):
    """An operation on the arrays of another library that is not known to have a counterpart there."""

    code = "E10"
