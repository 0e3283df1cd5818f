"""Products that share a factor become one."""

import numpy as np
import optree
import pytest

import effgrad
from effgrad.smooth.linalg import einsum, matmul
from effgrad.stage import stage
from effgrad.stage.contraction import inner, joined, paired
from effgrad.stage.passes import dead, optimised

RANDOM = np.random.default_rng(0)
TALL, WIDE = RANDOM.normal(size=(100, 12)), RANDOM.normal(size=(12, 4))


def count(graph, primitive):
    return sum(node.primitive is primitive for node in graph)


@pytest.mark.parametrize(
    "subscripts", ["vb,vj,bij->vi", "ij,jk,kl->il", "i,j,k->kji", "ij,ij,ij->j", "ab,bc,cd,de->ea", "ij,k,jk->"]
)
def test_long_einsums_are_chains_of_pairs(subscripts):
    sizes = dict(zip("abcdeijklv", range(2, 12), strict=True))
    operands = [RANDOM.normal(size=[sizes[s] for s in term]) for term in subscripts.split("->")[0].split(",")]

    def f(*operands):
        return np.einsum(subscripts, *operands)

    for g in (f, effgrad.grad(lambda *x: np.sum(f(*x) ** 2), tuple(range(len(operands))))):
        graph = stage(g)(*operands)
        pairs = paired(graph)
        assert all(len(node.args) <= 2 for node in pairs if node.primitive is einsum)
        for found, expected in zip(pairs(*operands), graph(*operands), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
        for found, expected in zip(*[optree.tree_leaves(h(*operands)) for h in (effgrad.compile(g), g)], strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("axis", [0, 1, (0, 2), -1, None])
def test_of_a_summed_einsum_an_operand_is_summed_first(axis):
    def f(a, b, scale):
        return np.sum(-(np.einsum("ni,ij->nji", a, b) * scale) * 3, axis=axis)

    a, b = RANDOM.normal(size=(5, 3)), RANDOM.normal(size=(3, 4))
    graph = stage(f)(a, b, 2.0)
    contracted = dead(inner(graph))
    assert max(node.size for node in contracted) < 60
    for g in (f, effgrad.grad(lambda *x: np.sum(f(*x) ** 2), (0, 1))):
        found, expected = (optree.tree_leaves(h(a, b, 2.0)) for h in (effgrad.compile(g), g))
        for x, y in zip(found, expected, strict=True):
            assert np.shape(x) == np.shape(y) and type(x) is type(y)
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)


def test_an_einsum_that_is_needed_itself_is_kept():
    def f(a, b):
        product = np.einsum("ni,ij->nj", a, b)
        return product, np.sum(product, axis=0)

    graph = stage(f)(TALL, WIDE)
    assert len(inner(graph)) == len(graph)


def test_what_einsums_have_in_common_is_computed_once():
    def f(a, b, *others):
        return [np.einsum("vb,vj,bij->vi", a, b, other) for other in others]

    a, b, *others = RANDOM.normal(size=(100, 8)), RANDOM.normal(size=(100, 4)), *RANDOM.normal(size=(6, 8, 3, 4))
    graph = optimised(stage(f)(a, b, *others))
    assert count(graph, einsum) == 0
    assert count(graph, matmul) == 1


def steps(x, w):
    """Products of `x` of two depths, and one that needs another."""
    first = [np.tanh(x @ (w * k)) for k in range(1, 4)]
    return [*first, *(x @ (w * np.sum(y)) for y in first), first[0] @ (first[1].T @ first[1])]


def test_products_of_one_matrix_are_one():
    graph = stage(steps)(TALL, WIDE)
    together = joined(graph)
    assert (count(graph, matmul), count(together, matmul)) == (8, 4)
    for found, expected in zip(together(TALL, WIDE), graph(TALL, WIDE), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_derivatives_of_joined_products():
    def f(x, w):
        return sum(np.sum(np.sin(y)) for y in steps(x, w))

    for g in (effgrad.grad(f, (0, 1)), lambda *x: effgrad.jvp(f, x, (np.cos(TALL), np.sin(WIDE)))):
        for found, expected in zip(effgrad.compile(g)(TALL, WIDE), g(TALL, WIDE), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_products_on_two_sides_of_a_guard_stay_apart():
    def f(x, w):
        y = x @ w
        return y, np.linalg.inv(w.T @ w) if y[0, 0] > 0 else w, x @ (2 * w)

    graph = stage(f)(TALL, WIDE * np.sign((TALL @ WIDE)[0, 0]))
    assert len(graph.guards) == 1
    assert joined(graph) is graph
