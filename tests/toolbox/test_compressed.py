"""Sparse Jacobians and Hessians are the dense ones, from few products; colourings keep their definitions."""

import itertools
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import effgrad
from effgrad import grad, hessian, jacobian
from effgrad.toolbox import colouring

X = np.linspace(0.3, 1.4, 12)
TABLE = np.arange(12)[::-1].copy()
SECOND = sp.diags_array([1.0, -2.0, 1.0], offsets=[-1, 0, 1], shape=(12, 12), format="csr")


def filled(x):
    y = np.zeros(11)
    y[1:] = x[:-2] * x[1:-1]
    y[0] = x[-1] ** 2
    y[::3] += np.sin(x[::3])
    return y


def boundary(x):
    """Jacobians of boundary value problems: a stencil, and one equation for all unknowns."""
    return np.concatenate([x[2:] - 2 * x[1:-1] + x[:-2] + x[1:-1] ** 3, [np.sum(x), x[0] * x[-1]]])


# Each function, and the most places that its pattern may have.
FUNCTIONS = {
    "differences": (lambda x: np.diff(x**2), 22), "stencil": (lambda x: x[2:] * x[:-2] - x[1:-1] ** 2, 30),
    "elementwise": (lambda x: np.where(x > 0.95, np.exp(x), np.sqrt(x)) * 2.0, 12),
    "gathered": (lambda x: x[TABLE] * x, 24),
    "filled": (filled, 30), "reshaped": (lambda x: (x.reshape(3, 4) ** 2).T.sum(axis=0), 12),
    "outer": (lambda x: np.outer(x[:3], x[3:6]), 18), "boundary": (boundary, 44),
    "padded": (lambda x: np.pad(x, 1)[2:] * x, 24),
    "sparse matrix": (lambda x: SECOND @ x + x**3, 34), "dense matrix": (lambda x: SECOND.toarray() @ np.sin(x), 34),
    "einsum": (lambda x: np.einsum("ij,j->ij", np.eye(4) + 1.0, x[:4] ** 2), 16), "convolved": (
        lambda x: np.convolve(x, [1.0, 2.0, 1.0], "same"), 36),
    "maximum": (lambda x: np.maximum(x[1:], x[:-1]), 22), "products": (lambda x: x.reshape(4, 3).prod(axis=1), 12),
    "cumulative": (lambda x: np.cumsum(x.reshape(4, 3), axis=1) ** 2, 36), "rolled": (lambda x: np.roll(x, 3) * x, 24),
    "solve": (lambda x: np.linalg.solve(np.diag(x[:4]) + 1.0, x[4:8]), 32), "constant": (lambda x: np.ones(3), 0),
    "assembled": (lambda x: sp.coo_array((x, (np.arange(12), TABLE))).tocsr() @ X, 12),
    "number": (lambda x: np.sum(x[:3]), 3),
    "loop": (lambda x: np.array([x[i] * x[i - 1] for i in range(1, 12)]), 22), "norms": (
        lambda x: np.linalg.norm(x.reshape(6, 2), axis=1), 12),
}  # fmt: skip


