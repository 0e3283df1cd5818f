"""The sparse Jacobian of bundle adjustment, which the peers put together as we do: in NumPy."""

import numpy


def csr(rows, diagonal, cameras, points, camera, point):
    """The sparse Jacobian of bundle adjustment, from the two rows of each observation."""
    p, n, m = len(diagonal), 11 * len(cameras), 3 * len(points)
    own = n + m + numpy.arange(p)
    columns = numpy.column_stack([
        11 * camera[:, None] + numpy.arange(11), n + 3 * point[:, None] + numpy.arange(3), own
    ])  # fmt: skip
    return (
        numpy.concatenate([numpy.stack(rows, axis=1).ravel(), diagonal]),
        numpy.concatenate([numpy.stack([columns, columns], axis=1).ravel(), own]),
        numpy.concatenate([numpy.arange(0, 30 * p, 15), 30 * p + numpy.arange(p + 1)]),
    )
