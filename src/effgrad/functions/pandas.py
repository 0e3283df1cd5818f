"""Rules for `pandas`: sums and means over windows of a Series of traced values, its gaps and differences.

A Series stores a traced array unchanged, so its arithmetic needs no rule. Windows need one, because pandas sums them in
compiled code. Their rules ask pandas which rows a window consists of, and compute the sums as a product with a sparse
matrix. Groups have their rules in `effgrad.functions.pandas_groups`.
"""


import itertools

import numpy as np
import pandas as pd
from pandas._libs import lib, ops_dispatch
from pandas.core import nanops
from pandas.core.apply import Apply
from pandas.core.array_algos import take
from pandas.core.base import IndexOpsMixin
from pandas.core.dtypes import cast
from pandas.core.generic import NDFrame
from pandas.core.groupby.groupby import GroupBy
from pandas.core.groupby.ops import BaseGrouper, WrappedCythonOp
from pandas.core.internals.blocks import Block
from pandas.core.window.ewm import ExponentialMovingWindow
from pandas.core.window.expanding import Expanding
from pandas.core.window.rolling import Rolling, RollingAndExpandingMixin

from effgrad.arrays import reach
from effgrad.arrays.value import Tracer, example, plain
from effgrad.errors import EffgradError, NoRule
from effgrad.functions import pandas_groups
from effgrad.functions.scipy.signal import lfilter
from effgrad.functions.scipy.sparse_elements import product
from effgrad.functions.scipy.tables import Calling, Method
from effgrad.primitives.given import with_value
from effgrad.vocabulary import Value


def _holds(self: Value) -> bool:
    return isinstance(getattr(self.obj, "_values", None), Tracer)


def _holds_or_decays(self: Value) -> bool:
    """Whether the values of exponential weights are traced, or how fast these decay."""
    return _holds(self) or isinstance(self._com, Tracer)


def _traced(self: Value) -> bool:
    return isinstance(self._values, Tracer)


def _series(obj: Value) -> Value:
    """Return the traced values of a Series; refuse a DataFrame."""
    if not isinstance(obj, pd.Series):
        raise NoRule("pandas' windows have a derivative rule for one column: take it from the frame first")
    return obj._values


def _summed(values: Value, rows: Value, columns: Value, count: int) -> tuple[Value, Value]:
    """Return the sum of each of `count` windows, and how many values each sum has; pandas leaves out NaNs.

    `rows` and `columns` are parallel: the value number `columns[i]` is in the window number `rows[i]`.
    """
    known = ~np.isnan(plain(values))
    size = (count, len(known))
    weights = np.ones(len(rows))
    sums = product(np.where(known, values, 0.0), weights, rows=rows, columns=columns, size=size)
    return sums, product(known * 1.0, weights, rows=rows, columns=columns, size=size)


def _result(sums: Value, counts: Value, least: int, mean: bool) -> Value:
    values = sums / np.maximum(counts, 1) if mean else sums
    return np.where(counts >= max(least, int(mean)), values, np.nan)


def _window(mean: bool) -> Value:
    def rule(self: Value, numeric_only: bool = False, *_: Value, **options: Value) -> Value:
        values, rows, columns, index, least = _windows(self, options)
        result = _result(*_summed(values, rows, columns, len(index)), least, mean)
        return pd.Series(result, index=index, name=self.obj.name)

    return Method(rule, _holds)


def _windows(self: Value, options: Value) -> tuple[Value, Value, Value, Value, int]:
    """Return the values, which of them are in which window, the results' index, and the least count of values."""
    if self.step is not None or getattr(self, "win_type", None) is not None or options.get("engine") is not None:
        raise NoRule("pandas' rolling sums have a derivative rule without step, win_type and engine")
    values, indexer, index = _series(self.obj), self._get_window_indexer(), self.obj.index
    least = indexer.window_size if self.min_periods is None else self.min_periods
    if _is_grouped(self):  # windows of groups: their rows are ordered by group
        values = values[np.concatenate([np.zeros(0, int), *self._grouper.indices.values()])]
        index = _index_of_windows(self)
    count = len(index)
    start, end = indexer.get_window_bounds(count, least, self.center, self.closed, self.step)
    lengths = np.maximum(end - start, 0)
    rows = np.repeat(np.arange(count), lengths)
    columns = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths - start, lengths)
    return values, rows, columns, index, least


