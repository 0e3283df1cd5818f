"""Rules for the windows of `pandas`: the compiled functions that its Python code calls for each column.

pandas finds the windows of `rolling`, `expanding` and `ewm`, also those of groups, and makes tables of the results in
Python, which is read. One compiled function of each name gets the values of a column, and where each window starts and
ends. A rule has its value, and the derivative of the same operation of NumPy on the values that are not missing.
"""

from collections.abc import Callable

import numpy as np
from pandas._libs import groupby
from pandas._libs.window import aggregations

from effgrad.arrays import reach
from effgrad.arrays.value import Tracer, example, known, plain
from effgrad.arrays.written import read
from effgrad.errors import NoRule
from effgrad.functions.pandas_groups import Groups, ranks
from effgrad.functions.scipy.signal import lfilter
from effgrad.functions.scipy.sparse_elements import product
from effgrad.functions.scipy.tables import Calling, Writing
from effgrad.primitives.given import as_computed, with_value
from effgrad.program.rewritten import SOURCES
from effgrad.vocabulary import Option, Value

Places = tuple[np.ndarray, np.ndarray]


def _places(start: np.ndarray, end: np.ndarray) -> Places:
    """Return parallel rows and columns: the value number `columns[i]` is in the window number `rows[i]`."""
    lengths = np.maximum(end - start, 0)
    rows = np.repeat(np.arange(len(start)), lengths)
    return rows, np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths - start, lengths)


def _present(values: Value) -> Value:
    return known(~np.isnan(plain(values)))


def _groups(values: Value, start: np.ndarray, end: np.ndarray, present: Value = None) -> Groups:
    """Return the values of each window, as if each window was a group of its own; missing ones are left out."""
    rows, columns = _places(start, end)
    kept = (_present(values) if present is None else present)[columns]
    rows, columns = rows[kept], columns[kept]
    return Groups(values[columns], rows, np.bincount(rows, minlength=len(start)), columns)


def _sum(values: Value, start: np.ndarray, end: np.ndarray, least: int, mean: bool = False) -> Value:
    present, (rows, columns) = ~np.isnan(plain(values)), _places(start, end)
    weights, size = np.ones(len(rows)), (len(start), len(present))
    sums = product(np.where(present, values, 0.0), weights, rows=rows, columns=columns, size=size)
    counts = product(present * 1.0, weights, rows=rows, columns=columns, size=size)
    return np.where(counts >= max(least, int(mean)), sums / np.maximum(counts, 1) if mean else sums, np.nan)


def _mean(values: Value, start: np.ndarray, end: np.ndarray, least: int) -> Value:
    return _sum(values, start, end, least, mean=True)


def _reduced(reduce: Callable[[Groups], Value], needed: int = 1) -> Callable[..., Value]:
    """Return the definition of a function that reduces each window of at least `needed` values, and is else NaN."""

    def definition(values: Value, start: np.ndarray, end: np.ndarray, least: int) -> Value:
        groups = _groups(values, start, end)
        enough = groups.counts >= max(least, needed)
        return np.where(enough, reduce(groups), np.nan) if len(groups.places) else np.full(len(start), np.nan)

    return definition


def _variance(values: Value, start: np.ndarray, end: np.ndarray, least: int, ddof: int = 1) -> Value:
    return _reduced(lambda groups: groups.variance(ddof), ddof + 1)(values, start, end, least)


def _quantile(
    values: Value, start: np.ndarray, end: np.ndarray, least: int, quantile: float, interpolation: Option
) -> Value:  # fmt: skip
    def reduce(groups: Groups) -> Value:
        return groups.each(lambda rows, axis: np.quantile(rows, quantile, axis=axis, method=interpolation))

    return _reduced(reduce)(values, start, end, least)


def _write_quantiles(out: Value, *, values: Value, mask: Value, **options: Value) -> None:
    """Write the quantiles of each group, whose values lie between a start and an end, to an array."""
    values = read(values)
    if not isinstance(values, Tracer):
        _PLAIN_QUANTILES(out, values=values, mask=mask, **options)
        return
    found, missing = np.empty(out.shape), known(np.isnan(plain(values)))
    _PLAIN_QUANTILES(found, values=example(values), mask=missing, **options)
    starts, ends, interpolation = (options[name] for name in ("starts", "ends", "interpolation"))
    each = [_quantile(values, starts, ends, 1, quantile, interpolation) for quantile in options["qs"]]
    result = with_value(np.stack(each, axis=-1), found, "pandas' quantile of groups")
    vars(SOURCES.operations)["write_item"](result, out, ...)


