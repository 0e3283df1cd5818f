"""Groups of pandas: every reduction and accumulation, of a column, with gaps, of tables, by time, and by functions.

Only sums and means of one column had a derivative. A loop over groups, and functions of groups, were refused.
"""

import numpy as np
import pytest

from effgrad import compile, grad, value_and_grad

pd = pytest.importorskip("pandas")

X = np.array([1.0, 3.0, 2.0, 5.0, 4.0, 6.0, 8.0, 7.0]) + 0.01 * np.arange(8)
KEYS = np.array([0, 1, 0, 1, 2, 2, 0, 1])
GROUPS = np.array([0, 1, 0, 1, 1, 1, 0, 1])
GAPS = np.array([False, False, True, False, False, False, False, True])
PLAIN = pd.Series(np.arange(8.0))
DAYS = pd.date_range("2024-01-01", periods=8)
REDUCED = "sum", "mean", "var", "std", "sem", "prod", "min", "max", "median", "first", "last"
SHAPES = "skew", "kurt"
ACCUMULATED = "cumsum", "cumprod", "cummin", "cummax", "shift", "diff"


def table(s):
    return pd.DataFrame({"a": s, "b": s**2, "k": KEYS})


PROGRAMS = {
    **{f"{name} of a column": lambda s, name=name: getattr(s.groupby(KEYS), name)() for name in REDUCED + ACCUMULATED},
    **{f"{name} with gaps": lambda s, name=name: getattr(s.where(~GAPS).groupby(KEYS), name)() for name in REDUCED},
    **{f"{name} of a table": lambda s, name=name: getattr(table(s).groupby("k"), name)() for name in REDUCED},
    **{f"{name} by time": lambda s, name=name: getattr(s.resample("3D"), name)() for name in (*REDUCED, "ohlc")},
    **{f"{name} of groups": lambda s, name=name: getattr(s.where(~GAPS).groupby(GROUPS), name)() for name in SHAPES},
    **{f"{name} alone": lambda s, name=name: s * getattr(s, name)() for name in SHAPES},
    **{f"{name} of columns": lambda s, name=name: getattr(table(s)[["a", "b"]], name)() for name in SHAPES},
    "deviation of one value": lambda s: s * s[s > 7.5].iloc[:1].std(ddof=0) + s[s > 7.5].iloc[:1].fillna(0.0).var(),
    "an array of a table": lambda s: pd.Series([np.sum(np.asarray(t, dtype=float)) for t in (table(s), table(2 * s))]),
    "written by a mask": lambda s: s.mask(s > 3, s**2).loc[s > 2],
    "shifted truths": lambda s: s * ((s > 3) & (s > 3).shift(1).fillna(False).astype(bool)),
    "cumsum with gaps": lambda s: s.where(~GAPS).groupby(KEYS).cumsum(),
    "least count": lambda s: s.where(~GAPS).groupby(KEYS).sum(min_count=3),
    "degrees of freedom": lambda s: s.groupby(KEYS).std(ddof=0),
    "missing keys": lambda s: s.groupby(np.where(GAPS, np.nan, KEYS)).mean(),
    "two keys": lambda s: s.groupby([KEYS, KEYS[::-1]]).sum(),
    "named results": lambda s: table(s).groupby("k").agg(m=("a", "mean"), n=("b", "last")),
    "several results": lambda s: s.groupby(KEYS).agg(["mean", "std"]),
    "centred": lambda s: s - s.groupby(KEYS).transform("mean"),
    "scaled by a function": lambda s: s.groupby(KEYS).transform(lambda v: (v - v.mean()) / v.std()),
    "applied": lambda s: table(s).groupby("k")[["a", "b"]].apply(lambda d: (d["a"] * d["b"]).sum()),
    "aggregated": lambda s: s.groupby(KEYS).agg(lambda v: (v**2).sum()),
    "a loop": lambda s: pd.Series([k * part.sum() + part.iloc[0] for k, part in s.groupby(KEYS)]),
    "constants": lambda s: s * PLAIN.groupby(KEYS).agg(max).sum() * PLAIN.groupby(KEYS).quantile(0.3).sum(),
    "quantiles": lambda s: s.groupby(KEYS).agg(lambda part: part.quantile(0.3)),
}


def total(f, x):
    y = f(pd.Series(x, index=DAYS))
    columns = [y[name] for name in y.columns] if isinstance(y, pd.DataFrame) else [y]
    arrays = [np.where(np.isnan(column.to_numpy()), 0.0, column.to_numpy()) for column in columns]
    return sum(np.sum(a * np.cos(np.arange(len(a)) + k)) for k, a in enumerate(arrays))


@pytest.mark.parametrize("name", PROGRAMS)
def test_groups_have_their_value_and_derivative(name):
    def f(x):
        return total(PROGRAMS[name], x)

    slopes = [(f(X + e) - f(X - e)) / 2e-6 for e in 1e-6 * np.eye(8)]
    value, slope = value_and_grad(f)(X)
    assert value == f(X)
    np.testing.assert_allclose(slope, slopes, rtol=2e-7, atol=1e-6)
    np.testing.assert_allclose(compile(grad(f))(X), slope, rtol=1e-12, atol=1e-12)
