"""Scoped interception: the functions that no NumPy protocol reaches, replaced while a derivative runs and only then.

Four tables. `RULES` are functions of traced values that would be converted to plain arrays first: `np.array` of a list
with traced numbers in it, and functions of `scipy.special`. `MODULES` names the other modules with such functions, each
with a module of ours that has the rules; it is imported when a program has imported theirs. `CREATORS` make arrays;
inside a derivative theirs can absorb traced values (`effgrad.arrays.memory`). `OF_LISTS` have rules for traced arrays,
and are given one for a list with traced numbers in it. The last activation to end restores the
originals, also after an exception.

A public module is given another class while a derivative runs, which costs the same for any number of names. Only names
that a private module looks up in itself, and methods of classes, are written one by one.

A call goes straight to the original if the calling context is not inside an activation (another thread), if it is given
no traced value, or, for creators, if the caller is NumPy, SciPy or another library around compiled code that asks for
real arrays (`numpy.polynomial` is plain Python and fills arrays as a user would).
"""

import importlib
import re
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

from effgrad.arrays import makers
from effgrad.arrays.makers import by_library
from effgrad.arrays.memory import buffer
from effgrad.arrays.value import KINDS, RULED, Smooth, example, refusal
from effgrad.effects import handled
from effgrad.errors import (
    Detached,
    EffgradError,
    NoRule,
    called,
    forget,
    library_call,
    public_name,
    raised_by_the_program,
    said_at,
    user_line,
)
from effgrad.functions.scipy.tables import Calling, Items, Method, traced_inside
from effgrad.primitives.special import bessel
from effgrad.primitives.special import elementary as special

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
# Functions that NumPy's protocol sends to traced arrays, but not for lists of traced numbers. These are those which
# people give lists to; others raise and say what to write.
OF_LISTS: list[tuple[Any, str]] = [
    *((np, name) for name in (
        "sum", "mean", "prod", "max", "min", "std", "var", "median", "sort", "argmax", "argmin", "cumsum", "diff",
        "average", "dot", "inner", "outer", "cross", "where", "interp", "polyval", "trapezoid", "transpose", "reshape",
        "array_equal", "ndim",
    )),
    *((np.linalg, name) for name in ("norm", "det", "inv", "solve", "eigh")),
]  # fmt: skip
MODULES = {"pandas": "effgrad.functions.pandas"} | {
    f"scipy.{name}": f"effgrad.functions.scipy.{rules}"
    for name, rules in {
        "linalg": "linalg", "fft": "fft", "signal": "signal", "stats": "stats", "interpolate": "interpolate",
        "ndimage": "ndimage", "sparse": "sparse", "sparse.linalg": "sparse_linalg", "spatial.distance": "spatial",
        "spatial.transform": "rotation", "fftpack": "fftpack",
    }.items()
} | {
    "scipy.optimize": "effgrad.toolbox.solvers", "scipy.integrate": "effgrad.toolbox.differential",
    "numpy.random": "effgrad.toolbox.stochastic",
}  # fmt: skip


def _with_rule(original: Any, rule: Any) -> Any:
    if type(rule) is Method:
        return _method(original, *rule)
    if type(rule) is Calling:
        return _calling(original, *rule)
    if type(rule) is Items:
        return _Items(original, *rule)

    def dispatch(*args: Any, **kwargs: Any) -> Any:
        if traced_inside(args) or (kwargs and traced_inside(kwargs)):
            return rule(*args, **kwargs)
        return original(*args, **kwargs)

    return _Class(original, dispatch) if isinstance(original, type) else dispatch


class _Class:
    """A class whose calls have a rule; to `isinstance` and to everything else it is the class."""

    def __init__(self, original: type, dispatch: Any) -> None:
        self.__wrapped__, self._dispatch = original, dispatch

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._dispatch(*args, **kwargs)

    def __instancecheck__(self, value: Any) -> bool:
        return isinstance(value, self.__wrapped__)

    def __subclasscheck__(self, kind: type) -> bool:
        return issubclass(kind, self.__wrapped__)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)


