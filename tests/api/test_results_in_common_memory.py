"""Results share memory with each other where NumPy's do, in every mode and compiled. NumPy's results are the judge."""

import re

import mutating
import numpy as np
import pytest
from results_like_numpys import check_results

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
    "jvp": lambda f, x: jvp(f, (x,), (x,))[0],
    "vjp": lambda f, x: vjp(f, x)[0],
    "linearize": lambda f, x: linearize(f, x)[0],
    "second_order": lambda f, x: second_order(f, x, x)[0],
    "taylor": lambda f, x: taylor(f, [x, x])[0],
    "auxiliary": lambda f, x: value_and_grad(lambda y: (np.sum(y), f(y)), has_aux=True)(x)[0][1],
    "compiled": lambda f, x: compile(f)(x),
    "compiled again": lambda f, x: twice(compile(f), x),
    "compiled for NumPy": lambda f, x: compile(f, "numpy")(x),
    "compiled vjp": lambda f, x: compile(lambda y: vjp(f, y)[0])(x),
    "vjp in jvp": lambda f, x: jvp(lambda y: vjp(f, y)[0], (x,), (x,))[0],
    "auxiliary in vjp": lambda f, x: vjp(with_auxiliary(f), x)[0],
}


def twice(f, x):
    f(x + 1.0)
    return f(x)


def with_auxiliary(f):
    return lambda x: value_and_grad(lambda x: (np.sum(x), f(x)), has_aux=True)(x)[0][1]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("n", [1, 2])
def test_arrays_that_hold_only_constants_in_the_end(n, mode):
    """The derivative has no value in their memory, yet they are its arrays; one of one element could not be written."""

    def f(x):
        a, b, c = x * 1.0, x + 1.0, x * 2.0
        a[...] = 2.0
        b[...] = b - b
        np.fill_diagonal(b.T, 0.5)
        c[:] = np.ones(n)
        return a, a[:], b, np.rot90(b), c

    x = np.linspace(0.5, 1.5, n * n).reshape(n, n)
    check_results(f(x.copy()), MODES[mode](f, x))


def test_an_array_without_axes_of_a_written_array():
    def f(x):
        a = -x
        a[:, 1] = 2.0
        return a[1, 1, ...]

    for mode in MODES.values():
        assert type(mode(f, X)) is np.ndarray


def by_ellipsis(a, v):
    a[...] = v


def by_empty_tuple(a, v):
    a[()] = v


def by_mask(a, v):
    a[a > 0.2] = v


def by_flat(a, v):
    a.flat[0] = v


WRITES = {
    "ellipsis": by_ellipsis, "empty tuple": by_empty_tuple, "mask": by_mask, "fill": lambda a, v: a.fill(v),
    "out": lambda a, v: np.multiply(a, v, out=a), "where": lambda a, v: np.add(a, v, out=a, where=a > 0.2),
    "copyto": lambda a, v: np.copyto(a, v), "flat": by_flat, "nothing": lambda a, v: a,
}  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("written", WRITES)
def test_an_array_without_axes_alone(written, mode):
    for make in (lambda x: np.array(0.5), lambda x: np.array(x[0, 0]), lambda x: np.full((), x[1, 1])):

        def f(x, make=make):
            a = make(x)
            WRITES[written](a, x[2, 1])
            return a

        check_results((f(X.copy()),), (MODES[mode](f, X),))


@pytest.mark.thinned(4)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("view", VIEWS)
def test_an_array_and_a_view_of_it(view, maker, mode):
    def f(x):
        a = MAKERS[maker](x)
        return a, VIEWS[view](a)

    check_results(f(X.copy()), MODES[mode](f, X))


@pytest.mark.parametrize("seed", range(200))
def test_views_of_two_arrays(seed):
    draw = np.random.default_rng(seed)
    makers = draw.choice(list(MAKERS), 2)
    chosen = [(draw.integers(2), str(draw.choice(list(VIEWS)))) for _ in range(4)]

    def f(x):
        made = [MAKERS[name](x) for name in makers]
        results = [VIEWS[name](made[k]) for k, name in chosen]
        return {"first": results[0], "rest": (results[1], [results[2], results[3]])}

    check_results(f(X.copy()), MODES[str(draw.choice(list(MODES)))](f, X))


@pytest.mark.thinned(10)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "mode", ["jvp", "vjp", "compiled", "compiled for NumPy", "auxiliary", "compiled vjp", "vjp in jvp"]
)
@pytest.mark.parametrize("seed", range(100))
def test_all_arrays_of_random_programs(seed, mode):
    text, x = mutating.generate(seed)
    head, _, result = text.rstrip().rpartition("return ")
    names = sorted({*re.findall(r"\b[as]\d+\b", result)})
    f = mutating.function(f"{head}return {', '.join(names)}\n", seed)
    with np.errstate(all="ignore"):
        check_results(f(x.copy()), MODES[mode](f, x), lambda a, b: np.testing.assert_allclose(a, b, 1e-9, 1e-9))


INNER = {
    "jvp": lambda g, w: jvp(g, (w,), (w,))[0],
    "vjp": lambda g, w: vjp(g, w)[0],
    "linearize": lambda g, w: linearize(g, w)[0],
    "auxiliary": lambda g, w: value_and_grad(lambda x: (np.sum(x), g(x)), has_aux=True)(w)[0][1],
}
OUTER = {name: MODES[name] for name in ("jvp", "vjp", "second_order", "compiled", "compiled vjp")}


@pytest.mark.thinned(6)
@pytest.mark.parametrize("outer", OUTER)
@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("view", VIEWS)
def test_an_array_of_the_program_around_a_derivative_stays_that_array(view, make, inner, outer):
    def program(derivative):
        def f(x):
            a = MAKERS[make](x)
            seen = VIEWS[view](a)
            result = derivative(lambda y: seen, x)
            if view != "a number" and seen.flags.writeable:
                result[...] = np.sum(x)
            return a, result, np.sum(a * np.conj(a))

        return f

    def close(a, b):
        np.testing.assert_allclose(a, b, 1e-6 if make == "single" else 1e-12)

    check_results(program(lambda g, x: g(x))(X.copy()), OUTER[outer](program(INNER[inner]), X), close)


@pytest.mark.parametrize("inner", INNER)
def test_gradients_through_writes_to_an_array_around_a_derivative(inner):
    def f(w):
        y = np.zeros(3)
        for i in range(3):
            y[i] = 2.0 * w[i]
        z = y.reshape(3, 1)
        a, b = INNER[inner](lambda x: (y, z), w)
        a[0] = 5.0
        return np.sum(y * y) + np.sum(b * z)

    w = np.arange(1.0, 4.0)  # 2 (5**2 + (2 w1)**2 + (2 w2)**2) after the write
    value, slope = value_and_grad(f)(w)
    assert value == 154.0
    np.testing.assert_array_equal(slope, [0.0, 32.0, 48.0])
    np.testing.assert_array_equal(compile(value_and_grad(f))(w)[1], slope)
    assert jvp(f, (w,), (np.ones(3),)) == (154.0, 80.0)


def test_stretches_of_one_memory_that_lie_apart_are_arrays_of_their_own():
    def f(x):
        y = x * 2.0
        return y[:2], y[1:3], y[3:], y[3:][::-1]

    first, second, third, reversed_third = compile(f)(np.arange(6.0))
    np.testing.assert_array_equal(second, [2.0, 4.0])
    second[0] = 7.0
    third[0] = 8.0
    assert first[1] == 7.0
    assert reversed_third[-1] == 8.0
    assert first.base is second.base is not third.base
