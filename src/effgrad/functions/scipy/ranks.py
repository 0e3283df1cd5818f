"""Order statistics of the windows of an image: `scipy.ndimage`'s rank and grey morphology filters, `signal.medfilt2d`.

The elements of the window around each element are gathered along a last axis. A filter is then a maximum, a minimum or
one of the sorted elements along that axis.
"""

import functools
import inspect
import math
from typing import Any

import scipy.ndimage
import scipy.signal
from numpy.lib.array_utils import normalize_axis_tuple

from effgrad.arrays.layout import dtype_of, ndim_of, shape_of
from effgrad.arrays.reach import np
from effgrad.arrays.written import handle
from effgrad.functions.numpy.padding import pad
from effgrad.functions.scipy.tables import Calling, by_name, reals, require, rules_of
from effgrad.primitives.given import as_computed
from effgrad.vocabulary import Axis, Function, Option, Params, Reached, Value

# NumPy's names of the modes in which SciPy pads an image.
BEYOND: dict[str, Value] = {
    "reflect": "symmetric", "grid-mirror": "symmetric", "mirror": "reflect", "nearest": "edge", "wrap": "wrap",
    "grid-wrap": "wrap", "constant": "constant", "grid-constant": "constant",
}  # fmt: skip


def each(value: Value, count: int) -> list[Value]:
    """Return the values of a parameter for each axis."""
    return [value] * count if isinstance(value, str) or ndim_of(value) == 0 else list(value)


def continued(x: Value, around: Value, mode: str, cval: Option) -> Value:
    beyond = BEYOND[mode]
    return pad(x, around, constant_values=cval) if beyond == "constant" else np.pad(x, around, mode=beyond)


