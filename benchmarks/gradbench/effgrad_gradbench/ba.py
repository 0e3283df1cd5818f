"""Bundle adjustment: weighted errors of reprojection of points in cameras, and their sparse Jacobian.

A camera has a rotation (axis times angle), a centre, a focal length, a principal point and two coefficients of radial
distortion: eleven numbers. An observation is of one point in one camera, with a weight; its two errors depend on these
fifteen numbers only, so one gradient for each of the two errors gives their rows of the Jacobian for all observations
at once. The rows of the regularisation of the weights, 1 - w^2, follow below them.

The suite sends one camera, point, weight and feature, to be repeated; observation i is of point i mod m in camera
i mod n. Of the matrix it asks for the first thirty entries and the last one of each array of its CSR form.
"""

import numpy as np

from effgrad import grad
from effgrad_gradbench.fields import array, field, integer, number


def rotate(vector, point):
    """Rodrigues' formula, for vectors whose components are arrays; linear at angle 0."""
    square = dot(vector, vector)
    angle = np.sqrt(np.where(square > 0, square, 1.0))
    axis = [v / angle for v in vector]
    cosine, sine = np.cos(angle), np.sin(angle)
    along = dot(axis, point) * (1 - cosine)
    turned = [p * cosine + c * sine + a * along for p, c, a in zip(point, cross(axis, point), axis, strict=True)]
    small = [p + c for p, c in zip(point, cross(vector, point), strict=True)]
    return [np.where(square > 0, t, s) for t, s in zip(turned, small, strict=True)]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def cross(a, b):
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def reprojection_errors(numbers, features):
    """The two errors of all observations; `numbers` are fifteen arrays, of the camera, the point and the weight."""
    rotation, centre, (focal, *principal), radial = numbers[:3], numbers[3:6], numbers[6:9], numbers[9:11]
    point, weight = numbers[11:14], numbers[14]
    x, y, z = rotate(rotation, [p - c for p, c in zip(point, centre, strict=True)])
    image = x / z, y / z
    square = dot(image, image)
    scale = (1 + radial[0] * square + radial[1] * square**2) * focal
    return [weight * (i * scale + p - f) for i, p, f in zip(image, principal, features, strict=True)]


def regularisation(weights):
    return 1 - weights**2


def of_each(cameras, points, weights, camera, point):
    """The fifteen numbers of all observations."""
    return [*(c[camera] for c in cameras.T), *(x[point] for x in points.T), weights]


def objective(cameras, points, weights, features, camera, point):
    errors = reprojection_errors(of_each(cameras, points, weights, camera, point), features.T)
    return np.stack(errors, axis=1), regularisation(weights)


def jacobian(cameras, points, weights, features, camera, point):
    """The sparse Jacobian in CSR form, as `scipy.sparse.csr_array` takes it: its data, indices and row pointers."""
    (n, width), (m, size), p = cameras.shape, points.shape, len(weights)
    # An observation's errors depend on its own numbers only: the gradient of their sum is that of each.
    first, second = (grad(lambda numbers, i=i: np.sum(reprojection_errors(numbers, features.T)[i])) for i in range(2))
    numbers = of_each(cameras, points, weights, camera, point)
    diagonal = grad(lambda w: np.sum(regularisation(w)))(weights)
    own = width * n + size * m + np.arange(p)
    columns = np.column_stack([
        width * camera[:, None] + np.arange(width), width * n + size * point[:, None] + np.arange(size), own
    ])  # fmt: skip
    count = columns.shape[1]
    return (
        np.concatenate([np.stack([*first(numbers), *second(numbers)], axis=1).ravel(), diagonal]),
        np.concatenate([np.column_stack([columns, columns]).ravel(), own]),
        np.concatenate([np.arange(0, 2 * p * count, count), 2 * p * count + np.arange(p + 1)]),
    )


FUNCTIONS = {"objective": objective, "jacobian": jacobian}


def read(source):
    n, m, p = (integer(source, name) for name in "nmp")
    weight = number(field(source, "w"), "w")
    each = np.arange(p)
    return (
        np.tile(array(source, "cam", 11), (n, 1)), np.tile(array(source, "x", 3), (m, 1)), np.full(p, weight),
        np.tile(array(source, "feat", 2), (p, 1)), each % n, each % m,
    )  # fmt: skip


def write(name, result):
    if name == "objective":
        errors, regular = result
        return {
            "reproj_error": {"elements": errors[0].tolist(), "repeated": len(errors)},
            "w_err": {"element": float(regular[0]), "repeated": len(regular)},
        }
    ends = [[*part[:30].tolist(), part[-1].item()] for part in result]
    return dict(zip(("vals", "cols", "rows"), ends, strict=True))
