"""Writes in straight-line programs in machine code: NumPy's values to the bit, without calling it."""

import mutating
import numpy as np
import pytest
from graphs import optimised

import effgrad
from effgrad.stage import stage
from effgrad.stage.native import program
from effgrad.stage.native.steps import Call

RANDOM = np.random.default_rng(0)
X, WIDE = RANDOM.uniform(0.1, 0.9, (6, 8)), RANDOM.uniform(0.1, 0.9, (40, 50))
TABLE = np.array([0, 2, 2, 5])


def borders(x):
    p = np.zeros_like(x)
    p[1:-1, 1:-1] = 0.25 * (x[1:-1, :-2] + x[1:-1, 2:] + x[:-2, 1:-1] + x[2:, 1:-1])
    p[:, 0] = 1.0
    p[:, -1] = p[:, -2]
    p[0, :] = p[1, :]
    p[-1, :] = 0.0
    return p


def padded(x):
    n, m = x.shape
    a = np.empty((n + 2, m + 2))
    a[1:-1, 1:-1] = x * 2
    a[0], a[-1] = 0.0, 1.0
    a[1:-1, 0], a[1:-1, -1] = x[:, 0], -x[:, -1]
    return a


def scaled(x):
    a = x * x
    a[1:-1] *= 2.0
    a[::2, ::-3] -= x[::2, ::-3] * 0.5
    a[0, 0] = x[1, 1]
    return a


def exchanged(x):
    a = x + 1.0
    a[0], a[-1] = a[-1].copy(), a[0].copy()
    a[1:] = a[:-1].copy()
    a[:, 0] = a[:, 1] * a[:, 2]
    return a


def shifted(x):
    """Parts of the memory that is written to are what is written."""
    a = x + 1.0
    a[0, 0], a[1:3, 1] = a[1, 0], a[2:4, 1]
    a[1, 0], a[2, 1] = a[0, 3] * 2.0, a[3, 2]
    a = a * 1.0
    a[::-1] = a
    a = a * 1.0
    a[0, 1], a[0, 2], a[1] = a[0, 2], a[0, 1] + a[1, 1], a[2]
    return a


def kept_base(x):
    a = x * 3.0
    b = a.copy()
    b[1] = x[2]
    b[:, ::2] = 0.5
    return a * b + a


def through_views(x):
    a = x * 1.5
    a.T[2] = 0.25
    a.reshape(-1)[::7] = x.reshape(-1)[::7] * 4
    rows = a[2:4]
    rows[:, 1:3] += x[:2, 1:3]
    return a


def by_table(x):
    a = x * 2.0
    a[TABLE] += x[:4]
    a[[3, 1]] = a[[1, 3]] * 0.5
    a[TABLE, TABLE] = x[0, :4]
    return a


def added_at(x):
    a = x * 2.0
    np.add.at(a, TABLE, x[:4])
    np.add.at(a, (TABLE, TABLE), x[0, :4])
    return a


def narrow(x):
    a = x.astype(np.float32)
    a[1] = x[0]
    a[:, 2] = 0.1
    counts = np.zeros(x.shape, np.int64)
    counts[2:, 1:] = 3
    flags = x > 0.5
    flags[:, 0] = True
    return a * counts + flags


def twice(x):
    a = x * 2.0
    a[1:3] = x[1:3] * a[0]
    b = a * a
    b[1:3] = a[1:3]
    b[2] = b[1] + a[3]
    return b - a


def masked(x):
    a = 1.0 / x
    a[x > 0.5] = x[0, 0]
    a[x[:, 0] < 0.4] = x[2]
    a[1:][x[1:] < 0.3] = 0.0
    return a


PROGRAMS = [
    borders, padded, scaled, exchanged, shifted, kept_base, through_views, by_table, added_at, narrow, twice, masked,
]


def native(f, *args):
    graph = optimised(stage(f)(*args))
    return program(graph)


def loss(f, *rest):
    return lambda x: np.sum(f(x, *rest) ** 2 * np.arange(1.0, 1.0 + f(x, *rest).size).reshape(f(x, *rest).shape))


@pytest.mark.parametrize("x", [X, WIDE], ids=["small", "large"])
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_a_write_gives_the_value_of_numpy_to_the_bit(f, x):
    expected = f(x.copy())
    (found,) = native(f, x)(x)
    assert found.dtype == expected.dtype
    assert found.tobytes() == expected.tobytes()
    again = native(f, x)
    assert [again(x)[0].tobytes() for _ in range(2)] == [expected.tobytes()] * 2


@pytest.mark.parametrize("f", [f for f in PROGRAMS if f is not narrow], ids=lambda f: f.__name__)
def test_derivatives_of_writes_are_those_of_differences(f):
    u, step = np.random.default_rng(1).normal(size=X.shape), 1e-5
    along = [loss(f)(X + k * step * u) for k in (-2, -1, 1, 2)]
    slope = np.dot(along, [1, -8, 8, -1]) / (12 * step)
    value, gradient = effgrad.compile(effgrad.value_and_grad(loss(f)))(X)
    tangent = effgrad.compile(lambda x: effgrad.jvp(loss(f), (x,), (u,))[1])(X)
    assert value == pytest.approx(loss(f)(X), rel=1e-13)
    assert np.sum(gradient * u) == pytest.approx(slope, rel=1e-8)
    assert tangent == pytest.approx(slope, rel=1e-8)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_a_write_is_no_call_of_numpy(f):
    run, derivative = native(f, X), native(effgrad.grad(loss(f)), X)
    calls = [s.node.primitive.name for s in (*run.plan.steps, *derivative.plan.steps) if isinstance(s, Call)]
    assert calls == []