_PLAIN_QUANTILES = groupby.group_quantile


def _pairs(x: Value, y: Value, start: np.ndarray, end: np.ndarray) -> tuple[Groups, Groups]:
    present = _present(x) & _present(y)
    return _groups(x, start, end, present), _groups(y, start, end, present)


def _product(a: Groups, b: Groups) -> Value:
    """Return the sum of the products of deviations from the mean, for each window."""
    return a.sum((a.values - a.mean()[a.numbers]) * (b.values - b.mean()[b.numbers]))


def covariance(x: Value, y: Value, start: np.ndarray, end: np.ndarray, least: int, ddof: int = 1) -> Value:
    a, b = _pairs(x, y, start, end)
    return np.where(a.counts >= max(least, ddof + 1), _product(a, b) / np.maximum(a.counts - ddof, 1), np.nan)


def correlation(x: Value, y: Value, start: np.ndarray, end: np.ndarray, least: int) -> Value:
    a, b = _pairs(x, y, start, end)
    squares = _product(a, a) * _product(b, b)
    defined = (a.counts >= least) & (plain(squares) > 0)
    return np.where(defined, _product(a, b) / np.sqrt(np.where(defined, squares, 1.0)), np.nan)


def _by_order(name: str) -> Callable[..., Value]:
    """Return the rule of a function whose result depends on the order of the values alone."""
    plainly = getattr(aggregations, name)
    return lambda values, *args, **options: plainly(ranks(values), *args, **options)


def _applied(
    obj: Value, start: np.ndarray, end: np.ndarray, minp: int, function: Value, raw: bool, args: Value, kwargs: Value
) -> Value:  # fmt: skip
    """Call a function of the program with each window, an array or with `raw=False` a Series."""
    values, windows = (obj, obj) if raw else (obj._values, obj.iloc)
    rows, columns = _places(start, end)
    counts = np.bincount(rows, known(np.isfinite(plain(values)))[columns], len(start))
    found = [
        function(windows[first:last], *args, **kwargs) if count >= minp else np.nan
        for first, last, count in zip(start, end, counts, strict=True)
    ]
    return reach.np.array(found, float)


_applied.runs_python = True  # type: ignore[attr-defined]


class Decay:
    """The weights of a column's exponential window: those of the values before each value, and their sums.

    Without gaps they are powers of one factor, and sums with them are a filter. With gaps or times, each factor is
    another one, and the weights are a matrix. `halves` says whether a factor of one half is for irregular times.
    """

    def __init__(
        self, present: Value, com: Value, adjust: bool, skips: bool, times: Value = None, halves: bool = False
    ) -> None:
        self.present, self.keep = present, com / (1 + com)
        self.first, steps = int(np.argmax(present)), np.ones(max(len(present) - 1, 0))
        gaps = not np.all(present[self.first :])
        self.new = np.where(np.arange(len(present)) == self.first, 1.0, 1.0 if adjust else 1 - self.keep) * present
        self.matrix = None
        if gaps and (not adjust or skips) or times is not None and np.any(times != 1):
            if isinstance(com, Tracer):
                raise NoRule("pandas' exponential windows have a derivative by a traced decay without gaps and times")
            self.matrix = self._weights(steps if times is None else times, adjust, skips, halves and com == 1)

    def _weights(self, times: np.ndarray, adjust: bool, skips: bool, irregular: bool) -> np.ndarray:
        """Return the weight of each value in the mean at each place, by pandas' recursion."""
        weights = np.zeros((len(self.present),) * 2)
        old, row = 1.0, np.zeros(len(self.present))
        for place, present in enumerate(self.present):
            if place > self.first and (present or not skips):
                old *= self.keep ** times[place - 1]
            if present and place == self.first:
                row[place] = 1.0
            elif present:
                new = 1.0 if adjust else 1 - old if irregular else 1 - self.keep
                row = row * old / (old + new)
                row[place] = new / (old + new)
                old = old + new if adjust else 1.0
            weights[place] = row
        return weights

    def sum(self, values: Value, power: int = 1) -> Value:
        """Return the sums of values with the weights to a power."""
        weighted = self.new**power * np.where(self.present, values, 0.0)
        return lfilter([1.0], np.stack([1.0, -(self.keep**power)]), weighted)

    def mean(self, values: Value) -> Value:
        if self.matrix is not None:
            return self.matrix @ np.where(self.present, values, 0.0)
        total = self.sum(np.ones(len(self.present)))
        return self.sum(values) / np.where(total > 0, total, 1.0)

    def squares(self) -> Value:
        """Return the sums of the squares of the weights, whose own sum is 1."""
        if self.matrix is not None:
            return np.sum(self.matrix**2, axis=1)
        ones = np.ones(len(self.present))
        total = self.sum(ones)
        return self.sum(ones, power=2) / np.where(total > 0, total, 1.0) ** 2


