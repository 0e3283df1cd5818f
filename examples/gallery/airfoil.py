"""A wing section with a given pressure on its surface: inverse design by a vortex panel method.

The flow without friction is that of vortices along the panels of the outline, as strong as keeps the flow from
crossing it. Thickness and camber have unknown coefficients. Kuethe and Chow 1998, section 5.10; Kulfan 2008.
"""

import numpy as np

PANELS = 40
ANGLE = np.radians(4.0)
TRUTH = np.array([0.20, 0.12, 0.20, 0.035, 0.02])


def outline(parameters):
    """Corners of the panels, from the trailing edge along the lower side, and back along the upper one."""
    turn = np.linspace(0.0, 2 * np.pi, PANELS + 1)
    x = 0.5 * (1 + np.cos(turn))
    front, middle, back, first, second = parameters
    thickness = np.sqrt(x) * (1 - x) * (front * (1 - x) ** 2 + 2 * middle * x * (1 - x) + back * x**2)
    camber = 4 * x * (1 - x) * (first + second * (1 - 2 * x))
    return x, camber + np.where(turn < np.pi, -1.0, 1.0) * thickness


def pressure(parameters):
    """The pressure coefficient in the middle of each panel."""
    x, y = outline(parameters)
    middle_x, middle_y = 0.5 * (x[1:] + x[:-1]), 0.5 * (y[1:] + y[:-1])
    length = np.hypot(np.diff(x), np.diff(y))
    angle = np.arctan2(np.diff(y), np.diff(x))
    dx, dy = middle_x[:, None] - x[:-1], middle_y[:, None] - y[:-1]
    a = -dx * np.cos(angle) - dy * np.sin(angle)
    b = dx**2 + dy**2
    turn = angle[:, None] - angle
    c, d = np.sin(turn), np.cos(turn)
    e = dx * np.sin(angle) - dy * np.cos(angle)
    f = np.log(1 + length * (length + 2 * a) / b)
    g = np.arctan2(e * length, b + a * length)
    twice = angle[:, None] - 2 * angle
    p = dx * np.sin(twice) + dy * np.cos(twice)
    q = dx * np.cos(twice) - dy * np.sin(twice)
    normal_2 = d + 0.5 * q * f / length - (a * c + d * e) * g / length
    normal_1 = 0.5 * d * f + c * g - normal_2
    tangent_2 = c + 0.5 * p * f / length + (a * d - c * e) * g / length
    tangent_1 = 0.5 * c * f - d * g - tangent_2
    for matrix, value in [(normal_1, -1.0), (normal_2, 1.0), (tangent_1, np.pi / 2), (tangent_2, np.pi / 2)]:
        np.fill_diagonal(matrix, value)
    matrix = np.zeros((PANELS + 1, PANELS + 1))
    matrix[:-1, :-1] = normal_1
    matrix[:-1, 1:] += normal_2
    matrix[-1, 0] = matrix[-1, -1] = 1.0  # the flow leaves the trailing edge smoothly
    strength = np.linalg.solve(matrix, np.append(np.sin(angle - ANGLE), 0.0))
    speed = np.cos(angle - ANGLE) + tangent_1 @ strength[:-1] + tangent_2 @ strength[1:]
    return 1.0 - speed**2


def data():
    return pressure(TRUTH)


def start():
    return np.array([0.15, 0.15, 0.15, 0.0, 0.0])


def objective(parameters, wanted):
    return np.mean((pressure(parameters) - wanted) ** 2)
