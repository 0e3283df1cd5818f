"""Linear systems of a few unknowns, written out as Gaussian elimination with partial pivoting.

A call of LAPACK takes some microseconds, and its derivative twenty times that; a system of a few unknowns takes some
nanoseconds when written out. Golub and Van Loan 2013, Matrix Computations, algorithm 3.4.1.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from effgrad.arrays.value import any_traced
from effgrad.program.resolve import call
from effgrad.stage.loop import fancy
from effgrad.stage.loop.affine import Affine, affine, fresh, new_point
from effgrad.stage.loop.buffers import FLOAT, Buffer, Element, constant, load
from effgrad.stage.loop.element import (
    ADD,
    AND,
    DIVIDE,
    GREATER,
    MULTIPLY,
    NEGATIVE,
    NOT_EQUAL,
    SUBTRACT,
    WHERE,
    element,
    primitive_of,
)
from effgrad.stage.loop.ir import Apply, Block, Map, Store, added
from effgrad.stage.loop.operands import Lazy, Value, View, whole_view
from effgrad.stage.loop.registry import rule
from effgrad.stage.loop.symbols import Symbols

# Larger systems are left to LAPACK.
MOST_UNKNOWNS = 4
# More right sides than this for each unknown make it worth inverting the matrix.
MANY_SIDES = 2

Rows = list[list[Element]]


def _is_small(value: Value, ranks: tuple[int, ...] = (2,)) -> bool:
    return (
        isinstance(value, View | Lazy)
        and len(value.shape) in ranks
        and all(isinstance(n, int) and 0 < n <= MOST_UNKNOWNS for n in value.shape)
        and value.dtype == FLOAT
    )


def _rows(c: Symbols, value: Value) -> Rows:
    """The elements of a matrix, or of a vector as a matrix of one column."""
    stored = c.in_memory_once(value)
    n, columns = stored.shape[0], stored.shape[1] if len(stored.shape) == 2 else 1
    rank = len(stored.shape)
    return [[stored.element([i, j][:rank]) for j in range(int(affine(columns).constant))]
            for i in range(int(affine(n).constant))]  # fmt: skip


def _exchange(test: Element, a: list[Element], b: list[Element]) -> tuple[list[Element], list[Element]]:
    """Return two rows, exchanged if the test is true."""
    pairs = list(zip(a, b, strict=True))
    return [element(WHERE, test, y, x) for x, y in pairs], [element(WHERE, test, x, y) for x, y in pairs]


def eliminate(a: Rows) -> Element:
    """Bring a matrix and the columns beside it to upper triangular form in place; return the sign of the exchanges."""
    n, sign, size = len(a), constant(1.0), primitive_of(np.absolute)
    assert size is not None
    for k in range(n):
        for i in range(k + 1, n):
            larger = element(GREATER, element(size, a[i][k]), element(size, a[k][k]))
            a[k][k:], a[i][k:] = _exchange(larger, a[k][k:], a[i][k:])
            sign = element(WHERE, larger, element(NEGATIVE, sign), sign)
        for i in range(k + 1, n):
            factor = element(DIVIDE, a[i][k], a[k][k])
            pairs = zip(a[i][k + 1 :], a[k][k + 1 :], strict=True)
            a[i][k + 1 :] = [element(SUBTRACT, x, element(MULTIPLY, factor, y)) for x, y in pairs]
    return sign


def _back(a: Rows) -> Rows:
    """Back substitution: the unknowns for each column beside a triangular matrix."""
    n = len(a)
    found: Rows = [[] for _ in range(n)]
    for i in reversed(range(n)):
        for column in range(n, len(a[i])):
            x = a[i][column]
            for j in range(i + 1, n):
                x = element(SUBTRACT, x, element(MULTIPLY, a[i][j], found[j][column - n]))
            found[i].append(element(DIVIDE, x, a[i][i]))
    return found


def _solved(c: Symbols, a: Rows, b: Rows) -> View:
    """The solution as a new array with a row for each unknown; the program raises if the matrix is singular."""
    rows = [[*x, *y] for x, y in zip(a, b, strict=True)]
    eliminate(rows)
    found, n = _back(rows), len(a)
    result = whole_view(c.buffer("solution", (n, len(b[0])), FLOAT))
    pivots = c.buffer("pivots", (n,), FLOAT)
    places = [(i, j) for i in range(n) for j in range(len(b[0]))]
    stores = [Store(result.buffer, tuple(map(affine, at)), found[at[0]][at[1]]) for at in places]
    c.emit([], [*stores, *[Store(pivots, (affine(k),), rows[k][k]) for k in range(n)]])
    flag = constant(True)
    for k in range(n):
        other = element(NOT_EQUAL, load(pivots, (k,)), constant(0.0))
        flag = other if k == 0 else element(AND, flag, other)
    c.check(flag, f"{c.place()}: Singular matrix", np.linalg.LinAlgError)
    result.own = True
    return result


class Solution:
    """A call of LAPACK for `a x = b`, or with `a` transposed, that defines its own adjoint.

    The cotangent of `b` solves the system of the transposed matrix for the cotangent of `x`. The cotangent of `a` is
    minus the outer product of the cotangent of `b` and `x`. Giles 2008, An extended collection of matrix derivative
    results.
    """

    def __init__(self, transposed: bool = False) -> None:
        self.transposed = transposed
        self.__name__ = "solve"

    def __call__(self, a: Value, b: Value) -> Value:
        if any_traced([a, b]):
            return call(np.linalg.solve)(a.T if self.transposed else a, b)
        return self.solved(a.T if self.transposed else a, b)

    def solved(self, a: np.ndarray, b: np.ndarray) -> Value:
        """The solution by NumPy. A reverse with many right sides multiplies by the inverse instead.

        That product is four times as fast as the solution of two triangular systems (50 unknowns, 150 right sides,
        2026-11-23).
        """
        if self.transposed and b.ndim == 2 and b.shape[1] > MANY_SIDES * len(a):
            return np.linalg.inv(a) @ b
        return np.linalg.solve(a, b)

    def read_by_reverse(self, s: Apply) -> list[Buffer]:
        return [s.inputs[0], s.output]

    def reverse(self, s: Apply, cotangents: Mapping[Buffer, Buffer]) -> Block:
        """The statements that add to the cotangents of the matrix and of the right side."""
        (a, b), g = s.inputs, cotangents[s.output]
        part = Buffer(fresh("part"), b.shape, b.dtype)
        block: Block = [replace(s, function=type(self)(not self.transposed), inputs=(a, g), output=part)]
        if b in cotangents:
            block.append(added(cotangents[b], part))
        if a in cotangents:
            block += self.of_matrix(cotangents[a], part, s.output)
        return block

    def of_matrix(self, g: Buffer, part: Buffer, x: Buffer) -> Block:
        """The statements that add to the cotangent of the matrix."""
        return [self.outer(g, part, x)]

    def outer(self, g: Buffer, part: Buffer, x: Buffer, planes: Sequence[int] = (), negative: bool = True) -> Map:
        """`g -= part @ x.T`, or its transpose; `planes` are the planes of the three arrays, if they are complex."""
        _, (i, j, k) = new_point(range(3))
        places: list[tuple[Affine, ...]] = [(affine(p),) for p in planes]
        of_g, of_part, of_x = places or [()] * 3
        rest = (k,) if len(x.shape) > 1 + len(of_x) else ()
        value = element(MULTIPLY, load(part, (*of_part, i, *rest)), load(x, (*of_x, j, *rest)))
        sizes = g.shape[-1], g.shape[-1], x.shape[-1]
        dims = tuple((v.terms[0][0], affine(n)) for v, n in zip((i, j, *rest), sizes, strict=False))
        place = (*of_g, j, i) if self.transposed else (*of_g, i, j)
        return Map(dims, [Store(g, place, element(NEGATIVE, value) if negative else value, adds=True)])


class ComplexSolution(Solution):
    """The same for complex arrays, each as its two planes, stacked; `transposed` is the conjugate transpose."""

    def __call__(self, a: Value, b: Value) -> Value:
        if any_traced([a, b]):
            matrix = (a[0] - 1j * a[1]).T if self.transposed else a[0] + 1j * a[1]
            x = call(np.linalg.solve)(matrix, b[0] + 1j * b[1])
            return call(np.stack)([np.real(x), np.imag(x)])
        matrix = _joined(a.swapaxes(1, 2), -1) if self.transposed else _joined(a)
        x = self.solved(matrix, _joined(b))
        return np.moveaxis(x.view(x.real.dtype).reshape(*x.shape, 2), -1, 0)

    def of_matrix(self, g: Buffer, part: Buffer, x: Buffer) -> Block:
        """Add minus the product of `part` and the conjugate of the solution, or the conjugate of that product."""
        signs = (True, True, not self.transposed, self.transposed)
        planes = ((0, 0, 0), (0, 1, 1), (1, 1, 0), (1, 0, 1))
        return [self.outer(g, part, x, *given) for given in zip(planes, signs, strict=True)]


def _joined(planes: np.ndarray, sign: int = 1) -> np.ndarray:
    """Join two planes to a complex array, or, if `sign` is -1, to its conjugate."""
    joined = np.empty(planes.shape[1:], np.result_type(planes.dtype, np.complex64))
    joined.real = planes[0]
    np.multiply(planes[1], sign, out=joined.imag)
    return joined


@rule(np.linalg.solve)
def _solve(c: Symbols, a: Value, b: Value) -> Value:
    square = _is_small(a) and a.shape[0] == a.shape[1]
    if not square or not _is_small(b, (1, 2)) or b.shape[0] != a.shape[0]:
        arrays = all(isinstance(x, View | Lazy) and x.dtype == FLOAT and len(x.shape) in (1, 2) for x in (a, b))
        f = Solution() if arrays and len(a.shape) == 2 else np.linalg.solve
        return fancy.applied(c, f, [a, b], {})
    result = _solved(c, _rows(c, a), _rows(c, b))
    return result if len(b.shape) == 2 else c.index(result, (slice(None), 0))


@rule(np.linalg.inv)
def _inv(c: Symbols, a: Value) -> Value:
    if not _is_small(a) or a.shape[0] != a.shape[1]:
        return fancy.applied(c, np.linalg.inv, [a], {})
    n = int(affine(a.shape[0]).constant)
    return _solved(c, _rows(c, a), [[constant(float(i == j)) for j in range(n)] for i in range(n)])


@rule(np.linalg.det)
def _det(c: Symbols, a: Value) -> Value:
    if not _is_small(a) or a.shape[0] != a.shape[1] or a.shape[0] > 3:
        return fancy.applied(c, np.linalg.det, [a], {})
    return c.number(_expanded(_rows(c, a)))


def _expanded(a: Rows) -> Element:
    """A determinant expanded along its first row. It is a polynomial, so it has derivatives where it is zero."""
    if len(a) == 1:
        return a[0][0]
    total = None
    for j, x in enumerate(a[0]):
        term = element(MULTIPLY, x, _expanded([[*row[:j], *row[j + 1 :]] for row in a[1:]]))
        total = term if total is None else element(SUBTRACT if j % 2 else ADD, total, term)
    assert total is not None
    return total
