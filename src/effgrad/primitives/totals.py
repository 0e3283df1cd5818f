"""Sums of cotangents over axes along which their arguments were repeated, and repetitions; fast for plain arrays."""

import math

import numpy

from effgrad.arrays.layout import DOUBLES
from effgrad.arrays.reach import np
from effgrad.vocabulary import Axis, Cotangent, Shape, Value

# NumPy sums slowly rows up to length SHORT and up to NARROW columns, in arrays larger than LONG.
SHORT, NARROW, LONG = 64, 256, 1000
# Functions of NumPy itself, without rules.
_ones, _array = numpy.ones, numpy.array


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
    return np.add.reduce(x, axis=axes)


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
