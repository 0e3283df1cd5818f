"""Algebraic effects and handlers: operations, clauses, activations.

A handler object is a template; handling a computation makes an *activation*, a copy of it, so state that a clause keeps
on `self` lives exactly as long as one run. A clause called as a method on an activation performs the operation there;
an operation performed by name (`State.get()`) finds the nearest activation in the current context.
"""

import copy
import functools
import itertools
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, ClassVar, Generic, TypeVarTuple

from effgrad.effects.errors import ResumedTwice, Unhandled

Effects = TypeVarTuple("Effects")


class Frame:
    """One handler in the current context, and what lies below it."""

    __slots__ = ("activation", "names", "below", "found")

    def __init__(self, activation: Any, names: tuple[Any, ...], below: "Frame | None") -> None:
        self.activation, self.names, self.below = activation, names, below
        self.found: dict[Any, Frame | None] = {}


_frame: ContextVar[Frame | None] = ContextVar("effgrad_frame", default=None)
_serial = itertools.count()


def _find(name: Any) -> Frame | None:
    frame = top = _frame.get()
    if top is None:
        return None
    if name in top.found:
        return top.found[name]
    while frame is not None and name not in frame.names:
        frame = frame.below
    top.found[name] = frame
    return frame


class operation:  # noqa: N801 (a decorator)
    """Declares an operation of an effect; called on the effect or on an instance of it, it is performed."""

    def __init__(self, stub: Callable[..., Any]) -> None:
        self.stub = stub
        self.__doc__ = stub.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> Callable[..., Any]:
        return functools.partial(_perform, owner if instance is None else instance, self.name)


def _perform(name: Any, operation: str, *args: Any, **kwargs: Any) -> Any:
    frame = _find(name)
    if frame is None:
        raise Unhandled(f"{name}.{operation} was performed, and no handler for it is running")
    # The clause runs outside its own handler.
    token = _frame.set(frame.below)
    try:
        return getattr(frame.activation, operation)(*args, **kwargs)
    finally:
        _frame.reset(token)


class _EffectType(type):
    def __repr__(cls) -> str:
        return cls.__name__


class Effect(metaclass=_EffectType):
    """A named set of operations; an object of the class is a fresh instance with operations of its own."""

    def __init_subclass__(cls) -> None:
        cls.effect = cls

    effect: ClassVar[type]

    def __repr__(self) -> str:
        return f"<instance of {type(self).__name__}>"


def fresh(effect: type) -> Any:
    """A new instance of an effect: its operations are handled only by handlers of this instance."""
    return effect()


class _Abort(BaseException):
    """Carries the result of a `@final` clause to its activation."""

    def __init__(self, activation: Any, result: Any) -> None:
        self.activation, self.result = activation, result


def around(clause: Callable[..., Any]) -> Callable[..., Any]:
    """A clause that resumes at its one `yield`, and goes on when the rest of the program has finished."""

    @functools.wraps(clause)
    def perform(self: Any, *args: Any, **kwargs: Any) -> Any:
        generator = clause(self, *args, **kwargs)
        value = next(generator)
        self._pending.append(generator)
        return value

    return perform


def once(clause: Callable[..., Any]) -> Callable[..., Any]:
    """As `around`, but ``result = yield value`` sees the handled result, and the clause returns the new one."""

    @functools.wraps(clause)
    def perform(self: Any, *args: Any, **kwargs: Any) -> Any:
        generator = clause(self, *args, **kwargs)
        value = next(generator)
        self._pending.append((generator,))
        return value

    perform._needs_result = True  # type: ignore[attr-defined]
    return perform


