"""Helpers that the tables of rules share: kinds of rules, refusals of calls, and the matching of arguments."""

import functools
import inspect
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any, NamedTuple

from effgrad.arrays.layout import dtype_of, shape_of
from effgrad.arrays.reach import all_finite, np
from effgrad.arrays.value import Tracer, plain
from effgrad.arrays.value import traced_inside as traced_inside
from effgrad.errors import NoRule
from effgrad.primitives.complexes import require_real
from effgrad.primitives.given import as_computed
from effgrad.vocabulary import Function, Option, Reached, Value


def require(holds: bool, name: str, what: str) -> None:
    """Refuse a call that the rule of a function does not cover; `what` says which calls it covers."""
    if not holds:
        raise NoRule(f"scipy.{name} has a derivative rule for {what}")


def reals(name: str, *values: Value) -> None:
    """Refuse complex arguments, for a function where SciPy takes their real parts or has another formula."""
    for value in values:
        require_real(np.asarray(value) if type(value) in (list, tuple) else value, f"scipy.{name}")


def constant(function: Function) -> Function:
    """Return the rule of a function with a constant result; a staged program guards the values of its arguments."""

    def rule(*args: Value, **kwargs: Option) -> Value:
        return function(*map(guarded_value, args), **{key: guarded_value(value) for key, value in kwargs.items()})

    rule.constant = True  # type: ignore[attr-defined]
    return rule


def guarded_value(value: Value) -> Value:
    if type(value) in (list, tuple):
        return type(value)(map(guarded_value, value))
    value = plain(value)
    return value.__array__() if isinstance(value, Tracer) else value


def along(matrix: Value, x: Value, axis: int) -> Value:
    """Apply a matrix along an axis."""
    return np.moveaxis(np.tensordot(matrix, x, axes=(1, axis)), 0, axis)


def by_matrix(function: Function, x: Value, axis: int) -> Value:
    """Apply a linear function along an axis of `x`, by its matrix; `function` itself acts along the first axis."""
    kind = dtype_of(x)
    return along(function(np.eye(shape_of(x)[axis], dtype=kind if kind.kind in "fc" else float)), x, axis)


class Running(NamedTuple):
    """A rule with the value of a compiled function, and the derivative of a definition that is a library's Python."""

    original: Function
    definition: Any


def python_of(function: Function) -> Function:
    """Return a twin of a library's function that has no rule, so that its Python is run with traced values.

    Some of SciPy's functions take a shortcut at one value of an argument: they leave out a division by 1, say. Their
    value is right, but the derivative in that argument is lost. A definition without the shortcut calls the twin.
    """
    code, defaults = function.__code__, function.__defaults__
    twin = FunctionType(code, function.__globals__, function.__name__, defaults, function.__closure__)
    twin.__kwdefaults__ = function.__kwdefaults__
    return twin


class Writing(NamedTuple):
    """A rule of a compiled function, inside derivatives, that gets the program's own arrays, and may write to them."""

    rule: Any


class Calling(NamedTuple):
    """A rule that replaces its function inside derivatives, whether or not the arguments are traced.

    Most of these functions call a function of the user's, which may close over traced values.
    """

    rule: Function


class Method(NamedTuple):
    """A rule of a method; `holds` says whether the object that the method belongs to holds traced values."""

    rule: Function
    holds: Any


def over_batches(definition: Function, *ndims: int) -> Value:
    """Extend a definition to batches; `ndims` are the numbers of axes of its first arguments, -1 for one or two."""

    signature = inspect.signature(definition)

    def rule(*args: Value, **named: Option) -> Value:
        bound = signature.bind(*args, **named).arguments
        names = [name for name, _ in zip(bound, ndims, strict=False) if bound[name] is not None]
        arrays = {name: np.asarray(bound[name]) for name in names}
        cores = {
            name: (2 if array.ndim > 1 else 1) if ndim < 0 else ndim
            for (name, array), ndim in zip(arrays.items(), ndims, strict=False)
        }
        batch = np.broadcast_shapes(*(shape_of(arrays[n])[: arrays[n].ndim - cores[n]] for n in names))
        if not batch:
            return definition(*args, **named)
        wide = {n: np.broadcast_to(a, batch + shape_of(a)[a.ndim - cores[n] :]) for n, a in arrays.items()}
        results = [definition(**(bound | {n: a[place] for n, a in wide.items()})) for place in np.ndindex(batch)]

        def stacked(parts: Value) -> Value:
            return np.reshape(np.stack(parts), batch + shape_of(parts[0]))

        return tuple(map(stacked, zip(*results, strict=True))) if type(results[0]) is tuple else stacked(results)

    return functools.update_wrapper(rule, definition)


