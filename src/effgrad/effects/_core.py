"""Algebraic effects and handlers: operations, clauses, activations.

A handler object is a template; handling a computation makes an *activation*, a copy of it, so state that a clause keeps
on `self` lives exactly as long as one run. A clause called as a method on an activation performs the operation there;
an operation performed by name (`State.get()`) finds the nearest activation in the current context.
"""

import functools
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar
from typing import Any, ClassVar, Generic, TypeVarTuple

from effgrad.effects.errors import ResumedTwice, Unhandled

Effects = TypeVarTuple("Effects")


class Frame:
    """One handler in the current context, and what lies below it."""

    __slots__ = ("activation", "names", "below", "found", "special")

    def __init__(self, activation: Any, names: tuple[Any, ...], below: "Frame | None", special: Any = None) -> None:
        self.activation, self.names, self.below = activation, names, below
        self.found: dict[Any, Frame | None] = {}
        # Takes the operations that come to this frame in its own way: shallow handling, replay.
        self.special = special


_frame: ContextVar[Frame | None] = ContextVar("effgrad_frame", default=None)
_observer: ContextVar[Callable[[Any], None] | None] = ContextVar("effgrad_observer", default=None)
_serial = itertools.count()


def _find(name: Any) -> Frame | None:
    frame = top = _frame.get()
    if top is None:
        return None
    if name in top.found:
        return top.found[name]
    while frame is not None and name not in frame.names and not getattr(frame.special, "catches_all", False):
        frame = frame.below
    top.found[name] = frame
    return frame


class operation:  # noqa: N801 (a decorator)
    """Declares an operation of an effect; called on the effect or on an instance of it, it is performed."""

    def __init__(self, stub: Callable[..., Any]) -> None:
        self.stub = stub
        self.__doc__ = stub.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.owner, self.name = owner, name
        self.perform = functools.partial(_perform, owner, name)

    def __get__(self, instance: Any, owner: type) -> Callable[..., Any]:
        if instance is None and owner is self.owner:
            return self.perform
        return functools.partial(_perform, owner if instance is None else instance, self.name)


def _perform(name: Any, operation: str, *args: Any, **kwargs: Any) -> Any:
    top = _frame.get()
    frame = _find(name) if top is None or name not in top.found else top.found[name]
    if frame is None:
        raise Unhandled(f"{name}.{operation} was performed, and no handler for it is running")
    if frame.special is not None:
        return frame.special.perform(frame, name, operation, args, kwargs)
    # The clause runs outside its own handler.
    _frame.set(frame.below)
    try:
        return getattr(frame.activation, operation)(*args, **kwargs)
    finally:
        _frame.set(top)


def _perform_at(frame: Frame, operation: str, args: Any, kwargs: Any) -> Any:
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

    perform._defers = True  # type: ignore[attr-defined]
    return perform


def once(clause: Callable[..., Any]) -> Callable[..., Any]:
    """As `around`, but ``result = yield value`` sees the handled result, and the clause returns the new one."""

    @functools.wraps(clause)
    def perform(self: Any, *args: Any, **kwargs: Any) -> Any:
        generator = clause(self, *args, **kwargs)
        value = next(generator)
        self._pending.append((generator,))
        return value

    perform._defers = True  # type: ignore[attr-defined]
    perform._needs_result = True  # type: ignore[attr-defined]
    return perform


