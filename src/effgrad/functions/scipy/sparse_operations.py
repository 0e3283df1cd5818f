"""The operations of sparse matrices with traced elements that work on the entries, whatever the format."""

import math

from scipy import sparse

from effgrad.arrays.layout import ndim_of, size_of
from effgrad.arrays.reach import np
from effgrad.arrays.subarrays import view_as
from effgrad.arrays.value import Tracer
from effgrad.errors import NoRule
from effgrad.functions.scipy.sparse_elements import FORWARD, REFLECTED, UNARY, gathered, is_number, total
from effgrad.vocabulary import DTypeLike, Function, Shape, Value


def refuse_out(out: Value) -> None:
    if out is not None:
        raise NoRule("out= has no derivative rule in methods of sparse matrices: write out[...] = the result")


class Operations:
    """Elementwise functions, comparisons and sums of a sparse matrix, as a base of `TracedSparse`."""

    shape: Shape
    ndim: int
    # `TracedSparse` defines these: `entries` are its entries, `together` the elements of two matrices at each place of
    # either, `filled` the matrix of some entries, and `lifted` another matrix as a traced one.
    entries: Value
    together: Value
    filled: Value
    lifted: Value
    settled: Value
    values: Value
    toarray: Value
    multiply: Value
    astype: Value
    _with: Value
    _plus_dense: Value
    __matmul__: Value
    __rmatmul__: Value
    __add__: Value
    copy: Value
    diagonal: Value
    places: Value
    H: Value

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Value, **options: Value) -> Value:
        name, unary = ufunc.__name__, {"absolute": "__abs__", "negative": "__neg__"}
        if method == "__call__" and not options and inputs[0] is self and name in FORWARD and is_number(inputs[-1]):
            return getattr(self, FORWARD[name])(inputs[1])
        if method == "__call__" and not options and inputs[-1] is self:
            if len(inputs) == 1 and (name in UNARY or name in unary):
                return getattr(self, unary.get(name, name))()
            if len(inputs) == 2 and name in REFLECTED:
                return getattr(self, REFLECTED[name])(inputs[0])
        raise NoRule(f"numpy.{name} of a sparse matrix has no derivative rule: use A.toarray(), or A.data")

    def __neg__(self) -> Value:
        return self._with(-self.values)

    def __abs__(self) -> Value:
        settled = self.settled()
        return settled._with(np.abs(settled.values))

    def __pow__(self, n: Value) -> Value:
        if isinstance(self.places, sparse.spmatrix):
            if not isinstance(n, int | np.integer) or n < 0:
                raise ValueError("the exponent of a sparse matrix is an integer from 0 on")
            return self @ self ** (n - 1) if n > 1 else self.copy() if n else self.lifted(sparse.eye(*self.shape))
        return self.power(n)

    def power(self, n: Value, dtype: Value = None) -> Value:
        if not isinstance(n, Tracer) and n == 0:
            raise NotImplementedError("zero power is not supported: it is dense")
        settled = self.settled()
        return settled._with(settled.values**n)

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

    def __radd__(self, other: Value) -> Value:
        return self.__add__(other)

    def __sub__(self, other: Value) -> Value:
        return self + (-self.lifted(other)) if sparse.issparse(other) else self._plus_dense(other, -1)

    def __rsub__(self, other: Value) -> Value:
        return (-self).__add__(other)

    def dot(self, other: Value) -> Value:
        return self.multiply(other) if is_number(other) else self @ other

    def _elementwise(self, function: Function, other: Value) -> Value:
        """Apply a function to the elements of two matrices, or of one and a number; it must be 0 at zeros."""
        dense = not sparse.issparse(other) and ndim_of(other) > 0
        if dense or function(0.0, 0.0 if sparse.issparse(other) else other):
            raise NoRule(f"the {function.__name__} of a sparse matrix and this is dense: write A.toarray()")
        if sparse.issparse(other):
            values, others, rows, columns = self.together(self.lifted(other))
        else:
            (values, rows, columns), others = self.entries(), other
        return self.filled(rows, columns, function(values, others))

    def _compared(self, function: Function, other: Value) -> Value:
        """Return the mask of a comparison: SciPy's boolean matrix, or a traced one if its elements are traced."""
        mask = self._elementwise(function, other)
        if isinstance(mask.values, Tracer):
            return mask
        made = mask.places.astype(bool)
        made.data = gathered(mask.places.data, mask.values)
        made.eliminate_zeros()
        return made

    __hash__ = object.__hash__

    def __eq__(self, other: Value) -> Value:
        return self._compared(np.equal, other)

    def __ne__(self, other: Value) -> Value:
        return self._compared(np.not_equal, other)

    def __lt__(self, other: Value) -> Value:
        return self._compared(np.less, other)

    def __gt__(self, other: Value) -> Value:
        return self._compared(np.greater, other)

    def __le__(self, other: Value) -> Value:
        return self._compared(np.less_equal, other)

    def __ge__(self, other: Value) -> Value:
        return self._compared(np.greater_equal, other)

    def maximum(self, other: Value) -> Value:
        return self._elementwise(np.maximum, other)

    def minimum(self, other: Value) -> Value:
        return self._elementwise(np.minimum, other)

    def _extreme(self, function: Function, axis: Value, out: Value, explicit: bool) -> Value:
        refuse_out(out)
        if axis is not None:
            raise NoRule(f"write np.{function.__name__}(A.toarray(), axis={axis}): along an axis there is no rule")
        values = self.entries()[0]
        full = explicit or size_of(values) == math.prod(self.shape)
        return function(values if full else np.concatenate([values, np.zeros(1)]))

    def max(self, axis: Value = None, out: Value = None, *, explicit: bool = False) -> Value:
        return self._extreme(np.max, axis, out, explicit)

    def min(self, axis: Value = None, out: Value = None, *, explicit: bool = False) -> Value:
        return self._extreme(np.min, axis, out, explicit)

    def count_nonzero(self, axis: Value = None) -> Value:
        return np.count_nonzero(self.entries()[0]) if axis is None else np.count_nonzero(self.toarray(), axis)

    def sum(self, axis: Value = None, dtype: DTypeLike = None, out: Value = None) -> Value:
        refuse_out(out)
        return self._of_class((self if dtype is None else self.astype(dtype))._sums(axis))

    def _of_class(self, array: Value) -> Value:
        """Return sums along an axis as SciPy does: as `np.matrix` for a sparse matrix, else as an array."""
        return view_as(array, np.matrix) if isinstance(self.places, sparse.spmatrix) and ndim_of(array) else array

    def _sums(self, axis: Value) -> Value:
        axes = (axis,) if isinstance(axis, int | np.integer) else range(self.ndim) if axis is None else axis
        values, rows, columns = self.entries()
        axes = [a % self.ndim for a in axes]
        if len(axes) == self.ndim:
            return np.sum(values)
        result = total(values, rows if axes[0] else columns, self.shape[1 - axes[0]])
        return result[:, None] if axes[0] and isinstance(self.places, sparse.spmatrix) else result

    def mean(self, axis: Value = None, dtype: DTypeLike = None, out: Value = None) -> Value:
        refuse_out(out)
        axes = (axis,) if isinstance(axis, int | np.integer) else range(self.ndim) if axis is None else axis
        summed = self if dtype is None else self.astype(dtype)
        return self._of_class(summed._sums(axis) / math.prod(self.shape[a] for a in axes))

    def trace(self, offset: int = 0) -> Value:
        return np.sum(self.diagonal(offset))

    def getH(self) -> Value:
        return self.H