def _variance(root: bool) -> Value:
    """The rule of `var` or, with `root`, of `std` of windows: the mean of squared deviations from the window's mean."""

    def rule(self: Value, ddof: int = 1, numeric_only: bool = False, *_: Value, **options: Value) -> Value:
        values, rows, columns, index, least = _windows(self, options)
        sums, counts = _summed(values, rows, columns, len(index))
        deviations = values[columns] - (sums / np.maximum(counts, 1))[rows]
        squares, _ = _summed(deviations**2, rows, np.arange(len(rows)), len(index))
        enough = counts >= np.maximum(least, ddof + 1)
        found = np.where(enough, squares, 1.0) / np.maximum(counts - ddof, 1)
        result = np.where(enough, np.sqrt(found) if root else found, np.nan)
        return pd.Series(result, index=index, name=self.obj.name)

    return Method(rule, _holds)


def _extreme(name: str) -> Value:
    """The rule of `min` or `max` of windows."""
    choose, worst = (np.min, np.inf) if name == "min" else (np.max, -np.inf)

    def rule(self: Value, numeric_only: bool = False, *_: Value, **options: Value) -> Value:
        values, rows, columns, index, least = _windows(self, options)
        known = ~np.isnan(plain(values))
        chosen = np.where(known, values, worst)
        places = np.searchsorted(rows, np.arange(len(index) + 1))
        windows = [columns[start:end] for start, end in itertools.pairwise(places)]
        found = np.stack([choose(chosen[window]) if len(window) else chosen[0] * 0.0 for window in windows])
        counts = np.stack([np.sum(known[window]) for window in windows])
        return pd.Series(np.where(counts >= max(least, 1), found, np.nan), index=index, name=self.obj.name)

    return Method(rule, _holds)


def _index_of_windows(windows: Value) -> Value:
    """The index of the results of windows of groups, as pandas makes it for a Series of zeros."""
    column = pd.Series(np.zeros(len(windows.obj)), index=windows.obj.index, name=windows.obj.name)
    options = {name: getattr(windows, name) for name in windows._attributes}
    result = type(windows)(column, **options, _as_index=windows._as_index).sum()
    if not isinstance(result, pd.Series):
        raise NoRule("pandas' windows of groups have a derivative rule with as_index=True")
    return result.index


def _exponential_mean(self: Value, numeric_only: bool = False, *_: Value, **options: Value) -> Value:
    """The rule of `ewm(...).mean()`: a recursion over the values, divided by the same one over their weights."""
    if self.times is not None or self.method != "single" or options.get("engine") is not None or _is_grouped(self):
        raise NoRule("pandas' exponential means have a derivative rule without groups, times, method and engine")
    values, com = _series(self.obj), self._com
    known = ~np.isnan(plain(values))
    first = int(np.argmax(known))
    if (not self.adjust or self.ignore_na) and not np.all(known[first:]):
        raise NoRule("pandas' exponential means have a derivative rule for values without gaps, or with the defaults")
    keep = com / (1 + com)
    weights = np.where(np.arange(len(known)) == first, 1.0, 1.0 if self.adjust else 1 - keep) * known
    sums, total = (lfilter([1.0], np.stack([1.0, -keep]), x) for x in (weights * np.where(known, values, 0.0), weights))
    derived = np.where(np.cumsum(known) >= max(self.min_periods, 1), sums / np.where(total > 0, total, 1.0), np.nan)
    column = pd.Series(example(values), index=self.obj.index, name=self.obj.name)
    options = {name: getattr(self, name) for name in ("adjust", "ignore_na", "min_periods")}
    mean = column.ewm(com=example(com), **options).mean()
    return pd.Series(with_value(derived, mean.to_numpy()), index=mean.index, name=mean.name)


def _is_grouped(self: Value) -> bool:
    return hasattr(self, "_grouper")


