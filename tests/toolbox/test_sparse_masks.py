"""Elements of a sparse matrix that are chosen by their values: masks, `nonzero` and `find`.

Compiled and in batches, every stored element was chosen, and `nonzero` had stored zeros everywhere.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from differences import directional

from effgrad import compile, errors, jacobian, vmap

ROWS, COLUMNS = np.array([0, 0, 1, 2, 2, 3]), np.array([0, 2, 1, 1, 3, 0])
FACTORS = np.array([1.0, -2.0, 3.0, 0.5, 4.0, -1.0])


def matrix(p):
    return sp.coo_matrix((FACTORS * p[0] + p[1], (ROWS, COLUMNS)), shape=(4, 4)).tocsr()


def chosen(p):
    a = matrix(p)
    return np.sum(np.ravel(a[a > 1]) ** 2)


def set_where(p):
    a = matrix(p)
    a[a > 1] = p[1] ** 2
    return a.toarray()


def set_to_zero(p):
    a = matrix(p)
    a[a > 1] = 0
    return a.toarray()


def nonzero(p):
    a = matrix(p)
    rows, columns = (a - a.multiply(a > 1)).nonzero()
    return a.toarray()[rows, columns].sum() * len(rows)


def found(p):
    rows, columns, values = sp.find(matrix(p).multiply(matrix(p) > 1))
    return np.sum(values * (1 + rows + 2 * columns)) * len(values)


def of_a_plain_matrix(p):
    plain = sp.csr_matrix(np.arange(16.0).reshape(4, 4))
    return np.sum(plain[matrix(p) > 1]) * p[0]


PROGRAMS = [chosen, set_where, set_to_zero, nonzero, found, of_a_plain_matrix]
# At the second point other elements are greater than 1.
POINTS = [np.array([1.1, 0.7]), np.array([0.4, 0.2])]


@pytest.mark.parametrize("f", PROGRAMS)
def test_elements_are_chosen_by_their_values(f):
    value, slope = compile(f), compile(jacobian(f))
    for p in [*POINTS, POINTS[0]]:
        expected = np.stack([directional(f, p, e, step=1e-3)[0] for e in np.eye(2)], axis=-1)
        np.testing.assert_allclose(value(p), f(p), rtol=1e-12)
        np.testing.assert_allclose(slope(p), expected, atol=1e-7)
        np.testing.assert_allclose(jacobian(f)(p), expected, atol=1e-7)


@pytest.mark.parametrize("f", PROGRAMS)
def test_members_of_a_batch_choose_alike_or_are_refused(f):
    near = np.stack([POINTS[0], POINTS[0] + 0.01])
    np.testing.assert_allclose(vmap(f)(near), [f(p) for p in near], rtol=1e-12)
    with pytest.raises(errors.NotBatched):
        vmap(f)(np.stack(POINTS))
