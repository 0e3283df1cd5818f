"""Rules for the groups of `pandas`, and so for `resample`: reductions and accumulations of traced columns by group.

Every method of groups that pandas computes in compiled code passes through one function with the values, the number of
each value's group, and the method's name. Here a rule stands in its place: it has pandas' value, and the derivative of
the same operation of NumPy on the values of each group that are not missing.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from pandas.core import nanops
from pandas.core.groupby.ops import WrappedCythonOp

from effgrad.arrays import reach
from effgrad.arrays.labelled import holds_traced_numbers
from effgrad.arrays.value import Tracer, example, known, plain, traced_inside
from effgrad.errors import NoRule
from effgrad.functions.scipy.sparse_elements import product
from effgrad.primitives.given import with_value
from effgrad.vocabulary import Option, Value


@dataclass
class Groups:
    """The values of a column by group, without missing ones, and the first place of each group among them."""

    values: Value
    numbers: np.ndarray
    counts: np.ndarray
    places: np.ndarray

    @property
    def starts(self) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(self.counts)])

    def each(self, reduce: Callable[..., Value]) -> Value:
        """Reduce the values of each group, those of all groups with as many values at once; 0 for an empty one."""
        order = np.argsort(self.counts, kind="stable")
        sizes, firsts = np.unique(self.counts[order], return_index=True)
        found = []
        for size, starts in zip(sizes, np.split(self.starts[order], firsts[1:]), strict=True):
            rows: Value = self.values[starts[:, None] + np.arange(size)] if size else None
            found.append(reduce(rows, axis=-1) if size else np.zeros(len(starts)))
        return np.concatenate(found)[np.argsort(order)]

    def item(self, last: bool) -> Value:
        chosen = self.starts[1:] - 1 if last else self.starts[:-1]
        return np.where(self.counts > 0, self.values[np.clip(chosen, 0, len(self.places) - 1)], 0.0)

    def sum(self, values: Value) -> Value:
        count, size = len(self.counts), len(self.places)
        return product(values, np.ones(size), rows=self.numbers, columns=np.arange(size), size=(count, size))

    def mean(self) -> Value:
        return self.sum(self.values) / np.maximum(self.counts, 1)

    def variance(self, ddof: int) -> Value:
        deviations = self.values - self.mean()[self.numbers]
        return self.sum(deviations**2) / np.maximum(self.counts - ddof, 1)

    def shape(self, order: int) -> Value:
        """The skewness or the kurtosis of each group, without bias; 0 where it has too few values or equal ones."""
        n, deviations = self.counts, self.values - self.mean()[self.numbers]
        squares = self.sum(deviations**2)
        several = (n >= order) & (plain(squares) > 0)
        n, squares = np.where(n >= order, n, order), np.where(several, squares, 1.0)
        ratio = self.sum(deviations**order) / squares ** (order / 2)
        if order == 3:
            return np.where(several, n * np.sqrt(n - 1) / (n - 2) * ratio, 0.0)
        rest = (n - 2) * (n - 3)
        return np.where(several, (n * (n + 1) * (n - 1) * ratio - 3 * (n - 1) ** 2) / rest, 0.0)

    def root(self, ddof: int, of_mean: bool) -> Value:
        variance = self.variance(ddof) / (np.maximum(self.counts, 1) if of_mean else 1)
        several = self.counts > ddof
        return np.where(several, np.sqrt(np.where(several, variance, 1.0)), 0.0)


def ranks(values: Value) -> Value:
    """Return numbers in the order of traced numbers, equal ones for equal ones, and NaN for NaN.

    They are the plain numbers; in a staged program, which guards the order, they are ranks.
    """
    inside = plain(values)
    if not isinstance(inside, Tracer):
        return inside
    if inside.ndim == 2:
        return np.stack([ranks(row) for row in values])
    order = known(np.argsort(inside))
    steps, missing = known(np.diff(inside[order]) > 0), known(np.isnan(inside))
    found = np.empty(len(order))
    found[order] = np.concatenate([np.zeros(min(1, len(order))), np.cumsum(steps)])
    return np.where(missing, np.nan, found)


REDUCTIONS: dict[str, Callable[[Groups, int], Value]] = {
    "sum": lambda groups, _: groups.sum(groups.values), "mean": lambda groups, _: groups.mean(),
    "var": lambda groups, ddof: groups.variance(ddof), "std": lambda groups, ddof: groups.root(ddof, False),
    "sem": lambda groups, ddof: groups.root(ddof, True), "prod": lambda groups, _: groups.each(np.prod),
    "min": lambda groups, _: groups.each(np.min), "max": lambda groups, _: groups.each(np.max),
    "median": lambda groups, _: groups.each(np.median), "first": lambda groups, _: groups.item(False),
    "last": lambda groups, _: groups.item(True),
    "skew": lambda groups, _: groups.shape(3), "kurt": lambda groups, _: groups.shape(4),
    "ohlc": lambda groups, _: np.stack(
        [groups.item(False), groups.each(np.max), groups.each(np.min), groups.item(True)], axis=1
    ),
}  # fmt: skip
ACCUMULATIONS: dict[str, Callable[[Value], Value]] = {
    "cumsum": np.cumsum, "cumprod": np.cumprod, "cummin": np.minimum.accumulate, "cummax": np.maximum.accumulate,
}  # fmt: skip
# What the methods with a constant result depend on.
CONSTANT: dict[str, Callable[[Value], Value]] = {
    **dict.fromkeys(("rank", "idxmin", "idxmax"), ranks),
    **dict.fromkeys(("any", "all"), lambda values: known(plain(values) != 0) * 1.0),
}
_plainly = WrappedCythonOp._cython_op_ndim_compat


def operate(self: Value, values: Value, *, ngroups: int, comp_ids: np.ndarray, **options: Option) -> Value:
    """Return a method's results for a traced column, or for the columns of a table, which are its rows here."""
    given = CONSTANT[self.how](values) if self.how in CONSTANT else example(values)
    result = _plainly(self, given, ngroups=ngroups, comp_ids=comp_ids, **options)
    if self.how in CONSTANT:
        return result
    rows = values if values.ndim == 2 else values[None]
    derived = np.stack([_of_column(self.how, row, comp_ids, ngroups, options) for row in rows])
    derived = derived if values.ndim == 2 else derived[0]
    return with_value(np.where(np.isnan(result), np.nan, derived), result, f"pandas' {self.how} of groups")


