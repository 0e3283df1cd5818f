"""Machine code that joins arrays and reads them at computed places: as NumPy does, without calling it."""

import numpy as np
import optree
import pytest
from graphs import optimised

import effgrad
from effgrad.stage import stage
from effgrad.stage.native import program
from effgrad.stage.native.steps import Call

X, Y = np.random.default_rng(0).normal(size=(2, 4, 3))
ROWS, TABLE = np.array([0, 3, -1, 2]), np.array([[1, 0], [-2, 3]])

JOINED = {
    "stack": lambda x, y: np.stack([x * 2, y, x + y], 1),
    "concatenate": lambda x, y: np.concatenate([x, y * x]),
    "last axis, and used": lambda x, y: np.concatenate([x, x], axis=-1) * 2,
    "joins inside joins": lambda x, y: np.concatenate([
        np.stack([np.column_stack([x, y * 2]), np.column_stack([y, x])], axis=1).ravel(), (x * y)[:, 0]
    ]),
    "a piece twice": lambda x, y: (lambda z: np.concatenate([z, z]))(np.concatenate([x, y]).ravel()),
    "a piece that is a result too": lambda x, y: (lambda z: (np.concatenate([z.ravel(), z.ravel()]), z))(
        np.stack([x, y])
    ),
    "a piece that has to be turned": lambda x, y: np.concatenate([np.stack([x, y]).T.ravel(), np.ones(2)]),
    "numbers": lambda x, y: np.array([x[0, 0], y[1, 1] * 2, 3.0]),
    "constants": lambda x, y: np.vstack([x[0], np.ones(3), y[1]]),
    "of other types": lambda x, y: np.concatenate([x.astype(np.float32), y]),
    "truth values": lambda x, y: np.concatenate([x > 0, y < 0]),
    "an empty piece": lambda x, y: np.concatenate([x[:0], y]),
    "slices that cover": effgrad.grad(lambda x, y: np.sum(x[:, :1] ** 2) + np.sum(x[:, 1:] * y[:, 1:])),
    "slices that leave gaps": effgrad.grad(lambda x, y: np.sum(x[:1] ** 2) + np.sum(x[3:] * y[3:])),
    "slices that overlap": effgrad.grad(lambda x, y: np.sum(x[1:] * y[1:] * x[:-1])),
}  # fmt: skip

LONG = np.random.default_rng(0).normal(size=(2, 600))


def columns(x, y):
    return np.column_stack([x, np.arange(600.0), y * x])


# Joins of long pieces, which are put to several places piece by piece.
SPREAD = {
    "twice in one": lambda x, y: (lambda z: np.stack([z, z], axis=1))(columns(x, y)),
    "twice, and more": lambda x, y: (lambda z: np.concatenate([np.stack([z, z], axis=1).ravel(), x]))(columns(x, y)),
    "in two": lambda x, y: (lambda z: (np.vstack([z, z * 2]), np.hstack([columns(y, x), z])))(columns(x, y)),
    "in two, and a result": lambda x, y: (lambda z: (np.vstack([z, z + 1]), np.hstack([z, z]), z))(columns(x, y)),
    "of another type": lambda x, y: (lambda z: np.concatenate([z, z, np.stack([x, y])]))(np.stack([x > 0, y > 0])),
    "in each other": lambda x, y: (lambda z: (lambda w: np.stack([w, w]))(np.stack([z, z])))(columns(x, y)),
}  # fmt: skip

INTEGERS = {
    "sums": lambda i, x: (i + 3) * i - (2 - i),
    "of 32 and 64 bits": lambda i, x: i * np.arange(4) - i,
    "that overflow": lambda i, x: i * 2**20 * 2**10,
    "as floats": lambda i, x: i * x + i / 2 + np.sqrt(i),
    "from floats": lambda i, x: (100 * x).astype(np.int32) + i,
    "narrowed": lambda i, x: (np.arange(4) * 2**31 + i).astype(np.int32),
    "compared": lambda i, x: (i > 1) & (i != 3) & (i < 2**40) & (i <= x),
    "chosen": lambda i, x: np.where(x > 0, i, -i),
    "added up": lambda i, x: (np.sum(i), np.sum(i, dtype=np.int32), np.sum(i * x)),
    "joined": lambda i, x: np.concatenate([i, i + 1, np.arange(2, dtype=np.int32)]),
    "as truth values": lambda i, x: (i.astype(bool), (x > 0).astype(np.int32)),
    "as an index": lambda i, x: x[i - 4] * 2,
}


