"""Distances to nearest points, by SciPy's trees, in every mode: SciPy's values, and derivatives by differences."""

import numpy as np
import pytest
from differences import directional
from scipy.spatial import KDTree, cKDTree

import effgrad
from effgrad import compile, grad, hvp, jvp, vmap
from effgrad.errors import NoRule

RNG = np.random.default_rng(5)
POINTS, X, U = RNG.normal(size=(30, 3)), RNG.normal(size=(4, 3)), RNG.normal(size=(4, 3))
TREE = cKDTree(POINTS)
PROGRAMS = {
    "one": lambda x: TREE.query(x)[0],
    "one point": lambda x: TREE.query(x[0])[0] ** 2,
    "three": lambda x: KDTree(POINTS).query(x, k=3)[0],
    "chosen": lambda x: KDTree(POINTS).query(x, [1, 4])[0],
    "second alone": lambda x: cKDTree(POINTS).query(x, k=[2])[0],
    "sums of sizes": lambda x: TREE.query(x, 2, p=1)[0],
    "greatest sizes": lambda x: TREE.query(x, 2, p=np.inf)[0],
    "some missing": lambda x: np.where(np.isinf(d := TREE.query(x, 5, distance_upper_bound=1.2)[0]), 0.0, d),
    "periodic": lambda x: KDTree(POINTS % 1.0, boxsize=1.0).query(x % 1.0, 2)[0],
    "periodic in one": lambda x: KDTree(POINTS % 1.0, boxsize=[1.0, 0, 0]).query(x % 1.0, 2)[0],
    "of traced points": lambda x: KDTree(x).query(POINTS[:5], k=2)[0],
    "of traced points in a box": lambda x: cKDTree(x % 1.0, boxsize=1.0).query(POINTS[:5] % 1.0)[0],
    "of each other": lambda x: KDTree(x).query(x * x, k=2)[0],
    "numbers": lambda x: np.sin(x)[KDTree(x).query(POINTS[:5])[1]],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_distances_are_differentiated_in_every_mode(name):
    f = PROGRAMS[name]
    weights = np.cos(np.arange(np.size(f(X)))).reshape(np.shape(f(X)))

    def total(x):
        return np.sum(weights * np.sin(f(x)))

    expected = float(directional(total, X, U, step=1e-4)[0])
    value, tangent = jvp(f, (X,), (U,))
    np.testing.assert_array_equal(value, f(X))
    assert np.sum(weights * np.cos(value) * tangent) == pytest.approx(expected, rel=1e-7)
    assert np.sum(grad(total)(X) * U) == pytest.approx(expected, rel=1e-7)
    curved = [float(directional(lambda x, e=e: np.sum(e * grad(total)(x)), X, U, step=1e-4)[0]) for e in (U, X)]
    assert [np.sum(e * hvp(total, X, U)) for e in (U, X)] == pytest.approx(curved, rel=1e-6)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_compiled_program_looks_for_its_own_points(name):
    def total(x):
        return np.sum(np.sin(PROGRAMS[name](x)))

    program = compile(grad(total))
    for x in (X, -X, X[::-1] + 0.2):
        np.testing.assert_allclose(program(x), grad(total)(x), rtol=1e-12, atol=1e-14)


def test_a_batch_is_its_members():
    f = lambda x: KDTree(x).query(x * x, k=2)[0]  # noqa: E731
    members = np.stack([X, -X, X + 0.1])
    np.testing.assert_allclose(vmap(f)(members), np.stack([*map(f, members)]), rtol=1e-13)


def test_which_points_are_near_is_constant():
    def f(x):
        tree, same = KDTree(x), KDTree(np.asarray(effgrad.stop_gradient(x)))
        pairs = np.array(sorted(tree.query_pairs(1.5)))
        assert TREE.query_ball_point(x[0], 1.0) == TREE.query_ball_point(same.data[0], 1.0)
        assert tree.count_neighbors(tree, 1.0) == same.count_neighbors(same, 1.0)
        assert TREE.count_neighbors(tree, 1.0, weights=None) == TREE.count_neighbors(same, 1.0)
        assert TREE.query_ball_tree(other=tree, r=2.0) == TREE.query_ball_tree(same, 2.0)
        assert (tree.n, tree.m) == (4, 3)
        return np.sum(np.linalg.norm(x[pairs[:, 0]] - x[pairs[:, 1]], axis=1))

    expected, _ = directional(f, X, U, step=1e-4)
    assert np.sum(grad(f)(X) * U) == pytest.approx(float(expected), rel=1e-7)


def cubes(x, pairs):
    return sum((np.sum((x[i] - POINTS[j]) ** 3) * (1 + i) for i, j in pairs), np.sum(x))


def numbered(found):
    return [(i, j) for i, near in enumerate(found) for j in near if j < 30]


FOUND = {
    "query_pairs": lambda x: KDTree(x).query_pairs(1.5),
    "query_pairs as an array": lambda x: cKDTree(x).query_pairs(1.5, output_type="ndarray"),
    "query_pairs in a box": lambda x: KDTree(x % 2.0, boxsize=2.0).query_pairs(r=0.9, p=1),
    "query_ball_point of one": lambda x: numbered([TREE.query_ball_point(x[0] ** 2, 1.0)]),
    "query_ball_point": lambda x: numbered(KDTree(POINTS).query_ball_point(x, np.array([0.5, 1.0, 1.5, 0.1]))),
    "query_ball_point of its own": lambda x: numbered(cKDTree(x).query_ball_point(x, 1.5)),
    "query_ball_tree": lambda x: numbered(TREE.query_ball_tree(KDTree(x), 1.0))[:3],
    "query_ball_tree of its own": lambda x: numbered(KDTree(x).query_ball_tree(TREE, r=1.0)),
    "counts": lambda x: [(0, n) for n in TREE.query_ball_point(x, 1.0, return_length=True)],
}


@pytest.mark.parametrize("name", FOUND)
def test_a_compiled_program_finds_its_own_neighbours(name):
    """It was refused, since the tree of the recorded points is not that of the points of a later call."""
    f = lambda x: cubes(x, [(i % 4, j) for i, j in FOUND[name](x)])  # noqa: E731
    expected, _ = directional(f, X, U, step=1e-5)
    assert np.sum(grad(f)(X) * U) == pytest.approx(float(expected), rel=1e-6)
    program = compile(grad(f))
    for x in (X, -1.3 * X, X[::-1] * 0.4):
        np.testing.assert_allclose(program(x), grad(f)(x), rtol=1e-12)
    np.testing.assert_allclose(vmap(f)(np.stack([X, X])), [f(X)] * 2, rtol=1e-13)


def test_a_compiled_program_counts_no_neighbours():
    with pytest.raises(NoRule, match="query_pairs and query_ball_tree alone"):
        compile(grad(lambda x: TREE.count_neighbors(cKDTree(x), 1.0) * np.sum(x)))(X)


@pytest.mark.parametrize("f, what", [
    (lambda x: KDTree(x).sparse_distance_matrix(KDTree(x), 1.0), "query_pairs"),
    (lambda x: TREE.query(X, p=1 + x[0, 0] ** 2)[0], "constants"),
    (lambda x: KDTree(x, boxsize=x[0] ** 2 + 9), "constants"),
])  # fmt: skip
def test_other_calls_are_refused(f, what):
    with pytest.raises(NoRule, match=what):
        grad(lambda x: np.sum(f(x)))(X)


@pytest.mark.parametrize("f", [lambda x: KDTree(x * 1j).query(X), lambda x: KDTree(x).query(x[:, :2])])
def test_what_scipy_rejects_is_rejected(f):
    with pytest.raises(Exception) as plain:  # noqa: PT011, the error is SciPy's
        f(X)
    with pytest.raises((type(plain.value), NoRule)):
        jvp(f, (X,), (U,))
