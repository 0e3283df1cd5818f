"""Columns of pandas tables and xarray arrays hand over plain arrays, as constants and as inputs."""

import numpy as np
import pandas
import pytest
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.ndimage
import scipy.signal
import scipy.special
import scipy.stats
import xarray

import effgrad
from effgrad import grad

COLUMNS = [pandas.Series([1.0, 2.0, 3.0]), xarray.DataArray([1.0, 2.0, 3.0], dims="t")]
W = np.array([1.0, 0.5])
LOSSES = [
    lambda w, c: np.sum((w[0] * c + w[1] - 1) ** 2),
    lambda w, c: np.sum((w[0] * c.to_numpy() + w[1] - 1) ** 2),
    lambda w, c: np.sum(np.multiply(w[0], c) * c) + w[1],
    lambda w, c: np.sum(np.exp(w[0] - c / w[1])),
]


@pytest.mark.thinned(3)
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


TABLES = {
    "Series": pandas.Series, "DataArray": lambda x: xarray.DataArray(x, dims="t"),
    "Variable": lambda x: xarray.Variable("t", x), "a frame": lambda x: pandas.DataFrame({"a": x}),
}  # fmt: skip
X = np.array([1.0, 3.0, 2.0, 5.0])
FUNCTIONS = {
    "asarray": lambda t: np.asarray(t) ** 2, "array": lambda t: np.array(t, float) ** 2, "ravel": np.ravel,
    "sort": lambda t: np.sort(t, axis=0) * np.arange(4.0)[:, None], "norm": np.linalg.norm, "median": np.median,
    "percentile": lambda t: np.percentile(t, 30), "average": np.average, "diff": lambda t: np.diff(t, axis=0) ** 2,
    "concatenate": lambda t: np.concatenate([t, t]) ** 2, "stack": lambda t: np.stack([t, t]) ** 3,
    "where": lambda t: np.where(np.asarray(t) > 2.5, t, 0.0), "nansum": lambda t: np.nansum(t) ** 2,
    "tensordot": lambda t: np.tensordot(t, t, ([0], [0])), "zeros_like": lambda t: np.zeros_like(t) + np.asarray(t),
    "dct": lambda t: scipy.fft.dct(t, axis=0) ** 2, "logsumexp": scipy.special.logsumexp,
    "spline": lambda t: scipy.interpolate.CubicSpline(np.arange(4.0), t)(1.3),
    "interp1d": lambda t: scipy.interpolate.interp1d(np.arange(4.0), t, kind="quadratic", axis=0)([0.5, 1.2]),
    "logpdf": lambda t: scipy.stats.norm.logpdf(t),
    "simpson": lambda t: scipy.integrate.simpson(t, axis=0) ** 2,
    "filter": lambda t: scipy.ndimage.gaussian_filter(t, 1.0) ** 2,
    "savgol": lambda t: scipy.signal.savgol_filter(t, 3, 1, axis=0) ** 2, "scipy.linalg": scipy.linalg.norm,
}  # fmt: skip
OF_VECTORS = {
    "zscore": lambda t: scipy.stats.zscore(t) ** 3,
    "interp": lambda t: np.interp([0.5, 1.2], np.arange(4.0), t) ** 2, "dot": lambda t: np.dot(t, t),
    "polyfit": lambda t: np.polyfit(np.arange(4.0), t, 1), "convolve": lambda t: np.convolve(t, t),
    "einsum": lambda t: np.einsum("i,i", t, t), "shape": lambda t: np.shape(t)[0] * np.size(t) * np.linalg.norm(t, 3),
    "roll": lambda t: np.roll(t, 1) ** 2 * np.arange(4.0), "gradient": lambda t: np.gradient(t) ** 2,
}  # fmt: skip


@pytest.mark.thinned(4)
@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("name", FUNCTIONS | OF_VECTORS)
def test_functions_of_arrays_take_a_table_of_traced_numbers(kind, name, run):
    """NumPy and SciPy make an array of a table, and the table called `__array__` of a traced value, an error."""
    if kind == "a frame" and name in OF_VECTORS:
        return
    function = (FUNCTIONS | OF_VECTORS)[name]

    def f(x):
        return np.sum(function(TABLES[kind](x)) * 1.0)

    assert effgrad.value_and_grad(f)(X)[0] == f(X)
    differences = [(f(X + e) - f(X - e)) / 2e-5 for e in 1e-5 * np.eye(4)]
    np.testing.assert_allclose(run(grad)(f)(X), differences, rtol=1e-6, atol=1e-8)
    slopes = [(grad(f)(X + e) - grad(f)(X - e)) / 2e-5 for e in 1e-5 * np.eye(4)]
    np.testing.assert_allclose(effgrad.hessian(f)(X), slopes, rtol=1e-5, atol=1e-7)


METHODS_OF_INTERPOLATION = (
    "linear", "nearest", "zero", "slinear", "quadratic", "cubic", "pchip", "akima", "makima", "barycentric", "krogh",
)  # fmt: skip


