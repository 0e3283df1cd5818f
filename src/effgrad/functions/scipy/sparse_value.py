"""Sparse matrices with traced elements, in every format of `scipy.sparse`.

A traced matrix is SciPy's own matrix of the elements' *numbers*, counted from 1, and the vector of their values. An
operation that only moves elements (a change of format, a slice, a transpose, a diagonal, blocks) is done by SciPy to
the numbers, and the result says which value goes where. Sums and products have rules on the vector of values. The
structure of a matrix is a constant: an element that happens to be 0 stays stored.
"""

import bisect
from typing import cast

from scipy import sparse

from effgrad.arrays.layout import dtype_of, ndim_of, shape_of, size_of
from effgrad.arrays.reach import np
from effgrad.arrays.subarrays import view_as
from effgrad.arrays.value import Tracer, list_to_array, plain
from effgrad.errors import NoRule
from effgrad.functions.scipy.sparse_elements import (
    MOVES,
    PLACES,
    STRUCTURE,
    UNARY,
    Matrix,
    coordinates,
    gathered,
    is_number,
    meeting,
    product,
    total,
)  # fmt: skip
from effgrad.functions.scipy.sparse_operations import Operations, refuse_out
from effgrad.vocabulary import Shape, Value


class TracedSparse(Operations):
    """A sparse matrix of traced elements, used like SciPy's own; `places` is SciPy's matrix of their numbers."""

    __array_priority__ = 2000.0
    holds_traced = True

    def __init__(self, places: Matrix, values: Value) -> None:
        # Values are kept in pieces, so that a matrix that is filled element by element takes linear time; the first
        # number of a piece is its start plus 1.
        self.places, self._pieces, self._starts = places, [values], [0]
        self._count = size_of(values)
        # `_own`: no other matrix shares `places`, so they may be written to. `_lent`: the program holds the vector of
        # values itself (as `data`) and may write to it.
        self._own, self._lent = False, False

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        kind: type = self.places.__class__
        return kind

    @property
    def values(self) -> Value:
        """The vector of the elements' values, in the order of the elements' numbers."""
        if len(self._pieces) > 1:
            self._pieces, self._starts = [np.concatenate([np.ravel(piece) for piece in self._pieces])], [0]
        return self._pieces[0].copy() if self._lent else self._pieces[0]

    @property
    def data(self) -> Value:
        """The values in SciPy's order of storage; a program that writes to this array writes to the matrix."""
        if self.format in ("lil", "dok"):
            raise NoRule(f"the data of a {self.format} matrix are Python's lists: write A.tocsr().data")
        if not self._lent:
            values = gathered(self.places.data, self.values)
            self._set_data(values.copy() if values is self._pieces[0] else values)
        return self._pieces[0].reshape(self.places.data.shape)

    @data.setter
    def data(self, values: Value) -> None:
        values = values if isinstance(values, Tracer) else np.asarray(values)
        if shape_of(values) != self.places.data.shape:
            raise NoRule("the data of a sparse matrix keep their shape inside a derivative: make a new matrix")
        self._set_data(values)

    def _set_data(self, values: Value) -> None:
        self.places = self.places.copy()
        self.places.data = np.arange(1, self.places.data.size + 1).reshape(self.places.data.shape)
        self._pieces, self._starts, self._count = [np.ravel(values)], [0], self.places.data.size
        self._lent = True

    def __setattr__(self, name: str, value: Value) -> None:
        if name in PLACES:  # set one by one, so they do not fit each other in between
            setattr(self._writable(), name, value)
        elif name == "data" or name in OWN:
            super().__setattr__(name, value)
        else:
            raise NoRule(f"the {name} of a sparse matrix with traced elements cannot be set: make a new matrix")

    lifted = staticmethod(lambda matrix: lifted(matrix))

    # Attributes that come from SciPy's matrix of the numbers.

    shape = property(lambda self: self.places.shape)
    ndim = property(lambda self: self.places.ndim)
    nnz = property(lambda self: self.places.nnz)
    size = property(lambda self: self.places.size)
    format = property(lambda self: self.places.format)
    dtype = property(lambda self: np.result_type(*{dtype_of(piece) for piece in self._pieces}))
    T = property(lambda self: self.transpose())
    H = property(lambda self: self.transpose().conjugate())
    real = property(lambda self: self._with(np.real(self.values)))
    imag = property(lambda self: self._with(np.imag(self.values)))

    def __getattr__(self, name: str) -> Value:
        if name in STRUCTURE:
            return getattr(self.places, name)
        if name in MOVES:
            return lambda *args, **kwargs: self._moved(getattr(self.settled().places, name)(*args, **kwargs))
        if name in UNARY:
            return lambda: self.settled()._with(UNARY[name](self.settled().values))
        if not name.startswith("__") and hasattr(self.places, name):
            raise NoRule(
                f"scipy.sparse.{type(self.places).__name__}.{name} has no derivative rule; work on the elements "
                "(A.data) or on A.toarray()"
            )
        raise AttributeError(f"{type(self.places).__name__!r} object has no attribute {name!r}")

    def settled(self) -> "TracedSparse":
        """The matrix with duplicate elements, those at the same place, added."""
        if self.format not in ("coo", "csr", "csc") or self.places.has_canonical_format:
            return self
        coo = self.places.tocoo()
        result = from_entries(*coordinates(coo), gathered(coo.data, self.values), self.shape)
        return self._like(cast(TracedSparse, result._moved(result.places.asformat(self.format))))

    def stored(self) -> "TracedSparse":
        """The settled matrix; a lil or dok matrix becomes coo, which stores the numbers in one array."""
        return cast(TracedSparse, self.tocoo()) if self.format in ("lil", "dok") else self.settled()

    def _with(self, values: Value) -> "TracedSparse":
        self._own = False
        return TracedSparse(self.places, values)

    def _writable(self) -> Matrix:
        """Return the places for writing, after a copy if another matrix may share them."""
        if not self._own:
            self.places, self._own = self.places.copy(), True
        return self.places

    def _moved(self, numbers: Value) -> Value:
        """Return the matrix or array of values for the numbers that SciPy has moved."""
        self._own = False
        return moved(numbers, self.settled().values)

    def entries(self) -> tuple[Value, Value, Value]:
        """The values of the elements, and their rows and columns."""
        coo = self.settled().places.tocoo()
        return gathered(coo.data, self.settled().values), *coordinates(coo)

    def _like(self, result: "TracedSparse") -> "TracedSparse":
        """Return a result as one of SciPy's sparse matrices if this is one, else as a sparse array."""
        if isinstance(self.places, sparse.spmatrix) and not isinstance(result.places, sparse.spmatrix):
            return TracedSparse(_as_matrix(result.places), result.values)
        return result

    def without_derivative(self) -> Matrix:
        """SciPy's matrix of the plain elements or, in a staged program, the traced matrix of the staged elements."""
        mine = self.stored()
        values = plain(mine.values)
        if isinstance(values, Tracer):
            return TracedSparse(self.places, plain(self.values))
        places = mine.places.astype(np.result_type(values))
        places.data = np.asarray(gathered(mine.places.data, values))
        return places.asformat(self.format)

    def copy(self) -> "TracedSparse":
        return TracedSparse(self.places.copy(), self.values)

    def astype(self, dtype: Value, casting: str = "unsafe", copy: bool = True) -> "TracedSparse":
        return self._with(self.values.astype(dtype, casting=casting))

    def toarray(self, order: Value = None, out: Value = None) -> Value:
        refuse_out(out)
        return self._moved(self.settled().places.toarray(order))

    def todense(self, order: Value = None, out: Value = None) -> Value:
        dense = self.toarray(order, out)
        return view_as(dense, np.matrix) if isinstance(self.places, sparse.spmatrix) else dense

    def sum_duplicates(self) -> None:
        settled = self.settled()
        if settled is not self:
            self.__init__(settled.places, settled.values)  # type: ignore[misc]

    def __getitem__(self, key: Value) -> Value:
        numbers = self.settled().places[key]
        if np.ndim(numbers) == 0 and not sparse.issparse(numbers):
            return self._number(int(numbers))
        return self._moved(numbers)

    def get(self, key: Value, default: Value = 0.0) -> Value:
        number = self.places.get(key, 0)
        return self._number(int(number)) if number else default

    def items(self) -> list[tuple[Value, Value]]:
        return [(key, self._number(int(number))) for key, number in self.places.items()]

    def _number(self, number: int) -> Value:
        """The value of the element with a number, or 0 for the number 0."""
        if not number:
            return self.dtype.type(0)
        at = bisect.bisect_left(self._starts, number) - 1
        return np.ravel(self._pieces[at])[number - self._starts[at] - 1]

    def _append(self, values: Value) -> Value:
        """Append values, and return their numbers in the shape of the values."""
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
            other = lifted(value).stored()
            numbers = other.places.copy()
            numbers.data = numbers.data + self._count * (numbers.data > 0)
            self._append(other.values)
        else:
            numbers = self._append(value if isinstance(value, Tracer) else np.asarray(value))
        self._writable()[key] = numbers

    def setdiag(self, values: Value, k: int = 0) -> None:
        self.sum_duplicates()
        self._writable().setdiag(self._append(np.asarray(values)), k)

    def resize(self, *shape: Value) -> None:
        self.sum_duplicates()
        self._writable().resize(*shape)

    # Arithmetic.

    def together(self, other: "TracedSparse") -> tuple[Value, Value, Value, Value]:
        """The elements of two matrices at each place where either has one, and the rows and columns of these places."""
        (a, i, j), (b, k, m) = self.entries(), other.entries()
        rows, columns = np.concatenate([i, k]), np.concatenate([j, m])
        mine = from_entries(rows, columns, np.concatenate([a, np.zeros_like(plain(b))]), self.shape)
        theirs = from_entries(rows, columns, np.concatenate([np.zeros_like(plain(a)), b]), self.shape)
        return mine.values, theirs.values, *coordinates(mine.places)

    def filled(self, rows: Value, columns: Value, values: Value) -> "TracedSparse":
        """The csr matrix of the given entries, in the shape of this matrix."""
        result = from_entries(rows, columns, values, self.shape)
        return self._like(result._moved(result.places.tocsr()))

    def multiply(self, other: Value) -> Value:
        """The elementwise product, which has elements where both factors have elements."""
        if is_number(other):
            return self._with(self.values * other)
        if other_shape(other) != self.shape:
            return self._multiply_broadcast(other)
        values, rows, columns = self.entries()
        if sparse.issparse(other):
            others, i, j = lifted(other).entries()
            width = self.shape[-1]
            _, mine, theirs = np.intersect1d(rows * width + columns, i * width + j, return_indices=True)
            return self.filled(rows[mine], columns[mine], values[mine] * others[theirs])
        there = other[rows, columns] if self.ndim == 2 else other[columns]
        return self._like(from_entries(rows, columns, values * there, self.shape))

    def _multiply_broadcast(self, other: Value) -> Value:
        shape = np.broadcast_shapes(self.shape, other_shape(other))
        if shape == self.shape:
            other = lifted(other).toarray() if sparse.issparse(other) else other
            return self.multiply(np.broadcast_to(other, shape))
        if sparse.issparse(other):
            return lifted(other).multiply(self.toarray())
        return self._like(from_dense(self.toarray() * other))

    def __add__(self, other: Value) -> Value:
        if not sparse.issparse(other):
            return self._plus_dense(other, 1)
        if other.shape != self.shape:
            raise ValueError("inconsistent shapes")
        (a, i, j), (b, k, m) = self.entries(), lifted(other).entries()
        return self.filled(np.concatenate([i, k]), np.concatenate([j, m]), np.concatenate([a, b]))

    def _plus_dense(self, other: Value, sign: int) -> Value:
        if is_number(other):
            if not isinstance(other, Tracer) and other == 0:
                return self.copy()
            raise NotImplementedError("adding a nonzero scalar to a sparse array is not supported")
        return self.toarray() + sign * other

    def __matmul__(self, other: Value) -> Value:
        if sparse.issparse(other):
            return self._like(_sparse_product(self, lifted(other)))
        if not isinstance(other, Tracer):
            other = list_to_array(other) if type(other) is list else np.asarray(other)
        if ndim_of(other) not in (1, 2) or shape_of(other)[0] != self.shape[-1]:
            raise ValueError(f"matmul: dimension mismatch: {self.shape} and {shape_of(other)}")
        values, rows, columns = self.entries()
        result = product(other, values, rows=rows, columns=columns, size=(1, *self.shape)[-2:])
        return result if self.ndim == 2 else result[0]

    def __rmatmul__(self, other: Value) -> Value:
        if sparse.issparse(other):
            return lifted(other) @ self
        other = other if isinstance(other, Tracer) else np.asarray(other)
        return (self.T @ other.T).T

    def __repr__(self) -> str:
        return f"Traced({self.places!r})"


