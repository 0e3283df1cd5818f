"""Effects, operations, and how an operation finds its handler.

The handlers around a computation are a linked list of frames, the innermost first. A context variable holds the top
frame, so each thread and each asyncio task has its own list. To perform an operation is to walk down to the first frame
that handles its effect, and to run the clause there with the frames below. So a clause runs outside its own handler.

Most links never change. A frame therefore remembers the frame that it has found for an effect, until a clause puts a
handler around its `yield`. Two kinds of frames do change: the rest of a program can be captured and go on above other
handlers, and a shallow handler ends after one operation. Such a frame is a *boundary*. Each walk stops at it, it takes
the operation in its own way, and it passes on the operations that it does not handle. A mask is a frame too, which
makes the walk skip the next handler of its effect. Sigal 2024, sections 3.1 and 3.2.
"""

import functools
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, Protocol

from effgrad.effects.effect_errors import Unhandled
from effgrad.vocabulary import Activation, Object

# The public attributes of a handler that are not clauses.
RESERVED = ("enter", "return_", "finally_", "alive", "serial", "records")


class Boundary(Protocol):
    """The protocol of a boundary, which takes the operations that reach its frame.

    It takes all of them if `catches_all`, and otherwise those that its handler has a clause for.
    """

    catches_all: bool

    def perform(self, frame: "Frame", request: "Request", clause: Callable[..., object] | None) -> Object:
        """Return the answer to an operation; `clause` is this frame's clause for it, or None."""


class Frame:
    """One handler or one mask in the current context, with a link to the frame below it."""

    __slots__ = ("activation", "names", "below", "boundary", "masked", "height", "found", "record")

    def __init__(
        self,
        activation: Activation,
        names: tuple[Object, ...],
        below: "Frame | None",
        masked: Object = None,
    ) -> None:
        self.activation, self.names, self.below, self.masked = activation, names, below, masked
        self.boundary: Boundary | None = None
        self.height: int = 1 if below is None else below.height + 1
        self.found: dict[Any, Frame | None] = {}
        self.record: Any = None if below is None else below.record  # see `effgrad.effects.collector`


frames: ContextVar[Frame | None] = ContextVar("effgrad_frames", default=None)


class Request:
    """An operation on its way down the frames; `masks` counts the handlers of its effect that it still has to skip."""

    __slots__ = ("effect", "operation", "args", "kwargs", "masks", "partial")

    def __init__(self, effect: Object, operation: str, args: Object, kwargs: Object) -> None:
        self.effect, self.operation, self.args, self.kwargs = effect, operation, args, kwargs
        self.masks = 0
        self.partial: Any = None  # a handler of the effect that has no clause for the operation

    def _clause_at(self, frame: Frame) -> Callable[..., Any] | None:
        """Return the frame's clause for this request, or None if the request passes the frame."""
        if self.effect not in frame.names:
            return None
        if self.masks:
            self.masks -= 1
            return None
        clause: Callable[..., Any] | None = getattr(frame.activation, self.operation, None)
        if clause is None:
            self.partial = frame.activation
        return clause

    def perform_at(self, frame: Frame | None) -> Object:
        """Perform this request at the first frame that takes it, from the given frame downwards."""
        while frame is not None:
            if frame.masked is self.effect:
                self.masks += 1
            clause, boundary = self._clause_at(frame), frame.boundary
            if boundary is not None and (clause is not None or boundary.catches_all):
                return boundary.perform(frame, self, clause)
            if clause is not None:
                return self.call(clause, frame)
            frame = frame.below
        raise self._unhandled()

    def call(self, clause: Callable[..., object], frame: Frame) -> Object:
        """Call a clause outside its own handler, that is, with the frames below it."""
        top, below = frames.get(), frame.below
        try:  # `set` is inside, because an interrupt may come right after it
            frames.set(below)
            return clause(*self.args, **self.kwargs)
        finally:
            frames.set(top)
            if frame.below is not below:
                forget(top, frame)

    def _unhandled(self) -> Unhandled:
        what = f"{self.effect}.{self.operation} was performed"
        if self.partial is None:
            return Unhandled(f"{what}, and no handler for it is running")
        return Unhandled(
            f"{what}; {type(self.partial).__name__} handles {self.effect} but has no clause {self.operation}, and no "
            "handler outside it has one"
        )


