"""Elements to which no traced value was written stay constants, however a program reads the others.

A table of parameters has columns of places, which SciPy takes for rows of a sparse matrix where they are plain. The
oracle is a mask to which the same writes are made, and differences of the plain run.
"""

import numpy as np
import pytest
import scipy.sparse as sp

from effgrad import grad, jvp
from effgrad.errors import NotDifferentiable

SHAPE = (4, 6)
START = np.arange(24.0).reshape(SHAPE) % 4
KEYS = (
    (slice(None), 2), (slice(None), slice(3, 5)), (1, slice(2, 4)), (2, 3), ([0, 3], [2, 4]), (slice(1, 3), 4), (3, -1),
)  # fmt: skip
READS = (
    lambda a: a[:, 2] * a[:, 4], lambda a: a[1:3, 1:], lambda a: a, lambda a: a.copy(), lambda a: a[0, 3],
    lambda a: a[[0, 1], [1, 2]], lambda a: a.T[4], lambda a: a[:, :2] + a[:, 2:4],
)  # fmt: skip


def steps(seed):
    """Draw reads, and writes of traced values and plain ones."""
    rng = np.random.default_rng(seed)
    drawn = [(rng.random() < 0.4, KEYS[rng.integers(len(KEYS))], rng.random() < 0.7) for _ in range(24)]
    return [(READS[rng.integers(len(READS))] if reads else None, key, traced) for reads, key, traced in drawn]


def program(seed, x):
    """Run the steps; return the table, what the reads give, and which elements ever had a traced value."""
    a, ever, total = START.copy(), np.zeros(SHAPE, bool), 0.0
    for k, (read, key, traced) in enumerate(steps(seed)):
        if read is not None:
            total = total + (k + 1) * np.sum(read(a) ** 2)
            continue
        a[key] = (np.sin(a[key]) + x[k % 3]) if traced else float(k % 4)
        ever[key] |= traced
    return a, total, ever


def objective(seed, x):
    a, total, _ = program(seed, x)
    return total + np.sum(np.cos(a) * np.arange(24.0).reshape(SHAPE))


def forward(f, x):
    return np.array([jvp(f, (x,), (u,))[1] for u in np.eye(3)])


@pytest.mark.parametrize("seed", range(12))
def test_elements_that_no_traced_value_reached_are_constants(seed):
    x, h = np.array([0.3, 0.8, -0.4]), 1e-5
    expected = [(objective(seed, x + h * u) - objective(seed, x - h * u)) / (2 * h) for u in np.eye(3)]
    untouched = [column for column in range(6) if not program(seed, x)[2][:, column].any()]
    assert 0 in untouched

    def with_places(x):
        a, total, _ = program(seed, x)
        for column in untouched:
            places = sp.csr_array((np.ones(4), (np.arange(4), a[:, column])), (4, 4))
            total = total + np.sum(places @ x[[0, 1, 2, 0]]) * 0.0
        return total + np.sum(np.cos(a) * np.arange(24.0).reshape(SHAPE))

    nested = jvp(grad(with_places), (x,), (np.ones(3),))[0]
    for gradient in (grad(with_places)(x), forward(with_places, x), nested):
        np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-6)


def test_a_traced_element_makes_its_column_depend():
    def f(x):
        a = START.copy()
        a[:, 2] = x[0]
        for _ in range(6):  # the reads after which the elements are merged
            total = np.sum(a[:, 2] * a[:, 3])
        a[1, 0] = x[1]
        return total + sp.csr_array((np.ones(4), (np.arange(4), a[:, 0])), (4, 4)).sum()

    with pytest.raises(NotDifferentiable, match="rows and columns"):
        grad(f)(np.ones(2))
