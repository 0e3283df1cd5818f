"""Errors that a program catches: what raised an error when the program was staged has to raise it in every run.

A path on which `np.linalg.cholesky(a)` raised, and the program went on, is not the path of other matrices. The
operation stays in the program as an attempt, which fails as a guard does if there is no error. An operation that did
not raise an error when it was staged, and does in a run, ends the run, and the function is staged again (see `paths`).
"""

import functools
from typing import Any

import numpy as np

from effgrad.primitives.primitive import Primitive, constant
from effgrad.stage.nodes import GuardFailed
from effgrad.vocabulary import Option, Value


@functools.cache
def attempt(primitive: Primitive, kind: Any) -> Primitive:
    """Return the primitive that is True where another primitive raises an error of this kind, and fails elsewhere."""
    function: Any = primitive.function

    def raises(*args: Value, **params: Option) -> Value:
        try:
            function(*args, **params)
        except kind:
            return np.True_
        raise GuardFailed(-1, False)

    return constant(raises)


def depends_on_values(error: Exception) -> bool:
    """Whether an error of an operation may depend on values: types decide a TypeError, and ours are not caught."""
    return not isinstance(error, TypeError) and not type(error).__module__.startswith("effgrad")
