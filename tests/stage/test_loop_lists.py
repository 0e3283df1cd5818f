"""Lists that a loop appends to are arrays of their items, where nothing else can have the list."""

import warnings

import numpy as np
import pytest

import effgrad


def trajectory(x, a):
    xs = [x]
    for _ in range(60):
        x = x + 0.01 * a * np.sin(x)
        xs.append(x)
    path = np.array(xs)
    return np.sum(path[:, 0] ** 2) + path[-1] @ path[3] + len(xs)


def numbers(x, a):
    values, squares, s = [], [0.5], x[0]
    for i in range(3, 63):
        s = s * np.cos(a * s) + 0.1 * i
        values.append(s)
        squares.append(s * s)
        squares.append(values[-1] - a)
    return np.sum(np.array(values) * np.arange(60)) + np.mean(np.stack(squares)) + squares[7] * values[-1]


def looking_back(x, a):
    xs = [x, x * a]
    for _ in range(60):
        xs.append(0.5 * xs[-1] + 0.4 * np.sin(xs[-2]) * len(xs) / 60.0)
    return np.sum(np.vstack(xs)[5:] ** 2)


def inside(x, a):
    total = 0.0
    for i in range(50):
        terms = []
        for j in range(4):
            terms.append(a * x[j % 3] * (i + j))
        total = total + np.sum(np.array(terms) ** 2) * 1e-4
    return total


def backwards(x, a):
    found = []
    for i in range(59, -1, -1):
        x = x * 0.99 + a * 0.01 * i
        found.append(x.copy())
    x[0] = 3.0
    return np.sum(np.array(found)[::7] * x)


def counted(x, a):
    ks, k = [], 0
    for i in range(60):
        k = (k * 3 + i) % 3
        ks.append(k)
    return np.sum(x[np.array(ks)] * a)


PROGRAMS = [trajectory, numbers, looking_back, inside, backwards, counted]
X, A = np.array([0.3, -0.7, 1.1]), 0.8


def close(found, wanted, tolerance=1e-9):
    for a, b in zip(found, wanted, strict=True):
        assert np.max(np.abs(np.asarray(a) - b)) <= tolerance * (1 + np.max(np.abs(b)))


@pytest.mark.thinned(3)
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_lists_that_are_stacked_are_captured(f):
    gradient = effgrad.grad(f, argnums=(0, 1))
    second = effgrad.grad(lambda x: effgrad.grad(f)(x, A) @ np.cos(np.arange(3)))
    value, wanted, wanted_second = f(X.copy(), A), gradient(X.copy(), A), second(X.copy())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        close([effgrad.compile(f)(X.copy(), A)], [value])
        close(effgrad.compile(gradient)(X.copy(), A), wanted)
        close([effgrad.compile(second)(X.copy())], [wanted_second])


def returned(x, a):
    xs = []
    for i in range(40):
        xs.append(x * i)
    return xs


def with_another_name(x, a):
    xs = []
    ys = xs
    for i in range(40):
        xs.append(x[0] * i)
    return np.sum(np.array(xs)) + len(ys)


def in_some_steps(x, a):
    xs = []
    for i in range(40):
        if x[i % 3] > 0.2:
            xs.append(x[0] * i)
    return np.sum(np.array(xs))


def written_to(x, a):
    xs = []
    for _ in range(40):
        xs.append(x)
        x *= 0.9
    return np.sum(np.array(xs))


def a_part_written_to(x, a):
    xs = []
    for _ in range(40):
        xs.append(x[1:])
        x[2] = x[2] * 0.9
    return np.sum(np.array(xs))


def written_before_it_has_a_second_name(x, a):
    xs = []
    for _ in range(40):
        y = x * a
        xs.append(y)
        y[0] = 2.0
    return np.sum(np.array(xs))


def written_after(x, a):
    xs = []
    for _ in range(40):
        x = x * 0.9
        xs.append(x)
    x[0] = 5.0
    return np.sum(np.array(xs))


def of_an_outer_loop(x, a):
    xs = []
    for _ in range(3):
        for _ in range(40):
            x = x * 0.9
            xs.append(x[0] * a)
    return np.sum(np.array(xs))


def appended_after(x, a):
    xs = []
    for _ in range(40):
        x = x * 0.9
        xs.append(x[0] * a)
    xs.append(x[1])
    return np.sum(np.array(xs))


def of_other_shapes(x, a):
    xs = []
    for i in range(40):
        xs.append(x[: 1 + i % 2])
    return np.sum(np.concatenate(xs))


def kept_by_a_function(x, a):
    xs = []
    read = lambda: len(xs)  # noqa: E731
    for _ in range(40):
        x = x * 0.9
        xs.append(x[0] * a)
    return np.sum(np.array(xs)) * read()


LEFT = [
    returned, with_another_name, in_some_steps, written_to, a_part_written_to, written_before_it_has_a_second_name,
    written_after, of_an_outer_loop, appended_after, of_other_shapes, kept_by_a_function,
]  # fmt: skip


@pytest.mark.parametrize("f", LEFT, ids=lambda f: f.__name__)
def test_other_lists_are_pythons(f):
    with pytest.warns(UserWarning, match="is unrolled, because of"):
        found = effgrad.compile(f)(X.copy(), A)
    assert type(found) is type(f(X.copy(), A))
    close([found], [f(X.copy(), A)])


FROM_AROUND: list = []


def test_a_list_from_around_stays_one():
    """A name that a function does not bind must not become one of its own."""

    def outer(x):
        values = []

        def inner(y):
            for i in range(40):
                values.append(y * i)
                FROM_AROUND.append(i)
            return y

        return inner(x) + len(values)

    FROM_AROUND.clear()
    with pytest.warns(UserWarning, match="is unrolled"):
        assert effgrad.compile(outer)(2.0) == 42.0
    assert len(FROM_AROUND) == 40
