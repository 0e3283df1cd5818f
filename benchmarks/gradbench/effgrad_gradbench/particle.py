"""A charged particle between two fixed charges, one of which is moved until the particle's path meets the origin.

The force on the particle is a gradient, and the place of the charge is found by a descent along another gradient,
through a loop whose length depends on it. In the name of a function, the first letter is the mode of the outer
gradient and the second of the inner: f for forward, r for reverse.
"""

import numpy as np

from effgrad_gradbench.descent import GRADIENT, argmin
from effgrad_gradbench.fields import field, number


def miss(w, mode):
    """The squared distance from the origin at which the particle crosses the axis, by Euler's method."""
    charges = (10.0, 10.0 - w), (10.0, 0.0)

    def potential(place):
        x, y = place
        return sum(1 / np.sqrt((x - a) ** 2 + (y - b) ** 2) for a, b in charges)

    acceleration = GRADIENT[mode](potential)
    (x, y), (u, v), step = (0.0, 8.0), (0.75, 0.0), 0.1
    while True:
        a, b = acceleration([x, y])
        if y + step * v <= 0:
            return (x - y / v * u) ** 2
        x, y, u, v = x + step * u, y + step * v, u - step * a, v - step * b


def build(modes, run=lambda function: function):
    """The search for w; `run` may be `effgrad.compile`, for one path of the particle and its gradient."""
    outer, inner = modes

    def cost(ws):
        return miss(ws[0], inner)

    value, gradient = run(cost), run(GRADIENT[outer](cost))
    return lambda w: argmin(value, gradient, [w])[0]


FUNCTIONS = {outer + inner: build(outer + inner) for outer in "rf" for inner in "rf"}


def read(source):
    return (number(field(source, "w"), "w"),)
