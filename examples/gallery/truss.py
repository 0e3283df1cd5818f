"""A bridge as stiff as possible for its weight: the thickness of each bar of a truss.

The stiffness matrix is assembled bar by bar, and the work of the load is the objective. Christensen and Klarbring 2009,
An Introduction to Structural Optimization, chapter 5.
"""

import numpy as np

COLUMNS, ROWS = 9, 3


def nodes():
    """The joints, of shape (27, 2)."""
    return np.array([(float(i), float(j)) for i in range(COLUMNS) for j in range(ROWS)])


def bars():
    """Pairs of joints that are at most a diagonal apart."""
    points = nodes()
    return [
        (i, j)
        for i in range(len(points))
        for j in range(i + 1, len(points))
        if np.max(np.abs(points[i] - points[j])) <= 1.0
    ]


def data():
    """Joints, bars, the load on each degree of freedom, and the degrees that are free."""
    points = nodes()
    load = np.zeros(2 * len(points))
    load[2 * ROWS * np.arange(1, COLUMNS - 1) + 1] = -1.0  # on the lower joints, downwards
    held = [0, 1, 2 * ROWS * (COLUMNS - 1) + 1]
    return points, bars(), load, np.setdiff1d(np.arange(len(load)), held)


def start():
    """The logarithm of each bar's share of the material."""
    return np.zeros(len(bars()))


def areas(shares, points, bars):
    """The cross-section of every bar; all bars together have the volume 100."""
    lengths = np.array([np.linalg.norm(points[j] - points[i]) for i, j in bars])
    material = np.exp(shares) / np.sum(np.exp(shares))
    return 100.0 * material / lengths


def objective(shares, data):
    """The work of the load on the truss."""
    points, bars, load, free = data
    stiffness = np.zeros((len(load), len(load)))
    for (i, j), area in zip(bars, areas(shares, points, bars), strict=True):
        along = points[j] - points[i]
        length = np.linalg.norm(along)
        b = np.concatenate([-along, along]) / length
        place = [2 * i, 2 * i + 1, 2 * j, 2 * j + 1]
        stiffness[np.ix_(place, place)] += area / length * np.outer(b, b)
    displacement = np.linalg.solve(stiffness[np.ix_(free, free)], load[free])
    return load[free] @ displacement
