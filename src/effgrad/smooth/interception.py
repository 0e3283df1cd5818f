"""Scoped interception: the functions that no NumPy protocol reaches, replaced while a derivative runs and only then.

Three tables. `RULES` are functions of traced values that would be converted to plain arrays first: `np.array` of a list
with traced numbers in it, and functions of `scipy.special`. `MODULES` names the other modules with such functions, each
with a module of ours that has the rules; it is imported when a program has imported theirs. `CREATORS` make arrays;
inside a derivative theirs can absorb traced values (`effgrad.smooth.mutable`). The last activation to end restores the
originals, also after an exception.

A call goes straight to the original if the calling context is not inside an activation (another thread), if it is given
no traced value, or, for creators, if the caller is NumPy, SciPy or another library around compiled code that asks for
real arrays (`numpy.polynomial` is plain Python and fills arrays as a user would).
"""

import importlib
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from typing import Any

import numpy as np
import scipy.special

from effgrad.effects import handled
from effgrad.smooth import makers, special
from effgrad.smooth.makers import by_library
from effgrad.smooth.mutable import buffer
from effgrad.smooth.scipy_rules.tables import Method, traced_inside
from effgrad.smooth.traced import Smooth

RULES: list[tuple[Any, str, Any]] = [
    *makers.RULES,
    *((scipy.special, name, rule) for name, rule in special.RULES.items()),
]
CREATORS: list[tuple[Any, str]] = [
    (np, name)
    for name in (
        "array", "zeros", "ones", "empty", "full", "zeros_like", "ones_like", "empty_like", "full_like", "eye",
        "identity", "arange", "linspace", "copy",
    )
]  # fmt: skip
MODULES = {
    f"scipy.{name}": f"effgrad.smooth.scipy_rules.{rules}"
    for name, rules in {
        "linalg": "linalg", "fft": "fft", "signal": "signal", "stats": "stats", "interpolate": "interpolate",
        "ndimage": "ndimage", "sparse": "sparse", "sparse.linalg": "sparse_linalg", "spatial.distance": "spatial",
    }.items()
}  # fmt: skip


def _with_rule(original: Any, rule: Any) -> Any:
    if type(rule) is Method:
        return _method(original, *rule)

    def dispatch(*args: Any, **kwargs: Any) -> Any:
        if traced_inside(args) or (kwargs and traced_inside(kwargs)):
            return rule(*args, **kwargs)
        return original(*args, **kwargs)

    return dispatch


def _method(original: Any, rule: Any, holds: Any) -> Any:
    def dispatch(self: Any, *args: Any, **kwargs: Any) -> Any:
        if holds(self) or traced_inside(args) or traced_inside(kwargs):
            return rule(self, *args, **kwargs)
        return original(self, *args, **kwargs)

    return dispatch


def _creating(original: Any) -> Any:
    def dispatch(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        if type(result) is np.ndarray and handled(Smooth) and not by_library():
            return buffer(result)
        return result

    return dispatch


class _Namespace:
    """The functions to replace in one module or class: the originals and their replacements."""

    def __init__(self, owner: Any, replacements: dict[str, Any]) -> None:
        self.owner, self.replacements = owner, replacements
        self.originals = {name: vars(owner)[name] for name in replacements}

    def set(self, functions: dict[str, Any]) -> None:
        if isinstance(self.owner, type):
            for name, function in functions.items():
                setattr(self.owner, name, function)
        else:
            vars(self.owner).update(functions)


def _namespaces(rules: list[tuple[Any, str, Any]], creators: Sequence[tuple[Any, str]] = ()) -> list[_Namespace]:
    chosen: dict[Any, dict[str, Any]] = {}
    for owner, name in creators:
        chosen.setdefault(owner, {})[name] = _creating(vars(owner)[name])
    for owner, name, rule in rules:
        replaced = chosen.setdefault(owner, {})
        replaced[name] = _with_rule(replaced.get(name, vars(owner)[name]), rule)
    return [_Namespace(owner, replacements) for owner, replacements in chosen.items()]


class _Imports(MetaPathFinder):
    """Notices that a program imports a module of `MODULES` while a derivative runs."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in _awaited:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        spec = next((s for finder in others if (s := finder.find_spec(name, path, target)) is not None), None)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            execute(module)
            with _lock:
                for namespace in _imported():
                    namespace.set(namespace.replacements)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _imported() -> list[_Namespace]:
    """What is to be replaced in modules that have been imported since the last call."""
    new = []
    for name in [name for name in _awaited if name in sys.modules]:
        _awaited.remove(name)
        new += _namespaces(importlib.import_module(MODULES[name]).RULES)
    _replaced.extend(new)
    return new


_replaced = _namespaces(RULES, CREATORS)
_awaited = list(MODULES)
_imports = _Imports()
_lock = threading.RLock()
_running: list[Any] = []


@contextmanager
def intercepted() -> Iterator[None]:
    """Replace the functions of the tables while the block runs; blocks nest and overlap across threads."""
    token = object()
    with _lock:
        _running.append(token)
        if len(_running) == 1:
            if _awaited:
                _imported()
                sys.meta_path.insert(0, _imports)
            for namespace in _replaced:
                namespace.set(namespace.replacements)
    try:
        yield
    finally:
        with _lock:
            _running.remove(token)
            if not _running:
                if _imports in sys.meta_path:
                    sys.meta_path.remove(_imports)
                for namespace in _replaced:
                    namespace.set(namespace.originals)
