"""A charged particle between two fixed charges, one of which is moved until the particle's path meets the origin.

The force on the particle is a gradient, and the place of the charge is found by a descent along another gradient,
through a loop whose length depends on it. Where the charges keep the particle from the axis, its path does not end by
itself: it is given up after so many steps, as one that misses by infinitely much. In the name of a function, the first
letter is the mode of the outer gradient and the second of the inner: f for forward, r for reverse.
"""

import numpy as np

from effgrad import loop
from effgrad_gradbench import plain
from effgrad_gradbench.descent import GRADIENT, argmin, structured_argmin
from effgrad_gradbench.fields import BadInput, field, number

# The steps after which a path is given up; those that cross the axis have some hundreds.
MOST_STEPS = 100_000


def miss(w, mode, while_=plain.while_):
    """The squared distance from the origin at which the particle crosses the axis, by Euler's method."""
    charges = (10.0, 10.0 - w), (10.0, 0.0)
    step = 0.1

    def potential(place):
        x, y = place
        return sum(1 / np.sqrt((x - a) ** 2 + (y - b) ** 2) for a, b in charges)

    acceleration = GRADIENT[mode](potential)

    def above(state):
        _, y, _, v, steps = state
        return (y + step * v > 0) & (steps < MOST_STEPS)

    def move(state):
        x, y, u, v, steps = state
        a, b = acceleration([x, y])
        return x + step * u, y + step * v, u - step * a, v - step * b, steps + 1

    x, y, u, v, steps = while_(above, move, (0.0, 8.0, 0.75, 0.0, 0))
    return np.where(steps < MOST_STEPS, (x - y / v * u) ** 2, np.inf)


def search(modes, argmin=argmin, while_=plain.while_):
    """The search for w, in a pair of modes; its result is not a number if the path never meets the axis."""
    outer, inner = modes

    def cost(ws):
        return miss(ws[0], inner, while_)

    def found(w):
        ws = argmin(cost, GRADIENT[outer](cost), [w])
        return np.where(np.isfinite(cost(ws)), ws[0], np.nan)

    return found


MODES = [outer + inner for outer in "rf" for inner in "rf"]
FUNCTIONS = {modes: search(modes) for modes in MODES}
STRUCTURED = {modes: search(modes, structured_argmin, loop.while_) for modes in MODES}


def read(source):
    return (number(field(source, "w"), "w"),)


def write(name, result):
    if not np.isfinite(result):
        raise BadInput(f"the particle does not cross the axis within {MOST_STEPS:,} steps")
    return float(result)
