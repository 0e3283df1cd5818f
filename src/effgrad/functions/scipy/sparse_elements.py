"""Primitives on the vector of a sparse matrix's elements, and the names of methods by their effect on the elements."""

import bisect
from collections.abc import Callable
from typing import Any, TypeAlias

from scipy import sparse

from effgrad.arrays.layout import dtype_of, ndim_of, shape_of, size_of
from effgrad.arrays.reach import np
from effgrad.errors import NoRule
from effgrad.primitives.primitive import Primitive, linear
from effgrad.vocabulary import Value

Matrix: TypeAlias = Any


class Elements:
    """The values of a sparse matrix's elements, which matrices that share their data in SciPy have in common.

    They are kept in pieces, so that a matrix that is filled element by element takes linear time; the first number of a
    piece is its start plus 1.
    """

    def __init__(self, values: Value, lent: bool = False) -> None:
        self.pieces, self.starts, self.count = [values], [0], size_of(values)
        self.owners: list[Value] = []  # weak references to the matrices
        # Whether the program holds the vector itself (as `data`), and may write to it.
        self.lent = lent

    @property
    def vector(self) -> Value:
        if len(self.pieces) > 1:
            self.pieces, self.starts = [np.concatenate([np.ravel(piece) for piece in self.pieces])], [0]
        return self.pieces[0].copy() if self.lent else self.pieces[0]

    def lend(self) -> Value:
        """Return the vector for the program to write to."""
        if not self.lent:
            self.pieces, self.lent = [self.vector.copy()], True
        return self.pieces[0]

    def number(self, number: int) -> Value:
        """The value of the element with a number."""
        at = bisect.bisect_left(self.starts, number) - 1
        return np.ravel(self.pieces[at])[number - self.starts[at] - 1]

    def append(self, values: Value) -> Value:
        """Append values, and return their numbers in the shape of the values."""
        if self.lent:  # SciPy moves the elements to a new vector
            self.pieces, self.lent = [self.vector], False
        numbers = self.count + 1 + np.arange(size_of(values)).reshape(shape_of(values))
        self.pieces.append(values)
        self.starts.append(self.count)
        self.count += numbers.size
        return numbers

    def scale(self, factor: Value) -> None:
        """Multiply all values in place."""
        if self.lent:
            self.pieces[0][...] = self.pieces[0] * factor
        else:
            self.pieces = [self.vector * factor]

    def is_shared(self, mine: Value) -> bool:
        """Whether a matrix other than `mine` has these elements, and still exists."""
        self.owners = [owner for owner in self.owners if owner() is not None]
        return any(owner() is not mine for owner in self.owners)


def is_counted(numbers: Value) -> bool:
    """Whether the numbers are 1, 2, 3 and so on."""
    return bool((numbers == np.arange(1, numbers.size + 1)).all())


def _product_value(x: Value, data: Value, rows: Value, columns: Value, size: Value) -> Value:
    # SciPy's product of a matrix of one row and a vector is a number.
    return np.reshape(sparse.coo_array((data, (rows, columns)), size) @ x, (size[0], *np.shape(x)[1:]))


def by_data(g: Value, x: Value, rows: Value, columns: Value) -> Value:
    """The cotangents of the elements of a matrix, from the cotangent `g` of the matrix's product with `x`."""
    products = g[rows] * x[columns]
    return products if ndim_of(x) == 1 else np.sum(products, axis=-1)


product: Primitive = linear(
    _product_value,
    lambda g, x, data, rows, columns, size: product(g, data, rows=columns, columns=rows, size=size[::-1]),
    lambda g, x, data, rows, columns, size: by_data(g, x, rows, columns),
    name="sparse_matmul",
)


def total(values: Value, places: Value, size: int) -> Value:
    """The vector of `size` elements, each the sum of the values with its index in `places`."""
    count = len(places)
    ones = sparse.csr_array((np.ones(count), (places, np.arange(count))), (size, count)).tocoo()
    return product(values, ones.data, rows=ones.row, columns=ones.col, size=(size, count))


def gathered(numbers: Value, values: Value) -> Value:
    """The values with the given numbers, which are counted from 1; the number 0 stands for a zero."""
    numbers = np.asarray(numbers)
    if numbers.size and numbers.min() > 0:
        return values[numbers - 1]
    return np.concatenate([np.zeros(1, dtype_of(values)), values])[numbers]


def coordinates(coo: Matrix) -> tuple[Value, Value]:
    """The rows and columns of the elements of a matrix; a vector is one row."""
    if coo.ndim > 2:
        raise NoRule("a sparse array of more than two axes has no derivative rule: use A.toarray()")
    return (coo.row, coo.col) if coo.ndim == 2 else (np.zeros_like(coo.coords[0]), coo.coords[0])


def meeting(inner: Value, indptr: Value) -> tuple[Value, Value]:
    """The pairs of elements that meet in a product, as indices of elements of the left and of the right matrix.

    `inner` has the column of each element of the left matrix; `indptr` is where the rows of the right matrix begin.
    """
    lengths = np.diff(indptr)[inner]
    first = np.repeat(np.arange(len(inner)), lengths)
    ends = np.cumsum(lengths)
    along = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - lengths, lengths)
    return first, np.repeat(indptr[inner], lengths) + along


def is_scalar(x: Value) -> bool:
    return not sparse.issparse(x) and ndim_of(x) == 0


# Attributes and methods that concern the structure alone.
STRUCTURE = frozenset(
    """indices indptr row col coords offsets blocksize has_sorted_indices has_canonical_format sort_indices
    eliminate_zeros check_format maxprint rows keys get_shape getnnz getformat getmaxprint""".split()
)
# Attributes of a matrix's `places` that SciPy's functions set.
PLACES = STRUCTURE | {"shape", "_shape"}
# Methods that only move elements.
MOVES = frozenset(
    """transpose tocsr tocsc tocoo todia tolil todok tobsr asformat reshape diagonal sorted_indices getrow getcol
    _getrow _getcol""".split()
)
# Methods that write to their matrix.
IN_PLACE = frozenset("setdiag resize sum_duplicates eliminate_zeros sort_indices prune check_format".split())
# Elementwise functions that are 0 at 0.
UNARY: dict[str, Callable[[Value], Value]] = {
    **{name: getattr(np, name) for name in (
        "sin", "tan", "arcsin", "arctan", "sinh", "tanh", "arcsinh", "arctanh", "expm1", "log1p", "sqrt", "deg2rad",
        "rad2deg", "sign", "floor", "ceil", "rint", "trunc",
    )},
}  # fmt: skip
# The operators of a matrix for NumPy's ufuncs: of a matrix and a number, and of anything and a matrix.
FORWARD = {"multiply": "__mul__", "divide": "__truediv__", "power": "__pow__"}
REFLECTED = {"add": "__radd__", "subtract": "__rsub__", "multiply": "__rmul__", "matmul": "__rmatmul__"}