GATHERED = {
    "rows": (lambda x, i: x[i], X, ROWS),
    "rows of a view": (lambda x, i: x.T[i[:3] % 3], X, ROWS),
    "numbers": (lambda x, i: np.exp(x)[i] * x[0], X[:, 0], TABLE),
    "a table of rows": (lambda x, i: x[i] * 2, X, TABLE),
    "rows of rows": (lambda x, i: x[i][i], X, ROWS),
    "whole axes after": (lambda x, i: x[i, :] + x[i, ...], X, ROWS),
    "narrow integers": (lambda x, i: x[i.astype(np.int32)], X, ROWS),
    "and back": (effgrad.grad(lambda x, i: np.sum(x[i] ** 2)), X, ROWS),
    "the other axis": (lambda x, i: x[:, i % 3], X, ROWS),
}


@pytest.mark.parametrize("name", JOINED)
def test_joined_arrays(name):
    assert_as_numpy(JOINED[name], (Y, X), (X, Y))


@pytest.mark.parametrize("name", SPREAD)
def test_joins_in_several_places(name):
    assert_as_numpy(SPREAD[name], LONG[::-1], LONG)


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_of_32_bits(name):
    first, second = np.array([[1, 2, 3, 4], [4, 3, 0, 1]], np.int32)
    assert_as_numpy(INTEGERS[name], (first, X[:, 0]), (second, X[:, 1]))


