"""Each form in which programs use a sparse matrix, in every format: SciPy's values, and derivatives by differences.

A program is run plain on changed elements, so the oracle is SciPy and extrapolated differences.
"""

import numpy as np
import pytest
import scipy.integrate as si
import scipy.optimize as so
import scipy.sparse as sp
import scipy.sparse.linalg as sla
from differences import slope

from effgrad import NoRule, compile, grad, hvp, jacobian, jvp, vmap

RNG = np.random.default_rng(0)
N = 5
ROWS, COLUMNS = np.array([0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 1, 1]), np.array([0, 1, 2, 3, 4, 1, 2, 3, 4, 0, 3, 3])
V, T = RNG.uniform(0.5, 1.5, 12) + np.repeat([3.0, 0.0], [5, 7]), np.cos(np.arange(12.0))
B, S = RNG.normal(size=(2, N, N))
S = np.where(np.abs(S) > 0.8, S, 0.0)
PLAIN, MATRIX = sp.csr_array(S), sp.csr_matrix(S)
MASK = np.array([True, False, True, True, False])


def csr(v):
    return sp.csr_array((v, (ROWS, COLUMNS)), (N, N))


def symmetric(v):
    return csr(v) @ csr(v).T + sp.eye_array(N)


def doubled(v):
    a = csr(v)
    a.data *= 2.0
    return a


def first_replaced(v):
    a = csr(v)
    kept = a.copy()
    a.data[0] = v[5]
    a.data[1:3] += v[6:8]
    return a + 3.0 * kept


def replaced(v):
    a = csr(v)
    a.data = np.sin(a.data)
    return a


def of_blocks(v):
    a = csr(v)[:4, :4].tobsr((2, 2))
    a.data[0] *= v[1]
    return a


def augmented(v):
    a = csr(v)
    same = a
    a += PLAIN
    a *= v[0]
    a /= 2.0
    a -= sp.csc_array(S)
    return a + same


def one_more(v):
    a = csr(v).tolil()
    a[0, 0] += v[3]
    a[1] = v[:5]
    a[2, 1:3] = v[3:5] * a[0, 0]
    return a


def negative_is_another(v):
    a = csr(v).tolil()
    b = -a
    b[0, 0] = v[7]
    return a.tocsr() + 2.0 * b.tocsr()


def diagonal_is_set(v):
    a = csr(v)
    a.setdiag(v[:5] ** 2)
    a.setdiag(v[0], k=1)
    return a


def smaller(v):
    a = csr(v)
    a.resize((3, 4))
    return a


def of_a_dictionary(v):
    a = sp.dok_array((N, N))
    a[0, 1], a[3, 2] = v[0], v[0] * v[1]
    return sum(value * key[0] for key, value in a.items()) + a.get((2, 2), 0.0) + a.get((0, 1)) * a[3, 2]


