"""Functions that have rules of their own while a loop is captured: a rule says so in an attribute."""

from collections.abc import Callable, Mapping
from typing import Any

from effgrad.stage.loop.values import SYMBOLIC

Rule = Callable[..., Any]


def is_library(f: Any) -> bool:
    """Whether a function is of a library rather than of the user's program."""
    module = getattr(f, "__module__", None) or ""
    return module.split(".")[0] in ("numpy", "scipy", "effgrad", "math", "builtins")


def rule(*functions: Any) -> Callable[[Rule], Rule]:
    """Let a rule stand for functions; for a method of a ufunc, for the pair of the ufunc and the method's name."""

    def register(f: Rule) -> Rule:
        f.stands_for = functions  # type: ignore[attr-defined]
        return f

    return register


def rules_in(names: Mapping[str, Any]) -> dict[Any, Rule]:
    """The rules of a module, by the functions that they stand for."""
    return {function: f for f in names.values() for function in getattr(f, "stands_for", ())}


def key_of(f: Any) -> Any:
    """The key of a function in a table of rules."""
    owner, name = getattr(f, "__self__", None), getattr(f, "__name__", None)
    key = (owner, name) if owner is not None and hasattr(owner, "nin") else f
    try:
        hash(key)
    except TypeError:
        return None
    return key


def is_symbolic(*values: Any) -> bool:
    """Whether one of some values is symbolic."""
    return any(isinstance(v, SYMBOLIC) for v in values)
