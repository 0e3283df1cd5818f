"""Tables of pandas whose Python code is read: windows, pairs of columns, rows, groups, order, and written elements.

The oracle is pandas on plain numbers, and differences of it.
"""

import numpy as np
import pandas as pd
import pytest
from differences import directional

import effgrad

X = np.array([1.0, 2.1, 3.5, 5.0, 4.2, 2.7, 3.1])
DAYS = pd.date_range("2020-01-01", periods=7)
KEYS = [0, 1, 0, 1, 0, 0, 1]


def with_gap(x):
    return np.where(np.arange(7) == 3, np.nan, x)


def frame(x):
    return pd.DataFrame({"a": x, "b": x**2 - 3.0 * x, "c": with_gap(np.sin(x))})


def reduced_windows(x):
    s, gaps, table = pd.Series(x), pd.Series(with_gap(x)), frame(x)
    for windows in (s.rolling(3), gaps.rolling(4, min_periods=2), s.expanding(2), s.rolling(3, step=2, closed="both")):
        yield from (windows.sum(), windows.mean(), windows.var(), windows.std(ddof=0), windows.median())
        yield from (windows.min(), windows.max(), windows.quantile(0.3), windows.quantile(0.7, interpolation="lower"))
    yield from (s.rolling(4).skew(), s.expanding().kurt(), gaps.rolling(5, min_periods=3).sem())
    yield from (table.rolling(3).mean(), table.rolling(2).agg({"a": "mean", "b": "std"}))
    yield pd.Series(x, DAYS).rolling("3D").median()
    yield from (s.groupby(KEYS).rolling(2).median(), table.groupby(KEYS).rolling(2).sum())


def applied_windows(x):
    s = pd.Series(x)
    yield s.rolling(3).apply(lambda part: (part**2).sum() * x[0], raw=True)
    yield s.rolling(3, min_periods=1).apply(lambda part: part.iloc[-1] * part.mean())
    yield s.expanding().apply(np.sum)
    yield s.rolling(3).agg(np.median)


def pairs_of_columns(x):
    s, table = pd.Series(x), frame(x)
    yield from (s.rolling(3).corr(s**2), s.rolling(4, min_periods=3).cov(pd.Series(with_gap(x) ** 2), ddof=0))
    yield from (table.corr(), table.cov(), table.corr(min_periods=2), s.corr(s**2), table.corrwith(s**3), s.autocorr(1))
    yield from (table.rolling(4).corr(pairwise=True).iloc[-3:], table.expanding(4).cov().iloc[-3:])


def decaying_windows(x):
    s, gaps, table = pd.Series(x), pd.Series(with_gap(x)), frame(x)
    for options in ({}, {"adjust": False}, {"ignore_na": True}, {"adjust": False, "ignore_na": True}):
        several = s.ewm(span=3, **options), gaps.ewm(alpha=0.4, min_periods=2, **options), gaps.ewm(1.0, **options)
        for windows in several:
            yield from (windows.mean(), windows.var(), windows.std(bias=True))
            yield windows.cov(s**2).iloc[2:]
    yield from (s.ewm(span=3).corr(s**2), table.ewm(com=1).mean(), s.groupby(KEYS).ewm(1.0).mean(), s.ewm(2.0).sum())
    yield pd.Series(x, DAYS).ewm(halflife="2D", times=DAYS[[0, 1, 3, 4, 5, 6, 6]]).mean()
    yield s.ewm(com=x[0]).var()


def rows(x):
    mixed = pd.DataFrame({"a": x, "n": range(7), "c": x * x})
    yield frame(x).apply(lambda row: row["a"] * row["b"], axis=1)
    yield mixed.apply(lambda row: pd.Series([row.a * row.n, row.c]), axis=1)
    yield from (mixed.apply(f, axis=1) for f in (np.sum, np.mean, lambda row: row.dropna().sum(), "max"))
    yield frame(x).apply(lambda row: row**2, axis=1, raw=True)
    yield mixed.assign(t="text").apply(lambda row: row["a"] ** 2 if row["t"] else 0.0, axis=1)


