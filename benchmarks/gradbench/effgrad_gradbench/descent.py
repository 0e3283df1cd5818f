"""The gradient descent of `particle` and `saddle`: naive, with a step that doubles after ten successes.

Siskind and Pearlmutter 2008, "Putting the automatic back into AD: part I, what's wrong", section 4.
"""

import math

from effgrad import grad, jacobian

# How a gradient is taken, by the suite's letter of the mode.
GRADIENT = {"f": lambda f: jacobian(f, mode="forward"), "r": grad}


def argmin(f, gradient, x):
    """Where a function of a list of numbers is least, from x on."""
    value, slope = f(x), gradient(x)
    step, successes = 1e-5, 0
    while length(slope) > 1e-5:
        if successes == 10:
            step, successes = 2 * step, 0
        following = [a - step * b for a, b in zip(x, slope, strict=True)]
        if length([a - b for a, b in zip(x, following, strict=True)]) <= 1e-5:
            break
        there = f(following)
        if there < value:
            x, value, slope = following, there, gradient(following)
            successes += 1
        else:
            step, successes = step / 2, 0
    return x


def length(x):
    return math.sqrt(sum(a * a for a in x))
