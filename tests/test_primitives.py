"""Every primitive of the table: each mode against differences, transposition, and second order.

The cases are generated from the tables that the primitives fill, so a new primitive is tested by being added.
"""

import numpy as np
import pytest
import scipy.special as sp

from effgrad import check_grad, grad, hessian, jvp, vjp
from effgrad.smooth.elementwise import BINARY, UNARY

# Where a function is not defined on all of (0.2, 0.8), a map into its domain.
SHIFTS = {np.arccosh: 1.5}


def draw(shape, seed=0, dtype=float):
    return np.random.default_rng(seed).uniform(0.2, 0.8, shape).astype(dtype)


SHAPES = [(), (3,), (2, 3), (0,)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("function", UNARY, ids=lambda f: f.__name__)
def test_unary_rule_is_the_derivative(function, shape):
    def f(x):
        return np.sum(np.cos(function(x + SHIFTS.get(function, 0.0))))

    x = draw(shape)
    check_grad(f, x, tolerance=1e-6)
    check_grad(lambda x: np.sum(grad(f)(x) * x), x, tolerance=1e-5)


@pytest.mark.parametrize("shapes", [((), ()), ((3,), ()), ((2, 3), (3,)), ((2, 1), (1, 3))], ids=str)
@pytest.mark.parametrize(
    "function", [*BINARY, np.add, np.subtract, np.multiply, np.divide, np.power, np.maximum, np.minimum, np.mod],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_binary_rule_is_the_derivative_with_broadcasting(function, shapes):
    a, b = draw(shapes[0], 1), draw(shapes[1], 2)
    check_grad(lambda a: np.sum(np.cos(function(a, b))), a)
    if function is not np.copysign:
        check_grad(lambda b: np.sum(np.cos(function(a, b))), b)
        check_grad(lambda b: np.sum(grad(lambda b: np.sum(np.cos(function(a, b))))(b) * b), b, tolerance=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("function", UNARY, ids=lambda f: f.__name__)
def test_derivatives_keep_the_dtype_of_their_input(function, dtype):
    x = draw((3,), dtype=dtype) + np.asarray(SHIFTS.get(function, 0.0), dtype)
    assert grad(lambda x: np.sum(function(x)))(x).dtype == dtype
    assert grad(lambda x: np.sum(function(x * np.ones(3))))(x).dtype == dtype


FUNCTIONS = {
    "sum axis": lambda x: np.sum(x, axis=0),
    "sum keepdims": lambda x: np.sum(x, axis=1, keepdims=True),
    "mean": lambda x: np.mean(x, axis=(0, 1)),
    "prod": lambda x: np.prod(x, axis=1),
    "max": lambda x: np.max(x, axis=0),
    "min": np.min,
    "var": lambda x: np.var(x, axis=0, ddof=1),
    "std": lambda x: np.std(x, axis=1),
    "cumsum": lambda x: np.cumsum(x, axis=1),
    "logsumexp by hand": lambda x: np.log(np.sum(np.exp(x))),
    "reshape": lambda x: x.reshape(-1),
    "transpose": lambda x: x.T,
    "squeeze": lambda x: np.squeeze(x[None]),
    "expand_dims": lambda x: np.expand_dims(x, 1),
    "stack": lambda x: np.stack([x, x * x], axis=-1),
    "concatenate": lambda x: np.concatenate([x, x * x], axis=1),
    "split": lambda x: np.split(x, 3)[1],
    "where": lambda x: np.where(x > 0.5, x * x, x),
    "clip": lambda x: np.clip(x, 0.3, 0.7),
    "basic index": lambda x: x[1:, ::-1],
    "new axis": lambda x: x[None, ..., 1],
    "advanced index": lambda x: x[[0, 0, 2], [1, 1, 2]],
    "mask": lambda x: x[np.arange(9).reshape(3, 3) % 2 == 0],
    "dot": lambda x: np.dot(x, x[0]),
    "matmul": lambda x: x @ x,
    "matmul batched": lambda x: x[None] @ np.stack([x, 2 * x])[:, :, 0:2],
    "matmul vector left": lambda x: x[0] @ x,
    "einsum": lambda x: np.einsum("ij,kj->ik", x, x),
    "einsum trace": lambda x: np.einsum("ii->", x),
    "einsum diagonal": lambda x: np.einsum("ii->i", x),
    "einsum summed only": lambda x: np.einsum("ij,k->i", x, x[0]),
    "einsum ellipsis": lambda x: np.einsum("...ij,...jk", x[None], x),
    "einsum three": lambda x: np.einsum("ij,jk,kl", x, x, x),
    "tensordot": lambda x: np.tensordot(x, x, axes=([0], [1])),
    "outer": lambda x: np.outer(x[0], x[1]),
    "trace": np.trace,
    "diag of vector": lambda x: np.diag(x[0]),
    "diag of matrix": np.diag,
    "tril": np.tril,
    "triu": np.triu,
    "inv": lambda x: np.linalg.inv(x + 2 * np.eye(3)),
    "solve": lambda x: np.linalg.solve(x + 2 * np.eye(3), x[0]),
    "solve matrix": lambda x: np.linalg.solve(x + 2 * np.eye(3), x),
    "det": np.linalg.det,
    "slogdet": lambda x: np.linalg.slogdet(x + 2 * np.eye(3))[1],
    "cholesky": lambda x: np.linalg.cholesky(x @ x.T + np.eye(3)),
    "norm": np.linalg.norm,
    "norm axis": lambda x: np.linalg.norm(x, axis=1),
    "roll": lambda x: np.roll(x, 1, axis=0),
    "flip": np.flip,
    "repeat": lambda x: np.repeat(x, 2, axis=0),
    "broadcast_to": lambda x: np.broadcast_to(x, (2, 3, 3)),
    "xlogy": lambda x: sp.xlogy(x, x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_array_function_in_every_mode_and_order(name):
    function, x = FUNCTIONS[name], draw((3, 3), 4)
    rng = np.random.default_rng(5)
    tangent = rng.normal(size=(3, 3))
    value, out_tangent = jvp(function, (x,), (tangent,))
    np.testing.assert_allclose(value, function(x))
    primal, pullback = vjp(function, x)
    cotangent = rng.normal(size=np.shape(primal))
    np.testing.assert_allclose(np.sum(cotangent * out_tangent), np.sum(pullback(cotangent)[0] * tangent), rtol=1e-9)

    def scalar(x):
        return np.sum(np.sin(function(x)))

    check_grad(scalar, x)
    h = hessian(scalar)(x).reshape(9, 9)
    np.testing.assert_allclose(h, h.T, atol=1e-9)
    check_grad(lambda x: np.sum(grad(scalar)(x) * tangent), x, tolerance=1e-5)