def _taken(array: Value, indexer: Value, axis: int, fill_value: Value, allow_fill: bool) -> Value:
    """Return the elements at the places `indexer`; `fill_value` stands where a place is -1, if that is allowed."""
    places = np.arange(array.shape[axis]) if indexer is None else np.asarray(indexer)
    missing = places == -1
    if not allow_fill or not missing.any():
        return np.take(array, places, axis)
    found = np.take(array, np.where(missing, 0, places), axis)
    shape = [1] * found.ndim
    shape[axis] = -1
    return np.where(missing.reshape(shape), np.nan if pd.isna(fill_value) else fill_value, found)


def _padded(self: Value, *, method: str, inplace: bool = False, limit: Value = None, limit_area: Value = None) -> Value:
    """Fill each gap of a column with the last value before it, or the first one behind it, at most `limit` steps."""
    if inplace or limit_area is not None:
        raise NoRule("pandas' ffill and bfill have a derivative rule without inplace and limit_area")
    values = self.values[..., ::-1] if method.startswith("b") else self.values
    known = ~np.isnan(plain(values))
    places = np.arange(values.shape[-1])
    last = np.maximum.accumulate(np.where(known, places, -1), -1)
    near = (last >= 0) & (places - last <= (len(places) if limit is None else limit))
    found = np.where(near, np.take_along_axis(values, np.maximum(last, 0), -1), np.nan)
    return [self.make_block_same_class(found[..., ::-1] if method.startswith("b") else found)]


def _dropna(self: Value, *, axis: Value = 0, inplace: bool = False, how: Value = None, **options: Value) -> Value:
    if inplace or options.get("ignore_index"):
        raise NoRule("pandas' dropna has a derivative rule without inplace and ignore_index")
    known = np.flatnonzero(~np.isnan(plain(self._values)))
    return pd.Series(self._values[known], index=self.index[known], name=self.name)


def _diff(self: Value, periods: int = 1) -> Value:
    if int(periods) != periods:
        raise ValueError("periods must be an integer")  # pandas' message
    before = np.arange(len(self)) - int(periods)
    inside = (before >= 0) & (before < len(self))
    values = np.where(inside, self._values - self._values[np.where(inside, before, 0)], np.nan)
    return pd.Series(values, index=self.index, name=self.name)


def _mapped(self: Value, mapper: Value, na_action: Value = None, **_: Value) -> Value:
    """Apply a function to each number; `Series.map` and `Series.apply` call this method."""
    if not callable(mapper):
        raise NoRule("pandas' map has a derivative rule for functions: index a table of numbers by whole numbers")
    missing = np.isnan(plain(self._values)) if na_action == "ignore" else np.zeros(len(self), bool)
    found = [x if skipped else mapper(x) for x, skipped in zip(self._values, missing, strict=True)]
    if any(np.ndim(y) for y in found):
        raise NoRule("pandas' map and apply have a derivative rule for functions of a number that return a number")
    return np.stack(found) if found else np.zeros(0)


def _transformed(self: Value, func: Value) -> Value:
    """Transform by a function of each number or, if it fails for numbers, by the function of the whole, as pandas does.

    An error of effgrad is raised and does not count as a failure. The function is tried on plain numbers first: unlike
    traced numbers, they lack the methods of arrays, so a function of arrays fails on them.
    """
    if isinstance(func, str):
        return self._apply_str(self.obj, func, *self.args, **self.kwargs)
    each = isinstance(self.obj, pd.Series) and not isinstance(func, np.ufunc)
    values = plain(self.obj._values) if each else ()
    if isinstance(values, Tracer):
        raise NoRule("pandas' transform depends on values that a compiled program or a batch does not know yet")
    try:
        for x in np.asarray(values).tolist():
            func(x, *self.args, **self.kwargs)
        return self.obj.apply(func, args=self.args, **self.kwargs)
    except EffgradError:
        raise
    except Exception:  # as pandas does
        return func(self.obj, *self.args, **self.kwargs)


_transformed.runs_python = True  # type: ignore[attr-defined]


