"""SciPy's sparse matrices (not arrays) and the `numpy.matrix` that they give; eigenvalues of sparse matrices.

The oracle is the plain program, with differences of its values.
"""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as sl
from differences import partials

from effgrad import compile, grad, hessian, jacobian, jvp, stop_gradient, vmap

ROWS, COLUMNS, W = [0, 0, 1, 2, 2, 1], [0, 1, 1, 2, 0, 2], np.array([1.0, -2.0, 0.5])
V = np.array([1.3, 0.7, 0.9])


def matrix(v):
    elements = np.stack([v[0], v[1], v[2], v[0] * v[1], 1.0 + v[2], v[1] ** 2])
    return sp.csr_matrix((elements, (ROWS, COLUMNS)))


def squared(a):
    return (a * a).toarray()[0, 1]


FORMS = {
    "sum": lambda v: np.asarray(matrix(v).sum(axis=0)).ravel() @ W,
    "sums of rows": lambda v: matrix(v).sum(axis=1).A1 @ W + matrix(v).sum(1).getA1()[0],
    "mean": lambda v: matrix(v).mean(axis=0)[0, 1],
    "matrix times matrix": lambda v: (matrix(v).sum(axis=0) * matrix(v).todense())[0, 1],
    "sparse times matrix": lambda v: (matrix(v) * matrix(v).todense())[0, 1],
    "sparse at column": lambda v: (matrix(v) @ matrix(v).sum(axis=1))[0, 0],
    "matrix at array": lambda v: (matrix(v).todense() @ W)[0, 1] + (matrix(v).todense() * W[:, None])[2, 0],
    "product, list": lambda v: np.dot(matrix(v).todense(), v[:3])[0, 1] + matrix(v).sum(0).tolist()[0][1],
    "power": lambda v: (matrix(v).todense() ** 3)[0, 1],
    "inverse, transposed": lambda v: matrix(v).todense().I[0, 0] + (matrix(v).todense().T * matrix(v))[0, 0],
    "divided by sums": lambda v: np.sum(np.asarray(matrix(v).todense() / matrix(v).sum(axis=1)) ** 2),
    "elementwise": lambda v: np.exp(matrix(v).todense())[0, 1] + np.multiply(matrix(v).todense(), 2.0)[0, 1],
    "chosen elements": lambda v: matrix(v)[[0, 1, 2], [0, 1, 2]].sum() + matrix(v)[[0, 1], [1, 2]][0, 1],
    "a column, a row": lambda v: matrix(v).todense()[:, 1][0, 0] + matrix(v).todense()[1].sum(),
    "solved": lambda v: np.linalg.solve(matrix(v).todense(), W)[0] + matrix(v).todense().max(axis=0)[0, 0],
    "difference": lambda v: (2.0 * matrix(v) - matrix(v).todense()).sum(),
    "of coo": lambda v: squared(sp.coo_matrix((v, ([0, 0, 1], [0, 1, 1]))).tocsr()),
    "of transposed coo": lambda v: squared(sp.coo_matrix((v, ([0, 1, 1], [0, 0, 1]))).T),
    "many right-hand sides": lambda v: squared(sl.spsolve(matrix(v).tocsc(), matrix(v).T.tocsc())),
    "inverse": lambda v: squared(sl.inv(matrix(v).tocsc())),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_matrix_is_numpys(name):
    f = FORMS[name]
    value, tangent = jvp(f, (V,), (W,))
    assert value == pytest.approx(f(V), rel=1e-14)
    assert tangent == pytest.approx(partials(f, V, 1e-4) @ W, rel=1e-6, abs=1e-8)
    np.testing.assert_allclose(grad(f)(V), partials(f, V, 1e-4), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(compile(grad(f))(1.01 * V), grad(f)(1.01 * V), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(vmap(f)(np.stack([V, 1.1 * V])), [f(V), f(1.1 * V)], rtol=1e-13)


MOVES = {
    "tocsr": lambda a: a.tocsr(), "tocsc": lambda a: a.tocsc(), "tocoo": lambda a: a.tocoo(), "T": lambda a: a.T,
    "tolil": lambda a: a.tolil(), "todia": lambda a: a.todia(), "tobsr": lambda a: a.tobsr(), "abs": abs,
    "minus": lambda a: -a, "reshape": lambda a: a.reshape((1, 4)), "twice": lambda a: 2 * a, "tril": sp.tril,
    "asformat": lambda a: a.asformat("csc"), "vstack": lambda a: sp.vstack([a, a]), "bmat": lambda a: sp.bmat([[a, a]]),
    "inv": lambda a: sl.inv(a.tocsc()), "sum": lambda a: a + a, "product": lambda a: a @ a,
    "block_diag": lambda a: sp.block_diag([a, a]), "power": lambda a: a.tocsr() ** 2,
    "index": lambda a: a.tocsr()[[0, 1]][:, [0, 1]], "astype": lambda a: a.astype(float),
}  # fmt: skip


@pytest.mark.parametrize("name", MOVES)
def test_a_matrix_stays_a_matrix_and_an_array_an_array(name):
    """`coo_matrix(...).tocsr()` was an array inside a derivative, whose `*` is another: its value was wrong."""

    def entries(kind, m):
        return kind((np.ones(4) * m, ([0, 1, 0, 1], [0, 1, 1, 1])), (2, 2))

    def check(m):
        for kind, base in ((sp.coo_matrix, sp.spmatrix), (sp.coo_array, sp.sparray)):
            traced, plain = MOVES[name](entries(kind, m)), MOVES[name](entries(kind, 1.5))
            assert isinstance(traced, base) and isinstance(plain, base)
            dense = jvp(lambda m, kind=kind: MOVES[name](entries(kind, m)).toarray(), (1.5,), (1.0,))[0]
            np.testing.assert_array_equal(dense, plain.toarray())
        return m

    jvp(check, (1.5,), (1.0,))


SIZE = 12
OUTER = np.ones(SIZE - 1)
START, WEIGHTS = np.ones(SIZE), np.cos(np.arange(3.0 * SIZE)).reshape(SIZE, 3)


def banded(*diagonals):
    return sp.diags_array(diagonals, offsets=[0, 1, -1], format="csc")


def stiffness(p):
    return banded(p[0] + np.arange(1.0, SIZE + 1) ** 1.3, p[1] * OUTER, p[1] * OUTER)


def mass(p):
    return banded(4 + p[2] * np.arange(SIZE), 0.5 * p[1] * OUTER, 0.5 * p[1] * OUTER)


def skew(p):
    return banded(p[0] * np.arange(1.0, SIZE + 1), p[1] * OUTER, p[2] * np.linspace(1, 3, SIZE - 1))


def spectrum(p):
    values = sl.eigs(skew(p), 3, v0=START)[0]
    return np.stack([np.sum(values).real, np.sum(values**2).real])


CONSTANT = stiffness([1.0, 0.4])
EIGENPROBLEMS = {
    "A and M": lambda p: sl.eigsh(stiffness(p), 3, mass(p), sigma=0.0, v0=START)[0],
    "vectors of A and M": lambda p: np.sum(WEIGHTS * sl.eigsh(stiffness(p), 3, M=mass(p), sigma=0.0, v0=START)[1] ** 2),
    "M alone": lambda p: sl.eigsh(CONSTANT, 3, M=mass(p), sigma=0.0, v0=START, return_eigenvectors=False),
    "eigs": spectrum,
    "vectors of eigs": lambda p: np.sum(WEIGHTS * np.abs(sl.eigs(skew(p), 3, v0=START)[1]) ** 2),
    "the largest singular value": lambda p: sl.norm(skew(p), 2),
}


@pytest.mark.parametrize("name", EIGENPROBLEMS)
def test_eigenvalues(name):
    f, p = EIGENPROBLEMS[name], np.array([1.0, 0.4, 0.3])
    expected = partials(f, p, 1e-4)
    for mode in ("forward", "reverse"):
        np.testing.assert_allclose(jacobian(f, mode=mode)(p), expected, rtol=1e-7, atol=1e-7)

    def g(p):
        return np.sum(np.sin(f(p)))

    np.testing.assert_allclose(hessian(g)(p), partials(grad(g), p, 1e-4), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(compile(grad(g))(1.01 * p), grad(g)(1.01 * p), rtol=1e-10)
    np.testing.assert_allclose(vmap(grad(g))(np.stack([p, 1.02 * p]))[1], grad(g)(1.02 * p), rtol=1e-10)


@pytest.mark.parametrize("form", ["csc", "csr", "coo", "lil", "dok", "dia", "bsr"])
def test_stop_gradient_gives_scipys_matrix_for_a_preconditioner(form):
    """An incomplete factorisation is a constant, on which the solution does not depend."""
    found = []

    def f(p):
        a = skew(p) + 20.0 * sp.eye_array(SIZE, format="csc")
        plain = stop_gradient(a.asformat(form))
        found.append((plain, a))
        m = sl.LinearOperator((SIZE, SIZE), sl.spilu(plain.tocsc()).solve)
        return np.sum(sl.gmres(a, START, rtol=1e-12, M=m)[0] ** 2)

    p = np.array([1.0, 0.4, 0.3])
    np.testing.assert_allclose(grad(f)(p), partials(f, p, 1e-4), rtol=1e-6, atol=1e-8)
    (plain, _), (outside, _) = found[0], found[-1]
    assert type(plain) is type(outside.asformat(form))
    np.testing.assert_allclose(plain.toarray(), (skew(p) + 20.0 * sp.eye_array(SIZE)).toarray(), rtol=1e-15)