def find(effect: object) -> Frame | None:
    """Return the first frame that concerns an operation of the effect: its handler, its mask or any boundary."""
    top = frame = frames.get()
    if top is None:
        return None
    if effect in top.found:
        return top.found[effect]
    while frame is not None and frame.boundary is None and frame.masked is not effect and effect not in frame.names:
        frame = frame.below
    top.found[effect] = frame
    return frame


def perform(effect: object, operation: str, *args: object, **kwargs: object) -> Object:
    """Perform an operation; return the answer of the nearest handler of its effect that has a clause for it."""
    top = frames.get()
    frame = find(effect) if top is None or effect not in top.found else top.found[effect]
    if frame is not None and frame.boundary is None and frame.masked is None:
        clause = getattr(frame.activation, operation, None)
        if clause is not None:
            # This repeats `Request.call`, to save the cost of making a request.
            below = frame.below
            try:
                frames.set(below)
                return clause(*args, **kwargs)
            finally:
                frames.set(top)
                if frame.below is not below:
                    forget(top, frame)
    return Request(effect, operation, args, kwargs).perform_at(frame)


def install(activation: Activation, below: Frame | None, installed: Frame | None) -> None:
    """Keep the handlers that a clause installed around its `yield` for the rest of the program.

    They are inserted right below the frame of the clause's activation. If the clause was called as a method, it runs
    above that frame, and the handlers that it installs stay above it.
    """
    frame: Frame = activation._frame if activation._run is None else activation._run.frame
    if frame.below is below:
        frame.below = installed


def forget(top: Frame | None, frame: Frame) -> None:
    """Clear the remembered handlers of the frames from `top` down to `frame`, whose link has changed."""
    while top is not None:
        top.found.clear()
        top = None if top is frame else top.below


def activations(frame: Frame | None) -> Iterator[Activation]:
    """Yield the activations from a frame downwards, the innermost first."""
    while frame is not None:
        if frame.activation is not None:
            yield frame.activation
        frame = frame.below


def handled(effect: object) -> bool:
    """Return whether an operation of the effect would find a handler in the current context."""
    frame, masks = find(effect), 0
    while frame is not None:
        if frame.masked is effect:
            masks += 1
        elif effect in frame.names:
            if not masks:
                return True
            masks -= 1
        frame = frame.below
    return False


def mask(effect: object, f: Callable[..., object], *args: object, **kwargs: object) -> Object:
    """Run `f(*args, **kwargs)` with the nearest handler of the effect skipped.

    >>> class Ask(Effect):
    ...     @operation
    ...     def ask(self): ...
    >>> class Answer(Handler[Ask]):
    ...     def __init__(self, answer):
    ...         self.answer = answer
    ...     def ask(self):
    ...         return self.answer
    >>> handle(Answer(1), lambda: handle(Answer(2), lambda: (mask(Ask, Ask.ask), Ask.ask())))
    (1, 2)
    """
    top = frames.get()
    frame = Frame(None, (), top, masked=effect)
    try:
        frames.set(frame)
        return f(*args, **kwargs)
    finally:
        frames.set(top)
        frame.found.clear()  # it may refer to the frame itself, which would be a cycle


class operation:  # noqa: N801 (a decorator)
    """A decorator that declares an operation of an effect.

    Calling the operation on the effect, or on an instance of it, performs it.
    """

    def __init__(self, stub: Callable[..., Object]) -> None:
        self.stub = stub
        self.__doc__ = stub.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        if name in RESERVED:
            raise TypeError(f"an operation cannot be called {name}, which is a part of every handler: rename it")
        self.owner, self.name = owner, name
        self.perform = functools.partial(perform, owner, name)

    def __get__(self, instance: object, owner: type) -> Callable[..., Object]:
        if instance is None and owner is self.owner:
            return self.perform
        return functools.partial(perform, owner if instance is None else instance, self.name)


class _EffectType(type):
    def __repr__(cls) -> str:
        return cls.__name__


class Effect(metaclass=_EffectType):
    """A named set of operations; an object of the class is a fresh instance whose operations are distinct."""

    def __repr__(self) -> str:
        return f"<instance of {type(self).__name__}>"


def fresh(effect: type) -> Object:
    """Return a new instance of an effect, whose operations are handled only by handlers of this instance."""
    return effect()
