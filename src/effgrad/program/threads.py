"""Threads that a differentiated function starts.

A thread begins with an empty context, so it would see neither the handlers nor the memories of the derivative. Here the
function that runs in it gets the context of the caller, rewritten. The record of a derivative belongs to one thread at
a time: the functions run one after another, and the caller waits for each, but not forever, as it may have to feed it.
"""

import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar, copy_context
from types import MethodType
from typing import Any

from effgrad.arrays.value import Smooth
from effgrad.effects import handled
from effgrad.errors import Detached, EffgradError
from effgrad.program.rewritten import SOURCES

# How many seconds the caller waits for a function, and a function for those before it.
CALLER, TURN = 5.0, 60.0
_turn: ContextVar[Any] = ContextVar("effgrad_turn", default=None)


def inside(f: Callable[..., object]) -> Callable[..., object]:
    """Return a function that runs in another thread, with the caller's context and in its turn."""
    if _turn.get() is None:
        _turn.set(threading.Lock())
    turn, context, target = _turn.get(), copy_context(), vars(SOURCES.operations)["call"](f)

    def nested(*args: object, **kwargs: object) -> object:
        _turn.set(None)  # the threads that this one starts take turns among themselves
        return target(*args, **kwargs)

    def run(*args: object, **kwargs: object) -> object:
        if not turn.acquire(timeout=TURN):
            raise Detached(
                "threads that a differentiated function starts run one after another, and these wait for each other: "
                "call their functions in a loop"
            )
        try:
            return context.copy().run(nested, *args, **kwargs)
        finally:
            turn.release()

    return run


def _start(thread: Any) -> None:
    run, errors = inside(thread.run), []

    def reported() -> None:
        try:
            run()
        except EffgradError as error:  # a thread's errors are printed and forgotten
            errors.append(error)

    thread.run = reported
    type(thread).start(thread)
    thread.join(CALLER)
    if errors:
        raise errors[0]


def _submit(pool: Any, f: Callable[..., object], /, *args: object, **kwargs: object) -> Any:
    future, ended = type(pool).submit(pool, inside(f), *args, **kwargs), threading.Event()
    future.add_done_callback(lambda _: ended.set())
    ended.wait(CALLER)
    return future


def _map(pool: Any, f: Callable[..., object], *lists: Any, timeout: Any = None, chunksize: int = 1) -> Iterator[object]:
    futures = [_submit(pool, f, *items) for items in zip(*lists, strict=False)]
    return (future.result(timeout) for future in futures)


def _by_first(name: str) -> Callable[..., object]:
    return lambda pool, f, *args, **kwargs: getattr(type(pool), name)(pool, inside(f), *args, **kwargs)


# The methods that start threads: their names, the classes of their owners, and what is done instead.
STARTING: dict[str, tuple[str, Callable[..., object]]] = {
    "Thread.start": ("Thread", _start),
    "ThreadPoolExecutor.submit": ("ThreadPoolExecutor", _submit),
    "Executor.map": ("ThreadPoolExecutor", _map),
    **{f"Pool.{name}": ("ThreadPool", _by_first(name)) for name in (
        "apply", "apply_async", "map", "map_async", "imap", "imap_unordered", "starmap", "starmap_async",
    )},
}  # fmt: skip


def starting(f: MethodType) -> Any:
    """Return what a derivative does in place of a method that starts threads, or None for other methods."""
    found = STARTING.get(getattr(f.__func__, "__qualname__", ""))
    if found is None or not handled(Smooth):
        return None
    kind, instead = found
    known = any(c.__name__ == kind and c.__module__.startswith(MODULES) for c in type(f.__self__).__mro__)
    return MethodType(instead, f.__self__) if known else None


MODULES = ("threading", "concurrent.futures", "multiprocessing")
