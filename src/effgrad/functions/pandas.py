"""Rules for `pandas`: the compiled functions that its Python code calls for columns of traced values.

A Series stores a traced array unchanged, so its arithmetic needs no rule, and pandas' Python code is read. Groups have
their rules in `effgrad.functions.pandas_groups`, windows in `effgrad.functions.pandas_windows`.
"""

import inspect
import itertools
import operator

import numpy as np
import pandas as pd
from pandas._libs import algos, lib, ops_dispatch
from pandas.core import algorithms, nanops
from pandas.core.apply import Apply
from pandas.core.array_algos import take
from pandas.core.base import IndexOpsMixin
from pandas.core.dtypes import cast
from pandas.core.generic import NDFrame
from pandas.core.groupby.ops import BaseGrouper, WrappedCythonOp
from pandas.core.internals.blocks import Block
from pandas.core.missing import interpolate_2d_inplace

from effgrad.arrays import reach
from effgrad.arrays.labelled import holds_traced_numbers, to_array
from effgrad.arrays.value import LISTS, Tracer, depends, example, known, plain, stack_nested, traced_inside
from effgrad.arrays.written import read
from effgrad.errors import EffgradError, NoRule
from effgrad.functions import pandas_groups, pandas_windows
from effgrad.functions.scipy.tables import Calling, Method, Writing
from effgrad.primitives.given import as_computed
from effgrad.program.rewritten import SOURCES
from effgrad.vocabulary import Value

# From here on no column sees what is done in place to another one.
COPIES_ON_WRITE = int(pd.__version__.partition(".")[0]) >= 3


def _traced(self: Value) -> bool:
    return isinstance(read(self._values), Tracer)


def _fills(self: Value) -> bool:
    """Whether a block of columns holds traced values, whose gaps are to be filled."""
    return isinstance(read(self.values), Tracer)


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
    if inplace and not COPIES_ON_WRITE or limit_area is not None:
        raise NoRule("pandas' ffill and bfill have a derivative rule without limit_area, before pandas 3 not in place")
    values = read(self.values)
    values = values[..., ::-1] if method.startswith("b") else values
    known = ~np.isnan(plain(values))
    places = np.arange(values.shape[-1])
    last = np.maximum.accumulate(np.where(known, places, -1), -1)
    near = (last >= 0) & (places - last <= (len(places) if limit is None else limit))
    found = np.where(near, np.take_along_axis(values, np.maximum(last, 0), -1), np.nan)
    return [self.make_block_same_class(found[..., ::-1] if method.startswith("b") else found)]


def _dropna(self: Value, *, axis: Value = 0, inplace: bool = False, how: Value = None, **options: Value) -> Value:
    values = read(self._values)
    known = np.flatnonzero(~np.isnan(plain(values)))
    index = None if options.get("ignore_index") else self.index[known]
    result = pd.Series(values[known], index=index, name=self.name)
    return self._update_inplace(result) if inplace else result


def _diff(self: Value, periods: int = 1) -> Value:
    if int(periods) != periods:
        raise ValueError("periods must be an integer")  # pandas' message
    before = np.arange(len(self)) - int(periods)
    inside = (before >= 0) & (before < len(self))
    now = read(self._values)
    values = np.where(inside, now - now[np.where(inside, before, 0)], np.nan)
    return pd.Series(values, index=self.index, name=self.name)


def _mapped(self: Value, mapper: Value, na_action: Value = None, **_: Value) -> Value:
    """Apply a function to each number; `Series.map` and `Series.apply` call this method."""
    if not callable(mapper):
        raise NoRule("pandas' map has a derivative rule for functions: index a table of numbers by whole numbers")
    values = read(self._values)
    missing = np.isnan(plain(values)) if na_action == "ignore" else np.zeros(len(self), bool)
    found = [x if skipped else mapper(x) for x, skipped in zip(values, missing, strict=True)]
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
    values = plain(read(self.obj._values)) if each else ()
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


def _in_place(self: Value, other: Value, op: Value) -> Value:
    """Perform an augmented assignment by the operator, since a table's method leaves traced operands to their own."""
    result = getattr(operator, op.__name__)(self, other)
    self._update_inplace(result.reindex_like(self))
    return self


_in_place.runs_python = True  # type: ignore[attr-defined]


def _of_plain(name: str) -> Method:
    """Return the rule of a method whose result is constant almost everywhere, by the plain values."""

    def rule(self: Value, *args: Value, **options: Value) -> Value:
        return getattr(_plainly(self, name), name)(*(_plainly(arg, name) for arg in args), **options)

    return Method(rule, holds_traced_numbers)