def filled_gaps(x):
    gaps = pd.Series(with_gap(np.where(np.arange(7) == 0, np.nan, x)), DAYS)
    yield from (gaps.interpolate(), gaps.interpolate("time", limit_direction="both"))
    yield from (gaps.iloc[1:].interpolate("cubic"), gaps.interpolate("pchip"))
    yield from (frame(x).interpolate(), frame(x).T.interpolate(axis=1))


def groups(x):
    table = frame(x).assign(k=KEYS, m=[0, 0, 1, 1, 0, 1, 0])
    yield from (table.groupby("k").a.quantile(0.3), table[["a", "b", "k"]].groupby("k").quantile([0.2, 0.7]))
    yield table.groupby("k", as_index=False).c.quantile(0.4, interpolation="midpoint")
    yield table.pivot_table(values="a", index="k", columns="m")
    yield table.pivot_table(values=["a", "b"], index="k", aggfunc={"a": "sum", "b": "max"})
    counts = table.groupby("k").size(), table.groupby("k").c.nunique(), table.groupby("k").c.count()
    yield sum(c * x[0] for c in counts)
    yield from (table.groupby("k").a.rank() * x, table.groupby("a").b.sum().reset_index())
    yield x[: len(table.groupby("k").a.idxmax())] * x[table.groupby("k").a.idxmax().to_numpy()]


def order(x):
    s, repeated = pd.Series(x), pd.Series(np.concatenate([x, x[:2]]))
    yield from (s.rank() * x, s.rolling(3).rank() * x, s.nlargest(2), s.nsmallest(3), frame(x).nlargest(2, "b"))
    yield from (repeated.unique(), repeated.drop_duplicates(), repeated.mode(), pd.factorize(x)[1])
    yield repeated.nunique() * x[1] + s[s.idxmax()] * s.index[s.idxmin()] + s.iloc[int(s.argmax())]


def written(x):
    """A traced number in the memory of a plain column: `dropna` left it out, and sums were 0, silently."""
    s, t = pd.Series(np.arange(7.0)), pd.Series(np.arange(7.0) + 0.3)
    table = pd.DataFrame({"a": np.arange(3.0), "b": 1.0})
    s.loc[1], t.iloc[2:4], table.loc[1, "a"] = x[1], x[2:4], x[4]
    yield from (np.sum(s), np.mean(t), np.std(table.a), np.nansum(s), s.dropna(), t.agg(np.sum), np.cumsum(t))
    yield from (s.apply(lambda v: v * v), np.median(s), np.concatenate([s, t]), np.dot(t, x), np.sort(t))
    yield from (s.rolling(2).sum(), s.diff(), s.interpolate(), np.exp(s) - 2 / (1 + t))
    yield from (table.sum(axis=1), table.groupby("b").a.sum())


def bins(x):
    """`cut` and `qcut` compare the numbers alone, and were refused."""
    s, edges = pd.Series(x), [0.0, 2.5, 4.0, 6.0]
    yield from (s * pd.cut(s, edges, labels=False), x * pd.cut(x, edges).codes)
    yield s.groupby(pd.cut(s, edges), observed=True).mean()
    yield pd.cut(pd.Series(with_gap(x)), [3.0, 6.0], labels=False).fillna(-1.0) * x
    yield pd.cut([x[0], x[1]], pd.IntervalIndex.from_breaks([0.5, 1.5, 3.0])).codes * x[:2]
    yield s.where(pd.cut(s, edges[1:], right=False, labels=["low", "high"]) == "low", 0.0)


def counted_bins(x):
    yield from (x * pd.cut(x, 3, labels=False), pd.Series(x) * pd.qcut(pd.Series(x), 3, labels=False))


def in_place(x):
    """An augmented assignment to a column or a table with a traced operand raised an internal error."""
    table, s = frame(x), pd.Series(np.arange(7.0))
    table["a"] += x
    table["b"] *= 2.0
    table.c -= table.a
    table["a"] **= 2
    yield table
    s += x
    s /= pd.Series(x)
    s.loc[2] = x[0]
    s -= 0.5
    yield s
    whole = pd.DataFrame({"a": np.arange(7.0), "b": 1.0})
    whole *= x[1]
    whole += whole
    yield whole


