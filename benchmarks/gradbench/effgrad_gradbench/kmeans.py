"""k-means clustering: the sum of squared distances to the closest centroid, and Newton's direction.

The Hessian is diagonal, so its product with a vector of ones is all of it: one derivative of the gradient.
"""

import numpy as np

from effgrad import grad, jvp
from effgrad_gradbench.fields import array

# Points are taken in blocks whose distances to all centroids stay in a processor's cache.
BLOCK = 1 << 17


def cost(points, centroids):
    size = max(1, BLOCK // len(centroids))
    return sum(closest(points[start : start + size], centroids) for start in range(0, len(points), size))


def closest(points, centroids):
    """The squared distances to the closest centroids; the square of the point itself is the same for all of them."""
    apart = np.sum(centroids**2, axis=1) + (-2 * points) @ centroids.T
    return np.sum(np.min(apart, axis=1)) + np.sum(points**2)


def direction(points, centroids):
    gradient = grad(lambda c: cost(points, c))
    first, second = jvp(gradient, (centroids,), (np.ones(centroids.shape),))
    return first / second


FUNCTIONS = {"cost": cost, "dir": direction}


def read(source):
    points = array(source, "points", None, None)
    return points, array(source, "centroids", None, points.shape[1])
