"""The whole Hessian in one reverse pass, by edge pushing.

The reverse pass keeps the cotangent of each value, and beside it the second derivatives of what has been passed, with
respect to pairs of values that are still to come: a sparse matrix, of which only pairs that interact are there. At an
operation y = f(a, b) every pair with y becomes pairs with a and b (edges are pushed), and the curvature of f itself,
times y's cotangent, adds pairs among a and b. At the end the pairs of variables are the Hessian.
Sigal 2024, section 5.1; Gower and Mello 2012, A new framework for the computation of Hessians.

Values are arrays, so a pair is a block: a number where both have one element, otherwise a SciPy sparse matrix. The
Jacobian of an elementwise operation is diagonal, and its curvature too, and that of one that moves elements is found by
moving their numbers; those of other primitives are found from their rules, a basis vector at a time.
"""

from collections import defaultdict
from typing import Any

import numpy as np
import scipy

from effgrad.arrays.value import KINDS, Smooth, Traced, constant, plain
from effgrad.effects import Handler
from effgrad.errors import NotDifferentiable
from effgrad.modes.forward import Forward
from effgrad.modes.region import Checkpoint
from effgrad.primitives import cotangents
from effgrad.primitives.complexes import is_complex
from effgrad.primitives.move import scatter_add


class EdgePushing(Handler[Smooth, Checkpoint]):
    """Edge pushing; a traced value's shadow is its name, the place of its operation on the tape."""

    order = 2  # of the derivatives that it takes

    def enter(self) -> None:
        self.tape: list[Any] = []

    def apply(self, primitive: Any, *args: Any, **params: Any) -> Traced:
        owned = [type(a) in KINDS and a.owner is self for a in args]
        primals = [a.primal if mine else constant(a) for a, mine in zip(args, owned, strict=True)]
        names = [a.shadow if mine else None for a, mine in zip(args, owned, strict=True)]
        return self._name(primitive(*primals, **params), (primitive, params, primals, names))

    def run(self, thunk: Any) -> Any:
        """A checkpoint is recorded like the rest."""
        return thunk()

    def primal(self, value: Any) -> Any:
        """A value as it is below this activation: what is not owned here is a constant."""
        return value.primal if type(value) in KINDS and value.owner is self else value

    def variable(self, primal: Any) -> Traced:
        """An input of the program."""
        return self._name(primal, None)

    def _name(self, result: Any, operation: Any) -> Traced:
        self.tape.append((result, operation))
        return Traced(self, result, len(self.tape) - 1)

    def pull(self, output: Traced) -> tuple[list[Any], dict[int, dict[int, Any]]]:
        """The cotangents of the variables, and the second derivatives: for each name, its pairs with earlier ones."""
        collected: list[Any] = [None] * len(self.tape)
        collected[output.shadow] = 1.0
        pairs: dict[int, dict[int, Any]] = defaultdict(dict)
        for name in range(output.shadow, -1, -1):
            result, operation = self.tape[name]
            if operation is None:
                continue
            if collected[name] is None:  # what the output does not depend on has no second derivatives either
                pairs.pop(name, None)
                continue
            primitive, params, primals, names = operation
            cotangent, collected[name] = cotangents.settled(collected[name]), None
            local = _Local(primitive, params, primals, names, result, cotangent)
            self._push_edges(pairs, name, local)
            for first, second, block in local.curvature():
                _add_pair(pairs, first, second, block)
            parts = primitive.pull_all(local.wanted, cotangent, result, primals, params)
            for index, part in zip(local.wanted, parts, strict=True):
                if part is not None:
                    source = names[index]
                    collected[source] = cotangents.add(collected[source], part)
        return collected, pairs

    def second_derivatives(self, output: Traced, variable: int) -> Any:
        """The Hessian of the output with respect to one variable, as a matrix; None where it is zero."""
        if any(is_complex(result) for result, _ in self.tape):
            # The derivative of a complex value has two directions, and a block has one.
            raise NotDifferentiable("edge pushing takes programs of real numbers: leave out mode= and sparse=")
        block = self.pull(output)[1].get(variable, {}).get(variable)
        return block if block is None or not _is_number(block) else np.reshape(block, (1, 1))

    def _push_edges(self, pairs: Any, name: int, local: "_Local") -> None:
        """Replace the pairs with `name` by pairs with the arguments of its operation."""
        for other, block in pairs.pop(name, {}).items():
            if other != name:
                for source, jacobian in local.jacobians():
                    pushed = _times(_transposed(jacobian), block)
                    _add_pair(pairs, source, other, pushed)
            else:
                for source, jacobian in local.jacobians():
                    half = _times(_transposed(jacobian), block)
                    for second, another in local.jacobians():
                        if second <= source:
                            both = _times(half, another)
                            _add_pair(pairs, source, second, both if second < source else _halved(both))


