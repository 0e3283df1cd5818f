"""The table of special functions, to which each module of them adds rows with their partials, one per argument.

`unknown` stands for a partial with no known closed form (in an order, or a degree of freedom). Taking such a derivative
raises `NoRule`, so the argument is never silently treated as a constant.
"""

import functools
from typing import Any, NamedTuple

import numpy as np
import scipy.special
from scipy.special import _ufuncs

from effgrad.arrays import counterparts
from effgrad.arrays.registries import Registry
from effgrad.arrays.value import UFUNCS, Tracer, decided, plain
from effgrad.errors import NoRule
from effgrad.primitives.complexes import require_real
from effgrad.primitives.machine_code import Code
from effgrad.primitives.primitive import Primitive, elementwise
from effgrad.vocabulary import Function, Partial, Value


class _Compiled:
    """`scipy.special` with its compiled ufuncs, which SciPy replaces by dispatchers under SCIPY_ARRAY_API=1."""

    def __getattr__(self, name: str) -> Value:
        return getattr(_ufuncs, {"digamma": "psi"}.get(name, name), None) or getattr(scipy.special, name)


sp = _Compiled()


def unknown(*_: Value) -> Value:
    """A marker for a partial for which no rule is known; it is never called."""


class Row(NamedTuple):
    """The partials of a function, its machine code, and `otherwise`, for array libraries that lack the function.

    A `total` function is defined for all numbers, so its partials need no test whether it has a value.
    """

    partials: Any
    code: Code | None = None
    otherwise: Any = None
    total: bool = False


def special(
    function: Function, *partials: Partial, name: str = "", code: Code | None = None,
    otherwise: Function | None = None, total: bool = False,
) -> Primitive:  # fmt: skip
    """Return an elementwise primitive, some of whose partials may be `unknown`.

    Another array library computes it by its function of the same name, or else by `otherwise(xp, *args)`.
    """
    name = name or function.__name__
    rules = [_refused(name, i) if partial is unknown else _rule(partial, total) for i, partial in enumerate(partials)]
    counterpart = counterparts.special(function.__name__, otherwise)
    return elementwise(function, *rules, name=name, code=code, counterpart=counterpart)


_NUMPYS: dict[type, Value] = {float: np.float64, int: np.int64}


def _rule(partial: Partial, total: bool) -> Value:
    """Return a partial that gets NumPy numbers instead of Python numbers, whose division by zero is an error.

    It is NaN where a function that is not `total` has no value; its formula may have a number there.
    """
    if partial is None:
        return None
    formula = partial if callable(partial) else lambda *_: partial

    @functools.wraps(formula)
    def rule(y: Value, *args: Value) -> Value:
        result = formula(y, *[_NUMPYS[type(x)](x) if type(x) in _NUMPYS else x for x in args])
        return result if total else _where_defined(plain(y), result)

    return rule


def _where_defined(y: Value, partial: Value) -> Value:
    outside = y != y
    if isinstance(outside, Tracer) or (outside if decided(outside) else np.any(outside)):
        return partial * np.where(outside, y, 1.0)  # a product, whose derivatives are NaN there too
    return partial


def _refused(name: str, index: int) -> Function:
    def partial(*_: Value) -> Value:
        raise NoRule(
            f"scipy.special.{name} has no derivative rule in its argument number {index + 1}; "
            "effgrad.stop_gradient(argument) makes it a constant"
        )

    return partial


def real_only(name: str, partial: Function) -> Function:
    """Return a partial that raises `NoRule` for complex arguments, as the function or its rule is not holomorphic."""

    def rule(*args: Value) -> Value:
        require_real(args[-1], f"scipy.special.{name}")
        return partial(*args)

    return rule


SPECIAL = Registry()
# The primitives of functions that return several numbers, and the implementations of these primitives by name.
PARTS, _PART = Registry(), Registry()


def __getattr__(name: str) -> Value:
    if name in _PART:
        return _PART[name]
    raise AttributeError(name)


def enter(table: dict[Any, object]) -> None:
    """Enter ufuncs into the table, each with a tuple of partials, its only partial, or a `Row`."""
    for function, given in table.items():
        partials, code, otherwise, total = given if type(given) is Row else Row(given)
        partials = partials if type(partials) is tuple else (partials,)
        row = {function: special(function, *partials, code=code, otherwise=otherwise, total=total)}
        UFUNCS.enter(row)
        SPECIAL.enter(row)


def enter_parts(table: dict[Value, tuple[Value, ...]]) -> None:
    """Enter ufuncs that return several numbers, with a tuple of partials for each number."""
    for function, parts in table.items():
        rows = tuple(special(_part(function, i), *partials) for i, partials in enumerate(parts))
        PARTS.enter({function: rows})
        UFUNCS.enter({function: _several(rows)})


def _part(function: Function, index: int) -> Function:
    def part(*args: Value) -> Value:
        return function(*args)[index]

    part.__name__ = f"{function.__name__}_{index}"
    _PART.enter({part.__name__: part})
    return part


def _several(parts: tuple[Primitive, ...]) -> Function:
    return lambda *args: tuple(part(*args) for part in parts)


def piecewise(condition: Value, x: Value, inside: Value, then: Function, outside: Value, otherwise: Function) -> Value:
    """Return `then(x)` where the condition holds, and `otherwise(x)` elsewhere.

    Both functions are computed for all elements. Where its result is not used, `then` gets the harmless number `inside`
    and `otherwise` gets `outside`.
    """
    return np.where(condition, then(np.where(condition, x, inside)), otherwise(np.where(condition, outside, x)))
