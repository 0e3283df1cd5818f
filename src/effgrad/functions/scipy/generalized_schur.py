"""The rule of `scipy.linalg.qz`: A = Q S Z^H and B = Q T Z^H with S and T triangular; NaN where eigenvalues are equal.

Let dQ = Q X and dZ = Z Y with X and Y skew-Hermitian. Below the diagonal, X S - S Y is Q^H dA Z, and X T - T Y is
Q^H dB Z. Both depend only on the parts of X and Y below the diagonal, so a linear system gives these. On and above the
diagonal, the rest is dS and dT. LAPACK keeps the diagonal of T real, which gives the diagonal of Y; its choice of the
phase that Q and Z share counts as a constant, as in `schur`.
"""

from typing import Any

import numpy as np
import scipy.linalg

from effgrad.arrays.layout import shape_of
from effgrad.arrays.value import evaluated, plain
from effgrad.functions.scipy.schur import below, is_triangular
from effgrad.functions.scipy.tables import over_batches, require
from effgrad.primitives.complexes import conj, is_complex
from effgrad.primitives.factors import adjoint
from effgrad.primitives.primitive import general
from effgrad.primitives.quotients import closeness, diagonal
from effgrad.vocabulary import Cotangent, Value

# Eigenvalues are equal to rounding if their difference is smaller than this, relative to the matrices.
EQUAL = 1e-13


def _value(a: Value, b: Value, output: str) -> Value:
    return np.concatenate(scipy.linalg.qz(a, b, output), axis=0)


def _parts(y: Value) -> list[Value]:
    n = shape_of(y)[-1]
    return [y[k * n : (k + 1) * n] for k in range(4)]


def _system(s: Value, t: Value) -> Value:
    """The matrix of the linear map from the elements of X and Y below the diagonal to those of both equations."""
    rows, columns = np.tril_indices(shape_of(s)[-1], -1)
    same_row, same_column = (rows[:, None] == rows) * 1.0, (columns[:, None] == columns) * -1.0
    blocks = [
        np.concatenate([
            same_row * u[columns[None, :], columns[:, None]], same_column * u[rows[:, None], rows[None, :]],
        ], axis=1)
        for u in (s, t)
    ]  # fmt: skip
    return np.concatenate(blocks, axis=0)


def _solved(system: Value, right: Value, s: Value, t: Value) -> Value:
    """The solution of the system; it is NaN where generalized eigenvalues are nearly equal."""
    singular = evaluated(_has_equal, s, t, closeness(s))
    solved = np.linalg.solve(np.where(singular, np.eye(shape_of(right)[0]), system), right)
    return solved * np.where(singular, np.nan, 1.0)


def _has_equal(s: Value, t: Value, close: float) -> Value:
    alpha, beta = np.diagonal(s), np.diagonal(t)
    size = np.max(np.abs(s), initial=0.0) * np.max(np.abs(t), initial=0.0)
    apart = np.abs(alpha[:, None] * beta - alpha * beta[:, None]) + np.diag(np.full(len(alpha), np.inf))
    return np.any(apart <= max(EQUAL, close) * size)


def _halves(s: Value, t: Value, of_x: Value, of_y: Value, transposed: bool) -> tuple[Value, Value]:
    """Solve the system, or the adjoint one, for matrices whose parts below the diagonal are given."""
    n = shape_of(s)[-1]
    if n < 2:
        return np.zeros((n, n)), np.zeros((n, n))
    low, system = np.tril_indices(n, -1), _system(s, t)
    right = np.concatenate([of_x[low], of_y[low]])
    found = _solved(adjoint(system) if transposed else system, right, s, t)
    return below(found[: len(low[0])], n), below(found[len(low[0]) :], n)


def _turns(off_real: Value, t: Value) -> Value:
    """The imaginary numbers, by the diagonal of T, that take back what is imaginary on a diagonal."""
    beta = diagonal(t)
    zero = plain(beta) == 0
    return np.where(zero, 0.0, -1j * np.imag(off_real) / np.where(zero, 1.0, beta))


def _change(m_a: Value, m_b: Value, y: Value) -> Value:
    s, t, q, z = _parts(y)
    lower_x, lower_y = _halves(s, t, m_a, m_b, False)
    x, turn = lower_x - adjoint(lower_x), lower_y - adjoint(lower_y)
    if is_complex(y):
        turn = turn + np.diag(_turns(diagonal(m_b + np.matmul(t, turn) - np.matmul(x, t)), t))
    ds, dt = (np.triu(m - np.matmul(x, u) + np.matmul(u, turn)) for m, u in ((m_a, s), (m_b, t)))
    return np.concatenate([ds, dt, np.matmul(q, x), np.matmul(z, turn)], axis=0)


def _jvp(place: int) -> Any:
    def jvp(change: Any, y: Value, a: Value, b: Value, output: str) -> Value:
        _, _, q, z = _parts(y)
        m = np.matmul(np.matmul(adjoint(q), change), z)
        none = np.zeros(shape_of(m))
        return _change(m, none, y) if place == 0 else _change(none, m, y)

    return jvp


def _vjp(place: int) -> Any:
    def vjp(g: Cotangent, y: Value, a: Value, b: Value, output: str) -> Value:
        s, t, q, z = _parts(y)
        gs, gt, gq, gz = _parts(conj(g))
        gs, gt = np.triu(gs), np.triu(gt)
        of_x = np.matmul(adjoint(q), gq) - np.matmul(gs, adjoint(s)) - np.matmul(gt, adjoint(t))
        of_y = np.matmul(adjoint(z), gz) + np.matmul(adjoint(s), gs) + np.matmul(adjoint(t), gt)
        if is_complex(y):
            turned = np.diag(_turns(diagonal(of_y), t))
            gt = gt + turned
            of_x, of_y = of_x - np.matmul(turned, adjoint(t)), of_y + np.matmul(adjoint(t), turned)
        halves = _halves(s, t, of_x - adjoint(of_x), of_y - adjoint(of_y), True)
        return conj(np.matmul(np.matmul(q, (gs, gt)[place] + halves[place]), adjoint(z)))

    return vjp


packed = general(_value, jvp=(_jvp(0), _jvp(1)), vjp=(_vjp(0), _vjp(1)), name="qz")


def _qz(
    A: Value, B: Value, output: str = "real", lwork: object = None, sort: object = None, **options: object
) -> Value:
    require(sort is None, "linalg.qz", "sort=None")
    complex_form = output in ("complex", "c")
    kind = np.result_type(plain(A), plain(B), 1j if complex_form else 1.0)
    y = packed(A.astype(kind), B.astype(kind), output="complex" if complex_form else output)
    whole = complex_form or is_complex(y) or evaluated(is_triangular, y[: shape_of(A)[0]])
    require(whole, "linalg.qz", "output='complex' where real matrices have complex eigenvalues")
    return tuple(_parts(y))


RULES = {"qz": over_batches(_qz, 2, 2)}
