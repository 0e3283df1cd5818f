"""The arguments of NumPy's functions: NumPy's own errors for calls that it rejects, and the argument `out`."""

import functools
import inspect
import itertools
import sys
from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from effgrad.arrays.layout import copy_arrays, dtype_of, shape_of
from effgrad.arrays.value import Tracer, example, is_foreign, plain
from effgrad.errors import EffgradError
from effgrad.nested import leaves, map_leaves
from effgrad.vocabulary import Function, Params, Value

_LEFT_OUT = type(np._NoValue)


# The positional parameters of the methods of ufuncs, whose signatures leave out those behind `out`.
UFUNC_METHODS = {
    "reduce": ("array", "axis", "dtype", "out", "keepdims", "initial", "where"),
    "accumulate": ("array", "axis", "dtype", "out"), "reduceat": ("array", "indices", "axis", "dtype", "out"),
}  # fmt: skip


def known_options(function: Function, args: Sequence[Value], kwargs: Params) -> Params:
    """Return a call's options without `np._NoValue`, NumPy's mark of one left out; raise NumPy's error for them."""
    if _LEFT_OUT in map(type, kwargs.values()):
        kwargs = {name: value for name, value in kwargs.items() if value is not np._NoValue}
    for name, value in kwargs.items():
        if not _is_usual(function, args, name, value):
            ask_numpy(function, args, kwargs)
            return kwargs | {"keepdims": bool(kwargs["keepdims"])} if "keepdims" in kwargs else kwargs
    return kwargs


def _is_usual(function: Function, args: Sequence[Value], name: str, value: Value) -> bool:
    """Whether NumPy is known to accept an option, so that it need not be called to find out."""
    if name == "axis":
        ndim = getattr(args[0], "ndim", 0) if args else 0
        known = value is None or type(value) is tuple or type(value) is int and -ndim <= value < ndim
        return known and name in _names(function)
    return isinstance(value, Tracer) or name in _names(function) and isinstance(value, _USUAL.get(name, object))


def ask_numpy(function: Function, args: Sequence[Value], kwargs: Params) -> None:
    """Call NumPy's function with copies of the plain values, so that it raises its own error if it rejects the call."""
    values, options = (copy_arrays(map_leaves(example, part)) for part in (list(args), kwargs))
    if not any(isinstance(leaf, Tracer) or is_foreign(leaf) for leaf in leaves((values, options))):
        try:
            with np.errstate(all="ignore"):
                function(*values, **options)
        except Exception:  # a staged program that catches the error does so for these values
            for value in map(plain, leaves((list(args), kwargs))):
                if isinstance(value, Tracer):
                    value.decide()
            raise


# The classes of option values that NumPy accepts; for others it is called. Strings are not here: it may reject one.
_USUAL: dict[str, Value] = {
    "keepdims": bool, "where": (bool, type(None)), "initial": (int, float, complex, np.generic),
    "dtype": (type, type(None)),
    "device": type(None), "like": type(None), "copy": type(None),
    "subok": bool, "order": type(None), "casting": type(None), "kind": type(None),
    "out": (np.ndarray, tuple, type(None)),
}  # fmt: skip


def ask_again(function: Function, args: Sequence[Value], kwargs: Params) -> None:
    """Raise the library's own error for a call that it rejects. A call with a user's callable is not tried."""
    if not any(callable(leaf) and not isinstance(leaf, type) for leaf in leaves((args, kwargs))):
        ask_numpy(function, args, kwargs)


def raise_as_numpy(error: Exception, function: Function, args: Sequence[Value], kwargs: Params) -> NoReturn:
    """Raise the library's error for a call whose rule raised `error`, or `error` if the library accepts the call."""
    if not isinstance(error, EffgradError):
        ask_again(function, args, kwargs)
    raise error


def check_out(out: Value, result: Value, function: Function, args: Sequence[Value], kwargs: Params) -> None:
    """Raise NumPy's error for an `out` whose shape or dtype does not fit the result of a call."""
    if shape_of(out) != shape_of(result) or dtype_of(out) != dtype_of(result):
        ask_numpy(function, args, {**kwargs, "out": np.empty(shape_of(out), dtype_of(out))})


def without_out(function: Function, args: Sequence[Value], kwargs: Params) -> tuple[Value, Value, Value]:
    """Return the positional arguments and options of a call without `out`, and `out`, which may be positional."""
    if "out" in kwargs:
        return args, {key: value for key, value in kwargs.items() if key != "out"}, kwargs["out"]
    place = place_of_out(function)
    if place is None or place >= len(args):
        return args, kwargs, None
    names = _parameters(function)[place + 1 :]
    if len(args) - place - 1 > len(names):
        ask_numpy(function, args, kwargs)
    rest = dict(zip(names, args[place + 1 :], strict=False))
    return args[:place], {**kwargs, **rest}, args[place]


def gives_out(function: Function, args: Sequence[Value], kwargs: Params) -> bool:
    """Whether a call gives an array as `out`, by name or by position."""
    return ("out" in kwargs or len(args) > 1) and without_out(function, args, kwargs)[-1] is not None


@functools.cache
def place_of_out(function: Function) -> int | None:
    """Return the position of the parameter `out`, or None if the function has none."""
    if isinstance(function, np.ufunc):
        return function.nin
    names = _parameters(function)
    return names.index("out") if "out" in names else None


@functools.cache
def count_of_required(function: Function) -> int:
    """Return the number of positional parameters without a default, or of all if the function does not say it."""
    if isinstance(function, np.ufunc):
        return function.nin
    if (names := _parameters(function)) in UFUNC_METHODS.values():
        return names.index("axis")
    return sum(p.default is p.empty for p in _positional(function)) or sys.maxsize


def required_by_position(function: Function, args: Sequence[Value], kwargs: Params) -> tuple[Value, Params]:
    """Return a call with the parameters that have no default by position."""
    names = _parameters(function)[len(args) : count_of_required(function)]
    given = list(itertools.takewhile(kwargs.__contains__, names))
    rest = {name: value for name, value in kwargs.items() if name not in given}
    return (*args, *[kwargs[name] for name in given]), rest


@functools.cache
def names_of_required(function: Function) -> frozenset[str]:
    """Return the names of the positional parameters without a default."""
    return frozenset(_parameters(function)[: count_of_required(function)])


@functools.cache
def _parameters(function: Function) -> Sequence[str]:
    if isinstance(getattr(function, "__self__", None), np.ufunc) and function.__name__ in UFUNC_METHODS:
        return UFUNC_METHODS[function.__name__]
    return [p.name for p in _positional(function)]


@functools.cache
def _names(function: Function) -> frozenset[str]:
    return frozenset(p.name for p in _signature(function) if p.kind is not p.POSITIONAL_ONLY)


def _positional(function: Function) -> list[inspect.Parameter]:
    return [p for p in _signature(function) if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def _signature(function: Function) -> list[inspect.Parameter]:
    """Return the parameters of a function, or none if it does not say them."""
    try:
        return [*inspect.signature(function).parameters.values()]
    except ValueError:  # compiled functions of NumPy before 2.4
        return []
