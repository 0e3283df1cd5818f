"""The rule of `scipy.linalg.schur`: A = Z T Z^H with T triangular. Its derivative is NaN where eigenvalues are equal.

Let dZ = Z X with X skew-Hermitian, and M = Z^H dA Z. Below the diagonal, X T - T X equals M and depends only on the
part of X below the diagonal, so a linear system gives X. On and above the diagonal, dT = M - X T + T X. LAPACK's choice
of phases counts as a constant.
"""

from typing import Any

import numpy as np
import scipy.linalg

from effgrad.arrays.layout import shape_of
from effgrad.arrays.value import evaluated, plain
from effgrad.functions.scipy.tables import over_batches, require
from effgrad.primitives.complexes import conj, is_complex
from effgrad.primitives.factors import adjoint
from effgrad.primitives.primitive import general
from effgrad.primitives.quotients import closeness, rounding_of
from effgrad.vocabulary import Cotangent, Value


def _value(a: Value, output: str) -> Value:
    return np.concatenate(scipy.linalg.schur(a, output), axis=0)


def _system(t: Value) -> Value:
    """The matrix of the linear map X -> X T - T X on the elements below the diagonal."""
    n = shape_of(t)[-1]
    rows, columns = np.tril_indices(n, -1)
    same_row, same_column = rows[:, None] == rows, columns[:, None] == columns
    return same_row * t[columns[None, :], columns[:, None]] - same_column * t[rows[:, None], rows[None, :]]


def below(elements: Value, n: int) -> Value:
    """The n by n matrix with the given elements below the diagonal and zeros elsewhere."""
    place = np.zeros((n, n), int)
    place[np.tril_indices(n, -1)] = np.arange(n * (n - 1) // 2)
    return np.tril(elements[place], -1) if n > 1 else np.zeros((n, n))


def _solved(system: Value, right: Value, t: Value) -> Value:
    """The solution of the system; it is NaN where eigenvalues are nearly equal: LAPACK may choose the vectors there."""
    if shape_of(t)[-1] < 2:
        return right
    singular = evaluated(_has_equal, t, closeness(t))
    # The primitive has no Laurent series, so the limit of the derivative at such a point is not known either.
    solved = np.linalg.solve(np.where(singular, np.eye(shape_of(right)[0]), system), right)
    return solved * np.where(singular, np.nan, 1.0)


def _has_equal(t: Value, close: float) -> Value:
    """Whether two eigenvalues of a triangular matrix differ by no more than the rounding of its elements or `close`."""
    w = np.diagonal(t)
    return np.any(np.abs(w[:, None] - w) + np.diag(np.full(len(w), np.inf)) <= rounding_of(np.ravel(t), close))


def _jvp(change: Any, y: Value, a: Value, output: str) -> Value:
    n = shape_of(a)[0]
    t, z = y[:n], y[n:]
    m = np.matmul(np.matmul(adjoint(z), change), z)
    lower = below(_solved(_system(t), m[np.tril_indices(n, -1)], t), n)
    x = lower - adjoint(lower)
    return np.concatenate([np.triu(m - np.matmul(x, t) + np.matmul(t, x)), np.matmul(z, x)], axis=0)


def _vjp(g: Cotangent, y: Value, a: Value, output: str) -> Value:
    n, g = shape_of(a)[0], conj(g)
    t, z, gt, gz = y[:n], y[n:], np.triu(g[:n]), g[n:]
    of_x = np.matmul(adjoint(z), gz) - np.matmul(gt, adjoint(t)) + np.matmul(adjoint(t), gt)
    of_lower = (of_x - adjoint(of_x))[np.tril_indices(n, -1)]
    middle = gt + below(_solved(adjoint(_system(t)), of_lower, t), n)
    return conj(np.matmul(np.matmul(z, middle), adjoint(z)))


packed = general(_value, jvp=_jvp, vjp=_vjp, name="schur")


def is_triangular(t: Value) -> bool:
    return not np.any(np.tril(t, -1))


def _schur(a: Value, output: str = "real") -> Value:
    complex_form = output in ("complex", "c")
    y = packed(a.astype(np.result_type(plain(a), 1j)) if complex_form else a, output=output)
    n = shape_of(a)[0]
    whole = complex_form or is_complex(a) or evaluated(is_triangular, y[:n])
    require(whole, "linalg.schur", "output='complex' where a real matrix has complex eigenvalues")
    return y[:n], y[n:]


RULES = {"schur": over_batches(_schur, 2)}
