"""`scipy.sparse`: matrices of every format whose elements are traced.

A traced matrix is SciPy's own matrix of the elements' *numbers*, counted from 1, beside the vector of their values.
What only moves elements (a change of format, a slice, a transpose, a diagonal, blocks) is done by SciPy to the numbers;
where they end says which value goes where. Sums and products have rules on the vector of values. The structure of a
matrix is a constant: an element that happens to be 0 stays in it.
"""

import bisect
from collections.abc import Callable
from typing import Any, TypeAlias, cast

from scipy import sparse

from effgrad.arrays.layout import dtype_of, ndim_of, shape_of, size_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import Tracer
from effgrad.errors import NoRule
from effgrad.primitives.primitive import Primitive, linear
from effgrad.vocabulary import Shape

Value: TypeAlias = Any
Matrix: TypeAlias = Any


def _product_value(x: Value, data: Value, rows: Value, columns: Value, size: Value) -> Value:
    return sparse.coo_array((data, (rows, columns)), size) @ x


def by_data(g: Value, x: Value, rows: Value, columns: Value) -> Value:
    """The cotangents of the elements of a matrix from that of its product with `x`."""
    products = g[rows] * x[columns]
    return products if ndim_of(x) == 1 else np.sum(products, axis=-1)


product: Primitive = linear(
    _product_value,
    lambda g, x, data, rows, columns, size: product(g, data, rows=columns, columns=rows, size=size[::-1]),
    lambda g, x, data, rows, columns, size: by_data(g, x, rows, columns),
    name="sparse_matmul",
)


def total(values: Value, places: Value, size: int) -> Value:
    """A vector of sums of the values that have the same place."""
    count = len(places)
    ones = sparse.csr_array((np.ones(count), (places, np.arange(count))), (size, count)).tocoo()
    return product(values, ones.data, rows=ones.row, columns=ones.col, size=(size, count))


def gathered(numbers: Value, values: Value) -> Value:
    """The values with some numbers, counted from 1; 0 stands for a zero."""
    numbers = np.asarray(numbers)
    if numbers.size and numbers.min() > 0:
        return values[numbers - 1]
    return np.concatenate([np.zeros(1, dtype_of(values)), values])[numbers]


