"""The gradient descent of `particle` and `saddle`: naive, with a step that doubles after ten successes.

Siskind and Pearlmutter 2008, "Putting the automatic back into AD: part I, what's wrong", section 4.
"""

from effgrad import grad, jacobian, jvp, value_and_grad

# The square of the length of a step, or of a gradient, that ends the descent.
TOLERANCE = 1e-5**2


def value_and_slopes(f):
    """The value of a function of a list of numbers and its gradient, by forward mode: a tangent for each number."""

    def both(x):
        along = [jvp(f, (x,), ([float(i == k) for i in range(len(x))],)) for k in range(len(x))]
        return along[0][0], [slope for _, slope in along]

    return both


# How a gradient is taken, alone or with the value, by the suite's letter of the mode.
GRADIENT = {"f": lambda f: jacobian(f, mode="forward"), "r": grad}
VALUE_AND_GRADIENT = {"f": value_and_slopes, "r": value_and_grad}


def argmin(f, x):
    """Where a function of a list of numbers is least, from x on; `f` gives its value and its gradient."""
    value, slope = f(x)
    size, successes = 1e-5, 0
    while square(slope) > TOLERANCE:
        if successes == 10:
            size, successes = 2 * size, 0
        following = [a - size * b for a, b in zip(x, slope, strict=True)]
        if square([a - b for a, b in zip(x, following, strict=True)]) <= TOLERANCE:
            break
        there, direction = f(following)
        if there < value:
            x, value, slope = following, there, direction
            successes += 1
        else:
            size, successes = size / 2, 0
    return x


def square(x):
    return sum(a * a for a in x)
