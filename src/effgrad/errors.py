"""The errors and warnings of effgrad, and how they find the line of the user's program that they are about.

Every error has a short code, points at the line of the user's program, and has a section in docs/errors.md. Its message
says what to write instead. The functions before the classes walk stack frames. A frame is "inside" if its code belongs
to effgrad, to Python's standard library or to another library; the first frame that is not inside is the user's.
"""

import dis
import inspect
import linecache
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from traceback import walk_stack, walk_tb
from types import FrameType, TracebackType

from effgrad.public_names import name_of_call, public_module

__all__ = [
    "EffgradError", "EscapedValue", "NoRule", "Detached", "NotDifferentiable", "NotSmooth", "NotFinite",
    "Overwritten", "Irreproducible", "NotStaged", "NoCounterpart", "MemoryLimit", "BlockFailed", "NoWorkers",
    "NotBatched", "EffgradWarning", "StagingWarning", "VersionWarning",
]  # fmt: skip

_PACKAGE = str(Path(__file__).parent)

# Beginnings of the file names of generated code: effgrad's, Python's frozen modules, NumPy's and that of dataclasses.
_GENERATED = ("<operators of", "<effgrad", "<frozen", "<__array_function__", "<string>")

LIBRARIES = (
    "numpy", "scipy", "optree", "sklearn", "pandas", "xarray", "jax", "torch", "cupy", "array_api_strict",
    "array_api_compat", "dask", "distributed", "statsmodels",
)  # fmt: skip


def user_line(traceback: TracebackType | None = None) -> str | None:
    """The innermost line of the user's program, as `file:line: text`.

    It is the line in the traceback of an error, or without a traceback the line that runs now.
    """
    steps = [*walk_tb(traceback)][::-1] if traceback is not None else ((f, f.f_lineno) for f in running_frames())
    return next((_shown(frame, line) for frame, line in steps if not _inside(frame)), None)


def user_frame() -> FrameType | None:
    """The innermost frame of the running program that is neither effgrad's nor a library's."""
    return next((frame for frame in running_frames() if not _inside(frame)), None)


def may_be_caught() -> bool:
    """Whether a function of the program that is being compiled is inside a `try`, which may catch what is raised."""
    for frame in running_frames():
        if frame.f_globals.get("__name__") == "effgrad.stage.compiled":
            return False
        if not _inside(frame) and _in_try(frame):
            return True
    return False


def _in_try(frame: FrameType) -> bool:
    """Whether a frame is inside a `try`; the handler of a `with` begins by calling `__exit__`."""
    code, now = frame.f_code.co_code, frame.f_lasti
    handlers = [e.target for e in dis._parse_exception_table(frame.f_code) if e.start <= now < e.end]  # type: ignore[attr-defined]
    return any(code[target + 2] != dis.opmap["WITH_EXCEPT_START"] for target in handlers)


def user_place() -> tuple[str, int]:
    """The file and the number of the line of the user's program that runs now."""
    frame = user_frame()
    return (frame.f_code.co_filename, frame.f_lineno) if frame is not None else ("effgrad", 1)


def _shown(frame: FrameType, line: int) -> str:
    file = frame.f_code.co_filename
    text = linecache.getline(file, line).strip()  # empty for lines typed at a prompt of Python 3.12 and earlier
    return f"{file}:{line}: {text}" if text else f"{file}:{line}"


def raised_by_the_program(traceback: TracebackType) -> bool:
    """Whether a `raise` or `assert` in the user's code raised an error, and not code that it called."""
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    frame = traceback.tb_frame
    return not _inside(frame) and frame.f_code.co_code[traceback.tb_lasti] == dis.opmap["RAISE_VARARGS"]


def called(traceback: TracebackType) -> str | None:
    """The name of the outermost library function that an error left, or None if it left compiled code directly."""
    frames = [frame for frame, _ in walk_tb(traceback)]
    name = None
    while frames and _inside(frames[-1]):
        frame = frames.pop()
        if not frame.f_code.co_filename.startswith((_PACKAGE, "<")):
            name = name_of_call(frame)
    return name