@pytest.mark.parametrize("mode", [None, "forward", "reverse"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_sparse_jacobian_is_the_dense_one(name, mode):
    f, most = FUNCTIONS[name]
    found = jacobian(f, mode=mode, sparse=True)
    matrix = found(X)
    step = 1e-6
    columns = [(np.ravel(f(X + step * e)) - np.ravel(f(X - step * e))) / (2 * step) for e in np.eye(12)]
    assert isinstance(matrix, sp.csr_array) and matrix.shape == (np.size(f(X)), 12)
    np.testing.assert_allclose(matrix.toarray(), np.stack(columns, axis=1), rtol=1e-6, atol=1e-8)
    assert found.pattern.nnz <= most
    dense = jacobian(f)(1.1 * X).reshape(matrix.shape)
    np.testing.assert_allclose(found(1.1 * X).toarray(), dense, rtol=1e-12, atol=1e-13)


def test_few_products_are_needed():
    tridiagonal = jacobian(lambda x: np.concatenate([[x[0]], x[2:] * x[1:-1] - x[:-2], [x[-1]]]), sparse=True)
    tridiagonal(np.ones(1000))
    assert tridiagonal.products == 3
    # One equation for all unknowns: a row that takes one pass back.
    arrow = jacobian(lambda x: np.array([np.sum(x**2), x[3] ** 2]), sparse=True)
    arrow(np.ones(500))
    assert arrow.products == 2


def test_pytrees_keywords_and_compiled_programs():
    def f(p, scale=1.0):
        return {"a": p["u"][1:] * p["u"][:-1] * scale, "b": p["v"] ** 2}

    p = {"u": np.arange(1.0, 5.0), "v": 3.0}
    expected = np.zeros((4, 5))
    for i in range(3):
        expected[i, [i, i + 1]] = 2.0 * p["u"][i + 1], 2.0 * p["u"][i]
    expected[3, 4] = 6.0
    for compiled in (False, True):
        found = jacobian(f, sparse=True, compiled=compiled)
        np.testing.assert_allclose(found(p, scale=2.0).toarray(), expected, rtol=1e-14)
        np.testing.assert_allclose(found(p, scale=2.0).toarray(), expected, rtol=1e-14)


def test_a_pattern_that_changes_is_found_anew():
    def f(x):
        return x[1:] * x[:-1] if x[0] > 0.5 else np.sum(x**2) * x[1:]

    found = jacobian(f, sparse=True)
    for x in (X + 1, X, X + 1):
        np.testing.assert_allclose(found(x).toarray(), jacobian(f)(x), rtol=1e-12, atol=1e-13)


def rosenbrock(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


HESSIANS = {
    "rosenbrock": rosenbrock, "arrow": lambda x: x[0] * np.sum(x[1:] ** 2), "separable": lambda x: np.sum(np.sin(x)),
    "grid": lambda x: np.sum((x.reshape(3, 4)[1:] - x.reshape(3, 4)[:-1]) ** 4) + np.sum(
        np.sin(x.reshape(3, 4)[:, 1:] * x.reshape(3, 4)[:, :-1])),
    "linear": lambda x: np.sum(x), "dense": lambda x: np.sum(x) ** 3,
}  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("mode", ["star", "acyclic"])
@pytest.mark.parametrize("name", HESSIANS)
def test_a_coloured_hessian_is_the_dense_one(name, mode, compiled):
    f = HESSIANS[name]
    step = 1e-6
    columns = [(grad(f)(X + step * e) - grad(f)(X - step * e)) / (2 * step) for e in np.eye(12)]
    matrix = hessian(f, mode=mode, compiled=compiled)(X)
    np.testing.assert_allclose(matrix.toarray(), np.stack(columns, axis=1), rtol=1e-6, atol=1e-7)


def test_symmetry_saves_products():
    products = {}
    for mode in (None, "star", "acyclic"):
        found = hessian(HESSIANS["arrow"], mode=mode) if mode else jacobian(grad(HESSIANS["arrow"]), sparse=True)
        found(X)
        products[mode] = found.products
    assert products == {None: 12, "star": 2, "acyclic": 2}


def patterns():
    rng = np.random.default_rng(5)
    for n, density in itertools.product((1, 2, 7, 15), (0.0, 0.1, 0.3, 1.0)):
        random = rng.uniform(size=(n, n)) < density
        yield sp.csr_array(random), sp.csr_array(random | random.T | np.eye(n, dtype=bool))


def test_colourings_have_the_properties_that_define_them():
    for pattern, symmetric in patterns():
        colours = colouring.distance2(pattern)
        for row in pattern.toarray():
            assert len(set(colours[row])) == np.count_nonzero(row)
        edges = symmetric.toarray() & ~np.eye(symmetric.shape[0], dtype=bool)
        star, acyclic = colouring.star(symmetric), colouring.acyclic(symmetric)
        assert len(set(acyclic)) <= len(set(star)) + 1
        for found in (star, acyclic):
            assert all(found[i] != found[j] for i, j in zip(*np.nonzero(edges), strict=True))
        for i, j in zip(*np.nonzero(edges), strict=True):
            for k, m in itertools.product(np.flatnonzero(edges[i]), np.flatnonzero(edges[j])):
                if k != j and m != i and k != m:  # a path k, i, j, m
                    assert len({star[k], star[i], star[j], star[m]}) > 2
        for a, b in itertools.combinations(set(acyclic), 2):
            chosen = np.flatnonzero((acyclic == a) | (acyclic == b))
            part = edges[np.ix_(chosen, chosen)]
            trees = sp.csgraph.connected_components(sp.csr_array(part))[0]
            assert np.count_nonzero(part) // 2 == len(chosen) - trees  # a forest


@pytest.mark.parametrize("colour, read", [
    (colouring.star, colouring.read_star), (colouring.acyclic, colouring.read_acyclic)])  # fmt: skip
def test_symmetric_matrices_are_read_off_their_products(colour, read):
    rng = np.random.default_rng(6)
    for _, pattern in patterns():
        values = rng.normal(size=pattern.shape)
        matrix = np.where(pattern.toarray(), values + values.T, 0.0)
        colours = colour(pattern)
        products = np.stack([matrix @ (colours == c) for c in range(colours.max() + 1)])
        elements = read(pattern, colours, products)
        np.testing.assert_allclose(elements, matrix[pattern.tocoo().coords], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("f", [
    lambda x: np.exp(1j * x),
    lambda x: np.append(np.diff(x) * 1j, np.sum(x**2) * (1 + 2j)),
    lambda x: (x[:6] + 1j * x[6:]) ** 2,
])  # fmt: skip
def test_complex_outputs(f, compiled):
    slope = jacobian(f, sparse=True, compiled=compiled)
    steps = 1e-5 * np.eye(12)
    expected = np.stack([(f(X + step) - f(X - step)) / 2e-5 for step in steps], axis=-1)
    for _ in range(2):
        assert np.iscomplexobj(slope(X).data)
        np.testing.assert_allclose(slope(X).toarray(), expected, atol=1e-8)
    with pytest.raises(effgrad.NotDifferentiable, match="for real outputs"):
        jacobian(f, sparse=True, mode="reverse")(X)


@pytest.mark.parametrize(
    "call, error, said",
    [
        (lambda: jacobian(np.sin, mode="star2", sparse=True), ValueError, "choose 'forward'"),
        (lambda: jacobian(np.sin, mode="star", sparse=True), ValueError, "choose 'forward'"),
        (lambda: jacobian(np.sin, compiled=True), ValueError, r"effgrad.compile\(jacobian"),
        (lambda: hessian(np.sum, compiled=True), ValueError, r"effgrad.compile\(hessian"),
        (lambda: jacobian(np.sin, argnums=(0,), sparse=True), ValueError, "one argument"),
        (lambda: jacobian(np.sin, argnums=1, sparse=True)(X), ValueError, "called with 1 arguments"),
        (lambda: jacobian(np.sin, sparse=True).products, effgrad.NotDifferentiable, "after the first call"),
        (lambda: jacobian(np.sin, sparse=True)(1j * X), effgrad.NotDifferentiable, "real numbers"),
        (lambda: jacobian(lambda x: x[np.random.default_rng().permutation(12)], sparse=True)(X),
         effgrad.NotDifferentiable, "another result"),
        (lambda: jacobian(lambda x: np.fft.fft(x).real, sparse=True)(np.ones(10000)), effgrad.NotDifferentiable,
         "dense"),
        (lambda: grad(lambda x: jacobian(np.sin, sparse=True)(x).sum())(X), effgrad.NotDifferentiable, "no derivative"),
        (lambda: effgrad.compile(lambda x: jacobian(np.sin, sparse=True)(x).toarray())(X), effgrad.NotDifferentiable,
         "no part of a compiled program"),
        (lambda: colouring.star(sp.csr_array(np.triu(np.ones((3, 3))))), effgrad.NotDifferentiable, "symmetric"),
    ],
)  # fmt: skip
def test_what_is_refused(call, error, said):
    with pytest.raises(error, match=said):
        call()


def test_a_sparse_jacobian_may_be_pickled():
    again = pickle.loads(pickle.dumps(jacobian(np.sin, sparse=True)))
    np.testing.assert_allclose(again(X).toarray(), np.diag(np.cos(X)), rtol=1e-14)
