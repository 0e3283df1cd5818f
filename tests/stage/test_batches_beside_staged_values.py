"""Compiled batches: members beside values of the program that are not of the batch."""

import numpy as np
import pytest

from effgrad import compile, grad, vmap

K = np.array([0.1, -0.2, 0.3, 0.5])
Y = np.array([[0.3, -0.1, 0.9, 0.2], [-0.4, 0.6, -1.2, 0.8], [0.1, -0.2, 0.4, 0.0]])

PROGRAMS = {
    "less": lambda k, y: np.where(k < y, y, 0.0),
    "greater or equal, and": lambda k, y: (k >= y) & (y > 0),
    "equal": lambda k, y: k == y,
    "truth values": lambda k, y: (k > 0) | (y > 0),
    "of two conditions": lambda k, y: np.logical_and(k > 0, y > 0),
    "floor": lambda k, y: k // y,
    "divmod": lambda k, y: np.stack(divmod(k, y)),
    "isclose": lambda k, y: np.isclose(k, y),
    "searchsorted": lambda k, y: np.searchsorted(np.sort(k), y),
    "isin": lambda k, y: np.isin(k, y),
    "count_nonzero": lambda k, y: np.count_nonzero(k > y),
    "convolve": lambda k, y: np.convolve(k, y),
    "interp": lambda k, y: np.interp(y, np.sort(k), k),
    "take": lambda k, y: np.take(k, np.argsort(y)),
    "histogram": lambda k, y: np.histogram(k, np.sort(y))[0],
}


@pytest.mark.parametrize("backend", ["native", "numpy"])
@pytest.mark.parametrize("f", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_values_of_the_program_beside_members(f, backend):
    """`k < y`, for an argument k that all members share, was an error: the batch was recorded as a constant."""
    batched = compile(lambda k, ys: vmap(lambda y: f(k, y))(ys), backend=backend)
    for k, ys in ((K, Y), (K[::-1].copy(), Y * 0.5 + 0.1), (K, np.tile(Y[:1], (3, 1)))):
        np.testing.assert_allclose(batched(k, ys), np.stack([f(k, y) for y in ys]), rtol=1e-14)


def test_equal_members_are_not_a_constant():
    """Truth values that all members shared in the first call were those of all later calls."""
    batched = compile(lambda k, ys: vmap(lambda y: np.where((k > 0) & (y > 0), y, 0.0))(ys))
    for ys in (np.tile(Y[:1], (3, 1)), Y):
        np.testing.assert_array_equal(batched(K, ys), np.where((K > 0) & (ys > 0), ys, 0.0))


def test_derivatives_of_batches_with_comparisons():
    def loss(k, ys):
        return np.sum(vmap(lambda y: np.where(k < y, y**2 * k, 0.0))(ys))

    np.testing.assert_allclose(compile(grad(loss))(K, Y), np.sum(np.where(K < Y, Y**2, 0.0), axis=0), rtol=1e-14)