# The attributes that are the traced matrix's and not those of its `places`.
OWN = frozenset(("places", "_pieces", "_starts", "_count", "_own", "_lent"))


def other_shape(other: Value) -> Shape:
    """The shape of a matrix or an array."""
    return other.shape if sparse.issparse(other) else shape_of(other)


def from_dense(array: Value) -> TracedSparse:
    """An array as a matrix in which every element is stored."""
    shape = shape_of(array)
    rows, columns = np.indices((1, *shape)[-2:]).reshape(2, -1)
    return from_entries(rows, columns, np.ravel(array), shape)


def _as_matrix(places: Matrix) -> Matrix:
    return getattr(sparse, f"{places.format}_matrix")(places)


def moved(numbers: Value, values: Value) -> Value:
    """Return the values with the given numbers: a sparse matrix for a sparse matrix of numbers, else an array."""
    if not sparse.issparse(numbers):
        if isinstance(numbers, np.matrix):
            return view_as(gathered(np.asarray(numbers), values), np.matrix)
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
    """The coo matrix of the given entries; entries at the same place are added."""
    keys = np.asarray(rows, int) * shape[-1] + np.asarray(columns, int)
    different, inverse = np.unique(keys, return_inverse=True)
    if len(different) < len(keys):
        values = total(values, inverse, len(different))
    else:
        values = values[np.argsort(keys)] if len(keys) else values
    numbers = np.arange(1, len(different) + 1)
    there = (different // shape[-1], different % shape[-1]) if len(shape) == 2 else (different,)
    places = sparse.coo_array((numbers, there), shape)
    places.has_canonical_format = True
    return TracedSparse(places, values)


def numbered(matrix: Matrix) -> Matrix:
    """Return SciPy's matrix of plain elements as a traced one: the matrix of their numbers, and their vector."""
    if matrix.format in ("lil", "dok"):
        matrix = matrix.tocsr()
    places = matrix.copy()
    places.data = np.arange(1, matrix.data.size + 1).reshape(matrix.data.shape)
    return TracedSparse(places, np.ravel(matrix.data))


def lifted(matrix: Matrix) -> TracedSparse:
    """Return a sparse matrix as a traced one; the elements of a matrix of SciPy's are constants."""
    return matrix if type(matrix) is TracedSparse else numbered(matrix)


def _sparse_product(a: TracedSparse, b: TracedSparse) -> TracedSparse:
    """The product of two sparse matrices: the products of all pairs of elements that meet, added at each place."""
    if a.shape[-1] != b.shape[0]:
        raise ValueError(f"matmul: dimension mismatch: {a.shape} and {b.shape}")
    if a.ndim == 1:
        return _sparse_product(a.reshape((1, a.shape[0])), b)[0]  # type: ignore[no-any-return]
    if b.ndim == 1:
        return a @ b.toarray()  # type: ignore[no-any-return]
    (left, rows, inner), second = a.entries(), b.settled()
    second = second._moved(second.places.tocsr())
    first, other = meeting(inner, second.places.indptr)
    values = left[first] * second.values[second.places.data[other] - 1]
    result = from_entries(rows[first], second.places.indices[other], values, (a.shape[0], b.shape[1]))
    return result._moved(result.places.tocsr())  # type: ignore[no-any-return]


def parts(matrix: Matrix) -> tuple[Value, Value, Value]:
    """The elements of a sparse matrix, safe from later writes to a matrix of SciPy's, and their rows and columns."""
    if type(matrix) is TracedSparse:
        return matrix.entries()
    elements = sparse.coo_array(matrix, copy=True)
    return elements.data, elements.row, elements.col
