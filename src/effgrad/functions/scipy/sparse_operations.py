"""The operations of sparse matrices with traced elements that work on the entries, whatever the format."""

import math
from collections.abc import Callable

from scipy import sparse

from effgrad.arrays.layout import ndim_of, size_of
from effgrad.arrays.operator_ufuncs import COMPARISONS
from effgrad.arrays.reach import np
from effgrad.arrays.subarrays import view_as
from effgrad.arrays.value import Tracer, plain
from effgrad.errors import NoRule
from effgrad.functions.scipy.sparse_elements import (
    FORWARD,
    MOVES,
    REFLECTED,
    STRUCTURE,
    UNARY,
    gathered,
    is_scalar,
    total,
)  # fmt: skip
from effgrad.functions.scipy.tables import guarded_value
from effgrad.vocabulary import DTypeLike, Function, Value


def refuse_out(out: Value) -> None:
    if out is not None:
        raise NoRule("out= has no derivative rule in methods of sparse matrices: write out[...] = the result")


def _of_lines(lines: Value, count: int, length: int, explicit: bool) -> Value:
    """Return the numbers of the elements of each line (row or column) as the rows of a matrix.

    After the elements' numbers come that of a zero, for a line that has one, and that of no element. All zeros of a
    line are one, since a tie of constants is no kink.
    """
    counts = np.bincount(lines, minlength=count)
    order = np.argsort(lines, kind="stable")
    places = np.full((count, np.max(counts, initial=0) + 1), len(lines) + 1)
    starts = np.cumsum(counts) - counts
    places[lines[order], np.arange(len(lines)) - np.repeat(starts, counts)] = order
    places[(counts == 0) | ((counts < length) & (not explicit)), -1] = len(lines)
    return places


def _comparison(ufunc: np.ufunc) -> Function:
    """Return the operator that gives the mask of a comparison."""

    def compared(self: Value, other: Value) -> Value:
        """Return SciPy's boolean matrix, or a traced one if its elements are traced."""
        mask = self._elementwise(ufunc, other)
        if isinstance(mask.vector, Tracer):
            return mask
        made = mask.places.copy()
        made.data = gathered(mask.places.data, mask.vector)
        made.eliminate_zeros()
        return made

    return compared


def _extreme(function: Function) -> Function:
    """Return the method that gives the extreme of a matrix, or of its rows or columns."""

    def extreme(self: Value, axis: Value = None, out: Value = None, *, explicit: bool = False) -> Value:
        refuse_out(out)
        self.sum_duplicates()
        values, rows, columns = self.entries()
        if axis is not None and self.ndim > 1:
            lines, across = (columns, 1) if axis % 2 == 0 else (rows, 0)
            places = _of_lines(lines, self.shape[across], self.shape[1 - across], explicit)
            none = {np.max: -np.inf, np.min: np.inf}.get(function, np.nan)
            return self._line(function(np.append(values, [0.0, none])[places], axis=1), axis)
        full = explicit or size_of(values) == math.prod(self.shape)
        return function(values if full else np.concatenate([values, np.zeros(1)]))

    return extreme


def _place_of_extreme(function: Function) -> Function:
    """Return the method that gives the place of an extreme, a constant."""

    def place(self: Value, axis: Value = None, out: Value = None, **options: bool) -> Value:
        """Return SciPy's place or, in a staged program, that of a dense array."""
        known = self.without_derivative()
        if not isinstance(getattr(known, "vector", None), Tracer):
            return getattr(known, function.__name__)(axis, out, **options)
        refuse_out(out)
        if any(options.values()):
            raise NoRule(f"write np.{function.__name__}(A.data): there is no rule with explicit=True")
        return self._of_class(function(known.toarray(), axis))

    return place


