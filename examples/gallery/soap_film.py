"""A soap film in a bent wire: the surface of least area over a square with given heights at its rim.

The film is a net of triangles, and the heights inside are the unknowns. Each height meets only its neighbours, so the
matrix of second derivatives is sparse, and Newton's method needs few steps.
"""

import numpy as np

SIZE = 31


def data():
    """The heights along the rim, as a square with zeros inside."""
    t = np.linspace(0.0, 1.0, SIZE)
    rim = np.zeros((SIZE, SIZE))
    rim[0], rim[-1] = 0.5 * np.sin(np.pi * t), -0.4 * np.sin(2 * np.pi * t)
    rim[:, 0], rim[:, -1] = 0.6 * np.sin(np.pi * t), 0.5 * np.sin(np.pi * t) ** 2
    return rim


def start():
    """Heights inside that connect opposite sides of the rim by straight lines (Coons 1967)."""
    rim, t = data(), np.linspace(0.0, 1.0, SIZE)
    across = np.outer(1 - t, rim[0]) + np.outer(t, rim[-1])
    along = np.outer(rim[:, 0], 1 - t) + np.outer(rim[:, -1], t)
    return (across + along)[1:-1, 1:-1].ravel()  # the corners are at 0


def surface(heights, rim):
    """All heights, of shape (size, size)."""
    film = rim.copy()
    film[1:-1, 1:-1] = heights.reshape(SIZE - 2, SIZE - 2)
    return film


def objective(heights, rim):
    """The area of the triangles, two in each cell of the net."""
    film = surface(heights, rim)
    h = 1.0 / (SIZE - 1)
    right, up = np.diff(film, axis=1) / h, np.diff(film, axis=0) / h
    lower = np.sqrt(1 + right[:-1] ** 2 + up[:, :-1] ** 2)
    upper = np.sqrt(1 + right[1:] ** 2 + up[:, 1:] ** 2)
    return np.sum(lower + upper) * h**2 / 2
