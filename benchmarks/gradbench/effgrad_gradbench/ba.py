"""Bundle adjustment: weighted errors of reprojection of points in cameras, and their sparse Jacobian.

A camera has a rotation (axis times angle), a centre, a focal length, a principal point and two coefficients of radial
distortion: eleven numbers. An observation is of one point in one camera, with a weight; its two errors depend on these
fifteen numbers only, so one pass back for each of the two errors gives their rows of the Jacobian for all observations
at once. The rows of the regularisation of the weights, 1 - w^2, follow below them.

The suite sends one camera, point, weight and feature, to be repeated; observation i is of point i mod m in camera
i mod n. Of the matrix it asks for the first thirty entries and the last one of each array of its CSR form.
"""

import numpy as np

from effgrad import grad, vjp
from effgrad_gradbench.fields import array, field, integer, number


def rotate(vector, point):
    """Rodrigues' formula, for as many rotations (axis times angle) and points as there are rows; linear at angle 0."""
    square = np.sum(vector**2, axis=1, keepdims=True)
    angle = np.sqrt(np.where(square > 0, square, 1.0))
    axis = vector / angle
    cosine, sine = np.cos(angle), np.sin(angle)
    along = np.sum(axis * point, axis=1, keepdims=True) * (1 - cosine)
    turned = point * cosine + np.cross(axis, point) * sine + axis * along
    return np.where(square > 0, turned, point + np.cross(vector, point))


def reprojection_errors(cameras, points, weights, features):
    """The two errors of each observation, from its camera, point, weight and feature."""
    rotation, centre, focal, principal = cameras[:, :3], cameras[:, 3:6], cameras[:, 6:7], cameras[:, 7:9]
    seen = rotate(rotation, points - centre)
    image = seen[:, :2] / seen[:, 2:]
    square = np.sum(image**2, axis=1, keepdims=True)
    distortion = 1 + cameras[:, 9:10] * square + cameras[:, 10:] * square**2
    return weights[:, None] * (image * distortion * focal + principal - features)


def regularisation(weights):
    return 1 - weights**2


def objective(cameras, points, weights, features, camera, point):
    return reprojection_errors(cameras[camera], points[point], weights, features), regularisation(weights)


def jacobian(cameras, points, weights, features, camera, point):
    """The sparse Jacobian in CSR form, as `scipy.sparse.csr_array` takes it: its data, indices and row pointers."""
    (n, width), (m, size), p = cameras.shape, points.shape, len(weights)
    _, pullback = vjp(lambda *x: reprojection_errors(*x, features), cameras[camera], points[point], weights)
    rows = [np.column_stack(pullback(np.tile(unit, (p, 1)))) for unit in np.eye(2)]
    diagonal = grad(lambda w: np.sum(regularisation(w)))(weights)
    own = width * n + size * m + counted(p)
    columns = np.column_stack([
        width * camera[:, None] + counted(width), width * n + size * point[:, None] + counted(size), own
    ])  # fmt: skip
    count = columns.shape[1]
    return (
        np.concatenate([np.stack(rows, axis=1).ravel(), diagonal]),
        np.concatenate([np.stack([columns, columns], axis=1).ravel(), own]),
        np.concatenate([count * counted(2 * p), 2 * p * count + counted(p + 1)]),
    )


def counted(n):
    """Numbers from 0 on, of the 32 bits that SciPy's sparse matrices have for their indices, as C++ does."""
    return np.arange(n, dtype=np.int32)


FUNCTIONS = {"objective": objective, "jacobian": jacobian}


def read(source):
    n, m, p = (integer(source, name) for name in "nmp")
    weight = number(field(source, "w"), "w")
    each = counted(p)
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
