"""SciPy's sparse matrices of traced elements: values are SciPy's, derivatives those of dense arrays."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as sla

import effgrad
from effgrad import compile, grad, hessian, jvp, vmap
from effgrad.modes import READABLE

RNG = np.random.default_rng(0)
N = 5
ROWS = np.array([0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 1, 1])
COLUMNS = np.array([0, 1, 2, 3, 4, 1, 2, 3, 4, 0, 3, 3])  # (1, 3) twice
V = RNG.uniform(0.5, 1.5, 12) + np.repeat([3.0, 0.0], [5, 7])
B, S = RNG.normal(size=(2, N, N))
S = np.where(np.abs(S) > 0.8, S, 0.0)
W = RNG.normal(size=(N, N))


def dense(v, places=(ROWS, COLUMNS), shape=(N, N)):
    """The oracle's matrix: every element is added where it belongs, by a product with a plain array."""
    spread = np.zeros((shape[0] * shape[1], len(v)))
    spread[np.asarray(places[0]) * shape[1] + places[1], np.arange(len(v))] = 1.0
    return np.reshape(spread @ v, shape)


def csr(v, upright=True):
    return sp.csr_array((v, (ROWS, COLUMNS) if upright else (COLUMNS, ROWS)), (N, N))


def csc(v):
    return sp.csc_array((v, (ROWS, COLUMNS)), (N, N))


def filled(kind):
    def build(v):
        a = getattr(sp, kind)((N, N))
        for k in range(len(v)):
            a[ROWS[k], COLUMNS[k]] = a[ROWS[k], COLUMNS[k]] + v[k]
        return a.tocsr()

    return build