class TracedSparse:
    """A sparse matrix of traced elements, which is used as SciPy's; `places` is SciPy's matrix of their numbers."""

    __array_ufunc__ = None
    __array_priority__ = 2000.0
    holds_traced = True

    def __init__(self, places: Matrix, values: Value) -> None:
        # Values are kept in pieces, so that a matrix that is filled element by element takes linear time; the numbers
        # of a piece begin after its start.
        self.places, self._pieces, self._starts = places, [values], [0]
        self._count = size_of(values)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        kind: type = self.places.__class__
        return kind

    @property
    def values(self) -> Value:
        """The values of the elements, by their numbers."""
        if len(self._pieces) > 1:
            self._pieces, self._starts = [np.concatenate([np.ravel(piece) for piece in self._pieces])], [0]
        return self._pieces[0]

    # What SciPy's matrix of the numbers answers.

    shape = property(lambda self: self.places.shape)
    ndim = property(lambda self: self.places.ndim)
    nnz = property(lambda self: self.places.nnz)
    size = property(lambda self: self.places.size)
    format = property(lambda self: self.places.format)
    dtype = property(lambda self: np.result_type(*{dtype_of(piece) for piece in self._pieces}))
    T = property(lambda self: self.transpose())
    data = property(lambda self: gathered(self.places.data, self.values))
    real = property(lambda self: self._with(np.real(self.values)))
    imag = property(lambda self: self._with(np.imag(self.values)))

    def __getattr__(self, name: str) -> Value:
        if name in STRUCTURE:
            return getattr(self.places, name)
        if name in MOVES:
            return lambda *args, **kwargs: self._moved(getattr(self.settled().places, name)(*args, **kwargs))
        if name in UNARY:
            return lambda: self._with(UNARY[name](self.values))
        if not name.startswith("__") and hasattr(self.places, name):
            raise NoRule(
                f"scipy.sparse.{type(self.places).__name__}.{name} has no derivative rule; work on the elements "
                "(A.data) or on A.toarray()"
            )
        raise AttributeError(f"{type(self.places).__name__!r} object has no attribute {name!r}")

    def settled(self) -> "TracedSparse":
        """The matrix with elements at the same place added."""
        if self.format not in ("coo", "csr", "csc") or self.places.has_canonical_format:
            return self
        coo = self.places.tocoo()
        result = from_entries(coo.row, coo.col, gathered(coo.data, self.values), self.shape)
        return cast(TracedSparse, result._moved(result.places.asformat(self.format)))

    def _with(self, values: Value) -> "TracedSparse":
        return TracedSparse(self.places, values)

    def _moved(self, numbers: Value) -> Value:
        """The value of what SciPy has made of the matrix of the numbers."""
        return moved(numbers, self.settled().values)

    def entries(self) -> tuple[Value, Value, Value]:
        """The values of the elements, and their rows and columns."""
        coo = self.settled().places.tocoo()
        return gathered(coo.data, self.settled().values), coo.row, coo.col

    def _like(self, result: "TracedSparse") -> "TracedSparse":
        """A result as an array or a matrix, as this one is."""
        if isinstance(self.places, sparse.spmatrix) and not isinstance(result.places, sparse.spmatrix):
            return TracedSparse(_as_matrix(result.places), result.values)
        return result

    def copy(self) -> "TracedSparse":
        return TracedSparse(self.places.copy(), self.values)

    def astype(self, dtype: Value, *_: Value, **__: Value) -> "TracedSparse":
        return self._with(self.values.astype(dtype))

    def toarray(self, *_: Value, **__: Value) -> Value:
        return self._moved(self.settled().places.toarray())

    def todense(self, *_: Value, **__: Value) -> Value:
        if isinstance(self.places, sparse.spmatrix):
            raise NoRule("a numpy.matrix has other operations than arrays, and no derivative rules: write A.toarray()")
        return self.toarray()

    def sum_duplicates(self) -> None:
        settled = self.settled()
        if settled is not self:
            self.__init__(settled.places, settled.values)  # type: ignore[misc]

    def __getitem__(self, key: Value) -> Value:
        numbers = self.settled().places[key]
        if np.ndim(numbers) == 0 and not sparse.issparse(numbers):
            return self._number(int(numbers))
        return self._moved(numbers)

    def _number(self, number: int) -> Value:
        """The value with one number."""
        if not number:
            return self.dtype.type(0)
        at = bisect.bisect_left(self._starts, number) - 1
        return np.ravel(self._pieces[at])[number - self._starts[at] - 1]

    def _append(self, values: Value) -> Value:
        """The numbers of further values, in their shape."""
        shape = shape_of(values)
        numbers = self._count + 1 + np.arange(size_of(values)).reshape(shape)
        self._pieces.append(values)
        self._starts.append(self._count)
        self._count += numbers.size
        return numbers

    def __setitem__(self, key: Value, value: Value) -> None:
        if self.format in ("coo", "csr", "csc"):
            self.sum_duplicates()
        if sparse.issparse(value):
            other = lifted(value).settled()
            numbers = other.places.copy()
            numbers.data = numbers.data + self._count * (numbers.data > 0)
            self._append(other.values)
        else:
            numbers = self._append(value if isinstance(value, Tracer) else np.asarray(value))
        self.places[key] = numbers

    def setdiag(self, values: Value, k: int = 0) -> None:
        self.sum_duplicates()
        self.places.setdiag(self._append(values), k)

    # Arithmetic.

    def __neg__(self) -> "TracedSparse":
        return self._with(-self.values)

    def __abs__(self) -> "TracedSparse":
        settled = self.settled()
        return settled._with(np.abs(settled.values))

    def __pow__(self, n: Value) -> "TracedSparse":
        if isinstance(self.places, sparse.spmatrix):
            return self if n == 1 else self @ self ** (n - 1)
        return self.power(n)

    def power(self, n: Value, dtype: Value = None) -> "TracedSparse":
        settled = self.settled()
        return settled._with(settled.values**n)

    def multiply(self, other: Value) -> Value:
        """The product element by element, which is where both have elements."""
        if is_number(other):
            return self._with(self.values * other)
        values, rows, columns = self.entries()
        if sparse.issparse(other):
            others, i, j = lifted(other).entries()
            width = self.shape[1]
            _, mine, theirs = np.intersect1d(rows * width + columns, i * width + j, return_indices=True)
            result = from_entries(rows[mine], columns[mine], values[mine] * others[theirs], self.shape)
            return self._like(result._moved(result.places.tocsr()))
        other = np.broadcast_to(other, self.shape)
        return self._like(from_entries(rows, columns, values * other[rows, columns], self.shape))

    def __mul__(self, other: Value) -> Value:
        if is_number(other) or not isinstance(self.places, sparse.spmatrix):
            return self.multiply(other)
        return self @ other

    def __rmul__(self, other: Value) -> Value:
        if is_number(other) or not isinstance(self.places, sparse.spmatrix):
            return self.multiply(other)
        return self.__rmatmul__(other)

    def __truediv__(self, other: Value) -> Value:
        if sparse.issparse(other):
            raise NoRule("a sparse matrix divided by another is dense: write A.toarray() / B.toarray()")
        return self._with(self.values / other) if is_number(other) else self.multiply(1 / other)

    def __add__(self, other: Value) -> Value:
        if not sparse.issparse(other):
            return self._plus_dense(other, 1)
        if other.shape != self.shape:
            raise ValueError("inconsistent shapes")
        (a, i, j), (b, k, m) = self.entries(), lifted(other).entries()
        result = from_entries(np.concatenate([i, k]), np.concatenate([j, m]), np.concatenate([a, b]), self.shape)
        return self._like(result._moved(result.places.tocsr()))

    def _plus_dense(self, other: Value, sign: int) -> Value:
        if is_number(other):
            if not isinstance(other, Tracer) and other == 0:
                return self.copy()
            raise NotImplementedError("adding a nonzero scalar to a sparse array is not supported")
        return self.toarray() + sign * other

    def __radd__(self, other: Value) -> Value:
        return self.__add__(other)

    def __sub__(self, other: Value) -> Value:
        return self + (-lifted(other)) if sparse.issparse(other) else self._plus_dense(other, -1)

    def __rsub__(self, other: Value) -> Value:
        return (-self).__add__(other)

    def __matmul__(self, other: Value) -> Value:
        if sparse.issparse(other):
            return self._like(_sparse_product(self, lifted(other)))
        other = other if isinstance(other, Tracer) else np.asarray(other)
        if ndim_of(other) not in (1, 2) or shape_of(other)[0] != self.shape[1]:
            raise ValueError(f"matmul: dimension mismatch: {self.shape} and {shape_of(other)}")
        values, rows, columns = self.entries()
        return product(other, values, rows=rows, columns=columns, size=self.shape)

    def __rmatmul__(self, other: Value) -> Value:
        if sparse.issparse(other):
            return lifted(other) @ self
        other = other if isinstance(other, Tracer) else np.asarray(other)
        return (self.T @ other.T).T

    def dot(self, other: Value) -> Value:
        return self.multiply(other) if is_number(other) else self @ other

    def sum(self, axis: Value = None, *_: Value, **__: Value) -> Value:
        if axis is None:
            return np.sum(self.data)
        axes = (axis % 2,) if isinstance(axis, int | np.integer) else axis
        values, rows, columns = self.entries()
        if len(axes) == 2:
            return np.sum(values)
        result = total(values, rows if axes[0] else columns, self.shape[1 - axes[0]])
        if isinstance(self.places, sparse.spmatrix):
            raise NoRule("sums along an axis of a spmatrix are a numpy.matrix, without derivatives: use A.toarray()")
        return result

    def mean(self, axis: Value = None, *_: Value, **__: Value) -> Value:
        count = self.shape[0] * self.shape[1] if axis is None else self.shape[axis]
        return self.sum(axis) / count

    def trace(self, offset: int = 0) -> Value:
        return np.sum(self.diagonal(offset))

    def __repr__(self) -> str:
        return f"Traced({self.places!r})"


