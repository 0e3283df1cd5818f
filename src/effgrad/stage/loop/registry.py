"""The functions that capture handles by rules, or calls, or reads. A rule names its functions in an attribute."""

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from effgrad.api import tracebacks
from effgrad.arrays.layout import COPYING, MAY_VIEW, VIEWING_METHODS
from effgrad.program.plain_writes import WRITING
from effgrad.stage.loop.operands import SYMBOLIC, Method, Value, is_pythons
from effgrad.vocabulary import Function

Rule = Callable[..., Any]


# Modules of effgrad whose functions are captured from their source, as the user's are.
_READ = (
    "effgrad.toolbox.", "effgrad.loop", "effgrad.stage.loop.functions", "effgrad.stage.loop.planes",
    "effgrad.stage.loop.pipes", "effgrad.program.used_up", "effgrad.errors",
)  # fmt: skip


def is_library(f: Function) -> bool:
    """Whether a function belongs to a library rather than to the user's program."""
    return _module(f).split(".")[0] in ("numpy", "scipy", "effgrad", "math", "builtins")


def _module(f: Function) -> str:
    return getattr(f, "__module__", None) or ""


def is_read(f: Function) -> bool:
    """Whether capture reads the source of a function: a function of the user, or a tool written in the same way."""
    return inspect.isfunction(f) and (not is_library(f) or _module(f).startswith(_READ))


def has_rule(f: Any) -> bool:
    """Whether the user has given a function a derivative rule, so that its body must not be captured."""
    return getattr(f, "has_rule", False) is True


def inside_boundary(f: Any) -> Value:
    """A public function of effgrad without the wrapper that shortens its tracebacks; any other function unchanged."""
    at = getattr(f, "__globals__", {}).get("__name__")
    return f.__wrapped__ if at == tracebacks.__name__ and hasattr(f, "__wrapped__") else f


def is_of_library(f: Any) -> bool:
    """Whether a function or a ufunc belongs to a library, but is not a bound method."""
    return isinstance(f, np.ufunc) or (is_library(f) and not inspect.ismethod(f))


# Builtin functions without side effects.
PURE = {
    len, range, int, float, bool, complex, abs, min, max, sum, round, tuple, list, dict, isinstance, issubclass, type,
    getattr, hasattr, enumerate, zip, reversed, sorted, str, pow, divmod, any, all, callable, set, frozenset, slice,
}  # fmt: skip


def is_pure(f: Function) -> bool:
    """Whether a function may be called once instead of in each step, as it has no side effects."""
    owner = getattr(f, "__self__", None)
    if isinstance(owner, np.ufunc) and f.__name__ == "at" or isinstance(f, Hashable) and f in WRITING:
        return False
    if owner is not None and not inspect.ismodule(owner):
        return isinstance(owner, str | tuple | int | float | np.dtype | np.ufunc) or (
            isinstance(owner, dict) and f.__name__ in ("get", "keys", "values", "items")
        )
    if isinstance(f, np.ufunc) or f in PURE:
        return True
    if isinstance(f, type):
        return issubclass(f, np.generic | np.dtype | np.finfo | np.iinfo)
    return _module(f).split(".")[0] in ("numpy", "scipy", "math") and "random" not in _module(f)


def may_view(f: Any, args: Sequence[Value], kwargs: Mapping[str, Value]) -> bool:
    """Whether the result of a call may share memory with an argument; `f` is a function, or a method of an array."""
    if not kwargs.get("copy", True):
        return True
    if isinstance(f, Method):
        return f.name in VIEWING_METHODS
    of_several = f is np.einsum and len(args) > 2
    return is_of_library(f) and f in MAY_VIEW and f not in COPYING and not of_several


def gives_pythons(f: Any, args: Sequence[Value]) -> bool | None:
    """Whether a function returns a number of Python's class, and not of NumPy's; None if that is not known."""
    if getattr(f, "__module__", None) == "math" or f is float or f is bool:
        return True
    if any(f is one for one in (round, pow, np.real)):
        return all(map(is_pythons, args))
    of_numpy = isinstance(f, np.ufunc) or (getattr(f, "__module__", None) or "").split(".")[0] == "numpy"
    return False if of_numpy else None


def rule(*functions: Value) -> Callable[[Rule], Rule]:
    """Decorate the rule of some functions; the pair of a ufunc and a name stands for that method of the ufunc."""

    def register(f: Rule) -> Rule:
        f.stands_for = functions  # type: ignore[attr-defined]
        return f

    return register


def rules_in(names: Mapping[str, Value]) -> dict[Value, Rule]:
    """The rules of a module, also those in lists, by the functions that they stand for."""
    rules = [f for value in names.values() for f in (value if isinstance(value, list) else [value])]
    return {function: f for f in rules for function in getattr(f, "stands_for", ())}


def key_of(f: Function) -> Value:
    """The key of a function in a table of rules; None if it cannot be hashed."""
    owner, name = getattr(f, "__self__", None), getattr(f, "__name__", None)
    key = (owner, name) if owner is not None and hasattr(owner, "nin") else f
    try:
        hash(key)
    except TypeError:
        return None
    return key


def is_symbolic(*values: Value) -> bool:
    """Whether any of the values is symbolic."""
    return any(isinstance(v, SYMBOLIC) for v in values)
