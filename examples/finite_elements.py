"""Heat in a plate, by linear finite elements: the temperature for given conductivities, and how well it fits."""

import numpy as np
import scipy.sparse as sp


def grid(n):
    """The corners of the triangles of a square of n by n cells, and their coordinates."""
    points = np.stack(np.meshgrid(np.linspace(0, 1, n + 1), np.linspace(0, 1, n + 1)), axis=-1).reshape(-1, 2)
    first = (np.arange(n)[:, None] * (n + 1) + np.arange(n)).ravel()
    lower = np.stack([first, first + 1, first + n + 2], axis=1)
    upper = np.stack([first, first + n + 2, first + n + 1], axis=1)
    return points, np.concatenate([lower, upper])


def stiffness(points, triangles, conductivity):
    """The stiffness matrix of triangles, each with its conductivity."""
    a, b, c = (points[triangles[:, k]] for k in range(3))
    sides = np.stack([c - b, a - c, b - a], axis=1)
    area = np.abs(sides[:, 0, 0] * sides[:, 1, 1] - sides[:, 0, 1] * sides[:, 1, 0]) / 2
    local = np.einsum("tik,tjk->tij", sides, sides) * (conductivity / (4 * area))[:, None, None]
    rows = np.repeat(triangles, 3, axis=1).ravel()
    columns = np.tile(triangles, (1, 3)).ravel()
    return sp.coo_matrix((local.ravel(), (rows, columns)), shape=(len(points),) * 2).tocsc()


def temperature(conductivity, points, triangles):
    """Heated everywhere, and held at 0 on the left and right side."""
    matrix = stiffness(points, triangles, conductivity)
    free = np.flatnonzero((points[:, 0] > 0) & (points[:, 0] < 1))
    result = np.zeros(len(points))
    result[free] = sp.linalg.spsolve(matrix[free][:, free], np.full(len(free), 1.0 / len(points)))
    return result


def objective(conductivity, points, triangles, measured, sensors):
    """The squared distance from measured temperatures."""
    return np.sum((temperature(conductivity, points, triangles)[sensors] - measured) ** 2)