def _calling(original: Any, rule: Any) -> Any:
    def dispatch(*args: Any, **kwargs: Any) -> Any:
        return (rule if handled(Smooth) else original)(*args, **kwargs)

    return _Class(original, dispatch) if isinstance(original, type) else dispatch


class _Items:
    """An object whose items are functions, each with the rule."""

    def __init__(self, original: Any, rule: Any) -> None:
        self.original, self.rule = original, rule

    def __getitem__(self, key: Any) -> Any:
        return _with_rule(self.original[key], self.rule)


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


# What to write instead of functions that take plain numbers, by the beginning of their names.
INSTEAD = {
    "numpy.ma": "plain arrays, and np.where(mask, 0, x) for what is masked",
    "numpy.matrixlib": "plain arrays and the operator @",
    "statistics": "NumPy's function, as np.mean, np.median or np.var",
    "fractions": "x * p / q for a fraction p / q",
}


def explain(error: BaseException) -> None:
    """Raise an error of ours in the place of one that other code raised about a traced value."""
    traceback = error.__traceback__
    if isinstance(error.__cause__, EffgradError) and str(error).startswith("setting an array element"):
        raise error.__cause__  # NumPy's words for what `float(x)` said
    ours = isinstance(error, EffgradError) or not isinstance(error, Exception)
    if ours or traceback is None or raised_by_the_program(traceback):
        return
    line, text = user_line(traceback), str(error)
    swallowed = said_at(line)
    if swallowed is not None:
        raise swallowed from error
    if isinstance(error, AttributeError) and type(error.obj) in KINDS and hasattr(example(error.obj), str(error.name)):
        raise Detached(f"a traced value has no {error.name}; effgrad.stop_gradient(x).{error.name} is a constant", line)
    if isinstance(error, KeyError) and any(map(traced_inside, error.args)):
        raise Detached(
            "a traced value was looked up as a key, and is no other's equal; write effgrad.stop_gradient(x)", line
        )
    name, frames = called(traceback), [frame for frame, _ in walk_tb(traceback)]
    scipys, inside = library_call(frames)
    if scipys is not None and _names_traced(error, text):
        raise NoRule(refusal(scipys), line) from error
    if _names_traced(error, text) or (_of_python(name) and _sees_traced(frames[-1])):
        instead = next((text for start, text in INSTEAD.items() if name and name.startswith(start)), None)
        raise Detached(
            f"{name or 'a compiled function'} takes plain numbers and was given a traced value, which would lose its "
            f"derivative; write {instead or 'effgrad.stop_gradient(x), or a function of NumPy'}",
            line,
        ) from error
    if not isinstance(error, TypeError | AttributeError | ValueError | SystemError):
        return
    if type(error) is ValueError and not text.startswith(("could not convert", "setting an array element")):
        return
    if scipys is not None and any(map(_sees_traced, inside)):
        raise NoRule(refusal(scipys), line) from error


def _names_traced(error: BaseException, text: str) -> bool:
    """Whether an error of compiled code, or of JAX, says that it met a traced value."""
    kinds = any(re.search(rf"\b{kind.__name__}\b", text) for kind in KINDS) and not isinstance(error, AttributeError)
    return kinds or "__jax_array__" in text


def _of_python(name: str | None) -> bool:
    return name is not None and name.partition(".")[0] in sys.stdlib_module_names


def _sees_traced(frame: Any) -> bool:
    """Whether a traced value is among a frame's variables, or could be: a frame of compiled code shows none."""
    return not frame.f_locals or any(map(traced_inside, frame.f_locals.values()))


class _Replaced(types.ModuleType):
    """The class of a public module while a derivative runs: its properties come before the names in the module.

    To give a module another class takes 40 ns for any number of names, and a property of compiled code is looked up
    as fast as a name.
    """

    def __reduce__(self) -> Any:
        return importlib.import_module, (self.__name__,)


