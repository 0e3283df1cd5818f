"""Patterns of many programs: sparse Jacobians and Hessians, by every colouring, are the dense ones."""

import numpy as np
import optree
import pytest
import scipy.ndimage
import scipy.sparse as sp
import scipy.sparse.linalg as sla
import scipy.special

from effgrad import hessian, jacobian

N = 12
X = np.linspace(0.4, 1.7, N)
SPARSE = sp.random_array((N, N), density=0.2, random_state=0).tocsr()
PLACES = np.array([3, 1, 4, 1, 5, 9, 2, 6])
DENSE = np.arange(N * N * 1.0).reshape(N, N) % 7 * (np.arange(N * N).reshape(N, N) % 3 == 0)


def filled_in_a_loop(x):
    y = np.zeros(N)
    for i in range(1, N - 1):
        y[i] = x[i - 1] * x[i + 1] - x[i] ** 2
    y[0] = x[0]
    return y


def written(x):
    y = x.copy()
    y[::2] *= y[1::2]
    y[3] = 0.0
    y[5] += x[0]
    return y


def added_at(x):
    y = np.zeros(N)
    np.add.at(y, PLACES, x[:8] ** 2)
    return y


PROGRAMS = {
    "identity": lambda x: x, "elements": lambda x: np.sin(x) * x, "neighbours": lambda x: x[1:] * x[:-1],
    "padded": lambda x: np.diff(np.pad(x, 1)) ** 2, "rolled": lambda x: np.roll(x, 2) * x, "loop": filled_in_a_loop,
    "written": written, "added at": added_at, "cumulated": lambda x: np.cumsum(x) ** 2,
    "a full row": lambda x: np.sum(x**2) * x[:3], "sparse product": lambda x: SPARSE @ np.sin(x),
    "product with zeros": lambda x: DENSE @ x, "selected": lambda x: np.where(x > 1, x**2, x[::-1]),
    "diagonals": lambda x: sp.diags([x, x[1:]], [0, 1]).tocsr() @ x, "gathered": lambda x: x[PLACES] * x[PLACES[::-1]],
    "counted": lambda x: np.bincount(PLACES, weights=x[:8] ** 2, minlength=N),
    "reshaped": lambda x: (x.reshape(3, 4).T * x.reshape(4, 3)).ravel(), "outer": lambda x: np.outer(x[:3], x[3:5]),
    "maximum": lambda x: np.maximum(x[1:], x[:-1]), "sorted": lambda x: np.sort(x**2),
    "convolved": lambda x: np.convolve(x, [1.0, -2.0, 1.0]),
    "einsum": lambda x: np.einsum("ij,ij->i", x.reshape(4, 3), x.reshape(4, 3)),
    "matrix product": lambda x: x.reshape(4, 3) @ x[:3],
    "joined": lambda x: np.concatenate([x[:2] * x[5], [x[7], 2.0], np.zeros(2)]),
    "stacked": lambda x: np.stack([x[:4], x[4:8] * x[8:]]),
    "a list": lambda x: [x[0] * x[1], np.sin(x[2]), x[3:6] ** 2],
    "a dictionary": lambda x: {"a": x[:2] ** 2, "b": x[3]}, "special": lambda x: scipy.special.erf(x[::3]),
    "logsumexp": lambda x: scipy.special.logsumexp(x[:4]) * x[4:6], "product": lambda x: np.prod(x[:3]) * x[3:],
    "differences": lambda x: np.gradient(x), "table": lambda x: np.interp(x, np.arange(5.0), np.arange(5.0) ** 2),
    "filter": lambda x: scipy.ndimage.convolve1d(x, [1.0, 0.0, -1.0]),
    "solved": lambda x: np.linalg.solve(np.eye(3) * x[0] + np.ones((3, 3)), x[1:4]),
    "norms": lambda x: np.linalg.norm(x.reshape(4, 3), axis=1), "triangle": lambda x: np.tril(np.outer(x[:4], x[4:8])),
    "a number": lambda x: x[0] * x[1], "centred": lambda x: x - np.mean(x),
    "repeated": lambda x: np.repeat(x[:3], 2) * x[:6],
    "comprehension": lambda x: np.array([x[i] * x[i + 1] for i in range(5)]), "clipped": lambda x: np.clip(x, 0.6, 1.2),
    "of three": lambda x: np.select([x < 0.7, x < 1.2], [x, x**2], x**3), "kron": lambda x: np.kron(x[:2], x[2:5]),
    "sparse kron": lambda x: sp.kron(sp.diags(x[:2]), sp.eye_array(3)) @ x[:6],
    "assembled": lambda x: sp.csr_array((x[:8], (PLACES % 4, np.arange(8) % 4)), (4, 4)) @ x[:4],
    "sparse system": lambda x: sla.spsolve(sp.diags([x[:6] + 5, x[6:11]], [0, 1], format="csc"), x[:6]),
    "masked": lambda x: x[X > 1] ** 2, "a vanishing part": lambda x: x * 0.0 + x[::-1],
    "polynomial": lambda x: np.polyval(x[:3], x[3:]),
}  # fmt: skip


def rows(tree):
    leaves = optree.tree_leaves(tree, is_leaf=sp.issparse)
    return np.concatenate([np.reshape(leaf.toarray() if sp.issparse(leaf) else leaf, (-1, N)) for leaf in leaves])


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_sparse_jacobian_is_the_dense_one(name):
    f = PROGRAMS[name]
    np.testing.assert_allclose(rows(jacobian(f, sparse=True)(X)), rows(jacobian(f)(X)), rtol=1e-9, atol=1e-11)


@pytest.mark.sweep
@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_jacobians_and_hessians_of_every_kind_are_the_dense_ones(name):
    f = PROGRAMS[name]
    compiled = jacobian(f, sparse=True, compiled=True)
    np.testing.assert_allclose(rows(compiled(X)), rows(jacobian(f)(X)), rtol=1e-9, atol=1e-11)

    def total(x):
        return sum(np.sum(np.sin(leaf)) for leaf in optree.tree_leaves(f(x)))

    for options in ({"sparse": True}, {"mode": "star"}, {"mode": "acyclic"}):
        found = hessian(total, **options)(X).toarray()
        np.testing.assert_allclose(found, hessian(total)(X), rtol=1e-7, atol=1e-9)
