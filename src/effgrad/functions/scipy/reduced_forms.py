"""Rules for `scipy.linalg`: the Hessenberg form, balanced matrices, and the factors L D L^H of a symmetric matrix.

The definitions are the steps of the algorithms. The scaling, the order and the blocks that these choose are constants.
Golub and Van Loan, Matrix computations (2013), sections 4.4, 7.4 and 7.5.
"""

import itertools

import scipy.linalg

from effgrad.arrays.layout import dtype_of, shape_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import evaluated, known
from effgrad.functions.scipy.tables import over_batches
from effgrad.primitives.complexes import conj, is_complex
from effgrad.primitives.factors import adjoint, hermitian_of_triangle, reflector, rounding
from effgrad.primitives.product import mT
from effgrad.vocabulary import Function, Value


def _hessenberg(a: Value, calc_q: bool = False) -> Value:
    """Return H, and Q with A = Q H Q^H if it is asked for, by reflections of the columns below the diagonal."""
    n = shape_of(a)[-1]
    h, q, least = a, np.eye(n, dtype=dtype_of(a) if n > 2 else float), evaluated(rounding, a)
    for k in range(n - 2 + (n > 2 and is_complex(a))):  # LAPACK makes the last element below the diagonal real too
        _, tau, v = reflector(h[k + 1 :, k], least)
        v = np.concatenate([np.zeros(k + 1), v])[:, None]
        h = h - conj(tau) * v * np.matmul(adjoint(v), h)
        h = h - tau * np.matmul(h, v) * adjoint(v)
        q = q - tau * np.matmul(q, v) * adjoint(v)
    h = np.triu(h, -1)
    return (h, q) if calc_q else h


def _matrix_balance(A: Value, permute: bool = True, scale: bool = True, separate: bool = False) -> Value:
    def chosen(a: Value) -> Value:
        return np.stack(scipy.linalg.matrix_balance(a, permute, scale, True)[1])

    sizes, order = evaluated(chosen, A)
    order = order.astype(int)
    balanced = A[order][:, order] * sizes / sizes[:, None]
    return balanced, ((sizes, order) if separate else np.diag(sizes)[evaluated(np.argsort, order)])


def _ldl(A: Value, lower: bool = True, hermitian: bool = True) -> Value:
    """Return L in the order of the rows of A, D, and the order in which L is triangular."""
    strict = np.tril(A, -1) if lower else np.triu(A, 1)
    whole = hermitian_of_triangle(A, lower) if hermitian else strict + mT(strict) + np.tril(np.triu(A))

    def chosen(a: Value) -> Value:
        _, d, order = scipy.linalg.ldl(a, lower, hermitian)
        return np.array([order, np.concatenate([[0], np.diagonal(d, 1) != 0])])

    order, coupled = known(evaluated(chosen, A))
    starts = np.flatnonzero(coupled == 0)
    blocks = [slice(*pair) for pair in itertools.pairwise([*starts, len(order)])]
    triangle, d = _eliminated(whole[order][:, order], blocks if lower else blocks[::-1], adjoint if hermitian else mT)
    return (triangle + 0j if is_complex(A) else triangle)[evaluated(np.argsort, order)], d, order


def _eliminated(rest: Value, blocks: list[slice], turned: Function) -> tuple[Value, Value]:
    """Return L and D of a matrix by eliminating blocks of its rows and columns, one after the other."""
    n, left = shape_of(rest)[0], np.ones(shape_of(rest)[0], bool)
    triangle = d = 0.0
    for place in blocks:
        left[place] = False
        block, unit = rest[place, place], np.eye(n)[:, place]
        below = mT(np.linalg.solve(mT(block), mT(rest[:, place])))
        factor = unit + np.where(left[:, None], below, 0.0)
        rest = rest - np.matmul(np.matmul(factor, block), turned(factor))
        triangle = triangle + np.matmul(factor, unit.T)
        d = d + np.matmul(np.matmul(unit, block), unit.T)
    return triangle, d


RULES = {
    "hessenberg": over_batches(_hessenberg, 2), "matrix_balance": over_batches(_matrix_balance, 2),
    "ldl": over_batches(_ldl, 2),
}  # fmt: skip