def _add_pair(pairs: Any, first: int, second: int, block: Any) -> None:
    """Add second derivatives with respect to two values; a pair of a value with itself is added with its transpose.

    A pair is kept with the later of the two names, which is the first that the reverse pass comes to.
    """
    if first == second:
        block = _sum(block, _transposed(block))
    elif first < second:
        first, second, block = second, first, _transposed(block)
    pairs[first][second] = block if second not in pairs[first] else _sum(pairs[first][second], block)


class _Local:
    """The derivatives of one operation: blocks for each of its traced arguments.

    They are left out where the cotangent of the result is structurally zero, which excludes infinite ones there.
    """

    def __init__(self, primitive: Any, params: Any, primals: Any, names: Any, result: Any, cotangent: Any) -> None:
        self.primitive, self.params, self.primals, self.names, self.result = primitive, params, primals, names, result
        self.cotangent = cotangent
        # Of one number, elementwise: a block is a number, and nothing has a place.
        self.number = primitive.kind == "elementwise" and np.ndim(plain(result)) == 0
        self.wanted = [index for index, source in enumerate(names) if source is not None]
        self._jacobians: list[tuple[int, Any]] | None = None

    def jacobians(self) -> list[tuple[int, Any]]:
        """For each traced argument that the result depends on, its name and the Jacobian."""
        if self._jacobians is None:
            blocks = [(self.names[index], self._jacobian(index)) for index in self.wanted]
            self._jacobians = [(source, block) for source, block in blocks if block is not None]
        return self._jacobians

    def _jacobian(self, index: int) -> Any:
        if self.primitive.kind == "elementwise":
            return self._diagonal(index, self._push(index, _ones(self.primals[index]), self.primals, self.result))
        shape, size = np.shape(self.primals[index]), np.size(self.primals[index])
        if self.primitive.moves and self.primitive.name != "astype":
            # Which element goes where: let the numbers of the elements move.
            numbers = [np.zeros(np.shape(p), int) for p in self.primals]
            numbers[index] = np.arange(1, size + 1).reshape(shape)
            places = np.ravel(self.primitive.function(*numbers, **self.params))
            if size == np.size(self.result) == 1:
                return float(places[0])
            rows = np.flatnonzero(places)
            entries = np.ones(len(rows)), (rows, places[rows] - 1)
            return scipy.sparse.csr_array(scipy.sparse.coo_array(entries, shape=(len(places), size)))
        count = np.size(self.result)
        if count < size:
            pulled = [self._pull(index, basis, self.primals, self.result) for basis in _basis(np.shape(self.result))]
            return _matrix([_flat(row, size) for row in pulled], (size, count), transposed=True)
        pushed = [self._push(index, basis, self.primals, self.result) for basis in _basis(shape)]
        return _matrix([_flat(column, count) for column in pushed], (count, size))

    def _pull(self, index: int, cotangent: Any, primals: Any, result: Any) -> Any:
        return self.primitive.pull_all([index], cotangent, result, primals, self.params)[0]

    def _push(self, index: int, tangent: Any, primals: Any, result: Any) -> Any:
        tangents = [tangent if i == index else None for i in range(len(primals))]
        return self.primitive.push_all(tangents, result, primals, self.params)

    def _diagonal(self, index: int, values: Any) -> Any:
        """The Jacobian of an elementwise operation, with broadcasting: a value in each row, where its argument is."""
        if values is None:
            return None
        if type(self.cotangent) is cotangents.Masked:
            values = np.where(self.cotangent.mask, values, 0.0)
        if self.number:
            return values
        size, places = np.size(self.primals[index]), self._places(index)
        return _scattered(values, np.arange(len(places)), places, (len(places), size), np.shape(self.result))

    def _places(self, index: int) -> Any:
        primal = self.primals[index]
        return np.broadcast_to(np.arange(np.size(primal)).reshape(np.shape(primal)), np.shape(self.result)).ravel()

    def curvature(self) -> Any:
        """Triples of two names and the second derivatives of the result with respect to them, times the cotangent.

        A pair of one name with itself is halved, since it is added with its transpose.
        """
        linear = self.primitive.kind == "linear"
        if self.primitive.moves or (linear and (self.primitive.pull_jointly is not None or len(self.wanted) == 1)):
            return
        for i, first in enumerate(self.wanted):
            for second in self.wanted[: i if linear else i + 1]:
                block = self._second(first, second)
                if block is not None:
                    a, b = self.names[first], self.names[second]
                    yield a, b, _halved(block) if first == second else block

    def _second(self, first: int, second: int) -> Any:
        """The derivative with respect to argument `second` of the cotangent that argument `first` receives."""
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
        for basis in _basis(np.shape(self.primals[second])):
            moved = self._moved(second, basis, lambda y, xs: self._pull(first, self.cotangent, xs, y))
            columns.append(_flat(moved, np.size(self.primals[first])))
        return _matrix(columns, (np.size(self.primals[first]), np.size(self.primals[second])))

    def _moved(self, index: int, tangent: Any, expression: Any) -> Any:
        """The tangent of an expression in the result and the arguments when one argument moves; None for zero."""
        with Forward() as forward:
            xs = list(self.primals)
            xs[index] = forward.variable(xs[index], tangent)
            value = cotangents.dense(expression(self.primitive(*xs, **self.params), xs))
            return value.shadow if type(value) in KINDS and value.owner is forward else None


