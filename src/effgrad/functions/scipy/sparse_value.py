"""Sparse matrices with traced elements, in every format of `scipy.sparse`.

A traced matrix is SciPy's own matrix of the elements' *numbers*, counted from 1, and the vector of their values. An
operation that only moves elements (a change of format, a slice, a transpose, a diagonal, blocks) is done by SciPy to
the numbers, and the result says which value goes where. Sums and products have rules on the vector of values. The
structure of a matrix is a constant: an element that happens to be 0 stays stored.
"""

import weakref
from typing import cast

from scipy import sparse

from effgrad.arrays.layout import dtype_of, ndim_of, shape_of, size_of
from effgrad.arrays.reach import np
from effgrad.arrays.subarrays import view_as
from effgrad.arrays.value import Tracer, plain
from effgrad.errors import NoRule
from effgrad.functions.scipy.sparse_arithmetic import Arithmetic
from effgrad.functions.scipy.sparse_elements import PLACES, Elements, Matrix, coordinates, gathered, is_counted, total
from effgrad.functions.scipy.sparse_operations import refuse_out
from effgrad.vocabulary import Function, Shape, Value


class TracedSparse(Arithmetic):
    """A sparse matrix of traced elements, used like SciPy's own; `places` is SciPy's matrix of their numbers."""

    __array_priority__ = 2000.0
    holds_traced = True

    def __init__(self, places: Matrix, values: Value) -> None:
        # `_own`: no other matrix shares `places`, so they may be written to.
        self.places, self._own = places, False
        self._take(values if type(values) is Elements else Elements(values))

    def _take(self, elements: Elements) -> None:
        self._elements = elements
        elements.owners.append(weakref.ref(self))

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        kind: type = self.places.__class__
        return kind

    @property
    def vector(self) -> Value:
        """The vector of the elements' values, in the order of the elements' numbers."""
        return self._elements.vector

    @property
    def data(self) -> Value:
        """The values in SciPy's order of storage; a program that writes to this array writes to the matrix."""
        if self.format in ("lil", "dok"):
            raise NoRule(f"the data of a {self.format} matrix are Python's lists: write A.tocsr().data")
        self._store()
        return self._elements.lend().reshape(self.places.data.shape)

    @data.setter
    def data(self, values: Value) -> None:
        values = values if isinstance(values, Tracer) else np.asarray(values)
        if shape_of(values) != self.places.data.shape:
            raise NoRule("the data of a sparse matrix keep their shape inside a derivative: make a new matrix")
        self._set_elements(Elements(np.ravel(values), lent=True))

    def _store(self) -> None:
        """Number the elements in SciPy's order of storage, as they are where matrices share them."""
        numbers = np.ravel(self.places.data)
        if len(self._elements.pieces) > 1 or self._elements.count != numbers.size or not is_counted(numbers):
            self._set_elements(Elements(gathered(numbers, self.vector)))

    def _set_elements(self, elements: Elements) -> None:
        """Take elements that are in SciPy's order of storage."""
        self.places = self.places.copy()
        self._take(elements)
        self.places.data = np.arange(1, self.places.data.size + 1).reshape(self.places.data.shape)

    def __setattr__(self, name: str, value: Value) -> None:
        if name in PLACES:  # set one by one, so they do not fit each other in between
            setattr(self._writable(), name, value)
        elif name == "data" or name in OWN:
            super().__setattr__(name, value)
        else:
            raise NoRule(f"the {name} of a sparse matrix with traced elements cannot be set: make a new matrix")

    # The functions below, for the base classes.
    lifted = staticmethod(lambda matrix: lifted(matrix))
    lifted_dense = staticmethod(lambda array: from_dense(array))
    lifted_places = staticmethod(lambda places, values: TracedSparse(places, values))
    from_entries = staticmethod(lambda *entries: from_entries(*entries))
    arranged = staticmethod(lambda result, pattern: arranged(result, pattern))

    # Attributes that come from SciPy's matrix of the numbers.

    shape = property(lambda self: self.places.shape)
    ndim = property(lambda self: self.places.ndim)
    nnz = property(lambda self: self.places.nnz)
    size = property(lambda self: self.places.size)
    format = property(lambda self: self.places.format)
    dtype = property(lambda self: np.result_type(*{dtype_of(piece) for piece in self._elements.pieces}))
    T = property(lambda self: self.transpose())
    mT = property(lambda self: self.rearranged(lambda places: places.mT))  # from SciPy 1.18 on
    H = property(lambda self: self.transpose().conjugate())
    real = property(lambda self: self._part(np.real))
    imag = property(lambda self: self._part(np.imag))

    def _has_duplicates(self) -> bool:
        if self.format not in ("coo", "csr", "csc") or self.places.has_canonical_format:
            return False
        keys = keys_of(self.places.tocoo())
        return bool(len(np.unique(keys)) < len(keys))

    def deduplicated(self) -> "TracedSparse":
        """The matrix with duplicate elements, those at the same place, added."""
        return self.canonical() if self._has_duplicates() else self

    def canonical(self) -> "TracedSparse":
        """The matrix with duplicate elements added and the others in the order of their places, as SciPy sorts them."""
        if self.format not in ("coo", "csr", "csc") or self.places.has_canonical_format:
            return self
        coo = self.places.tocoo()
        result = from_entries(*coordinates(coo), gathered(coo.data, self.vector), self.shape)
        return self.like(cast(TracedSparse, result.rearranged(lambda places: places.asformat(self.format))))

    def stored(self) -> "TracedSparse":
        """The matrix without duplicates; a lil or dok matrix becomes coo, which stores the numbers in one array."""
        return cast(TracedSparse, self.tocoo()) if self.format in ("lil", "dok") else self.deduplicated()

    def ones(self) -> Matrix:
        """SciPy's matrix with a 1 in the place of each element."""
        ones = self.places.tocsr() if self.format in ("lil", "dok") else self.places.copy()
        ones.data = np.minimum(ones.data, 1).astype(float)
        return ones.asformat(self.format)

    def _with(self, values: Value) -> "TracedSparse":
        self._own = False
        return TracedSparse(self.places, values)

    def _part(self, part: Function) -> "TracedSparse":
        made = self.tocsr() if self.format in ("lil", "dok") else self
        if part is np.real and made.dtype.kind != "c":
            return made.__copy__()
        return made._with(part(made.vector))

    def replace(self, other: Value) -> "TracedSparse":
        """Take the elements of another matrix or array of this shape."""
        other = other if sparse.issparse(other) else from_dense(np.asarray(other))
        other = self.like(other).asformat(self.format)
        self.places = other.places
        self._take(other._elements)
        return self

    def _writable(self) -> Matrix:
        """Return the places for writing, after a copy if another matrix may share them."""
        if self._elements.is_shared(self):
            raise NoRule("a sparse matrix that shares its data with another (A.T) was written to: write to A.copy()")
        if not self._own:
            self.places, self._own = self.places.copy(), True
        return self.places

    def rearranged(self, move: Function) -> Value:
        """Return the matrix or array of values where SciPy moves the numbers; duplicates that it adds are added."""
        self._own = False
        if self._has_duplicates() and adds(move(self.ones())):
            return self.canonical().rearranged(move)
        if self.format in ("coo", "csr", "csc"):
            self._store()
        numbers = move(self.places)
        if numbers is self.places:
            return self
        if self._shares(numbers):
            numbers.data = numbers.data.copy()
            return TracedSparse(numbers, self._elements)
        return moved(numbers, self.vector)

    def _shares(self, numbers: Value) -> bool:
        """Whether a matrix of numbers has the memory of this matrix's numbers, and as many of them."""
        if not sparse.issparse(numbers) or "dok" in (numbers.format, self.format):
            return False
        mine, theirs = self.places.data, numbers.data
        return theirs.size == mine.size and np.shares_memory(theirs, mine) and is_counted(np.ravel(mine))

    def entries(self) -> tuple[Value, Value, Value]:
        """The values of the elements, and their rows and columns."""
        return self.deduplicated().stored_entries()

    def stored_entries(self) -> tuple[Value, Value, Value]:
        """The values of the elements as they are stored, duplicates and all, and their rows and columns."""
        coo = self.places.tocoo()
        return gathered(coo.data, self.vector), *coordinates(coo)

    def like(self, result: "TracedSparse") -> "TracedSparse":
        """Return a result as one of SciPy's sparse matrices if this is one, else as a sparse array."""
        if isinstance(self.places, sparse.spmatrix) and not isinstance(result.places, sparse.spmatrix):
            return TracedSparse(_as_matrix(result.places), result.vector)
        return result

    def without_derivative(self) -> Matrix:
        """SciPy's matrix of the plain elements or, in a staged program, the traced matrix of the staged elements."""
        mine = self.stored()
        values = plain(mine.vector)
        if isinstance(values, Tracer):
            return TracedSparse(self.places, plain(self.vector))
        places = mine.places.copy()
        places.data = np.asarray(gathered(mine.places.data, values))
        return places.asformat(self.format)

    def copy(self) -> "TracedSparse":
        return TracedSparse(self.places.copy(), self.vector.copy())

    def __copy__(self) -> "TracedSparse":
        return TracedSparse(self.places, self._elements)

    def __deepcopy__(self, memo: dict[int, Value]) -> "TracedSparse":
        return self.copy()

    def astype(self, dtype: Value, casting: str = "unsafe", copy: bool = True) -> "TracedSparse":
        return self._with(self.vector.astype(dtype, casting=casting))

    def toarray(self, order: Value = None, out: Value = None) -> Value:
        refuse_out(out)
        return self.rearranged(lambda places: places.toarray(order))

    def todense(self, order: Value = None, out: Value = None) -> Value:
        dense = self.toarray(order, out)
        return view_as(dense, np.matrix) if isinstance(self.places, sparse.spmatrix) else dense

    def sum_duplicates(self) -> None:
        summed = self.canonical()
        if summed is not self:
            self.__init__(summed.places, summed.vector)  # type: ignore[misc]

    def _add_duplicates(self) -> None:
        if self._has_duplicates():
            self.sum_duplicates()

    def __getitem__(self, key: Value) -> Value:
        numbers = self.deduplicated().places[key] if self._is_one(key) else None
        if numbers is not None and np.ndim(numbers) == 0 and not sparse.issparse(numbers):
            return self.deduplicated()._number(int(numbers))
        return self.rearranged(lambda places: places[key])

    def _is_one(self, key: Value) -> bool:
        return all(isinstance(part, int | np.integer) for part in (key if type(key) is tuple else (key,)))

    def _number(self, number: int) -> Value:
        """The value of the element with a number, or 0 for the number 0."""
        return self._elements.number(number) if number else self.dtype.type(0)

    def _append(self, values: Value) -> Value:
        """Append a copy of values, and return their numbers in the shape of the values."""
        return self._elements.append(values.copy() if ndim_of(values) else values)

    def __setitem__(self, key: Value, value: Value) -> None:
        self._add_duplicates()
        if sparse.issparse(value):
            other = lifted(value).stored()
            numbers = other.places.copy()
            numbers.data = numbers.data + self._elements.count * (numbers.data > 0)
            self._append(other.vector)
        else:
            numbers = self._append(value if isinstance(value, Tracer) else np.asarray(value))
        self._writable()[key] = numbers

    def setdiag(self, values: Value, k: int = 0) -> None:
        self._add_duplicates()
        self._writable().setdiag(self._append(np.asarray(values)), k)

    def resize(self, *shape: Value) -> None:
        self._add_duplicates()
        self._writable().resize(*shape)

    def __repr__(self) -> str:
        return f"Traced({self.places!r})"