def _class_of(module: types.ModuleType, replacements: dict[str, Any]) -> type:
    shown = {name: property({module: function}.__getitem__) for name, function in replacements.items()}
    return type("module", (_Replaced, type(module)), shown)


class _Replacements:
    """What is replaced: names of public modules, names that private modules look up themselves, methods of classes."""

    def __init__(self) -> None:
        self.names: dict[types.ModuleType, dict[str, Any]] = {}
        self.modules: list[tuple[types.ModuleType, type, type]] = []
        self.globals: list[tuple[dict[str, Any], str, Any, Any]] = []
        self.classes: list[tuple[type, str, Any, Any]] = []

    def extend(self, rules: Sequence[tuple[Any, str, Any]], first: Sequence[tuple[Any, Any, str]] = ()) -> None:
        chosen: dict[Any, dict[str, Any]] = {}
        for replace, owner, name in first:
            replaced = chosen.setdefault(owner, {})
            replaced[name] = replace(replaced.get(name, vars(owner)[name]))
        for owner, name, rule in rules:
            if name not in vars(owner):  # of another version of the library
                continue
            replaced = chosen.setdefault(owner, {})
            replaced[name] = _with_rule(replaced.get(name, vars(owner)[name]), rule)
        for owner, replacements in chosen.items():
            each = [(name, replacement, vars(owner)[name]) for name, replacement in replacements.items()]
            if isinstance(owner, type):
                self.classes += [(owner, *one) for one in each]
            elif public_name(owner) != owner.__name__:
                self.globals += [(vars(owner), *one) for one in each]
            else:
                names = self.names.setdefault(owner, {})
                names.update(replacements)
                self.modules = [known for known in self.modules if known[0] is not owner]
                self.modules.append((owner, _class_of(owner, names), type(owner)))
            RULED.update(f"{public_name(owner)}.{name}" for name in replacements)

    def shelter(self, modules: Sequence[Any]) -> None:
        """Let compiled modules, whose calls show no frame and which take memory by its address, see NumPy as it is."""
        plain = types.ModuleType("numpy")
        vars(plain).update(vars(np))
        self.globals += [(vars(module), "np", plain, np) for module in modules if vars(module).get("np") is np]

    def put(self) -> None:
        for module, during, _ in self.modules:
            module.__class__ = during
        for known, name, replacement, _ in self.globals:
            known[name] = replacement
        for owner, name, replacement, _ in self.classes:
            setattr(owner, name, replacement)

    def take_back(self) -> None:
        for module, _, before in self.modules:
            module.__class__ = before
        for known, name, _, original in self.globals:
            known[name] = original
        for owner, name, _, original in self.classes:
            setattr(owner, name, original)

    def __len__(self) -> int:
        return len(self.classes) + len(self.globals) + sum(map(len, self.names.values()))


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
    """Add the rules of modules that have been imported since the last look, and of those that these rules import."""
    tried: set[str] = set()
    while found := [name for name in _awaited if name in sys.modules and name not in tried]:
        for name in found:
            tried.add(name)
            try:
                rules = importlib.import_module(MODULES[name]).RULES
            except ImportError:  # a module that it needs is still being imported: at the next derivative
                continue
            _awaited.remove(name)
            _replaced.extend(rules)


_replaced = _Replacements()
_replaced.shelter([module for name, module in list(sys.modules.items()) if name.startswith("numpy.random.")])
_replaced.extend(RULES, [*((_of_lists, *of) for of in OF_LISTS), *((_creating, *of) for of in CREATORS)])
_awaited = list(MODULES)
_imports = _Imports()
_lock = threading.RLock()
_running = 0
_modules_seen = 0


class intercepted:
    """Replace the functions of the tables while the block runs; blocks nest and overlap across threads."""

    def __enter__(self) -> None:
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

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        global _running
        with _lock:
            _running -= 1
            if _running == 0:
                if _imports in sys.meta_path:
                    sys.meta_path.remove(_imports)
                _replaced.take_back()
        try:
            if error is not None:
                explain(error)
        finally:
            forget()
