"""Products that share a factor become one."""

import numpy as np
import optree
import pytest
from graphs import optimised

import effgrad
from effgrad.primitives.product import einsum, matmul
from effgrad.stage import stage
from effgrad.stage.contraction import inner, joined, paired
from effgrad.stage.passes import dead

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


BROADCAST = {
    "kij,nkj->nki": ((4, 3, 5), (1, 4, 5)), "ij,jk->ik": ((1, 5), (5, 2)), "ni,ni->n": ((1, 3), (6, 3)),
    "ij,ij->": ((1, 3), (2, 3)), "ij,ij->j": ((1, 3), (1, 3)), "ij,jk->k": ((1, 3), (3, 2)),
    "ai,bi->ab": ((1, 1), (4, 1)), "ij,kl->ik": ((1, 3), (2, 1)), "ij,jk->ki": ((3, 1), (1, 2)),
}  # fmt: skip


@pytest.mark.parametrize("subscripts", BROADCAST)
def test_an_einsum_of_what_is_broadcast(subscripts):
    sizes = dict(zip("abcijkln", range(2, 12), strict=False))
    terms = subscripts.split("->")[0].split(",")
    shapes = [tuple(sizes[s] if n > 1 else 1 for s, n in zip(*pair, strict=True))
              for pair in zip(terms, BROADCAST[subscripts], strict=True)]  # fmt: skip
    operands = [RANDOM.normal(size=shape) for shape in shapes]

    def f(*x):
        whole = [np.broadcast_to(y, [sizes[s] for s in term]) for y, term in zip(x, terms, strict=True)]
        return np.einsum(subscripts, *whole)

    for g in (f, effgrad.grad(lambda *x: np.sum(f(*x) ** 2), (0, 1))):
        found, expected = (optree.tree_leaves(h(*operands)) for h in (effgrad.compile(g), g))
        for x, y in zip(found, expected, strict=True):
            assert np.shape(x) == np.shape(y) and type(x) is type(y)
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)


def test_a_tangent_that_is_the_same_for_all_rows_is_multiplied_once():
    """The forward derivative of a mixture of Gaussians took a third product as large as the two that it needs."""

    def f(a, b, x):
        return np.einsum("kij,nkj->nki", a, x[:, None] - b)

    a, b, x = RANDOM.normal(size=(4, 10, 10)), RANDOM.normal(size=(4, 10)), RANDOM.normal(size=(600, 10))
    constants = RANDOM.normal(size=a.shape), RANDOM.normal(size=b.shape)

    def tangent(a, b, x, *tangents):
        return effgrad.jvp(lambda a, b: f(a, b, x), (a, b), tangents or constants)

    for arguments in ((a, b, x), (a, b, x, *constants)):
        compiled = effgrad.compile(tangent)
        for found, expected in zip(compiled(*arguments), tangent(*arguments), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
        products = [node.size for node in compiled.path(*arguments).graph if node.primitive is matmul]
        assert sorted(products) == [40, 24_000, 24_000]


@pytest.mark.parametrize("axis", [0, 1])
def test_of_a_constant_that_repeats_itself_one_part_is_kept(axis):
    once = np.expand_dims(RANDOM.normal(size=200), axis)
    once.flat[0] = -0.0
    constant = np.repeat(once, 150, axis=axis)
    graph = optimised(stage(lambda x: x * constant)(np.ones(constant.shape)))
    (node,) = graph
    assert sorted(np.size(a) for a in node.args if isinstance(a, np.ndarray)) == [200]
    np.testing.assert_array_equal(graph(constant)[0], constant**2)
    constant[-1, -1] = 3.0
    np.testing.assert_array_equal(graph(np.ones(constant.shape))[0], np.repeat(once, 150, axis=axis))
    assert np.signbit(graph(np.ones(constant.shape))[0].flat[0])


def test_zeros_of_two_signs_are_not_the_same():
    constant = np.zeros((200, 150))
    constant[5] = -0.0
    (found,) = optimised(stage(lambda x: x * constant)(np.ones((200, 150))))(np.ones((200, 150)))
    np.testing.assert_array_equal(np.signbit(found), np.signbit(constant))


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
