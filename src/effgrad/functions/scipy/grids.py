"""Rules for `scipy.interpolate.RegularGridInterpolator`, differentiable in the point, in the values and in the grid."""

import copy
import functools

from scipy.interpolate import RegularGridInterpolator, _rgi

from effgrad.arrays.layout import ndim_of, shape_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import Tracer, example, plain
from effgrad.functions.scipy import splines
from effgrad.functions.scipy.interpolants import array_of, hold, is_somewhere, plain_points, require_increasing
from effgrad.functions.scipy.tables import Method, reals, require
from effgrad.nested import leaves
from effgrad.primitives.given import as_computed, run_outside
from effgrad.vocabulary import Option, Reached, Value


def _grid(self: Value, xi: Value, method: Option = None, *, nu: Value = None) -> Value:
    """Interpolate a table on a grid by the corners of a cell, or by splines along each axis."""
    method = self.method if method is None else method
    known = method in ("linear", "nearest", "slinear", "cubic", "quintic", "pchip")
    require(known and nu is None, "interpolate.RegularGridInterpolator", "every method but 'splinef2d', without nu")
    grid, values = [np.asarray(knots) for knots in array_of(self, "grid")], array_of(self, "values")
    reals("interpolate.RegularGridInterpolator", xi)
    shape, points = shape_of(xi)[:-1], np.reshape(xi, (-1, len(grid)))
    if method in ("linear", "nearest"):
        result = _by_corners(grid, values, points, method)
    elif method == "pchip":
        result = _by_pchip(grid, values, points)
    else:
        result = _by_splines(grid, values, points, {"slinear": 1, "cubic": 3, "quintic": 5}[method])
    result = np.reshape(result, shape + shape_of(values)[len(grid) :])
    beyond = functools.reduce(np.logical_or, (_beyond(plain(xi[..., d]), plain(t)) for d, t in enumerate(grid)))
    if self.bounds_error or self.fill_value is None:
        return result
    return np.where(beyond[(...,) + (None,) * (ndim_of(values) - len(grid))], self.fill_value, result)


def _beyond(x: Value, knots: Value) -> Value:
    return (x < knots[0]) | (x > knots[-1])


def _by_corners(grid: Value, values: Value, points: Value, method: str) -> Value:
    cells = [splines.piece_of(points[:, d], knots) for d, knots in enumerate(grid)]
    parts = [
        (points[:, d] - splines.elements(knots, i)) / (splines.elements(knots, i + 1) - splines.elements(knots, i))
        for d, (knots, i) in enumerate(zip(grid, cells, strict=True))
    ]
    if method == "nearest":
        parts = [np.where(plain(part) <= 0.5, 0.0, 1.0) for part in parts]
    trailing = (...,) + (None,) * (ndim_of(values) - len(grid))
    total: Value = 0.0
    for corner in np.ndindex((2,) * len(grid)):
        weight: Value = 1.0
        for part, end in zip(parts, corner, strict=True):
            weight = weight * (part if end else 1 - part)
        place = tuple(i + end for i, end in zip(cells, corner, strict=True))
        total = total + weight[trailing] * splines.elements(values, place)
    return total


def _by_splines(grid: Value, values: Value, points: Value, k: int) -> Value:
    """Interpolate by the product of the splines along each axis, which gives each element a weight at each point."""
    count = shape_of(points)[0]
    result = np.broadcast_to(values, (count, *shape_of(values)))
    for d, knots in enumerate(grid):
        t = splines.interpolation_knots(knots, k, None)
        c = splines.interpolation_coefficients(knots, np.eye(shape_of(knots)[0]), t, k, None)
        weights = splines.de_boor(t, c, k, points[:, d])
        wide = np.reshape(weights, (*shape_of(weights), *(1,) * (ndim_of(result) - 2)))
        result = np.sum(wide * result, axis=1)
    return result


def _by_pchip(grid: Value, values: Value, points: Value) -> Value:
    """Interpolate in SciPy's order: along the last axis first, and then for each point along the other axes."""
    results = []
    for place in range(shape_of(points)[0]):
        table = values
        for d in range(len(grid) - 1, -1, -1):
            y, knots = np.moveaxis(table, d, 0), grid[d]
            c = splines.hermite(knots, y, splines.pchip_slopes(knots, y))
            table = splines.polynomial(knots, c, points[place, d], 0, True)
        results.append(table)
    return np.stack(results)


def _grid_table(self: Value, points: Value, values: Value, *args: Value, **options: Option) -> None:
    """The rule of `__init__`: call SciPy's own with plain values, and set the traced grid and values."""
    run_outside(lambda: _plain_table(self, plain_points(tuple(points)), example(values), *args, **options))
    self._twin = copy.copy(self)
    grid = tuple(np.asarray(knots) for knots in points)
    turned = tuple(d for d, knots in enumerate(grid) if plain(knots)[0] > plain(knots)[-1])
    for d, knots in enumerate(grid):
        require_increasing(-knots if d in turned else knots)
    hold(self, "grid", tuple(knots[::-1] if d in turned else knots for d, knots in enumerate(grid)))
    hold(self, "values", np.flip(np.asarray(values), turned) if turned else np.asarray(values))


def _grid_value(self: Value, *args: Value, **options: Option) -> Value:
    return _plain_grid(getattr(self, "_twin", self), *args, **options)


def _grid_call(self: Value, xi: Value, *args: Value, **options: Option) -> Value:
    """The rule of a call. It checks the bounds for batches and later calls of a compiled program, as SciPy would."""
    grid = array_of(self, "grid")
    xi = _points(xi, len(grid))
    if self.bounds_error and any(isinstance(plain(leaf), Tracer) for leaf in (xi, *grid)):
        for d, knots in enumerate(grid):
            if is_somewhere(_beyond(plain(xi[..., d]), plain(knots))):
                raise ValueError(f"One of the requested xi is out of bounds in dimension {d}")
    return _grid_computed(self, xi, *args, **options)


_grid_computed = as_computed(_grid_value, _grid)
_plain_grid, _plain_table = RegularGridInterpolator.__call__, RegularGridInterpolator.__init__


def _points(points: Value, ndim: Value = None) -> Value:
    """Return points as one array whose last axis is the coordinates; SciPy's own function for this is compiled."""
    if type(points) is tuple:
        return np.stack(np.broadcast_arrays(*points), axis=-1)
    points = np.asarray(points)
    return points if points.ndim != 1 else np.reshape(points, (-1, 1 if ndim is None else ndim))


def _grid_holds(self: Value) -> bool:
    return any(isinstance(leaf, Tracer) for leaf in leaves((array_of(self, "grid"), array_of(self, "values"))))


RULES: list[Reached] = [
    (RegularGridInterpolator, "__init__", _grid_table),
    (RegularGridInterpolator, "__call__", Method(_grid_call, _grid_holds)),
    (_rgi, "_ndim_coords_from_arrays", _points),
]
