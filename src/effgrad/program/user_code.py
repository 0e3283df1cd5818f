"""The context in which a derivative runs the user's function, and better messages for the errors that leave it."""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from traceback import walk_tb
from types import FrameType, TracebackType
from typing import TypeVar

import numpy as np

from effgrad.arrays.value import Tracer, example, refusal, traced_inside
from effgrad.arrays.written import session
from effgrad.errors import (
    Detached,
    EffgradError,
    EscapedValue,
    NoRule,
    called,
    compiled_call,
    forget,
    last_error_at,
    library_call,
    raised_by_the_program,
    takes_plain,
    user_line,
)
from effgrad.nested import map_leaves
from effgrad.program.attributes import forget_classes
from effgrad.vocabulary import Object

Activation = TypeVar("Activation")
Result = TypeVar("Result")

# Cython's messages for an argument whose type is none of those that a function is compiled for.
FUSED = ("No matching signature found", "Function call with ambiguous argument types")
_NOT_CALLABLE = re.compile(r"'\w+' object is not callable")


def explain(error: BaseException) -> None:
    """Raise an error of effgrad's in place of one that other code raised about a traced value."""
    traceback = error.__traceback__
    ours = isinstance(error, EffgradError) or not isinstance(error, Exception)
    if ours or traceback is None or raised_by_the_program(traceback):
        return
    line, text = user_line(traceback), str(error)
    swallowed = last_error_at(line)
    if swallowed is not None:
        raise swallowed from error
    if not _said_of_a_value(error, text, line):
        _explain_call(error, text, line, traceback)


def _explain_call(error: BaseException, text: str, line: str | None, traceback: TracebackType) -> None:
    """Raise an error about the function that was called, if its error is about a traced value."""
    name, frames = called(traceback), [frame for frame, _ in walk_tb(traceback)]
    scipys, inside = library_call(frames)
    if scipys is not None and _names_traced(error, text):
        raise NoRule(refusal(scipys), line) from error
    name = name or compiled_call(frames[-1])
    if _names_traced(error, text) or (_of_python(name) and _sees_traced(frames[-1])):
        said = takes_plain(name, "a plain number")
        raise Detached(said, line) from error
    if scipys is not None and _is_about_kinds(error, text, frames[-1]) and any(map(_sees_traced, inside)):
        raise NoRule(refusal(scipys), line) from error


def _is_about_kinds(error: BaseException, text: str, innermost: FrameType) -> bool:
    """Whether an error may mean that the code does not know the type of a value."""
    says_so = text.startswith(("could not convert", "setting an array element"))
    if type(error) is ValueError:
        return says_so or _called_compiled(innermost)
    return isinstance(error, TypeError | AttributeError | ValueError | SystemError)


def _said_of_a_value(error: BaseException, text: str, line: Object) -> bool:
    """Reword an error about an attribute, key or call of a traced value as if it were plain. Return whether it was."""
    if type(error) is AttributeError and isinstance(error.obj, Tracer):
        name = str(error.name)
        try:
            value = example(error.obj)
        except EscapedValue:  # an array with writes that wait, and the derivative has ended
            value = np.empty(())
        if hasattr(value, name):
            raise Detached(f"a traced value has no {name}; effgrad.stop_gradient(x).{name} is a constant", line)
        error.args = (f"{type(value).__name__!r} object has no attribute {name!r}",)
        return True
    if isinstance(error, KeyError):
        error.args = tuple(map_leaves(example, error.args))
        return True
    if _NOT_CALLABLE.fullmatch(text) and _names_traced(error, text):
        error.args = ("a number or an array is not callable",)
        return True
    return False


def _called_compiled(frame: FrameType) -> bool:
    """Whether a frame is `resolve.converting`, calling a compiled function with traced values."""
    ours = frame.f_globals.get("__name__") == "effgrad.program.resolve"
    return ours and traced_inside(frame.f_locals.get("args"))


def _names_traced(error: BaseException, text: str) -> bool:
    """Whether an error of compiled code, or of JAX, says that it met a traced value."""
    if isinstance(error, TypeError) and text.startswith(FUSED):
        return True
    named = any(re.search(rf"\b{kind.__name__}\b", text) for kind in subclasses(Tracer))
    return (named and not isinstance(error, AttributeError)) or "__jax_array__" in text


def subclasses(kind: type[Object]) -> Iterator[type[Object]]:
    """Iterate over a class and all classes derived from it."""
    yield kind
    for derived in kind.__subclasses__():
        yield from subclasses(derived)


def _of_python(name: str | None) -> bool:
    return name is not None and name.partition(".")[0] in sys.stdlib_module_names


def _sees_traced(frame: Object) -> bool:
    """Whether a traced value is, or may be, among a frame's variables; a frame of compiled code shows no variables."""
    return not frame.f_locals or any(map(traced_inside, frame.f_locals.values()))


def run_handled(handler: AbstractContextManager[Activation], program: Callable[[Activation], Result]) -> Result:
    """Enter a handler around user code, and return the result of `program(activation)`, which runs the function."""
    with user_code(), handler as activation:
        return program(activation)


class user_code(session):  # noqa: N801 (a context)
    """The context in which a derivative runs the user's function."""

    def __enter__(self) -> None:
        session.__enter__(self)  # `super()` takes a tenth of a microsecond
        if self.outermost is not None:
            forget_classes()

    def __exit__(self, kind: Object, error: BaseException | None, traceback: Object) -> None:
        if self.outermost is not None:
            session.__exit__(self, kind, error, traceback)
            forget_classes()
        try:
            if error is not None:
                explain(error)
        finally:
            forget()