def _plainly(table: Value, name: str) -> Value:
    """Return a table or an array of the plain values, for the function of a name."""
    if isinstance(table, pd.DataFrame):
        return pd.DataFrame({place: _plainly(table[place], name) for place in table.columns}, index=table.index)
    if not isinstance(table, pd.Series | np.ndarray | list):
        return table
    values = plain(_values_of(table))
    if isinstance(values, Tracer):
        raise NoRule(f"pandas' {name} depends on values that a compiled program or a batch does not know yet")
    return pd.Series(values, index=table.index, name=table.name) if isinstance(table, pd.Series) else values


def _is_traced(value: Value) -> bool:
    return depends(_values_of(value))


def _values_of(value: Value) -> Value:
    """Return the numbers of a column, an array or a list, which may be traced."""
    value = read(value._values if isinstance(value, pd.Series) else value)
    return stack_nested(value) if type(value) in LISTS and traced_inside(value) else value


def _binned(name: str) -> Calling:
    """Return the rule of a function that finds the bins of numbers, which are constant. Computed edges are not."""
    original = getattr(pd, name)
    signature = inspect.signature(original)

    def rule(x: Value, bins: Value, *args: Value, **options: Value) -> Value:
        given = signature.bind(x, bins, *args, **options).arguments
        moving = _is_traced(bins) or _is_traced(x) and (name == "qcut" or not np.iterable(bins))
        if moving and (given.get("retbins") or given.get("labels") is None):
            raise NoRule(
                f"pandas.{name} has a derivative rule for bins whose edges are computed from traced numbers with "
                "labels=False, or with labels, and without retbins: compute the edges with functions of NumPy"
            )
        if not moving and _is_traced(x):
            edges = [bins.left, bins.right] if isinstance(bins, pd.IntervalIndex) else bins
            values = _in_the_same_bins(plain(_values_of(x)), np.unique(np.asarray(edges)))
            x = pd.Series(values, index=x.index, name=x.name) if isinstance(x, pd.Series) else values
        return original(_plainly(x, name), _plainly(bins, name), *args, **options)

    return Calling(rule)


def _in_the_same_bins(values: Value, edges: Value) -> Value:
    """Return plain numbers that are between the same edges as values. Staged values get guards that they are."""
    low, high = (known(np.searchsorted(edges, values, side)) for side in ("left", "right"))
    ends = np.concatenate([edges[:1] - 1.0, edges, edges[-1:] + 1.0])
    found = np.where(low < high, ends[low + 1], ends[low] / 2 + ends[low + 1] / 2)
    return np.where(known(np.isnan(values)), np.nan, found)


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


def _as_floats(values: Value) -> Value:
    array = to_array(values)
    return array.astype(float, copy=False) if isinstance(array, Tracer) else _PLAIN_FLOATS(array)


_PLAIN_FLOATS = algos.ensure_float64


def _counted(mask: Value, *args: Value, **options: Value) -> Value:
    return _PLAIN_COUNTS(known(mask), *args, **options)


_PLAIN_COUNTS = lib.count_level_2d


def _interpolated(self: Value, *, method: str, index: Value, inplace: bool = False, **options: Value) -> Value:
    """Fill the gaps of a block's rows, which are the columns of a table, by pandas' Python code."""
    values = self.values if inplace else read(self.values).copy()
    interpolate_2d_inplace(values, index=index, axis=self.ndim - 1, method=method, **options)
    return [self.make_block_same_class(values)]


def _factorized(values: Value, use_na_sentinel: bool = True, *args: Value, **options: Value) -> tuple[Value, Value]:
    """Return the number of each value among the different ones, and these in their order."""
    codes, _ = _PLAIN_CODES(pandas_groups.ranks(values), use_na_sentinel, *args, **options)
    numbers, places = np.unique(codes, return_index=True)
    return codes, values[places[numbers >= 0]]


_PLAIN_CODES = algorithms.factorize_array


def _different(values: Value, mask: Value = None) -> Value:
    return _factorized(to_array(values), False)[1]


def _most_frequent(values: Value, dropna: bool = True, mask: Value = None) -> tuple[Value, Value]:
    given = pandas_groups.ranks(values)
    found, result_mask = _PLAIN_MODE(given, dropna, mask)
    places = [np.flatnonzero(np.isnan(given) if np.isnan(rank) else given == rank)[0] for rank in found]
    return values[np.array(places, int)], result_mask


_PLAIN_MODE = algorithms.mode


def _chosen(name: str) -> Value:
    """Return the rule of `nlargest` or `nsmallest`, by the places of the items among numbers of the same order."""

    def rule(self: Value, n: int = 5, *columns: Value, **options: Value) -> Value:
        columns_of = {None: self} if self.ndim == 1 else {column: self[column] for column in self.columns}
        given = {column: pandas_groups.ranks(read(values._values)) for column, values in columns_of.items()}
        ordered = pd.Series(given[None]) if self.ndim == 1 else pd.DataFrame(given)
        return self.iloc[getattr(ordered, name)(n, *columns, **options).index.to_numpy()]

    rule.runs_python = True  # type: ignore[attr-defined]
    return Method(rule, holds_traced_numbers)