def final(clause: Callable[..., Any]) -> Callable[..., Any]:
    """A clause that never resumes: what it returns is the handled result."""

    @functools.wraps(clause)
    def perform(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise _Abort(self, clause(self, *args, **kwargs))

    perform._needs_result = True  # type: ignore[attr-defined]
    return perform


class Handler(Generic[*Effects]):
    """A handler: a clause, named after the operation, for each operation of its effects."""

    alive = False
    serial = -1
    _pending: list[Any]
    _frame: Frame
    _token: Any

    def enter(self) -> None:
        """Runs at the start of an activation: the place to set its state."""

    def return_(self, value: Any) -> Any:
        """The return clause: the handled result of a computation that returned `value`."""
        return value

    def finally_(self) -> None:
        """Runs when the activation ends, however it ends."""

    def _effects(self) -> tuple[Any, ...]:
        for base in getattr(type(self), "__orig_bases__", ()):
            if getattr(base, "__args__", None):
                return tuple(base.__args__)
        return ()

    def _activate(self, instance: Any = None) -> Any:
        activation = copy.copy(self)
        activation._pending = []
        activation.serial = next(_serial)
        activation.alive = True
        names = self._effects() if instance is None else (instance,)
        activation._frame = Frame(activation, names, _frame.get())
        return activation

    def __enter__(self) -> Any:
        for name in dir(type(self)):
            if getattr(getattr(type(self), name), "_needs_result", False):
                raise TypeError(
                    f"{type(self).__name__}.{name} needs the result of the program, which a with block does not have: "
                    "use handle(handler, f)"
                )
        activation = self._activate()
        activation._token = _frame.set(activation._frame)
        # The template only remembers its open activations so that `with` can close the last one.
        self.__dict__.setdefault("_open", []).append(activation)
        activation.enter()
        return activation

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        activation = self.__dict__["_open"].pop()
        _frame.reset(activation._token)
        try:
            _unwind(activation, None, error)
        finally:
            _end(activation)


def _unwind(activation: Any, result: Any, error: BaseException | None) -> Any:
    """Finish the pending clauses, the last first, each seeing what the ones after it left: a result or an error."""
    pending = activation._pending
    while pending:
        clause = pending.pop()
        transforms = type(clause) is tuple
        generator = clause[0] if transforms else clause
        origin = error.__traceback__ if error is not None else None
        try:
            if error is not None:
                generator.throw(error)
            else:
                generator.send(result if transforms else None)
        except StopIteration as stop:
            if transforms:
                result, error = stop.value, None
        except BaseException as raised:
            # The same error passing on must not grow a traceback entry for each pending clause.
            error = raised.with_traceback(origin) if raised is error else raised
        else:
            generator.close()
            error = ResumedTwice(f"a clause of {type(activation).__name__} yielded twice")
    if error is not None:
        raise error
    return result


def handle(handler: Handler[Any], f: Callable[..., Any], *args: Any, instance: Any = None, **kwargs: Any) -> Any:
    """Run `f(*args)` under a handler; returns the handled result. `instance` restricts it to a fresh instance."""
    activation = handler._activate(instance)
    token = _frame.set(activation._frame)
    result: Any = None
    error: BaseException | None = None
    try:
        activation.enter()
        result = activation.return_(f(*args, **kwargs))
    except _Abort as abort:
        if abort.activation is activation:
            result = abort.result
        else:
            error = abort
    except BaseException as raised:
        error = raised
    finally:
        _frame.reset(token)
    try:
        return _unwind(activation, result, error)
    finally:
        _end(activation)


def _end(activation: Any) -> None:
    activation.alive = False
    # Without its frame nothing refers back to the activation: what it holds is freed at once, not by the collector.
    activation._frame.found.clear()
    activation._frame = None
    activation.finally_()


def handled(effect: Any) -> bool:
    """Whether an operation of the effect would find a handler in the current context."""
    return _find(effect) is not None


def mask(effect: Any, f: Callable[..., Any], *args: Any) -> Any:
    """Run `f(*args)` with the nearest handler of the effect skipped."""
    top, skipped = _frame.get(), _find(effect)
    if skipped is None:
        return f(*args)
    kept = []
    while top is not None and top is not skipped:
        kept.append(top)
        top = top.below
    below = skipped.below
    for frame in reversed(kept):
        below = Frame(frame.activation, frame.names, below)
    token = _frame.set(below)
    try:
        return f(*args)
    finally:
        _frame.reset(token)
