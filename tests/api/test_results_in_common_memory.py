"""Results share memory with each other where NumPy's do, in every mode and compiled. NumPy's results are the judge."""

import numpy as np
import optree
import pytest

from effgrad import compile, jvp, linearize, second_order, taylor, value_and_grad, vjp

X = np.linspace(0.3, 2.0, 12).reshape(3, 4)


def filled(x):
    a = np.zeros((3, 4))
    for i in range(3):
        a[i] = x[2 - i]
    return a


def partly_filled(x):
    a = np.ones((4, 3)).T
    a[1, 2:] = x[0, :2]
    return a


def written(x):
    a = -x
    a[:, 1] = 2.0
    a.T[3] = x[:, 0]
    return a


MAKERS = {
    "computed": lambda x: x * 2.0,
    "transposed": lambda x: (x.reshape(4, 3) + 1.0).T,
    "filled": filled,
    "partly filled": partly_filled,
    "written": written,
    "constant": lambda x: np.ones((3, 4)),
    "complex": lambda x: x * (1.0 + 2.0j),
    "single": lambda x: x.astype(np.float32),
    "the argument": lambda x: x,
}
VIEWS = {
    "itself": lambda a: a,
    "transposed": lambda a: a.T,
    "a row": lambda a: a[1],
    "a column": lambda a: a[:, 2],
    "reversed": lambda a: a[::-1, 1::2],
    "the diagonal": np.diagonal,
    "flat": np.ravel,
    "another shape": lambda a: a.reshape(2, 6),
    "real": np.real,
    "imaginary": np.imag,
    "an axis more": lambda a: a[:, None],
    "a copy": lambda a: a.copy(),
    "repeated": lambda a: np.broadcast_to(a, (2, 3, 4)),
    "a number": lambda a: a[0, 0],
    "empty": lambda a: a[:0],
    "without axes": lambda a: a[1, 1, ...],
}
MODES = {
    "jvp": lambda f: jvp(f, (X,), (X,))[0],
    "vjp": lambda f: vjp(f, X)[0],
    "linearize": lambda f: linearize(f, X)[0],
    "second_order": lambda f: second_order(f, X, X)[0],
    "taylor": lambda f: taylor(f, [X, X])[0],
    "auxiliary": lambda f: value_and_grad(lambda x: (np.sum(x), f(x)), has_aux=True)(X)[0][1],
    "compiled": lambda f: compile(f)(X),
    "compiled again": lambda f: twice(compile(f)),
    "compiled for NumPy": lambda f: compile(f, "numpy")(X),
    "compiled vjp": lambda f: compile(lambda x: vjp(f, x)[0])(X),
    "vjp in jvp": lambda f: jvp(lambda x: vjp(f, x)[0], (X,), (X,))[0],
    "auxiliary in vjp": lambda f: vjp(with_auxiliary(f), X)[0],
}


def twice(f):
    f(X + 1.0)
    return f(X)


def with_auxiliary(f):
    return lambda x: value_and_grad(lambda x: (np.sum(x), f(x)), has_aux=True)(x)[0][1]


def arrays(results):
    return [leaf for leaf in optree.tree_leaves(results) if isinstance(leaf, np.ndarray)]


def relations(results):
    """Return which pairs of results share elements, and what each holds after a write to each of the others."""
    found, after = arrays(results), []
    shared = [[np.shares_memory(a, b) for a in found] for b in found]
    for a, others in zip(found, shared, strict=True):
        if a.flags.writeable and sum(others) > 1:
            a[(0,) * a.ndim] = len(after)
        after.append([np.array(b) for b in found])
    return shared, [a.flags.writeable or sum(row) < 2 for a, row in zip(found, shared, strict=True)], after


def check(f, mode):
    plain, ours = f(X.copy()), mode(f)
    for one, other in zip(optree.tree_leaves(plain), optree.tree_leaves(ours), strict=True):
        np.testing.assert_array_equal(np.asarray(other), one)
        assert type(other) is type(one)
        if isinstance(one, np.ndarray):
            assert other.dtype == one.dtype
    (shared, writeable, after), (our_shared, our_writeable, our_after) = relations(plain), relations(ours)
    assert our_shared == shared
    assert our_writeable == writeable
    for one, other, others in zip(arrays(plain), arrays(ours), shared, strict=True):
        assert sum(others) < 2 or other.strides == one.strides
    for one, other in zip(after, our_after, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(b, a)


def test_an_array_without_axes_of_a_written_array():
    def f(x):
        a = -x
        a[:, 1] = 2.0
        return a[1, 1, ...]

    for mode in MODES.values():
        assert type(mode(f)) is np.ndarray


@pytest.mark.thinned(4)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("view", VIEWS)
def test_an_array_and_a_view_of_it(view, maker, mode):
    def f(x):
        a = MAKERS[maker](x)
        return a, VIEWS[view](a)

    check(f, MODES[mode])


@pytest.mark.parametrize("seed", range(200))
def test_views_of_two_arrays(seed):
    draw = np.random.default_rng(seed)
    makers = draw.choice(list(MAKERS), 2)
    chosen = [(draw.integers(2), str(draw.choice(list(VIEWS)))) for _ in range(4)]

    def f(x):
        made = [MAKERS[name](x) for name in makers]
        results = [VIEWS[name](made[k]) for k, name in chosen]
        return {"first": results[0], "rest": (results[1], [results[2], results[3]])}

    check(f, MODES[str(draw.choice(list(MODES)))])