def _by_order(plainly: Value) -> Value:
    """Return the rule of a compiled function whose result depends on the order of the values alone."""

    def rule(values: Value, *args: Value, **options: Value) -> Value:
        down = np.ndim(values) == 2 and options.get("axis", args[0] if args else 0) == 0
        ordered = pandas_groups.ranks(values.T).T if down else pandas_groups.ranks(values)
        return plainly(ordered, *args, **options)

    return rule


def _fill(plainly: Value) -> Writing:
    """Return the rule of a compiled function that fills the gaps of a row or of rows in place, `limit` in each."""

    def rule(values: Value, fill_val: Value, *args: Value, limit: Value = None, **options: Value) -> Value:
        now = read(values)
        if not isinstance(now, Tracer) and not isinstance(fill_val, Tracer):
            return plainly(values, fill_val, *args, limit=limit, **options)
        missing = np.asarray(known(np.isnan(plain(now))))
        if limit is not None:
            missing &= missing.cumsum(-1) <= limit
        vars(SOURCES.operations)["setitem"](fill_val, values, missing)
        return int(missing.sum())

    return Writing(rule)


_interpolated.runs_python = True  # type: ignore[attr-defined]


def _correlated(mat: Value, cov: bool = False, minp: Value = None) -> Value:
    """The rule of the covariances or correlations of the columns of a matrix, of each pair without its gaps."""
    start, end = np.zeros(1, int), np.full(1, len(mat))
    least = 1 if minp is None else minp
    found = {}
    for i, j in itertools.combinations_with_replacement(range(mat.shape[1]), 2):
        of_pair = pandas_windows.covariance if cov else pandas_windows.correlation
        found[i, j] = found[j, i] = of_pair(mat[:, i], mat[:, j], start, end, least)
    size = range(mat.shape[1])
    return np.stack([np.concatenate([found[i, j] for j in size]) for i in size])


def _by_example(ask: Value) -> Value:
    """Return the rule of a compiled question about the class of an object, which is asked about an example of it."""
    return lambda value: ask(example(value))


RULES: list[tuple[Value, str, Value]] = [
    *pandas_windows.RULES,
    *((algos, name, _fill(getattr(algos, name, None)))
      for name in ("scalar_fillna_inplace", "scalar_fillna_2d_inplace")),
    (algos, "nancorr", as_computed(algos.nancorr, _correlated)),
    (Block, "interpolate", Method(_interpolated, _fills)),
    (algorithms, "factorize_array", _factorized), (algorithms, "unique_with_mask", _different),
    (algorithms, "mode", _most_frequent),
    *((owner, name, _chosen(name)) for owner in (pd.Series, pd.DataFrame) for name in ("nlargest", "nsmallest")),
    (lib, "count_level_2d", _counted), (algorithms, "duplicated", _by_order(algorithms.duplicated)),
    *((algos, name, _by_order(getattr(algos, name))) for name in ("rank_1d", "rank_2d")),
    (algos, "ensure_float64", Calling(_as_floats)),
    (cast, "construct_1d_object_array_from_listlike", _of_list), (cast, "np_can_hold_element", _written),
    *((nanops, f"nan{how}", pandas_groups.of_whole(how)) for how in ("skew", "kurt")),
    *((lib, name, _by_example(getattr(lib, name)))
      for name in ("is_bool", "is_complex", "is_float", "is_integer", "is_scalar")),
    (lib, "maybe_convert_objects", lambda objects, *_, **__: objects),
    (Block, "pad_or_backfill", Method(_padded, _fills)),
    (take, "_take_nd_ndarray", _taken), (ops_dispatch, "maybe_dispatch_ufunc_to_dunder_op", Calling(_by_operator)),
    (WrappedCythonOp, "_cython_op_ndim_compat", pandas_groups.operate),
    (BaseGrouper, "agg_series", Calling(pandas_groups.aggregate)),
    (IndexOpsMixin, "_map_values", Method(_mapped, _traced)),
    (Apply, "transform_str_or_callable", Method(_transformed, lambda self: holds_traced_numbers(self.obj))),
    (pd.Series, "dropna", Method(_dropna, _traced)), (pd.Series, "diff", Method(_diff, _traced)),
    (NDFrame, "_inplace_method", Method(_in_place, holds_traced_numbers)),
    (pd, "cut", _binned("cut")), (pd, "qcut", _binned("qcut")),
    *((owner, name, _of_plain(name))
      for owner, name in (
          (NDFrame, "equals"), (pd.Series, "isin"), (pd.DataFrame, "isin"))),
]  # fmt: skip
