"""`numpy.pad`: modes that repeat elements are one index of the array; most others pad one axis after the other."""

import math

from effgrad.arrays.layout import dtype_of, ndim_of, shape_of, size_of, without_axes
from effgrad.arrays.reach import np
from effgrad.arrays.value import FUNCTIONS, Tracer
from effgrad.errors import NoRule
from effgrad.primitives import move
from effgrad.primitives.given import as_computed
from effgrad.vocabulary import Option, Params, Value


def pad(
    array: Value, pad_width: Value, mode: Option = "constant", *, constant_values: object = 0.0,
    reflect_type: str = "even", end_values: object = 0.0, stat_length: object = None,
) -> Value:  # fmt: skip
    if mode in ("constant", "empty"):
        return _pad_with(array, pad_width, constant_values)
    if mode in ("edge", "reflect", "symmetric", "wrap") and reflect_type == "even":
        numbers = np.arange(size_of(array)).reshape(shape_of(array))
        return without_axes(np.ravel(array)[np.pad(numbers, pad_width, mode)])
    options = {"reflect_type": reflect_type, "end_values": end_values, "stat_length": stat_length}
    return _PAD_BY_AXES(array, pad_width, mode, **{k: v for k, v in options.items() if k in PADS.get(mode, ())})


def _pad_with(array: Value, pad_width: Value, value: Value) -> Value:
    shape, dtype = shape_of(array), dtype_of(array)
    np.pad(np.empty((1,) * len(shape), bool), pad_width)  # raises NumPy's errors about the widths
    widths = _widths(pad_width, len(shape))
    place = tuple(slice(before, before + n) for n, (before, _) in zip(shape, widths, strict=True))
    size = tuple(before + n + after for n, (before, after) in zip(shape, widths, strict=True))
    padded = move.scatter_add(array, shape=size, indices=(place,))
    if type(value) is float and value == 0 and math.copysign(1, value) > 0:
        return padded
    if ndim_of(value):  # NumPy places the numbers of the values
        pairs = np.arange(2 * len(shape)).reshape(-1, 2)
        numbers = np.pad(np.zeros(shape, int), pad_width, constant_values=pairs)
        value = np.ravel(np.broadcast_to(np.asarray(value), pairs.shape))[numbers]
    value = value.astype(dtype) if isinstance(value, Tracer) else np.asarray(value, dtype)
    inside = np.zeros(size, bool)
    inside[place] = True
    return np.where(inside, padded, value)


def _widths(pad_width: Value, ndim: int) -> list[tuple[int, int]]:
    """The numbers of elements that are added before and after each axis."""
    if type(pad_width) is dict:
        each: list[Value] = [pad_width.get(i, pad_width.get(i - ndim, 0)) for i in range(ndim)]
        pad_width = [np.broadcast_to(width, 2) for width in each]
    return [(int(before), int(after)) for before, after in np.broadcast_to(pad_width, (ndim, 2))]


# The modes that are padded one axis after the other, with their options.
PADS = {
    "linear_ramp": ("end_values",), "reflect": ("reflect_type",), "symmetric": ("reflect_type",),
    "mean": ("stat_length",), "maximum": ("stat_length",), "minimum": ("stat_length",), "median": ("stat_length",),
}  # fmt: skip
STATISTICS: dict[str, Value] = {"maximum": np.max, "minimum": np.min, "median": np.median}


def _pad_by_axes(array: Value, pad_width: object, mode: Option, **options: Option) -> Value:
    """Pad one axis after the other, as NumPy does, by a linear map or by a statistic of the elements near each end."""
    if mode not in PADS:
        raise NoRule("numpy.pad with a function has no derivative rule: compute the borders and use np.concatenate")
    ndim, statistic = ndim_of(array), STATISTICS.get(mode)
    for axis, (before, after) in enumerate(_widths(pad_width, ndim)):
        own = {name: _of_axis(value, axis, ndim) for name, value in options.items()}
        lines = np.moveaxis(array, axis, 0)
        if statistic:
            count = shape_of(lines)[0]
            first, last = (count if n is None else min(int(n), count) for n in own.get("stat_length", (None, None)))
            ends = [(lines[:first], before), (lines[count - last :], after)]
            low, high = (np.stack([statistic(part, axis=0)] * n) if n else part[:0] for part, n in ends)
            lines = np.concatenate([low, lines, high])
        else:
            lines = _pad_linearly(lines, (before, after), mode, own)
        array = np.moveaxis(lines, 0, axis)
    return array


def _of_axis(value: Value, axis: int, ndim: int) -> Value:
    """The pair of values of an option for one axis; NumPy takes one number, one pair, or one pair for each axis."""
    if type(value) is str or value is None:
        return value if type(value) is str else (None, None)
    return [np.reshape(value, ())] * 2 if ndim_of(value) == 0 else np.broadcast_to(value, (ndim, 2))[axis]


def _pad_linearly(lines: Value, width: tuple[int, int], mode: Option, options: Params) -> Value:
    ends = options.pop("end_values", (0.0, 0.0))
    length = options.pop("stat_length", (None, None))
    if length[0] is not None:
        options["stat_length"] = [tuple(map(int, length)), (1, 1)]
    matrix = np.pad(np.eye(shape_of(lines)[0]), (width, (0, 0)), mode, **options)
    result = np.tensordot(matrix, lines, axes=(1, 0))
    if mode == "linear_ramp":
        for end, side in zip(ends, np.eye(2), strict=True):
            ramp = np.pad(np.zeros(1), [width], mode, end_values=[tuple(side)])
            ramp = np.concatenate([ramp[: width[0]], np.zeros(shape_of(lines)[0]), ramp[width[0] + 1 :]])
            result = result + end * np.reshape(ramp, (-1, *(1,) * (ndim_of(lines) - 1)))
    return result


_PAD_BY_AXES = as_computed(np.pad, _pad_by_axes)
FUNCTIONS.enter({np.pad: pad})
