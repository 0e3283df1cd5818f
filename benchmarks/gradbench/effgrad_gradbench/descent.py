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
    """`argmin` as a loop of steps, each halved in a loop until it leads down."""

    def going(state):
        _, _, slope, _, _, moving = state
        return moving & (square(slope) > TOLERANCE)

    def step(state):
        x, value, slope, size, successes, _ = state

        def tried(size):
            following = [a - size * b for a, b in zip(x, slope, strict=True)]
            moving = square([a - b for a, b in zip(x, following, strict=True)]) > TOLERANCE
            return size, following, f(following), gradient(following), moving

        def fails(trial):
            (_, _, there, _, moving), _ = trial
            return moving & ~(there < value)

        def halved(trial):
            return tried(trial[0][0] / 2), 0

        doubled = successes == 10
        trial = tried(np.where(doubled, 2 * size, size)), np.where(doubled, 0, successes)
        (size, following, there, direction, moving), successes = loop.while_(fails, halved, trial)
        x = [np.where(moving, a, b) for a, b in zip(following, x, strict=True)]
        return x, there, direction, size, successes + 1, moving

    return loop.while_(going, step, (x, f(x), gradient(x), 1e-5, 0, np.bool_(True)))[0]


def square(x):
    return sum(a * a for a in x)
