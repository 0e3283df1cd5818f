"""Scoped interception: the functions that no NumPy protocol reaches, replaced while a derivative runs and only then.

Four tables. `RULES` are functions of traced values that would be converted to plain arrays first: `np.array` of a list
with traced numbers in it, and functions of `scipy.special`. `MODULES` names the other modules with such functions, each
with a module of ours that has the rules; it is imported when a program has imported theirs. `CREATORS` make arrays;
inside a derivative theirs can absorb traced values (`effgrad.smooth.mutable`). `OF_LISTS` have rules for traced arrays,
and are given one for a list with traced numbers in it. The last activation to end restores the
originals, also after an exception.

What is in a module of SciPy is only replaced when the program looks something up there, so that a derivative that uses
NumPy alone does not pay for it.

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
from effgrad.errors import EffgradError, NoRule, library_call, public_name
from effgrad.smooth import bessel, makers, special
from effgrad.smooth.makers import by_library
from effgrad.smooth.mutable import buffer
from effgrad.smooth.scipy_rules.tables import Method, traced_inside
from effgrad.smooth.traced import RULED, Smooth, refusal

RULES: list[tuple[Any, str, Any]] = [
    *makers.RULES,
    *((scipy.special, name, rule) for name, rule in [*special.RULES.items(), *bessel.RULES.items()]),
]
CREATORS: list[tuple[Any, str]] = [
    (np, name)
    for name in (
        "array", "zeros", "ones", "empty", "full", "zeros_like", "ones_like", "empty_like", "full_like", "eye",
        "identity", "arange", "linspace", "copy",
    )
]  # fmt: skip
# Functions that NumPy's protocol sends to traced arrays, but not for lists of traced numbers. Each name costs every
# derivative 30 ns, so that these are those which people give lists to; others raise and say what to write.
OF_LISTS: list[tuple[Any, str]] = [
    *((np, name) for name in (
        "sum", "mean", "prod", "max", "min", "std", "var", "median", "sort", "argmax", "argmin", "cumsum", "diff",
        "average", "dot", "inner", "outer", "cross", "where", "interp", "polyval", "trapezoid", "transpose", "reshape",
        "array_equal",
    )),
    *((np.linalg, name) for name in ("norm", "det", "inv", "solve", "eigh")),
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


def _of_lists(original: Any) -> Any:
    def dispatch(*args: Any, **kwargs: Any) -> Any:
        for arg in args:
            if type(arg) in LISTS and traced_inside(arg):
                args = tuple(map(_gathered, args))
                break
        if kwargs:
            kwargs = {name: _gathered(arg) for name, arg in kwargs.items()}
        return original(*args, **kwargs)

    dispatch.__wrapped__ = original  # type: ignore[attr-defined]
    return dispatch


LISTS = frozenset((list, tuple))


def _gathered(arg: Any) -> Any:
    return makers.nested(arg) if type(arg) in LISTS and traced_inside(arg) else arg


def explain(error: BaseException) -> None:
    """Raise `NoRule` in the place of an error that compiled code of a library raised about a traced value."""
    if type(error) not in (TypeError, AttributeError, ValueError, SystemError) or error.__traceback__ is None:
        return
    numpys = type(error) is ValueError and str(error).startswith(("could not convert", "setting an array element"))
    if (numpys or type(error) is SystemError) and isinstance(error.__cause__, EffgradError):
        raise error.__cause__ from None  # compiled code put its own in the place of ours, or went on after it
    if type(error) is ValueError and not numpys:
        return
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    name, inside = library_call(frames)
    if name is not None and any(map(_sees_traced, inside)):
        raise NoRule(refusal(name)) from error


def _sees_traced(frame: Any) -> bool:
    """Whether a traced value is among a frame's variables, or could be: a frame of compiled code shows none."""
    return not frame.f_locals or any(map(traced_inside, frame.f_locals.values()))


class _Waiting(types.ModuleType):
    """A module of SciPy whose functions are replaced when the program first looks one up: most programs never do."""

    def __getattribute__(self, name: str) -> Any:
        with _lock:
            _replaced.wake(self)
        return getattr(self, name)


class _Replacements:
    """What is replaced: for modules dictionaries of names, for classes single attributes."""

    def __init__(self) -> None:
        # Public modules of SciPy wait to be looked into. NumPy does not, nor modules that look into themselves.
        self.waiting: dict[types.ModuleType, tuple[dict[str, Any], dict[str, Any]]] = {}
        self.modules: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = []
        self.classes: list[tuple[type, str, Any, Any]] = []
        self.asleep: set[types.ModuleType] = set()
        # The names of modules that see another NumPy, and that one.
        self.sheltered: list[dict[str, Any]] = []
        self.plain = types.ModuleType("numpy")

    def extend(self, rules: Sequence[tuple[Any, str, Any]], first: Sequence[tuple[Any, Any, str]] = ()) -> None:
        chosen: dict[Any, dict[str, Any]] = {}
        for replace, owner, name in first:
            replaced = chosen.setdefault(owner, {})
            replaced[name] = replace(replaced.get(name, vars(owner)[name]))
        for owner, name, rule in rules:
            replaced = chosen.setdefault(owner, {})
            replaced[name] = _with_rule(replaced.get(name, vars(owner)[name]), rule)
        for owner, replacements in chosen.items():
            originals = {name: vars(owner)[name] for name in replacements}
            if isinstance(owner, type):
                self.classes += [(owner, name, replacements[name], originals[name]) for name in replacements]
            elif type(owner) is types.ModuleType and owner.__name__ in SCIPY:
                self.waiting[owner] = replacements, originals
            else:
                self.modules.append((vars(owner), replacements, originals))
            RULED.update(f"{public_name(owner)}.{name}" for name in replacements)

    def shelter(self, modules: Sequence[Any]) -> None:
        """Let compiled modules, whose calls show no frame and which take memory by its address, see NumPy as it is."""
        vars(self.plain).update(vars(np))
        self.sheltered = [vars(module) for module in modules if vars(module).get("np") is np]

    def put(self) -> None:
        for module in self.waiting:
            module.__class__ = _Waiting
        self.asleep = set(self.waiting)
        plain = self.plain
        for known in self.sheltered:
            known["np"] = plain
        for known, changed, _ in self.modules:
            known.update(changed)
        for owner, name, replacement, _ in self.classes:
            setattr(owner, name, replacement)

    def wake(self, module: types.ModuleType) -> None:
        if module in self.asleep:
            self.asleep.remove(module)
            module.__class__ = types.ModuleType
            object.__getattribute__(module, "__dict__").update(self.waiting[module][0])

    def take_back(self) -> None:
        for module, (_, before) in self.waiting.items():
            if module in self.asleep:
                module.__class__ = types.ModuleType
            else:
                vars(module).update(before)
        self.asleep = set()
        for known in self.sheltered:
            known["np"] = np
        for known, _, before in self.modules:
            known.update(before)
        for owner, name, _, original in self.classes:
            setattr(owner, name, original)

    def __len__(self) -> int:
        functions = [replacements for replacements, _ in self.waiting.values()]
        functions += [replacements for _, replacements, _ in self.modules]
        return len(self.classes) + len(self.sheltered) + sum(map(len, functions))


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
                    if _running:
                        _replaced.take_back()
                        _look_for_imports()
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


SCIPY = frozenset((*MODULES, "scipy.special"))
_replaced = _Replacements()
_replaced.shelter([module for name, module in list(sys.modules.items()) if name.startswith("numpy.random.")])
_replaced.extend(RULES, [*((_of_lists, *of) for of in OF_LISTS), *((_creating, *of) for of in CREATORS)])
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
