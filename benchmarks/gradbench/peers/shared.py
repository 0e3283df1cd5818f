"""What several peers share: a step of Runge and Kutta, the way to and from tensors, and the sparse Jacobian of bundle
adjustment, which they put together as we do, in NumPy."""

import numpy


def csr(rows, diagonal, cameras, points, camera, point):
    """The sparse Jacobian of bundle adjustment, from the two rows of each observation."""
    p, n, m = len(diagonal), 11 * len(cameras), 3 * len(points)
    own = n + m + counted(p)
    columns = numpy.column_stack([
        11 * camera[:, None] + counted(11), n + 3 * point[:, None] + counted(3), own
    ])  # fmt: skip
    return (
        numpy.concatenate([numpy.stack(rows, axis=1).ravel(), diagonal]),
        numpy.concatenate([numpy.stack([columns, columns], axis=1).ravel(), own]),
        numpy.concatenate([15 * counted(2 * p), 30 * p + counted(p + 1)]),
    )


def counted(n):
    """Numbers from 0 on, of the 32 bits that the indices of sparse matrices have."""
    return numpy.arange(n, dtype=numpy.int32)


def runge_kutta(slope, y, h):
    """One step of the classical method."""
    k1 = slope(y)
    k2 = slope(y + h / 2 * k1)
    k3 = slope(y + h / 2 * k2)
    k4 = slope(y + h * k3)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def as_tensors(arguments, tensor):
    """Arrays, and the number of `hello`, as tensors, at any depth of tuples."""
    if isinstance(arguments, tuple) and not all(isinstance(a, int) for a in arguments):
        return tuple(as_tensors(a, tensor) for a in arguments)
    if isinstance(arguments, numpy.ndarray):
        return tensor(arguments)
    return tensor(numpy.float64(arguments)) if arguments == 3.0 else arguments


def as_arrays(output, array):
    """A result of dictionaries, lists and tuples with `array` of each leaf."""
    if isinstance(output, dict):
        return {key: as_arrays(value, array) for key, value in output.items()}
    if isinstance(output, list | tuple):
        return [as_arrays(value, array) for value in output]
    return array(output)