def library_call(frames: Sequence[FrameType] | None = None) -> tuple[str | None, list[FrameType]]:
    """The public name of the function of SciPy, sklearn or statsmodels that the user's program called, and its frames.

    The frames are those of that call which belong to these libraries, the innermost first. `frames` are those of a
    traceback, outermost first; without them, the frames of the running program are searched.
    """
    inside: list[FrameType] = []
    for frame in reversed(frames) if frames is not None else running_frames():
        if _of_scipy(frame):
            inside.append(frame)
        elif inside and not _inside(frame):
            break
    # The user did not name the wrapper that a decorator made, nor the dispatcher over backends (uarray).
    named = [f for f in inside if not any(part in f.f_code.co_qualname for part in ("<", "__ua_function__"))] or inside
    if not named:
        return None, inside
    name = named[-1].f_code.co_qualname
    for method in (".__init__", ".__call__", ".__new__"):
        name = name.removesuffix(method)
    return f"{public_module(named[-1].f_globals['__name__'])}.{name}", inside


def library_requesting_number() -> str | None:
    """The public name of the library function whose compiled code asks a traced value for a plain number now.

    It is None unless the innermost frame outside effgrad belongs to SciPy, sklearn or statsmodels.
    """
    frame = next((f for f in running_frames() if not f.f_code.co_filename.startswith(_PACKAGE)), None)
    return library_call()[0] if frame is not None and _of_scipy(frame) else None


def require_function(name: str, *functions: object) -> None:
    """Raise the `TypeError` of the public function `name` if one of `functions` cannot be called."""
    for f in functions:
        if not callable(f):
            raise TypeError(f"{name} takes a function; it was given {f!r}, a {type(f).__name__}")


def outermost_library_function() -> str | None:
    """The public name of the outermost library function that the user's program called and that runs now.

    If no such function has a frame, it is the compiled function that effgrad called for the program, or None.
    """
    name, frames = None, running_frames()
    for frame in frames:
        if not frame.f_code.co_filename.startswith((_PACKAGE, "<")):
            if not _inside(frame):
                break
            name = name_of_call(frame)
        elif name is None:
            name = compiled_call(frame)
    return name


def compiled_call(frame: FrameType) -> str | None:
    """The public name of the compiled function that a frame of `effgrad.program.resolve` calls for the program.

    It is None for any other frame.
    """
    if frame.f_globals.get("__name__") != "effgrad.program.resolve" or frame.f_code.co_name != "called":
        return None
    function = frame.f_locals.get("f")
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", "")
    module = getattr(function, "__module__", None) or type(getattr(function, "__self__", None)).__module__
    known = name and not module.startswith("effgrad")
    return f"{public_module(module.removeprefix('_'))}.{name}".removeprefix("builtins.") if known else None


# The advice for functions that take plain numbers only: what to write instead, by the beginning of the function's name.
INSTEAD = {
    "numpy.ma": "plain arrays, and np.where(mask, 0, x) for what is masked",
    "numpy.matrixlib": "plain arrays and the operator @",
    "statistics": "NumPy's function, as np.mean, np.median or np.var, or SciPy's, as scipy.special.ndtri",
    "fractions": "x * p / q for a fraction p / q",
    "decimal": "the operators and functions of NumPy on x itself",
    "array.": "a list of numbers, or np.array([...])",
    "ctypes": "np.array([...]) in place of memory of C",
    "math.factorial": "scipy.special.gamma(x + 1)",
    "math.comb": "scipy.special.binom(n, k)",
    "math.perm": "scipy.special.poch(n - k + 1, k)",
    "random": "numpy.random's generators, or effgrad.stop_gradient(x)",
}


def takes_plain(name: str | None, what: str) -> str:
    """The message for a traced value where plain numbers are needed.

    `name` is the public name of the function that needs them, or None if it is not known. `what` describes the number
    that an unknown function asks for, such as "an index".
    """
    if name is None:
        return (
            f"a traced value was asked for {what} by code that is not read (without source, compiled, or called by "
            "compiled code), which would lose its derivative; write effgrad.stop_gradient(x) if it is to be a "
            "constant, or a function of NumPy"
        )
    instead = next((text for start, text in INSTEAD.items() if name.startswith(start)), None)
    otherwise = "effgrad.stop_gradient(x) if it is to be a constant, or a function of NumPy"
    return (
        f"{name} takes plain numbers and was given a traced value, which would lose its derivative; write "
        f"{instead or otherwise}"
    )


