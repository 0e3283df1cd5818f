"""Iterators in captured loops: used up once, and each item is read when it is asked for, as Python does."""

import itertools
import warnings

import numpy as np
import pytest
from stateful_programs import assert_captured, assert_right, program

import effgrad

# Programs with a loop of 40 steps around one of these bodies, which changes y, a part of x or the total s in place.


def items_of_a_generator(x, y, s):
    for v in (y[k] * s for k in range(3)):
        y[2] = 0.9 * y[2] + 0.1 * v
        s = 0.6 * s + 0.1 * v
    return s


def a_generator_with_a_name(x, y, s):
    values = (y[k] * s for k in range(3))
    y[0] *= 0.9
    s = 0.5 * s
    return s + 0.1 * sum(values)


def an_array_beside_a_list(x, y, s):
    for a, b in zip(y, [1.0, 2.0, 3.0], strict=False):
        y[2] = 0.9 * y[2] + 0.01 * a
        s = 0.9 * s + a * b
    return s


def iterators_of_iterators(x, y, s):
    for k, (a, b) in enumerate(zip(reversed(y), (v * s for v in y), strict=True)):
        y[1] = 0.9 * y[1] + 0.01 * b
        s = 0.9 * s + a * b / (k + 1)
    return s


def a_map_and_a_filter(x, y, s):
    for k in filter(lambda k: k % 2 == 0, range(4)):
        for v in map(lambda a, b: np.sin(a) * b, y[: k + 1], x[: k + 1]):
            y[0] = 0.9 * y[0] + 0.01 * v
            s = 0.9 * s + v
    return s


def choices(x, y, s):
    for a, b in itertools.combinations([0, 1, 3], 2):
        s = 0.9 * s + y[a] * x[b]
    for a in itertools.chain(y[:2], [1.0], (0.5 * v for v in y[:2])):
        y[1] = 0.9 * y[1] + 0.01 * a
        s = 0.9 * s + a
    for a, b in itertools.pairwise(y):
        y[2] = 0.9 * y[2] + 0.01 * a * b
        s = 0.9 * s + b
    return 0.5 * s + 0.1 * sum(a * b for a in y for b in x[1:]) + 0.1 * max(v * v for v in y)


def unpacked_generators(x, y, s):
    a, b = (v * s for v in y[:2])
    first, *rest = map(np.cos, y)
    return 0.5 * s + 0.1 * a * b + 0.1 * first + 0.01 * len(rest) * dict(zip("ab", y[:2], strict=True))["b"]


def flat_elements(x, y, s):
    m = np.outer(y, x[:2])
    for v in m.flat:
        s = 0.9 * s + v * v
    for k, v in enumerate(m.T.flat):
        s = 0.9 * s + k * v
    return 0.5 * s + m.flat[3] + y.flat[1]


def products(a, b):
    return (v * w for v, w in zip(a, b, strict=True))


def total(values):
    return sum(v for v in values)


def iterators_of_functions(x, y, s):
    found = products(x, y)
    y[0] = 0.3 * s
    order = sorted((k for k in range(3)), key=lambda k: -k)
    return 0.5 * s + 0.1 * total(found) + 0.1 * total(numbered(y)) + 0.1 * y[order[0]]


def numbered(y):
    return (k * v for k, v in enumerate(y))


def functions_of_a_comprehension(x, y, s):
    """All close over one name k, which is 2 when they are called, and over s, which is another value then."""
    times = [lambda z: z * k * s for k in range(3)]  # noqa: B023
    named = {k: lambda z: z + k for k in range(3)}  # noqa: B023
    s = 0.1 * s
    return s + sum(f(y[1]) for f in times) + named[0](0.1 * x[1])


def groups(x, y, s):
    for a, b in zip(*[iter(y)] * 2, strict=False):
        s = 0.9 * s + 0.1 * a * b
    for a, b, c in zip(*[iter(range(2, 15, 2))] * 3, strict=False):
        s = 0.9 * s + 0.001 * a * b / c
    for a in iter(iter(y)):
        s = 0.9 * s + 0.1 * a
    return 0.5 * s


