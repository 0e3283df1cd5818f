"""Scoped interception: the functions that no NumPy protocol reaches, replaced while a derivative runs and only then.

Two tables. `RULES` are functions of traced values that would be converted to plain arrays first: `np.array` of a list
with traced numbers in it, and functions of SciPy. `CREATORS` make arrays; inside a derivative theirs can absorb traced
values (`effgrad.smooth.mutable`). The last activation to end restores the originals, also after an exception.

A call goes straight to the original if the calling context is not inside an activation (another thread), if it is given
no traced value, or, for creators, if the caller is NumPy, SciPy or another library around compiled code that asks for
real arrays.
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.special

from effgrad.effects import handled
from effgrad.smooth import special
from effgrad.smooth.mutable import buffer
from effgrad.smooth.traced import KINDS, Smooth


def _traced_inside(value: Any) -> bool:
    if type(value) in (list, tuple):
        return any(_traced_inside(item) for item in value)
    return type(value) in KINDS


def _nested(value: Any) -> Any:
    return np.stack([_nested(item) for item in value]) if type(value) in (list, tuple) else value


def _array(value: Any, dtype: Any = None, *, copy: Any = True, ndmin: int = 0, **_: Any) -> Any:
    """`np.array` of a traced array or of nested lists with traced numbers in them."""
    if type(value) in KINDS:
        result = value.copy() if copy in (True, np._CopyMode.ALWAYS) else value
    else:
        result = _nested(value)
    if dtype is not None and np.dtype(dtype) != result.dtype:
        result = result.astype(dtype)
    return result if result.ndim >= ndmin else np.reshape(result, (1,) * (ndmin - result.ndim) + result.shape)


def _asarray(value: Any, dtype: Any = None, order: Any = None, *, copy: Any = None, **_: Any) -> Any:
    return _array(value, dtype, copy=copy)


RULES: list[tuple[Any, str, Any]] = [
    (np, "array", _array),
    (np, "asarray", _asarray),
    (np, "asanyarray", _asarray),
    (np, "ascontiguousarray", _asarray),
    (np, "asarray_chkfinite", _asarray),
    *((scipy.special, name, rule) for name, rule in special.RULES.items()),
]
CREATORS: list[tuple[Any, str]] = [
    (np, name)
    for name in (
        "array", "zeros", "ones", "empty", "full", "zeros_like", "ones_like", "empty_like", "full_like", "eye",
        "identity", "arange", "linspace", "copy",
    )
]  # fmt: skip
LIBRARIES = frozenset(("numpy", "scipy", "effgrad", "pandas", "xarray", "sklearn", "matplotlib", "torch", "jax"))


def _with_rule(original: Any, rule: Any) -> Any:
    def dispatch(*args: Any, **kwargs: Any) -> Any:
        if any(_traced_inside(a) for a in args) or (kwargs and _traced_inside(tuple(kwargs.values()))):
            return rule(*args, **kwargs)
        return original(*args, **kwargs)

    return dispatch


def _creating(original: Any) -> Any:
    def dispatch(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        if type(result) is np.ndarray and handled(Smooth):
            caller = sys._getframe(1)
            while caller.f_code is _REDISPATCH and caller.f_back is not None:
                caller = caller.f_back
            if caller.f_globals.get("__name__", "").partition(".")[0] not in LIBRARIES:
                return buffer(result)
        return result

    return dispatch


_REDISPATCH = _with_rule(None, None).__code__


def _replacements() -> list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
    """Of every module with intercepted functions, its names: all, then the originals and the replacements of some."""
    chosen: dict[Any, dict[str, Any]] = {}
    for module, name in CREATORS:
        chosen.setdefault(module, {})[name] = _creating(getattr(module, name))
    for module, name, rule in RULES:
        replaced = chosen.setdefault(module, {})
        replaced[name] = _with_rule(replaced.get(name, getattr(module, name)), rule)
    return [
        (vars(module), {name: getattr(module, name) for name in replaced}, replaced)
        for module, replaced in chosen.items()
    ]


_REPLACEMENTS = _replacements()
_lock = threading.Lock()
_running: list[Any] = []


@contextmanager
def intercepted() -> Iterator[None]:
    """Replace the functions of the tables while the block runs; blocks nest and overlap across threads."""
    token = object()
    with _lock:
        _running.append(token)
        if len(_running) == 1:
            for names, _, replaced in _REPLACEMENTS:
                names.update(replaced)
    try:
        yield
    finally:
        with _lock:
            _running.remove(token)
            if not _running:
                for names, originals, _ in _REPLACEMENTS:
                    names.update(originals)