def assert_as_numpy(f, first, arguments):
    """A function compiled for the first arguments has for others the results that it has in NumPy."""
    compiled = effgrad.compile(f)
    compiled(*first)
    actual, expected = compiled(*arguments), f(*arguments)
    for a, b in zip(*(r if isinstance(r, tuple) else (r,) for r in (actual, expected)), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", ["stack", "joins inside joins", "slices that cover", "numbers"])
def test_joins_do_not_call_numpy(name):
    native = program(optimised(stage(JOINED[name])(X, Y)))
    assert not any(isinstance(step, Call) for step in native.plan.steps)


def test_a_join_inside_another_needs_no_memory_of_its_own():
    def nested(x, y):
        return np.concatenate([np.stack([x * 2, y * 2], axis=1).ravel(), x[0]])

    x, y = np.ones((2, 10_000, 3))
    plan = program(optimised(stage(nested)(x, y))).plan
    assert plan.arena < x.nbytes


def both_ways(x):
    y = np.sin(x)
    return np.roll(y, 1) - 2 * y + np.roll(y, -1) * np.roll(x, 3)


def shifted_twice(x):
    """Two joins that want the same element before the vector."""
    y = x * x
    return np.concatenate([[2.0], y[:-1]]) * np.concatenate([y[-1:], y[:-1]]) + y


def joined_further(x):
    y = np.exp(x)
    moved = np.concatenate([y[3:], y[:2], [1.0]])
    return np.concatenate([moved * 2, np.concatenate([[0.5], moved[:-1]])])


def written_moved(x):
    y = np.zeros(len(x) + 3)
    y[1 : len(x) - 1] = (x * 2)[2:]
    y[-1] = x[0]
    return y, y[1:] * 2, x * 2


MOVED = [both_ways, shifted_twice, joined_further, written_moved]


@pytest.mark.parametrize("size", [5, 1000])
@pytest.mark.parametrize("f", MOVED, ids=lambda f: f.__name__)
def test_vectors_that_are_moved_along(f, size):
    def cost(x):
        return sum(np.sum(np.sin(y)) for y in optree.tree_leaves(f(x)))

    x = np.random.default_rng(0).uniform(size=size)
    for g in (f, effgrad.grad(cost), lambda x: effgrad.jvp(cost, (x,), (np.cos(x),))):
        compiled = effgrad.compile(g)
        for point in (x, 2 * x):
            np.testing.assert_equal(
                [np.asarray(y).shape for y in optree.tree_leaves(compiled(point))],
                [np.asarray(y).shape for y in optree.tree_leaves(g(point))],
            )
            for found, expected in zip(optree.tree_leaves(compiled(point)), optree.tree_leaves(g(point)), strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)


def test_a_vector_that_is_moved_along_is_not_copied():
    def steps(x):
        y = x
        for _ in range(4):
            y = x * np.concatenate([[1.0], y[:-1]]) + np.roll(y, -1)
        return y

    shapes = [step.kernel.shape for step in program(optimised(stage(steps)(np.ones(1000)))).plan.steps]
    # The argument lies where the caller has it: its moved copies are the only ones.
    assert shapes.count((999,)) <= 2


@pytest.mark.parametrize("name", GATHERED)
def test_reading_at_computed_places(name):
    f, x, index = GATHERED[name]
    compiled = effgrad.compile(f)
    compiled(x, index)
    for places in (index, index[::-1].copy()):
        np.testing.assert_allclose(compiled(x * 2, places), f(x * 2, places), rtol=1e-14)


def test_places_out_of_range_are_an_error():
    compiled = effgrad.compile(lambda x, i: x[i] * 2)
    compiled(X, ROWS)
    with pytest.raises(IndexError, match="index 4 is out of bounds for axis 0 with size 4"):
        compiled(X, ROWS + 1)
    with pytest.raises(IndexError, match="index -5 is out of bounds"):
        compiled(X, ROWS - 4)


def test_a_strided_piece_takes_few_operations():
    """Each hole between the elements of `x[::2]` was cleared by an operation of its own: half as many as elements."""
    x = np.linspace(0.1, 1.0, 2000)

    def gradient(x):
        return effgrad.grad(lambda x: np.sum(x[::2] ** 3))(x)

    steps = program(optimised(stage(gradient)(x))).plan.steps
    assert sum(len(step.kernel.nodes) for step in steps) < 10
    expected = np.zeros(2000)
    expected[::2] = 3 * x[::2] ** 2
    np.testing.assert_allclose(effgrad.compile(gradient)(x), expected, rtol=1e-15)


def vector(rng, depth=0):
    """The text of a random vector, of pads and joins of parts that are computed early and late."""
    kinds = ["np.sin(x * 1.3)", "np.cos(x * t)", "u * 0.7", "y[1:]", "y"]
    form = int(rng.integers(0, 6 if depth < 4 else 1))
    first, second = (vector(rng, depth + 1) if form else "" for _ in range(2))
    number = rng.integers(4)
    return [
        kinds[rng.integers(5)], f"np.concatenate([{first}, {second}])", f"np.pad({first}, ({number}, {3 - number}))",
        f"np.concatenate([np.zeros({number}), {first}])", f"({first})[{number} : -2]", f"np.exp(-(({first}) ** 2))",
    ][form]  # fmt: skip


@pytest.mark.parametrize("seed", range(60))
def test_random_joins_are_numpys(seed):
    """A pad inside a join whose memory begins before a vector's was not cleared: it held what had been there."""
    text = f"np.concatenate([y[{seed % 3} :], {vector(np.random.default_rng(seed))}])"
    names = {"np": np}
    exec(f"def f(x, u, w):\n    t = np.sum(np.sort(w))\n    y = np.sin(x * t)\n    return {text}", names)
    compiled = effgrad.compile(names["f"])
    for start in (0.0, 1.0):
        point = np.linspace(start, start + 1, 300), np.arange(4.0) + start, np.full(309, 7.5 / 309)
        np.testing.assert_allclose(compiled(*point), names["f"](*point), rtol=1e-9, err_msg=text)
