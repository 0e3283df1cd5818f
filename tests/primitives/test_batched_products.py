"""Products of batches of matrices: derivatives against differences, eagerly and compiled, and their memory."""

import numpy as np
import pytest

import effgrad

SHAPES = [
    ((4, 5, 1, 6), (6, 3)), ((4, 3, 6), (6, 5)), ((4, 3, 6), (4, 6, 5)), ((1, 3, 6), (4, 6, 5)), ((2, 4, 6), (6,)),
    ((7, 1, 6), (6, 1)), ((3, 2, 1, 1), (1, 4)), ((4, 6), (2, 6, 5)),
]  # fmt: skip
RNG = np.random.default_rng(0)


def plain(a, b):
    return np.sum(np.sin(a @ b))


def transposed(a, b):
    """The batch is not contiguous: its rows are not those of one matrix as they lie."""
    return np.sum(np.sin(np.swapaxes(a, 0, -2) @ b) * 0.5)


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("f", [plain, transposed], ids=lambda f: f.__name__)
def test_products_of_batches(f, shapes):
    a, b = (RNG.normal(size=shape) for shape in shapes)
    if f is transposed and len(shapes[1]) > 2:
        a = np.swapaxes(a, 0, -2)  # the product keeps its batch
    u, v = RNG.normal(size=a.shape), RNG.normal(size=b.shape)
    step = 1e-6
    slope = (f(a + step * u, b + step * v) - f(a - step * u, b - step * v)) / (2 * step)
    gradient = effgrad.grad(f, argnums=(0, 1))
    for found in (gradient(a, b), effgrad.compile(gradient)(a, b)):
        assert np.isclose(np.sum(found[0] * u) + np.sum(found[1] * v), slope, rtol=1e-6, atol=1e-8)
    curved = effgrad.hvp(lambda b: f(a, b), b, v)
    sides = [effgrad.grad(f, argnums=1)(a, b + sign * step * v) for sign in (1, -1)]
    assert np.allclose(curved, (sides[0] - sides[1]) / (2 * step), rtol=1e-5, atol=1e-6)
    assert np.allclose(effgrad.compile(lambda b: effgrad.hvp(lambda b: f(a, b), b, v))(b), curved)


def test_the_products_of_a_batch_are_not_all_in_memory():
    a, b = RNG.normal(size=(50, 40, 1, 6)), RNG.normal(size=(6, 6))
    graph = effgrad.stage(effgrad.grad(plain, argnums=(0, 1)))(a, b)
    assert max(node.size for node in graph) <= a.size


def test_single_precision_stays_single_on_the_way_back():
    a, b = (RNG.normal(size=shape).astype(np.float32) for shape in ((5, 6), (6, 3)))
    graph = effgrad.stage(effgrad.grad(plain, argnums=(0, 1)))(a, b)
    products = [node for node in graph if node.primitive.name == "matmul"]
    assert len(products) == 3 and all(node.dtype == np.float32 for node in products)
    wide = effgrad.grad(plain, argnums=(0, 1))(a.astype(float), b.astype(float))
    for found, wanted in zip(effgrad.grad(plain, argnums=(0, 1))(a, b), wide, strict=True):
        assert found.dtype == np.float32 and np.allclose(found, wanted, atol=1e-5)


@pytest.mark.parametrize("n", [3, 70])
def test_cholesky_by_triangular_systems(n):
    """From 64 rows on, systems are solved as triangular ones."""
    W = RNG.normal(size=(n, n))
    f = lambda x: np.sum(np.sin(np.linalg.cholesky(W @ W.T / n + x * np.eye(n) + x * x * W.T @ W / n)))  # noqa: E731
    x, step = 1.3, 1e-5
    assert np.isclose(effgrad.grad(f)(x), (f(x + step) - f(x - step)) / (2 * step), rtol=1e-7)
    slopes = [effgrad.grad(f)(x + sign * step) for sign in (1, -1)]
    curve = (slopes[0] - slopes[1]) / (2 * step)
    assert np.isclose(effgrad.grad(effgrad.grad(f))(x), curve, rtol=1e-6)
    assert np.isclose(effgrad.jvp(effgrad.grad(f), (x,), (1.0,))[1], curve, rtol=1e-6)


@pytest.mark.parametrize("shapes", [
    ((0,), (0, 3)), ((0,), (0,)), ((2, 0), (0, 3)), ((0, 2), (2, 3)), ((4, 2, 0), (0, 3)), ((3,), (3, 0)),
    ((2, 0, 3), (3, 4)), ((2, 0, 3), (2, 3, 0)),
])  # fmt: skip
def test_products_of_empty_matrices(shapes):
    """A stack of matrices without columns raised NumPy's error about the shape of the rows."""
    a, b = map(np.ones, shapes)
    by_a, by_b = effgrad.grad(plain, argnums=(0, 1))(a, b)
    assert (by_a.shape, by_b.shape) == shapes
    assert not by_a.any() and not by_b.any()
    found = effgrad.jvp(lambda a, b: a @ b, (a, b), (a, b))[1]
    np.testing.assert_array_equal(found, 2 * (a @ b), strict=True)
