"""Forward mode along many directions at once gives what it gives along each."""

import numpy as np
import pytest
from numpy_cases import CASES, X

from effgrad import grad, hessian, jacobian, jvp

A, B = np.random.default_rng(1).normal(size=(2, 3, 4, 4))


def columns(f, x):
    """The Jacobian, one direction after another."""
    basis = np.eye(x.size).reshape(-1, *x.shape)
    return np.stack([jvp(f, (x,), (t,))[1] for t in basis], axis=-1).reshape(*np.shape(f(x)), *x.shape)


def agrees(f, x):
    np.testing.assert_allclose(jacobian(f, mode="forward")(x), columns(f, x), rtol=1e-12, atol=1e-13)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", CASES)
def test_all_columns_at_once_are_the_columns(name):
    agrees(CASES[name], X)


# Products of arrays of every number of axes, each the traced one in turn.
PRODUCTS = {
    f"{np.ndim(a)} {np.ndim(b)} {place}": (a, b, place)
    for a, b in [
        (A[0, 0], B[0, 0]), (A[0, 0], B[0]), (A[0], B[0, 0]), (A[0], B[0]), (A[0, 0], B), (A, B[0, 0]), (A, B[0]),
        (A[0], B), (A, B),
    ]
    for place in (0, 1, 2)
}  # fmt: skip


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_any_rank(name):
    a, b, place = PRODUCTS[name]
    f = {0: lambda x: x @ b, 1: lambda x: a @ x, 2: lambda x: (a * x) @ (b * x)}[place]
    agrees(f, {0: a, 1: b, 2: np.array([0.5])}[place])


@pytest.mark.parametrize(
    "subscripts", ["ij,jk->ik", "ij,ij->", "ij,jk,kl->il", "ij,kj->jik", "ii,jk->ijk", "ij,jk,ki->", "ij,k->ik"]
)
def test_einsum(subscripts):
    inputs = subscripts.partition("->")[0].split(",")
    for place in range(len(inputs)):
        operands = [A[0] if len(term) == 2 else A[0, 0] for term in inputs]
        agrees(lambda x, o=operands, p=place: np.einsum(subscripts, *o[:p], x, *o[p + 1 :]), operands[place])


INDICES = {
    "apart": lambda x: x[[0, 2], :, [1, 3]], "number apart": lambda x: x[0, :, [1, 3]],
    "together": lambda x: x[:, [1], 2],
    "mask": lambda x: x[x > 0], "rows": lambda x: x[x[:, 0, 0] > 0], "new axis": lambda x: x[None, ..., 1],
    "repeated": lambda x: x[[1, 1, 0]] * x[[0, 2, 2]], "numpy's number": lambda x: x[np.int64(1), np.array([2, 0])],
}  # fmt: skip


@pytest.mark.parametrize("name", INDICES)
def test_indices(name):
    agrees(INDICES[name], A)


def test_an_array_that_is_filled():
    def f(x):
        y = np.zeros((4, 2))
        for i in range(4):
            y[i] = x[0, 0, i] ** 2, x[1, i, 0]
        y[2:, 0] += y[:2, 1]
        return y

    agrees(f, A)


def test_more_directions_than_go_at_once():
    x = np.linspace(0.1, 1.0, 70)
    agrees(lambda x: np.cumsum(np.sin(x)) * x[::-1], x)
    np.testing.assert_allclose(hessian(lambda x: np.prod(x))(x[60:]), columns(grad(np.prod), x[60:]), rtol=1e-12)


def test_several_inputs_and_outputs_of_different_kinds():
    def f(x, y):
        return {"sum": np.sum(x) * y, "product": np.outer(x, x) + y, "constant": 3.0}

    x = np.array([1.0, 2.0])
    result = jacobian(f, (0, 1), mode="forward")(x, 2.0)
    np.testing.assert_array_equal(result["sum"][0], [2.0, 2.0])
    assert result["sum"][1] == 3.0
    np.testing.assert_array_equal(result["product"][0][:, :, 0], [[2.0, 2.0], [2.0, 0.0]])
    np.testing.assert_array_equal(result["product"][1], np.ones((2, 2)))
    np.testing.assert_array_equal(result["constant"][0], [0.0, 0.0])


def test_a_tangent_of_zero_wins_over_an_infinite_partial_of_numbers():
    with np.errstate(divide="ignore"):
        result = jacobian(lambda x: np.sqrt(x[0]) + x[1], mode="forward")(np.array([0.0, 1.0]))
    np.testing.assert_array_equal(result, [np.inf, 1.0])


def test_single_precision_stays():
    assert jacobian(lambda x: x @ A[0].astype(np.float32), mode="forward")(np.ones(4, np.float32)).dtype == np.float32


@pytest.mark.parametrize("mode", ["forward", "reverse", None])
def test_the_number_of_an_argument_may_be_numpys(mode):
    matrix = jacobian(lambda y, x: np.sin(x) * y, argnums=np.int64(1), mode=mode)(2.0, X[0])
    np.testing.assert_array_equal(matrix, np.diag(2.0 * np.cos(X[0])))
