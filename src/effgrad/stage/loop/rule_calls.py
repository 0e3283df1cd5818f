"""The arguments of calls of library functions, by the names in the functions' signatures."""

import functools
import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

from effgrad.arrays.layout import MAY_VIEW
from effgrad.stage.loop.affine import NotCaptured
from effgrad.stage.loop.number_classes import Memory, refuse_class
from effgrad.stage.loop.operands import Lazy, Method, Value, View, classes_of, symbolic, without_axes
from effgrad.stage.loop.registry import Rule, is_of_library
from effgrad.stage.loop.symbols import Symbols
from effgrad.vocabulary import Function, Params

# The functions that return arrays also where these have no axes: new ones, and those that may be views. Of the latter
# some return a number for a number; NumPy is asked for each call.
MAKING: frozenset[Function] = frozenset((
    np.array, np.copy, np.where, np.select, np.piecewise, np.zeros, np.ones, np.empty, np.full, np.zeros_like,
    np.ones_like, np.empty_like, np.full_like, np.roll, np.block, np.cross, np.tensordot, np.ndarray,
))  # fmt: skip
ARRAYS = MAKING | MAY_VIEW - {np.real, np.imag, np.float64, np.einsum, np.astype}
_UNNAMED = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL


@functools.cache
def _parameters(f: Any) -> Mapping[str, inspect.Parameter]:
    """The parameters of a function, none if they are not known."""
    try:
        return inspect.signature(f).parameters
    except (TypeError, ValueError):
        return {}


def with_named_out(f: Any, args: list[Value], kwargs: Params) -> tuple[list[Value], Params]:
    """Name the array `out` that a library's function writes its result to, if it is passed by position."""
    if isinstance(f, np.ufunc):
        return (args, kwargs) if len(args) <= f.nin else (args[: f.nin], {**kwargs, "out": tuple(args[f.nin :])})
    if not is_of_library(f) and not isinstance(getattr(f, "__self__", None), np.ufunc):
        return args, kwargs
    names = [name for name, p in _parameters(f).items() if p.kind != inspect.Parameter.KEYWORD_ONLY]
    at = next((k for k, name in enumerate(names) if name in ("out", "copy")), len(args))
    given = {**dict(zip(names[at:], args[at:], strict=False)), **kwargs}
    if given.get("copy") is False and not isinstance(f, Method):
        raise NotCaptured(f"{getattr(f, '__name__', f)} without a copy, which may write to its argument")
    return args[:at], given


def call_rule(c: Symbols, rule: Rule, f: Any, args: list[Value], kwargs: Params) -> Value:
    """Call the rule of a function. An argument that the rule does not declare must have its default value."""
    own, theirs, positional = _parameters(rule), _parameters(f), args
    kinds = {p.kind for p in own.values()}
    given = dict(kwargs)
    if inspect.Parameter.VAR_POSITIONAL not in kinds:
        places = zip(range(len(args)), theirs.values(), strict=False)
        named = {k: p.name for k, p in places if p.kind not in _UNNAMED and p.default is not p.empty}
        given |= {name: args[k] for k, name in named.items()}
        args = [a for k, a in enumerate(args) if k not in named]
    undeclared = [] if inspect.Parameter.VAR_KEYWORD in kinds else [name for name in given if name not in own]
    for name in undeclared:
        if name not in theirs or not _is_same(given.pop(name), theirs[name].default):
            raise NotCaptured(f"the argument {name!r} of {getattr(f, '__name__', f)}")
    found = rule(c, *args, **given)
    return _array(c, found, f, positional, kwargs) if f in ARRAYS else found


def _array(c: Symbols, found: Value, f: Any, args: list[Value], kwargs: Params) -> Value:
    """The result of a function that returns arrays, also where it has no axes; a known new one becomes memory."""
    is_new = f in MAKING
    if is_new and isinstance(found, np.ndarray) and not found.ndim and found.dtype.kind in "fiub":
        return c.store(found[()])
    if is_new or _gives_array(f, args, kwargs):
        return without_axes(found, Memory.OWN if is_new else Memory.SHARED)
    return c.number(found.element(())) if isinstance(found, View | Lazy) else found


def _gives_array(f: Any, args: list[Value], kwargs: Params) -> bool:
    """Whether NumPy's function gives an array for its first argument, and not a number, as `reshape` of a number."""
    first, *others = args or [None]
    if not isinstance(first, View | Lazy) or first.shape or symbolic([others, *kwargs.values()]):
        return True
    one = {c: np.ones((), c.dtype) for c in classes_of(first)}
    forms = [x if c.memory != Memory.NONE else x.item() if c.weak else x[()] for c, x in one.items()]
    try:
        answers = {isinstance(f(form, *others, **kwargs), np.ndarray) for form in forms}
    except Exception as error:
        raise NotCaptured(str(error)) from None
    return answers.pop() if len(answers) == 1 else refuse_class()


def _is_same(value: Value, default: Value) -> bool:
    """Whether an argument is the default."""
    plain = isinstance(value, bool | int | float | str) and type(value) is type(default)
    return value is default or (plain and value == default)
