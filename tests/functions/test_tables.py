"""Columns of pandas tables and xarray arrays hand over plain arrays, as constants and as inputs."""

import numpy as np
import pandas
import pytest
import xarray

from effgrad import grad

COLUMNS = [pandas.Series([1.0, 2.0, 3.0]), xarray.DataArray([1.0, 2.0, 3.0], dims="t")]
W = np.array([1.0, 0.5])
LOSSES = [
    lambda w, c: np.sum((w[0] * c + w[1] - 1) ** 2),
    lambda w, c: np.sum((w[0] * c.to_numpy() + w[1] - 1) ** 2),
    lambda w, c: np.sum(np.multiply(w[0], c) * c) + w[1],
    lambda w, c: np.sum(np.exp(w[0] - c / w[1])),
]


@pytest.mark.parametrize("column", COLUMNS, ids=["pandas", "xarray"])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_column_is_a_constant_array(loss, column):
    differences = [(loss(W + e, column) - loss(W - e, column)) / 2e-6 for e in 1e-6 * np.eye(2)]
    np.testing.assert_allclose(grad(loss)(W, column), np.asarray(differences, float), rtol=1e-6)


@pytest.mark.parametrize("column", COLUMNS, ids=["pandas", "xarray"])
def test_a_column_as_input_has_an_array_as_gradient(column):
    np.testing.assert_array_equal(grad(lambda x: np.sum(x**2))(column), [2, 4, 6])


def test_a_column_times_a_traced_number():
    column = COLUMNS[0]
    np.testing.assert_allclose(grad(lambda w: np.sum((column * w[0]) ** 2))(W), [28, 0])


METHODS = {
    "sum": lambda w, c: (w[0] * c).sum() * w[1],
    "np.mean": lambda w, c: np.mean(c * w[0]) + np.max(w[1] * c),
    "np.prod": lambda w, c: np.prod(w[0] * c) + np.std(w[1] * c),
    "np.dot": lambda w, c: np.dot(w[0] * c, c) * w[1],
}


@pytest.mark.parametrize("name", METHODS)
def test_a_table_of_xarray_keeps_its_labels_and_is_a_number_at_the_end(name):
    f = METHODS[name]
    differences = [float(f(W + e, COLUMNS[1]) - f(W - e, COLUMNS[1])) / 2e-6 for e in 1e-6 * np.eye(2)]
    np.testing.assert_allclose(grad(f)(W, COLUMNS[1]), differences, rtol=1e-6)