# The attributes that are the traced matrix's and not those of its `places`.
OWN = frozenset(("places", "_elements", "_own"))


def keys_of(coo: Matrix) -> Value:
    """The places of the elements of a coo matrix, as one number each."""
    rows, columns = coordinates(coo)
    return rows.astype(np.int64) * coo.shape[-1] + columns


def adds(moved: Value) -> bool:
    """Whether SciPy has added elements, from the ones that it moved."""
    ones = moved.tocoo().data if sparse.issparse(moved) else np.asarray(moved)
    return bool(np.any(ones > 1))


def arranged(result: TracedSparse, pattern: Matrix) -> TracedSparse:
    """Return a matrix of entries in the class and the order of storage of SciPy's own result, given as ones."""
    if pattern.format in ("coo", "csr", "csc", "bsr"):
        have, wanted = (keys_of(matrix.tocoo()) for matrix in (result.places, pattern))
        there = np.isin(wanted, have)
        if np.array_equal(have, np.unique(wanted[there])):
            pattern.data = np.where(there, np.searchsorted(have, wanted) + 1, 0).reshape(pattern.data.shape)
            return TracedSparse(pattern, result.vector)
    options = {"blocksize": pattern.blocksize} if pattern.format == "bsr" else {}
    return cast(TracedSparse, result.rearranged(lambda places: type(pattern)(places, **options)))


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


def parts(matrix: Matrix) -> tuple[Value, Value, Value]:
    """The elements of a sparse matrix, safe from later writes to a matrix of SciPy's, and their rows and columns."""
    if type(matrix) is TracedSparse:
        return matrix.entries()
    elements = sparse.coo_array(matrix, copy=True)
    return elements.data, elements.row, elements.col
