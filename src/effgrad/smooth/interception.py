"""Scoped interception: `np.array` of traced numbers and SciPy's `logsumexp`, which no NumPy protocol reaches.

While at least one activation runs, and only then, the functions of the table below are replaced in their modules by a
dispatcher; the last activation to end restores them. Outside a derivative NumPy and SciPy are untouched. A call that
is given no traced value goes straight to the original, in every thread.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.special

from effgrad.smooth.reductions import logsumexp
from effgrad.smooth.traced import KINDS


def _traced_inside(value: Any) -> bool:
    if type(value) in (list, tuple):
        return any(_traced_inside(item) for item in value)
    return type(value) in KINDS


def _nested(value: Any) -> Any:
    return np.stack([_nested(item) for item in value]) if type(value) in (list, tuple) else value


def _array(value: Any, dtype: Any = None, **_: Any) -> Any:
    """`np.array` of a traced array or of nested lists with traced numbers in them."""
    result = value.copy() if type(value) in KINDS else _nested(value)
    return result if dtype is None else result.astype(dtype)


TABLE: list[tuple[Any, str, Any]] = [(np, "array", _array), (scipy.special, "logsumexp", logsumexp)]

_lock = threading.Lock()
_running: list[Any] = []
_originals = [getattr(module, name) for module, name, _ in TABLE]


def _dispatcher(original: Any, rule: Any) -> Any:
    def dispatch(*args: Any, **kwargs: Any) -> Any:
        if args and _traced_inside(args[0]):
            return rule(*args, **kwargs)
        return original(*args, **kwargs)

    dispatch.__wrapped__ = original  # type: ignore[attr-defined]
    return dispatch


_dispatchers = [_dispatcher(original, rule) for original, (_, _, rule) in zip(_originals, TABLE, strict=True)]


def _install(functions: list[Any]) -> None:
    for (module, name, _), function in zip(TABLE, functions, strict=True):
        setattr(module, name, function)


@contextmanager
def intercepted() -> Iterator[None]:
    """Replace the functions of the table while the block runs; blocks nest and overlap across threads."""
    token = object()
    with _lock:
        _running.append(token)
        if len(_running) == 1:
            _install(_dispatchers)
    try:
        yield
    finally:
        with _lock:
            _running.remove(token)
            if not _running:
                _install(_originals)
