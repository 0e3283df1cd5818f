"""The first and second derivatives of one operation as blocks: numbers, sparse matrices, or dense traced matrices.

The Jacobian and the curvature of an elementwise operation are diagonal. The Jacobian of an operation that moves
elements is found by moving the elements' numbers. The derivatives of other primitives are taken from their rules, one
column (or row) at a time.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from effgrad.arrays.layout import ndim_of
from effgrad.arrays.value import Tracer, operations
from effgrad.primitives import cotangents
from effgrad.primitives.index_map import broadcast_numbers, element_numbers
from effgrad.vocabulary import Cotangent, Function, Shape, Tangent, Value


class LocalBlocks:
    """The derivatives of one operation, as blocks for each of its traced arguments.

    They are zero where the cotangent of the result is structurally zero, even if a partial is infinite there.
    """

    def __init__(self, forward: Value, operation: Value, cotangent: Cotangent) -> None:
        self.forward = forward
        self.primitive, self.params, self.primals, self.names, self.result = operation
        self.cotangent = cotangent
        # For a scalar elementwise operation every block is a plain number, so no indices are needed.
        self.number = self.primitive.kind == "elementwise" and ndim_of(self.result) == 0
        self.wanted = [index for index, source in enumerate(self.names) if source is not None]
        self._jacobians: list[tuple[int, Any]] | None = None

    def jacobians(self) -> list[tuple[int, Value]]:
        """Return the name and the Jacobian for each traced argument that the result depends on."""
        if self._jacobians is None:
            blocks = [(self.names[index], self._jacobian(index)) for index in self.wanted]
            self._jacobians = [(source, block) for source, block in blocks if block is not None]
        return self._jacobians

    def _jacobian(self, index: int) -> Value:
        if self.primitive.kind == "elementwise":
            return self._diagonal(index, self._slope(index))
        shape, size = np.shape(self.primals[index]), np.size(self.primals[index])
        if self.primitive.moves and "dtype" not in self.params:
            # The function is applied to the numbers of the elements, which shows which element goes where.
            numbers = element_numbers(map(np.shape, self.primals), [i == index for i in range(len(self.primals))])
            places = np.ravel(self.primitive.function(*numbers, **self.params))
            if size == np.size(self.result) == 1:
                return float(places[0])
            rows = np.flatnonzero(places)
            entries = np.ones(len(rows)), (rows, places[rows] - 1)
            return scipy.sparse.csr_array(scipy.sparse.coo_array(entries, shape=(len(places), size)))
        count = np.size(self.result)
        if count < size:
            pulled = [
                self._pull(index, basis, self.primals, self.result) for basis in basis_vectors(np.shape(self.result))
            ]
            return _matrix([_flat(row, size) for row in pulled], (size, count), transposed=True)
        pushed = [self._push(index, basis, self.primals, self.result) for basis in basis_vectors(shape)]
        return _matrix([_flat(column, count) for column in pushed], (count, size))

    def _slope(self, index: int) -> Value:
        """Return the partial of an elementwise operation; it is NaN at a kink, where a partial is only a convention."""
        values = self._push(index, _ones(self.primals[index]), self.primals, self.result)
        partial = self.primitive.partials[index]
        if self.primitive.series is None or values is None or not callable(partial):
            return values
        bent = self._moved(index, _ones(self.primals[index]), lambda y, xs: partial(y, *xs))
        return values if bent is None else values + 0.0 * bent

    def _pull(self, index: int, cotangent: Cotangent, primals: Sequence[Value], result: Value) -> Value:
        return self.primitive.pull_all([index], cotangent, result, primals, self.params)[0]

    def _push(self, index: int, tangent: Tangent, primals: Sequence[Value], result: Value) -> Value:
        tangents = [tangent if i == index else None for i in range(len(primals))]
        return self.primitive.push_all(tangents, result, primals, self.params)

    def _diagonal(self, index: int, values: Value) -> Value:
        """Return the Jacobian of an elementwise operation with broadcasting, which has one value in each row."""
        if values is None:
            return None
        if type(self.cotangent) is cotangents.Masked:
            values = np.where(self.cotangent.mask, values, 0.0)
        if self.number:
            return values
        size, places = np.size(self.primals[index]), self._places(index)
        return _scattered(values, np.arange(len(places)), places, (len(places), size), np.shape(self.result))

    def _places(self, index: int) -> Value:
        return broadcast_numbers(np.shape(self.primals[index]), np.shape(self.result))

    def curvature(self) -> Iterator[tuple[int, int, Value]]:
        """Yield triples of two names and the second derivatives of the result in these names, times the cotangent.

        The block for a pair of one name with itself is halved, since it will be added together with its transpose.
        """
        linear = self.primitive.kind == "linear"
        if self.primitive.moves or (linear and (self.primitive.pull_jointly is not None or len(self.wanted) == 1)):
            return
        for i, first in enumerate(self.wanted):
            for second in self.wanted[: i if linear else i + 1]:
                block = self._second(first, second)
                if block is not None:
                    a, b = self.names[first], self.names[second]
                    yield a, b, halved(block) if first == second else block

    def _second(self, first: int, second: int) -> Value:
        """Return the derivative with respect to argument `second` of the cotangent that argument `first` receives."""
        if self.primitive.kind == "elementwise":
            partial = self.primitive.partials[first]
            if not callable(partial):
                return None
            weight = self._moved(second, _ones(self.primals[second]), lambda y, xs: partial(y, *xs))
            if weight is None:
                return None
            weight = cotangents.dense(cotangents.scale(self.cotangent, weight))
            if self.number:
                return weight
            places, shape = (self._places(first), self._places(second)), np.shape(self.result)
            sizes = (np.size(self.primals[first]), np.size(self.primals[second]))
            return _scattered(weight, *places, sizes, shape)
        columns = []
        for basis in basis_vectors(np.shape(self.primals[second])):
            moved = self._moved(second, basis, lambda y, xs: self._pull(first, self.cotangent, xs, y))
            columns.append(_flat(moved, np.size(self.primals[first])))
        return _matrix(columns, (np.size(self.primals[first]), np.size(self.primals[second])))

    def _moved(self, index: int, tangent: Tangent, expression: Function) -> Value:
        """Return the tangent of an expression in the result and the arguments along one argument, or None for zero."""
        with self.forward() as forward:
            xs = list(self.primals)
            xs[index] = forward.variable(xs[index], tangent)
            value = cotangents.dense(expression(self.primitive(*xs, **self.params), xs))
            return value.shadow if forward.owns(value) else None


def _ones(like: Value) -> Value:
    return np.ones(np.shape(like)) if np.shape(like) else 1.0


def basis_vectors(shape: Shape) -> Value:
    """Yield the arrays of a shape with one element 1 and the other elements 0."""
    for place in np.ndindex(shape):
        basis = np.zeros(shape)
        basis[place] = 1.0
        yield basis if shape else 1.0


def _flat(value: Value, size: int) -> Value:
    return np.zeros(size) if value is None else np.ravel(cotangents.dense(value))


def _matrix(columns: list[Value], shape: tuple[int, int], transposed: bool = False) -> Value:
    if shape == (1, 1):
        return columns[0][0]
    matrix = np.stack(columns, axis=1) if columns else np.zeros(shape)
    matrix = matrix.T if transposed else matrix
    return matrix if isinstance(matrix, Tracer) else scipy.sparse.csr_array(matrix)


def _scattered(values: Value, rows: Value, columns: Value, shape: tuple[int, int], broadcast: tuple[int, ...]) -> Value:
    """Return a matrix with the values at rows and columns; values at the same place are added."""
    if shape == (1, 1):
        return np.reshape(np.sum(np.broadcast_to(values, broadcast)), ())[()]
    values = np.ravel(np.broadcast_to(values, broadcast))
    if isinstance(values, Tracer):
        return operations.scatter_add(values, shape=shape, indices=((rows, columns),))
    values = values.astype(np.result_type(values, np.float32), copy=False)  # SciPy has no half-precision matrices
    return scipy.sparse.csr_array(scipy.sparse.coo_array((values, (rows, columns)), shape=shape))


# Functions of blocks, which are numbers, sparse matrices, or (under another derivative) dense traced matrices.


def is_scalar(block: Value) -> bool:
    return ndim_of(block) == 0 if isinstance(block, Tracer) else not scipy.sparse.issparse(block)


def is_undefined(block: Value) -> bool:
    """Return whether a block of second derivatives has a NaN, as at a point where they do not exist."""
    if isinstance(block, Tracer):  # not tested in evaluation infinitely near the point or under another derivative
        return False
    return bool(np.any(np.isnan(block.data if scipy.sparse.issparse(block) else block)))


def transpose_block(block: Value) -> Value:
    return block.T.tocsr() if scipy.sparse.issparse(block) else block if is_scalar(block) else np.transpose(block)


def halved(block: Value) -> Value:
    return block * 0.5


def plus(a: Value, b: Value) -> Value:
    return a + b if not isinstance(a, Tracer) and not isinstance(b, Tracer) else _dense(a) + _dense(b)


def pushed(jacobian: Value, block: Value) -> Tangent:
    """Return the product of a transposed Jacobian and a block.

    SciPy's product skips the zeros of the block, which an infinite entry of the Jacobian has to turn into NaN. So these
    products are computed with a dense block. The zeros that the Jacobian itself does not store are structural.
    """
    sparse = scipy.sparse.issparse(jacobian) and scipy.sparse.issparse(block)
    if not sparse or np.isfinite(jacobian.data.sum()):
        return _times(transpose_block(jacobian), block)
    entries, rows = jacobian.tocoo(), block.toarray()
    total = np.zeros((jacobian.shape[1], block.shape[1]))
    with np.errstate(invalid="ignore"):
        np.add.at(total, entries.col, entries.data[:, None] * rows[entries.row])
    return scipy.sparse.csr_array(total)


def _times(a: Value, b: Value) -> Value:
    if is_scalar(a) or is_scalar(b):
        return a * b if not isinstance(a, Tracer) and not isinstance(b, Tracer) else _dense(a) * _dense(b)
    product = a @ b if not isinstance(a, Tracer) and not isinstance(b, Tracer) else _dense(a) @ _dense(b)
    return product if product.shape != (1, 1) else _dense(product)[0, 0]


def _dense(block: Value) -> Value:
    return block.toarray() if scipy.sparse.issparse(block) else block
