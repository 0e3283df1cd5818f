"""Bundle adjustment: weighted errors of reprojection of points in cameras, and their sparse Jacobian.

A camera has a rotation (axis times angle), a centre, a focal length, a principal point and two coefficients of radial
distortion, eleven numbers. Observation i sees the point i mod m with the camera i mod n, and its two errors depend on
these two and its weight only: so one pass back for each of the two gives all rows of the Jacobian. The suite sends one
camera, point, weight and feature, to be repeated.
"""

import numpy as np
from scipy.sparse import csr_array

from effgrad import vjp
from effgrad_gradbench.fields import array, field, integer, number


def rotate(axis, point):
    """Rodrigues' formula, for as many rotations and points as there are rows."""
    square = np.sum(axis**2, axis=1, keepdims=True)
    angle = np.sqrt(square)
    axis = axis / angle
    along = np.sum(axis * point, axis=1, keepdims=True)
    cosine, sine = np.cos(angle), np.sin(angle)
    return point * cosine + np.cross(axis, point) * sine + axis * along * (1 - cosine)