# Attributes and methods that are about the structure alone.
STRUCTURE = frozenset(
    """indices indptr row col coords offsets blocksize nonzero has_sorted_indices has_canonical_format sort_indices
    eliminate_zeros check_format maxprint rows""".split()
)
# Methods that only move elements.
MOVES = frozenset(
    """transpose tocsr tocsc tocoo todia tolil todok tobsr asformat reshape diagonal sorted_indices getrow getcol resize
    """.split()
)
# Functions of each element that are 0 at 0.
UNARY: dict[str, Callable[[Value], Value]] = {
    **{name: getattr(np, name) for name in (
        "sin", "tan", "arcsin", "arctan", "sinh", "tanh", "arcsinh", "arctanh", "expm1", "log1p", "sqrt", "deg2rad",
        "rad2deg", "sign", "floor", "ceil", "rint", "trunc", "conj", "conjugate",
    )},
}  # fmt: skip


def is_number(x: Value) -> bool:
    return not sparse.issparse(x) and ndim_of(x) == 0


def _as_matrix(places: Matrix) -> Matrix:
    return getattr(sparse, f"{places.format}_matrix")(places)


def moved(numbers: Value, values: Value) -> Value:
    """The elements with these numbers: a sparse matrix, or an array."""
    if not sparse.issparse(numbers):
        if isinstance(numbers, np.matrix):
            raise NoRule("a part of a spmatrix is a numpy.matrix, without derivatives: use A.toarray()")
        return gathered(numbers, values)
    if numbers.format in ("lil", "dok"):
        return TracedSparse(numbers, values)
    places, stored = numbers.copy(), numbers.data > 0
    kept = numbers.data[stored]
    places.data = np.zeros(numbers.data.shape, int)
    places.data[stored] = np.arange(1, len(kept) + 1)
    same = len(kept) == size_of(values) and bool((kept == np.arange(1, len(kept) + 1)).all())
    return TracedSparse(places, values if same else values[kept - 1])