def _by_segment(start: np.ndarray, end: np.ndarray, of_segment: Callable[[slice], Value]) -> Value:
    """Return the results of windows that begin anew at each start, one for each group."""
    parts = [of_segment(slice(first, last)) for first, last in zip(start, end, strict=True) if last > first]
    return np.concatenate(parts) if parts else np.zeros(0)


def _exponential(
    vals: Value, start: np.ndarray, end: np.ndarray, minp: int, com: Value, adjust: bool, ignore_na: bool,
    deltas: Value = None, normalize: bool = True,
) -> Value:  # fmt: skip
    def of_segment(part: slice) -> Value:
        present = _present(vals[part])
        times = None if deltas is None else deltas[part][: len(present) - 1]
        decay = Decay(present, com, adjust, ignore_na, times, halves=True)
        if not normalize and (decay.matrix is not None or not np.all(present)):
            raise NoRule("pandas' exponential sums have a derivative rule for values without gaps and times")
        found = decay.mean(vals[part]) if normalize else lfilter([1.0], np.stack([1.0, -decay.keep]), vals[part])
        return np.where(np.cumsum(present) >= max(minp, 1), found, np.nan)

    return _by_segment(start, end, of_segment)


def _exponential_covariance(
    input_x: Value, start: np.ndarray, end: np.ndarray, minp: int, input_y: Value, com: Value, adjust: bool,
    ignore_na: bool, bias: bool,
) -> Value:  # fmt: skip
    def of_segment(part: slice) -> Value:
        present = _present(input_x[part]) & _present(input_y[part])
        decay = Decay(present, com, adjust, ignore_na)
        # The covariance is that of deviations from any number: from the mean they lose no digits.
        x, y = (np.where(present, v[part] - np.nanmean(np.where(present, plain(v[part]), np.nan)), 0.0)
                for v in (input_x, input_y))  # fmt: skip
        found, counts = decay.mean(x * y) - decay.mean(x) * decay.mean(y), np.cumsum(present)
        enough = (counts >= minp) & (counts > (0 if bias else 1))
        rest = 1.0 if bias else np.where(enough, 1 - decay.squares(), 1.0)
        return np.where(enough, np.where(counts > 1, found / rest, 0.0), np.nan)  # 0 of one value, whatever it is

    return _by_segment(start, end, of_segment)


DEFINITIONS: dict[str, Callable[..., Value]] = {
    "roll_sum": _sum, "roll_mean": _mean, "roll_var": _variance, "roll_quantile": _quantile,
    "roll_cov": covariance, "roll_corr": correlation,
    "roll_skew": _reduced(lambda groups: groups.shape(3), 3), "roll_kurt": _reduced(lambda groups: groups.shape(4), 4),
    "roll_median_c": _reduced(lambda groups: groups.each(np.median)),
    "roll_min": _reduced(lambda groups: groups.each(np.min)), "roll_max": _reduced(lambda groups: groups.each(np.max)),
    "roll_first": _reduced(lambda groups: groups.item(False)), "roll_last": _reduced(lambda groups: groups.item(True)),
    "ewm": _exponential, "ewmcov": _exponential_covariance,
}  # fmt: skip
RULES: list[tuple[Value, str, Value]] = [
    *((aggregations, name, as_computed(vars(aggregations)[name], definition))
      for name, definition in DEFINITIONS.items() if name in vars(aggregations)),
    *((aggregations, name, _by_order(name)) for name in ("roll_rank", "roll_nunique") if name in vars(aggregations)),
    (aggregations, "roll_apply", Calling(_applied)), (groupby, "group_quantile", Writing(_write_quantiles)),
]  # fmt: skip