def first(s, factors):
    for f in factors:
        if s * f > 0.8:
            return s * f
    return 0.5


def breaks_in_lists(x, y, s):
    for f in (0.1, x[0], 0.9, 2.0):
        t = s * f
        if t > 0.3:
            break
        s = s + 0.01 * t
    else:
        t = 0.2
    for k, v in enumerate([x[0], y[1], 0.4]):
        if k == 0:
            continue
        for w, key in zip((1.0, 2.0, 3.0), "abc", strict=True):
            if w * v > s:
                break
            s = 0.9 * s + 0.05 * w * (key != "b")
        if v < s:
            break
    for v in (y[k] * s for k in range(3)):
        if v > 0.2:
            break
        y[2] = 0.9 * y[1]
        s = 0.5 * s + 0.1
    return 0.5 * s + 0.1 * t + 0.1 * first(s, [0.5, 1.0, 2.0, x[1]])


def asks_for_the_class(x, y, s):
    return 0.9 * s if isinstance(lambda: s, type(program)) and hasattr(lambda: s, "__call__") else s  # noqa: B004


@pytest.mark.parametrize("body", [
    items_of_a_generator, a_generator_with_a_name, an_array_beside_a_list, iterators_of_iterators, a_map_and_a_filter,
    choices, unpacked_generators, iterators_of_functions, flat_elements, functions_of_a_comprehension, groups,
    asks_for_the_class, breaks_in_lists,
])  # fmt: skip
def test_iterators_that_are_used_up_where_they_are_made(body):
    assert_captured(program(body))


def an_iterator_that_is_used_twice(x, y, s):
    pairs = zip(y, x, strict=True)
    for a, b in pairs:
        s = 0.9 * s + a * b
    for a, _ in pairs:
        s = s + a
    return s


def an_iterator_that_steps_use_up(x, y, s):
    values = enumerate(y)
    for _ in range(3):
        for k, a in values:
            s = 0.9 * s + k * a
    return s


def items_that_python_may_not_ask_for(x, y, s):
    for v in (y[k] for k in (0, 1, 2, 7)):
        s = s + 0.1 + 0.1 * v
        if s > 0.0:
            break
    for v in (np.linalg.solve(np.eye(4) * (s + k), x)[0] for k in range(3)):
        s = 0.9 * s + 0.1 * v
        if s > 0.5:
            break
    return 0.5 * s


def a_key_that_values_choose(x, y, s):
    for key in ("a", "b"):  # noqa: B007
        if s > 0.4:
            break
    return 0.8 * s if key == "a" else 0.7 * s + 0.2


def a_class_of_iterators(x, y, s):
    """The answer was False."""
    return 0.9 * s if isinstance(zip(x, y, strict=True), zip) else 2.0 * s


def sums_of_one_iterator(x, y, s):
    values = reversed(y)
    return 0.5 * s + sum(values) * 0.1 + sum(values)


@pytest.mark.parametrize("body", [
    an_iterator_that_is_used_twice, an_iterator_that_steps_use_up, sums_of_one_iterator, a_class_of_iterators,
    items_that_python_may_not_ask_for, a_key_that_values_choose,
])  # fmt: skip
def test_an_iterator_that_may_be_used_up_already_is_not_captured(body):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", effgrad.StagingWarning)
        assert_right(program(body))


@pytest.mark.parametrize("items", [lambda y: zip(y, y, strict=True), lambda y: {1, 2}])
def test_what_python_does_not_reverse_is_its_error(items):
    """A loop over a reversed iterator was captured and gave a derivative, though the program itself raises."""
    f = program(lambda x, y, s: s + sum(1.0 for _ in reversed(items(y))))
    with pytest.raises(TypeError, match="not reversible"), warnings.catch_warnings():
        warnings.simplefilter("ignore", effgrad.StagingWarning)
        effgrad.compile(effgrad.grad(f))(np.arange(3.0))