def _of_scipy(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__", "").partition(".")[0] in ("scipy", "sklearn", "statsmodels")


def running_frames() -> Iterator[FrameType]:
    """Yield the frames of the running program, the innermost first."""
    frames = walk_stack(inspect.currentframe())
    next(frames)  # the frame of this generator
    yield from (frame for frame, _ in frames)


def is_ours(frame: FrameType) -> bool:
    """Whether a frame runs code of effgrad, or code that effgrad generated."""
    return frame.f_code.co_filename.startswith((_PACKAGE, "<operators of", "<effgrad"))


def _inside(frame: FrameType) -> bool:
    """Whether a frame is effgrad's or a library's.

    Prompts and notebooks (`<stdin>`, `<ipython-input-1>`) are the user's.
    """
    name, file = frame.f_globals.get("__name__", ""), frame.f_code.co_filename
    first = name.partition(".")[0]
    return file.startswith((_PACKAGE, *_GENERATED)) or first in LIBRARIES or first in sys.stdlib_module_names


class EffgradError(Exception):
    """The base of every error that effgrad raises about a differentiated program.

    The message ends with the error's code and the line of the user's program.
    """

    code = "E0"

    def __init__(self, message: str, line: str | None = None) -> None:
        line = line or user_line()
        super().__init__(f"{message} [{self.code}]" + (f"\n  at {line}" if line else ""))
        _said.last = type(self), message, line


class _Said(threading.local):
    """The last error of effgrad in this thread: its class, its message and the user's line.

    It is kept because compiled code may replace the error by one of another class.
    """

    last: tuple[type[EffgradError], str, str | None] | None = None


_said = _Said()


def forget() -> None:
    """Forget the last error, so that the next derivative cannot report it."""
    _said.last = None


def last_error_at(line: str | None) -> EffgradError | None:
    """A new copy of effgrad's last error if it was about this line of the user's program, else None."""
    if line is None or _said.last is None or _said.last[2] != line:
        return None
    kind, message, _ = _said.last
    return kind(message, line)


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
    """The function's inputs or output do not admit the requested derivative."""

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
    """A checkpointed function returned a different result in its rerun."""

    code = "E8"


class NotStaged(EffgradError, TypeError):
    """A program cannot be staged or compiled."""

    code = "E9"


class NoCounterpart(EffgradError, TypeError):
    """An operation on the arrays of another library, which has no known counterpart of that operation."""

    code = "E10"


class MemoryLimit(EffgradError, MemoryError):
    """The record of a derivative cannot be kept within the limit of memory."""

    code = "E12"


class BlockFailed(EffgradError):
    """A derivative of a distributed sum failed on one of its blocks."""

    code = "E13"


class NoWorkers(EffgradError):
    """A distributed sum waited for workers, and none came."""

    code = "E14"


class NotBatched(EffgradError, TypeError):
    """A program cannot run for all members of a batch at once.

    It needs the plain value of one member, or its arguments and axes do not form a batch.
    """

    code = "E11"


class EffgradWarning(UserWarning):
    """The base of every warning of effgrad; `warnings.simplefilter("ignore", effgrad.EffgradWarning)` silences all."""


class StagingWarning(EffgradWarning):
    """A compiled program is slower than it could be.

    A loop of it is unrolled, or it has too many paths, or it is not compiled, or it is not kept on disk.
    """


class VersionWarning(EffgradWarning):
    """A version of NumPy or SciPy is installed that the rules were not tested with."""


def warn(message: str, category: type[EffgradWarning], at: tuple[str, int] | None = None) -> None:
    """Warn about a line of the user's program.

    `at` is its file and number; without it, the warning is about the line that runs now.
    """
    frame = user_frame()
    file, line = at or user_place()
    registry = frame.f_globals.setdefault("__warningregistry__", {}) if frame is not None else None
    warnings.warn_explicit(message, category, file, line, registry=registry)
