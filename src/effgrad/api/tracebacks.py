"""The boundary between a user's program and its derivatives: the names of derivatives, and the tracebacks of errors.

A traceback has only the user's lines. `EFFGRAD_TRACEBACK=full` in the environment keeps the lines of effgrad.
"""

import functools
import inspect
import os
from collections.abc import Callable
from types import MethodType, TracebackType
from typing import Generic, ParamSpec, TypeVar, cast

from effgrad.errors import EffgradError, is_ours, require_function
from effgrad.vocabulary import Function, Option, Tree, Value

P = ParamSpec("P")
R = TypeVar("R")


def boundary(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a public function, so that the tracebacks of its errors have no frames of effgrad."""

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            shorten(error)
            raise

    return called


def of_function(transform: Callable[P, R]) -> Callable[P, R]:
    """Decorate a public function whose first argument is a function `f`: a `boundary` that first checks `f`."""

    @functools.wraps(transform)
    def checked(*args: Value, **kwargs: Option) -> Tree:
        require_function(transform.__name__, args[0] if args else kwargs.get("f", transform))
        return transform(*args, **kwargs)

    return cast(Callable[P, R], boundary(checked))


class Transformed(Generic[P, R]):
    """A function that `transform(f, **options)` has made, with a name, docstring and signature derived from `f`.

    It is a `boundary`, as public functions are. A pickle of it contains the transformation, its options and `f`, so it
    can be sent wherever `f` can.
    """

    def __init__(self, function: Callable[P, R], name: str, make: Function, f: Function) -> None:
        self.function, self._made_of = function, (make, (f,))
        self.__name__ = self.__qualname__ = f"{name}({getattr(f, '__name__', type(f).__name__)})"
        self.__doc__ = getattr(f, "__doc__", None)
        self.__module__ = getattr(f, "__module__", __name__)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return self.function(*args, **kwargs)
        except Exception as error:
            shorten(error)
            raise

    @property
    def parts(self) -> tuple[Function, Value, dict[str, Value]]:
        """The transformation, the function `f`, and the options."""
        make, (f,) = self._made_of
        return (make.func, f, make.keywords) if isinstance(make, functools.partial) else (make, f, {})

    def __get__(self, instance: object, owner: object = None) -> Value:
        return self if instance is None else MethodType(self, instance)

    @property
    def __signature__(self) -> inspect.Signature:
        try:
            signature = inspect.signature(*self._made_of[1])
        except ValueError:  # a function compiled from C without a signature
            raise AttributeError("__signature__") from None
        return signature.replace(return_annotation=inspect.Signature.empty)

    def __reduce__(self) -> Value:
        return self._made_of

    def __repr__(self) -> str:
        return f"<function {self.__name__} at {id(self):#x}>"


def derivative(transform: Function, f: Function, **options: Option) -> Callable[[Callable[P, R]], Transformed[P, R]]:
    """Return a decorator that makes a function the `Transformed` result of `transform(f, **options)`."""
    make = functools.partial(transform, **options)
    return lambda function: Transformed(function, transform.__name__, make, f)


def shorten(error: BaseException | None) -> None:
    """Remove the frames of effgrad from the tracebacks of an error and of its causes."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen and os.environ.get("EFFGRAD_TRACEBACK") != "full":
        seen.add(id(error))
        error.__traceback__ = _shortened(error, error.__traceback__)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _shortened(error: BaseException, traceback: TracebackType | None) -> TracebackType | None:
    steps = []
    while traceback is not None:
        steps.append(traceback)
        traceback = traceback.tb_next
    theirs = [number for number, step in enumerate(steps) if not is_ours(step.tb_frame)]
    if not isinstance(error, EffgradError):  # keep the frames in which it was raised, also those of effgrad
        theirs += range(theirs[-1] + 1 if theirs else 0, len(steps))
    for number in reversed(theirs):
        step = steps[number]
        traceback = TracebackType(traceback, step.tb_frame, step.tb_lasti, step.tb_lineno)
    return traceback
