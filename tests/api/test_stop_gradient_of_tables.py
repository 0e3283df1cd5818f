"""`stop_gradient` of tables of pandas and xarray, and of objects; tables kept their derivative, silently."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import effgrad
from effgrad import Detached, grad, stop_gradient

X = np.array([1.0, 2.0, 4.0])

TABLES = {
    "series": lambda x: pd.Series(x * 2, index=list("abc"), name="s"),
    "index": lambda x: pd.Index(np.array([1.0, 2.0])),
    "frame": lambda x: pd.DataFrame({"a": x, "b": x * 2, "n": [1, 2, 3]}, index=[3, 4, 5]),
    "equal names": lambda x: pd.DataFrame(np.stack([x, x * x], 1), columns=["a", "a"]),
    "written": lambda x: written(pd.Series(np.zeros(3)), x),
    "array": lambda x: xr.DataArray(x * 3, dims="t", coords={"t": [0, 1, 2]}),
    "arrays": lambda x: xr.Dataset({"u": ("t", x), "v": ("t", [1.0, 2.0, 3.0])}),
    "in containers": lambda x: pd.concat([{"s": pd.Series(x)}["s"], pd.Series(x)]),
}


def written(series, x):
    series.iloc[1:] = x[1:]
    return series


def total(table):
    parts = table.values() if isinstance(table, xr.Dataset) else [table]
    return sum(np.sum(np.asarray(part.to_numpy()) ** 2) for part in parts)


@pytest.mark.parametrize("transform", [lambda f: f, effgrad.compile], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.filterwarnings("ignore")
def test_a_table_without_derivative_is_the_same_table_of_constants(name, transform):
    def f(x):
        table = stop_gradient(TABLES[name](x))
        kinds.append((type(table), getattr(table, "dtype", None)))
        return total(table) * x[0]

    kinds = []
    value, slope = transform(effgrad.value_and_grad(f))(X)
    wanted = TABLES[name](X)
    assert kinds[0] == (type(wanted), getattr(wanted, "dtype", None))
    assert value == pytest.approx(total(wanted) * X[0])
    np.testing.assert_allclose(slope, [total(wanted), 0.0, 0.0])


def test_labels_are_kept():
    def f(x):
        found = stop_gradient((TABLES["series"](x), TABLES["frame"](x), TABLES["array"](x)))
        for one, other in zip(found, (TABLES[name](X) for name in ("series", "frame", "array")), strict=True):
            (xr if isinstance(one, xr.DataArray) else pd).testing.__dict__[COMPARING[type(one)]](one, other)
        return x.sum()

    np.testing.assert_allclose(grad(f)(X), 1.0)


COMPARING = {
    pd.Series: "assert_series_equal", pd.DataFrame: "assert_frame_equal", xr.DataArray: "assert_identical",
}  # fmt: skip


def test_an_object_with_traced_values_is_refused():
    class Holder:
        def __init__(self, x):
            self.x = x

    with pytest.raises(Detached, match="an object of the class 'Holder' keeps its traced values"):
        grad(lambda x: (stop_gradient(Holder(x)).x ** 2).sum())(X)
    np.testing.assert_allclose(grad(lambda x: (stop_gradient(Holder(X)).x * x).sum())(X), X)
