"""Arrays that a captured loop leaves behind lie in memory as NumPy's: what is a view of them is one."""

import warnings

import numpy as np
import pytest

import effgrad
from effgrad import grad

POINT = np.array([0.3, 0.5, 0.7, 1.1])
STEPS = 40
# Each changes what it returns, if that is a view of its argument.
VIEWS = {
    "ravel": np.ravel,
    "asfortranarray": np.asfortranarray,
    "reshape": lambda a: np.reshape(a, -1),
    "ravel as it lies": lambda a: np.ravel(a, order="K"),
}


def column(x):
    for k in range(STEPS):
        m = np.outer(x, [1.0, k])
        a = m[:, 0]
    return a


def column_of_a_matrix(x):
    m = np.outer(x, [1.0, 2.0])
    for _ in range(STEPS):
        m = m * 0.9
        a = m[:, 0]
    return a


def turned(x):
    for k in range(STEPS):
        a = np.outer(x, [1.0, k]).T
    return a


def like_a_turned_one(x):
    for k in range(STEPS):
        m = np.outer(x, [1.0, k])
        a = np.zeros_like(m.T) + x[0]
    return a


def filled_like_a_turned_one(x):
    for k in range(STEPS):
        m = np.outer(x, [1.0, k])
        a = np.zeros_like(m.T)
        a[0] = x
    return a


def turned_before(x):
    a = np.outer(x, [1.0, 2.0]).T
    for _ in range(STEPS):
        a = a * 0.9
    return a


def exchanged(x):
    a, b = np.outer(x, [1.0, 2.0]), np.outer([1.0, 3.0], x).T
    for _ in range(STEPS + 1):
        a, b = b * 0.9, a
    return a


def sum_of_turned(x):
    m = np.outer(x, [1.0, 2.0])
    for k in range(STEPS):
        a = np.sum(m.reshape(2, 2, 2).T * k, axis=0)
    return a


def columns(x):
    m = np.outer(x, [1.0, 2.0])
    for k in range(STEPS):
        a = (m * k)[:, [0, 1, 0]]
    return a


def every_other(x):
    for k in range(STEPS):
        a = np.outer(x, [1.0, k, 2.0])[:, ::2]
    return a


def joined(x):
    for k in range(STEPS):
        m = np.outer(x, [1.0, k, 2.0])
        a = np.concatenate([m.T, m.T])
    return a


def stacked(x):
    for k in range(STEPS):
        m = np.outer(x, [1.0, k, 2.0])
        a = np.stack([m.T, m.T])
    return a


def chosen_elements(x):
    for k in range(STEPS):
        m = np.outer(x, [1.0, k, 2.0])
        a = np.where(m.T > 0.2, m.T, 0.0)
    return a


def contracted(x):
    for k in range(STEPS):
        a = np.einsum("ij,jk->ki", np.outer(x, [1.0, k]), np.outer([0.3, 0.4], x))
    return a


def repeated(x):
    for k in range(STEPS):
        a = np.broadcast_to(x * k, (2, 4)) + 0.0
    return a


def of_other_differences(x):
    """Return differences outside the loop, which lie as the array that the loop has turned."""
    for k in range(STEPS):
        a = np.rot90(np.outer(x, [1.0, k]))
    return np.diff(a, axis=0)


def by_a_branch(x):
    m = np.outer(x, [1.0, 2.0, 3.0, 4.0])
    a = m * 1.0
    for k in range(STEPS):
        if a[0, 0] * k > 1.0:
            a = m.T * k
        else:
            a = m * k
    return a


def by_an_expression(x):
    m = np.outer(x, [1.0, 2.0, 3.0, 4.0])
    for k in range(STEPS):
        a = m.T * k if k % 3 < 2 else m * k
    return a


def half_in_order(x):
    """Return an array of three axes, of which one operand has two in order, and another one the other two turned."""
    for k in range(STEPS):
        m = np.outer(x, [1.0, k])
        a = m[:, :, None] + np.ones((3, 2)).T * np.sin(k)
    return a


TURNED = [
    column, column_of_a_matrix, turned, like_a_turned_one, filled_like_a_turned_one, turned_before, exchanged,
    sum_of_turned, columns, every_other, joined, stacked, chosen_elements, contracted, repeated, of_other_differences,
    by_a_branch, by_an_expression, half_in_order,
]  # fmt: skip