def _by_operator(self: Value, ufunc: np.ufunc, method: str, *inputs: Value, **options: Value) -> Value:
    """Return a ufunc of tables by their operator, as pandas' compiled function of this name does."""
    name = ops_dispatch.UFUNC_ALIASES.get(ufunc.__name__, ufunc.__name__)
    if options or method != "__call__" or name not in ops_dispatch.DISPATCHED_UFUNCS:
        return NotImplemented
    if inputs[0] is self:
        operator = getattr(self, f"__{name}__", None)
        return NotImplemented if operator is None else operator(*inputs[1:])
    operator = getattr(self, ops_dispatch.REVERSED_NAMES.get(name, f"__r{name}__"), None)
    return NotImplemented if operator is None else operator(inputs[0])


_by_operator.runs_python = True  # type: ignore[attr-defined]


def _of_plain(name: str) -> Method:
    """Return the rule of a method whose result is piecewise constant (ranks, counts, booleans), by the plain values."""

    def plainly(table: Value) -> Value:
        if isinstance(table, pd.DataFrame):
            return pd.DataFrame({place: plainly(table[place]) for place in table.columns}, index=table.index)
        if not isinstance(table, pd.Series):
            return table
        values = plain(table._values)
        if isinstance(values, Tracer):
            raise NoRule(f"pandas' {name} depends on values that a compiled program or a batch does not know yet")
        return pd.Series(values, index=table.index, name=table.name)

    def rule(self: Value, *args: Value, **options: Value) -> Value:
        return getattr(plainly(self), name)(*map(plainly, args), **options)

    return Method(rule, pandas_groups.is_traced)


def _of_list(values: Value) -> Value:
    """Return the items of a list that a Series or a column is made of, as an array of numbers if all are numbers."""
    if all(isinstance(value, Tracer | float | int | np.number) for value in values):
        return reach.np.array(values, float)
    objects = np.empty(len(values), object)
    for place, value in enumerate(values):
        objects[place] = value
    return objects


def _written(dtype: Value, element: Value) -> Value:
    """Return an element that is written to a column of a dtype; raise pandas' error if it does not fit."""
    cast.np_can_hold_element(dtype, example(element))
    return element


_plainly_a_float = lib.is_float
RULES: list[tuple[Value, str, Value]] = [
    (cast, "construct_1d_object_array_from_listlike", _of_list), (cast, "np_can_hold_element", _written),
    *((nanops, f"nan{how}", pandas_groups.of_whole(how)) for how in ("skew", "kurt")),
    (lib, "is_float", lambda value: _plainly_a_float(example(value))),
    (lib, "maybe_convert_objects", lambda objects, *_, **__: objects),
    (Block, "pad_or_backfill", Method(_padded, lambda self: isinstance(self.values, Tracer))),
    (take, "_take_nd_ndarray", _taken), (ops_dispatch, "maybe_dispatch_ufunc_to_dunder_op", Calling(_by_operator)),
    *((owner, name, _window(name == "mean"))
      for owner in (RollingAndExpandingMixin, Rolling, Expanding) for name in ("sum", "mean")),
    *((owner, name, _variance(name == "std"))
      for owner in (RollingAndExpandingMixin, Rolling, Expanding) for name in ("var", "std")),
    *((owner, name, _extreme(name))
      for owner in (RollingAndExpandingMixin, Rolling, Expanding) for name in ("min", "max")),
    (ExponentialMovingWindow, "mean", Method(_exponential_mean, _holds_or_decays)),
    (WrappedCythonOp, "_cython_op_ndim_compat", pandas_groups.operate),
    (BaseGrouper, "_get_splitter", Calling(pandas_groups.split)),
    (GroupBy, "quantile", Method(pandas_groups.refuse_quantile, lambda self: pandas_groups.is_traced(self.obj))),
    (BaseGrouper, "agg_series", Calling(pandas_groups.aggregate)),
    (IndexOpsMixin, "_map_values", Method(_mapped, _traced)),
    (Apply, "transform_str_or_callable", Method(_transformed, lambda self: pandas_groups.is_traced(self.obj))),
    (pd.Series, "dropna", Method(_dropna, _traced)), (pd.Series, "diff", Method(_diff, _traced)),
    *((owner, name, _of_plain(name))
      for owner, name in (
          (NDFrame, "rank"), (NDFrame, "equals"), (pd.Series, "duplicated"), (pd.DataFrame, "duplicated"),
          (pd.Series, "isin"), (pd.DataFrame, "isin"), (IndexOpsMixin, "nunique"))),
]  # fmt: skip
