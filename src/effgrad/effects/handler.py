"""Handlers and their activations.

A handler object is a template. Handling a computation makes an *activation*, a copy of the template. So the state that
a clause keeps on `self` lives exactly as long as one run, and one handler may serve nested runs, threads and tasks at
once. A clause called as a method on an activation performs the operation at this activation. An operation performed by
name (`State.get()`) finds the nearest activation in the current context.

`handle` runs a computation under a handler to its handled result. The return clause and every clause, also a pending
one, run outside the handler. Sigal 2024, section 3.1.
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar
from functools import partial
from typing import Any, Generic, TypeVarTuple

from effgrad.effects.clauses import Abort, end, unwind
from effgrad.effects.collector import recording
from effgrad.effects.effect import Frame, Request, activations, forget, frames
from effgrad.living import for_each_living
from effgrad.vocabulary import Activation, Object

Effects = TypeVarTuple("Effects")

# Each time the number of nested handlers reaches a multiple of this, the program goes to a new stack, if there is
# greenlet.
NESTED = 24

_observer: ContextVar[Callable[[Any], None] | None] = ContextVar("effgrad_observer", default=None)
_serial = itertools.count()


class Handler(Generic[*Effects]):
    """The base class of handlers: a subclass has one method, the clause, for each operation of its effects.

    A clause bears the name of its operation. An operation without a clause goes to the handlers outside. A handler that
    `records` keeps a record of every operation until it ends, and `collector.py` spares Python's garbage collector the
    traversal of these records.
    """

    records = False
    alive = False
    serial = -1
    _pending: list[Object]
    _frame: Frame
    _template: Any
    _run: Any = None
    _holds = 0
    _shallow = _spent = _deferring = False

    def enter(self) -> None:
        """Set up the state of an activation; this runs at its start."""

    def return_(self, value: Object) -> Object:
        """Return the handled result of a computation that returned `value`; this is the return clause."""
        return value

    def finally_(self) -> None:
        """Clean up; this runs when the activation ends, whether by a result or by an error."""

    def _activate(self, instance: object = None) -> Object:
        activation = object.__new__(type(self))
        if vars(self):  # most templates have no instance attributes
            vars(activation).update(vars(self))
        activation._pending = []
        activation.serial = next(_serial)
        activation.alive = True
        names = _effects(type(self)) if instance is None else (instance,)
        activation._frame = Frame(activation, names, frames.get())
        if activation.records:
            recording(activation._frame)
        observer = _observer.get()
        if observer is not None:
            observer(activation)
        return activation

    def __enter__(self) -> Object:
        if (name := _needing_result(type(self))) is not None:
            raise TypeError(
                f"{type(self).__name__}.{name} needs the result of the program, which a with block does not have: "
                "use handle(handler, f)"
            )
        activation = self._activate()
        activation._template = self
        try:
            frames.set(activation._frame)
            activation.enter()
        except BaseException:
            frames.set(activation._frame.below)
            end(activation)
            raise
        return activation

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        activation = _leave(self)
        if error is None and not activation._pending:
            end(activation)
            return
        reading = None
        if activation.records:  # the collector's callback has to find the record while the pending clauses run
            reading = Frame(activation, (), frames.get())
            reading.record = activation._frame.record
            frames.set(reading)
        try:
            unwind(activation, activation._pending, None, error)
        finally:
            del error  # its traceback refers to this frame
            if reading is not None:
                frames.set(reading.below)
            end(activation)


def _leave(template: object) -> Object:
    """Take the innermost activation of a `with` block's template out of the current context, and return it."""
    above, frame = None, frames.get()
    while frame is not None and getattr(frame.activation, "_template", None) is not template:
        above, frame = frame, frame.below
    if frame is None:
        raise RuntimeError(
            f"a with block of {type(template).__name__} is left in another context than it was entered in, such as a "
            "generator that another thread or task goes on with"
        )
    if above is None:
        frames.set(frame.below)
    else:  # generators left their blocks in another order than they entered them
        forget(frames.get(), frame)
        above.below = frame.below
    return frame.activation