@pytest.mark.parametrize("method", METHODS_OF_INTERPOLATION)
def test_xarray_interpolates_traced_numbers(method):
    def f(x):
        table = xarray.DataArray(x**2, dims="t", coords={"t": np.arange(4.0)})
        return np.sum(table.interp(t=[0.4, 1.2], method=method).values)

    assert effgrad.value_and_grad(f)(X)[0] == f(X)
    differences = [(f(X + e) - f(X - e)) / 2e-6 for e in 1e-6 * np.eye(4)]
    np.testing.assert_allclose(grad(f)(X), differences, rtol=1e-6, atol=1e-8)


def test_xarray_interpolates_over_two_axes():
    def f(x):
        table = xarray.DataArray(np.reshape(x, (2, 2)) ** 2, dims=("a", "b"), coords={"a": [0.0, 2.0], "b": [0.0, 1.0]})
        return np.sum(table.interp(a=[0.5, 0.7], b=[0.2]).values)

    differences = [(f(X + e) - f(X - e)) / 2e-6 for e in 1e-6 * np.eye(4)]
    np.testing.assert_allclose(grad(f)(X), differences, rtol=1e-6)


SERIES = pandas.Series
MASK = np.array([True, False, True, True])


def written(write):
    """Return the rows of an array of ones after a write to it."""
    array = np.ones((2, 4))
    write(array)
    return array[0]


OF_SERIES = {
    "two tables": lambda x: np.divide(SERIES(x), SERIES(x) ** 2),
    "labels in another order": lambda x: np.hypot(SERIES(x), SERIES(x**2, index=[2, 1, 0, 3])),
    "labels that are missing": lambda x: (SERIES(x) + SERIES(x[:3] ** 2, index=[2, 1, 0])).fillna(x[0]),
    "out": lambda x: np.divide(x, SERIES(x) ** 2, out=np.zeros(4)),
    "out and where": lambda x: np.divide(x, SERIES(x) ** 2, out=np.ones(4), where=SERIES(x) < 4.0),
    "where, of a table": lambda x: np.sin(SERIES(x), out=np.ones(4), where=MASK),
    "a table as out": lambda x: (lambda s: np.add(s, s**2, out=s))(SERIES(x) * 1.0),
    "an item of an array": lambda x: written(lambda a: a.__setitem__(0, SERIES(x**2))),
    "a mask of an array": lambda x: written(lambda a: a.__setitem__((0, SERIES(MASK)), SERIES(x**2)[MASK])),
    "putmask": lambda x: written(lambda a: np.putmask(a[0], SERIES(x) > 2.5, SERIES(x**2))),
    "copyto": lambda x: written(lambda a: np.copyto(a[0], SERIES(x**2))),
    "reindex": lambda x: SERIES(x).reindex([3, 1, 0, 9], fill_value=4.0),
    "loc": lambda x: SERIES(x).loc[[3, 1, 0, 1]], "iloc": lambda x: SERIES(x).iloc[[3, 1, 0, 1]],
    "sort_index": lambda x: SERIES(x, index=[3, 1, 2, 0]).sort_index(),
    "sorted by a column": lambda x: pandas.DataFrame({"a": x, "b": -x}).sort_values("b")["a"],
    "merge": lambda x: pandas.DataFrame({"a": x, "k": [0, 1, 2, 3]}).merge(pandas.DataFrame({"k": [3, 0, 2, 1]}))["a"],
    "ffill": lambda x: SERIES(np.where(MASK, x, np.nan)).ffill(),
    "bfill": lambda x: SERIES(np.where(MASK, x, np.nan)).bfill(limit=1),
    "ffill of a frame": lambda x: pandas.DataFrame({"a": x, "b": np.where(MASK, x, np.nan)}).ffill()["b"],
}  # fmt: skip


@pytest.mark.thinned(2)
@pytest.mark.parametrize("name", OF_SERIES)
def test_tables_of_traced_numbers_are_matched_taken_written_and_filled(name, run):
    """pandas' own `__array_ufunc__` ran as it is written, its compiled `take` refused traced numbers, and arrays,
    outputs and masks refused a table."""
    def f(x):
        return np.sum(np.asarray(OF_SERIES[name](x)) * [1.0, -2.0, 3.0, 0.5])

    assert effgrad.value_and_grad(f)(X)[0] == f(X)
    differences = [(f(X + e) - f(X - e)) / 2e-5 for e in 1e-5 * np.eye(4)]
    np.testing.assert_allclose(run(grad)(f)(X), differences, rtol=1e-6, atol=1e-8)


def test_an_output_and_the_table_made_of_it_share_memory():
    def f(x):
        out = np.zeros(4)
        table = np.multiply(x, pandas.Series(x), out=out)
        out[1] = 7.0
        return np.sum(table.to_numpy() * out)

    assert effgrad.value_and_grad(f)(X)[0] == f(X)
    differences = [(f(X + e) - f(X - e)) / 2e-5 for e in 1e-5 * np.eye(4)]
    np.testing.assert_allclose(grad(f)(X), differences, rtol=1e-6, atol=1e-8)
