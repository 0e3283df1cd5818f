"""What the tables of rules have in common."""

from typing import Any, NamedTuple

import numpy as np

from effgrad.arrays.value import KINDS, plain
from effgrad.errors import NoRule
from effgrad.primitives.complexes import require_real
from effgrad.primitives.joining import shape_of


def traced_inside(value: Any) -> bool:
    """Whether a traced value is in an argument: itself, or in nested lists, tuples and dictionaries."""
    if type(value) in (list, tuple):
        return any(map(traced_inside, value))
    if type(value) is dict:
        return any(map(traced_inside, value.values()))
    return type(value) in KINDS


def require(holds: bool, name: str, what: str) -> None:
    """Refuse a form of a function that its rule does not cover."""
    if not holds:
        raise NoRule(f"scipy.{name} has a derivative rule for {what}")


def reals(name: str, *values: Any) -> None:
    """Refuse complex arguments where SciPy takes their real parts or has another formula."""
    for value in values:
        require_real(value, f"scipy.{name}")


def constant(function: Any) -> Any:
    """The rule of a function whose result no derivative goes through: of a staged program, it is the example's."""

    def rule(*args: Any, **kwargs: Any) -> Any:
        return function(*map(_settled, args), **{key: _settled(value) for key, value in kwargs.items()})

    rule.constant = True  # type: ignore[attr-defined]
    return rule


def _settled(value: Any) -> Any:
    if type(value) in (list, tuple):
        return type(value)(map(_settled, value))
    value = plain(value)
    return value.__array__() if type(value) in KINDS else value


def along(matrix: Any, x: Any, axis: int) -> Any:
    """A matrix applied along an axis."""
    return np.moveaxis(np.tensordot(matrix, x, axes=(1, axis)), 0, axis)


def by_matrix(function: Any, x: Any, axis: int) -> Any:
    """A function that is linear in the rows of a matrix, applied along an axis: a product with its own matrix."""
    kind = np.result_type(plain(x))
    return along(function(np.eye(shape_of(x)[axis], dtype=kind if kind.kind in "fc" else float)), x, axis)


class Calling(NamedTuple):
    """A rule of a function that calls one of the user's, which may bring traced values with it."""

    rule: Any


class Items(NamedTuple):
    """A rule of all the functions that an object has by its items."""

    rule: Any


class Method(NamedTuple):
    """A rule of a method, and whether the object that the method belongs to holds traced values."""

    rule: Any
    holds: Any