def test_a_base_that_nobody_reads_again_is_written_in_place():
    """One array of 10,000 rows has room for itself alone: no copy of it is made for three writes."""

    def f(x):
        a = np.exp(x)
        a[0] = 0.0
        a[5:7] = x[0]
        a[-1] *= 2.0
        return np.sum(a * a)

    x = np.ones((10_000, 3))
    assert native(f, x).plan.arena < 1.1 * x.nbytes


def test_the_mask_of_a_plain_array_is_no_path():
    def f(x):
        a = np.zeros(x.shape)
        a[x > 0.5] = 2.0
        return np.sum(a * x * x)

    gradient = effgrad.compile(effgrad.grad(f))
    assert gradient(np.array([0.0, 1.0, 3.0])).tolist() == [0.0, 4.0, 12.0]
    assert gradient(np.array([1.0, 0.0, -1.0])).tolist() == [4.0, 0.0, 0.0]
    assert [len(paths.all) for paths in gradient.types.values()] == [1]


def test_a_branch_that_a_mask_excludes_gives_no_nan():
    def f(x):
        a = np.log(x)
        a[x <= 0.0] = 0.0
        return np.sum(a)

    gradient = effgrad.compile(effgrad.grad(f))
    with np.errstate(all="ignore"):
        assert gradient(np.array([2.0, 0.0, 4.0])).tolist() == [0.5, 0.0, 0.25]
        assert gradient(np.array([0.0, 1.0, -1.0])).tolist() == [0.0, 1.0, 0.0]


COMPUTED = {
    "a row": lambda x, k, places: _after(np.sin(x), lambda a: a.__setitem__(places[0], x[0] * 2)),
    "an element": lambda x, k, places: _after(np.sin(x), lambda a: a.__setitem__((k, -1), x[0, 1] * 2)),
    "a part of a row": lambda x, k, places: _after(np.sin(x), lambda a: a.__setitem__((k - 6, slice(2, 5)), x[1, :3])),
    "an element of two places": lambda x, k, places: _after(
        np.sin(x), lambda a: a.__setitem__((places[0], places[1]), x[0, 0])
    ),
    "a list of rows": lambda x, k, places: _after(np.sin(x), lambda a: a.__setitem__(places, x[:4] * 2)),
    "a list of rows, added": lambda x, k, places: _after(np.sin(x), lambda a: _add(a, places, x[:4] ** 2)),
    "a mask": lambda x, k, places: _after(np.sin(x), lambda a: a.__setitem__(x > x[places[0], 0], x[0, 0])),
    "a mask of rows": lambda x, k, places: _after(np.sin(x), lambda a: a.__setitem__(x[:, k] > 0.5, x[1])),
    "putmask": lambda x, k, places: _after(np.sin(x), lambda a: np.putmask(a, x > 0.5, x[0, 0])),
}


def _after(a, change):
    change(a)
    return a


def _add(a, places, values):
    a[places] += values


@pytest.mark.parametrize("name", COMPUTED)
def test_places_may_be_computed(name):
    """Places of other values are no other path of the program, and the last of several values at one place stays."""
    f = COMPUTED[name]
    compiled = effgrad.compile(effgrad.value_and_grad(lambda x, k, places: loss(f, k, places)(x)))
    random = np.random.default_rng(2)
    for _ in range(5):
        x, k, places = random.uniform(0.0, 1.0, X.shape), int(random.integers(6)), random.integers(-6, 6, 4)
        places[2] = places[1]
        value, gradient = compiled(x, k, places)
        u, step = random.normal(size=X.shape), 1e-5
        along = [loss(f, k, places)(x + j * step * u) for j in (-2, -1, 1, 2)]
        assert value == pytest.approx(loss(f, k, places)(x), rel=1e-13)
        assert np.sum(gradient * u) == pytest.approx(np.dot(along, [1, -8, 8, -1]) / (12 * step), rel=1e-7)
    assert max(len(paths.all) for paths in compiled.types.values()) == 1


def test_a_computed_place_that_is_not_there_is_an_error():
    def f(x, places):
        a = x * 2.0
        a[places] = 1.0
        return np.sum(a)

    compiled = effgrad.compile(f)
    assert compiled(np.ones(3), np.array([1, 2])) == 4.0
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0 with size 3"):
        compiled(np.ones(3), np.array([0, 3]))


@pytest.mark.parametrize("seed", range(0, 1200, 80))
def test_random_programs_with_writes(seed):
    with np.errstate(all="ignore"):
        assert not [found for k in range(2) for found in mutating.disagreements(50_000 + seed + k, ["compiled"])]


def test_a_report_names_what_numpy_computes():
    def f(x):
        return np.sum(np.linalg.solve(x + 10 * np.eye(4), x[0]))

    line = effgrad.compile(f).report(np.ones((4, 4))).splitlines()[0]
    assert line.endswith("1 calls of NumPy: solve (1)")


def test_a_program_without_steps_has_a_report():
    assert "0 steps" in effgrad.compile(effgrad.grad(lambda x: np.sum(x))).report(np.ones(3))
