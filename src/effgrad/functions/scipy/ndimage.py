"""Rules for `scipy.ndimage`: linear filters, and interpolation by splines, of images of any dimension.

A filter pads the image beyond its edges, which is an index of its elements, and convolves. The weights of a filter by a
derivative of a Gaussian are what SciPy's filter makes of a single 1. A spline is a sum of B-splines, whose coefficients
are linear in the image: Unser, Splines: a perfect fit for signal and image processing (1999).
"""

import math
from typing import Any

import scipy.ndimage

from effgrad.arrays.layout import ndim_of, shape_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import evaluated, getitem, plain
from effgrad.functions.scipy.ranks import RULES as OF_RANKS
from effgrad.functions.scipy.ranks import calling_back, continued, each, with_output
from effgrad.functions.scipy.signal import convolve, crop_to_mode
from effgrad.functions.scipy.tables import by_matrix, constant, reals, require, rules_of, traced_inside
from effgrad.primitives.given import as_computed
from effgrad.primitives.reduction import mark_underflow, root
from effgrad.vocabulary import Axes, Axis, Function, Option, Params, Reached, Value


def _correlate(
    input: Value, weights: Value, mode: Option = "reflect", cval: Option = 0.0,
    origin: Option = 0, *,
    axes: Axis = None,
) -> Value:  # fmt: skip
    x, weights = np.asarray(input), np.asarray(weights)
    reals("ndimage.correlate", weights)
    if 0 in shape_of(x):
        return x * 1.0
    ndim = ndim_of(x)
    axes = tuple(range(ndim)) if axes is None else tuple(int(i) % ndim for i in np.atleast_1d(axes))
    # SciPy orders the axes of the weights by themselves, and those of the origins by the call.
    require(list(axes) == sorted(axes), "ndimage.correlate", "axes in increasing order")
    shape = [1] * ndim
    around = [(0, 0)] * ndim
    for axis, n, shift in zip(axes, shape_of(weights), each(origin, len(axes)), strict=True):
        shape[axis] = n
        around[axis] = (n // 2 + shift, n - 1 - n // 2 - shift)
    for axis, way in zip(axes, each(mode, len(axes)), strict=True):
        x = continued(x, [pair if i == axis else (0, 0) for i, pair in enumerate(around)], way, cval)
    kernel = np.reshape(np.flip(weights), shape)
    every = tuple(range(ndim))
    return crop_to_mode(convolve(x, kernel, axes=every, method="direct"), x, kernel, "valid", every)


def _convolve(
    input: Value, weights: Value, mode: Option = "reflect", cval: Option = 0.0,
    origin: Option = 0, *,
    axes: Axis = None,
) -> Value:  # fmt: skip
    sizes = shape_of(np.asarray(weights))
    turned = [-shift - (n % 2 == 0) for shift, n in zip(each(origin, len(sizes)), sizes, strict=True)]
    return _correlate(input, np.flip(np.asarray(weights)), mode, cval, turned, axes=axes)


def _correlate1d(
    input: Value, weights: Value, axis: int = -1, mode: Option = "reflect", cval: Option = 0.0, origin: int = 0
) -> Value:
    return _correlate(input, weights, mode, cval, origin, axes=axis)


def _gaussian_filter1d(
    input: Value, sigma: Value, axis: int = -1, order: int = 0, mode: Option = "reflect",
    cval: Option = 0.0,
    truncate: float = 4.0, *, radius: Value = None,
) -> Value:  # fmt: skip
    reals("ndimage.gaussian_filter", sigma)
    size = int(truncate * plain(sigma) + 0.5) if radius is None else radius
    if order == 0:
        weights = np.exp(-0.5 * (np.arange(-size, size + 1) / sigma) ** 2)
        weights = weights / np.sum(weights)
    else:
        require(not traced_inside(sigma), "ndimage.gaussian_filter", "sigma where order is 0")
        one = np.zeros(2 * size + 1)
        one[size] = 1.0
        weights = np.flip(scipy.ndimage.gaussian_filter1d(one, sigma, order=order, mode="constant", radius=size))
    return _correlate1d(input, weights, axis, mode, cval)


def _chosen(axes: Axis, ndim: int) -> list[int]:
    return list(range(ndim)) if axes is None else [int(axis) % ndim for axis in np.atleast_1d(axes)]


def _total(parts: list[Value], input: Value) -> Value:
    """The sum of parts, one for each axis; SciPy returns an image of which no axis is chosen."""
    return sum(parts[1:], parts[0]) if parts else input * 1.0


def _along_axes(one: Value) -> Function:
    """Return a filter along each axis in turn, made from a filter along one axis."""

    def rule(
        input: Value, amount: Value, *parameters: object, axes: Axes = None, mode: Option = "reflect", **options: Option
    ) -> Value:
        chosen = _chosen(axes, ndim_of(input))
        for place, axis in enumerate(chosen):
            own = {key: each(value, len(chosen))[place] for key, value in options.items()}
            amount_here, way = each(amount, len(chosen))[place], each(mode, len(chosen))[place]
            input = one(input, amount_here, axis, *parameters, mode=way, **own)
        return input

    return rule


def _gaussian_filter_or_none(input: Value, sigma: Value, *args: Option, **options: Option) -> Value:
    """A filter along an axis of several; SciPy leaves out those of no width."""
    return _gaussian_filter1d(input, sigma, *args, **options) if plain(sigma) > 1e-15 else input


_gaussian = _along_axes(_gaussian_filter_or_none)


def _gaussian_filter(
    input: Value, sigma: Value, order: Option = 0, mode: Option = "reflect", cval: Option = 0.0,
    truncate: float = 4.0, *, radius: object = None, axes: Axis = None,
) -> Value:  # fmt: skip
    options = dict(order=order, mode=mode, cval=cval, truncate=truncate, radius=radius, axes=axes)
    return _gaussian(input, sigma, **options)


def _uniform_filter1d(
    input: Value, size: int, axis: int = -1, mode: Option = "reflect", cval: Option = 0.0, origin: int = 0
) -> Value:
    return _correlate1d(input, np.full(size, 1.0 / size), axis, mode, cval, origin)


_uniform = _along_axes(_uniform_filter1d)


def _uniform_filter(
    input: Value, size: Value = 3, mode: Option = "reflect", cval: Option = 0.0,
    origin: Option = 0, *,
    axes: Axis = None,
) -> Value:  # fmt: skip
    return _uniform(input, size, mode=mode, cval=cval, origin=origin, axes=axes)


def _edges(across: list[float]) -> Function:
    """Return a filter that takes a difference along one axis, and applies the weights `across` along all other axes."""

    def rule(input: Value, axis: int = -1, mode: Option = "reflect", cval: Option = 0.0) -> Value:
        ndim = ndim_of(input)
        modes = each(mode, ndim)
        result = _correlate1d(input, [-1, 0, 1], axis, modes[axis], cval)
        for other in range(ndim):
            if other != axis % ndim:
                result = _correlate1d(result, across, other, modes[other], cval)
        return result

    return rule


def _laplace(input: Value, mode: Option = "reflect", cval: Option = 0.0, *, axes: Axis = None) -> Value:
    chosen = _chosen(axes, ndim_of(input))
    parts = [_correlate1d(input, [1, -2, 1], axis, way, cval)
             for axis, way in zip(chosen, each(mode, len(chosen)), strict=True)]  # fmt: skip
    return _total(parts, input)


def _gaussian_derivatives(
    input: Value, sigma: Value, order: int, mode: Option, cval: Option, axes: Axis, **options: Option
) -> list[Value]:
    """The derivative along each axis of the image that is smoothed along all axes, with the mode of that axis."""
    ndim = ndim_of(input)
    chosen = _chosen(axes, ndim)
    return [_gaussian_filter(input, sigma, [order * (i == axis) for i in range(ndim)], way, cval, **options)
            for axis, way in zip(chosen, each(mode, len(chosen)), strict=True)]  # fmt: skip


def _gaussian_laplace(
    input: Value, sigma: Value, mode: Option = "reflect", cval: Option = 0.0, *, axes: Axis = None, **options: Option
) -> Value:
    """The sum of the second derivatives; the image is smoothed along the given axes only."""
    chosen = _chosen(axes, ndim_of(input))
    if len(chosen) < ndim_of(input):
        widths = dict(zip(chosen, each(sigma, len(chosen)), strict=True))
        sigma = [widths.get(axis, 0.0) for axis in range(ndim_of(input))]
    parts = _gaussian_derivatives(input, sigma, 2, mode, cval, axes, **options)
    return _total(parts, input)


def _gaussian_gradient_magnitude(
    input: Value, sigma: Value, mode: Option = "reflect", cval: Option = 0.0, *, axes: Axis = None, **options: Option
) -> Value:
    parts = _gaussian_derivatives(input, sigma, 1, mode, cval, axes, **options)
    if not parts:
        return _total(parts, input)
    return root(mark_underflow(sum(part * part for part in parts), *[part[None] for part in parts], axis=0))


def _distance_transform_edt(
    input: Value, sampling: Value = None, return_distances: bool = True, return_indices: bool = False,
    distances: Option = None, indices: Option = None,
) -> Value:  # fmt: skip
    """The distances depend on the side lengths of a pixel; which pixel of the background is nearest is a constant."""
    if not traced_inside(sampling):
        return _constant_distances(input, sampling, return_distances, return_indices, distances, indices)
    require(distances is None and indices is None, "ndimage.distance_transform_edt", "distances=None and indices=None")
    lengths = np.broadcast_to(np.asarray(sampling), (max(ndim_of(input), 1),))
    nearest = evaluated(_nearest_background, input, lengths)
    away = np.indices(shape_of(input)) - nearest
    far = np.any(away != 0, axis=0)
    squares = np.einsum("i...,i->...", away * away, lengths * lengths)
    found = (np.where(far, np.sqrt(np.where(far, squares, 1.0)), 0.0), nearest)
    wanted = [part for part, asked in zip(found, (return_distances, return_indices), strict=True) if asked]
    return wanted[0] if len(wanted) == 1 else tuple(wanted)


_constant_distances = constant(scipy.ndimage.distance_transform_edt)


def _nearest_background(image: Value, lengths: Value) -> Value:
    return scipy.ndimage.distance_transform_edt(image, lengths, return_distances=False, return_indices=True)


# Interpolation.


def _spline_filter1d(input: Value, order: int = 3, axis: int = -1, mode: str = "mirror") -> Value:
    return by_matrix(lambda rows: scipy.ndimage.spline_filter1d(rows, order, 0, mode=mode), np.asarray(input), axis)


def _spline_filter(input: Value, order: int = 3, mode: str = "mirror") -> Value:
    for axis in range(ndim_of(input) if order > 1 else 0):
        input = _spline_filter1d(input, order, axis, mode)
    return input


def _bspline(order: int, t: Value) -> Value:
    """The B-spline of an order at the distance `t` from its middle."""
    powers = (np.maximum(t + (order + 1) / 2 - i, 0.0) ** order for i in range(order + 1))
    return sum((-1) ** i * math.comb(order + 1, i) * power for i, power in enumerate(powers)) / math.factorial(order)


def _mirrored(places: Value, n: int) -> Value:
    around = np.abs(places) % max(2 * n - 2, 1)
    return np.where(around < n, around, 2 * n - 2 - around)


def _sampled(input: Value, coordinates: list[Value], order: int, mode: str, cval: Option, prefilter: bool) -> Value:
    """Interpolate an image at coordinates by the nearest element, by the corners of the cell, or by a spline."""
    require(mode in ("constant", "nearest"), "ndimage.map_coordinates", "mode 'constant' or 'nearest'")
    reals("ndimage.map_coordinates", *coordinates)
    if order > 1 and prefilter:
        if mode == "nearest":  # as SciPy does, so that the spline is nearly constant beyond the edges
            input, coordinates = np.pad(input, 12, mode="edge"), [c + 12 for c in coordinates]
        input = _spline_filter(input, order, mode=mode)
    sizes = shape_of(input)
    if mode == "nearest":
        coordinates = [np.clip(c, 0, n - 1) for c, n in zip(coordinates, sizes, strict=True)]
    outside: Any = False
    for c, n in zip(coordinates, sizes, strict=True):
        outside = outside | (plain(c) < 0) | (plain(c) > n - 1)
    if order == 0:
        places = tuple(evaluated(_nearest(n), c) for c, n in zip(coordinates, sizes, strict=True))
        return np.where(outside, cval, getitem(input, places))
    return np.where(outside, cval, _weighted_corners(input, coordinates, order))


def _weighted_corners(input: Value, coordinates: list[Value], order: int) -> Value:
    """The sum of the elements around some coordinates, weighted by B-splines of their distances."""
    sizes = shape_of(input)
    firsts = [evaluated(_cell(n) if order == 1 else _first(order), c) for c, n in zip(coordinates, sizes, strict=True)]
    total: Value = 0.0
    for corner in np.ndindex((order + 1,) * len(sizes)):
        weight: Value = 1.0
        for c, first, step in zip(coordinates, firsts, corner, strict=True):
            t = c - (first + step)
            weight = weight * (_bspline(order, t) if order > 1 else 1 + t if step else 1 - (c - first))
        places = tuple(_mirrored(first + step, n) for first, step, n in zip(firsts, corner, sizes, strict=True))
        total = total + weight * getitem(input, places)
    return total


def _first(order: int) -> Function:
    return lambda c: np.floor(c if order % 2 else c + 0.5).astype(int) - order // 2


def _nearest(n: int) -> Function:
    return lambda c: np.clip(np.floor(c + 0.5), 0, n - 1).astype(int)


def _cell(n: int) -> Function:
    return lambda c: np.clip(np.floor(c), 0, max(n - 2, 0)).astype(int)


def _map_coordinates(
    input: Value, coordinates: object, order: int = 3, mode: str = "constant",
    cval: Option = 0.0, prefilter: bool = True,
) -> Value:  # fmt: skip
    coordinates = np.asarray(coordinates)
    points = [coordinates[i] for i in range(shape_of(coordinates)[0])]
    return _sampled(np.asarray(input), points, order, mode, cval, prefilter)


def _affine_transform(
    input: Value, matrix: Value, offset: object = 0.0, output_shape: Value = None,
    order: int = 3, mode: str = "constant", cval: Option = 0.0, prefilter: bool = True,
) -> Value:  # fmt: skip
    input, matrix = np.asarray(input), np.asarray(matrix)
    ndim = ndim_of(input)
    if ndim_of(matrix) == 1:
        matrix = np.diag(matrix)
    if shape_of(matrix)[1] == ndim + 1:
        matrix, offset = matrix[:ndim, :ndim], matrix[:ndim, ndim]
    grid = np.indices(shape_of(input) if output_shape is None else output_shape).astype(float)
    moved = np.tensordot(matrix, grid, axes=(1, 0))
    offset = np.reshape(np.broadcast_to(np.asarray(offset), (ndim,)), (ndim,) + (1,) * ndim)
    return _map_coordinates(input, moved + offset, order, mode, cval, prefilter)


def _shift(
    input: Value, shift: Value, order: int = 3, mode: str = "constant", cval: Option = 0.0,
    prefilter: bool = True,
) -> Value:  # fmt: skip
    ndim = ndim_of(input)
    offset = -np.broadcast_to(np.asarray(shift), (ndim,))
    return _affine_transform(input, np.eye(ndim), offset, None, order, mode, cval, prefilter)


def _zoom(
    input: Value, zoom: object, order: int = 3, mode: str = "constant", cval: Option = 0.0,
    prefilter: bool = True, *, grid_mode: bool = False,
) -> Value:  # fmt: skip
    require(not traced_inside(zoom) and not grid_mode, "ndimage.zoom", "the image, with grid_mode=False")
    sizes = shape_of(input)
    new = [int(round(n * z)) for n, z in zip(sizes, each(zoom, len(sizes)), strict=True)]
    steps = [(n - 1) / (m - 1) if m > 1 else 1.0 for n, m in zip(sizes, new, strict=True)]
    lines = [np.minimum(np.arange(m) * step, n - 1.0) for m, n, step in zip(new, sizes, steps, strict=True)]
    grid = np.stack(np.meshgrid(*lines, indexing="ij"))
    return _map_coordinates(input, grid, order, mode, cval, prefilter)


def _rotate(
    input: Value, angle: Value, axes: Axes = (1, 0), reshape: bool = True, order: int = 3,
    mode: str = "constant", cval: Option = 0.0, prefilter: bool = True,
) -> Value:  # fmt: skip
    ndim = ndim_of(input)
    first, second = sorted(axis % ndim for axis in axes)
    image = np.moveaxis(np.asarray(input), (first, second), (-2, -1))
    c, s = np.cos(angle * np.pi / 180), np.sin(angle * np.pi / 180)
    matrix = np.stack([np.stack([c, s]), np.stack([-s, c])])
    size = new = shape_of(image)[-2:]
    if reshape:
        corners = np.matmul(plain(matrix), np.array([[0, 0, size[0], size[0]], [0, size[1], 0, size[1]]]))
        new = tuple(int(plain(n)) for n in np.ptp(corners, axis=1) + 0.5)
    offset = (np.array(size) - 1) / 2 - np.matmul(matrix, (np.array(new) - 1) / 2)
    planes = np.reshape(image, (-1, *size))
    turned = [
        _affine_transform(planes[i], matrix, offset, new, order, mode, cval, prefilter)
        for i in range(shape_of(planes)[0])
    ]
    return np.moveaxis(np.reshape(np.stack(turned), (*shape_of(image)[:-2], *new)), (-2, -1), (first, second))


def _geometric_transform(
    input: Value, mapping: Function, output_shape: Value = None, order: int = 3, mode: str = "constant",
    cval: Option = 0.0, prefilter: bool = True, extra_arguments: tuple[Value, ...] = (),
    extra_keywords: Params | None = None,
) -> Value:  # fmt: skip
    shape = shape_of(input) if output_shape is None else tuple(output_shape)
    points = [np.stack(mapping(place, *extra_arguments, **(extra_keywords or {}))) for place in np.ndindex(shape)]
    coordinates = np.reshape(np.stack(points, axis=1), (ndim_of(input), *shape))
    return as_computed(scipy.ndimage.map_coordinates, _map_coordinates)(
        input, coordinates, order=order, mode=mode, cval=cval, prefilter=prefilter
    )


def _fourier(name: str) -> Function:
    """Return the rule of a filter of a Fourier transform: a product with the filter's result for an image of ones."""
    original = getattr(scipy.ndimage, name)

    def rule(input: Value, n: int = -1, axis: int = -1, **amount: Option) -> Value:
        require(not traced_inside(amount), f"ndimage.{name}", "the image")
        x = np.asarray(input)
        ones = np.ones(shape_of(x), complex if name == "fourier_shift" else float)
        return x * original(ones, n=n, axis=axis, **amount)

    return rule


RULES: list[Reached] = [with_output(*row) for row in rules_of(scipy.ndimage, {
    "correlate": _correlate, "convolve": _convolve, "correlate1d": _correlate1d,
    "gaussian_filter": _gaussian_filter, "gaussian_filter1d": _gaussian_filter1d,
    "uniform_filter": _uniform_filter, "uniform_filter1d": _uniform_filter1d, "sobel": _edges([1, 2, 1]),
    "prewitt": _edges([1, 1, 1]), "laplace": _laplace, "gaussian_laplace": _gaussian_laplace,
    "gaussian_gradient_magnitude": _gaussian_gradient_magnitude, "map_coordinates": _map_coordinates,
    "affine_transform": _affine_transform, "shift": _shift, "zoom": _zoom, "rotate": _rotate,
    "spline_filter": _spline_filter, "spline_filter1d": _spline_filter1d,
    **{name: _fourier(name) for name in (
        "fourier_gaussian", "fourier_uniform", "fourier_ellipsoid", "fourier_shift")},
    **{name: constant(getattr(scipy.ndimage, name)) for name in (
        "label", "maximum_position", "minimum_position")},
    "distance_transform_edt": _distance_transform_edt,
})] + [calling_back("geometric_transform", _geometric_transform)] + OF_RANKS  # fmt: skip
