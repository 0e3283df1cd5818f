"""Coefficients and values of splines, differentiable in the knots, in the values and in the points.

Which piece a point is in is a constant; in a piece, a spline is a polynomial. De Boor, A practical guide to splines
(1978): cubic splines, chapter IV; B-splines, chapters IX and X.
"""

import math

from effgrad.arrays.layout import ndim_of, shape_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import evaluated, getitem, plain
from effgrad.functions.scipy.banded import banded
from effgrad.functions.scipy.tables import require
from effgrad.vocabulary import Option, Tangent, Value


def piece_of(x: Value, knots: Value, first: int = 0, last: int = -1) -> Value:
    """The index of the piece between knots that each point is in; points beyond an end are in the piece at that end."""
    count = shape_of(knots)[0]
    last = count - 2 if last < 0 else last
    return evaluated(lambda x, t: np.clip(np.searchsorted(t, x, side="right") - 1, first, last), x, knots)


def elements(values: Value, places: Value) -> Value:
    """Return `values[places]`, also where the places differ between the members of a batch."""
    return getitem(values, places)


def nan_outside(x: Value, low: Value, high: Value, extrapolate: Option, result: Value) -> Value:
    """Return the result, with NaN outside the knots if the interpolant does not extrapolate."""
    if extrapolate not in (False, None):
        return result
    outside = (plain(x) < plain(low)) | (plain(x) > plain(high))
    wide = shape_of(x) + (1,) * (ndim_of(result) - np.ndim(outside))
    return np.where(np.reshape(outside, wide), np.nan, result)


def periodic(x: Value, low: Value, high: Value, extrapolate: Option) -> Value:
    return low + np.mod(x - low, high - low) if extrapolate == "periodic" else x


def polynomial(knots: Value, c: Value, x: Value, nu: int, extrapolate: Option) -> Value:
    """The `nu`th derivative of the piecewise polynomial with coefficients c[power, piece, ...], highest power first."""
    x = periodic(x, knots[0], knots[-1], extrapolate)
    piece = piece_of(x, knots)
    along = np.reshape(x - getitem(knots, piece), shape_of(x) + (1,) * (ndim_of(c) - 2))
    result: Value = 0.0
    degree = shape_of(c)[0] - 1
    for power in range(degree, nu - 1, -1):
        factor = math.factorial(power) / math.factorial(power - nu)
        result = result * along + factor * getitem(c[degree - power], piece)
    if degree < nu:
        result = 0.0 * along * getitem(c[0], piece)
    return nan_outside(x, knots[0], knots[-1], extrapolate, result)


def de_boor(t: Value, c: Value, k: int, x: Value, nu: int = 0, extrapolate: Option = True) -> Value:
    """The `nu`th derivative of a spline of degree `k` by its B-spline coefficients c[i, ...]."""
    n = shape_of(t)[0] - k - 1
    low, high = t[k], t[n]
    x, c = periodic(x, low, high, extrapolate), c[:n]
    wide = shape_of(x) + (1,) * (ndim_of(c) - 1)
    if nu > k:
        zero = np.reshape(0.0 * x, wide) * np.sum(c, axis=0)
        return nan_outside(x, low, high, extrapolate, zero)
    t, c = derivative_of_spline(t, c, k, nu)
    k -= nu
    piece = piece_of(x, t, k, shape_of(t)[0] - k - 2)
    d = [getitem(c, piece + j - k) for j in range(k + 1)]
    for r in range(1, k + 1):
        for j in range(k, r - 1, -1):
            left, right = getitem(t, piece + j - k), getitem(t, piece + j + 1 - r)
            part = np.reshape((x - left) / (right - left), wide)
            d[j] = (1 - part) * d[j - 1] + part * d[j]
    return nan_outside(x, low, high, extrapolate, d[k])


def derivative_of_spline(t: Value, c: Value, k: int, nu: int) -> tuple[Value, Value]:
    """The knots and the coefficients of the `nu`th derivative of a spline of degree `k`. De Boor (1978), (X.16)."""
    for degree in range(k, k - nu, -1):
        span = t[degree + 1 : -1] - t[1 : -degree - 1]
        empty = plain(span) == 0
        rate = np.where(empty, 0.0, degree / np.where(empty, 1.0, span))
        c = np.reshape(rate, (-1,) + (1,) * (ndim_of(c) - 1)) * (c[1:] - c[:-1])
        t = t[1:-1]
    return t, c


