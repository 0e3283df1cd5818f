"""NumPy's functions that make arrays, for code without source, which cannot be read."""

from collections.abc import Callable

import numpy as np

from effgrad.arrays.traced import buffer
from effgrad.vocabulary import Object

# Functions of NumPy that make arrays. For code without source they return a `Mutable`, which sees its writes.
CREATORS: frozenset[Object] = frozenset((
    np.array, np.zeros, np.ones, np.empty, np.full, np.zeros_like, np.ones_like, np.empty_like, np.full_like, np.eye,
    np.identity, np.arange, np.linspace, np.copy,
))  # fmt: skip


def creating(target: Callable[..., object]) -> Callable[..., object]:
    """Return a function that makes arrays in the form that code without source can write traced values to."""

    def given(*args: object, **kwargs: object) -> object:
        result = target(*args, **kwargs)
        return buffer(result) if type(result) is np.ndarray and result.dtype.kind in "fc" else result

    return given
