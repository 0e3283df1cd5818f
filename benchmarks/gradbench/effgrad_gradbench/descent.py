"""The gradient descent of `particle` and `saddle`: naive, with a step that doubles after ten successes.

Siskind and Pearlmutter 2008, "Putting the automatic back into AD: part I, what's wrong", section 4. It is here twice:
in Python's control flow, which is run operation by operation, and as `effgrad.loop` has it, which is compiled whole.
"""

import numpy as np

from effgrad import grad, jacobian, loop

# The square of the length of a step, or of a gradient, that ends the descent.
TOLERANCE = 1e-5**2

# How a gradient is taken, by the suite's letter of the mode.
GRADIENT = {"f": lambda f: jacobian(f, mode="forward"), "r": grad}


def argmin(f, gradient, x):
    """Where a function of a list of numbers is least, from x on."""
    value, slope = f(x), gradient(x)
    size, successes = 1e-5, 0
    while square(slope) > TOLERANCE:
        if successes == 10:
            size, successes = 2 * size, 0
        following = [a - size * b for a, b in zip(x, slope, strict=True)]
        if square([a - b for a, b in zip(x, following, strict=True)]) <= TOLERANCE:
            break
        there = f(following)
        if there < value:
            x, value, slope = following, there, gradient(following)
            successes += 1
        else:
            size, successes = size / 2, 0
    return x


def structured_argmin(f, gradient, x):
    """`argmin` as one loop."""

    def going(state):
        _, _, slope, _, _, moving = state
        return moving & (square(slope) > TOLERANCE)

    def step(state):
        x, value, slope, size, successes, _ = state
        doubled = successes == 10
        size, successes = np.where(doubled, 2 * size, size), np.where(doubled, 0, successes)
        following = [a - size * b for a, b in zip(x, slope, strict=True)]
        moving = square([a - b for a, b in zip(x, following, strict=True)]) > TOLERANCE
        there, direction = f(following), gradient(following)
        better = moving & (there < value)

        def kept(new, old):
            return [np.where(better, a, b) for a, b in zip(new, old, strict=True)]

        size, successes = np.where(better, size, size / 2), np.where(better, successes + 1, 0)
        return kept(following, x), np.where(better, there, value), kept(direction, slope), size, successes, moving

    return loop.while_(going, step, (x, f(x), gradient(x), 1e-5, 0, np.bool_(True)))[0]


def square(x):
    return sum(a * a for a in x)