def matrix_of_rows(x):
    a = np.zeros((4, 4), x.dtype)
    for k in range(STEPS):
        a[k % 4] = x * k
        a[:, k % 4] = a[k % 4] * 0.5
    return a


def copies(x):
    for k in range(STEPS):
        m = np.outer(x, [1.0, k])
        a = m.T.copy()
    return a


def copied_column(x):
    for k in range(STEPS):
        a = np.copy(np.outer(x, [1.0, k])[:, 1])
    return a


def products(x):
    a = np.outer(x, x)
    for _ in range(STEPS):
        a = a.T @ a / np.sum(a)
    return a


def rows(x):
    a = np.outer(x, x)
    for _ in range(STEPS):
        a = np.concatenate([a[1:], a[:1] * 0.9])
    return a


def sums(x):
    a = np.outer(x, x)
    for _ in range(STEPS):
        b = np.sum(a[:, None, :] * a[None], axis=2)
        a = b / np.sum(b)
    return a


def flattened(x):
    for k in range(STEPS):
        a = np.outer(x, [1.0, k]).T.ravel()
    return a


def rolled(x):
    a = np.outer(x, x)
    for _ in range(STEPS):
        a = (np.roll(2 * a, 1, axis=1) + np.roll(a * a, -1, axis=0) + np.outer(x, x)[:, ::-1]) / 4.0
    return a


def symmetric(x):
    a = np.outer(x, [1.0, 2.0, 3.0, 4.0])
    for _ in range(STEPS):
        a = 0.3 * a.T + 0.4 * np.sin(a) + 0.1
    return a


IN_ORDER = [matrix_of_rows, copies, copied_column, products, rows, sums, flattened, rolled, symmetric]


def program(make, view):
    def f(x):
        a = make(x)
        b = view(a)
        b *= 2.0
        return np.sum(np.sin(a)) + 3.0 * np.sum(np.sin(b))

    return f


def difference(f, x):
    """The derivative along ones, at a complex step."""
    return np.imag(f(x + 1e-30j)) / 1e-30


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("make", [*TURNED, *IN_ORDER], ids=lambda f: f.__name__)
def test_what_is_a_view_of_an_array_after_a_loop(make, view):
    f = program(make, VIEWS[view])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", effgrad.StagingWarning)
        np.testing.assert_allclose(effgrad.compile(f)(POINT), f(POINT), rtol=1e-12)
        found = np.sum(effgrad.compile(grad(f))(POINT))
    np.testing.assert_allclose(found, difference(f, POINT), rtol=1e-11)


@pytest.mark.parametrize("make", IN_ORDER, ids=lambda f: f.__name__)
@pytest.mark.filterwarnings("error::effgrad.errors.StagingWarning")
def test_what_leaves_an_array_in_order_is_captured(make):
    np.testing.assert_allclose(effgrad.compile(make)(POINT), make(POINT), rtol=1e-12)


@pytest.mark.filterwarnings("error::effgrad.errors.StagingWarning")
def test_an_array_in_another_order_is_used_in_a_loop():
    """Only what the loop leaves behind has to lie as NumPy's."""

    def f(x):
        m, s = np.outer(x, [1.0, 2.0]).T, 0.0
        for k in range(STEPS):
            m = m * 0.9
            s = s + np.sum(m[:, k % 4] ** 2)
        return s

    np.testing.assert_allclose(effgrad.compile(f)(POINT), f(POINT), rtol=1e-12)


def columns_of_the_step_before(x):
    m, s = np.outer(x, [1.0, 2.0]), 0.0
    a = m[:, 0] * 1.0
    for k in range(STEPS):
        b = np.ravel(a)  # a view in the first step alone
        b *= 0.9
        s = s + np.sum(a)
        a = m[:, k % 2]
    return s + np.sum(m)


def vectors_of_the_step_before(x):
    s, a = 0.0, x * 1.0
    for _ in range(STEPS):
        b = np.ravel(a)
        b *= 0.9
        s = s + np.sum(a)
        a = np.sin(a) + 0.1
    return s


@pytest.mark.parametrize("f", [columns_of_the_step_before, vectors_of_the_step_before])
def test_a_vector_that_is_flattened_in_a_loop(f):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", effgrad.StagingWarning)
        np.testing.assert_allclose(effgrad.compile(f)(POINT), f(POINT), rtol=1e-12)
        found = np.sum(effgrad.compile(grad(f))(POINT))
    np.testing.assert_allclose(found, difference(f, POINT), rtol=1e-11)
