"""Sums and means over windows and groups of pandas and xarray, and quantities with units, under derivatives."""

import math

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import effgrad
from effgrad import grad, hessian, jacobian

X = np.linspace(0.5, 1.5, 6)
GROUPS = pd.Series(list("aabbab"))


def with_gap(x):
    return np.where(np.arange(6) == 2, np.nan, x)


PROGRAMS = {
    "rolling mean": lambda x: pd.Series(x).rolling(3).mean().to_numpy()[2:],
    "rolling sum": lambda x: np.where(np.arange(6) < 2, 0.0, pd.Series(x).rolling(3).sum().to_numpy()),
    "rolling with fewer": lambda x: pd.Series(x).rolling(4, min_periods=1, center=True).mean().to_numpy(),
    "rolling over a gap": lambda x: pd.Series(with_gap(x)).rolling(3, min_periods=1).sum().to_numpy(),
    "rolling var": lambda x: pd.Series(with_gap(x)).rolling(4, min_periods=2).var(ddof=0).to_numpy()[1:],
    "rolling std": lambda x: (pd.Series(x).rolling(3).std() * pd.Series(x).expanding().std()).to_numpy()[2:],
    "rolling min": lambda x: pd.Series(with_gap(x)).rolling(3, min_periods=1).min().to_numpy() * pd.Series(x).max(),
    "rolling max": lambda x: pd.Series(x).rolling(2, closed="both").max().dropna().to_numpy(),
    "ewm after a gap": lambda x: pd.Series(x**2).diff().ewm(span=3, adjust=False).mean().to_numpy()[1:],
    "ewm of a tail": lambda x: pd.Series(x).diff().ewm(com=2, ignore_na=True, min_periods=2).mean().to_numpy()[2:],
    "expanding": lambda x: pd.Series(x).expanding().mean().to_numpy() * pd.Series(x).expanding().sum().to_numpy(),
    "groupby mean": lambda x: pd.Series(x**2).groupby(GROUPS).mean().to_numpy(),
    "groupby sum": lambda x: pd.Series(with_gap(x)).groupby(GROUPS, sort=False).sum().to_numpy(),
    "rolling, the gap dropped": lambda x: pd.Series(x).rolling(3).mean().dropna().to_numpy() ** 2,
    "differences": lambda x: pd.Series(x**2).diff().dropna().to_numpy() * pd.Series(x).diff(-2).dropna().sum(),
    "groups of a frame": lambda x: pd.DataFrame({"g": GROUPS, "x": x}).groupby("g")["x"].mean().to_numpy(),
    "a column": lambda x: pd.DataFrame({"x": x, "y": 2 * x})["y"].to_numpy(),
    "xarray rolling": lambda x: xr.DataArray(x, dims="t").rolling(t=3).mean().values[2:],
    "xarray groupby": lambda x: xr.DataArray(x, dims="t", coords={"g": ("t", [*"aabbab"])}).groupby("g").sum().values,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_windows_and_groups(name):
    f = PROGRAMS[name]
    step = 1e-6
    columns = [(f(X + step * e) - f(X - step * e)) / (2 * step) for e in np.eye(6)]
    np.testing.assert_allclose(jacobian(f)(X), np.stack(columns, axis=1), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(effgrad.jvp(f, (X,), (X,))[0], f(X), rtol=1e-13)
    second = hessian(lambda x: np.sum(np.sin(f(x))))(X)
    gradient = grad(lambda x: np.sum(np.sin(f(x))))
    difference = (gradient(X + step * X) - gradient(X - step * X)) / (2 * step)
    np.testing.assert_allclose(second @ X, difference, rtol=1e-5, atol=1e-8)


def doubled(x):
    """Each item is written back, as it is and as a number."""
    table = pd.Series({"a": x[0], "b": 1.0, "c": 3.0})
    for label, value in table.items():
        table[label] = 2 * value
    table["c"] = 0.5
    return table.to_numpy() * x[1]


LISTED = {
    "a list": lambda x: (pd.Series([x[0], x[1] ** 2, 3.0]) * 2).to_numpy(),
    "a dictionary": lambda x: pd.Series({"a": x[0], "b": x[1] ** 2, "c": 1.0}).to_numpy() ** 2,
    "its items": lambda x: (lambda s: s.a * s["b"] + sum(s))(pd.Series(dict(a=x[0], b=x[1]), name="s")),
    "items that are written": doubled,
    "columns": lambda x: pd.DataFrame({"a": [x[0], x[1]], "b": [1.0, x[0] * x[1]]}).to_numpy(),
    "beside a text": lambda x: pd.Series(["a", x[0]])[1] ** 2,
    "rows": lambda x: pd.DataFrame([{"a": x[0]}, {"a": x[1] ** 2}])["a"].sum(),
}


@pytest.mark.parametrize("name", LISTED)
def test_numbers_in_lists_become_columns(name):
    f, x, step = LISTED[name], np.array([0.7, 1.2]), 1e-6
    columns = [(f(x + step * e) - f(x - step * e)) / (2 * step) for e in np.eye(2)]
    np.testing.assert_allclose(jacobian(f)(x), np.stack(columns, axis=-1), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(jacobian(f, mode="forward")(x), np.stack(columns, axis=-1), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(effgrad.compile(jacobian(f))(x), jacobian(f)(x), rtol=1e-12)


EXPONENTIAL = {
    "alpha": lambda x: pd.Series(x).ewm(alpha=0.4).mean(),
    "span, and the first without": lambda x: pd.Series(x).ewm(span=3, min_periods=2).mean().fillna(0.0),
    "by recursion": lambda x: pd.Series(x).ewm(com=2.0, adjust=False).mean(),
    "over a gap": lambda x: pd.Series(with_gap(x)).ewm(halflife=1.5).mean(),
    "after gaps": lambda x: pd.Series(np.where(np.arange(6) < 2, np.nan, x)).ewm(com=0.5).mean().fillna(0.0),
    "a traced alpha": lambda x: pd.Series(x[1:]).ewm(alpha=x[0] / 5).mean(),
    "a traced alpha alone": lambda x: pd.Series(np.arange(5.0)).ewm(alpha=x[0] / 5).mean(),
    "by name": lambda x: pd.Series(x).ewm(com=1.0).agg("mean"),
}  # fmt: skip


@pytest.mark.parametrize("name", EXPONENTIAL)
def test_exponential_means(name, run):
    def f(x):
        return EXPONENTIAL[name](x).to_numpy()

    def loss(x):
        return np.sum(np.sin(f(x)))

    step = 1e-6
    np.testing.assert_array_equal(effgrad.jvp(f, (X,), (X,))[0], f(X))
    columns = [(f(X + step * e) - f(X - step * e)) / (2 * step) for e in np.eye(6)]
    np.testing.assert_allclose(jacobian(f)(X), np.stack(columns, axis=1), rtol=1e-6, atol=1e-9)
    expected = [(loss(X + step * e) - loss(X - step * e)) / (2 * step) for e in np.eye(6)]
    np.testing.assert_allclose(run(grad)(loss)(X), expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(effgrad.vmap(grad(loss))(np.stack([X, 2 * X]))[0], expected, rtol=1e-6, atol=1e-9)
    slopes = [(grad(loss)(X + step * e) - grad(loss)(X - step * e)) / (2 * step) for e in np.eye(6)]
    np.testing.assert_allclose(hessian(loss)(X), slopes, rtol=1e-5, atol=1e-8)


def test_the_index_and_the_name_are_pandas():
    def f(x):
        table = pd.Series(x, index=pd.date_range("2024-01-01", periods=6), name="level")
        mean = table.rolling("3D").mean()
        assert mean.name == "level" and list(mean.index) == list(table.index)
        groups = table.groupby(list("aabbab")).sum()
        assert list(groups.index) == ["a", "b"] and groups.name == "level"
        return mean.iloc[-1] + groups["a"]

    np.testing.assert_allclose(grad(f)(X), [1, 1, 0, 1 / 3, 4 / 3, 1 / 3], rtol=1e-14)


KEYS = {
    "texts": np.array([*"aabbab"]), "numbers": np.array([2, 1, 2, 3, 1, 1]),
    "a gap": np.array([*"aab", None, *"ab"], object), "categories": pd.Categorical([*"aabbab"], categories=[*"cba"]),
}  # fmt: skip
WINDOWS = {
    "rolling": lambda g: g.rolling(2), "fewer": lambda g: g.rolling(2, min_periods=1),
    "expanding": lambda g: g.expanding(), "centred": lambda g: g.rolling(3, center=True),
    "closed": lambda g: g.rolling(2, closed="left"),
}  # fmt: skip


@pytest.mark.thinned(4)
@pytest.mark.parametrize("windows", WINDOWS)
@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("options", [{}, {"sort": False}, {"dropna": False}, {"observed": True}])
def test_windows_of_groups(windows, keys, options):
    """The windows went over the rows as they stand: a wrong sum, and a wrong derivative of it."""
    for how in ("sum", "mean", "var", "max"):
        def series(x, how=how):
            return getattr(WINDOWS[windows](pd.Series(x, name="a").groupby(KEYS[keys], **options)), how)()

        expected, step = series(X), 1e-6
        slope = ((series(X + step * X[::-1]) - series(X - step * X[::-1])) / (2 * step)).to_numpy()
        value, tangent = effgrad.jvp(lambda x, series=series: series(x).to_numpy(), (X,), (X[::-1],))
        np.testing.assert_allclose(value, expected, rtol=1e-14)
        np.testing.assert_allclose(np.where(np.isnan(value), np.nan, tangent), slope, rtol=1e-6)
        labels = []
        grad(lambda x, series=series, labels=labels: (labels.append(series(x)), np.sum(x))[1])(X)
        assert labels[0].index.equals(expected.index) and labels[0].name == "a"


FUNCTIONS = {
    "np.sum": np.sum, "np.exp": np.exp, "centred": lambda s: s - s.mean(), "scaled": lambda s: s / np.sum(s) ** 2,
    "text": "cumsum", "list": [np.sum, np.sqrt, "cumprod"], "dictionary": {"x": np.max, "y": np.sin},
    "of the math module": lambda v: math.sin(v) if v > 2.05 else v**3,
}  # fmt: skip


@pytest.mark.parametrize("kind", ["Series", "DataFrame"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_transforms(kind, name):
    """pandas asks a function for each number first, and on any error for the whole: on effgrad's too.

    Some broke off with "Function did not transform", and others computed with the whole where pandas does with each.
    """
    def f(x):
        table = pd.Series(x) if kind == "Series" else pd.DataFrame({"x": x, "y": x[::-1] * 2.0})
        table = table.transform(FUNCTIONS[name])
        return table.sum() if isinstance(table, pd.Series) else sum(table.iloc[:, i].sum() * (i + 1) for i in range(2))

    try:
        expected = [(f(X + e) - f(X - e)) / 2e-6 for e in 1e-6 * np.eye(6)]
    except (ValueError, TypeError):  # pandas' own
        return
    try:
        found = grad(f)(X)
    except effgrad.EffgradError:
        assert kind == "DataFrame" and name == "list"
        return
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


LABELS = pd.Index([5, 4, 3, 2, 1, 0])
BESIDE_LABELS = {
    "a Series and a number": lambda x, s, d: s(x) - x[0], "a number and a Series": lambda x, s, d: x[0] / s(x),
    "centred": lambda x, s, d: s(x) - s(x).mean(), "a power": lambda x, s, d: x[1] ** s(x),
    "an array": lambda x, s, d: x * s(x[::-1]) + s(X) * x, "plain, by a number": lambda x, s, d: x[0] * s(X),
    "a method": lambda x, s, d: s(x).add(x[0]),
    "a function": lambda x, s, d: np.multiply(x[0], s(X)), "the larger": lambda x, s, d: np.maximum(s(x), x[1]),
    "a frame": lambda x, s, d: d(x, X) * x[0], "a plain frame": lambda x, s, d: x[0] - d(X, X),
    "a frame and a row": lambda x, s, d: d(X, X) * x[:2],
}  # fmt: skip


@pytest.mark.parametrize("name", BESIDE_LABELS)
def test_tables_beside_traced_values(name, run):
    """A traced value on the left of a table made an array of it, whose labels no later operator could match."""
    def table(x):
        return BESIDE_LABELS[name](x, lambda x: pd.Series(x, LABELS, name="a"), lambda *columns: pd.DataFrame(
            dict(zip("ab", columns, strict=True)), LABELS
        ))  # fmt: skip

    def f(x):
        found = table(x)
        assert type(found) is type(expected) and found.index.equals(LABELS)
        columns = [found] if found.ndim == 1 else [found[name] for name in found.columns]
        return sum(np.sum(np.sin(column.to_numpy()) * np.arange(6.0)) for column in columns)

    expected = table(X)
    step = [(f(X + e) - f(X - e)) / 2e-6 for e in 1e-6 * np.eye(6)]
    np.testing.assert_allclose(run(grad)(f)(X), step, rtol=1e-6, atol=1e-7)


def test_a_comparison_of_a_table_with_a_traced_number():
    def f(x):
        series = pd.Series(x)
        return np.sum(series.where(series > x[1], x[0] * series).to_numpy() ** 2)

    step = [(f(X + e) - f(X - e)) / 2e-6 for e in 1e-6 * np.eye(6)]
    np.testing.assert_allclose(grad(f)(X), step, rtol=1e-6)


def test_labels_are_matched():
    """The product of a traced number and one table was multiplied with another table place by place."""
    other = pd.Series(X, LABELS)
    for f in (lambda x: (pd.Series(X) - x[0]) * other, lambda x: (x * pd.Series(X)) * other):
        step = [np.sum(f(X + e) - f(X - e)) / 2e-6 for e in 1e-6 * np.eye(6)]
        np.testing.assert_allclose(grad(lambda x, f=f: np.sum(f(x)))(X), step, rtol=1e-6, atol=1e-9)
    a, b = xr.DataArray(X, dims="t", coords={"t": np.arange(6)}), xr.DataArray(X, dims="t", coords={"t": LABELS})
    expected = np.sum(X * X[::-1])
    np.testing.assert_allclose(grad(lambda x: np.sum(((x[0] * a) * b).data))(X)[0], expected, rtol=1e-14)
    np.testing.assert_allclose(grad(lambda x: np.sum((x[0] * xr.Dataset({"a": a}))["a"].data))(X)[0], np.sum(X))


SERIES = {
    "cumsum": lambda s: s.cumsum(), "cumprod": lambda s: s.cumprod(), "cummax": lambda s: s.cummax(),
    "diff": lambda s: s.diff().fillna(0.0), "shift": lambda s: s.shift(1).fillna(0.0), "abs": lambda s: s.abs(),
    "pct_change": lambda s: s.pct_change().fillna(0.0), "where": lambda s: s.where(s > 3.05, 0.0),
    "mask": lambda s: s.mask(s > 3.05, 0.0), "clip": lambda s: s.clip(2.05, 6.3), "std": lambda s: s.std(),
    "resample sum": lambda s: s.resample("2D").sum(), "resample mean": lambda s: s.resample("2D").mean(),
    "expanding": lambda s: s.expanding().mean(), "groupby agg": lambda s: s.groupby(HALVES).agg("sum"),
    "mean": lambda s: s.mean(), "var": lambda s: s.var(), "max": lambda s: s.max(), "median": lambda s: s.median(),
    "quantile": lambda s: s.quantile(0.3), "prod": lambda s: s.prod(), "dot": lambda s: s.dot(s + 1),
    "sem": lambda s: s.sem(), "corr": lambda s: s.corr(np.sin(s)), "autocorr": lambda s: s.autocorr(1),
    "iloc": lambda s: s.iloc[2:5], "bool": lambda s: s[s > 3.05], "sort": lambda s: s.sort_values(),
    "apply": lambda s: s.apply(np.sin), "concat": lambda s: pd.concat([s, s]), "add": lambda s: s.add(s * 2),
    "frame": lambda s: pd.DataFrame({"a": s, "b": s * 2}).sum(axis=1), "mul": lambda s: s.mul(2.0),
    "ranks": lambda s: s * s.rank(), "isin": lambda s: s[~s.isin([9.0])], "copies": lambda s: s[~s.duplicated()],
}  # fmt: skip
ARRAYS = {
    "cumsum": lambda d: d.cumsum("t"), "diff": lambda d: d.diff("t"), "shift": lambda d: d.shift(t=1).fillna(0.0),
    "where": lambda d: d.where(d > 3.05, 0.0), "rolling": lambda d: d.rolling(t=3).mean().dropna("t"),
    "coarsen": lambda d: d.coarsen(t=2).mean(), "sel": lambda d: d.sel(t=3), "std": lambda d: d.std(),
    "integrate": lambda d: d.integrate("t"), "differentiate": lambda d: d.differentiate("t"),
    "weighted": lambda d: d.weighted(d * 0 + 2.0).mean(), "quantile": lambda d: d.quantile(0.3),
    "pad": lambda d: d.pad(t=1, constant_values=0.0), "roll": lambda d: d.roll(t=1),
    "polyfit": lambda d: d.polyfit("t", 1).polyfit_coefficients, "sortby": lambda d: d.sortby("t", ascending=False),
}  # fmt: skip
HALVES = np.array([0, 1, 0, 1, 2, 2, 0, 1])
LEVELS = np.array([1.0, 3.0, 2.0, 5.0, 4.0, 6.0, 8.0, 7.0]) + 0.01 * np.arange(8)


@pytest.mark.parametrize(("kind", "name"), [("series", name) for name in SERIES] + [("array", name) for name in ARRAYS])
def test_a_method_is_right(kind, name):
    """None of them is silently constant."""

    def f(x):
        if kind == "series":
            result = SERIES[name](pd.Series(x, index=pd.date_range("2024-01-01", periods=8)))
            result = result.to_numpy() if isinstance(result, pd.Series) else result
        else:
            xarray = pytest.importorskip("xarray")
            result = ARRAYS[name](xarray.DataArray(x, dims="t", coords={"t": np.arange(8)})).data
        return np.sum(result * np.cos(np.arange(np.size(result))).reshape(np.shape(result)))

    step = 1e-6 * np.eye(8)
    expected = [(f(LEVELS + e) - f(LEVELS - e)) / 2e-6 for e in step]
    np.testing.assert_allclose(grad(f)(LEVELS), expected, rtol=1e-6, atol=1e-7)


def test_quantities_of_pint_keep_their_units():
    pint = pytest.importorskip("pint")
    registry = pint.UnitRegistry()

    def fall(p):
        height, gravity = registry.Quantity(p[0], "m"), registry.Quantity(p[1], "cm/s^2")
        return ((2 * height / gravity) ** 0.5).to("s").magnitude

    p = np.array([5.0, 981.0])
    t = np.sqrt(2 * 5.0 / 9.81)
    np.testing.assert_allclose(grad(fall)(p), [t / 10.0, -t / (2 * 981.0)], rtol=1e-12)
    area = grad(lambda x: (registry.Quantity(x, "m") ** 2).sum().to("cm^2").magnitude)(X)
    np.testing.assert_allclose(area, 2e4 * X, rtol=1e-12)
    with pytest.raises(pint.DimensionalityError):
        grad(lambda x: (registry.Quantity(x, "m") + registry.Quantity(1.0, "s")).sum().magnitude)(X)


def test_arrays_times_units_of_pint_are_quantities():
    pint = pytest.importorskip("pint")
    units = pint.UnitRegistry()

    def work(x):
        path, force = x * units.m, units.N * x[::-1]
        return np.dot(path, force).to("J").magnitude + (np.sum(path) / units.cm).to("").magnitude ** 2

    np.testing.assert_allclose(grad(work)(X), 2 * X[::-1] + 2e4 * np.sum(X), rtol=1e-12)
    np.testing.assert_allclose(effgrad.jvp(grad(work), (X,), (X,))[1], 2 * X[::-1] + 2e4 * np.sum(X), rtol=1e-12)
    np.testing.assert_allclose(grad(lambda x: np.mean(np.sqrt(x * units.m**2)).to("cm").magnitude)(X),
                               100 / 12 / np.sqrt(X), rtol=1e-12)  # fmt: skip


def test_quantities_of_astropy():
    """Its class converts units in `__array_ufunc__` and `__array_function__`, which run as the program's own code."""
    units = pytest.importorskip("astropy.units")
    constants = pytest.importorskip("astropy.constants")
    np.testing.assert_allclose(grad(lambda x: np.sum((3 * units.m).to_value(units.cm) * x))(X), np.full(6, 300.0))
    np.testing.assert_allclose(grad(lambda x: np.sum((x * units.m) ** 2).value)(X), 2 * X, rtol=1e-12)
    np.testing.assert_allclose(grad(lambda x: np.sum((x * units.m).to_value(units.cm)))(X), np.full(6, 100.0))
    np.testing.assert_allclose(grad(lambda x: np.sum(units.Quantity(x, "m").to("km")).value)(X), np.full(6, 1e-3))
    third = grad(lambda x: (x * units.m)[2].value + np.sum(x * units.m).value)(X)
    np.testing.assert_allclose(third, [1, 1, 2, 1, 1, 1])
    speed = grad(lambda x: np.sum((x * units.m) / (x[::-1] * units.s)).value)(X)
    np.testing.assert_allclose(speed, 1 / X[::-1] - X[::-1] / X**2, rtol=1e-12)
    degree = np.pi / 180
    for f, slope in (
        (lambda x: np.sum(x * units.m + 3 * units.cm).to_value("cm"), np.full(6, 100.0)),
        (lambda x: np.sum(np.sin(x * units.deg)).value, degree * np.cos(degree * X)),
        (lambda x: np.sum(np.concatenate([x * units.m, x * units.km])).value, np.full(6, 1001.0)),
        (lambda x: np.sum(constants.c * (x * units.s) ** 2).to_value("km s"), 2 * 299792.458 * X),
        (lambda x: np.sum(units.Quantity([x[0] * units.km, x[1] * units.m])).to_value("m"), [1e3, 1, 0, 0, 0, 0]),
        (lambda x: np.sum(np.linspace(x[0] * units.m, x[1] * units.km, 3)).to_value("m"), [1.5, 1500, 0, 0, 0, 0]),
        (lambda x: np.trapezoid(x * units.N, np.arange(6.0) * units.cm).to_value("J"), [0.005, *[0.01] * 4, 0.005]),
    ):
        np.testing.assert_allclose(grad(f)(X), slope, rtol=1e-12)
        np.testing.assert_allclose(effgrad.compile(grad(f))(X), slope, rtol=1e-12)
    with pytest.raises(units.UnitConversionError):
        grad(lambda x: np.sum(x * units.m + 3 * units.s).value)(X)


CORNER = np.array([0.55, 1.53, 1.2, 0.71, 2.6, 0.3])
TABLES = {"Series": pd.Series, "DataFrame": lambda x: pd.DataFrame({"a": x, "b": 2 * x})}
ARGUMENTS = ((), (2,), ("a",), (np.arange(1.0, 7.0),), ([0, 1],), (0, 1), (np.sqrt,), (["a"],))
# They draw, print or make what holds no numbers.
NO_RESULT = ("boxplot", "hist", "info", "plot", "style", "sample")


def numbers(result):
    """The sum of the numbers in a result; None where there are none but NaN."""
    if isinstance(result, pd.Series | pd.DataFrame | pd.Index):
        result = result.to_numpy()
    array = np.asarray(result)
    if array.dtype.kind not in "fiub" or np.isnan(array).all():
        return None
    return np.sum(np.where(np.isnan(array), 0.0, array) * 1.0)


def public_methods():
    for kind in TABLES:
        for name in dir(getattr(pd, kind)):
            method = callable(getattr(getattr(pd, kind), name))
            if method and not name.startswith(("_", "to_", "from_")) and name not in NO_RESULT:
                yield kind, name


@pytest.mark.sweep
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind, name", public_methods())
def test_every_method_of_a_table_has_its_derivative_or_is_refused(kind, name):
    """`Series.mode` and others broke off inside pandas with "No matching signature found"."""
    for args in (*ARGUMENTS, (TABLES[kind](np.arange(1.0, 7.0)),)):
        def f(x, args=args):
            return numbers(getattr(TABLES[kind](x), name)(*args))

        try:
            if f(CORNER) is None:
                continue
        except Exception:  # pandas' own, of whatever class: the method does not take these arguments
            continue
        try:
            slope = grad(f)(CORNER)
        except effgrad.EffgradError:
            continue
        step = 1e-6 * np.eye(6)
        differences = [(f(CORNER + e) - f(CORNER - e)) / 2e-6 for e in step]
        if np.max(np.abs(differences)) < 1e4:  # a truth value at its change has none
            np.testing.assert_allclose(slope, differences, rtol=1e-5, atol=1e-5, err_msg=f"{name}{args}")