FORMS = {
    # Elements that a program writes to.
    "data doubled": doubled, "data replaced in part": first_replaced, "data replaced": replaced, "blocks": of_blocks,
    "augmented": augmented, "lil written": one_more, "a negative is another": negative_is_another,
    "diagonal set": diagonal_is_set, "resized": smaller, "dok": of_a_dictionary,
    # Vectors.
    "coo of one axis": lambda v: sp.coo_array((v[:4], ([0, 2, 2, 4],)), shape=(6,)),
    "row": lambda v: csr(v)[1], "column": lambda v: csr(v)[:, 3], "row product": lambda v: csr(v)[1] @ v[:5],
    "row of rows": lambda v: csr(v)[1] @ csr(v), "product with a row": lambda v: csr(v) @ csr(v)[1],
    "rows added": lambda v: csr(v)[1] * 2.0 - csr(v)[2] + csr(v)[3].multiply(B[0]),
    "sum of a row": lambda v: csr(v)[1].sum() * csr(v)[2].mean(axis=0),
    "one row": lambda v: csr(v)[[1]] @ v[:5], "ellipsis": lambda v: csr(v)[..., 1],
    # Comparisons and extremes.
    "mask": lambda v: (csr(v) > 1.0) * v[0], "places": lambda v: csr(v).multiply(csr(v) > 1.0),
    "not zero": lambda v: (csr(v) != 0) * v[0], "less than a matrix": lambda v: (csr(v) < PLAIN) * v[0],
    "not a matrix": lambda v: (csr(v) != PLAIN) * v[0], "elements of a mask": lambda v: csr(v)[S != 0],
    "maximum": lambda v: csr(v).maximum(PLAIN) + csr(v).minimum(PLAIN), "max": lambda v: csr(v).max() * v,
    "min": lambda v: sp.csr_array(B @ np.diag(v[:5])).min() + csr(v).min(),
    "count": lambda v: csr(v).count_nonzero() * v, "number of elements": lambda v: csr(v).nnz * v,
    **{f"{name} along {axis} of {kind.__name__}": lambda v, name=name, axis=axis, kind=kind: getattr(
        kind((v, (ROWS, COLUMNS))), name)(axis=axis)
       for kind in (sp.csr_array, sp.csr_matrix, sp.coo_array) for name in ("max", "nanmin") for axis in (0, -1)},
    "nanmax": lambda v: sp.csr_array((np.append(v, np.nan), (np.append(ROWS, 4), np.append(COLUMNS, 0)))).nanmax() * v,
    "argmax": lambda v: (csr(v).argmax() + csr(v).argmin(axis=0) + csr(v).tocoo().argmax(axis=1)) * v[:5],
    # Functions of NumPy.
    "sqrt": lambda v: np.sqrt(csr(v)), "abs": lambda v: np.abs(-csr(v)), "times": lambda v: np.float64(2.0) * csr(v),
    "array times": lambda v: B * csr(v), "array minus": lambda v: B - csr(v), "sum": lambda v: np.sum(csr(v), axis=0),
    # Operands that broadcast.
    "by a row": lambda v: csr(v) * v[:5] + csr(v).multiply(v[:5, None]) + csr(v) / v[:5],
    "by a sparse row": lambda v: csr(v).multiply(csr(v)[[0]]), "a row by all": lambda v: csr(v)[[0]].multiply(csr(v)),
    "a row by an array": lambda v: csr(v)[[0]].multiply(B),
    # Other forms.
    "adjoint": lambda v: (sp.csr_matrix((v, (ROWS, COLUMNS))) * (1 + 2j)).getH().imag,
    "no power": lambda v: sp.csr_matrix((v, (ROWS, COLUMNS))) ** 0 * v[0],
    "swapped axes": lambda v: sp.swapaxes(csr(v).tocoo(), 0, 1) if hasattr(sp, "swapaxes") else csr(v).T,
    "ix": lambda v: csr(v)[np.ix_([0, 2], [1, 3])], "masks": lambda v: csr(v)[MASK][:, MASK],
    "elements": lambda v: csr(v)[[0, 1], [1, 3]], "iterated": lambda v: sum(r.sum() * k for k, r in enumerate(csr(v))),
    "parts": lambda v: (lambda a: a.data * (a.row + 2 * a.col))(csr(v).tocoo()),
    # scipy.sparse.linalg and csgraph.
    "norms": lambda v: np.stack([sla.norm(csr(v), o) for o in (None, 1, -1, np.inf, -np.inf)]),
    "norms of rows": lambda v: sla.norm(csr(v), axis=1) * sla.norm(csr(v), 1, axis=0) * sla.norm(MATRIX * v[0], axis=1),
    "expm": lambda v: sla.expm(csr(v).tocsc() * 0.1), "expm_multiply": lambda v: sla.expm_multiply(csr(v) * 0.1, v[:5]),
    "laplacian": lambda v: sp.csgraph.laplacian(symmetric(v)),
    "normed laplacian": lambda v: sp.csgraph.laplacian(symmetric(v), normed=True),
    "unit triangle": lambda v: sla.spsolve_triangular(sp.tril(csr(v), format="csr"), v[:5], unit_diagonal=True),
    "eigsh of an array": lambda v: sla.eigsh(symmetric(v).toarray(), 2, v0=np.ones(5))[0],
    "preconditioned one way": lambda v: sla.gmres(
        csr(v), v[:5], M=sla.LinearOperator((5, 5), sla.spilu(csr(V).tocsc()).solve), rtol=1e-13)[0],
    "cg of a column": lambda v: sla.cg(symmetric(v), v[:5].reshape(5, 1), rtol=1e-13)[0],
}  # fmt: skip


