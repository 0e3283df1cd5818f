"""Results of solvers in a differentiated program, whose fields are computed, or refused, when they are read.

Reading a floating-point field that has no derivative raises an error, so no field is silently constant.
"""

from collections.abc import Callable

import numpy as np
from scipy.optimize import OptimizeResult

from effgrad.errors import NoRule
from effgrad.toolbox.frozen import underived
from effgrad.vocabulary import Value


class Deferred:
    """A field of a result that is computed when it is first read."""

    def __init__(self, compute: Callable[[], Value]) -> None:
        self.compute = compute


class Constant:
    """A field of a result that has a value but no derivative rule."""

    def __init__(self, value: Value, name: str) -> None:
        self.value, self.name = value, name

    def __repr__(self) -> str:
        return f"{self.value!r} (no derivative)"


class Solution(OptimizeResult):  # type: ignore[misc]
    """The result of a solver in a differentiated program, which is read like SciPy's."""

    def __getitem__(self, key: str) -> Value:
        value = super().__getitem__(key)
        if type(value) is Constant:
            raise NoRule(
                f"{value.name} has no derivative rule for the field {key!r} of its result: compute it from .x with "
                "NumPy, or call the solver outside the derivative to look at it"
            )
        if type(value) is Deferred:
            self[key] = value = value.compute()
        return value

    def __getattr__(self, name: str) -> Value:
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(name) from error


def differentiated(result: Value, name: str, **fields: Value) -> Solution:
    """Return a solver's result with traced `fields`; its remaining floating-point fields raise an error when read."""
    given = constants(result, f"scipy.optimize.{name}")
    return Solution(given | {key: value for key, value in fields.items() if key in given})


def constants(result: Value, name: str) -> Solution:
    """Return a dictionary of a solver's, whose floating-point items raise an error when read."""
    return Solution({key: _kept(value, name) for key, value in dict(result).items()})


def _kept(value: Value, name: str) -> Value:
    """Return a field without derivative. Numbers of iterations, messages and truth values may be read unchanged."""
    if isinstance(value, dict):
        return constants(value, name)
    whole = isinstance(value, bool | int | str | bytes | None) or getattr(value, "dtype", np.dtype("O")).kind in "biuSU"
    return value if whole else Constant(value, name)


def with_value(traced: Value, value: Value) -> Value:
    """Return `traced` with the plain value of `value`, from which it differs by rounding."""
    return value + (traced - underived(traced))