def handle(
    handler: Handler[object],
    f: Callable[..., object],
    *args: object,
    instance: object = None,
    shallow: bool = False,
    **kwargs: object,
) -> Object:
    """Run `f(*args, **kwargs)` under a handler, and return the handled result.

    `instance` restricts the handler to a fresh instance of its effect. A `shallow` handler takes the first operation
    only. The rest of the program, and a continuation, run without it.

    >>> class Ask(Effect):
    ...     @operation
    ...     def ask(self): ...
    >>> class Answer(Handler[Ask]):
    ...     def ask(self):
    ...         return 42
    >>> handle(Answer(), lambda: Ask.ask() + 1)
    43
    """
    engine = _engine(type(handler))
    if shallow and engine == "multi":
        raise TypeError(f"{type(handler).__name__} has @multi clauses, which cannot be handled shallowly")
    continuations = _continuations() if engine is not None else None
    activation = handler._activate(instance)
    program = partial(f, *args, **kwargs) if args or kwargs else f
    if continuations is not None:
        begin = continuations.suspended_program(activation, program, again=engine == "multi", shallow=shallow)
        # While a clause waits for the result, this frame waits with it, so it must hold nothing else.
        del handler, f, args, kwargs, instance, activation, program
        return begin()
    frame = activation._frame
    if shallow:
        frame.boundary = _Shallow()
    if frame.height % NESTED:
        return _run(activation, frame, program)
    try:
        on_new_stack = _continuations().on_new_stack
    except ImportError:
        return _run(activation, frame, program)
    return on_new_stack(_run, activation, frame, program)


def _run(activation: Activation, frame: Frame, program: Callable[[], Object]) -> Object:
    """Run a program in a frame, and finish the clauses that it leaves pending."""
    result: Object = None
    failed: BaseException | None = None
    try:
        activation.enter()
        try:
            frames.set(frame)
            result = program()
        except Abort as abort:
            frames.set(frame.below)
            if abort.activation is not activation:
                raise
            result = abort.outcome()
        except BaseException:
            frames.set(frame.below)
            raise
        else:
            frames.set(frame.below)
            if not activation._spent:
                result = activation.return_(result)
    except BaseException as raised:
        failed = raised
    try:
        return unwind(activation, activation._pending, result, failed)
    finally:
        del failed  # its traceback refers to this frame
        end(activation)


class _Shallow:
    """The boundary of a shallow handler: it takes one operation, and the rest of the program runs without it."""

    catches_all = False

    def perform(self, frame: Frame, request: Request, clause: Any) -> Object:
        frame.names = ()
        frame.activation._spent = True
        return request.call(clause, frame)


@for_each_living
def _effects(handler: type) -> tuple[Object, ...]:
    """The effects that a handler class is declared for."""
    for base in getattr(handler, "__orig_bases__", ()):
        if getattr(base, "__args__", None):
            return tuple(base.__args__)
    return ()


@for_each_living
def _engine(handler: type) -> str | None:
    """Return "control" or "multi", the kind of continuation that a handler's clauses are given, or None."""
    engines = {getattr(getattr(handler, name), "_engine", None) for name in dir(handler)} - {None}
    if len(engines) > 1:
        raise TypeError(f"{handler.__name__} has both @control and @multi clauses: put them into two handlers")
    return engines.pop() if engines else None


@for_each_living
def _needing_result(handler: type) -> str | None:
    """The name of a clause of a handler that needs the handled result, or None."""
    return next((name for name in dir(handler) if getattr(getattr(handler, name), "_needs_result", False)), None)


def _continuations() -> Object:
    try:
        from effgrad.effects import continuations
    except ImportError as error:
        raise ImportError("@control and @multi clauses need greenlet: pip install 'effgrad[control]'") from error
    return continuations


@contextmanager
def observed(observer: Callable[[object], None]) -> Iterator[None]:
    """Call `observer` with every activation that is made in the block, before anything runs under the activation."""
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)


@contextmanager
def revived(context: Context) -> Iterator[None]:
    """Let the ended activations of a captured context handle operations again inside the block."""
    ended = [activation for activation in activations(context.get(frames)) if not activation.alive]
    for activation in ended:
        activation.alive = True
    try:
        yield
    finally:
        for activation in ended:
            activation.alive = False
