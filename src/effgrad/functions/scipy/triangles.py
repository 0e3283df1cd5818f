"""The interpolant of Clough and Tocher: a cubic on each third of each triangle, with continuous slopes.

The slopes at the points minimise the sum of the curvatures of the cubics along all edges. That is a linear system,
which SciPy solves by Gauss-Seidel iteration: Nielson, A method for interpolating scattered data based upon a minimum
norm network (1983). Values and slopes at the corners give the Bernstein coefficients of the cubics, with one more
condition: across an edge, the slope towards the centroid of the neighbour is linear along the edge. Farin, Triangular
Bernstein-Bezier patches (1986), section 6.
"""

import itertools

import numpy

from effgrad.arrays.layout import shape_of
from effgrad.arrays.reach import np
from effgrad.arrays.value import plain
from effgrad.functions.scipy.splines import elements
from effgrad.vocabulary import Value


def barycentric(corners: Value, x: Value) -> Value:
    """The barycentric coordinates [point, corner] of points in simplices with corners [point, corner, coordinate]."""
    last = corners[:, -1]
    matrix = np.swapaxes(corners[:, :-1] - last[:, None], -1, -2)
    parts = np.linalg.solve(matrix, (x - last)[..., None])[..., 0]
    return np.concatenate([parts, 1 - np.sum(parts, axis=1, keepdims=True)], axis=1)


def flattest_slopes(points: Value, values: Value, ends: Value) -> Value:
    """The slopes [point, coordinate, column] for values [point, column].

    `ends` are the points at which the edges from each point end, as SciPy's pair of their starts and their numbers.
    """
    count = shape_of(points)[0]
    starts, near = ends
    beside = numpy.zeros((count, count), bool)
    beside[numpy.repeat(numpy.arange(count), numpy.diff(starts)), near] = True
    along = points[None] - points[:, None]
    weight = np.where(beside, np.where(beside, np.sum(along**2, axis=-1), 1.0) ** -1.5, 0.0)
    squares = weight[..., None, None] * along[..., None] * along[..., None, :]
    own = np.sum(squares, axis=1)[:, :, None, :] * np.eye(count)[:, None, :, None]
    system = np.reshape(2 * own + np.transpose(squares, (0, 2, 1, 3)), (2 * count, 2 * count))
    rise = (values[None] - values[:, None])[:, :, None, :]
    right = 3 * np.sum((weight[..., None] * along)[..., None] * rise, axis=1)
    return np.reshape(np.linalg.solve(system, np.reshape(right, (2 * count, -1))), shape_of(right))


class Triangles:
    """Points of the plane, and the corners and neighbours of each triangle; `tri` is SciPy's triangulation."""

    def __init__(self, points: Value, tri: Value) -> None:
        self.points, self.corners, self.neighbours = points, tri.simplices, tri.neighbors
        self.ends = tri.vertex_neighbor_vertices

    def cubic(self, values: Value, x: Value, where: Value) -> Value:
        """The interpolant [place, column] of values [point, column] at places x in the triangles `where`."""
        around = elements(self.corners, where)
        order = np.argmin(plain(barycentric(elements(self.points, around), x)), axis=1)
        turned = (order[:, None] + np.arange(3)) % 3  # the edge opposite to the first corner is the nearest
        corners = np.take_along_axis(around, turned, 1)
        beyond = np.take_along_axis(elements(self.neighbours, where), turned, 1)
        parts = barycentric(elements(self.points, corners), x)
        slopes = flattest_slopes(self.points, values, self.ends)
        ends = elements(values, corners), elements(slopes, corners)
        return _of_thirds(parts, *self._coefficients(corners, beyond, *ends))

    def _coefficients(self, corners: Value, beyond: Value, values: Value, slopes: Value) -> tuple[Value, ...]:
        """The Bernstein coefficients at the corners, on the edges (from corner, to corner), and inside."""
        at, pairs = elements(self.points, corners), list(itertools.permutations(range(3), 2))
        edge = {
            (a, b): values[:, a] + np.sum((at[:, b] - at[:, a])[..., None] * slopes[:, a], axis=1) / 3 for a, b in pairs
        }
        inner = [(values[:, a] + edge[a, (a + 1) % 3] + edge[a, (a + 2) % 3]) / 3 for a in range(3)]
        middle = []
        for k in range(3):
            a, b, bend = (k + 1) % 3, (k + 2) % 3, self._bend(at, beyond[:, k], k)[:, None]
            third = values[:, b] - 3 * edge[b, a] + 3 * edge[a, b] - values[:, a]
            middle.append((bend * third + 2 * edge[a, b] - values[:, a] - edge[b, a] + inner[a] + inner[b]) / 2)
        outer = [(middle[(a + 1) % 3] + middle[(a + 2) % 3] + inner[a]) / 3 for a in range(3)]
        return values, edge, inner, middle, outer

    def _bend(self, at: Value, beyond: Value, k: int) -> Value:
        """The number g that gives the line to the neighbour's centroid the direction (C - A) + g (B - A).

        The edge opposite to corner `k` goes from A to B, and C is the centroid. At the rim there is no neighbour, and
        g = -1/2 gives the direction from the middle of the edge to C.
        """
        rim = beyond < 0
        parts = barycentric(at, np.mean(elements(self.points, elements(self.corners, beyond)), axis=1))
        return np.where(rim, -0.5, (parts[:, (k + 2) % 3] - parts[:, k]) / np.where(rim, 1.0, 3 * parts[:, k] - 1))


def _of_thirds(parts: Value, values: Value, edge: Value, inner: Value, middle: Value, outer: Value) -> Value:
    """The value of the cubic on the third of a triangle between its corners 1 and 2 and its centroid."""
    a, b, c = parts[:, 1:2] - parts[:, :1], parts[:, 2:] - parts[:, :1], 3 * parts[:, :1]
    centre = (outer[0] + outer[1] + outer[2]) / 3
    total = a**3 * values[:, 1] + b**3 * values[:, 2] + c**3 * centre + 6 * a * b * c * middle[0]
    total = total + 3 * a * b * (a * edge[1, 2] + b * edge[2, 1])
    return total + 3 * c * (a**2 * inner[1] + b**2 * inner[2] + c * (a * outer[1] + b * outer[2]))