def final(clause: Callable[..., Any]) -> Callable[..., Any]:
    """A clause that never resumes: what it returns is the handled result."""

    @functools.wraps(clause)
    def perform(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise _Abort(self, clause(self, *args, **kwargs))

    perform._needs_result = True  # type: ignore[attr-defined]
    return perform


def control(clause: Callable[..., Any]) -> Callable[..., Any]:
    """A clause that is given the continuation: ``clause(self, k, *args)``.

    `k(value)` resumes the program where the operation was performed and returns the handled result, `k.throw(error)`
    raises there. It is one-shot: it may be kept, moved and resumed later, once; dropped, it is closed. What the
    clause returns is the handled result. Needs greenlet (the extra `control`).
    """

    @functools.wraps(clause)
    def perform(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _continuations().perform(self, clause, args, kwargs)

    perform._needs_result = True  # type: ignore[attr-defined]
    perform._engine = "control"  # type: ignore[attr-defined]
    return perform


def multi(clause: Callable[..., Any]) -> Callable[..., Any]:
    """As `control`, but `k` may be called any number of times: the program is run again with the answers so far.

    So the program must do the same each time: apart from the operations that it performs, whose answers are kept, it
    should have no effects.
    """

    @functools.wraps(clause)
    def perform(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"{type(self).__name__}.{clause.__name__} is a @multi clause: perform it, do not call it")

    perform._needs_result = True  # type: ignore[attr-defined]
    perform._engine = "multi"  # type: ignore[attr-defined]
    perform._clause = clause  # type: ignore[attr-defined]
    return perform


@functools.cache
def _effects(handler: type) -> tuple[Any, ...]:
    """The effects that a handler is declared for."""
    for base in getattr(handler, "__orig_bases__", ()):
        if getattr(base, "__args__", None):
            return tuple(base.__args__)
    return ()


@functools.cache
def _engine(handler: type) -> str | None:
    """Which kind of continuation the clauses of a handler are given, if any."""
    engines = {getattr(getattr(handler, name), "_engine", None) for name in dir(handler)} - {None}
    if len(engines) > 1:
        raise TypeError(f"{handler.__name__} has both @control and @multi clauses: put them into two handlers")
    return engines.pop() if engines else None


@functools.cache
def _needing_result(handler: type) -> str | None:
    """A clause of a handler that needs the handled result, if there is one."""
    return next((name for name in dir(handler) if getattr(getattr(handler, name), "_needs_result", False)), None)


def _continuations() -> Any:
    try:
        from effgrad.effects import continuations
    except ImportError as error:
        raise ImportError("@control clauses need greenlet: pip install 'effgrad[control]'") from error
    return continuations


class _Shallow:
    """Takes one operation; the rest of the program runs without the handler."""

    def perform(self, frame: Frame, name: Any, operation: str, args: Any, kwargs: Any) -> Any:
        frame.names, frame.special = (), None
        frame.activation._spent = True
        top = _frame.get()
        while top is not None:
            top.found.clear()
            top = None if top is frame else top.below
        return _perform_at(frame, operation, args, kwargs)


class Handler(Generic[*Effects]):
    """A handler: a clause, named after the operation, for each operation of its effects."""

    alive = False
    serial = -1
    _pending: list[Any]
    _frame: Frame
    _token: Any
    _hub: Any = None
    _spent = False

    def enter(self) -> None:
        """Runs at the start of an activation: the place to set its state."""

    def return_(self, value: Any) -> Any:
        """The return clause: the handled result of a computation that returned `value`."""
        return value

    def finally_(self) -> None:
        """Runs when the activation ends, however it ends."""

    def _activate(self, instance: Any = None) -> Any:
        activation = object.__new__(type(self))
        vars(activation).update(vars(self))
        activation._pending = []
        activation.serial = next(_serial)
        activation.alive = True
        names = _effects(type(self)) if instance is None else (instance,)  # type: ignore[arg-type]
        activation._frame = Frame(activation, names, _frame.get())
        observer = _observer.get()
        if observer is not None:
            observer(activation)
        return activation

    def __enter__(self) -> Any:
        if (name := _needing_result(type(self))) is not None:  # type: ignore[arg-type]
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
        result, error = _finish(activation, pending.pop(), result, error)
    if error is not None:
        raise error
    return result


_finished = object()


def _finish(activation: Any, clause: Any, result: Any, error: BaseException | None) -> tuple[Any, Any]:
    """Let one pending clause finish; the result or the error after it."""
    transforms = type(clause) is tuple
    generator = clause[0] if transforms else clause
    if isinstance(error, Abandoned):
        generator.close()
        return None, error
    origin = error.__traceback__ if error is not None else None
    try:
        if error is not None:
            generator.throw(error)
        elif transforms:
            generator.send(result)
        # Which raises nothing at the end, and is half the price of `send`.
        elif next(generator, _finished) is _finished:
            return result, None
    except StopIteration as stop:
        return (stop.value, None) if transforms else (result, error)
    except BaseException as raised:
        # The same error passing on must not grow a traceback entry for each pending clause.
        return None, raised.with_traceback(origin) if raised is error else raised
    generator.close()
    return None, ResumedTwice(f"a clause of {type(activation).__name__} yielded twice")


class Abandoned(BaseException):
    """Unwinds a run of a program that is not going to be finished; pending clauses are closed, not resumed."""


def handle(
    handler: Handler[Any],
    f: Callable[..., Any],
    *args: Any,
    instance: Any = None,
    shallow: bool = False,
    **kwargs: Any,
) -> Any:
    """Run `f(*args, **kwargs)` under a handler; returns the handled result.

    `instance` restricts the handler to a fresh instance of its effect. A `shallow` one takes the first operation only:
    the rest of the program, and a continuation, run without it.

    >>> class Ask(Effect):
    ...     @operation
    ...     def ask(self): ...
    >>> class Answer(Handler[Ask]):
    ...     def ask(self):
    ...         return 42
    >>> handle(Answer(), lambda: Ask.ask() + 1)
    43
    """
    activation = handler._activate(instance)
    engine = _engine(type(handler))  # type: ignore[arg-type]
    program = functools.partial(f, *args, **kwargs) if args or kwargs else f
    if shallow:
        if engine == "multi":
            raise TypeError(f"{type(handler).__name__} has @multi clauses, which cannot be handled shallowly")
        activation._frame.special = _Shallow()
    if engine == "control":
        activation.enter()
        return _continuations().run(activation, program)
    try:
        activation.enter()
        if engine == "multi":
            from effgrad.effects.replay import explore

            return explore(activation, program, [])
        return _run(activation, activation._frame, program)
    finally:
        _end(activation)


def _run(activation: Any, frame: Frame, program: Callable[[], Any]) -> Any:
    """Run a program in a frame, and finish the clauses that it leaves pending."""
    token = _frame.set(frame)
    result: Any = None
    error: BaseException | None = None
    try:
        result = _returned(activation, program)
    except BaseException as raised:
        error = raised
    finally:
        _frame.reset(token)
    return _unwind(activation, result, error)


def _returned(activation: Any, program: Callable[[], Any]) -> Any:
    """What the program, or a `@final` clause in it, leaves to the pending clauses."""
    try:
        value = program()
        return value if activation._spent else activation.return_(value)
    except _Abort as abort:
        if abort.activation is activation:
            return abort.result
        raise


def _end(activation: Any) -> None:
    activation.alive = False
    # Without its frame nothing refers back to the activation: what it holds is freed at once, not by the collector.
    activation._frame.found.clear()
    activation._frame = None
    activation.finally_()


def handled(effect: Any) -> bool:
    """Whether an operation of the effect would find a handler in the current context."""
    frame = _find(effect)
    while frame is not None and effect not in frame.names:  # a frame that catches all, to pass most things on
        frame = frame.below
    return frame is not None


@contextmanager
def observed(observer: Callable[[Any], None]) -> Iterator[None]:
    """Show every activation that is made in the block to `observer`, before anything runs under it."""
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)


@contextmanager
def revived(context: Context) -> Iterator[None]:
    """Let the activations around a part of a program, captured as a context, handle operations again for a while."""
    frame, ended = context.get(_frame), []
    while frame is not None:
        if not frame.activation.alive:
            ended.append(frame.activation)
            frame.activation.alive = True
        frame = frame.below
    try:
        yield
    finally:
        for activation in ended:
            activation.alive = False


def mask(effect: Any, f: Callable[..., Any], *args: Any) -> Any:
    """Run `f(*args)` with the nearest handler of the effect skipped."""
    top = skipped = _frame.get()
    while skipped is not None and effect not in skipped.names:
        skipped = skipped.below
    if skipped is None:
        return f(*args)
    kept = []
    while top is not None and top is not skipped:
        kept.append(top)
        top = top.below
    below = skipped.below
    for frame in reversed(kept):
        below = Frame(frame.activation, frame.names, below, frame.special)
    token = _frame.set(below)
    try:
        return f(*args)
    finally:
        _frame.reset(token)
