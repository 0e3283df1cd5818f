"""What can go wrong when a program is differentiated, each with what to write instead.

Every error has a short code, points at the line of the user's program, and has a section in docs/errors.md.
"""

import linecache
import sys
from pathlib import Path

_PACKAGE = str(Path(__file__).parent)


def user_line() -> str | None:
    """The innermost line of the running program that is neither ours nor NumPy's, as `file:line: text`."""
    frame = sys._getframe(1)
    while frame is not None:
        name, file = frame.f_globals.get("__name__", ""), frame.f_code.co_filename
        inside = file.startswith((_PACKAGE, "<")) or name.partition(".")[0] in ("numpy", "scipy", "optree")
        if not inside:
            text = linecache.getline(file, frame.f_lineno).strip()
            return f"{file}:{frame.f_lineno}: {text}"
        frame = frame.f_back  # type: ignore[assignment]
    return None


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
