"""`scipy.sparse`: a sparse matrix times a traced vector or dense matrix, and the other way round, in every format.

The matrix is a constant, given to the primitive as its elements and their places; a sparse matrix of traced elements is
not made.
"""

from typing import Any

import numpy as np
from scipy import sparse

from effgrad.arrays.value import plain
from effgrad.errors import NoRule
from effgrad.primitives.primitive import Primitive, linear


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
    """`self @ other`, and of matrices (not of arrays) `self * other`."""
    if np.ndim(plain(other)) == 0:
        _refused(self, other)
    if np.ndim(plain(other)) > 2 or self.ndim != 2:
        raise NoRule("a sparse matrix has a derivative rule for its product with vectors and matrices")
    data, rows, columns = parts(self)
    return product(other, data, rows=rows, columns=columns, shape=self.shape)


def _refused(self: Any, other: Any, **_: Any) -> Any:
    raise NoRule("a sparse matrix of traced elements has no derivative rule; use .toarray() before")


def _is_number(x: Any) -> bool:
    """Where SciPy asks, it would make traced elements, or add a number that happens to be 0 by forgetting it."""
    return bool(np.ndim(plain(x)) == 0 and _refused(None, x))


# The methods that the operators end in: a class whose operators are replaced costs Python a hundred times more.
METHODS: dict[Any, dict[str, Any]] = {
    sparse._base._spbase: {
        "_matmul_dispatch": _times, "multiply": _refused, "_sub_dense": lambda self, other: self.toarray() - other,
        "_rsub_dense": lambda self, other: other - self.toarray(),
    },
    sparse._dia._dia_base: {"multiply": _refused},
    **dict.fromkeys(
        (sparse._coo._coo_base, sparse._compressed._cs_matrix),
        {"_add_dense": lambda self, other: self.toarray() + other},
    ),
}  # fmt: skip
RULES: list[tuple[Any, str, Any]] = [
    *((owner, name, rule) for owner, rules in METHODS.items() for name, rule in rules.items()),
    *(
        (module, "isscalarlike", _is_number)
        for module in (sparse._base, sparse._coo, sparse._data, sparse._dia, sparse._dok, sparse._lil)
    ),
]
