"""A charged particle between two fixed charges, one of which is moved until the particle's path meets the origin.

The force on the particle is a gradient, and the place of the charge is found by a descent along another gradient,
through a loop whose length depends on it. Where the charges keep the particle from the axis, its path does not end by
itself: it is given up after so many steps, as one that misses by infinitely much. In the name of a function, the first
letter is the mode of the outer gradient and the second of the inner: f for forward, r for reverse.
"""

import numpy as np

from effgrad_gradbench.descent import GRADIENT, VALUE_AND_GRADIENT, argmin
from effgrad_gradbench.fields import BadInput, field, number

# The steps after which a path is given up; those that cross the axis have some hundreds.
MOST_STEPS = 100_000


def miss(w, mode):
    """The squared distance from the origin at which the particle crosses the axis, by Euler's method."""
    charges = (10.0, 10.0 - w), (10.0, 0.0)
    step = 0.1

    def potential(place):
        x, y = place
        return sum(1 / np.sqrt((x - a) ** 2 + (y - b) ** 2) for a, b in charges)

    acceleration = GRADIENT[mode](potential)

    x, y, u, v, steps = 0.0, 8.0, 0.75, 0.0, 0
    while y + step * v > 0 and steps < MOST_STEPS:
        a, b = acceleration([x, y])
        x, y, u, v, steps = x + step * u, y + step * v, u - step * a, v - step * b, steps + 1
    return np.where(steps < MOST_STEPS, (x - y / v * u) ** 2, np.inf)


def search(modes):
    """The search for w, in a pair of modes; its result is not a number if the path never meets the axis."""
    outer, inner = modes

    def cost(ws):
        return miss(ws[0], inner)

    def found(w):
        ws = argmin(VALUE_AND_GRADIENT[outer](cost), [w])
        return np.where(np.isfinite(cost(ws)), ws[0], np.nan)

    return found


MODES = [outer + inner for outer in "rf" for inner in "rf"]
FUNCTIONS = {modes: search(modes) for modes in MODES}


def read(source):
    return (number(field(source, "w"), "w"),)


def write(name, result):
    if not np.isfinite(result):
        raise BadInput(f"the particle does not cross the axis within {MOST_STEPS:,} steps")
    return float(result)
