"""`scipy.sparse`: a sparse matrix times a traced vector or dense matrix, and the other way round, in every format.

The matrix is a constant, given to the primitive as its elements and their places; a sparse matrix of traced elements is
not made.
"""

from typing import Any

import numpy as np
from scipy import sparse

from effgrad.errors import NoRule
from effgrad.smooth.primitive import Primitive, linear
from effgrad.smooth.traced import plain


def _value(x: Any, data: Any, rows: Any, columns: Any, shape: Any) -> Any:
    return sparse.coo_array((data, (rows, columns)), shape) @ x


def _by_data(g: Any, x: Any, data: Any, rows: Any, columns: Any, shape: Any) -> Any:
    products = g[rows] * x[columns]
    return products if np.ndim(plain(x)) == 1 else np.sum(products, axis=-1)


product: Primitive = linear(
    _value,
    lambda g, x, data, rows, columns, shape: product(g, data, rows=columns, columns=rows, shape=shape[::-1]),
    _by_data,
    name="sparse_matmul",
)


def parts(matrix: Any) -> tuple[Any, Any, Any]:
    """The elements of a sparse matrix as they are now, and their rows and columns."""
    elements = sparse.coo_array(matrix, copy=True)
    return elements.data, elements.row, elements.col


def _times(self: Any, other: Any) -> Any:
    """`self @ other`."""
    if np.ndim(plain(other)) not in (1, 2) or self.ndim != 2:
        raise NoRule("a sparse matrix has a derivative rule for its product with vectors and matrices")
    data, rows, columns = parts(self)
    return product(other, data, rows=rows, columns=columns, shape=self.shape)


def _times_left(self: Any, other: Any) -> Any:
    """`other @ self`."""
    return _times(self.T, other.T).T


def _of_matrix(self: Any, other: Any) -> Any:
    """`self * other` of sparse matrices (not of sparse arrays) is a product of matrices."""
    return _refused(self, other) if np.ndim(plain(other)) == 0 else _times(self, other)


def _of_matrix_left(self: Any, other: Any) -> Any:
    return _refused(self, other) if np.ndim(plain(other)) == 0 else _times_left(self, other)


def _refused(self: Any, other: Any) -> Any:
    raise NoRule("a sparse matrix of traced elements has no derivative rule; use .toarray() before")


OPERATIONS = {
    "__matmul__": _times, "__rmatmul__": _times_left, "dot": _times, "__mul__": _refused, "__rmul__": _refused,
    "multiply": _refused, "__truediv__": _refused,
    "__add__": lambda self, other: self.toarray() + other, "__radd__": lambda self, other: other + self.toarray(),
    "__sub__": lambda self, other: self.toarray() - other, "__rsub__": lambda self, other: other - self.toarray(),
}  # fmt: skip
RULES: list[tuple[Any, str, Any]] = [
    *((owner, name, rule) for owner in (sparse._base._spbase, sparse._coo._coo_base, sparse._dia._dia_base)
      for name, rule in OPERATIONS.items() if name in vars(owner)),
    (sparse.spmatrix, "__mul__", _of_matrix), (sparse.spmatrix, "__rmul__", _of_matrix_left),
]  # fmt: skip
