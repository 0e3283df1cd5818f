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
import types
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from traceback import walk_tb
from typing import Any

import numpy as np
import numpy.random
import scipy.special

from effgrad.effects import handled
from effgrad.errors import NoRule, library_call, public_name
from effgrad.smooth import makers, special
from effgrad.smooth.makers import by_library
from effgrad.smooth.mutable import buffer
from effgrad.smooth.scipy_rules.tables import Method, traced_inside
from effgrad.smooth.traced import RULED, Smooth, refusal

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


def explain(error: BaseException) -> None:
    """Raise `NoRule` in the place of an error that compiled code of a library raised about a traced value."""
    if type(error) not in (TypeError, AttributeError, ValueError, SystemError) or error.__traceback__ is None:
        return
    if type(error) is ValueError and not str(error).startswith(("could not convert", "setting an array element")):
        return
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    name, inside = library_call(frames)
    if name is not None and any(map(_sees_traced, inside)):
        raise NoRule(refusal(name)) from error


def _sees_traced(frame: Any) -> bool:
    """Whether a traced value is among a frame's variables, or could be: a frame of compiled code shows none."""
    return not frame.f_locals or any(map(traced_inside, frame.f_locals.values()))


class _Replacements:
    """What is replaced: for modules dictionaries of names, for classes single attributes."""

    def __init__(self) -> None:
        self.modules: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = []
        self.classes: list[tuple[type, str, Any, Any]] = []

    def extend(self, rules: Sequence[tuple[Any, str, Any]], creators: Sequence[tuple[Any, str]] = ()) -> None:
        chosen: dict[Any, dict[str, Any]] = {}
        for owner, name in creators:
            chosen.setdefault(owner, {})[name] = _creating(vars(owner)[name])
        for owner, name, rule in rules:
            replaced = chosen.setdefault(owner, {})
            replaced[name] = _with_rule(replaced.get(name, vars(owner)[name]), rule)
        for owner, replacements in chosen.items():
            originals = {name: vars(owner)[name] for name in replacements}
            if isinstance(owner, type):
                self.classes += [(owner, name, replacements[name], originals[name]) for name in replacements]
            else:
                self.modules.append((vars(owner), replacements, originals))
            RULED.update(f"{public_name(owner)}.{name}" for name in replacements)

    def shelter(self, modules: Sequence[Any]) -> None:
        """Let compiled modules, whose calls show no frame and which take memory by its address, see NumPy as it is."""
        plain = types.ModuleType("numpy")
        vars(plain).update(vars(np))
        self.modules += [
            (vars(module), {"np": plain}, {"np": np}) for module in modules if vars(module).get("np") is np
        ]

    def put(self) -> None:
        for names, replacements, _ in self.modules:
            names.update(replacements)
        for owner, name, replacement, _ in self.classes:
            setattr(owner, name, replacement)

    def take_back(self) -> None:
        for names, _, originals in self.modules:
            names.update(originals)
        for owner, name, _, original in self.classes:
            setattr(owner, name, original)

    def __len__(self) -> int:
        return len(self.classes) + sum(len(replacements) for _, replacements, _ in self.modules)


class _Imports(MetaPathFinder):
    """Notices that a program imports a module of `MODULES` while a derivative runs."""

    depth = 0

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in _awaited:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        spec = next((s for finder in others if (s := finder.find_spec(name, path, target)) is not None), None)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            # Modules of SciPy import each other: only when the outermost is complete, all are.
            self.depth += 1
            try:
                execute(module)
            finally:
                self.depth -= 1
            if self.depth == 0:
                with _lock:
                    _look_for_imports()
                    if _running:
                        _replaced.put()

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _look_for_imports() -> None:
    """Add the rules of modules that have been imported since the last look."""
    for name in [name for name in _awaited if name in sys.modules]:
        try:
            rules = importlib.import_module(MODULES[name]).RULES
        except ImportError:  # a module that it needs is still being imported: at the next derivative
            continue
        _awaited.remove(name)
        _replaced.extend(rules)


_replaced = _Replacements()
_replaced.shelter([module for name, module in list(sys.modules.items()) if name.startswith("numpy.random.")])
_replaced.extend(RULES, CREATORS)
_awaited = list(MODULES)
_imports = _Imports()
_lock = threading.RLock()
_running = 0
_modules_seen = 0


def _begin() -> None:
    global _running, _modules_seen
    with _lock:
        _running += 1
        if _running == 1:
            if _awaited:
                if len(sys.modules) != _modules_seen:
                    _look_for_imports()
                    _modules_seen = len(sys.modules)
                sys.meta_path.insert(0, _imports)
            _replaced.put()


def _end() -> None:
    global _running
    with _lock:
        _running -= 1
        if _running == 0:
            if sys.meta_path and sys.meta_path[0] is _imports:
                del sys.meta_path[0]
            elif _imports in sys.meta_path:
                sys.meta_path.remove(_imports)
            _replaced.take_back()


class intercepted:
    """Replace the functions of the tables while the block runs; blocks nest and overlap across threads."""

    def __enter__(self) -> None:
        _begin()

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        _end()
        if error is not None:
            explain(error)
