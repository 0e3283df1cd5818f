"""Set operations, and trimming of zeros. Which elements are selected is a constant."""

from typing import Any, cast

from numpy.lib.array_utils import normalize_axis_tuple

from effgrad.arrays.batched_value import Batched
from effgrad.arrays.layout import ndim_of, shape_of, size_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import composed, depends, plain
from effgrad.functions.scipy.tables import python_of
from effgrad.primitives.given import all_as_computed
from effgrad.primitives.kinks import without
from effgrad.vocabulary import Axes, Option, Reached, Value


def _ranked(*arrays: Value) -> list[Value]:
    """Return the plain arrays; those of a staged program as ranks among all elements, which alone decide its path."""
    values = [plain(a) for a in arrays]
    if not any(depends(value) and type(value) is not Batched for value in values):
        return values
    whole = np.concatenate([np.ravel(value) for value in values])
    if np.any(np.isnan(whole)):
        return values
    order = np.argsort(whole, kind="stable")
    ordered = whole[order]
    steps = np.concatenate([np.zeros(1, int), np.cumsum(ordered[1:] != ordered[:-1])])
    ends = np.cumsum([size_of(value) for value in values])[:-1]
    parts = np.split(steps[np.argsort(order, kind="stable")], ends)
    return [np.reshape(part, shape_of(value)) for part, value in zip(parts, values, strict=True)]


def _unique(
    ar: Value, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False, axis: Axes = None,
    *, equal_nan: bool = True, sorted: bool = True,
) -> Value:  # fmt: skip
    """Return the first of each group of equal elements, or of equal slices along an axis."""
    options = {"axis": axis, "equal_nan": equal_nan} if axis is not None or not equal_nan else {}
    (ranks,) = _ranked(ar)
    _, first, *places = np.unique(ranks, True, True, True, **options)
    values = np.ravel(ar)[first] if axis is None else np.take(ar, first, axis=axis)
    asked = (return_index, return_inverse, return_counts)
    rest = [x for x, wanted in zip((first, *places), asked, strict=True) if wanted]
    return (values, *rest) if rest else values


def _unique_values(x: Value, /) -> Value:
    value = np.ravel(plain(x))
    # The order is NumPy's, by hashes of the values, which need not be sorted.
    ordered, first = np.unique(value, return_index=True)
    return np.ravel(x)[first[np.searchsorted(ordered, np.unique_values(value))]]


def _unique_all(x: Value, /) -> Value:
    return UniqueAll(*_unique(x, return_index=True, return_inverse=True, return_counts=True))


def _unique_counts(x: Value, /) -> Value:
    return UniqueCounts(*_unique(x, return_counts=True))


def _unique_inverse(x: Value, /) -> Value:
    return UniqueInverse(*_unique(x, return_inverse=True))


UniqueAll, UniqueCounts, UniqueInverse = (
    cast(Any, type(f(np.ones(1)))) for f in (np.unique_all, np.unique_counts, np.unique_inverse)
)


def _intersect1d(ar1: Value, ar2: object, assume_unique: bool = False, return_indices: bool = False) -> Value:
    one, other = _ranked(ar1, ar2)
    _, first, second = np.intersect1d(one, other, assume_unique, return_indices=True)
    values = np.ravel(ar1)[first]
    return (values, first, second) if return_indices else values


def _setdiff1d(ar1: Value, ar2: object, assume_unique: bool = False) -> Value:
    values = np.ravel(ar1) if assume_unique else np.unique(ar1)
    return values[np.flatnonzero(~np.isin(*_ranked(values, ar2)))]


def _trim_zeros(filt: Value, trim: str = "fb", axis: Axes = None) -> Value:
    count, kept = ndim_of(filt), np.nonzero(plain(filt))
    axes = range(count) if axis is None else normalize_axis_tuple(axis, count)
    found, parts = len(kept[0]), [slice(None)] * count
    for i in axes:
        first, last = (int(np.min(kept[i])), int(np.max(kept[i])) + 1) if found else (0, 0)
        front, back = [letter in trim.lower() or not found for letter in "fb"]
        parts[i] = slice(first if front else None, last if back else None)
    return filt[tuple(parts)]


def _trimseq(seq: Value) -> Value:
    kept = np.flatnonzero(plain(np.asarray(seq)))
    count = int(kept[-1]) + 1 if len(kept) else 1
    return without(seq[:count], seq[count:])


def leading_zeros(p: Value) -> Value:
    """Return the coefficients at the beginning of a polynomial that are 0; all of them if there is no other."""
    p = np.atleast_1d(np.array(p) if isinstance(p, list | tuple) else p)
    kept = np.flatnonzero(plain(p))
    return p[: int(kept[0])] if len(kept) else p


def _poly1d(self: Value, c_or_r: Value, r: Option = False, variable: Option = None) -> None:
    """A polynomial; the leading coefficients that are 0, and so left out, have no derivative."""
    _init(self, c_or_r, r, variable)
    if not r and not isinstance(c_or_r, np.poly1d):
        self._coeffs = without(self._coeffs, leading_zeros(c_or_r))


_init = python_of(np.poly1d.__init__)
_poly1d.runs_python = True  # type: ignore[attr-defined]
RULES: list[Reached] = [(np.polynomial.polyutils, "trimseq", _trimseq), (np.poly1d, "__init__", _poly1d)]
composed(all_as_computed({
    np.unique: _unique, np.intersect1d: _intersect1d, np.setdiff1d: _setdiff1d,
    np.unique_values: _unique_values, np.unique_all: _unique_all, np.unique_counts: _unique_counts,
    np.unique_inverse: _unique_inverse, np.trim_zeros: _trim_zeros,
}))  # fmt: skip
