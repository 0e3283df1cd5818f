"""Arrays of objects hold traced values, and are made and written to as NumPy does it.

The programs are polynomials; the oracle is the program on plain arrays and its central difference.
"""

import math

import numpy as np
import pytest

from effgrad import compile, grad, value_and_grad

X = np.array([0.3, 0.7, 1.1, -0.4])


def ragged(x):
    return sum(np.sum(row**2) * (i + 1) for i, row in enumerate(np.array([x[:1], x[1:]], dtype=object)))


def among_others(x):
    a = np.array([x[0], "text", None, x[1:]], dtype=object)
    return a[0] * a[3].sum() * len(a)


def nested(x):
    a = np.array([[x[:1], x[:2]], [x[:3], x]], dtype=object)
    return sum(row.sum() * (i + 1) for i, row in enumerate(a.ravel())) + a.shape[0]


def slices(x):
    a = np.empty(4, object)
    a[:] = x
    a[1:] = x[2]
    a[[0, 1]] = x[:2] ** 2
    a[2:] = [x[3], 2.0]
    return a[0] * a[1] + a[2] * a[3]


def items(x):
    a = np.empty(2, object)
    a[0] = x**2
    a[1] = x[:2]
    a[0][1] = x[3]
    return a[0] @ a[0] + a[1].sum()


def largest(x):
    a = np.array(list(x), dtype="O")
    return a.max() * a.min()


def at_lists(x):
    a = x.copy()
    np.multiply.at(a, [0, 0, 2], [x[1], 3.0, x[3]])
    np.add.at(a, (np.array([1, 1]),), (x[0], x[2] ** 2))
    return a @ np.arange(1.0, 5.0)


def as_numbers(x):
    a = np.array(list(x), dtype=object).reshape(2, 2)
    made = np.frompyfunc(lambda v: v * v, 1, 1)(a)
    casts = a.astype(float), a.astype(dtype=np.float64), np.asarray(a, dtype=float), np.array(a, float)
    return sum((i + 1) * np.prod(b) for i, b in enumerate(casts)) + np.sum(made[0] * a.astype(object)[1])


SQUARE, BOTH = np.frompyfunc(lambda a: math.pow(a, 2), 1, 1), np.frompyfunc(lambda a: (a, np.sin(a)), 1, 2)
ADD = np.frompyfunc(lambda a, b: a * b + a, 2, 1, identity=1.0)


def elementwise(x):
    first, second = BOTH(x)
    a = np.array([x[0], x[1]])
    out = SQUARE(a, out=np.empty(2, object))
    return np.sum(first * second) * SQUARE(x[2]) + SQUARE(x).astype(float).prod() + SQUARE([x[0], 2.0])[0] + out.sum()


def methods_of_ufuncs(x):
    table = ADD.outer(x, x[:2])
    total = ADD.reduce(x) + ADD.reduce(table, axis=0).sum() + ADD.reduce(x[:2], initial=x[3]) + ADD.reduce(x[:0])
    return total + np.sum(ADD.accumulate(x, dtype=object)) + ADD(x[:, None], 2.0).shape[1]


PROGRAMS = [ragged, among_others, nested, slices, items, largest, at_lists, as_numbers, elementwise, methods_of_ufuncs]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_a_program_with_objects_has_its_value_and_derivative(f):
    h, unit = 1e-4, np.eye(4)
    differences = [(f(X + h * u) - f(X - h * u)) / (2 * h) for u in unit]
    value, gradient = value_and_grad(f)(X)
    np.testing.assert_allclose(value, f(X.copy()), rtol=1e-15)
    np.testing.assert_allclose(gradient, differences, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(grad(f, mode="continuation")(X), gradient, rtol=1e-14)


@pytest.mark.parametrize("f", [as_numbers, elementwise, methods_of_ufuncs], ids=lambda f: f.__name__)
def test_a_program_with_objects_is_compiled(f):
    compiled = compile(grad(f))
    for x in (X, 2 * X + 0.1):
        np.testing.assert_allclose(compiled(x), grad(f)(x), rtol=1e-12)