def _of_column(how: str, values: Value, numbers: np.ndarray, count: int, options: dict[str, Option]) -> Value:
    """Return the results of a column, whose group numbers are given; the number of a value without a group is -1."""
    known = ~np.isnan(plain(values))
    if not options.get("skipna", True) and not np.all(known):
        raise NoRule("pandas' operations of groups have a derivative rule for columns with gaps where skipna=True")
    places = np.flatnonzero(known & (numbers >= 0))
    places = places[np.argsort(numbers[places], kind="stable")]
    groups = Groups(values[places], numbers[places], np.bincount(numbers[places], minlength=count), places)
    if how in REDUCTIONS:
        return REDUCTIONS[how](groups, int(options.get("ddof", 1)))
    if how not in ACCUMULATIONS:
        raise NoRule(f"pandas' {how} of groups has no derivative rule: apply a function of NumPy to each group")
    parts = [ACCUMULATIONS[how](groups.values[start:end]) for start, end in itertools.pairwise(groups.starts)]
    found = np.full(len(numbers), len(places))
    found[places] = np.arange(len(places))
    return np.append(np.concatenate([np.zeros(0), *parts]), 0.0)[found]


def of_whole(how: str) -> Callable[..., Value]:
    """Return the rule of a reduction that pandas computes in compiled code without groups too."""
    plainly = getattr(nanops, f"nan{how}")

    def rule(values: Value, *, axis: Option = None, skipna: bool = True, mask: Value = None) -> Value:
        result = plainly(example(values), axis=axis, skipna=skipna, mask=mask)
        rows = values.T if values.ndim == 2 and axis == 0 else values
        if rows.ndim == 2 and axis is None:
            raise NoRule(f"pandas' {how} of all columns together has no derivative rule: take it of each column")
        one, options = np.zeros(rows.shape[-1], int), {"skipna": skipna}
        parts = [_of_column(how, row, one, 1, options)[0] for row in (rows if rows.ndim == 2 else rows[None])]
        derived = np.stack(parts) if rows.ndim == 2 else parts[0]
        return with_value(np.where(np.isnan(result), np.nan, derived)[()], result, f"pandas' {how}")

    return rule


def aggregate(self: Value, obj: Value, func: Value) -> Value:
    """Return the numbers that a function gives for the parts of a column."""
    found = self._aggregate_series_pure_python(obj, func)
    if not holds_traced_numbers(obj):
        return obj.array._cast_pointwise_result(found)
    items = found.tolist()
    return reach.np.array(items, float) if traced_inside(items) else np.array(items)


aggregate.runs_python = True  # type: ignore[attr-defined]
