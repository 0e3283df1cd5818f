"""Triangular systems, in which only one triangle of the matrix is read and has a derivative.

Giles, An extended collection of matrix derivative results (2008).
"""


import numpy as np
import scipy.linalg

from effgrad.arrays.value import plain
from effgrad.primitives import cotangents
from effgrad.primitives.primitive import Primitive, general
from effgrad.primitives.product import mT
from effgrad.primitives.systems import columns, uncolumned
from effgrad.vocabulary import Cotangent, Tangent, Value

# For matrices with fewer rows, SciPy's function takes longer than a solution by elimination.
FEWEST_ROWS = 64


def triangle(x: Value, lower: bool, unit: bool = False) -> Value:
    """Return a triangle of a matrix, without its diagonal if that is taken as ones (`unit`)."""
    return np.tril(x, -1 if unit else 0) if lower else np.triu(x, 1 if unit else 0)


def _triangular_tangent(t: Tangent, y: Value, a: Value, b: Value, lower: bool, trans: int, unit: bool) -> Value:
    t = triangle(t, lower, unit)
    product = np.matmul(mT(t) if trans else t, columns(y, b))
    return -uncolumned(triangular(a, product, lower=lower, trans=trans, unit=unit), b)


def _triangular_matrix(g: Cotangent, y: Value, a: Value, b: Value, lower: bool, trans: int, unit: bool) -> Value:
    w, y = triangular(a, columns(g, b), lower=lower, trans=1 - trans, unit=unit), columns(y, b)
    outer = np.matmul(y, mT(w)) if trans else np.matmul(w, mT(y))
    return cotangents.unbroadcast(-triangle(outer, lower, unit), a)


def _triangular_right(g: Cotangent, y: Value, a: Value, b: Value, lower: bool, trans: int, unit: bool) -> Value:
    w = triangular(a, columns(g, b), lower=lower, trans=1 - trans, unit=unit)
    return cotangents.unbroadcast(uncolumned(w, b), b)


triangular: Primitive = general(
    lambda a, b, lower, trans, unit: scipy.linalg.solve_triangular(
        a, b, lower=lower, trans=trans, unit_diagonal=unit, check_finite=False
    ),
    jvp=(_triangular_tangent, lambda t, y, a, b, **kind: triangular(a, t, **kind)),
    vjp=(
        _triangular_matrix,
        _triangular_right,
    ),
    name="solve_triangular",
)


def solved(a: Value, b: Value, lower: bool) -> Value:
    """Return the solution of systems with triangular matrices; b is a matrix or a stack of matrices."""
    shape = plain(a).shape
    if len(shape) > 2 or len(plain(b).shape) > 2 or shape[0] < FEWEST_ROWS:
        return np.linalg.solve(a, b)
    return triangular(a, b, lower=lower, trans=0, unit=False)
