"""Functions of NumPy that write to an argument which is given by its name."""

import numpy as np
import pytest

import effgrad
from effgrad import grad


def filled(x):
    a = np.zeros((3, 3))
    np.fill_diagonal(a=a, val=x)
    return a


def copied(x):
    a = np.ones(3)
    np.copyto(src=2 * x, dst=a, where=[True, False, True])
    return a


def put(x):
    a = np.ones(3)
    np.put(a=a, ind=[0, 2], v=x[:2] ** 2)
    return a


def placed(x):
    a = np.ones(3)
    np.place(arr=a, mask=np.array([True, False, True]), vals=x[1:])
    np.putmask(a, mask=np.array([False, True, False]), values=3 * x)
    return a


def along(x):
    a = np.ones((3, 1))
    np.put_along_axis(arr=a, indices=np.array([[1]]), values=x[:1, None] * 2, axis=0)
    return a


def plainly(x):
    a = np.zeros(3)
    np.copyto(dst=a, src=np.arange(3.0))
    return a * x


@pytest.mark.parametrize("f", [filled, copied, put, placed, along, plainly])
def test_the_array_that_is_written_to_has_a_name(f):
    """It was an error inside a derivative, also where nothing traced was written."""
    x, weights = np.array([0.5, 1.25, 2.0]), np.arange(1.0, 10.0)

    def total(x):
        return np.sum(np.ravel(f(x)) ** 2 * weights[: np.size(f(x))])

    wanted = [(total(x + d) - total(x - d)) / 2e-5 for d in 1e-5 * np.eye(3)]
    np.testing.assert_allclose(grad(total)(x), wanted, rtol=1e-8)


def test_einsum_writes_into_a_plain_array():
    """With a traced operand, `out=` of `np.einsum` was refused for arrays that held no traced values yet."""

    def f(x):
        table, diagonal = np.zeros((4, 4)), np.zeros(4)
        assert np.einsum("i,j->ij", x, x, out=table) is table
        np.einsum("ij,j->i", table, x, out=table[0])
        np.einsum("ii->i", table, out=diagonal)
        turned = np.einsum("ij->ji", table)
        turned[1, 2] = 5.0
        return table.sum() + diagonal @ x + turned.trace()

    x, u, h = np.array([0.3, 0.9, -0.4, 1.2]), np.array([0.5, -1.0, 2.0, 0.3]), 1e-6
    wanted = (f(x + h * u) - f(x - h * u)) / (2 * h)
    for slope in (effgrad.grad(f), effgrad.compile(effgrad.grad(f))):
        assert abs(slope(x) @ u - wanted) < 1e-7 * abs(wanted)