class Operations:
    """Elementwise functions, comparisons and sums of a sparse matrix, as a base of `TracedSparse`."""

    def __getattr__(self, name: str) -> Value:
        """Return an attribute that SciPy's matrix of the numbers has, or moves elements to."""
        if name in STRUCTURE:
            return getattr(self.places, name)
        if name in MOVES:
            return lambda *args, **kwargs: self.rearranged(lambda places: getattr(places, name)(*args, **kwargs))
        if name in UNARY and hasattr(self.places, name):
            return lambda: self._of_elements(UNARY[name])
        if not name.startswith("__") and hasattr(self.places, name):
            raise NoRule(
                f"scipy.sparse.{type(self.places).__name__}.{name} has no derivative rule; work on the elements "
                "(A.data) or on A.toarray()"
            )
        raise AttributeError(f"{type(self.places).__name__!r} object has no attribute {name!r}")

    # A dok matrix is also a dictionary.

    def get(self, key: Value, default: Value = 0.0) -> Value:
        number = self.places.get(key, 0)
        return self._number(int(number)) if number else default

    def items(self) -> list[tuple[Value, Value]]:
        return [(key, self._number(int(number))) for key, number in self.places.items()]

    @property
    def values(self) -> Callable[[], list[Value]]:
        if self.format != "dok":
            raise AttributeError(f"{type(self.places).__name__!r} object has no attribute 'values'")
        return lambda: [value for _, value in self.items()]

    def __contains__(self, key: Value) -> bool:
        return key in (self.places if self.format == "dok" else self.without_derivative())

    def __delitem__(self, key: Value) -> None:
        del self._writable()[key]

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Value, **options: Value) -> Value:
        name, unary = ufunc.__name__, {"absolute": "__abs__", "negative": "__neg__", "conjugate": "conjugate"}
        if method == "__call__" and not options and inputs[0] is self and name in FORWARD and is_scalar(inputs[-1]):
            return getattr(self, FORWARD[name])(inputs[1])
        if method == "__call__" and not options and inputs[-1] is self:
            if len(inputs) == 1 and (name in UNARY or name in unary):
                return getattr(self, unary.get(name, name))()
            if len(inputs) == 2 and name in REFLECTED:
                return getattr(self, REFLECTED[name])(inputs[0])
        raise NoRule(f"numpy.{name} of a sparse matrix has no derivative rule: use A.toarray(), or A.data")

    def __neg__(self) -> Value:
        made = self.tocsr() if self.format == "lil" else self
        return made._with(-made.vector)

    def conjugate(self, copy: bool = True) -> Value:
        return self._with(np.conj(self.vector)) if self.dtype.kind == "c" else self.copy() if copy else self

    conj = conjugate

    def __abs__(self) -> Value:
        return self._of_elements(np.abs)

    def _of_elements(self, function: Function) -> Value:
        """Apply a function to the elements. SciPy adds the duplicates before, in this matrix itself."""
        made = self if self.format not in ("lil", "dok") else self.tocsr()
        made.sum_duplicates()
        return made._with(function(made.vector))

    def power(self, n: Value, dtype: Value = None) -> Value:
        if not isinstance(n, Tracer) and n == 0:
            raise NotImplementedError("zero power is not supported: it is dense")
        return self._of_elements(lambda values: values**n)

    def _elementwise(self, function: Function, other: Value) -> Value:
        """Apply a function to the elements of two matrices, or of one and a number; it must be 0 at zeros."""
        dense = not sparse.issparse(other) and ndim_of(other) > 0
        if dense or function(0.0, 0.0 if sparse.issparse(other) else other):
            raise NoRule(f"the {function.__name__} of a sparse matrix and this is dense: write A.toarray()")
        if sparse.issparse(other):
            values, others, rows, columns = self.together(self.lifted(other))
            pattern = self.ones().maximum(self.lifted(other).ones())
        else:
            (values, rows, columns), others = self.entries(), other
            pattern = self.ones().maximum(0)
        return self.filled(rows, columns, function(values, others), pattern)

    __hash__ = object.__hash__
    __lt__, __le__, __gt__, __ge__, __eq__, __ne__ = map(_comparison, COMPARISONS.values())
    max, min, nanmax, nanmin = map(_extreme, (np.max, np.min, np.nanmax, np.nanmin))
    argmax, argmin = map(_place_of_extreme, (np.argmax, np.argmin))

    def maximum(self, other: Value) -> Value:
        return self._elementwise(np.maximum, other)

    def minimum(self, other: Value) -> Value:
        return self._elementwise(np.minimum, other)

    def _line(self, values: Value, axis: int) -> Value:
        """Return a row or column of extremes as SciPy does: a coo array or matrix of those that are not zero."""
        known = plain(values)
        kept = np.arange(len(values)) if isinstance(known, Tracer) else np.flatnonzero(known)
        numbers, across = np.arange(1, len(kept) + 1), np.zeros(len(kept), int)
        if not isinstance(self.places, sparse.spmatrix):
            return self.lifted_places(sparse.coo_array((numbers, (kept,)), (len(values),)), values[kept])
        row = axis % 2 == 0
        places = (across, kept) if row else (kept, across)
        shape = (1, len(values)) if row else (len(values), 1)
        return self.lifted_places(sparse.coo_matrix((numbers, places), shape), values[kept])

    def nonzero_entries(self) -> tuple[Value, Value, Value]:
        """The entries that are not zero, and their rows and columns; a staged program guards which they are."""
        values, rows, columns = self.stored_entries()
        kept = np.flatnonzero(guarded_value(values != 0))
        return values[kept], rows[kept], columns[kept]

    def nonzero(self) -> tuple[Value, ...]:
        return self.nonzero_entries()[3 - self.ndim :]

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
