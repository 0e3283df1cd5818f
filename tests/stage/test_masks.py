"""Truth values and integers of a traced argument that a program writes into arrays of them, eagerly and compiled."""

import numpy as np
import pytest

from effgrad import Detached, compile, grad, jvp, vmap

POINTS = np.linspace(0.21, 0.81, 5), np.array([0.9, 0.35, 0.1, 0.55, 0.62]), np.array([0.41, 0.22, 0.71, 0.66, 0.05])


def joined(x):
    m = np.zeros(5, bool)
    m |= x < 0.3
    m ^= x > 0.5
    m &= x != 0.6
    return np.sum(np.where(m, x * x, x))


def by_element(x):
    m = np.zeros(5, bool)
    m[1] = x[1] > 0.3
    m[2:] |= x[2:] > 0.5
    return np.sum(np.where(m, x * x, x))


def as_out(x):
    m = np.zeros(5, bool)
    np.less(x, 0.5, out=m)
    np.logical_or(m, x > 0.6, out=m)
    np.greater(x, 0.4, out=m, where=x < 0.7)
    return np.sum(np.where(m, x * x, x))


def by_functions(x):
    m = np.zeros(5, bool)
    np.copyto(m, x > 0.5)
    np.put(m, [0], x[0] < 1)
    m[1:].fill(x[0] > 0.3)
    return np.sum(np.where(m, x * x, x))


def counts(x):
    n = np.zeros(3, int)
    np.add.at(n, np.searchsorted([0.3, 0.6], x), 1)
    n += np.bincount(np.searchsorted([0.33, 0.5], x), minlength=3)
    return np.sum(n * x[:3] ** 2)


def places(x):
    n = np.zeros(5, int)
    n[0] = np.argmax(x)
    n[np.argmin(x)] = 3
    np.add(n, np.argsort(-x), out=n)
    n -= 1
    n[n < 0] = 0
    return np.sum(x[n % 5] * x**2)


PROGRAMS = (joined, by_element, as_out, by_functions, counts, places)


@pytest.mark.parametrize("f", PROGRAMS)
def test_masks_and_integers_are_written_to_arrays_of_them(f):
    compiled = [compile(derivative(f)) for derivative in (lambda f: f, grad, along)]
    for x in POINTS:
        wanted = [(f(x + 1e-6 * u) - f(x - 1e-6 * u)) / 2e-6 for u in np.eye(5)]
        np.testing.assert_allclose(grad(f)(x), wanted, rtol=1e-8, atol=1e-8)
        assert compiled[0](x) == f(x)
        np.testing.assert_allclose(compiled[1](x), wanted, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(compiled[2](x), np.sum(wanted), rtol=1e-8, atol=1e-8)


def along(f):
    return lambda x: jvp(f, (x,), (np.ones(5),))[1]


@pytest.mark.parametrize("derivative", [grad, lambda f: compile(grad(f))])
def test_a_number_with_a_derivative_is_not_written_to_an_array_of_integers(derivative):
    def f(x):
        n = np.zeros(5, int)
        n[0] = x[0]
        return np.sum(n * x)

    with pytest.raises(Detached, match="array of int64"):
        derivative(f)(POINTS[0])


def test_what_a_derivative_keeps_of_a_large_array_stays_when_a_mask_is_written_into_it():
    """The write was seen by the checksum alone, as one by compiled code is."""
    n = 100_000
    x = np.linspace(0.1, 0.9, n)

    def f(x):
        m = np.arange(n) % 2 == 0
        y = np.where(m, x * x, x)
        np.less(x, 0.5, out=m)
        return np.sum(y * np.where(m, x, 1.0))

    even, low = np.arange(n) % 2 == 0, x < 0.5
    y, slope = np.where(even, x * x, x), np.where(even, 2 * x, 1.0)
    np.testing.assert_allclose(grad(f)(x), slope * np.where(low, x, 1.0) + np.where(low, y, 0.0), rtol=1e-14)


def test_one_of_several_results_may_be_integers():
    def f(x):
        m, e = np.zeros(5), np.zeros(5, np.int32)
        np.frexp(x, out=(m, e))
        return np.sum(m * e)

    for x in POINTS:
        e = np.frexp(x)[1]
        for derivative in (grad, lambda f: compile(grad(f))):
            np.testing.assert_allclose(derivative(f)(x), e / 2.0**e, rtol=1e-14)


METHODS = {
    "logical_or.reduce": lambda x: np.logical_or.reduce(np.outer(x, x) > 1, axis=0) @ x,
    "logical_and.reduce of a list": lambda x: np.logical_and.reduce([x > 0, x < 2]) @ x,
    "bitwise_or.reduce": lambda x: np.bitwise_or.reduce(np.outer(x, x) > 1, axis=1, keepdims=True)[:, 0] @ x,
    "logical_xor.accumulate": lambda x: np.logical_xor.accumulate(x > 1) @ x,
    "less.outer": lambda x: np.less.outer(x, x) @ x @ x,
    "floor_divide.reduce": lambda x: np.floor_divide.reduce(4 * x) * x[0],
}  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_methods_of_ufuncs_that_are_constant_in_steps(name):
    """A compiled program and a batch refused them."""
    f, points = METHODS[name], np.array([[0.7, 1.3, 2.1], [1.9, 0.4, 0.9]])
    compiled = compile(grad(f))
    for x in points:
        step = 1e-6 * np.eye(3)
        np.testing.assert_allclose(compiled(x), [(f(x + h) - f(x - h)) / 2e-6 for h in step], rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(compile(f)(x), f(x), rtol=1e-15)
    np.testing.assert_allclose(vmap(f)(points), [f(x) for x in points])
