"""Index sets: which inputs each element of a value depends on, for the pattern of a Jacobian.

The shadow of a value is a sparse matrix of truth values with a row for each of its elements and a column for each
input. The kind of an operation determines the sets of its result. An elementwise operation unites the sets of the
elements that it combines, an operation that moves elements moves their sets, an operation along an axis unites the sets
along it, and a linear operation is probed. For any other operation, every element depends on all. So a pattern may have
more elements than the Jacobian needs, but never fewer.
Griewank and Walther 2008, section 7.1 (index domains); Gebremedhin, Manne and Pothen 2005, SIAM Review 47.
"""

from typing import Any, TypeAlias

from scipy import sparse

from effgrad.arrays.reach import np
from effgrad.arrays.traced import Traced
from effgrad.arrays.value import Tracer
from effgrad.errors import NotDifferentiable
from effgrad.functions.scipy.sparse_elements import product as sparse_product
from effgrad.modes.mode import Mode, Operation
from effgrad.primitives import product
from effgrad.primitives.index_map import broadcast_numbers, element_numbers
from effgrad.primitives.primitive import Primitive
from effgrad.vocabulary import Value

Sets: TypeAlias = Any  # a sparse matrix (csr) of truth values, or None if no element depends on an input

# The most elements of a pattern in which all elements depend on all inputs, and the most elements of an argument that
# is probed.
MOST, PROBED = 1 << 26, 1 << 11


class IndexSets(Mode):
    """Evaluation with index sets; a value's shadow is the index sets of its elements."""

    def __init__(self, count: int) -> None:
        self.count = count

    def variable(self, primal: Value, shadow: Value = 0) -> Traced:
        """Return an input whose first element is the input with the number `shadow`."""
        return self.value(self, primal, _selection(np.arange(shadow, shadow + np.size(primal)), self.count))

    def shadow(self, operation: Operation) -> Sets:
        if all(sets is None for sets in operation.shadows):
            return None
        return dependence(operation)


def _selection(columns: Value, count: int) -> Sets:
    """Return a matrix with one row for each item of `columns`, which has that column alone, or none for -1."""
    kept = columns >= 0
    ends = np.concatenate([[0], np.cumsum(kept)])
    return sparse.csr_array((np.ones(ends[-1], bool), columns[kept], ends), (len(columns), count))


def _united(matrix: Sets, sets: Sets) -> Sets:
    """Return, for each row of a matrix of truth values, the union of the sets of its columns."""
    return ((matrix.astype(np.int8) @ sets.astype(np.int8)) != 0).tocsr()


def _union(parts: list[Sets]) -> Sets:
    total = parts[0]
    for part in parts[1:]:
        total = (total + part).astype(bool)
    return total


def dependence(operation: Operation) -> Sets:
    """Return the index sets of a result, given those of the arguments."""
    primitive, params, primals, sets, result = operation
    shapes, shape = [np.shape(p) for p in primals], np.shape(result)
    if primitive.kind == "elementwise" or (not params and primitive.kind == "linear" and shapes == [shape]):
        return _elementwise(operation, shapes, shape)
    if primitive.moves:
        return sets[0] if "dtype" in params else _moved(primitive, shapes, sets, params)
    local = [(s, _local(primitive, i, primals, shape, params)) for i, s in enumerate(sets) if s is not None]
    if all(matrix is not None for _, matrix in local):
        return _union([_united(matrix, s) for s, matrix in local])
    return _everything(primitive, [s for s, _ in local], int(np.prod(shape)))


def _elementwise(operation: Operation, shapes: list[tuple[int, ...]], shape: tuple[int, ...]) -> Sets:
    primitive, sets = operation.primitive, operation.shadows
    parts = [
        _rows(own, np.where(_chosen(operation, i), broadcast_numbers(shapes[i], shape), -1))
        for i, own in enumerate(sets)
        if own is not None and (not primitive.partials or primitive.partials[i] is not None)
    ]
    return _union(parts) if parts else None


def _chosen(operation: Operation, index: int) -> Value:
    """Return whether each element of the result may come from an argument; a constant `np.where` condition excludes it.

    It is one truth value, or one for each element.
    """
    primitive, _, primals, sets, result = operation
    if not primitive.selects or any(place == 0 or sets[place - 1] is not None for place in primitive.read[index]):
        return True
    if any(isinstance(primals[place - 1], Tracer) for place in primitive.read[index]):
        return True
    return np.ravel(np.broadcast_to(primitive.partials[index](result, *primals) != 0, np.shape(result)))