def _ones(like: Any) -> Any:
    return np.ones(np.shape(like)) if np.shape(like) else 1.0


def _basis(shape: tuple[int, ...]) -> Any:
    for place in np.ndindex(shape):
        basis = np.zeros(shape)
        basis[place] = 1.0
        yield basis if shape else 1.0


def _flat(value: Any, size: int) -> Any:
    return np.zeros(size) if value is None else np.ravel(cotangents.dense(value))


def _matrix(columns: list[Any], shape: tuple[int, int], transposed: bool = False) -> Any:
    if shape == (1, 1):
        return columns[0][0]
    matrix = np.stack(columns, axis=1) if columns else np.zeros(shape)
    matrix = matrix.T if transposed else matrix
    return matrix if type(matrix) in KINDS else scipy.sparse.csr_array(matrix)


def _scattered(values: Any, rows: Any, columns: Any, shape: tuple[int, int], broadcast: tuple[int, ...]) -> Any:
    """A matrix with the values at places, those at one place added."""
    if shape == (1, 1):
        return np.reshape(np.sum(np.broadcast_to(values, broadcast)), ())[()]
    values = np.ravel(np.broadcast_to(values, broadcast))
    if type(values) in KINDS:
        return scatter_add(values, shape=shape, indices=((rows, columns),))
    return scipy.sparse.csr_array(scipy.sparse.coo_array((values, (rows, columns)), shape=shape))


# Blocks: numbers, sparse matrices, and under another derivative traced matrices, which are dense.


def _is_number(block: Any) -> bool:
    return np.ndim(plain(block)) == 0 if type(block) in KINDS else not scipy.sparse.issparse(block)


def _transposed(block: Any) -> Any:
    return block.T.tocsr() if scipy.sparse.issparse(block) else block if _is_number(block) else np.transpose(block)


def _halved(block: Any) -> Any:
    return block * 0.5


def _sum(a: Any, b: Any) -> Any:
    return a + b if type(a) not in KINDS and type(b) not in KINDS else _dense(a) + _dense(b)


def _times(a: Any, b: Any) -> Any:
    if _is_number(a) or _is_number(b):
        return a * b if type(a) not in KINDS and type(b) not in KINDS else _dense(a) * _dense(b)
    product = a @ b if type(a) not in KINDS and type(b) not in KINDS else _dense(a) @ _dense(b)
    return product if product.shape != (1, 1) else _dense(product)[0, 0]


def _dense(block: Any) -> Any:
    return block.toarray() if scipy.sparse.issparse(block) else block
