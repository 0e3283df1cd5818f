"""The operators of sparse matrices with traced elements.

SciPy chooses the class, the format and the order of storage of a result. So an operator first asks SciPy for its result
for matrices of ones (the *pattern*), and puts the values of its own result into the pattern's places.
"""

import math

from scipy import sparse

from effgrad.arrays.layout import ndim_of, shape_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import Tracer, list_to_array, plain
from effgrad.errors import NoRule
from effgrad.functions.scipy.sparse_elements import Matrix, coordinates, is_scalar, meeting, product
from effgrad.functions.scipy.sparse_operations import Operations
from effgrad.vocabulary import Value


class Arithmetic(Operations):
    """Sums, products and quotients of a sparse matrix, and its operators in place, as a base of `TracedSparse`."""

    def together(self, other: Value) -> tuple[Value, Value, Value, Value]:
        """The elements of two matrices at each place where either has one, and the rows and columns of these places."""
        (a, i, j), (b, k, m) = self.entries(), other.entries()
        rows, columns = np.concatenate([i, k]), np.concatenate([j, m])
        mine = self.from_entries(rows, columns, np.concatenate([a, np.zeros_like(plain(b))]), self.shape)
        theirs = self.from_entries(rows, columns, np.concatenate([np.zeros_like(plain(a)), b]), self.shape)
        return mine.vector, theirs.vector, *coordinates(mine.places)

    def filled(self, rows: Value, columns: Value, values: Value, pattern: Matrix) -> Value:
        """The matrix of the given entries, in the form of SciPy's result for ones."""
        return self.arranged(self.from_entries(rows, columns, values, self.shape), pattern)

    def __mul__(self, other: Value) -> Value:
        if is_scalar(other) or not isinstance(self.places, sparse.spmatrix):
            return self.multiply(other)
        return self @ other

    def __rmul__(self, other: Value) -> Value:
        if is_scalar(other) or not isinstance(self.places, sparse.spmatrix):
            return self.multiply(other)
        return self.__rmatmul__(other)

    def __truediv__(self, other: Value) -> Value:
        if sparse.issparse(other):
            raise NoRule("a sparse matrix divided by another is dense: write A.toarray() / B.toarray()")
        return self._with(self.vector / other) if is_scalar(other) else self.multiply(1 / other)

    def __radd__(self, other: Value) -> Value:
        return self.__add__(other)

    def __sub__(self, other: Value) -> Value:
        if not sparse.issparse(other):
            return self._plus_dense(other, -1)
        other = self.lifted(other)
        return self._plus_sparse(other._with(-other.vector), -1)

    def __rsub__(self, other: Value) -> Value:
        return (-self).__add__(other)

    def __pow__(self, n: Value) -> Value:
        if isinstance(self.places, sparse.spmatrix):
            if not isinstance(n, int | np.integer) or n < 0:
                raise ValueError("the exponent of a sparse matrix is an integer from 0 on")
            return self @ self ** (n - 1) if n > 1 else self.copy() if n else self.lifted(sparse.eye(*self.shape))
        return self.power(n)

    def dot(self, other: Value) -> Value:
        return self.multiply(other) if is_scalar(other) else self @ other

    def multiply(self, other: Value) -> Value:
        """The elementwise product, which has elements where both factors have elements."""
        if is_scalar(other):
            return self._with(self.vector * other)
        if sparse.issparse(other):
            return self._multiply_sparse(self.lifted(other))
        other = other if isinstance(other, Tracer) else np.asarray(other)
        shape = np.broadcast_shapes(self.shape, shape_of(other))
        if shape != self.shape:
            return self.like(self.lifted_dense(self.toarray() * other))
        pattern, other = self.ones().multiply(np.ones(shape_of(other))), np.broadcast_to(other, shape)
        kept = pattern.nnz == self.nnz and pattern.format == "coo"  # with duplicates
        values, rows, columns = self.stored_entries() if kept else self.entries()
        values = values * (other[rows, columns] if self.ndim == 2 else other[columns])
        if not kept or not np.array_equal((rows, columns), coordinates(pattern)):
            return self.filled(rows, columns, values, pattern)
        pattern.data = np.arange(1, len(rows) + 1)
        return self.lifted_places(pattern, values)

    def _multiply_sparse(self, other: Value) -> Value:
        shape = np.broadcast_shapes(self.shape, other.shape)
        if shape != self.shape:
            return other._multiply_sparse(self) if shape == other.shape else self.multiply(other.toarray())
        if other.shape != shape:
            return self.multiply(other.toarray())
        (values, rows, columns), (others, i, j) = self.entries(), other.entries()
        width = self.shape[-1]
        _, mine, theirs = np.intersect1d(rows * width + columns, i * width + j, return_indices=True)
        pattern = self.ones().multiply(other.ones())
        return self.filled(rows[mine], columns[mine], values[mine] * others[theirs], pattern)

    def __add__(self, other: Value) -> Value:
        return self._plus_sparse(self.lifted(other), 1) if sparse.issparse(other) else self._plus_dense(other, 1)

    def _plus_sparse(self, other: Value, sign: int) -> Value:
        if other.shape != self.shape:
            raise ValueError("inconsistent shapes")
        (a, i, j), (b, k, m) = self.entries(), other.entries()
        pattern = self.ones() + other.ones() if sign > 0 else self.ones() - 0.7 * other.ones()  # no sum is 0
        return self.filled(np.concatenate([i, k]), np.concatenate([j, m]), np.concatenate([a, b]), pattern)

    def _plus_dense(self, other: Value, sign: int) -> Value:
        if is_scalar(other):
            if not isinstance(other, Tracer) and other == 0:
                return self.copy()
            raise NotImplementedError("adding a nonzero scalar to a sparse array is not supported")
        return self._of_class(self.toarray() + sign * other)

    def __matmul__(self, other: Value) -> Value:
        if sparse.issparse(other):
            return self._times_sparse(self.lifted(other))
        if not isinstance(other, Tracer):
            other = list_to_array(other) if type(other) is list else np.asarray(other)
        if ndim_of(other) not in (1, 2) or shape_of(other)[0] != self.shape[-1]:
            raise ValueError(f"matmul: dimension mismatch: {self.shape} and {shape_of(other)}")
        values, rows, columns = self.entries()
        result = product(other, values, rows=rows, columns=columns, size=(1, *self.shape)[-2:])
        return result if self.ndim == 2 else result[0]

    def _times_sparse(self, other: Value) -> Value:
        """The product with a sparse matrix: the products of all pairs of elements that meet, added at each place."""
        if self.shape[-1] != other.shape[0]:
            raise ValueError(f"matmul: dimension mismatch: {self.shape} and {other.shape}")
        if self.ndim == 1:
            return self.reshape((1, self.shape[0]))._times_sparse(other)[0]
        if other.ndim == 1:
            return self @ other.toarray()
        (left, rows, inner), second = self.entries(), other.deduplicated().tocsr()
        first, met = meeting(inner, second.places.indptr)
        values = left[first] * second.vector[second.places.data[met] - 1]
        shape = self.shape[0], other.shape[1]
        result = self.from_entries(rows[first], second.places.indices[met], values, shape)
        return self.arranged(result, self.ones() @ other.ones())

    def tensordot(self, other: Value, axes: Value = 2) -> Value:
        """The product of two matrices, whose rows and columns are several axes each."""
        if self.format != "coo":
            raise AttributeError(f"{type(self.places).__name__!r} object has no attribute 'tensordot'")
        other = self.lifted(other).tocoo() if sparse.issparse(other) else np.asarray(other)
        count = len(shape_of(other))
        pairs = (range(self.ndim - axes, self.ndim), range(axes)) if np.ndim(axes) == 0 else axes
        mine, theirs = ([a % n for a in np.atleast_1d(p)] for p, n in zip(pairs, (self.ndim, count), strict=True))
        kept, others = ([a for a in range(n) if a not in p] for p, n in ((mine, self.ndim), (theirs, count)))
        sizes = [self.shape[a] for a in mine]
        if sizes != [shape_of(other)[a] for a in theirs]:
            raise ValueError(f"tensordot: the axes {axes} of shapes {self.shape} and {shape_of(other)} do not match")
        left = self.transpose((*kept, *mine)).reshape((-1, math.prod(sizes)))
        result = left @ other.transpose((*theirs, *others)).reshape((math.prod(sizes), -1))
        shape = [self.shape[a] for a in kept] + [shape_of(other)[a] for a in others]
        return result.reshape(shape) if shape else result[0, 0]

    def __rmatmul__(self, other: Value) -> Value:
        if sparse.issparse(other):
            return self.lifted(other) @ self
        other = other if isinstance(other, Tracer) else np.asarray(other)
        return (self.T @ other.T).T

    # In place, as SciPy works: on the elements for products with numbers, and on whole lil matrices for sums.

    def __imul__(self, other: Value) -> Value:
        if not is_scalar(other):
            return NotImplemented
        self._elements.scale(other)
        return self

    def __itruediv__(self, other: Value) -> Value:
        if not is_scalar(other):
            return NotImplemented
        if self.format in ("lil", "dok"):
            self.replace(self / other)
        else:
            self._elements.scale(1.0 / other)
        return self

    def __iadd__(self, other: Value) -> Value:
        return self.replace(self + other) if self.format == "lil" else NotImplemented

    def __isub__(self, other: Value) -> Value:
        return self.replace(self - other) if self.format == "lil" else NotImplemented
