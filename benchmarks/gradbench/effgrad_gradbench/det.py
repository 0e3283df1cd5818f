"""The determinant by expansion by minors, and its gradient.

All minors of one size are expanded together: `columns` has the columns of each, and their rows are the last ones. So
there are as many products as in the recursion over one minor after another, in as many calls as there are rows.
"""

import numpy as np

from effgrad import grad
from effgrad_gradbench.fields import BadInput, array, integer


def minors(matrix, columns):
    """The determinants of the last rows of a matrix, in each choice of as many columns."""
    size = columns.shape[-1]
    row = matrix[-size, columns]
    if size == 1:
        return row[..., 0]
    others = np.nonzero(~np.eye(size, dtype=bool))[1].reshape(size, size - 1)
    signs = (-1.0) ** np.arange(size)
    return np.sum(signs * row * minors(matrix, columns[..., others]), axis=-1)


def primal(matrix):
    return minors(matrix, np.arange(len(matrix)))


def gradient(matrix):
    return grad(primal)(matrix).ravel()


FUNCTIONS = {"primal": primal, "gradient": gradient}


def read(source):
    size = integer(source, "ell", most=12)
    entries = array(source, "A", None)
    if len(entries) != size**2:
        raise BadInput(f"A has {len(entries)} entries, not {size} x {size}")
    return (entries.reshape(size, size),)
