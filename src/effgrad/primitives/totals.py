"""Sums of cotangents over axes along which their arguments were repeated, and repetitions; fast for plain arrays."""

import math

import numpy

from effgrad.arrays.layout import DOUBLES
from effgrad.arrays.reach import np
from effgrad.vocabulary import Axis, Cotangent, Shape, Value

# NumPy sums slowly rows up to length SHORT and up to NARROW columns, in arrays larger than LONG.
SHORT, NARROW, LONG = 64, 256, 1000
# Functions of NumPy itself, without rules.
_ones, _array, _add, _sum = numpy.ones, numpy.array, numpy.add, numpy.add.reduce
# NumPy adds the elements of a row one after the other, or in pairs first; longer rows than these in blocks.
UNPAIRED, PAIRED = 7, 15
# The sign of NumPy's sum of negative zeros.
_OF_ZEROS = _sum(numpy.full((2, 2), -0.0), axis=-1)[0]


def sum_as_numpy(x: Value, axis: Axis) -> Value:
    """Return `np.add.reduce(x, axis=axis)`, to the bit; of a plain array with many short rows in less time.

    NumPy calls its sum for each row. Here columns are added, in the order in which NumPy adds a row's elements.
    """
    if type(x) is not numpy.ndarray or x.size <= LONG or x.ndim < 2 or not 1 < x.shape[-1] <= PAIRED:
        return _sum(x, axis=axis)
    if axis not in (-1, x.ndim - 1, (x.ndim - 1,)) or x.dtype.char not in "fd" or not x.flags.c_contiguous:
        return _sum(x, axis=axis)
    columns = [x[..., k] for k in range(x.shape[-1])]
    total = columns[0] + columns[1]
    rest = columns[2:]
    if len(columns) > UNPAIRED:
        second = columns[4] + columns[5]
        total += columns[2] + columns[3]
        second += columns[6] + columns[7]
        total += second
        rest = columns[8:]
    for column in rest:
        total += column
    return _add(total, x.dtype.type(_OF_ZEROS), out=total)


def sum_to(g: Cotangent, shape: Shape) -> Value:
    given = np.shape(g)
    extra = len(given) - len(shape)
    axes = (*range(extra), *[extra + i for i, n in enumerate(shape) if n == 1 and given[extra + i] != 1])
    total = sum_over(g, axes)
    return total.reshape(shape) if shape else total


def sum_over(g: Cotangent, axes: Axis) -> Value:
    """Return the sum of a plain or traced array over some axes, which are in order."""
    return total_over(g, axes) if type(g) is np.ndarray else np.sum(g, axis=axes)


def total_over(x: Value, axes: Axis) -> Value:
    """Return the sum of a plain array over some axes, in order, or over all axes (None).

    NumPy's sum over many short rows, or down few columns, takes up to ten times longer than a product with ones.
    """
    if type(axes) is int and -x.ndim <= axes < x.ndim:
        axes = (axes % x.ndim,)
    if type(axes) is tuple and x.size > LONG and 0 < len(axes) < x.ndim and x.dtype.char in "fd":
        first, last = axes[0], axes[-1] + 1
        if 0 <= first and last <= x.ndim and axes == tuple(range(first, last)) and x.flags.c_contiguous:
            rows, length, columns = (math.prod(part) for part in (x.shape[:first], x.shape[first:last], x.shape[last:]))
            kept = x.shape[:first] + x.shape[last:]
            if columns == 1 and length <= SHORT:
                return (x.reshape(rows, length) @ _ones(length, x.dtype)).reshape(kept)
            if 1 < columns <= NARROW and length > 1 and length * columns > SHORT:
                return np.matmul(_ones(length, x.dtype), x.reshape(rows, length, columns)).reshape(kept)
    return _sum(x, axis=axes)


def spread(g: Cotangent, shape: Shape) -> Value:
    """Return `np.broadcast_to(g, shape)`, for plain arrays in a third of the time."""
    kind = type(g)
    if kind in DOUBLES:
        g = _array(g)
    elif kind is not np.ndarray or g.dtype.kind not in "fc" or not g.flags.c_contiguous:
        return np.broadcast_to(g, shape)
    lead = (0,) * (len(shape) - g.ndim)
    return np.ndarray(
        shape, g.dtype, g, 0, (*lead, *[0 if n == 1 else step for n, step in zip(g.shape, g.strides, strict=True)])
    )