# Arguments that change how a result is computed and not the result.
HARMLESS = frozenset((
    "overwrite_a", "overwrite_b", "overwrite_ab", "overwrite_a_band", "overwrite_c", "overwrite_x", "overwrite_data",
    "check_finite", "workers", "lwork",
    "lapack_driver", "driver", "plan", "balanced", "assume_sorted", "cache_size", "homogeneous_rounding",
))  # fmt: skip


def by_name(original: Callable[..., object], rule: Function, title: str) -> Value:
    """Return a rule that takes arguments by the names of `original`, and refuses those that `rule` does not declare."""
    try:
        names, own = inspect.signature(original), inspect.signature(rule).parameters
    except ValueError:
        return rule
    if any(p.kind is p.VAR_POSITIONAL for p in names.parameters.values()):
        return rule
    checks = "check_finite" in names.parameters
    takes_any = any(p.kind is p.VAR_KEYWORD for p in own.values())

    @functools.wraps(rule)
    def call(*args: Value, **kwargs: Option) -> Value:
        positional, named = [], {}
        arguments = {name: as_matrix(value) for name, value in names.bind(*args, **kwargs).arguments.items()}
        if arguments.get("check_finite", checks):
            check_finite(arguments.values())
        for name, value in arguments.items():
            if names.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
                named.update(value)
            elif name not in own and not takes_any:
                _undeclared(title, names.parameters[name], value)
            elif name in own and own[name].kind is inspect.Parameter.POSITIONAL_ONLY:
                positional.append(value)
            else:
                named[name] = value
        return rule(*positional, **named)

    return call


def as_matrix(value: Value) -> Value:
    """Return nested lists of plain numbers as an array, also in a tuple such as `(c, lower)`; else return the value."""
    if type(value) is tuple:
        return tuple(map(as_matrix, value))
    nested = type(value) is list and value and type(value[0]) in (list, tuple) and not traced_inside(value)
    return np.asarray(value) if nested and len(set(map(len, value))) == 1 else value


def check_finite(arguments: Iterable[Value]) -> None:
    """Raise SciPy's error if an array is not finite, in a staged program or a batch; elsewhere SciPy has done so."""
    for value in arguments:
        if isinstance(plain(value), Tracer):
            all_finite(value)


def _undeclared(title: str, parameter: inspect.Parameter, value: Value) -> None:
    """Refuse an argument that a rule does not declare, unless it is the default or cannot change the result."""
    name = parameter.name
    if name in HARMLESS and not traced_inside(value):
        return
    if traced_inside(value) or not (value is parameter.default or _equal(value, parameter.default)):
        raise NoRule(f"{title} has no derivative rule for its argument {name}: leave it out, or make it a constant")


def _equal(value: Value, default: Value) -> bool:
    return type(value) in (bool, int, float, str) and type(default) is type(value) and value == default


def rules_of(owner: type, definitions: dict[str, Value]) -> list[Reached]:
    """Return rules for functions by their definitions; values, errors and names of arguments are the functions' own."""
    module = owner.__name__

    def rule(name: str, definition: Function) -> Value:
        if getattr(definition, "constant", False):
            return definition
        original = getattr(owner, name)
        return as_computed(original, by_name(original, definition, f"{module}.{name}"))

    return [(owner, name, rule(name, one)) for name, one in definitions.items() if hasattr(owner, name)]


def arguments_by_name(f: Function, args: tuple[Value, ...], kwargs: dict[str, Value]) -> dict[str, Value]:
    """Return the arguments of a call by their names, with the defaults of those that are not given."""
    bound = inspect.signature(f).bind(*args, **kwargs)
    bound.apply_defaults()
    return dict(bound.arguments)
