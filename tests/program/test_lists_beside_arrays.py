"""A list with traced numbers in it is an array to operators beside an array, and to functions that take arrays."""

import numpy as np
import pytest

from effgrad import compile, grad, jvp, vmap

A = np.arange(6.0).reshape(2, 3) + 1.0
X = np.array([1.5, 2.2, -3.1])


def in_place(x):
    a = A.copy()
    a -= [x[0], x[1], x[2]]
    a[0] *= [x[0], 2.0, x[1]]
    return a


PROGRAMS = {
    "A @ [...]": lambda x: A @ [x[0], x[1], x[2]],
    "[...] @ A": lambda x: [x[0], x[1]] @ A,
    "A * [...]": lambda x: A * [x[0], x[1], x[2]],
    "(...) - A": lambda x: (x[0], 1.0, x[2]) - A,
    "A ** [...]": lambda x: A ** [x[0], x[1], 1.0],
    "a row a list": lambda x: A + [[x[0], x[1], 1.0], [0.0, 1.0, x[2]]],
    "x + [...]": lambda x: x + [x[2], 1.0, x[0]],
    "in place": in_place,
    "linspace of lists": lambda x: np.linspace([0.0, x[0], x[2]], [1.0, 2.0, 3.0], 4),
    "select of lists": lambda x: np.select([[True, False, False], [False, False, True]], [[x[0], 1.0, 2.0], x], x[1]),
    "A < [...]": lambda x: x * (A < [x[0], x[1], x[2]]),
    "einsum": lambda x: np.einsum("ij,j->i", A, [x[0], x[1], x[2]]),
    "einsum of a list of arrays": lambda x: np.einsum("ij,ij->j", A, [x, 2 * x]),
    "einsum by numbers": lambda x: np.einsum(A, [0, 1], [x[0], x[1], x[2]], [1], [0]),
    "broadcast_arrays": lambda x: np.broadcast_arrays(A, [x[0], x[1], x[2]])[1],
    "lexsort of a list": lambda x: x[np.lexsort([x])],
    "lists stay lists": lambda x: np.array([x[0]] + [x[1]] * 2 + list((x[0],) + (x[2],))),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_derivatives(name):
    f, weights, step = PROGRAMS[name], np.cos(np.arange(12.0)), 1e-6

    def total(x):
        flat = np.ravel(f(x))
        return np.sum(flat * weights[: flat.size])

    value, tangent = jvp(f, (X,), (np.ones(3),))
    np.testing.assert_array_equal(value, f(X))
    slopes = [(total(X + e) - total(X - e)) / (2 * step) for e in step * np.eye(3)]
    np.testing.assert_allclose(grad(total)(X), slopes, atol=1e-7)
    np.testing.assert_allclose(compile(grad(total))(X), slopes, atol=1e-7)
    difference = (np.asarray(f(X + step)) - np.asarray(f(X - step))) / (2 * step)
    np.testing.assert_allclose(tangent, difference, atol=1e-6)


def repeated_in_place(x, k):
    items = [x[0]]
    items *= k
    return items


REPEATED = {
    "list * k": lambda x, k: [1.0, x[0]] * k, "k * list": lambda x, k: k * [1.0, x[0]],
    "tuple * k": lambda x, k: (x[1],) * k, "k * tuple": lambda x, k: k * (x[1], 3.0),
    "text": lambda x, k: x[0] * len("ab" * k + k * "c"), "list *= k": repeated_in_place,
    "np.resize": lambda x, k: np.resize(x[:1], (k, 2)), "an array": lambda x, k: k * np.array([1.0, 2.0]) * x[0],
}  # fmt: skip


@pytest.mark.parametrize("name", REPEATED)
def test_an_integer_of_numpy_repeats_a_sequence(name):
    """In a compiled program and in a batch it multiplied the items: `[x] * k` was `[k * x]`, without a word."""
    f = lambda x: np.array(REPEATED[name](x, np.ceil(x[1]).astype(int)))  # noqa: E731
    np.testing.assert_array_equal(compile(f)(X), f(X))
    np.testing.assert_array_equal(vmap(f)(np.stack([X, X])), [f(X)] * 2)
