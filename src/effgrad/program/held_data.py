"""SciPy's own sparse matrices whose data hold traced values, as after `A.data[:] = x`.

Such a matrix stays the program's own object. An operation takes it as a traced matrix of the values that its data hold
now; methods that write to it, and those whose result shares its data, are SciPy's own.
"""

from types import FunctionType
from typing import Any

import numpy as np
from scipy import sparse

from effgrad.arrays.value import Tracer
from effgrad.arrays.written import READERS, handle, read
from effgrad.errors import NoRule
from effgrad.functions.scipy.sparse_elements import IN_PLACE, MOVES, is_scalar
from effgrad.functions.scipy.sparse_value import TracedSparse, numbered
from effgrad.vocabulary import Object


def with_data_read(matrix: Any) -> Object:
    """Return SciPy's matrix as a traced one if traced values were written to its data, else the matrix itself."""
    data = read(matrix.data)
    if not isinstance(data, Tracer):
        return matrix
    return TracedSparse(numbered(matrix).places, np.ravel(data))


def of_held_data(f: FunctionType, matrix: Any) -> Any:
    """Return the target of a method of SciPy's for a matrix whose data hold traced values, and None for others."""
    now, name = read(matrix), f.__name__
    own = getattr(type(matrix), name, None)
    if now is matrix or f not in (own, getattr(own, "fget", None)):
        return None
    if name in IN_PLACE:
        if name in ("setdiag", "resize") or not getattr(matrix, "has_canonical_format", True):
            raise NoRule(
                f"{name} of a sparse matrix whose data hold traced values has no derivative rule: make the matrix of "
                "its values, as csr_array((values, indices, indptr)), and call it there"
            )
        return lambda *args, **kwargs: None  # its elements are sorted, and a zero stays stored

    def called(*args: Object, **kwargs: Object) -> Object:
        if name in MOVES or name in ("T", "_transpose"):
            result: Any = f(matrix, *args, **kwargs)
            if sparse.issparse(result) and np.may_share_memory(result.data, matrix.data):
                return result
        found = getattr(now, name)
        if own is not f:
            return found
        return found(*map(read, args), **{key: read(value) for key, value in kwargs.items()})

    return called


def scaling(name: str, matrix: Any, factor: Any) -> Any:
    """Return the method that multiplies or divides the data of a matrix in place, if they or the factor are traced."""
    if type(matrix) not in READERS or name not in ("imul", "itruediv") or not is_scalar(factor):
        return None
    if not isinstance(factor, Tracer) and not isinstance(read(matrix.data), Tracer):
        return None

    def scaled(matrix: Any, factor: Any) -> Any:
        factor = read(factor)
        handle(matrix.data)[...] = read(matrix.data) * (factor if name == "imul" else 1.0 / factor)
        return matrix

    return scaled


def in_memory(value: Any) -> Object:
    """Return a plain array that holds a traced array."""
    array = np.empty(value.shape, value.dtype)
    handle(array)[...] = value
    return array


FORMATS = [f"{form}_{kind}" for form in ("bsr", "coo", "csc", "csr", "dia") for kind in ("array", "matrix")]
READERS.enter({getattr(sparse, name): with_data_read for name in FORMATS})