if hasattr(sp.coo_array, "tensordot"):  # from SciPy 1.16 on
    VECTOR = FORMS["coo of one axis"]
    FORMS |= {
        "explicit extremes": lambda v: csr(v).max(axis=0, explicit=True) * 2.0 - csr(v).min(axis=1, explicit=True),
        "tensordot": lambda v: csr(v).tocoo().tensordot((csr(v) * v[0]).tocoo(), axes=1),
        "tensordot of both axes": lambda v: csr(v).tocoo().tensordot(csr(v).T.tocoo(), ([0, 1], [1, 0])) * v,
        "tensordot with an array": lambda v: csr(v).tocoo().tensordot(np.stack([B, B * v[0]]), ([-1], [2])),
        "tensordot of vectors": lambda v: VECTOR(v)[:5].tocoo().tensordot(csr(v).tocoo(), 1),
    }


def array_of(result):
    return result.toarray() if sp.issparse(result) else result


@pytest.mark.thinned(4)
@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
@pytest.mark.parametrize("name", FORMS)
def test_values_and_derivatives_in_every_mode(name):
    program = FORMS[name]
    plain = array_of(program(V))
    value, change = jvp(lambda v: array_of(program(v)), (V,), (T,))
    np.testing.assert_allclose(value, plain, rtol=1e-12, atol=1e-13)
    assert np.shape(value) == np.shape(plain) and np.result_type(value) == np.result_type(plain)
    np.testing.assert_allclose(change, slope(lambda v: array_of(program(v)), V, T, 1e-3), rtol=1e-7, atol=1e-8)

    def f(v):
        return np.sum(np.sin(0.3 * array_of(program(v))))

    gradient = grad(f)(V)
    np.testing.assert_allclose(gradient @ T, slope(f, V, T, 1e-3), rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(hvp(f, V, T), slope(grad(f), V, T, 1e-3), rtol=1e-6, atol=1e-7)
    compiled = compile(grad(f))
    compiled(V * 1.01)
    np.testing.assert_allclose(compiled(V), gradient, rtol=1e-9, atol=1e-11)
    other = V if name.startswith("expm") else V * 1.01  # how often expm squares depends on the matrix
    np.testing.assert_allclose(vmap(grad(f))(np.stack([other, V]))[1], gradient, rtol=1e-9, atol=1e-11)


KINDS = "coo csr csc bsr dia lil dok".split()
# A statement in which a plain and a traced matrix meet, and one of a traced matrix alone.
PAIRS = [
    lambda a, b, v: a + b, lambda a, b, v: a - b, lambda a, b, v: a * b, lambda a, b, v: a @ b,
    lambda a, b, v: sp.hstack([a, b]), lambda a, b, v: sp.vstack([b, a]), lambda a, b, v: sp.kron(a, b),
    lambda a, b, v: sp.block_diag([a, b]),
]  # fmt: skip
ALONE = [
    lambda a, v: a * v[0], lambda a, v: v[0] * a, lambda a, v: a / v[0], lambda a, v: a @ v[:5], lambda a, v: v[:5] @ a,
    lambda a, v: a @ (B * v[0]), lambda a, v: (B * v[0]) @ a, lambda a, v: B * v[0] - a, lambda a, v: a + B * v[0],
    lambda a, v: a.multiply(B * v[0]), lambda a, v: a.T @ v[:5], lambda a, v: a.dot(v[:5]), lambda a, v: -a * v[0],
]  # fmt: skip
OF_TRACED = [
    lambda a, v: a.sum(), lambda a, v: a.sum(axis=0), lambda a, v: a.diagonal(), lambda a, v: a.trace(),
    lambda a, v: abs(-a), lambda a, v: a.copy(), lambda a, v: a.mean(axis=1), lambda a, v: a.power(2),
    lambda a, v: a.astype(float), lambda a, v: a.conj(), lambda a, v: a.reshape(1, 25), lambda a, v: sp.tril(a),
    lambda a, v: a.transpose().tocsr(), lambda a, v: a.nnz * v[0], lambda a, v: a.count_nonzero() * v[0],
    lambda a, v: a.tocsr()[1:3, 2],
]  # fmt: skip


def agrees(f):
    value, change = jvp(lambda v: array_of(f(v)), (V,), (T,))
    np.testing.assert_allclose(value, array_of(f(V)), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(change, slope(lambda v: array_of(f(v)), V, T, 1e-3), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_every_format_meets_every_other(kind):
    plain = PLAIN.asformat(kind)
    for other in KINDS:
        for pair in PAIRS if other in ("csr", "dok") else PAIRS[:4]:
            agrees(lambda v, pair=pair, other=other: pair(plain, csr(v).asformat(other), v))
            agrees(lambda v, pair=pair, other=other: pair(csr(v).asformat(other), plain, v))


@pytest.mark.parametrize("kind", KINDS)
def test_every_format_alone(kind):
    plain = PLAIN.asformat(kind)
    for form in ALONE:
        agrees(lambda v, form=form: form(plain, v))
    for form in ALONE + OF_TRACED:
        agrees(lambda v, form=form: form(csr(v).asformat(kind), v))


@pytest.mark.parametrize(
    "f, said",
    [
        (lambda v: csr(v) >= 0, "greater_equal .* is dense: write A.toarray"),
        (lambda v: csr(v) == PLAIN, "equal .* is dense"),
        (lambda v: np.cos(csr(v)), "numpy.cos of a sparse matrix"),
        (lambda v: setattr(csr(v), "name", 1), "cannot be set"),
        (lambda v: csr(v).tolil().data, "write A.tocsr"),
        (lambda v: sla.spilu(csr(v).tocsc()), r"write spilu\(effgrad.stop_gradient\(A\)\)"),
        (lambda v: sla.eigs(csr(v), 2, M=PLAIN), "use eigsh where both are symmetric"),
        (lambda v: sp.csgraph.dijkstra(csr(v)), "in the constant graph"),
        (lambda v: sp.csgraph.minimum_spanning_tree(csr(v)), "in the constant graph"),
    ],
)  # fmt: skip
def test_a_form_without_a_rule_is_refused_with_what_to_write(f, said):
    with pytest.raises(NoRule, match=said):
        jvp(lambda v: f(v) or v, (V,), (T,))


GIVEN = {
    "solve_ivp": lambda p: si.solve_ivp(
        lambda t, y: -p * y, (0.0, 1.0), np.ones(3), method="BDF", jac=lambda t, y: sp.diags([-p], [0]).tocsc(),
        rtol=1e-9, atol=1e-11,
    ).y[:, -1],
    "least_squares": lambda p: so.least_squares(
        lambda x: p * x**3 - 1, np.ones(3), jac=lambda x: sp.diags([3 * p * x**2], [0]).tocsr(), xtol=1e-14, ftol=1e-14,
        gtol=1e-14,
    ).x,
    "minimize": lambda p: so.minimize(
        lambda x: np.sum((x - p) ** 4 + (x - 1) ** 2), np.ones(3), jac=lambda x: 4 * (x - p) ** 3 + 2 * (x - 1),
        hess=lambda x: sp.diags([12 * (x - p) ** 2 + 2], [0]).tocsr(), method="trust-constr",
        options={"gtol": 1e-12, "xtol": 1e-12},
    ).x,
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", GIVEN)
def test_sparse_jacobians_that_follow_parameters_are_given_to_solvers(name):
    """They were refused for their shape, and a compiled program was no valid Python."""
    p = np.array([0.7, 1.3, 0.4])
    expected = np.stack([(GIVEN[name](p + e) - GIVEN[name](p - e)) / 2e-3 for e in 1e-3 * np.eye(3)], axis=1)
    found = jacobian(GIVEN[name])
    np.testing.assert_allclose(found(p), expected, rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(compile(found)(p), found(p), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(vmap(found)(np.stack([p, p]))[1], found(p), rtol=1e-9, atol=1e-12)
