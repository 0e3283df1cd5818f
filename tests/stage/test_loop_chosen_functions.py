"""Functions and items that a loop chooses by a changing integer, from lists, tuples and dictionaries."""

import warnings

import numpy as np
import pytest

import effgrad
from effgrad import grad, jvp

POINT, DIRECTION = np.array([0.3, -0.4, 0.2]), np.array([0.3, -0.2, 0.5])


def damped(x, a):
    return 0.9 * x + a


def turned(x, a):
    return np.sin(x) * a + 0.1


def written_to(x, a):
    x[0] = x[1] * 0.5 + a
    return x * 1.0


def from_a_list(v):
    x, steps = v * 1.0, [damped, turned]
    for i in range(40):
        x = steps[i % 2](x, v[0])
    return np.sum(x**2)


def from_a_tuple_of_lambdas(v):
    x = v[0]
    rates = (
        lambda y: y * 0.9,
        lambda y: np.cos(y) + v[1],
        lambda y: y - 0.1 * y * y,
    )
    for i in range(40):
        rate = rates[i % 3]
        x = x + 0.1 * rate(x)
    return x**2


def of_numpy(v):
    total = 0.0
    for i in range(40):
        total = total + [np.sin, np.cos, np.tanh][i * i % 3](v[i % 3] * i)
    return total


def that_write(v):
    x = v * 1.0
    for i in range(40):
        y = (written_to, damped)[i % 2](x, v[2])
        x = x * 0.9 + 0.05 * y
    return np.sum(x**2)


def several_results(v):
    a, b = v[0], v[1]
    for i in range(40):
        a, b = (lambda p, q: (p * 0.9, q + 0.1 * p), lambda p, q: (np.sin(q), p))[(i + 1) % 2](a, b)
    return a * b


def by_a_carried_integer(v):
    x, k = v[0], 1
    for i in range(40):
        x = (damped, turned)[k - 2](x, v[1])
        k = (k * 3 + i) % 2
    return x


def items_of_a_dictionary(v):
    weights, total = {0: 0.5, 1: 2.5, 2: -1.0}, v[0]
    for i in range(40):
        total = np.sin(total * weights[i % 3]) + v[1]
    return total


def functions_of_a_dictionary(v):
    rules, total = {1: turned, 0: damped}, v[0]
    for i in range(40):
        total = rules[i % 2](total, v[1])
    return total


PROGRAMS = [
    from_a_list, from_a_tuple_of_lambdas, of_numpy, that_write, several_results, by_a_carried_integer,
    items_of_a_dictionary, functions_of_a_dictionary,
]  # fmt: skip


@pytest.mark.parametrize("f", PROGRAMS)
def test_a_chosen_function_is_captured(f):
    step = 1e-5
    expected = (f(POINT + step * DIRECTION) - f(POINT - step * DIRECTION)) / (2 * step)
    curve = grad(lambda v: grad(f)(v) @ DIRECTION)
    with warnings.catch_warnings():
        warnings.simplefilter("error", effgrad.StagingWarning)
        assert effgrad.compile(f)(POINT.copy()) == pytest.approx(f(POINT.copy()), rel=1e-13)
        assert effgrad.compile(grad(f))(POINT.copy()) @ DIRECTION == pytest.approx(expected, rel=1e-7)
        for run in (curve, lambda v: jvp(grad(f), (v,), (DIRECTION,))[1]):
            np.testing.assert_allclose(effgrad.compile(run)(POINT.copy()), curve(POINT.copy()), rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings("ignore::effgrad.StagingWarning")
def test_a_missing_item_raises_as_in_python():
    def f(v):
        total, items = v[0], {0: 1.0, 1: 2.0}
        for i in range(40):
            total = total + items[i % 3]
        return total

    with pytest.raises(KeyError):
        effgrad.compile(f)(POINT)
    assert effgrad.compile(chosen_last)(POINT) == pytest.approx(chosen_last(POINT), rel=1e-13)


def chosen_last(v):
    x, f = v[0], None
    for i in range(40):
        f = (np.sin, np.cos)[i % 2]
        x = f(x)
    return f(x)