def gaps_filled_in_place(x):
    """`fillna`, `ffill` and `dropna` in place were refused, and so was `fillna` with a limit."""
    s, t, u, v = (pd.Series(with_gap(x)) for _ in range(4))
    s.fillna(x[1], inplace=True)
    t.ffill(inplace=True)
    u.dropna(inplace=True)
    v.dropna(inplace=True, ignore_index=True)
    yield from (s, t, u, v, pd.Series(with_gap(x)).dropna(ignore_index=True) * v)
    plain = pd.Series([np.nan, 2.0, np.nan])
    plain.fillna(x[2] * x[0], inplace=True, limit=1)
    yield plain
    table = pd.DataFrame({"a": with_gap(x), "b": with_gap(x) * 2, "c": [np.nan] * 3 + [1.0] * 4})
    before = table.copy()
    table.fillna(x[3], inplace=True, limit=1)
    yield from (table, before)
    before.fillna({"a": x[1], "c": 2.0}, inplace=True)
    yield before


PROGRAMS = [
    reduced_windows, applied_windows, pairs_of_columns, decaying_windows, rows, filled_gaps, groups, order, written,
    bins, counted_bins, in_place, gaps_filled_in_place,
]  # fmt: skip



def as_array(one):
    return one.to_numpy() if hasattr(one, "to_numpy") else one


def total(program, x):
    parts = [np.nansum(np.asarray(one) * np.cos(np.arange(np.size(one))).reshape(np.shape(one)))
             for one in map(as_array, program(x))]  # fmt: skip
    return sum((i + 1) * part for i, part in enumerate(parts))


@pytest.mark.parametrize("transform", [lambda f: f, effgrad.compile], ids=["eager", "compiled"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.filterwarnings("ignore")
def test_pandas_is_read(program, transform):
    if program is counted_bins and transform is effgrad.compile:
        with pytest.raises(effgrad.NoRule, match="cut depends on values"):
            effgrad.compile(lambda x: total(program, x))(X)
        return
    direction = np.random.default_rng(1).normal(size=7)
    value, slope = transform(effgrad.value_and_grad(lambda x: total(program, x)))(X)
    wanted, error = directional(lambda t: total(program, X + t * direction), 0.0, 1.0, step=1e-2)
    assert value == pytest.approx(total(program, X), rel=1e-12)
    assert slope @ direction == pytest.approx(float(wanted), rel=1e-7, abs=10 * error)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.filterwarnings("ignore")
def test_values_are_those_of_pandas(program):
    """Each result has the value and the labels that pandas gives plain numbers."""
    found = []

    def f(x):
        found[:] = [effgrad.stop_gradient(as_array(one)) for one in program(x)]
        return x[0]

    effgrad.grad(f)(X)
    for one, expected in zip(found, map(as_array, program(X)), strict=True):
        np.testing.assert_array_equal(np.asarray(one, float), np.asarray(expected, float))


@pytest.mark.parametrize(
    ("f", "says"),
    [
        (lambda x: pd.Series(x).value_counts().sum(), r"pandas\.Series\.value_counts takes plain numbers"),
        (lambda x: pd.Series(x).rolling(3, win_type="triang").mean().sum(), r"pandas\.\S*Window\.mean takes plain"),
        (lambda x: pd.cut(x, 3).codes.sum(), r"pandas\.cut has a derivative rule for bins whose edges"),
        (lambda x: pd.qcut(x, 3, False, True)[1].sum(), r"pandas\.qcut has a derivative rule for bins whose edges"),
        (lambda x: pd.cut(np.ones(3), x[:2]).codes.sum(), r"pandas\.cut has a derivative rule for bins whose edges"),
        (lambda x: frame(x).corr("kendall").sum().sum(), r"pandas\.DataFrame\.corr takes plain numbers"),
        (lambda x: frame(x).merge(frame(x), on="a").b_x.sum(), r"pandas\.DataFrame\.merge takes plain numbers"),
    ],
)  # fmt: skip
def test_what_is_refused_is_named_as_users_know_it(f, says):
    f(X)
    with pytest.raises((effgrad.NoRule, effgrad.Detached), match=says):
        effgrad.grad(f)(X)
