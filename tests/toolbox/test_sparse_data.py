"""Traced values in the data of a sparse matrix that SciPy made: the pattern is made once and written to often.

The oracle is the program itself on plain arrays, and extrapolated differences of it. Before, a matrix whose data held
traced values was refused or, where LU factors of it were taken, a constant: SuperLU makes ordinary NaNs of the marks.
"""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as sla
from differences import slope

from effgrad import NoRule, grad, hvp, jvp

X = np.array([3.3, 0.7, 4.1, -0.4, 2.9])
U = np.array([0.5, -0.2, 0.7, 0.1, -0.6])
INDICES, STARTS = np.array([0, 2, 1, 0, 2]), np.array([0, 2, 3, 5])
B = np.array([1.0, -2.0, 0.5])


def check(f):
    np.testing.assert_allclose(jvp(f, (X,), (U,)), (f(X.copy()), slope(f, X, U, 0.01)), rtol=1e-8)
    np.testing.assert_allclose(grad(f)(X) @ U, slope(f, X, U, 0.01), rtol=1e-8)
    np.testing.assert_allclose(hvp(f, X, U) @ U, slope(lambda x: grad(f)(x) @ U, X, U, 0.01), rtol=1e-7, atol=1e-9)


def pattern(kind="csr_array"):
    return getattr(sp, kind)((np.zeros(5), INDICES, STARTS), shape=(3, 3))


USES = {
    "product": lambda a: a @ B, "sum": lambda a: a + sp.eye_array(3), "item": lambda a: a[0, 2] * a[2, 0],
    "row": lambda a: a[2:3],
    "solve": lambda a: sla.spsolve(a.tocsc(), B), "shifted": lambda a: sla.spsolve((a + sp.eye_array(3)).tocsc(), B),
    "factors": lambda a: sla.splu(a.tocsc()).solve(B, trans="T"), "transpose": lambda a: a.T @ B,
    "transposed matrices": lambda a: (a.mT if hasattr(type(pattern()), "mT") else a.T) @ B,
    "twice": lambda a: 2 * a,
    "diagonal": lambda a: a.diagonal(), "sums": lambda a: a.sum(axis=0), "norm": sla.norm, "square": lambda a: a @ a,
    "stack": lambda a: sp.vstack([a, a]) @ B, "iterative": lambda a: sla.gmres(a, B, rtol=1e-13)[0], "abs": abs,
    "dense": lambda a: a.toarray() @ B, "exponential": lambda a: sla.expm_multiply(a / 9, B),
    "largest": lambda a: a.max(),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["csr_array", "csr_matrix", "csc_array"])
@pytest.mark.parametrize("name", USES)
def test_elements_written_to_a_pattern_are_traced(name, kind):
    def f(x):
        a, total = pattern(kind), 0.0
        for k in range(2):
            a.data[:] = x * (k + 1.0)
            a.data[k] += x[4] ** 2
            result = USES[name](a)
            total = total + np.sum(np.sin((result.toarray() if sp.issparse(result) else result) / 9))
        return total

    check(f)


OUTSIDE = pattern()


def own_array(x):
    data = np.zeros(5)
    a = sp.csr_array((data, INDICES, STARTS), shape=(3, 3))
    data[:] = x
    return np.sum((a @ B) ** 2)


def transposed(x):
    a = pattern()
    a.data[:] = x
    b = a.T
    a.data[1:] = a.data[:-1] * x[0]
    return np.sum((b @ B) ** 2)


def assigned(x):
    a = pattern()
    a.data = x**2
    a.data[0] = x[1]
    return np.sum((a @ B) ** 2)


def scaled(x):
    a = sp.csr_array(np.diag(B))
    b = a
    a *= x[0]
    a /= x[2]
    a.sort_indices()
    return np.sum((b @ B) ** 2)


def outside(x):
    OUTSIDE.data[:] = x
    OUTSIDE.data *= x[1]
    return np.sum(sla.spsolve(OUTSIDE.tocsc(), B) ** 2)


@pytest.mark.parametrize("f", [own_array, transposed, assigned, scaled, outside], ids=lambda f: f.__name__)
def test_the_matrix_follows_later_writes(f):
    check(f)


def test_a_change_of_the_pattern_of_held_data_is_refused():
    def f(x):
        a = pattern()
        a.data[:] = x
        a.setdiag(x[:3])
        return np.sum(a @ B)

    with pytest.raises(NoRule, match="setdiag of a sparse matrix whose data hold traced values"):
        grad(f)(X)