def _rows(sets: Sets, rows: Value) -> Sets:
    """Return the sets of the given rows; -1 stands for an empty row."""
    if rows.min(initial=0) < 0:
        empty = sparse.csr_array((1, sets.shape[1]), dtype=bool)
        return sparse.vstack([empty, sets], format="csr")[rows + 1]
    return sets if len(rows) == sets.shape[0] and (rows == np.arange(len(rows))).all() else sets[rows]


def _moved(primitive: Primitive, shapes: list[Value], sets: list[Sets], params: Value) -> Sets:
    """Return the sets of a result whose elements are moved. The operation moves their numbers too; constants have 0."""
    numbers = element_numbers(shapes, [own is not None for own in sets])
    places = np.ravel(primitive.function(*numbers, **params)).astype(int)
    return _rows(sparse.vstack([own for own in sets if own is not None], format="csr"), places - 1)


def _local(primitive: Primitive, index: int, primals: list[Value], shape: tuple[int, ...], params: Value) -> Sets:
    """Return which elements of an argument each element of the result depends on, or None if that is not known."""
    size, count = np.size(primals[index]), int(np.prod(shape))
    given = np.shape(primals[index])
    if primitive is sparse_product:
        return _of_sparse_product(index, primals, params)
    if primitive.places:
        place = primitive.places([np.shape(p) for p in primals], **params)[1][index]
        places = np.ravel(np.broadcast_to(np.arange(count).reshape(shape)[place], given))
        return sparse.csr_array((np.ones(size, bool), (places, np.arange(size))), (count, size))
    if params.keys() == {"axis"}:
        axes = params["axis"]
        kept = np.empty(given, bool).sum(axis=axes, keepdims=True).shape if given else ()
        lines = np.broadcast_to(np.arange(int(np.prod(kept))).reshape(kept), given).ravel()
        united = sparse.csr_array((np.ones(size, bool), (lines, np.arange(size))), (int(np.prod(kept)), size))
        return united if count == united.shape[0] else united[lines] if count == size else None
    if primitive is product.matmul and len(given) <= 2 and np.ndim(primals[1 - index]) <= 2:
        return _of_matrices(index, primals)
    if primitive.kind == "linear" and primitive.push_jointly is None and size <= PROBED and not _traced(primals):
        basis = np.eye(size).reshape(size, *given)
        columns = [np.ravel(primitive.push(index, t if given else 1.0, None, *primals, **params)) for t in basis]
        return sparse.csr_array(np.stack(columns, axis=1) != 0)
    return None


def _traced(primals: list[Value]) -> bool:
    return any(isinstance(p, Tracer) for p in primals)


def _of_matrices(index: int, primals: list[Value]) -> Sets:
    """Return the dependence of a product of matrices or vectors; a constant's zeros exclude the elements they meet."""
    other = primals[1 - index]
    known = np.ones(np.shape(other), bool) if isinstance(other, Tracer) else np.asarray(other) != 0
    shape = np.shape(primals[index])
    if index == 0:
        known = known.reshape(len(known), -1)
        eye = sparse.eye_array(1 if len(shape) == 1 else shape[0], dtype=bool)
        return sparse.kron(eye, sparse.csr_array(known.T), format="csr").astype(bool)
    eye = sparse.eye_array(1 if len(shape) == 1 else shape[1], dtype=bool)
    return sparse.kron(sparse.csr_array(np.atleast_2d(known)), eye, format="csr").astype(bool)


def _of_sparse_product(index: int, primals: list[Value], params: Value) -> Sets:
    rows, columns, size = params["rows"], params["columns"], params["size"]
    width = 1 if np.ndim(primals[0]) == 1 else np.shape(primals[0])[1]
    if index == 0:
        matrix = sparse.csr_array((np.ones(len(rows), bool), (rows, columns)), size)
        return sparse.kron(matrix, sparse.eye_array(width, dtype=bool), format="csr").astype(bool)
    places = (np.asarray(rows)[:, None] * width + np.arange(width)).ravel()
    elements = np.repeat(np.arange(len(rows)), width)
    return sparse.csr_array((np.ones(len(places), bool), (places, elements)), (size[0] * width, len(rows)))


def _everything(primitive: Primitive, sets: list[Sets], count: int) -> Sets:
    inputs = np.unique(np.concatenate([s.indices for s in sets]))
    if count * len(inputs) > MOST:
        raise NotDifferentiable(
            f"a sparse derivative goes through {primitive.name}, which lets each of {count} elements depend on "
            f"{len(inputs)} inputs: this Jacobian is dense (leave out sparse=True), or write the operation with "
            "slices, sums along axes and sparse matrices"
        )
    row = sparse.csr_array((np.ones(len(inputs), bool), (np.zeros(len(inputs), int), inputs)), (1, sets[0].shape[1]))
    return sparse.kron(np.ones((count, 1), bool), row, format="csr").astype(bool)