def assigned(matrix, v):
    for k in range(len(v)):
        matrix[k % N, k // N] = v[k] ** 2
    return matrix if isinstance(matrix, np.ndarray) else matrix.tocsr()


CSR = sp.csr_array((np.arange(1.0, 13.0), (ROWS, COLUMNS)), (N, N))
DIAGONALS = [(0, 5), (1, 4), (-2, 3)]
# Each program as it is written with SciPy's matrices, and on dense arrays.
PROGRAMS = {
    "coo_array": (lambda v: sp.coo_array((v, (ROWS, COLUMNS)), (N, N)), dense),
    "sum of a list": (lambda v: np.sum([csr(v), CSR, csr(2.0 * v)]), lambda v: 3.0 * dense(v) + CSR.toarray()),
    "sums of lists": (lambda v: np.add([csr(v), CSR], [CSR, csr(v)])[1], lambda v: dense(v) + CSR.toarray()),
    "differences of a list": (lambda v: np.subtract.reduce([CSR, csr(v)]), lambda v: CSR.toarray() - dense(v)),
    "coo_matrix tocsc": (lambda v: sp.coo_matrix((v, (ROWS, COLUMNS)), shape=(N, N)).tocsc(), dense),
    "csr_matrix": (lambda v: sp.csr_matrix((v, (ROWS, COLUMNS))), dense),
    "csc_array": (lambda v: sp.csc_array((v, (ROWS, COLUMNS)), shape=(N, N)), dense),
    "csr of indices": (
        lambda v: sp.csr_array((v[:11], CSR.indices, CSR.indptr), (N, N)),
        lambda v: dense(v[:11], (np.repeat(np.arange(N), np.diff(CSR.indptr)), CSR.indices)),
    ),
    "of a dense array": (lambda v: sp.csr_array(dense(v)), dense),
    "lil": (filled("lil_matrix"), dense),
    "dok": (filled("dok_array"), dense),
    "numpy of a matrix and a number": (
        lambda v: np.multiply(sp.csr_matrix(csr(v)), v[0]) + np.divide(csr(v), 2.0),
        lambda v: dense(v) * v[0] + dense(v) / 2,
    ),
    "filled from another matrix": (
        lambda v: assigned(sp.eye(N, format="lil"), v) + assigned(sp.identity(N).todok(), v[:3]) + assigned(
            sp.csr_array(np.eye(N)).asformat("lil"), v),
        lambda v: 2 * assigned(np.eye(N), v) + assigned(np.eye(N), v[:3]),
    ),
    "formats": (lambda v: sp.coo_array((v, (ROWS, COLUMNS))).tolil().tocsc().todok().tobsr().todia().tocoo(), dense),
    "diags": (
        lambda v: sp.diags([v[:5], v[5:9], v[9:12]], [0, 1, -2]),
        lambda v: np.diag(v[:5]) + np.diag(v[5:9], 1) + np.diag(v[9:12], -2),
    ),
    "diags_array of numbers": (
        lambda v: sp.diags_array([v[0], 2.0, v[1]], offsets=[-1, 0, 1], shape=(N, N), format="csr"),
        lambda v: v[0] * np.eye(N, k=-1) + 2.0 * np.eye(N) + v[1] * np.eye(N, k=1),
    ),
    "spdiags": (
        lambda v: sp.spdiags(np.stack([v[:5], v[5:10]]), [0, 1], N, N),
        lambda v: np.diag(v[:5]) + np.diag(v[6:10], 1),
    ),
    "scaled": (lambda v: 2.0 * csr(v) * v[0] / v[1], lambda v: 2.0 * dense(v) * v[0] / v[1]),
    "plain scaled": (
        lambda v: v[0] * CSR + CSR / v[1] - CSR * v[2], lambda v: CSR.toarray() * (v[0] + 1 / v[1] - v[2])),
    "sums": (
        lambda v: csr(v) + sp.csr_array(S) - sp.eye_array(N) * v[3],
        lambda v: dense(v) + S - np.eye(N) * v[3],
    ),
    "plain sums": (lambda v: sp.csc_array(S) - csc(v), lambda v: S - dense(v)),
    "dense sums": (lambda v: B + csr(v) - B * v[0], lambda v: B + dense(v) - B * v[0]),
    "multiply": (
        lambda v: csr(v).multiply(sp.csr_array(S)) + csr(v) * B,
        lambda v: dense(v) * S + dense(v) * B,
    ),
    "plain multiply": (lambda v: sp.csr_array(S).multiply(dense(v)), lambda v: S * dense(v)),
    "products": (
        lambda v: csr(v) @ sp.csc_array(S) @ sp.coo_array((v, (COLUMNS, ROWS))),
        lambda v: dense(v) @ S @ dense(v).T,
    ),
    "plain product": (lambda v: sp.csc_array(S) @ csr(v), lambda v: S @ dense(v)),
    "matrix product": (lambda v: sp.csr_matrix((v, (ROWS, COLUMNS))) * sp.csr_matrix(S), lambda v: dense(v) @ S),
    "with vectors": (
        lambda v: np.outer(csr(v) @ v[:5], v[5:10] @ csr(v)),
        lambda v: np.outer(dense(v) @ v[:5], v[5:10] @ dense(v)),
    ),
    "with arrays": (
        lambda v: csr(v) @ B + B @ csr(v).T,
        lambda v: dense(v) @ B + B @ dense(v).T,
    ),
    "slices": (
        lambda v: csr(v)[1:, ::2] @ csr(v)[[0, 3, 4], :4],
        lambda v: dense(v)[1:, ::2] @ dense(v)[[0, 3, 4], :4],
    ),
    "rows and elements": (
        lambda v: csc(v)[[1], :].toarray() * csr(v)[1, 3],
        lambda v: dense(v)[[1], :] * dense(v)[1, 3],
    ),
    "diagonal and trace": (
        lambda v: csr(v).diagonal(1) * csr(v).trace(),
        lambda v: np.diagonal(dense(v), 1) * np.trace(dense(v)),
    ),
    "sums along axes": (
        lambda v: csr(v).sum(axis=0) * csr(v).mean(axis=1),
        lambda v: dense(v).sum(axis=0) * dense(v).mean(axis=1),
    ),
    "power": (lambda v: csr(v).power(3), lambda v: dense(v) ** 3),
    "matrix power": (
        lambda v: sp.csr_matrix((v, (ROWS, COLUMNS))) ** 3, lambda v: np.linalg.matrix_power(dense(v), 3)),
    "functions": (
        lambda v: abs(-csr(v)).arcsinh().tanh(), lambda v: np.tanh(np.arcsinh(dense(np.abs(v))))),
    "block_array": (
        lambda v: sp.block_array([[csr(v), None], [sp.eye_array(N) * v[0], CSR]]),
        lambda v: np.block([[dense(v), np.zeros((N, N))], [np.eye(N) * v[0], CSR.toarray()]]),
    ),
    "stacks": (
        lambda v: sp.hstack([sp.vstack([CSR, csr(v)]), sp.eye_array(2 * N)]),
        lambda v: np.hstack([np.vstack([CSR.toarray(), dense(v)]), np.eye(2 * N)]),
    ),
    "block_diag": (
        lambda v: sp.block_diag([csr(v), np.outer(v[:2], v[2:4])]),
        lambda v: np.block([[dense(v), np.zeros((N, 2))], [np.zeros((2, N)), np.outer(v[:2], v[2:4])]]),
    ),
    "kron": (
        lambda v: sp.kron(csr(v), sp.diags([v[:3]], [0])),
        lambda v: np.kron(dense(v), np.diag(v[:3])),
    ),
    "kron with the identity": (
        lambda v: sp.kron(sp.eye_array(2), csr(v), format="csr"),
        lambda v: np.kron(np.eye(2), dense(v)),
    ),
    "kronsum": (
        lambda v: sp.kronsum(sp.diags([v[:2]], [0]), sp.csr_array(S)),
        lambda v: np.kron(np.eye(N), np.diag(v[:2])) + np.kron(S, np.eye(2)),
    ),
    "tril and triu": (
        lambda v: sp.tril(csr(v)) @ sp.triu(csr(v), 1),
        lambda v: np.tril(dense(v)) @ np.triu(dense(v), 1),
    ),
    "its elements": (
        lambda v: sp.csr_array((np.sin(csr(v).data), CSR.indices, CSR.indptr)),
        lambda v: np.sin(dense(v)),
    ),
    "spsolve": (lambda v: sla.spsolve(csc(v), v[:5]), lambda v: np.linalg.solve(dense(v), v[:5])),
    "spsolve of several": (
        lambda v: sla.spsolve(csc(v), B * v[0]),
        lambda v: np.linalg.solve(dense(v), B * v[0]),
    ),
    "splu": (
        lambda v: (lambda lu: lu.solve(v[:5]) + lu.solve(v[5:10], trans="T"))(sla.splu(csc(v))),
        lambda v: np.linalg.solve(dense(v), v[:5]) + np.linalg.solve(dense(v).T, v[5:10]),
    ),
    "splu of a constant": (
        lambda v: sla.splu(CSR.tocsc()).solve(v[:5]), lambda v: np.linalg.solve(CSR.toarray(), v[:5])),
    "factorized": (
        lambda v: sla.factorized(csc(v))(v[:5]), lambda v: np.linalg.solve(dense(v), v[:5])),
    "cg": (
        lambda v: sla.cg(csr(v) @ csr(v, False), v[:5], rtol=1e-13)[0],
        lambda v: np.linalg.solve(dense(v) @ dense(v).T, v[:5]),
    ),
    "gmres": (
        lambda v: sla.gmres(csr(v), v[:5], rtol=1e-13, M=sp.diags(1 / V[:5]))[0],
        lambda v: np.linalg.solve(dense(v), v[:5]),
    ),
    "eigsh": (
        lambda v: sla.eigsh(csr(v) + csr(v, False), 2, which="LA", v0=V[:5])[0],
        lambda v: np.linalg.eigvalsh(dense(v) + dense(v).T)[-2:],
    ),
    "svds": (
        lambda v: (lambda u, s, vh: (u * s**2) @ vh)(*sla.svds(csc(v), 2, v0=V[:5])),
        lambda v: (lambda u, s, vh: (u[:, :2] * s[:2] ** 2) @ vh[:2])(*np.linalg.svd(dense(v))),
    ),
    "cg of an operator": (
        lambda v: sla.cg(sla.LinearOperator((N, N), lambda x: csr(v) @ (csr(v, False) @ x)), v[:5], rtol=1e-13)[0],
        lambda v: np.linalg.solve(dense(v) @ dense(v).T, v[:5]),
    ),
    "gmres of a sum of operators": (
        lambda v: sla.gmres(
            sla.aslinearoperator(csr(v)) + 2.0 * sla.LinearOperator((N, N), lambda x: v[:5] * x, dtype=float), B[0],
            rtol=1e-13)[0],
        lambda v: np.linalg.solve(dense(v) + 2 * np.diag(v[:5]), B[0]),
    ),
    "bicg of an operator": (
        lambda v: sla.bicg(
            sla.LinearOperator((N, N), lambda x: dense(v) @ x, rmatvec=lambda x: dense(v).T @ x), v[:5], rtol=1e-13)[0],
        lambda v: np.linalg.solve(dense(v), v[:5]),
    ),
    "eigsh of an operator": (
        lambda v: (lambda w, x: (x * w) @ x.T)(*sla.eigsh(
            sla.LinearOperator((N, N), lambda x: (dense(v) + dense(v).T) @ x), 2, which="LA", v0=V[:5])),
        lambda v: (lambda w, x: (x[:, -2:] * w[-2:]) @ x[:, -2:].T)(*np.linalg.eigh(dense(v) + dense(v).T)),
    ),
    "gmres from a start": (
        lambda v: sla.gmres(csr(v), v[:5], x0=np.sin(v[2:7]), rtol=1e-13)[0],
        lambda v: np.linalg.solve(dense(v), v[:5]),
    ),
    "lsqr": (
        lambda v: sla.lsqr(csr(v)[:, :4], v[:5], atol=1e-14, btol=1e-14)[0],
        lambda v: np.linalg.solve(dense(v)[:, :4].T @ dense(v)[:, :4], dense(v)[:, :4].T @ v[:5]),
    ),
    "inv": (lambda v: sla.inv(csc(v)), lambda v: np.linalg.inv(dense(v))),
    "norm": (lambda v: sla.norm(csr(v)), lambda v: np.linalg.norm(dense(v))),
}  # fmt: skip


def array_of(result):
    return result.toarray() if sp.issparse(result) else result


def number_of(program):
    """A number that depends on every element of what a program gives."""
    return lambda v: np.sum(np.sin(0.3 * array_of(program(v))))


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_derivatives_are_those_of_dense_arrays(name):
    program, oracle = PROGRAMS[name]
    np.testing.assert_allclose(array_of(program(V)), oracle(V), rtol=1e-9, atol=1e-12)
    t = np.cos(np.arange(12.0))
    value, change = jvp(lambda v: array_of(program(v)), (V,), (t,))
    np.testing.assert_allclose(value, array_of(program(V)), rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(change, jvp(oracle, (V,), (t,))[1], rtol=1e-7, atol=1e-9)
    f, g = number_of(program), number_of(oracle)
    np.testing.assert_allclose(grad(f)(V), grad(g)(V), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(
        jvp(grad(f), (V,), (t,))[1], jvp(grad(g), (V,), (t,))[1], rtol=1e-6, atol=1e-8)  # fmt: skip


@pytest.mark.parametrize("mode", READABLE)
@pytest.mark.parametrize("name", ["coo_matrix tocsc", "products", "splu", "eigsh"])
def test_every_mode(name, mode):
    program, oracle = PROGRAMS[name]
    np.testing.assert_allclose(grad(number_of(program), mode=mode)(V), grad(number_of(oracle))(V), rtol=1e-7, atol=1e-9)


@pytest.mark.thinned(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_and_batched(name):
    program, oracle = PROGRAMS[name]
    expected = grad(number_of(oracle))(V * 1.1)
    compiled = compile(grad(number_of(program)))
    compiled(V)
    np.testing.assert_allclose(compiled(V * 1.1), expected, rtol=1e-9, atol=1e-11)
    assert "1 programs" in repr(compiled)
    batch = vmap(grad(number_of(program)))(np.stack([V, V * 1.1]))
    np.testing.assert_allclose(batch[1], expected, rtol=1e-9, atol=1e-11)
    f = number_of(program)
    np.testing.assert_allclose(hessian(f)(V), hessian(number_of(oracle))(V), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", ["cg", "gmres", "lgmres", "minres"])
def test_starts_that_differ_in_a_batch(name):
    """With a start of each member, SciPy was given the array of all."""
    starts = np.array([[1.0, 2.0, 3.0], [30.0, -10.0, 0.0]])
    matrix = sp.csr_array(np.array([[3.0, -1.0, 0.0], [-1.0, 3.0, -1.0], [0.0, -1.0, 3.0]]))

    def roughly(a, start):
        return getattr(sla, name)(a * matrix, np.arange(3.0), x0=start, rtol=1e-2)[0]

    scales = np.array([1.0, 2.0])
    expected = [roughly(a, start) for a, start in zip(scales, starts, strict=True)]
    for batched in (vmap(roughly), compile(vmap(roughly))):
        np.testing.assert_array_equal(batched(scales, starts), expected)
    total = grad(lambda a: np.sum(vmap(roughly)(a, starts)))(scales)
    np.testing.assert_allclose(total, [-np.linalg.solve(matrix.toarray(), np.arange(3.0)).sum() / a**2 for a in scales])


def test_complex_systems():
    def power(v, array, solve):
        a = array(v) + 1j * 0.3 * array(np.sin(v))
        return np.sum(np.abs(solve(a, np.exp(1j * v[:5]))) ** 2)

    def matrix(v):
        return sp.csc_array((v, (ROWS, COLUMNS)), (N, N))

    got = grad(lambda v: power(v, matrix, sla.spsolve))(V)
    np.testing.assert_allclose(got, grad(lambda v: power(v, dense, np.linalg.solve))(V), rtol=1e-9)


def test_a_traced_matrix_passes_for_scipys():
    def f(v):
        a = sp.csr_matrix((v, (ROWS, COLUMNS)))
        assert sp.issparse(a) and isinstance(a, sp.csr_matrix) and sp.isspmatrix_csr(a)
        assert a.shape == (N, N) and a.nnz == 11 and a.format == "csr" and a.dtype == float
        assert list(a.indptr) == list(sp.csr_matrix((V, (ROWS, COLUMNS))).indptr)
        rows, columns, values = sp.find(a)
        return np.sum(values * (rows + 2 * columns))

    np.testing.assert_allclose(grad(f)(V), ROWS + 2 * COLUMNS, rtol=1e-14)


def test_an_element_that_happens_to_be_zero_stays():
    v = V.copy()
    v[5] = 0.0

    def f(v):
        a = sp.coo_array((v, (ROWS, COLUMNS))).tocsr()
        a.eliminate_zeros()
        return np.sum((a @ sp.csr_array(np.eye(N))).toarray() * W)

    np.testing.assert_allclose(grad(f)(v), W[ROWS, COLUMNS], rtol=1e-14)


A, OUTSIDE = sp.csr_array((V, (ROWS, COLUMNS))), sp.lil_matrix((N, N))


@pytest.mark.parametrize(
    "f, said",
    [
        (lambda v: OUTSIDE.__setitem__((0, 0), v[0]) or OUTSIDE, "made outside the derivative"),
        (lambda v: A + v[0], "has no derivative rule: write"),
        (lambda v: csr(v).check_format(True) or csr(v)._maximum_minimum, "_maximum_minimum has no derivative rule"),
        (lambda v: sla.splu(csc(v)).L, "its solve has one"),
        (lambda v: sla.spsolve(sp.csc_array((v * 0.0, (ROWS, COLUMNS))), v[:5]), "singular"),
        (lambda v: sla.cg(csc(v), v[:5], maxiter=1, rtol=1e-14)[0], "cg did not converge"),
        (
            lambda v: sla.cg(sla.LinearOperator((5, 5), lambda x: v[5:10] * x), B[0], maxiter=1, rtol=1e-14)[0],
            "cg did not converge",
        ),
        (lambda v: sla.eigs(csr(v), 1, M=sp.eye_array(N))[0], "use eigsh"),
        (lambda v: sp.csr_array((v, (v, COLUMNS))).sum(), "rows and columns of a sparse matrix are constants"),
        (lambda v: csr(v) / sp.eye_array(N), r"A.toarray\(\) / B.toarray\(\)"),
    ],
)
def test_what_has_no_rule_is_refused_with_what_to_write(f, said):
    with pytest.raises(effgrad.EffgradError, match=said), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        grad(lambda v: np.sum(array_of(f(v))))(V)


def test_wrong_shapes_are_scipys_errors():
    with pytest.raises(ValueError, match="do not fit"):
        grad(lambda v: np.sum(sla.spsolve(csc(v), v[:4])))(V)
    with pytest.raises(ValueError, match="dimension mismatch"):
        grad(lambda v: np.sum(csc(v) @ v))(V)


def test_a_second_derivative_through_a_tie_and_a_sparse_solve():
    """The Hessian through the largest of two equal elements, as in `penalize` of scikit-fem, was NaN."""
    ends = np.array([0, 5])
    stiffness = sp.diags_array([2 * np.ones(6), -np.ones(5), -np.ones(5)], offsets=[0, 1, -1], format="csr")

    def f(k):
        matrix = (stiffness * k).tocsr()
        diagonal = matrix.diagonal()
        diagonal[ends] = 1 / (1e-10 / np.linalg.norm(diagonal[ends], np.inf))
        matrix.setdiag(diagonal)
        return np.sum(sla.spsolve(matrix.tocsc(), np.ones(6)) ** 2)

    # The solution is that of the inner rows divided by k, but for 1e-10.
    expected = f(1.0)
    np.testing.assert_allclose(grad(f)(1.3), -2 * expected / 1.3**3, rtol=1e-8)
    np.testing.assert_allclose(grad(grad(f))(1.3), 6 * expected / 1.3**4, rtol=1e-8)


@pytest.mark.parametrize("solve", [sla.eigsh, sla.eigs, sla.svds], ids=["eigsh", "eigs", "svds"])
def test_a_checkpoint_finds_the_same_eigenvalues_again(solve):
    """ARPACK drew its start, so the last digits differed in the second run, and the checkpoint was refused."""

    def largest(b):
        """4 + 2 b cos(pi / 7), and 4 + 2 b cos(2 pi / 7)."""
        matrix = sp.diags_array([b, 4.0, b], offsets=[-1, 0, 1], shape=(6, 6), format="csc")
        return np.sum(np.real(solve(matrix, 2)[1 if solve is sla.svds else 0]))

    expected = 2 * np.cos(np.pi / 7) + 2 * np.cos(2 * np.pi / 7)
    for _ in range(3):
        slope = grad(lambda b: effgrad.checkpoint(largest, b))(0.7)
        np.testing.assert_allclose(slope, expected, rtol=1e-10)


def test_columns_that_a_compiled_program_computes():
    """Whole numbers computed from the argument were refused as rows and columns; each pattern is a path now."""

    def f(x):
        columns = np.floor(3 * x).astype(int) % 3
        by_places = sp.csr_matrix((x * x, (np.arange(3), columns)), shape=(3, 3))
        by_rows = sp.csr_matrix((x, columns, [0, 1, 2, 3]), shape=(3, 3))
        by_list = sp.coo_matrix((x, ([int(2 * x[0]), 1, 2], [0, 1, 2])), shape=(3, 3))
        return (by_places @ np.array([1.0, 2.0, 5.0])).sum() + (by_rows @ x).sum() + (by_list @ [1.0, 2.0, 3.0]) @ x

    compiled = effgrad.compile(effgrad.grad(f))
    for x in (np.array([0.1, 0.5, 0.8]), np.array([0.9, 0.4, 0.2]), np.array([0.1, 0.5, 0.81])):
        h = 1e-6 * np.eye(3)
        wanted = [(f(x + step) - f(x - step)) / 2e-6 for step in h]
        np.testing.assert_allclose(compiled(x), wanted, rtol=1e-7)
