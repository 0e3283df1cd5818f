"""Histograms: the edges of bins, and the sums of weights in the bins. Which bin an element is in is a constant."""

from typing import Any

from effgrad.arrays.layout import dtype_of, ndim_of, size_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import composed, depends, evaluated, known, plain
from effgrad.errors import NoRule
from effgrad.primitives import move
from effgrad.primitives.given import all_as_computed
from effgrad.vocabulary import Option, Value


def _bincount(x: Value, /, weights: Value = None, minlength: int = 0) -> Value:
    if weights is None:
        return np.bincount(plain(x), minlength=minlength)
    n = max(int(np.max(plain(x), initial=-1)) + 1, minlength)
    return move.scatter_add(np.asarray(weights, float), shape=(n,), indices=(np.asarray(plain(x)),))


def _histogram_bin_edges(a: Value, bins: Option = 10, range: Option = None, weights: Value = None) -> Value:
    """Return the edges of bins. If only their number is given, they move with the range or the extreme elements."""
    edges = evaluated(_plain_edges, a, bins, weights, *(() if range is None else range))
    if ndim_of(bins) == 1:
        return np.asarray(bins)
    if range is None and not size_of(a):
        return edges
    low, high = (np.min(a), np.max(a)) if range is None else range
    if not depends(low) and not depends(high):
        return edges
    place = np.linspace(0.0, 1.0, len(edges), dtype=edges.dtype)
    return edges + (low - plain(low)) * (1 - place) + (high - plain(high)) * place


def _plain_edges(a: Value, bins: Option, weights: Value, *ends: Value) -> Value:
    return np.histogram_bin_edges(a, bins, ends or None, weights)


def _histogram(
    a: Value, bins: Option = 10, range: Option = None, density: object = None, weights: Value = None
) -> Value:
    moving = _histogram_bin_edges(a, bins, range)
    edges, size = plain(moving), len(moving) - 1
    at, inside = _bins_of(np.ravel(plain(a)), edges, uniform=ndim_of(bins) == 0)
    if weights is None:
        counts: Any = np.bincount(np.where(inside, at, size), minlength=size + 1)[:size]
    else:
        counted = np.where(inside, np.asarray(np.ravel(weights), float), 0)
        counts = move.scatter_add(counted, shape=(size,), indices=(np.where(inside, at, 0),))
        counts = counts.astype(dtype_of(weights))
    return (counts / np.sum(counts) / np.diff(moving) if density else counts), moving


def _bins_of(a: Value, edges: Value, uniform: bool) -> tuple[Value, Value]:
    """Return the bin of each element, and whether the element is in any bin.

    For bins of equal width the bin is computed by a division, and corrected where rounding put an element beyond an
    edge. NumPy does the same, so the counts are equal.
    """
    last = len(edges) - 2
    inside = (a >= edges[0]) & (a <= edges[-1])
    if uniform:
        a = np.asarray(a, edges.dtype)
        place = (a - edges[0]) / (edges[-1] - edges[0]) * (last + 1)
        i = np.minimum(np.where(inside, place, 0).astype(int), last)
        i = i - (a < edges[i])
        i = i + ((a >= edges[i + 1]) & (i != last))
    else:
        i = np.minimum(np.searchsorted(edges, a, side="right") - 1, last)
    return i, inside


def _histogramdd(
    sample: Value, bins: Option = 10, range: Option = None, density: Value = None, weights: Value = None
) -> tuple[Value, Value]:
    columns = np.stack([plain(c) for c in sample], axis=1) if type(sample) in (tuple, list) else plain(sample)
    bins, range = known(bins), known(range)
    counts, edges = np.histogramdd(columns, bins, range)
    moves = any(map(depends, sample)) if type(sample) in (tuple, list) else depends(sample)
    if moves and range is None and not all(np.ndim(b) for b in ([bins] if np.ndim(bins) == 0 else bins)):
        raise NoRule("numpy.histogramdd takes the range of the data, which has no derivative rule: give it the range")
    if weights is None:
        return np.histogramdd(columns, edges, density=density)
    sizes = [len(e) - 1 for e in edges]
    places, inside = np.zeros(len(columns), int), np.ones(len(columns), bool)
    for column, edge, size in zip(columns.T, edges, sizes, strict=True):
        i = np.where(column == edge[-1], size - 1, np.searchsorted(edge, column, side="right") - 1)
        inside &= (i >= 0) & (i < size)
        places = places * size + i
    at = np.flatnonzero(inside)
    counts = np.reshape(np.bincount(places[at], np.ravel(weights)[at], int(np.prod(sizes))), sizes) * 1.0
    if density:
        for axis, edge in enumerate(edges):
            counts = counts / np.expand_dims(np.diff(edge), [i for i, _ in enumerate(edges) if i != axis])
        counts = counts / np.sum(np.ravel(weights)[at])
    return counts, edges


def _histogram2d(
    x: Value, y: Value, bins: Option = 10, range: Option = None, density: object = None, weights: Value = None
) -> tuple[Value, Value, Value]:
    if np.ndim(bins) == 1 and len(bins) != 2:
        bins = [np.asarray(bins)] * 2
    counts, (first, second) = _histogramdd((x, y), bins, range, density, weights)
    return counts, first, second


composed(all_as_computed({
    np.bincount: _bincount, np.histogram: _histogram, np.histogram_bin_edges: _histogram_bin_edges,
    np.histogramdd: _histogramdd, np.histogram2d: _histogram2d,
}))  # fmt: skip