def derivative_of_pieces(c: Value, nu: int) -> Value:
    """The coefficients of the `nu`th derivative of a piecewise polynomial."""
    degree, wide = shape_of(c)[0] - 1, (-1,) + (1,) * (ndim_of(c) - 1)
    if nu > degree:
        return 0.0 * c[:1]
    powers = range(degree, nu - 1, -1)
    factors = [float(math.factorial(power) // math.factorial(power - nu)) for power in powers]
    return c[: len(factors)] * np.reshape(factors, wide)


def antiderivative_of_pieces(knots: Value, c: Value) -> Value:
    """The coefficients of the integral of a piecewise polynomial from its first knot on."""
    degree, wide = shape_of(c)[0], (-1,) + (1,) * (ndim_of(c) - 2)
    raised = c / np.reshape(np.arange(degree, 0.0, -1), (-1, 1, *wide[1:]))
    length = np.reshape(knots[1:] - knots[:-1], wide)
    area: Value = 0.0 * length * c[0]
    for row in raised:
        area = (area + row) * length
    start = np.concatenate([0.0 * area[:1], np.cumsum(area, axis=0)[:-1]])
    return np.concatenate([raised, start[None]])


def integral_of_pieces(knots: Value, c: Value, x: Value, extrapolate: Option) -> Value:
    """The integral of a piecewise polynomial from its first knot to a point."""
    return polynomial(knots, antiderivative_of_pieces(knots, c), x, 0, extrapolate)


def antiderivative_of_spline(t: Value, c: Value, k: int) -> tuple[Value, Value]:
    """The knots and the coefficients of the integral of a spline from its first knot on. De Boor (1978), (X.22)."""
    share = np.reshape((t[k + 1 :] - t[: -k - 1]) / (k + 1), (-1,) + (1,) * (ndim_of(c) - 1))
    return np.concatenate([t[:1], t, t[-1:]]), np.concatenate([0.0 * c[:1], np.cumsum(c * share, axis=0)])


def integral_of_spline(t: Value, c: Value, k: int, x: Value) -> Value:
    """The integral of a spline from its first knot to a point: a spline of one degree more."""
    wider, raised = antiderivative_of_spline(t, c[: shape_of(t)[0] - k - 1], k)
    return de_boor(wider, raised, k + 1, x)


# Cubic interpolation: slopes at the points, and the coefficients by them.


def hermite(x: Value, y: Value, slopes: Value) -> Value:
    """The coefficients of the cubic pieces with given values and slopes at the points."""
    dx = np.reshape(x[1:] - x[:-1], (-1,) + (1,) * (ndim_of(y) - 1))
    slope = (y[1:] - y[:-1]) / dx
    t = (slopes[:-1] + slopes[1:] - 2 * slope) / dx
    return np.stack([t / dx, (slope - slopes[:-1]) / dx - t, slopes[:-1], y[:-1]])


def pchip_slopes(x: Value, y: Value) -> Value:
    """The slopes of PCHIP at the points.

    Fritsch and Butland, A method for constructing local monotone piecewise cubic interpolants (1984).
    """
    h = np.reshape(x[1:] - x[:-1], (-1,) + (1,) * (ndim_of(y) - 1))
    m = (y[1:] - y[:-1]) / h
    if shape_of(y)[0] == 2:
        return np.concatenate([m, m])
    v = plain(m)
    flat = (np.sign(v[1:]) != np.sign(v[:-1])) | (v[1:] == 0) | (v[:-1] == 0)
    first, second = 2 * h[1:] + h[:-1], h[1:] + 2 * h[:-1]
    before, after = np.where(flat, 1.0, m[:-1]), np.where(flat, 1.0, m[1:])
    middle = np.where(flat, 0.0, (first + second) / (first / before + second / after))
    ends = [_pchip_end(h[0], h[1], m[0], m[1]), _pchip_end(h[-1], h[-2], m[-1], m[-2])]
    return np.concatenate([ends[0][None], middle, ends[1][None]])


def _pchip_end(h0: Value, h1: object, m0: Value, m1: object) -> Value:
    d = ((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
    turned = np.sign(plain(d)) != np.sign(plain(m0))
    steep = (np.sign(plain(m0)) != np.sign(plain(m1))) & (np.abs(plain(d)) > 3 * np.abs(plain(m0)))
    return np.where(turned, 0.0, np.where(steep, 3 * m0, d))


def akima_slopes(x: Value, y: Value, method: str) -> Value:
    """The slopes of Akima's interpolation at the points.

    Akima, A new method of interpolation and smooth curve fitting based on local procedures (1970).
    """
    m = (y[1:] - y[:-1]) / np.reshape(x[1:] - x[:-1], (-1,) + (1,) * (ndim_of(y) - 1))
    if shape_of(y)[0] == 2:
        return np.concatenate([m, m])
    first, last = 2 * m[0] - m[1], 2 * m[-1] - m[-2]
    m = np.concatenate([(2 * first - m[0])[None], first[None], m, last[None], (2 * last - m[-1])[None]])
    weight = np.abs(m[1:] - m[:-1])
    if method == "makima":
        weight = weight + 0.5 * np.abs(m[1:] + m[:-1])
    before, after = weight[2:], weight[:-2]
    total = before + after
    bent = plain(total) > 1e-9 * np.max(plain(total), initial=-np.inf)
    blended = m[1:-2] + after / np.where(bent, total, 1.0) * (m[2:-1] - m[1:-2])
    return np.where(bent, blended, 0.5 * (m[3:] + m[:-3]))


def _end_row(kind: Option, dx: Value, slope: Tangent, side: int) -> tuple[Value, Value, Value]:
    """The equation for the slopes at one end (side 1 or -1) of a cubic spline: the factor of the slope at the end, the
    factor of the slope at the next point, and the right-hand side."""
    first, second = (0, 1) if side > 0 else (-1, -2)
    near = dx[first]
    if isinstance(kind, str) and kind == "not-a-knot":
        far = dx[second]
        both = near + far
        return far, both, ((near + 2 * both) * far * slope[first] + near**2 * slope[second]) / both
    order, value = kind
    if order == 1:
        return 1.0 + 0.0 * near, 0.0 * near, value + 0.0 * slope[first]
    return 2 * near, near, 3 * near * slope[first] - side * 0.5 * value * near**2


ENDS = {"natural": (2, 0.0), "clamped": (1, 0.0)}


def cubic_slopes(x: Value, y: Value, bc_type: Option) -> Value:
    """The slopes at the points of the cubic spline through values, which make its second derivative continuous."""
    n, dx = shape_of(x)[0], x[1:] - x[:-1]
    flat = np.reshape(y, (n, -1))
    slope = (flat[1:] - flat[:-1]) / dx[:, None]
    kinds = [bc_type, bc_type] if isinstance(bc_type, str) else list(bc_type)
    kinds = [ENDS.get(kind, kind) if isinstance(kind, str) else kind for kind in kinds]
    if kinds[0] == "periodic":
        return np.reshape(_periodic_slopes(dx, slope), shape_of(y))
    kinds = [k if isinstance(k, str) else (k[0], np.reshape(k[1], (-1,))) for k in kinds]
    if n == 2:
        kinds = [(1, slope[0]) if isinstance(k, str) else k for k in kinds]
    if n == 3 and all(isinstance(k, str) for k in kinds):
        rows = [[1.0, 1.0, 0.0], [dx[1], 2 * (dx[0] + dx[1]), dx[0]], [0.0, 1.0, 1.0]]
        matrix = np.stack([np.stack([np.asarray(e) + 0.0 * dx[0] for e in row]) for row in rows])
        right = np.stack([2 * slope[0], 3 * (dx[0] * slope[1] + dx[1] * slope[0]), 2 * slope[1]])
        return np.reshape(np.linalg.solve(matrix, right), shape_of(y))
    start, beside_start, first = _end_row(kinds[0], dx, slope, 1)
    stop, beside_stop, last = _end_row(kinds[1], dx, slope, -1)
    band = np.stack([
        np.concatenate([np.zeros(1), beside_start[None], dx[:-1]]),
        np.concatenate([start[None], 2 * (dx[1:] + dx[:-1]), stop[None]]),
        np.concatenate([dx[1:], beside_stop[None], np.zeros(1)]),
    ])
    right = 3 * (dx[1:, None] * slope[:-1] + dx[:-1, None] * slope[1:])
    right = np.concatenate([first[None], right, last[None]])
    return np.reshape(banded(band, right, low=1, up=1), shape_of(y))


def _periodic_slopes(dx: Value, slope: Tangent) -> Value:
    n = shape_of(dx)[0]
    if n == 2:
        mean = np.sum(slope / dx[:, None], axis=0) / np.sum(1 / dx)
        return np.stack([mean, mean, mean])
    before = np.roll(dx, 1)
    around = np.eye(n)
    matrix = (
        around * (2 * (dx + before))[:, None]
        + np.roll(around, 1, axis=1) * before[:, None]
        + np.roll(around, -1, axis=1) * dx[:, None]
    )
    right = 3 * (dx[:, None] * np.roll(slope, 1, axis=0) + before[:, None] * slope)
    s = np.linalg.solve(matrix, right)
    return np.concatenate([s, s[:1]])


# B-spline interpolation.


def interpolation_knots(x: Value, k: int, bc_type: Option) -> Value:
    """The knots that `make_interp_spline` chooses for points."""
    if k == 0:
        return np.concatenate([x, x[-1:]])
    if bc_type not in (None, "not-a-knot") or k == 1:
        return np.concatenate([x[:1]] * k + [x] + [x[-1:]] * k)
    if k % 2:
        middle = x[(k + 1) // 2 : shape_of(x)[0] - (k + 1) // 2]
    else:
        middle = ((x[1:] + x[:-1]) / 2)[k // 2 : shape_of(x)[0] - 1 - k // 2]
    return np.concatenate([x[:1]] * (k + 1) + [middle] + [x[-1:]] * (k + 1))


def basis_values(t: Value, k: int, x: Value) -> Value:
    """The k + 1 B-splines that are not 0 at each point, as rows. De Boor (1978), chapter X, (8)."""
    piece = piece_of(x, t, k, shape_of(t)[0] - k - 2)
    values: list[Value] = [1.0 + 0.0 * x]
    for degree in range(1, k + 1):
        rest, higher = 0.0, []
        for r, value in enumerate(values):
            low, high = getitem(t, piece + 1 + r - degree), getitem(t, piece + 1 + r)
            share = value / (high - low)
            higher.append(rest + (high - x) * share)
            rest = (x - low) * share
        values = [*higher, rest]
    return np.stack(values)


def interpolation_coefficients(x: Value, y: Value, t: Value, k: int, bc_type: Option) -> Value:
    """The B-spline coefficients of the spline through values: the solution of the banded collocation equations."""
    n, ends = shape_of(t)[0] - k - 1, bc_type in ("natural", "clamped")
    rows, right = basis_values(t, k, x), np.reshape(y, (shape_of(y)[0], -1))
    if ends:
        require(k == 3, "interpolate.make_interp_spline", "bc_type 'natural' and 'clamped' with k=3")
        order, some = 2 if bc_type == "natural" else 1, np.eye(k + 1)
        first = de_boor(t[: 2 * k + 2], some, k, x[:1], order)
        last = de_boor(t[-2 * k - 2 :], some, k, x[-1:], order)
        zero = np.zeros((1, shape_of(right)[1]))
        rows, right = np.concatenate([first.T, rows, last.T], axis=1), np.concatenate([zero, right, zero])
    stored = np.concatenate([np.reshape(rows, (-1,)), np.zeros(1)])
    band = getitem(stored, evaluated(lambda x, t: _places_in_band(x, t, k, n, ends), x, t))
    return np.reshape(banded(band, right, low=k, up=k), (n, *shape_of(y)[1:]))


def collocation(x: Value, t: Value, k: int) -> Value:
    """The matrix of the values of all B-splines (columns) at points (rows)."""
    n = shape_of(t)[0] - k - 1
    first = evaluated(lambda x, t: np.clip(np.searchsorted(t, x, side="right") - 1, k, n - 1) - k, x, t)
    columns = evaluated(lambda first: first[:, None] == np.arange(n), first)
    matrix: Value = 0.0
    for shift, row in enumerate(basis_values(t, k, x)):
        matrix = matrix + np.where(np.roll(columns, shift, axis=1), row[:, None], 0.0)
    return matrix


def least_squares_coefficients(x: Value, y: Value, t: Value, k: int, w: Value) -> Value:
    """The B-spline coefficients of the spline with given knots that is nearest to values in weighted least squares."""
    matrix, right = collocation(x, t, k), np.reshape(y, (shape_of(y)[0], -1))
    weights = 1.0 if w is None else np.reshape(w, (-1, 1))
    c = np.linalg.lstsq(weights * matrix, weights * right)[0]
    return np.reshape(c, (shape_of(matrix)[1], *shape_of(y)[1:]))


def _places_in_band(x: Value, t: Value, k: int, n: int, ends: bool) -> Value:
    """For each place of the stored band, the index of its element in the flattened rows of B-splines and a final 0."""
    first: Value = np.clip(np.searchsorted(t, x, side="right") - 1, k, n - 1) - k
    first = np.concatenate([[0], first, [n - k - 1]]) if ends else first
    column = np.arange(n)[None, :]
    row = column + np.arange(-k, k + 1)[:, None]
    at = np.clip(row, 0, n - 1)
    entry = column - first[at]
    return np.where((row == at) & (entry >= 0) & (entry <= k), entry * n + at, (k + 1) * n)