def from_entries(rows: Value, columns: Value, values: Value, shape: Shape) -> TracedSparse:
    """The matrix (coo) of some entries; those at the same place are added."""
    keys = np.asarray(rows, int) * shape[1] + np.asarray(columns, int)
    different, inverse = np.unique(keys, return_inverse=True)
    if len(different) < len(keys):
        values = total(values, inverse, len(different))
    else:
        values = values[np.argsort(keys)] if len(keys) else values
    numbers = np.arange(1, len(different) + 1)
    places = sparse.coo_array((numbers, (different // shape[1], different % shape[1])), shape)
    places.has_canonical_format = True
    return TracedSparse(places, values)


def numbered(matrix: Matrix) -> Matrix:
    """A sparse matrix of plain elements as that of their numbers, and the vector of the elements."""
    if matrix.format in ("lil", "dok"):
        matrix = matrix.tocsr()
    places = matrix.copy()
    places.data = np.arange(1, matrix.data.size + 1).reshape(matrix.data.shape)
    return TracedSparse(places, np.ravel(matrix.data))


def lifted(matrix: Matrix) -> TracedSparse:
    """A sparse matrix as one of traced elements, which are constants where it is SciPy's."""
    return matrix if type(matrix) is TracedSparse else numbered(matrix)


def _sparse_product(a: TracedSparse, b: TracedSparse) -> TracedSparse:
    """The product of two sparse matrices: the products of all pairs of elements that meet, added by their places."""
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"matmul: dimension mismatch: {a.shape} and {b.shape}")
    (left, rows, inner), second = a.entries(), b.settled()
    second = second._moved(second.places.tocsr())
    lengths = np.diff(second.places.indptr)[inner]
    first = np.repeat(np.arange(len(rows)), lengths)
    ends = np.cumsum(lengths)
    along = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - lengths, lengths)
    other = np.repeat(second.places.indptr[inner], lengths) + along
    values = left[first] * second.data[other]
    result = from_entries(rows[first], second.places.indices[other], values, (a.shape[0], b.shape[1]))
    return result._moved(result.places.tocsr())  # type: ignore[no-any-return]


def parts(matrix: Matrix) -> tuple[Value, Value, Value]:
    """The elements of a sparse matrix as they are now, and their rows and columns."""
    if type(matrix) is TracedSparse:
        return matrix.entries()
    elements = sparse.coo_array(matrix, copy=True)
    return elements.data, elements.row, elements.col