def _windows(
    input: Value, size: Value = None, footprint: object = None, mode: Option = "reflect", cval: Option = 0.0,
    origin: Option = 0, *, axes: Axis = None,
) -> Value:  # fmt: skip
    """Return the elements under the footprint around each element, along a last axis."""
    x = np.asarray(input)
    axes = _axes_of(x, axes)
    count = len(axes)
    footprint = np.ones(each(size, count), bool) if footprint is None else np.asarray(footprint, bool)
    footprint = np.expand_dims(footprint, [axis for axis in range(ndim_of(x)) if axis not in axes])
    if 0 in shape_of(x):
        return np.zeros((*shape_of(x), np.count_nonzero(footprint))) * np.sum(x)
    for axis, shift, way in zip(axes, each(origin, count), each(mode, count), strict=True):
        n, around = footprint.shape[axis], [(0, 0)] * ndim_of(x)
        around[axis] = (n // 2 + shift, n - 1 - n // 2 - shift)
        x = continued(x, around, way, cval)
    return np.lib.stride_tricks.sliding_window_view(x, footprint.shape)[..., footprint]


def _axes_of(x: Value, axes: Axis) -> tuple[int, ...]:
    axes = normalize_axis_tuple(range(ndim_of(x)) if axes is None else axes, ndim_of(x))
    # SciPy orders the axes of the footprint by themselves, and sizes and origins by the call.
    require(list(axes) == sorted(axes), "ndimage", "axes in increasing order")
    return axes


def with_output(owner: Any, name: str, rule: Function, runs: bool = True) -> Reached:
    """Return the rule of a filter that takes `output`: an array that it writes to and returns, or the result's type.

    A filter along several axes keeps what it has between them in that type, so the values are those of a run of it;
    without `runs` they are the rule's.
    """
    original: Any = getattr(owner, name)
    signature = inspect.signature(original)

    def filtered(*args: Value, **options: Option) -> Value:
        call = signature.bind(*args, **options)
        default = signature.parameters["output"].default  # a type for splines
        output = call.arguments.pop("output", default)
        if output is default:
            return rule(*call.args, **call.kwargs)
        if output is None:
            output = dtype_of(call.arguments["input"])
        given = isinstance(output, np.ndarray)
        require(given or isinstance(output, str | type | np.dtype), f"ndimage.{name}", "an array or a type as `output`")
        kind = dtype_of(output) if given else np.dtype(output)

        def converted(*args: Value, **options: Option) -> Value:
            return np.astype(rule(*args, **options), kind)

        plain_run = functools.partial(original, output=kind.type if given else output)
        by_original = as_computed(plain_run, converted) if runs else converted
        result = by_original(*call.args, **call.kwargs)
        if not given:
            return result
        if shape_of(output) != shape_of(result):
            raise RuntimeError("output shape not correct")
        np.copyto(handle(output) if type(output) is np.ndarray else output, result)
        return output

    return owner, name, functools.wraps(rule)(filtered) if "output" in signature.parameters else rule


def calling_back(name: str, definition: Function) -> Reached:
    """Return the rule of a filter that calls a function of the user, which may be a closure over traced values."""
    original = getattr(scipy.ndimage, name)
    rule = by_name(original, definition, f"scipy.ndimage.{name}")
    return scipy.ndimage, name, Calling(with_output(scipy.ndimage, name, rule, runs=False)[-1])


def _maximum(input: Value, *args: Value, **options: Option) -> Value:
    return np.max(_windows(input, *args, **options), axis=-1)


def _minimum(input: Value, *args: Value, **options: Option) -> Value:
    return np.min(_windows(input, *args, **options), axis=-1)


def _along_one(function: Function) -> Function:
    def rule(
        input: Value, size: int, axis: int = -1, mode: str = "reflect", cval: Option = 0.0, origin: int = 0
    ) -> Value:
        ndim = ndim_of(input)
        sizes, origins = [1] * ndim, [0] * ndim
        sizes[axis], origins[axis] = size, origin
        return function(input, sizes, None, mode, cval, origins)

    return rule


def _ranked(found: Value, rank: int) -> Value:
    return np.sort(found, axis=-1)[..., rank]


def _rank_filter(input: Value, rank: int, *args: Value, **options: Option) -> Value:
    return _ranked(_windows(input, *args, **options), rank)


def _percentile_filter(input: Value, percentile: float, *args: Value, **options: Option) -> Value:
    found = _windows(input, *args, **options)
    count = shape_of(found)[-1]
    percentile = percentile + 100 if percentile < 0 else percentile
    return _ranked(found, count - 1 if percentile == 100 else int(count * percentile / 100))


def _median_filter(input: Value, *args: Value, **options: Option) -> Value:
    found = _windows(input, *args, **options)
    return _ranked(found, shape_of(found)[-1] // 2)


def _grey(dilates: bool) -> Function:
    """Return a grey dilation or erosion: a window's greatest sum with the structure, or least difference from it."""

    def rule(
        input: Value, size: Value = None, footprint: Value = None, structure: object = None,
        mode: Option = "reflect", cval: Option = 0.0, origin: Option = 0, *, axes: Axis = None,
    ) -> Value:  # fmt: skip
        count = len(_axes_of(input, axes))
        if footprint is None:
            footprint = np.ones(each(size, count) if structure is None else shape_of(structure), bool)
        footprint = np.asarray(footprint, bool)
        heights: Any = 0.0 if structure is None else np.asarray(structure)
        if dilates:
            footprint = np.flip(footprint)
            heights = heights if structure is None else np.flip(heights)
            origin = [-shift - (n % 2 == 0) for shift, n in zip(each(origin, count), footprint.shape, strict=True)]
        heights = heights if structure is None else heights[footprint]
        found = _windows(input, None, footprint, mode, cval, origin, axes=axes)
        return np.max(found + heights, axis=-1) if dilates else np.min(found - heights, axis=-1)

    return rule


_dilation, _erosion = _grey(True), _grey(False)


def _laplace(input: Value, *args: Value, **options: Option) -> Value:
    return _dilation(input, *args, **options) + _erosion(input, *args, **options) - 2 * input


def _generic_filter(
    input: Value, function: Function, size: Value = None, footprint: Value = None, mode: Option = "reflect",
    cval: Option = 0.0, origin: Option = 0, extra_arguments: tuple[Value, ...] = (),
    extra_keywords: Params | None = None, *, axes: Axis = None,
) -> Value:  # fmt: skip
    input = np.asarray(input)
    gathered = _windows(input, size, footprint, mode, cval, origin, axes=axes)
    *shape, count = shape_of(gathered)
    rows = np.reshape(gathered, (math.prod(shape), count))
    results = [function(rows[i], *extra_arguments, **(extra_keywords or {})) for i in range(math.prod(shape))]
    reals("ndimage.generic_filter", *results)
    return np.astype(np.reshape(np.stack(results), shape), dtype_of(input))


def _medfilt2d(input: Value, kernel_size: object = 3) -> Value:
    return _median_filter(input, kernel_size, mode="constant")


RULES: list[Reached] = [with_output(*row) for row in rules_of(scipy.ndimage, {
    "maximum_filter": _maximum, "minimum_filter": _minimum, "maximum_filter1d": _along_one(_maximum),
    "minimum_filter1d": _along_one(_minimum), "rank_filter": _rank_filter, "median_filter": _median_filter,
    "percentile_filter": _percentile_filter, "grey_dilation": _dilation, "grey_erosion": _erosion,
    "morphological_laplace": _laplace,
})] + [calling_back("generic_filter", _generic_filter)]  # fmt: skip
SIGNAL_RULES: list[Reached] = rules_of(scipy.signal, {"medfilt2d": _medfilt2d})
